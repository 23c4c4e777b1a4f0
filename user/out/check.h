/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What check found, as text, as JSON (qbpf.check/1) and as JUnit's XML. */
#ifndef QBPF_OUT_CHECK_H
#define QBPF_OUT_CHECK_H

#include <stdio.h>

#include "model/check.h"

/* Each returns 0 or a negative errno of writing. */
int check__write(FILE *f, const struct check *c, bool utf8);
int check__write_json(FILE *f, const struct check *c);
int check__write_junit(FILE *f, const struct check *c);

/* "47.6us [46.9 .. 48.8us] of 30006", what a case came to. malloc'ed; NULL: no memory. */
char *check_case__text(const struct check_case *c);

#endif

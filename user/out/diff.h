/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What diff found, as a table and as JSON (qbpf.diff/1). */
#ifndef QBPF_OUT_DIFF_H
#define QBPF_OUT_DIFF_H

#include <stdio.h>

#include "model/diff.h"

/* Rows that did not change are left out unless `all`. 0 or a negative errno of writing. */
int diff__write(FILE *f, const struct diff *d, bool all, bool utf8);
int diff__write_json(FILE *f, const struct diff *d);

#endif

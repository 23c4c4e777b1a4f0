/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What diff and check share as commands: loading sides, telling faults. */
#ifndef QBPF_CMD_COMPARE_H
#define QBPF_CMD_COMPARE_H

#include "model/side.h"

/* "99", in percent: 50 .. 99.9999. */
int compare__confidence(const char *text, double *out, struct err *e);
/* Tells what getopt_long() returned '?' or ':' for. */
int compare__bad_option(const char *command, char *word, int c);
void compare__fault(const struct err *e);
/* Loads a side and warns of what its figures do not cover. Never -EINVAL, which is a usage error. */
int compare__load(const char *path, const double *extra, size_t nextra, struct side **out,
		  struct err *e);

#endif

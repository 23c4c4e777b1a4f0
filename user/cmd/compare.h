/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What diff and check share as commands: loading sides, writing documents. */
#ifndef QBPF_CMD_COMPARE_H
#define QBPF_CMD_COMPARE_H

#include <stdio.h>

#include "model/side.h"

/* An output: on stdout (path NULL) or in a file. */
struct compare_out {
	bool wanted;
	const char *path;
};

/* "99", in percent: 50 .. 99.9999. */
int compare__confidence(const char *text, double *out, struct err *e);
/* Tells what getopt_long() returned '?' or ':' for. */
int compare__bad_option(const char *command, char *word, int c);
void compare__fault(const struct err *e);
/* Loads a side and warns of what its figures do not cover. Never -EINVAL, which is a usage error. */
int compare__load(const char *path, const double *extra, size_t nextra, struct side **out,
		  struct err *e);
/* A reader of stdout that went away is no fault. */
int compare__write(const struct compare_out *out, int (*write)(FILE *f, const void *what),
		   const void *what, struct err *e);

#endif

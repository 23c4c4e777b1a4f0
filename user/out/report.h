/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The report of a recording: plain text, or the summary document (docs/json.md). */
#ifndef QBPF_OUT_REPORT_H
#define QBPF_OUT_REPORT_H

#include <stdio.h>

#include "model/analysis.h"

struct report_opts {
	const char *path;   /* of the trace, as it was given */
	unsigned int width; /* columns; 0: no terminal, as many as the names need */
	size_t limit;	    /* rows of one table; 0: no limit */
	double hot;	    /* a hot spot has this share of the time for itself, 0..1 */
	const char *span;   /* this one only: callers, callees, distribution; NULL: all */
	bool threads;	    /* the call tree of each thread: the analysis was per_thread */
};

/* 0 or -ENOMEM; of writing, see ferror(f). */
int report__write(FILE *f, const struct analysis *a, const struct report_opts *o);
/* 0 or a negative errno, of writing too. */
int report__write_json(FILE *f, const struct analysis *a, const struct report_opts *o);

#endif

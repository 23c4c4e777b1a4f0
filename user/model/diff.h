/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed between two recordings, by span and by place in the call tree.
 *
 * Recordings differ in length, so sums are compared per second of recording. A change is told only
 * when the interval of the change excludes none at all; that interval is widened for the number of
 * figures compared (Bonferroni), so of a hundred comparisons of equals, at the default confidence,
 * about one tells any change anywhere.
 */
#ifndef QBPF_MODEL_DIFF_H
#define QBPF_MODEL_DIFF_H

#include "model/side.h"

enum diff_verdict {
	DIFF_NONE, /* of figures that have no interval: a maximum, a count */
	DIFF_SAME,
	DIFF_TOO_FEW, /* nothing told, and twice or half as much cannot be excluded */
	DIFF_FASTER,
	DIFF_SLOWER,
	DIFF_LESS, /* of rates, sums and plain numbers, which are no speed */
	DIFF_MORE,
	DIFF_NEW, /* of rows */
	DIFF_GONE,
	DIFF_VERDICTS
};

#define DIFF_FIGURES 12
extern const struct figure diff_figures[DIFF_FIGURES];

struct diff_figure {
	struct estimate a, b;
	enum diff_verdict verdict;
	bool has_change, has_interval;
	double change; /* b / a - 1 */
	struct interval ci;
};

struct diff_row {
	uint32_t a, b; /* items; SIDE_NONE: not there */
	enum side_class class;
	enum diff_verdict verdict;
	bool changed;	 /* the row or any figure of it */
	double explains; /* ns of total per second that came, or went */
	struct diff_figure figures[DIFF_FIGURES];
};

struct diff_opts {
	double confidence; /* 0.99 */
	double min_change; /* 0.02: smaller changes are "same" however sure they are */
};

struct diff {
	const struct side *a, *b;
	struct diff_opts opts;
	struct diff_row *rows; /* spans, then nodes; what explains most first */
	size_t nspans, n;
	size_t compared;	      /* figures */
	size_t counts[DIFF_VERDICTS]; /* rows */
};

/* 0 or -ENOMEM. Points into both sides. */
int diff__new(const struct side *a, const struct side *b, const struct diff_opts *o,
	      struct diff **out);
void diff__free(struct diff *d);

const char *diff_verdict__name(enum diff_verdict v);
/* The side and the item that name a row. */
const struct side *diff_row__side(const struct diff *d, const struct diff_row *r, size_t *item);

#endif

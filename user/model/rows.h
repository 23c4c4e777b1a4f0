/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A histogram's buckets merged into few rows on a logarithmic scale, for showing. Each row is
 * a whole number of buckets, so its bounds and its count are exact.
 */
#ifndef QBPF_MODEL_ROWS_H
#define QBPF_MODEL_ROWS_H

#include "model/hist.h"

struct hist_row {
	long double lo, hi; /* [lo, hi) */
	uint64_t n;	    /* 0 in a gap */
	bool gap;	    /* stands for a longer empty stretch */
};

/* At most `max` (>= 9) rows in ascending order, as fine as that allows. malloc'ed; returns
 * how many, 0: empty histogram or no memory. */
size_t hist_rows__make(const struct hist *h, size_t max, struct hist_row **out);

/* Counts in `n` columns of equal width on a logarithmic scale from the smallest to the
 * greatest value, a small picture of the distribution. False: empty. */
bool hist_rows__columns(const struct hist *h, uint64_t *counts, size_t n);

#endif

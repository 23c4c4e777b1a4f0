/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rows.c - merges buckets into rows on a logarithmic scale.
 *
 * A row is 1/r of an octave, r a power of two from 32 (the buckets themselves) down to 1, or
 * 2, 4, 8 ... octaves; the finest that gives no more rows than asked for. An empty stretch of
 * more than two rows becomes one gap, so that a far outlier does not coarsen the bulk.
 */
#include <math.h>
#include <stdlib.h>

#include "model/rows.h"

#define FINEST	 5     /* 2^5 rows an octave */
#define COARSEST (-12) /* 2^12 octaves a row: all doubles of one sign in one row */

/*
 * The row that a value belongs to, as a number that ascends with the value: rows of positive
 * values count from 1 up, those of negative values mirror them, 0 stands alone.
 */
#define OCTAVE_BIAS 1100
#define INF_ROW	    (1l << 40)

static long magnitude_row(long double m, int fine)
{
	int exp;
	long double frac = frexpl(m, &exp) * 2 - 1; /* [0, 1) of the octave 2^(exp-1) */
	long octave = exp - 1 + OCTAVE_BIAS;

	if (isinf(m))
		return INF_ROW;
	if (fine >= 0)
		return octave * (1l << fine) + (long)(frac * (1l << fine)) + 1;
	return (octave >> -fine) + 1;
}

static void magnitude_range(long row, int fine, long double *lo, long double *hi)
{
	long per = fine >= 0 ? 1l << fine : 1, octave;

	if (row == INF_ROW) {
		*lo = *hi = INFINITY;
		return;
	}
	row -= 1;
	if (fine >= 0) {
		octave = row / per;
		*lo = ldexpl(1 + (long double)(row % per) / per, (int)octave - OCTAVE_BIAS);
		*hi = ldexpl(1 + (long double)(row % per + 1) / per, (int)octave - OCTAVE_BIAS);
	} else {
		octave = row << -fine;
		*lo = ldexpl(1, (int)octave - OCTAVE_BIAS);
		*hi = ldexpl(1, (int)octave + (1 << -fine) - OCTAVE_BIAS);
	}
}

/* Buckets of plain doubles start at 0 too (subnormals); they belong to the row of zero. */
static long bucket_row(const struct hist_bucket *b, bool whole, int fine)
{
	if (b->lo >= 0)
		return b->lo > 0 ? magnitude_row(b->lo, fine) : 0;
	/* A negative bucket: its magnitude's lower edge. Integers: [-last, -first + 1). */
	return b->hi - (whole ? 1 : 0) < 0 ? -magnitude_row(-(b->hi - (whole ? 1 : 0)), fine) : 0;
}

static void row_range(long row, bool whole, int fine, long double *lo, long double *hi)
{
	long double l, h;

	if (row == 0) {
		*lo = 0;
		*hi = whole ? 1 : 0;
		return;
	}
	magnitude_range(labs(row), fine, &l, &h);
	if (whole) { /* the integers of [l, h) */
		l = ceill(l);
		h = ceill(h);
	}
	*lo = row > 0 ? l : whole ? 1 - h : -h;
	*hi = row > 0 ? h : whole ? 1 - l : -l;
}

/* Writes rows while there is room; returns how many there are. */
static size_t merge(const struct hist_bucket *b, size_t n, bool whole, int fine,
		    struct hist_row *rows, size_t max)
{
	size_t used = 0;
	long last = 0;

	for (size_t i = 0; i < n; i++) {
		long row = bucket_row(&b[i], whole, fine);
		long double lo, hi;

		if (i && row == last) {
			rows[used - 1].n += b[i].n;
			if (row == 0 && !whole)
				continue; /* subnormals: as good as zero */
			if (b[i].lo < rows[used - 1].lo)
				rows[used - 1].lo = b[i].lo;
			if (b[i].hi > rows[used - 1].hi)
				rows[used - 1].hi = b[i].hi;
			continue;
		}
		row_range(row, whole, fine, &lo, &hi);
		if (row == 0 ? whole : fine < 0) { /* as far as there are values, not to 2^4096 */
			lo = b[i].lo;
			hi = b[i].hi;
		}
		if (i && row - last > 1 && rows[used - 1].hi < lo) {
			long missing = row - last - 1;
			bool gap = missing > 2 || fine < 0;

			for (long m = 1; m <= (gap ? 1 : missing); m++) {
				struct hist_row empty = {rows[used - 1].hi, lo, 0, gap};

				if (used == max)
					return max + 1;
				if (!gap)
					row_range(last + m, whole, fine, &empty.lo, &empty.hi);
				rows[used++] = empty;
			}
		}
		if (used == max)
			return max + 1;
		rows[used++] = (struct hist_row){lo, hi, b[i].n, false};
		last = row;
	}
	return used;
}

size_t hist_rows__make(const struct hist *h, size_t max, struct hist_row **out)
{
	bool whole = hist__kind(h) != QBPF_HIST_F64;
	struct hist_bucket *buckets;
	struct hist_row *rows = NULL;
	size_t n = hist__buckets(h, &buckets), used = 0;

	*out = NULL;
	if (n)
		rows = calloc(max, sizeof(*rows));
	for (int fine = FINEST; rows && fine >= COARSEST; fine--) {
		used = merge(buckets, n, whole, fine, rows, max);
		if (used <= max)
			break;
	}
	free(buckets);
	if (!rows || used > max) {
		free(rows);
		return 0;
	}
	*out = rows;
	return used;
}

/* A position on a scale that is logarithmic beyond `unit` and passes through 0. */
static long double log_position(long double v, long double unit)
{
	long double p = log2l(1 + fabsl(v) / unit);

	return v < 0 ? -p : p;
}

/* The smallest magnitude that is told apart from 0. */
static long double smallest(const struct hist_bucket *b, size_t n)
{
	long double least = INFINITY;

	for (size_t i = 0; i < n; i++) {
		long double m = b[i].lo >= 0 ? b[i].lo : fabsl(b[i].hi);

		if (m > 0 && m < least)
			least = m;
	}
	return isinf(least) ? 1 : least;
}

bool hist_rows__columns(const struct hist *h, uint64_t *counts, size_t n)
{
	struct hist_bucket *b;
	size_t nb = hist__buckets(h, &b);
	long double lo, width, unit;

	for (size_t i = 0; i < n; i++)
		counts[i] = 0;
	if (!nb) {
		free(b);
		return false;
	}
	unit = hist__kind(h) == QBPF_HIST_F64 ? smallest(b, nb) : 1;
	lo = log_position(isinf(b[0].lo) ? b[0].hi : b[0].lo, unit);
	width = log_position(isinf(b[nb - 1].hi) ? b[nb - 1].lo : b[nb - 1].hi, unit) - lo;
	for (size_t i = 0; i < nb; i++) {
		long double at = log_position((b[i].lo + b[i].hi) / 2, unit) - lo, col;

		col = isfinite(at) && isfinite(width) && width > 0 ? at / width * n : 0;
		if (isinf(b[i].lo)) /* infinities stand at the ends */
			col = b[i].lo > 0 ? n - 1 : 0;
		counts[!(col > 0) ? 0 : col >= n ? n - 1 : (size_t)col] += b[i].n;
	}
	free(b);
	return true;
}

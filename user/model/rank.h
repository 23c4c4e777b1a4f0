/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Nearest rank: which of n ordered values is the q-quantile. */
#ifndef QBPF_MODEL_RANK_H
#define QBPF_MODEL_RANK_H

#include <math.h>
#include <stdint.h>

/*
 * 1 .. n for 0 < q < 1; 0 when the sample cannot support it: fewer than 1/(1-q) values. The
 * tolerances undo that q is a binary fraction: 0.999 of 1,000 is rank 999.
 */
static inline uint64_t rank_of_quantile(uint64_t n, double q)
{
	long double rank = (long double)q * n, whole = roundl(rank);

	if (!n || (long double)n * (1 - (long double)q) < 1 - 1e-9L)
		return 0;
	rank = fabsl(rank - whole) <= n * 0x1p-52L ? whole : ceill(rank);
	return rank < 1 ? 1 : rank > n ? n : (uint64_t)rank;
}

#endif

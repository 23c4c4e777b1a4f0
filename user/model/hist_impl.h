/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of a histogram, shared by hist*.c alone. */
#ifndef QBPF_MODEL_HIST_IMPL_H
#define QBPF_MODEL_HIST_IMPL_H

#include "model/hist.h"

#define F64_EXP_MAX   2047
#define F64_MANT_BITS 52
#define F64_INF_BITS  0x7ff0000000000000ull
#define F64_MAG_MASK  0x7fffffffffffffffull

struct octave {
	int32_t ord; /* octave, or -1 - octave when negative: ascending order of value */
	struct qbpf_hist_cell c;
};

struct hist {
	enum qbpf_hist_kind kind;
	unsigned int n, cap;
	unsigned int last; /* where the last value went, and the next one is likely to go */
	struct octave *oct;
};

static inline unsigned int ord_octave(int32_t ord)
{
	return ord < 0 ? -1 - ord : ord;
}

static inline uint64_t clamp_u64(uint64_t v, uint64_t lo, uint64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/*
 * The magnitudes of one bucket, lowest and highest that can be in it, in the form of the cell's
 * min and max: an integer, or the bits of a non-negative double (which order as integers do).
 */
void hist__bucket_range(enum qbpf_hist_kind kind, unsigned int octave, unsigned int b,
			uint64_t *first, uint64_t *last);

#endif

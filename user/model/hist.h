/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Histograms in the geometry of abi.h: cells of one octave, 32 buckets each, merged over CPUs.
 * A percentile is the midpoint of its bucket clamped to [min, max], so it is within 1.6 % of
 * the true order statistic. Values are long double on this side: exact for any 64-bit integer
 * and any double.
 */
#ifndef QBPF_MODEL_HIST_H
#define QBPF_MODEL_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qbpf/abi.h"

struct hist;

struct hist *hist__new(enum qbpf_hist_kind kind);
void hist__free(struct hist *h);
struct hist *hist__clone(const struct hist *h);
enum qbpf_hist_kind hist__kind(const struct hist *h);

/* Adds one cell as the kernel holds it (an octave key with QBPF_HIST_NEGATIVE). 0, -ENOMEM, or
 * -EINVAL for an octave that this kind does not have. */
int hist__add_cell(struct hist *h, uint16_t octave, const struct qbpf_hist_cell *cell);
/* Adds one value (NS, INT: as int64; F64: as its bits): for tests and recorded spans. */
int hist__add(struct hist *h, uint64_t value);
/* Has the memory that the next one will likely need fetched meanwhile. */
void hist__prefetch(const struct hist *h);
int hist__add_times(struct hist *h, uint64_t value, uint64_t times);
/* The cells themselves, in ascending order of value: what hist__add_cell takes. */
size_t hist__octaves(const struct hist *h);
const struct qbpf_hist_cell *hist__octave(const struct hist *h, size_t i, uint16_t *octave);
int hist__merge(struct hist *into, const struct hist *from);
/* into -= from, where `from` is an earlier state of the same histogram; min and max of the
 * difference become those of its outermost buckets, clamped to the whole histogram's. */
int hist__subtract(struct hist *into, const struct hist *from);

uint64_t hist__count(const struct hist *h); /* NaN included; sum, min, max, mean leave it out */
long double hist__sum(const struct hist *h);
long double hist__min(const struct hist *h); /* 0 when empty */
long double hist__max(const struct hist *h);
long double hist__mean(const struct hist *h);
/* q in [0, 1]; 0 is min, 1 is max. False when the sample cannot support it: fewer than
 * 1/(1-q) values (p999 needs 1,000, p9999 10,000); NaN values never take part. */
bool hist__quantile(const struct hist *h, double q, long double *out);
uint64_t hist__nan(const struct hist *h);

/* Walks non-empty buckets in ascending order of value: [lo, hi) and n. */
struct hist_bucket {
	long double lo, hi;
	uint64_t n;
};
size_t hist__buckets(const struct hist *h, struct hist_bucket **out); /* malloc'ed */

#endif

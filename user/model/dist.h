/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An exact distribution: each distinct value and how often it came. Latencies repeat, so 50 M of
 * them are some hundred thousand values. A pool bounds the memory of all distributions that share
 * it: when it is full the greatest ones give up low bits of their values, twelve significant bits at
 * least stay (0.025 %), and dist__exact says so.
 */
#ifndef QBPF_MODEL_DIST_H
#define QBPF_MODEL_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qbpf/abi.h"

struct dist_pool;
struct dist;

struct dist_pool *dist_pool__new(size_t max_bytes);
void dist_pool__free(struct dist_pool *p); /* after its distributions */

struct dist *dist__new(struct dist_pool *p, enum qbpf_hist_kind kind);
void dist__free(struct dist *d);
enum qbpf_hist_kind dist__kind(const struct dist *d);

/* NS: ns; INT: as int64_t; F64: its bits. 0 or -ENOMEM. */
int dist__add(struct dist *d, uint64_t value, uint64_t times);
/* Has the memory that dist__add of this value will need fetched meanwhile: the second call after the
 * first has had time to. */
void dist__prefetch_early(const struct dist *d);
void dist__prefetch(const struct dist *d, uint64_t value);
int dist__merge(struct dist *into, const struct dist *from);

uint64_t dist__count(const struct dist *d); /* NaN included */
uint64_t dist__nan(const struct dist *d);   /* in nothing else */
long double dist__sum(const struct dist *d);
long double dist__min(const struct dist *d); /* 0 when empty; exact always */
long double dist__max(const struct dist *d);
long double dist__mean(const struct dist *d);
bool dist__exact(const struct dist *d);

/* The value of rank k = 1 .. count - nan in ascending order; 0 outside. Sorts when needed. */
long double dist__rank(const struct dist *d, uint64_t k);
/* Nearest rank; false when fewer than 1/(1-q) values are there, as hist__quantile. */
bool dist__quantile(const struct dist *d, double q, long double *out);

struct dist_value {
	long double value;
	uint64_t n;
};
/* All values in ascending order; malloc'ed. */
size_t dist__values(const struct dist *d, struct dist_value **out);

#endif

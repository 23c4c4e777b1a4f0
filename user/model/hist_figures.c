/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hist_figures.c - what a histogram tells: count, sum, extremes, quantiles, buckets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/hist_impl.h"
#include "model/rank.h"

static long double magnitude_value(enum qbpf_hist_kind kind, uint64_t mag)
{
	double d;

	if (kind != QBPF_HIST_F64)
		return mag;
	memcpy(&d, &mag, sizeof(d));
	return d;
}

static long double signed_value(const struct hist *h, const struct octave *o, uint64_t mag)
{
	long double v = magnitude_value(h->kind, mag);

	/* 0 - v: a negative zero reads as plain zero. */
	return o->ord < 0 ? 0 - v : v;
}

/* NaN fills the buckets of octave 2047 but the first, which holds the infinities (and, should
 * a program make them by hand, signalling NaNs whose top bits are clear). */
static bool bucket_is_nan(const struct hist *h, const struct octave *o, unsigned int b)
{
	if (h->kind != QBPF_HIST_F64 || ord_octave(o->ord) != F64_EXP_MAX)
		return false;
	return b > 0 || o->c.min > F64_INF_BITS;
}

uint64_t hist__count(const struct hist *h)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < h->n; i++)
		for (int b = 0; b < QBPF_HIST_SUB; b++)
			n += h->oct[i].c.n[b];
	return n;
}

uint64_t hist__nan(const struct hist *h)
{
	uint64_t n = 0;

	if (h->kind != QBPF_HIST_F64)
		return 0;
	for (unsigned int i = 0; i < h->n; i++)
		for (int b = 0; b < QBPF_HIST_SUB; b++)
			if (bucket_is_nan(h, &h->oct[i], b))
				n += h->oct[i].c.n[b];
	return n;
}

/* The sum of one octave's magnitudes. */
static long double octave_sum(const struct hist *h, const struct octave *o)
{
	unsigned int k = ord_octave(o->ord);

	if (h->kind != QBPF_HIST_F64)
		return ldexpl(o->c.sum_hi, 64) + o->c.sum_lo;
	if (k == F64_EXP_MAX) /* infinities, else only NaN, which takes no part */
		return o->c.n[0] && !bucket_is_nan(h, o, 0) ? INFINITY : 0;
	return ldexpl(ldexpl(o->c.sum_hi, 26) + o->c.sum_lo, k ? (int)k - 1075 : -1074);
}

long double hist__sum(const struct hist *h)
{
	long double sum = 0, lost = 0;

	if (h->kind != QBPF_HIST_F64) {
		/* Exact, also when positive and negative sums nearly cancel. */
		__int128 exact = 0;

		for (unsigned int i = 0; i < h->n; i++) {
			const struct octave *o = &h->oct[i];
			__int128 s = (__int128)((unsigned __int128)o->c.sum_hi << 64 | o->c.sum_lo);

			exact += o->ord < 0 ? -s : s;
		}
		return exact;
	}
	for (unsigned int i = 0; i < h->n; i++) {
		const struct octave *o = &h->oct[i];
		long double s = octave_sum(h, o), t;

		if (o->ord < 0)
			s = 0 - s;
		/* Neumaier: what the addition rounds away is kept aside. */
		t = sum + s;
		if (isfinite(t))
			lost += fabsl(sum) >= fabsl(s) ? (sum - t) + s : (s - t) + sum;
		sum = t;
	}
	return isfinite(sum) ? sum + lost : sum;
}

static bool octave_is_number(const struct hist *h, const struct octave *o)
{
	for (int b = 0; b < QBPF_HIST_SUB; b++)
		if (o->c.n[b] && !bucket_is_nan(h, o, b))
			return true;
	return false;
}

/* An octave's greatest magnitude; that of 2047 may be a NaN's, then infinity is the answer. */
static uint64_t octave_max(const struct hist *h, const struct octave *o)
{
	if (h->kind == QBPF_HIST_F64 && o->c.max > F64_INF_BITS)
		return F64_INF_BITS;
	return o->c.max;
}

long double hist__min(const struct hist *h)
{
	for (unsigned int i = 0; i < h->n; i++) {
		const struct octave *o = &h->oct[i];

		if (octave_is_number(h, o))
			return signed_value(h, o, o->ord < 0 ? octave_max(h, o) : o->c.min);
	}
	return 0;
}

long double hist__max(const struct hist *h)
{
	for (unsigned int i = h->n; i-- > 0;) {
		const struct octave *o = &h->oct[i];

		if (octave_is_number(h, o))
			return signed_value(h, o, o->ord < 0 ? o->c.min : octave_max(h, o));
	}
	return 0;
}

long double hist__mean(const struct hist *h)
{
	uint64_t n = hist__count(h) - hist__nan(h);

	return n ? hist__sum(h) / n : 0;
}

/* Buckets in ascending order of value: i counts 0..31 in the order of the octave's sign. */
static unsigned int nth_bucket(const struct octave *o, unsigned int i)
{
	return o->ord < 0 ? QBPF_HIST_SUB - 1 - i : i;
}

static long double bucket_midpoint(const struct hist *h, const struct octave *o, unsigned int b)
{
	uint64_t first, last, mid;

	hist__bucket_range(h->kind, ord_octave(o->ord), b, &first, &last);
	/* The bits of doubles with one exponent are evenly spaced, so this is their midpoint too.
	 */
	mid = first + (last - first + 1) / 2;
	return signed_value(h, o, clamp_u64(mid, o->c.min, octave_max(h, o)));
}

bool hist__quantile(const struct hist *h, double q, long double *out)
{
	uint64_t n = hist__count(h) - hist__nan(h), seen = 0, rank;

	if (!n || !(q >= 0 && q <= 1))
		return false;
	if (q == 0 || q == 1) {
		*out = q == 0 ? hist__min(h) : hist__max(h);
		return true;
	}
	rank = rank_of_quantile(n, q);
	if (!rank)
		return false;
	for (unsigned int i = 0; i < h->n; i++) {
		const struct octave *o = &h->oct[i];

		for (unsigned int j = 0; j < QBPF_HIST_SUB; j++) {
			unsigned int b = nth_bucket(o, j);

			if (bucket_is_nan(h, o, b))
				continue;
			seen += o->c.n[b];
			if (o->c.n[b] && seen >= rank) {
				*out = bucket_midpoint(h, o, b);
				return true;
			}
		}
	}
	*out = hist__max(h);
	return true;
}

size_t hist__buckets(const struct hist *h, struct hist_bucket **out)
{
	struct hist_bucket *v;
	size_t n = 0;

	*out = NULL;
	v = malloc((h->n * QBPF_HIST_SUB + 1) * sizeof(*v));
	if (!v)
		return 0;
	for (unsigned int i = 0; i < h->n; i++) {
		const struct octave *o = &h->oct[i];

		for (unsigned int j = 0; j < QBPF_HIST_SUB; j++) {
			unsigned int b = nth_bucket(o, j);
			uint64_t first, last;
			long double lo, hi;

			if (!o->c.n[b] || bucket_is_nan(h, o, b))
				continue;
			hist__bucket_range(h->kind, ord_octave(o->ord), b, &first, &last);
			lo = magnitude_value(h->kind, first);
			if (first == F64_INF_BITS && h->kind == QBPF_HIST_F64)
				hi = lo;
			else
				hi = h->kind == QBPF_HIST_F64 ? magnitude_value(h->kind, last + 1)
							      : (long double)last + 1;
			if (o->ord >= 0)
				v[n++] = (struct hist_bucket){lo, hi, o->c.n[b]};
			else if (h->kind == QBPF_HIST_F64)
				v[n++] = (struct hist_bucket){0 - hi, 0 - lo, o->c.n[b]};
			else /* integers -last .. -first */
				v[n++] = (struct hist_bucket){1 - hi, 1 - lo, o->c.n[b]};
		}
	}
	*out = v;
	return n;
}

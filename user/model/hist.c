/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hist.c - histograms in the geometry of abi.h, merged over CPUs.
 *
 * A histogram is a sorted array of the octaves that occurred, so its memory follows the
 * spread of the values (about ten octaves, 3 kB, for a usual latency) and not the range of
 * 64-bit numbers. The order of the array is the order of the values: negative octaves from the
 * greatest magnitude down, then positive ones up.
 *
 * The kernel updates a cell field by field while it is read, so a cell's min, max and sums may
 * lag behind its buckets by the values in flight. The buckets are the truth: min and max are
 * clamped to the outermost non-empty buckets on the way in, and whatever a caller sees is
 * consistent from there on. What one tells is in hist_figures.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/hist_impl.h"

#define INT_OCTAVES 60

struct hist *hist__new(enum qbpf_hist_kind kind)
{
	struct hist *h = calloc(1, sizeof(*h));

	if (h)
		h->kind = kind;
	return h;
}

void hist__free(struct hist *h)
{
	if (!h)
		return;
	free(h->oct);
	free(h);
}

struct hist *hist__clone(const struct hist *h)
{
	struct hist *c = hist__new(h->kind);

	if (!c || !h->n)
		return c;
	c->oct = malloc(h->n * sizeof(*c->oct));
	if (!c->oct) {
		free(c);
		return NULL;
	}
	memcpy(c->oct, h->oct, h->n * sizeof(*c->oct));
	c->n = c->cap = h->n;
	return c;
}

enum qbpf_hist_kind hist__kind(const struct hist *h)
{
	return h->kind;
}

/* The first octave whose ord is not below `ord`. */
static unsigned int octave_lower_bound(const struct hist *h, int32_t ord)
{
	unsigned int lo = 0, hi = h->n;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (h->oct[mid].ord < ord)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct octave *octave_find(const struct hist *h, int32_t ord)
{
	unsigned int i = octave_lower_bound(h, ord);

	return i < h->n && h->oct[i].ord == ord ? &h->oct[i] : NULL;
}

/* The octave of this ord, made empty (min > max) when it is new. NULL: no memory. */
static struct octave *octave_get(struct hist *h, int32_t ord)
{
	struct octave *o;
	unsigned int i;

	if (h->last < h->n && h->oct[h->last].ord == ord)
		return &h->oct[h->last];
	i = octave_lower_bound(h, ord);
	h->last = i;
	if (i < h->n && h->oct[i].ord == ord)
		return &h->oct[i];
	if (h->n == h->cap) {
		unsigned int cap = h->cap ? h->cap + h->cap / 2 + 1 : 2;

		o = realloc(h->oct, cap * sizeof(*o));
		if (!o)
			return NULL;
		h->oct = o;
		h->cap = cap;
	}
	o = &h->oct[i];
	memmove(o + 1, o, (h->n - i) * sizeof(*o));
	memset(o, 0, sizeof(*o));
	o->ord = ord;
	o->c.min = UINT64_MAX;
	h->n++;
	return o;
}

void hist__bucket_range(enum qbpf_hist_kind kind, unsigned int octave, unsigned int b,
			uint64_t *first, uint64_t *last)
{
	unsigned int shift;

	if (kind == QBPF_HIST_F64) {
		shift = F64_MANT_BITS - QBPF_HIST_SUB_BITS;
		*first = (uint64_t)octave << F64_MANT_BITS | (uint64_t)b << shift;
	} else if (octave == 0) {
		shift = 0;
		*first = b;
	} else {
		shift = octave - 1;
		*first = (uint64_t)(QBPF_HIST_SUB + b) << shift;
	}
	*last = *first + ((1ull << shift) - 1);
}

/* min and max into the first and last non-empty bucket; false when there is none. */
static bool cell_settle(enum qbpf_hist_kind kind, unsigned int octave, struct qbpf_hist_cell *c)
{
	uint64_t first, last;
	int lo = 0, hi = QBPF_HIST_SUB - 1;

	while (lo < QBPF_HIST_SUB && !c->n[lo])
		lo++;
	if (lo == QBPF_HIST_SUB)
		return false;
	while (!c->n[hi])
		hi--;
	hist__bucket_range(kind, octave, lo, &first, &last);
	c->min = clamp_u64(c->min, first, last);
	hist__bucket_range(kind, octave, hi, &first, &last);
	c->max = clamp_u64(c->max, first, last);
	return true;
}

static int octave_ord(enum qbpf_hist_kind kind, uint16_t octave, int32_t *ord)
{
	unsigned int k = octave & ~QBPF_HIST_NEGATIVE;
	bool negative = octave & QBPF_HIST_NEGATIVE;

	if (k >= (kind == QBPF_HIST_F64 ? F64_EXP_MAX + 1 : INT_OCTAVES))
		return -EINVAL;
	if (negative && kind == QBPF_HIST_NS)
		return -EINVAL;
	*ord = negative ? -1 - (int32_t)k : (int32_t)k;
	return 0;
}

static void cell_add(enum qbpf_hist_kind kind, struct qbpf_hist_cell *into,
		     const struct qbpf_hist_cell *c)
{
	into->sum_hi += c->sum_hi;
	/* Integers: sum_hi counts the carries of sum_lo. Doubles: both are plain sums. */
	if (__builtin_add_overflow(into->sum_lo, c->sum_lo, &into->sum_lo) && kind != QBPF_HIST_F64)
		into->sum_hi++;
	if (c->min < into->min)
		into->min = c->min;
	if (c->max > into->max)
		into->max = c->max;
	for (int b = 0; b < QBPF_HIST_SUB; b++)
		into->n[b] += c->n[b];
}

int hist__add_cell(struct hist *h, uint16_t octave, const struct qbpf_hist_cell *cell)
{
	struct qbpf_hist_cell c = *cell;
	struct octave *o;
	int32_t ord;
	int err;

	err = octave_ord(h->kind, octave, &ord);
	if (err)
		return err;
	if (h->kind == QBPF_HIST_F64) {
		/* Raw bits: the octave has the sign already. An unset minimum is all ones. */
		if (c.min != UINT64_MAX)
			c.min &= F64_MAG_MASK;
		c.max &= F64_MAG_MASK;
	}
	if (!cell_settle(h->kind, ord_octave(ord), &c))
		return 0;
	o = octave_get(h, ord);
	if (!o)
		return -ENOMEM;
	cell_add(h->kind, &o->c, &c);
	return 0;
}

/* Octave and bucket of a magnitude, as the kernel computes them. */
static void magnitude_place(enum qbpf_hist_kind kind, uint64_t mag, unsigned int *octave,
			    unsigned int *bucket)
{
	if (kind == QBPF_HIST_F64) {
		*octave = mag >> F64_MANT_BITS;
		*bucket = mag >> (F64_MANT_BITS - QBPF_HIST_SUB_BITS) & (QBPF_HIST_SUB - 1);
	} else if (mag < QBPF_HIST_SUB) {
		*octave = 0;
		*bucket = mag;
	} else {
		unsigned int top = 63 - __builtin_clzll(mag);

		*octave = top - (QBPF_HIST_SUB_BITS - 1);
		*bucket = mag >> (top - QBPF_HIST_SUB_BITS) & (QBPF_HIST_SUB - 1);
	}
}

int hist__add_times(struct hist *h, uint64_t value, uint64_t times)
{
	unsigned int octave, bucket;
	bool negative = false;
	uint64_t mag = value;
	unsigned __int128 sum;
	struct octave *o;

	if (!times)
		return 0;
	if (h->kind == QBPF_HIST_INT && (int64_t)value < 0) {
		negative = true;
		mag = 0 - value;
	} else if (h->kind == QBPF_HIST_F64) {
		negative = value >> 63;
		mag = value & F64_MAG_MASK;
	}
	magnitude_place(h->kind, mag, &octave, &bucket);
	o = octave_get(h, negative ? -1 - (int32_t)octave : (int32_t)octave);
	if (!o)
		return -ENOMEM;
	o->c.n[bucket] += times;
	if (mag < o->c.min)
		o->c.min = mag;
	if (mag > o->c.max)
		o->c.max = mag;
	if (h->kind == QBPF_HIST_F64) {
		uint64_t m = mag & ((1ull << F64_MANT_BITS) - 1);

		if (octave)
			m |= 1ull << F64_MANT_BITS;
		o->c.sum_lo += (m & ((1u << 26) - 1)) * times;
		o->c.sum_hi += (m >> 26) * times;
		return 0;
	}
	sum = (unsigned __int128)o->c.sum_hi << 64 | o->c.sum_lo;
	sum += (unsigned __int128)mag * times;
	o->c.sum_lo = (uint64_t)sum;
	o->c.sum_hi = (uint64_t)(sum >> 64);
	return 0;
}

void hist__prefetch(const struct hist *h)
{
	const char *o = (const char *)&h->oct[h->last];

	for (size_t at = 0; h->n && at < sizeof(struct octave); at += 64)
		__builtin_prefetch(o + at, 1);
}

int hist__add(struct hist *h, uint64_t value)
{
	return hist__add_times(h, value, 1);
}

size_t hist__octaves(const struct hist *h)
{
	return h->n;
}

const struct qbpf_hist_cell *hist__octave(const struct hist *h, size_t i, uint16_t *octave)
{
	const struct octave *o = &h->oct[i];

	*octave = ord_octave(o->ord) | (o->ord < 0 ? QBPF_HIST_NEGATIVE : 0);
	return &o->c;
}

int hist__merge(struct hist *into, const struct hist *from)
{
	if (into->kind != from->kind)
		return -EINVAL;
	for (unsigned int i = 0; i < from->n; i++) {
		struct octave *o = octave_get(into, from->oct[i].ord);

		if (!o)
			return -ENOMEM;
		cell_add(into->kind, &o->c, &from->oct[i].c);
	}
	return 0;
}

static uint64_t sub_floor(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void cell_subtract(enum qbpf_hist_kind kind, unsigned int octave,
			  struct qbpf_hist_cell *into, const struct qbpf_hist_cell *c)
{
	uint64_t first, last;
	int lo = -1, hi = -1;

	for (int b = 0; b < QBPF_HIST_SUB; b++) {
		into->n[b] = sub_floor(into->n[b], c->n[b]);
		if (into->n[b]) {
			lo = lo < 0 ? b : lo;
			hi = b;
		}
	}
	if (kind == QBPF_HIST_F64) {
		into->sum_lo = sub_floor(into->sum_lo, c->sum_lo);
		into->sum_hi = sub_floor(into->sum_hi, c->sum_hi);
	} else {
		unsigned __int128 a = (unsigned __int128)into->sum_hi << 64 | into->sum_lo;
		unsigned __int128 b = (unsigned __int128)c->sum_hi << 64 | c->sum_lo;

		a = a > b ? a - b : 0;
		into->sum_lo = (uint64_t)a;
		into->sum_hi = (uint64_t)(a >> 64);
	}
	if (lo < 0)
		return;
	/* The interval's own minimum is known to be in this bucket, and not below the whole's. */
	hist__bucket_range(kind, octave, lo, &first, &last);
	if (into->min < first)
		into->min = first;
	hist__bucket_range(kind, octave, hi, &first, &last);
	if (into->max > last)
		into->max = last;
}

int hist__subtract(struct hist *into, const struct hist *from)
{
	unsigned int kept = 0;

	if (into->kind != from->kind)
		return -EINVAL;
	for (unsigned int i = 0; i < into->n; i++) {
		struct octave *o = &into->oct[i];
		const struct octave *f = octave_find(from, o->ord);
		bool any = false;

		if (f)
			cell_subtract(into->kind, ord_octave(o->ord), &o->c, &f->c);
		for (int b = 0; b < QBPF_HIST_SUB && !any; b++)
			any = o->c.n[b];
		if (any)
			into->oct[kept++] = *o;
	}
	into->n = kept;
	return 0;
}

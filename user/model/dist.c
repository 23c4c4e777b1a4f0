/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dist.c - exact distributions: how often each distinct value came.
 *
 * While values are added a distribution is a hash table, open addressing, 16 bytes a slot. The first
 * question turns it, in place, into an ascending array of values with cumulative counts, in which any
 * rank is found by bisection; the next value that is added turns it back.
 *
 * A pool counts the bytes of its tables. When the next one would exceed it, the greatest ones give up
 * low bits of their values, so that neighbours share a slot, until there is room or until those that
 * are left would not make any, at twelve significant bits or too small; then memory follows the
 * values that differ in those. Values that gave up bits are told as the midpoint of what they stand
 * for. Count, sum, minimum and maximum are kept beside the table and stay exact.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/dist.h"
#include "model/rank.h"

#define CACHE_LINE    64
#define DIST_BYTES    ((sizeof(struct dist) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE)
#define CAP_LEAST     8
#define BITS_ALL      64
#define BITS_FIRST    22 /* significant bits after the first loss; two fewer each time */
#define BITS_LEAST    12
#define SORT_FEW      16
#define F64_MANT_BITS 52
#define F64_INF_BITS  0x7ff0000000000000ull
#define F64_MAG_MASK  0x7fffffffffffffffull
#define SIGN_BIT      0x8000000000000000ull

struct slot {
	uint64_t key; /* the value as it is added; -0.0 as 0.0 */
	uint64_t n;   /* 0: free; in an ascending array: of all values up to this one */
};

struct dist_pool {
	size_t used, max;
	size_t hopeless; /* used when nothing more was to be had; 0: not yet */
	struct dist *first;
};

/* What adding touches stands together, in one line of the cache. */
struct dist {
	struct slot *slots;
	uint32_t cap;		   /* slots; of a hash table a power of two */
	uint32_t n;		   /* of them in use */
	uint8_t kind, bits, shift; /* shift: of the hash; 64 - log2(cap) */
	bool ascending;
	uint64_t count;
	uint64_t min, max; /* keys */
	__int128 sum;	   /* NS (unsigned), INT */
	uint64_t nan;
	long double fsum, flost;
	struct dist_pool *pool; /* NULL: no bound */
	struct dist *next, *prev;
};

struct dist_pool *dist_pool__new(size_t max_bytes)
{
	struct dist_pool *p = calloc(1, sizeof(*p));

	if (p)
		p->max = max_bytes;
	return p;
}

void dist_pool__free(struct dist_pool *p)
{
	free(p);
}

static void pool_charge(struct dist *d, size_t old_cap, size_t new_cap)
{
	if (d->pool)
		d->pool->used += new_cap * sizeof(struct slot) - old_cap * sizeof(struct slot);
}

struct dist *dist__new(struct dist_pool *p, enum qbpf_hist_kind kind)
{
	struct dist *d = aligned_alloc(CACHE_LINE, DIST_BYTES);

	if (!d)
		return NULL;
	memset(d, 0, sizeof(*d));
	d->kind = kind;
	d->bits = BITS_ALL;
	d->pool = p;
	if (p) {
		d->next = p->first;
		if (p->first)
			p->first->prev = d;
		p->first = d;
		p->used += DIST_BYTES;
	}
	return d;
}

void dist__free(struct dist *d)
{
	if (!d)
		return;
	if (d->pool) {
		d->pool->used -= DIST_BYTES + d->cap * sizeof(*d->slots);
		*(d->prev ? &d->prev->next : &d->pool->first) = d->next;
		if (d->next)
			d->next->prev = d->prev;
	}
	free(d->slots);
	free(d);
}

enum qbpf_hist_kind dist__kind(const struct dist *d)
{
	return d->kind;
}

/* Maps keys to integers that ascend with the value. */
static uint64_t key_order(const struct dist *d, uint64_t key)
{
	if (d->kind == QBPF_HIST_NS)
		return key;
	if (d->kind == QBPF_HIST_INT)
		return key ^ SIGN_BIT;
	return key & SIGN_BIT ? ~key : key | SIGN_BIT;
}

static long double key_value(const struct dist *d, uint64_t key)
{
	double v;

	if (d->kind == QBPF_HIST_NS)
		return key;
	if (d->kind == QBPF_HIST_INT)
		return (int64_t)key;
	memcpy(&v, &key, sizeof(v));
	return v;
}

/* Low bits that a magnitude gives up when `bits` significant ones stay. */
static unsigned int bits_lost(const struct dist *d, uint64_t mag, unsigned int bits)
{
	unsigned int length;

	/* The leading one is not stored but in subnormals, which are as integers. */
	if (d->kind == QBPF_HIST_F64 && mag >> F64_MANT_BITS)
		return mag >= F64_INF_BITS || bits > F64_MANT_BITS ? 0 : F64_MANT_BITS + 1 - bits;
	length = mag ? 64 - __builtin_clzll(mag) : 0;
	return length > bits ? length - bits : 0;
}

static uint64_t magnitude(const struct dist *d, uint64_t key, bool *negative)
{
	*negative = d->kind != QBPF_HIST_NS && key & SIGN_BIT;
	if (!*negative)
		return key;
	return d->kind == QBPF_HIST_INT ? 0 - key : key & F64_MAG_MASK;
}

static uint64_t from_magnitude(const struct dist *d, uint64_t mag, bool negative)
{
	if (!negative)
		return mag;
	return d->kind == QBPF_HIST_INT ? 0 - mag : mag | SIGN_BIT;
}

/* A key with d->bits significant bits, the others 0. */
static uint64_t coarse(const struct dist *d, uint64_t key)
{
	bool negative;
	uint64_t mag;
	unsigned int lost;

	if (d->bits == BITS_ALL)
		return key;
	mag = magnitude(d, key, &negative);
	lost = bits_lost(d, mag, d->bits);
	return lost ? from_magnitude(d, mag >> lost << lost, negative) : key;
}

/* The value that a key of the table stands for. */
static long double told(const struct dist *d, uint64_t key)
{
	bool negative;
	uint64_t mag, at;
	unsigned int lost;

	if (d->bits == BITS_ALL)
		return key_value(d, key);
	mag = magnitude(d, key, &negative);
	lost = bits_lost(d, mag, d->bits);
	if (lost)
		key = from_magnitude(d, mag + (1ull << (lost - 1)), negative);
	at = key_order(d, key);
	if (at < key_order(d, d->min))
		key = d->min;
	else if (at > key_order(d, d->max))
		key = d->max;
	return key_value(d, key);
}

static size_t place(const struct dist *d, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> d->shift;
}

/* The slot of a key in a hash table that has a free slot. */
static struct slot *probe(const struct dist *d, uint64_t key)
{
	size_t i = place(d, key);

	while (d->slots[i].n && d->slots[i].key != key)
		i = (i + 1) & (d->cap - 1);
	return &d->slots[i];
}

static uint64_t slot_count(const struct dist *d, size_t i)
{
	return d->ascending && i ? d->slots[i].n - d->slots[i - 1].n : d->slots[i].n;
}

/* The smallest table in which n values leave enough slots free. */
static size_t cap_for(size_t n)
{
	size_t cap = CAP_LEAST;

	while (cap - cap / 4 <= n)
		cap *= 2;
	return cap;
}

/* Puts what is there into a new hash table of `cap` slots. */
static int rehash(struct dist *d, size_t cap)
{
	struct dist old = *d;
	struct slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	d->slots = slots;
	d->cap = cap;
	d->shift = 64 - __builtin_ctzll(cap);
	d->ascending = false;
	d->n = 0;
	for (size_t i = 0; i < (old.ascending ? old.n : old.cap); i++) {
		uint64_t n = slot_count(&old, i);
		struct slot *s;

		if (!n)
			continue;
		s = probe(d, old.slots[i].key);
		d->n++;
		s->key = old.slots[i].key;
		s->n = n;
	}
	free(old.slots);
	pool_charge(d, old.cap, cap);
	return 0;
}

/*
 * In place, because these arrays are most of the memory there is: parts [0, n) by `bit` of the keys'
 * order, all higher bits being equal, then each part by the next one.
 */
static void sort(const struct dist *d, struct slot *s, size_t n, int bit)
{
	size_t lo = 0, hi = n;

	if (n <= SORT_FEW || bit < 0) {
		for (size_t i = 1; i < n; i++) {
			struct slot moved = s[i];
			uint64_t at = key_order(d, moved.key);
			size_t j = i;

			for (; j && key_order(d, s[j - 1].key) > at; j--)
				s[j] = s[j - 1];
			s[j] = moved;
		}
		return;
	}
	while (lo < hi) {
		if (key_order(d, s[lo].key) >> bit & 1) {
			struct slot moved = s[lo];

			s[lo] = s[--hi];
			s[hi] = moved;
		} else {
			lo++;
		}
	}
	sort(d, s, lo, bit - 1);
	sort(d, s + lo, n - lo, bit - 1);
}

/*
 * What there is becomes an ascending array with cumulative counts, in the same memory and no more of
 * it than that needs, keys with d->bits bits.
 */
static void ascend(struct dist *d)
{
	bool sorted = d->ascending;
	struct slot *fewer;
	size_t n = 0, kept = 0;

	for (size_t i = sorted ? d->n : 0; i-- > 1;)
		d->slots[i].n -= d->slots[i - 1].n;
	for (size_t i = 0; i < (sorted ? d->n : d->cap); i++)
		if (d->slots[i].n)
			d->slots[n++] = (struct slot){coarse(d, d->slots[i].key), d->slots[i].n};
	if (!sorted)
		sort(d, d->slots, n, 63);
	for (size_t i = 0; i < n; i++) {
		if (kept && d->slots[kept - 1].key == d->slots[i].key)
			d->slots[kept - 1].n += d->slots[i].n;
		else
			d->slots[kept++] = d->slots[i];
	}
	for (size_t i = 1; i < kept; i++)
		d->slots[i].n += d->slots[i - 1].n;
	d->ascending = true;
	d->n = kept;
	fewer = kept ? realloc(d->slots, kept * sizeof(*fewer)) : NULL;
	if (fewer) {
		pool_charge(d, d->cap, kept);
		d->slots = fewer;
		d->cap = kept;
	}
}

/* The greatest that can give up bits, in slots; *together: all of those. */
static size_t greatest(const struct dist_pool *p, size_t *together)
{
	size_t most = 0;

	*together = 0;
	for (const struct dist *d = p->first; d; d = d->next) {
		if (d->bits <= BITS_LEAST)
			continue;
		*together += d->cap;
		most = d->cap > most ? d->cap : most;
	}
	return most;
}

/* Makes room for `bytes` more, as far as that can be, and some to spare. */
static void pool_make_room(struct dist_pool *p, size_t bytes)
{
	size_t goal = p->max - p->max / 8, together;

	/* Not again before it has grown by another eighth: each look goes over all of them. */
	if (p->used + bytes <= p->max || (p->hopeless && p->used < p->hopeless + p->max / 8))
		return;
	while (p->used + bytes > goal) {
		size_t most = greatest(p, &together);

		if (together * sizeof(struct slot) < p->max / 16) {
			p->hopeless = p->used;
			return;
		}
		for (struct dist *d = p->first; d; d = d->next)
			if (d->bits > BITS_LEAST && d->cap > most / 2) {
				d->bits = d->bits == BITS_ALL ? BITS_FIRST : d->bits - 2;
				ascend(d);
			}
	}
}

static bool full(const struct dist *d)
{
	return d->ascending || d->n >= d->cap - d->cap / 4;
}

/* A hash table with room for one more value. */
static int make_room(struct dist *d)
{
	/* The old one stays until the new one is filled. */
	if (d->pool)
		pool_make_room(d->pool, cap_for(d->n) * sizeof(struct slot));
	/* This one may have been the greatest. */
	return full(d) ? rehash(d, cap_for(d->n)) : 0;
}

static int put(struct dist *d, uint64_t key, uint64_t times)
{
	struct slot *s;
	if (full(d)) {
		int err = make_room(d);

		if (err)
			return err;
	}
	key = coarse(d, key);
	s = probe(d, key);
	d->n += !s->n;
	s->key = key;
	s->n += times;
	return 0;
}

/* Neumaier: what the addition rounds away is kept aside. */
static void add_float(struct dist *d, long double v)
{
	long double t = d->fsum + v;

	if (isfinite(t))
		d->flost += fabsl(d->fsum) >= fabsl(v) ? (d->fsum - t) + v : (v - t) + d->fsum;
	d->fsum = t;
}

int dist__add(struct dist *d, uint64_t value, uint64_t times)
{
	int err;

	if (!times)
		return 0;
	if (d->kind == QBPF_HIST_F64) {
		if ((value & F64_MAG_MASK) > F64_INF_BITS) {
			d->nan += times;
			return 0;
		}
		if (value == SIGN_BIT)
			value = 0;
	}
	err = put(d, value, times);
	if (err)
		return err;
	if (d->kind == QBPF_HIST_NS) {
		d->sum += (unsigned __int128)value * times;
		if (!d->count || value < d->min)
			d->min = value;
		if (!d->count || value > d->max)
			d->max = value;
	} else {
		if (d->kind == QBPF_HIST_INT)
			d->sum += (__int128)(int64_t)value * (__int128)times;
		else
			add_float(d, key_value(d, value) * times);
		if (!d->count || key_order(d, value) < key_order(d, d->min))
			d->min = value;
		if (!d->count || key_order(d, value) > key_order(d, d->max))
			d->max = value;
	}
	d->count += times;
	return 0;
}

void dist__prefetch_early(const struct dist *d)
{
	__builtin_prefetch(d, 1);
}

void dist__prefetch(const struct dist *d, uint64_t value)
{
	if (!d->ascending && d->cap)
		__builtin_prefetch(&d->slots[place(d, coarse(d, value))], 1);
}

int dist__merge(struct dist *into, const struct dist *from)
{
	int err = 0;

	if (into->kind != from->kind)
		return -EINVAL;
	if (from->bits < into->bits) {
		into->bits = from->bits;
		ascend(into);
	}
	for (size_t i = 0; !err && i < (from->ascending ? from->n : from->cap); i++) {
		uint64_t n = slot_count(from, i);

		if (n)
			err = put(into, from->slots[i].key, n);
	}
	if (err)
		return err;
	into->nan += from->nan;
	if (!from->count)
		return 0;
	into->sum += from->sum;
	add_float(into, from->fsum);
	add_float(into, from->flost);
	if (!into->count || key_order(into, from->min) < key_order(into, into->min))
		into->min = from->min;
	if (!into->count || key_order(into, from->max) > key_order(into, into->max))
		into->max = from->max;
	into->count += from->count;
	return 0;
}

uint64_t dist__count(const struct dist *d)
{
	return d->count + d->nan;
}

uint64_t dist__nan(const struct dist *d)
{
	return d->nan;
}

long double dist__sum(const struct dist *d)
{
	if (d->kind == QBPF_HIST_F64)
		return isfinite(d->fsum) ? d->fsum + d->flost : d->fsum;
	return d->kind == QBPF_HIST_NS ? (long double)(unsigned __int128)d->sum
				       : (long double)d->sum;
}

long double dist__min(const struct dist *d)
{
	return d->count ? key_value(d, d->min) : 0;
}

long double dist__max(const struct dist *d)
{
	return d->count ? key_value(d, d->max) : 0;
}

long double dist__mean(const struct dist *d)
{
	return d->count ? dist__sum(d) / d->count : 0;
}

bool dist__exact(const struct dist *d)
{
	return d->bits == BITS_ALL;
}

/* What is asked of a distribution does not change it, hence the const. */
static void settle(const struct dist *d)
{
	if (!d->ascending && d->n)
		ascend((struct dist *)d);
}

long double dist__rank(const struct dist *d, uint64_t k)
{
	size_t lo = 0, hi = d->n;

	if (!k || k > d->count)
		return 0;
	if (k == 1)
		return dist__min(d);
	if (k == d->count)
		return dist__max(d);
	settle(d);
	while (lo < hi) { /* the first value up to which there are k */
		size_t mid = lo + (hi - lo) / 2;

		if (d->slots[mid].n < k)
			lo = mid + 1;
		else
			hi = mid;
	}
	return told(d, d->slots[lo].key);
}

bool dist__quantile(const struct dist *d, double q, long double *out)
{
	uint64_t rank;

	if (!d->count || !(q >= 0 && q <= 1))
		return false;
	rank = q == 0 ? 1 : q == 1 ? d->count : rank_of_quantile(d->count, q);
	if (!rank)
		return false;
	*out = dist__rank(d, rank);
	return true;
}

size_t dist__values(const struct dist *d, struct dist_value **out)
{
	struct dist_value *v = malloc((d->n + 1) * sizeof(*v));

	*out = v;
	if (!v)
		return 0;
	settle(d);
	for (size_t i = 0; i < d->n; i++)
		v[i] = (struct dist_value){told(d, d->slots[i].key), slot_count(d, i)};
	return d->n;
}

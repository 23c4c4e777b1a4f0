// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * export_levels.c - numbers over time: how many activities wait in a stream, how busy a device is.
 *
 * What ends is known when it has ended, so changes come out of order. Those before the time up to
 * which all is known are told, the others wait. What comes too late counts from there on.
 */
#include <errno.h>
#include <stdlib.h>

#include "out/export_gpu.h"

int level__add(struct level *l, uint64_t from_ns, uint64_t to_ns)
{
	if (l->n + 2 > l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct level_change *p = reallocarray(l->changes, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		l->changes = p;
		l->cap = cap;
	}
	from_ns = from_ns > l->at_ns ? from_ns : l->at_ns;
	to_ns = to_ns > from_ns ? to_ns : from_ns;
	l->changes[l->n++] = (struct level_change){from_ns, 1};
	l->changes[l->n++] = (struct level_change){to_ns, -1};
	return 0;
}

void level__free(struct level *l)
{
	free(l->changes);
}

static int by_time(const void *pa, const void *pb)
{
	const struct level_change *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->by < b->by ? 1 : a->by > b->by ? -1 : 0; /* what begins before what ends */
}

/* The first `*n` changes are before to_ns, in order. */
static void sort(struct level *l, uint64_t to_ns, size_t *n)
{
	if (l->n)
		qsort(l->changes, l->n, sizeof(*l->changes), by_time);
	for (*n = 0; *n < l->n && l->changes[*n].ns < to_ns;)
		(*n)++;
}

static void take(struct level *l, size_t n)
{
	for (size_t i = n; i < l->n; i++)
		l->changes[i - n] = l->changes[i];
	l->n -= n;
}

int level__tell(struct level *l, uint64_t to_ns, level_tell tell, void *ctx)
{
	size_t n;
	int err = 0;

	sort(l, to_ns, &n);
	for (size_t i = 0; i < n && !err;) {
		uint64_t before = l->now;

		l->at_ns = l->changes[i].ns;
		for (; i < n && l->changes[i].ns == l->at_ns; i++)
			l->now += (uint64_t)l->changes[i].by;
		if (l->now != before)
			err = tell(ctx, l->at_ns, l->now);
	}
	take(l, n);
	return err;
}

/* --- shares -------------------------------------------------------------------------------------- */

struct shares {
	struct level *l;
	uint64_t zero_ns, window_ns;
	level_tell_share tell;
	void *ctx;
};

static int tell_share(const struct shares *s, uint64_t window, double share)
{
	if (share == s->l->told || (s->l->told < 0 && share == 0))
		return 0;
	s->l->told = share;
	return s->tell(s->ctx, s->zero_ns + window * s->window_ns, share);
}

/* On to another window: the one at hand is complete, those between are all alike. */
static int go_to(const struct shares *s, uint64_t window, double between)
{
	struct level *l = s->l;
	int err;

	if (window == l->window)
		return 0;
	err = tell_share(s, l->window, (double)l->busy_ns / (double)s->window_ns);
	if (!err && window > l->window + 1)
		err = tell_share(s, l->window + 1, between);
	l->window = window;
	l->busy_ns = 0;
	return err;
}

/* From at_ns to ns it was as it is now. */
static int pass(const struct shares *s, uint64_t ns)
{
	struct level *l = s->l;
	uint64_t window = (ns - s->zero_ns) / s->window_ns, end_ns, from_ns = l->at_ns;
	int err = 0;

	l->at_ns = ns;
	if (window == l->window) {
		l->busy_ns += l->now ? ns - from_ns : 0;
		return 0;
	}
	end_ns = s->zero_ns + (l->window + 1) * s->window_ns;
	if (l->now)
		l->busy_ns += end_ns - from_ns;
	err = go_to(s, window, l->now ? 1 : 0);
	if (!err && l->now)
		l->busy_ns = ns - (s->zero_ns + window * s->window_ns);
	return err;
}

int level__tell_share(struct level *l, uint64_t to_ns, uint64_t zero_ns, uint64_t window_ns,
		      level_tell_share tell, void *ctx)
{
	struct shares s = {l, zero_ns, window_ns, tell, ctx};
	size_t n;
	int err = 0;

	sort(l, to_ns, &n);
	for (size_t i = 0; i < n && !err; i++) {
		uint64_t ns = l->changes[i].ns > zero_ns ? l->changes[i].ns : zero_ns;

		if (!l->at_ns) {
			l->at_ns = ns;
			l->window = (ns - zero_ns) / window_ns;
			l->told = -1;
		}
		err = pass(&s, ns);
		l->now += (uint64_t)l->changes[i].by;
	}
	take(l, n);
	if (err || to_ns != UINT64_MAX || !l->at_ns)
		return err;
	/* The end: behind the last window nothing runs. */
	return go_to(&s, l->window + 2, 0);
}

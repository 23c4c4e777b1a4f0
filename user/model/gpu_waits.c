// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_waits.c - what launches and waits tell about the clock of a device: nothing begins before it was
 * asked for, and what a wait on the host waits for has ended when it returns.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/gpu_impl.h"

#define WAIT_STREAM  3 /* CUpti_ActivitySynchronizationType */
#define WAIT_CONTEXT 4
#define ALL_STREAMS  UINT32_MAX

struct ret {
	uint32_t ring, context, stream;
	uint64_t begin_ns;  /* of the wait: it is for all that was asked for before */
	uint64_t return_ns; /* the earliest of this one and the later ones */
};

static int compare(const void *pa, const void *pb)
{
	const struct ret *a = pa, *b = pb;

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return 0;
}

static struct ret *collect(const struct gpu *g, size_t *n)
{
	struct ret *r = malloc((g->nwaits + 1) * sizeof(*r));

	*n = 0;
	for (size_t i = 0; r && i < g->nwaits; i++) {
		const struct gpu_wait *w = &g->waits[i];
		const struct gpu_api *c = w->call == GPU_NONE ? NULL : &g->calls[w->call];

		if ((w->kind != WAIT_STREAM && w->kind != WAIT_CONTEXT) || !c || c->error ||
		    c->end_ns < c->start_ns)
			continue;
		r[(*n)++] = (struct ret){w->ring, w->context,
					 w->kind == WAIT_STREAM ? w->stream : ALL_STREAMS,
					 c->start_ns, c->end_ns};
	}
	if (r)
		qsort(r, *n, sizeof(*r), compare);
	for (size_t i = *n; i-- > 1;) {
		struct ret *a = &r[i - 1], *b = &r[i];

		if (a->ring == b->ring && a->context == b->context && a->stream == b->stream &&
		    b->return_ns < a->return_ns)
			a->return_ns = b->return_ns;
	}
	return r;
}

/* When the first wait for it returned; UINT64_MAX: none was seen. */
static uint64_t limit_of(const struct ret *r, size_t n, const struct gpu_act *a, uint32_t stream,
			 uint64_t asked_ns)
{
	struct ret key = {a->ring, a->context, stream, asked_ns, 0};
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare(&r[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == n || r[lo].ring != a->ring || r[lo].context != a->context ||
	    r[lo].stream != stream)
		return UINT64_MAX;
	return r[lo].return_ns;
}

int gpu_waits__check(struct gpu_join *j)
{
	struct gpu *g = j->g;
	size_t n;
	struct ret *r = collect(g, &n);

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < g->nacts; i++) {
		struct gpu_act *a = &g->acts[i];
		struct gpu_device_row *d;
		const struct gpu_api *c;
		uint64_t limit, other;
		int64_t high, low;

		if (a->untimed || a->call == GPU_NONE || a->device_row == UINT16_MAX)
			continue;
		c = &g->calls[a->call];
		d = &g->devices[a->device_row];
		limit = limit_of(r, n, a, a->stream, c->start_ns);
		other = limit_of(r, n, a, ALL_STREAMS, c->start_ns);
		if (other < limit)
			limit = other;
		if (a->synchronous && c->waits && !c->error && c->end_ns < limit)
			limit = c->end_ns;
		if (limit < UINT64_MAX - GPU_SKEW_NS && a->end_ns > limit + GPU_SKEW_NS) {
			a->untimed = true;
			continue;
		}
		high = (int64_t)(a->start_ns - c->start_ns);
		if (high < d->error_high_ns)
			d->error_high_ns = high;
		low = (int64_t)(a->end_ns - limit);
		if (limit != UINT64_MAX && low > d->error_low_ns)
			d->error_low_ns = low;
	}
	free(r);
	return 0;
}

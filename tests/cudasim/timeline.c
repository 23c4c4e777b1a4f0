/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * timeline.c - contexts, streams, engines, and when an operation starts and ends
 *
 * An operation is ready when what came before it on its stream has ended, at the earliest
 * latency_ns after it was submitted. The legacy stream waits for all blocking streams of its
 * context, and they wait for it. Then it takes its engine in the first gap that is long enough:
 * one copy engine for each direction, `slots` for kernels and memsets. All of it is known at
 * submission, so nothing runs in the background.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define LEGACY_ID	7
#define FIRST_STREAM_ID 13
#define PRUNE		256

struct interval {
	uint64_t start, end;
};

struct engine {
	struct interval *busy; /* sorted, apart */
	size_t n, cap;
};

struct device {
	struct engine h2d, d2h, d2d, p2p, slots[SIM_SLOTS];
	struct CUctx_st *primary;
};

static struct device devices[SIM_DEVICES];
static uint32_t next_context = 1, next_stream = FIRST_STREAM_ID;
static uint64_t n_ops;

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? SIM_NEVER : a + b;
}

/* --- engines ---------------------------------------------------------------------------------- */

/* Where `length` fits at the earliest; *at: the index of the interval that will follow. */
static uint64_t engine_gap(const struct engine *e, uint64_t ready, uint64_t length, size_t *at)
{
	uint64_t start = ready;
	size_t i;

	for (i = 0; i < e->n; i++) {
		if (plus(start, length) <= e->busy[i].start)
			break;
		start = later(start, e->busy[i].end);
	}
	*at = i;
	return start;
}

static void engine_take(struct engine *e, size_t at, uint64_t start, uint64_t end)
{
	if (e->n >= PRUNE) {
		uint64_t now = sim_now();
		size_t old = 0;

		while (old < e->n && e->busy[old].end <= now)
			old++;
		if (old > at)
			old = at;
		memmove(e->busy, e->busy + old, (e->n - old) * sizeof(*e->busy));
		e->n -= old;
		at -= old;
	}
	if (e->n == e->cap) {
		size_t cap = e->cap ? 2 * e->cap : 64;
		struct interval *more = realloc(e->busy, cap * sizeof(*more));

		if (!more)
			abort();
		e->busy = more;
		e->cap = cap;
	}
	memmove(&e->busy[at + 1], &e->busy[at], (e->n - at) * sizeof(*e->busy));
	e->busy[at] = (struct interval){start, end};
	e->n++;
}

static void kernels_place(struct device *d, struct sim_activity *a, uint64_t ready, uint64_t length)
{
	struct engine *best = NULL;
	size_t best_at = 0;

	for (int i = 0; i < sim_config()->slots; i++) {
		size_t at;
		uint64_t start = engine_gap(&d->slots[i], ready, length, &at);

		if (best && start >= a->start)
			continue;
		best = &d->slots[i];
		best_at = at;
		a->start = start;
		if (start == ready)
			break;
	}
	a->end = plus(a->start, length);
	if (a->start != SIM_NEVER)
		engine_take(best, best_at, a->start, a->end);
}

static struct engine *copy_engine(struct device *d, const struct sim_activity *a)
{
	switch (a->copy_kind) {
	case 1:
		return &d->h2d;
	case 2:
		return &d->d2h;
	case 10:
		return &d->p2p;
	default:
		return &d->d2d;
	}
}

uint64_t copy_length(const struct sim_activity *a)
{
	const struct sim_config *c = sim_config();
	int64_t mbs = c->d2d_mbs;

	if (a->kind == SIM_MEMSET)
		mbs = c->memset_mbs;
	else if (a->copy_kind == 1)
		mbs = a->src_kind == MEM_PAGEABLE ? c->pageable_mbs : c->h2d_mbs;
	else if (a->copy_kind == 2)
		mbs = a->dst_kind == MEM_PAGEABLE ? c->pageable_mbs : c->d2h_mbs;
	else if (a->copy_kind == 10)
		mbs = c->p2p_mbs;
	return (uint64_t)c->copy_ns + a->bytes * 1000 / (uint64_t)mbs;
}

static uint64_t with_jitter(uint64_t length)
{
	uint64_t span = length / 100 * (uint64_t)sim_config()->jitter;

	n_ops++;
	if (!span || length == SIM_NEVER)
		return length;
	return length + sim_random(n_ops) % span;
}

void timeline_place(const struct CUctx_st *ctx, struct sim_activity *a, uint64_t ready,
		    uint64_t length)
{
	struct device *d = &devices[ctx->device];
	struct engine *e;
	size_t at;

	length = with_jitter(length);
	if (a->kind == SIM_KERNEL || a->kind == SIM_MEMSET) {
		kernels_place(d, a, ready, length);
	} else if (a->kind == SIM_MEMCPY) {
		e = copy_engine(d, a);
		a->start = engine_gap(e, ready, length, &at);
		a->end = plus(a->start, length);
		if (a->start != SIM_NEVER)
			engine_take(e, at, a->start, a->end);
	} else {
		a->start = ready;
		a->end = plus(ready, length);
	}
}

/* --- streams ---------------------------------------------------------------------------------- */

uint64_t timeline_ready(const struct CUstream_st *s, uint64_t now)
{
	uint64_t ready = later(s->end, plus(now, (uint64_t)sim_config()->latency_ns));

	if (s == s->ctx->legacy)
		return later(ready, s->ctx->blocking_end);
	return s->blocking ? later(ready, s->ctx->legacy->end) : ready;
}

void timeline_advance(struct CUstream_st *s, uint64_t end)
{
	s->end = end;
	s->ends[s->n_ends++ % (unsigned int)sim_config()->queue] = end;
	if (s->blocking && s != s->ctx->legacy)
		s->ctx->blocking_end = later(s->ctx->blocking_end, end);
}

uint64_t timeline_held(const struct CUstream_st *s)
{
	return s->ends[s->n_ends % (unsigned int)sim_config()->queue];
}

void timeline_name(const struct CUstream_st *s, struct sim_activity *a)
{
	const struct sim_thread *t = sim_self();

	a->correlation = t->call ? t->call->correlation : 0;
	a->tid = t->tid;
	a->device = (uint32_t)s->ctx->device;
	a->context = s->ctx->id;
	a->stream = s->id;
	a->submit = sim_now();
}

void timeline_submit(struct CUstream_st *s, struct sim_activity *a, uint64_t length, uint64_t *held)
{
	timeline_name(s, a);
	*held = timeline_held(s);
	/* A full queue is left when its oldest entry ends. */
	if (*held != SIM_NEVER)
		a->submit = later(a->submit, *held);
	timeline_place(s->ctx, a, timeline_ready(s, a->submit), length);
	timeline_advance(s, a->end);
	sim_activity_done(a);
}

struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags, int priority)
{
	struct CUstream_st *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ctx = ctx;
	s->id = next_stream++;
	s->flags = flags;
	s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
	s->priority = priority;
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

void stream_free(struct CUstream_st *s)
{
	struct CUstream_st **p = &s->ctx->streams;

	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	free(s);
}

static struct CUstream_st *stream_of_thread(struct CUctx_st *ctx)
{
	uint32_t tid = sim_self()->tid;
	struct CUstream_st *s;

	for (s = ctx->streams; s; s = s->next) {
		if (s->tid == tid)
			return s;
	}
	s = stream_new(ctx, 0, 0);
	if (s)
		s->tid = tid;
	return s;
}

struct CUstream_st *stream_of(CUstream handle)
{
	struct sim_thread *t = sim_self();

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
		return handle;
	if (!t->ctx)
		return NULL;
	if (handle == CU_STREAM_PER_THREAD || (!handle && t->call && t->call->per_thread))
		return stream_of_thread(t->ctx);
	return t->ctx->legacy;
}

/* --- contexts --------------------------------------------------------------------------------- */

struct CUctx_st *context_new(int device)
{
	struct CUctx_st *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->id = next_context++;
	ctx->device = device;
	ctx->legacy = stream_new(ctx, 0, 0);
	if (!ctx->legacy) {
		free(ctx);
		return NULL;
	}
	next_stream--;
	ctx->legacy->id = LEGACY_ID;
	return ctx;
}

struct CUctx_st *context_primary(int device)
{
	if (!devices[device].primary)
		devices[device].primary = context_new(device);
	return devices[device].primary;
}

uint64_t context_end(const struct CUctx_st *ctx)
{
	uint64_t end = 0;

	for (const struct CUstream_st *s = ctx->streams; s; s = s->next)
		end = later(end, s->end);
	return end;
}

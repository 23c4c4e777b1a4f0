// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_join.c - one settling: calls and activities find each other, and what is summed up goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

#define KEEP_NS	     10000000000ull /* a launch waits so long for what it launched */
#define NESTED_MAX   16
#define QUIET_ROUNDS 16 /* as many threads may have spans across a moment, or so */
#define COMPARE(x, y)                                                                              \
	do {                                                                                       \
		if ((x) != (y))                                                                    \
			return (x) < (y) ? -1 : 1;                                                 \
	} while (0)

/* --- orders ------------------------------------------------------------------------------------- */

/* A thread's calls, the outer one first. */
static int compare_calls(const void *pa, const void *pb)
{
	const struct gpu_api *a = pa, *b = pb;

	COMPARE(gpu_thread_key(a->tgid, a->tid), gpu_thread_key(b->tgid, b->tid));
	COMPARE(a->start_ns, b->start_ns);
	COMPARE(b->end_ns, a->end_ns);
	COMPARE(b->domain, a->domain);
	COMPARE(a->ring, b->ring);
	COMPARE(a->correlation, b->correlation);
	COMPARE(a->name, b->name);
	return 0;
}

static int compare_acts(const void *pa, const void *pb)
{
	const struct gpu_act *a = pa, *b = pb;

	COMPARE(a->ring, b->ring);
	COMPARE(a->device, b->device);
	COMPARE(a->start_ns, b->start_ns);
	COMPARE(a->end_ns, b->end_ns);
	COMPARE(a->correlation, b->correlation);
	COMPARE(a->context, b->context);
	COMPARE(a->stream, b->stream);
	COMPARE(a->type, b->type);
	COMPARE(a->bytes, b->bytes);
	return 0;
}

static int compare_ids(const void *pa, const void *pb, void *ctx)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct gpu_api *a = (struct gpu_api *)ctx + ia, *b = (struct gpu_api *)ctx + ib;

	COMPARE(a->ring, b->ring);
	COMPARE(a->correlation, b->correlation);
	COMPARE(a->start_ns, b->start_ns);
	COMPARE(ia, ib);
	return 0;
}

static int compare_by_call(const void *pa, const void *pb, void *ctx)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct gpu_act *a = (struct gpu_act *)ctx + ia, *b = (struct gpu_act *)ctx + ib;

	COMPARE(a->call, b->call);
	COMPARE(a->start_ns, b->start_ns);
	COMPARE(ia, ib);
	return 0;
}

static int compare_by_stream(const void *pa, const void *pb, void *ctx)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct gpu *g = ctx;
	const struct gpu_act *a = &g->acts[ia], *b = &g->acts[ib];

	COMPARE(a->stream_row, b->stream_row);
	COMPARE(gpu_asked_ns(g, a), gpu_asked_ns(g, b));
	COMPARE(a->call, b->call);
	COMPARE(a->start_ns, b->start_ns);
	COMPARE(ia, ib);
	return 0;
}

size_t gpu_join__call_at(const struct gpu *g, uint64_t key, uint64_t ns)
{
	size_t lo = 0, hi = g->ncalls;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct gpu_api *c = &g->calls[mid];
		uint64_t at = gpu_thread_key(c->tgid, c->tid);

		if (at < key || (at == key && c->start_ns < ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* --- calls -------------------------------------------------------------------------------------- */

/* A driver call within a runtime call is a part of it. */
static void nest_calls(struct gpu *g)
{
	uint32_t open[NESTED_MAX], n = 0;

	for (uint32_t i = 0; i < g->ncalls; i++) {
		struct gpu_api *c = &g->calls[i];

		while (n) {
			const struct gpu_api *o = &g->calls[open[n - 1]];

			if (o->tgid == c->tgid && o->tid == c->tid && o->end_ns >= c->end_ns)
				break;
			n--;
		}
		c->outer = i;
		if (n && c->domain == QBPF_RING_DRIVER)
			c->outer = open[n - 1];
		if (c->domain == QBPF_RING_RUNTIME && n < NESTED_MAX)
			open[n++] = i;
	}
}

/* Of the calls with that id, the first in by_id that begins after ns. */
static size_t id_after(const struct gpu_join *j, uint32_t ring, uint32_t id, uint64_t ns)
{
	const struct gpu *g = j->g;
	size_t lo = 0, hi = g->ncalls;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct gpu_api *c = &g->calls[j->by_id[mid]];
		bool after = c->ring != ring	    ? c->ring > ring
			     : c->correlation != id ? c->correlation > id
						    : c->start_ns > ns;

		if (after)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool is_call(const struct gpu_join *j, size_t at, uint32_t ring, uint32_t id,
		    uint32_t generation)
{
	const struct gpu_api *c;

	if (at >= j->g->ncalls)
		return false;
	c = &j->g->calls[j->by_id[at]];
	return c->ring == ring && c->correlation == id &&
	       gpu_clock__generation(j->g, ring, c->start_ns) == generation;
}

/* The call with that id that was the last to begin by ns, or hardly later. *beyond: there is but one
 * that begins later than that. */
static uint32_t call_of(const struct gpu_join *j, uint32_t ring, uint32_t id, uint64_t ns,
			bool *beyond)
{
	uint32_t generation = gpu_clock__generation(j->g, ring, ns);
	size_t at = id_after(j, ring, id, ns);

	*beyond = false;
	if (at && is_call(j, at - 1, ring, id, generation))
		return j->g->calls[j->by_id[at - 1]].outer;
	if (!is_call(j, at, ring, id, generation))
		return GPU_NONE;
	if (j->g->calls[j->by_id[at]].start_ns - ns <= GPU_SKEW_NS)
		return j->g->calls[j->by_id[at]].outer;
	*beyond = true;
	return GPU_NONE;
}

/* Of several calls with its id the last. */
uint32_t gpu_join__call_of_untimed(const struct gpu_join *j, const struct gpu_act *a)
{
	size_t at = id_after(j, a->ring, a->correlation, UINT64_MAX);
	const struct gpu_api *c = at ? &j->g->calls[j->by_id[at - 1]] : NULL;

	return c && c->ring == a->ring && c->correlation == a->correlation ? c->outer : GPU_NONE;
}

/* What it caused is there, though its times cannot be: the call is not one without. */
static void excuse_call(const struct gpu_join *j, const struct gpu_act *a)
{
	uint32_t call = gpu_join__call_of_untimed(j, a);

	if (call != GPU_NONE)
		j->g->calls[call].has_act = true;
}

static void join_calls(struct gpu_join *j)
{
	struct gpu *g = j->g;
	bool beyond = false;

	for (size_t i = 0; i < g->nacts; i++) {
		struct gpu_act *a = &g->acts[i];

		a->call = GPU_NONE;
		if (!a->untimed) {
			a->call = call_of(j, a->ring, a->correlation, a->start_ns, &beyond);
			a->untimed = beyond;
		}
		if (a->untimed)
			excuse_call(j, a);
		else if (a->call != GPU_NONE)
			g->calls[a->call].has_act = true;
	}
	for (size_t i = 0; i < g->nwaits; i++) {
		struct gpu_wait *w = &g->waits[i];

		w->call = call_of(j, w->ring, w->correlation, w->start_ns, &beyond);
	}
}

/* --- activities --------------------------------------------------------------------------------- */

/* Times that cannot be, and those that came too late, which leave at once. */
static int check_times(struct gpu_join *j)
{
	struct gpu *g = j->g;
	uint64_t limit = g->host_ns && g->host_ns < UINT64_MAX - GPU_FUTURE_NS
			     ? g->host_ns + GPU_FUTURE_NS
			     : UINT64_MAX;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < g->nacts; i++) {
		struct gpu_act *a = &g->acts[i];

		a->settled = a->first = false;
		/* The future may yet come. */
		a->untimed = !a->start_ns || !a->end_ns || a->end_ns < a->start_ns ||
			     (j->final && a->end_ns > limit);
		if (!a->untimed && g->settled_ns && a->end_ns <= g->settled_ns) {
			if (!err)
				err = gpu_visit__activity(j, a, true);
			if (!err)
				err = gpu_sums__late(g, a);
			free(a->rec);
			continue;
		}
		g->acts[n++] = *a;
	}
	g->nacts = n;
	return err;
}

static void find_rows(struct gpu_join *j)
{
	struct gpu *g = j->g;

	for (size_t i = 0; i < g->nacts; i++) {
		struct gpu_act *a = &g->acts[i];
		uint32_t device;

		if (a->untimed)
			continue;
		a->generation = gpu_clock__generation(g, a->ring, a->start_ns);
		device = gpu_row__device(g, a->ring, a->device);
		a->device_row = device == GPU_NONE ? UINT16_MAX : (uint16_t)device;
		a->stream_row = gpu_row__stream(g, a);
		a->settled = j->final || a->end_ns <= j->to_ns;
	}
}

static int make_orders(struct gpu_join *j)
{
	struct gpu *g = j->g;

	j->by_call = malloc((g->nacts + 1) * sizeof(*j->by_call));
	j->by_stream = malloc((g->nacts + 1) * sizeof(*j->by_stream));
	if (!j->by_call || !j->by_stream)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nacts; i++) {
		if (g->acts[i].untimed)
			continue;
		if (g->acts[i].call != GPU_NONE)
			j->by_call[j->nby_call++] = i;
		if (g->acts[i].stream_row != GPU_NONE)
			j->by_stream[j->nby_stream++] = i;
	}
	qsort_r(j->by_call, j->nby_call, sizeof(*j->by_call), compare_by_call, g->acts);
	qsort_r(j->by_stream, j->nby_stream, sizeof(*j->by_stream), compare_by_stream, g);
	for (size_t i = 0; i < j->nby_call; i++) {
		struct gpu_act *a = &g->acts[j->by_call[i]];
		bool new = !i || g->acts[j->by_call[i - 1]].call != a->call;

		a->first = new && !g->calls[a->call].told;
		if (a->first && a->settled)
			g->calls[a->call].told = true;
	}
	return 0;
}

/* --- what stays --------------------------------------------------------------------------------- */

bool gpu_join__expects(const struct gpu_api *c)
{
	return !c->error && (c->class == GPU_CALL_LAUNCH || c->class == GPU_CALL_COPY ||
			     c->class == GPU_CALL_SET);
}

/* Remembers that this thread has called. */
static int note_caller(struct gpu *g, const struct gpu_api *c)
{
	uint64_t key = gpu_thread_key(c->tgid, c->tid);
	uint32_t at = id_map__get(&g->caller_at, key);

	/* So many have come and gone that those of now are a small part. */
	if (at == ID_MAP_NONE && g->ncallers >= GPU_CALLERS_MAX) {
		id_map__clear(&g->caller_at);
		g->ncallers = 0;
	}
	if (at == ID_MAP_NONE) {
		at = (uint32_t)g->ncallers;
		if (gpu_grow(&g->caller_ns, at, &g->callers_cap, sizeof(*g->caller_ns)) ||
		    id_map__put(&g->caller_at, key, at))
			return -ENOMEM;
		g->caller_ns[g->ncallers++] = 0;
	}
	if (c->end_ns > g->caller_ns[at])
		g->caller_ns[at] = c->end_ns;
	return 0;
}

static int drop_calls(struct gpu_join *j)
{
	struct gpu *g = j->g;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < g->nacts; i++)
		if (!g->acts[i].settled && g->acts[i].call != GPU_NONE)
			g->calls[g->acts[i].call].kept = true;
	for (size_t i = 0; i < g->ncalls; i++) {
		struct gpu_api *c = &g->calls[i];

		if (c->outer != i)
			continue;
		c->kept |= c->end_ns > j->to_ns;
		if (gpu_join__expects(c) && !c->has_act && c->end_ns + KEEP_NS > j->to_ns)
			c->kept = true;
		c->kept &= !j->final;
		if (!c->kept && gpu_join__expects(c) && !c->has_act)
			g->missing[GPU_NO_ACTIVITY]++;
	}
	/* A part stays with the whole; parts lie behind it. */
	for (size_t i = 0; i < g->ncalls; i++)
		if (g->calls[i].outer != i)
			g->calls[i].kept = g->calls[g->calls[i].outer].kept;
	for (size_t i = 0; i < g->ncalls; i++) {
		if (!g->calls[i].kept) {
			if (!err)
				err = note_caller(g, &g->calls[i]);
			if (!err)
				err = gpu_visit__call(g, &g->calls[i]);
			continue;
		}
		g->calls[n] = g->calls[i];
		g->calls[n++].kept = false;
	}
	g->ncalls = n;
	return err;
}

static int drop_settled(struct gpu_join *j)
{
	struct gpu *g = j->g;
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < g->nacts && !err; i++)
		if (g->acts[i].untimed || g->acts[i].settled)
			err = gpu_visit__activity(j, &g->acts[i], false);
	if (!err)
		err = gpu_visit__settled(j);
	if (!err)
		err = drop_calls(j);
	for (size_t i = 0; i < g->nacts; i++) {
		if (!g->acts[i].untimed && !g->acts[i].settled) {
			g->acts[n++] = g->acts[i];
			continue;
		}
		if (g->acts[i].untimed)
			gpu_sums__untimed(g, &g->acts[i]);
		else if (g->acts[i].call == GPU_NONE)
			g->missing[GPU_NO_CALL]++;
		free(g->acts[i].rec);
	}
	g->nacts = n;
	n = 0;
	for (size_t i = 0; i < g->nwaits; i++) {
		if (!j->final && g->waits[i].end_ns > j->to_ns)
			g->waits[n++] = g->waits[i];
		else if (g->waits[i].call == GPU_NONE)
			g->missing[GPU_NO_SYNC_CALL]++;
	}
	g->nwaits = n;
	n = 0;
	for (size_t i = 0; i < g->nhosts; i++) {
		if (j->final || g->hosts[i].end_ns <= j->to_ns)
			continue;
		g->hosts[n] = g->hosts[i];
		g->hosts[n].cut |= g->hosts[n].start_ns < j->to_ns;
		n++;
	}
	g->nhosts = n;
	return err;
}

static int settle(struct gpu *g, uint64_t to_ns, bool final)
{
	struct gpu_join j = {.g = g, .to_ns = to_ns, .final = final};
	int err;

	gpu_clock__convert(g);
	err = check_times(&j);
	if (err)
		goto out;
	j.by_id = malloc((g->ncalls + 1) * sizeof(*j.by_id));
	err = j.by_id ? 0 : -ENOMEM;
	if (err)
		goto out;
	if (g->ncalls)
		qsort(g->calls, g->ncalls, sizeof(*g->calls), compare_calls);
	if (g->nacts)
		qsort(g->acts, g->nacts, sizeof(*g->acts), compare_acts);
	for (uint32_t i = 0; i < g->ncalls; i++)
		j.by_id[i] = i;
	qsort_r(j.by_id, g->ncalls, sizeof(*j.by_id), compare_ids, g->calls);
	nest_calls(g);
	join_calls(&j);
	find_rows(&j);
	err = gpu_waits__check(&j);
	if (!err)
		err = make_orders(&j);
	if (!err)
		err = gpu_spans__segments(&j);
	if (!err)
		err = gpu_devices__sweep(&j);
	if (!err)
		err = gpu_streams__sum(&j);
	if (!err)
		err = gpu_spans__sum(&j);
	if (!err)
		err = gpu_sums__settle(&j);
	if (!err) {
		err = drop_settled(&j);
		if (to_ns > g->settled_ns)
			g->settled_ns = to_ns;
		gpu_clock__forget(g, g->settled_ns);
	}
out:
	free(j.by_id);
	free(j.by_call);
	free(j.by_stream);
	free(j.segments);
	return err;
}

int gpu_join__settle(struct gpu *g, uint64_t to_ns)
{
	return to_ns > g->settled_ns ? settle(g, to_ns, false) : 0;
}

/* The latest moment up to to_ns at which no span is open: one that is would not be seen as a whole.
 * to_ns itself if there is none. */
static uint64_t quiet_ns(const struct gpu *g, uint64_t to_ns)
{
	uint64_t at = to_ns, before = 0;

	for (int round = 0; round < QUIET_ROUNDS && at != before; round++) {
		before = at;
		for (size_t i = 0; i < g->nhosts; i++)
			if (!g->hosts[i].cut && g->hosts[i].start_ns < at &&
			    g->hosts[i].end_ns > at)
				at = g->hosts[i].start_ns;
	}
	return at == before && at > g->settled_ns ? at : to_ns;
}

int gpu__settle(struct gpu *g, uint64_t to_ns)
{
	return to_ns > g->settled_ns ? settle(g, quiet_ns(g, to_ns), false) : 0;
}

int gpu__finish(struct gpu *g)
{
	uint64_t last = g->settled_ns;

	gpu_clock__convert(g);
	/* All that there is, and no further: more may come, though it must not be older. */
	for (size_t i = 0; i < g->nacts; i++)
		if (g->acts[i].end_ns > last && g->acts[i].end_ns >= g->acts[i].start_ns &&
		    (!g->host_ns || g->acts[i].end_ns <= g->host_ns + GPU_FUTURE_NS))
			last = g->acts[i].end_ns;
	if (g->newest_ns > last)
		last = g->newest_ns;
	return settle(g, last, true);
}

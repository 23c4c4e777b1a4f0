// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * perfetto_calls.c - calls of the CUDA API on a track of their own beside their thread's spans.
 *
 * They are not put between the spans: both are read from a clock at slightly different places, so that
 * a call may end a few ns after the span around it. On their own track a driver's call lies in the
 * runtime's. What crosses others goes on one more track of the same name: viewers show them as one.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/id_map.h"
#include "out/perfetto_impl.h"

#define OPEN_MAX   64
#define ARROWS_MAX 16384 /* of one call: a graph's launch */

struct caller {
	uint64_t thread; /* uuid */
	struct lanes *lanes;
};

struct perfetto_calls {
	struct perfetto *p;
	struct export_gpu *g;
	struct caller *callers;
	struct id_map caller_at;
	size_t n, cap;
	/* Open ones of the thread at hand, each in the one before. */
	uint32_t at;
	uint64_t track;
	uint64_t start_ns[OPEN_MAX], end_ns[OPEN_MAX];
	size_t nopen;
};

struct perfetto_calls *perfetto_calls__new(struct perfetto *p, struct export_gpu *g)
{
	struct perfetto_calls *c = calloc(1, sizeof(*c));

	if (c) {
		c->p = p;
		c->g = g;
	}
	return c;
}

void perfetto_calls__free(struct perfetto_calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		lanes__free(c->callers[i].lanes);
	free(c->callers);
	id_map__clear(&c->caller_at);
	free(c);
}

static int new_caller(struct perfetto_calls *c, const struct gpu_item_call *call, uint64_t key)
{
	const struct gpu_seen_call *s = call->seen;
	struct caller *t;
	int err;

	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;

		t = reallocarray(c->callers, cap, sizeof(*t));
		if (!t)
			return exporter__no_memory(c->p->x);
		c->callers = t;
		c->cap = cap;
	}
	t = &c->callers[c->n];
	t->lanes = lanes__new();
	if (!t->lanes)
		return exporter__no_memory(c->p->x);
	if (id_map__put(&c->caller_at, key, (uint32_t)c->n++))
		return exporter__no_memory(c->p->x);
	if (call->thread == TRACE_ALL_THREADS)
		return perfetto__other_thread(c->p, s->tgid, s->tid, s->start_ns, &t->thread);
	err = perfetto__describe_thread(c->p, call->thread);
	t->thread = perfetto__thread_uuid(c->p, call->thread);
	return err;
}

/* A tid that is reused is several threads: by index those that are known. */
static int caller_of(struct perfetto_calls *c, const struct gpu_item_call *call, uint32_t *at)
{
	uint64_t key = call->thread == TRACE_ALL_THREADS
			   ? (uint64_t)call->seen->tgid << 32 | call->seen->tid
			   : UINT64_MAX - call->thread;
	int err = 0;

	if (id_map__get(&c->caller_at, key) == ID_MAP_NONE)
		err = new_caller(c, call, key);
	*at = id_map__get(&c->caller_at, key);
	return err;
}

/* Those that have ended by then. */
static int close_to(struct perfetto_calls *c, uint64_t ns)
{
	int err = 0;

	while (c->nopen && c->end_ns[c->nopen - 1] <= ns && !err)
		err = perfetto__end(c->p, c->end_ns[--c->nopen], c->track);
	return err;
}

static int take_track(struct perfetto_calls *c, uint32_t at, uint64_t start_ns, uint64_t end_ns,
		      uint64_t *track)
{
	uint32_t lane;
	bool fresh;

	if (lanes__take(c->callers[at].lanes, start_ns, end_ns, &lane, &fresh))
		return exporter__no_memory(c->p->x);
	*track = perfetto__uuid(c->p, UUID_CALLS, c->callers[at].thread, lane);
	return fresh ? perfetto__named_track(c->p, *track, c->callers[at].thread, "CUDA API") : 0;
}

/* The ids of what it made the GPU do, for arrows. */
static uint64_t *arrows_of(const struct gpu_seen_call *s, size_t *n)
{
	uint64_t *ids;

	*n = s->activities < ARROWS_MAX ? s->activities : ARROWS_MAX;
	ids = malloc((*n + 1) * sizeof(*ids));
	for (size_t i = 0; ids && i < *n; i++)
		ids[i] = s->first_id + i;
	return ids;
}

static int begin(struct perfetto_calls *c, const struct gpu_item_call *call, uint64_t at_ns,
		 uint64_t track)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__GpuCorrelation gpu = PERFETTO__GPU_CORRELATION__INIT;
	Perfetto__DebugAnnotation notes[3], *list[3] = {&notes[0], &notes[1], &notes[2]};
	const struct gpu_seen_call *s = call->seen;
	size_t n = 0, narrows;
	uint64_t *arrows = arrows_of(s, &narrows);
	int err = perfetto__need_title(c->p, c->g, call->title, &te.name_iid);

	if (err || !arrows) {
		free(arrows);
		return err ? err : exporter__no_memory(c->p->x);
	}
	for (int i = 0; i < 3; i++)
		perfetto__debug_annotation__init(&notes[i]);
	notes[n].name = "correlation";
	notes[n].has_uint_value = 1;
	notes[n++].uint_value = s->correlation;
	if (s->error) {
		notes[n].name = "error";
		notes[n].has_uint_value = 1;
		notes[n++].uint_value = s->error;
	}
	if (!s->start_ns || s->end_ns < s->start_ns) {
		notes[n].name = "untimed";
		notes[n].has_bool_value = 1;
		notes[n++].bool_value = 1;
	}
	te.n_debug_annotations = n;
	te.debug_annotations = list;
	te.has_name_iid = 1;
	te.has_track_uuid = 1;
	te.track_uuid = track;
	if (c->p->x->o->gpu_tracks) {
		for (size_t i = 0; i < narrows; i++)
			arrows[i] += c->p->salt;
		te.n_flow_ids = narrows;
		te.flow_ids = arrows;
	} else if (narrows) {
		gpu.n_render_stage_submission_event_ids = narrows;
		gpu.render_stage_submission_event_ids = arrows;
		te.gpu_correlation = &gpu;
	}
	err = perfetto__event(c->p, at_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, &te);
	free(arrows);
	return err;
}

int perfetto_calls__add(struct perfetto_calls *c, const struct gpu_item_call *call)
{
	const struct gpu_seen_call *s = call->seen;
	uint64_t start_ns = s->start_ns ? s->start_ns : exporter__zero_ns(c->p->x), track;
	uint64_t end_ns = s->end_ns > start_ns ? s->end_ns : start_ns;
	uint32_t at;
	bool other;
	int err = caller_of(c, call, &at);

	if (err)
		return err;
	other = c->nopen && (at != c->at || start_ns < c->start_ns[c->nopen - 1]);
	err = close_to(c, other ? UINT64_MAX : start_ns);
	/* It crosses the one that is open. */
	if (!err && c->nopen && (end_ns > c->end_ns[c->nopen - 1] || c->nopen == OPEN_MAX)) {
		err = take_track(c, at, start_ns, end_ns, &track);
		if (!err)
			err = begin(c, call, start_ns, track);
		return err ? err : perfetto__end(c->p, end_ns, track);
	}
	if (!err && !c->nopen)
		err = take_track(c, at, start_ns, end_ns, &c->track);
	if (err)
		return err;
	c->at = at;
	c->start_ns[c->nopen] = start_ns;
	c->end_ns[c->nopen++] = end_ns;
	return begin(c, call, start_ns, c->track);
}

int perfetto_calls__end(struct perfetto_calls *c)
{
	return close_to(c, UINT64_MAX);
}

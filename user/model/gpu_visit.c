// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_visit.c - each activity and each call as it leaves the model, for whoever shows them one by one. */
#include "model/gpu_impl.h"

#define ID_BITS 24 /* a call's number stands above, which of its activities it is below */

static uint64_t new_id(struct gpu *g)
{
	return ++g->numbered << ID_BITS;
}

/* Ids of one call's activities are in a row. Graphs of more nodes than that are not joined whole. */
static uint64_t id_of(struct gpu *g, struct gpu_api *c)
{
	if (!c || c->seen >= 1u << ID_BITS)
		return new_id(g);
	if (!c->number)
		c->number = ++g->numbered;
	return (c->number << ID_BITS) + c->seen++;
}

int gpu_visit__activity(struct gpu_join *j, struct gpu_act *a, bool late)
{
	struct gpu *g = j->g;
	struct gpu_seen s = {.rec = a->rec, .ring = a->ring, .untimed = a->untimed, .late = late};
	struct gpu_api *c = NULL;
	uint32_t call;

	if (!g->opts.visitor)
		return 0;
	if (!late) {
		call = a->untimed ? gpu_join__call_of_untimed(j, a) : a->call;
		c = call == GPU_NONE ? NULL : &g->calls[call];
	}
	if (!a->untimed) {
		s.start_ns = a->start_ns;
		s.end_ns = a->end_ns;
		s.asked_ns = c ? gpu_asked_ns(g, a) : a->start_ns;
	} else if (c) {
		s.asked_ns = c->start_ns;
	}
	s.generation = gpu_clock__generation(g, a->ring, s.asked_ns);
	s.has_call = c != NULL;
	s.tgid = c ? c->tgid : 0;
	s.tid = c ? c->tid : 0;
	s.id = id_of(g, c);
	return g->opts.visitor->activity(g->opts.visitor->ctx, &s);
}

int gpu_visit__call(struct gpu *g, const struct gpu_api *c)
{
	struct gpu_seen_call s = {.start_ns = c->start_ns,
				  .end_ns = c->end_ns,
				  .first_id = c->number << ID_BITS,
				  .activities = c->seen,
				  .ring = c->ring,
				  .tgid = c->tgid,
				  .tid = c->tid,
				  .correlation = c->correlation,
				  .name = c->name,
				  .error = c->error,
				  .domain = c->domain,
				  .waits = c->waits};

	return g->opts.visitor ? g->opts.visitor->call(g->opts.visitor->ctx, &s) : 0;
}

int gpu_visit__idle(struct gpu *g, const struct gpu_seen_idle *i)
{
	const struct gpu_visitor *v = g->opts.visitor;

	return v && v->idle ? v->idle(v->ctx, i) : 0;
}

/* What has not ended, and launches whose activity has not come, may have been asked for before to_ns. */
int gpu_visit__settled(struct gpu_join *j)
{
	struct gpu *g = j->g;
	uint64_t to_ns = j->final ? UINT64_MAX : j->to_ns;

	if (!g->opts.visitor)
		return 0;
	for (size_t i = 0; i < g->nacts && !j->final; i++)
		if (!g->acts[i].untimed && !g->acts[i].settled &&
		    gpu_asked_ns(g, &g->acts[i]) < to_ns)
			to_ns = gpu_asked_ns(g, &g->acts[i]);
	for (size_t i = 0; i < g->ncalls && !j->final; i++)
		if (g->calls[i].outer == i && gpu_join__expects(&g->calls[i]) &&
		    !g->calls[i].has_act && g->calls[i].start_ns < to_ns)
			to_ns = g->calls[i].start_ns;
	return g->opts.visitor->settled(g->opts.visitor->ctx, to_ns);
}

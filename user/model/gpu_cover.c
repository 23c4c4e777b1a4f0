// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_cover.c - two windows: of each process the time in which its agent recorded all, and the time in
 * which the host's spans were seen. What lies in one and not in the other is told by name, and in no
 * figure that puts spans and the GPU's work together.
 */
#include <errno.h>

#include "model/gpu_impl.h"

void gpu__probes(struct gpu *g, uint64_t from_ns, uint64_t to_ns)
{
	g->probes_from_ns = from_ns;
	g->probes_to_ns = to_ns;
}

static struct gpu_agent *find(struct gpu *g, uint32_t ring, uint32_t generation)
{
	for (size_t i = g->nagents; i-- > 0;)
		if (g->agents[i].ring == ring && g->agents[i].generation == generation)
			return &g->agents[i];
	return NULL;
}

/* Windows of one process are in a chain. */
static int add(struct gpu *g, uint32_t ring, const struct qbpf_ring_window *w,
	       struct gpu_agent **out)
{
	uint32_t at = (uint32_t)g->nagents, last;

	if (gpu_grow(&g->agents, at, &g->agents_cap, sizeof(*g->agents)) ||
	    gpu_grow(&g->agent_next, at, &g->agent_next_cap, sizeof(*g->agent_next)))
		return -ENOMEM;
	last = id_map__get(&g->agent_at, w->tgid);
	if (last == ID_MAP_NONE && id_map__put(&g->agent_at, w->tgid, at))
		return -ENOMEM;
	while (last != ID_MAP_NONE && g->agent_next[last] != GPU_NONE)
		last = g->agent_next[last];
	if (last != ID_MAP_NONE)
		g->agent_next[last] = at;
	g->agents[at] = (struct gpu_agent){
	    .ring = ring, .generation = w->generation, .tgid = w->tgid, .to_ns = GPU_UNKNOWN};
	g->agent_next[at] = GPU_NONE;
	g->nagents++;
	*out = &g->agents[at];
	return 0;
}

int gpu_cover__window(struct gpu *g, uint32_t ring, const struct qbpf_ring_window *w)
{
	struct gpu_agent *a = find(g, ring, w->generation);
	int err = 0;

	if (!a && g->nagents >= GPU_STARTS_MAX)
		g->overflow++;
	else if (!a)
		err = add(g, ring, w, &a);
	if (err || !a)
		return err;
	if (!w->end) {
		a->from_ns = w->monotonic_ns;
		a->from_start = w->flags & QBPF_RING_FROM_START;
	} else if (!a->end || a->end == QBPF_RING_SUDDEN) {
		/* The agent itself knows better than whoever found it gone. */
		a->end = w->end;
		a->to_ns = w->monotonic_ns;
	}
	return 0;
}

enum gpu_outside gpu_cover__span(const struct gpu *g, uint32_t tgid, uint64_t start_ns,
				 uint64_t end_ns)
{
	uint32_t first = id_map__get(&g->agent_at, tgid);
	uint32_t earliest = UINT32_MAX;
	bool partly = false, before = true;

	for (uint32_t i = first; i != ID_MAP_NONE; i = g->agent_next[i])
		if (g->agents[i].generation < earliest)
			earliest = g->agents[i].generation;
	for (uint32_t i = first; i != ID_MAP_NONE; i = g->agent_next[i]) {
		const struct gpu_agent *a = &g->agents[i];
		/* Before it used CUDA there was nothing to be seen. */
		uint64_t from = a->from_start && a->generation == earliest ? 0 : a->from_ns;

		if (start_ns >= from && end_ns <= a->to_ns)
			return GPU_INSIDE;
		partly |= start_ns < a->to_ns && end_ns > from;
		before &= end_ns <= from;
	}
	if (first == ID_MAP_NONE) /* nothing is known of it */
		return GPU_INSIDE;
	return partly ? GPU_PARTLY : before ? GPU_BEFORE_AGENT : GPU_AFTER_AGENT;
}

void gpu_cover__launch(struct gpu_join *j, const struct gpu_api *c)
{
	struct gpu *g = j->g;
	uint64_t key = gpu_thread_key(c->tgid, c->tid);
	size_t next = gpu_spans__after(j, key, c->start_ns);
	enum gpu_launches kind = GPU_IN_NO_SPAN;

	if (next && j->segments[next - 1].key == key && j->segments[next - 1].span)
		kind = GPU_IN_SPAN;
	else if (c->start_ns < g->probes_from_ns)
		kind = GPU_BEFORE_PROBES;
	else if (c->start_ns > g->probes_to_ns)
		kind = GPU_AFTER_PROBES;
	g->launches[kind]++;
}

bool gpu_cover__from_start(const struct gpu *g, uint32_t ring, uint32_t generation)
{
	const struct gpu_ring *r = &g->rings[ring];
	const struct gpu_start *s = generation <= r->nstarts ? &r->starts[generation - 1] : NULL;

	return !s || s->clock != QBPF_RING_CLOCK_CUPTI;
}

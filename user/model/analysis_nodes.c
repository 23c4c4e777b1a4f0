/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* analysis_nodes.c - places in the call tree: whose an event is, what they sum up to, edges. */
#include <string.h>

#include "model/analysis_impl.h"

#define AROUND_MOST 4096 /* deeper than any recording; a damaged one costs no more */

static uint64_t pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

static int add_node(struct an_build *b, uint32_t thread, uint32_t id, uint32_t parent,
		    uint32_t span)
{
	int err;

	if (b->a.nnodes == b->nodes_cap) {
		size_t cap = b->nodes_cap ? 2 * b->nodes_cap : 64;
		struct an_node *n = realloc(b->a.nodes, cap * sizeof(*n));

		if (!n)
			return -ENOMEM;
		b->a.nodes = n;
		b->nodes_cap = cap;
	}
	err = id_map__put(&b->node_at, pair(thread, id), b->a.nnodes);
	if (!err)
		b->a.nodes[b->a.nnodes++] =
		    (struct an_node){.id = id, .parent = parent, .span = span, .thread = thread};
	return err;
}

/* A place of the trace's table; its parent is in the table too, with a lower id. */
static int add_known(struct an_build *b, uint32_t thread, const struct trace_node *n)
{
	uint32_t parent = n->parent;

	if (parent && (parent >= n->id || !trace_info__node(b->info, parent)))
		parent = QBPF_NODE_LOST;
	return add_node(b, thread, n->id, parent, n->span);
}

static int know_places(struct an_build *b)
{
	int err = 0;

	for (size_t i = 0; i < b->info->nnodes && !err; i++) {
		const struct trace_node *n = &b->info->nodes[i];
		uint64_t key = pair(n->parent, n->span);

		if (id_map__get(&b->place_at, key) == ID_MAP_NONE)
			err = id_map__put(&b->place_at, key, n->id);
		if (n->id >= b->next_id && n->id < QBPF_NODE_LOST - 1)
			b->next_id = n->id + 1;
	}
	b->places_known = !err;
	return err;
}

static bool contains(const struct an_around *a, const struct event *ev)
{
	return a->end_ns && a->start_ns <= ev->start_ns && ev->end_ns <= a->end_ns;
}

/* The place of an event whose own is not in the file: below the span around it, if that is. */
static int place_by_nesting(struct an_build *b, const struct event *ev, uint32_t *id,
			    uint32_t *parent)
{
	const struct an_thread *t = &b->threads[ev->thread];
	int err = b->places_known ? 0 : know_places(b);

	if (err)
		return err;
	*parent = 0;
	if (ev->depth)
		*parent = ev->depth <= t->depth && contains(&t->around[ev->depth - 1], ev)
			      ? t->around[ev->depth - 1].node
			      : QBPF_NODE_LOST;
	*id = id_map__get(&b->place_at, pair(*parent, ev->span));
	if (*id != ID_MAP_NONE)
		return 0;
	*id = b->next_id++;
	return id_map__put(&b->place_at, pair(*parent, ev->span), *id);
}

int an__node(struct an_build *b, const struct event *ev, struct an_node **out)
{
	uint32_t thread = b->opts.per_thread ? ev->thread : AN_ALL_THREADS;
	uint32_t at = id_map__get(&b->node_at, pair(thread, ev->node)), id, parent = 0;
	const struct trace_node *known;
	int err;

	if (at == ID_MAP_NONE || b->a.nodes[at].span != ev->span) {
		known = trace_info__node(b->info, ev->node);
		if (known && known->span == ev->span) {
			id = ev->node;
		} else {
			err = place_by_nesting(b, ev, &id, &parent);
			if (err)
				return err;
			known = trace_info__node(b->info, id);
		}
		at = id_map__get(&b->node_at, pair(thread, id));
		if (at == ID_MAP_NONE) {
			err = known ? add_known(b, thread, known)
				    : add_node(b, thread, id, parent, ev->span);
			if (err)
				return err;
			at = b->a.nnodes - 1;
		}
	}
	*out = &b->a.nodes[at];
	return 0;
}

void an__prefetch_early(const struct an_build *b, const struct event *ev)
{
	uint32_t thread = b->opts.per_thread ? ev->thread : AN_ALL_THREADS;
	uint32_t at = id_map__get(&b->node_at, pair(thread, ev->node));

	if (at != ID_MAP_NONE && b->a.nodes[at].dist)
		dist__prefetch_early(b->a.nodes[at].dist);
	if (ev->span - 1 < b->info->nspans && b->a.spans[ev->span - 1].windows)
		__builtin_prefetch(&b->a.spans[ev->span - 1].windows[b->window], 1);
}

void an__prefetch(const struct an_build *b, const struct event *ev)
{
	uint32_t thread = b->opts.per_thread ? ev->thread : AN_ALL_THREADS, at;
	uint64_t ns = ev->end_ns - ev->start_ns;
	const struct an_span *s;

	if (ev->kind != EVENT_SPAN || ev->span - 1 >= b->info->nspans)
		return;
	at = id_map__get(&b->node_at, pair(thread, ev->node));
	if (at != ID_MAP_NONE && b->a.nodes[at].dist)
		dist__prefetch(b->a.nodes[at].dist, ns);
	s = &b->a.spans[ev->span - 1];
	if (b->node_pool != b->pool && s->dist)
		dist__prefetch(s->dist, ns);
	if (s->windows && s->windows[b->window].hist)
		hist__prefetch(s->windows[b->window].hist);
}

int an__enter(struct an_build *b, const struct event *ev, uint32_t node)
{
	struct an_thread *t = &b->threads[ev->thread];

	if (ev->depth >= AROUND_MOST)
		return 0;
	if (ev->depth >= t->cap) {
		uint32_t cap = t->cap ? t->cap : 16;
		struct an_around *a;

		while (cap <= ev->depth)
			cap *= 2;
		a = realloc(t->around, cap * sizeof(*a));
		if (!a)
			return -ENOMEM;
		t->around = a;
		t->cap = cap;
	}
	for (; t->depth < ev->depth; t->depth++)
		t->around[t->depth] = (struct an_around){0};
	t->around[ev->depth] = (struct an_around){
	    .start_ns = ev->start_ns,
	    .end_ns = ev->end_ns,
	    .node = node,
	    .open = ev->kind == EVENT_OPEN,
	};
	/* Open spans of a thread come together, in any order. */
	if (ev->kind != EVENT_OPEN || t->depth <= ev->depth)
		t->depth = ev->depth + 1;
	return 0;
}

bool an__outermost(const struct an_build *b, const struct event *ev)
{
	const struct an_thread *t = &b->threads[ev->thread];

	if (ev->depth > t->depth)
		return false;
	for (uint32_t d = ev->depth; d-- > 0;)
		if (!t->around[d].open || !contains(&t->around[d], ev))
			return false;
	return true;
}

static int add_ancestors(struct an_build *b)
{
	int err = 0;

	for (size_t i = 0; i < b->a.nnodes && !err; i++) {
		struct an_node n = b->a.nodes[i];

		if (n.parent && n.parent != QBPF_NODE_LOST &&
		    id_map__get(&b->node_at, pair(n.thread, n.parent)) == ID_MAP_NONE)
			err = add_known(b, n.thread, trace_info__node(b->info, n.parent));
	}
	return err;
}

static int compare_edges(const void *pa, const void *pb)
{
	const struct an_edge *a = pa, *b = pb;

	if (a->caller != b->caller)
		return a->caller < b->caller ? -1 : 1;
	return a->callee < b->callee ? -1 : a->callee > b->callee;
}

static int add_edges(struct an_build *b)
{
	struct id_map edge_at = {0};
	int err = 0;

	b->a.edges = calloc(b->a.nnodes + 1, sizeof(*b->a.edges));
	if (!b->a.edges)
		return -ENOMEM;
	for (size_t i = 0; i < b->a.nnodes && !err; i++) {
		const struct an_node *n = &b->a.nodes[i];
		uint32_t caller = n->parent, at;

		if (!n->count)
			continue;
		if (caller && caller != QBPF_NODE_LOST)
			caller = b->a.nodes[id_map__get(&b->node_at, pair(n->thread, caller))].span;
		at = id_map__get(&edge_at, pair(caller, n->span));
		if (at == ID_MAP_NONE) {
			at = b->a.nedges++;
			b->a.edges[at] = (struct an_edge){.caller = caller, .callee = n->span};
			err = id_map__put(&edge_at, pair(caller, n->span), at);
		}
		b->a.edges[at].count += n->count;
		b->a.edges[at].total_ns += n->total_ns;
	}
	id_map__clear(&edge_at);
	qsort(b->a.edges, b->a.nedges, sizeof(*b->a.edges), compare_edges);
	return err;
}

static int compare_nodes(const void *pa, const void *pb)
{
	const struct an_node *a = pa, *b = pb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

size_t analysis__parent(const struct analysis *a, size_t i)
{
	struct an_node key = {.id = a->nodes[i].parent, .thread = a->nodes[i].thread}, *parent;

	if (!key.id)
		return SIZE_MAX;
	parent = bsearch(&key, a->nodes, a->nnodes, sizeof(key), compare_nodes);
	return parent ? (size_t)(parent - a->nodes) : SIZE_MAX;
}

/* A span with one place has that one's distribution, not a copy. */
static int merge_dists(struct an_build *b)
{
	uint32_t *places = calloc(b->info->nspans + 1, sizeof(*places));
	int err = places ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < b->a.nnodes; i++)
		places[b->a.nodes[i].span] += b->a.nodes[i].dist != NULL;
	for (size_t i = 0; !err && i < b->a.nnodes; i++) {
		const struct an_node *n = &b->a.nodes[i];
		struct an_span *s = &b->a.spans[n->span - 1];

		if (!n->dist)
			continue;
		if (!s->dist && places[n->span] == 1) {
			s->dist = n->dist;
			continue;
		}
		if (!s->dist)
			s->dist = dist__new(b->pool, QBPF_HIST_NS);
		err = s->dist ? dist__merge(s->dist, n->dist) : -ENOMEM;
	}
	free(places);
	return err;
}

int an__finish_nodes(struct an_build *b)
{
	int err = add_ancestors(b);

	if (!err)
		err = add_edges(b);
	if (err)
		return err;
	id_map__clear(&b->node_at);
	id_map__clear(&b->place_at);
	if (b->a.nnodes)
		qsort(b->a.nodes, b->a.nnodes, sizeof(*b->a.nodes), compare_nodes);
	return b->node_pool == b->pool ? merge_dists(b) : 0;
}

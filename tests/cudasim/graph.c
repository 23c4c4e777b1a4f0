/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * graph.c - graphs: nodes, capture, launch; and host functions, which run in a thread
 *
 * Nodes are kept in the order in which they were added; since a node can only depend on nodes that
 * exist, that order is one in which they can run. All activities of a launch have its correlation id.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint32_t next_graph = 1;
static uint64_t next_node = 1;

/* --- building --------------------------------------------------------------------------------- */

struct CUgraph_st *graph_new(void)
{
	struct CUgraph_st *g = calloc(1, sizeof(*g));

	if (g)
		g->id = next_graph++;
	return g;
}

void graph_free(struct CUgraph_st *g)
{
	for (unsigned int i = 0; i < g->n; i++) {
		free(g->nodes[i]->deps);
		free(g->nodes[i]);
	}
	free(g->nodes);
	free(g);
}

bool graph_depend(struct CUgraphNode_st *node, struct CUgraphNode_st *on)
{
	struct CUgraphNode_st **more;

	for (unsigned int i = 0; i < node->n_deps; i++) {
		if (node->deps[i] == on)
			return true;
	}
	more = realloc(node->deps, (node->n_deps + 1) * sizeof(*more));
	if (!more)
		return false;
	node->deps = more;
	node->deps[node->n_deps++] = on;
	return true;
}

struct CUgraphNode_st *graph_add(struct CUgraph_st *g, enum sim_node_kind kind,
				 struct CUgraphNode_st *const *deps, size_t n_deps)
{
	struct CUgraphNode_st *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	if (g->n == g->cap) {
		unsigned int cap = g->cap ? 2 * g->cap : 16;
		void *more = realloc(g->nodes, cap * sizeof(*g->nodes));

		if (!more)
			goto out;
		g->nodes = more;
		g->cap = cap;
	}
	n->graph = g;
	n->kind = kind;
	n->id = next_node++;
	for (size_t i = 0; i < n_deps; i++) {
		if (!graph_depend(n, deps[i]))
			goto out;
	}
	g->nodes[g->n++] = n;
	return n;
out:
	free(n->deps);
	free(n);
	return NULL;
}

struct CUgraph_st *graph_clone(const struct CUgraph_st *g)
{
	struct CUgraph_st *copy = graph_new();

	for (unsigned int i = 0; copy && i < g->n; i++) {
		const struct CUgraphNode_st *from = g->nodes[i];
		struct CUgraphNode_st *to = graph_add(copy, from->kind, NULL, 0), old;

		if (!to) {
			graph_free(copy);
			return NULL;
		}
		old = *to;
		*to = *from;
		to->graph = copy;
		to->id = old.id;
		to->deps = NULL;
		to->n_deps = 0;
		for (unsigned int d = 0; d < from->n_deps; d++) {
			unsigned int j = 0;

			while (g->nodes[j] != from->deps[d])
				j++;
			if (!graph_depend(to, copy->nodes[j])) {
				graph_free(copy);
				return NULL;
			}
		}
	}
	return copy;
}

struct CUgraphNode_st *graph_capture(struct CUstream_st *s, enum sim_node_kind kind)
{
	struct CUgraphNode_st *n =
	    graph_add(s->capture, kind, &s->capture_last, s->capture_last ? 1 : 0);

	if (n)
		s->capture_last = n;
	return n;
}

/* --- launching -------------------------------------------------------------------------------- */

static void node_effect(struct CUgraphNode_st *n)
{
	void *args[SIM_PARAMS];

	if (n->kernel) {
		for (int i = 0; i < SIM_PARAMS; i++)
			args[i] = &n->args[i];
		if (n->kernel->effect && n->kernel->n_params >= 0)
			n->kernel->effect(args);
	} else if (n->op.kind == SIM_MEMCPY) {
		memmove(n->dst, n->src, n->op.bytes);
	} else if (n->op.kind == SIM_MEMSET) {
		memset(n->dst, (int)n->op.value, n->op.bytes);
	}
}

static void node_run(struct CUgraphNode_st *n, struct CUstream_st *s, uint64_t ready)
{
	struct sim_activity a = n->op;

	n->end = ready;
	switch (n->kind) {
	case NODE_OP:
		timeline_name(s, &a);
		a.graph = n->graph->id;
		a.node = n->id;
		node_effect(n);
		timeline_place(s->ctx, &a, ready, n->length);
		n->end = a.end;
		sim_activity_done(&a);
		break;
	case NODE_HOST:
		hostfn_submit(ready, n->fn, n->fn_data);
		n->end = ready == SIM_NEVER ? ready : ready + (uint64_t)sim_config()->host_ns;
		break;
	case NODE_RECORD:
		n->event->time = ready;
		n->event->recorded = true;
		break;
	case NODE_WAIT:
		if (n->event->time > ready)
			n->end = n->event->time;
		break;
	case NODE_EMPTY:
		break;
	}
}

void graph_launch(struct CUgraphExec_st *e, struct CUstream_st *s, uint64_t *held)
{
	struct sim_activity whole = {.kind = SIM_GRAPH, .graph = e->graph->id};
	const struct CUgraph_st *g = e->graph;
	uint64_t first;

	timeline_name(s, &whole);
	*held = timeline_held(s);
	if (*held != SIM_NEVER && *held > whole.submit)
		whole.submit = *held;
	first = timeline_ready(s, whole.submit);
	whole.start = first;
	whole.end = first;
	for (unsigned int i = 0; i < g->n; i++) {
		struct CUgraphNode_st *n = g->nodes[i];
		uint64_t ready = first;

		for (unsigned int d = 0; d < n->n_deps; d++) {
			uint64_t end = n->deps[d]->end;

			if (end != SIM_NEVER)
				end += (uint64_t)sim_config()->node_ns;
			if (end > ready)
				ready = end;
		}
		node_run(n, s, ready);
		if (n->end > whole.end)
			whole.end = n->end;
	}
	timeline_advance(s, whole.end);
	sim_activity_done(&whole);
}

/* --- host functions --------------------------------------------------------------------------- */

struct hostfn {
	uint64_t when;
	CUhostFn fn;
	void *data;
	struct hostfn *next;
};

static pthread_mutex_t hostfn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hostfn_more = PTHREAD_COND_INITIALIZER;
static struct hostfn *hostfns, **hostfn_tail = &hostfns;
static pthread_cond_t hostfn_less = PTHREAD_COND_INITIALIZER;
static uint64_t hostfn_now = SIM_NEVER; /* the one that is being run */
static bool hostfn_running;

static void *hostfn_thread(void *unused)
{
	struct hostfn *h;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&hostfn_lock);
		while (!hostfns)
			pthread_cond_wait(&hostfn_more, &hostfn_lock);
		h = hostfns;
		hostfns = h->next;
		if (!hostfns)
			hostfn_tail = &hostfns;
		hostfn_now = h->when;
		pthread_mutex_unlock(&hostfn_lock);
		sim_wait_until(h->when);
		h->fn(h->data);
		free(h);
		pthread_mutex_lock(&hostfn_lock);
		hostfn_now = SIM_NEVER;
		pthread_cond_broadcast(&hostfn_less);
		pthread_mutex_unlock(&hostfn_lock);
	}
	return NULL;
}

void hostfn_submit(uint64_t when, CUhostFn fn, void *data)
{
	struct hostfn *h = calloc(1, sizeof(*h));
	pthread_t thread;

	if (!h)
		abort();
	*h = (struct hostfn){when, fn, data, NULL};
	pthread_mutex_lock(&hostfn_lock);
	*hostfn_tail = h;
	hostfn_tail = &h->next;
	if (!hostfn_running && !pthread_create(&thread, NULL, hostfn_thread, NULL)) {
		pthread_detach(thread);
		hostfn_running = true;
	}
	pthread_cond_signal(&hostfn_more);
	pthread_mutex_unlock(&hostfn_lock);
}

static bool hostfn_due(uint64_t until)
{
	if (hostfn_now < until)
		return true;
	for (const struct hostfn *h = hostfns; h; h = h->next) {
		if (h->when < until)
			return true;
	}
	return false;
}

void hostfn_wait(uint64_t until)
{
	pthread_mutex_lock(&hostfn_lock);
	while (hostfn_due(until))
		pthread_cond_wait(&hostfn_less, &hostfn_lock);
	pthread_mutex_unlock(&hostfn_lock);
}

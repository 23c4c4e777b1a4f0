/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* html_tree.c - the call tree of the page, who calls whom, and its slowest spans whole. */
#include <stdlib.h>

#include "out/html_data.h"

/* --- nodes ---------------------------------------------------------------------------------- */

static int node_by_time(const void *va, const void *vb, void *data)
{
	const struct an_node *nodes = data;
	size_t ia = *(const size_t *)va, ib = *(const size_t *)vb;
	const struct an_node *a = &nodes[ia], *b = &nodes[ib];

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return ia < ib ? -1 : ia > ib;
}

/* Numbers the nodes that the page gets: those with most time, and all around them. index[i]: 0 or
 * the place + 1. Returns how many. */
static size_t choose_nodes(const struct analysis *a, size_t *index)
{
	size_t *order = malloc((a->nnodes + 1) * sizeof(*order)), n = 0;

	if (!order)
		return SIZE_MAX;
	for (size_t i = 0; i < a->nnodes; i++)
		order[i] = i;
	qsort_r(order, a->nnodes, sizeof(*order), node_by_time, a->nodes);
	for (size_t i = 0; i < a->nnodes && i < HTML_NODES_MAX; i++)
		for (size_t k = order[i]; k != SIZE_MAX && !index[k]; k = analysis__parent(a, k))
			index[k] = 1;
	for (size_t i = 0; i < a->nnodes; i++)
		if (index[i])
			index[i] = ++n;
	free(order);
	return n;
}

/* [parent's place, -1: none, -2: not known; row, thread or -1, count, total, self, min, max, p50,
 * p99] */
static json_t *node(struct html_data *d, const struct an_node *n, json_int_t parent)
{
	static const double qs[] = {0.5, 0.99};
	struct json_doc *doc = &d->doc;
	bool dist = n->dist && dist__count(n->dist) > dist__nan(n->dist);
	json_t *o = json_array();
	long double v;

	json_append(doc, o, json_integer(parent));
	json_append(doc, o, json_integer(html_data__row(d, n->span)));
	json_append(doc, o, json_integer(n->thread == AN_ALL_THREADS ? -1 : (json_int_t)n->thread));
	json_append(doc, o, html_count(n->count));
	json_append(doc, o, html_count(n->total_ns));
	json_append(doc, o, html_count(n->self_ns));
	json_append(doc, o, dist ? html_number(dist__min(n->dist)) : json_null());
	json_append(doc, o, dist ? html_number(dist__max(n->dist)) : json_null());
	for (int i = 0; i < 2; i++)
		json_append(doc, o,
			    dist && dist__quantile(n->dist, qs[i], &v) ? html_number(v)
								       : json_null());
	return o;
}

/* --- threads -------------------------------------------------------------------------------- */

static void put_thread(struct html_data *d, json_t *threads, uint32_t index)
{
	const struct trace_info *info = d->a->info;
	char key[16];
	json_t *o;

	snprintf(key, sizeof(key), "%u", index);
	if (index >= info->nthreads || json_object_get(threads, key))
		return;
	o = json_object();
	json_put(&d->doc, o, "tgid", json_integer(info->threads[index].tgid));
	json_put(&d->doc, o, "tid", json_integer(info->threads[index].tid));
	json_put(&d->doc, o, "name", html_text(info->threads[index].name));
	json_put(&d->doc, threads, key, o);
}

/* --- edges ---------------------------------------------------------------------------------- */

static int edge_by_time(const void *va, const void *vb, void *data)
{
	const struct an_edge *edges = data;
	size_t ia = *(const size_t *)va, ib = *(const size_t *)vb;
	const struct an_edge *a = &edges[ia], *b = &edges[ib];

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return ia < ib ? -1 : ia > ib;
}

/* [caller's row, -2: nothing is around it, -3: not known; callee's row, count, total] */
static void put_edges(struct html_data *d)
{
	const struct analysis *a = d->a;
	size_t *order = malloc((a->nedges + 1) * sizeof(*order));
	json_t *array = json_array();
	size_t n = a->nedges < HTML_EDGES_MAX ? a->nedges : HTML_EDGES_MAX;

	if (!order) {
		d->doc.failed = true;
		json_decref(array);
		return;
	}
	for (size_t i = 0; i < a->nedges; i++)
		order[i] = i;
	qsort_r(order, a->nedges, sizeof(*order), edge_by_time, a->edges);
	for (size_t i = 0; i < n; i++) {
		const struct an_edge *e = &a->edges[order[i]];
		json_t *o = json_array();

		json_append(&d->doc, o,
			    json_integer(!e->caller ? -2
					 : e->caller == QBPF_NODE_LOST
					     ? -3
					     : html_data__row(d, e->caller)));
		json_append(&d->doc, o, json_integer(html_data__row(d, e->callee)));
		json_append(&d->doc, o, html_count(e->count));
		json_append(&d->doc, o, html_count(e->total_ns));
		json_append(&d->doc, array, o);
	}
	json_put(&d->doc, d->doc.root, "edges", array);
	json_put(&d->doc, d->doc.root, "edges_left_out", html_count(a->nedges - n));
	free(order);
}

void html_data__tree(struct html_data *d)
{
	const struct analysis *a = d->a;
	size_t *index = calloc(a->nnodes + 1, sizeof(*index));
	json_t *nodes = json_array(), *threads = json_object();
	size_t n = index ? choose_nodes(a, index) : SIZE_MAX;

	if (n == SIZE_MAX) {
		d->doc.failed = true;
		n = 0;
	} else {
		for (size_t i = 0; i < a->nnodes; i++) {
			bool lost = a->nodes[i].parent == QBPF_NODE_LOST;
			size_t parent = analysis__parent(a, i);

			if (!index[i])
				continue;
			json_append(&d->doc, nodes,
				    node(d, &a->nodes[i],
					 parent != SIZE_MAX ? (json_int_t)index[parent] - 1
					 : lost		    ? -2
							    : -1));
			if (a->nodes[i].thread != AN_ALL_THREADS)
				put_thread(d, threads, a->nodes[i].thread);
		}
	}
	json_put(&d->doc, d->doc.root, "nodes", nodes);
	json_put(&d->doc, d->doc.root, "nodes_left_out", html_count(a->nnodes - n));
	json_put(&d->doc, d->doc.root, "threads", threads);
	free(index);
	put_edges(d);
}

/* --- the slowest spans ---------------------------------------------------------------------- */

static const char *const kinds[EVENT_KINDS] = {
    [EVENT_SPAN] = "span",	 [EVENT_ASIDE] = "aside", [EVENT_KEYED] = "keyed",
    [EVENT_INSTANT] = "instant", [EVENT_VALUE] = "value", [EVENT_OPEN] = "open"};

/* Of the events, in their order: [row, depth below the outermost, start after it, duration, kind
 * where it is no plain span]. */
static json_t *event(struct html_data *d, const struct event *ev, const struct event *root)
{
	struct json_doc *doc = &d->doc;
	json_t *o = json_array();

	json_append(doc, o, json_integer(html_data__row(d, ev->span)));
	json_append(doc, o, json_integer(ev->depth > root->depth ? ev->depth - root->depth : 0));
	json_append(doc, o,
		    html_count(ev->start_ns > root->start_ns ? ev->start_ns - root->start_ns : 0));
	json_append(doc, o, html_count(ev->end_ns > ev->start_ns ? ev->end_ns - ev->start_ns : 0));
	if (ev->kind != EVENT_SPAN && ev->kind < EVENT_KINDS && kinds[ev->kind])
		json_append(doc, o, json_string(kinds[ev->kind]));
	return o;
}

/* `room`: how many events the page still takes. */
static json_t *tree(struct html_data *d, const struct an_tree *t, size_t *room)
{
	struct json_doc *doc = &d->doc;
	json_t *o = json_object(), *events = json_array();
	size_t n = t->n < *room ? t->n : *room;

	*room -= n;
	for (size_t i = 0; i < n; i++)
		json_append(doc, events, event(d, &t->events[i], &t->events[0]));
	json_put(doc, o, "at", html_time(d, t->events[0].start_ns));
	json_put(doc, o, "ns", html_count(t->events[0].end_ns - t->events[0].start_ns));
	json_put(doc, o, "thread", json_integer(t->events[0].thread));
	put_thread(d, json_object_get(d->doc.root, "threads"), t->events[0].thread);
	json_put(doc, o, "events", events);
	json_put(doc, o, "left_out", html_count(t->left_out + (t->n - n)));
	return o;
}

static json_t *path(struct html_data *d, const struct an_path *p)
{
	json_t *array = json_array();

	for (size_t i = 0; i < p->n && i < HTML_SITES_MAX; i++) {
		json_t *o = json_array();

		json_append(&d->doc, o, json_integer(html_data__row(d, p->steps[i].span)));
		json_append(&d->doc, o, html_count(p->steps[i].ns));
		json_append(&d->doc, o, html_count(p->steps[i].self_ns));
		json_append(&d->doc, array, o);
	}
	return array;
}

void html_data__slowest(struct html_data *d)
{
	const struct analysis *a = d->a;
	json_t *o = json_object(), *trees = json_array();
	size_t room = HTML_EVENTS_MAX;

	json_put(&d->doc, o, "root", json_integer(html_data__row(d, a->root)));
	/* The median first: it is what all others are compared with. */
	if (a->median.n)
		json_put(&d->doc, o, "median", tree(d, &a->median, &room));
	for (size_t i = 0; i < a->nslowest && i < HTML_TREES_MAX && room; i++)
		if (a->slowest[i].n)
			json_append(&d->doc, trees, tree(d, &a->slowest[i], &room));
	json_put(&d->doc, o, "trees", trees);
	json_put(&d->doc, o, "slowest_path", path(d, &a->slowest_path));
	json_put(&d->doc, o, "median_path", path(d, &a->median_path));
	json_put(&d->doc, d->doc.root, "slowest", o);
}

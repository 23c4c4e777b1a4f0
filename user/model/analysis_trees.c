/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * analysis_trees.c - the second pass: the slowest outermost spans and the one of median duration,
 * with all that ran inside them, and the path of greatest time down each.
 *
 * Backwards from the end of a span come the spans inside it, each before what ran inside itself, until
 * one is not deeper than the span. Of a tree that is too big the longest are kept; none is longer
 * than what is around it, so what is kept is still a tree.
 */
#include <string.h>

#include "model/analysis_impl.h"

struct kept {
	struct event ev;
	size_t seq; /* backwards: 0 is the outermost */
};

/* A heap, what gives way next first. */
struct keeper {
	struct kept *heap;
	size_t n, cap, max, seen;
};

static uint64_t event_ns(const struct event *ev)
{
	return ev->end_ns > ev->start_ns ? ev->end_ns - ev->start_ns : 0;
}

/* Whether a is worth less than b: shorter; at the same length deeper, so that parents stay. */
static bool less(const struct kept *a, const struct kept *b)
{
	uint64_t na = event_ns(&a->ev), nb = event_ns(&b->ev);

	if (na != nb)
		return na < nb;
	if (a->ev.depth != b->ev.depth)
		return a->ev.depth > b->ev.depth;
	return a->seq > b->seq;
}

static void sift_down(struct keeper *k, struct kept x)
{
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < k->n; i = child) {
		if (child + 1 < k->n && less(&k->heap[child + 1], &k->heap[child]))
			child++;
		if (!less(&k->heap[child], &x))
			break;
		k->heap[i] = k->heap[child];
	}
	k->heap[i] = x;
}

static int keep(struct keeper *k, const struct event *ev)
{
	struct kept x = {*ev, k->seen++};
	size_t i;

	if (k->n == k->max) {
		if (less(&k->heap[0], &x))
			sift_down(k, x);
		return 0;
	}
	if (k->n == k->cap) {
		size_t cap = k->cap ? 2 * k->cap : 64;
		struct kept *h = realloc(k->heap, cap * sizeof(*h));

		if (!h)
			return -ENOMEM;
		k->heap = h;
		k->cap = cap;
	}
	for (i = k->n++; i && less(&x, &k->heap[(i - 1) / 2]); i = (i - 1) / 2)
		k->heap[i] = k->heap[(i - 1) / 2];
	k->heap[i] = x;
	return 0;
}

static int compare_seq(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* In the order in which they began: parents first, siblings turned round. */
static int order(struct keeper *k, struct an_tree *t)
{
	size_t *parent = calloc(k->n, sizeof(*parent)), *child = calloc(k->n, sizeof(*child));
	size_t *next = calloc(k->n, sizeof(*next)), at = 0;
	int err = -ENOMEM;

	t->events = malloc(k->n * sizeof(*t->events));
	if (!parent || !child || !next || !t->events)
		goto out;
	qsort(k->heap, k->n, sizeof(*k->heap), compare_seq);
	for (size_t i = 1; i < k->n; i++) {
		size_t up = i - 1;

		while (up && k->heap[up].ev.depth >= k->heap[i].ev.depth)
			up = parent[up];
		parent[i] = up;
		next[i] = child[up]; /* 0: none, nobody's child is the outermost */
		child[up] = i;
	}
	for (;;) {
		t->events[t->n++] = k->heap[at].ev;
		if (child[at]) {
			at = child[at];
			continue;
		}
		while (at && !next[at])
			at = parent[at];
		if (!at)
			break;
		at = next[at];
	}
	err = 0;
out:
	free(parent);
	free(child);
	free(next);
	return err;
}

static bool same_event(const struct event *a, const struct event *b)
{
	return a->kind == b->kind && a->span == b->span && a->start_ns == b->start_ns &&
	       a->end_ns == b->end_ns && a->depth == b->depth && a->node == b->node;
}

/* All inside `root`. */
static int gather_tree(struct an_build *b, const struct event *root, struct an_tree *t,
		       struct err *e)
{
	struct keeper k = {.max = b->opts.tree_max};
	const struct event *ev;
	bool done = false;
	int err, more = 0;
	size_t n;

	err = trace_reader__start(b->reader, root->thread, true);
	if (err)
		return err_set(e, err, "cannot read the trace: %s", strerror(-err));
	trace_reader__between(b->reader, root->start_ns, root->end_ns);
	while (!err && !done && (more = trace_reader__next(b->reader, &ev, &n, e)) > 0)
		while (!err && !done && n-- > 0) {
			if (!k.n) {
				if (same_event(&ev[n], root))
					err = keep(&k, root);
				continue;
			}
			if (ev[n].kind != EVENT_SPAN && ev[n].kind != EVENT_INSTANT &&
			    ev[n].kind != EVENT_VALUE)
				continue;
			done = ev[n].depth <= root->depth;
			if (!done && ev[n].end_ns >= ev[n].start_ns)
				err = keep(&k, &ev[n]);
		}
	if (!err && more < 0) {
		free(k.heap);
		return more;
	}
	if (!err && k.n)
		err = order(&k, t);
	t->left_out = k.seen - k.n;
	free(k.heap);
	return err ? err_set(e, err, "out of memory") : 0;
}

/* The greatest of the spans directly inside events[at]; n: there is none. */
static size_t greatest_child(const struct an_tree *t, size_t at)
{
	uint32_t depth = UINT32_MAX;
	size_t best = t->n;

	for (size_t i = at + 1; i < t->n && t->events[i].depth > t->events[at].depth; i++) {
		/* Not deeper than its elder sibling: the span between may not be in the file. */
		if (t->events[i].depth > depth)
			continue;
		depth = t->events[i].depth;
		if (t->events[i].kind == EVENT_SPAN &&
		    (best == t->n || event_ns(&t->events[i]) > event_ns(&t->events[best])))
			best = i;
	}
	return best;
}

static int find_path(const struct an_tree *t, struct an_path *p)
{
	uint64_t whole;

	if (!t->n)
		return 0;
	p->root = t->events[0];
	whole = event_ns(&p->root);
	for (size_t at = 0; at < t->n; at = greatest_child(t, at)) {
		uint64_t ns = event_ns(&t->events[at]), inside = t->events[at].child_ns;
		struct an_step *steps = realloc(p->steps, (p->n + 1) * sizeof(*steps));

		if (!steps)
			return -ENOMEM;
		p->steps = steps;
		steps[p->n++] = (struct an_step){
		    .span = t->events[at].span,
		    .ns = ns,
		    .self_ns = ns > inside ? ns - inside : 0,
		    .share = whole ? (double)ns / (double)whole
			     : at  ? 0
				   : 1,
		};
	}
	return 0;
}

/* The first instance of the root span whose duration is the median, else the nearest to it. */
static int find_median(struct an_build *b, struct event *median, struct err *e)
{
	const struct dist *d = b->a.spans[b->a.root - 1].dist;
	uint64_t want = (uint64_t)dist__rank(d, (dist__count(d) + 1) / 2), best = UINT64_MAX;
	/* A distribution that gave up bits tells no duration that ever was. */
	uint64_t near = dist__exact(d) ? 0 : want >> 12;
	const struct an_gather *g = &b->gather[b->a.root - 1];
	const struct event *ev;
	uint16_t deepest = 0;
	int err, more = 1;
	size_t n;

	for (size_t i = 0; i < g->nslowest; i++)
		deepest = g->slowest[i].ev.depth > deepest ? g->slowest[i].ev.depth : deepest;
	err = trace_reader__start(b->reader, TRACE_ALL_THREADS, false);
	if (err)
		return err_set(e, err, "cannot read the trace: %s", strerror(-err));
	while (best > near && (more = trace_reader__next(b->reader, &ev, &n, e)) > 0)
		for (size_t i = 0; i < n && best > near; i++) {
			uint64_t ns = event_ns(&ev[i]), off = ns > want ? ns - want : want - ns;

			if (ev[i].kind != EVENT_SPAN || ev[i].span != b->a.root || off >= best ||
			    ev[i].end_ns < ev[i].start_ns || ev[i].thread >= b->info->nthreads ||
			    (!b->root && ev[i].depth > deepest))
				continue;
			best = off;
			*median = ev[i];
		}
	return more < 0 ? more : best != UINT64_MAX;
}

static int compare_instances(const void *pa, const void *pb)
{
	const struct an_instance *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return a->ev.start_ns < b->ev.start_ns ? -1 : a->ev.start_ns > b->ev.start_ns;
}

static void choose_root(struct an_build *b)
{
	uint64_t most = 0;

	b->a.root = b->root && b->gather[b->root - 1].outer ? b->root : 0;
	for (size_t i = 0; !b->root && i < b->info->nspans; i++)
		if (b->gather[i].outer && (!b->a.root || b->gather[i].outer_ns > most)) {
			most = b->gather[i].outer_ns;
			b->a.root = i + 1;
		}
}

int an__trees(struct an_build *b, struct err *e)
{
	struct analysis *a = &b->a;
	struct event median;
	struct an_gather *g;
	int err = 0;

	choose_root(b);
	if (!a->root || !b->opts.slowest)
		return 0;
	g = &b->gather[a->root - 1];
	qsort(g->slowest, g->nslowest, sizeof(*g->slowest), compare_instances);
	a->slowest = calloc(g->nslowest, sizeof(*a->slowest));
	if (!a->slowest)
		return err_set(e, -ENOMEM, "out of memory");
	for (; a->nslowest < g->nslowest && !err; a->nslowest++)
		err = gather_tree(b, &g->slowest[a->nslowest].ev, &a->slowest[a->nslowest], e);
	if (!err)
		err = find_median(b, &median, e);
	if (err > 0)
		err = gather_tree(b, &median, &a->median, e);
	if (err)
		return err;
	if (find_path(&a->slowest[0], &a->slowest_path) || find_path(&a->median, &a->median_path))
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tree.c - links a snapshot's flat nodes into the calling-context tree.
 *
 * A parent's id is always below its children's, because the kernel numbers nodes in order of
 * first appearance; anything else (a node read before its parent was) hangs off the root.
 *
 * A frame that is still open (a program's main loop) has no time of its own yet while its
 * children have; the time that shares refer to is therefore the greater of a node's own total
 * and its children's, so that no share exceeds 1.
 */
#include <stdlib.h>
#include <string.h>

#include "model/tree.h"

struct linked {
	struct tree_node n; /* first: a tree_node is its linked node */
	double time_ns;	    /* total, or the children's if that is more */
	double child_ns;
};

struct tree {
	struct linked root;
	struct linked *nodes;
	struct linked **order;
	size_t n;
};

static int compare_siblings(const void *pa, const void *pb)
{
	const struct linked *a = *(struct linked *const *)pa, *b = *(struct linked *const *)pb;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? 1 : -1;
	if (a->n.node->count != b->n.node->count)
		return a->n.node->count < b->n.node->count ? 1 : -1;
	return a->n.node->id < b->n.node->id ? -1 : a->n.node->id > b->n.node->id;
}

static struct linked *find_node(struct tree *t, uint32_t id)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->nodes[mid].n.node->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && t->nodes[lo].n.node->id == id ? &t->nodes[lo] : NULL;
}

static void link_parents(struct tree *t, const struct snapshot *s)
{
	for (size_t i = 0; i < t->n; i++) {
		struct linked *l = &t->nodes[i], *parent = &t->root;
		const struct snap_node *node = l->n.node;

		if (node->parent != QBPF_NODE_ROOT && node->parent < node->id) {
			parent = find_node(t, node->parent);
			parent = parent ? parent : &t->root;
		}
		l->n.parent = &parent->n;
		l->n.depth = parent == &t->root ? 0 : parent->n.depth + 1;
		l->n.span = node->span < s->nspans ? &s->spans[node->span] : NULL;
		l->n.name = l->n.span ? l->n.span->name : "?";
		t->order[i] = l;
	}
}

struct tree *tree__new(const struct snapshot *s)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->n = s->nnodes;
	t->nodes = calloc(t->n + 1, sizeof(*t->nodes));
	t->order = calloc(t->n + 1, sizeof(*t->order));
	if (!t->nodes || !t->order) {
		tree__free(t);
		return NULL;
	}
	t->root.n.name = "";
	for (size_t i = 0; i < t->n; i++)
		t->nodes[i].n.node = &s->nodes[i];
	link_parents(t, s);
	/* Children come after their parents, so their sums are complete when a parent's turn comes.
	 */
	for (size_t i = t->n; i-- > 0;) {
		struct linked *l = &t->nodes[i];
		double own = l->n.node->total_ns;

		l->time_ns = own > l->child_ns ? own : l->child_ns;
		((struct linked *)l->n.parent)->child_ns += l->time_ns;
	}
	qsort(t->order, t->n, sizeof(*t->order), compare_siblings);
	/* Pushed to the front, so from the last to the first. */
	for (size_t i = t->n; i-- > 0;) {
		struct linked *l = t->order[i];

		l->n.next_sibling = l->n.parent->first_child;
		l->n.parent->first_child = &l->n;
		l->n.share = t->root.child_ns > 0 ? l->time_ns / t->root.child_ns : 0;
	}
	t->root.n.share = 1;
	return t;
}

void tree__free(struct tree *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t->order);
	free(t);
}

const struct tree_node *tree__root(const struct tree *t)
{
	return &t->root.n;
}

const struct tree_node *tree_node__next(const struct tree_node *n)
{
	if (n->first_child)
		return n->first_child;
	while (n && !n->next_sibling)
		n = n->parent;
	return n ? n->next_sibling : NULL;
}

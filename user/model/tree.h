/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calling-context tree of a snapshot, linked and ordered for walking. */
#ifndef QBPF_MODEL_TREE_H
#define QBPF_MODEL_TREE_H

#include "model/snapshot.h"

struct tree_node {
	const struct snap_node *node; /* NULL: the root */
	const char *name;
	struct tree_node *first_child, *next_sibling, *parent;
	unsigned int depth;	      /* 0: outermost spans; the root itself has none */
	double share;		      /* of the roots' total time, 0..1 */
	const struct snap_span *span; /* NULL: the root, or an index beyond the snapshot */
};

struct tree;
struct tree *tree__new(const struct snapshot *s); /* s must outlive it */
void tree__free(struct tree *t);
/* Children are ordered by total time, greatest first. */
const struct tree_node *tree__root(const struct tree *t);
/* Depth-first order, for views: the next node or NULL. */
const struct tree_node *tree_node__next(const struct tree_node *n);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A table of text cells, laid out when all of it is known: the first column is on the left, the others
 * are as wide as their contents, on the right. When the whole is too wide, columns that can be spared are
 * left out, and the names in the first one are cut, so that they stay different.
 */
#ifndef QBPF_OUT_GRID_H
#define QBPF_OUT_GRID_H

#include <stdio.h>

#include "model/tree.h"

struct grid;

struct grid *grid__new(size_t columns);
void grid__free(struct grid *g);

/* Fills the next row cell by cell; column 0 begins a row. Out of memory is told by write. */
void grid__put(struct grid *g, size_t column, const char *text);
/* Column 0 with a prefix that is never cut. */
void grid__put_tree(struct grid *g, const char *prefix, const char *name);

/* Columns that may be left out for want of room, in this order, those before the name's; the headings
 * (row 0) of those that were are named below the table. */
void grid__spare(struct grid *g, const unsigned char *columns, size_t n);

/* Foreign text is made printable here. 0 or -ENOMEM. */
int grid__write(const struct grid *g, FILE *f, unsigned int width, bool utf8);

/*
 * The lines that lead to a node of the tree, at most TREE_LEVELS of them; a node below those
 * has its depth as a number instead, so that deep recursion stays on the page.
 */
#define TREE_LEVELS 12
#define TREE_PREFIX (TREE_LEVELS * 8 + 16)
char *tree_prefix(char buf[TREE_PREFIX], const struct tree_node *n, bool utf8);

#endif

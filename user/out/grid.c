/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* grid.c - lays out tables of text cells, and the branch lines of a tree. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/grid.h"
#include "out/text.h"

#define NAME_MIN 16

struct cell {
	char *text;
	char *prefix;
};

struct grid {
	size_t columns, rows, cap;
	struct cell *cells;
	bool failed;
};

struct grid *grid__new(size_t columns)
{
	struct grid *g = calloc(1, sizeof(*g));

	if (g)
		g->columns = columns;
	return g;
}

void grid__free(struct grid *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->rows * g->columns; i++) {
		free(g->cells[i].text);
		free(g->cells[i].prefix);
	}
	free(g->cells);
	free(g);
}

static struct cell *cell_at(struct grid *g, size_t column)
{
	if (column == 0) {
		if (g->rows == g->cap) {
			size_t cap = g->cap ? 2 * g->cap : 16;
			struct cell *c = realloc(g->cells, cap * g->columns * sizeof(*c));

			if (!c) {
				g->failed = true;
				return NULL;
			}
			g->cells = c;
			g->cap = cap;
		}
		memset(&g->cells[g->rows * g->columns], 0, g->columns * sizeof(*g->cells));
		g->rows++;
	}
	return g->rows ? &g->cells[(g->rows - 1) * g->columns + column] : NULL;
}

void grid__put(struct grid *g, size_t column, const char *text)
{
	struct cell *c = g->failed ? NULL : cell_at(g, column);

	if (!c)
		return;
	free(c->text);
	c->text = strdup(text);
	g->failed |= !c->text;
}

void grid__put_tree(struct grid *g, const char *prefix, const char *name)
{
	struct cell *c;

	grid__put(g, 0, name);
	if (g->failed)
		return;
	c = &g->cells[(g->rows - 1) * g->columns];
	c->prefix = strdup(prefix);
	g->failed |= !c->prefix;
}

static unsigned int name_width(const struct cell *c, bool utf8)
{
	char *clean = text__printable(c->text, utf8);
	unsigned int w = clean ? text__width(clean, utf8) : 0;

	free(clean);
	return w + (c->prefix ? text__width(c->prefix, utf8) : 0);
}

/* The widest name when all must fit in `width`: those that gave way may leave room over. */
static unsigned int fitted_width(const struct grid *g, unsigned int width, bool utf8)
{
	unsigned int most = 0;

	for (size_t row = 0; row < g->rows; row++) {
		const struct cell *c = &g->cells[row * g->columns];
		unsigned int used = c->prefix ? text__width(c->prefix, utf8) : 0;
		char *clean = text__printable(c->text, utf8), *fit = NULL;

		used = used < width ? used : width;
		if (clean)
			fit = text__fit_name(clean, width - used, utf8);
		used += fit ? text__width(fit, utf8) : 0;
		most = used > most ? used : most;
		free(clean);
		free(fit);
	}
	return most;
}

static int write_name(const struct cell *c, FILE *f, unsigned int width, bool utf8)
{
	unsigned int used = c->prefix ? text__width(c->prefix, utf8) : 0;
	char *clean = text__printable(c->text, utf8), *fit = NULL;

	used = used < width ? used : width;
	if (clean)
		fit = text__fit_name(clean, width - used, utf8);
	free(clean);
	if (!fit)
		return -ENOMEM;
	fputs(c->prefix ? c->prefix : "", f);
	text__pad(f, fit, width - used, false, utf8);
	free(fit);
	return 0;
}

int grid__write(const struct grid *g, FILE *f, unsigned int width, bool utf8)
{
	unsigned int *widths, others = 0, name = 0, prefix = 0, least;
	int err = 0;

	if (g->failed)
		return -ENOMEM;
	widths = calloc(g->columns, sizeof(*widths));
	if (!widths)
		return -ENOMEM;
	for (size_t row = 0; row < g->rows; row++) {
		const struct cell *c = &g->cells[row * g->columns];
		unsigned int w = name_width(c, utf8);

		name = w > name ? w : name;
		if (c->prefix) {
			w = text__width(c->prefix, utf8);
			prefix = w > prefix ? w : prefix;
		}
		for (size_t i = 1; i < g->columns; i++) {
			w = c[i].text ? text__width(c[i].text, utf8) : 0;
			widths[i] = w > widths[i] ? w : widths[i];
		}
	}
	for (size_t i = 1; i < g->columns; i++)
		others += widths[i] + 2;
	least = name < NAME_MIN + prefix ? name : NAME_MIN + prefix;
	if (name + others > width)
		name = width > others ? width - others : 0;
	name = name < least ? least : name;
	name = fitted_width(g, name, utf8);
	for (size_t row = 0; row < g->rows && !err; row++) {
		const struct cell *c = &g->cells[row * g->columns];

		err = write_name(c, f, name, utf8);
		for (size_t i = 1; i < g->columns; i++) {
			fputs("  ", f);
			text__pad(f, c[i].text ? c[i].text : "", widths[i], true, utf8);
		}
		fputc('\n', f);
	}
	free(widths);
	return err;
}

char *tree_prefix(char buf[TREE_PREFIX], const struct tree_node *n, bool utf8)
{
	const char *const branch[] = {utf8 ? "\xe2\x94\x9c\xe2\x94\x80 " : "|- ",
				      utf8 ? "\xe2\x94\x94\xe2\x94\x80 " : "`- "};
	const char *const pass[] = {utf8 ? "\xe2\x94\x82  " : "|  ", "   "};
	const struct tree_node *path[TREE_LEVELS];
	unsigned int depth = n->depth, used = 0;

	buf[0] = '\0';
	if (depth > TREE_LEVELS) {
		snprintf(buf, TREE_PREFIX, "%*s%u: ", 3 * (TREE_LEVELS - 1), "", depth);
		return buf;
	}
	for (unsigned int d = depth; d-- > 0; n = n->parent)
		path[d] = n;
	for (unsigned int d = 0; d < depth; d++) {
		bool last = !path[d]->next_sibling;

		used += snprintf(buf + used, TREE_PREFIX - used, "%s",
				 d + 1 == depth ? branch[last] : pass[last]);
	}
	return buf;
}

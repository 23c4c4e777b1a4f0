/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* grid.c - lays out tables of text cells, and the branch lines of a tree. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/grid.h"
#include "out/names.h"
#include "out/text.h"

#define NAME_MIN       16 /* columns that a name has at the least */
#define NAME_GOOD      30 /* the same, as long as there is a column to spare */
#define GRID_SPARE_MAX 16

struct cell {
	char *text;
	char *prefix;
};

struct grid {
	size_t columns, rows, cap;
	struct cell *cells;
	unsigned char spare[GRID_SPARE_MAX];
	size_t nspare;
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

void grid__spare(struct grid *g, const unsigned char *columns, size_t n)
{
	for (size_t i = 0; g && i < n && g->nspare < GRID_SPARE_MAX; i++)
		g->spare[g->nspare++] = columns[i];
}

/* --- what goes into a width --------------------------------------------------------------------- */

struct layout {
	char **clean, **fits; /* by row: the names as they are, and as they are shown */
	unsigned int *used;   /* by row: of the prefix */
	unsigned int *rooms;
	unsigned int *widths; /* by column */
	bool *left_out;
	unsigned int name; /* columns of the first column, prefix included */
};

static void layout__free(const struct grid *g, struct layout *l)
{
	for (size_t i = 0; i < g->rows; i++) {
		if (l->clean)
			free(l->clean[i]);
		if (l->fits)
			free(l->fits[i]);
	}
	free(l->clean);
	free(l->fits);
	free(l->used);
	free(l->rooms);
	free(l->widths);
	free(l->left_out);
}

static int layout__open(const struct grid *g, struct layout *l, bool utf8)
{
	l->clean = calloc(g->rows + 1, sizeof(*l->clean));
	l->fits = calloc(g->rows + 1, sizeof(*l->fits));
	l->used = calloc(g->rows + 1, sizeof(*l->used));
	l->rooms = calloc(g->rows + 1, sizeof(*l->rooms));
	l->widths = calloc(g->columns, sizeof(*l->widths));
	l->left_out = calloc(g->columns, sizeof(*l->left_out));
	if (!l->clean || !l->fits || !l->used || !l->rooms || !l->widths || !l->left_out)
		return -ENOMEM;
	for (size_t row = 0; row < g->rows; row++) {
		const struct cell *c = &g->cells[row * g->columns];
		unsigned int w;

		l->clean[row] = text__printable(c->text, utf8);
		if (!l->clean[row])
			return -ENOMEM;
		l->used[row] = c->prefix ? text__width(c->prefix, utf8) : 0;
		w = l->used[row] + text__width(l->clean[row], utf8);
		l->name = w > l->name ? w : l->name;
		for (size_t i = 1; i < g->columns; i++) {
			w = c[i].text ? text__width(c[i].text, utf8) : 0;
			l->widths[i] = w > l->widths[i] ? w : l->widths[i];
		}
	}
	return 0;
}

/* Cuts the names to `width` columns; *alike: see names__fit. */
static int fit_names(const struct grid *g, struct layout *l, unsigned int width, bool utf8,
		     size_t *alike)
{
	unsigned int most = 0, w;
	int err;

	for (size_t row = 0; row < g->rows; row++) {
		free(l->fits[row]);
		l->fits[row] = NULL;
		l->used[row] = l->used[row] < width ? l->used[row] : width;
		l->rooms[row] = width - l->used[row];
	}
	err = names__fit((const char *const *)l->clean, l->rooms, g->rows, utf8, l->fits, alike);
	/* Those that gave way may leave room over. */
	for (size_t row = 0; row < g->rows && !err; row++) {
		w = l->used[row] + text__width(l->fits[row], utf8);
		most = w > most ? w : most;
	}
	l->name = most;
	return err;
}

static unsigned int others_width(const struct grid *g, const struct layout *l)
{
	unsigned int others = 0;

	for (size_t i = 1; i < g->columns; i++)
		others += l->left_out[i] ? 0 : l->widths[i] + 2;
	return others;
}

/*
 * First columns are left out until names have what makes them readable, then names are cut to what is
 * left; where some then look alike, the next column gives way to them.
 */
static int layout__fit(const struct grid *g, struct layout *l, unsigned int width, bool utf8)
{
	unsigned int name = l->name, prefix = 0, least, wanted, room;
	size_t spared = 0, alike = 0;
	int err;

	for (size_t row = 0; row < g->rows; row++)
		prefix = l->used[row] > prefix ? l->used[row] : prefix;
	least = name < NAME_MIN + prefix ? name : NAME_MIN + prefix;
	wanted = name;
	if (g->nspare && name > NAME_GOOD + prefix) {
		err = fit_names(g, l, NAME_GOOD + prefix, utf8, &alike);
		if (err)
			return err;
		wanted = l->name;
	}
	while (spared < g->nspare && wanted + others_width(g, l) > width)
		l->left_out[g->spare[spared++]] = true;
	for (;;) {
		room = width > others_width(g, l) ? width - others_width(g, l) : 0;
		room = room < least ? least : room;
		err = fit_names(g, l, room < name ? room : name, utf8, &alike);
		if (err || !alike || spared == g->nspare)
			return err;
		l->left_out[g->spare[spared++]] = true;
	}
}

/* The headings of what was left out. */
static void write_left_out(const struct grid *g, const struct layout *l, FILE *f,
			   unsigned int width, bool utf8)
{
	char *text = NULL;
	bool any = false;
	size_t len;
	FILE *m = open_memstream(&text, &len);

	if (!m)
		return;
	for (size_t i = 1; i < g->columns; i++) {
		if (!l->left_out[i])
			continue;
		fprintf(m, "%s%s", any ? ", " : "(no room for ", g->cells[i].text);
		any = true;
	}
	if (any)
		fputc(')', m);
	if (!fclose(m) && any)
		text__wrap(f, text, width, 0, utf8);
	free(text);
}

int grid__write(const struct grid *g, FILE *f, unsigned int width, bool utf8)
{
	struct layout l = {0};
	int err;

	if (g->failed)
		return -ENOMEM;
	err = layout__open(g, &l, utf8);
	if (!err)
		err = layout__fit(g, &l, width, utf8);
	for (size_t row = 0; row < g->rows && !err; row++) {
		const struct cell *c = &g->cells[row * g->columns];

		fputs(c->prefix ? c->prefix : "", f);
		text__pad(f, l.fits[row], l.name - l.used[row], false, utf8);
		for (size_t i = 1; i < g->columns; i++) {
			if (l.left_out[i])
				continue;
			fputs("  ", f);
			text__pad(f, c[i].text ? c[i].text : "", l.widths[i], true, utf8);
		}
		fputc('\n', f);
	}
	if (!err)
		write_left_out(g, &l, f, width, utf8);
	layout__free(g, &l);
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

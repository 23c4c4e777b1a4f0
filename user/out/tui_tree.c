/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tui_tree.c - the page of the call tree, foldable. */
#include <string.h>

#include "out/grid.h"
#include "out/text.h"
#include "out/tui_impl.h"

#define FIGURE	 9
#define NAME_MIN 24

static const enum node_field columns_in_order[] = {NF_COUNT, NF_SUM, NF_SELF, NF_MIN,
						   NF_MEAN,  NF_MAX, NF_SHARE};
#define COLUMNS (sizeof(columns_in_order) / sizeof(columns_in_order[0]))

/* Figures leave in this order when the screen is narrow. */
static const enum node_field leaving[] = {NF_MIN,   NF_MAX,   NF_MEAN, NF_SELF,
					  NF_SHARE, NF_COUNT, NF_SUM};

struct layout {
	bool shown[NF_N];
	int width[NF_N];
	int name;
};

static const char *mark_of(const struct tui *t, const struct tree_node *n)
{
	bool folded = !*t->filter && tui_view__folded(t, n->node->id);

	return !n->first_child ? "" : folded ? "+ " : "- ";
}

static const char *name_of(const struct tree_node *n)
{
	return n->name ? n->name : "?";
}

/* The columns of the longest name with what stands before it, and a blank. */
static int longest_name(const struct tui *t)
{
	char prefix[TREE_PREFIX];
	int most = NAME_MIN;

	for (size_t i = 0; i < t->nodes.n; i++) {
		const struct tree_node *n = t->open_nodes[i];
		int w = tui_width(t, tree_prefix(prefix, n, t->utf8)) + (int)strlen(mark_of(t, n)) +
			tui_width(t, name_of(n)) + 1;

		most = w > most ? w : most;
	}
	return most;
}

static void lay_out(const struct tui *t, struct layout *l)
{
	char buf[UNIT_TEXT];
	int used = 0, least = t->cols_n < 2 * NAME_MIN ? t->cols_n / 2 : NAME_MIN;
	int longest = longest_name(t);

	for (size_t c = 0; c < COLUMNS; c++) {
		enum node_field f = columns_in_order[c];

		l->shown[f] = true;
		l->width[f] = FIGURE;
		for (size_t i = 0; f == NF_COUNT && i < t->nodes.n; i++) {
			uint64_t n = t->open_nodes[i]->node->count;
			int w = (int)strlen(unit__count(buf, n)) + 1;

			l->width[f] = w > l->width[f] ? w : l->width[f];
		}
		used += l->width[f];
	}
	for (size_t i = 0; used + least > t->cols_n && i < COLUMNS; i++) {
		l->shown[leaving[i]] = false;
		used -= l->width[leaving[i]];
	}
	l->name = t->cols_n - used < longest ? t->cols_n - used : longest;
}

static void draw_heading(struct tui *t, const struct layout *l, int y)
{
	int x = l->name;

	tui_fill(t, y, A_UNDERLINE);
	tui_put(t, y, 0, l->name - 1, A_UNDERLINE, node_fields[NF_NAME].heading);
	for (size_t c = 0; c < COLUMNS; c++) {
		enum node_field f = columns_in_order[c];

		if (!l->shown[f])
			continue;
		tui_put_right(t, y, x, l->width[f], A_UNDERLINE, node_fields[f].heading);
		x += l->width[f];
	}
}

static void draw_node(struct tui *t, const struct layout *l, const struct tree_node *n, int y,
		      bool selected)
{
	int attr = selected ? A_REVERSE : 0, x, used;
	char prefix[TREE_PREFIX], buf[UNIT_TEXT];

	if (selected)
		tui_fill(t, y, attr);
	used = tui_put(t, y, 0, l->name - 1, attr, tree_prefix(prefix, n, t->utf8));
	used += tui_put(t, y, used, l->name - 1 - used, attr, mark_of(t, n));
	tui_put_name(t, y, used, l->name - 1 - used, attr, name_of(n));
	x = l->name;
	for (size_t c = 0; c < COLUMNS; c++) {
		enum node_field f = columns_in_order[c];
		struct field_value v;

		if (!l->shown[f])
			continue;
		node_field__get(n, f, &v);
		tui_put_right(t, y, x, l->width[f], attr, field__format(&node_fields[f], &v, buf));
		x += l->width[f];
	}
}

void tui_tree__draw(struct tui *t, int y, int height)
{
	struct layout l = {0};

	lay_out(t, &l);
	draw_heading(t, &l, y);
	tui_list__fit(&t->nodes, t->nodes.n, height > 1 ? height - 1 : 0);
	for (size_t i = 0; i < t->nodes.height && t->nodes.top + i < t->nodes.n; i++)
		draw_node(t, &l, t->open_nodes[t->nodes.top + i], y + 1 + (int)i,
			  t->nodes.top + i == t->nodes.selected);
	if (!t->nodes.n)
		tui_put(t, y + 1, 0, t->cols_n, tui_colour(COLOUR_DIM),
			*t->filter ? "no node has this in its name" : "nothing yet");
}

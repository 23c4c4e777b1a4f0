/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tui_view.c - what the full-screen view shows: the newest snapshot less the one of the last
 * reset, its figures computed once, and the order that the person asked for.
 *
 * A selection sticks to its span or node, not to its line, so that it does not jump when the
 * order changes under it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "out/tui_impl.h"

const enum span_field tui_span_columns[TUI_SPAN_COLUMNS] = {
    SF_NAME, SF_COUNT, SF_RATE, SF_P50, SF_P90, SF_P99, SF_P999, SF_MAX, SF_SUM, SF_SHARE};

/* Rates are those of the time since the snapshot before: what happens now. */
static int update_rates(struct tui *t, const struct snapshot *s)
{
	uint64_t *counts = snapshot__counts(s);
	double *rates, seconds = (double)(s->now_ns - t->counts_ns) / 1e9;

	rates = calloc(s->nspans + 1, sizeof(*rates));
	if (!counts || !rates) {
		free(counts);
		free(rates);
		return -ENOMEM;
	}
	if (!t->counts_ns)
		seconds = snapshot__duration_s(s);
	for (size_t i = 0; i < s->nspans && seconds > 0; i++) {
		uint64_t before = t->counts && i < t->nrates ? t->counts[i] : 0;

		rates[i] = counts[i] > before ? (counts[i] - before) / seconds : 0;
	}
	free(t->counts);
	free(t->rates);
	t->counts = counts;
	t->rates = rates;
	t->nrates = s->nspans;
	t->counts_ns = s->now_ns;
	return 0;
}

static void clear_shown(struct tui *t)
{
	span_rows__clear(&t->rows);
	free(t->order);
	free(t->open_nodes);
	tree__free(t->tree);
	snapshot__free(t->shown);
	t->order = NULL;
	t->open_nodes = NULL;
	t->tree = NULL;
	t->shown = NULL;
}

static int grow_folded(struct tui *t, size_t n)
{
	uint8_t *p;

	if (n <= t->nfolded)
		return 0;
	p = realloc(t->folded, n);
	if (!p)
		return -ENOMEM;
	memset(p + t->nfolded, 0, n - t->nfolded);
	t->folded = p;
	t->nfolded = n;
	return 0;
}

/* Computes what is shown from last and base. */
static int show(struct tui *t)
{
	struct snapshot *s = t->base ? snapshot__since(t->last, t->base) : snapshot__clone(t->last);
	size_t ids;

	if (!s)
		return -ENOMEM;
	clear_shown(t);
	t->shown = s;
	t->tree = tree__new(s);
	t->order = calloc(s->nspans + 1, sizeof(*t->order));
	t->open_nodes = calloc(s->nnodes + 1, sizeof(*t->open_nodes));
	ids = s->nnodes ? (size_t)s->nodes[s->nnodes - 1].id + 1 : 0;
	if (!t->tree || !t->order || !t->open_nodes || span_rows__make(&t->rows, s, t->tree) ||
	    grow_folded(t, ids)) {
		clear_shown(t);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->rows.n && i < t->nrates; i++)
		t->rows.rows[i].rate = t->rates[i];
	tui_view__arrange(t);
	return 0;
}

int tui_view__take(struct tui *t, struct snapshot *s)
{
	int err;

	/* While paused the rates stand still too, and go on from here later. */
	err = t->paused ? 0 : update_rates(t, s);
	snapshot__free(t->last);
	t->last = s;
	if (!err && (!t->paused || !t->shown))
		err = show(t);
	return err;
}

int tui_view__reset(struct tui *t)
{
	struct snapshot *base;

	if (!t->last)
		return 0;
	base = snapshot__clone(t->last);
	if (!base)
		return -ENOMEM;
	snapshot__free(t->base);
	t->base = base;
	return show(t);
}

int tui_view__pause(struct tui *t, bool paused)
{
	t->paused = paused;
	return paused || !t->last ? 0 : show(t);
}

void tui_view__clear(struct tui *t)
{
	clear_shown(t);
	snapshot__free(t->last);
	snapshot__free(t->base);
	free(t->rates);
	free(t->counts);
	free(t->folded);
}

/* The view being sorted: qsort's comparison takes no argument of ours. */
static struct {
	enum span_field field;
	bool reverse;
} sorting;

/* Greatest first, names from A; what has no such figure comes last either way. */
static int compare_rows(const void *pa, const void *pb)
{
	const struct span_row *a = *(struct span_row *const *)pa,
			      *b = *(struct span_row *const *)pb;
	struct field_value va, vb;
	int c;

	span_field__get(a, sorting.field, &va);
	span_field__get(b, sorting.field, &vb);
	if ((va.state == FIELD_KNOWN) != (vb.state == FIELD_KNOWN))
		return va.state == FIELD_KNOWN ? -1 : 1;
	if (va.state != FIELD_KNOWN)
		c = 0;
	else if (span_fields[sorting.field].type == FIELD_TEXT)
		c = strcmp(va.text, vb.text);
	else if (a->class != b->class) /* ns and plain values do not compare */
		return a->class < b->class ? -1 : 1;
	else
		c = va.num > vb.num ? -1 : va.num < vb.num;
	if (sorting.reverse)
		c = -c;
	return c ? c : a->index < b->index ? -1 : a->index > b->index;
}

static bool matches(const struct tui *t, const char *name)
{
	return !*t->filter || (name && strcasestr(name, t->filter));
}

static void arrange_spans(struct tui *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->rows.n; i++)
		if (matches(t, t->rows.rows[i].span->name) && !span_row__refused(&t->rows.rows[i]))
			t->order[n++] = &t->rows.rows[i];
	sorting.field = tui_span_columns[t->sort];
	sorting.reverse = t->reverse;
	qsort(t->order, n, sizeof(*t->order), compare_rows);
	t->spans.n = n;
	if (t->spans.selected >= n)
		t->spans.selected = n ? n - 1 : 0;
	for (size_t i = 0; t->chosen && i < n; i++)
		if (t->order[i]->index == t->chosen_span)
			t->spans.selected = i;
}

bool tui_view__folded(const struct tui *t, uint32_t id)
{
	return id < t->nfolded && t->folded[id];
}

int tui_view__fold(struct tui *t, uint32_t id, bool folded)
{
	int err = grow_folded(t, (size_t)id + 1);

	if (err)
		return err;
	t->folded[id] = folded;
	tui_view__arrange(t);
	return 0;
}

/* Marks the nodes that match the filter, and their ancestors. malloc'ed, by id. */
static uint8_t *mark_matches(const struct tui *t)
{
	uint8_t *marked = calloc(t->nfolded + 1, 1);
	const struct tree_node *n;

	for (n = tree_node__next(tree__root(t->tree)); marked && n; n = tree_node__next(n))
		if (matches(t, n->name))
			for (const struct tree_node *up = n; up->node; up = up->parent)
				marked[up->node->id] = 1;
	return marked;
}

/* A filter opens what is folded. */
static void arrange_nodes(struct tui *t)
{
	uint8_t *marked = *t->filter ? mark_matches(t) : NULL;
	unsigned int folded_depth = ~0u;
	const struct tree_node *node;
	size_t n = 0;

	for (node = tree_node__next(tree__root(t->tree)); node; node = tree_node__next(node)) {
		uint32_t id = node->node->id;

		if (node->depth > folded_depth || (marked && !marked[id]))
			continue;
		folded_depth = !marked && tui_view__folded(t, id) ? node->depth : ~0u;
		t->open_nodes[n++] = node;
	}
	free(marked);
	t->nodes.n = n;
	if (t->nodes.selected >= n)
		t->nodes.selected = n ? n - 1 : 0;
	for (size_t i = 0; t->chosen_node && i < n; i++)
		if (t->open_nodes[i]->node->id == t->chosen_node)
			t->nodes.selected = i;
}

void tui_view__arrange(struct tui *t)
{
	if (!t->shown)
		return;
	arrange_spans(t);
	arrange_nodes(t);
}

const struct span_row *tui_view__selected(const struct tui *t)
{
	return t->spans.selected < t->spans.n ? t->order[t->spans.selected] : NULL;
}

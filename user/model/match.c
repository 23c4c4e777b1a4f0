/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * match.c - which item of one side is which of another.
 *
 * Spans match by name. A node matches a child of its parent's match that has the same name; parents
 * come before their children, so one walk suffices. Candidates are found in an array sorted by
 * (parent, name, index) and each is given away once.
 */
#include <stdlib.h>
#include <string.h>

#include "model/match.h"

struct candidate {
	const char *name;
	uint32_t parent; /* of a span SIDE_NONE - 1: spans are no outermost nodes */
	uint32_t item;
	bool taken;
};

#define OF_SPANS (SIDE_NONE - 1)

static int compare_key(const struct candidate *a, const struct candidate *b)
{
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;
	int c = compare_key(a, b);

	return c ? c : a->item < b->item ? -1 : a->item > b->item;
}

static uint32_t take(struct candidate *all, size_t n, const struct candidate *key)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_key(&all[mid], key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < n && !compare_key(&all[lo], key); lo++)
		if (!all[lo].taken) {
			all[lo].taken = true;
			return all[lo].item;
		}
	return SIDE_NONE;
}

uint32_t *side__match(const struct side *a, const struct side *b)
{
	struct candidate *all = calloc(a->n + 1, sizeof(*all));
	uint32_t *match = malloc((b->n + 1) * sizeof(*match));

	if (!all || !match) {
		free(all);
		free(match);
		return NULL;
	}
	for (size_t i = 0; i < a->n; i++)
		all[i] = (struct candidate){
		    .name = a->items[i].name,
		    .parent = a->items[i].node ? a->items[i].parent : OF_SPANS,
		    .item = i,
		};
	qsort(all, a->n, sizeof(*all), compare);
	for (size_t i = 0; i < b->n; i++) {
		const struct side_item *it = &b->items[i];
		struct candidate key = {.name = it->name, .parent = OF_SPANS};

		match[i] = SIDE_NONE;
		if (it->node)
			key.parent = it->parent;
		if (it->node && it->parent != SIDE_NONE) {
			key.parent = match[it->parent];
			if (key.parent == SIDE_NONE)
				continue; /* its parent is new, so it is */
		}
		match[i] = take(all, a->n, &key);
	}
	free(all);
	return match;
}

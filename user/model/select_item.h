/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which spans and places of the tree a rule means.
 *
 *	strategy:on_tick	the span of that name, wherever it runs
 *	on_tick			the same, while no other span is called so behind its provider
 *	strategy:*		each span that the glob takes
 *	strategy:on_tick/alpha	alpha directly inside on_tick, wherever that is
 *	/strategy:on_tick	on_tick as an outermost span
 *
 * Whole names go before globs, globs before abbreviations. A backslash makes the '/' of a name
 * plain.
 */
#ifndef QBPF_MODEL_SELECT_ITEM_H
#define QBPF_MODEL_SELECT_ITEM_H

#include "model/side.h"

struct selection {
	uint32_t *items;
	size_t n, cap;
	bool wild; /* the pattern is a glob */
};

/*
 * 0: the items, at least one. -ENOENT: nothing is called so; -ENOTUNIQ: an abbreviation that means
 * several; *why (malloc'ed, or NULL) says more, with names that resemble it. -ENOMEM.
 */
int side__select(const struct side *s, const char *pattern, struct selection *out, char **why);
void selection__clear(struct selection *sel);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* select_item.c - which spans and places of the tree a rule means. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/select_item.h"
#include "plan/cxxname.h"
#include "plan/glob.h"
#include "plan/near.h"
#include "plan/span_name.h"

#define PARTS_MAX 256 /* names of one path */

struct part {
	char *text;
	bool wild, has_provider;
	struct typed_name typed; /* text as a function's name */
};

struct path {
	struct part parts[PARTS_MAX];
	size_t n;
	bool anchored;
	char *text; /* what the parts point into */
};

/* How a name was found; each way is tried for all before the next. */
enum how { HOW_WHOLE, HOW_GLOB, HOW_SHORT, HOWS };

static bool part_is(const struct part *p, const char *name, enum how how)
{
	const char *rest = span_name__tail(name);

	switch (how) {
	case HOW_WHOLE:
		/* Without wildcards a glob is a name, less its backslashes. */
		return p->wild ? !strcmp(p->text, name) : glob_match(p->text, name);
	case HOW_GLOB:
		return p->wild && (glob_match(p->text, name) ||
				   (!p->has_provider && rest && glob_match(p->text, rest)));
	default:
		if (p->wild)
			return false;
		if (rest)
			return !p->has_provider && !strcmp(p->text, rest);
		return typed_name__is(&p->typed, name, name);
	}
}

/* Any of the ways up to `how`. */
static bool part_is_upto(const struct part *p, const char *name, enum how how)
{
	for (enum how h = HOW_WHOLE; h <= how; h++)
		if (part_is(p, name, h))
			return true;
	return false;
}

/* Ends each part at its '/' and takes the backslashes of "\/" away. */
static int path__parse(struct path *p, const char *pattern)
{
	const char *in = pattern;
	char *out;

	memset(p, 0, sizeof(*p));
	p->text = out = malloc(strlen(pattern) + 1);
	if (!out)
		return -ENOMEM;
	p->anchored = *in == '/';
	in += p->anchored;
	for (;;) {
		struct part *part = &p->parts[p->n];

		if (p->n == PARTS_MAX)
			return -ENOENT;
		part->text = out;
		while (*in && *in != '/') {
			if (in[0] == '\\' && in[1] == '/')
				in++;
			else if (in[0] == '\\' && in[1])
				*out++ = *in++;
			*out++ = *in++;
		}
		*out++ = '\0';
		part->wild = glob_is_wild(part->text);
		part->has_provider = span_name__tail(part->text);
		if (typed_name__parse(&part->typed, part->text))
			return -ENOMEM;
		p->n++;
		if (!*in++)
			return 0;
	}
}

static void path__clear(struct path *p)
{
	for (size_t i = 0; i < p->n; i++)
		typed_name__clear(&p->parts[i].typed);
	free(p->text);
}

static int take(struct selection *sel, size_t item)
{
	if (sel->n == sel->cap) {
		size_t cap = sel->cap ? sel->cap * 2 : 8;
		uint32_t *items = realloc(sel->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		sel->items = items;
		sel->cap = cap;
	}
	sel->items[sel->n++] = item;
	return 0;
}

static bool node_is(const struct side *s, const struct path *p, size_t node, enum how how)
{
	for (size_t k = p->n; k-- > 0;) {
		if (node == SIDE_NONE || !part_is_upto(&p->parts[k], s->items[node].name, how))
			return false;
		node = s->items[node].parent;
	}
	return !p->anchored || node == SIDE_NONE;
}

/* An abbreviation must mean one name. */
static bool same_names(const struct side *s, const struct path *p, size_t a, size_t b)
{
	for (size_t k = p->n; k-- > 0;) {
		if (!p->parts[k].wild && strcmp(s->items[a].name, s->items[b].name))
			return false;
		a = s->items[a].parent;
		b = s->items[b].parent;
	}
	return true;
}

static int select_how(const struct side *s, const struct path *p, bool nodes, enum how how,
		      struct selection *sel)
{
	for (size_t i = nodes ? s->nspans : 0; i < (nodes ? s->n : s->nspans); i++) {
		bool is = nodes ? node_is(s, p, i, how) : part_is(p->parts, s->items[i].name, how);

		if (is && take(sel, i))
			return -ENOMEM;
	}
	return 0;
}

/* Where the last name of a path is, if not there. malloc'ed; NULL: nowhere. */
static char *elsewhere(const struct side *s, const struct path *p)
{
	for (size_t i = s->nspans; i < s->n; i++)
		if (part_is_upto(&p->parts[p->n - 1], s->items[i].name, HOW_SHORT))
			return side__path(s, i);
	return NULL;
}

static void explain(const struct side *s, const struct path *p, const struct selection *sel,
		    char **why)
{
	struct nearest nr = {.want = p->parts[p->n - 1].text};
	bool place = p->n > 1 || p->anchored;
	char near[NEAR_TEXT], *path = place && !sel->n ? elsewhere(s, p) : NULL;
	size_t i = 1;

	if (sel->n) {
		while (same_names(s, p, sel->items[0], sel->items[i]))
			i++;
		if (asprintf(why, "it means %.200s and %.200s: write one of them, or a glob",
			     s->items[sel->items[0]].name, s->items[sel->items[i]].name) < 0)
			*why = NULL;
		return;
	}
	if (path) {
		if (asprintf(why, "no such place in the tree (there is %s)", path) < 0)
			*why = NULL;
		free(path);
		return;
	}
	nr.want_len = strnlen(nr.want, NEAR_MAX);
	for (i = 0; i < s->nspans; i++)
		nearest__offer_span(&nr, s->items[i].name);
	nearest__join(&nr, near, sizeof(near));
	if (asprintf(why, "no such %s%s%s%s", place ? "place in the tree" : "span",
		     *near ? " (did you mean " : "", near, *near ? "?)" : "") < 0)
		*why = NULL;
}

int side__select(const struct side *s, const char *pattern, struct selection *out, char **why)
{
	struct path *p = calloc(1, sizeof(*p));
	bool nodes;
	int err;

	memset(out, 0, sizeof(*out));
	*why = NULL;
	if (!p)
		return -ENOMEM;
	/* Whole names first, whatever is in them. */
	for (size_t i = 0; i < s->nspans; i++)
		if (!strcmp(s->items[i].name, pattern) && take(out, i)) {
			free(p);
			return -ENOMEM;
		}
	err = out->n ? 0 : path__parse(p, pattern);
	if (err || out->n)
		goto out;
	nodes = p->n > 1 || p->anchored;
	for (enum how how = HOW_WHOLE; how < HOWS && !err && !out->n; how++)
		err = select_how(s, p, nodes, how, out);
	for (size_t k = 0; k < p->n; k++)
		out->wild |= p->parts[k].wild;
	for (size_t i = 1; i < out->n && !err; i++)
		if (!same_names(s, p, out->items[0], out->items[i]))
			err = -ENOTUNIQ;
	if (!err && !out->n)
		err = -ENOENT;
	if (err == -ENOENT || err == -ENOTUNIQ)
		explain(s, p, out, why);
out:
	path__clear(p);
	free(p);
	return err;
}

void selection__clear(struct selection *sel)
{
	free(sel->items);
	memset(sel, 0, sizeof(*sel));
}

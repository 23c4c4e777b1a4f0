/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plan_unmatched(): patterns that took nothing, each with the names that resemble it most. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"
#include "plan/cxxname.h"
#include "plan/near.h"
#include "plan/pairing.h"
#include "plan/span_name.h"

/* Levenshtein; gives up with limit + 1. */
static unsigned int distance(const char *a, size_t na, const char *b, size_t nb, unsigned int limit)
{
	unsigned int row[NEAR_MAX + 1], diag, up, v, least;
	size_t i, j;

	if ((na > nb ? na - nb : nb - na) > limit)
		return limit + 1;
	for (j = 0; j <= nb; j++)
		row[j] = j;
	for (i = 1; i <= na; i++) {
		diag = row[0];
		least = row[0] = i;
		for (j = 1; j <= nb; j++) {
			up = row[j];
			v = diag + (a[i - 1] != b[j - 1]);
			if (up + 1 < v)
				v = up + 1;
			if (row[j - 1] + 1 < v)
				v = row[j - 1] + 1;
			row[j] = v;
			diag = up;
			if (v < least)
				least = v;
		}
		if (least > limit)
			return limit + 1;
	}
	return row[nb];
}

void nearest__offer(struct nearest *nr, const char *name, size_t len)
{
	unsigned int d, limit = nr->want_len / 3 + 1;
	size_t i;

	if (len > NEAR_MAX)
		len = NEAR_MAX;
	d = distance(nr->want, nr->want_len, name, len, limit);
	/* "fun" for "Foo::fun": worse than a slip of the finger, better than nothing. */
	if (d > limit && nr->want_len > 2 && memmem(name, len, nr->want, nr->want_len))
		d = limit + 1 + (len - nr->want_len);
	else if (d > limit)
		return;
	for (i = 0; i < nr->n; i++)
		if (!strncmp(nr->best[i].name, name, len) && !nr->best[i].name[len])
			return;
	for (i = nr->n; i > 0 && nr->best[i - 1].distance > d; i--)
		if (i < NEAR_N)
			nr->best[i] = nr->best[i - 1];
	if (i >= NEAR_N)
		return;
	memcpy(nr->best[i].name, name, len);
	nr->best[i].name[len] = '\0';
	nr->best[i].distance = d;
	if (nr->n < NEAR_N)
		nr->n++;
}

/* The name that the marker's span would have, if it is the begin of one. */
static size_t span_len(const char *name)
{
	static const char value[] = "__value";
	size_t i, base, len = strlen(name);

	for (i = 0; i < npair_rules; i++)
		if (pair_stem(name, pair_rules[i].begin, &base) > 0)
			return base;
	if (len >= sizeof(value) && !strcmp(name + len - (sizeof(value) - 1), value))
		return len - (sizeof(value) - 1);
	return 0;
}

static void offer_markers(struct nearest *nr, const struct plan_object *obj)
{
	const struct usdt_marker *m;
	char full[NEAR_MAX + 1];
	bool bare = !strchr(nr->want, ':');
	size_t i, len, skip;

	for (i = 0; obj->markers && i < obj->markers->n; i++) {
		m = &obj->markers->markers[i];
		snprintf(full, sizeof(full), "%s:%s", m->provider, m->name);
		skip = bare ? strlen(m->provider) + 1 : 0;
		if (skip >= sizeof(full))
			continue;
		len = span_len(m->name);
		if (len)
			nearest__offer(nr, full + skip,
				       strnlen(full, strlen(m->provider) + 1 + len) - skip);
		nearest__offer(nr, full + skip, strlen(full) - skip);
	}
}

static void offer_funcs(struct nearest *nr, const struct plan_object *obj)
{
	const struct elf_func *f;
	struct cxx_name part;
	const char *name;
	size_t i;

	for (i = 0; obj->funcs && i < obj->funcs->n; i++) {
		f = &obj->funcs->funcs[i];
		if (f->flags & (FUNC_IMPORTED | FUNC_COLD | FUNC_IFUNC))
			continue;
		name = func_name(obj->funcs, i);
		cxx_name__split(name, &part);
		nearest__offer(nr, name + part.name, part.params - part.name);
	}
}

void nearest__offer_span(struct nearest *nr, const char *name)
{
	const char *tail = span_name__tail(name);

	nearest__offer(nr, name, strlen(name));
	if (tail)
		nearest__offer(nr, tail, strlen(tail));
}

void nearest__join(const struct nearest *nr, char *out, size_t size)
{
	size_t i, at = 0;

	out[0] = '\0';
	for (i = 0; i < nr->n && at < size; i++)
		at += snprintf(out + at, size - at, "%s%s", i ? ", " : "", nr->best[i].name);
}

struct unmatched {
	const struct plan *p;
	const struct plan_object *objs;
	size_t n;
	void (*cb)(void *ctx, const char *option, const char *glob, const char *near);
	void *ctx;
	const char *option;
};

static void check(struct unmatched *u, const char *glob, bool markers, bool funcs)
{
	struct pattern pt;
	struct nearest nr = {0};
	char near[NEAR_TEXT];
	size_t i;

	if (plan__known(u->p, "used:%s %s", u->option, glob) || pattern__parse(&pt, glob))
		return;
	nr.want = pt.glob;
	nr.want_len = strnlen(pt.glob, NEAR_MAX);
	for (i = 0; i < u->n; i++) {
		if (!pattern__object(&pt, u->objs[i].path))
			continue;
		if (markers)
			offer_markers(&nr, &u->objs[i]);
		if (funcs)
			offer_funcs(&nr, &u->objs[i]);
	}
	nearest__join(&nr, near, sizeof(near));
	u->cb(u->ctx, u->option, glob, near);
	pattern__clear(&pt);
}

static void check_side(void *ctx, const char *side)
{
	check(ctx, side, true, true);
}

void plan_unmatched(const struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		    size_t n,
		    void (*cb)(void *ctx, const char *option, const char *glob, const char *near),
		    void *ctx)
{
	struct unmatched u = {.p = p, .objs = objs, .n = n, .cb = cb, .ctx = ctx};
	size_t i;

	for (u.option = "-u", i = 0; i < o->nmarkers; i++)
		check(&u, o->markers[i], true, false);
	for (u.option = "-f", i = 0; i < o->nfuncs; i++)
		check(&u, o->funcs[i], false, true);
	for (u.option = "-s", i = 0; i < o->nspans; i++)
		select_by_hand_sides(o->spans[i], check_side, &u);
}

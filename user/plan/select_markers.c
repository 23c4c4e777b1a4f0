/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * -u: the markers of each object, grouped by provider:name, paired, and turned into spans.
 *
 * A glob takes a pair when it matches the span's name, or the begin and at least one end by
 * their own names. A marker matched alone is an instant under its full name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"
#include "plan/pairing.h"

#define ENDS_MAX 8

/* All sites of one provider:name in one object. */
struct group {
	const struct usdt_marker **sites;
	size_t n;
	const char *provider, *name;
	struct group *ends[ENDS_MAX]; /* of a begin; NULL at the end */
	char *span;		      /* of a begin: the pair's name behind the provider */
	bool claimed;		      /* is the end of some begin */
	bool taken;		      /* matched by its own name */
};

struct groups {
	const struct usdt_marker **order;
	struct group *g;
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	const struct usdt_marker *x = *(const struct usdt_marker *const *)a;
	const struct usdt_marker *y = *(const struct usdt_marker *const *)b;
	int c = strcmp(x->provider, y->provider);

	if (!c)
		c = strcmp(x->name, y->name);
	return c ? c : (x > y) - (x < y);
}

static void groups__clear(struct groups *gs)
{
	size_t i;

	for (i = 0; i < gs->n; i++)
		free(gs->g[i].span);
	free(gs->g);
	free(gs->order);
}

static int groups__make(struct groups *gs, const struct usdt_table *t)
{
	struct group *g = NULL;
	size_t i;

	memset(gs, 0, sizeof(*gs));
	gs->order = calloc(t->n, sizeof(*gs->order));
	gs->g = calloc(t->n, sizeof(*gs->g));
	if (!gs->order || !gs->g)
		return -ENOMEM;
	for (i = 0; i < t->n; i++)
		gs->order[i] = &t->markers[i];
	qsort(gs->order, t->n, sizeof(*gs->order), by_name);
	for (i = 0; i < t->n; i++) {
		if (!g || strcmp(g->name, gs->order[i]->name) ||
		    strcmp(g->provider, gs->order[i]->provider)) {
			g = &gs->g[gs->n++];
			g->sites = &gs->order[i];
			g->provider = gs->order[i]->provider;
			g->name = gs->order[i]->name;
		}
		g->n++;
	}
	return 0;
}

static struct group *groups__find(const struct groups *gs, const char *provider, const char *name)
{
	size_t lo = 0, hi = gs->n, mid;
	int c;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		c = strcmp(provider, gs->g[mid].provider);
		if (!c)
			c = strcmp(name, gs->g[mid].name);
		if (!c)
			return &gs->g[mid];
		if (c < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

/* Claims for the begin b what ends of the rule there are. */
static int claim_ends(struct groups *gs, struct group *b, const struct pair_rule *r, int stem,
		      size_t base_len)
{
	struct group *end;
	size_t n = 0, i;
	char *name;

	for (i = 0; r->ends[i]; i++) {
		if (asprintf(&name, "%.*s%s", stem, b->name, r->ends[i]) < 0)
			return -ENOMEM;
		end = groups__find(gs, b->provider, name);
		free(name);
		if (!end || end->claimed)
			continue;
		end->claimed = true;
		b->ends[n++] = end;
	}
	if (!n)
		return 0;
	if (base_len)
		b->span = strndup(b->name, base_len);
	else if (asprintf(&b->span, "%s..%s", b->name, b->ends[0]->name) < 0)
		b->span = NULL; /* the words alone: named after both */
	return b->span ? 0 : -ENOMEM;
}

static int pair_up(struct groups *gs)
{
	size_t r, i, base_len;
	int stem, err;

	for (r = 0; r < npair_rules; r++) {
		for (i = 0; i < gs->n; i++) {
			stem = pair_stem(gs->g[i].name, pair_rules[r].begin, &base_len);
			if (stem < 0 || gs->g[i].claimed || gs->g[i].span)
				continue;
			err = claim_ends(gs, &gs->g[i], &pair_rules[r], stem, base_len);
			if (err)
				return err;
		}
	}
	return 0;
}

static int add_sites(struct plan *p, uint32_t span, const struct group *g, enum qbpf_role role,
		     uint32_t object)
{
	struct plan_site s;
	size_t i;
	int err;

	for (i = 0; i < g->n; i++) {
		memset(&s, 0, sizeof(s));
		s.span = span;
		s.object = object;
		s.role = role;
		s.addr = s.found_addr = g->sites[i]->addr;
		s.off = g->sites[i]->off;
		s.sema_off = g->sites[i]->sema_off;
		if (role == QBPF_ROLE_VALUE) {
			s.arg = g->sites[i]->args[0];
			s.has_arg = s.arg.kind != USDT_ARG_UNREADABLE;
			if (!s.has_arg) {
				err = plan__note(p, "%s:%s: arg0 is unreadable: %s", g->provider,
						 g->name, s.arg.why ? s.arg.why : "no known form");
				if (err)
					return err;
			}
		}
		err = plan__add_site(p, &s);
		if (err)
			return err;
	}
	return 0;
}

/* Has any -u taken this provider:name? Marks the globs that did. */
static int matches(struct plan *p, const struct pattern *pts, size_t npts, const char *path,
		   const char *provider, const char *name, bool *yes)
{
	size_t i;
	int err;

	*yes = !npts;
	for (i = 0; i < npts; i++) {
		if (!pattern__object(&pts[i], path) || !pattern__marker(&pts[i], provider, name))
			continue;
		*yes = true;
		err = plan__remember(p, 1, "used:-u %s", pts[i].text);
		if (err)
			return err;
	}
	return 0;
}

/* 0 with *span: a new span for provider:name of this object, or 0 if it already has one. */
static int new_span(struct plan *p, const char *provider, const char *name, enum span_kind kind,
		    uint32_t object, const char *path, uint32_t *span)
{
	char *full;
	int err = -ENOMEM;

	*span = 0;
	if (plan__known(p, "marker:%u:%s:%s", object, provider, name))
		return 0;
	/* QBPF_FUNC() is there to have a function under its own name. */
	if (!strcmp(provider, QBPF_FUNC_PROVIDER))
		full = strdup(name);
	else if (asprintf(&full, "%s:%s", provider, name) < 0)
		full = NULL;
	if (!full)
		return -ENOMEM;
	*span = plan__add_span(p, full, kind, object, path);
	if (*span)
		err = plan__remember(p, *span, "marker:%u:%s:%s", object, provider, name);
	free(full);
	return err;
}

static int add_pair(struct plan *p, const struct group *b, uint32_t object, const char *path)
{
	uint32_t span;
	size_t i;
	int err;

	err = new_span(p, b->provider, b->span, SPAN_MARKER, object, path, &span);
	if (err || !span)
		return err;
	err = add_sites(p, span, b, QBPF_ROLE_BEGIN, object);
	for (i = 0; !err && i < ENDS_MAX && b->ends[i]; i++)
		err = add_sites(p, span, b->ends[i], QBPF_ROLE_END, object);
	return err;
}

/* "name__value" with one argument; what is left of the name, or 0. */
static size_t value_stem(const struct group *g)
{
	static const char suffix[] = "__value";
	size_t len = strlen(g->name);

	if (len < sizeof(suffix) || strcmp(g->name + len - (sizeof(suffix) - 1), suffix))
		return 0;
	return g->sites[0]->nargs == 1 ? len - (sizeof(suffix) - 1) : 0;
}

/* Sites with integers and sites with doubles of one name are two spans: two histograms. */
static int add_values(struct plan *p, const struct group *g, size_t stem, uint32_t object,
		      const char *path)
{
	struct group part = *g;
	char *name, *key;
	uint32_t span;
	int kind, err = 0;
	size_t i;

	name = strndup(g->name, stem);
	part.sites = calloc(g->n, sizeof(*part.sites));
	if (!name || !part.sites)
		err = -ENOMEM;
	for (kind = 0; !err && kind < 2; kind++) {
		for (part.n = 0, i = 0; i < g->n; i++)
			if (g->sites[i]->args[0].is_float == kind)
				part.sites[part.n++] = g->sites[i];
		if (!part.n)
			continue;
		if (asprintf(&key, "%s%s", name, kind ? " f64" : "") < 0) {
			err = -ENOMEM;
			break;
		}
		if (!plan__known(p, "value:%u:%s:%s", object, g->provider, key)) {
			err = plan__remember(p, 1, "value:%u:%s:%s", object, g->provider, key);
			free(key);
			if (!err && asprintf(&key, "%s:%s", g->provider, name) < 0)
				err = -ENOMEM;
			if (err)
				break;
			span = plan__add_span(p, key, SPAN_VALUE, object, path);
			err = span ? 0 : -ENOMEM;
			if (span) {
				p->spans[span - 1].hist = kind ? QBPF_HIST_F64 : QBPF_HIST_INT;
				err = add_sites(p, span, &part, QBPF_ROLE_VALUE, object);
			}
		}
		free(key);
	}
	free(part.sites);
	free(name);
	return err;
}

static int add_single(struct plan *p, const struct group *g, uint32_t object, const char *path)
{
	size_t stem = value_stem(g);
	uint32_t span;
	int err;

	if (stem)
		return add_values(p, g, stem, object, path);
	err = new_span(p, g->provider, g->name, SPAN_INSTANT, object, path, &span);
	if (err || !span)
		return err;
	return add_sites(p, span, g, QBPF_ROLE_INSTANT, object);
}

/* Adds what the globs take of one object's groups. */
static int take_groups(struct plan *p, struct groups *gs, const struct pattern *pts, size_t npts,
		       uint32_t object, const char *path)
{
	struct group *g;
	bool yes, ends;
	size_t i, j, stem;
	char *name;
	int err;

	for (i = 0; i < gs->n; i++) {
		g = &gs->g[i];
		err = matches(p, pts, npts, path, g->provider, g->name, &g->taken);
		stem = value_stem(g);
		if (!err && !g->taken && stem) {
			name = strndup(g->name, stem);
			if (!name)
				return -ENOMEM;
			err = matches(p, pts, npts, path, g->provider, name, &g->taken);
			free(name);
		}
		if (err)
			return err;
	}
	for (i = 0; i < gs->n; i++) {
		g = &gs->g[i];
		if (!g->span)
			continue;
		err = matches(p, pts, npts, path, g->provider, g->span, &yes);
		if (err)
			return err;
		for (ends = false, j = 0; j < ENDS_MAX && g->ends[j]; j++)
			ends |= g->ends[j]->taken;
		if (!yes && !(g->taken && ends))
			continue;
		g->taken = false;
		for (j = 0; j < ENDS_MAX && g->ends[j]; j++)
			g->ends[j]->taken = false;
		err = add_pair(p, g, object, path);
		if (err)
			return err;
	}
	for (i = 0; i < gs->n; i++) {
		err = gs->g[i].taken ? add_single(p, &gs->g[i], object, path) : 0;
		if (err)
			return err;
	}
	return 0;
}

int select_markers(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		   size_t from, size_t n)
{
	bool all = !o->nmarkers && !o->nfuncs && !o->nspans;
	struct pattern *pts = NULL;
	struct groups gs;
	size_t i, npts = 0;
	int err = 0;

	if (!all && !o->nmarkers)
		return 0;
	pts = calloc(o->nmarkers + 1, sizeof(*pts));
	if (!pts)
		return -ENOMEM;
	for (; npts < o->nmarkers; npts++) {
		err = pattern__parse(&pts[npts], o->markers[npts]);
		if (err)
			goto out;
	}
	for (i = from; i < n; i++) {
		if (!objs[i].markers || !objs[i].markers->n || (all && objs[i].is_libc))
			continue;
		err = groups__make(&gs, objs[i].markers);
		if (!err)
			err = pair_up(&gs);
		if (!err)
			err = take_groups(p, &gs, pts, npts, i, objs[i].path);
		groups__clear(&gs);
		if (err)
			goto out;
	}
out:
	for (i = 0; i < npts; i++)
		pattern__clear(&pts[i]);
	free(pts);
	return err;
}

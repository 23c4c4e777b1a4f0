/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * -f: functions by name. A name means exactly that function (every overload, no namespace
 * guessed); only a pattern with * ? [ that names nothing literally is a glob. What cannot be
 * probed by its name (imported, IFUNC) becomes a note that says where to look instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"
#include "plan/cxxname.h"
#include "plan/glob.h"

static int push(struct func_hits *h, uint32_t idx)
{
	uint32_t *bigger;
	size_t cap;

	if (h->n == h->cap) {
		cap = h->cap ? h->cap * 2 : 64;
		bigger = reallocarray(h->idx, cap, sizeof(*h->idx));
		if (!bigger)
			return -ENOMEM;
		h->idx = bigger;
		h->cap = cap;
	}
	h->idx[h->n++] = idx;
	return 0;
}

const char *func_name(const struct func_table *t, size_t i)
{
	if (t->funcs[i].demangled)
		return t->funcs[i].demangled;
	/* The name is made on first use and kept: no one sees the table change. */
	return func_table__demangled((struct func_table *)(uintptr_t)t, i);
}

#define TOKENS_MAX 4

struct glob {
	const char *text;
	const char *token[TOKENS_MAX]; /* each stands in every raw name that can match */
	size_t len[TOKENS_MAX], n;
};

static bool glob_takes(const struct glob *g, const struct func_table *t, size_t i)
{
	const char *raw = t->funcs[i].name, *name;
	size_t k, len = strlen(raw);
	struct cxx_name part;

	if (!name_is_mangled(raw))
		return glob_match_n(g->text, raw, len);
	for (k = 0; k < g->n; k++)
		if (!memmem(raw, len, g->token[k], g->len[k]))
			return false;
	name = func_name(t, i);
	if (glob_match(g->text, name) || glob_match(g->text, raw))
		return true;
	cxx_name__split(name, &part);
	return glob_match_n(g->text, name + part.name, part.params - part.name) ||
	       glob_match_n(g->text, name + part.name, part.tail - part.name);
}

static int find_glob(struct func_hits *h, const struct func_table *t, const char *pattern)
{
	struct glob g = {.text = pattern};
	const char *run, *rest = pattern;
	size_t i, len;
	int err = 0;

	while (g.n < TOKENS_MAX && (len = glob_next_run(&rest, &run))) {
		g.len[g.n] = mangled_token(run, len, &g.token[g.n]);
		g.n += g.len[g.n] > 0;
	}
	for (i = 0; !err && i < t->n; i++)
		if (glob_takes(&g, t, i))
			err = push(h, i);
	return err;
}

int func_hits__find(struct func_hits *h, const struct func_table *t, const char *pattern, bool wild)
{
	struct typed_name typed;
	size_t i;
	int err;

	if (wild)
		return find_glob(h, t, pattern);
	err = typed_name__parse(&typed, pattern);
	for (i = 0; !err && i < t->n; i++)
		if (typed_name__may_be(&typed, t->funcs[i].name) &&
		    typed_name__is(&typed, t->funcs[i].name, func_name(t, i)))
			err = push(h, i);
	typed_name__clear(&typed);
	return err;
}

struct taking {
	struct plan *p;
	const struct plan_object *objs;
	size_t nobjs;
	const struct pattern *pt;
	bool cuda;    /* functions of CUDA are spans of their own kind */
	bool literal; /* the pattern is a name: what cannot be used deserves a note */
	bool any;     /* something was selected */
};

static int add_func(struct taking *t, const struct elf_func *f, const char *name, uint32_t object)
{
	struct plan *p = t->p;
	int cuda;
	struct plan_site s = plan__entry_of(f, object);

	if (plan__known(p, "func:%u:%llx", object, (unsigned long long)f->addr))
		return 0;
	cuda = t->cuda ? select_cuda_func(p, &t->objs[object], f, object) : 0;
	if (cuda)
		return cuda < 0 ? cuda : 0;
	s.span = plan__add_span(p, name, SPAN_FUNC, object, t->objs[object].path);
	if (!s.span)
		return -ENOMEM;
	if (plan__add_site(p, &s))
		return -ENOMEM;
	return plan__remember(p, s.span, "func:%u:%llx", object, (unsigned long long)f->addr);
}

/* Which object defines what another only imports; -1: none. */
static ssize_t definer(const struct plan_object *objs, size_t n, const char *raw, size_t *index)
{
	size_t o, i;

	for (o = 0; o < n; o++) {
		for (i = 0; objs[o].funcs && i < objs[o].funcs->n; i++) {
			if (objs[o].funcs->funcs[i].flags & (FUNC_IMPORTED | FUNC_LOCAL))
				continue;
			if (!strcmp(objs[o].funcs->funcs[i].name, raw)) {
				*index = i;
				return o;
			}
		}
	}
	return -1;
}

static int take_imported(struct taking *t, const char *raw, const char *name)
{
	const struct func_table *tab;
	const struct elf_func *real;
	ssize_t owner;
	size_t idx = 0;
	int err;

	if (!t->literal)
		return 0;
	owner = definer(t->objs, t->nobjs, raw, &idx);
	if (owner < 0)
		return plan__note(t->p, "%s: imported, defined in no mapped object", name);
	tab = t->objs[owner].funcs;
	real = &tab->funcs[idx];
	if (real->flags & FUNC_IFUNC)
		return plan__note(t->p,
				  "%s: imported, defined in %s as an IFUNC resolver, not the "
				  "function; trace the implementation it chooses",
				  name, path_base(t->objs[owner].path));
	err = plan__note(t->p, "%s: imported, defined in %s", name, path_base(t->objs[owner].path));
	if (err)
		return err;
	t->any = true;
	return add_func(t, real, func_name(tab, idx), owner);
}

static int take_one(struct taking *t, const struct func_table *tab, uint32_t i, uint32_t object)
{
	const struct elf_func *f = &tab->funcs[i];
	size_t named = i;

	if (f->flags & FUNC_COLD)
		return 0;
	if (f->flags & FUNC_IMPORTED)
		return take_imported(t, f->name, func_name(tab, i));
	if (f->flags & FUNC_IFUNC) {
		if (!t->literal)
			return 0;
		return plan__note(t->p,
				  "%s: an IFUNC resolver in %s, not the function; trace the "
				  "implementation it chooses",
				  func_name(tab, i), path_base(t->objs[object].path));
	}
	t->any = true;
	/* A glob names an address by its preferred name, a literal by what was asked for. */
	if (!t->literal && f->alias_of < tab->n)
		named = f->alias_of;
	return add_func(t, f, func_name(tab, named), object);
}

static int take_hits(struct taking *t, bool wild, size_t from, bool *any_hit)
{
	struct func_hits h = {0};
	size_t o, i;
	int err = 0;

	for (o = from; !err && o < t->nobjs; o++) {
		if (!t->objs[o].funcs || !pattern__object(t->pt, t->objs[o].path))
			continue;
		h.n = 0;
		err = func_hits__find(&h, t->objs[o].funcs, t->pt->glob, wild);
		for (i = 0; !err && i < h.n; i++) {
			*any_hit = true;
			err = take_one(t, t->objs[o].funcs, h.idx[i], o);
		}
	}
	free(h.idx);
	return err;
}

static int take_pattern(struct plan *p, const struct plan_opts *o, const char *text,
			const struct plan_object *objs, size_t from, size_t n)
{
	struct pattern pt;
	struct taking t = {
	    .p = p, .objs = objs, .nobjs = n, .pt = &pt, .cuda = o->cuda != CUDA_OFF};
	bool hit = false;
	int err;

	err = pattern__parse(&pt, text);
	if (err)
		return err;
	/* Names hold stars and brackets (operator*, fun(char*)), so a name is tried first. */
	t.literal = true;
	err = take_hits(&t, false, from, &hit);
	if (!err && hit)
		err = plan__remember(p, 1, "literal:%s", text);
	if (!err && pt.wild && !hit && !plan__known(p, "literal:%s", text)) {
		t.literal = false;
		err = take_hits(&t, true, from, &hit);
	}
	if (!err && t.any)
		err = plan__remember(p, 1, "used:-f %s", text);
	pattern__clear(&pt);
	return err;
}

int select_funcs(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		 size_t from, size_t n)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < o->nfuncs; i++)
		err = take_pattern(p, o, o->funcs[i], objs, from, n);
	return err;
}

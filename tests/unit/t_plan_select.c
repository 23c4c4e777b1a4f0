// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From lists of markers and functions to spans: pairing, globs, names, notes, limits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"

/* "provider:name" at addresses 0x1000, 0x1010, ...; one integer argument where it ends in '+', a
 * double where in '%', an unreadable one where in '?'. */
struct markers {
	struct usdt_table t;
	char text[64][64];
};

static void markers_make(struct markers *m, const char *const *names)
{
	memset(m, 0, sizeof(*m));
	m->t.markers = calloc(64, sizeof(*m->t.markers));
	for (size_t i = 0; names[i]; i++) {
		struct usdt_marker *k = &m->t.markers[m->t.n++];
		char *s = m->text[i], *end;

		strcpy(s, names[i]);
		end = s + strlen(s) - 1;
		if (strchr("+%?", *end)) {
			k->nargs = 1;
			k->args[0] = (struct usdt_arg){.kind = *end == '?' ? USDT_ARG_UNREADABLE
									   : USDT_ARG_REG,
						       .size = 8,
						       .is_float = *end == '%',
						       .why = *end == '?' ? "in %xmm0" : NULL};
			*end = 0;
		}
		k->provider = s;
		k->name = strchr(s, ':') + 1;
		s[k->name - s - 1] = 0;
		k->addr = 0x1000 + 0x10 * i;
		k->off = k->addr - 0x800;
	}
}

/* "raw" or "raw=demangled"; flags by a prefix: i imported, f ifunc, c cold, s static, before ';' */
static void funcs_make(struct func_table *t, const char *const *names)
{
	memset(t, 0, sizeof(*t));
	t->funcs = calloc(64, sizeof(*t->funcs));
	for (size_t i = 0; names[i]; i++) {
		struct elf_func *f = &t->funcs[t->n];
		const char *s = names[i], *semi = strchr(s, ';'), *eq;

		for (; semi && s < semi; s++)
			f->flags |= *s == 'i'	? FUNC_IMPORTED
				    : *s == 'f' ? FUNC_IFUNC
				    : *s == 'c' ? FUNC_COLD
						: FUNC_LOCAL;
		s += semi != NULL;
		eq = strchr(s, '=');
		f->name = eq ? strndup(s, eq - s) : strdup(s);
		f->demangled = eq ? strdup(eq + 1) : f->name;
		f->addr = f->flags & FUNC_IMPORTED ? 0 : 0x2000 + 0x20 * i;
		f->off = f->addr;
		f->size = 0x20;
		f->alias_of = t->n++;
	}
}

static void funcs_free(struct func_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->funcs[i].demangled != t->funcs[i].name)
			free((char *)t->funcs[i].demangled);
		free((char *)t->funcs[i].name);
	}
	free(t->funcs);
}

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static int count(const struct plan *p, uint32_t span, enum qbpf_role role)
{
	int n = 0;

	for (size_t i = 0; i < p->nsites; i++)
		n += p->sites[i].span == span && p->sites[i].role == role;
	return n;
}

static uint32_t find(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->nspans; i++)
		if (!strcmp(p->spans[i].name, name))
			return i + 1;
	return 0;
}

static uint32_t need(const struct plan *p, const char *name)
{
	uint32_t id = find(p, name);

	if (!id) {
		for (size_t i = 0; i < p->nspans; i++)
			print_message("  %s\n", p->spans[i].name);
		fail_msg("no span %s", name);
	}
	return id;
}

static struct plan *select_one(const struct plan_object *o, size_t n, const struct plan_opts *opts)
{
	struct plan *p = plan__new();
	struct err e = {{0}};
	int err = plan_select(p, opts, o, 0, n, &e);

	if (err)
		fail_msg("%d: %s", err, e.text);
	return p;
}

static void pairs(void **state)
{
	static const struct {
		const char *span;
		enum span_kind kind;
		int begins, ends, singles;
	} rows[] = {
	    {"pg:transaction", SPAN_MARKER, 1, 2, 0},
	    {"pg:query", SPAN_MARKER, 1, 1, 0},
	    {"a:tick", SPAN_MARKER, 2, 3, 0},
	    {"a:one", SPAN_MARKER, 1, 1, 0},
	    {"a:dash", SPAN_MARKER, 1, 1, 0},
	    {"a:fn", SPAN_MARKER, 1, 2, 0},
	    {"a:crit", SPAN_MARKER, 1, 2, 0},
	    {"b:start..done", SPAN_MARKER, 1, 1, 0},
	    {"b:lonely__begin", SPAN_INSTANT, 0, 0, 1},
	    {"b:lock__acquire", SPAN_INSTANT, 0, 0, 1},
	    {"b:lock__release", SPAN_INSTANT, 0, 0, 1},
	    {"b:mix__begin", SPAN_INSTANT, 0, 0, 1},
	    {"b:mix_end", SPAN_INSTANT, 0, 0, 1},
	    {"b:both", SPAN_MARKER, 1, 1, 0},
	    {"b:both__start", SPAN_INSTANT, 0, 0, 1},
	    {"b:unend", SPAN_INSTANT, 0, 0, 1},
	    {"c:n", SPAN_VALUE, 0, 0, 2},
	    {"c:x", SPAN_VALUE, 0, 0, 1},
	    {"c:two", SPAN_VALUE, 0, 0, 1},
	    {"c:two#2", SPAN_VALUE, 0, 0, 1},
	    {"c:bare__value", SPAN_INSTANT, 0, 0, 1},
	};
	struct markers m;
	struct plan_object o = {.path = "/bin/a", .markers = &m.t};
	struct plan *p;
	size_t spans = sizeof(rows) / sizeof(rows[0]);

	(void)state;
	markers_make(&m, LIST("pg:transaction__commit", "pg:transaction__start",
			      "pg:transaction__abort", "pg:query__start", "pg:query__done",
			      "a:tick__begin", "a:tick__end", "a:tick__end", "a:tick__begin",
			      "a:tick__end", "a:one_begin", "a:one_end", "a:dash-start",
			      "a:dash-finish", "a:fn__entry", "a:fn__exit", "a:fn__return",
			      "a:crit__enter", "a:crit__leave", "a:crit__exit", "b:start", "b:done",
			      "b:lonely__begin", "b:lock__acquire", "b:lock__release",
			      "b:mix__begin", "b:mix_end", "b:both__begin", "b:both__end",
			      "b:both__start", "b:unend", "c:n__value+", "c:n__value?",
			      "c:x__value%", "c:two__value+", "c:two__value%", "c:bare__value"));
	p = select_one(&o, 1, &(struct plan_opts){0});
	for (size_t i = 0; i < spans; i++) {
		uint32_t id = need(p, rows[i].span);

		if (p->spans[id - 1].kind != rows[i].kind ||
		    count(p, id, QBPF_ROLE_BEGIN) != rows[i].begins ||
		    count(p, id, QBPF_ROLE_END) != rows[i].ends ||
		    count(p, id, QBPF_ROLE_INSTANT) + count(p, id, QBPF_ROLE_VALUE) !=
			rows[i].singles)
			fail_msg("%s: kind %d begins %d ends %d", rows[i].span,
				 p->spans[id - 1].kind, count(p, id, QBPF_ROLE_BEGIN),
				 count(p, id, QBPF_ROLE_END));
	}
	assert_int_equal(p->nspans, spans);
	assert_int_equal(p->nsites, m.t.n);
	assert_int_equal(p->spans[need(p, "c:n") - 1].hist, QBPF_HIST_INT);
	assert_int_equal(p->spans[need(p, "c:x") - 1].hist, QBPF_HIST_F64);
	/* The unreadable argument costs a note, not the site. */
	assert_int_equal(p->nnotes, 1);
	assert_string_equal(p->notes[0], "c:n__value: arg0 is unreadable: in %xmm0");
	/* Sites carry their place in the file. */
	assert_int_equal(p->sites[0].addr - p->sites[0].off, 0x800);
	plan__free(p);
	free(m.t.markers);
}

static void marker_globs(void **state)
{
	static const struct {
		const char *glob;
		const char *spans; /* in any order, by blanks */
		int n;
	} rows[] = {
	    {"a:tick", "a:tick", 1},
	    {"a:*", "a:tick a:note a:v", 3},
	    {"tick", "a:tick", 1},
	    {"*:tick", "a:tick", 1},
	    {"a:tick__begin", "a:tick__begin", 1},
	    {"a:tick__*", "a:tick", 1},
	    {"*begin", "a:tick__begin b:work__begin", 2},
	    {"a:v", "a:v", 1},
	    {"b*", "b:work", 1},
	    {"a:tic", "", 0},
	    {"A:tick", "", 0},
	    {"exe!*", "a:tick a:note a:v b:work", 4},
	    {"lib*!*", "", 0},
	    {"[ab]:*", "a:tick a:note a:v b:work", 4},
	};
	struct markers m;
	struct plan_object o = {.path = "/usr/bin/exe", .markers = &m.t};

	(void)state;
	markers_make(&m, LIST("a:tick__begin", "a:tick__end", "a:note", "a:v__value+",
			      "b:work__begin", "b:work__end"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *globs[] = {rows[i].glob};
		struct plan *p =
		    select_one(&o, 1, &(struct plan_opts){.markers = globs, .nmarkers = 1});
		char *copy = strdup(rows[i].spans), *word;

		if ((int)p->nspans != rows[i].n)
			fail_msg("%s: %zu spans", rows[i].glob, p->nspans);
		for (word = strtok(copy, " "); word; word = strtok(NULL, " "))
			need(p, word);
		free(copy);
		plan__free(p);
	}
	free(m.t.markers);
}

static void libc_on_request(void **state)
{
	struct markers m;
	struct plan_object o = {.path = "/lib/libc.so.6", .markers = &m.t, .is_libc = true};
	const char *glob[] = {"libc:*"};
	struct plan *p;

	(void)state;
	markers_make(&m, LIST("libc:setjmp", "libc:longjmp"));
	p = select_one(&o, 1, &(struct plan_opts){0});
	assert_int_equal(p->nspans, 0);
	plan__free(p);
	p = select_one(&o, 1, &(struct plan_opts){.markers = glob, .nmarkers = 1});
	assert_int_equal(p->nspans, 2);
	plan__free(p);
	free(m.t.markers);
}

static void functions(void **state)
{
	static const struct {
		const char *pattern;
		const char *spans[5];
		const char *note;
	} rows[] = {
	    {"fun", {"fun(int)", "fun(double)"}, NULL},
	    {"fun(int)", {"fun(int)"}, NULL},
	    {"fun(char)", {NULL}, NULL},
	    {"Foo::fun", {"Foo::fun(int)"}, NULL},
	    {"function", {"function(int)"}, NULL},
	    {"func", {NULL}, NULL},
	    {"cfun", {"cfun"}, NULL},
	    {"*fun", {"fun(int)", "fun(double)", "Foo::fun(int)", "cfun"}, NULL},
	    {"fun*", {"fun(int)", "fun(double)", "function(int)"}, NULL},
	    {"_Z3fun?", {"fun(int)", "fun(double)"}, NULL},
	    {"Foo::operator[]", {"Foo::operator[](int)"}, NULL},
	    {"Foo::operator*", {"Foo::operator*(int)"}, NULL}, /* a name before a glob */
	    {"exe!cfun", {"cfun"}, NULL},
	    {"lib!cfun", {NULL}, NULL},
	    {"cold", {NULL}, NULL},
	    {"puts", {NULL}, "puts: imported, defined in no mapped object"},
	    {"memcpy",
	     {NULL},
	     "memcpy: an IFUNC resolver in exe, not the function; trace the "
	     "implementation it chooses"},
	    {"alias", {"alias"}, NULL},
	    {"*lias*", {"preferred_alias"}, NULL},
	};
	struct func_table t;
	struct plan_object o = {.path = "/usr/bin/exe", .funcs = &t};

	(void)state;
	funcs_make(&t, LIST("_Z3funi=fun(int)", "_Z3fund=fun(double)",
			    "_ZN3Foo3funEi=Foo::fun(int)", "_Z8functioni=function(int)", "cfun",
			    "_ZN3FooixEi=Foo::operator[](int)", "_ZN3FoomlEi=Foo::operator*(int)",
			    "c;cold.cold", "f;memcpy", "preferred_alias", "alias", "i;puts"));
	t.funcs[10].alias_of = 9;
	t.funcs[10].addr = t.funcs[9].addr;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *pat[] = {rows[i].pattern};
		struct plan *p = select_one(&o, 1, &(struct plan_opts){.funcs = pat, .nfuncs = 1});
		size_t n = 0;

		for (; n < 5 && rows[i].spans[n]; n++)
			assert_int_equal(p->spans[need(p, rows[i].spans[n]) - 1].kind, SPAN_FUNC);
		if (p->nspans != n || p->nsites != n)
			fail_msg("%s: %zu spans", rows[i].pattern, p->nspans);
		if (rows[i].note) {
			assert_int_equal(p->nnotes, 1);
			assert_string_equal(p->notes[0], rows[i].note);
		} else {
			assert_int_equal(p->nnotes, 0);
		}
		plan__free(p);
	}
	funcs_free(&t);
}

static void imported(void **state)
{
	struct func_table exe, lib;
	struct plan_object o[] = {{.path = "/bin/exe", .funcs = &exe},
				  {.path = "/lib/libm.so.6", .funcs = &lib}};
	const char *pat[] = {"exe!sin", "cos"};
	struct plan *p;

	(void)state;
	funcs_make(&exe, LIST("main", "i;sin", "i;cos"));
	funcs_make(&lib, LIST("sin", "cos"));
	p = select_one(o, 2, &(struct plan_opts){.funcs = pat, .nfuncs = 2});
	assert_int_equal(p->nspans, 2);
	assert_int_equal(p->sites[need(p, "sin") - 1].object, 1);
	assert_int_equal(p->sites[need(p, "cos") - 1].object, 1);
	assert_int_equal(p->nnotes, 2);
	assert_string_equal(p->notes[0], "sin: imported, defined in libm.so.6");
	plan__free(p);
	funcs_free(&exe);
	funcs_free(&lib);
}

static void unique_names(void **state)
{
	struct markers m, m2;
	struct func_table a, b;
	struct plan_object o[] = {{.path = "/bin/exe", .funcs = &a, .markers = &m.t},
				  {.path = "/lib/libx.so", .funcs = &b, .markers = &m2.t}};
	const char *f[] = {"same"}, *u[] = {"p:m"};
	struct plan *p;

	(void)state;
	funcs_make(&a, LIST("s;same", "s;same"));
	funcs_make(&b, LIST("same"));
	markers_make(&m, LIST("p:m", "p:m"));
	markers_make(&m2, LIST("p:m"));
	p = select_one(o, 2,
		       &(struct plan_opts){.funcs = f, .nfuncs = 1, .markers = u, .nmarkers = 1});
	assert_int_equal(p->nspans, 5);
	need(p, "same");
	need(p, "same#2");
	need(p, "same (libx.so)");
	need(p, "p:m (libx.so)");
	/* Several sites of a marker in one object are one span. */
	assert_int_equal(count(p, need(p, "p:m"), QBPF_ROLE_INSTANT), 2);
	plan__free(p);
	funcs_free(&a);
	funcs_free(&b);
	free(m.t.markers);
	free(m2.t.markers);
}

static void by_hand(void **state)
{
	static const struct {
		const char *spec;
		int err;
		enum span_kind kind;
		int begins, ends;
	} good[] = {
	    {"x=o:sent..o:filled|o:killed", 0, SPAN_MARKER, 1, 3},
	    {"x=o:sent..o:filled,key=arg0", 0, SPAN_KEYED, 1, 2},
	    {"x=o:sent|o:killed..o:filled,key=arg0,endkey=arg0", 0, SPAN_KEYED, 2, 2},
	    {"x=open..close(int),key=arg1", 0, SPAN_KEYED, 1, 1},
	    {"x=o:sent..close", 0, SPAN_MARKER, 1, 1},
	    {"x=print(char const*, ...)..close", 0, SPAN_MARKER, 1, 1},
	};
	static const char *const bad[] = {
	    "x",
	    "=a..b",
	    "x=a",
	    "x=..b",
	    "x=a..",
	    "x=a..b,key=",
	    "x=a..b,key=argx",
	    "x=a..b,key=arg99",
	    "x=a..b|",
	    "x=|a..b",
	    "x=a..b,endkey=arg1",
	    "x=o:sent..o:filled,key=arg3",
	    "x=a..b,key=arg1x",
	    "x=o:sent..o:filled,key=arg-1",
	    "x=open..close,key=arg7",
	};
	struct markers m;
	struct func_table t;
	struct plan_object o = {.path = "/bin/exe", .markers = &m.t, .funcs = &t};

	(void)state;
	markers_make(&m, LIST("o:sent+", "o:filled+", "o:filled+", "o:killed+"));
	funcs_make(&t,
		   LIST("open", "_Z5closei=close(int)", "_Z5printPKcz=print(char const*, ...)"));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *s[] = {good[i].spec};
		struct plan *p = select_one(&o, 1, &(struct plan_opts){.spans = s, .nspans = 1});
		bool keyed = good[i].kind == SPAN_KEYED;

		assert_int_equal(p->nspans, 1);
		if (strcmp(p->spans[0].name, "x") || p->spans[0].kind != good[i].kind ||
		    count(p, 1, keyed ? QBPF_ROLE_KEY_BEGIN : QBPF_ROLE_BEGIN) != good[i].begins ||
		    count(p, 1, keyed ? QBPF_ROLE_KEY_END : QBPF_ROLE_END) != good[i].ends)
			fail_msg("%s", good[i].spec);
		for (size_t k = 0; k < p->nsites; k++)
			assert_int_equal(p->sites[k].has_arg, keyed);
		plan__free(p);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *s[] = {bad[i]};
		struct plan *p = plan__new();
		struct err e = {{0}};

		if (plan_select(p, &(struct plan_opts){.spans = s, .nspans = 1}, &o, 0, 1, &e) !=
		    -EINVAL)
			fail_msg("%s is taken", bad[i]);
		assert_non_null(strstr(e.text, bad[i]));
		assert_null(strchr(e.text, '\n'));
		plan__free(p);
	}
	/* The same name twice. */
	{
		const char *s[] = {"x=a..b", "x=c..d"};
		struct plan *p = plan__new();
		struct err e = {{0}};

		assert_int_equal(
		    plan_select(p, &(struct plan_opts){.spans = s, .nspans = 2}, &o, 0, 1, &e),
		    -EINVAL);
		plan__free(p);
	}
	free(m.t.markers);
	funcs_free(&t);
}

/* A library is opened later: what was planned keeps its ids, what is new is appended. */
static void append(void **state)
{
	struct markers m, m2;
	struct func_table t, t2;
	struct plan_object o[] = {{.path = "/bin/exe", .markers = &m.t, .funcs = &t},
				  {.path = "/lib/plugin.so", .markers = &m2.t, .funcs = &t2}};
	const char *f[] = {"run*"}, *u[] = {"a:*"}, *s[] = {"life=a:x..b:y"};
	struct plan_opts opts = {
	    .funcs = f, .nfuncs = 1, .markers = u, .nmarkers = 1, .spans = s, .nspans = 1};
	struct plan *p;
	size_t spans, sites;
	char *first;

	(void)state;
	markers_make(&m, LIST("a:x"));
	markers_make(&m2, LIST("a:x", "b:y"));
	funcs_make(&t, LIST("run"));
	funcs_make(&t2, LIST("run", "run_fast"));
	p = select_one(o, 1, &opts);
	spans = p->nspans;
	sites = p->nsites;
	assert_int_equal(spans, 3);
	first = strdup(p->spans[0].name);
	/* Once more over the same objects: nothing is planned twice. */
	assert_int_equal(plan_select(p, &opts, o, 1, 1, NULL), 0);
	assert_int_equal(p->nspans, spans);
	assert_int_equal(plan_select(p, &opts, o, 1, 2, NULL), 0);
	assert_string_equal(p->spans[0].name, first);
	assert_int_equal(p->nspans, spans + 3);
	need(p, "run (plugin.so)");
	need(p, "run_fast");
	need(p, "a:x (plugin.so)");
	/* The span by hand got a begin and its end from the new object. */
	assert_int_equal(count(p, need(p, "life"), QBPF_ROLE_BEGIN), 2);
	assert_int_equal(count(p, need(p, "life"), QBPF_ROLE_END), 1);
	for (size_t i = 0; i < sites; i++)
		assert_int_equal(p->sites[i].object, 0);
	free(first);
	plan__free(p);
	free(m.t.markers);
	free(m2.t.markers);
	funcs_free(&t);
	funcs_free(&t2);
}

static void limits(void **state)
{
	struct func_table t = {.n = 20000};
	struct plan_object o = {.path = "/bin/exe", .funcs = &t};
	const char *f[] = {"f*"}, *empty[] = {""};
	struct plan_opts opts = {.funcs = f, .nfuncs = 1, .max_spans = 10000};
	struct plan *p = plan__new();
	struct err e = {{0}};
	char *names;

	(void)state;
	t.funcs = calloc(t.n, sizeof(*t.funcs));
	names = malloc(t.n * 8);
	for (size_t i = 0; i < t.n; i++) {
		snprintf(names + 8 * i, 8, "f%u", (unsigned short)i);
		t.funcs[i] = (struct elf_func){.name = names + 8 * i,
					       .demangled = names + 8 * i,
					       .addr = 0x1000 + 16 * i,
					       .off = 16 * i,
					       .size = 16,
					       .alias_of = i};
	}
	assert_int_equal(plan_select(p, &opts, &o, 0, 1, &e), -E2BIG);
	assert_non_null(strstr(e.text, "20000"));
	assert_non_null(strstr(e.text, "10000"));
	plan__free(p);
	opts.max_spans = 0;
	p = select_one(&o, 1, &opts);
	assert_int_equal(p->nspans, 20000);
	assert_int_equal(p->nsites, 20000);
	plan__free(p);
	p = plan__new();
	opts.funcs = empty;
	assert_int_equal(plan_select(p, &opts, &o, 0, 1, &e), -EINVAL);
	assert_non_null(strstr(e.text, "-f"));
	plan__free(p);
	free(names);
	free(t.funcs);
}

struct seen {
	int n;
	char text[8][300];
};

static void on_unmatched(void *ctx, const char *option, const char *glob, const char *near)
{
	struct seen *s = ctx;

	snprintf(s->text[s->n++ & 7], sizeof(s->text[0]), "%s %s [%s]", option, glob, near);
}

static void unmatched(void **state)
{
	struct markers m;
	struct func_table t;
	struct plan_object o = {.path = "/bin/exe", .markers = &m.t, .funcs = &t};
	const char *u[] = {"strategy:tick", "strategy:tock", "zzz:*"};
	const char *f[] = {"calculate", "calcluate", "qqqqqqqq"};
	const char *s[] = {"x=strategy:tick__begin..strategy:tick__ent"};
	struct plan_opts opts = {
	    .markers = u, .nmarkers = 3, .funcs = f, .nfuncs = 3, .spans = s, .nspans = 1};
	struct seen seen = {0};
	struct plan *p;

	(void)state;
	markers_make(&m, LIST("strategy:tick__begin", "strategy:tick__end"));
	funcs_make(&t, LIST("_Z9calculatei=calculate(int)", "main"));
	p = select_one(&o, 1, &opts);
	plan_unmatched(p, &opts, &o, 1, on_unmatched, &seen);
	assert_int_equal(seen.n, 5);
	assert_string_equal(seen.text[0], "-u strategy:tock [strategy:tick]");
	assert_string_equal(seen.text[1], "-u zzz:* []");
	assert_string_equal(seen.text[2], "-f calcluate [calculate]");
	assert_string_equal(seen.text[3], "-f qqqqqqqq []");
	assert_non_null(strstr(seen.text[4], "-s strategy:tick__ent [strategy:tick__end"));
	plan__free(p);
	free(m.t.markers);
	funcs_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pairs),	       cmocka_unit_test(marker_globs),
	    cmocka_unit_test(libc_on_request), cmocka_unit_test(functions),
	    cmocka_unit_test(imported),	       cmocka_unit_test(unique_names),
	    cmocka_unit_test(by_hand),	       cmocka_unit_test(append),
	    cmocka_unit_test(limits),	       cmocka_unit_test(unmatched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

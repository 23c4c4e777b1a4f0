/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * -s NAME=BEGIN..END[|END...][,key=argN][,endkey=argN]: spans by hand. Each side is a marker
 * provider:name (every site of it, in every object) or, if there is none, the entry of a
 * function. Without a key the span nests on a thread; with one it may cross threads.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"

#define SIDE_MAX 16

struct spec {
	char *copy; /* what the pointers below point into */
	const char *name;
	const char *begin[SIDE_MAX + 1]; /* NULL at the end */
	const char *end[SIDE_MAX + 1];
	int key, end_key; /* -1: none */
};

/* Splits at '|', but not within "operator|". */
static int split_side(char *s, const char **out)
{
	size_t n = 0;
	char *p = s;

	for (;; p++) {
		if (*p == '|' && ((p - s >= 8 && !memcmp(p - 8, "operator", 8)) ||
				  (p - s >= 9 && !memcmp(p - 9, "operator|", 9))))
			continue;
		if (*p && *p != '|')
			continue;
		if (p == s || n == SIDE_MAX)
			return -EINVAL;
		out[n++] = s;
		if (!*p)
			break;
		*p = '\0';
		s = p + 1;
	}
	out[n] = NULL;
	return 0;
}

/* ",key=argN" at the end of s is cut off. 1: found, 0: not there. */
static int cut_key(char *s, const char *word, int *value, int *other)
{
	char *at = NULL, *next, *end;
	long n;

	for (next = strstr(s, word); next; next = strstr(next + 1, word))
		at = next;
	if (!at || !isdigit((unsigned char)at[strlen(word)]))
		return 0;
	n = strtol(at + strlen(word), &end, 10);
	if (*end || n < 0 || n >= USDT_ARGS_MAX)
		return 0;
	*at = '\0';
	*value = n;
	if (other)
		*other = n;
	return 1;
}

/* The ".." between the sides, not that of "(...)". */
static char *find_dots(char *s)
{
	char *d;

	for (d = strstr(s, ".."); d; d = strstr(d, "..")) {
		if (d[2] != '.')
			return d;
		while (*d == '.')
			d++;
	}
	return NULL;
}

static void spec__clear(struct spec *s)
{
	free(s->copy);
	memset(s, 0, sizeof(*s));
}

static int spec__parse(struct spec *s, const char *text, struct err *e)
{
	char *eq, *dots;
	int end_key = -1;

	memset(s, 0, sizeof(*s));
	s->key = s->end_key = -1;
	s->copy = strdup(text);
	if (!s->copy)
		return err_set(e, -ENOMEM, "out of memory");
	eq = strchr(s->copy, '=');
	if (!eq || eq == s->copy)
		goto bad;
	*eq++ = '\0';
	s->name = s->copy;
	cut_key(eq, ",endkey=arg", &end_key, NULL);
	cut_key(eq, ",key=arg", &s->key, &s->end_key);
	if (end_key >= 0)
		s->end_key = end_key;
	if ((s->key < 0) != (s->end_key < 0) || strstr(eq, ",key=") || strstr(eq, ",endkey="))
		goto bad;
	dots = find_dots(eq);
	if (!dots)
		goto bad;
	*dots = '\0';
	if (split_side(eq, s->begin) || split_side(dots + 2, s->end))
		goto bad;
	return 0;
bad:
	spec__clear(s);
	return err_set(e, -EINVAL,
		       "-s '%s': expected NAME=BEGIN..END[|END...][,key=argN], N from 0 to %d",
		       text, USDT_ARGS_MAX - 1);
}

int select_by_hand_check(const struct plan_opts *o, struct err *e)
{
	struct spec s, other;
	size_t i, j;
	bool twice;
	int err;

	for (i = 0; i < o->nspans; i++) {
		err = spec__parse(&s, o->spans[i], e);
		for (j = 0; !err && j < i; j++) {
			if (spec__parse(&other, o->spans[j], NULL))
				continue;
			twice = !strcmp(s.name, other.name);
			spec__clear(&other);
			if (twice)
				err =
				    err_set(e, -EINVAL, "-s: the name '%s' is given twice", s.name);
		}
		spec__clear(&s);
		if (err)
			return err;
	}
	return 0;
}

struct hand {
	struct plan *p;
	const struct spec *spec;
	const char *text;
	uint32_t span; /* 0: not made yet */
	struct err *e;
};

static int hand_site(struct hand *h, struct plan_site *s, bool end, const char *path)
{
	bool keyed = h->spec->key >= 0;

	if (!h->span) {
		h->span = plan__add_span(h->p, h->spec->name, keyed ? SPAN_KEYED : SPAN_MARKER,
					 s->object, path);
		if (!h->span || plan__remember(h->p, h->span, "hand:%s", h->text))
			return err_set(h->e, -ENOMEM, "out of memory");
	}
	s->span = h->span;
	s->found_addr = s->addr;
	if (keyed)
		s->role = end ? QBPF_ROLE_KEY_END : QBPF_ROLE_KEY_BEGIN;
	else
		s->role = end ? QBPF_ROLE_END : QBPF_ROLE_BEGIN;
	return plan__add_site(h->p, s) ? err_set(h->e, -ENOMEM, "out of memory") : 0;
}

static int hand_markers(struct hand *h, const char *name, bool end, uint32_t object,
			const struct plan_object *obj, size_t *found)
{
	int key = end ? h->spec->end_key : h->spec->key;
	const struct usdt_marker *m;
	struct pattern pt = {.glob = (char *)name};
	size_t i;
	int err = 0;

	for (i = 0; !err && obj->markers && i < obj->markers->n; i++) {
		struct plan_site s = {.object = object};

		m = &obj->markers->markers[i];
		if (!strchr(name, ':') || !pattern__marker(&pt, m->provider, m->name))
			continue;
		++*found;
		s.addr = m->addr;
		s.off = m->off;
		s.sema_off = m->sema_off;
		if (key >= (int)m->nargs)
			return err_set(h->e, -EINVAL, "-s '%s': %s has %u argument%s, no arg%d",
				       h->text, name, m->nargs, m->nargs == 1 ? "" : "s", key);
		if (key >= 0) {
			s.arg = m->args[key];
			s.has_arg = s.arg.kind != USDT_ARG_UNREADABLE;
			if (!s.has_arg)
				err = plan__note(h->p, "%s: arg%d is unreadable: %s", name, key,
						 s.arg.why ? s.arg.why : "no known form");
		}
		if (!err)
			err = hand_site(h, &s, end, obj->path);
	}
	return err;
}

/* The integer argument registers of the System V ABI, as DWARF numbers: rdi rsi rdx rcx r8 r9. */
static const int arg_regs[] = {5, 4, 1, 2, 8, 9};
#define NARG_REGS ((int)(sizeof(arg_regs) / sizeof(*arg_regs)))

static int hand_funcs(struct hand *h, const char *name, bool end, uint32_t object,
		      const struct plan_object *obj, size_t *found)
{
	int key = end ? h->spec->end_key : h->spec->key;
	struct func_hits hits = {0};
	const struct elf_func *f;
	uint64_t last = 0;
	size_t i;
	int err;

	if (!obj->funcs)
		return 0;
	err = func_hits__find(&hits, obj->funcs, name, false);
	for (i = 0; !err && i < hits.n; i++) {
		struct plan_site s = {.object = object};

		f = &obj->funcs->funcs[hits.idx[i]];
		if (f->flags & (FUNC_IMPORTED | FUNC_IFUNC | FUNC_COLD) || f->addr == last)
			continue;
		++*found;
		last = s.addr = s.func_addr = f->addr;
		s.off = f->off;
		s.func_size = f->size;
		if (key >= NARG_REGS) {
			err = err_set(h->e, -EINVAL,
				      "-s '%s': arg%d of the function %s is not in a register",
				      h->text, key, name);
			break;
		}
		if (key >= 0) {
			s.arg = (struct usdt_arg){.kind = USDT_ARG_REG,
						  .size = 8,
						  .base = arg_regs[key],
						  .index = USDT_REG_NONE,
						  .scale = 1};
			s.has_arg = true;
		}
		err = hand_site(h, &s, end, obj->path);
	}
	free(hits.idx);
	return err;
}

static int hand_side(struct hand *h, const char *const *names, bool end,
		     const struct plan_object *objs, size_t from, size_t n)
{
	size_t i, o, found;
	int err = 0;

	for (i = 0; names[i]; i++) {
		found = 0;
		for (o = from; !err && o < n; o++)
			err = hand_markers(h, names[i], end, o, &objs[o], &found);
		for (o = from; !err && !found && o < n; o++)
			err = hand_funcs(h, names[i], end, o, &objs[o], &found);
		if (!err && found)
			err = plan__remember(h->p, 1, "used:-s %s", names[i]);
		if (err)
			return err;
	}
	return 0;
}

int select_by_hand(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		   size_t from, size_t n, struct err *e)
{
	struct spec s;
	struct hand h;
	size_t i;
	int err;

	for (i = 0; i < o->nspans; i++) {
		err = spec__parse(&s, o->spans[i], e);
		if (err)
			return err;
		h = (struct hand){.p = p, .spec = &s, .text = o->spans[i], .e = e};
		h.span = plan__known(p, "hand:%s", o->spans[i]);
		err = hand_side(&h, s.begin, false, objs, from, n);
		if (!err)
			err = hand_side(&h, s.end, true, objs, from, n);
		spec__clear(&s);
		if (err)
			return err;
	}
	return 0;
}

int select_by_hand_sides(const char *text, void (*cb)(void *ctx, const char *side), void *ctx)
{
	struct spec s;
	size_t i;
	int err;

	err = spec__parse(&s, text, NULL);
	if (err)
		return err;
	for (i = 0; s.begin[i]; i++)
		cb(ctx, s.begin[i]);
	for (i = 0; s.end[i]; i++)
		cb(ctx, s.end[i]);
	spec__clear(&s);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the parts of plan/ put a plan together: growing its arrays, and the index that knows
 * every name and identity already planned. Private to plan/.
 *
 * Allocation failure is reported as -ENOMEM (or id 0); nothing is half added.
 */
#ifndef QBPF_PLAN_BUILD_H
#define QBPF_PLAN_BUILD_H

#include "plan/plan.h"

/* A set of strings, each with a number. What the number means is the key's prefix's business. */
struct plan_index;

/* 0: not there. */
uint32_t plan_index__get(const struct plan *p, const char *key);
int plan_index__put(struct plan *p, const char *key, uint32_t value);
/* The same with a key by printf. */
uint32_t plan__known(const struct plan *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int plan__remember(struct plan *p, uint32_t value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Adds a span and returns its id, 0 without memory. When the name is taken it becomes
 * "name#2" (same object) or "name (object)" (another one).
 */
uint32_t plan__add_span(struct plan *p, const char *name, enum span_kind kind, uint32_t object,
			const char *object_path);
/* Copies *s; its index in p->sites is its id - 1. Verdict starts as VERDICT_PENDING. */
int plan__add_site(struct plan *p, const struct plan_site *s);
/* The entry of a function, as it is before preflight. */
struct plan_site plan__entry_of(const struct elf_func *f, uint32_t object);
const char *path_base(const char *path);

/* select_markers.c, select_funcs.c, select_pairs.c: each appends what one option selects. */
int select_markers(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		   size_t from, size_t n);
int select_funcs(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		 size_t from, size_t n);
int select_by_hand(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		   size_t from, size_t n, struct err *e);
/* select_cuda.c: the functions of CUDA by --cuda and -u. */
int select_cuda(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		size_t from, size_t n);
/* One that -f has asked for. 0: it is none; 1: it is, and is selected now. */
int select_cuda_func(struct plan *p, const struct plan_object *o, const struct elf_func *f,
		     uint32_t object);
int select_by_hand_check(const struct plan_opts *o, struct err *e);
/* Calls cb for every BEGIN and END of one -s. */
int select_by_hand_sides(const char *text, void (*cb)(void *ctx, const char *side), void *ctx);

/* A pattern of -u or -f: "OBJ!GLOB" split. */
struct pattern {
	const char *text; /* as given */
	char *obj;	  /* NULL: any object */
	char *glob;	  /* what follows "OBJ!" */
	bool wild;	  /* has * ? or [ */
};

int pattern__parse(struct pattern *pt, const char *text);
void pattern__clear(struct pattern *pt);
bool pattern__object(const struct pattern *pt, const char *path);
/* -u: does the glob take this marker, or this span name? A glob without ':' may also match
 * the name behind the provider. */
bool pattern__marker(const struct pattern *pt, const char *provider, const char *name);

/* Indices of the functions that a literal or wild pattern takes. */
struct func_hits {
	uint32_t *idx;
	size_t n, cap;
};

/* The demangled name of funcs[i]; never NULL. */
const char *func_name(const struct func_table *t, size_t i);
int func_hits__find(struct func_hits *h, const struct func_table *t, const char *pattern,
		    bool wild);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The functions of CUDA (probes/cuda.h), found by symbol in whatever is mapped: a file's name tells
 * nothing, since Python wheels rename their copies and nvcc links the runtime statically.
 *
 * A call of the runtime is a call of the driver inside. By default the runtime's functions are armed,
 * and the driver's only where no runtime with symbols is mapped (it was linked in and stripped, or
 * the program uses the driver alone), so that a call is one span. Where both are armed, because a
 * runtime was opened later or by --cuda-api both, the driver's spans lie inside the runtime's, and
 * the kernel's program counts the copy or launch once (bpf/cuda.bpf.c).
 *
 * Patterns choose by name instead, of both: -u 'cuda:GLOB', as if they were markers of a provider
 * "cuda", and -f.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"
#include "probes/cuda.h"

enum api { API_RUNTIME, API_DRIVER };
enum how { HOW_PLAIN, HOW_V2, HOW_WRAP };

struct cuda_call {
	const char *name;
	enum api api;
	enum how how;
	struct qbpf_cuda_site site;
};

static const struct cuda_call calls[] = {
#define CALL(api_, name_, how_, ...) {#name_, API_##api_, HOW_##how_, {__VA_ARGS__}},
    CUDA_CALLS(CALL)
#undef CALL
};

#define NCALLS (sizeof(calls) / sizeof(calls[0]))

static int by_name(const void *x, const void *y)
{
	const struct cuda_call *const *a = x, *const *b = y;

	return strcmp((*a)->name, (*b)->name);
}

/* The table by name; made on first use, the same for all. */
static const struct cuda_call *const *sorted_calls(void)
{
	static const struct cuda_call *sorted[NCALLS];

	if (!sorted[0]) {
		for (size_t i = 0; i < NCALLS; i++)
			sorted[i] = &calls[i];
		qsort(sorted, NCALLS, sizeof(sorted[0]), by_name);
	}
	return sorted;
}

/* Cuts the suffix off the name's first *len bytes. */
static bool cut(const char *name, size_t *len, const char *suffix)
{
	size_t n = strlen(suffix);

	if (*len <= n || strncmp(name + *len - n, suffix, n))
		return false;
	*len -= n;
	return true;
}

static const struct cuda_call *call_of(const char *symbol, uint8_t *twin)
{
	const struct cuda_call *const *sorted = sorted_calls();
	size_t len = strlen(symbol), low = 0, high = NCALLS;

	*twin = 0;
	if (strncmp(symbol, "cu", 2) && strncmp(symbol, "__cuda", 6))
		return NULL;
	if (cut(symbol, &len, "_ptsz") || cut(symbol, &len, "_ptds"))
		*twin |= CUDA_TWIN_PER_THREAD;
	if (cut(symbol, &len, "_v2") || cut(symbol, &len, "_v3"))
		*twin |= CUDA_TWIN_VERSION;
	while (low < high) {
		size_t mid = (low + high) / 2;
		int c = strncmp(symbol, sorted[mid]->name, len);

		if (!c && sorted[mid]->name[len])
			c = -1;
		if (!c)
			return sorted[mid];
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

bool cuda_name_is_driver(const char *name)
{
	const struct cuda_call *c;
	uint8_t twin;

	if (!strncmp(name, "cuda:", 5))
		name += 5;
	c = call_of(name, &twin);
	return c && c->api == API_DRIVER;
}

void plan_site__cuda(const struct plan_site *s, struct qbpf_cuda_site *out)
{
	const struct cuda_call *c = &calls[s->cuda - 1];

	*out = c->site;
	if (s->cuda_twin & CUDA_TWIN_PER_THREAD)
		out->flags |= QBPF_CUDA_PER_THREAD;
	if (c->how != HOW_V2 || s->cuda_twin & CUDA_TWIN_VERSION)
		return;
	/* Before CUDA 3.2: sizes of 32 bits, and structures that are laid out otherwise. */
	if (!out->bytes[0].deref) {
		out->flags |= QBPF_CUDA_SIZE32;
		return;
	}
	memset(out->bytes, 0, sizeof(out->bytes));
	out->flags &= ~QBPF_CUDA_MEMORY_TYPES;
	out->dir = QBPF_CUDA_DIR_UNKNOWN;
}

static const struct elf_func *defined(const struct func_table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!(t->funcs[i].flags & FUNC_IMPORTED) && !strcmp(t->funcs[i].name, name))
			return &t->funcs[i];
	return NULL;
}

/*
 * __cudaLaunchKernel, which nvcc's launches call, does nothing but jump to cudaLaunchKernel: as
 * a site of its own it would be the same call twice.
 */
static bool only_jumps_on(const struct plan_object *o, const struct cuda_call *c,
			  const struct elf_func *f)
{
	struct func_facts facts;
	bool jumps;

	if (c->how != HOW_WRAP || !o->img || !defined(o->funcs, c->name + strspn(c->name, "_")) ||
	    func_facts__read(o->img, f->addr, f->size, &facts))
		return false;
	jumps = facts.decoded && !facts.nret && facts.ntail == 1 && !facts.has_calls;
	func_facts__clear(&facts);
	return jumps;
}

static int add(struct plan *p, const struct cuda_call *c, uint8_t twin, const struct elf_func *f,
	       uint32_t object, const char *path)
{
	struct plan_site s = plan__entry_of(f, object);
	char name[64];

	s.cuda = (uint16_t)(c - calls + 1);
	s.cuda_twin = twin;
	/* Known to -f by the same key: no function has two probes. */
	if (plan__known(p, "func:%u:%llx", object, (unsigned long long)f->addr))
		return 0;
	s.span = plan__known(p, "cuda:%s", c->name);
	if (!s.span) {
		snprintf(name, sizeof(name), "cuda:%s", c->name);
		s.span = plan__add_span(p, name, SPAN_CUDA, object, path);
		if (!s.span || plan__remember(p, s.span, "cuda:%s", c->name))
			return -ENOMEM;
	}
	if (plan__add_site(p, &s))
		return -ENOMEM;
	return plan__remember(p, s.span, "func:%u:%llx", object, (unsigned long long)f->addr);
}

/* What is defined here; calls cb for each until it fails. */
static int each_call(const struct plan_object *o,
		     int (*cb)(void *ctx, const struct cuda_call *c, uint8_t twin,
			       const struct elf_func *f),
		     void *ctx)
{
	int err = 0;

	for (size_t i = 0; o->funcs && !err && i < o->funcs->n; i++) {
		const struct elf_func *f = &o->funcs->funcs[i];
		const struct cuda_call *c;
		uint8_t twin;

		if (f->flags & (FUNC_IMPORTED | FUNC_IFUNC | FUNC_COLD))
			continue;
		c = call_of(f->name, &twin);
		if (c)
			err = cb(ctx, c, twin, f);
	}
	return err;
}

int select_cuda_func(struct plan *p, const struct plan_object *o, const struct elf_func *f,
		     uint32_t object)
{
	uint8_t twin;
	const struct cuda_call *c = call_of(f->name, &twin);
	int err;

	if (!c || only_jumps_on(o, c, f))
		return 0;
	err = add(p, c, twin, f, object, o->path);
	return err ? err : 1;
}

struct taking {
	struct plan *p;
	const struct plan_object *o;
	uint32_t object;
	bool runtime, driver;
	struct pattern *patterns; /* instead of these two */
	size_t npatterns;
	int err; /* -ENOMEM */
};

static int note_api(void *ctx, const struct cuda_call *c, uint8_t twin, const struct elf_func *f)
{
	struct taking *t = ctx;

	(void)twin;
	(void)f;
	if (c->api == API_RUNTIME)
		t->runtime = true;
	else
		t->driver = true;
	return 0;
}

/* By -u; a pattern that takes it has found something. */
static bool asked_for(struct taking *t, const struct cuda_call *c)
{
	bool yes = false;

	for (size_t i = 0; i < t->npatterns; i++) {
		const struct pattern *pt = &t->patterns[i];

		if (!pattern__object(pt, t->o->path) || !pattern__marker(pt, "cuda", c->name))
			continue;
		yes = true;
		if (!plan__known(t->p, "used:-u %s", pt->text))
			t->err = plan__remember(t->p, 1, "used:-u %s", pt->text);
	}
	return yes;
}

static int take(void *ctx, const struct cuda_call *c, uint8_t twin, const struct elf_func *f)
{
	struct taking *t = ctx;

	if (!(t->npatterns	      ? asked_for(t, c)
	      : c->api == API_RUNTIME ? t->runtime
				      : t->driver) ||
	    only_jumps_on(t->o, c, f))
		return 0;
	return add(t->p, c, twin, f, t->object, t->o->path);
}

/* Which of the two to arm in the objects that are looked at now; what is there, in t. */
static int choose(struct taking *t, enum cuda_api api)
{
	bool runtime = t->runtime, driver = t->driver;
	int err = 0;

	t->runtime = api != CUDA_API_DRIVER;
	t->driver = api == CUDA_API_DRIVER || api == CUDA_API_BOTH;
	if (api != CUDA_API_AUTO)
		return 0;
	if (runtime && plan__known(t->p, "cuda driver"))
		err = plan__note(t->p, "cuda: a runtime was opened after the driver: the driver's "
				       "calls inside the runtime's are spans of their own, counted "
				       "once in the figures of copies and launches");
	if (!err && runtime)
		err = plan__remember(t->p, 1, "cuda runtime");
	if (err || plan__known(t->p, "cuda runtime") || !driver)
		return err;
	t->driver = true;
	err = plan__remember(t->p, 1, "cuda driver");
	return err ? err
		   : plan__note(t->p, "cuda: the driver's calls are traced: no CUDA runtime with "
				      "symbols is mapped (one that is linked statically into a "
				      "stripped file has none)");
}

/* "cuda:GLOB", perhaps behind "OBJ!". */
static bool names_cuda(const char *pattern)
{
	struct pattern pt;
	bool yes;

	if (pattern__parse(&pt, pattern))
		return false;
	yes = !strncmp(pt.glob, "cuda:", 5);
	pattern__clear(&pt);
	return yes;
}

static bool by_name_only(const struct plan_opts *o)
{
	for (size_t i = 0; i < o->nmarkers; i++)
		if (names_cuda(o->markers[i]))
			return true;
	return false;
}

bool plan_opts__wants_cuda(const struct plan_opts *o)
{
	return o->cuda != CUDA_OFF && (o->cuda != CUDA_AGENT || by_name_only(o));
}

static int parse_patterns(struct taking *t, const struct plan_opts *o)
{
	int err = 0;

	t->patterns = calloc(o->nmarkers + 1, sizeof(*t->patterns));
	if (!t->patterns)
		return -ENOMEM;
	for (size_t i = 0; !err && i < o->nmarkers; i++) {
		if (!names_cuda(o->markers[i]))
			continue;
		err = pattern__parse(&t->patterns[t->npatterns], o->markers[i]);
		t->npatterns += !err;
	}
	return err;
}

int select_cuda(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		size_t from, size_t n)
{
	struct taking t = {.p = p};
	int err;

	if (!plan_opts__wants_cuda(o))
		return 0;
	err = parse_patterns(&t, o);
	for (size_t i = from; !err && i < n; i++)
		each_call(&objs[i], note_api, &t);
	if (!err && !t.npatterns && (t.runtime || t.driver))
		err = choose(&t, o->cuda_api);
	for (size_t i = from; !err && i < n; i++) {
		t.o = &objs[i];
		t.object = i;
		err = each_call(&objs[i], take, &t);
		if (!err)
			err = t.err;
	}
	for (size_t i = 0; i < t.npatterns; i++)
		pattern__clear(&t.patterns[i]);
	free(t.patterns);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plan as a container: growing arrays, unique names, an index of what is already there. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"

struct index_entry {
	char *key;
	uint64_t hash;
	uint32_t value;
};

struct plan_index {
	struct index_entry *slots; /* open addressing, power of two */
	size_t cap, n;
};

static uint64_t hash_of(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h;
}

static struct index_entry *index_slot(const struct plan_index *x, const char *key, uint64_t hash)
{
	size_t i = hash & (x->cap - 1);

	while (x->slots[i].key && (x->slots[i].hash != hash || strcmp(x->slots[i].key, key)))
		i = (i + 1) & (x->cap - 1);
	return &x->slots[i];
}

static int index_grow(struct plan_index *x)
{
	struct plan_index bigger = {.cap = x->cap ? x->cap * 2 : 256, .n = x->n};
	size_t i;

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < x->cap; i++)
		if (x->slots[i].key)
			*index_slot(&bigger, x->slots[i].key, x->slots[i].hash) = x->slots[i];
	free(x->slots);
	*x = bigger;
	return 0;
}

uint32_t plan_index__get(const struct plan *p, const char *key)
{
	const struct plan_index *x = p->index;

	return x->n ? index_slot(x, key, hash_of(key))->value : 0;
}

int plan_index__put(struct plan *p, const char *key, uint32_t value)
{
	struct plan_index *x = p->index;
	uint64_t hash = hash_of(key);
	struct index_entry *s;
	int err;

	if (x->n * 2 >= x->cap) {
		err = index_grow(x);
		if (err)
			return err;
	}
	s = index_slot(x, key, hash);
	if (!s->key) {
		s->key = strdup(key);
		if (!s->key)
			return -ENOMEM;
		s->hash = hash;
		x->n++;
	}
	s->value = value;
	return 0;
}

uint32_t plan__known(const struct plan *p, const char *fmt, ...)
{
	uint32_t value = 0;
	char *key = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&key, fmt, ap) >= 0) {
		value = plan_index__get(p, key);
		free(key);
	}
	va_end(ap);
	return value;
}

int plan__remember(struct plan *p, uint32_t value, const char *fmt, ...)
{
	char *key = NULL;
	int err = -ENOMEM;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&key, fmt, ap) >= 0) {
		err = plan_index__put(p, key, value);
		free(key);
	}
	va_end(ap);
	return err;
}

struct plan *plan__new(void)
{
	struct plan *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->index = calloc(1, sizeof(struct plan_index));
	if (!p->index) {
		free(p);
		return NULL;
	}
	return p;
}

void plan__free(struct plan *p)
{
	struct plan_index *x;
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->nspans; i++) {
		free(p->spans[i].name);
		free(p->spans[i].way_reason);
	}
	for (i = 0; i < p->nsites; i++)
		free(p->sites[i].reason);
	for (i = 0; i < p->nnotes; i++)
		free(p->notes[i]);
	x = p->index;
	for (i = 0; i < x->cap; i++)
		free(x->slots[i].key);
	free(x->slots);
	free(x);
	free(p->spans);
	free(p->sites);
	free(p->notes);
	free(p);
}

/* Makes room for one more of `size` bytes. */
static int grow(void *array, size_t n, size_t *cap, size_t size)
{
	void **a = array;
	size_t want = *cap ? *cap * 2 : 16;
	void *bigger;

	if (n < *cap)
		return 0;
	bigger = reallocarray(*a, want, size);
	if (!bigger)
		return -ENOMEM;
	*a = bigger;
	*cap = want;
	return 0;
}

const char *path_base(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

/* A name that no span has yet. */
static char *unique_name(const struct plan *p, const char *name, uint32_t object, const char *path)
{
	uint32_t holder = plan__known(p, "name:%s", name);
	char *base = NULL, *out = NULL;
	unsigned int i;

	if (!holder)
		return strdup(name);
	if (p->spans[holder - 1].object == object)
		base = strdup(name);
	else if (asprintf(&base, "%s (%s)", name, path_base(path)) < 0)
		base = NULL;
	if (!base || !plan__known(p, "name:%s", base))
		return base;
	for (i = 2; i; i++) {
		if (asprintf(&out, "%s#%u", base, i) < 0) {
			out = NULL;
			break;
		}
		if (!plan__known(p, "name:%s", out))
			break;
		free(out);
		out = NULL;
	}
	free(base);
	return out;
}

uint32_t plan__add_span(struct plan *p, const char *name, enum span_kind kind, uint32_t object,
			const char *object_path)
{
	struct plan_span *s;

	if (p->nspans >= QBPF_SPANS_MAX - 1 ||
	    grow(&p->spans, p->nspans, &p->cap_spans, sizeof(*p->spans)))
		return 0;
	s = &p->spans[p->nspans];
	memset(s, 0, sizeof(*s));
	s->name = unique_name(p, name, object, object_path);
	if (!s->name)
		return 0;
	if (plan__remember(p, p->nspans + 1, "name:%s", s->name)) {
		free(s->name);
		return 0;
	}
	s->kind = kind;
	s->object = object;
	p->nspans++;
	return p->nspans;
}

struct plan_site plan__entry_of(const struct elf_func *f, uint32_t object)
{
	return (struct plan_site){
	    .object = object,
	    .role = QBPF_ROLE_ENTRY,
	    .addr = f->addr,
	    .found_addr = f->addr,
	    .off = f->off,
	    .func_addr = f->addr,
	    .func_size = f->size,
	};
}

int plan__add_site(struct plan *p, const struct plan_site *s)
{
	if (grow(&p->sites, p->nsites, &p->cap_sites, sizeof(*p->sites)))
		return -ENOMEM;
	p->sites[p->nsites++] = *s;
	return 0;
}

int plan__note(struct plan *p, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	if (plan__known(p, "note:%s", text)) {
		free(text);
		return 0;
	}
	if (grow(&p->notes, p->nnotes, &p->cap_notes, sizeof(*p->notes)) ||
	    plan__remember(p, 1, "note:%s", text)) {
		free(text);
		return -ENOMEM;
	}
	p->notes[p->nnotes++] = text;
	return 0;
}

const char *verdict_name(enum verdict v)
{
	static const char *const names[] = {
	    [VERDICT_PENDING] = "pending",
	    [VERDICT_ARM] = "armed",
	    [VERDICT_RELOCATED] = "relocated",
	    [VERDICT_REFUSED] = "refused",
	};

	return (size_t)v < sizeof(names) / sizeof(*names) ? names[v] : "?";
}

static const char *const way_names[] = {
    [RET_AUTO] = "auto", [RET_GUARD] = "guard", [RET_URETPROBE] = "uretprobe",
    [RET_INSNS] = "ret", [RET_NONE] = "none",
};

const char *return_way_name(enum return_way w)
{
	return (size_t)w < sizeof(way_names) / sizeof(*way_names) ? way_names[w] : "?";
}

static int name_index(const char *const *names, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, names[i]))
			return (int)i;
	return -EINVAL;
}

int return_way_parse(const char *s, enum return_way *out)
{
	int i = name_index(way_names, sizeof(way_names) / sizeof(*way_names), s);

	if (i >= 0)
		*out = (enum return_way)i;
	return i < 0 ? i : 0;
}

int cuda_mode_parse(const char *s, enum cuda_mode *out)
{
	static const char *const names[] = {
	    [CUDA_AUTO] = "auto",
	    [CUDA_UPROBE] = "uprobe",
	    [CUDA_AGENT] = "agent",
	    [CUDA_OFF] = "off",
	};
	int i = name_index(names, sizeof(names) / sizeof(*names), s);

	if (i >= 0)
		*out = (enum cuda_mode)i;
	return i < 0 ? i : 0;
}

int cuda_api_parse(const char *s, enum cuda_api *out)
{
	static const char *const names[] = {
	    [CUDA_API_AUTO] = "auto",
	    [CUDA_API_RUNTIME] = "runtime",
	    [CUDA_API_DRIVER] = "driver",
	    [CUDA_API_BOTH] = "both",
	};
	int i = name_index(names, sizeof(names) / sizeof(*names), s);

	if (i >= 0)
		*out = (enum cuda_api)i;
	return i < 0 ? i : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions and their cold parts.
 *
 * gcc moves what it thinks unlikely into NAME.cold, which is entered and left by plain jumps:
 * it is the same function, with the same frame. clang's NAME.cold.1 is a function that is called.
 * And several static functions may have one name. So a part belongs to a function of that name only
 * if a jump leads from one into the other.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/parts.h"

struct cold {
	const char *name; /* of the part */
	size_t base;	  /* length of NAME */
	uint32_t idx;
};

struct parts {
	const struct plan_object *obj;
	struct cold *colds; /* sorted by NAME */
	size_t n;
	uint32_t *hots; /* functions that have the NAME of some part, sorted by name */
	size_t nhots;
	bool built;
};

static int cmp_base(const char *a, size_t na, const char *b, size_t nb)
{
	int c = memcmp(a, b, na < nb ? na : nb);

	return c ? c : (na > nb) - (na < nb);
}

static int by_base(const void *pa, const void *pb)
{
	const struct cold *a = pa, *b = pb;

	return cmp_base(a->name, a->base, b->name, b->base);
}

/* The first part of NAME, or NULL. */
static const struct cold *first_cold(const struct parts *p, const char *name, size_t len)
{
	size_t lo = 0, hi = p->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (cmp_base(p->colds[mid].name, p->colds[mid].base, name, len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == p->n || cmp_base(p->colds[lo].name, p->colds[lo].base, name, len))
		return NULL;
	return &p->colds[lo];
}

static void build(struct parts *p)
{
	const struct func_table *t = p->obj->funcs;
	const struct elf_func *f;
	const char *dot;
	size_t i, n = 0;

	p->built = true;
	for (i = 0; i < t->n; i++)
		n += t->funcs[i].flags & FUNC_COLD && strstr(t->funcs[i].name, ".cold");
	if (!n)
		return;
	p->colds = calloc(n, sizeof(*p->colds));
	if (!p->colds)
		return;
	for (i = 0; i < t->n; i++) {
		f = &t->funcs[i];
		dot = f->flags & FUNC_COLD ? strstr(f->name, ".cold") : NULL;
		if (dot)
			p->colds[p->n++] = (struct cold){f->name, dot - f->name, i};
	}
	qsort(p->colds, p->n, sizeof(*p->colds), by_base);
	for (i = 0, n = 0; i < t->n; i++) {
		f = &t->funcs[i];
		if (f->flags & (FUNC_COLD | FUNC_IMPORTED) ||
		    !first_cold(p, f->name, strlen(f->name)))
			continue;
		if (p->nhots == n) {
			uint32_t *bigger = reallocarray(p->hots, n ? 2 * n : 64, sizeof(*bigger));

			if (!bigger)
				return;
			p->hots = bigger;
			n = n ? 2 * n : 64;
		}
		p->hots[p->nhots++] = i;
	}
}

struct parts *parts__new(const struct plan_object *obj)
{
	struct parts *p = calloc(1, sizeof(*p));

	if (p)
		p->obj = obj;
	return p;
}

void parts__free(struct parts *p)
{
	if (!p)
		return;
	free(p->colds);
	free(p->hots);
	free(p);
}

/* The function that a cold part belongs to, or NULL. */
static const struct elf_func *hot_of(struct parts *p, const struct elf_func *cold)
{
	const struct func_table *t = p->obj->funcs;
	const char *dot = strstr(cold->name, ".cold");
	struct code_range from, into = {cold->addr, cold->size};
	const struct elf_func *f;
	size_t i;

	if (!p->built)
		build(p);
	for (i = 0; dot && i < p->nhots; i++) {
		f = &t->funcs[p->hots[i]];
		from = (struct code_range){f->addr, f->size};
		if (!strncmp(f->name, cold->name, dot - cold->name) && !f->name[dot - cold->name] &&
		    code_jumps_into(p->obj->img, &from, &into))
			return f;
	}
	return NULL;
}

static void add_colds(struct parts *p, struct func_code *out)
{
	const struct func_table *t = p->obj->funcs;
	const char *name = out->func->name;
	const struct elf_func *f;
	const struct cold *c;
	size_t len = strlen(name);

	if (!p->built)
		build(p);
	for (c = first_cold(p, name, len);
	     c && c < p->colds + p->n && !cmp_base(c->name, c->base, name, len); c++) {
		f = &t->funcs[c->idx];
		out->ranges[out->n] = (struct code_range){f->addr, f->size};
		if (out->n < PARTS_MAX && f->size &&
		    code_jumps_into(p->obj->img, &out->ranges[0], &out->ranges[out->n]))
			out->n++;
		if (out->n == PARTS_MAX)
			break;
	}
}

void parts__find(struct parts *p, uint64_t addr, bool entry, struct func_code *out)
{
	const struct plan_object *o = p->obj;
	const struct elf_func *f = o->funcs ? func_table__find_addr(o->funcs, addr) : NULL;
	uint64_t start = 0, size = 0;
	bool guessed;

	memset(out, 0, sizeof(*out));
	if (f && f->flags & FUNC_COLD && strstr(f->name, ".cold") && hot_of(p, f))
		f = hot_of(p, f);
	guessed = f && (!f->size || f->flags & FUNC_SIZE_GUESSED);
	if (o->unwind && unwind_table__find(o->unwind, addr, &start, &size) == UNWIND_UNKNOWN)
		size = 0;
	/*
	 * A label inside a function looks like a function of its own, and what is said of the code
	 * behind it alone proves nothing: around a marker the unwind table's wider view counts.
	 */
	if (size && (!f || (guessed && start <= f->addr) || (!entry && start < f->addr))) {
		out->ranges[out->n++] = (struct code_range){start, size};
		out->func = f && f->addr == start ? f : NULL;
		out->size_from_fde = true;
		return;
	}
	if (!f || !f->size)
		return;
	out->ranges[out->n++] = (struct code_range){f->addr, f->size};
	out->func = f;
	out->guessed = guessed;
	if (!guessed)
		add_colds(p, out);
}

static bool in_plt(const struct elf_image *img, uint64_t addr)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	const uint8_t *data;
	uint64_t start;
	size_t i, len;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!elf_image__section(img, names[i], &data, &len, &start) && addr - start < len)
			return true;
	return false;
}

static bool covered(const struct func_code *code, uint64_t addr)
{
	size_t i;

	for (i = 0; i < code->n; i++)
		if (addr - code->ranges[i].addr < code->ranges[i].size)
			return true;
	return false;
}

/* Is the code that a jump leads to a part of the function and no function? Its range, if so. */
static bool is_part(const struct parts *p, const struct func_code *code, uint64_t target,
		    struct code_range *part)
{
	const struct plan_object *o = p->obj;
	const struct elf_func *f = o->funcs ? func_table__find_addr(o->funcs, target) : NULL;

	if (f) {
		*part = (struct code_range){f->addr, f->size};
		return f->flags & FUNC_COLD && strstr(f->name, ".cold") && f->size;
	}
	if (!o->unwind || in_plt(o->img, target) ||
	    unwind_table__find(o->unwind, target, &part->addr, &part->size) == UNWIND_UNKNOWN)
		return false;
	return target != part->addr || unwind_table__starts_framed(o->unwind, part->addr) ||
	       code_jumps_into(o->img, part, &code->ranges[0]);
}

static bool follow(const struct parts *p, struct func_code *code, const struct func_facts *facts)
{
	struct code_range part;
	size_t before = code->n;
	unsigned int i;

	for (i = 0; i < facts->nexits && code->n < PARTS_MAX; i++)
		if (!covered(code, facts->exits[i]) && is_part(p, code, facts->exits[i], &part))
			code->ranges[code->n++] = part;
	return code->n > before;
}

int parts__facts(const struct parts *p, struct func_code *code, struct func_facts *out)
{
	int err;

	do {
		err = func_facts__read_ranges(p->obj->img, code->ranges, code->n, out);
		if (err || !follow(p, code, out))
			return err;
		func_facts__clear(out);
	} while (1);
}

bool parts__may_be_called(const struct parts *p, uint64_t addr)
{
	const struct elf_func *f;
	uint64_t start, size;

	f = p->obj->funcs ? func_table__find_addr(p->obj->funcs, addr) : NULL;
	if (f)
		return f->addr == addr;
	if (in_plt(p->obj->img, addr))
		return true;
	if (p->obj->unwind &&
	    unwind_table__find(p->obj->unwind, addr, &start, &size) != UNWIND_UNKNOWN)
		return start == addr;
	return false;
}

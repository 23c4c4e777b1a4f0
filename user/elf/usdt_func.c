/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joins the records of .note.qbpf to their markers by address of the site.
 *
 * A record gives the distances to strings in the loaded file. In C the one of a function's end
 * has no name: it has that of the record with the same file, line and id.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/note.h"
#include "elf/pretty_func.h"
#include "elf/usdt_func.h"

#define QBPF_NOTE_TYPE 1
#define NAME_MAX_LEN   4096
#define RECORDS_MAX    (1u << 18)
#define KEPT_MAX       (64u << 20) /* of all names together */

struct record {
	uint64_t site, func_addr, file_addr;
	uint32_t line, id;
	const char *func, *file;
	const char *name; /* func without return type and parameters */
	bool ambiguous;	  /* the function's name is also that of another place */
};

struct records {
	struct record *v;
	size_t n, cap;
	size_t kept;
};

static int read_records(const struct elf_image *img, struct records *r)
{
	struct elf_section sec = {0};

	while (!elf_image__next_section(img, sec.index, ".note.qbpf", SHT_NOTE, &sec)) {
		struct notes it = {0};
		const uint8_t *data;
		struct note n;
		size_t len;

		if (elf_image__section_data(img, &sec, &data, &len))
			continue;
		it.p = data;
		it.end = data + len;
		while (notes__next(&it, &n)) {
			uint64_t dist[3], addr = sec.addr;
			struct record *rec;

			if (!note__is(&n, "qbpf", QBPF_NOTE_TYPE) || n.desc_len < 32 ||
			    r->n == RECORDS_MAX)
				continue;
			if (r->n == r->cap) {
				r->cap = r->cap ? r->cap * 2 : 64;
				rec = realloc(r->v, r->cap * sizeof(*rec));
				if (!rec)
					return -ENOMEM;
				r->v = rec;
			}
			rec = &r->v[r->n++];
			memset(rec, 0, sizeof(*rec));
			/* each is the distance from its own place; 0: none */
			memcpy(dist, n.desc, sizeof(dist));
			addr += (uint64_t)(n.desc - data);
			rec->site = addr + dist[0];
			rec->func_addr = dist[1] ? addr + 8 + dist[1] : 0;
			rec->file_addr = dist[2] ? addr + 16 + dist[2] : 0;
			memcpy(&rec->line, n.desc + 24, 4);
			memcpy(&rec->id, n.desc + 28, 4);
		}
	}
	return 0;
}

/* The string at addr, kept with the table; NULL when there is none, or it is not one. */
static const char *read_string(const struct elf_image *img, struct usdt_table *t, struct records *r,
			       uint64_t addr)
{
	const uint8_t *p;
	size_t n = addr ? elf_image__bytes(img, addr, NAME_MAX_LEN, &p) : 0;
	const uint8_t *nul = n ? memchr(p, 0, n) : NULL;

	if (!nul || nul == p || r->kept > KEPT_MAX)
		return NULL;
	r->kept += (size_t)(nul - p);
	return usdt_table__keep(t, p, (size_t)(nul - p));
}

static int cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Records of one place together, the one with a name first. */
static int cmp_place(const void *pa, const void *pb)
{
	const struct record *a = pa, *b = pb;
	int c = strcmp(a->file ? a->file : "", b->file ? b->file : "");

	if (!c)
		c = cmp_u64(a->line, b->line);
	if (!c)
		c = cmp_u64(a->id, b->id);
	return c ? c : (a->func == NULL) - (b->func == NULL);
}

static int cmp_name(const void *pa, const void *pb)
{
	const struct record *a = pa, *b = pb;
	int c = strcmp(a->name ? a->name : "", b->name ? b->name : "");

	if (!c)
		c = strcmp(a->file ? a->file : "", b->file ? b->file : "");
	return c ? c : cmp_u64(a->line, b->line);
}

static int cmp_site(const void *pa, const void *pb)
{
	const struct record *a = pa, *b = pb;

	return cmp_u64(a->site, b->site);
}

static bool same_place(const struct record *a, const struct record *b)
{
	return a->line == b->line && !strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

static int name_records(struct usdt_table *t, struct records *r)
{
	char name[NAME_MAX_LEN];

	for (size_t i = 0; i < r->n; i++) {
		struct record *rec = &r->v[i];

		if (!rec->func || r->kept > KEPT_MAX)
			continue;
		pretty_func__name(rec->func, name, sizeof(name));
		r->kept += strlen(name);
		rec->name = usdt_table__keep(t, name, strlen(name));
		if (!rec->name)
			return -ENOMEM;
	}
	return 0;
}

static int complete(const struct elf_image *img, struct usdt_table *t, struct records *r)
{
	for (size_t i = 0; i < r->n; i++) {
		r->v[i].func = read_string(img, t, r, r->v[i].func_addr);
		r->v[i].file = read_string(img, t, r, r->v[i].file_addr);
	}
	qsort(r->v, r->n, sizeof(*r->v), cmp_place);
	for (size_t i = 1; i < r->n; i++)
		if (!r->v[i].func && same_place(&r->v[i], &r->v[i - 1]) &&
		    r->v[i].id == r->v[i - 1].id)
			r->v[i].func = r->v[i - 1].func;

	if (name_records(t, r))
		return -ENOMEM;
	qsort(r->v, r->n, sizeof(*r->v), cmp_name);
	for (size_t i = 0, to; i < r->n; i = to) {
		const char *name = r->v[i].name;
		bool several = false;

		for (to = i + 1; to < r->n && name && r->v[to].name && !strcmp(name, r->v[to].name);
		     to++)
			several |= !same_place(&r->v[i], &r->v[to]);
		for (size_t j = i; j < to; j++)
			r->v[j].ambiguous = several;
	}
	qsort(r->v, r->n, sizeof(*r->v), cmp_site);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int name_marker(struct usdt_table *t, struct records *r, struct usdt_marker *m)
{
	struct record key = {.site = m->addr}, *rec;
	const char *suffix = strstr(m->name, "__");
	char *name = NULL;
	int n;

	rec = bsearch(&key, r->v, r->n, sizeof(key), cmp_site);
	if (!rec || !rec->name || !suffix || r->kept > KEPT_MAX)
		return 0;
	if (rec->ambiguous && rec->file)
		n = asprintf(&name, "%s (%s:%u)%s", rec->name, base_name(rec->file), rec->line,
			     suffix);
	else
		n = asprintf(&name, "%s%s", rec->name, suffix);
	if (n < 0)
		return -ENOMEM;
	m->func = rec->func;
	m->file = rec->file;
	m->line = rec->line;
	m->name = usdt_table__keep(t, name, (size_t)n);
	r->kept += (size_t)n;
	free(name);
	return m->name ? 0 : -ENOMEM;
}

int usdt_func__name(const struct elf_image *img, struct usdt_table *t)
{
	struct records r = {0};
	int err;

	err = read_records(img, &r);
	if (err || !r.n)
		goto out;
	err = complete(img, t, &r);
	for (size_t i = 0; i < t->n && !err; i++)
		if (!strcmp(t->markers[i].provider, QBPF_FUNC_PROVIDER))
			err = name_marker(t, &r, &t->markers[i]);
out:
	free(r.v);
	return err;
}

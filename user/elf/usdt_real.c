/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joins the argument records of .note.qbpf to their markers by address of the site.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/note.h"
#include "elf/usdt_real.h"

#define QBPF_NOTE_TYPE 2
#define QBPF_NOTE_SIZE 12
#define RECORDS_MAX    (1u << 18)

struct real {
	uint64_t site;
	uint32_t mask;
};

static int add_section(const struct elf_image *img, const struct elf_section *sec, struct real **v,
		       size_t *n)
{
	struct notes it = {0};
	const uint8_t *data;
	struct note note;
	size_t len;

	if (elf_image__section_data(img, sec, &data, &len))
		return 0;
	it.p = data;
	it.end = data + len;
	while (*n < RECORDS_MAX && notes__next(&it, &note)) {
		uint64_t dist;
		struct real *p;

		if (!note__is(&note, "qbpf", QBPF_NOTE_TYPE) || note.desc_len < QBPF_NOTE_SIZE)
			continue;
		if (!(*n & (*n - 1))) { /* full at each power of two */
			p = realloc(*v, (*n ? *n * 2 : 1) * sizeof(*p));
			if (!p)
				return -ENOMEM;
			*v = p;
		}
		p = &(*v)[(*n)++];
		memcpy(&dist, note.desc, sizeof(dist)); /* from its own place */
		p->site = sec->addr + (uint64_t)(note.desc - data) + dist;
		memcpy(&p->mask, note.desc + sizeof(dist), sizeof(p->mask));
	}
	return 0;
}

static int cmp_site(const void *pa, const void *pb)
{
	const struct real *a = pa, *b = pb;

	return a->site < b->site ? -1 : a->site > b->site;
}

int usdt_real__mark(const struct elf_image *img, struct usdt_table *t)
{
	struct elf_section sec = {0};
	struct real *v = NULL;
	size_t n = 0;
	int err = 0;

	while (!elf_image__next_section(img, sec.index, ".note.qbpf", SHT_NOTE, &sec)) {
		err = add_section(img, &sec, &v, &n);
		if (err)
			goto out;
	}
	if (!n)
		goto out;
	qsort(v, n, sizeof(*v), cmp_site);
	for (size_t i = 0; i < t->n; i++) {
		struct usdt_marker *m = &t->markers[i];
		struct real key = {.site = m->addr};
		const struct real *found = bsearch(&key, v, n, sizeof(*v), cmp_site);

		for (unsigned int j = 0; found && j < m->nargs; j++) {
			struct usdt_arg *a = &m->args[j];

			if (found->mask >> j & 1 && (a->size == 4 || a->size == 8)) {
				a->is_float = true;
				a->is_signed = false;
			}
		}
	}
out:
	free(v);
	return err;
}

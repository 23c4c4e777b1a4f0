/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the notes that sys/sdt.h and qbpf/probe.h leave in .note.stapsdt: owner "stapsdt",
 * type 3, and as content three addresses (site, link-time .stapsdt.base, semaphore) and
 * three strings (provider, name, arguments).
 *
 * Each note is a site of its own. An inlined or unrolled marker has several, each with its
 * own argument places and possibly its own semaphore, so nothing is merged here.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/note.h"
#include "elf/usdt.h"
#include "elf/usdt_func.h"
#include "elf/usdt_real.h"

#define STAPSDT_TYPE	 3
#define MARKERS_MAX	 (1u << 18)
#define NOTE_SECTION_MAX (64u << 20)

/* A symbol that operands name: a table of them is resolved by one pass over the symbols. */
struct wanted {
	const char *name;
	size_t len;
	uint64_t addr;
	bool found;
	const char *refused;
};

/* The notes themselves, copied, and names made from them: the markers point in here. */
struct text {
	struct text *next;
	char data[];
};

char *usdt_table__keep(struct usdt_table *t, const void *data, size_t len)
{
	struct text *text = malloc(sizeof(*text) + len + 1);

	if (!text)
		return NULL;
	memcpy(text->data, data, len);
	text->data[len] = '\0';
	text->next = t->priv;
	t->priv = text;
	return text->data;
}

static int add_marker(struct usdt_table *t, size_t *cap, const struct usdt_marker *m)
{
	if (t->n == *cap) {
		size_t want = *cap ? *cap * 2 : 16;
		struct usdt_marker *p = realloc(t->markers, want * sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->markers = p;
		*cap = want;
	}
	t->markers[t->n++] = *m;
	return 0;
}

static const char *take_string(const uint8_t **p, const uint8_t *end)
{
	const char *s = (const char *)*p;
	const uint8_t *nul = memchr(*p, 0, (size_t)(end - *p));

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

/* False: this note cannot be used. */
static bool decode_note(const struct elf_image *img, const uint8_t *desc, size_t len,
			uint64_t base_addr, struct usdt_marker *m)
{
	const uint8_t *p = desc + 24, *end = desc + len;
	uint64_t addrs[3], move;

	memset(m, 0, sizeof(*m));
	if (len < sizeof(addrs))
		return false;
	memcpy(addrs, desc, sizeof(addrs));
	m->provider = take_string(&p, end);
	m->name = m->provider ? take_string(&p, end) : NULL;
	m->argstr = m->name ? take_string(&p, end) : NULL;
	if (!m->argstr || !*m->provider || !*m->name)
		return false;

	/* prelink moves sections but does not know these addresses: the base tells how far. */
	move = base_addr && addrs[1] ? base_addr - addrs[1] : 0;
	m->addr = addrs[0] + move;
	if (!elf_image__addr_is_code(img, m->addr) || elf_image__addr_to_off(img, m->addr, &m->off))
		return false;
	/*
	 * Without its semaphore such a site would never be reached, and the kernel counts it by
	 * file offset only: one that lies in no file is of no use.
	 */
	if (addrs[2] && elf_image__addr_to_off(img, addrs[2] + move, &m->sema_off))
		return false;
	m->nargs = usdt_args__parse(m->argstr, elf_image__headers(img)->machine == ELF_AARCH64,
				    m->args, USDT_ARGS_MAX);
	return true;
}

static int read_section(const struct elf_image *img, const struct elf_section *sec,
			uint64_t base_addr, struct usdt_table *t, size_t *cap)
{
	struct usdt_marker m;
	struct notes it = {0};
	const uint8_t *data;
	struct note n;
	size_t len;
	char *copy;
	int err;

	err = elf_image__section_data(img, sec, &data, &len);
	if (err || len > NOTE_SECTION_MAX) {
		t->bad++;
		return 0;
	}
	copy = usdt_table__keep(t, data, len);
	if (!copy)
		return -ENOMEM;
	it.p = (const uint8_t *)copy;
	it.end = it.p + len;
	while (notes__next(&it, &n)) {
		if (!note__is(&n, "stapsdt", STAPSDT_TYPE))
			continue;
		/* Of code that the linker has thrown away (--gc-sections) the note may stay. */
		if (n.desc_len >= 8 && !memcmp(n.desc, "\0\0\0\0\0\0\0", 8))
			continue;
		if (t->n == MARKERS_MAX || !decode_note(img, n.desc, n.desc_len, base_addr, &m)) {
			t->bad++;
			continue;
		}
		err = add_marker(t, cap, &m);
		if (err)
			return err;
	}
	t->bad += it.truncated;
	return 0;
}

static int cmp_wanted(const void *pa, const void *pb)
{
	const struct wanted *a = pa, *b = pb;
	int c = memcmp(a->name, b->name, a->len < b->len ? a->len : b->len);

	return c ? c : a->len < b->len ? -1 : a->len > b->len;
}

static void see_symbol(struct wanted *w, const Elf64_Sym *sym, bool pie)
{
	if (GELF_ST_TYPE(sym->st_info) == STT_TLS)
		w->refused = "thread-local";
	else if (sym->st_shndx == SHN_ABS && pie)
		w->refused = "an absolute address in a file that is loaded anywhere";
	else if (w->found && w->addr != sym->st_value)
		w->refused = "several symbols have this name";
	w->found = true;
	w->addr = sym->st_value;
}

static void scan_symbols(const struct elf_image *img, uint32_t type, struct wanted *w, size_t n)
{
	struct elf_section sec, str;
	const uint8_t *syms, *names;
	size_t len, names_len, room;

	if (elf_image__next_section(img, 0, NULL, type, &sec) ||
	    elf_image__section_header(img, sec.link, &str) ||
	    elf_image__section_data(img, &sec, &syms, &len) ||
	    elf_image__section_data(img, &str, &names, &names_len))
		return;
	for (size_t i = 0; i + sizeof(Elf64_Sym) <= len; i += sizeof(Elf64_Sym)) {
		struct wanted key = {0}, *found;
		Elf64_Sym sym;
		const char *at;

		memcpy(&sym, syms + i, sizeof(sym));
		if (sym.st_shndx == SHN_UNDEF || !sym.st_name || sym.st_name >= names_len ||
		    GELF_ST_TYPE(sym.st_info) == STT_SECTION ||
		    GELF_ST_TYPE(sym.st_info) == STT_FILE)
			continue;
		key.name = (const char *)names + sym.st_name;
		room = names_len - sym.st_name;
		key.len = strnlen(key.name, room <= USDT_SYMBOL_MAX ? room : USDT_SYMBOL_MAX + 1);
		at = memchr(key.name, '@', key.len);
		if (at)
			key.len = (size_t)(at - key.name);
		found = bsearch(&key, w, n, sizeof(*w), cmp_wanted);
		if (found)
			see_symbol(found, &sym, elf_image__headers(img)->pie);
	}
}

/* Operands that name a symbol get its place relative to their site, or become unreadable. */
static int resolve_symbols(const struct elf_image *img, struct usdt_table *t)
{
	bool pie = elf_image__headers(img)->pie;
	struct wanted *w;
	size_t n = 0, unique = 0;

	for (size_t i = 0; i < t->n; i++)
		for (unsigned int j = 0; j < t->markers[i].nargs; j++)
			n += t->markers[i].args[j].symbol != NULL;
	if (!n)
		return 0;
	w = calloc(n, sizeof(*w));
	if (!w)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < t->n; i++) {
		for (unsigned int j = 0; j < t->markers[i].nargs; j++) {
			const struct usdt_arg *a = &t->markers[i].args[j];

			if (a->symbol)
				w[n++] = (struct wanted){.name = a->symbol, .len = a->symbol_len};
		}
	}
	qsort(w, n, sizeof(*w), cmp_wanted);
	for (size_t i = 0; i < n; i++)
		if (!unique || cmp_wanted(&w[unique - 1], &w[i]))
			w[unique++] = w[i];
	scan_symbols(img, SHT_SYMTAB, w, unique);
	scan_symbols(img, SHT_DYNSYM, w, unique);

	for (size_t i = 0; i < t->n; i++) {
		for (unsigned int j = 0; j < t->markers[i].nargs; j++) {
			struct usdt_arg *a = &t->markers[i].args[j];
			struct wanted key = {.name = a->symbol, .len = a->symbol_len}, *found;

			if (!a->symbol)
				continue;
			found = bsearch(&key, w, unique, sizeof(*w), cmp_wanted);
			if (!found || !found->found)
				usdt_arg__refuse(a, "names a symbol that the file does not have");
			else if (found->refused)
				usdt_arg__refuse(a, found->refused);
			else
				usdt_arg__resolve(a, found->addr, t->markers[i].addr, pie);
		}
	}
	free(w);
	return 0;
}

int usdt_table__read(const struct elf_image *img, struct usdt_table **out, struct err *e)
{
	struct elf_section sec = {0}, base = {0};
	struct usdt_table *t = calloc(1, sizeof(*t));
	size_t cap = 0;
	int err = -ENOMEM;

	*out = NULL;
	if (!t)
		goto out;
	if (elf_image__next_section(img, 0, ".stapsdt.base", 0, &base))
		base.addr = 0;
	while (!elf_image__next_section(img, sec.index, ".note.stapsdt", SHT_NOTE, &sec)) {
		err = read_section(img, &sec, base.addr, t, &cap);
		if (err)
			goto out;
	}
	err = resolve_symbols(img, t);
	if (!err)
		err = usdt_func__name(img, t);
	if (!err)
		err = usdt_real__mark(img, t);
	if (err)
		goto out;
	*out = t;
	t = NULL;
out:
	usdt_table__free(t);
	if (err)
		err_set(e, err, "%s: its markers: %s", elf_image__name(img), strerror(-err));
	return err;
}

void usdt_table__free(struct usdt_table *t)
{
	struct text *text, *next;

	if (!t)
		return;
	for (text = t->priv; text; text = next) {
		next = text->next;
		free(text);
	}
	free(t->markers);
	free(t);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collects the functions of a file from its symbol tables and orders them by address.
 *
 * Names are not copied: they point into the string tables of the images that the table
 * keeps. Every loop here is linear in the file or capped, because the file may be hostile:
 * two million symbols may share one address, or one name of a hundred megabytes.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/debugfile.h"
#include "elf/demangle.h"
#include "elf/symbols.h"

#define FUNCS_MAX	  (1u << 21)
#define NAME_LEN_MAX	  8192
#define CODE_SECTIONS_MAX 4096
#define ALIASES_COMPARED  64 /* of one address */
#define WALK_MAX	  64 /* functions that find_addr looks back over */
#define CHUNK		  (256u << 10)
#define KEPT_MAX	  (256u << 20) /* of names made here: Chrome's are 150 MB */
#define ABANDONED_MAX	  (16u << 20)
#define COLD_TAIL	  40 /* of a name, where .cold is looked for */

struct chunk {
	struct chunk *next;
	size_t used, cap;
	char data[];
};

/* A symbol before sorting. */
struct raw {
	uint64_t addr, size;
	const char *name;
	uint32_t flags;
	uint16_t rank; /* preferred name at one address: lowest first */
	bool dynsym;
};

struct code_section {
	uint64_t addr, end;
};

struct table_priv {
	struct elf_image *debug; /* separate or embedded */
	uint8_t *debug_data;	 /* of the embedded one */
	struct elf_image *embedded;
	struct chunk *chunks;
	size_t kept;	    /* bytes in them */
	size_t abandoned;   /* output of names that are made to exhaust the demangler */
	uint64_t *max_end;  /* highest end of funcs[0 .. i] */
	size_t ncode_funcs; /* funcs[ncode_funcs ..] are imported */
	char *source;
};

struct reader {
	const struct elf_image *img;
	struct table_priv *priv;
	struct raw *v;
	size_t n, cap;
	struct code_section *code;
	size_t ncode;
};

/* NULL: no memory, or more than KEPT_MAX in all. */
static char *keep(struct table_priv *p, const char *s, size_t len)
{
	struct chunk *c = p->chunks;
	char *out;

	if (p->kept + len > KEPT_MAX)
		return NULL;
	p->kept += len;
	if (!c || c->cap - c->used < len + 1) {
		size_t cap = len + 1 > CHUNK ? len + 1 : CHUNK;

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		c->next = p->chunks;
		c->used = 0;
		c->cap = cap;
		p->chunks = c;
	}
	out = c->data + c->used;
	memcpy(out, s, len);
	out[len] = '\0';
	c->used += len + 1;
	return out;
}

/* foo.cold, foo.cold.1, foo.part.0.cold: the unlikely part of foo, reached by jumps. */
static bool is_cold(const char *name, size_t len)
{
	size_t skip = len > COLD_TAIL ? len - COLD_TAIL : 0;
	const char *p = memmem(name + skip, len - skip, ".cold", 5);

	return p && p != name && (p + 5 == name + len || p[5] == '.');
}

/* Names that the linker gives to places, not to functions. */
static bool is_linker_mark(const char *name)
{
	static const char *const marks[] = {"etext", "_etext", "__etext", "__executable_start"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (!strcmp(name, marks[i]))
			return true;
	return false;
}

static int cmp_code(const void *pa, const void *pb)
{
	const struct code_section *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int read_code_sections(struct reader *r)
{
	struct elf_section sec = {0};

	r->code = calloc(CODE_SECTIONS_MAX, sizeof(*r->code));
	if (!r->code)
		return -ENOMEM;
	while (r->ncode < CODE_SECTIONS_MAX &&
	       !elf_image__next_section(r->img, sec.index, NULL, SHT_PROGBITS, &sec)) {
		if (!(sec.flags & SHF_EXECINSTR) || sec.addr + sec.size < sec.addr)
			continue;
		r->code[r->ncode++] =
		    (struct code_section){.addr = sec.addr, .end = sec.addr + sec.size};
	}
	qsort(r->code, r->ncode, sizeof(*r->code), cmp_code);
	return 0;
}

static uint64_t section_end(const struct reader *r, uint64_t addr)
{
	size_t lo = 0, hi = r->ncode;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->code[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < r->code[lo - 1].end ? r->code[lo - 1].end : addr;
}

static bool in_code_section(const struct reader *r, uint64_t addr)
{
	return section_end(r, addr) > addr;
}

static uint16_t rank_of(const Elf64_Sym *sym, const char *name, size_t len)
{
	unsigned int bind = GELF_ST_BIND(sym->st_info), type = GELF_ST_TYPE(sym->st_info);
	unsigned int under = 0;

	while (under < 3 && name[under] == '_')
		under++;
	return (uint16_t)((type == STT_NOTYPE) << 15 | is_cold(name, len) << 14 |
			  (bind == STB_GLOBAL ? 0u
			   : bind == STB_WEAK ? 1u
					      : 2u)
			      << 12 |
			  (sym->st_size == 0) << 11 | under << 9 | (len > 511 ? 511 : len));
}

static int push(struct reader *r, const struct raw *raw)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 1024;
		struct raw *v = realloc(r->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		r->v = v;
		r->cap = cap;
	}
	r->v[r->n++] = *raw;
	return 0;
}

/* Is it a function, and whose? False: something else. */
static bool classify(const struct reader *r, const Elf64_Sym *sym, const char *name,
		     struct raw *raw)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info), bind = GELF_ST_BIND(sym->st_info);

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_shndx == SHN_UNDEF) {
		/* Weak ones without a type are hooks such as __gmon_start__. */
		if (type == STT_NOTYPE && bind != STB_GLOBAL)
			return false;
		raw->flags = FUNC_IMPORTED;
		return true;
	}
	/* Labels in hand-written assembly: those that other files may call. */
	if (type == STT_NOTYPE && (bind == STB_LOCAL || sym->st_shndx == SHN_ABS ||
				   is_linker_mark(name) || !in_code_section(r, sym->st_value)))
		return false;
	if (!elf_image__addr_is_code(r->img, sym->st_value))
		return false;
	raw->addr = sym->st_value;
	raw->size = sym->st_size;
	if (type == STT_GNU_IFUNC)
		raw->flags |= FUNC_IFUNC;
	if (bind == STB_LOCAL)
		raw->flags |= FUNC_LOCAL;
	return true;
}

/* Adds the functions of one symbol table; *found: how many. */
static int read_table(struct reader *r, const struct elf_image *from, uint32_t type, bool imports,
		      bool defined, size_t *found)
{
	struct elf_section sec, str;
	const uint8_t *syms, *names, *last;
	size_t len, names_len;
	int err;

	*found = 0;
	if (elf_image__next_section(from, 0, NULL, type, &sec) ||
	    elf_image__section_header(from, sec.link, &str) ||
	    elf_image__section_data(from, &sec, &syms, &len) ||
	    elf_image__section_data(from, &str, &names, &names_len))
		return 0;
	/* Only what a NUL ends is a string. */
	last = names_len ? memrchr(names, 0, names_len) : NULL;
	names_len = last ? (size_t)(last - names) : 0;

	for (size_t i = 0; i + sizeof(Elf64_Sym) <= len; i += sizeof(Elf64_Sym)) {
		struct raw raw = {.dynsym = type == SHT_DYNSYM};
		const char *name, *at;
		Elf64_Sym sym;
		size_t n;

		memcpy(&sym, syms + i, sizeof(sym));
		if (!sym.st_name || sym.st_name >= names_len)
			continue;
		name = (const char *)names + sym.st_name;
		if (!classify(r, &sym, name, &raw) ||
		    !(raw.flags & FUNC_IMPORTED ? imports : defined))
			continue;
		n = strnlen(name, NAME_LEN_MAX + 1);
		if (!n || n > NAME_LEN_MAX)
			continue;
		if (is_cold(name, n))
			raw.flags |= FUNC_COLD;
		at = memchr(name, '@', n);
		if (at) {
			if (at == name)
				continue;
			n = (size_t)(at - name);
			name = keep(r->priv, name, n);
			if (!name && r->priv->kept + n > KEPT_MAX)
				continue;
			if (!name)
				return -ENOMEM;
		}
		raw.name = name;
		raw.rank = rank_of(&sym, name, n);
		if (r->n == FUNCS_MAX)
			return 0;
		err = push(r, &raw);
		if (err)
			return err;
		++*found;
	}
	return 0;
}

/* Fills r->v, opening what else has symbols, and names the source. */
static int collect(struct reader *r, const char *root)
{
	struct table_priv *p = r->priv;
	size_t own, dyn, debug = 0, imported;
	const char *what = NULL;
	int err, n;

	err = read_table(r, r->img, SHT_SYMTAB, false, true, &own);
	if (err)
		return err;
	if (!own && !debugfile__open(r->img, root, &p->debug)) {
		elf_image__learn(r->img, p->debug);
		err = read_table(r, p->debug, SHT_SYMTAB, false, true, &debug);
		if (err)
			return err;
	}
	err = read_table(r, r->img, SHT_DYNSYM, false, true, &dyn);
	if (err)
		return err;
	if (own)
		what = ".symtab";
	else if (!debug && !debugfile__open_embedded(r->img, &p->debug_data, &p->embedded)) {
		err = read_table(r, p->embedded, SHT_SYMTAB, false, true, &debug);
		if (err)
			return err;
		what = debug ? ".dynsym and .gnu_debugdata" : ".dynsym";
	} else if (!debug)
		what = dyn ? ".dynsym" : "no symbols";
	n = what ? asprintf(&p->source, "%s", what)
		 : asprintf(&p->source, "debug file %s", elf_image__name(p->debug));
	if (n < 0) {
		p->source = NULL;
		return -ENOMEM;
	}
	return read_table(r, r->img, SHT_DYNSYM, true, false, &imported);
}

/* By address; the imported last; equal ones as they came. */
struct order {
	uint64_t addr;
	uint32_t imported, index;
};

static int cmp_order(const void *pa, const void *pb)
{
	const struct order *a = pa, *b = pb;

	if (a->imported != b->imported)
		return a->imported < b->imported ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int sort_raw(struct reader *r)
{
	struct order *o = malloc((r->n + 1) * sizeof(*o));
	struct raw *sorted = malloc((r->n + 1) * sizeof(*sorted));

	if (!o || !sorted) {
		free(o);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->n; i++)
		o[i] =
		    (struct order){r->v[i].addr, (r->v[i].flags & FUNC_IMPORTED) != 0, (uint32_t)i};
	qsort(o, r->n, sizeof(*o), cmp_order);
	for (size_t i = 0; i < r->n; i++)
		sorted[i] = r->v[o[i].index];
	free(o);
	free(r->v);
	r->v = sorted;
	r->cap = r->n + 1;
	return 0;
}

/* .dynsym repeats what .symtab has. group: v[from .. to), one address. */
static bool repeats(const struct raw *v, size_t from, size_t to, size_t i)
{
	if (!v[i].dynsym || to - from > ALIASES_COMPARED)
		return false;
	for (size_t j = from; j < to; j++)
		if (!v[j].dynsym && !strcmp(v[j].name, v[i].name))
			return true;
	return false;
}

/* One address: drops repetitions, chooses the preferred name, makes the functions. */
static void emit_group(const struct reader *r, size_t from, size_t to, struct func_table *t)
{
	size_t first = t->n, best = first, best_raw = from;

	for (size_t i = from; i < to; i++) {
		struct elf_func *f = &t->funcs[t->n];

		if (repeats(r->v, from, to, i))
			continue;
		*f = (struct elf_func){
		    .name = r->v[i].name,
		    .addr = r->v[i].addr,
		    .size = r->v[i].size,
		    .flags = r->v[i].flags,
		};
		elf_image__addr_to_off(r->img, f->addr, &f->off);
		if (r->v[i].rank < r->v[best_raw].rank) {
			best = t->n;
			best_raw = i;
		}
		t->n++;
	}
	for (size_t i = first; i < t->n; i++)
		t->funcs[i].alias_of = (uint32_t)best;
}

static void emit_imported(const struct reader *r, size_t from, struct func_table *t)
{
	for (size_t i = from; i < r->n; i++) {
		t->funcs[t->n] = (struct elf_func){
		    .name = r->v[i].name,
		    .flags = FUNC_IMPORTED,
		    .alias_of = (uint32_t)t->n,
		};
		t->n++;
	}
}

/* A symbol of size 0 reaches to the next function or the end of its section. */
static void guess_sizes(const struct reader *r, struct func_table *t)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = t->n; i-- > 0;) {
		struct elf_func *f = &t->funcs[i];

		if (i + 1 < t->n && t->funcs[i + 1].addr != f->addr)
			next = t->funcs[i + 1].addr;
		if (!f->size) {
			uint64_t end = section_end(r, f->addr);

			if (end > next)
				end = next;
			f->size = end - f->addr;
			f->flags |= FUNC_SIZE_GUESSED;
		}
	}
}

static int build(struct reader *r, struct func_table *t)
{
	struct table_priv *p = r->priv;
	uint64_t max = 0;
	size_t i = 0;
	int err;

	err = sort_raw(r);
	if (err)
		return err;
	t->funcs = calloc(r->n + 1, sizeof(*t->funcs));
	p->max_end = calloc(r->n + 1, sizeof(*p->max_end));
	if (!t->funcs || !p->max_end)
		return -ENOMEM;
	while (i < r->n && !(r->v[i].flags & FUNC_IMPORTED)) {
		size_t to = i + 1;

		while (to < r->n && !(r->v[to].flags & FUNC_IMPORTED) &&
		       r->v[to].addr == r->v[i].addr)
			to++;
		emit_group(r, i, to, t);
		i = to;
	}
	guess_sizes(r, t);
	p->ncode_funcs = t->n;
	for (size_t k = 0; k < t->n; k++) {
		uint64_t end = t->funcs[k].addr + t->funcs[k].size;

		if (end < t->funcs[k].addr)
			end = UINT64_MAX;
		if (end > max)
			max = end;
		p->max_end[k] = max;
	}
	emit_imported(r, i, t);
	return 0;
}

const char *func_table__demangled(struct func_table *t, size_t i)
{
	struct elf_func *f = &t->funcs[i];
	struct table_priv *p = t->priv;
	char *s;

	if (f->demangled)
		return f->demangled;
	/* Millions of hostile names could each take the limit of one. */
	s = p->abandoned < ABANDONED_MAX ? symbol_demangle_counted(f->name, &p->abandoned) : NULL;
	f->demangled = s ? keep(p, s, strlen(s)) : NULL;
	if (!f->demangled)
		f->demangled = f->name;
	free(s);
	return f->demangled;
}

int func_table__read(const struct elf_image *img, const struct symbols_opts *opts,
		     struct func_table **out, struct err *e)
{
	struct func_table *t = calloc(1, sizeof(*t));
	struct reader r = {.img = img};
	int err = -ENOMEM;

	*out = NULL;
	if (!t)
		goto out;
	r.priv = t->priv = calloc(1, sizeof(*r.priv));
	if (!t->priv)
		goto out;
	err = read_code_sections(&r);
	if (!err)
		err = collect(&r, opts ? opts->root : NULL);
	if (err)
		goto out;
	err = build(&r, t);
	if (err)
		goto out;
	t->source = r.priv->source;
	for (size_t i = 0; i < t->n && !(opts && opts->no_demangle); i++)
		func_table__demangled(t, i);
	*out = t;
	t = NULL;
out:
	free(r.v);
	free(r.code);
	func_table__free(t);
	if (err)
		err_set(e, err, "%s: its functions: %s", elf_image__name(img), strerror(-err));
	return err;
}

void func_table__free(struct func_table *t)
{
	struct table_priv *p;
	struct chunk *c, *next;

	if (!t)
		return;
	p = t->priv;
	if (p) {
		for (c = p->chunks; c; c = next) {
			next = c->next;
			free(c);
		}
		elf_image__free(p->debug);
		elf_image__free(p->embedded);
		free(p->debug_data);
		free(p->max_end);
		free(p->source);
		free(p);
	}
	free(t->funcs);
	free(t);
}

const struct elf_func *func_table__find_addr(const struct func_table *t, uint64_t addr)
{
	const struct table_priv *p = t->priv;
	size_t lo = 0, hi = p->ncode_funcs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->funcs[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* The innermost that covers it: the last to start before it. */
	for (size_t i = lo, steps = 0; i-- > 0 && p->max_end[i] > addr && steps < WALK_MAX;
	     steps++) {
		const struct elf_func *f = &t->funcs[i];

		if (addr - f->addr < f->size)
			return &t->funcs[f->alias_of];
	}
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions: which symbols are ones, order, aliases, guessed sizes, look-up by address. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "elf/symbols.h"
#include "elf_maker.h"

#define T MAKER_TEXT_ADDR

struct sym {
	const char *name;
	uint64_t addr, size;
	unsigned int type, bind;
	uint16_t shndx;
};

struct file {
	struct maker m;
	uint32_t code; /* section index */
	struct elf_image *img;
	struct func_table *t;
};

static void add_table(struct maker *m, const char *table, uint32_t type, const struct sym *v,
		      size_t n)
{
	Elf64_Sym *syms = calloc(n + 1, sizeof(*syms));
	char *names = calloc(1, 1 << 16);
	size_t len = 1;
	uint32_t str;

	for (size_t i = 0; i < n; i++) {
		syms[i + 1] = (Elf64_Sym){
		    .st_name = (uint32_t)len,
		    .st_info = ELF64_ST_INFO(v[i].bind, v[i].type),
		    .st_shndx = v[i].shndx,
		    .st_value = v[i].addr,
		    .st_size = v[i].size,
		};
		strcpy(names + len, v[i].name);
		len += strlen(v[i].name) + 1;
	}
	str =
	    maker_section(m, type == SHT_SYMTAB ? ".strtab" : ".dynstr", SHT_STRTAB, names, len, 0);
	maker_section(m, table, type, syms, (n + 1) * sizeof(*syms), str);
	free(syms);
	free(names);
}

static void start(struct file *f)
{
	maker_init(&f->m);
	f->code = maker_section(&f->m, ".text", SHT_PROGBITS, "", 0, 0);
	f->m.sh[f->code].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	f->m.sh[f->code].sh_addr = T;
	f->m.sh[f->code].sh_offset = MAKER_TEXT_OFF;
	f->m.sh[f->code].sh_size = 0x80;
}

static void finish(struct file *f)
{
	struct err e;

	maker_finish(&f->m);
	assert_int_equal(elf_image__open_memory(f->m.data, f->m.len, "t", &f->img, &e), 0);
	assert_int_equal(func_table__read(f->img, NULL, &f->t, &e), 0);
}

static void stop(struct file *f)
{
	func_table__free(f->t);
	elf_image__free(f->img);
	maker_free(&f->m);
}

static const struct elf_func *find(const struct file *f, const char *name)
{
	for (size_t i = 0; i < f->t->n; i++)
		if (!strcmp(f->t->funcs[i].name, name))
			return &f->t->funcs[i];
	return NULL;
}

static void t_which(void **state)
{
	static const struct sym symtab[] = {
	    {"second", T + 0x20, 8, STT_FUNC, STB_GLOBAL, 1},
	    {"first", T + 0x10, 8, STT_FUNC, STB_LOCAL, 1},
	    {"data", MAKER_DATA_ADDR, 8, STT_OBJECT, STB_GLOBAL, 2},
	    {"func_in_data", MAKER_DATA_ADDR, 8, STT_FUNC, STB_GLOBAL, 2},
	    {"outside", 0x10, 8, STT_FUNC, STB_GLOBAL, 1},
	    {"resolver", T + 0x30, 8, STT_GNU_IFUNC, STB_GLOBAL, 1},
	    {"label", T + 0x40, 0, STT_NOTYPE, STB_GLOBAL, 1},
	    {".Llocal", T + 0x44, 0, STT_NOTYPE, STB_LOCAL, 1},
	    {"etext", T + 0x46, 0, STT_NOTYPE, STB_GLOBAL, 1},
	    {"versioned@@V2", T + 0x50, 4, STT_FUNC, STB_GLOBAL, 1},
	    {"@odd", T + 0x50, 4, STT_FUNC, STB_GLOBAL, 1},
	    {"first.cold", T + 0x60, 4, STT_FUNC, STB_LOCAL, 1},
	    {"second.part.0", T + 0x68, 4, STT_FUNC, STB_LOCAL, 1},
	    {"_Z3funi", T + 0x70, 4, STT_FUNC, STB_WEAK, 1},
	    {"file.c", 0, 0, STT_FILE, STB_LOCAL, SHN_ABS},
	    {"imported_too", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
	};
	static const struct sym dynsym[] = {
	    {"second", T + 0x20, 8, STT_FUNC, STB_GLOBAL, 1},
	    {"only_dynamic", T + 0x78, 4, STT_FUNC, STB_GLOBAL, 1},
	    {"imported", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
	    {"plt_address", T + 0x7c, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
	    {"untyped", 0, 0, STT_NOTYPE, STB_GLOBAL, SHN_UNDEF},
	    {"__gmon_start__", 0, 0, STT_NOTYPE, STB_WEAK, SHN_UNDEF},
	    {"imported_data", 0, 0, STT_OBJECT, STB_GLOBAL, SHN_UNDEF},
	};
	static const struct {
		const char *name;
		uint64_t addr, size;
		uint32_t flags;
	} want[] = {
	    {"first", T + 0x10, 8, FUNC_LOCAL},
	    {"second", T + 0x20, 8, 0},
	    {"resolver", T + 0x30, 8, FUNC_IFUNC},
	    {"label", T + 0x40, 0x10, FUNC_SIZE_GUESSED},
	    {"versioned", T + 0x50, 4, 0},
	    {"first.cold", T + 0x60, 4, FUNC_COLD | FUNC_LOCAL},
	    {"second.part.0", T + 0x68, 4, FUNC_LOCAL},
	    {"_Z3funi", T + 0x70, 4, 0},
	    {"only_dynamic", T + 0x78, 4, 0},
	    {"imported", 0, 0, FUNC_IMPORTED},
	    {"plt_address", 0, 0, FUNC_IMPORTED},
	    {"untyped", 0, 0, FUNC_IMPORTED},
	};
	struct file f;

	(void)state;
	start(&f);
	add_table(&f.m, ".symtab", SHT_SYMTAB, symtab, sizeof(symtab) / sizeof(symtab[0]));
	add_table(&f.m, ".dynsym", SHT_DYNSYM, dynsym, sizeof(dynsym) / sizeof(dynsym[0]));
	finish(&f);
	assert_string_equal(f.t->source, ".symtab");
	assert_int_equal(f.t->n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < f.t->n; i++) {
		const struct elf_func *g = &f.t->funcs[i];

		assert_string_equal(g->name, want[i].name);
		assert_int_equal(g->addr, want[i].addr);
		assert_int_equal(g->size, want[i].size);
		assert_int_equal(g->flags, want[i].flags);
		assert_int_equal(g->off, g->addr ? g->addr - T + MAKER_TEXT_OFF : 0);
		assert_int_equal(g->alias_of, i);
		if (strcmp(g->name, "_Z3funi"))
			assert_ptr_equal(g->demangled, g->name);
		else
			assert_string_equal(g->demangled, "fun(int)");
	}
	stop(&f);
}

static void t_aliases(void **state)
{
	static const struct sym symtab[] = {
	    {"__write", T, 8, STT_FUNC, STB_LOCAL, 1},
	    {"__libc_write", T, 8, STT_FUNC, STB_GLOBAL, 1},
	    {"write", T, 8, STT_FUNC, STB_WEAK, 1},
	    {"_ZN1AC2Ev", T + 16, 8, STT_FUNC, STB_WEAK, 1},
	    {"_ZN1AC1Ev", T + 16, 8, STT_FUNC, STB_WEAK, 1},
	    {"a_label", T + 32, 0, STT_NOTYPE, STB_GLOBAL, 1},
	    {"typed", T + 32, 8, STT_FUNC, STB_LOCAL, 1},
	};
	struct file f;

	(void)state;
	start(&f);
	add_table(&f.m, ".symtab", SHT_SYMTAB, symtab, sizeof(symtab) / sizeof(symtab[0]));
	finish(&f);
	assert_int_equal(f.t->n, 7);
	for (int i = 0; i < 3; i++)
		assert_string_equal(f.t->funcs[f.t->funcs[i].alias_of].name, "__libc_write");
	for (int i = 3; i < 5; i++)
		assert_string_equal(f.t->funcs[f.t->funcs[i].alias_of].name, "_ZN1AC2Ev");
	for (int i = 5; i < 7; i++)
		assert_string_equal(f.t->funcs[f.t->funcs[i].alias_of].name, "typed");
	assert_string_equal(func_table__find_addr(f.t, T + 7)->name, "__libc_write");
	stop(&f);
}

static void t_find_addr(void **state)
{
	static const struct sym symtab[] = {
	    {"outer", T + 0x10, 0x40, STT_FUNC, STB_GLOBAL, 1},
	    {"inner", T + 0x20, 0x08, STT_FUNC, STB_GLOBAL, 1},
	    {"last", T + 0x70, 0, STT_FUNC, STB_GLOBAL, 1},
	    {"endless", T + 0x60, UINT64_MAX, STT_FUNC, STB_GLOBAL, 1},
	};
	static const struct {
		uint64_t addr;
		const char *want;
	} rows[] = {
	    {T, NULL},
	    {T + 0x0f, NULL},
	    {T + 0x10, "outer"},
	    {T + 0x1f, "outer"},
	    {T + 0x20, "inner"},
	    {T + 0x27, "inner"},
	    {T + 0x28, "outer"},
	    {T + 0x4f, "outer"},
	    {T + 0x50, NULL},
	    {T + 0x60, "endless"},
	    {T + 0x7f, "last"}, /* to the end of .text */
	    {T + 0x80, "endless"},
	    {0, NULL},
	};
	struct file f;

	(void)state;
	start(&f);
	add_table(&f.m, ".symtab", SHT_SYMTAB, symtab, sizeof(symtab) / sizeof(symtab[0]));
	finish(&f);
	assert_int_equal(find(&f, "last")->size, 0x10);
	assert_true(find(&f, "last")->flags & FUNC_SIZE_GUESSED);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct elf_func *g = func_table__find_addr(f.t, rows[i].addr);

		if (!rows[i].want != !g || (g && strcmp(g->name, rows[i].want)))
			fail_msg("%#llx: got %s, want %s", (unsigned long long)rows[i].addr,
				 g ? g->name : "none", rows[i].want ? rows[i].want : "none");
	}
	stop(&f);
}

static void t_lazy_names(void **state)
{
	static const struct sym symtab[] = {
	    {"_Z3funi", T, 8, STT_FUNC, STB_GLOBAL, 1},
	    {"plain", T + 8, 8, STT_FUNC, STB_GLOBAL, 1},
	};
	struct symbols_opts opts = {.no_demangle = true};
	struct file f;
	struct err e;

	(void)state;
	start(&f);
	add_table(&f.m, ".symtab", SHT_SYMTAB, symtab, 2);
	finish(&f);
	func_table__free(f.t);
	assert_int_equal(func_table__read(f.img, &opts, &f.t, &e), 0);
	assert_null(f.t->funcs[0].demangled);
	assert_string_equal(func_table__demangled(f.t, 0), "fun(int)");
	assert_ptr_equal(func_table__demangled(f.t, 0), f.t->funcs[0].demangled);
	assert_ptr_equal(func_table__demangled(f.t, 1), f.t->funcs[1].name);
	stop(&f);
}

/* A string table without its last NUL, and names beyond it. */
static void t_string_table_without_end(void **state)
{
	Elf64_Sym syms[5] = {{0}};
	static const uint32_t names[] = {1, 4, 6, 4000000};
	struct file f;
	uint32_t str;

	(void)state;
	for (int i = 1; i < 5; i++)
		syms[i] = (Elf64_Sym){.st_name = names[i - 1],
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = 1,
				      .st_value = T + 8u * (unsigned int)i,
				      .st_size = 8};
	start(&f);
	str = maker_section(&f.m, ".strtab", SHT_STRTAB, "\0ok\0unfinished", 14, 0);
	maker_section(&f.m, ".symtab", SHT_SYMTAB, syms, sizeof(syms), str);
	finish(&f);
	assert_int_equal(f.t->n, 1);
	assert_string_equal(f.t->funcs[0].name, "ok");
	stop(&f);
}

/* 60,000 symbols at one address with one name each as long as all of them. */
static void t_many_at_one_address(void **state)
{
	const size_t n = 60000;
	Elf64_Sym *syms = calloc(n, sizeof(*syms));
	char *names = malloc(n + 2);
	struct file f;
	uint32_t str;

	(void)state;
	names[0] = '\0';
	memset(names + 1, 'x', n);
	names[n + 1] = '\0';
	for (size_t i = 0; i < n; i++)
		syms[i] = (Elf64_Sym){.st_name = (uint32_t)i,
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = 1,
				      .st_value = T,
				      .st_size = 8};
	start(&f);
	str = maker_section(&f.m, ".strtab", SHT_STRTAB, names, n + 2, 0);
	maker_section(&f.m, ".symtab", SHT_SYMTAB, syms, n * sizeof(*syms), str);
	str = maker_section(&f.m, ".dynstr", SHT_STRTAB, names, n + 2, 0);
	maker_section(&f.m, ".dynsym", SHT_DYNSYM, syms, n * sizeof(*syms), str);
	finish(&f);
	/* st_name 0 is no name; names of more than 8,192 bytes are left out */
	assert_int_equal(f.t->n, 2 * 8191);
	assert_non_null(func_table__find_addr(f.t, T + 7));
	assert_null(func_table__find_addr(f.t, T + 8));
	stop(&f);
	free(syms);
	free(names);
}

/* Names that each cost the demangler its limit may not add up: the rest is left as it is. */
static void t_many_bombs(void **state)
{
	const size_t n = 2000;
	Elf64_Sym *syms = calloc(n + 2, sizeof(*syms));
	char names[1024] = "";
	size_t len = 1, prev = 1, fun;
	struct file f;
	uint32_t str;

	(void)state;
	len += (size_t)sprintf(names + len, "_Z1f1a1PIS_S_E");
	for (int i = 0; i < 33; i++, prev++) {
		char c = (char)(prev < 10 ? '0' + prev : 'A' + prev - 10);

		len += (size_t)sprintf(names + len, "S0_IS%c_S%c_E", c, c);
	}
	fun = len + 1;
	strcpy(names + fun, "_Z3funi");
	for (size_t i = 0; i < n + 2; i++)
		syms[i] = (Elf64_Sym){.st_name = (uint32_t)(i && i <= n ? 1 : fun),
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = 1,
				      .st_value = T + i % 8 * (i && i <= n) + (i > n ? 16 : 0),
				      .st_size = 1};
	start(&f);
	str = maker_section(&f.m, ".strtab", SHT_STRTAB, names, fun + 8, 0);
	maker_section(&f.m, ".symtab", SHT_SYMTAB, syms, (n + 2) * sizeof(*syms), str);
	finish(&f);
	assert_int_equal(f.t->n, n + 2);
	assert_string_equal(f.t->funcs[0].demangled, "fun(int)");
	assert_ptr_equal(f.t->funcs[1].demangled, f.t->funcs[1].name);
	assert_string_equal(f.t->funcs[n + 1].name, "_Z3funi");
	assert_string_equal(f.t->funcs[n + 1].demangled, "_Z3funi");
	stop(&f);
	free(syms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_which),
	    cmocka_unit_test(t_aliases),
	    cmocka_unit_test(t_find_addr),
	    cmocka_unit_test(t_lazy_names),
	    cmocka_unit_test(t_string_table_without_end),
	    cmocka_unit_test(t_many_at_one_address),
	    cmocka_unit_test(t_many_bombs),
	};

	return cmocka_run_group_tests_name("elf_symbols", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Notes: right ones, prelinked ones, unusable ones, and operands that name symbols. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "elf/usdt.h"
#include "elf_maker.h"

#define T MAKER_TEXT_ADDR
#define D MAKER_DATA_ADDR

struct file {
	struct maker m;
	uint8_t notes[4096];
	size_t len;
	struct elf_image *img;
	struct usdt_table *t;
};

static void start(struct file *f)
{
	memset(f, 0, sizeof(*f));
	maker_init(&f->m);
}

static void finish(struct file *f)
{
	struct err e;

	maker_section(&f->m, ".note.stapsdt", SHT_NOTE, f->notes, f->len, 0);
	maker_finish(&f->m);
	assert_int_equal(elf_image__open_memory(f->m.data, f->m.len, "t", &f->img, &e), 0);
	assert_int_equal(usdt_table__read(f->img, &f->t, &e), 0);
	/* the table does not depend on the image */
	elf_image__free(f->img);
}

static void stop(struct file *f)
{
	usdt_table__free(f->t);
	maker_free(&f->m);
}

static void note(struct file *f, uint64_t pc, uint64_t base, uint64_t sema, const char *name,
		 const char *args)
{
	f->len = maker_note(f->notes, f->len, pc, base, sema, "prov", name, args);
}

static void t_sites(void **state)
{
	struct file f;

	(void)state;
	start(&f);
	/* one marker at two sites, each with a semaphore and arguments of its own */
	note(&f, T + 4, 0x7777, D + 2, "many", "-4@%edi 8@(%rsp)");
	note(&f, T + 8, 0, D + 4, "many", "-4@%esi");
	note(&f, T + 12, 0, 0, "plain", "");
	finish(&f);
	assert_int_equal(f.t->n, 3);
	assert_int_equal(f.t->bad, 0);
	assert_string_equal(f.t->markers[0].provider, "prov");
	assert_string_equal(f.t->markers[0].name, "many");
	assert_string_equal(f.t->markers[0].argstr, "-4@%edi 8@(%rsp)");
	assert_int_equal(f.t->markers[0].addr, T + 4);
	assert_int_equal(f.t->markers[0].off, MAKER_TEXT_OFF + 4);
	assert_int_equal(f.t->markers[0].sema_off, MAKER_DATA_OFF + 2);
	assert_int_equal(f.t->markers[0].nargs, 2);
	assert_int_equal(f.t->markers[0].args[0].base, 5);
	assert_string_equal(f.t->markers[1].name, "many");
	assert_int_equal(f.t->markers[1].off, MAKER_TEXT_OFF + 8);
	assert_int_equal(f.t->markers[1].sema_off, MAKER_DATA_OFF + 4);
	assert_int_equal(f.t->markers[1].args[0].base, 4);
	assert_int_equal(f.t->markers[2].nargs, 0);
	assert_int_equal(f.t->markers[2].sema_off, 0);
	assert_null(f.t->markers[2].func);
	stop(&f);
}

static void t_prelink(void **state)
{
	struct file f;

	(void)state;
	start(&f);
	note(&f, 0x1004, 0x2000, 0x4006, "moved", "");
	note(&f, T + 8, 0, 0, "without base", "");
	/* the section is where prelink put it: 0x400000 higher; the data 0x5ff000 would be wrong */
	f.m.sh[maker_section(&f.m, ".stapsdt.base", SHT_PROGBITS, "", 1, 0)].sh_addr = 0x402000;
	finish(&f);
	assert_int_equal(f.t->n, 1);
	assert_string_equal(f.t->markers[0].name, "without base");
	assert_int_equal(f.t->bad, 1); /* its semaphore would be at 0x404006: in no segment */
	stop(&f);

	start(&f);
	note(&f, 0x1004, 0x2000, 0x203006, "moved", "");
	f.m.sh[maker_section(&f.m, ".stapsdt.base", SHT_PROGBITS, "", 1, 0)].sh_addr = 0x402000;
	finish(&f);
	assert_int_equal(f.t->n, 1);
	assert_int_equal(f.t->markers[0].addr, T + 4);
	assert_int_equal(f.t->markers[0].sema_off, MAKER_DATA_OFF + 6);
	stop(&f);
}

static void t_bad_notes(void **state)
{
	static const Elf64_Nhdr foreign = {.n_namesz = 4, .n_descsz = 4, .n_type = 3};
	struct file f;
	size_t at;

	(void)state;
	start(&f);
	note(&f, D, 0, 0, "in data", "");
	note(&f, 0x10, 0, 0, "nowhere", "");
	note(&f, T, 0, D + MAKER_SIZE, "semaphore in .bss", "");
	note(&f, T, 0, 0, "", "");
	note(&f, T, 0, 0, "good", "4@$1");
	note(&f, 0, 0, 0, "thrown away by the linker", "");
	/* not ours: skipped, not bad */
	memcpy(f.notes + f.len, &foreign, sizeof(foreign));
	memcpy(f.notes + f.len + sizeof(foreign), "GNU\0abcd", 8);
	f.len += sizeof(foreign) + 8;
	/* no NUL at the end of the arguments: the descriptor ends before it */
	at = f.len;
	note(&f, T, 0, 0, "unterminated", "4@$12345678");
	((Elf64_Nhdr *)(f.notes + at))->n_descsz -= 4;
	f.len -= 4;
	/* shorter than its three addresses */
	at = f.len;
	note(&f, T, 0, 0, "x", "");
	((Elf64_Nhdr *)(f.notes + at))->n_descsz = 20;
	f.len = at + 40;
	/* cut off in the middle */
	note(&f, T, 0, 0, "truncated", "4@$1 4@$2 4@$3");
	f.len -= 12;
	finish(&f);
	assert_int_equal(f.t->n, 1);
	assert_string_equal(f.t->markers[0].name, "good");
	assert_int_equal(f.t->bad, 7);
	stop(&f);
}

static void t_lengths_that_wrap(void **state)
{
	static const uint32_t huge[] = {0xffffffffu, 0xfffffffdu, 0x80000000u, 0x7fffffffu};
	struct file f;

	(void)state;
	for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]) * 2; i++) {
		start(&f);
		note(&f, T, 0, 0, "good", "");
		note(&f, T, 0, 0, "evil", "");
		memcpy(f.notes + f.len / 2 + (i & 1 ? 4 : 0), &huge[i / 2], 4);
		finish(&f);
		assert_int_equal(f.t->n, 1);
		assert_int_equal(f.t->bad, 1);
		stop(&f);
	}
}

static void t_symbols(void **state)
{
	static const char names[] = "\0gy\0twice\0tls\0code@@V1\0undefined";
	const Elf64_Sym syms[] = {
	    {0},
	    {.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 1, .st_value = D + 16},
	    {.st_name = 4, .st_info = STT_OBJECT, .st_shndx = 1, .st_value = D + 32},
	    {.st_name = 4, .st_info = STT_OBJECT, .st_shndx = 1, .st_value = D + 48},
	    {.st_name = 10, .st_info = STT_TLS, .st_shndx = 1, .st_value = 8},
	    {.st_name = 14, .st_info = STT_FUNC, .st_shndx = 1, .st_value = T},
	    {.st_name = 23, .st_info = STT_OBJECT, .st_shndx = SHN_UNDEF},
	    {.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 1, .st_value = D + 16},
	};
	const struct usdt_arg *a;
	struct file f;
	uint32_t str;

	(void)state;
	start(&f);
	note(&f, T + 4, 0, 0, "a",
	     "-4@gy(%rip) 8@8+gy(%rip) 4@twice(%rip) 4@tls(%rip) 8@$code 4@undefined(%rip) "
	     "4@nosuch(%rip) 4@%eax 4@gy 4@g(%rip)");
	note(&f, T + 8, 0, 0, "b", "-4@gy(%rip)");
	str = maker_section(&f.m, ".strtab", SHT_STRTAB, names, sizeof(names), 0);
	maker_section(&f.m, ".symtab", SHT_SYMTAB, syms, sizeof(syms), str);
	finish(&f);
	assert_int_equal(f.t->n, 2);
	a = f.t->markers[0].args;
	assert_int_equal(f.t->markers[0].nargs, 10);
	assert_true(a[0].rip_rel);
	assert_int_equal(a[0].off, (int64_t)(D + 16) - (int64_t)(T + 4));
	assert_int_equal(a[1].off, (int64_t)(D + 24) - (int64_t)(T + 4));
	assert_int_equal(a[2].kind, USDT_ARG_UNREADABLE); /* which of the two? */
	assert_string_equal(a[2].why, "several symbols have this name");
	assert_int_equal(a[3].kind, USDT_ARG_UNREADABLE);
	assert_int_equal(a[4].kind, USDT_ARG_CONST);
	assert_int_equal(a[4].off, T);
	for (int i = 5; i < 7; i++)
		assert_string_equal(a[i].why, "names a symbol that the file does not have");
	assert_int_equal(a[7].kind, USDT_ARG_REG);
	assert_int_equal(a[8].kind, USDT_ARG_MEM);
	assert_int_equal(a[8].off, a[0].off);
	assert_int_equal(a[9].kind, USDT_ARG_UNREADABLE);
	for (int i = 0; i < 10; i++)
		assert_null(a[i].symbol);
	/* relative to its own site */
	assert_int_equal(f.t->markers[1].args[0].off, a[0].off - 4);
	stop(&f);
}

static void t_no_notes(void **state)
{
	struct elf_image *img;
	struct usdt_table *t;
	struct maker m;
	struct err e;

	(void)state;
	maker_init(&m);
	maker_finish(&m);
	assert_int_equal(elf_image__open_memory(m.data, m.len, "t", &img, &e), 0);
	assert_int_equal(usdt_table__read(img, &t, &e), 0);
	assert_int_equal(t->n, 0);
	assert_int_equal(t->bad, 0);
	usdt_table__free(t);
	usdt_table__free(NULL);
	elf_image__free(img);
	maker_free(&m);
}

#define RECORDS 0x700000u /* where .note.qbpf is loaded */

/* .note.qbpf, type 1: distances to site, function's name, file's name; line, id. */
static size_t func_note(uint8_t *buf, size_t at, uint64_t site, uint64_t func, uint64_t file,
			uint32_t line, uint32_t id)
{
	Elf64_Nhdr nh = {.n_namesz = 5, .n_descsz = 32, .n_type = 1};
	uint64_t here = RECORDS + at + 20;
	uint64_t dist[3] = {site - here, func ? func - here - 8 : 0, file ? file - here - 16 : 0};

	memcpy(buf + at, &nh, 12);
	memcpy(buf + at + 12, "qbpf\0\0\0", 8);
	memcpy(buf + at + 20, dist, 24);
	memcpy(buf + at + 44, &line, 4);
	memcpy(buf + at + 48, &id, 4);
	return at + 52;
}

static void t_functions(void **state)
{
	static const char *const want[] = {"run (a.c:42)__begin", "run (a.c:42)__end",
					   "run (b.c:42)__begin", "walk__begin",
					   "L50__begin",	  "L51__begin"};
	uint8_t rec[512];
	struct file f;
	size_t n = 0;

	(void)state;
	start(&f);
	/* strings in the data segment: "run" at D, "src/a.c" at D + 8, "b.c" at D + 24, ... */
	maker_put(&f.m, MAKER_DATA_OFF, "run", 4);
	maker_put(&f.m, MAKER_DATA_OFF + 8, "src/a.c", 8);
	maker_put(&f.m, MAKER_DATA_OFF + 24, "b.c", 4);
	maker_put(&f.m, MAKER_DATA_OFF + 32, "walk", 5);
	for (unsigned int i = 0; i < 6; i++) {
		static const char *const raw[] = {"L42__begin", "L42__end",   "L42__begin",
						  "L43__begin", "L50__begin", "L51__begin"};

		f.len = maker_note(f.notes, f.len, T + 4 * i, 0, 0, "qbpf_func", raw[i], "");
	}
	n = func_note(rec, n, T + 4, 0, D + 8, 42, 7); /* the end, without a name */
	n = func_note(rec, n, T, D, D + 8, 42, 7);
	n = func_note(rec, n, T + 8, D, D + 24, 42, 7);
	n = func_note(rec, n, T + 12, D + 32, D + 24, 43, 1);
	n = func_note(rec, n, T + 16, D + MAKER_SIZE - 2, D, 50, 1); /* a string without end */
	f.m.sh[maker_section(&f.m, ".note.qbpf", SHT_NOTE, rec, n, 0)].sh_addr = RECORDS;
	finish(&f);
	assert_int_equal(f.t->n, 6);
	for (int i = 0; i < 6; i++) {
		assert_string_equal(f.t->markers[i].name, want[i]);
		assert_string_equal(f.t->markers[i].provider, "qbpf_func");
	}
	assert_string_equal(f.t->markers[1].func, "run");
	assert_string_equal(f.t->markers[1].file, "src/a.c");
	assert_int_equal(f.t->markers[1].line, 42);
	assert_null(f.t->markers[4].func);
	assert_null(f.t->markers[5].func);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_sites),	   cmocka_unit_test(t_prelink),
	    cmocka_unit_test(t_bad_notes), cmocka_unit_test(t_lengths_that_wrap),
	    cmocka_unit_test(t_symbols),   cmocka_unit_test(t_no_notes),
	    cmocka_unit_test(t_functions),
	};

	return cmocka_run_group_tests_name("elf_usdt", tests, NULL, NULL);
}

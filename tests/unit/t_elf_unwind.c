// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Unwinding facts of what gcc and clang emit: FDE ranges against symbols, noexcept against not;
 * and damaged tables, which may say less but never crash or claim what is not so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "built.h"

static const char source[] =
    "extern void out(int) __attribute__((noinline, weak));\n"
    "void out(int x) { if (x == 99) throw x; asm volatile(\"\"); }\n"
    "struct A { int *p; ~A() { asm volatile(\"\"); *p = 1; } };\n"
    "int safe(int x) noexcept { out(x); out(x + 1); return x; }\n"
    "int safe_try(int x) noexcept { try { out(x); } catch (...) { return 2; } out(3); return x; }\n"
    "int safe_dtor(int x) noexcept { A a = {&x}; out(x); out(x + 1); return x; }\n"
    "int open_plain(int x) { out(x); return x; }\n"
    "int open_dtor(int x) { A a = {&x}; out(x); return x; }\n"
    "int open_catch(int x) { try { out(x); } catch (int) { return 3; } return x; }\n"
    "int open_again(int x) { try { out(x); } catch (...) { out(7); throw; } return x; }\n"
    "int open_some(int x) { out(x); try { out(x); } catch (...) { return 3; } return x; }\n"
    "int leaf(int x) { return x * 3; }\n"
    "int main(int c, char **) { return safe(c) + safe_try(c) + safe_dtor(c) + open_plain(c) +\n"
    " open_dtor(c) + open_catch(c) + open_again(c) + open_some(c) + leaf(c); }\n";

static enum unwind_pass pass_of(const struct built *b, const char *name)
{
	const struct elf_func *f = built_func(b, name);
	uint64_t start = 0, size = 0;
	enum unwind_pass p;

	p = unwind_table__find(b->unwind, f->addr + f->size - 1, &start, &size);
	assert_int_not_equal(p, UNWIND_UNKNOWN);
	assert_int_equal(start, f->addr);
	assert_int_equal(size, f->size);
	assert_false(unwind_table__starts_framed(b->unwind, f->addr));
	/* Its cold parts count as well: NAME.cold. */
	for (size_t i = 0; i < b->funcs->n; i++) {
		const struct elf_func *c = &b->funcs->funcs[i];

		if (strncmp(c->name, f->name, strlen(f->name)) ||
		    strncmp(c->name + strlen(f->name), ".cold", 5))
			continue;
		if (unwind_table__find(b->unwind, c->addr, &start, &size) != UNWIND_NOEXCEPT)
			return UNWIND_THROUGH;
	}
	return p;
}

static void exceptions(const char *cc)
{
	static const char *const flags[] = {"-O0",
					    "-O2",
					    "-O2 -no-pie -fno-pie",
					    "-O2 -Wl,--no-eh-frame-hdr -static-libgcc",
					    "-O2 -fno-asynchronous-unwind-tables",
					    "-O2 -s"};
	static const char *const open[] = {"open_plain(int)", "open_dtor(int)", "open_catch(int)",
					   "open_again(int)", "open_some(int)"};
	char command[128];

	for (size_t i = 0; i < 5; i++) {
		struct built b;

		snprintf(command, sizeof(command), "%s %s", cc, flags[i]);
		built_make(&b, command, source);
		for (size_t k = 0; k < sizeof(open) / sizeof(open[0]); k++)
			if (pass_of(&b, open[k]) != UNWIND_THROUGH)
				fail_msg("%s: %s is said to be noexcept", command, open[k]);
		/* Proved where it is simple; nothing asked of the others but the truth. */
		if (pass_of(&b, "safe(int)") != UNWIND_NOEXCEPT)
			fail_msg("%s: safe() is not known to be noexcept", command);
		built_free(&b);
	}
}

static void exceptions_gcc(void **state)
{
	(void)state;
	exceptions("g++");
}

static void exceptions_clang(void **state)
{
	(void)state;
	exceptions("clang++");
}

/* C with -fexceptions: to its personality a call in no record lets the exception pass. */
static void other_personality(void **state)
{
	static const char c[] =
	    "static void end(int *p) { asm volatile(\"\" : : \"r\"(p)); }\n"
	    "__attribute__((noinline)) void out(int x) { asm volatile(\"\"); }\n"
	    "int span(int x) { __attribute__((cleanup(end))) int y = x; out(x); return y; }\n"
	    "int main(int c, char **v) { return span(c); }\n";
	struct built b;

	(void)state;
	built_make(&b, "gcc -O2 -fexceptions", c);
	assert_int_equal(pass_of(&b, "span"), UNWIND_THROUGH);
	built_free(&b);
}

/* The landing pads of a function lie in its cold part, which has an FDE of its own. */
static void cold_part(void **state)
{
	uint64_t start = 0, size = 0;
	const struct elf_func *cold = NULL;
	struct built b;

	(void)state;
	built_make(&b, "g++ -O2", source);
	for (size_t i = 0; i < b.funcs->n; i++)
		if (strstr(b.funcs->funcs[i].name, "open_again") &&
		    b.funcs->funcs[i].flags & FUNC_COLD)
			cold = &b.funcs->funcs[i];
	if (cold) {
		assert_int_equal(unwind_table__find(b.unwind, cold->addr, &start, &size),
				 UNWIND_THROUGH);
		assert_int_equal(start, cold->addr);
		assert_true(unwind_table__starts_framed(b.unwind, cold->addr));
	}
	assert_int_equal(unwind_table__find(b.unwind, 0, &start, &size), UNWIND_UNKNOWN);
	assert_int_equal(unwind_table__find(b.unwind, ~0ull, &start, &size), UNWIND_UNKNOWN);
	built_free(&b);
}

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33);
}

static uint8_t *slurp(const struct built *b, size_t *len)
{
	char path[128];
	struct stat st;
	uint8_t *data;
	FILE *f;

	snprintf(path, sizeof(path), "%s/out", b->dir);
	assert_int_equal(stat(path, &st), 0);
	*len = st.st_size;
	data = malloc(*len);
	f = fopen(path, "r");
	assert_int_equal(fread(data, 1, *len, f), *len);
	fclose(f);
	return data;
}

static void fuzz(void **state)
{
	static const char *const sections[] = {".eh_frame", ".eh_frame_hdr", ".gcc_except_table"};
	size_t len, found = 0, lost = 0;
	uint8_t *whole, *copy;
	struct built b;
	uint64_t s = 7;

	(void)state;
	built_make(&b, "g++ -O2", source);
	whole = slurp(&b, &len);
	copy = malloc(len);
	for (int round = 0; round < 1000; round++) {
		struct unwind_table *t;
		struct elf_image *img;
		const uint8_t *sec;
		uint64_t addr, off, start, size;
		size_t n;

		memcpy(copy, whole, len);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(elf_image__section(b.img, sections[k], &sec, &n, &addr),
					 0);
			assert_int_equal(elf_image__addr_to_off(b.img, addr, &off), 0);
			for (unsigned int flips = rnd(&s) % 4; flips; flips--)
				copy[off + rnd(&s) % n] = rnd(&s) & 1 ? 0xff : rnd(&s);
		}
		assert_int_equal(elf_image__open_memory(copy, len, "damaged", &img, NULL), 0);
		assert_int_equal(unwind_table__read(img, &t, NULL), 0);
		for (size_t i = 0; i < b.funcs->n; i++) {
			addr = b.funcs->funcs[i].addr;
			if (b.funcs->funcs[i].flags & FUNC_IMPORTED)
				continue;
			if (unwind_table__find(t, addr, &start, &size) == UNWIND_UNKNOWN) {
				lost++;
				continue;
			}
			found++;
			assert_true(addr - start < size);
			unwind_table__starts_framed(t, addr);
		}
		unwind_table__free(t);
		elf_image__free(img);
	}
	assert_true(found > 1000 && lost > 100); /* damage shows, and does not end all */
	free(copy);
	free(whole);
	built_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exceptions_gcc),
	    cmocka_unit_test(exceptions_clang),
	    cmocka_unit_test(other_personality),
	    cmocka_unit_test(cold_part),
	    cmocka_unit_test(fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ways out of a function and the red zone, in what gcc and clang really emit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "built.h"
#include "elf/disasm.h"

static const char flow[] =
    "int g(int x) { static volatile int n; return n += x; }\n"
    "int (*volatile fp)(int) = g;\n"
    "int sw(int x) { switch (x) { case 0: return g(1); case 1: return g(5) + 3; case 2: return "
    "g(7) * 5;\n"
    " case 3: return g(9) ^ 9; case 4: return g(11) + 2; case 5: return g(12) * 2; case 6: return "
    "g(2) - 8;\n"
    " case 7: return g(3) & 6; default: return g(0); } }\n"
    "int direct(int x) { return g(x + 1); }\n"
    "int global(int x) { return fp(x); }\n"
    "int callback(int x, int (*f)(int)) { return f(x + 2); }\n"
    "struct ops { int a; int (*run)(int); };\n"
    "int member(struct ops *o, int x) { return o->run(x); }\n"
    "int framed(struct ops *o, int x) { volatile int a[40]; a[x & 7] = g(x); return o->run(a[1]); "
    "}\n"
    "int hop(const unsigned char *p) { static void *const to[] = {&&a, &&b, &&c}; int n = 0;\n"
    " a: n += *p; goto *to[*++p % 3]; b: n ^= 7; goto *to[*++p % 3]; c: return n; }\n"
    "void hop2(const unsigned char *p, int *n) { static const int to[] = {&&a - &&a, &&b - &&a, "
    "&&c - &&a};\n"
    " goto *(&&a + to[*p % 3]); a: *n = 1; return; b: *n = 2; return; c: *n = 3; }\n"
    "void spin(volatile int *p) { while (!*p) ; }\n"
    "void forever(void) { for (;;) g(1); }\n"
    "int main(int c, char **v) { struct ops o = {0, g}; int n; hop2((void *)v[0], &n); if (c > 99) "
    "forever();\n"
    " if (c > 9) spin(&c); return sw(c) + direct(c) + global(c) + callback(c, g) + member(&o, c) "
    "+\n"
    " framed(&o, c) + hop((void *)v[0]); }\n";

static const char *const flow_flags[] = {"-O2", "-O2 -fPIC -pie", "-O3 -no-pie -fno-pie",
					 "-O2 -fcf-protection -fno-omit-frame-pointer", "-Os"};

static void ways_out(const char *cc)
{
	char command[128];

	for (size_t i = 0; i < sizeof(flow_flags) / sizeof(flow_flags[0]); i++) {
		/* name, tail jumps at least, may have indirect jumps that are not told */
		static const struct {
			const char *name;
			unsigned int tails;
			bool unclear;
		} rows[] = {
		    {"sw", 0, false},	    {"direct", 1, false}, {"global", 1, false},
		    {"callback", 1, false}, {"member", 1, false}, {"framed", 1, false},
		    {"hop", 0, true},	    {"hop2", 0, true},	  {"forever", 0, false},
		};
		struct built b;

		snprintf(command, sizeof(command), "%s %s", cc, flow_flags[i]);
		built_make(&b, command, flow);
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			const struct elf_func *f = built_func(&b, rows[k].name);
			struct func_facts facts;

			assert_int_equal(func_facts__read(b.img, f->addr, f->size, &facts), 0);
			/* clang makes framed()'s last call no tail call where the array is live. */
			if (!facts.decoded || facts.has_cond_tail ||
			    (facts.has_indirect_jump && !rows[k].unclear) ||
			    (facts.ntail < rows[k].tails && !facts.nret))
				fail_msg("%s: %s: decoded %d ret %u tail %u cond %d indirect %d",
					 command, rows[k].name, facts.decoded, facts.nret,
					 facts.ntail, facts.has_cond_tail, facts.has_indirect_jump);
			/* A computed goto must never pass for a tail call. */
			if (rows[k].unclear)
				assert_int_equal(facts.ntail, 0);
			if (!strcmp(rows[k].name, "forever"))
				assert_int_equal(facts.nret + facts.ntail, 0);
			func_facts__clear(&facts);
		}
		built_free(&b);
	}
}

static void ways_out_gcc(void **state)
{
	(void)state;
	ways_out("gcc");
}

static void ways_out_clang(void **state)
{
	(void)state;
	ways_out("clang");
}

/* The marker's nop5 is where the asm of sys/sdt.h would put it. */
static const char zone[] =
    "#define NOP5(f) asm volatile(\".globl \" #f \"_site\\n\" #f \"_site: .byte "
    "0x0f,0x1f,0x44,0,0\" ::: \"memory\")\n"
    "int leaf(int x) { volatile int a[8]; a[x & 7] = x; NOP5(leaf); return a[x & 7]; }\n"
    "int scalar(int x) { NOP5(scalar); return x * 3; }\n"
    "void g(int *p) { asm volatile(\"\" :: \"r\"(p) : \"memory\"); }\n"
    "void (*volatile fp)(int *) = g;\n"
    "int calls(int x) { int a[8]; a[0] = x; fp(a); NOP5(calls); fp(a); return a[1]; }\n"
    "int main(int c, char **v) { return leaf(c) + scalar(c) + calls(c); }\n";

static uint64_t site_of(const struct built *b, const char *func)
{
	const struct elf_func *f = built_func(b, func);
	const uint8_t *p, *hit;
	size_t n = elf_image__bytes(b->img, f->addr, f->size, &p);

	hit = memmem(p, n, "\x0f\x1f\x44\0\0", 5);
	assert_non_null(hit);
	return f->addr + (hit - p);
}

static void red_zone(const char *cc, const char *flags, bool leaf_safe, bool scalar_safe)
{
	static const char *const names[] = {"leaf", "scalar", "calls"};
	bool safe[] = {leaf_safe, scalar_safe, true};
	char command[128];
	struct built b;

	snprintf(command, sizeof(command), "%s %s", cc, flags);
	built_make(&b, command, zone);
	for (int i = 0; i < 3; i++) {
		const struct elf_func *f = built_func(&b, names[i]);

		if (red_zone_possible(b.img, f->addr, f->size, site_of(&b, names[i])) == safe[i])
			fail_msg("%s: %s", command, names[i]);
	}
	built_free(&b);
}

static void red_zone_gcc(void **state)
{
	(void)state;
	red_zone("gcc", "-O2 -fno-inline", false, true);
	red_zone("gcc", "-O0", false, false); /* x is stored below %rbp = %rsp */
	red_zone("gcc", "-O2 -fno-inline -fno-omit-frame-pointer", false, true);
}

static void red_zone_clang(void **state)
{
	(void)state;
	red_zone("clang", "-O2 -fno-inline", false, true);
	red_zone("clang", "-O0", false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ways_out_gcc),
	    cmocka_unit_test(ways_out_clang),
	    cmocka_unit_test(red_zone_gcc),
	    cmocka_unit_test(red_zone_clang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

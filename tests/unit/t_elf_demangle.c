// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names of C++ and Rust, and names made to exhaust the demangler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "elf/symbols.h"

static void t_names(void **state)
{
	static const struct {
		const char *raw, *want; /* NULL: not mangled */
	} rows[] = {
	    {"_Z3funi", "fun(int)"},
	    {"_ZN3Foo3funEv", "Foo::fun()"},
	    {"_ZNK3Foo3funERKSs", "Foo::fun(std::string const&) const"},
	    {"_ZN12_GLOBAL__N_15InnerD2Ev", "(anonymous namespace)::Inner::~Inner()"},
	    {"_ZSt4sortIPiEvT_S1_", "void std::sort<int*>(int*, int*)"},
	    {"_ZN3Foo3funEv.cold", "Foo::fun() [clone .cold]"},
	    {"_ZN3Foo3funEv.part.0", "Foo::fun() [clone .part.0]"},
	    {"_Zli3_kgy", "operator\"\" _kg(unsigned long long)"},
	    {"_ZTV3Foo", "vtable for Foo"},
	    /* Rust: legacy without its hash, and v0 */
	    {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
	    {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
	     "17h930b740aa94f1d3aE",
	     "<Test + 'static as foo::Bar<Test>>::bar"},
	    {"_RNvC6_123foo3bar", "123foo::bar"},
	    {"_RNvNtCs1234_4feed6parser5parse", "feed::parser::parse"},
	    /* a C++ name that looks a little like Rust */
	    {"_ZN3Foo17h0123456789abcdefEv", "Foo::h0123456789abcdef()"},
	    {"main", NULL},
	    {"", NULL},
	    {"_", NULL},
	    {"_Z", NULL},
	    {"_R", NULL},
	    {"_Zebra", NULL},
	    {"_Random", NULL},
	    {"_ZN3FooE!", NULL},
	    {"__cxa_throw", NULL},
	    /* found by fuzzing: libiberty hands over an empty piece at NULL first */
	    {"_RIC0aTmC1aTmmETB3_B3_ETB7E", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *got = symbol_demangle(rows[i].raw);

		if (!rows[i].want && got)
			fail_msg("%s: got \"%s\"", rows[i].raw, got);
		if (rows[i].want && (!got || strcmp(got, rows[i].want)))
			fail_msg("%s: got \"%s\", want \"%s\"", rows[i].raw, got ? got : "(null)",
				 rows[i].want);
		free(got);
	}
}

/* A number of a substitution: S_ is the first, then S0_ .. S9_, SA_ .. SZ_, S10_ .. */
static const char *base36(unsigned int v, char out[8])
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (v < 36)
		snprintf(out, 8, "%c", digits[v]);
	else
		snprintf(out, 8, "%c%c", digits[v / 36 % 36], digits[v % 36]);
	return out;
}

/* f(a, P<a, a>, P<P<a, a>, P<a, a>>, ...): each argument is twice as long as the one before. */
static char *doubling_cxx(unsigned int levels)
{
	char *name = malloc(32 + levels * 16), d[8];
	size_t n = (size_t)sprintf(name, "_Z1f1a1PIS_S_E");

	for (unsigned int i = 0; i < levels; i++)
		n += (size_t)sprintf(name + n, "S0_IS%s_S%s_E", base36(i + 1, d), base36(i + 1, d));
	return name;
}

/* a::<(u32, u32), ((u32, u32), (u32, u32)), ...>, by back references to byte positions. */
static char *doubling_rust(unsigned int levels)
{
	static const char digits[] =
	    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char *name = malloc(32 + levels * 16), ref[8];
	size_t n = (size_t)sprintf(name, "_RIC1a"), last = n;

	n += (size_t)sprintf(name + n, "TmmE");
	for (unsigned int i = 0; i < levels; i++) {
		/* counted from behind "_R", and one less in the encoding */
		size_t pos = last - 2 - 1;

		if (pos < 62)
			snprintf(ref, sizeof(ref), "%c", digits[pos]);
		else
			snprintf(ref, sizeof(ref), "%c%c", digits[pos / 62 % 62], digits[pos % 62]);
		last = n;
		n += (size_t)sprintf(name + n, "TB%s_B%s_E", ref, ref);
	}
	sprintf(name + n, "E");
	return name;
}

static void t_doubling(void **state)
{
	char *(*const makers[])(unsigned int) = {doubling_cxx, doubling_rust};
	static const char *const two[] = {"f(a, P<a, a>, P<P<a, a>, P<a, a> >)",
					  "a::<(u32, u32), ((u32, u32), (u32, u32))>"};

	(void)state;
	for (int m = 0; m < 2; m++) {
		char *name = makers[m](1), *got = symbol_demangle(name);

		if (!got || strcmp(got, two[m]))
			fail_msg("%s: got \"%s\", want \"%s\"", name, got ? got : "(null)", two[m]);
		free(name);
		free(got);
		/* 2^8 pairs are still a name, 2^40 and more would be the end of the machine */
		name = makers[m](8);
		got = symbol_demangle(name);
		assert_non_null(got);
		assert_in_range(strlen(got), 1000, 65536);
		free(name);
		free(got);
		for (unsigned int levels = 40; levels <= 400; levels += 120) {
			name = makers[m](levels);
			assert_null(symbol_demangle(name));
			free(name);
		}
	}
}

static void t_recursion_and_length(void **state)
{
	static const char *const units[] = {"P", "F", "N", "I",	 "_Z", "J", "TP",  "K",
					    "R", "X", "D", "B_", "Ss", "L", "RIC", "M"};
	char *name = malloc(70000);

	(void)state;
	assert_non_null(name);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		for (int rust = 0; rust < 2; rust++) {
			for (size_t len = 1000; len <= 64000; len *= 4) {
				size_t n = (size_t)sprintf(name, rust ? "_R" : "_Z1f");

				while (n < len)
					n += (size_t)sprintf(name + n, "%s", units[i]);
				strcpy(name + n, "i");
				free(symbol_demangle(name));
			}
		}
	}
	/* Longer than the limit: left alone, though it is a right name. */
	strcpy(name, "_Z1f");
	memset(name + 4, 'P', 9000);
	strcpy(name + 9004, "i");
	assert_null(symbol_demangle(name));
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_names),
	    cmocka_unit_test(t_doubling),
	    cmocka_unit_test(t_recursion_and_length),
	};

	return cmocka_run_group_tests_name("elf_demangle", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Globs, the parts of C++ names, and what a typed name means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/cxxname.h"
#include "plan/glob.h"

static void globs(void **state)
{
	static const struct {
		const char *glob, *s;
		bool yes;
	} rows[] = {
	    {"abc", "abc", true},
	    {"abc", "abcd", false},
	    {"a*c", "abbbc", true},
	    {"a*c", "ac", true},
	    {"a*c", "acb", false},
	    {"*", "", true},
	    {"?", "", false},
	    {"a?c", "abc", true},
	    {"*b*", "abc", true},
	    {"[a-c]x", "bx", true},
	    {"[a-c]x", "dx", false},
	    {"[!a-c]x", "dx", true},
	    {"[]]x", "]x", true},
	    {"operator[]", "operator[]", true},
	    {"a\\*c", "a*c", true},
	    {"a\\*c", "abc", false},
	    {"", "", true},
	    {"", "a", false},
	    {"**a", "bbba", true},
	    {"[", "[", true},
	    {"a*b*c*d*e*f*g*h*i*j*k", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	     false},
	    {"\xff*", "\xff\x01", true},
	    {"[\x80-\xff]", "\xee", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (glob_match(rows[i].glob, rows[i].s) != rows[i].yes)
			fail_msg("'%s' on '%s'", rows[i].glob, rows[i].s);
	assert_true(glob_is_wild("a*"));
	assert_true(glob_is_wild("[ab]"));
	assert_false(glob_is_wild("operator[](int)"));
	assert_false(glob_is_wild("a\\*"));
}

static void literal_runs(void **state)
{
	static const struct {
		const char *glob, *runs; /* by blanks */
	} rows[] = {{"*", ""},	       {"abc", "abc"},	 {"ab*cde?f", "ab cde f"},
		    {"[xyz]q", "q"},   {"a[b", "a b"},	 {"ns::*::run*", "ns:: ::run"},
		    {"\\*abc", "abc"}, {"a\\*b", "a b"}, {"", ""}};
	const char *rest, *run;
	char seen[64];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		seen[0] = 0;
		for (rest = rows[i].glob; (n = glob_next_run(&rest, &run));)
			sprintf(seen + strlen(seen), "%s%.*s", seen[0] ? " " : "", (int)n, run);
		assert_string_equal(seen, rows[i].runs);
	}
}

static void split(void **state)
{
	static const struct {
		const char *whole, *name;
	} rows[] = {
	    {"main", "main"},
	    {"foo.isra.0", "foo"},
	    {"foo.constprop.0.llvm.17", "foo"},
	    {"fun(int)", "fun"},
	    {"ns::Foo::run(int, char const*) const", "ns::Foo::run"},
	    {"void tf<int>(int)", "tf<int>"},
	    {"std::vector<int, std::allocator<int> > make<int>(int (*)(char))", "make<int>"},
	    {"(anonymous namespace)::anon(int)", "(anonymous namespace)::anon"},
	    {"Foo::operator()(int) const", "Foo::operator()"},
	    {"Foo::operator[](unsigned long)", "Foo::operator[]"},
	    {"Foo::operator<(Foo const&) const", "Foo::operator<"},
	    {"Foo::operator int() const", "Foo::operator int"},
	    {"bool operator< <int>(int)", "operator< <int>"},
	    {"operator new(unsigned long)", "operator new"},
	    {"operator\"\" _kg(long double)", "operator\"\" _kg"},
	    {"Foo::~Foo()", "Foo::~Foo"},
	    {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
	    {"fun(int) [clone .isra.0]", "fun"},
	    {"fun(int) [clone .constprop.0] [clone .cold]", "fun"},
	    {"Foo<(Bar)1>::run() &&", "Foo<(Bar)1>::run"},
	    {"foo(int)::Local::method()", "foo(int)::Local::method"},
	    {"core::fmt::Formatter::pad", "core::fmt::Formatter::pad"},
	    {"<alloc::vec::Vec<T> as Drop>::drop", "<alloc::vec::Vec<T> as Drop>::drop"},
	    {"", ""},
	    {")", ")"},
	    {"((((", "(((("},
	    {"<<<>", "<<<>"},
	};
	struct cxx_name part;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cxx_name__split(rows[i].whole, &part);
		if (part.params - part.name != strlen(rows[i].name) ||
		    memcmp(rows[i].whole + part.name, rows[i].name, part.params - part.name))
			fail_msg("%s: %.*s", rows[i].whole, (int)(part.params - part.name),
				 rows[i].whole + part.name);
	}
}

static void typed(void **state)
{
	static const struct {
		const char *typed, *raw, *demangled;
		bool yes;
	} rows[] = {
	    {"fun", "_Z3funi", "fun(int)", true},
	    {"fun", "fun", "fun", true},
	    {"fun", "_ZN3Foo3funEi", "Foo::fun(int)", false},
	    {"fun", "_Z8functioni", "function(int)", false},
	    {"fun", "_ZN1N3funEi", "N::fun(int)", false},
	    {"fun", "fun.constprop.0", "fun.constprop.0", true},
	    {"fun", "my_fun", "my_fun", false},
	    {"fun(int)", "_Z3funi", "fun(int)", true},
	    {"fun(int)", "_Z3fund", "fun(double)", false},
	    {"fun( int )", "_Z3funi", "fun(int)", true},
	    {"fun(int)", "fun", "fun", false},
	    {"fun(int,char const *)", "_Z3funiPKc", "fun(int, char const*)", true},
	    {"fun(char*)", "_Z3funPc", "fun(char*)", true},
	    {"Foo::fun", "_ZN3Foo3funEi", "Foo::fun(int)", true},
	    {"Foo::fun", "_Z3funi", "fun(int)", false},
	    {"Foo::fun", "_ZN2ns3Foo3funEi", "ns::Foo::fun(int)", false},
	    {"Foo::get()", "_ZNK3Foo3getEv", "Foo::get() const", true},
	    {"Foo::get() const", "_ZNK3Foo3getEv", "Foo::get() const", true},
	    {"tf", "_Z2tfIiET_S0_", "int tf<int>(int)", true},
	    {"tf<int>", "_Z2tfIiET_S0_", "int tf<int>(int)", true},
	    {"tf<double>", "_Z2tfIiET_S0_", "int tf<int>(int)", false},
	    {"tf<int>(int)", "_Z2tfIiET_S0_", "int tf<int>(int)", true},
	    {"Vec::push", "_ZN3VecIiE4pushEi", "Vec<int>::push(int)", true},
	    {"Foo::operator[]", "_ZN3FooixEm", "Foo::operator[](unsigned long)", true},
	    {"Foo::operator()", "_ZN3FooclEi", "Foo::operator()(int)", true},
	    {"Foo::operator()(int)", "_ZN3FooclEi", "Foo::operator()(int)", true},
	    {"Foo::operator<", "_ZN3FooltERKS_", "Foo::operator<(Foo const&)", true},
	    {"operator new", "_Znwm", "operator new(unsigned long)", true},
	    {"_Z3funi", "_Z3funi", "fun(int)", true},
	    {"Foo::bar", "_ZThn8_N3Foo3barEv", "non-virtual thunk to Foo::bar()", false},
	    {"std::vector", "_ZNSt6vectorIiE4pushEv", "std::vector<int>::push()", false},
	    {"std::string::size", "_ZNKSs4sizeEv", "std::string::size() const", true},
	    {"int", "_Z3funi", "fun(int)", false},
	};
	struct typed_name t;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool yes;

		assert_int_equal(typed_name__parse(&t, rows[i].typed), 0);
		yes = typed_name__may_be(&t, rows[i].raw) &&
		      typed_name__is(&t, rows[i].raw, rows[i].demangled);
		if (yes != rows[i].yes)
			fail_msg("'%s' and %s", rows[i].typed, rows[i].demangled);
		/* The quick look never says no to what is meant. */
		if (rows[i].yes)
			assert_true(typed_name__may_be(&t, rows[i].raw));
		typed_name__clear(&t);
	}
}

static void tokens(void **state)
{
	static const struct {
		const char *s, *token;
	} rows[] = {
	    {"ns::Foo::run", "Foo"},
	    {"std::string", ""},
	    {"operator new", ""},
	    {"std::vector", "vector"},
	    {"Foo<Longer>::x", "Foo"},
	    {"inte", "inte"},
	    {"in", ""},
	    {"{lambda()#12}", ""},
	    {"[abi:cxx11]", "cxx11"},
	};
	const char *token;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = mangled_token(rows[i].s, strlen(rows[i].s), &token);

		if (n != strlen(rows[i].token) || memcmp(token, rows[i].token, n))
			fail_msg("%s: %.*s", rows[i].s, (int)n, token);
	}
}

static void random_text(uint64_t *s, char *out, size_t size)
{
	static const char letters[] = "ab:<>()[]{} operator,&*\"~.#\xff-";
	size_t len, i;

	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	len = (*s >> 40) % size;
	for (i = 0; i < len; i++) {
		*s = *s * 6364136223846793005ull + 1442695040888963407ull;
		out[i] = letters[(*s >> 40) % (sizeof(letters) - 1)];
	}
	out[len] = '\0';
}

/* Any bytes: offsets stay in order and within the name. */
static void fuzz(void **state)
{
	uint64_t s = 3;
	char name[40], pattern[20];

	(void)state;
	for (int round = 0; round < 100000; round++) {
		struct cxx_name part;
		struct typed_name t;
		size_t n;

		random_text(&s, name, sizeof(name));
		random_text(&s, pattern, sizeof(pattern));
		n = strlen(name);
		cxx_name__split(name, &part);
		assert_true(part.name <= part.params && part.params <= part.tail &&
			    part.tail <= part.end && part.end == n);
		assert_int_equal(typed_name__parse(&t, pattern), 0);
		typed_name__is(&t, name, name);
		typed_name__clear(&t);
		glob_match(pattern, name);
		/* Every name means itself. */
		assert_int_equal(typed_name__parse(&t, name), 0);
		if (!strchr(name, ' '))
			assert_true(typed_name__is(&t, name, name));
		typed_name__clear(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(globs), cmocka_unit_test(literal_runs), cmocka_unit_test(split),
	    cmocka_unit_test(typed), cmocka_unit_test(tokens),	     cmocka_unit_test(fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

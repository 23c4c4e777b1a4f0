// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Foreign strings and numbers as people read them. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "out/text.h"
#include "out/units.h"

static void check_text(char *got, const char *want)
{
	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

static void t_valid(void **state)
{
	(void)state;
	check_text(text__valid("plain"), "plain");
	check_text(text__valid("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
		   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	check_text(text__valid("a\x01\xff"), "a\x01\xef\xbf\xbd");
	/* overlong, surrogate, too high, cut short */
	check_text(text__valid("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd");
	check_text(text__valid("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check_text(text__valid("\xf4\x90\x80\x80"),
		   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check_text(text__valid("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
}

static void t_printable(void **state)
{
	(void)state;
	check_text(text__printable("a\x1b[31m\n\x7f", true), "a\\x1b[31m\\x0a\\x7f");
	check_text(text__printable("\xc3\xa9\xff", true), "\xc3\xa9\\xff");
	check_text(text__printable("\xc3\xa9", false), "\\xc3\\xa9");
	/* C1 control characters are controls in UTF-8 too. */
	check_text(text__printable("\xc2\x9b", true), "\\xc2\\x9b");
}

static void t_fit(void **state)
{
	(void)state;
	check_text(text__fit("short", 5, true), "short");
	check_text(text__fit("risk::Engine::check", 10, true), "risk::\xe2\x80\xa6"
							       "eck");
	check_text(text__fit("risk::Engine::check", 10, false), "risk::..ck");
	check_text(text__fit("abcdef", 2, true), "ab");
	check_text(text__fit("abcdef", 0, true), "");
	/* wide characters take two columns */
	assert_int_equal(text__width("\xe4\xb8\xad\xe6\x96\x87", true), 4);
	for (unsigned int w = 0; w < 12; w++) {
		char *s = text__fit("\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87 x", w, true);

		assert_true(text__width(s, true) <= w);
		free(s);
	}
}

/* A parameter list gives way before the qualified name does, the innermost function's own. */
static void t_fit_name(void **state)
{
#define DOTS "(\xe2\x80\xa6)"
	static const struct {
		const char *name, *brief;
	} rows[] = {
	    {"risk::Engine::check(risk::Order const&, int)", "risk::Engine::check" DOTS},
	    {"risk::Engine::check(risk::Order const&) const", "risk::Engine::check" DOTS " const"},
	    {"(anonymous namespace)::f(std::function<void (int)>)",
	     "(anonymous namespace)::f" DOTS},
	    {"f(int)::{lambda(double)#1}::operator()(double) const",
	     "f(int)::{lambda(double)#1}::operator()" DOTS " const"},
	    {"f(void (*)(int, long)) [clone .part.0]", "f" DOTS " [clone .part.0]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned int all = text__width(rows[i].name, true);

		check_text(text__fit_name(rows[i].name, all, true), rows[i].name);
		check_text(text__fit_name(rows[i].name, all - 1, true), rows[i].brief);
		check_text(text__fit_name(rows[i].name, text__width(rows[i].brief, true), true),
			   rows[i].brief);
		for (unsigned int w = 0; w < all; w++) {
			char *s = text__fit_name(rows[i].name, w, true);

			assert_true(text__width(s, true) <= w);
			free(s);
		}
	}
	check_text(text__fit_name("a::check(A const&)", 12, false), "a::check(..)");
	/* No list to shorten: the middle goes, as of any text. */
	check_text(text__fit_name("risk::Engine::check", 10, false), "risk::..ck");
	check_text(text__fit_name("risk::Engine::check()", 10, false), "risk::..()");
	check_text(text__fit_name("(anonymous namespace)::value", 10, false), "(anony..ue");
	check_text(text__fit_name("a)) odd (names)((", 10, false), "a)) od..((");
}

static void t_bar(void **state)
{
	char buf[64];

	(void)state;
	text__bar(buf, 0, 10, true);
	assert_string_equal(buf, "");
	text__bar(buf, 0.0001, 10, true);
	assert_string_equal(buf, "\xe2\x96\x8f");
	text__bar(buf, 0.1, 10, true);
	assert_string_equal(buf, "\xe2\x96\x88");
	text__bar(buf, 0.15, 10, true);
	assert_string_equal(buf, "\xe2\x96\x88\xe2\x96\x8c");
	text__bar(buf, 0.0001, 10, false);
	assert_string_equal(buf, "#");
	text__bar(buf, 7, 5, false);
	assert_string_equal(buf, "#####");
	text__bar(buf, NAN, 5, true);
	assert_string_equal(buf, "");
}

static void t_time(void **state)
{
	static const struct {
		long double ns;
		const char *text;
	} rows[] = {
	    {0, "0ns"},	       {1, "1ns"},	    {31.5L, "31.5ns"},
	    {999, "999ns"},    {999.4L, "999ns"},   {999.5L, "1.00us"},
	    {1000, "1.00us"},  {9994, "9.99us"},    {9995, "10.0us"},
	    {9996, "10.0us"},  {12345, "12.3us"},   {99949, "99.9us"},
	    {99960, "100us"},  {999499, "999us"},   {999500, "1.00ms"},
	    {1e6L, "1.00ms"},  {5e9L, "5.00s"},	    {123456789e3L, "123s"},
	    {1e13L, "10000s"}, {999.6e6L, "1.00s"},
	};
	char buf[UNIT_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(unit__time(buf, rows[i].ns), rows[i].text);
}

static void t_other_units(void **state)
{
	char buf[UNIT_TEXT];

	(void)state;
	assert_string_equal(unit__count(buf, UINT64_MAX), "18446744073709551615");
	assert_string_equal(unit__rate(buf, 12345678), "12.3M");
	assert_string_equal(unit__rate(buf, 0.1), "0.10");
	assert_string_equal(unit__rate(buf, 0), "0");
	assert_string_equal(unit__share(buf, 0), "0.00%");
	assert_string_equal(unit__share(buf, 0.00001), "<0.01%");
	assert_string_equal(unit__share(buf, 0.123), "12.3%");
	assert_string_equal(unit__share(buf, 0.99999), ">99.9%");
	assert_string_equal(unit__share(buf, 1), "100%");
	assert_string_equal(unit__share(buf, 2.5), "250%");
	assert_string_equal(unit__value(buf, -100), "-100");
	assert_string_equal(unit__value(buf, 101.5), "101.5");
	assert_string_equal(unit__value(buf, 1e300L), "1e+300");
	assert_string_equal(unit__value(buf, -INFINITY), "-inf");
	assert_string_equal(unit__bytes(buf, 0), "0 B");
	assert_string_equal(unit__bytes(buf, 1023), "1023 B");
	assert_string_equal(unit__bytes(buf, 3 << 19), "1.50 MiB");
	assert_true(strlen(unit__bytes(buf, UINT64_MAX)) < UNIT_TEXT - 1);
	assert_true(strlen(unit__time(buf, 1e4900L)) < UNIT_TEXT - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_valid),	     cmocka_unit_test(t_printable),
	    cmocka_unit_test(t_fit),	     cmocka_unit_test(t_fit_name),
	    cmocka_unit_test(t_bar),	     cmocka_unit_test(t_time),
	    cmocka_unit_test(t_other_units),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests_name("out_text", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rules of --slow: their text, and which spans they take. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plan/slow.h"

static void t_good(void **state)
{
	static const struct {
		const char *text, *glob;
		uint64_t min_ns;
	} rows[] = {
	    {"tick>50us", "tick", 50001},
	    {"tick>=50us", "tick", 50000},
	    {"tick > 50us", "tick", 50001},
	    {"a:b>=1.5ms", "a:b", 1500000},
	    {"*>0.1us", "*", 101},
	    {"*>=0.0001us", "*", 1},
	    {"*>=0ns", "*", 0},
	    {"*>2s", "*", 2000000001},
	    {"*>1ns", "*", 2},
	    {"*>.5ns", "*", 1},
	    {"std::vector<int>::push_back(int)>=3ms", "std::vector<int>::push_back(int)", 3000000},
	    {"operator>>1us", "operator>", 1001},
	    {"operator>>>=1us", "operator>>", 1000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slow_rule r;
		struct err e = {{0}};

		assert_int_equal(slow_rule__parse(rows[i].text, &r, &e), 0);
		assert_string_equal(r.glob, rows[i].glob);
		assert_int_equal(r.min_ns, rows[i].min_ns);
		slow_rule__clear(&r);
	}
}

static void t_bad(void **state)
{
	static const char *const rows[] = {
	    "",		  "tick",	">50us",      " >50us",	    "tick>",	  "tick>=",
	    "tick>50",	  "tick>us",	"tick>50 us", "tick>50m",   "tick<50us",  "tick>-1us",
	    "tick>0x5us", "tick>nanus", "tick>infs",  "tick>1e30s", "tick>50usx", "tick>+5us",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slow_rule r;
		struct err e = {{0}};

		assert_int_equal(slow_rule__parse(rows[i], &r, &e), -EINVAL);
		assert_non_null(strstr(e.text, "--slow"));
		slow_rule__clear(&r);
	}
}

static bool takes(const char *text, const char *name, enum span_kind kind, enum return_way way)
{
	struct plan_span span = {.name = (char *)name, .kind = kind, .way = way};
	struct slow_rule r;
	bool yes;

	assert_int_equal(slow_rule__parse(text, &r, NULL), 0);
	yes = slow_rule__matches(&r, &span);
	slow_rule__clear(&r);
	return yes;
}

static void t_matches(void **state)
{
	(void)state;
	assert_true(takes("s:tick>1us", "s:tick", SPAN_MARKER, 0));
	assert_true(takes("s:*>1us", "s:tick", SPAN_KEYED, 0));
	assert_true(takes("tick>1us", "s:tick", SPAN_MARKER, 0));
	assert_true(takes("t*>1us", "s:tick", SPAN_KEYED, 0));
	assert_false(takes("t:tick>1us", "s:tick", SPAN_MARKER, 0));
	assert_false(takes("s>1us", "s:tick", SPAN_MARKER, 0));
	assert_false(takes("s:tic>1us", "s:tick", SPAN_MARKER, 0));
	assert_true(takes("f>1us", "f(int)", SPAN_FUNC, RET_INSNS));
	assert_true(takes("f(int)>1us", "f(int)", SPAN_FUNC, RET_INSNS));
	assert_false(takes("f(long)>1us", "f(int)", SPAN_FUNC, RET_INSNS));
	assert_false(takes("f>1us", "ff(int)", SPAN_FUNC, RET_INSNS));
	assert_true(takes("A::operator[]>1us", "A::operator[](int)", SPAN_FUNC, RET_INSNS));
	assert_true(takes("*>1us", "f(int)", SPAN_FUNC, RET_URETPROBE));
	/* Without an end there is no duration. */
	assert_false(takes("*>1us", "f(int)", SPAN_FUNC, RET_NONE));
	assert_false(takes("*>1us", "s:mark", SPAN_INSTANT, 0));
	assert_false(takes("*>1us", "s:depth", SPAN_VALUE, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_good),
	    cmocka_unit_test(t_bad),
	    cmocka_unit_test(t_matches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

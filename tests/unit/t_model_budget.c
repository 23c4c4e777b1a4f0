// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rules: what is read into what, each way to be wrong with its exact message, and hostile ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>
#include <cmocka.h>

#include "model/budget.h"

#define HAVE                                                                                       \
	"(count rate total self share min mean pN max total/s self/s self/span lost open "         \
	"orphan_ends abandoned)"

static void t_good(void **state)
{
	static const struct {
		const char *text, *span;
		enum figure_kind kind;
		double q;
		enum compare compare;
		double limit; /* with a baseline of 1000 */
		bool time;
	} rules[] = {
	    {"strategy:on_tick p99 < 50us", "strategy:on_tick", FIG_QUANTILE, 0.99, CMP_LT, 50000,
	     true},
	    {"strategy:on_tick/alpha share < 30%", "strategy:on_tick/alpha", FIG_SHARE, 0, CMP_LT,
	     0.3, false},
	    {"* lost == 0", "*", FIG_LOST, 0, CMP_EQ, 0, false},
	    {"a p99 < baseline * 1.05", "a", FIG_QUANTILE, 0.99, CMP_LT, 1050, true},
	    {"a p99.9<=baseline+5us", "a", FIG_QUANTILE, 0.999, CMP_LE, 6000, true},
	    {"a p99.99 >= 1.5ms", "a", FIG_QUANTILE, 0.9999, CMP_GE, 1500000, true},
	    {"a p75 > 2 s", "a", FIG_QUANTILE, 0.75, CMP_GT, 2e9, true},
	    {"a p50 < 3\xc2\xb5s", "a", FIG_QUANTILE, 0.5, CMP_LT, 3000, true},
	    {"a p50 < 3\xce\xbcs", "a", FIG_QUANTILE, 0.5, CMP_LT, 3000, true},
	    {"a p50 < 0", "a", FIG_QUANTILE, 0.5, CMP_LT, 0, true},
	    {"a count != 1e6", "a", FIG_COUNT, 0, CMP_NE, 1e6, false},
	    {"a rate > 10", "a", FIG_RATE, 0, CMP_GT, 10, false},
	    {"a mean < (1us + 500ns) * 2 - baseline", "a", FIG_MEAN, 0, CMP_LT, 2000, true},
	    {"a max < 2 * baseline / 4", "a", FIG_MAX, 0, CMP_LT, 500, true},
	    {"a self < --5us", "a", FIG_SELF, 0, CMP_LT, 5000, true},
	    {"a share < 100us / 1ms", "a", FIG_SHARE, 0, CMP_LT, 0.1, false},
	    {"a total/s < 5%", "a", FIG_TOTAL_RATE, 0, CMP_LT, 0.05, false},
	    {"a self/span < 5us", "a", FIG_SELF_MEAN, 0, CMP_LT, 5000, true},
	    {"v p99 < 50", "v", FIG_QUANTILE, 0.99, CMP_LT, 50, false},
	    {"v min > -3.5", "v", FIG_MIN, 0, CMP_GT, -3.5, false},
	    {"std::vector<int>::push_back(int const&) p99 < 5us",
	     "std::vector<int>::push_back(int const&)", FIG_QUANTILE, 0.99, CMP_LT, 5000, true},
	    {"bool operator<(A, B) count > 3", "bool operator<(A, B)", FIG_COUNT, 0, CMP_GT, 3,
	     false},
	    {"operator>= count >= 3", "operator>=", FIG_COUNT, 0, CMP_GE, 3, false},
	    {"'a p99 < 3' open == 0", "a p99 < 3", FIG_OPEN, 0, CMP_EQ, 0, false},
	    {"\"it's\" abandoned == 0", "it's", FIG_ABANDONED, 0, CMP_EQ, 0, false},
	    {"\t a \t orphan_ends\t==\t0 ", "a", FIG_ORPHAN_ENDS, 0, CMP_EQ, 0, false},
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		struct budget b = {0};
		struct quantity base = {rules[i].time, 1000, {1000, 1000}}, limit;

		e.text[0] = '\0';
		assert_string_equal((budget__add(&b, rules[i].text, &e), e.text), "");
		assert_int_equal(b.n, 1);
		assert_string_equal(b.rules[0].span, rules[i].span);
		assert_int_equal(b.rules[0].figure.kind, rules[i].kind);
		assert_true(b.rules[0].figure.q == rules[i].q);
		assert_int_equal(b.rules[0].compare, rules[i].compare);
		assert_null(limit__eval(b.rules[0].limit, rules[i].time, &base, &limit));
		assert_float_equal(limit.value, rules[i].limit, 1e-6);
		budget__clear(&b);
	}
}

static void t_bad(void **state)
{
	static const struct {
		const char *text, *message;
	} rules[] = {
	    {"", "rule 1, column 1: an empty rule"},
	    {"   ", "rule 1, column 4: an empty rule"},
	    {"a", "rule 1, column 2: expected a comparison (< <= > >= == !=) and a limit"},
	    {"a p99", "rule 1, column 6: expected a comparison (< <= > >= == !=) and a limit"},
	    {"a p99 = 5us",
	     "rule 1, column 7: expected a comparison (< <= > >= == !=) and a limit"},
	    {"a p99 => 5us",
	     "rule 1, column 7: expected a comparison (< <= > >= == !=) and a limit"},
	    {"a p99 ! 5us",
	     "rule 1, column 7: expected a comparison (< <= > >= == !=) and a limit"},
	    {"a p99 <", "rule 1, column 8: expected a limit: a number with its unit, or baseline"},
	    {"a p99 < ", "rule 1, column 8: expected a limit: a number with its unit, or baseline"},
	    {"a p99 < fast",
	     "rule 1, column 9: expected a limit: a number with its unit, or baseline"},
	    {"a p99 < 5xs", "rule 1, column 10: no such unit (ns us ms s %)"},
	    {"a p99 < 5us 6", "rule 1, column 13: the limit should end here"},
	    {"a p99 < 5us)", "rule 1, column 12: the limit should end here"},
	    {"a p99 < (5us", "rule 1, column 13: expected )"},
	    {"a p99 < 5us +",
	     "rule 1, column 14: expected a limit: a number with its unit, or baseline"},
	    {"a p99 < nan",
	     "rule 1, column 9: expected a limit: a number with its unit, or baseline"},
	    {"a p99 < inf",
	     "rule 1, column 9: expected a limit: a number with its unit, or baseline"},
	    {"a p99 < 1e999us", "rule 1, column 9: the number is too great"},
	    {"a p99 < 1e308 * 1e308 * 1us", "rule 1, column 8: the limit is beyond any number"},
	    {"a p99 < 1.2.3us", "rule 1, column 9: expected a number"},
	    {"a p99 < 0x10us", "rule 1, column 10: no such unit (ns us ms s %)"},
	    {"a p99 < 5us / 0", "rule 1, column 8: it divides by what may be zero"},
	    {"a p99 < 5us * 5us", "rule 1, column 8: a time by a time is no time"},
	    {"a p99 < 5 / 5us", "rule 1, column 8: a number by a time is no limit"},
	    {"a p99 < 5us + 5", "rule 1, column 8: a time and a number without unit do not add up"},
	    {"a count < 5us", "rule 1, column 10: the figure is no time, the limit is one"},
	    {"a share < 5us", "rule 1, column 10: the figure is no time, the limit is one"},
	    {"a share < 30", "rule 1, column 10: no share is above 100 %: is a % missing?"},
	    {"a/b share >= 101%", "rule 1, column 13: no share is above 100 %: is a % missing?"},
	    {"p99 < 5us",
	     "rule 1, column 1: expected a span before the figure (* for all of them)"},
	    {"< 5us", "rule 1, column 1: expected a figure " HAVE},
	    {"a p9x < 5us", "rule 1, column 3: no such figure: 'p9x' " HAVE},
	    {"a p100 < 5us", "rule 1, column 3: no such figure: 'p100' " HAVE},
	    {"a p0 < 5us", "rule 1, column 3: no such figure: 'p0' " HAVE},
	    {"a p < 5us", "rule 1, column 3: no such figure: 'p' " HAVE},
	    {"a p\x1b[31m < 5us", "rule 1, column 3: no such figure: 'p?[31m' " HAVE},
	    {"'a p99 < 5us", "rule 1, column 1: the quoted span has no end"},
	    {"'a' < 5us", "rule 1, column 4: expected a figure " HAVE},
	    {"'a'b p99 < 5us", "rule 1, column 4: expected a figure behind the quoted span"},
	    {"'' p99 < 5us", "rule 1, column 3: expected a figure behind the quoted span"},
	    {"a p99 < 5us\nb p99 < 5us", "rule 1, column 12: a rule is one line"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		struct budget b = {0};
		struct err e = {{0}};

		assert_int_equal(budget__add(&b, rules[i].text, &e), -EINVAL);
		assert_string_equal(e.text, rules[i].message);
		assert_int_equal(b.n, 0);
		budget__clear(&b);
	}
}

static char *repeat(const char *before, const char *what, size_t times, const char *after)
{
	size_t n = strlen(what);
	char *text = malloc(strlen(before) + n * times + strlen(after) + 1), *at;

	assert_non_null(text);
	at = stpcpy(text, before);
	for (size_t i = 0; i < times; i++, at += n)
		memcpy(at, what, n);
	strcpy(at, after);
	return text;
}

static void t_hostile(void **state)
{
	static const struct {
		const char *before, *what;
		size_t times;
		const char *after, *message; /* NULL: it is a rule */
	} rules[] = {
	    {"", "x", 1 << 20, " p99 < 5us", NULL},
	    {"a p99 < ", "(", 1 << 20, "5us", "rule 1, column 25: too many parentheses"},
	    {"a p99 < ", "-", 1 << 20, "5us", "rule 1, column 25: too many parentheses"},
	    {"a p99 < 5us", " + 5us", 100000, "", "rule 1, column 205: the limit is too long"},
	    {"a p99 < 5us", " + 5us", 31, "", NULL},
	    {"a p99 < ", "1", 1 << 20, "us", "rule 1, column 9: the number is too long"},
	    {"a p99 < 5", "s", 1 << 20, "", "rule 1, column 10: no such unit (ns us ms s %)"},
	    {"a ", "p", 1 << 20, " < 5us",
	     "rule 1, column 3: no such figure: 'ppppppppppppppppppppppppppppppppppppppp' " HAVE},
	    {"a p99 ", "<", 1 << 20, " 5us",
	     "rule 1, column 1048581: expected a comparison (< <= > >= == !=) and a limit"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		char *text = repeat(rules[i].before, rules[i].what, rules[i].times, rules[i].after);
		struct budget b = {0};
		struct err e = {{0}};
		int err = budget__add(&b, text, &e);

		assert_string_equal(e.text, rules[i].message ? rules[i].message : "");
		assert_int_equal(err, rules[i].message ? -EINVAL : 0);
		budget__clear(&b);
		free(text);
	}
}

static int read_text(struct budget *b, const char *text, size_t len, struct err *e)
{
	char path[] = "/tmp/qbpf-budget-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	err = budget__read(b, path, e);
	unlink(path);
	/* The name differs from run to run. */
	if (strstr(e->text, path))
		memmove(e->text, e->text + strlen(path), strlen(e->text + strlen(path)) + 1);
	return err;
}

static void t_file(void **state)
{
	static const char good[] = "\xef\xbb\xbf# the tick\r\n\r\n"
				   "  strategy:on_tick p99 < 50us   # of 2025\r\n"
				   "a#2 p50 < 1us\n"
				   "'b # c' count > 0 # quoted\n"
				   "it's count > 0";
	static const struct {
		const char *text, *message;
	} bad[] = {
	    {"a p99 < 5us\n\n  b p99 < 5xs # no\n", ":3:12: no such unit (ns us ms s %)"},
	    {"a p99 <\t# 5us\n", ":1:8: expected a limit: a number with its unit, or baseline"},
	    {"# nothing\n\n", ": no rules in it"},
	    {"", ": no rules in it"},
	};
	struct budget b = {0};
	struct err e = {{0}};
	char place[RULE_PLACE];

	(void)state;
	assert_int_equal(read_text(&b, good, sizeof(good) - 1, &e), 0);
	assert_int_equal(b.n, 4);
	assert_string_equal(b.rules[0].text, "strategy:on_tick p99 < 50us");
	assert_int_equal(b.rules[0].line, 3);
	assert_string_equal(b.rules[1].span, "a#2");
	assert_string_equal(b.rules[2].span, "b # c");
	assert_string_equal(b.rules[3].span, "it's");
	assert_int_equal(b.rules[3].line, 6);
	assert_non_null(strstr(rule__place(place, &b.rules[3]), ":6"));
	/* An argument behind a file counts on its own. */
	assert_int_equal(budget__add(&b, "a p99 <", &e), -EINVAL);
	assert_string_equal(
	    e.text, "rule 1, column 8: expected a limit: a number with its unit, or baseline");
	budget__clear(&b);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(read_text(&b, bad[i].text, strlen(bad[i].text), &e), -EINVAL);
		assert_string_equal(e.text, bad[i].message);
		budget__clear(&b);
	}
	assert_int_equal(read_text(&b, "a count > 0\n\0", 13, &e), -EINVAL);
	assert_string_equal(e.text, ":2:1: a zero byte: is this a budget file?");
	budget__clear(&b);
	assert_int_equal(budget__read(&b, "/nonexistent/budget", &e), -ENOENT);
	assert_string_equal(e.text, "/nonexistent/budget: No such file or directory");
	budget__clear(&b);
	assert_int_equal(budget__read(&b, "/tmp", &e), -EISDIR);
	budget__clear(&b);
}

static void t_quantiles(void **state)
{
	struct budget b = {0};
	struct err e;
	double q[2];

	(void)state;
	assert_false(budget__needs_baseline(&b));
	assert_int_equal(budget__add(&b, "a p99 < 5us", &e), 0);
	assert_int_equal(budget__add(&b, "a p75 < 5us", &e), 0);
	assert_int_equal(budget__add(&b, "b p75 < 5us", &e), 0);
	assert_int_equal(budget__quantiles(&b, q, 2), 1);
	assert_true(q[0] == 0.75);
	assert_false(budget__needs_baseline(&b));
	assert_int_equal(budget__add(&b, "b p99.5 < baseline", &e), 0);
	assert_int_equal(budget__add(&b, "b p10 < 5us", &e), 0);
	assert_int_equal(budget__quantiles(&b, q, 2), 3);
	assert_true(budget__needs_baseline(&b));
	budget__clear(&b);
}

/* A limit that comes from a baseline carries its interval. */
static void t_intervals(void **state)
{
	struct quantity base = {true, 100, {90, 120}}, share = {false, 0.1, {0.09, 0.12}}, out;
	struct budget b = {0};
	struct err e;

	(void)state;
	assert_int_equal(budget__add(&b, "a p99 < 2 * baseline - 10ns", &e), 0);
	assert_int_equal(budget__add(&b, "a share < 0.09 / baseline", &e), 0);
	assert_int_equal(budget__add(&b, "a p99 < -(5ns - baseline)", &e), 0);
	assert_int_equal(budget__add(&b, "a p99 < 5us / (baseline / 100ns - 1)", &e), 0);
	assert_int_equal(budget__add(&b, "a p99 < baseline * 1e307", &e), 0);
	assert_null(limit__eval(b.rules[0].limit, true, &base, &out));
	assert_true(out.value == 190 && out.ci.lo == 170 && out.ci.hi == 230);
	assert_null(limit__eval(b.rules[1].limit, false, &share, &out));
	assert_float_equal(out.ci.lo, 0.75, 1e-12);
	assert_float_equal(out.ci.hi, 1, 1e-12);
	assert_null(limit__eval(b.rules[2].limit, true, &base, &out));
	assert_true(out.value == 95 && out.ci.lo == 85 && out.ci.hi == 115);
	assert_string_equal(limit__eval(b.rules[3].limit, true, &base, &out),
			    "it divides by what may be zero");
	assert_true(isnan(out.value));
	assert_string_equal(limit__eval(b.rules[4].limit, true, &base, &out),
			    "the limit is beyond any number");
	/* A bound that the baseline has not: the limit has none either. */
	base.ci.hi = INFINITY;
	assert_null(limit__eval(b.rules[0].limit, true, &base, &out));
	assert_true(out.ci.lo == 170 && isinf(out.ci.hi));
	budget__clear(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_good), cmocka_unit_test(t_bad),	     cmocka_unit_test(t_hostile),
	    cmocka_unit_test(t_file), cmocka_unit_test(t_quantiles), cmocka_unit_test(t_intervals),
	};

	return cmocka_run_group_tests_name("model_budget", tests, NULL, NULL);
}

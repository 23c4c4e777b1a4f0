// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The plain report: goldens of a fixed snapshot, and what must hold for any. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "golden.h"
#include "out/table.h"
#include "out/text.h"
#include "snap_fixture.h"

static const struct table_opts everything = {
    .width = 100, .histograms = true, .tree = true, .probes = true, .price = true};

static char *report(const struct snapshot *s, const struct table_opts *o)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	table__write(f, s, o);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void golden_report(const char *name, const char *locale)
{
	struct snapshot *s = fixture__strategy();
	char *text;

	assert_non_null(setlocale(LC_CTYPE, locale));
	text = report(s, &everything);
	golden__check(name, text);
	free(text);
	snapshot__free(s);
}

static void t_golden_utf8(void **state)
{
	(void)state;
	golden_report("table.utf8.txt", "C.UTF-8");
}

static void t_golden_ascii(void **state)
{
	(void)state;
	golden_report("table.ascii.txt", "C");
}

/* Whatever a target is called: no control byte reaches the terminal, and no line is endless. */
static void t_plain_text(void **state)
{
	struct snapshot *s = fixture__strategy();
	char *text;

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	free(s->comm);
	s->comm = strdup("ev\x1b]0;il\x07");
	text = report(s, &everything);
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
	free(text);
	snapshot__free(s);
}

static void t_empty(void **state)
{
	struct snapshot *s = snapshot__new();
	char *text;

	(void)state;
	text = report(s, &everything);
	assert_string_equal(text, "target  0ns\n0 sites armed; 0 hits/s, cost not measured\n");
	free(text);
	snapshot__free(s);
}

/* 1,000 spans without a hit are one line, 1,000 refusals of one kind two, 30 histograms 20. */
static void t_many(void **state)
{
	struct snapshot *s = snapshot__new();
	size_t lines = 0, histograms = 0;
	char name[32], *text;

	(void)state;
	s->now_ns = 1000000000;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		fixture__span(s, name, SPAN_FUNC, QBPF_HIST_NS);
		fixture__note(&s->refused, &s->nrefused, name, "no good");
		if (i < 30)
			fixture__add(&s->spans[i], 1000 * (i + 1), 1);
	}
	text = report(s, &everything);
	assert_non_null(strstr(text, "no hit yet: f30, f31, f32, f33, f34, f35 and 964 more\n"));
	assert_non_null(
	    strstr(text, "refused: no good:\n    f0, f1, f2, f3, f4, f5 and 994 more\n"));
	assert_non_null(strstr(text, "(histograms of 10 more spans with less time not shown)\n"));
	for (const char *p = text; (p = strstr(p, ": 1 span\n")); p++)
		histograms++;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(histograms, 20);
	assert_true(lines < 120);
	/* Most time first. */
	assert_true(strstr(text, "\nf29 ") < strstr(text, "\nf28 "));
	free(text);
	snapshot__free(s);
}

/* Overloads whose names are long and differ in the middle; on a terminal the list gives way. */
static void t_long_names(void **state)
{
	static const char *const names[] = {
	    "strategy::trader::check(strategy::quote const&, double, std::vector<int> const&)",
	    "strategy::trader::check(strategy::order const&, double, std::vector<int> const&)",
	    "strategy::trader::price(strategy::quote const&, double, std::vector<int> const&)"};
	struct table_opts o = everything;
	struct snapshot *s = snapshot__new();
	char want[200], *text;

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	s->now_ns = 1000000000;
	for (int i = 0; i < 3; i++) {
		fixture__add(fixture__span(s, names[i], SPAN_FUNC, QBPF_HIST_NS), 5000, 7);
		fixture__node(s, 0, i, 7, 35000, 35000)->max_ns = 5000;
	}
	o.width = 0;
	o.histograms = false;
	text = report(s, &o);
	for (int i = 0; i < 3; i++) { /* in the table and in the tree, whole */
		const char *at;

		snprintf(want, sizeof(want), "\n%s      7 ", names[i]);
		at = strstr(text, want);
		assert_non_null(at);
		snprintf(want, sizeof(want), "\n%s ", names[i]);
		assert_non_null(strstr(at + 1, want));
	}
	free(text);
	o.width = 110;
	text = report(s, &o);
	/* Overloads stay different. */
	assert_non_null(strstr(text, "\nstrategy::trader::check\xe2\x80\xa6quote const&, d"));
	assert_non_null(strstr(text, "\nstrategy::trader::check\xe2\x80\xa6order const&, d"));
	assert_non_null(strstr(text, "\nstrategy::trader::price(\xe2\x80\xa6) "));
	free(text);
	snapshot__free(s);
}

/* Words that do not explain themselves are explained, once, and only when they were used. */
static void t_unclean(void **state)
{
	struct snapshot *s = fixture__strategy();
	const char *at;
	char *text;

	(void)state;
	s->spans[1].abandoned = 1;
	text = report(s, &everything);
	at = strstr(text, "(abandoned: begun, but its end was never reached: ");
	assert_non_null(at);
	assert_null(strstr(at + 1, "(abandoned:"));
	assert_null(strstr(text, "(orphan ends:"));
	free(text);
	s->spans[1].orphan_ends = 1;
	text = report(s, &everything);
	assert_non_null(
	    strstr(text, "\n  (orphan ends: ended, but begun before qbpf was attached)\n"));
	free(text);
	snapshot__free(s);
}

/* A refused span is told by its sites, not as one that might yet be hit. */
static void t_refused(void **state)
{
	struct snapshot *s = snapshot__new();
	char *text;

	(void)state;
	s->now_ns = 1000000000;
	fixture__span(s, "waiting", SPAN_FUNC, QBPF_HIST_NS);
	fixture__span(s, "turned_down", SPAN_FUNC, QBPF_HIST_NS)->refused = true;
	fixture__note(&s->refused, &s->nrefused, "turned_down at 0x10", "no good");
	text = report(s, &everything);
	assert_non_null(strstr(text, "no hit yet: waiting\n"));
	assert_non_null(strstr(text, "refused: no good: turned_down at 0x10\n"));
	free(text);
	snapshot__free(s);
}

static void t_deep_recursion(void **state)
{
	struct snapshot *s = snapshot__new();
	char *text;

	(void)state;
	fixture__span(s, "recurse", SPAN_FUNC, QBPF_HIST_NS);
	for (int i = 0; i < 64; i++)
		fixture__node(s, i, 0, 1, 100 - i, 1);
	text = report(s, &everything);
	assert_non_null(strstr(text, "63: recurse"));
	for (const char *p = text, *end; (end = strchr(p, '\n')); p = end + 1)
		assert_true(end - p < 200);
	free(text);
	snapshot__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_golden_utf8),	cmocka_unit_test(t_golden_ascii),
	    cmocka_unit_test(t_plain_text),	cmocka_unit_test(t_empty),
	    cmocka_unit_test(t_many),		cmocka_unit_test(t_refused),
	    cmocka_unit_test(t_deep_recursion), cmocka_unit_test(t_long_names),
	    cmocka_unit_test(t_unclean),
	};

	return cmocka_run_group_tests_name("out_table", tests, NULL, NULL);
}

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_golden_utf8),
	    cmocka_unit_test(t_golden_ascii),
	};

	return cmocka_run_group_tests_name("out_table", tests, NULL, NULL);
}

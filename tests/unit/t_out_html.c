/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page of a recording: its data is JSON that no name can leave, exact, and of bounded size. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "html_fixture.h"
#include "out/html.h"
#include "out/html_data.h"

#define DATA_TAG "<script type=\"application/json\" id=\"data\">"

/* The page as text; *data: its document. */
static char *page(const char *name, bool per_thread, json_t **data)
{
	struct trace_reader *r = NULL;
	struct analysis *a = NULL;
	struct err e = {""};
	json_error_t error;
	char *text = NULL, *from, *to;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fix_analyse(name, per_thread, &r, &a);
	assert_int_equal(html__write(f, a, &e), 0);
	fclose(f);
	analysis__free(a);
	trace_reader__free(r);
	from = strstr(text, DATA_TAG);
	assert_non_null(from);
	from += strlen(DATA_TAG);
	/* As an HTML parser does: to the first end tag, and no '<' before it at all. */
	to = strchr(from, '<');
	assert_non_null(to);
	assert_memory_equal(to, "</script>", 9);
	*data = json_loadb(from, to - from, JSON_REJECT_DUPLICATES, &error);
	if (!*data)
		fail_msg("%s: %s at %d", name, error.text, error.position);
	return text;
}

static json_t *span_named(json_t *doc, const char *name)
{
	json_t *s;
	size_t i;

	json_array_foreach(
	    json_object_get(doc, "spans"), i,
	    s) if (!strcmp(json_string_value(json_object_get(s, "name")), name)) return s;
	fail_msg("no span %s", name);
	return NULL;
}

static json_int_t count(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		fail_msg("%s is no integer", key);
	return json_integer_value(v);
}

/* Each is a whole document with all keys that the script reads; one script, one style. */
static void t_every_recording(void **state)
{
	static const char *const keys[] = {"recording", "processes", "totals", "windows",
					   "spans",	"losses",    "nodes",  "edges",
					   "threads",	"slowest",   "refused"};

	(void)state;
	for (size_t i = 0; i < HTML_FIXTURES; i++) {
		json_t *doc;
		char *text = page(html_fixtures[i].name, false, &doc), *at;
		int scripts = 0;

		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			if (!json_object_get(doc, keys[k]))
				fail_msg("%s: no %s", html_fixtures[i].name, keys[k]);
		for (at = text; (at = strstr(at, "<script")); at++)
			scripts++;
		assert_int_equal(scripts, 2);
		assert_non_null(strstr(text, "default-src 'none'"));
		assert_null(strstr(text, "unsafe"));
		/* The name of SVG is no address that anything loads. */
		assert_null(strstr(text, "https:"));
		at = strstr(text, "http:");
		assert_memory_equal(at, "http://www.w3.org/2000/svg'", 27);
		assert_null(strstr(at + 1, "http:"));
		assert_true(strlen(text) < 16 << 20);
		json_decref(doc);
		free(text);
	}
}

static void t_names(void **state)
{
	json_t *doc, *s;
	char *text = page("hostile", false, &doc);
	const char *longest;

	(void)state;
	assert_non_null(span_named(doc, FIX_HOSTILE1));
	assert_non_null(span_named(doc, FIX_HOSTILE2));
	assert_non_null(
	    span_named(doc, "operator\"\"_kg a\"b\\c \x01\xef\xbf\xbd\x1b[31m \xc3\xa9"));
	assert_non_null(span_named(doc, "__proto__"));
	assert_non_null(span_named(doc, ""));
	s = json_array_get(json_object_get(doc, "spans"), 3);
	longest = json_string_value(json_object_get(s, "name"));
	assert_true(strlen(longest) < HTML_NAME_MAX + 48);
	assert_memory_equal(longest, "\xe2\x82\xacxxx", 6);
	assert_non_null(strstr(longest, "(9000 bytes more)"));
	json_decref(doc);
	free(text);
}

static void t_figures(void **state)
{
	json_t *doc, *s, *steps, *curve;
	char *text = page("known", false, &doc);
	json_int_t sum = 0, last = 0;

	(void)state;
	s = span_named(doc, "known:tick");
	assert_int_equal(count(s, "held"), 1000);
	assert_int_equal(count(s, "total"), 999 * 1000 + 10000);
	assert_int_equal(count(s, "self"), 999 * 100 + 1000);
	assert_int_equal(count(s, "min"), 1000);
	assert_int_equal(count(s, "p99"), 1000);
	assert_int_equal(count(s, "max"), 10000);
	assert_null(json_object_get(s, "p9999"));
	assert_int_equal(count(span_named(doc, "known:bravo"), "lost"), 25);
	/* Buckets hold all of them, at their place: 2^(637/64) = 991, 2^(850/64) = 9944. */
	assert_int_equal(count(s, "octave"), 64);
	steps = json_object_get(s, "steps");
	assert_int_equal(json_array_size(steps), 4);
	assert_int_equal(json_integer_value(json_array_get(steps, 0)), 637);
	assert_int_equal(json_integer_value(json_array_get(steps, 1)), 999);
	assert_int_equal(json_integer_value(json_array_get(steps, 2)), 850);
	assert_int_equal(json_integer_value(json_array_get(steps, 3)), 1);
	/* The curve rises, to the last one of all. */
	curve = json_object_get(s, "curve");
	for (size_t i = 0; i < json_array_size(curve); i += 2) {
		json_int_t rank = json_integer_value(json_array_get(curve, i));

		assert_true(rank > last);
		last = rank;
		assert_int_equal(json_integer_value(json_array_get(curve, i + 1)),
				 rank == 1000 ? 10000 : 1000);
	}
	assert_int_equal(last, 1000);
	steps = json_object_get(json_object_get(s, "windows"), "count");
	assert_int_equal(json_array_size(steps), count(json_object_get(doc, "windows"), "n"));
	for (size_t i = 0; i < json_array_size(steps); i++)
		sum += json_integer_value(json_array_get(steps, i));
	assert_int_equal(sum, 1000);
	json_decref(doc);
	free(text);
}

static void t_tree(void **state)
{
	json_t *doc, *nodes, *slowest, *trees, *event;
	char *text = page("known", false, &doc);

	(void)state;
	nodes = json_object_get(doc, "nodes");
	assert_int_equal(json_array_size(nodes), 4);
	assert_int_equal(json_array_size(json_object_get(doc, "edges")), 4);
	slowest = json_object_get(doc, "slowest");
	trees = json_object_get(slowest, "trees");
	assert_int_equal(json_array_size(trees), 10);
	assert_int_equal(count(json_array_get(trees, 0), "ns"), 10000);
	assert_int_equal(count(json_array_get(trees, 0), "at"), 999 * 100000);
	assert_int_equal(count(json_object_get(slowest, "median"), "ns"), 1000);
	event = json_array_get(json_object_get(json_array_get(trees, 0), "events"), 3);
	/* delta: below charlie, 7 us in, for 2 us. */
	assert_int_equal(json_integer_value(json_array_get(event, 1)), 2);
	assert_int_equal(json_integer_value(json_array_get(event, 2)), 7000);
	assert_int_equal(json_integer_value(json_array_get(event, 3)), 2000);
	assert_int_equal(json_array_size(event), 4);
	json_decref(doc);
	free(text);

	text = page("known", true, &doc);
	assert_int_equal(json_array_size(json_object_get(doc, "nodes")), 8);
	assert_int_equal(json_object_size(json_object_get(doc, "threads")), 2);
	json_decref(doc);
	free(text);
}

/* Losses stand in the windows that their stretch touches, and in no other. */
static void t_losses(void **state)
{
	json_t *doc, *losses, *list, *s, *rows;
	char *text = page("known", false, &doc), key[24];
	double width;
	size_t row = 0, i;

	(void)state;
	rows = json_object_get(doc, "spans");
	json_array_foreach(rows, i, s) if (s == span_named(doc, "known:bravo")) row = i;
	losses = json_object_get(doc, "losses");
	assert_int_equal(json_object_size(losses), 1);
	snprintf(key, sizeof(key), "%zu", row);
	list = json_object_get(losses, key);
	s = json_object_get(doc, "windows");
	width = (double)(count(s, "to_ns") - count(s, "from_ns")) / count(s, "n");
	assert_true(json_array_size(list) >= 8);
	for (i = 0; i < json_array_size(list); i += 2) {
		double from =
		    count(s, "from_ns") + width * json_integer_value(json_array_get(list, i));

		assert_true(from + width >= 20000000 && from <= 24500000);
		assert_int_equal(json_integer_value(json_array_get(list, i + 1)), 25);
	}
	json_decref(doc);
	free(text);
}

static void t_values(void **state)
{
	json_t *doc, *s, *bars;
	char *text = page("values", false, &doc);
	json_int_t sum = 0;

	(void)state;
	s = span_named(doc, "only:whole");
	assert_int_equal(count(s, "min"), -350);
	assert_int_equal(count(s, "max"), 349);
	bars = json_object_get(s, "bars");
	assert_true(json_array_size(bars) <= 3 * 161);
	for (size_t i = 0; i < json_array_size(bars); i += 3) {
		assert_true(json_number_value(json_array_get(bars, i)) <=
			    json_number_value(json_array_get(bars, i + 1)));
		sum += json_integer_value(json_array_get(bars, i + 2));
	}
	assert_int_equal(sum, 2000);
	s = span_named(doc, "only:real");
	assert_int_equal(count(s, "nan"), 1);
	assert_string_equal(json_string_value(json_object_get(s, "max")), "Infinity");
	assert_string_equal(json_string_value(json_object_get(s, "min")), "-Infinity");
	/* No double holds 2^53 + 1: digits do. */
	s = span_named(doc, "only:great");
	assert_string_equal(json_string_value(json_object_get(s, "max")), "9007199254740993");
	json_decref(doc);
	free(text);
}

static void t_bounds(void **state)
{
	json_t *doc, *s, *spans;
	char *text = page("many", false, &doc);
	size_t charts = 0, i;

	(void)state;
	spans = json_object_get(doc, "spans");
	assert_int_equal(json_array_size(spans), HTML_SPANS_MAX);
	assert_int_equal(count(doc, "spans_left_out"), 6000 - HTML_SPANS_MAX);
	json_array_foreach(spans, i, s)
	{
		bool has = json_object_get(s, "curve") != NULL;

		assert_int_equal(has, i < HTML_CHARTS_MAX);
		charts += has;
	}
	assert_int_equal(count(doc, "charts_left_out"), HTML_SPANS_MAX - charts);
	assert_true(json_array_size(json_object_get(doc, "nodes")) <= HTML_NODES_MAX + 64);
	assert_int_equal(
	    json_array_size(json_object_get(doc, "nodes")) + count(doc, "nodes_left_out"), 24000);
	json_decref(doc);
	free(text);
}

/* The GPU's part, by ns after the slow tick's start (html_fixture_gpu.h). */
static void t_gpu(void **state)
{
	json_t *doc, *gpu, *w, *act, *call, *idle;
	char *text = page("gpu", false, &doc);
	const json_int_t want[] = {0, 1, 10000, 10000, 0, 2, 1, 6500, 0, 38};

	(void)state;
	gpu = json_object_get(doc, "gpu");
	assert_int_equal(json_array_size(json_object_get(gpu, "devices")), 2);
	assert_int_equal(json_array_size(json_object_get(gpu, "windows")), 11);
	w = json_array_get(json_object_get(gpu, "windows"), 0);
	assert_int_equal(count(w, "at"), FIX_GPU_SLOW * 100000);
	assert_int_equal(count(w, "ns"), 80000);
	assert_int_equal(json_array_size(json_object_get(w, "acts")), 6);
	assert_int_equal(json_array_size(json_object_get(w, "calls")), 5);
	/* The first kernel of the graph. */
	act = json_array_get(json_object_get(w, "acts"), 3);
	assert_string_equal(json_string_value(json_array_get(act, 0)), "kernel");
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_int_equal(json_integer_value(json_array_get(act, i + 1)), want[i]);
	assert_string_equal(json_string_value(json_array_get(json_object_get(gpu, "names"), 0)),
			    "signal(float const*, float*, int)");
	call = json_array_get(json_object_get(w, "calls"), 4);
	assert_int_equal(json_integer_value(json_array_get(call, 0)), 9000);
	assert_int_equal(json_integer_value(json_array_get(call, 3)), 1);
	/* Before the window as well: asked for by the tick before it, late. */
	idle = json_array_get(json_object_get(w, "idle"), 0);
	assert_true(json_integer_value(json_array_get(idle, 1)) < 0);
	json_decref(doc);
	free(text);

	text = page("known", false, &doc);
	assert_null(json_object_get(doc, "gpu"));
	json_decref(doc);
	free(text);
}

static void t_gpu_bounds(void **state)
{
	json_t *doc, *gpu, *left, *w;
	char *text = page("gpu-many", false, &doc);

	(void)state;
	gpu = json_object_get(doc, "gpu");
	left = json_object_get(gpu, "left_out");
	assert_int_equal(json_array_size(json_object_get(gpu, "kernels")), 1000);
	assert_int_equal(count(left, "kernels"), 16384 - 1000);
	assert_int_equal(json_array_size(json_object_get(gpu, "streams")), 2000);
	assert_int_equal(count(left, "streams"), 1000);
	assert_true(json_array_size(json_object_get(gpu, "names")) <= 4000);
	w = json_array_get(json_object_get(gpu, "windows"), 0);
	assert_int_equal(json_array_size(json_object_get(w, "acts")), 4000);
	assert_int_equal(count(w, "acts_left_out"), FIX_GPU_MANY - 4000);
	json_decref(doc);
	free(text);
}

static void t_cut(void **state)
{
	json_t *doc, *totals;
	char *text = page("cut", false, &doc);

	(void)state;
	assert_true(json_is_false(json_object_get(json_object_get(doc, "recording"), "clean")));
	totals = json_object_get(doc, "totals");
	/* Not known is not zero. */
	assert_null(json_object_get(totals, "counted"));
	assert_null(json_object_get(totals, "lost"));
	assert_int_equal(count(totals, "held"), 4000);
	json_decref(doc);
	free(text);
}

/* A full disk, and a reader that went away: the errno, once. */
static void t_write_fault(void **state)
{
	struct trace_reader *r = NULL;
	struct analysis *a = NULL;
	struct err e = {""};
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	fix_analyse("known", false, &r, &a);
	assert_int_equal(html__write(f, a, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "No space left"));
	fclose(f);
	analysis__free(a);
	trace_reader__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_every_recording), cmocka_unit_test(t_names),
	    cmocka_unit_test(t_figures),	 cmocka_unit_test(t_tree),
	    cmocka_unit_test(t_losses),		 cmocka_unit_test(t_values),
	    cmocka_unit_test(t_bounds),		 cmocka_unit_test(t_cut),
	    cmocka_unit_test(t_write_fault),	 cmocka_unit_test(t_gpu),
	    cmocka_unit_test(t_gpu_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

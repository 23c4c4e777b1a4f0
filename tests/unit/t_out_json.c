// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The JSON documents: goldens, and what a consumer relies on. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "golden.h"
#include "out/json.h"
#include "snap_fixture.h"

static char *document(const struct snapshot *s, bool compact)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(json__write_summary(f, s, compact), 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static json_t *parse(const struct snapshot *s)
{
	char *text = document(s, true);
	json_error_t e;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &e);

	if (!root)
		fail_msg("not JSON: %s at %d", e.text, e.position);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
	return root;
}

static void t_golden(void **state)
{
	struct snapshot *s = fixture__strategy();
	char *text;

	(void)state;
	/* Every price alike and a binary fraction of the time, so that no digit depends on the
	 * library that prints it. */
	for (size_t i = 0; i < s->nspans; i++)
		s->spans[i].price_ns = 0;
	s->now_ns = s->start_ns + 8000000000ull;
	text = document(s, false);
	golden__check("summary.json", text);
	free(text);
	snapshot__free(s);
}

/* All keys that DESIGN.md lays down, and types. */
static void t_schema(void **state)
{
	struct snapshot *s = fixture__strategy();
	json_t *root = parse(s), *tick, *node, *v;
	static const char *const measures[] = {"min_ns", "mean_ns", "p50_ns",	"p90_ns",
					       "p99_ns", "p999_ns", "p9999_ns", "max_ns"};

	(void)state;
	assert_string_equal(json_string_value(json_object_get(root, "schema")), "qbpf.summary/1");
	assert_int_equal(json_integer_value(json_object_get(root, "duration_ns")), 10000000000ll);
	tick = json_array_get(json_object_get(root, "spans"), 0);
	assert_string_equal(json_string_value(json_object_get(tick, "name")), "strategy:tick");
	assert_int_equal(json_integer_value(json_object_get(tick, "count")), 20040);
	/* exact: 10 x (12000 + .. + 13999) + 39 x 250000 + 7000000 */
	assert_int_equal(json_integer_value(json_object_get(tick, "sum_ns")),
			 10ll * (12000 + 13999) * 1000 + 39 * 250000 + 7000000);
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++) {
		v = json_object_get(tick, measures[i]);
		assert_true(json_is_integer(v));
		assert_true(json_integer_value(v) >= 12000 && json_integer_value(v) <= 7000000);
	}
	assert_int_equal(json_integer_value(json_object_get(tick, "max_ns")), 7000000);
	assert_int_equal(json_integer_value(json_object_get(tick, "open")), 1);
	assert_int_equal(json_integer_value(json_object_get(tick, "abandoned")), 2);
	assert_int_equal(json_integer_value(json_object_get(tick, "orphan_ends")), 0);
	assert_null(json_object_get(tick, "why")); /* an absent feature is an absent key */
	assert_null(json_object_get(root, "gpu"));
	node = json_array_get(json_object_get(root, "tree"), 0);
	assert_string_equal(json_string_value(json_object_get(node, "name")), "strategy:tick");
	assert_int_equal(json_integer_value(json_object_get(node, "count")), 20040);
	assert_int_equal(json_integer_value(json_object_get(node, "self_ns")), 242000000);
	assert_int_equal(json_object_size(node), 7);
	assert_int_equal(json_array_size(json_object_get(node, "children")), 3);
	v = json_object_get(root, "lost");
	assert_int_equal(json_integer_value(json_object_get(v, "events")), 4);
	assert_int_equal(
	    json_integer_value(json_object_get(json_object_get(v, "by_source"), "bpf")), 4);
	assert_int_equal(json_object_size(json_object_get(v, "by_probe")), 1);
	json_decref(root);
	snapshot__free(s);
}

static void t_unsupported_is_null(void **state)
{
	struct snapshot *s = fixture__strategy();
	json_t *root = parse(s), *check = json_array_get(json_object_get(root, "spans"), 2);
	json_t *never = json_array_get(json_object_get(root, "spans"), 7);

	(void)state;
	assert_true(json_is_integer(json_object_get(check, "p99_ns"))); /* 320 spans */
	assert_true(json_is_null(json_object_get(check, "p999_ns")));
	assert_true(json_is_null(json_object_get(check, "p9999_ns")));
	assert_int_equal(json_integer_value(json_object_get(never, "count")), 0);
	assert_true(json_is_null(json_object_get(never, "min_ns")));
	assert_true(json_is_null(json_object_get(never, "max_ns")));
	json_decref(root);
	snapshot__free(s);
}

/* Values are not times, and intervals are not latencies. */
static void t_values_and_instants(void **state)
{
	struct snapshot *s = fixture__strategy();
	json_t *root = parse(s), *spans = json_object_get(root, "spans");
	json_t *order = json_array_get(spans, 3), *position = json_array_get(spans, 4);
	json_t *price = json_array_get(spans, 5);

	(void)state;
	assert_null(json_object_get(order, "p50_ns"));
	assert_null(json_object_get(order, "open"));
	assert_int_equal(json_integer_value(json_object_get(order, "count")), 500);
	order = json_object_get(order, "interval");
	assert_int_equal(json_integer_value(json_object_get(order, "count")), 499);
	assert_int_equal(json_integer_value(json_object_get(order, "p50_ns")), 20000000);

	assert_null(json_object_get(position, "p50_ns"));
	assert_string_equal(json_string_value(json_object_get(position, "unit")), "value");
	assert_int_equal(json_integer_value(json_object_get(position, "min")), -100);
	assert_int_equal(json_integer_value(json_object_get(position, "sum")), 2500);
	assert_true(json_real_value(json_object_get(price, "mean")) == 101.5);
	assert_int_equal(json_integer_value(json_object_get(price, "nan")), 1);
	json_decref(root);
	snapshot__free(s);
}

/* Bytes that are no UTF-8, controls, quotes: valid JSON that says what it can. */
static void t_hostile_names(void **state)
{
	struct snapshot *s = fixture__strategy();
	json_t *root = parse(s);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(
				json_array_get(json_object_get(root, "spans"), 6), "name")),
			    "operator\"\"_kg a\"b\\c \x01\xef\xbf\xbd\x1b[31m \xc3\xa9");
	json_decref(root);
	snapshot__free(s);
}

static void t_exact_integers(void **state)
{
	struct snapshot *s = snapshot__new();
	struct snap_span *span = fixture__span(s, "long", SPAN_MARKER, QBPF_HIST_NS);
	json_t *root, *o, *v;

	(void)state;
	/* 100 days and 1 ns, which a double cannot hold in a sum of many. */
	fixture__add(span, 8640000000000001ull, 3);
	s->start_ns = 1;
	s->now_ns = 9007199254740994ull; /* 2^53 + 2 */
	root = parse(s);
	o = json_array_get(json_object_get(root, "spans"), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "sum_ns")), 25920000000000003ll);
	assert_int_equal(json_integer_value(json_object_get(o, "p50_ns")), 8640000000000001ll);
	assert_int_equal(json_integer_value(json_object_get(root, "duration_ns")),
			 9007199254740993ll);
	v = json_object_get(root, "price"); /* nothing is known */
	assert_null(json_object_get(v, "overhead_pct"));
	assert_null(json_object_get(v, "ns_per_span"));
	assert_null(json_object_get(v, "ns_per_hit"));
	json_decref(root);
	snapshot__free(s);
}

/* Both ends of what an int64_t holds are integers, and one beyond is not. */
static void t_extreme_values(void **state)
{
	struct snapshot *s = snapshot__new();
	struct snap_span *span = fixture__span(s, "delta", SPAN_VALUE, QBPF_HIST_INT);
	json_t *root, *o;

	(void)state;
	fixture__add(span, (uint64_t)INT64_MIN, 1);
	fixture__add(span, INT64_MAX, 1);
	fixture__add(fixture__span(s, "low", SPAN_VALUE, QBPF_HIST_INT), (uint64_t)INT64_MIN, 2);
	root = parse(s);
	o = json_array_get(json_object_get(root, "spans"), 0);
	assert_true(json_is_integer(json_object_get(o, "min")));
	assert_true(json_integer_value(json_object_get(o, "min")) == INT64_MIN);
	assert_true(json_integer_value(json_object_get(o, "max")) == INT64_MAX);
	assert_int_equal(json_integer_value(json_object_get(o, "sum")), -1);
	o = json_array_get(json_object_get(root, "spans"), 1);
	assert_true(json_integer_value(json_object_get(o, "mean")) == INT64_MIN);
	assert_true(json_is_real(json_object_get(o, "sum")));
	json_decref(root);
	snapshot__free(s);
}

/* A span without an armed site is no row of zeros; hits it had before are kept. */
static void t_refused(void **state)
{
	struct snapshot *s = snapshot__new();
	json_t *root, *spans;

	(void)state;
	fixture__span(s, "waiting", SPAN_FUNC, QBPF_HIST_NS);
	fixture__span(s, "turned_down", SPAN_FUNC, QBPF_HIST_NS)->refused = true;
	fixture__span(s, "taken_away", SPAN_FUNC, QBPF_HIST_NS)->refused = true;
	fixture__add(&s->spans[2], 1000, 1);
	fixture__note(&s->refused, &s->nrefused, "turned_down at 0x10", "no good");
	root = parse(s);
	spans = json_object_get(root, "spans");
	assert_int_equal(json_array_size(spans), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(spans, 0), "name")),
			    "waiting");
	assert_string_equal(json_string_value(json_object_get(json_array_get(spans, 1), "name")),
			    "taken_away");
	assert_int_equal(
	    json_array_size(json_object_get(json_object_get(root, "probes"), "refused")), 1);
	json_decref(root);
	snapshot__free(s);
}

static void t_infinities(void **state)
{
	struct snapshot *s = snapshot__new();
	struct snap_span *span = fixture__span(s, "ratio", SPAN_VALUE, QBPF_HIST_F64);
	json_t *root, *o;

	(void)state;
	fixture__add(span, 0x7ff0000000000000ull, 1);
	fixture__add(span, 0xfff0000000000000ull, 1);
	fixture__add(span, 0x7fefffffffffffffull,
		     2); /* the greatest double: the sum is beyond it */
	root = parse(s);
	o = json_array_get(json_object_get(root, "spans"), 0);
	assert_string_equal(json_string_value(json_object_get(o, "max")), "inf");
	assert_string_equal(json_string_value(json_object_get(o, "min")), "-inf");
	assert_true(json_is_null(json_object_get(o, "mean")));
	json_decref(root);
	snapshot__free(s);
}

static void t_deep_tree(void **state)
{
	enum { DEEP = 500 };
	struct snapshot *s = snapshot__new();
	json_t *root, *children;
	int depth = 0;

	(void)state;
	fixture__span(s, "f", SPAN_FUNC, QBPF_HIST_NS);
	for (int i = 0; i < DEEP; i++)
		fixture__node(s, i, 0, 1, DEEP - i, 1)->max_ns = 1;
	root = parse(s);
	children = json_object_get(root, "tree");
	while (json_array_size(children)) {
		children = json_object_get(json_array_get(children, 0), "children");
		depth++;
	}
	assert_int_equal(depth, DEEP);
	json_decref(root);
	snapshot__free(s);
}

static void t_write_errors(void **state)
{
	struct snapshot *s = fixture__strategy();
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	assert_true(json__write_summary(f, s, true) < 0);
	fclose(f);
	snapshot__free(s);
}

/* What a recording lost is told apart from what the figures lost. */
static void t_recording(void **state)
{
	struct snapshot *s = fixture__strategy();
	uint64_t *counts = snapshot__counts(s), counted = 0;
	json_t *root = parse(s), *v;

	(void)state;
	assert_null(json_object_get(root, "trace"));
	assert_null(
	    json_object_get(json_object_get(json_object_get(root, "lost"), "by_source"), "stream"));
	json_decref(root);
	for (size_t i = 0; i < s->nspans; i++)
		counted += counts[i];
	s->recording = strdup("tick \"1\".qbpf");
	s->recording_fault = strdup("No space left on device");
	s->recording_bytes = 12345;
	s->spans[0].recorded =
	    (struct snap_recorded){.held = 7, .lost = 5, .skipped = 3, .over = 2};
	s->spans[1].recorded = (struct snap_recorded){.held = 70, .lost = 50};
	root = parse(s);
	v = json_object_get(root, "trace");
	assert_string_equal(json_string_value(json_object_get(v, "file")), "tick \"1\".qbpf");
	assert_string_equal(json_string_value(json_object_get(v, "fault")),
			    "No space left on device");
	assert_int_equal(json_integer_value(json_object_get(v, "bytes")), 12345);
	assert_int_equal(json_integer_value(json_object_get(v, "held")), 77);
	assert_int_equal(json_integer_value(json_object_get(v, "lost")), 55);
	assert_int_equal(json_integer_value(json_object_get(v, "skipped")), 3);
	assert_int_equal(json_integer_value(json_object_get(v, "over")), 2);
	assert_int_equal(json_integer_value(json_object_get(v, "counted")), counted);
	v = json_array_get(json_object_get(root, "spans"), 0);
	assert_int_equal(json_integer_value(json_object_get(v, "held")), 7);
	assert_int_equal(json_integer_value(json_object_get(v, "lost")), 5);
	assert_int_equal(json_integer_value(json_object_get(v, "skipped")), 3);
	v = json_object_get(root, "lost");
	assert_int_equal(json_integer_value(json_object_get(v, "events")), snapshot__lost(s));
	v = json_object_get(v, "by_source");
	assert_int_equal(json_integer_value(json_object_get(v, "bpf")), snapshot__lost(s));
	assert_int_equal(json_integer_value(json_object_get(v, "stream")), 55);
	json_decref(root);
	free(counts);
	snapshot__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_golden),
	    cmocka_unit_test(t_schema),
	    cmocka_unit_test(t_unsupported_is_null),
	    cmocka_unit_test(t_values_and_instants),
	    cmocka_unit_test(t_hostile_names),
	    cmocka_unit_test(t_exact_integers),
	    cmocka_unit_test(t_extreme_values),
	    cmocka_unit_test(t_refused),
	    cmocka_unit_test(t_infinities),
	    cmocka_unit_test(t_deep_tree),
	    cmocka_unit_test(t_write_errors),
	    cmocka_unit_test(t_recording),
	};

	return cmocka_run_group_tests_name("out_json", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The report of a recording: goldens of one made by hand, and what must hold for any. */
#include <jansson.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "golden.h"
#include "out/report.h"
#include "recording.h"

enum { TICK = 1, DECODE, SIGNAL, ORDER, MARK, PRICE, REQUEST, MAIN, NEVER };

static const struct report_opts usual = {
    .path = "made.qbpf", .width = 100, .limit = 40, .hot = 0.05};

static struct event at(uint8_t kind, uint32_t span, uint32_t node, uint32_t thread, uint16_t depth,
		       uint64_t from, uint64_t to)
{
	return (struct event){.kind = kind,
			      .span = span,
			      .node = node,
			      .thread = thread,
			      .depth = depth,
			      .start_ns = REC_START + from,
			      .end_ns = REC_START + to};
}

/* What the kernel has counted: 100 ticks more than are in the file. */
static struct snapshot *kernel_sums(void)
{
	static const char *const names[] = {"strategy:tick", "feed:decode",	  "strategy:signal",
					    "send(order&)",  "strategy:mark",	  "strategy:price",
					    "order:request", "main(int, char**)", "strategy:never"};
	static const enum span_kind kinds[] = {SPAN_MARKER, SPAN_MARKER,  SPAN_MARKER,
					       SPAN_FUNC,   SPAN_INSTANT, SPAN_VALUE,
					       SPAN_KEYED,  SPAN_FUNC,	  SPAN_MARKER};
	struct snapshot *s = snapshot__new();

	s->start_ns = REC_START;
	s->now_ns = REC_START + 1000000;
	s->armed = 12;
	s->relocated = 1;
	s->price_ns[PRICE_NOP5] = 1250;
	s->map_bytes = 1 << 20;
	s->spans = calloc(9, sizeof(*s->spans));
	for (; s->nspans < 9; s->nspans++) {
		s->spans[s->nspans].name = strdup(names[s->nspans]);
		s->spans[s->nspans].kind = kinds[s->nspans];
		s->spans[s->nspans].hist = hist__new(QBPF_HIST_NS);
		s->spans[s->nspans].price_ns = 1000;
	}
	for (int i = 0; i < 300; i++)
		hist__add(s->spans[0].hist, 4000 + i);
	s->spans[0].abandoned = 2;
	s->spans[MAIN - 1].open = 2;
	s->spans[3].depth_overflow = 1;
	s->notes = calloc(1, sizeof(char *));
	s->notes[s->nnotes++] = strdup("foo: imported, defined in libm.so.6");
	return s;
}

static void make_tables(struct recording_file *f)
{
	struct trace_loss loss = {
	    .span = TICK, .from_ns = REC_START + 500000, .to_ns = REC_START + 1000000, .lost = 100};

	rec__open(f);
	rec__span(f, "strategy:tick", SPAN_MARKER, QBPF_HIST_NS);
	rec__span(f, "feed:decode", SPAN_MARKER, QBPF_HIST_NS);
	rec__span(f, "strategy:signal", SPAN_MARKER, QBPF_HIST_NS);
	rec__span(f, "send(order&)", SPAN_FUNC, QBPF_HIST_NS);
	rec__span(f, "strategy:mark", SPAN_INSTANT, QBPF_HIST_NS);
	rec__span(f, "strategy:price", SPAN_VALUE, QBPF_HIST_INT);
	rec__span(f, "order:request", SPAN_KEYED, QBPF_HIST_NS);
	rec__span(f, "main(int, char**)", SPAN_FUNC, QBPF_HIST_NS);
	rec__span(f, "strategy:never", SPAN_MARKER, QBPF_HIST_NS);
	rec__thread(f, "feed\x1b[31m");
	rec__thread(f, "hedge");
	rec__node(f, 0, MAIN);
	rec__node(f, 1, TICK);
	rec__node(f, 2, DECODE);
	rec__node(f, 2, SIGNAL);
	rec__node(f, 4, ORDER);
	rec__node(f, 2, MARK);
	assert(!trace_writer__loss(f->w, &loss));
}

/* 200 ticks of two threads inside a main that never ends. */
static struct trace_reader *make(struct recording_file *f, bool kernel)
{
	struct snapshot *sums = kernel ? kernel_sums() : NULL;
	struct trace_reader *r;

	make_tables(f);
	for (uint64_t i = 0; i < 200; i++) {
		uint32_t t = i % 2;
		uint64_t a = 5000 * i, decode = 800 + i * 37 % 100,
			 send = i == 123 ? 9000 : 600 + i;
		uint64_t end = a + decode + send + 700;
		struct event ev;

		rec__event(f, at(EVENT_SPAN, DECODE, 3, t, 2, a + 100, a + 100 + decode));
		rec__event(f, at(EVENT_INSTANT, MARK, 6, t, 2, a + 100 + decode, a + 100 + decode));
		ev = at(EVENT_VALUE, PRICE, 0, t, 2, a + 100 + decode, a + 100 + decode);
		ev.arg = i - 50;
		rec__event(f, ev);
		rec__event(f, at(EVENT_SPAN, ORDER, 5, t, 3, end - 300 - send, end - 300));
		ev = at(EVENT_SPAN, SIGNAL, 4, t, 2, end - 400 - send, end - 200);
		ev.child_ns = send;
		rec__event(f, ev);
		ev = at(EVENT_SPAN, TICK, 2, t, 1, a, end);
		ev.child_ns = decode + send + 200;
		rec__event(f, ev);
		if (i % 4 == 3) {
			ev = at(EVENT_KEYED, REQUEST, 0, t, 0, a - 4000, a + 50);
			ev.arg = i;
			ev.begin_tid = 100;
			rec__event(f, ev);
		}
	}
	rec__event(f, at(EVENT_OPEN, MAIN, 1, 0, 0, 0, 1000000));
	rec__event(f, at(EVENT_OPEN, MAIN, 1, 1, 0, 10, 1000000));
	r = rec__read(f, REC_START + 1000000, 100, sums);
	/* The file's size is the compressor's business. */
	((struct trace_info *)trace_reader__info(r))->file_bytes = 12345;
	snapshot__free(sums);
	return r;
}

static char *text_of(const struct analysis *a, const struct report_opts *o)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(report__write(f, a, o), 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

static json_t *document(const struct analysis *a, const struct report_opts *o)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	json_error_t e;
	json_t *root;

	assert_int_equal(report__write_json(f, a, o), 0);
	assert_int_equal(fclose(f), 0);
	root = json_loads(text, JSON_REJECT_DUPLICATES, &e);
	if (!root)
		fail_msg("not JSON: %s at %d", e.text, e.position);
	free(text);
	return root;
}

static void golden(const char *name, const char *locale, bool kernel, struct analysis_opts ao,
		   struct report_opts o)
{
	struct recording_file f;
	struct trace_reader *r = make(&f, kernel);
	struct analysis *a = rec__analyse(r, ao);
	char *text;

	assert_non_null(setlocale(LC_CTYPE, locale));
	text = text_of(a, &o);
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
	golden__check(name, text);
	free(text);
	analysis__free(a);
	rec__close(&f, r);
}

static void t_golden(void **state)
{
	struct report_opts o = usual;

	(void)state;
	golden("report.utf8.txt", "C.UTF-8", true, (struct analysis_opts){.slowest = 1}, o);
	golden("report.ascii.txt", "C", false, (struct analysis_opts){.slowest = 1}, o);
	o.span = "strategy:signal";
	golden("report.span.txt", "C.UTF-8", true, (struct analysis_opts){.slowest = 1}, o);
	o.span = NULL;
	o.threads = true;
	o.limit = 3;
	golden("report.threads.txt", "C.UTF-8", true,
	       (struct analysis_opts){.slowest = 1, .per_thread = true, .root = "strategy:signal"},
	       o);
}

static json_t *by_name(json_t *array, const char *name)
{
	size_t i;
	json_t *o;

	json_array_foreach(
	    array, i, o) if (!strcmp(json_string_value(json_object_get(o, "name")), name)) return o;
	fail_msg("no %s", name);
	return NULL;
}

static json_int_t number(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (!json_is_integer(v))
		fail_msg("%s is no integer", key);
	return json_integer_value(v);
}

static void t_document(void **state)
{
	struct recording_file f;
	struct trace_reader *r = make(&f, true);
	struct analysis *a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	json_t *root = document(a, &usual), *o, *path;

	(void)state;
	assert_string_equal(json_string_value(json_object_get(root, "schema")), "qbpf.summary/1");
	o = json_object_get(root, "trace");
	assert_string_equal(json_string_value(json_object_get(o, "file")), "made.qbpf");
	assert_int_equal(number(o, "held"), 200 * 6 + 50);
	assert_int_equal(number(o, "counted"), 200 * 6 + 50 + 100);
	assert_int_equal(number(o, "lost"), 100);
	assert_int_equal(number(o, "skipped"), 0);
	assert_true(json_is_true(json_object_get(o, "clean")));
	assert_true(json_is_true(json_object_get(o, "exact")));
	assert_null(json_object_get(o, "cut_at"));
	assert_null(json_object_get(o, "unknown"));

	/* tick i: 800 + 37 i mod 100 + 600 + i + 700 ns; the 123rd 9000 in place of 723 */
	o = by_name(json_object_get(root, "spans"), "strategy:tick");
	assert_int_equal(number(o, "count"), 200);
	assert_int_equal(number(o, "held"), 200);
	assert_int_equal(number(o, "counted"), 300);
	assert_int_equal(number(o, "max_ns"), 800 + 123 * 37 % 100 + 9000 + 700);
	assert_int_equal(number(o, "min_ns"), 800 + 0 + 600 + 0 + 700);
	assert_int_equal(number(o, "self_ns"), 200 * 500);
	o = json_object_get(o, "kernel");
	assert_int_equal(number(o, "count"), 300);
	assert_int_equal(number(o, "max_ns"), 4299);
	o = by_name(json_object_get(root, "spans"), "feed:decode");
	assert_null(json_object_get(o, "kernel"));
	/* 800 .. 899, two of each */
	assert_int_equal(number(o, "p50_ns"), 849);
	assert_int_equal(number(o, "p90_ns"), 889);
	assert_int_equal(number(o, "p99_ns"), 898);
	assert_true(json_is_null(json_object_get(o, "p999_ns")));
	o = by_name(json_object_get(root, "spans"), "strategy:price");
	assert_int_equal(number(o, "min"), -50);
	assert_int_equal(number(o, "p50"), 49);
	o = json_object_get(by_name(json_object_get(root, "spans"), "strategy:mark"), "interval");
	assert_int_equal(number(o, "count"), 199);
	assert_int_equal(number(o, "sum_ns"), 199 * 5000 + 199 * 37 % 100);

	o = json_array_get(json_object_get(root, "tree"), 0);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "main(int, char**)");
	assert_int_equal(number(o, "count"), 0);
	o = json_array_get(json_object_get(o, "children"), 0);
	assert_int_equal(number(o, "count"), 200);
	assert_true(number(o, "p99_ns") > 0);

	assert_int_equal(json_array_size(json_object_get(root, "edges")), 5);
	o = json_array_get(json_object_get(root, "edges"), 0);
	assert_string_equal(json_string_value(json_object_get(o, "caller")), "strategy:tick");
	assert_string_equal(json_string_value(json_object_get(o, "callee")), "feed:decode");
	assert_int_equal(number(o, "count"), 200);

	o = json_object_get(root, "critical_path");
	assert_string_equal(json_string_value(json_object_get(o, "root")), "strategy:tick");
	path = json_object_get(o, "slowest");
	assert_int_equal(number(path, "tid"), 101);
	assert_int_equal(number(path, "start_ns"), REC_START + 5000 * 123);
	assert_int_equal(json_array_size(json_object_get(path, "steps")), 3);
	o = json_array_get(json_object_get(path, "steps"), 2);
	assert_string_equal(json_string_value(json_object_get(o, "name")), "send(order&)");
	assert_int_equal(number(o, "duration_ns"), 9000);
	assert_int_equal(number(o, "self_ns"), 9000);

	o = json_object_get(root, "over_time");
	assert_string_equal(json_string_value(json_object_get(o, "span")), "strategy:tick");
	assert_int_equal(json_array_size(json_object_get(o, "stretches")), 100);
	o = json_object_get(root, "open");
	assert_int_equal(json_array_size(o), 2);
	assert_int_equal(number(json_array_get(o, 0), "open_for_ns"), 1000000);
	o = json_array_get(json_object_get(root, "losses"), 0);
	assert_int_equal(number(o, "lost"), 100);
	assert_string_equal(json_string_value(json_object_get(o, "source")), "bpf");
	o = json_object_get(root, "lost");
	assert_int_equal(number(o, "events"), 1);
	assert_int_equal(number(json_object_get(o, "by_source"), "stream"), 100);
	assert_int_equal(number(json_object_get(root, "probes"), "armed"), 12);
	assert_null(json_object_get(root, "threads"));
	json_decref(root);
	analysis__free(a);
	rec__close(&f, r);
}

/* Not closed: what is not known is not there, in the text it is said. */
static void t_cut_short(void **state)
{
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct err e;
	json_t *root, *o;
	char *text;

	(void)state;
	make_tables(&f);
	for (uint64_t i = 0; i < 10; i++)
		rec__event(&f, at(EVENT_SPAN, TICK, 2, 0, 1, 1000 * i, 1000 * i + 500));
	assert_int_equal(trace_writer__flush(f.w), 0);
	trace_writer__free(f.w);
	assert_int_equal(trace_reader__open(f.path, &r, &e), 0);
	unlink(f.path);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	text = text_of(a, &usual);
	assert_non_null(strstr(text, "\nit holds 10 spans; how many there were is not known\n"));
	assert_non_null(strstr(text,
			       "\nnote: the recording did not end cleanly; the file was read up "
			       "to its last whole block, at byte "));
	assert_null(strstr(text, "hits/s"));
	free(text);
	root = document(a, &usual);
	o = json_object_get(root, "trace");
	assert_int_equal(number(o, "held"), 10);
	assert_true(number(o, "cut_at") > 0);
	assert_true(json_is_false(json_object_get(o, "clean")));
	assert_null(json_object_get(o, "counted"));
	assert_null(json_object_get(o, "lost"));
	assert_null(json_object_get(root, "price"));
	json_decref(root);
	analysis__free(a);
	rec__close(&f, r);
}

/* 1,000 spans: tables that are read, and a document that has all. */
static void t_many(void **state)
{
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct report_opts o = usual;
	size_t lines = 0;
	json_t *root;
	char *text;

	(void)state;
	rec__open(&f);
	for (uint32_t i = 1; i <= 1000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", i);
		rec__span(&f, name, SPAN_FUNC, QBPF_HIST_NS);
		rec__node(&f, 0, i);
	}
	rec__thread(&f, "t");
	for (uint32_t i = 1; i <= 1000; i++)
		rec__event(&f, at(EVENT_SPAN, i, i, 0, 0, 2000 * i, 2000 * i + i));
	r = rec__read(&f, REC_START + 3000000, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	text = text_of(a, &o);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_true(lines < 200);
	assert_non_null(strstr(text, "(960 more with less time; --json has them all)\n"));
	assert_non_null(strstr(text, "(960 more nodes with little time; --json has them all)\n"));
	assert_true(strstr(text, "\nf1000 ") < strstr(text, "\nf999 "));
	assert_non_null(strstr(text, "(0 of 1000 spans have 5.00% or more"));
	free(text);
	o.limit = 0;
	o.hot = 0;
	text = text_of(a, &o);
	lines = 0;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_true(lines > 3000);
	free(text);
	root = document(a, &usual);
	assert_int_equal(json_array_size(json_object_get(root, "spans")), 1000);
	assert_int_equal(json_array_size(json_object_get(root, "tree")), 1000);
	assert_int_equal(json_array_size(json_object_get(root, "hot")), 0);
	json_decref(root);
	analysis__free(a);
	rec__close(&f, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_golden),
	    cmocka_unit_test(t_document),
	    cmocka_unit_test(t_cut_short),
	    cmocka_unit_test(t_many),
	};

	return cmocka_run_group_tests_name("out_report", tests, NULL, NULL);
}

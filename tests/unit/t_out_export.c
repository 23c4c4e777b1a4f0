// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The exporters: exact bytes of a small trace in the text formats, Perfetto's packets through the
 * library that reads them, faults of writing and of the trace. */
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "file/writer.h"
#include "out/export.h"
#include "perfetto.pb-c.h"
#include "plan/plan.h"
#include "qbpf/abi.h"

static char path[] = "/tmp/qbpf-export-XXXXXX";
static struct trace_reader *reader;

#define OUTER 1
#define INNER 2
#define ORDER 3
#define DEPTH 4
#define PRICE 5
#define MARK  6

static const struct trace_span spans[] = {
    {.name = "s:outer", .kind = SPAN_MARKER},
    {.name = "f(\"a;b\")\n\x01\xff", .kind = SPAN_FUNC},
    {.name = "s:order", .kind = SPAN_KEYED},
    {.name = "s:depth", .kind = SPAN_VALUE, .hist = QBPF_HIST_INT},
    {.name = "s:price", .kind = SPAN_VALUE, .hist = QBPF_HIST_F64},
    {.name = "s:mark", .kind = SPAN_INSTANT},
};
#define NSPANS (sizeof(spans) / sizeof(*spans))

static uint64_t bits(double v)
{
	uint64_t b;

	memcpy(&b, &v, sizeof(b));
	return b;
}

static void write_events(struct trace_writer *w)
{
	const struct event events[] = {
	    {.kind = EVENT_SPAN,
	     .span = INNER,
	     .node = 2,
	     .depth = 1,
	     .start_ns = 1022,
	     .end_ns = 1030},
	    {.kind = EVENT_INSTANT,
	     .span = MARK,
	     .node = 3,
	     .depth = 1,
	     .start_ns = 1040,
	     .end_ns = 1040},
	    {.kind = EVENT_VALUE,
	     .span = DEPTH,
	     .start_ns = 1050,
	     .end_ns = 1050,
	     .arg = (uint64_t)-7},
	    {.kind = EVENT_VALUE,
	     .span = PRICE,
	     .start_ns = 1051,
	     .end_ns = 1051,
	     .arg = bits(0.1)},
	    {.kind = EVENT_VALUE,
	     .span = PRICE,
	     .start_ns = 1052,
	     .end_ns = 1052,
	     .arg = bits(-1 / 0.0)},
	    {.kind = EVENT_SPAN,
	     .span = OUTER,
	     .node = 1,
	     .start_ns = 1022,
	     .end_ns = 4064,
	     .child_ns = 8},
	    {.kind = EVENT_ASIDE,
	     .span = INNER,
	     .node = QBPF_NODE_LOST,
	     .depth = 1,
	     .start_ns = 2000,
	     .end_ns = 5000},
	    {.kind = EVENT_KEYED,
	     .span = ORDER,
	     .start_ns = 1010,
	     .end_ns = 6000,
	     .arg = UINT64_MAX,
	     .begin_tid = 12,
	     .thread = 0},
	    {.kind = EVENT_SPAN, .span = INNER, .node = 2, .start_ns = 7000, .end_ns = 6500},
	    {.kind = EVENT_OPEN, .span = OUTER, .node = 1, .start_ns = 8000, .end_ns = 9000},
	    {.kind = EVENT_OPEN,
	     .span = ORDER,
	     .start_ns = 1011,
	     .end_ns = 9000,
	     .arg = 7,
	     .begin_tid = 11},
	    {.kind = EVENT_SPAN,
	     .span = OUTER,
	     .node = 1,
	     .start_ns = 1500,
	     .end_ns = 1500,
	     .thread = 1},
	    {.kind = EVENT_SPAN,
	     .span = OUTER,
	     .node = 1,
	     .start_ns = 1600,
	     .end_ns = 1601,
	     .thread = 2},
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		assert_int_equal(trace_writer__event(w, &events[i]), 0);
}

static int make_trace(void **state)
{
	const struct trace_meta meta = {.qbpf_version = "1",
					.command = "qbpf \"x\"",
					.kernel = "",
					.cpu = "",
					.clocksource = "",
					.hostname = "h",
					.slow = "",
					.start_ns = 1000,
					.realtime_ns = 1700000000000001000};
	const struct trace_process process = {
	    .tgid = 10, .comm = "co,mm", .exe = "/bin/x", .start_ns = 900};
	const struct trace_thread threads[] = {
	    {.tgid = 10, .tid = 11, .name = "main", .start_ns = 1000},
	    {.tgid = 10, .tid = 12, .name = "w", .start_ns = 1000, .end_ns = 1550},
	    {.tgid = 10, .tid = 12, .name = "w", .start_ns = 1560}, /* its tid again */
	};
	const struct trace_node nodes[] = {{1, 0, OUTER}, {2, 1, INNER}, {3, 1, MARK}};
	const struct trace_loss loss = {.span = INNER, .from_ns = 2000, .to_ns = 3000, .lost = 5};
	struct trace_count counts[NSPANS] = {{0}};
	struct trace_writer *w;
	struct err e;
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || close(fd) || trace_writer__new(path, &meta, &w, &e))
		return -1;
	for (size_t i = 0; i < NSPANS; i++)
		assert_int_equal(trace_writer__span(w, &spans[i]), 0);
	assert_int_equal(trace_writer__process(w, 0, &process), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(trace_writer__thread(w, i, &threads[i]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(trace_writer__node(w, &nodes[i]), 0);
	assert_int_equal(trace_writer__loss(w, &loss), 0);
	write_events(w);
	assert_int_equal(trace_writer__close(w, 9000, counts, NSPANS, &e), 0);
	trace_writer__free(w);
	return trace_reader__open(path, &reader, &e);
}

static int remove_trace(void **state)
{
	(void)state;
	trace_reader__free(reader);
	return unlink(path);
}

static char *exported(enum export_format f, const struct export_opts *o, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	struct err e = {{0}};

	assert_non_null(out);
	if (export__write(reader, f, o, out, &e))
		fail_msg("%s: %s", export__format_name(f), e.text);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void expect(enum export_format f, const struct export_opts *o, const char *want)
{
	size_t len;
	char *text = exported(f, o, &len);

	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
	free(text);
}

/* --- text ---------------------------------------------------------------------------------------- */

static void csv_is_exact(void **state)
{
	(void)state;
	struct export_opts o = {0};

#define INNER_CSV "\"f(\"\"a;b\"\")\n\x01\xef\xbf\xbd\",\"co,mm\",10,11,\"main\","
#define MAIN	  ",\"co,mm\",10,11,\"main\","
	expect(EXPORT_CSV, &o,
	       "kind,name,process,pid,tid,thread,start_ns,dur_ns,self_ns,depth,node,key,begin_tid,"
	       "value\r\n"
	       "span," INNER_CSV "1022,8,8,1,2,,,\r\n"
	       "instant,\"s:mark\"" MAIN "1040,0,,1,3,,,\r\n"
	       "value,\"s:depth\"" MAIN "1050,0,,0,,,,-7\r\n"
	       "value,\"s:price\"" MAIN "1051,0,,0,,,,0.10000000000000001\r\n"
	       "value,\"s:price\"" MAIN "1052,0,,0,,,,-inf\r\n"
	       "span,\"s:outer\"" MAIN "1022,3042,3034,0,1,,,\r\n"
	       "aside," INNER_CSV "2000,3000,3000,1,,,,\r\n"
	       "keyed,\"s:order\"" MAIN "1010,4990,,0,,18446744073709551615,12,\r\n"
	       "span," INNER_CSV "7000,-500,0,0,2,,,\r\n"
	       "open,\"s:outer\"" MAIN "8000,1000,,0,1,,,\r\n"
	       "open,\"s:order\"" MAIN "1011,7989,,0,,7,11,\r\n"
	       "span,\"s:outer\",\"co,mm\",10,12,\"w\",1500,0,0,0,1,,,\r\n"
	       "span,\"s:outer\",\"co,mm\",10,12,\"w\",1600,1,1,0,1,,,\r\n");
}

static void folded_is_exact(void **state)
{
	struct export_counts counts;
	struct export_opts o = {.counts = &counts};

	(void)state;
	expect(EXPORT_FOLDED, &o,
	       "s:outer 3035\n"
	       "s:outer;f(\"a:b\")\\x0a\\x01\xef\xbf\xbd 8\n"
	       "(caller unknown);f(\"a:b\")\\x0a\\x01\xef\xbf\xbd 3000\n");
	assert_int_equal(counts.left_out, 7);
	o.by_count = true;
	expect(EXPORT_FOLDED, &o,
	       "s:outer 3\n"
	       "s:outer;f(\"a:b\")\\x0a\\x01\xef\xbf\xbd 2\n"
	       "s:outer;s:mark 1\n"
	       "(caller unknown);f(\"a:b\")\\x0a\\x01\xef\xbf\xbd 1\n");
	assert_int_equal(counts.spans, 6);
	assert_int_equal(counts.points, 1);
}

static void hgrm_is_exact(void **state)
{
	struct export_opts o = {.span = "outer"};

	(void)state;
	expect(EXPORT_HGRM, &o,
	       "#[Span: s:outer, ns]\n"
	       "       Value     Percentile TotalCount 1/(1-Percentile)\n"
	       "\n"
	       "       0.000 0.000000000000          1           1.00\n"
	       "       0.000 0.100000000000          1           1.11\n"
	       "       0.000 0.200000000000          1           1.25\n"
	       "       0.000 0.300000000000          1           1.43\n"
	       "       1.000 0.400000000000          2           1.67\n"
	       "       1.000 0.500000000000          2           2.00\n"
	       "       1.000 0.550000000000          2           2.22\n"
	       "       1.000 0.600000000000          2           2.50\n"
	       "       1.000 0.650000000000          2           2.86\n"
	       "    3042.000 0.700000000000          3           3.33\n"
	       "    3042.000 1.000000000000          3\n"
	       "#[Mean    =     1014.333, StdDeviation   =     1433.777]\n"
	       "#[Max     =     3042.000, Total count    =            3]\n"
	       "#[Buckets =            3, SubBuckets     =            1]\n");
}

static void chrome_is_exact(void **state)
{
	struct export_counts counts;
	struct export_opts o = {.counts = &counts, .span = "s:outer"};

	(void)state;
	expect(EXPORT_CHROME, &o,
	       "{\"traceEvents\":[\n"
	       "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":"
	       "\"co,mm\"}},\n"
	       "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":"
	       "\"main\"}},\n"
	       "{\"ph\":\"X\",\"cat\":\"span\",\"pid\":10,\"tid\":11,\"ts\":0.022,\"dur\":3.042,"
	       "\"name\":\"s:outer\"},\n"
	       "{\"ph\":\"X\",\"cat\":\"span\",\"pid\":10,\"tid\":11,\"ts\":7.000,\"dur\":1.000,"
	       "\"args\":{\"unfinished\":true},\"name\":\"s:outer\"},\n"
	       "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":10,\"tid\":12,\"args\":{\"name\":"
	       "\"co,mm\"}},\n"
	       "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":12,\"args\":{\"name\":"
	       "\"w\"}},\n"
	       "{\"ph\":\"X\",\"cat\":\"span\",\"pid\":10,\"tid\":12,\"ts\":0.500,\"dur\":0.000,"
	       "\"name\":\"s:outer\"},\n"
	       "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":10,\"tid\":4194307,\"args\":{"
	       "\"name\":\"co,mm\"}},\n"
	       "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":4194307,\"args\":{"
	       "\"name\":\"w (tid 12 again)\"}},\n"
	       "{\"ph\":\"X\",\"cat\":\"span\",\"pid\":10,\"tid\":4194307,\"ts\":0.600,\"dur\":"
	       "0.001,\"name\":\"s:outer\"}\n"
	       "],\"displayTimeUnit\":\"ns\",\"metadata\":{\"qbpf\":\"" QBPF_VERSION
	       "\",\"clock\":\"CLOCK_MONOTONIC\",\"zero_ns\":\"1000\",\"realtime_ns\":"
	       "\"1700000000000001000\",\"host\":\"h\",\"command\":\"qbpf \\\"x\\\"\"}}\n");
	assert_int_equal(counts.spans, 4);
}

/* All of it is JSON, with names as they are but for what is no UTF-8. */
static void chrome_has_all(void **state)
{
	struct export_counts counts;
	struct export_opts o = {.counts = &counts};
	size_t len, i, n[128] = {0}, named = 0;
	char *text = exported(EXPORT_CHROME, &o, &len);
	json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *ev;

	(void)state;
	assert_non_null(doc);
	json_array_foreach(json_object_get(doc, "traceEvents"), i, ev)
	{
		const char *name = json_string_value(json_object_get(ev, "name"));

		n[(int)*json_string_value(json_object_get(ev, "ph"))]++;
		named += name && !strcmp(name, "f(\"a;b\")\n\x01\xef\xbf\xbd");
	}
	assert_int_equal(n['X'], 1 + 4 + 1); /* inner, outer, the loss */
	assert_int_equal(n['b'], 4); /* aside, two keyed, the one that ends before it begins */
	assert_int_equal(n['e'], 4);
	assert_int_equal(n['C'], 2);
	assert_int_equal(n['i'], 2); /* the instant, and -inf */
	assert_int_equal(n['s'], 1);
	assert_int_equal(n['f'], 1);
	assert_int_equal(named, 1 + 2 * 2);
	assert_int_equal(counts.overlapping, 2);
	json_decref(doc);
	free(text);
}

static void speedscope_is_exact(void **state)
{
	struct export_opts o = {.thread = "main", .span = "s:o*"};

	(void)state;
	expect(EXPORT_SPEEDSCOPE, &o,
	       "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":"
	       "\"qbpf " QBPF_VERSION "\",\"activeProfileIndex\":0,\"name\":\"qbpf \\\"x\\\"\","
	       "\"profiles\":[\n"
	       "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":\"co,mm / main (tid 11)\","
	       "\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":22},{\"type\":\"C\",\"frame\":0,"
	       "\"at\":3064},{\"type\":\"O\",\"frame\":1,\"at\":7000},{\"type\":\"C\",\"frame\":1,"
	       "\"at\":8000}],\"startValue\":22,\"endValue\":8000},\n"
	       "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":\"co,mm / main (tid 11): "
	       "overlapping spans, laid end to end\",\"events\":[{\"type\":\"O\",\"frame\":2,"
	       "\"at\":0},{\"type\":\"C\",\"frame\":2,\"at\":4990},{\"type\":\"O\",\"frame\":3,"
	       "\"at\":4990},"
	       "{\"type\":\"C\",\"frame\":3,\"at\":12979}],\"startValue\":0,\"endValue\":"
	       "12979}\n"
	       "],\"shared\":{\"frames\":[\n"
	       "{\"name\":\"s:outer\"},\n{\"name\":\"s:outer (unfinished)\"},\n"
	       "{\"name\":\"s:order\"},\n{\"name\":\"s:order (unfinished)\"}\n"
	       "]}}\n");
}

/* --- Perfetto ------------------------------------------------------------------------------------ */

/* A file's packets, groups opened; free with perfetto__trace__free_unpacked. */
static Perfetto__Trace *unpacked(const char *bytes, size_t len)
{
	Perfetto__Trace *outer = perfetto__trace__unpack(NULL, len, (const uint8_t *)bytes), *inner;
	uLongf room = 1 << 20;
	uint8_t *plain = malloc(room);

	assert_non_null(outer);
	assert_non_null(plain);
	assert_int_equal(outer->n_packet, 2);
	assert_non_null(outer->packet[0]->clock_snapshot);
	assert_true(outer->packet[1]->has_compressed_packets);
	assert_int_equal(uncompress(plain, &room, outer->packet[1]->compressed_packets.data,
				    outer->packet[1]->compressed_packets.len),
			 Z_OK);
	perfetto__trace__free_unpacked(outer, NULL);
	inner = perfetto__trace__unpack(NULL, room, plain);
	assert_non_null(inner);
	free(plain);
	return inner;
}

static void perfetto_packets(void **state)
{
	struct export_counts counts;
	struct export_opts o = {.counts = &counts};
	size_t len, types[5] = {0}, tracks = 0, threads = 0, names = 0, escaped = 0;
	char *bytes = exported(EXPORT_PERFETTO, &o, &len);
	Perfetto__Trace *t = unpacked(bytes, len);

	(void)state;
	for (size_t i = 0; i < t->n_packet; i++) {
		const Perfetto__TracePacket *p = t->packet[i];

		assert_int_not_equal(p->trusted_packet_sequence_id, 0);
		assert_int_equal(p->sequence_flags, p->first_packet_on_sequence ? 1 : 2);
		if (p->track_event) {
			assert_true(p->has_timestamp);
			types[p->track_event->type]++;
		}
		tracks += p->track_descriptor != NULL;
		threads += p->track_descriptor && p->track_descriptor->thread;
		for (size_t j = 0; p->interned_data && j < p->interned_data->n_event_names; j++) {
			names++;
			escaped += !strcmp(p->interned_data->event_names[j]->name,
					   "f(\"a;b\")\\x0a\\x01\xef\xbf\xbd");
		}
	}
	/* 5 nested, 2 beside, 2 keyed, 1 loss */
	assert_int_equal(types[PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN], 5 + 2 + 2 + 1);
	assert_int_equal(types[PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END], 5 + 2 + 2 + 1);
	/* the instant, -inf, two ends of an arrow, the end */
	assert_int_equal(types[PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT], 1 + 1 + 2 + 1);
	assert_int_equal(types[PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER], 2);
	assert_int_equal(threads, 3);
	assert_int_equal(escaped, 1);
	assert_int_equal(counts.spans, 9);
	assert_int_equal(counts.points, 4);
	assert_int_equal(counts.overlapping, 2);
	/* A process, 3 threads, 2 lanes beside (they overlap not: 1), 2 of keyed, 2 counters, losses,
	 * qbpf's own. */
	assert_int_equal(tracks, 1 + 3 + 1 + 2 + 2 + 1 + 1);
	assert_int_equal(names, 4 + 1 + 1 + 1);
	perfetto__trace__free_unpacked(t, NULL);
	free(bytes);
}

/* --- faults -------------------------------------------------------------------------------------- */

static void faults_of_writing_are_told(void **state)
{
	struct export_opts o = {0};

	(void)state;
	for (unsigned int f = 0; f < EXPORT_FORMATS; f++) {
		FILE *out = fopen("/dev/full", "w");
		struct err e = {{0}};
		int err;

		assert_non_null(out);
		setvbuf(out, NULL, _IONBF, 0);
		err = export__write(reader, f, &o, out, &e);
		assert_int_equal(err, -ENOSPC);
		assert_string_equal(e.text, "cannot write: No space left on device");
		fclose(out);
	}
}

static void what_matches_nothing_is_an_error(void **state)
{
	struct export_opts no_span = {.span = "none"}, no_thread = {.thread = "none"},
			   no_tid = {.thread = "99"};
	struct err e;

	(void)state;
	assert_int_equal(export__write(reader, EXPORT_CSV, &no_span, stdout, &e), -ENOENT);
	assert_string_equal(e.text, "no span of the trace matches none");
	assert_int_equal(export__write(reader, EXPORT_CSV, &no_thread, stdout, &e), -ENOENT);
	assert_string_equal(e.text, "no thread of the trace matches none");
	assert_int_equal(export__write(reader, EXPORT_CSV, &no_tid, stdout, &e), -ENOENT);
	assert_string_equal(e.text, "no thread of the trace has the tid 99");
}

static void formats_have_names(void **state)
{
	static const char *const files[EXPORT_FORMATS] = {
	    "a.pftrace", "a.json", "a.speedscope.json", "a.folded", "a.csv", "a.HGRM"};
	enum export_format f;

	(void)state;
	for (unsigned int i = 0; i < EXPORT_FORMATS; i++) {
		assert_int_equal(export__parse_format(export__format_name(i), &f), 0);
		assert_int_equal(f, i);
		assert_int_equal(export__format_of_path(files[i], &f), 0);
		assert_int_equal(f, i);
	}
	assert_int_equal(export__parse_format("", &f), -EINVAL);
	assert_int_equal(export__parse_format("Perfetto", &f), -EINVAL);
	assert_int_equal(export__format_of_path("a.qbpf", &f), -EINVAL);
	assert_int_equal(export__format_of_path(".json", &f), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(csv_is_exact),
	    cmocka_unit_test(folded_is_exact),
	    cmocka_unit_test(hgrm_is_exact),
	    cmocka_unit_test(chrome_is_exact),
	    cmocka_unit_test(chrome_has_all),
	    cmocka_unit_test(speedscope_is_exact),
	    cmocka_unit_test(perfetto_packets),
	    cmocka_unit_test(faults_of_writing_are_told),
	    cmocka_unit_test(what_matches_nothing_is_an_error),
	    cmocka_unit_test(formats_have_names),
	};

	return cmocka_run_group_tests(tests, make_trace, remove_trace);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is told of a GPU: goldens of a recording made by hand, words of each advice, hostile names. */
#include <jansson.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "golden.h"
#include "gpu_records.h"
#include "out/gpu.h"
#include "out/json.h"
#include "out/report.h"
#include "out/table.h"
#include "recording.h"

enum { TICK = 1, SIGNAL };
enum { LAUNCH = 1, COPY, COPY_ASYNC, STREAM_SYNC, KERNEL, ODD, DEVICE, MALLOC };

static const char *const names[] = {"cudaLaunchKernel",	     "cudaMemcpy",	"cudaMemcpyAsync",
				    "cudaStreamSynchronize", "_Z6signalPKfPfi", "odd\x1b[31m\xff",
				    "Example GPU",	     "cudaMalloc"};

static struct gr_list list;

/* A synchronous copy, a kernel and a copy back, 100 ticks, each in 100 us. */
static void make_ticks(void)
{
	struct qbpf_ring_device *d;

	memset(&list, 0, sizeof(list));
	list.context = 1;
	list.stream = 7;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, REC_START);
	d = &gr__put(&list, QBPF_RING_DEVICE, sizeof(*d))->device;
	d->name = DEVICE;
	d->sms = 132;
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t at = REC_START + 100000ull * i + 1000;
		struct qbpf_ring_copy *c;

		gr__call(&list, COPY, 4 * i + 1, at, at + 20000);
		c = gr__copy(&list, 1, 65536, 4 * i + 1, at + 3000, at + 18000);
		c->flags = 0;
		c->src_kind = 1;
		gr__call(&list, LAUNCH, 4 * i + 2, at + 21000, at + (i ? 24000 : 30000));
		gr__kernel(&list, KERNEL, 4 * i + 2, at + 30000, at + 50000 + 10 * i);
		gr__call(&list, COPY_ASYNC, 4 * i + 3, at + 31000, at + 32000);
		gr__copy(&list, 2, 1024, 4 * i + 3, at + 52000, at + 54000);
		gr__call(&list, STREAM_SYNC, 4 * i + 4, at + 33000, at + 56000);
		gr__sync(&list, 3, 4 * i + 4, at + 33100, at + 55900);
		gr__span(&list, SIGNAL, 0, 1, at - 500, at + 57000);
		gr__span(&list, TICK, 0, 0, at - 1000, at + 80000);
	}
	gr__kernel(&list, ODD, 9999, 0, 0);
	gr__kernel(&list, ODD, 9998, REC_START + 9999000, REC_START + 9999500);
	gr__call(&list, MALLOC, 9997, REC_START + 9990000, REC_START + 9991000);
	list.items[list.n - 1].rec.call.error = 2;
}

static struct trace_reader *record(struct recording_file *f, bool gpu)
{
	struct trace_reader *r;
	uint32_t id;

	make_ticks();
	rec__open(f);
	rec__span(f, "strategy:tick", SPAN_MARKER, QBPF_HIST_NS);
	rec__span(f, "strategy:signal", SPAN_MARKER, QBPF_HIST_NS);
	rec__thread(f, "feed");
	rec__node(f, 0, TICK);
	rec__node(f, 1, SIGNAL);
	for (size_t i = 0; gpu && i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(trace_writer__gpu_name(f->w, names[i], &id), 0);
	for (uint32_t i = 0; gpu && i < GPU_LOST_N; i++) {
		struct trace_gpu_loss l = {.type = i ? 0 : QBPF_RING_CALL,
					   .reason = i,
					   .from_ns = REC_START,
					   .to_ns = REC_START + 1000,
					   .lost = 10 + i};

		assert_int_equal(trace_writer__gpu_loss(f->w, &l), 0);
	}
	for (size_t i = 0; i < list.n; i++) {
		struct gr_item *it = &list.items[i];

		if (it->ev.kind) {
			it->ev.node = it->ev.span;
			rec__event(f, it->ev);
		} else if (gpu) {
			assert_int_equal(trace_writer__gpu(f->w, 0, &it->rec.head), 0);
		}
	}
	r = rec__read(f, REC_START + 10000000, 0, NULL);
	((struct trace_info *)trace_reader__info(r))->file_bytes = 12345;
	return r;
}

static void t_report(void **state)
{
	struct report_opts o = {.path = "made.qbpf", .width = 130, .limit = 40, .hot = 0.05};
	struct recording_file f;
	struct trace_reader *r = record(&f, true);
	struct analysis *a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(report__write(out, a, &o), 0);
	fclose(out);
	assert_null(strchr(text, '\x1b'));
	golden__check("report.gpu.txt", text);
	free(text);
	analysis__free(a);
	rec__close(&f, r);
}

static void t_document(void **state)
{
	struct report_opts o = {.path = "made.qbpf"};
	struct recording_file f;
	struct trace_reader *r = record(&f, true);
	struct analysis *a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	char *text = NULL, *gpu;
	json_t *root, *part;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(report__write_json(out, a, &o), 0);
	fclose(out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	part = json_object_get(root, "gpu");
	assert_non_null(part);
	gpu = json_dumps(part, JSON_INDENT(1));
	golden__check("gpu.json", gpu);
	/* The name is valid UTF-8 now, and the figures are those of the text. */
	assert_int_equal(json_integer_value(json_object_get(part, "untimed")), 1);
	assert_int_equal(json_integer_value(json_object_get(part, "clock_error_ns")), 3000);
	free(gpu);
	free(text);
	json_decref(root);
	analysis__free(a);
	rec__close(&f, r);
}

/* Nothing of a GPU, no word of one. */
static void t_without(void **state)
{
	struct report_opts o = {.path = "made.qbpf", .width = 130, .hot = 0.05};
	struct recording_file f;
	struct trace_reader *r = record(&f, false);
	struct analysis *a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_null(a->gpu);
	assert_int_equal(report__write(out, a, &o), 0);
	assert_int_equal(report__write_json(out, a, &o), 0);
	fclose(out);
	assert_null(strstr(text, "GPU"));
	assert_null(strstr(text, "gpu"));
	free(text);
	analysis__free(a);
	rec__close(&f, r);
}

/* The live report and document have the same, and a snapshot shares it. */
static void t_live(void **state)
{
	static const struct gpu_opts usual;
	struct table_opts o = {.width = 130};
	struct gpu *g = gpu__new(&usual);
	struct snapshot *s = snapshot__new(), *copy;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	make_ticks();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(gpu__name(g, (uint32_t)i + 1, names[i]), 0);
	for (size_t i = 0; i < list.n; i++)
		if (!list.items[i].ev.kind)
			assert_int_equal(gpu__record(g, 0, &list.items[i].rec.head), 0);
	assert_int_equal(gpu__settle(g, REC_START + 5000000), 0);
	s->now_ns = 1000;
	s->gpu = gpu__summary(g);
	gpu__free(g);
	copy = snapshot__clone(s);
	assert_ptr_equal(copy->gpu, s->gpu);
	snapshot__free(s);
	table__write(out, copy, &o);
	fflush(out);
	assert_non_null(strstr(text, "GPU 0 (Example GPU): busy "));
	assert_non_null(strstr(text, "signal(float const*, float*, int)     50"));
	assert_non_null(strstr(text, "activities that have just come: "));
	assert_int_equal(json__write_summary(out, copy, true), 0);
	fclose(out);
	assert_non_null(strstr(text, "\"gpu\":{\"devices\":[{\"device\":0"));
	free(text);
	snapshot__free(copy);
}

static void check_device(struct gpu_summary *s, size_t i, const char *want)
{
	char buf[GPU_DEVICE_TEXT];

	assert_string_equal(gpu_device__text(s, &s->devices[i], buf), want);
}

static void check_stream(struct gpu_summary *s, size_t i, const char *want)
{
	char buf[GPU_STREAM_TEXT];

	assert_string_equal(gpu_stream__text(s, &s->streams[i], buf), want);
}

/* A device of one process is told by its number; of several by the process too. */
static void t_whose(void **state)
{
	struct gpu_device devices[] = {
	    {.ring = 0, .tgid = 4711, .comm = (char *)"strategy", .name = (char *)"NVIDIA H200"},
	    {.ring = 0, .device = 1, .tgid = 4711},
	    {.ring = 1, .tgid = 4712},
	    {.ring = 2, .name = (char *)"NVIDIA H200"},
	};
	struct gpu_stream streams[] = {
	    {.ring = 0, .tgid = 4711, .context = 1, .stream = 7},
	    {.ring = 0, .tgid = 4711, .context = 2, .stream = 7, .null = true},
	    {.ring = 1, .tgid = 4712, .context = 1, .stream = 7, .generation = 2},
	    {.ring = 2, .device = 1, .context = 1, .stream = 8},
	};
	struct gpu_summary s = {
	    .devices = devices, .ndevices = 2, .streams = streams, .nstreams = 1};

	(void)state;
	check_device(&s, 0, "GPU 0 (NVIDIA H200)");
	check_device(&s, 1, "GPU 1");
	check_stream(&s, 0, "GPU 0 stream 7");
	s.nstreams = 4;
	check_stream(&s, 0, "GPU 0 context 1 stream 7");
	s.ndevices = 4;
	check_device(&s, 0, "GPU 0 (NVIDIA H200) of strategy (pid 4711)");
	check_device(&s, 2, "GPU 0 of pid 4712");
	check_device(&s, 3, "GPU 0 (NVIDIA H200) of the programs of ring 2");
	check_stream(&s, 1, "GPU 0 of 4711 context 2 stream 7 (default)");
	check_stream(&s, 2, "GPU 0 of 4712 stream 7, process no. 2");
	check_stream(&s, 3, "GPU 1 ring 2 stream 8");
}

static void t_advice(void **state)
{
	static const struct {
		struct gpu_advice a;
		const char *text;
	} cases[] = {
	    {{.kind = GPU_ADVICE_SYNC_COPY,
	      .count = 3,
	      .bytes = 4096,
	      .cost_ns = 5000,
	      .of_ns = 4000,
	      .save_ns = 3000},
	     "3 synchronous copies (4.00 KiB) held the host up for 5.00us, and only copies ran for "
	     "4.00us of it: asynchronous ones from pinned memory could run beside kernels, which "
	     "saves 3.00us at most"},
	    {{.kind = GPU_ADVICE_PAGEABLE,
	      .direction = GPU_TO_HOST,
	      .count = 3,
	      .bytes = 4096,
	      .cost_ns = 5000,
	      .save_ns = 3000},
	     "3 copies device to host of pageable memory (4.00 KiB) took 5.00us: at the rate of "
	     "the "
	     "pinned ones 3.00us less"},
	    {{.kind = GPU_ADVICE_PAGEABLE, .count = 3, .cost_ns = 5000, .save_ns = GPU_UNKNOWN},
	     "3 copies host to device of pageable memory (0 B) took 5.00us: pin it "
	     "(cudaHostRegister, cudaMallocHost)"},
	    {{.kind = GPU_ADVICE_TINY, .count = 300, .bytes = 4096, .cost_ns = 5000},
	     "300 copies host to device of 4.00 KiB or less took 5.00us: put them together"},
	    {{.kind = GPU_ADVICE_LAUNCH_BOUND,
	      .name = (char *)"k(int)",
	      .count = 300,
	      .cost_ns = 5000,
	      .of_ns = 4000},
	     "300 launches of k(int) took the host 5.00us, the kernel itself 4.00us: a CUDA graph "
	     "or fewer, larger launches"},
	    {{.kind = GPU_ADVICE_FIRST_LAUNCH, .count = 3, .cost_ns = 5000, .of_ns = 4000},
	     "3 first launches took the host 5.00us, warm ones of the same kernels take 4.00us: "
	     "launch each once before trading begins"},
	    {{.kind = GPU_ADVICE_HOST_LATE,
	      .name = (char *)"a:b",
	      .device = 1,
	      .count = 3,
	      .cost_ns = 5000,
	      .of_ns = 10000},
	     "GPU 1 idled 5.00us (50.0% of 10.0us, 3 gaps) while the host was in a:b and had not "
	     "asked for more: launch earlier, or keep two ticks in flight"},
	    {{.kind = GPU_ADVICE_SYNC_GAP,
	      .name = (char *)"cudaStreamSynchronize",
	      .count = 3,
	      .cost_ns = 5000,
	      .of_ns = 10000},
	     "GPU 0 idled 5.00us (50.0% of 10.0us, 3 gaps) while the host had not returned from "
	     "cudaStreamSynchronize: ask for the next work before waiting"},
	    {{.kind = GPU_ADVICE_SYNC_GAP,
	      .name = (char *)"cudaStreamSynchronize",
	      .tgid = 4711,
	      .count = 3,
	      .cost_ns = 5000,
	      .of_ns = 10000},
	     "GPU 0 of pid 4711 idled 5.00us (50.0% of 10.0us, 3 gaps) while the host had not "
	     "returned from cudaStreamSynchronize: ask for the next work before waiting"},
	    {{.kind = GPU_ADVICE_FAILED,
	      .name = (char *)"cudaMalloc",
	      .count = 3,
	      .of_ns = 4,
	      .error = 2},
	     "3 of 4 calls of cudaMalloc failed, the last with error 2"},
	};
	char long_name[4096], buf[GPU_ADVICE_TEXT];
	struct gpu_advice a = {.kind = GPU_ADVICE_LAUNCH_BOUND, .name = long_name};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(gpu_advice__text(&cases[i].a, buf), cases[i].text);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	for (int k = 0; k < GPU_ADVICE_KINDS; k++) {
		a.kind = (enum gpu_advice_kind)k;
		a.count = a.bytes = a.cost_ns = a.of_ns = a.save_ns = UINT64_MAX - 1;
		assert_true(strlen(gpu_advice__text(&a, buf)) < GPU_ADVICE_TEXT - 1);
		assert_string_not_equal(gpu_advice_name(a.kind), "?");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_report), cmocka_unit_test(t_document), cmocka_unit_test(t_without),
	    cmocka_unit_test(t_live),	cmocka_unit_test(t_whose),    cmocka_unit_test(t_advice),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

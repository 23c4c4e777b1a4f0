/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recordings with records of a GPU, for html_fixture.h, which includes this one. */
#ifndef QBPF_TESTS_HTML_FIXTURE_GPU_H
#define QBPF_TESTS_HTML_FIXTURE_GPU_H

#include "qbpf/ring.h"

#define FIX_GPU_TICKS 20
#define FIX_GPU_SLOW  7
#define FIX_GPU_MANY  20000

static inline uint32_t fix_gpu_name(struct fixture *f, const char *text)
{
	uint32_t id;

	assert(!trace_writer__gpu_name(f->w, text, &id));
	return id;
}

static inline void fix_gpu_put(struct fixture *f, const void *rec)
{
	assert(!trace_writer__gpu(f->w, 0, rec));
}

#define FIX_RECORD(kind, of) .type = QBPF_RING_##kind, .size = sizeof(struct qbpf_ring_##of)

static inline void fix_gpu_call(struct fixture *f, uint32_t name, uint32_t id, uint64_t from,
				uint64_t to)
{
	struct qbpf_ring_call c = {FIX_RECORD(CALL, call),
				   .start_ns = from,
				   .end_ns = to,
				   .tgid = 4000,
				   .tid = 4000,
				   .correlation = id,
				   .name = name,
				   .domain = QBPF_RING_RUNTIME};

	fix_gpu_put(f, &c);
}

static inline void fix_gpu_kernel(struct fixture *f, uint32_t stream, uint32_t name, uint32_t id,
				  uint64_t from, uint64_t to)
{
	struct qbpf_ring_kernel k = {FIX_RECORD(KERNEL, kernel),
				     .name = name,
				     .start_ns = from,
				     .end_ns = to,
				     .context = 1,
				     .stream = stream,
				     .correlation = id,
				     .grid = {128, 1, 1},
				     .block = {256, 1, 1}};

	fix_gpu_put(f, &k);
}

static inline void fix_gpu_begin(struct fixture *f, const char *device)
{
	struct qbpf_ring_start start = {FIX_RECORD(START, start), .generation = 1, .tgid = 4000,
					.clock = QBPF_RING_CLOCK_MONOTONIC,
					.monotonic_ns = FIX_START};
	uint32_t name = fix_gpu_name(f, device);

	fix_gpu_put(f, &start);
	for (uint32_t d = 0; d < 2; d++)
		fix_gpu_put(f, &(struct qbpf_ring_device){FIX_RECORD(DEVICE, device), .device = d,
							  .name = name, .sms = 132});
}

static inline void fix_gpu_tick(struct fixture *f, uint32_t span, uint32_t node, uint64_t at,
				uint64_t ns)
{
	if (span)
		fix_event(f, (struct event){.kind = EVENT_SPAN,
					    .span = span,
					    .node = node,
					    .start_ns = at,
					    .end_ns = at + ns});
	else if (at + ns > f->now_ns)
		f->now_ns = at + ns;
}

/*
 * By ns after the tick's start: a copy (3000 to 8000) and a kernel (8000 to 30000) in stream 7 of
 * device 0; a graph of three kernels in stream 8, two of which overlap (10000 to 20000, 15000 to
 * 25000) and one takes no time (26000); a memset in stream 7 of device 1 (9000 to 9500); a wait
 * (9000 to 35000). A tick takes 50000, one of them 80000.
 */
static inline void fix_gpu_ticks(struct fixture *f, uint32_t span)
{
	uint32_t copy = fix_gpu_name(f, "cudaMemcpyAsync"), launch, graph, set, sync, name, node,
		 id;

	launch = fix_gpu_name(f, "cudaLaunchKernel");
	graph = fix_gpu_name(f, "cudaGraphLaunch");
	set = fix_gpu_name(f, "cudaMemsetAsync");
	sync = fix_gpu_name(f, "cudaStreamSynchronize");
	name = fix_gpu_name(f, "_Z6signalPKfPfi");
	node = span ? fix_node(f, 0, span) : 0;
	id = 0;
	for (uint64_t i = 0; i < FIX_GPU_TICKS; i++) {
		uint64_t at = FIX_START + i * 100000;

		fix_gpu_call(f, copy, ++id, at + 1000, at + 2000);
		fix_gpu_put(f, &(struct qbpf_ring_copy){FIX_RECORD(COPY, copy), .kind = 1,
							.src_kind = 2, .dst_kind = 3, .flags = 1,
							.bytes = 81920, .start_ns = at + 3000,
							.end_ns = at + 8000, .context = 1,
							.stream = 7, .correlation = id});
		fix_gpu_call(f, launch, ++id, at + 4000, at + 6000);
		fix_gpu_kernel(f, 7, name, id, at + 8000, at + 30000);
		fix_gpu_call(f, graph, ++id, at + 6500, at + 7000);
		fix_gpu_kernel(f, 8, name, id, at + 10000, at + 20000);
		fix_gpu_kernel(f, 8, name, id, at + 15000, at + 25000);
		fix_gpu_kernel(f, 8, name, id, at + 26000, at + 26000);
		fix_gpu_call(f, set, ++id, at + 7100, at + 7400);
		fix_gpu_put(f, &(struct qbpf_ring_set){FIX_RECORD(SET, set), .bytes = 4096,
						       .start_ns = at + 9000, .end_ns = at + 9500,
						       .device = 1, .context = 2, .stream = 7,
						       .correlation = id, .flags = 1});
		fix_gpu_call(f, sync, ++id, at + 9000, at + 35000);
		fix_gpu_tick(f, span, node, at, i == FIX_GPU_SLOW ? 80000 : 50000);
	}
}

static inline void fix_gpu(struct fixture *f)
{
	fix_gpu_begin(f, "Example GPU");
	fix_gpu_ticks(f, fix_span(f, "gpu:tick", SPAN_MARKER, QBPF_HIST_NS));
}

/* The same without a span of the host. */
static inline void fix_gpu_alone(struct fixture *f)
{
	fix_gpu_begin(f, "Example GPU");
	fix_gpu_ticks(f, 0);
}

static inline void fix_gpu_hostile(struct fixture *f)
{
	static char longest[10001];
	const char *const names[] = {FIX_HOSTILE1, FIX_HOSTILE2, "a\"b'c\\d\x01\xff\xc3\x28",
				     longest,	   "__proto__",	 ""};
	uint32_t span = fix_span(f, FIX_HOSTILE1, SPAN_MARKER, QBPF_HIST_NS), launch;

	memset(longest, 'x', sizeof(longest) - 1);
	fix_gpu_begin(f, FIX_HOSTILE2);
	launch = fix_gpu_name(f, FIX_HOSTILE2 "()");
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t at = FIX_START + 1000 + i * 10000;

		fix_gpu_call(f, launch, i + 1, at, at + 1000);
		fix_gpu_kernel(f, 7, fix_gpu_name(f, names[i]), i + 1, at + 2000, at + 9000);
	}
	fix_gpu_tick(f, span, fix_node(f, 0, span), FIX_START, 100000);
}

/* One span beside which more happened than a page holds, in more streams than a picture has rows. */
static inline void fix_gpu_many(struct fixture *f)
{
	uint32_t span = fix_span(f, "gpu:all", SPAN_MARKER, QBPF_HIST_NS), launch;
	char name[1100];

	fix_gpu_begin(f, "Example GPU");
	launch = fix_gpu_name(f, "cudaLaunchKernel");
	for (uint32_t i = 0; i < FIX_GPU_MANY; i++) {
		uint64_t at = FIX_START + 1000 + i * 1000ull;

		snprintf(name, sizeof(name), "%01000u\x01", i);
		fix_gpu_call(f, launch, i + 1, at, at + 300);
		fix_gpu_kernel(f, i % 3000, fix_gpu_name(f, name), i + 1, at + 400,
			       at + 500 + i % 400);
	}
	fix_gpu_tick(f, span, fix_node(f, 0, span), FIX_START, FIX_GPU_MANY * 1000ull + 5000);
}

#endif

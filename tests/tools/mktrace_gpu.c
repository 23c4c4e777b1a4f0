// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The shape `gpu` of mktrace: ticks that copy to a GPU, launch kernels, copy back, wait and decide.
 *
 * Two devices with equal ids of streams (thread 0 has device 0, thread 1 device 1, and
 * so on); stream 0; kernels that overlap in a stream; kernels of no length; graphs, as a whole and
 * node by node; a synchronous copy of pageable memory in every 8th tick; activities before their
 * calls, without them, and of impossible times; a name with markup in it; a call that fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mktrace.h"
#include "mktrace_gpu.h"
#include "qbpf/abi.h"

enum { MARKER = 0 };
enum { TICK, SIGNAL, DECIDE };

static const char *const names[] = {
    "cudaLaunchKernel", "cudaMemcpyAsync",     "cudaMemcpy",	   "cudaStreamSynchronize",
    "cudaGraphLaunch",	"cudaMemsetAsync",     "cuLaunchKernel",   "cudaStreamWaitEvent",
    "_Z6signalPKfPfi",	"_ZN4book6updateEPdi", "<b>odd\"\x01\xff", "Example GPU",
    "cudaMalloc",
};
enum {
	LAUNCH = 1,
	COPY_ASYNC,
	COPY,
	STREAM_SYNC,
	GRAPH_LAUNCH,
	SET,
	CU_LAUNCH,
	WAIT_EVENT,
	K_SIGNAL,
	K_BOOK,
	K_ODD,
	DEVICE_NAME,
	MALLOC
};

/* One tick: its calls come first, its activities before the next tick's, as from a buffer. */
struct gpu_run {
	struct maker *m;
	const struct run *r;
	uint32_t device, stream, id;
	uint64_t now, done; /* of the host, of the stream */
};

static uint32_t next_id;

static void put(struct maker *m, const void *rec)
{
	int err = trace_writer__gpu(m->writer, 0, rec);

	if (err) {
		fprintf(stderr, "mktrace: GPU record: %s\n", strerror(-err));
		exit(1);
	}
}

#define RECORD(kind, of) .type = QBPF_RING_##kind, .size = sizeof(struct qbpf_ring_##of)

static uint64_t call(struct gpu_run *g, uint32_t name, uint32_t domain, uint64_t length,
		     uint32_t error)
{
	struct qbpf_ring_call c = {RECORD(CALL, call),
				   .start_ns = g->now,
				   .end_ns = g->now + length,
				   .tgid = MAKE_TGID,
				   .tid = g->m->threads[g->r->thread].tid,
				   .correlation = g->id,
				   .error = error,
				   .name = name,
				   .domain = domain};

	put(g->m, &c);
	return c.end_ns;
}

static void kernel(struct gpu_run *g, uint32_t name, uint64_t start, uint64_t end, uint64_t node)
{
	struct qbpf_ring_kernel k = {RECORD(KERNEL, kernel),
				     .name = name,
				     .start_ns = start,
				     .end_ns = end,
				     .device = g->device,
				     .context = g->device + 1,
				     .stream = g->stream,
				     .correlation = g->id,
				     .grid = {name == K_SIGNAL ? 128 : 1 + g->id % 3, 1, 1},
				     .block = {256, 1, 1},
				     .static_shared = 1024,
				     .registers = 32,
				     .graph_node = node,
				     .graph = node ? 5 : 0};

	put(g->m, &k);
}

static void copy(struct gpu_run *g, bool back, bool pageable, uint64_t bytes, uint64_t start,
		 uint64_t end)
{
	struct qbpf_ring_copy c = {RECORD(COPY, copy),
				   .kind = back ? 2 : 1,
				   .src_kind = back	  ? 3
					       : pageable ? 1
							  : 2,
				   .dst_kind = !back	  ? 3
					       : pageable ? 1
							  : 2,
				   .flags = !pageable,
				   .bytes = bytes,
				   .start_ns = start,
				   .end_ns = end,
				   .device = g->device,
				   .context = g->device + 1,
				   .stream = g->stream,
				   .correlation = g->id,
				   .src_device = g->device,
				   .dst_device = g->device};

	put(g->m, &c);
}

static void sync_record(struct gpu_run *g, uint32_t kind, uint64_t start, uint64_t end)
{
	struct qbpf_ring_sync s = {RECORD(SYNC, sync),	 .kind = kind,
				   .start_ns = start,	 .end_ns = end,
				   .correlation = g->id, .context = g->device + 1,
				   .stream = g->stream,	 .event = kind == 2 ? 9 : UINT32_MAX};

	put(g->m, &s);
}

/* What is asked for begins when the stream is done, and 3 us after the call. */
static uint64_t begins(const struct gpu_run *g, uint64_t asked)
{
	return g->done > asked + 3000 ? g->done + 500 : asked + 3000;
}

void gpu_setup(struct maker *m, uint32_t *spans)
{
	struct qbpf_ring_start start = {RECORD(START, start), .generation = 1, .tgid = MAKE_TGID,
					.clock = QBPF_RING_CLOCK_MONOTONIC,
					.monotonic_ns = m->start_ns};
	struct trace_gpu_loss loss = {.type = QBPF_RING_KERNEL,
				      .reason = GPU_LOST_RING,
				      .from_ns = m->start_ns,
				      .to_ns = m->start_ns + 1000000,
				      .lost = 3};
	uint32_t id;

	spans[TICK] = make_span(m, "strategy:on_tick", MARKER, QBPF_HIST_NS);
	spans[SIGNAL] = make_span(m, "strategy:signal", MARKER, QBPF_HIST_NS);
	spans[DECIDE] = make_span(m, "strategy:decide", MARKER, QBPF_HIST_NS);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (trace_writer__gpu_name(m->writer, names[i], &id) || id != i + 1)
			exit(1);
	if (trace_writer__gpu_loss(m->writer, &loss))
		exit(1);
	put(m, &start);
	for (uint32_t d = 0; d < 2; d++) {
		struct qbpf_ring_device device = {RECORD(DEVICE, device),
						  .device = d,
						  .name = DEVICE_NAME,
						  .sms = 132,
						  .capability_major = 9,
						  .clock_khz = 1980000,
						  .copy_engines = 3,
						  .memory_bytes = 80ull << 30,
						  .bandwidth_kbps = 3352320000u};

		put(m, &device);
	}
	next_id = 0;
}

/* A span of the thread that ends now. */
static void span(struct gpu_run *g, uint32_t span_id, uint32_t node, uint16_t depth, uint64_t start,
		 uint64_t child_ns)
{
	struct event ev = {.kind = EVENT_SPAN,
			   .span = span_id,
			   .node = node,
			   .thread = g->r->thread,
			   .depth = depth,
			   .start_ns = start,
			   .end_ns = g->now,
			   .child_ns = child_ns};

	make_event(g->m, &ev);
}

/* Copies there, launches and copies back; returns when the stream is done. */
static void ask(struct gpu_run *g, bool flaw)
{
	uint64_t start, end, bytes = 65536 + make_random(g->m) % 65536;

	g->id = ++next_id;
	if (flaw) {
		start = begins(g, g->now);
		end = start + bytes / 6;
		/* The runtime's call holds the driver's; it returns after the copy. */
		copy(g, false, true, bytes, start, end);
		g->now = call(g, COPY, QBPF_RING_RUNTIME, end + 1500 - g->now, 0);
	} else {
		uint64_t asked = g->now;

		g->now = call(g, COPY_ASYNC, QBPF_RING_RUNTIME, 1800, 0);
		start = begins(g, asked);
		end = start + bytes / 25;
		copy(g, false, false, bytes, start, end);
	}
	g->done = end;
	g->id = ++next_id;
	start = g->now;
	call(g, LAUNCH, QBPF_RING_RUNTIME, 2400, 0);
	g->now += 300;
	call(g, CU_LAUNCH, QBPF_RING_DRIVER, 1800, 0);
	g->now += 2100;
	start = begins(g, start);
	g->done = start + make_jitter(g->m, 20000);
	kernel(g, K_SIGNAL, start, g->done, 0);
	g->id = ++next_id;
	start = begins(g, g->now);
	g->now = call(g, COPY_ASYNC, QBPF_RING_RUNTIME, 1700, 0);
	g->done = start + 1400;
	copy(g, true, false, 1024, start, g->done);
}

static void wait_for_it(struct gpu_run *g)
{
	uint64_t back = (g->done > g->now + 500 ? g->done : g->now + 500) + 2500;

	g->id = ++next_id;
	sync_record(g, 3, g->now + 200, back - 200);
	g->now = call(g, STREAM_SYNC, QBPF_RING_RUNTIME, back - g->now, 0);
}

/* What is rare, by the number of the tick. */
static void rare(struct gpu_run *g, uint64_t tick)
{
	uint64_t start;

	if (tick % 16 == 3) { /* a graph as a whole, in another stream that waits for this one */
		g->stream = 8;
		g->id = ++next_id;
		sync_record(g, 2, g->now + 100, g->now + 400);
		g->now = call(g, WAIT_EVENT, QBPF_RING_RUNTIME, 600, 0);
		g->id = ++next_id;
		start = g->done + 700 > g->now + 4000 ? g->done + 700 : g->now + 4000;
		g->now = call(g, GRAPH_LAUNCH, QBPF_RING_RUNTIME, 4000, 0);
		put(g->m, &(struct qbpf_ring_graph){RECORD(GRAPH, graph), .correlation = g->id,
						    .start_ns = start, .end_ns = start + 9000,
						    .device = g->device, .graph = 5,
						    .context = g->device + 1, .stream = 8});
	}
	if (tick % 16 == 5) { /* node by node: three kernels of one id, two of them at once */
		g->stream = 8;
		g->id = ++next_id;
		start = g->done + 700 > g->now + 4000 ? g->done + 700 : g->now + 4000;
		g->now = call(g, GRAPH_LAUNCH, QBPF_RING_RUNTIME, 4000, 0);
		kernel(g, K_BOOK, start, start + 3000, 1);
		kernel(g, K_BOOK, start + 2000, start + 5000, 2);
		kernel(g, K_ODD, start + 5000, start + 5000, 3); /* of no length */
	}
	if (tick % 32 == 7) { /* a stream without number, and a memset */
		g->stream = 0;
		g->id = ++next_id;
		start = g->now + 3500;
		g->now = call(g, SET, QBPF_RING_RUNTIME, 1500, 0);
		put(g->m, &(struct qbpf_ring_set){RECORD(SET, set), .bytes = 4096,
						  .start_ns = start, .end_ns = start + 800,
						  .device = g->device, .context = g->device + 1,
						  .correlation = g->id, .flags = 1});
	}
	if (tick % 64 == 9) { /* no times; no call; no activity; an error */
		g->id = ++next_id;
		g->now = call(g, LAUNCH, QBPF_RING_RUNTIME, 2400, 0);
		kernel(g, K_ODD, 0, 0, 0);
		g->id = ++next_id;
		kernel(g, K_ODD, g->now + 50000, g->now + 51000, 0);
		g->id = ++next_id;
		g->now = call(g, LAUNCH, QBPF_RING_RUNTIME, 2400, 0);
		g->id = ++next_id;
		g->now = call(g, MALLOC, QBPF_RING_RUNTIME, 30000, 2);
	}
}

void gpu_step(struct maker *m, struct run *r)
{
	struct gpu_run g = {.m = m, .r = r, .device = r->number % 2, .stream = 7};
	uint32_t tick = make_node(m, 0, r->spans[TICK]);
	uint32_t signal = make_node(m, tick, r->spans[SIGNAL]);
	uint32_t decide = make_node(m, tick, r->spans[DECIDE]);
	uint64_t start, inner, child;

	g.now = m->threads[r->thread].clock_ns + make_jitter(m, 8000);
	start = g.now;
	g.now += make_jitter(m, 1500);
	inner = g.now;
	g.now += 700;
	ask(&g, r->steps % 8 == 4);
	rare(&g, r->steps);
	g.stream = 7;
	wait_for_it(&g);
	span(&g, r->spans[SIGNAL], signal, 1, inner, 0);
	child = g.now - inner;
	g.now += 400;
	inner = g.now;
	g.now += make_jitter(m, 2500);
	span(&g, r->spans[DECIDE], decide, 1, inner, 0);
	child += g.now - inner;
	g.now += 300;
	span(&g, r->spans[TICK], tick, 0, start, child);
	m->threads[r->thread].clock_ns = g.now;
}

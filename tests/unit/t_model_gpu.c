// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The model of the GPU: every rule, with figures computed by hand. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gpu_cases.h"

static void t_nothing(void **state)
{
	struct gpu_summary *s = run();

	(void)state;
	assert_int_equal(s->nkernels + s->ncopies + s->ndevices + s->nadvice, 0);
	assert_true(s->clock_error_ns == GPU_UNKNOWN);
	gpu_summary__put(s);
}

static void t_launch(void **state)
{
	struct gpu_summary *s;
	const struct gpu_kernel *k;

	(void)state;
	gr__call(&list, LAUNCH, 1, 1000, 1400); /* the first one */
	gr__kernel(&list, SIGNAL, 1, 2000, 2500);
	gr__call(&list, LAUNCH, 2, 3000, 3100);
	gr__kernel(&list, SIGNAL, 2, 3050, 3150);
	gr__call(&list, LAUNCH, 3, 4000, 4120);
	gr__kernel(&list, SIGNAL, 3, 4300, 4600)->grid[0] = 9;
	gr__call(&list, LAUNCH, 4, 5000, 5120);
	gr__kernel(&list, RISK, 4, 5300, 5300); /* no length at all */
	s = run();
	check_sums(s);
	assert_int_equal(s->nkernels, 2);
	k = &s->kernels[0];
	assert_string_equal(k->name, "signal(float const*, float*, int)");
	assert_string_equal(k->symbol, "_Z6signalPKfPfi");
	assert_int_equal(k->time.count, 3);
	assert_int_equal(k->time.total_ns, 500 + 100 + 300);
	assert_int_equal(k->time.min_ns, 100);
	assert_int_equal(k->time.max_ns, 500);
	assert_int_equal(k->time.p50_ns, 300);
	assert_true(k->time.p99_ns == GPU_UNKNOWN);
	assert_int_equal(k->delay.total_ns, 1000 + 50 + 300);
	assert_int_equal(k->first_calls, 1);
	assert_int_equal(k->first_call_ns, 400);
	assert_int_equal(k->call.count, 2);
	assert_int_equal(k->call.total_ns, 100 + 120);
	assert_int_equal(k->grid[0], 9);
	assert_true(k->varies);
	assert_string_equal(s->kernels[1].name, "risk(float*)");
	assert_int_equal(s->kernels[1].time.count, 1);
	assert_int_equal(s->kernels[1].time.total_ns, 0);
	assert_false(s->kernels[1].varies);
	assert_int_equal(s->missing[GPU_NO_CALL] + s->missing[GPU_NO_ACTIVITY], 0);
	assert_int_equal(s->devices[0].activities, 4);
	assert_int_equal(s->devices[0].busy_ns, 900);
	gpu_summary__put(s);
}

/* A driver call within a runtime call is the same call, whichever id it has; alone it is one. */
static void t_nested(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 1000, 1400);
	gr__driver_call(&list, CU_LAUNCH, 1, 1100, 1300);
	gr__kernel(&list, SIGNAL, 1, 2000, 2500);
	gr__call(&list, LAUNCH, 2, 3000, 3400);
	gr__driver_call(&list, CU_LAUNCH, 99, 3000, 3400);
	gr__kernel(&list, SIGNAL, 99, 3500, 3600);
	gr__driver_call(&list, CU_LAUNCH, 5, 5000, 5050);
	gr__kernel(&list, RISK, 5, 5500, 5600);
	list.tid = 101; /* of another thread: not in it */
	gr__driver_call(&list, CU_LAUNCH, 6, 1150, 1250);
	gr__kernel(&list, RISK, 6, 6000, 6100);
	s = run();
	check_sums(s);
	assert_int_equal(s->ncalls, 2);
	assert_string_equal(s->calls[0].name, "cudaLaunchKernel");
	assert_int_equal(s->calls[0].time.count, 2);
	assert_int_equal(s->calls[0].time.total_ns, 800);
	assert_string_equal(s->calls[1].name, "cuLaunchKernel");
	assert_int_equal(s->calls[1].time.count, 2);
	assert_int_equal(s->calls[1].time.total_ns, 150);
	assert_int_equal(s->kernels[0].delay.total_ns, 1000 + 500); /* from the outer call */
	assert_int_equal(s->kernels[1].delay.total_ns, 500 + 4850);
	assert_int_equal(s->missing[GPU_NO_ACTIVITY], 0); /* what a part has is the whole's */
	gpu_summary__put(s);
}

static void t_overlap(void **state)
{
	const struct gpu_device *d;
	struct gpu_summary *s;

	(void)state;
	gr__kernel(&list, SIGNAL, 1, 1000, 2000);
	gr__copy(&list, 1, 100, 2, 2200, 3000);
	gr__copy(&list, 2, 100, 3, 4000, 4500);
	gr__kernel(&list, SIGNAL, 4, 4500, 5000);
	list.stream = 8;
	gr__kernel(&list, SIGNAL, 5, 1500, 2500);
	gr__set(&list, 64, 6, 4600, 4700); /* within a kernel */
	s = run();
	check_sums(s);
	d = &s->devices[0];
	assert_int_equal(d->from_ns, 1000);
	assert_int_equal(d->to_ns, 5000);
	assert_int_equal(d->compute_ns, 1500 + 500);
	assert_int_equal(d->copy_ns, 800 + 500);
	assert_int_equal(d->overlap_ns, 300);
	assert_int_equal(d->busy_ns, 2000 + 1000);
	assert_int_equal(d->idle_ns, 1000);
	assert_int_equal(idle_of(d, GPU_IDLE_UNKNOWN, NULL)->total_ns, 1000);
	assert_int_equal(s->ncopies, 3);
	assert_int_equal(s->copies[0].direction, GPU_TO_DEVICE);
	assert_int_equal(s->copies[0].alone_ns, 500);
	assert_int_equal(s->copies[0].bytes_per_s, 100 * 1000000000ull / 800);
	assert_int_equal(s->copies[1].direction, GPU_TO_HOST);
	assert_int_equal(s->copies[1].alone_ns, 500);
	assert_int_equal(s->copies[1].tiny, 1);
	assert_int_equal(s->copies[2].direction, GPU_MEMSET);
	assert_int_equal(s->missing[GPU_NO_CALL], 6);
	assert_int_equal(s->streams[0].idle_ns, 200 + 1000);
	assert_int_equal(s->streams[1].idle_ns, 2100);
	gpu_summary__put(s);
}

static void t_idle(void **state)
{
	const struct gpu_idle *i;
	const struct gpu_device *d;
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 1000, 1100);
	gr__kernel(&list, SIGNAL, 1, 1200, 2000);
	gr__call(&list, SYNC, 2, 1150, 2300);
	gr__call(&list, MALLOC, 3, 2520, 2580);
	gr__call(&list, LAUNCH, 4, 3600, 3700);
	gr__kernel(&list, SIGNAL, 4, 3800, 4000);
	gr__span(&list, DECIDE, 0, 1, 2350, 2500);
	gr__span(&list, TICK, 0, 0, 900, 2600);
	gr__span(&list, FEED, 0, 0, 2600, 3500);
	gr__span(&list, DECIDE, 1, 0, 2000, 3600); /* of another thread */
	s = run();
	check_sums(s);
	d = &s->devices[0];
	assert_int_equal(d->idle_ns, 1800);
	assert_int_equal(d->nidle, 7);
	i = idle_of(d, GPU_IDLE_SYNC, "cudaDeviceSynchronize");
	assert_int_equal(i->total_ns, 300);
	i = idle_of(d, GPU_IDLE_HOST, "strategy:tick");
	assert_int_equal(i->total_ns, 50 + 20 + 20);
	assert_int_equal(i->gaps, 1);
	assert_int_equal(idle_of(d, GPU_IDLE_HOST, "strategy:decide")->total_ns, 150);
	assert_int_equal(idle_of(d, GPU_IDLE_HOST, "feed:read")->total_ns, 900);
	assert_int_equal(idle_of(d, GPU_IDLE_HOST, NULL)->total_ns, 100);
	assert_int_equal(idle_of(d, GPU_IDLE_CALL, "cudaMalloc")->total_ns, 60);
	assert_int_equal(idle_of(d, GPU_IDLE_LAUNCH, NULL)->total_ns, 200);
	assert_string_equal(advice_of(s, GPU_ADVICE_HOST_LATE)->name, "feed:read");
	assert_int_equal(advice_of(s, GPU_ADVICE_HOST_LATE)->of_ns, 2800);
	assert_int_equal(advice_of(s, GPU_ADVICE_SYNC_GAP)->cost_ns, 300);
	gpu_summary__put(s);
}

static void t_dependency(void **state)
{
	const struct gpu_device *d;
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 4000, 4010);
	gr__kernel(&list, SIGNAL, 1, 4100, 5500);
	list.stream = 8;
	gr__call(&list, WAIT_EVENT, 2, 5000, 5010);
	gr__sync(&list, 2, 2, 5002, 5008);
	gr__call(&list, LAUNCH, 3, 5020, 5030);
	gr__kernel(&list, SIGNAL, 3, 6000, 6200);
	gr__call(&list, LAUNCH, 4, 6100, 6110); /* no wait of its own */
	gr__kernel(&list, SIGNAL, 4, 6500, 6600);
	s = run();
	check_sums(s);
	d = &s->devices[0];
	assert_int_equal(d->nidle, 2);
	assert_int_equal(idle_of(d, GPU_IDLE_DEPENDENCY, NULL)->total_ns, 500);
	assert_int_equal(idle_of(d, GPU_IDLE_LAUNCH, NULL)->total_ns, 300);
	gpu_summary__put(s);
}

static void t_missing(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__kernel(&list, SIGNAL, 1, 1000, 2000);
	gr__call(&list, LAUNCH, 2, 3000, 3100);
	gr__call(&list, COPY, 3, 4000, 4100);
	gr__call(&list, LAUNCH, 4, 5000, 5100);
	list.items[list.n - 1].rec.call.error = 700; /* it failed: nothing is missing */
	gr__call(&list, MALLOC, 5, 6000, 6100);
	gr__sync(&list, 4, 77, 6200, 6300);
	gr__put(&list, 30, 64);
	gr__put(&list, QBPF_RING_DROPPED, sizeof(struct qbpf_ring_dropped))->dropped.count = 12;
	s = run();
	assert_int_equal(s->missing[GPU_NO_CALL], 1);
	assert_int_equal(s->missing[GPU_NO_ACTIVITY], 2);
	assert_int_equal(s->missing[GPU_NO_SYNC_CALL], 1);
	assert_int_equal(s->unknown_records, 1);
	assert_int_equal(s->dropped, 12);
	assert_int_equal(s->records, 8);
	assert_int_equal(advice_of(s, GPU_ADVICE_FAILED)->count, 1);
	assert_int_equal(advice_of(s, GPU_ADVICE_FAILED)->error, 700);
	gpu_summary__put(s);
}

/* Ids come again: after 2^32 calls, and in the next process. */
static void t_again(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 100);
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 20000);
	gr__call(&list, LAUNCH, 5, 1000, 1100);
	gr__kernel(&list, SIGNAL, 5, 1200, 1300);
	gr__call(&list, LAUNCH, UINT32_MAX, 8000, 8100);
	gr__kernel(&list, SIGNAL, UINT32_MAX, 8110, 8120);
	gr__call(&list, LAUNCH, 5, 9000, 9100);
	gr__kernel(&list, SIGNAL, 5, 9250, 9300);
	gr__kernel(&list, SIGNAL, 1, 9400,
		   9500); /* its call was lost; one of the next process has its id */
	gr__kernel(&list, SIGNAL, 5, 20500, 20600); /* the other way round */
	gr__call(&list, LAUNCH, 1, 21000, 21100);
	gr__kernel(&list, SIGNAL, 1, 21500, 21600);
	s = run();
	check_sums(s);
	assert_int_equal(s->kernels[0].time.count, 6);
	assert_int_equal(s->kernels[0].delay.count, 4);
	assert_int_equal(s->kernels[0].delay.total_ns, 200 + 110 + 250 + 500);
	assert_int_equal(s->kernels[0].first_calls, 2); /* once in each process */
	assert_int_equal(s->missing[GPU_NO_CALL], 2);
	assert_int_equal(s->missing[GPU_NO_ACTIVITY], 0);
	assert_int_equal(s->untimed, 0);
	assert_int_equal(s->nstreams, 2);
	assert_int_equal(s->streams[0].generation, 1);
	assert_int_equal(s->streams[0].kernels, 4);
	assert_int_equal(s->streams[1].generation, 2);
	gpu_summary__put(s);
}

static void t_graph(void **state)
{
	const struct gpu_stream *st;
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, GRAPH_LAUNCH, 9, 1000, 1100);
	gr__kernel(&list, SIGNAL, 9, 1500, 1600)->graph_node = 1;
	gr__kernel(&list, RISK, 9, 1700, 1800)->graph_node = 2;
	gr__kernel(&list, RISK, 9, 1900, 2000)->graph_node = 3;
	gr__call(&list, GRAPH_LAUNCH, 10, 2500, 2600);
	gr__graph(&list, 3, 10, 3000, 3500);
	s = run();
	check_sums(s);
	st = &s->streams[0];
	assert_int_equal(s->missing[GPU_NO_CALL], 0);
	assert_int_equal(s->nkernels, 3);
	assert_string_equal(s->kernels[0].name, "graph 3");
	assert_true(s->kernels[0].graph);
	assert_int_equal(s->kernels[0].delay.total_ns, 500);
	assert_string_equal(s->kernels[1].name, "risk(float*)");
	assert_int_equal(s->kernels[1].time.count, 2);
	assert_int_equal(s->kernels[1].delay.count, 0); /* only the first one was waited for */
	assert_int_equal(s->kernels[2].delay.total_ns, 500);
	assert_int_equal(st->kernels, 4);
	assert_int_equal(st->delay.count, 2);
	assert_int_equal(st->queue_max, 1);
	assert_int_equal(st->queue_ns, 1000 + 1000);
	assert_int_equal(st->idle_ns, 100 + 100 + 1000);
	/* Between nodes nobody on the host is late. */
	assert_int_equal(idle_of(&s->devices[0], GPU_IDLE_LAUNCH, NULL)->total_ns, 200 + 500);
	assert_int_equal(idle_of(&s->devices[0], GPU_IDLE_HOST, NULL)->total_ns, 500);
	gpu_summary__put(s);
}

/* Equal ids of streams on two devices and in two processes; stream 0; equal correlation ids. */
static void t_places(void **state)
{
	struct gpu_summary *s;

	(void)state;
	list.stream = 0;
	for (uint32_t i = 0; i < 3; i++) {
		list.ring = i == 2;
		list.device = i == 1;
		list.context = i == 1 ? 2 : 1;
		list.tid = 100 + i;
		gr__call(&list, LAUNCH, 1 + (i == 1), 1000 + i, 1100 + i);
		gr__kernel(&list, SIGNAL, 1 + (i == 1), 2000 + 100 * i, 2300 + 200 * i);
	}
	s = run();
	check_sums(s);
	assert_int_equal(s->ndevices, 3);
	assert_int_equal(s->nstreams, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(s->devices[i].ring, i == 2);
		assert_int_equal(s->devices[i].device, i == 1);
		assert_int_equal(s->devices[i].busy_ns, 300 + 100 * i);
		assert_int_equal(s->streams[i].stream, 0);
		assert_int_equal(s->streams[i].delay.total_ns, 1000 + 99 * i);
	}
	assert_int_equal(s->kernels[0].time.count, 3);
	assert_int_equal(s->kernels[0].first_calls, 2);
	gpu_summary__put(s);
}

/* Whose a device is: by the ring's START record, unless the ring went from one process to another. */
static void t_processes(void **state)
{
	static const uint32_t tgids[] = {71, 72, 73, 74}, rings[] = {0, 1, 2, 2};
	struct gpu_summary *s;
	struct gpu *g = begin(0);

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		list.ring = rings[i];
		gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 1000 * i + 1);
		list.items[list.n - 1].rec.start.tgid = tgids[i];
		gr__call(&list, LAUNCH, 1 + i, 1000 * i + 100, 1000 * i + 200);
		gr__kernel(&list, SIGNAL, 1 + i, 1000 * i + 300, 1000 * i + 400);
	}
	assert_int_equal(gpu__process(g, 71, "old"), 0);
	assert_int_equal(gpu__process(g, 71, "first"), 0);
	assert_int_equal(gpu__process(g, 73, "third"), 0);
	put_all(g);
	assert_int_equal(gpu__finish(g), 0);
	s = gpu__summary(g);
	gpu__free(g);
	assert_non_null(s);
	assert_int_equal(s->ndevices, 3);
	assert_true(gpu_summary__shared(s));
	assert_int_equal(s->devices[0].tgid, 71);
	assert_string_equal(s->devices[0].comm, "first");
	assert_int_equal(s->devices[1].tgid, 72);
	assert_null(s->devices[1].comm);
	assert_int_equal(s->devices[2].tgid, 0);
	assert_null(s->devices[2].comm);
	assert_int_equal(s->streams[0].tgid, 71);
	assert_int_equal(s->streams[1].tgid, 72);
	gpu_summary__put(s);
}

/* Launches and kernels of the same lengths, one every 10 us. */
static void kernels_at(uint32_t first, uint32_t n, uint32_t name, uint64_t ns)
{
	for (uint32_t i = first; i < first + n; i++) {
		gr__call(&list, LAUNCH, i, 10000 * i, 10000 * i + 100);
		gr__kernel(&list, name, i, 10000 * i + 300, 10000 * i + 300 + ns);
	}
}

static struct gpu_summary *more(struct gpu *g, uint64_t to_ns)
{
	put_all(g);
	list.n = 0;
	assert_int_equal(gpu__settle(g, to_ns), 0);
	return gpu__summary(g);
}

/* What is new since an earlier summary: rows, sums, and of a distribution what is a new record. */
static void t_since(void **state)
{
	struct gpu *g = begin(0);
	struct gpu_summary *then, *now, *s, *none;
	uint64_t before;

	(void)state;
	kernels_at(1, 5, SIGNAL, 1000);
	gr__call(&list, COPY_ASYNC, 60, 60000, 60100);
	gr__copy(&list, 1, 4096, 60, 60200, 60700);
	then = more(g, 90000);
	kernels_at(10, 3, SIGNAL, 4000);
	kernels_at(13, 2, RISK, 500);
	now = more(g, 200000);
	gpu__free(g);
	assert_int_equal(now->kernels[0].time.count, 8);
	before = now->devices[0].to_ns - now->devices[0].from_ns;

	s = gpu_summary__since(now, then);
	assert_non_null(s);
	assert_int_equal(s->activities, 5);
	assert_int_equal(s->nkernels, 2);
	assert_int_equal(s->kernels[0].time.count, 3);
	assert_int_equal(s->kernels[0].time.total_ns, 12000);
	assert_int_equal(s->kernels[0].time.max_ns, 4000);
	assert_true(s->kernels[0].time.min_ns == GPU_UNKNOWN);
	assert_true(s->kernels[0].time.p50_ns == GPU_UNKNOWN);
	assert_int_equal(s->kernels[0].call.count, 3);
	assert_int_equal(s->kernels[0].first_calls, 0);
	assert_int_equal(s->kernels[1].time.count, 2); /* nothing was before */
	assert_int_equal(s->kernels[1].time.min_ns, 500);
	assert_int_equal(s->kernels[1].time.max_ns, 500);
	assert_int_equal(s->kernels[1].first_calls, 1);
	assert_int_equal(s->ncopies, 0);
	assert_int_equal(s->nstreams, 1);
	assert_int_equal(s->streams[0].kernels, 5);
	assert_int_equal(s->streams[0].copies, 0);
	assert_int_equal(s->devices[0].from_ns, then->devices[0].to_ns);
	assert_int_equal(s->devices[0].busy_ns, 13000);
	assert_int_equal(s->devices[0].busy_ns + s->devices[0].idle_ns,
			 s->devices[0].to_ns - s->devices[0].from_ns);
	assert_int_equal(s->ncalls, 1);
	assert_int_equal(s->calls[0].time.count, 5);

	/* Since now nothing has happened, and what it was made of is as it was. */
	none = gpu_summary__since(now, now);
	assert_int_equal(none->nkernels + none->ncopies + none->nstreams + none->ncalls, 0);
	assert_int_equal(none->nadvice, 0);
	assert_int_equal(none->ndevices, 1);
	assert_int_equal(none->devices[0].activities, 0);
	assert_int_equal(now->kernels[0].time.count, 8);
	assert_int_equal(now->devices[0].to_ns - now->devices[0].from_ns, before);
	gpu_summary__put(none);
	gpu_summary__put(s);
	gpu_summary__put(now);
	gpu_summary__put(then);
}

static void t_untimed(void **state)
{
	const uint64_t ms = 1000000, far = 1ull << 62;
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 10 * ms, 10 * ms + 100);
	gr__kernel(&list, SIGNAL, 1, 0, 11 * ms);
	gr__call(&list, LAUNCH, 2, 10 * ms + 200, 10 * ms + 300);
	gr__kernel(&list, SIGNAL, 2, 12 * ms, 0);
	gr__call(&list, LAUNCH, 3, 10 * ms + 400, 10 * ms + 500);
	gr__kernel(&list, SIGNAL, 3, 12 * ms, 11 * ms);
	gr__call(&list, LAUNCH, 4, 10 * ms + 600, 10 * ms + 700);
	gr__kernel(&list, SIGNAL, 4, far, far + 1);
	gr__call(&list, LAUNCH, 5, 10 * ms + 800,
		 10 * ms + 900); /* begins before it was asked for */
	gr__kernel(&list, SIGNAL, 5, 8 * ms, 9 * ms);
	gr__call(&list, COPY_ASYNC, 6, 11 * ms, 11 * ms + 50);
	gr__copy(&list, 1, 64, 6, 11 * ms + 100, 15 * ms);
	gr__call(&list, STREAM_SYNC, 7, 11 * ms + 60,
		 12 * ms); /* waits for copy 6, and returns before */
	gr__sync(&list, 3, 7, 11 * ms + 70, 12 * ms);
	gr__call(&list, LAUNCH, 8, 13 * ms, 13 * ms + 100);
	gr__kernel(&list, SIGNAL, 8, 13 * ms - 400, 14 * ms); /* hardly before: the clock errs */
	s = run();
	check_sums(s);
	assert_int_equal(s->activities, 7);
	assert_int_equal(s->untimed, 6);
	assert_int_equal(s->kernels[0].untimed, 5);
	assert_int_equal(s->kernels[0].time.count, 1);
	assert_int_equal(s->kernels[0].delay.count, 0);
	assert_int_equal(s->copies[0].untimed, 1);
	assert_int_equal(s->copies[0].time.count, 0);
	assert_int_equal(s->devices[0].early, 1);
	assert_true(s->devices[0].error_high_ns == -400);
	assert_int_equal(s->devices[0].activities, 1);
	assert_int_equal(s->missing[GPU_NO_ACTIVITY] + s->missing[GPU_NO_CALL], 0);
	gpu_summary__put(s);
}

static void t_causality(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 1000, 1100);
	gr__kernel(&list, SIGNAL, 1, 1040, 2400);
	gr__call(&list, STREAM_SYNC, 2, 1200, 2500);
	gr__sync(&list, 3, 2, 1210, 2490);
	gr__call(&list, LAUNCH, 3, 3000, 3100); /* after that wait */
	gr__kernel(&list, SIGNAL, 3, 3500, 9000);
	s = run();
	assert_true(s->devices[0].error_high_ns == 40);
	assert_true(s->devices[0].error_low_ns == -100);
	assert_int_equal(s->clock_error_ns, 100);
	assert_false(s->converted);
	gpu_summary__put(s);
	/* A wait for the whole context, and a synchronous copy, tell as well. */
	gr__call(&list, SYNC, 4, 3600, 9030);
	gr__sync(&list, 4, 4, 3600, 9020);
	gr__call(&list, COPY, 5, 9100, 9700);
	gr__copy(&list, 2, 64, 5, 9300, 9690)->flags = 0;
	s = run();
	assert_true(s->devices[0].error_low_ns == -10);
	assert_int_equal(s->clock_error_ns, 40);
	assert_int_equal(s->clock_change_ns, 0);
	gpu_summary__put(s);
	/* Ahead by 70 at least now, and by 40 at most before: there is no bound. */
	gr__call(&list, LAUNCH, 6, 9800, 9850);
	gr__kernel(&list, SIGNAL, 6, 9900, 10070);
	gr__call(&list, SYNC, 7, 9860, 10000);
	gr__sync(&list, 4, 7, 9870, 9990);
	s = run();
	assert_true(s->clock_error_ns == GPU_UNKNOWN);
	assert_int_equal(s->clock_change_ns, 70 - 40);
	gpu_summary__put(s);
}

static void t_drift(void **state)
{
	const uint64_t s1 = 1000000000, real = 1700000000000000000ull;
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_CUPTI, s1 / 2);
	/* CUPTI's clock runs 1000 ns a second faster. */
	gr__clock(&list, s1, real, 20);
	gr__clock(&list, 2 * s1, real + s1 + 1000, 30);
	gr__kernel(&list, SIGNAL, 1, real + s1 / 2 + 500, real + s1 / 2 + 500 + 100000);
	gr__kernel(&list, SIGNAL, 2, real + 2 * s1 + 2000, real + 2 * s1 + 2000);
	gr__kernel(&list, SIGNAL, 3, real - s1 / 2 - 500, real - s1 / 2 - 500);
	list.device = 1;
	gr__kernel(&list, SIGNAL, 4, real + s1 / 2 + 500, real + s1 / 2 + 500 + 100000);
	s = run();
	check_sums(s);
	assert_true(s->converted);
	assert_int_equal(s->convert_error_ns, 30 + 1000);
	assert_int_equal(s->devices[0].from_ns, s1 / 2); /* before the first point */
	assert_int_equal(s->devices[0].to_ns, 3 * s1);	 /* behind the last */
	assert_int_equal(s->devices[1].from_ns, s1 + s1 / 2);
	assert_int_equal(s->devices[1].busy_ns, 100000);
	gpu_summary__put(s);
	/* The same on CLOCK_MONOTONIC: the points are not asked. */
	reset(NULL);
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, s1 / 2);
	gr__clock(&list, s1, real, 20);
	gr__clock(&list, 2 * s1, real + s1 + 1000, 30);
	gr__kernel(&list, SIGNAL, 1, s1 + 5, s1 + 10);
	s = run();
	assert_false(s->converted);
	assert_int_equal(s->devices[0].from_ns, s1 + 5);
	gpu_summary__put(s);
}

static void t_sync_copy(void **state)
{
	const struct gpu_advice *a;
	struct gpu_summary *s;
	struct qbpf_ring_copy *c;

	(void)state;
	gr__call(&list, COPY, 1, 1000, 2000);
	gr__driver_call(&list, CU_COPY, 1, 1010, 1990);
	c = gr__copy(&list, 1, 1 << 20, 1, 1100, 1900);
	c->flags = 0;
	c->src_kind = 1;
	gr__call(&list, LAUNCH, 2, 2050, 2100);
	gr__kernel(&list, SIGNAL, 2, 2150, 2650);
	gr__call(&list, COPY_ASYNC, 3, 2200, 2250); /* pinned, beside the kernel */
	list.stream = 9;
	gr__copy(&list, 1, 1 << 20, 3, 2300, 2500);
	s = run();
	check_sums(s);
	assert_int_equal(s->ncopies, 2);
	assert_true(s->copies[0].synchronous && s->copies[0].pageable);
	assert_int_equal(s->copies[0].call.total_ns, 1000);
	assert_int_equal(s->copies[0].alone_ns, 800);
	assert_int_equal(s->copies[1].alone_ns, 0);
	a = advice_of(s, GPU_ADVICE_SYNC_COPY);
	assert_int_equal(a->count, 1);
	assert_int_equal(a->bytes, 1 << 20);
	assert_int_equal(a->cost_ns, 1000);
	assert_int_equal(a->of_ns, 800);
	assert_int_equal(a->save_ns, 300); /* the kernel ran alone for no longer */
	a = advice_of(s, GPU_ADVICE_PAGEABLE);
	assert_int_equal(a->cost_ns, 800);
	assert_int_equal(a->save_ns, 600);
	assert_int_equal(idle_of(&s->devices[0], GPU_IDLE_SYNC, "cudaMemcpy")->total_ns, 100);
	gpu_summary__put(s);
}

static void t_many(void **state)
{
	const struct gpu_advice *a;
	struct gpu_summary *s;

	(void)state;
	for (uint32_t i = 0; i < 120; i++) {
		uint64_t at = 10000000 + 10000ull * i;

		/* The first launch takes 4 ms, each other 5 us for a kernel of 2. */
		gr__call(&list, LAUNCH, 2 * i, i ? at : at - 4000000, at + 5000);
		gr__kernel(&list, SIGNAL, 2 * i, at + 5000, at + 7000);
		gr__call(&list, COPY_ASYNC, 2 * i + 1, at + 5100, at + 5200);
		gr__copy(&list, 2, 8, 2 * i + 1, at + 7000, at + 8000);
	}
	s = run();
	check_sums(s);
	a = advice_of(s, GPU_ADVICE_LAUNCH_BOUND);
	assert_int_equal(a->count, 119);
	assert_int_equal(a->cost_ns, 119 * 5000);
	assert_int_equal(a->of_ns, 119 * 2000);
	a = advice_of(s, GPU_ADVICE_TINY);
	assert_int_equal(a->count, 120);
	assert_int_equal(a->cost_ns, 120000);
	a = advice_of(s, GPU_ADVICE_FIRST_LAUNCH);
	assert_int_equal(a->count, 1);
	assert_int_equal(a->cost_ns, 4005000);
	assert_int_equal(a->save_ns, 4000000);
	assert_int_equal(s->kernels[0].time.p99_ns, 2000);
	gpu_summary__put(s);
}

static void t_spans(void **state)
{
	const struct gpu_span *p;
	struct gpu_summary *s;

	(void)state;
	gr__span(&list, TICK, 0, 0, 1000, 5000);
	gr__span(&list, DECIDE, 0, 1, 1050, 1390);
	gr__span(&list, TICK, 0, 1, 3900, 4200); /* within itself */
	gr__span(&list, TICK, 0, 0, 6000, 7000); /* nothing of the GPU in it */
	gr__span(&list, FEED, 1, 0, 1000, 5000); /* of another thread */
	gr__call(&list, LAUNCH, 1, 1100, 1200);
	gr__driver_call(&list, CU_LAUNCH, 1, 1110, 1190);
	gr__kernel(&list, SIGNAL, 1, 1300, 2300);
	gr__call(&list, COPY_ASYNC, 2, 1250, 1300);
	gr__copy(&list, 2, 640, 2, 2300, 2500);
	gr__call(&list, SYNC, 3, 1400, 2600);
	gr__call(&list, LAUNCH, 4, 4000, 4100);
	gr__kernel(&list, RISK, 4, 4800, 5600);
	gr__call(&list, LAUNCH, 5, 4950, 5050); /* sticks out */
	gr__kernel(&list, RISK, 5, 5600, 5700);
	s = run();
	check_sums(s);
	assert_int_equal(s->nspans, 2);
	p = &s->spans[0];
	assert_string_equal(p->name, "strategy:tick");
	assert_int_equal(p->count, 1);
	assert_int_equal(p->total_ns, 4000);
	assert_int_equal(p->launch_ns, 100 + 50 + 100);
	assert_int_equal(p->sync_ns, 1200);
	assert_int_equal(p->own_ns, 2550);
	assert_int_equal(p->busy_ns, 1200 + 200);
	assert_int_equal(p->after_ns, 600);
	assert_int_equal(p->launches, 2);
	assert_int_equal(p->copies, 1);
	assert_int_equal(p->copy_bytes, 640);
	assert_int_equal(p->kernel_ns, 1800);
	assert_int_equal(p->copy_ns, 200);
	assert_int_equal(p->delay.total_ns, 200 + 1050 + 800);
	p = &s->spans[1];
	assert_string_equal(p->name, "strategy:decide");
	assert_int_equal(p->launch_ns, 150);
	assert_int_equal(p->busy_ns, 90);
	assert_int_equal(p->after_ns, 1110);
	gpu_summary__put(s);
}

static void t_queue(void **state)
{
	const struct gpu_stream *st;
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 1000, 1010);
	gr__kernel(&list, SIGNAL, 1, 1200, 2000);
	gr__call(&list, LAUNCH, 2, 1100, 1110);
	gr__kernel(&list, SIGNAL, 2, 2000, 3000);
	gr__call(&list, LAUNCH, 3, 3000, 3010); /* as the last one ends: never three at once */
	gr__kernel(&list, SIGNAL, 3, 3100, 3200);
	gr__put(&list, QBPF_RING_CONTEXT, sizeof(struct qbpf_ring_context))->context =
	    (struct qbpf_ring_context){QBPF_RING_CONTEXT, sizeof(struct qbpf_ring_context), 1, 0,
				       7};
	s = run();
	check_sums(s);
	st = &s->streams[0];
	assert_true(st->null);
	assert_int_equal(st->queue_max, 2);
	assert_int_equal(st->queue_ns, 1000 + 1900 + 200);
	assert_int_equal(st->queue_found[0], 2);
	assert_int_equal(st->queue_found[1], 1);
	assert_int_equal(st->queue_found[2], 0);
	assert_int_equal(st->from_ns, 1000);
	assert_int_equal(st->to_ns, 3200);
	assert_int_equal(st->kernel_ns, 1900);
	assert_int_equal(st->idle_ns, 100);
	assert_int_equal(st->delay.p50_ns, 200);
	gpu_summary__put(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(t_nothing, reset),	cmocka_unit_test_setup(t_launch, reset),
	    cmocka_unit_test_setup(t_nested, reset),	cmocka_unit_test_setup(t_overlap, reset),
	    cmocka_unit_test_setup(t_idle, reset),	cmocka_unit_test_setup(t_dependency, reset),
	    cmocka_unit_test_setup(t_missing, reset),	cmocka_unit_test_setup(t_again, reset),
	    cmocka_unit_test_setup(t_graph, reset),	cmocka_unit_test_setup(t_places, reset),
	    cmocka_unit_test_setup(t_processes, reset), cmocka_unit_test_setup(t_since, reset),
	    cmocka_unit_test_setup(t_untimed, reset),	cmocka_unit_test_setup(t_causality, reset),
	    cmocka_unit_test_setup(t_drift, reset),	cmocka_unit_test_setup(t_sync_copy, reset),
	    cmocka_unit_test_setup(t_many, reset),	cmocka_unit_test_setup(t_spans, reset),
	    cmocka_unit_test_setup(t_queue, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

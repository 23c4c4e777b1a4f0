// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What was seen of spans but not of the GPU, or the other way round, by hand: nothing of it gets into figures
 * that put both together, and all of it is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu_put.h"
#include "model/gpu.h"

enum { LAUNCH = 1, KERNEL };
enum { TICK = 1, SETUP };

static void window(uint32_t generation, uint32_t tgid, uint32_t end, uint32_t flags, uint64_t ns)
{
	struct qbpf_ring_window *w = &gr__put(&list, QBPF_RING_WINDOW, sizeof(*w))->window;

	w->generation = generation;
	w->tgid = tgid;
	w->end = end;
	w->flags = flags;
	w->monotonic_ns = ns;
}

/* A launch of 20 ns, and its kernel, 10 ns later, of 50 ns. */
static void launch(uint32_t id, uint64_t at)
{
	gr__call(&list, LAUNCH, id, at, at + 20);
	gr__kernel(&list, KERNEL, id, at + 30, at + 80);
}

/* A tick of 200 ns with a launch in it. */
static void tick(uint32_t id, uint64_t at)
{
	gr__span(&list, TICK, 0, 0, at, at + 200);
	launch(id, at + 50);
}

static struct gpu_summary *run_settled(uint64_t from_ns, uint64_t to_ns, uint64_t settle_ns)
{
	static const struct gpu_opts o;
	struct gpu *g = gpu__new(&o);
	struct gpu_summary *s;

	assert_non_null(g);
	assert_int_equal(gpu__name(g, LAUNCH, "cudaLaunchKernel"), 0);
	assert_int_equal(gpu__name(g, KERNEL, "_Z4riskPf"), 0);
	assert_int_equal(gpu__span_name(g, TICK, "strategy:tick"), 0);
	assert_int_equal(gpu__span_name(g, SETUP, "strategy:setup"), 0);
	assert_int_equal(gpu__thread(g, 0, 7, 100), 0);
	assert_int_equal(gpu__thread(g, 1, 8, 200), 0);
	if (to_ns)
		gpu__probes(g, from_ns, to_ns);
	put_all(g);
	if (settle_ns)
		assert_int_equal(gpu__settle(g, settle_ns), 0);
	assert_int_equal(gpu__finish(g), 0);
	s = gpu__summary(g);
	assert_non_null(s);
	gpu__free(g);
	return s;
}

static struct gpu_summary *run(uint64_t from_ns, uint64_t to_ns)
{
	return run_settled(from_ns, to_ns, 0);
}

static void check_outside(const uint64_t got[GPU_OUTSIDE], uint64_t before, uint64_t after,
			  uint64_t partly)
{
	assert_int_equal(got[GPU_BEFORE_AGENT], before);
	assert_int_equal(got[GPU_AFTER_AGENT], after);
	assert_int_equal(got[GPU_PARTLY], partly);
}

static void check_launches(const struct gpu_summary *s, uint64_t in, uint64_t none, uint64_t before,
			   uint64_t after)
{
	assert_int_equal(s->launches[GPU_IN_SPAN], in);
	assert_int_equal(s->launches[GPU_IN_NO_SPAN], none);
	assert_int_equal(s->launches[GPU_BEFORE_PROBES], before);
	assert_int_equal(s->launches[GPU_AFTER_PROBES], after);
}

/* Five ticks that the agent saw as a whole, and others around: of those only that they were. */
static void put_life(uint32_t end)
{
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 9000);
	window(1, 7, 0, 0, 10000);
	gr__span(&list, TICK, 0, 0, 9000, 9200);
	gr__span(&list, TICK, 0, 0, 9799, 9999);
	gr__span(&list, TICK, 0, 0, 9800, 10000); /* ends as the window begins: before it */
	gr__span(&list, TICK, 0, 0, 9900, 10100);
	launch(900, 10050); /* recorded, in a tick that was not seen as a whole */
	for (uint32_t i = 0; i < 5; i++)
		tick(1 + i, 10100 + i * 1000);
	window(1, 7, end, 0, 15000);
	gr__span(&list, TICK, 0, 0, 14800, 15000);
	launch(901, 14850);
	gr__span(&list, TICK, 0, 0, 14999, 15199);
	gr__span(&list, TICK, 0, 0, 15200, 15400);
	gr__span(&list, TICK, 0, 0, 16000, 16200);
}

static void t_spans_outside(void **state)
{
	static const uint32_t ends[] = {QBPF_RING_ASKED, QBPF_RING_EXIT, QBPF_RING_FATAL,
					QBPF_RING_SUDDEN};
	struct gpu_summary *s;

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		reset(NULL);
		put_life(ends[i]);
		s = run_settled(5000, 20000, i % 2 ? 12500 : 0);
		assert_int_equal(s->nspans, 1);
		assert_int_equal(s->spans[0].count, 6);
		assert_int_equal(s->spans[0].total_ns, 6 * 200);
		assert_int_equal(s->spans[0].launches, 6);
		check_outside(s->spans[0].outside, 3, 2, 2);
		check_outside(s->outside, 3, 2, 2);
		check_launches(s, 7, 0, 0, 0);
		assert_int_equal(s->nagents, 1);
		assert_int_equal(s->agents[0].from_ns, 10000);
		assert_int_equal(s->agents[0].to_ns, 15000);
		assert_int_equal(s->agents[0].end, ends[i]);
		assert_false(s->agents[0].from_start);
		gpu_summary__put(s);
	}
}

/* A program that was started with the agent in: before it used CUDA there was nothing to be seen. */
static void t_from_the_start(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 9000);
	gr__span(&list, TICK, 0, 0, 1000, 1200);
	gr__span(&list, SETUP, 0, 0, 8000, 11000); /* CUDA comes in the middle of it */
	launch(1, 10500);
	window(1, 7, 0, QBPF_RING_FROM_START, 10000);
	tick(2, 12000);
	window(1, 7, QBPF_RING_EXIT, 0, 13000);
	s = run(500, 20000);
	check_outside(s->outside, 0, 0, 0);
	assert_int_equal(s->nspans, 2);
	assert_int_equal(s->spans[0].count, 1);
	assert_int_equal(s->spans[0].launches, 1);
	assert_int_equal(s->spans[1].count, 1);
	check_launches(s, 2, 0, 0, 0);
	assert_true(s->agents[0].from_start);
	gpu_summary__put(s);
}

/* Two processes in a row in one ring, and one with no agent, of which nothing is known. */
static void t_by_process(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 900);
	window(1, 7, 0, QBPF_RING_FROM_START, 1000);
	tick(1, 1100);
	window(1, 7, QBPF_RING_EXIT, 0, 2000);
	window(2, 7, 0, QBPF_RING_FROM_START, 3000); /* it called exec */
	gr__span(&list, TICK, 0, 0, 2400, 2600);     /* between the two */
	gr__span(&list, SETUP, 0, 0, 1900, 3200);
	tick(2, 3300);
	gr__span(&list, TICK, 1, 0, 100, 300);
	s = run(1, 20000);
	assert_int_equal(s->nspans, 1);
	assert_int_equal(s->spans[0].count, 2);
	check_outside(s->spans[0].outside, 0, 1, 0);
	check_outside(s->outside, 0, 1, 1);
	assert_int_equal(s->nagents, 2);
	assert_int_equal(s->agents[1].generation, 2);
	assert_int_equal(s->agents[1].end, 0);
	assert_true(s->agents[1].to_ns == GPU_UNKNOWN);
	gpu_summary__put(s);
}

/* Whoever found the agent gone does not know better than the agent, in either order. */
static void t_gone(void **state)
{
	struct gpu_summary *s;

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		reset(NULL);
		gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 900);
		window(1, 7, 0, 0, 1000);
		if (turn)
			window(1, 7, QBPF_RING_SUDDEN, 0, 1500);
		window(1, 7, QBPF_RING_EXIT, 0, 2000);
		if (!turn)
			window(1, 7, QBPF_RING_SUDDEN, 0, 1500);
		tick(1, 1600);
		s = run(500, 5000);
		assert_int_equal(s->agents[0].end, QBPF_RING_EXIT);
		assert_int_equal(s->agents[0].to_ns, 2000);
		assert_int_equal(s->spans[0].count, 1);
		gpu_summary__put(s);
	}
}

/* A recording of a qbpf that knew nothing of windows. */
static void t_not_told(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 900);
	gr__span(&list, TICK, 0, 0, 100, 300);
	tick(1, 1600);
	launch(2, 3000);
	s = run(0, 0);
	assert_int_equal(s->nagents, 0);
	check_outside(s->outside, 0, 0, 0);
	check_launches(s, 1, 1, 0, 0);
	assert_int_equal(s->spans[0].count, 1);
	gpu_summary__put(s);
}

static void t_launches_outside(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 900);
	window(1, 7, 0, 0, 1000);
	launch(1, 1100); /* before the probes */
	launch(2, 1999);
	launch(3, 2000);
	launch(4, 2100); /* in no span, though one would have been seen */
	tick(5, 3000);
	tick(6, 4800); /* open as counting ends, and counted all the same: it was seen */
	launch(7, 5001);
	launch(8, 5100);
	gr__driver_call(&list, LAUNCH, 8, 5101, 5110); /* a part of the call before */
	window(1, 7, QBPF_RING_ASKED, 0, 6000);
	for (uint64_t settle = 0; settle < 6000; settle += 1500) {
		s = run_settled(2000, 4900, settle);
		check_launches(s, 2, 2, 2, 2);
		assert_int_equal(s->kernels[0].time.count, 8);
		assert_int_equal(s->spans[0].launches, 2);
		assert_int_equal(s->probes_from_ns, 2000);
		assert_int_equal(s->probes_to_ns, 4900);
		gpu_summary__put(s);
	}
}

static uint64_t idle_of(const struct gpu_summary *s, enum gpu_cause cause, const char *name)
{
	for (size_t i = 0; i < s->devices[0].nidle; i++) {
		const struct gpu_idle *v = &s->devices[0].idle[i];

		if (v->cause == cause && !name == !v->name && (!name || !strcmp(v->name, name)))
			return v->total_ns;
	}
	return 0;
}

/* "In no traced span" is said of the time only in which one would have been seen. */
static void t_idle_outside(void **state)
{
	struct gpu_summary *s;

	(void)state;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 900);
	window(1, 7, 0, 0, 900);
	launch(1, 1000); /* the device is busy to 1080 */
	tick(2, 3000);	 /* a launch at 3050: busy from 3080 to 3130 */
	launch(3, 6000); /* 6030 .. 6080 */
	s = run(2000, 5000);
	assert_int_equal(idle_of(s, GPU_IDLE_HOST, "strategy:tick"), 50 + 70);
	assert_int_equal(idle_of(s, GPU_IDLE_HOST, NULL), 1000 + 1800);
	assert_int_equal(idle_of(s, GPU_IDLE_UNKNOWN, NULL), 920 + 1000);
	assert_int_equal(idle_of(s, GPU_IDLE_LAUNCH, NULL), 30 + 30);
	gpu_summary__put(s);
}

/* The first launch that an agent sees that came later may be a warm one. */
static void t_first_seen(void **state)
{
	struct gpu_summary *s;

	(void)state;
	for (int late = 0; late < 2; late++) {
		reset(NULL);
		gr__start(&list, late ? QBPF_RING_CLOCK_CUPTI : QBPF_RING_CLOCK_MONOTONIC, 900);
		if (late) {
			gr__clock(&list, 900, 900, 1);
			gr__clock(&list, 9000, 9000, 1);
		}
		gr__call(&list, LAUNCH, 1, 1000, 1400);
		gr__kernel(&list, KERNEL, 1, 1450, 1500);
		launch(2, 2000);
		launch(3, 3000);
		s = run(500, 5000);
		assert_int_equal(s->kernels[0].first_calls, late ? 0 : 1);
		assert_int_equal(s->kernels[0].first_call_ns, late ? 0 : 400);
		assert_int_equal(s->kernels[0].seen_calls, late ? 1 : 0);
		assert_int_equal(s->kernels[0].seen_call_ns, late ? 400 : 0);
		assert_int_equal(s->kernels[0].call.count, 2);
		for (size_t i = 0; i < s->nadvice; i++)
			assert_true(s->advice[i].kind != GPU_ADVICE_FIRST_LAUNCH);
		gpu_summary__put(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(t_spans_outside, reset),
	    cmocka_unit_test_setup(t_from_the_start, reset),
	    cmocka_unit_test_setup(t_by_process, reset),
	    cmocka_unit_test_setup(t_gone, reset),
	    cmocka_unit_test_setup(t_not_told, reset),
	    cmocka_unit_test_setup(t_launches_outside, reset),
	    cmocka_unit_test_setup(t_idle_outside, reset),
	    cmocka_unit_test_setup(t_first_seen, reset),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

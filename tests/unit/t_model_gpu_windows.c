// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a GPU did in some windows of time: what belongs to one, what gives way, who asked for what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gpu_put.h"
#include "model/gpu_windows.h"

enum { LAUNCH = 1, SYNC, SIGNAL, NAMES };
enum { TICK = 1 };

static const char *const names[NAMES] = {"", "cudaLaunchKernel", "cudaStreamSynchronize",
					 "_Z6signalPf"};
static struct gpu_summary *summary;

/* The list, through a model that shows it to w. max_bytes: 0: settled at the end alone. */
static void run(struct gpu_windows *w, size_t max_bytes)
{
	const struct gpu_opts o = {.max_bytes = max_bytes, .visitor = gpu_windows__visitor(w)};
	struct gpu *g = gpu__new(&o);

	assert_non_null(g);
	for (uint32_t i = 1; i < NAMES; i++)
		assert_int_equal(gpu__name(g, i, names[i]), 0);
	assert_int_equal(gpu__span_name(g, TICK, "strategy:tick"), 0);
	assert_int_equal(gpu__thread(g, 0, 7, 100), 0);
	assert_int_equal(gpu__thread(g, 1, 7, 101), 0);
	put_all(g);
	assert_int_equal(gpu__finish(g), 0);
	assert_int_equal(gpu_windows__finish(w), 0);
	summary = gpu__summary(g);
	assert_non_null(summary);
	gpu__free(g);
}

static void done(struct gpu_windows *w)
{
	gpu_windows__free(w);
	gpu_summary__put(summary);
}

/* What overlaps the window, and what its thread asked for in it; ends touch. */
static void t_belongs(void **state)
{
	struct gpu_windows *w = gpu_windows__new(100);
	const struct gpu_window *v;

	(void)state;
	assert_int_equal(gpu_windows__add(w, 1000, 2000, 7, 100), 0);
	assert_int_equal(gpu_windows__add(w, 5000, 6000, 7, 101), 0);
	gr__call(&list, LAUNCH, 1, 100, 200);
	gr__kernel(&list, SIGNAL, 1, 300, 999); /* before it */
	gr__call(&list, LAUNCH, 2, 210, 300);
	gr__kernel(&list, SIGNAL, 2, 900, 1000); /* into it, asked for earlier */
	gr__call(&list, LAUNCH, 3, 1500, 1600);
	gr__kernel(&list, SIGNAL, 3, 3000, 4000); /* behind it, asked for in it */
	list.tid = 101;
	gr__call(&list, LAUNCH, 4, 1700, 1800);
	gr__kernel(&list, SIGNAL, 4, 1900, 2900); /* another thread's */
	gr__call(&list, LAUNCH, 5, 1900, 1950);
	gr__kernel(&list, SIGNAL, 5, 4100, 4200); /* another thread's, behind it */
	run(w, 0);
	assert_int_equal(gpu_windows__count(w), 2);
	v = gpu_windows__get(w, 0);
	assert_int_equal(v->nacts, 3);
	assert_int_equal(v->acts[0].correlation, 2);
	assert_false(v->acts[0].own);
	assert_int_equal(v->acts[0].asked_ns, 210);
	assert_int_equal(v->acts[0].call, GPU_WINDOW_NONE);
	assert_int_equal(v->acts[1].correlation, 4);
	assert_false(v->acts[1].own);
	assert_int_equal(v->acts[2].correlation, 3);
	assert_true(v->acts[2].own);
	assert_int_equal(v->acts[2].start_ns, 3000);
	assert_int_equal(v->acts[2].grid[0], 4);
	assert_int_equal(v->acts[2].name, SIGNAL);
	assert_int_equal(v->ncalls, 1);
	assert_int_equal(v->acts[2].call, 0);
	assert_int_equal(v->calls[0].start_ns, 1500);
	assert_int_equal(v->calls[0].name, LAUNCH);
	assert_int_equal(v->acts_left_out, 0);
	v = gpu_windows__get(w, 1);
	assert_int_equal(v->nacts + v->ncalls + v->nidle, 0);
	done(w);
}

/* A call and all that it made the GPU do; a wait; what has no possible times. */
static void t_calls(void **state)
{
	struct gpu_windows *w = gpu_windows__new(100);
	const struct gpu_window *v;

	(void)state;
	assert_int_equal(gpu_windows__add(w, 1000, 9000, 7, 100), 0);
	gr__call(&list, LAUNCH, 1, 1100, 1200);
	gr__kernel(&list, SIGNAL, 1, 1300, 2000);
	gr__kernel(&list, SIGNAL, 1, 1500, 2500);
	gr__kernel(&list, SIGNAL, 1, 2600, 2600);
	gr__copy(&list, 1, 4096, 1, 2700, 2800);
	gr__call(&list, LAUNCH, 2, 3000, 3100);
	gr__kernel(&list, SIGNAL, 2, 0, 0);
	gr__call(&list, SYNC, 3, 3200, 4000);
	run(w, 0);
	v = gpu_windows__get(w, 0);
	assert_int_equal(v->nacts, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(v->acts[i].call, 0);
	assert_int_equal(v->acts[3].type, QBPF_RING_COPY);
	assert_int_equal(v->acts[3].direction, GPU_TO_DEVICE);
	assert_int_equal(v->acts[3].bytes, 4096);
	assert_int_equal(v->ncalls, 3);
	assert_false(v->calls[0].waits);
	assert_true(v->calls[2].waits);
	assert_int_equal(v->untimed, 1);
	done(w);
}

/* The longest stay, whatever comes first; what others asked for takes no place of its own. */
static void t_most(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct gpu_windows *w = gpu_windows__new(10);
		const struct gpu_window *v;
		uint64_t own = 0, sum = 0;

		reset(NULL);
		assert_int_equal(gpu_windows__add(w, 1, 1000000, 7, 100), 0);
		for (uint32_t i = 0; i < 100; i++) {
			list.tid = i % 2 ? 101 : 100;
			gr__call(&list, LAUNCH, i + 1, 1000 + i * 1000, 1100 + i * 1000);
			gr__kernel(&list, SIGNAL, i + 1, 1200 + i * 1000, 1210 + i * 1001);
		}
		gr__shuffle(&list, seed);
		run(w, 0);
		v = gpu_windows__get(w, 0);
		assert_int_equal(v->nacts, 20);
		assert_int_equal(v->acts_left_out, 80);
		assert_int_equal(v->ncalls, 10);
		assert_int_equal(v->calls_left_out, 40);
		for (size_t i = 0; i < v->nacts; i++) {
			assert_true(!i || v->acts[i].start_ns >= v->acts[i - 1].start_ns);
			own += v->acts[i].own;
			sum += v->acts[i].end_ns - v->acts[i].start_ns;
		}
		assert_int_equal(own, 10);
		/* Of 10 + i ns, i = 80 to 99. */
		assert_int_equal(sum, 20 * 10 + (80 + 99) * 10);
		done(w);
	}
}

/* Pieces of idle time are those that the summary adds up, in one settling and in many. */
static void t_idle(void **state)
{
	(void)state;
	for (size_t max_bytes = 0; max_bytes <= 20000; max_bytes += 20000) {
		struct gpu_windows *w = gpu_windows__new(4096);
		const struct gpu_window *v;
		uint64_t sums[GPU_CAUSES] = {0}, before[2] = {0};

		reset(NULL);
		assert_int_equal(gpu_windows__add(w, 1, UINT64_MAX, 0, 0), 0);
		for (uint32_t i = 0; i < 200; i++) {
			uint64_t at = 10000 + i * 10000ull;

			list.device = i % 2;
			gr__call(&list, LAUNCH, 2 * i + 1, at + 500, at + 700);
			gr__kernel(&list, SIGNAL, 2 * i + 1, at + 2000, at + 3000 + i);
			gr__call(&list, SYNC, 2 * i + 2, at + 900, at + 3500 + i);
			gr__span(&list, TICK, 0, 0, at, at + 5000);
		}
		run(w, max_bytes);
		v = gpu_windows__get(w, 0);
		assert_int_equal(v->nacts, 200);
		assert_true(v->nidle > 198 * 3);
		for (size_t i = 0; i < v->nidle; i++) {
			assert_true(v->idle[i].start_ns >= before[v->idle[i].device]);
			before[v->idle[i].device] = v->idle[i].end_ns;
			sums[v->idle[i].cause] += v->idle[i].end_ns - v->idle[i].start_ns;
			if (v->idle[i].cause == GPU_IDLE_SYNC)
				assert_int_equal(v->idle[i].name, SYNC);
		}
		for (size_t d = 0; d < summary->ndevices; d++)
			for (size_t k = 0; k < summary->devices[d].nidle; k++)
				sums[summary->devices[d].idle[k].cause] -=
				    summary->devices[d].idle[k].total_ns;
		for (size_t c = 0; c < GPU_CAUSES; c++)
			assert_int_equal(sums[c], 0);
		assert_int_equal(summary->ndevices, 2);
		assert_true(summary->devices[0].idle_ns > 0);
		done(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(t_belongs, reset),
	    cmocka_unit_test_setup(t_calls, reset),
	    cmocka_unit_test(t_most),
	    cmocka_unit_test(t_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

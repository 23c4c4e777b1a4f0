// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The model of the GPU: every rule, with figures computed by hand. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gpu_records.h"
#include "model/gpu.h"

enum {
	LAUNCH = 1,
	COPY,
	COPY_ASYNC,
	SYNC,
	STREAM_SYNC,
	MALLOC,
	CU_LAUNCH,
	CU_COPY,
	GRAPH_LAUNCH,
	WAIT_EVENT,
	SIGNAL,
	RISK,
	NAMES
};
enum { TICK = 1, DECIDE, FEED };

static const char *const names[] = {"",
				    "cudaLaunchKernel",
				    "cudaMemcpy",
				    "cudaMemcpyAsync",
				    "cudaDeviceSynchronize",
				    "cudaStreamSynchronize",
				    "cudaMalloc",
				    "cuLaunchKernel",
				    "cuMemcpyHtoD_v2",
				    "cudaGraphLaunch",
				    "cudaStreamWaitEvent",
				    "_Z6signalPKfPfi",
				    "_Z4riskPf"};

static struct gr_list list;

static int reset(void **state)
{
	(void)state;
	memset(&list, 0, sizeof(list));
	list.context = 1;
	list.stream = 7;
	return 0;
}

static struct gpu *begin(size_t max_bytes)
{
	struct gpu_opts o = {.max_bytes = max_bytes};
	struct gpu *g = gpu__new(&o);

	assert_non_null(g);
	for (uint32_t i = 1; i < NAMES; i++)
		assert_int_equal(gpu__name(g, i, names[i]), 0);
	assert_int_equal(gpu__span_name(g, TICK, "strategy:tick"), 0);
	assert_int_equal(gpu__span_name(g, DECIDE, "strategy:decide"), 0);
	assert_int_equal(gpu__span_name(g, FEED, "feed:read"), 0);
	assert_int_equal(gpu__thread(g, 0, 7, 100), 0);
	assert_int_equal(gpu__thread(g, 1, 7, 101), 0);
	return g;
}

static void put_all(struct gpu *g)
{
	for (size_t i = 0; i < list.n; i++) {
		const struct gr_item *it = &list.items[i];

		if (it->ev.kind)
			assert_int_equal(gpu__span(g, &it->ev), 0);
		else
			assert_int_equal(gpu__record(g, it->ring, &it->rec.head), 0);
	}
}

static struct gpu_summary *run(void)
{
	struct gpu *g = begin(0);
	struct gpu_summary *s;

	put_all(g);
	assert_int_equal(gpu__finish(g), 0);
	s = gpu__summary(g);
	assert_non_null(s);
	gpu__free(g);
	return s;
}

__attribute__((unused)) static const struct gpu_idle *idle_of(const struct gpu_device *d, enum gpu_cause cause,
				      const char *name)
{
	for (size_t i = 0; i < d->nidle; i++)
		if (d->idle[i].cause == cause &&
		    (!name ? !d->idle[i].name : d->idle[i].name && !strcmp(d->idle[i].name, name)))
			return &d->idle[i];
	return NULL;
}

__attribute__((unused)) static const struct gpu_advice *advice_of(const struct gpu_summary *s, enum gpu_advice_kind k)
{
	for (size_t i = 0; i < s->nadvice; i++)
		if (s->advice[i].kind == k)
			return &s->advice[i];
	return NULL;
}

/* Holds for whatever went in. */
static void check_sums(const struct gpu_summary *s)
{
	for (size_t i = 0; i < s->ndevices; i++) {
		const struct gpu_device *d = &s->devices[i];
		uint64_t idle = 0;

		for (size_t k = 0; k < d->nidle; k++)
			idle += d->idle[k].total_ns;
		assert_int_equal(idle, d->idle_ns);
		assert_int_equal(d->busy_ns + d->idle_ns, d->to_ns - d->from_ns);
		assert_int_equal(d->compute_ns + d->copy_ns - d->overlap_ns, d->busy_ns);
	}
	for (size_t i = 0; i < s->nspans; i++)
		assert_int_equal(s->spans[i].own_ns + s->spans[i].launch_ns + s->spans[i].sync_ns,
				 s->spans[i].total_ns);
}

/* --- the rules ---------------------------------------------------------------------------------- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(t_nothing, reset),
	    cmocka_unit_test_setup(t_launch, reset),
	    cmocka_unit_test_setup(t_nested, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of the GPU's model share: the names of a made-up program, its run, what holds for any. */
#ifndef QBPF_TESTS_GPU_CASES_H
#define QBPF_TESTS_GPU_CASES_H

#include "gpu_put.h"
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

static inline struct gpu *begin(size_t max_bytes)
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

static inline struct gpu_summary *run(void)
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

static inline const struct gpu_idle *idle_of(const struct gpu_device *d, enum gpu_cause cause,
					     const char *name)
{
	for (size_t i = 0; i < d->nidle; i++)
		if (d->idle[i].cause == cause &&
		    (!name ? !d->idle[i].name : d->idle[i].name && !strcmp(d->idle[i].name, name)))
			return &d->idle[i];
	return NULL;
}

static inline const struct gpu_advice *advice_of(const struct gpu_summary *s,
						 enum gpu_advice_kind k)
{
	for (size_t i = 0; i < s->nadvice; i++)
		if (s->advice[i].kind == k)
			return &s->advice[i];
	return NULL;
}

/* Holds for whatever went in. */
static inline void check_sums(const struct gpu_summary *s)
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

#endif

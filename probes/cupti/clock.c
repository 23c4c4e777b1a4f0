// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock of the records. Where the agent is the first to call CUPTI it gives it CLOCK_MONOTONIC;
 * otherwise records have CUPTI's clock, and points on both tie one to the other. And the time in which
 * the records are complete.
 */
#include <time.h>

#include "probes/cupti/agent.h"

#define TRIES 5

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts = {0};

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t monotonic_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_for_cupti(void)
{
	return monotonic_ns();
}

/* The closest of a few readings. */
static void clock_point(struct qbpf_ring_writer *w)
{
	struct qbpf_ring_clock_point best = {.type = QBPF_RING_CLOCK, .size = sizeof(best)};
	uint64_t before, after, real, theirs, width, least = UINT64_MAX;
	int i;

	for (i = 0; i < TRIES; i++) {
		theirs = 0;
		before = monotonic_ns();
		real = read_clock(CLOCK_REALTIME);
		if (cupti.cuptiGetTimestamp(&theirs) != CUPTI_OK)
			return;
		after = monotonic_ns();
		width = after - before;
		if (width >= least)
			continue;
		least = width;
		best.monotonic_ns = before + width / 2;
		best.realtime_ns = real;
		best.cupti_ns = theirs;
		best.error_ns = width < UINT32_MAX ? (uint32_t)width : UINT32_MAX;
	}
	qbpf_ring_put(w, &best);
}

void mark_time(void)
{
	struct qbpf_ring_writer w;

	qbpf_ring_claim(&agent.ring, thread_id(), 0, &w);
	clock_point(&w);
	qbpf_ring_release(&w);
}

void mark_window(enum qbpf_ring_reason end, uint64_t ns)
{
	struct qbpf_ring_window r = {.type = QBPF_RING_WINDOW, .size = sizeof(r)};
	struct qbpf_ring_writer w;

	r.generation = agent.ring.head->generation;
	r.tgid = agent.ring.head->tgid;
	r.end = end;
	r.flags = end == QBPF_RING_NONE && agent.first_in ? QBPF_RING_FROM_START : 0;
	r.monotonic_ns = ns;
	qbpf_ring_claim(&agent.ring, thread_id(), 0, &w);
	qbpf_ring_put(&w, &r);
	qbpf_ring_release(&w);
}

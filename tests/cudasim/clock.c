/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.c - the simulator's time: CLOCK_MONOTONIC, or a count that only the simulator moves
 *
 * The virtual clock stands still while the program works, moves by call_ns in each call and to the
 * end of what a call waits for: with one host thread every time of a run is known beforehand.
 */
#include <time.h>

#include "sim.h"

#define VIRTUAL_START	 1000000000000ull
#define VIRTUAL_REALTIME 1700000000000000000ll
#define SPIN_NS		 100000ull

static uint64_t virtual_now = VIRTUAL_START;
static uint64_t epoch = VIRTUAL_START;
static int64_t realtime_offset = VIRTUAL_REALTIME;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void __attribute__((constructor(102))) clock_start(void)
{
	uint64_t before, after, best = UINT64_MAX;

	if (sim_config()->virtual_clock)
		return;
	epoch = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 20; i++) {
		uint64_t real;

		before = clock_ns(CLOCK_MONOTONIC);
		real = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_MONOTONIC);
		if (after - before < best) {
			best = after - before;
			realtime_offset = (int64_t)(real - before - best / 2);
		}
	}
}

uint64_t sim_epoch(void)
{
	return epoch;
}

int64_t sim_realtime_offset(void)
{
	return realtime_offset;
}

uint64_t sim_now(void)
{
	if (sim_config()->virtual_clock)
		return __atomic_load_n(&virtual_now, __ATOMIC_SEQ_CST);
	return clock_ns(CLOCK_MONOTONIC);
}

static void virtual_reach(uint64_t when)
{
	uint64_t now = sim_now();

	while (now < when && !__atomic_compare_exchange_n(&virtual_now, &now, when, false,
							  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

void sim_wait_until(uint64_t when)
{
	struct timespec ts;

	while (when == SIM_NEVER) {
		ts = (struct timespec){.tv_sec = 3600};
		nanosleep(&ts, NULL);
	}
	if (sim_config()->virtual_clock) {
		virtual_reach(when);
		return;
	}
	for (;;) {
		uint64_t now = sim_now(), left;

		if (now >= when)
			return;
		left = when - now;
		if (left > 2 * SPIN_NS) {
			left -= SPIN_NS;
			ts.tv_sec = (time_t)(left / 1000000000u);
			ts.tv_nsec = (long)(left % 1000000000u);
			nanosleep(&ts, NULL);
		}
	}
}

void sim_spend(uint64_t ns)
{
	if (sim_config()->virtual_clock)
		__atomic_add_fetch(&virtual_now, ns, __ATOMIC_SEQ_CST);
	else if (ns)
		sim_wait_until(sim_now() + ns);
}

uint64_t sim_random(uint64_t n)
{
	uint64_t x = (uint64_t)sim_config()->seed * 0x9e3779b97f4a7c15u + n * 0xd1342543de82ef95u;

	x ^= x >> 32;
	x *= 0xbea225f9eb34556du;
	x ^= x >> 29;
	x *= 0xbea225f9eb34556du;
	return x ^ x >> 32;
}

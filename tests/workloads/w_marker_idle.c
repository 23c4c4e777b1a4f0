/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What markers cost when no one looks: the same loop without and with them, interleaved.
 *
 *	w_marker_idle [ROUNDS]
 *
 * Prints one JSON object: the median over ROUNDS of ns per marker (a span is two), as differences
 *of interleaved runs of equal length.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "qbpf/probe.h"

#define LOOPS	   2000000
#define ROUNDS_MAX 1001
#define NOINLINE   __attribute__((noinline))

static volatile uint64_t sink;

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Some dependent work, about a nanosecond, that the markers stand in the way of. */
static inline uint64_t step(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ x << 17;
}

NOINLINE static uint64_t bare(uint64_t x)
{
	for (int i = 0; i < LOOPS; i++)
		x = step(x);
	return x;
}

NOINLINE static uint64_t event(uint64_t x)
{
	for (int i = 0; i < LOOPS; i++) {
		x = step(x);
		DTRACE_PROBE(idle, event);
	}
	return x;
}

NOINLINE static uint64_t args(uint64_t x)
{
	for (int i = 0; i < LOOPS; i++) {
		x = step(x);
		DTRACE_PROBE2(idle, args, x, i);
	}
	return x;
}

NOINLINE static uint64_t span(uint64_t x)
{
	for (int i = 0; i < LOOPS; i++) {
		QBPF_SPAN(idle, span);

		x = step(x);
	}
	return x;
}

NOINLINE static uint64_t guarded(uint64_t x)
{
	for (int i = 0; i < LOOPS; i++) {
		x = step(x);
		if (QBPF_ENABLED(idle, guarded))
			DTRACE_PROBE1(idle, guarded, x * 3);
	}
	return x;
}

/* Nothing between the markers: the two moves of the stack pointer wait for each other. */
NOINLINE static uint64_t dense(uint64_t x)
{
	for (int i = 0; i < LOOPS; i++) {
		x = step(x);
		for (int k = 0; k < 16; k++)
			DTRACE_PROBE(idle, dense);
	}
	return x;
}

static const struct {
	const char *name;
	uint64_t (*run)(uint64_t);
	int markers;
} kinds[] = {
    {"bare", bare, 1}, {"event", event, 1},	{"two_args", args, 1},
    {"span", span, 2}, {"enabled", guarded, 1}, {"back_to_back", dense, 16},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int cmp_double(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 51;
	static double took[KINDS][ROUNDS_MAX];
	uint64_t x = 88172645463325252u;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	for (int r = 0; r < rounds; r++) {
		for (size_t k = 0; k < KINDS; k++) {
			double start = now_ns();

			x = kinds[k].run(x);
			took[k][r] = now_ns() - start;
		}
		for (size_t k = 1; k < KINDS; k++)
			took[k][r] = (took[k][r] - took[0][r]) / LOOPS / kinds[k].markers;
	}
	sink = x;
	printf("{");
	for (size_t k = 1; k < KINDS; k++) {
		qsort(took[k], (size_t)rounds, sizeof(double), cmp_double);
		printf("%s\"%s_ns\": %.3f", k > 1 ? ", " : "", kinds[k].name, took[k][rounds / 2]);
	}
	printf("}\n");
	return 0;
}

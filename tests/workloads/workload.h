/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the workloads share: they say "ready", wait for one line, do a known amount of work,
 * and say "count NAME N" for what they did.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stdio.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone, noipa))

static inline void workload_ready(void)
{
	char line[64];

	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return;
}

static inline void workload_count(const char *name, unsigned long n)
{
	printf("count %s %lu\n", name, n);
	fflush(stdout);
}

static inline void spin_ns(long ns)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000000000l + (b.tv_nsec - a.tv_nsec) < ns);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The target of scripts/bench.py: does the same thing N times, as often as it is told to.
 *
 *	w_bench span|func	for each line "go N": N spans or calls, then "ns CPU_TIME_OF_ONE"
 *	w_bench threads		for each line "go SECONDS": spans on 2 threads, then "count N"
 *
 * Built four times: w_bench with probe.h, w_bench_sdt with <sys/sdt.h>, w_bench_fentry, in which
 * every function begins with a 5-byte nop, and w_bench_throw, where an exception might cross the
 * function. Imports nothing that forks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#ifdef BENCH_SDT
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#else
#define BENCH_NO_SDT
#define DTRACE_PROBE(provider, name)
#endif
#else
#include "qbpf/probe.h"
#endif

#define THREADS 2

static volatile long sink;
static atomic_bool stopping;

static inline void one_span(long i)
{
#ifdef BENCH_SDT
	DTRACE_PROBE(bench, span__begin);
	sink = i;
	DTRACE_PROBE(bench, span__end);
#else
	QBPF_SPAN(bench, span);

	sink = i;
#endif
}

#ifdef BENCH_THROW
static void nothing(void)
{
}

static void (*volatile callee)(void) = nothing;
#endif

/* Begins with a push, as functions do that use a saved register. */
NOINLINE int bench_call(long i)
{
	__asm__ volatile("" : : : "rbx");
#ifdef BENCH_THROW
	callee();
#endif
	sink = i;
	return (int)i + 1;
}

static void run_spans(long n)
{
	for (long i = 0; i < n; i++)
		one_span(i);
}

static void run_calls(long n)
{
	for (long i = 0; i < n; i++)
		bench_call(i);
}

/* This thread's own time, kernel included: what others do on a shared CPU does not count. */
static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void *span_thread(void *arg)
{
	unsigned long *count = arg;
	unsigned long n = 0;

	while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
		one_span((long)n);
		n++;
	}
	*count = n;
	return NULL;
}

static unsigned long run_threads(long seconds)
{
	struct timespec ts = {.tv_sec = seconds};
	unsigned long counts[THREADS] = {0}, sum = 0;
	pthread_t t[THREADS];

	atomic_store(&stopping, false);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, span_thread, &counts[i]))
			exit(1);
	nanosleep(&ts, NULL);
	atomic_store(&stopping, true);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		sum += counts[i];
	}
	return sum;
}

static int usage(void)
{
	fprintf(stderr, "usage: w_bench span|func|threads\n");
	return 2;
}

int main(int argc, char **argv)
{
	char line[64];

#ifdef BENCH_NO_SDT
	fprintf(stderr, "built without <sys/sdt.h>\n");
	return 77;
#endif
	if (argc != 2 ||
	    (strcmp(argv[1], "span") && strcmp(argv[1], "func") && strcmp(argv[1], "threads")))
		return usage();
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long n = strncmp(line, "go ", 3) ? 0 : atol(line + 3);
		double start;

		if (n < 1)
			return usage();
		if (!strcmp(argv[1], "threads")) {
			workload_count("bench:span", run_threads(n));
			continue;
		}
		start = cpu_ns();
		if (!strcmp(argv[1], "span"))
			run_spans(n);
		else
			run_calls(n);
		printf("ns %.3f\n", (cpu_ns() - start) / (double)n);
		fflush(stdout);
	}
	return 0;
}

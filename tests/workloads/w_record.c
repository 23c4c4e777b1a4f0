/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a recording has to tell apart. Says "ready", waits for a line, does its work and prints what
 * it did. argv[1] picks:
 *
 *	burst N		N empty spans, as fast as they go
 *	mixed N		N trees of every kind of marker
 *	threads N M	N threads, one after the other, each with a name of its own and M spans
 *	beats N M	N threads at once, M instants each
 *	reuse N		the same as threads, asking the kernel for the same tid again: "reused N"
 *	slow N M	N trees, of which each M-th takes 20 ms in its inner span
 *	open N		N threads that hold two spans open and wait to be killed
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qbpf/probe.h"
#include "workload.h"

#define NAP_NS 20000000l

static long rounds;

static void nap(void)
{
	struct timespec ts = {.tv_nsec = NAP_NS};

	nanosleep(&ts, NULL);
}

static int burst(long n)
{
	for (long i = 0; i < n; i++) {
		DTRACE_PROBE(rec, span__begin);
		DTRACE_PROBE(rec, span__end);
	}
	workload_count("rec:span", n);
	return 0;
}

static int mixed(long n)
{
	for (long i = 0; i < n; i++) {
		DTRACE_PROBE1(rec, ask, i);
		DTRACE_PROBE(rec, outer__begin);
		DTRACE_PROBE(rec, inner__begin);
		QBPF_VALUE(rec, depth, i - 5);
		DTRACE_PROBE(rec, inner__end);
		DTRACE_PROBE(rec, beat);
		DTRACE_PROBE(rec, outer__end);
		DTRACE_PROBE1(rec, answer, i);
	}
	workload_count("rec:outer", n);
	workload_count("rec:inner", n);
	workload_count("rec:depth", n);
	workload_count("rec:beat", n);
	return 0;
}

static void *named(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%ld", (long)arg);
	prctl(PR_SET_NAME, name);
	for (long i = 0; i < rounds; i++) {
		DTRACE_PROBE(rec, span__begin);
		DTRACE_PROBE(rec, span__end);
	}
	return (void *)syscall(SYS_gettid);
}

static int threads(long n)
{
	pthread_t t;

	for (long i = 0; i < n; i++) {
		if (pthread_create(&t, NULL, named, (void *)i))
			return 1;
		pthread_join(t, NULL);
	}
	workload_count("rec:span", n * rounds);
	return 0;
}

static void *beat(void *arg)
{
	for (long i = 0; i < rounds; i++)
		DTRACE_PROBE(rec, beat);
	return arg;
}

static int beats(long n)
{
	pthread_t t[64];

	if (n > 64)
		return 2;
	for (long i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, beat, NULL))
			return 1;
	for (long i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	workload_count("rec:beat", n * rounds);
	return 0;
}

/* The next tid is one above what this file says. */
static void ask_for(long tid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");

	if (!f)
		return;
	fprintf(f, "%ld", tid - 1);
	fclose(f);
}

static int reuse(long n)
{
	unsigned long reused = 0;
	long last = 0;
	void *tid;

	rounds = 3;
	for (long i = 0; i < n; i++) {
		pthread_t t;

		if (last)
			ask_for(last);
		if (pthread_create(&t, NULL, named, (void *)i))
			return 1;
		pthread_join(t, &tid);
		reused += (long)tid == last;
		last = (long)tid;
	}
	workload_count("rec:span", n * rounds);
	workload_count("reused", reused);
	return 0;
}

static int slow(long n, long every)
{
	unsigned long naps = 0;

	for (long i = 0; i < n; i++) {
		DTRACE_PROBE(rec, outer__begin);
		DTRACE_PROBE(rec, inner__begin);
		DTRACE_PROBE(rec, beat);
		if (i % every == 1) {
			nap();
			naps++;
		}
		DTRACE_PROBE(rec, inner__end);
		DTRACE_PROBE(rec, outer__end);
	}
	workload_count("rec:outer", n);
	workload_count("rec:inner", n);
	workload_count("rec:beat", n);
	workload_count("naps", naps);
	return 0;
}

static void *hold(void *arg)
{
	DTRACE_PROBE(rec, outer__begin);
	DTRACE_PROBE(rec, beat);
	DTRACE_PROBE(rec, inner__begin);
	pthread_barrier_wait(arg);
	for (;;)
		pause();
	return NULL;
}

static int held_open(long n)
{
	pthread_barrier_t b;
	pthread_t t;

	pthread_barrier_init(&b, NULL, (unsigned int)n + 1);
	for (long i = 0; i < n; i++)
		if (pthread_create(&t, NULL, hold, &b))
			return 1;
	pthread_barrier_wait(&b);
	printf("open\n");
	fflush(stdout);
	for (;;)
		pause();
	return 0;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;
	const char *what = argc > 1 ? argv[1] : "";

	rounds = argc > 3 ? atol(argv[3]) : 0;
	printf("ready\n");
	fflush(stdout);
	getchar();
	if (!strcmp(what, "burst"))
		return burst(n);
	if (!strcmp(what, "mixed"))
		return mixed(n);
	if (!strcmp(what, "threads"))
		return threads(n);
	if (!strcmp(what, "beats"))
		return beats(n);
	if (!strcmp(what, "reuse"))
		return reuse(n);
	if (!strcmp(what, "slow"))
		return slow(n, rounds);
	if (!strcmp(what, "open"))
		return held_open(n);
	return 2;
}

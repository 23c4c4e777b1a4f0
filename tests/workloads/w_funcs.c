// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions with known counts: outer (3 ms) around inner (1 ms), fib, deep recursion, tail
 * calls, longjmp out of nested frames, several threads. argv[1] picks one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

NOINLINE int inner(int x)
{
	spin_ns(1000000);
	return x + 1;
}

NOINLINE int outer(int x)
{
	spin_ns(2000000);
	return inner(x) * 2;
}

NOINLINE int fib(int n)
{
	if (n < 2)
		return n;
	return fib(n - 1) + fib(n - 2);
}

NOINLINE int deep(int n)
{
	if (!n)
		return 0;
	return deep(n - 1) + 1;
}

#ifdef SWITCHES
#include <ucontext.h>
/* A program that could switch stacks: stack pointers then prove less. */
void *switches(void);
void *switches(void)
{
	return (void *)swapcontext;
}
#endif

static volatile int sink;

NOINLINE int tail_target(int x)
{
	sink = x;
	return x * 3;
}

NOINLINE int tail_caller(int x)
{
	sink = x + 1;
	return tail_target(x + 1);
}

static jmp_buf out;

NOINLINE int jumper(int n)
{
	if (!n)
		longjmp(out, 1);
	return jumper(n - 1) + 1;
}

NOINLINE int catcher(int n)
{
	if (setjmp(out))
		return 1;
	return jumper(n);
}

NOINLINE int small(int x)
{
	sink = x;
	return x ^ 5;
}

static void *small_loop(void *arg)
{
	long n = (long)arg;

	for (long i = 0; i < n; i++)
		small((int)i);
	return NULL;
}

static int run_threads(long n, long threads)
{
	pthread_t t[256];

	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, small_loop, (void *)n))
			return 1;
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	workload_count("small", n * threads);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "nest";
	long n = argc > 2 ? atol(argv[2]) : 10;
	long threads = argc > 3 ? atol(argv[3]) : 1;

	workload_ready();
	if (!strcmp(what, "nest")) {
		for (long i = 0; i < n; i++)
			sink = outer((int)i);
		workload_count("outer", n);
		workload_count("inner", n);
	} else if (!strcmp(what, "fib")) {
		sink = fib((int)n);
	} else if (!strcmp(what, "deep")) {
		sink = deep((int)n);
		workload_count("deep", n + 1);
	} else if (!strcmp(what, "tail")) {
		for (long i = 0; i < n; i++)
			sink = tail_caller((int)i);
		workload_count("tail_caller", n);
		workload_count("tail_target", n);
	} else if (!strcmp(what, "longjmp")) {
		for (long i = 0; i < n; i++)
			sink = catcher(5);
		sink = small(1);
		workload_count("catcher", n);
		workload_count("jumper", n * 6);
		workload_count("small", 1);
	} else if (!strcmp(what, "threads")) {
		return run_threads(n, threads < 256 ? threads : 256);
	}
	return 0;
}

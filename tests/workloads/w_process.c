// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What processes do: dlopen a library late, fork with an open span, exec, threads that end
 * inside a span, a busy loop that never stops, sleep until killed. argv[1] picks one. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qbpf/probe.h"
#include "workload.h"

NOINLINE void tick(void)
{
	DTRACE_PROBE(proc, tick__begin);
	DTRACE_PROBE(proc, tick__end);
}

static void *ends_inside(void *arg)
{
	DTRACE_PROBE(proc, inside__begin);
	pthread_exit(arg);
}

static int late(const char *lib, long n)
{
	void (*fn)(long);
	void *h;

	tick();
	h = dlopen(lib, RTLD_NOW);
	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	fn = (void (*)(long))dlsym(h, "plugin_work");
	printf("opened\n");
	fflush(stdout);
	getchar();
	fn(n);
	workload_count("plugin", n);
	return 0;
}

static int forks(long n)
{
	unsigned long ok = 0;
	int st;

	DTRACE_PROBE(proc, outer__begin);
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			tick();
			DTRACE_PROBE(proc, outer__end); /* an orphan: the child starts empty */
			_exit(0);
		}
		tick();
		ok += waitpid(pid, &st, 0) == pid && WIFEXITED(st) && !WEXITSTATUS(st);
	}
	DTRACE_PROBE(proc, outer__end);
	workload_count("children_ok", ok);
	workload_count("tick_parent", n);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "ticks";
	long n = argc > 2 ? atol(argv[2]) : 100;

	workload_ready();
	if (!strcmp(what, "ticks")) {
		for (long i = 0; i < n; i++)
			tick();
		workload_count("tick", n);
	} else if (!strcmp(what, "late")) {
		return late(argv[3], n);
	} else if (!strcmp(what, "fork")) {
		return forks(n);
	} else if (!strcmp(what, "exec")) {
		tick();
		execl("/proc/self/exe", argv[0], "ticks", argv[2], (char *)NULL);
		return 1;
	} else if (!strcmp(what, "inside")) {
		for (long i = 0; i < n; i++) {
			pthread_t t;

			if (pthread_create(&t, NULL, ends_inside, NULL))
				return 1;
			pthread_join(t, NULL);
		}
		workload_count("inside", n);
	} else if (!strcmp(what, "busy")) {
		for (;;)
			tick();
	} else if (!strcmp(what, "sleep")) {
		DTRACE_PROBE(proc, outer__begin);
		for (;;)
			pause();
	} else if (!strcmp(what, "exit")) {
		tick();
		return (int)n;
	}
	return 0;
}

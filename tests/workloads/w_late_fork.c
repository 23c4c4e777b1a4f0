// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A program that cannot fork by itself opens a library that does: children run its markers. */

#include "qbpf/probe.h"
#include "workload.h"

void *late_open(const char *path);
void *late_sym(void *lib, const char *name);

NOINLINE void tick(void)
{
	DTRACE_PROBE(late, tick__begin);
	DTRACE_PROBE(late, tick__end);
}

int main(int argc, char **argv)
{
	int (*fork_and_call)(void (*)(void));
	int ok = 0;
	void *h;

	workload_ready();
	for (int i = 0; i < 100; i++)
		tick();
	h = argc > 1 ? late_open(argv[1]) : NULL;
	fork_and_call = h ? (int (*)(void (*)(void)))late_sym(h, "plugin_fork") : NULL;
	if (!fork_and_call)
		return 1;
	printf("opened\n");
	fflush(stdout);
	getchar();
	for (int i = 0; i < 10; i++) {
		ok += fork_and_call(tick);
		tick();
	}
	workload_count("children_ok", ok);
	return 0;
}

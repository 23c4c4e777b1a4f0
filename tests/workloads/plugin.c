// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A library that is opened late. */
#include <sys/wait.h>
#include <unistd.h>

#include "qbpf/probe.h"

void plugin_work(long n);
void plugin_work(long n)
{
	for (long i = 0; i < n; i++) {
		DTRACE_PROBE(plugin, work__begin);
		DTRACE_PROBE(plugin, work__end);
	}
}

/* 1: the child called fn and ended well. */
int plugin_fork(void (*fn)(void));
int plugin_fork(void (*fn)(void))
{
	pid_t pid = fork();
	int st;

	if (!pid) {
		fn();
		_exit(0);
	}
	return waitpid(pid, &st, 0) == pid && WIFEXITED(st) && !WEXITSTATUS(st);
}

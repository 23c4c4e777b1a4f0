/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a thread does at the moment, as /proc has it: for tests that wait until it waits. */
#ifndef QBPF_TESTS_BPF_TASK_STATE_H
#define QBPF_TESTS_BPF_TASK_STATE_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* R, S, T ...; 0: there is no such thread. */
static inline char task_state(pid_t pid, pid_t tid)
{
	char path[64], text[512], *name_end;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	name_end = strrchr(text, ')');
	return name_end ? name_end[2] : 0;
}

/* Until it sleeps in a call, or has ended. */
static inline void await_sleep(pid_t pid, pid_t tid)
{
	char state;

	while ((state = task_state(pid, tid)) && state != 'S')
		usleep(1000);
}

#endif

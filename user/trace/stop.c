// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stopping all threads of a process; see stop.h. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "trace/stop.h"
#include "trace/stopped_call.h"

#define WAIT_MS 500 /* for one thread */

struct stopped {
	pid_t pid;
	struct stopped_thread {
		pid_t tid;
		int signal; /* that its stop has taken, to be given back */
	} * threads;
	size_t n;
};

static bool known(const struct stopped *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].tid == tid)
			return true;
	return false;
}

static int append(struct stopped *s, pid_t tid)
{
	struct stopped_thread *t = realloc(s->threads, (s->n + 1) * sizeof(*t));

	if (!t)
		return -ENOMEM;
	s->threads = t;
	s->threads[s->n++] = (struct stopped_thread){.tid = tid};
	return 0;
}

/* The stop may be for a signal of the thread's own, which is kept for later. */
static int await_stop(struct stopped_thread *t)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < WAIT_MS; i++) {
		int status;
		pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);

		if (got < 0)
			return errno == ECHILD ? -ESRCH : -errno;
		if (got && !WIFSTOPPED(status))
			return -ESRCH;
		if (got) {
			if (!(status >> 16))
				t->signal = WSTOPSIG(status);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

static int stop_thread(struct stopped *s, pid_t tid)
{
	int err;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return -errno;
	err = append(s, tid);
	if (err)
		return err;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -errno;
	return await_stop(&s->threads[s->n - 1]);
}

/* Stops the threads that are not yet; *more: there were such. */
static int stop_round(struct stopped *s, pid_t pid, bool *more)
{
	char path[64];
	struct dirent *d;
	int err = 0;
	DIR *dir;

	*more = false;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);

		if (tid <= 0 || known(s, tid))
			continue;
		err = stop_thread(s, tid);
		if (err == -ESRCH)
			err = 0; /* it has ended meanwhile */
		else
			*more = true;
	}
	closedir(dir);
	return err;
}

int stopped__new(pid_t pid, struct stopped **out, struct err *e)
{
	struct stopped *s = calloc(1, sizeof(*s));
	bool more = true;
	int err = 0;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->pid = pid;
	while (!err && more)
		err = stop_round(s, pid, &more);
	if (err) {
		stopped__free(s);
		return err_set(e, err, "cannot stop process %d for a moment: %s", pid,
			       err == -EPERM ? "another tracer has it" : strerror(-err));
	}
	*out = s;
	return 0;
}

void stopped__free(struct stopped *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		const struct stopped_thread *t = &s->threads[i];

		if (!t->signal)
			stopped_call__mend(s->pid, t->tid);
		ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(uintptr_t)t->signal);
	}
	free(s->threads);
	free(s);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Starting a program under observation; see launch.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/maps.h"
#include "trace/launch.h"

struct launch {
	pid_t pid;
	bool ended;
	bool traced;
	bool stopped;
	int signal;		       /* to deliver when it goes on */
	uint64_t ldso_start, ldso_end; /* 0: statically linked */
	bool maps_code;		       /* the system call entered maps something executable */
};

/*
 * In the child: wait to be seized, then exec; tell the parent through the pipe when that fails.
 * If the parent dies before, the end of the go pipe is read and nothing is started. Seized (not
 * PTRACE_TRACEME) it has no signal pending at its exec stop, so that the end of the tracer at
 * any moment just lets it go.
 */
static void __attribute__((noreturn)) child_exec(char *const argv[], int go_fd, int report_fd)
{
	sigset_t none;
	char go;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (read(go_fd, &go, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	err = errno;
	if (write(report_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

static void find_ldso(struct launch *l)
{
	struct proc_maps *m = NULL;
	struct err why;

	l->ldso_start = l->ldso_end = 0;
	if (proc_maps__read(l->pid, &m, &why))
		return;
	for (size_t i = 0; i < m->n; i++) {
		const struct map_object *o = &m->objects[i];

		if (!o->is_ldso || !o->nranges)
			continue;
		l->ldso_start = o->ranges[0].start;
		l->ldso_end = o->ranges[o->nranges - 1].end;
	}
	proc_maps__free(m);
}

#define TRACE_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)

static bool is_exec_stop(int status)
{
	return status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

/* Waits for the exec stop; -ECHILD: the child ended before, having written why. */
static int await_exec(struct launch *l)
{
	int status;

	for (;;) {
		if (waitpid(l->pid, &status, 0) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(status)) {
			l->ended = true;
			return -ECHILD;
		}
		if (is_exec_stop(status))
			return 0;
		ptrace(PTRACE_CONT, l->pid, NULL,
		       (void *)(uintptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
	}
}

static int seize_and_exec(struct launch *l, const int go[2], const int report[2], const char *name,
			  struct err *e)
{
	int err, failed = EIO;

	if (ptrace(PTRACE_SEIZE, l->pid, NULL, (void *)(uintptr_t)TRACE_OPTIONS))
		return err_set(e, -errno, "cannot observe the start of %s: ptrace: %s", name,
			       strerror(errno));
	l->traced = true;
	if (write(go[1], "g", 1) != 1)
		return err_set(e, -errno, "%s: %s", name, strerror(errno));
	err = await_exec(l);
	if (!err) {
		l->stopped = true;
		find_ldso(l);
		return 0;
	}
	if (err == -ECHILD && read(report[0], &failed, sizeof(failed)) != sizeof(failed))
		failed = EIO;
	return err_set(e, err == -ECHILD ? -failed : err, "%s: %s", name,
		       strerror(err == -ECHILD ? failed : -err));
}

static void close_pair(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int launch__start(char *const argv[], struct launch **out, struct err *e)
{
	struct launch *l = calloc(1, sizeof(*l));
	int go[2] = {-1, -1}, report[2] = {-1, -1}, err;

	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	if (pipe2(go, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
		err = err_set(e, -errno, "pipe: %s", strerror(errno));
		goto out;
	}
	l->pid = fork();
	if (l->pid < 0) {
		err = err_set(e, -errno, "fork: %s", strerror(errno));
		goto out;
	}
	if (!l->pid) {
		close(go[1]);
		child_exec(argv, go[0], report[1]);
	}
	close(report[1]);
	report[1] = -1;
	err = seize_and_exec(l, go, report, argv[0], e);
	if (!err) {
		*out = l;
		l = NULL;
	}
out:
	close_pair(go);
	close_pair(report);
	if (l && l->pid > 0)
		launch__kill(l);
	launch__free(l);
	return err;
}

pid_t launch__pid(const struct launch *l)
{
	return l->pid;
}

bool launch__is_static(const struct launch *l)
{
	return !l->ldso_start;
}

int launch__go(struct launch *l, struct err *e)
{
	int sig = l->signal;

	if (!l->stopped)
		return 0;
	l->signal = 0;
	l->stopped = false;
	if (l->ldso_start) {
		if (!ptrace(PTRACE_SYSCALL, l->pid, NULL, (void *)(uintptr_t)sig))
			return 0;
	} else {
		l->traced = false;
		if (!ptrace(PTRACE_DETACH, l->pid, NULL, (void *)(uintptr_t)sig))
			return 0;
	}
	if (errno == ESRCH) /* killed meanwhile: launch__wait tells */
		return 0;
	return err_set(e, -errno, "cannot let the program go on: %s", strerror(errno));
}

/* The next launch__go() detaches. */
static enum launch_event let_free(struct launch *l)
{
	l->ldso_start = l->ldso_end = 0;
	return LAUNCH_FREE;
}

/* One system-call stop of the start-up. The kernel says itself (5.3) which side it is. */
static enum launch_event on_syscall_stop(struct launch *l)
{
	struct __ptrace_syscall_info info;
	bool mapped;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, l->pid, (void *)sizeof(info), &info) < 0)
		return let_free(l);
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		uint64_t ip = info.instruction_pointer;

		if (ip < l->ldso_start || ip >= l->ldso_end)
			return let_free(l);
		l->maps_code = info.entry.nr == SYS_mmap && (info.entry.args[2] & PROT_EXEC) &&
			       (int)info.entry.args[4] >= 0;
		return LAUNCH_NONE;
	}
	mapped = l->maps_code && info.op == PTRACE_SYSCALL_INFO_EXIT && !info.exit.is_error;
	l->maps_code = false;
	return mapped ? LAUNCH_MAPPED : LAUNCH_NONE;
}

enum launch_event launch__wait(struct launch *l, int *status)
{
	enum launch_event ev;
	struct err why;
	int st;

	while (!l->ended && waitpid(l->pid, &st, WNOHANG) == l->pid) {
		if (WIFEXITED(st) || WIFSIGNALED(st)) {
			l->ended = true;
			l->traced = l->stopped = false;
			*status = st;
			return LAUNCH_ENDED;
		}
		if (!WIFSTOPPED(st) || !l->traced)
			continue;
		l->stopped = true;
		if (is_exec_stop(st)) {
			find_ldso(l);
			return LAUNCH_MAPPED;
		}
		if (st >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(st) != SIGTRAP) {
			ptrace(PTRACE_LISTEN, l->pid, NULL, NULL); /* stopped by SIGSTOP */
			l->stopped = false;
			continue;
		}
		if (WSTOPSIG(st) == (SIGTRAP | 0x80)) {
			ev = on_syscall_stop(l);
			if (ev != LAUNCH_NONE)
				return ev;
		} else if (!(st >> 16)) {
			l->signal = WSTOPSIG(st); /* its own: pass it on */
		}
		launch__go(l, &why);
	}
	return LAUNCH_NONE;
}

void launch__kill(struct launch *l)
{
	int st;

	if (!l || l->ended)
		return;
	kill(l->pid, SIGKILL);
	while (waitpid(l->pid, &st, 0) < 0 && errno == EINTR)
		;
	l->ended = true;
	l->traced = l->stopped = false;
}

void launch__free(struct launch *l)
{
	free(l);
}

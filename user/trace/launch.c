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
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf/maps.h"
#include "trace/launch.h"

struct launch {
	pid_t pid;
	bool ended;
	bool traced;
	bool in_syscall;
	bool stopped;
	int signal; /* to deliver when it goes on */
	uint64_t ldso_start, ldso_end; /* 0: statically linked */
	bool maps_code; /* the system call entered maps something executable */
};

/* In the child: stop at exec, and tell the parent through the pipe when exec fails. */
static void __attribute__((noreturn)) child_exec(char *const argv[], int pipe_fd)
{
	sigset_t none;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
		execvp(argv[0], argv);
	err = errno;
	if (write(pipe_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

static void find_ldso(struct launch *l)
{
	struct proc_maps *m = NULL;
	struct err why;

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

int launch__start(char *const argv[], struct launch **out, struct err *e)
{
	struct launch *l = calloc(1, sizeof(*l));
	int fds[2] = {-1, -1}, status, failed = 0, err = 0;

	if (!l)
		return err_set(e, -ENOMEM, "out of memory");
	if (pipe2(fds, O_CLOEXEC)) {
		err = err_set(e, -errno, "pipe: %s", strerror(errno));
		goto out;
	}
	l->pid = fork();
	if (l->pid < 0) {
		err = err_set(e, -errno, "fork: %s", strerror(errno));
		goto out;
	}
	if (!l->pid)
		child_exec(argv, fds[1]);
	close(fds[1]);
	fds[1] = -1;
	while (waitpid(l->pid, &status, 0) < 0) {
		if (errno == EINTR)
			continue;
		err = err_set(e, -errno, "waitpid: %s", strerror(errno));
		goto out;
	}
	if (WIFSTOPPED(status)) {
		l->traced = l->stopped = true;
		ptrace(PTRACE_SETOPTIONS, l->pid, NULL,
		       (void *)(uintptr_t)(PTRACE_O_TRACESYSGOOD));
		find_ldso(l);
		*out = l;
		l = NULL;
	} else {
		l->ended = true;
		if (read(fds[0], &failed, sizeof(failed)) != sizeof(failed))
			failed = EIO;
		err = err_set(e, -failed, "%s: %s", argv[0], strerror(failed));
	}
out:
	if (fds[0] >= 0)
		close(fds[0]);
	if (fds[1] >= 0)
		close(fds[1]);
	launch__free(l);
	return err;
}

pid_t launch__pid(const struct launch *l)
{
	return l->pid;
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
	return err_set(e, -errno, "cannot let the program go on: %s", strerror(errno));
}

static enum launch_event let_free(struct launch *l)
{
	ptrace(PTRACE_DETACH, l->pid, NULL, NULL);
	l->traced = l->stopped = false;
	return LAUNCH_FREE;
}

/* One system-call stop of the start-up. */
static enum launch_event on_syscall_stop(struct launch *l)
{
	struct user_regs_struct r;
	bool mapped;

	l->in_syscall = !l->in_syscall;
	if (ptrace(PTRACE_GETREGS, l->pid, NULL, &r))
		return let_free(l);
	if (l->in_syscall) {
		if (r.rip < l->ldso_start || r.rip >= l->ldso_end)
			return let_free(l);
		l->maps_code = r.orig_rax == SYS_mmap && (r.rdx & PROT_EXEC) && (int)r.r8 >= 0;
		return LAUNCH_NONE;
	}
	mapped = l->maps_code && (long long)r.rax > 0;
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
		if (WSTOPSIG(st) == (SIGTRAP | 0x80)) {
			ev = on_syscall_stop(l);
			if (ev != LAUNCH_NONE)
				return ev;
		} else if (WSTOPSIG(st) != SIGTRAP) {
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

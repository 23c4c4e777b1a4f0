// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stopping a thread where it can be sent; see inject_thread.h.
 *
 * SYSTEM CALLS. A thread that waits in one is taken out of it by the stop, and makes it anew when it
 * comes back by its own code (stopped_call.h), also where it is let go after all. The limit of some waits
 * begins again then: such threads come last.
 *
 * SIGNALS. A thread with one on its way is let go. One that comes while it is away waits until it is
 * back, and is taken before the call is made anew: as if it had come just before the call.
 */
#include "trace/inject_thread.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "elf/proc_state.h"
#include "log.h"
#include "trace/stopped_call.h"

#define ROUNDS	     60
#define ROUND_MS     20
#define TRIES_ROUND  16
#define STOP_WAIT_NS 3000000000ull /* it goes on as long as it does not stop */

/* The kernel's numbers, for C libraries that are older. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_io_pgetevents
#define SYS_io_pgetevents 333
#endif

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
#endif

void inject__stage(enum inject_stage stage)
{
	const char *die = getenv("QBPF_TEST_DIE_AT"), *stop = getenv("QBPF_TEST_STOP_AT");

	if (die && atoi(die) == (int)stage)
		kill(getpid(), SIGKILL);
	if (stop && atoi(stop) == (int)stage && !unsetenv("QBPF_TEST_STOP_AT"))
		raise(SIGSTOP); /* here and now, not where another thread takes it */
}

/* --- candidates --------------------------------------------------------------------------------- */

struct candidate {
	pid_t tid;
	int rank; /* less is better; -1: none at all */
};

/* Of a line of /proc/PID/task/TID/syscall: a call of stop_interrupts() whose limit would begin anew. */
static bool has_limit(const char *line)
{
	uint64_t arg[6] = {0};
	int call;

	if (sscanf(line, "%d 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx", &call, &arg[0], &arg[1], &arg[2],
		   &arg[3], &arg[4], &arg[5]) != 7)
		return false;
	switch (call) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int)arg[3] > 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return arg[3] != 0;
	case SYS_rt_sigtimedwait:
		return arg[2] != 0;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return arg[4] != 0;
	case SYS_io_uring_enter:
		return arg[4] != 0 &&
		       arg[5] > 8; /* more than a signal mask: struct getevents_arg */
	default:
		return false;
	}
}

/*
 * A thread that waits is likely to be at a safe point, and least disturbed; the driver's own wait for
 * nothing that is urgent.
 */
static int rank_of(pid_t pid, pid_t tid)
{
	char dir[64], *text = NULL, *p;
	bool drivers = false;
	size_t len;
	int rank = -1;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", pid, tid);
	if (proc_state__read_file(dir, "stat", &text, &len))
		return -1;
	p = strrchr(text, ')');
	if (p && p[1])
		rank = p[2] == 'S' ? 2 : p[2] == 'R' ? 3 : -1;
	drivers = strstr(text, "(cuda-") != NULL;
	free(text);
	if (rank != 2 || proc_state__read_file(dir, "syscall", &text, &len))
		return rank;
	switch (atoi(text)) { /* "running" is 0, which is read */
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_futex:
		rank = !drivers;
		break;
	default:
		if (has_limit(text))
			rank = 4;
		break;
	}
	free(text);
	return rank;
}

static int by_rank(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;

	return a->rank - b->rank;
}

/* Of more than there is room for, those that the kernel lists first. */
static size_t list_candidates(pid_t pid, struct candidate *c, size_t room)
{
	struct dirent *d;
	char path[64];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < room && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);
		int rank = tid > 0 ? rank_of(pid, tid) : -1;

		if (rank >= 0)
			c[n++] = (struct candidate){.tid = tid, .rank = rank};
	}
	if (dir)
		closedir(dir);
	qsort(c, n, sizeof(*c), by_rank);
	return n;
}

/* --- is this thread, now, one to be sent? ------------------------------------------------------- */

/* Each thread has its own; the new one would inherit it. */
static const char *in_filter(pid_t pid, pid_t tid)
{
	char dir[64], *text = NULL, *mode;
	bool filtered;
	size_t len;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", pid, tid);
	if (proc_state__read_file(dir, "status", &text, &len))
		return "it is gone";
	mode = strstr(text, "\nSeccomp:\t");
	filtered = mode && atoi(mode + 10);
	free(text);
	return filtered ? "it has a seccomp filter" : NULL;
}

/* Inside a restartable sequence its place may not be left. */
static const char *in_rseq(pid_t tid)
{
	struct {
		uint64_t at;
		uint32_t size, signature, flags, pad;
	} c = {0};
	long section;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, (void *)sizeof(c), &c) < 0 || !c.at)
		return NULL;
	errno = 0;
	section = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)(c.at + 8), NULL);
	return section || errno ? "it is inside a restartable sequence" : NULL;
}

static const char *unfit(const struct inject_site *s, struct inject_stack *st, pid_t tid,
			 const struct user_regs_struct *r)
{
	const char *why = r->cs == 0x33 ? NULL : "it runs 32-bit code";

	if (!why)
		why = stopped_call__signals(s->pid, tid);
	if (!why)
		why = in_filter(s->pid, tid);
	if (!why)
		why = in_rseq(tid);
	return why ? why : inject_stack__check(st, tid);
}

/* --- one attempt -------------------------------------------------------------------------------- */

static int refused(pid_t pid, int err, struct err *e)
{
	char scope[16] = "";
	FILE *f;

	if (err != -EPERM && err != -EACCES)
		return err_set(e, err, "process %d cannot be stopped by ptrace: %s", pid,
			       strerror(-err));
	f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	if (f && fgets(scope, sizeof(scope), f) && atoi(scope) > 0)
		err_set(e, -EPERM,
			"process %d may not be ptraced: kernel.yama.ptrace_scope is %d, which "
			"takes %s",
			pid, atoi(scope),
			atoi(scope) < 3 ? "CAP_SYS_PTRACE" : "a reboot to change");
	else
		err_set(e, -EPERM,
			"process %d may not be ptraced: that takes CAP_SYS_PTRACE, and no security "
			"module that forbids it",
			pid);
	if (f)
		fclose(f);
	return -EPERM;
}

/*
 * A thread that was killed meanwhile is ours to bury: until then an exec of the process's, which ends its
 * other threads, cannot go on.
 */
static void let_go(pid_t tid)
{
	uint64_t until = now_ns() + STOP_WAIT_NS;
	struct timespec pause = {.tv_nsec = 100000};
	int status;

	if (!ptrace(PTRACE_DETACH, tid, NULL, NULL) || errno != ESRCH)
		return;
	while (!waitpid(tid, &status, __WALL | WNOHANG) && now_ns() < until)
		nanosleep(&pause, NULL);
}

/* 0: stopped by us; 1: it is gone, or stopped by another cause, and let go. */
static int await_stop(pid_t tid, struct err *e)
{
	uint64_t until = now_ns() + STOP_WAIT_NS;
	struct timespec pause = {.tv_nsec = 10000};

	for (;;) {
		int status, sig;
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0 || (got && !WIFSTOPPED(status)))
			return 1;
		if (got && status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
			return 0;
		if (got && status >> 16 == PTRACE_EVENT_STOP) {
			let_go(tid);
			return err_set(e, -EAGAIN, "it has been stopped (signal %d)",
				       WSTOPSIG(status));
		}
		if (got) { /* a signal of its own comes first: let it have that */
			sig = status >> 16 ? 0 : WSTOPSIG(status);
			ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)sig);
		}
		if (now_ns() > until)
			return err_set(e, -ETIMEDOUT,
				       "thread %d does not stop: it hangs in the kernel", tid);
		nanosleep(&pause, NULL);
	}
}

static int poke(pid_t tid, uint64_t to, const void *from, size_t len)
{
	unsigned long word;

	for (size_t i = 0; i < len; i += sizeof(word)) {
		memcpy(&word, (const char *)from + i, sizeof(word));
		if (ptrace(PTRACE_POKETEXT, tid, (void *)(uintptr_t)(to + i), (void *)word))
			return -errno;
	}
	return 0;
}

static int put_code(const struct inject_site *s, pid_t tid, bool all, uint64_t back)
{
	size_t consts = INJECT_CODE_BYTES;
	struct inject_consts c = s->consts;

	c.back = back;
	if (all) {
		int err = poke(tid, s->cave, inject_stub_begin, consts);

		if (err)
			return err;
	}
	return poke(tid, s->cave + consts, &c, all ? sizeof(c) : sizeof(c.back));
}

/* Is in the cave what the thread is to run? */
static bool has_code(const struct inject_site *s, pid_t tid, uint64_t back)
{
	size_t consts = INJECT_CODE_BYTES, len = INJECT_STUB_BYTES;
	struct inject_consts c = s->consts;
	uint8_t buf[4096] = {0};
	struct iovec local = {.iov_base = buf, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)s->cave, .iov_len = len};

	c.back = back;
	return len <= sizeof(buf) &&
	       process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)len &&
	       !memcmp(buf, inject_stub_begin, consts) && !memcmp(buf + consts, &c, sizeof(c));
}

/* The stopped thread; 0: it was sent, 1: it was let go. */
static int send_stopped(const struct inject_site *s, struct inject_stack *st, pid_t tid, bool all,
			const char **why, struct err *e)
{
	struct user_regs_struct regs, at;
	bool changed;
	int err = stopped_regs__get(tid, &regs);

	if (err)
		return 1;
	*why = unfit(s, st, tid, &regs);
	at = regs;
	if (!stopped_call__restart(tid, &at, &changed)) {
		changed = false;
		*why = *why ? *why : "it is in a system call that cannot be made anew";
	}
	if (*why) {
		/* As it would be had nobody looked. */
		stopped_call__mend(s->pid, tid);
		return 1;
	}
	inject__stage(STAGE_CHECKED);
	err = put_code(s, tid, all, at.rip);
	/* Another program by now, at the same addresses, would have something else there. */
	if (!err && !has_code(s, tid, at.rip))
		err = -ESTALE;
	at.rip = s->cave;
	if (!err)
		err = stopped_regs__set(tid, &at);
	if (err)
		return err_set(e, err, "thread %d cannot be sent: %s", tid, strerror(-err));
	inject__stage(STAGE_SENT);
	return 0;
}

/* While a thread is stopped for us nobody else shall have our CPU. */
static void hurry(bool on)
{
	struct sched_param p = {.sched_priority = on};

	if (sched_setscheduler(0, (on ? SCHED_RR : SCHED_OTHER) | SCHED_RESET_ON_FORK, &p))
		log_dbg("sched_setscheduler: %s", strerror(errno));
}

static int attempt(const struct inject_site *s, struct inject_stack *st, pid_t tid, bool all,
		   struct inject_report *r, uint64_t *since_ns, const char **why, struct err *e)
{
	uint64_t stopped;
	int err;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == ESRCH ? 1 : refused(s->pid, -errno, e);
	inject__stage(STAGE_SEIZED);
	hurry(true);
	*since_ns = now_ns();
	err = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ? 1 : await_stop(tid, e);
	if (err) {
		hurry(false);
		*why = err < 0 ? e->text : NULL;
		return err == -EAGAIN ? 1 : err;
	}
	inject__stage(STAGE_STOPPED);
	err = send_stopped(s, st, tid, all, why, e);
	let_go(tid);
	stopped = now_ns() - *since_ns;
	hurry(false);
	r->stopped_ns = stopped > r->stopped_ns ? stopped : r->stopped_ns;
	if (err)
		r->looked_at++;
	else
		inject__stage(STAGE_RELEASED);
	return err;
}

int inject_thread__send(const struct inject_site *s, struct inject_stack *st, bool all,
			struct inject_report *r, uint64_t *since_ns, struct err *e)
{
	struct timespec pause = {.tv_nsec = ROUND_MS * 1000000l};
	struct candidate c[512];
	const char *why = NULL, *one;
	struct err last = {{0}};

	for (int round = 0; round < ROUNDS; round++) {
		size_t n = list_candidates(s->pid, c, sizeof(c) / sizeof(c[0]));
		size_t from = (size_t)round * TRIES_ROUND;

		for (size_t i = 0; i < n && i < TRIES_ROUND; i++) {
			/* In later rounds those that had no turn. */
			pid_t tid = c[n > TRIES_ROUND ? (i + from) % n : i].tid;
			int err;

			one = NULL;
			if (inject_site__is_gone(s))
				return err_set(e, -ESRCH, "process %d has ended", s->pid);
			err = attempt(s, st, tid, all, r, since_ns, &one, e);
			if (err <= 0) {
				r->tid = tid;
				return err;
			}
			if (one) {
				log_dbg("thread %d is left alone: %s", tid, one);
				snprintf(last.text, sizeof(last.text), "%s", one);
				why = last.text;
			}
		}
		nanosleep(&pause, NULL);
	}
	return err_set(
	    e, -EAGAIN,
	    "no thread of process %d was found at a safe point: %s; start it by qbpf run "
	    "--cuda agent",
	    s->pid, why ? why : "none waits or runs");
}

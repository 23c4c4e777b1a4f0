// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stopping a thread where it can be sent; see inject_thread.h.
 *
 * SYSTEM CALLS. A thread that waits in one is taken out of it by the stop, and makes it anew when it
 * comes back by its own code (stopped_call.h), also where it is let go after all. Which threads that may
 * be done to, and when, says inject_pick.h.
 *
 * SIGNALS. A thread with one on its way is let go. One that comes while it is away waits until it is
 * back, and is taken before the call is made anew: as if it had come just before the call.
 */
#include "trace/inject_thread.h"

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
#include "trace/inject_pick.h"
#include "trace/stopped_call.h"

#define ROUNDS	     60
#define ROUND_NS     20000000ull
#define TRIES_ROUND  16
#define WATCHED	     4
#define WATCH_NS     5000000000ull /* where there are waits with a limit */
#define STOP_WAIT_NS 3000000000ull /* it goes on as long as it does not stop */

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

/* While a thread is stopped for us, or may be in a moment, nobody else shall have our CPU. */
static void hurry(bool on)
{
	struct sched_param p = {.sched_priority = on};

	if (sched_setscheduler(0, (on ? SCHED_RR : SCHED_OTHER) | SCHED_RESET_ON_FORK, &p))
		log_dbg("sched_setscheduler: %s", strerror(errno));
}

/* The time left, which the stop has written where the call would not have. */
static void put_rest_back(pid_t tid, const struct wait *w)
{
	struct user_regs_struct r;
	uint8_t now[sizeof(w->was)] = {0};
	struct iovec local = {.iov_base = now, .iov_len = sizeof(now)};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)w->rest, .iov_len = sizeof(now)};

	if (!w->rest || stopped_regs__get(tid, &r) || (long)r.orig_rax != w->call ||
	    !stopped_call__has_rest(&r))
		return;
	if (process_vm_readv(tid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(now) ||
	    !memcmp(now, w->was, sizeof(now)))
		return;
	local.iov_base = (void *)(uintptr_t)w->was;
	process_vm_writev(tid, &local, 1, &remote, 1, 0);
}

/* One attach's search for a thread. */
struct search {
	const struct inject_site *site;
	struct inject_stack *stack;
	struct inject_pick *pick;
	bool all; /* the code is to be put there, too */
	struct inject_report *report;
	uint64_t *since_ns;
	struct err *e;
	struct err why; /* the last one was let go */
};

/* The stopped thread; 0: it was sent, 1: it was let go. */
static int use_stopped(struct search *a, const struct picked *now)
{
	struct user_regs_struct r;
	const char *why = NULL;
	int err;

	put_rest_back(now->tid, &now->wait);
	if (now->watched && (now->wait.kind == WAIT_AGAIN || (!stopped_regs__get(now->tid, &r) &&
							      stopped_call__is_interrupted(&r))))
		inject_pick__was_stopped(a->pick, now->tid);
	err = send_stopped(a->site, a->stack, now->tid, a->all, &why, a->e);
	if (why) {
		log_dbg("thread %d is left alone: %s", now->tid, why);
		err_set(&a->why, err, "%s", why);
	}
	return err;
}

/* 0: it was sent; 1: another one, or later. */
static int attempt(struct search *a, pid_t tid)
{
	struct inject_report *r = a->report;
	struct picked now;
	uint64_t stopped;
	int err;

	if (!inject_pick__is_ready(a->pick, tid, &now))
		return 1;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == ESRCH ? 1 : refused(a->site->pid, -errno, a->e);
	inject__stage(STAGE_SEIZED);
	*a->since_ns = now_ns();
	err = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ? 1 : await_stop(tid, a->e);
	if (err == -EAGAIN) {
		a->why = *a->e;
		return 1;
	}
	if (err)
		return err;
	inject__stage(STAGE_STOPPED);
	err = use_stopped(a, &now);
	let_go(tid);
	stopped = now_ns() - *a->since_ns;
	r->stopped_ns = stopped > r->stopped_ns ? stopped : r->stopped_ns;
	if (err) {
		r->looked_at++;
		return err;
	}
	r->tid = tid;
	inject__stage(STAGE_RELEASED);
	return 0;
}

/* The best, unless there are more than have a turn in a round: then those that had none yet. */
static pid_t in_turn(const struct search *a, bool watched, size_t i, size_t per_round, size_t round)
{
	size_t n = inject_pick__count(a->pick, watched);

	if (n > per_round)
		i = (i + round * per_round) % n;
	return inject_pick__get(a->pick, watched, i)->tid;
}

/* Those that may be stopped at any time. */
static int try_at_once(struct search *a, size_t round)
{
	size_t n = inject_pick__count(a->pick, false);
	int err = 1;

	for (size_t i = 0; err > 0 && i < n && i < TRIES_ROUND; i++) {
		if (inject_site__is_gone(a->site))
			return err_set(a->e, -ESRCH, "process %d has ended", a->site->pid);
		hurry(true);
		err = attempt(a, in_turn(a, false, i, TRIES_ROUND, round));
		hurry(false);
	}
	return err;
}

/* The others, as soon as they may be. */
static int watch(struct search *a, size_t round)
{
	struct timespec pause = {.tv_nsec = PICK_LOOK_NS};
	size_t n = inject_pick__count(a->pick, true);
	uint64_t until = now_ns() + ROUND_NS;
	int err = 1;

	hurry(n > 0);
	while (err > 0 && now_ns() < until) {
		nanosleep(&pause, NULL);
		if (inject_site__is_gone(a->site))
			err = err_set(a->e, -ESRCH, "process %d has ended", a->site->pid);
		for (size_t i = 0; err > 0 && i < n && i < WATCHED; i++)
			err = attempt(a, in_turn(a, true, i, WATCHED, round));
	}
	hurry(false);
	return err;
}

static int search(struct search *a)
{
	uint64_t until = now_ns() + WATCH_NS;
	const char *why;
	int err = 1;

	for (size_t round = 0;
	     round < ROUNDS || (inject_pick__has_limit(a->pick) && now_ns() < until); round++) {
		inject_pick__list(a->pick);
		err = try_at_once(a, round);
		if (err > 0)
			err = watch(a, round);
		if (err <= 0)
			return err;
	}
	why = a->why.text[0] ? a->why.text : inject_pick__why(a->pick);
	return err_set(
	    a->e, -EAGAIN,
	    "no thread of process %d was found at a safe point: %s; try again, or start it "
	    "by qbpf run --cuda agent",
	    a->site->pid, why ? why : "none waits or runs");
}

int inject_thread__send(const struct inject_site *s, struct inject_stack *st, bool all,
			struct inject_report *r, uint64_t *since_ns, struct err *e)
{
	struct search a = {
	    .site = s, .stack = st, .all = all, .report = r, .since_ns = since_ns, .e = e};
	int err = inject_pick__new(s->pid, &a.pick);

	if (err)
		return err_set(e, err, "out of memory");
	err = search(&a);
	inject_pick__free(a.pick);
	return err;
}

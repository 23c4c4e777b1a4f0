// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a ptrace stop does to each system call that waits; see waits.h.
 *
 * The table is what Linux 6.18 was seen to do: each call was stopped 300 ms after it had begun to wait
 * for 800 ms. signal(7) has most of it. Calls that are not in the table are not touched.
 */
#include "trace/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "elf/proc_state.h"

/* The kernel's numbers, for C libraries that are older. */
#define NR_io_pgetevents 333
#define NR_pidfd_open	 434
#define NR_io_uring	 426
#define NR_pidfd_getfd	 438
#define NR_epoll_pwait2	 441
#define NR_futex_waitv	 449
#define NR_futex_wait	 455

/* Of io_uring_enter(2). */
#define URING_EXT_ARG	  (1u << 3)
#define URING_ABS_TIMER	  (1u << 5)
#define URING_EXT_ARG_REG (1u << 6)

#define PIDFD_OF_THREAD O_EXCL
#define STACK_MAX	(1u << 20)

/* How a call's arguments tell what becomes of it. */
enum rule {
	TIMED,	   /* waits for a point in time, or for ever */
	UNLIMITED, /* waits for ever */
	SLEEP,	   /* as TIMED; arg: a time, the next one: where the rest is written to */
	TIME_BACK, /* arg: a time, which the kernel replaces by what is left if it can */
	LIMIT_MS,  /* arg: ms, 0 and less: none */
	LIMIT,	   /* arg: a time, or NULL */
	REAPS,	   /* as LIMIT; and takes what there is, until it has enough */
	URING,	   /* arg: flags, and what they say of the next ones */
	RECEIVES,  /* arg: flags, -1: it has none */
	RECEIVES_MANY,
	CONNECTS,
	SENDS, /* some of it may be sent already */
};

struct call {
	int nr;
	const char *name;
	enum rule rule;
	int arg;
	bool interrupted; /* a stop may end it with EINTR, see wait__is_interrupted() */
};

static const struct call calls[] = {
    /* ERESTART_RESTARTBLOCK, or a time that is absolute. */
    {SYS_poll, "poll", TIMED, 0, false},
    {SYS_futex, "futex", TIMED, 0, false},
    {NR_futex_wait, "futex_wait", TIMED, 0, false},
    {NR_futex_waitv, "futex_waitv", TIMED, 0, false},
    {SYS_nanosleep, "nanosleep", SLEEP, 0, false},
    {SYS_clock_nanosleep, "clock_nanosleep", SLEEP, 2, false},
    {SYS_restart_syscall, "restart_syscall", SLEEP, 0, false},
    {SYS_mq_timedreceive, "mq_timedreceive", UNLIMITED, 0, false},
    {SYS_mq_timedsend, "mq_timedsend", UNLIMITED, 0, false},
    /* ERESTARTNOHAND; EINTR where the time cannot be written. */
    {SYS_select, "select", TIME_BACK, 4, true},
    {SYS_pselect6, "pselect6", TIME_BACK, 4, true},
    {SYS_ppoll, "ppoll", TIME_BACK, 2, true},
    /* ERESTARTSYS, ERESTARTNOHAND. */
    {SYS_pause, "pause", UNLIMITED, 0, false},
    {SYS_rt_sigsuspend, "rt_sigsuspend", UNLIMITED, 0, false},
    {SYS_wait4, "wait4", UNLIMITED, 0, false},
    {SYS_waitid, "waitid", UNLIMITED, 0, false},
    {SYS_msgrcv, "msgrcv", UNLIMITED, 0, false},
    {SYS_msgsnd, "msgsnd", UNLIMITED, 0, false},
    {SYS_flock, "flock", UNLIMITED, 0, false},
    {SYS_fcntl, "fcntl", UNLIMITED, 0, false},
    {SYS_open, "open", UNLIMITED, 0, false},
    {SYS_openat, "openat", UNLIMITED, 0, false},
    /* EINTR, whatever limit they have. */
    {SYS_semop, "semop", UNLIMITED, 0, true},
    {SYS_epoll_wait, "epoll_wait", LIMIT_MS, 3, true},
    {SYS_epoll_pwait, "epoll_pwait", LIMIT_MS, 3, true},
    {NR_epoll_pwait2, "epoll_pwait2", LIMIT, 3, true},
    {SYS_semtimedop, "semtimedop", LIMIT, 3, true},
    {SYS_rt_sigtimedwait, "sigtimedwait", LIMIT, 2, true},
    {SYS_io_getevents, "io_getevents", REAPS, 4, true},
    {NR_io_pgetevents, "io_pgetevents", REAPS, 4, true}, /* or ERESTARTNOHAND */
    {NR_io_uring, "io_uring_enter", URING, 3, true},
    /* ERESTARTSYS; EINTR on a socket with SO_RCVTIMEO or SO_SNDTIMEO. */
    {SYS_read, "read", RECEIVES, -1, true},
    {SYS_readv, "readv", RECEIVES, -1, true},
    {SYS_recvfrom, "recv", RECEIVES, 3, true},
    {SYS_recvmsg, "recvmsg", RECEIVES, 2, true},
    {SYS_recvmmsg, "recvmmsg", RECEIVES_MANY, 3, true},
    {SYS_accept, "accept", RECEIVES, -1, true},
    {SYS_accept4, "accept4", RECEIVES, -1, true},
    {SYS_connect, "connect", CONNECTS, 0, true},
    {SYS_write, "write", SENDS, 0, true},
    {SYS_writev, "writev", SENDS, 0, true},
    {SYS_sendto, "send", SENDS, 0, true},
    {SYS_sendmsg, "sendmsg", SENDS, 0, true},
    {SYS_sendmmsg, "sendmmsg", SENDS, 0, true},
    {SYS_sendfile, "sendfile", SENDS, 0, false},
    {SYS_splice, "splice", SENDS, 0, false},
};

static const char limit_again[] = "a limit that would begin again";
static const char in_part[] = "of whose work a part may be done already";

static const struct call *find(long nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

bool wait__is_interrupted(long call)
{
	const struct call *c = find(call);

	return c && c->interrupted;
}

static void again(struct wait *w)
{
	w->kind = WAIT_AGAIN;
	w->why = limit_again;
}

static void never(struct wait *w, const char *why)
{
	w->kind = WAIT_NEVER;
	w->why = why;
}

static bool read_target(pid_t tid, uint64_t at, void *to, size_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)at, .iov_len = len};

	return at && process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/* --- what the file is that it waits for --------------------------------------------------------- */

/* One of the target's own, for a moment; a negative errno. */
static int borrow_fd(pid_t pid, pid_t tid, int fd)
{
	int pidfd = (int)syscall(NR_pidfd_open, tid, PIDFD_OF_THREAD), own;

	if (pidfd < 0) /* before 6.9: by its first thread, which has the same as a rule */
		pidfd = (int)syscall(NR_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	own = (int)syscall(NR_pidfd_getfd, pidfd, fd, 0);
	if (own < 0)
		own = -errno;
	close(pidfd);
	return own;
}

static void of_socket(int fd, bool receives, struct wait *w)
{
	struct timeval limit = {0};
	socklen_t len = sizeof(limit);
	int least = 1;

	if (getsockopt(fd, SOL_SOCKET, receives ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &len) ||
	    limit.tv_sec || limit.tv_usec)
		again(w);
	len = sizeof(least);
	if (receives && !getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &len) && least > 1)
		never(w, in_part);
}

/* VMIN may be a part, and VTIME a limit. */
static void of_terminal(const struct termios *t, struct wait *w)
{
	if (t->c_lflag & ICANON)
		return;
	if (t->c_cc[VMIN] > 1)
		never(w, in_part);
	else if (t->c_cc[VTIME])
		again(w);
}

static void of_file(pid_t pid, pid_t tid, uint64_t fd, bool receives, struct wait *w)
{
	char path[64];
	struct termios t;
	struct stat st;
	int own;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", pid, tid, (int)fd);
	if (stat(path, &st) || (!S_ISSOCK(st.st_mode) && !S_ISCHR(st.st_mode)))
		return;
	own = borrow_fd(pid, tid, (int)fd);
	if (own < 0)
		again(w);
	else if (S_ISSOCK(st.st_mode))
		of_socket(own, receives, w);
	else if (!tcgetattr(own, &t))
		of_terminal(&t, w);
	if (own >= 0)
		close(own);
}

/* --- what its arguments say --------------------------------------------------------------------- */

/* The C library gives the kernel a copy on the stack, whose page need not be looked for. */
static bool is_writable(pid_t tid, uint64_t at, uint64_t sp)
{
	char dir[64], *text, *line, *next;
	bool writable = false;
	size_t len;

	if (at >= sp && at - sp < STACK_MAX)
		return true;
	snprintf(dir, sizeof(dir), "/proc/%d", tid);
	if (proc_state__read_file(dir, "maps", &text, &len))
		return false;
	for (line = text; line && !writable; line = next) {
		unsigned long start, end;
		char perm[5];

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		if (sscanf(line, "%lx-%lx %4s", &start, &end, perm) == 3 && at >= start && at < end)
			writable = perm[1] == 'w';
	}
	free(text);
	return writable;
}

/*
 * nanosleep(&time, &time) is to find the time unchanged when it has slept, and writes there when it is
 * stopped.
 */
static void keep_rest(pid_t tid, const uint64_t *arg, struct wait *w)
{
	w->rest = 0;
	for (int i = 0; i <= 2; i += 2) {
		if (w->call == SYS_restart_syscall ? arg[i] != arg[i + 1]
						   : i != (w->call == SYS_nanosleep ? 0 : 2))
			continue;
		if (read_target(tid, arg[i + 1], w->was, sizeof(w->was))) {
			w->rest = arg[i + 1];
			return;
		}
	}
}

/* How many it waits for is told by one wake-up for each, so that a beginning cannot be seen. */
static void of_uring(pid_t tid, const uint64_t *arg, struct wait *w)
{
	struct {
		uint64_t mask;
		uint32_t mask_bytes, least_us;
		uint64_t time;
	} ext = {0};

	if (!(arg[3] & URING_EXT_ARG))
		return;
	if (!(arg[3] & URING_EXT_ARG_REG) && read_target(tid, arg[4], &ext, sizeof(ext)) &&
	    !ext.least_us && (!ext.time || (arg[3] & URING_ABS_TIMER)))
		return;
	if (arg[2] > 1)
		never(w, "a limit that would begin again, for several results");
	else
		again(w);
}

static void apply(const struct call *c, pid_t pid, pid_t tid, const uint64_t *arg, uint64_t sp,
		  struct wait *w)
{
	switch (c->rule) {
	case TIMED:
		w->timed = true;
		break;
	case SLEEP:
		w->timed = true;
		keep_rest(tid, arg, w);
		break;
	case TIME_BACK:
		w->timed = true;
		if (arg[c->arg] && !is_writable(tid, arg[c->arg], sp))
			again(w);
		break;
	case LIMIT_MS:
		if ((int)arg[c->arg] > 0)
			again(w);
		break;
	case REAPS:
		if (arg[1] > 1)
			never(w, in_part);
		else if (arg[c->arg])
			again(w);
		break;
	case LIMIT:
		if (arg[c->arg])
			again(w);
		break;
	case URING:
		of_uring(tid, arg, w);
		break;
	case RECEIVES_MANY:
		if (arg[2] > 1 && !(arg[3] & MSG_WAITFORONE))
			never(w, in_part);
		else
			of_file(pid, tid, arg[0], true, w);
		break;
	case RECEIVES:
		if (c->arg >= 0 && (arg[c->arg] & MSG_WAITALL))
			never(w, in_part);
		else
			of_file(pid, tid, arg[0], true, w);
		break;
	case CONNECTS:
		of_file(pid, tid, arg[0], false, w);
		break;
	case SENDS:
		never(w, in_part);
		break;
	case UNLIMITED:
		break;
	}
}

void wait__read(pid_t pid, pid_t tid, const char *line, struct wait *w)
{
	const struct call *c;
	uint64_t arg[6], sp;

	memset(w, 0, sizeof(*w));
	if (sscanf(line, "%ld 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx 0x%lx", &w->call, &arg[0],
		   &arg[1], &arg[2], &arg[3], &arg[4], &arg[5], &sp) != 8) {
		w->call = -1;
		snprintf(w->name, sizeof(w->name), "the kernel");
		never(w, "no system call");
		return;
	}
	c = find(w->call);
	if (c) {
		snprintf(w->name, sizeof(w->name), "%s", c->name);
		apply(c, pid, tid, arg, sp, w);
	} else {
		snprintf(w->name, sizeof(w->name), "system call %ld", w->call);
		never(w, "of which it is not known what a stop does");
	}
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a ptrace stop does to a thread that waits in the kernel.
 *
 * The stop takes it out of its system call, and the call is made anew when it goes on: by the kernel or,
 * where the call fails with EINTR instead, by stopped_call.h. Some calls then end when they would have
 * ended. The limit of others begins again. And some have done a part of their work, and return that.
 */
#ifndef QBPF_TRACE_WAITS_H
#define QBPF_TRACE_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum wait_kind {
	WAIT_EXACT, /* made anew it ends when it would have ended */
	WAIT_AGAIN, /* its limit begins again: it may be stopped where it has just begun */
	WAIT_NEVER, /* it may have done a part, or nothing is known of it */
};

struct wait {
	enum wait_kind kind;
	bool timed;	 /* one of the waits for a time, or for a condition: nothing urgent */
	long call;	 /* the system call's number */
	char name[24];	 /* and its name */
	const char *why; /* but for WAIT_EXACT; for people, after the name */
	/* 16 bytes of the target's that the stop writes the time left into, which it must not: 0: none. */
	uint64_t rest;
	uint8_t was[16]; /* what is there */
};

/*
 * Of a thread that sleeps; `line` is its /proc/PID/task/TID/syscall. Never fails: what cannot be
 * read counts as the worse.
 */
void wait__read(pid_t pid, pid_t tid, const char *line, struct wait *w);

/* Does a mere stop end such a call with EINTR, when it has done nothing? */
bool wait__is_interrupted(long call);

#endif

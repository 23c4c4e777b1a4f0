/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Brings the CUDA agent into a running process.
 *
 * WHAT IS DONE TO THE TARGET. One of its threads, at a point where that is safe, is sent through a
 * few hundred bytes of code of ours (inject_stub.h), which lie in the unused rest of the last page of
 * a library's code, and goes on where it was. All that it does there is to start one more thread,
 * and that opens the agent. The thread is stopped by ptrace for as long as it takes to see that the
 * point is safe (well under a millisecond in most cases), and then delayed by a pthread_create.
 *
 * WHEN QBPF DIES. The one change of a thread's registers is one system call. Before it there is only
 * code in a place where no one looks; after it the thread finds its own way back, and the new one
 * gives up by itself when nobody has told it to go on within 20 s.
 *
 * WHAT IS A SAFE POINT. The thread must not hold what pthread_create needs, that is the allocator's
 * or the dynamic linker's locks, nor be half-way through their work. Its whole stack is unwound:
 * no frame may be the linker's or an allocator's, and of the C library only a call that waits or the
 * thread's own beginning. Else another thread, or another moment, is tried.
 */
#ifndef QBPF_TRACE_INJECT_H
#define QBPF_TRACE_INJECT_H

#include <stdint.h>
#include <sys/types.h>

#include "trace/agents.h"

struct inject_report {
	pid_t tid;		/* the thread that was sent */
	uint64_t stopped_ns;	/* by ptrace, in all attempts the longest */
	uint64_t away_ns;	/* until it was back at its own work, at most */
	uint64_t opened_ns;	/* from there until the agent had been started */
	unsigned int looked_at; /* threads that were stopped and let go for not being safe */
};

/*
 * The agent, a file, writes into a new ring of `a`. -EOPNOTSUPP: such a process cannot be had;
 * -EPERM: not allowed; -EBUSY: another qbpf has it; -EAGAIN: no safe point was found; all with e.
 */
int inject__agent(pid_t pid, const char *agent, struct agents *a, struct inject_report *out,
		  struct err *e);

#endif

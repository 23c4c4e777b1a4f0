/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CUDA agents of a session: one in each process that has one, and the ring that it writes into
 * (qbpf/ring.h). A thread takes what comes and hands it to a gpu_feed. What an agent says about itself is told in one line each
 * time that it changes to what has not been told yet.
 *
 *	agents__new -> {agents__for_child -> agents__child_started | agents__adopt} ->
 *	{agents__tell, agents__sums}* -> agents__stop -> agents__free
 */
#ifndef QBPF_TRACE_AGENTS_H
#define QBPF_TRACE_AGENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"
#include "qbpf/ring.h"
#include "trace/gpu_feed.h"

struct agents;

int agents__new(struct agents **out, struct err *e);
/* Agents that are still in let go by themselves. */
void agents__free(struct agents *a);

/*
 * A ring for the program that the next fork starts, and for its children: the driver loads the agent,
 * a file, when it is initialised. The environment is changed until agents__child_started.
 * -EBUSY: it names another tool's agent already.
 */
int agents__for_child(struct agents *a, const char *agent, struct err *e);
void agents__child_started(struct agents *a);

/* The empty memfd `fd` in process pid becomes a ring; *ring: which. */
int agents__adopt(struct agents *a, pid_t pid, int fd, size_t *ring, struct err *e);
/* Nobody has come to write into it, and nobody will. */
void agents__drop(struct agents *a, size_t ring);

/* Until each agent that was brought into a process is at work, or will not be: a second at most. */
void agents__wait(struct agents *a);

/* Processes that an agent was brought into. */
size_t agents__count(const struct agents *a);
/* Readable when an agent's state has changed. */
int agents__fd(const struct agents *a);
/* Where what they deliver goes; theirs. */
struct gpu_feed *agents__feed(struct agents *a);
/* One line for each state that is new; of a process whose state keeps changing, only a few. */
void agents__tell(struct agents *a);
/* Does one refuse to work? why: the line about it, which is not told any more. */
bool agents__refused(struct agents *a, char *why, size_t size);

/* Asks all to leave, takes what they have left and waits for them, not longer than a few seconds. The
 * feed has been started. */
void agents__stop(struct agents *a);

/* What has come, and what has not, of all rings. */
struct agents_sums {
	bool begun;			/* an agent has come, whatever became of it */
	unsigned sudden;		/* programs that ended before they could hand over */
	bool second;			/* where another one was, and had to do without a ring */
	uint64_t read[QBPF_RING_TYPES]; /* by enum qbpf_ring_type */
	uint64_t lost[QBPF_RING_TYPES]; /* found no room in the ring */
	uint64_t dropped;		/* by CUPTI */
	uint64_t discarded;		/* the agent had no buffer */
	uint64_t unreadable;		/* of an unknown type */
	uint64_t broken;		/* buffers and lanes whose rest could not be read */
};

void agents__sums(struct agents *a, struct agents_sums *out);
/* "GPU: 2000 kernels, 4000 copies, 9000 calls; lost 3: 3 found the agent's ring full", malloc'ed. */
char *agents_sums__text(const struct agents_sums *s, uint64_t unseen_spans);

/* Has one of them been at work? -ENODEV with the reason if not. */
int agents__check(struct agents *a, struct err *e);

#endif

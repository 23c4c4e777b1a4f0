/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --cuda of attach and run: who gets an agent, who gets uprobes on CUDA's functions, and what it means
 * when no agent can be had.
 */
#ifndef QBPF_CMD_CUDA_H
#define QBPF_CMD_CUDA_H

#include "cmd/options.h"
#include "trace/agents.h"
#include "trace/session.h"

struct cuda {
	struct agents *agents; /* NULL: none is wanted, or can be had and need not */
	bool instead;	       /* of it, when it refuses, uprobes */
	char hint[512];	       /* for session_opts */
};

/*
 * Before the program is started. With --cuda auto an agent goes into its environment, where nothing but
 * CUDA's driver looks at it; when none can be had, or it finds that it cannot work, CUDA's functions are
 * armed.
 */
int cuda__for_run(const struct options *o, struct cuda *c, struct err *e);
/* For running processes: an agent only on request, because it takes stopping a thread of theirs. */
int cuda__for_attach(const struct options *o, struct cuda *c, struct err *e);
/* Which of the two the session is to see, and what to say when it arms functions of CUDA. */
void cuda__session_opts(const struct cuda *c, struct session_opts *so);
/* Brings an agent into each process, before any probe is armed. */
int cuda__attach(const struct options *o, struct agents *a, struct err *e);
/* After the last report. Fails when the agent that was asked for by name was never at work. */
int cuda__finish(const struct options *o, struct agents *a, struct err *e);
void cuda__clear(struct cuda *c);

#endif

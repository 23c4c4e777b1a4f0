/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending one thread of a process, at a safe point, through the code of inject_stub.h. */
#ifndef QBPF_TRACE_INJECT_THREAD_H
#define QBPF_TRACE_INJECT_THREAD_H

#include "trace/inject.h"
#include "trace/inject_stack.h"

/*
 * By a thread of qbpf's that does nothing else: when it ends, the kernel lets go of what it holds. The
 * code is in place, except, if `poke`, that it has to be put there by ptrace. r->tid is the thread,
 * *since_ns when it was stopped.
 */
int inject_thread__send(const struct inject_site *s, struct inject_stack *st, bool poke,
			struct inject_report *r, uint64_t *since_ns, struct err *e);

/* Kills or stops qbpf at this stage if QBPF_TEST_DIE_AT or QBPF_TEST_STOP_AT says so: for tests. */
enum inject_stage {
	STAGE_CODE = 1, /* the code is in its place */
	STAGE_SEIZED,	/* a thread is ptraced */
	STAGE_STOPPED,	/* and stopped */
	STAGE_CHECKED,	/* at a safe point */
	STAGE_SENT,	/* its registers are changed, it is still stopped */
	STAGE_RELEASED, /* it runs through the code */
	STAGE_BACK,	/* and was seen to be back */
	STAGE_FILES,	/* the new thread waits for us */
	STAGE_GO,	/* it has been told to go on */
	STAGE_DONE,	/* the agent has been started */
	STAGE_CLEAN,	/* the code has been taken away */
};
void inject__stage(enum inject_stage stage);

#endif

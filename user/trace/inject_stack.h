/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is a stopped thread at a point where it may be made to call pthread_create? See inject.h. */
#ifndef QBPF_TRACE_INJECT_STACK_H
#define QBPF_TRACE_INJECT_STACK_H

#include <sys/types.h>

#include "trace/inject_site.h"

struct inject_stack;

/* Reads all unwinding tables beforehand: later there is a thread waiting. */
int inject_stack__new(const struct inject_site *s, struct inject_stack **out, struct err *e);
void inject_stack__free(struct inject_stack *st);

/* By the tracer of the stopped thread. NULL: it is; else why not. */
const char *inject_stack__check(struct inject_stack *st, pid_t tid);

/* The rule alone: owners and names (of CODE_LIBC, NULL: not known), innermost frame first. */
struct inject_frame {
	enum code_owner owner;
	const char *name;
};
const char *inject_stack__judge(const struct inject_frame *frames, size_t n);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which thread of a process is to be stopped, and when, so that none is disturbed.
 *
 * A thread whose wait ends when it would have ended anyway may be stopped at any time. One whose limit
 * would begin again may be stopped where its wait has just begun: it is looked at every ms, and one that
 * has had a CPU between two looks and waits now has begun since the first of them. One that is running
 * is watched, too: it may just have been woken, and have to find in the kernel still that its time is over.
 *
 * Not seen is that a thread was woken within a wait, found nothing, and waits on.
 */
#ifndef QBPF_TRACE_INJECT_PICK_H
#define QBPF_TRACE_INJECT_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/waits.h"

#define PICK_LOOK_NS 1000000 /* between two looks at a thread that is watched */

struct inject_pick;

struct picked {
	pid_t tid;
	bool watched;	  /* it has to be looked at again: inject_pick__is_ready() */
	struct wait wait; /* of a thread that sleeps */
};

int inject_pick__new(pid_t pid, struct inject_pick **out);
void inject_pick__free(struct inject_pick *p);

/* Lists all threads again, the best first. Those that are to be watched come after the others. */
void inject_pick__list(struct inject_pick *p);
size_t inject_pick__count(const struct inject_pick *p, bool watched);
const struct picked *inject_pick__get(const struct inject_pick *p, bool watched, size_t i);

/* Now, for a few microseconds: may it be stopped? *out as it is now. */
bool inject_pick__is_ready(struct inject_pick *p, pid_t tid, struct picked *out);

/* It was stopped in a wait whose limit has begun again for that: not too often. */
void inject_pick__was_stopped(struct inject_pick *p, pid_t tid);

/* Does a thread wait with a limit, so that it is worth while to watch on? */
bool inject_pick__has_limit(const struct inject_pick *p);

/* Why none is had, by one of those that are not; NULL: there is none. */
const char *inject_pick__why(struct inject_pick *p);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Starting a program under observation from its first instruction, for `qbpf run`.
 *
 * The child stops at its exec. While the dynamic linker maps libraries, the child is stopped
 * at each system call by ptrace, so that what has been mapped can be armed before any of its
 * code runs. The first system call made from outside the linker ends that: the child is let go
 * and no longer traced. Nothing is ever written into the child; if qbpf dies, it simply goes
 * on.
 */
#ifndef QBPF_TRACE_LAUNCH_H
#define QBPF_TRACE_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "err.h"

struct launch;

/* Forks and execs argv[0] by PATH; returns with the child stopped after its exec. -ENOENT,
 * -EACCES: it could not be started. */
int launch__start(char *const argv[], struct launch **out, struct err *e);
pid_t launch__pid(const struct launch *l);
/* Nothing more will be mapped before its code runs. */
bool launch__is_static(const struct launch *l);
/* Lets the stopped child go on, towards its next stop. */
int launch__go(struct launch *l, struct err *e);
/*
 * After SIGCHLD. LAUNCH_MAPPED: stopped with new code mapped, arm it, then launch__go().
 * LAUNCH_FREE: start-up is over; the child is still stopped, launch__go() lets it run
 * untraced. LAUNCH_ENDED: *status as from
 * waitpid. LAUNCH_NONE: nothing happened.
 */
enum launch_event { LAUNCH_NONE, LAUNCH_MAPPED, LAUNCH_FREE, LAUNCH_ENDED };
enum launch_event launch__wait(struct launch *l, int *status);
/* Kills the child if it has not ended, reaps it. */
void launch__kill(struct launch *l);
void launch__free(struct launch *l);

#endif

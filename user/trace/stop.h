/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All threads of a process, stopped for a moment by ptrace. Should qbpf die meanwhile, the
 * kernel lets them go on.
 */
#ifndef QBPF_TRACE_STOP_H
#define QBPF_TRACE_STOP_H

#include <sys/types.h>

#include "err.h"

struct stopped;

/* -EPERM: traced by another (a debugger) or not allowed; -ETIMEDOUT: a thread hangs in the
 * kernel; -ESRCH: it has ended. Then nothing stays stopped. */
int stopped__new(pid_t pid, struct stopped **out, struct err *e);
void stopped__free(struct stopped *s); /* lets them go on */

#endif

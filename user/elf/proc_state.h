/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which /proc folder speaks for a process, and why there may be nothing to see in it: the
 * first half of proc_maps__read().
 */
#ifndef QBPF_ELF_PROC_STATE_H
#define QBPF_ELF_PROC_STATE_H

#include <stddef.h>
#include <sys/types.h>

#include "err.h"

/*
 * Writes "/proc/N" of a thread of pid that is alive: its first thread may have ended before the
 * others, and then shows no memory. -ESRCH: no such process; -ENOENT: a kernel thread or zombie.
 */
int proc_state__live_task(pid_t pid, char *proc, size_t size, struct err *e);

/* A whole file of proc into malloc'ed *text, bounded. */
int proc_state__read_file(const char *proc, const char *name, char **text, size_t *len);

/* Says why a process shows no memory; always -ENOENT or -ESRCH. */
int proc_state__no_memory(pid_t pid, const char *proc, struct err *e);

#endif

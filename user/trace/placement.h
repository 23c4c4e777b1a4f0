/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which CPUs qbpf's own threads run on while it records: one that was asked for, or those that the
 * target's threads use least. A place is looked for again now and then, since targets move.
 */
#ifndef QBPF_TRACE_PLACEMENT_H
#define QBPF_TRACE_PLACEMENT_H

#include <sys/types.h>

#include "err.h"

#define PLACEMENT_AUTO (-1)

struct placement;

/* cpu: of all threads of this process from now on, or PLACEMENT_AUTO. -EINVAL: there is none. */
int placement__new(int cpu, struct placement **out, struct err *e);
/* Back to where the process could run before. */
void placement__free(struct placement *p);

/* Once in a while, with the processes that are traced: compares with what they had used before. */
void placement__update(struct placement *p, const pid_t *pids, size_t n);

#endif

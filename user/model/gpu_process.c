// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_process.c - whose a ring is, and what processes are called. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

static struct gpu_process *find(const struct gpu *g, uint32_t tgid)
{
	for (size_t i = 0; i < g->nprocesses; i++)
		if (g->processes[i].tgid == tgid)
			return &g->processes[i];
	return NULL;
}

int gpu__process(struct gpu *g, uint32_t tgid, const char *comm)
{
	struct gpu_process *p = find(g, tgid);
	char *copy;

	if (!p && g->nprocesses == GPU_PROCESSES_MAX)
		return 0; /* it has no name */
	if (!p && gpu_grow(&g->processes, g->nprocesses, &g->processes_cap, sizeof(*g->processes)))
		return -ENOMEM;
	copy = strdup(comm);
	if (!copy)
		return -ENOMEM;
	if (!p) {
		p = &g->processes[g->nprocesses++];
		*p = (struct gpu_process){.tgid = tgid};
	}
	free(p->comm);
	p->comm = copy;
	return 0;
}

void gpu_process__note(struct gpu_ring *r, uint32_t tgid)
{
	r->changed |= r->tgid && r->tgid != tgid;
	r->tgid = tgid;
}

uint32_t gpu_process__of(const struct gpu *g, uint32_t ring)
{
	return ring < g->nrings && !g->rings[ring].changed ? g->rings[ring].tgid : 0;
}

const char *gpu_process__comm(const struct gpu *g, uint32_t tgid)
{
	const struct gpu_process *p = tgid ? find(g, tgid) : NULL;

	return p ? p->comm : NULL;
}

void gpu_process__clear(struct gpu *g)
{
	for (size_t i = 0; i < g->nprocesses; i++)
		free(g->processes[i].comm);
	free(g->processes);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * truth.c - CUDASIM_TRUTH: all that happened, with its exact times, as CSV
 *
 * One line for each call, activity and lost record, written at once (a killed program leaves what
 * it did). An end of 18446744073709551615 is that of work that never ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

static int truth_fd = -1;

static const char *const kind_names[] = {
    [SIM_KERNEL] = "kernel", [SIM_MEMCPY] = "memcpy", [SIM_MEMSET] = "memset",
    [SIM_SYNC] = "sync",     [SIM_GRAPH] = "graph",   [SIM_OVERHEAD] = "overhead",
    [SIM_EVENT] = "event",   [SIM_HOSTFN] = "hostfn",
};

static void put(const char *line, int n)
{
	if (n > 0 && write(truth_fd, line, (size_t)n) != n) {
		fprintf(stderr, "cudasim: CUDASIM_TRUTH: %s\n", strerror(errno));
		_exit(120);
	}
}

void truth_open(void)
{
	const char *path = getenv("CUDASIM_TRUTH");
	static const char head[] =
	    "what,name,correlation,tid,submit,start,end,device,context,stream,"
	    "bytes,copy,source,target,async,graph,node,type,result\n";

	if (!path || truth_fd >= 0)
		return;
	truth_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (truth_fd < 0) {
		fprintf(stderr, "cudasim: CUDASIM_TRUTH: %s: %s\n", path, strerror(errno));
		_exit(120);
	}
	put(head, (int)sizeof(head) - 1);
}

void truth_call(const struct sim_call *c)
{
	char line[512];

	if (truth_fd < 0)
		return;
	put(line, snprintf(line, sizeof(line),
			   "%s,%s,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",,,,,,,,,,,%u,%d\n",
			   c->domain == SIM_RUNTIME ? "runtime" : "driver", c->name, c->correlation,
			   c->tid, c->enter, c->enter, c->exit, c->cbid, c->result));
}

void truth_activity(const struct sim_activity *a)
{
	char line[512];

	if (truth_fd < 0)
		return;
	put(line,
	    snprintf(line, sizeof(line),
		     "%s,%.200s,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%" PRIu64
		     ",%u,%u,%u,%d,%u,%" PRIu64 ",%u,%u\n",
		     kind_names[a->kind], a->name ? a->name : "", a->correlation, a->tid, a->submit,
		     a->start, a->end, a->device, a->context, a->stream, a->bytes, a->copy_kind,
		     a->src_kind, a->dst_kind, a->async, a->graph, a->node, a->type, a->result));
}

void sim_truth_lost(const char *what, uint32_t correlation)
{
	char line[128];

	if (truth_fd < 0)
		return;
	put(line, snprintf(line, sizeof(line), "lost,%s,%u,,,,,,,,,,,,,,,,\n", what, correlation));
}

void sim_truth_tool(const char *name, uint32_t arg, int result)
{
	char line[256];
	uint64_t now = sim_now();

	if (truth_fd < 0)
		return;
	put(line, snprintf(line, sizeof(line),
			   "cupti,%s,0,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",,,,,,,,,,,%u,%d\n",
			   name, sim_self()->tid, now, now, now, arg, result));
}

void truth_forget(void)
{
	if (truth_fd >= 0)
		close(truth_fd);
	truth_fd = -1;
}

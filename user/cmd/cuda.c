// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --cuda; see cuda.h. */
#include "cmd/cuda.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "trace/agent_file.h"
#include "trace/inject.h"

int cuda__for_run(const struct options *o, struct cuda *c, struct err *e)
{
	char path[PATH_MAX];
	int err;

	memset(c, 0, sizeof(*c));
	if (o->plan.cuda != CUDA_AUTO && o->plan.cuda != CUDA_AGENT)
		return 0;
	err = agent_file__find(path, sizeof(path), e);
	if (!err)
		err = agents__new(&c->agents, e);
	if (!err)
		err = agents__for_child(c->agents, path, e);
	c->instead = o->plan.cuda == CUDA_AUTO;
	if (!err)
		return 0;
	cuda__clear(c);
	if (o->plan.cuda == CUDA_AGENT)
		return err;
	snprintf(c->hint, sizeof(c->hint),
		 "CUDA's calls are seen by uprobes, and nothing of the GPU: %s", e->text);
	return 0;
}

static int inject(pid_t pid, const char *path, struct agents *a, struct err *e)
{
	struct inject_report r;
	int err = inject__agent(pid, path, a, &r, e);

	if (err)
		return err;
	log_dbg("%u threads were stopped before, and left alone", r.looked_at);
	log_info(
	    "the CUDA agent is in process %d: thread %d was stopped for at most %.2f ms, and away "
	    "from its work for %.2f ms; the agent was there %.0f ms later",
	    pid, r.tid, (double)r.stopped_ns / 1e6, (double)r.away_ns / 1e6,
	    (double)r.opened_ns / 1e6);
	return 0;
}

int cuda__for_attach(const struct options *o, struct cuda *c, struct err *e)
{
	memset(c, 0, sizeof(*c));
	if (o->plan.cuda == CUDA_AUTO)
		snprintf(c->hint, sizeof(c->hint),
			 "CUDA's calls are seen by uprobes; --cuda agent shows what the GPU did "
			 "too, and without a trap in each call");
	return o->plan.cuda == CUDA_AGENT ? agents__new(&c->agents, e) : 0;
}

void cuda__session_opts(const struct cuda *c, struct session_opts *so)
{
	so->agents = c->agents;
	so->cuda_instead = c->instead;
	so->cuda_hint = *c->hint ? c->hint : NULL;
	if (c->agents)
		so->plan.cuda = CUDA_AGENT;
}

int cuda__attach(const struct options *o, struct agents *a, struct err *e)
{
	char path[PATH_MAX];
	int err;

	if (!a)
		return 0;
	err = agent_file__find(path, sizeof(path), e);
	for (size_t i = 0; i < o->npids && !err; i++)
		err = inject(o->pids[i], path, a, e);
	return err;
}

int cuda__finish(const struct options *o, struct agents *a, struct err *e)
{
	return a && o->plan.cuda == CUDA_AGENT ? agents__check(a, e) : 0;
}

void cuda__clear(struct cuda *c)
{
	agents__free(c->agents);
	c->agents = NULL;
}

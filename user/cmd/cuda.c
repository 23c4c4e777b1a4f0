// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --cuda; see cuda.h. */
#include "cmd/cuda.h"

#include <limits.h>

#include "log.h"
#include "trace/agent_file.h"
#include "trace/inject.h"

static bool is_wanted(const struct options *o)
{
	return o->plan.cuda == CUDA_AUTO || o->plan.cuda == CUDA_AGENT;
}

/* A fault is one only where the agent was asked for by name. */
static int tolerate(const struct options *o, int err, const struct err *e)
{
	if (!err || o->plan.cuda == CUDA_AGENT)
		return err;
	log_warn("no records of the GPU: %s", e->text);
	return 0;
}

int cuda__for_run(const struct options *o, struct agents **out, struct err *e)
{
	char path[PATH_MAX];
	int err;

	*out = NULL;
	if (!is_wanted(o))
		return 0;
	err = agent_file__find(path, sizeof(path), e);
	if (!err)
		err = agents__new(out, e);
	if (!err)
		err = agents__for_child(*out, path, e);
	if (err) {
		agents__free(*out);
		*out = NULL;
	}
	return tolerate(o, err, e);
}

static int inject(pid_t pid, const char *path, struct agents *a, struct err *e)
{
	struct inject_report r;
	int err = inject__agent(pid, path, a, &r, e);

	if (err)
		return err;
	log_dbg("%u threads were stopped before, and left alone", r.looked_at);
	log_info(
	    "the CUDA agent is in process %d: thread %d was stopped for %.2f ms and back at its "
	    "work after %.2f ms; the agent was there %.0f ms later",
	    pid, r.tid, (double)r.stopped_ns / 1e6, (double)r.away_ns / 1e6,
	    (double)r.opened_ns / 1e6);
	return 0;
}

int cuda__for_attach(const struct options *o, struct agents **out, struct err *e)
{
	*out = NULL;
	return is_wanted(o) ? agents__new(out, e) : 0;
}

int cuda__attach(const struct options *o, struct agents *a, struct err *e)
{
	char path[PATH_MAX];
	int err;

	if (!a)
		return 0;
	err = agent_file__find(path, sizeof(path), e);
	if (err)
		return tolerate(o, err, e);
	for (size_t i = 0; i < o->npids && !err; i++)
		err = tolerate(o, inject(o->pids[i], path, a, e), e);
	return err;
}

int cuda__finish(const struct options *o, struct agents *a, struct err *e)
{
	return a && o->plan.cuda == CUDA_AGENT ? agents__check(a, e) : 0;
}

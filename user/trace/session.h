/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tracing session: a target's objects, the plan, the BPF programs and links. The commands
 * see only this.
 *
 *	session__new -> session__discover -> session__load -> session__arm -> {session__poll,
 *	session__snapshot}* -> session__disarm -> session__free
 */
#ifndef QBPF_TRACE_SESSION_H
#define QBPF_TRACE_SESSION_H

#include <sys/types.h>

#include "model/snapshot.h"
#include "plan/plan.h"
#include "trace/agents.h"
#include "trace/host.h"
#include "trace/price.h"
#include "trace/record_opts.h"
#include "trace/target.h"

struct session_opts {
	struct plan_opts plan;
	const pid_t *pids;
	size_t npids;
	bool follow;	       /* forked children too: links then hold for all processes */
	bool force_perf_event; /* QBPF_FORCE_PERF_EVENT=1: no uprobe_multi, for tests */
	bool measure_price;
	bool starting; /* the target is at its first instruction: libraries are still to come */
	double max_overhead_pct; /* 0: none */
	struct agents *agents;	 /* of CUDA; borrowed; NULL: none is wanted */
	bool cuda_instead;	 /* CUDA may not come, and when an agent refuses, uprobes do */
	const char *cuda_hint;	 /* to be said when functions of CUDA are armed; NULL: nothing */
	struct record_opts record;
};

struct session;

int session__new(const struct session_opts *o, struct session **out, struct err *e);
void session__free(struct session *s);

/* Reads the target's objects, selects and checks: the plan is complete, nothing is armed. */
int session__discover(struct session *s, struct err *e);
/* Loads the programs and measures the price. Needs the plan for the size of the maps. */
int session__load(struct session *s, struct err *e);
/* Arms what the plan allows. 0 also when nothing could be armed: see session__armed. */
int session__arm(struct session *s, struct err *e);
/* From here on no hit counts: what session__snapshot gives is final and consistent. A recording
 * has all that it will have. */
void session__stop_counting(struct session *s);
void session__disarm(struct session *s);
/* Each perf-event probe takes the kernel tens of ms to take away. */
bool session__disarms_slowly(const struct session *s);
/* Number of spans that are seen by at least one armed probe. */
size_t session__armed(const struct session *s, size_t *sites);

/* When the target's libraries are there: fails when --returns guard cannot be kept. */
int session__started(struct session *s, struct err *e);

/* The objects that have appeared since: select, check and arm what they hold. */
int session__rescan(struct session *s, struct err *e);

const struct plan *session__plan(const struct session *s);
const struct target *session__target(const struct session *s);
/* Warns about each pattern that has matched nothing; returns how many there are. */
size_t session__warn_unmatched(const struct session *s);

/* An agent of CUDA was brought into the target, or waits for its first call of CUDA there: that is worth
 * a session without any span. */
bool session__has_agents(const struct session *s);

/* fd to poll; session__poll handles what is there. 1: all targets have ended. */
int session__fd(const struct session *s);
int session__poll(struct session *s, struct err *e);
/* Once a second: sweeps keys, keeps to --max-overhead, looks for new objects where the dynamic
 * linker could not be hooked. */
int session__tick(struct session *s, struct err *e);
/* The price of a hit without a session, for `qbpf list`; zeros when it cannot be had. */
void session__measure_host(const struct host *host, struct price *out);
int session__snapshot(struct session *s, struct snapshot **out, struct err *e);
/* Closes the recording, if there is one, with the last snapshot's figures in it, and puts into that
 * what became of it. Fails when the file is incomplete. */
int session__finish_recording(struct session *s, struct snapshot *snap, struct err *e);

#endif

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

struct session_opts {
	struct plan_opts plan;
	const pid_t *pids;
	size_t npids;
	bool follow;
	bool force_perf_event; /* QBPF_FORCE_PERF_EVENT=1: no uprobe_multi, for tests */
	double max_overhead_pct; /* 0: none */
	uint32_t max_nodes, max_cells;
};

struct session;

int session__new(const struct session_opts *o, struct session **out, struct err *e);
void session__free(struct session *s);
int session__discover(struct session *s, struct err *e);
int session__load(struct session *s, struct err *e);
int session__arm(struct session *s, struct err *e);
void session__disarm(struct session *s);
const struct plan *session__plan(const struct session *s);
const struct plan_object *session__objects(const struct session *s, size_t *n);

/* fd to poll for notices; session__poll handles what is there. 1: all targets ended. */
int session__fd(const struct session *s);
int session__poll(struct session *s, struct err *e);
int session__snapshot(struct session *s, struct snapshot **out, struct err *e);

#endif

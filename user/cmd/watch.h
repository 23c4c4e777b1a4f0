/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loop of attach and run: an armed session until its end, with the live view, interim
 * reports, signals, and the final report.
 */
#ifndef QBPF_CMD_WATCH_H
#define QBPF_CMD_WATCH_H

#include "cmd/options.h"
#include "cmd/report.h"
#include "trace/launch.h"
#include "trace/session.h"

/* Blocks the signals that the loop reads through a descriptor. Call before anything forks. */
int watch__block_signals(struct err *e);

/* What of the options concerns the session. */
void watch__session_opts(const struct options *o, struct session_opts *so);

/* discover, load, arm; fails with one line when there is nothing to trace. */
int watch__prepare(struct session *s, const struct options *o, bool may_come_later, struct err *e);

/* Says what is armed: the ready line. */
void watch__say_ready(const struct session *s, uint64_t since_ns);

/* Fails when no probe is armed, with the reason. */
int watch__check_armed(const struct session *s, const struct options *o, struct err *e);

/*
 * Until the target ends, the time is up, or a signal; then the final report. `launch` is NULL
 * for attach; for run *status receives the child's wait status. started_ns: when the
 * command began, for the ready line. The report is open before, and closed here.
 */
int watch__loop(struct session *s, const struct options *o, struct report *report,
		struct launch *launch, int *status, uint64_t started_ns, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events of one thread as begins and ends in order of time.
 *
 * A trace has a thread's spans in the order in which they ended; viewers want begins and ends that
 * nest. nest__walk gives them so, whatever the file holds: BEGIN and END alternate as brackets, times
 * never decrease, and equal times keep the order in which things happened (parent and child that
 * begin at 22 come in this order, what ends at 64 ends before what begins at 64). A span that would
 * break this - it crosses another, or it ends before it begins - is APART instead.
 *
 * Memory is one stretch of events and the spans that are open across the borders of stretches.
 */
#ifndef QBPF_MODEL_NEST_H
#define QBPF_MODEL_NEST_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "file/reader.h"

enum nest_step {
	NEST_BEGIN, /* of a SPAN or an OPEN */
	NEST_END,   /* of the latest begun that has not ended */
	NEST_POINT, /* INSTANT, VALUE */
	NEST_APART, /* keyed, ASIDE, or a SPAN or OPEN that does not nest: at no certain place */
};

struct nest_visit {
	/* Whether this event takes part; NULL: all. The same answer each time it is asked. */
	bool (*want)(void *want_ctx, const struct event *ev);
	void *want_ctx;
	/* `level`: of BEGIN and END, how many spans are open around it. Negative ends the walk. */
	int (*step)(void *ctx, enum nest_step step, const struct event *ev, uint32_t level);
	void *ctx;
	uint64_t from_ns, to_ns; /* as for trace_reader__between; to_ns 0: all */
};

/* -ENOMEM, what the reader says, or what step said. */
int nest__walk(struct trace_reader *r, uint32_t thread, const struct nest_visit *v, struct err *e);

#endif

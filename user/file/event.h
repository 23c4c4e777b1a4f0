/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct event: one thing that happened, as it is recorded and as every reader of a trace sees it.
 *
 * Of one thread, SPAN and INSTANT events come in the order in which they ended, so a span follows
 * all that ran inside it. `depth` is how many spans of that thread were open around it. ASIDE and
 * KEYED spans nest in nothing and may overlap anything. All times are CLOCK_MONOTONIC ns.
 */
#ifndef QBPF_FILE_EVENT_H
#define QBPF_FILE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
	EVENT_SPAN = 1,	   /* begin and end on one thread, nested */
	EVENT_ASIDE = 2,   /* the same, but the span around it ended first */
	EVENT_KEYED = 3,   /* paired by a key, perhaps across threads: `thread` ended it */
	EVENT_INSTANT = 4, /* a marker alone */
	EVENT_VALUE = 5,   /* a marker with a number */
	EVENT_OPEN = 6,	   /* a span that had no end when its thread or the recording ended */
	EVENT_KINDS
};

struct event {
	uint64_t start_ns;
	uint64_t
	    end_ns; /* INSTANT, VALUE: start_ns. OPEN: when its thread or the recording ended */
	uint64_t child_ns; /* SPAN, ASIDE: time of its direct children; never above its own */
	uint64_t
	    arg; /* KEYED, OPEN with a key: it. VALUE: an int64_t or the bits of a double, see span */
	uint32_t span;	 /* id, 1 ..; never 0 */
	uint32_t node;	 /* of the call tree; 0: none (KEYED, VALUE), QBPF_NODE_LOST: unknown */
	uint32_t thread; /* index into the trace's threads: a tid that is reused is two threads */
	uint32_t begin_tid; /* KEYED, OPEN with a key: the thread that began it; else 0 */
	uint16_t depth;
	uint8_t kind;
	uint8_t pad[5];
};

_Static_assert(sizeof(struct event) == 56, "event");

/* Paired by a key: such a span, or one that has no end. */
static inline bool event_is_keyed(const struct event *ev)
{
	return ev->kind == EVENT_KEYED || (ev->kind == EVENT_OPEN && ev->begin_tid);
}

#endif

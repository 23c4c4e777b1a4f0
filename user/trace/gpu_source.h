/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One agent's ring as a source of items for a gpu_queue: its string ids become names that count from 1
 * over all rings, its thread ids are those that we see, and what it lost is told as it grows. One thread
 * at a time.
 */
#ifndef QBPF_TRACE_GPU_SOURCE_H
#define QBPF_TRACE_GPU_SOURCE_H

#include "file/ring_reader.h"
#include "trace/gpu_queue.h"
#include "trace/ns_threads.h"

/* What several rings have in common. */
struct gpu_names {
	uint32_t n; /* handed out */
};

struct gpu_source {
	struct ring_reader *ring; /* borrowed */
	uint32_t number;	  /* which ring, 0 .. */
	struct ns_threads *ns;	  /* of the process; NULL: it sees the ids that we see. Its own */
	uint32_t *ids;		  /* by id of the ring: the name's; 0: not asked for yet */
	uint32_t nids;
	uint64_t drops_told; /* by DROPPED records */
	uint32_t ended;	     /* the last generation that said itself that it ended */
	/* Of the losses told so far. */
	uint64_t lost[QBPF_RING_TYPES], dropped, discarded, unreadable;
	uint64_t told_ns;
};

void gpu_source__clear(struct gpu_source *s);

/* Takes what is in the ring until the queue is full. True: it is. */
bool gpu_source__poll(struct gpu_source *s, struct gpu_names *names, struct gpu_queue *q);

/* The producer that was at work, by its last status, has handed over the last, and has not said so. */
void gpu_source__over(struct gpu_source *s, const struct ring_status *st, enum qbpf_ring_reason why,
		      struct gpu_queue *q);

/* What was lost since it was told last. `last`: nothing more comes. */
void gpu_source__tell_losses(struct gpu_source *s, struct gpu_queue *q, uint64_t now_ns, bool last);

#endif

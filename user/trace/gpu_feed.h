/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the agents' rings and the stream of spans to the model of the GPU and, when something is
 * recorded, to the file: a thread of its own, so that neither the disk nor the sums keep a ring
 * waiting. What comes faster than it can take stays in its ring, where it is counted when that is
 * full.
 *
 *	gpu_feed__new -> gpu_feed__start -> gpu_feed__summary* -> gpu_feed__finish -> gpu_feed__summary
 *
 * Before the start all that comes waits.
 */
#ifndef QBPF_TRACE_GPU_FEED_H
#define QBPF_TRACE_GPU_FEED_H

#include "file/info.h"
#include "model/gpu.h"
#include "trace/gpu_queue.h"

struct gpu_feed;
struct stream;

/* NULL: no memory. */
struct gpu_feed *gpu_feed__new(void);
void gpu_feed__free(struct gpu_feed *f);
/* For whoever has something for it. */
struct gpu_queue *gpu_feed__queue(struct gpu_feed *f);

/* `file`: where it is recorded too; NULL: nowhere. 0 or a negative errno. */
int gpu_feed__start(struct gpu_feed *f, struct stream *file);
/* The name of the next span, before anything of that span comes. */
void gpu_feed__span_name(struct gpu_feed *f, const char *name);
/* A closed span; counted when there is no room for it. */
void gpu_feed__span(struct gpu_feed *f, const struct gpu_host_span *span);

/* When spans began to be counted, and when that ended; GPU_UNKNOWN: it goes on. */
void gpu_feed__probes(struct gpu_feed *f, uint64_t from_ns, uint64_t to_ns);

/* Nobody pushes any more: sums up all that is there. */
void gpu_feed__finish(struct gpu_feed *f);

/* As far as all that can still come is newer; one owner of it. NULL: nothing of a GPU came, or no memory. */
struct gpu_summary *gpu_feed__summary(struct gpu_feed *f);

struct gpu_feed_counts {
	uint64_t taken[QBPF_RING_TYPES];   /* records, whatever became of them */
	uint64_t refused[QBPF_RING_TYPES]; /* of these, by the file, after a fault of the disk */
	uint64_t spans_lost;		   /* that the model has not seen: no room */
};
void gpu_feed__counts(struct gpu_feed *f, struct gpu_feed_counts *out);

#endif

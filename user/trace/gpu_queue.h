/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What waits between those who take from the rings and the thread that sums up and records: copied
 * once, in order, of bounded size. Any thread may push, one takes.
 */
#ifndef QBPF_TRACE_GPU_QUEUE_H
#define QBPF_TRACE_GPU_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_item_kind {
	GPU_ITEM_NAME = 1, /* a text with its NUL: the next name */
	GPU_ITEM_RECORD,   /* struct qbpf_ring_record of a ring */
	GPU_ITEM_LOSS,	   /* struct trace_gpu_loss */
	GPU_ITEM_SPAN,	   /* struct gpu_host_span */
};

struct gpu_item {
	uint32_t kind;
	uint32_t ring;
	uint32_t bytes; /* of what follows here */
	uint32_t pad;
};

/* A closed span of the host. */
struct gpu_host_span {
	uint64_t start_ns, end_ns;
	uint32_t tgid, tid, span, depth;
};

/* Who pushes, and says how far it has come. */
enum gpu_origin { GPU_FROM_RINGS, GPU_FROM_HOST, GPU_ORIGINS };

struct gpu_queue;

/* NULL: no memory. */
struct gpu_queue *gpu_queue__new(size_t max_bytes);
void gpu_queue__free(struct gpu_queue *q);

/*
 * 0; 1: it was taken, and now the queue is full: push no more records for a while; -ENOBUFS: it was not
 * taken. After a 1 there is still room for a few small things, such as names.
 */
int gpu_queue__push(struct gpu_queue *q, enum gpu_item_kind kind, uint32_t ring, const void *what,
		    size_t bytes);
bool gpu_queue__is_full(struct gpu_queue *q);
/* All that came from there by ns has been pushed. */
void gpu_queue__seen(struct gpu_queue *q, enum gpu_origin from, uint64_t ns);

/* One look at all that is there. */
struct gpu_batch {
	const unsigned char *items;
	size_t bytes;
	uint64_t seen_ns[GPU_ORIGINS];
};

/* Waits for a good part of the queue to fill, for gpu_queue__wake, or so long; valid until the next. */
void gpu_queue__take(struct gpu_queue *q, unsigned wait_ms, struct gpu_batch *out);
void gpu_queue__wake(struct gpu_queue *q);

/* The first item, the one after `item`; NULL: that was the last. */
const struct gpu_item *gpu_batch__next(const struct gpu_batch *b, const struct gpu_item *item);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records of a GPU made by hand: kept in a list, so that they can go in in any order. */
#ifndef QBPF_TESTS_GPU_RECORDS_H
#define QBPF_TESTS_GPU_RECORDS_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "file/event.h"
#include "qbpf/ring.h"

#define GR_MAX 4096

union gr_record {
	struct qbpf_ring_record head;
	struct qbpf_ring_kernel kernel;
	struct qbpf_ring_copy copy;
	struct qbpf_ring_set set;
	struct qbpf_ring_sync sync;
	struct qbpf_ring_call call;
	struct qbpf_ring_graph graph;
	struct qbpf_ring_overhead overhead;
	struct qbpf_ring_device device;
	struct qbpf_ring_context context;
	struct qbpf_ring_stream stream;
	struct qbpf_ring_clock_point clock;
	struct qbpf_ring_dropped dropped;
	struct qbpf_ring_start start;
	struct qbpf_ring_window window;
};

/* A record, or a span when its kind is not 0. */
struct gr_item {
	uint32_t ring;
	union gr_record rec;
	struct event ev;
};

struct gr_list {
	struct gr_item items[GR_MAX];
	size_t n;
	uint32_t ring, device, context, stream, tid; /* of what is put next */
};

static inline union gr_record *gr__put(struct gr_list *l, unsigned type, size_t size)
{
	struct gr_item *i = &l->items[l->n++];

	assert(l->n <= GR_MAX);
	memset(i, 0, sizeof(*i));
	i->ring = l->ring;
	i->rec.head.type = (uint16_t)type;
	i->rec.head.size = (uint16_t)size;
	return &i->rec;
}

static inline void gr__call(struct gr_list *l, uint32_t name, uint32_t id, uint64_t from,
			    uint64_t to)
{
	struct qbpf_ring_call *c = &gr__put(l, QBPF_RING_CALL, sizeof(*c))->call;

	c->start_ns = from;
	c->end_ns = to;
	c->tgid = 7;
	c->tid = l->tid ? l->tid : 100;
	c->correlation = id;
	c->name = name;
	c->domain = QBPF_RING_RUNTIME;
}

static inline struct qbpf_ring_call *gr__driver_call(struct gr_list *l, uint32_t name, uint32_t id,
						     uint64_t from, uint64_t to)
{
	gr__call(l, name, id, from, to);
	l->items[l->n - 1].rec.call.domain = QBPF_RING_DRIVER;
	return &l->items[l->n - 1].rec.call;
}

static inline struct qbpf_ring_kernel *gr__kernel(struct gr_list *l, uint32_t name, uint32_t id,
						  uint64_t from, uint64_t to)
{
	struct qbpf_ring_kernel *k = &gr__put(l, QBPF_RING_KERNEL, sizeof(*k))->kernel;

	k->name = name;
	k->correlation = id;
	k->start_ns = from;
	k->end_ns = to;
	k->device = l->device;
	k->context = l->context;
	k->stream = l->stream;
	k->grid[0] = 4;
	k->grid[1] = k->grid[2] = k->block[1] = k->block[2] = 1;
	k->block[0] = 256;
	return k;
}

static inline struct qbpf_ring_copy *gr__copy(struct gr_list *l, uint8_t kind, uint64_t bytes,
					      uint32_t id, uint64_t from, uint64_t to)
{
	struct qbpf_ring_copy *c = &gr__put(l, QBPF_RING_COPY, sizeof(*c))->copy;

	c->kind = kind;
	c->src_kind = kind == 1 ? 2 : 3;
	c->dst_kind = kind == 2 ? 2 : 3;
	c->flags = 1;
	c->bytes = bytes;
	c->correlation = id;
	c->start_ns = from;
	c->end_ns = to;
	c->device = l->device;
	c->context = l->context;
	c->stream = l->stream;
	return c;
}

static inline void gr__set(struct gr_list *l, uint64_t bytes, uint32_t id, uint64_t from,
			   uint64_t to)
{
	struct qbpf_ring_set *s = &gr__put(l, QBPF_RING_SET, sizeof(*s))->set;

	s->bytes = bytes;
	s->correlation = id;
	s->start_ns = from;
	s->end_ns = to;
	s->device = l->device;
	s->context = l->context;
	s->stream = l->stream;
}

/* kind: 2 a stream is told to wait, 3 the host waits for the stream, 4 for the context. */
static inline void gr__sync(struct gr_list *l, uint32_t kind, uint32_t id, uint64_t from,
			    uint64_t to)
{
	struct qbpf_ring_sync *s = &gr__put(l, QBPF_RING_SYNC, sizeof(*s))->sync;

	s->kind = kind;
	s->correlation = id;
	s->start_ns = from;
	s->end_ns = to;
	s->context = l->context;
	s->stream = kind == 4 ? UINT32_MAX : l->stream;
	s->event = UINT32_MAX;
}

static inline void gr__graph(struct gr_list *l, uint32_t graph, uint32_t id, uint64_t from,
			     uint64_t to)
{
	struct qbpf_ring_graph *g = &gr__put(l, QBPF_RING_GRAPH, sizeof(*g))->graph;

	g->graph = graph;
	g->correlation = id;
	g->start_ns = from;
	g->end_ns = to;
	g->device = l->device;
	g->context = l->context;
	g->stream = l->stream;
}

static inline void gr__start(struct gr_list *l, uint32_t clock, uint64_t ns)
{
	struct qbpf_ring_start *s = &gr__put(l, QBPF_RING_START, sizeof(*s))->start;

	s->clock = clock;
	s->monotonic_ns = ns;
	s->tgid = 7;
}

static inline void gr__clock(struct gr_list *l, uint64_t monotonic, uint64_t cupti, uint32_t error)
{
	struct qbpf_ring_clock_point *c = &gr__put(l, QBPF_RING_CLOCK, sizeof(*c))->clock;

	c->monotonic_ns = monotonic;
	c->cupti_ns = cupti;
	c->error_ns = error;
}

static inline void gr__span(struct gr_list *l, uint32_t span, uint32_t thread, uint16_t depth,
			    uint64_t from, uint64_t to)
{
	struct event *ev;

	gr__put(l, 0, 0);
	ev = &l->items[l->n - 1].ev;
	ev->kind = EVENT_SPAN;
	ev->span = span;
	ev->thread = thread;
	ev->depth = depth;
	ev->start_ns = from;
	ev->end_ns = to;
}

/* Another order, of the seed. */
static inline void gr__shuffle(struct gr_list *l, uint64_t seed)
{
	for (size_t i = l->n; i-- > 1;) {
		struct gr_item swap = l->items[i];
		size_t k;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		k = (size_t)(seed >> 33) % (i + 1);
		l->items[i] = l->items[k];
		l->items[k] = swap;
	}
}

#endif

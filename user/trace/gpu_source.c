// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names and losses of one ring; see gpu_source.h. */
#include "trace/gpu_source.h"

#include <stdlib.h>
#include <string.h>

#include "file/info.h"

/* A ring's strings begin at multiples of 8 bytes and take 256 MiB at most. */
#define IDS_MAX (1u << 25)
#define NOBODY	(1u << 31) /* no tid is so great */
#define NO_NAME UINT32_MAX /* in ids: asked for, and there is none */

struct polling {
	struct gpu_source *s;
	struct gpu_names *names;
	struct gpu_queue *q;
};

void gpu_source__clear(struct gpu_source *s)
{
	ns_threads__free(s->ns);
	s->ns = NULL;
	free(s->ids);
	s->ids = NULL;
	s->nids = 0;
}

static bool make_place(struct gpu_source *s, uint32_t id)
{
	uint32_t n = id + id / 2 + 64;
	uint32_t *ids;

	if (id < s->nids)
		return true;
	ids = id < IDS_MAX ? realloc(s->ids, n * sizeof(*ids)) : NULL;
	if (!ids)
		return false;
	memset(ids + s->nids, 0, (n - s->nids) * sizeof(*ids));
	s->ids = ids;
	s->nids = n;
	return true;
}

/* 0: it has none. */
static uint32_t name_of(const struct polling *p, uint32_t id)
{
	char text[QBPF_RING_STRING_MAX + 1];
	struct gpu_source *s = p->s;

	if (!id || !make_place(s, id))
		return 0;
	if (s->ids[id])
		return s->ids[id] == NO_NAME ? 0 : s->ids[id];
	s->ids[id] = NO_NAME;
	if (ring_reader__string(s->ring, id, text, sizeof(text)) < 0 ||
	    gpu_queue__push(p->q, GPU_ITEM_NAME, s->number, text, strlen(text) + 1) < 0)
		return 0;
	return s->ids[id] = ++p->names->n;
}

/* One that nobody knows here is nobody's: in no span. */
static void translate_thread(struct ns_threads *ns, struct qbpf_ring_call *c)
{
	uint32_t tid = ns_threads__tid(ns, c->tid);

	c->tgid = ns_threads__tgid(ns);
	c->tid = tid ? tid : c->tid | NOBODY;
}

static int on_record(void *ctx, const struct qbpf_ring_record *rec)
{
	const struct polling *p = ctx;
	union {
		uint64_t words[QBPF_RING_RECORD_MAX / 8];
		struct qbpf_ring_record head;
		struct qbpf_ring_kernel kernel;
		struct qbpf_ring_call call;
		struct qbpf_ring_device device;
		struct qbpf_ring_dropped dropped;
		struct qbpf_ring_start start;
		struct qbpf_ring_window window;
	} r;

	memcpy(&r, rec, rec->size);
	switch (rec->type) {
	case QBPF_RING_KERNEL:
		r.kernel.name = name_of(p, r.kernel.name);
		break;
	case QBPF_RING_CALL:
		r.call.name = name_of(p, r.call.name);
		if (p->s->ns)
			translate_thread(p->s->ns, &r.call);
		break;
	case QBPF_RING_DEVICE:
		r.device.name = name_of(p, r.device.name);
		break;
	case QBPF_RING_START:
		if (p->s->ns)
			r.start.tgid = ns_threads__tgid(p->s->ns);
		break;
	case QBPF_RING_WINDOW:
		if (r.window.end)
			p->s->ended = r.window.generation;
		if (p->s->ns)
			r.window.tgid = ns_threads__tgid(p->s->ns);
		break;
	case QBPF_RING_DROPPED:
		p->s->drops_told += r.dropped.count;
		break;
	default:
		break;
	}
	return gpu_queue__push(p->q, GPU_ITEM_RECORD, p->s->number, &r, rec->size);
}

bool gpu_source__poll(struct gpu_source *s, struct gpu_names *names, struct gpu_queue *q)
{
	struct polling p = {s, names, q};

	return gpu_queue__is_full(q) || ring_reader__poll(s->ring, on_record, &p);
}

void gpu_source__over(struct gpu_source *s, const struct ring_status *st, enum qbpf_ring_reason why,
		      struct gpu_queue *q)
{
	struct qbpf_ring_window r = {
	    .type = QBPF_RING_WINDOW,
	    .size = sizeof(r),
	    .generation = st->generation,
	    .tgid = s->ns ? ns_threads__tgid(s->ns) : st->tgid,
	    .end = why,
	    .monotonic_ns = st->flushed_ns,
	};

	gpu_queue__push(q, GPU_ITEM_RECORD, s->number, &r, sizeof(r));
}

static void tell(const struct gpu_source *s, struct gpu_queue *q, struct trace_gpu_loss row,
		 uint64_t now, uint64_t *before)
{
	if (now <= *before)
		return;
	row.ring = s->number;
	row.lost = now - *before;
	if (gpu_queue__push(q, GPU_ITEM_LOSS, s->number, &row, sizeof(row)) >= 0)
		*before = now;
}

void gpu_source__tell_losses(struct gpu_source *s, struct gpu_queue *q, uint64_t now_ns, bool last)
{
	struct trace_gpu_loss row = {.from_ns = s->told_ns, .to_ns = now_ns};
	struct ring_status st;

	ring_reader__status(s->ring, &st);
	if (!row.from_ns)
		row.from_ns = st.started_ns ? st.started_ns : now_ns;
	for (uint32_t t = 0; t < QBPF_RING_TYPES; t++) {
		row.type = t;
		row.reason = GPU_LOST_RING;
		tell(s, q, row, st.lost[t], &s->lost[t]);
	}
	row.type = 0;
	row.reason = GPU_LOST_CUPTI;
	/* DROPPED records tell, unless they were lost as well; some may still be in the ring. */
	if (last && st.dropped > s->drops_told)
		tell(s, q, row, st.dropped - s->drops_told, &s->dropped);
	row.reason = GPU_LOST_BUFFERS;
	tell(s, q, row, st.discarded, &s->discarded);
	row.reason = GPU_LOST_BROKEN;
	tell(s, q, row, st.unknown_types + st.broken + st.bad_lanes, &s->unreadable);
	s->told_ns = now_ns;
	if (s->ns)
		ns_threads__look(s->ns);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One CUPTI activity to one record of the ring, field by field, by offset. */
#include "probes/cupti/agent.h"

#define NAME_MAX_BYTES (64u << 10) /* longer kernel names are cut there */
#define CBIDS	       2048u

/* An activity and how long it is: a field beyond its end belongs to a later CUPTI, and is 0. */
struct activity {
	const uint8_t *at;
	size_t bytes;
};

static uint64_t get(const struct activity *a, size_t off, size_t bytes)
{
	uint64_t v = 0;

	if (off + bytes <= a->bytes)
		memcpy(&v, a->at + off, bytes);
	return v;
}

#define U8(off)	 ((uint8_t)get(a, off, 1))
#define U16(off) ((uint16_t)get(a, off, 2))
#define U32(off) ((uint32_t)get(a, off, 4))
#define U64(off) get(a, off, 8)

static uint32_t text_id(struct qbpf_ring_writer *w, uint64_t pointer)
{
	const char *text = (const char *)(uintptr_t)pointer;

	if (!text)
		return 0;
	return qbpf_ring_intern(w->ring, text, (uint32_t)strnlen(text, NAME_MAX_BYTES));
}

/* Ids of the functions' names by domain and cbid, + 1; 0: not asked for yet. */
static uint32_t call_names[2][CBIDS];

void record_names_reset(void)
{
	memset(call_names, 0, sizeof(call_names));
}

/* cudaLaunchKernel_v7000 is cudaLaunchKernel; but cuMemAlloc_v2 is that. */
static size_t without_version(const char *name, int domain)
{
	size_t len = strlen(name), n = len;

	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	if (domain == DOMAIN_RUNTIME && n < len && n > 2 && name[n - 1] == 'v' &&
	    name[n - 2] == '_')
		return n - 2;
	return len;
}

static uint32_t call_name(struct qbpf_ring_writer *w, int domain, uint32_t cbid)
{
	uint32_t *known = cbid < CBIDS ? &call_names[domain == DOMAIN_RUNTIME][cbid] : NULL;
	uint32_t id = known ? __atomic_load_n(known, __ATOMIC_RELAXED) : 0;
	const char *name = NULL;

	if (id)
		return id - 1;
	if (!cupti.cuptiGetCallbackName ||
	    cupti.cuptiGetCallbackName(domain, cbid, &name) != CUPTI_OK || !name)
		id = 0;
	else
		id = qbpf_ring_intern(w->ring, name, (uint32_t)without_version(name, domain));
	if (known)
		__atomic_store_n(known, id + 1, __ATOMIC_RELAXED);
	return id;
}

/* Reserves a record of type `t` as `r`, or returns. */
#define RESERVE(t)                                                                                 \
	r = qbpf_ring_reserve(w, t, sizeof(*r));                                                   \
	if (!r)                                                                                    \
	return

static void put_kernel(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_kernel *r;
	unsigned i;

	RESERVE(QBPF_RING_KERNEL);
	r->name = text_id(w, U64(KERNEL_NAME));
	r->start_ns = U64(KERNEL_START);
	r->end_ns = U64(KERNEL_END);
	r->device = U32(KERNEL_DEVICE);
	r->context = U32(KERNEL_CONTEXT);
	r->stream = U32(KERNEL_STREAM);
	r->correlation = U32(KERNEL_CORRELATION);
	for (i = 0; i < 3; i++) {
		r->grid[i] = U32(KERNEL_GRID + 4 * i);
		r->block[i] = U32(KERNEL_BLOCK + 4 * i);
	}
	r->static_shared = U32(KERNEL_STATIC_SHARED);
	r->dynamic_shared = U32(KERNEL_DYNAMIC_SHARED);
	r->graph_node = U64(KERNEL_GRAPH_NODE);
	r->graph = U32(KERNEL_GRAPH);
	r->registers = U16(KERNEL_REGISTERS);
	r->pad = 0;
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_copy(struct qbpf_ring_writer *w, const struct activity *a, bool peer)
{
	struct qbpf_ring_copy *r;

	RESERVE(QBPF_RING_COPY);
	r->kind = U8(COPY_KIND);
	r->src_kind = U8(COPY_SRC);
	r->dst_kind = U8(COPY_DST);
	r->flags = U8(COPY_FLAGS);
	r->bytes = U64(COPY_BYTES);
	r->start_ns = U64(COPY_START);
	r->end_ns = U64(COPY_END);
	r->device = U32(COPY_DEVICE);
	r->context = U32(COPY_CONTEXT);
	r->stream = U32(COPY_STREAM);
	r->correlation = U32(peer ? PEER_CORRELATION : COPY_CORRELATION);
	r->src_device = peer ? U32(PEER_SRC_DEVICE) : r->device;
	r->dst_device = peer ? U32(PEER_DST_DEVICE) : r->device;
	r->graph_node = U64(peer ? PEER_GRAPH_NODE : COPY_GRAPH_NODE);
	r->graph = U32(peer ? PEER_GRAPH : COPY_GRAPH);
	r->pad = 0;
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_set(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_set *r;

	RESERVE(QBPF_RING_SET);
	r->value = U32(SET_VALUE);
	r->bytes = U64(SET_BYTES);
	r->start_ns = U64(SET_START);
	r->end_ns = U64(SET_END);
	r->device = U32(SET_DEVICE);
	r->context = U32(SET_CONTEXT);
	r->stream = U32(SET_STREAM);
	r->correlation = U32(SET_CORRELATION);
	r->graph_node = U64(SET_GRAPH_NODE);
	r->graph = U32(SET_GRAPH);
	r->flags = U16(SET_FLAGS);
	r->memory_kind = U16(SET_MEMORY_KIND);
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_sync(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_sync *r;

	RESERVE(QBPF_RING_SYNC);
	r->kind = U32(SYNC_TYPE);
	r->start_ns = U64(SYNC_START);
	r->end_ns = U64(SYNC_END);
	r->correlation = U32(SYNC_CORRELATION);
	r->context = U32(SYNC_CONTEXT);
	r->stream = U32(SYNC_STREAM);
	r->event = U32(SYNC_EVENT);
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_call(struct qbpf_ring_writer *w, const struct activity *a, int domain)
{
	struct qbpf_ring_call *r;

	RESERVE(QBPF_RING_CALL);
	r->cbid = U32(CALL_CBID);
	r->start_ns = U64(CALL_START);
	r->end_ns = U64(CALL_END);
	r->tgid = U32(CALL_TGID);
	r->tid = U32(CALL_TID);
	r->correlation = U32(CALL_CORRELATION);
	r->error = U32(CALL_RESULT);
	r->name = call_name(w, domain, r->cbid);
	r->domain = domain == DOMAIN_RUNTIME ? QBPF_RING_RUNTIME : QBPF_RING_DRIVER;
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_graph(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_graph *r;

	RESERVE(QBPF_RING_GRAPH);
	r->correlation = U32(GRAPH_CORRELATION);
	r->start_ns = U64(GRAPH_START);
	r->end_ns = U64(GRAPH_END);
	r->device = U32(GRAPH_DEVICE);
	r->graph = U32(GRAPH_ID);
	r->context = U32(GRAPH_CONTEXT);
	r->stream = U32(GRAPH_STREAM);
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_overhead(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_overhead *r;
	unsigned i;

	RESERVE(QBPF_RING_OVERHEAD);
	r->kind = U32(OVERHEAD_KIND);
	r->start_ns = U64(OVERHEAD_START);
	r->end_ns = U64(OVERHEAD_END);
	r->object = U32(OVERHEAD_OBJECT);
	for (i = 0; i < 3; i++)
		r->object_id[i] = U32(OVERHEAD_OBJECT_ID + 4 * i);
	r->correlation = U32(OVERHEAD_CORRELATION);
	r->pad = 0;
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_device(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_device *r;

	RESERVE(QBPF_RING_DEVICE);
	r->device = U32(DEVICE_ID);
	r->name = text_id(w, U64(DEVICE_NAME));
	r->sms = U32(DEVICE_SMS);
	r->capability_major = U32(DEVICE_CAPABILITY_MAJOR);
	r->capability_minor = U32(DEVICE_CAPABILITY_MINOR);
	r->clock_khz = U32(DEVICE_CLOCK);
	r->copy_engines = U32(DEVICE_ENGINES);
	r->memory_bytes = U64(DEVICE_MEMORY);
	r->bandwidth_kbps = U64(DEVICE_BANDWIDTH);
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_context(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_context *r;

	RESERVE(QBPF_RING_CONTEXT);
	r->context = U32(CONTEXT_ID);
	r->device = U32(CONTEXT_DEVICE);
	r->null_stream = U16(CONTEXT_NULL_STREAM);
	qbpf_ring_commit(w, sizeof(*r));
}

static void put_stream(struct qbpf_ring_writer *w, const struct activity *a)
{
	struct qbpf_ring_stream *r;

	RESERVE(QBPF_RING_STREAM);
	r->stream = U32(STREAM_ID);
	r->context = U32(STREAM_CONTEXT);
	r->priority = U32(STREAM_PRIORITY);
	r->flag = U32(STREAM_FLAG);
	r->correlation = U32(STREAM_CORRELATION);
	qbpf_ring_commit(w, sizeof(*r));
}

void record_put(struct qbpf_ring_writer *w, const uint8_t *activity, size_t bytes)
{
	const struct activity view = {activity, bytes}, *a = &view;

	switch (U32(0)) {
	case KIND_KERNEL:
		put_kernel(w, a);
		break;
	case KIND_MEMCPY:
		put_copy(w, a, false);
		break;
	case KIND_PEER_COPY:
		put_copy(w, a, true);
		break;
	case KIND_MEMSET:
		put_set(w, a);
		break;
	case KIND_SYNC:
		put_sync(w, a);
		break;
	case KIND_RUNTIME:
		put_call(w, a, DOMAIN_RUNTIME);
		break;
	case KIND_DRIVER:
		put_call(w, a, DOMAIN_DRIVER);
		break;
	case KIND_GRAPH:
		put_graph(w, a);
		break;
	case KIND_OVERHEAD:
		put_overhead(w, a);
		break;
	case KIND_DEVICE:
		put_device(w, a);
		break;
	case KIND_CONTEXT:
		put_context(w, a);
		break;
	case KIND_STREAM:
		put_stream(w, a);
		break;
	default:
		__atomic_fetch_add(&w->ring->head->unknown, 1, __ATOMIC_RELAXED);
	}
}

void count_dropped(void)
{
	struct qbpf_ring_dropped r = {.type = QBPF_RING_DROPPED, .size = sizeof(r)};
	struct qbpf_ring_writer w;
	size_t n = 0;

	if (CUPTI(cuptiActivityGetNumDroppedRecords, NULL, 0, &n) != CUPTI_OK || !n)
		return;
	__atomic_fetch_add(&agent.ring.head->dropped, n, __ATOMIC_RELAXED);
	r.count = n;
	r.monotonic_ns = monotonic_ns();
	qbpf_ring_claim(&agent.ring, thread_id(), 0, &w);
	qbpf_ring_put(&w, &r);
	qbpf_ring_release(&w);
}

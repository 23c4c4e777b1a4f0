/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cupti_records.c - records of calls and activities, as the newest header lays them out
 *
 * An older version (version=) has the same records cut short where they grew, a newer one
 * (record_pad=) has longer ones; cuptiActivityGetNextRecord knows which.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cupti_sim.h"

#define KINDS	  64
#define CBIDS	  1024
#define EXTERNALS 8
#define FUTURE	  (UINT64_C(1) << 62)

static _Atomic bool kind_on[KINDS];
/* 0: as the kind says; 1: on; -1: off */
static _Atomic int8_t call_on[3][CBIDS];
static _Atomic(CUpti_TimestampCallbackFunc) timestamp;
static int64_t timestamp_offset;
static _Atomic bool timestamp_late, context_seen;
static CUpti_ActivityThreadIdType thread_id_type;
static uint64_t n_timed;

static __thread struct {
	uint64_t ids[EXTERNALS][16];
	unsigned int n[EXTERNALS];
} external;

/* --- the clock -------------------------------------------------------------------------------- */

/* Host times are the callback's, if there is one. Those of devices too, if it was there first. */
CUptiResult records_clock(CUpti_TimestampCallbackFunc fn)
{
	uint64_t best = UINT64_MAX;

	if (!fn)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!sim_config()->virtual_clock) {
		for (int i = 0; i < 20; i++) {
			uint64_t before = sim_now(), theirs = fn(), after = sim_now();

			if (after - before >= best)
				continue;
			best = after - before;
			timestamp_offset = (int64_t)(theirs - before - best / 2);
		}
		/* The same clock, but for the time that it takes to read it. */
		if (timestamp_offset > -1000 && timestamp_offset < 1000)
			timestamp_offset = 0;
	}
	timestamp_late = context_seen;
	timestamp = fn;
	return CUPTI_SUCCESS;
}

void records_context_seen(void)
{
	context_seen = true;
}

static uint64_t host_time(uint64_t t)
{
	if (timestamp)
		return t + (uint64_t)timestamp_offset;
	return t + (uint64_t)sim_realtime_offset();
}

static uint64_t device_time(uint64_t t)
{
	const struct sim_config *c = sim_config();
	int64_t drift = (int64_t)((__int128)(int64_t)(t - sim_epoch()) * c->drift_ppb / 1000000000);

	if (timestamp && !timestamp_late)
		t += (uint64_t)timestamp_offset;
	else
		t += (uint64_t)sim_realtime_offset();
	return t + (uint64_t)c->offset_ns + (uint64_t)drift;
}

/* Start and end of a device activity, spoiled if that is wanted. */
static void device_times(uint64_t *start, uint64_t *end)
{
	const struct sim_config *c = sim_config();
	uint64_t s = device_time(*start), e = device_time(*end);

	if (++n_timed % (uint64_t)c->times_every == 0) {
		switch (c->times) {
		case TIMES_ZERO:
			s = e = 0;
			break;
		case TIMES_REVERSED:
			*start = s;
			s = e;
			e = *start;
			break;
		case TIMES_FUTURE:
			s |= FUTURE;
			e |= FUTURE;
			break;
		}
	}
	*start = s;
	*end = e;
}

uint64_t records_now(void)
{
	CUpti_TimestampCallbackFunc fn = timestamp;

	if (fn && !sim_config()->virtual_clock)
		return fn();
	return host_time(sim_now());
}

/* --- what is wanted --------------------------------------------------------------------------- */

static void forget_calls(size_t domain)
{
	for (size_t i = 0; i < CBIDS; i++)
		call_on[domain][i] = 0;
}

CUptiResult records_enable(CUpti_ActivityKind kind, bool on)
{
	const struct sim_config *c = sim_config();
	size_t domain = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? SIM_RUNTIME : SIM_DRIVER;

	if ((unsigned int)kind >= KINDS || kind == CUPTI_ACTIVITY_KIND_INVALID)
		return CUPTI_ERROR_INVALID_KIND;
	if (on && c->enable_error && (c->enable_kind == 0 || c->enable_kind == (int64_t)kind))
		return (CUptiResult)c->enable_error;
	kind_on[kind] = on;
	if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
		forget_calls(domain);
	return CUPTI_SUCCESS;
}

void records_enable_call(enum sim_domain domain, uint32_t cbid, bool on)
{
	if (cbid < CBIDS)
		call_on[domain][cbid] = on ? 1 : -1;
}

void records_reset(void)
{
	for (size_t i = 0; i < KINDS; i++)
		kind_on[i] = false;
	forget_calls(SIM_DRIVER);
	forget_calls(SIM_RUNTIME);
	timestamp = NULL;
}

void records_thread_ids(CUpti_ActivityThreadIdType type)
{
	thread_id_type = type;
}

CUpti_ActivityThreadIdType records_thread_id_type(void)
{
	return thread_id_type;
}

static uint32_t thread_id(uint32_t tid)
{
	/* The default is the pthread's handle, cut off. */
	if (thread_id_type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return tid;
	return (uint32_t)(uintptr_t)pthread_self();
}

/* --- sizes ------------------------------------------------------------------------------------ */

/* Where the records of CUDA 12.0 ended: as CUpti_ActivityKernel9 and CUpti_ActivityMemcpy5 do. */
#define KERNEL_12 offsetof(CUpti_ActivityKernel10, isDeviceLaunched)
#define MEMCPY_12 offsetof(CUpti_ActivityMemcpy6, copyCount)
#define SYNC_12	  offsetof(CUpti_ActivitySynchronization2, cudaEventSyncId)
#define GRAPH_12  offsetof(CUpti_ActivityGraphTrace2, endDeviceId)

size_t record_size(CUpti_ActivityKind kind)
{
	bool old = sim_config()->version < 130000;
	size_t n;

	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		n = old ? KERNEL_12 : sizeof(CUpti_ActivityKernel10);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		n = old ? MEMCPY_12 : sizeof(CUpti_ActivityMemcpy6);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		n = sizeof(CUpti_ActivityMemcpyPtoP4);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		n = sizeof(CUpti_ActivityMemset4);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		n = sizeof(CUpti_ActivityAPI);
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		n = old ? SYNC_12 : sizeof(CUpti_ActivitySynchronization2);
		break;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		n = old ? GRAPH_12 : sizeof(CUpti_ActivityGraphTrace2);
		break;
	case CUPTI_ACTIVITY_KIND_OVERHEAD:
		n = sizeof(CUpti_ActivityOverhead3);
		break;
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		n = sizeof(CUpti_ActivityExternalCorrelation);
		break;
	default:
		return 0;
	}
	return (n + 7) / 8 * 8 + (size_t)sim_config()->record_pad / 8 * 8;
}

static struct record *record_new(CUpti_ActivityKind kind, uint32_t correlation)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->size = (uint16_t)record_size(kind);
	r->correlation = correlation;
	memcpy(r->bytes, &kind, sizeof(kind));
	return r;
}

/* --- calls ------------------------------------------------------------------------------------ */

CUptiResult records_push(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	if ((unsigned int)kind >= EXTERNALS || kind == CUPTI_EXTERNAL_CORRELATION_KIND_INVALID)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (external.n[kind] == 16)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	external.ids[kind][external.n[kind]++] = id;
	return CUPTI_SUCCESS;
}

CUptiResult records_pop(CUpti_ExternalCorrelationKind kind, uint64_t *id)
{
	if ((unsigned int)kind >= EXTERNALS || kind == CUPTI_EXTERNAL_CORRELATION_KIND_INVALID)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!external.n[kind])
		return CUPTI_ERROR_QUEUE_EMPTY;
	external.n[kind]--;
	if (id)
		*id = external.ids[kind][external.n[kind]];
	return CUPTI_SUCCESS;
}

static void externals(uint32_t correlation)
{
	for (unsigned int k = 0; k < EXTERNALS; k++) {
		CUpti_ActivityExternalCorrelation *e;
		struct record *r;

		if (!external.n[k])
			continue;
		r = record_new(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, correlation);
		e = (void *)r->bytes;
		e->externalKind = (CUpti_ExternalCorrelationKind)k;
		e->externalId = external.ids[k][external.n[k] - 1];
		e->correlationId = correlation;
		r->api = true;
		buffers_api(r);
	}
}

void records_api(const struct sim_call *c)
{
	CUpti_ActivityKind kind =
	    c->domain == SIM_RUNTIME ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
	int8_t chosen = c->cbid < CBIDS ? call_on[c->domain][c->cbid] : 0;
	CUpti_TimestampCallbackFunc fn = timestamp;
	CUpti_ActivityAPI *a;
	struct record *r;

	if (chosen < 0 || (!chosen && !kind_on[kind]) || !buffers_registered())
		return;
	if (kind_on[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
		externals(c->correlation);
	r = record_new(kind, c->correlation);
	a = (void *)r->bytes;
	a->cbid = c->cbid;
	/* The tool's own clock is asked where the real library would ask it. */
	if (fn)
		fn();
	a->start = host_time(c->enter);
	a->end = host_time(c->exit);
	a->processId = (uint32_t)getpid();
	a->threadId = thread_id(c->tid);
	a->correlationId = c->correlation;
	a->returnValue = (uint32_t)c->result;
	r->api = true;
	buffers_api(r);
}

/* --- activities ------------------------------------------------------------------------------- */

static void fill_kernel(CUpti_ActivityKernel10 *k, const struct sim_activity *a)
{
	k->start = a->start;
	k->end = a->end;
	device_times(&k->start, &k->end);
	k->deviceId = a->device;
	k->contextId = a->context;
	k->streamId = a->stream;
	k->gridX = (int32_t)a->grid[0];
	k->gridY = (int32_t)a->grid[1];
	k->gridZ = (int32_t)a->grid[2];
	k->blockX = (int32_t)a->block[0];
	k->blockY = (int32_t)a->block[1];
	k->blockZ = (int32_t)a->block[2];
	k->dynamicSharedMemory = (int32_t)a->shared;
	k->registersPerThread = 32;
	k->correlationId = a->correlation;
	k->gridId = a->correlation;
	k->name = a->name;
	k->launchType = a->launch_type;
	k->graphNodeId = a->node;
	k->graphId = a->graph;
	k->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
}

static void fill_memcpy(CUpti_ActivityMemcpy6 *m, const struct sim_activity *a)
{
	m->copyKind = a->copy_kind;
	m->srcKind = a->src_kind;
	m->dstKind = a->dst_kind;
	m->flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	m->bytes = a->bytes;
	m->start = a->start;
	m->end = a->end;
	device_times(&m->start, &m->end);
	m->deviceId = a->device;
	m->contextId = a->context;
	m->streamId = a->stream;
	m->correlationId = a->correlation;
	m->graphNodeId = a->node;
	m->graphId = a->graph;
	m->channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
	m->copyCount = 1;
}

static void fill_peer(CUpti_ActivityMemcpyPtoP4 *m, const struct sim_activity *a)
{
	m->copyKind = a->copy_kind;
	m->srcKind = a->src_kind;
	m->dstKind = a->dst_kind;
	m->flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
	m->bytes = a->bytes;
	m->start = a->start;
	m->end = a->end;
	device_times(&m->start, &m->end);
	m->deviceId = a->device;
	m->contextId = a->context;
	m->streamId = a->stream;
	m->srcDeviceId = a->src_device;
	m->srcContextId = a->src_context;
	m->dstDeviceId = a->dst_device;
	m->dstContextId = a->dst_context;
	m->correlationId = a->correlation;
	m->graphNodeId = a->node;
	m->graphId = a->graph;
	m->channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
}

static void fill_memset(CUpti_ActivityMemset4 *m, const struct sim_activity *a)
{
	m->value = a->value;
	m->bytes = a->bytes;
	m->start = a->start;
	m->end = a->end;
	device_times(&m->start, &m->end);
	m->deviceId = a->device;
	m->contextId = a->context;
	m->streamId = a->stream;
	m->correlationId = a->correlation;
	m->flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
	m->memoryKind = a->dst_kind;
	m->graphNodeId = a->node;
	m->graphId = a->graph;
	m->channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
}

static void fill_sync(CUpti_ActivitySynchronization2 *s, const struct sim_activity *a)
{
	s->type = (CUpti_ActivitySynchronizationType)a->type;
	s->start = host_time(a->start);
	s->end = host_time(a->end);
	s->correlationId = a->correlation;
	s->contextId = a->context;
	s->streamId = a->stream;
	s->cudaEventId = a->event ? a->event : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
	s->returnValue = a->result;
}

static void fill_graph(CUpti_ActivityGraphTrace2 *g, const struct sim_activity *a)
{
	g->correlationId = a->correlation;
	g->start = a->start;
	g->end = a->end;
	device_times(&g->start, &g->end);
	g->deviceId = a->device;
	g->graphId = a->graph;
	g->contextId = a->context;
	g->streamId = a->stream;
	g->endDeviceId = a->device;
	g->endContextId = a->context;
}

static void fill_overhead(CUpti_ActivityOverhead3 *o, const struct sim_activity *a)
{
	o->overheadKind = (CUpti_ActivityOverheadKind)a->type;
	o->objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
	o->objectId.pt.processId = (uint32_t)getpid();
	o->objectId.pt.threadId = thread_id(a->tid);
	o->start = host_time(a->start);
	o->end = host_time(a->end);
	o->correlationId = a->correlation;
}

static CUpti_ActivityKind kind_of(const struct sim_activity *a)
{
	bool traced = a->graph && kind_on[CUPTI_ACTIVITY_KIND_GRAPH_TRACE];

	switch (a->kind) {
	case SIM_KERNEL:
		if (traced)
			break;
		return kind_on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL]
			   ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
			   : CUPTI_ACTIVITY_KIND_KERNEL;
	case SIM_MEMCPY:
		if (traced)
			break;
		return a->copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP ? CUPTI_ACTIVITY_KIND_MEMCPY2
								       : CUPTI_ACTIVITY_KIND_MEMCPY;
	case SIM_MEMSET:
		if (traced)
			break;
		return CUPTI_ACTIVITY_KIND_MEMSET;
	case SIM_SYNC:
		return CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
	case SIM_GRAPH:
		return CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
	case SIM_OVERHEAD:
		return CUPTI_ACTIVITY_KIND_OVERHEAD;
	case SIM_EVENT:
	case SIM_HOSTFN:
		break;
	}
	return CUPTI_ACTIVITY_KIND_INVALID;
}

void records_activity(const struct sim_activity *a)
{
	CUpti_ActivityKind kind = kind_of(a);
	struct record *r;

	records_context_seen();
	if (!kind_on[kind] || !buffers_registered())
		return;
	r = record_new(kind, a->correlation);
	r->due = a->end;
	switch (a->kind) {
	case SIM_KERNEL:
		fill_kernel((void *)r->bytes, a);
		break;
	case SIM_MEMCPY:
		if (kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
			fill_peer((void *)r->bytes, a);
		else
			fill_memcpy((void *)r->bytes, a);
		break;
	case SIM_MEMSET:
		fill_memset((void *)r->bytes, a);
		break;
	case SIM_SYNC:
		fill_sync((void *)r->bytes, a);
		break;
	case SIM_GRAPH:
		fill_graph((void *)r->bytes, a);
		break;
	case SIM_OVERHEAD:
		fill_overhead((void *)r->bytes, a);
		break;
	case SIM_EVENT:
	case SIM_HOSTFN:
		break;
	}
	buffers_device(r, a->stream);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* driver_stream.c - the driver's streams, events and stream capture */
#include <stdlib.h>

#include "driver.h"

enum { SYNC_EVENT = 1, SYNC_STREAM_WAIT = 2, SYNC_STREAM = 3 };

static uint32_t next_event = 1;

/* --- streams ---------------------------------------------------------------------------------- */

static CUresult create(CUstream *stream, unsigned int flags, int priority)
{
	struct sim_thread *t = sim_self();

	if (!stream || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!t->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	*stream = stream_new(t->ctx, flags, priority);
	pthread_mutex_unlock(&sim_lock);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuStreamCreate, (CUstream * stream, unsigned int flags), stream, flags)
{
	return create(stream, flags, 0);
}

DRIVER(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority), stream,
       flags, priority)
{
	return create(stream, flags, priority);
}

DRIVER(cuStreamDestroy_v2, (CUstream stream), stream)
{
	if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	stream_free(stream);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* A copy of the stream that is meant, so that none has to be held while waiting. */
static CUresult look(CUstream handle, struct CUstream_st *copy)
{
	const struct CUstream_st *s;

	pthread_mutex_lock(&sim_lock);
	s = stream_of(handle);
	if (s)
		*copy = *s;
	pthread_mutex_unlock(&sim_lock);
	return s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* The legacy stream is done when all that it would wait for is. */
static uint64_t done_at(const struct CUstream_st *s)
{
	uint64_t end = s->end;

	if (s->id == s->ctx->legacy->id && s->ctx->blocking_end > end)
		end = s->ctx->blocking_end;
	return end;
}

DRIVER_SZ(cuStreamSynchronize, (CUstream stream), stream)
{
	struct CUstream_st s;
	CUresult err = look(stream, &s);

	if (err)
		return err;
	if (s.capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return op_sync(SYNC_STREAM, s.ctx, &s, NULL, done_at(&s));
}

DRIVER_SZ(cuStreamQuery, (CUstream stream), stream)
{
	struct CUstream_st s;
	CUresult err = look(stream, &s);

	if (err)
		return err;
	return done_at(&s) <= sim_now() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

DRIVER_SZ(cuStreamGetId, (CUstream stream, unsigned long long *id), stream, id)
{
	struct CUstream_st s;
	CUresult err = look(stream, &s);

	if (!err)
		*id = s.id;
	return err;
}

DRIVER_SZ(cuStreamGetFlags, (CUstream stream, unsigned int *flags), stream, flags)
{
	struct CUstream_st s;
	CUresult err = look(stream, &s);

	if (!err)
		*flags = s.flags;
	return err;
}

DRIVER_SZ(cuStreamGetPriority, (CUstream stream, int *priority), stream, priority)
{
	struct CUstream_st s;
	CUresult err = look(stream, &s);

	if (!err)
		*priority = s.priority;
	return err;
}

DRIVER_SZ(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *data), stream, fn, data)
{
	struct sim_activity a = {.kind = SIM_HOSTFN};
	CUresult err = CUDA_SUCCESS;
	struct CUgraphNode_st *n;
	struct CUstream_st *s;
	uint64_t held = 0;

	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (s->capture) {
		n = graph_capture(s, NODE_HOST);
		if (n) {
			n->fn = fn;
			n->fn_data = data;
		}
	} else {
		timeline_submit(s, &a, (uint64_t)sim_config()->host_ns, &held);
		hostfn_submit(a.start, fn, data);
	}
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(held);
	return err;
}

/* --- events ----------------------------------------------------------------------------------- */

DRIVER(cuEventCreate, (CUevent * event, unsigned int flags), event, flags)
{
	struct sim_thread *t = sim_self();
	CUevent e;

	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	if (!t->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->flags = flags;
	e->ctx = t->ctx;
	e->id = __atomic_fetch_add(&next_event, 1, __ATOMIC_RELAXED);
	*event = e;
	return CUDA_SUCCESS;
}

DRIVER(cuEventDestroy_v2, (CUevent event), event)
{
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	free(event);
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream, unsigned int flags)
{
	struct sim_activity a = {.kind = SIM_EVENT};
	CUresult err = CUDA_SUCCESS;
	struct CUgraphNode_st *n;
	struct CUstream_st *s;
	uint64_t held = 0;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (s->capture && flags & CU_EVENT_RECORD_EXTERNAL) {
		n = graph_capture(s, NODE_RECORD);
		if (n)
			n->event = event;
	} else if (s->capture) {
		event->capture = s->capture;
		event->capture_node = s->capture_last;
	} else {
		event->capture = NULL;
		a.event = event->id;
		timeline_submit(s, &a, 0, &held);
		event->recorded = true;
		event->time = a.end;
	}
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(held);
	return err;
}

DRIVER_SZ(cuEventRecord, (CUevent event, CUstream stream), event, stream)
{
	return record(event, stream, 0);
}

DRIVER_SZ(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), event,
	  stream, flags)
{
	return record(event, stream, flags);
}

DRIVER(cuEventQuery, (CUevent event), event)
{
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	return !event->recorded || event->time <= sim_now() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

DRIVER(cuEventSynchronize, (CUevent event), event)
{
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	return op_sync(SYNC_EVENT, event->ctx, NULL, event, event->recorded ? event->time : 0);
}

static CUresult elapsed(float *ms, CUevent from, CUevent to)
{
	if (!from || !to || !from->recorded || !to->recorded)
		return CUDA_ERROR_INVALID_HANDLE;
	if (from->time > sim_now() || to->time > sim_now())
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)(int64_t)(to->time - from->time) / 1e6);
	return CUDA_SUCCESS;
}

DRIVER(cuEventElapsedTime, (float *ms, CUevent from, CUevent to), ms, from, to)
{
	return elapsed(ms, from, to);
}

DRIVER(cuEventElapsedTime_v2, (float *ms, CUevent from, CUevent to), ms, from, to)
{
	return elapsed(ms, from, to);
}

/* A stream that waits for an event of a capture joins that capture. */
static CUresult wait_captured(struct CUstream_st *s, CUevent event)
{
	struct CUgraphNode_st *deps[2];
	struct CUgraphNode_st *n;

	if (!s->capture) {
		s->capture = event->capture;
		s->capture_last = event->capture_node;
		return CUDA_SUCCESS;
	}
	if (s->capture != event->capture)
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	if (!event->capture_node || event->capture_node == s->capture_last)
		return CUDA_SUCCESS;
	deps[0] = event->capture_node;
	deps[1] = s->capture_last;
	n = graph_add(s->capture, NODE_EMPTY, deps, s->capture_last ? 2 : 1);
	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->capture_last = n;
	return CUDA_SUCCESS;
}

DRIVER_SZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), stream, event,
	  flags)
{
	struct sim_activity a = {.kind = SIM_SYNC, .type = SYNC_STREAM_WAIT};
	CUresult err = CUDA_SUCCESS;
	struct CUgraphNode_st *n;
	struct CUstream_st *s;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (s->capture && flags & CU_EVENT_WAIT_EXTERNAL) {
		n = graph_capture(s, NODE_WAIT);
		if (n)
			n->event = event;
	} else if (event->capture) {
		err = wait_captured(s, event);
	} else if (s->capture) {
		err = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	} else {
		/* The record tells of the call on the host; the waiting is the device's. */
		timeline_name(s, &a);
		a.event = event->id;
		a.start = a.submit;
		if (event->recorded && event->time > s->end)
			timeline_advance(s, event->time);
		a.end = sim_now();
		sim_activity_done(&a);
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

/* --- capture ---------------------------------------------------------------------------------- */

DRIVER_SZ(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), stream, mode)
{
	CUresult err = CUDA_SUCCESS;
	struct CUstream_st *s;

	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s || s == s->ctx->legacy) {
		err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else if (s->capture) {
		err = CUDA_ERROR_ILLEGAL_STATE;
	} else {
		s->capture = graph_new();
		s->capture_last = NULL;
		s->capture_origin = true;
		if (!s->capture)
			err = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

DRIVER_SZ(cuStreamEndCapture, (CUstream stream, CUgraph *graph), stream, graph)
{
	CUresult err = CUDA_SUCCESS;
	struct CUstream_st *s;

	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s || !s->capture) {
		err = CUDA_ERROR_ILLEGAL_STATE;
	} else if (!s->capture_origin) {
		err = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	} else {
		*graph = s->capture;
		s->capture_origin = false;
		for (struct CUstream_st *o = s->ctx->streams; o; o = o->next) {
			if (o->capture == *graph)
				o->capture = NULL;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

DRIVER_SZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), stream, status)
{
	struct CUstream_st s;
	CUresult err = look(stream, &s);

	if (!err)
		*status =
		    s.capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return err;
}

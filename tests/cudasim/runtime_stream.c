/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_stream.c - the runtime's streams, events and stream capture */
#include "runtime.h"

/* --- streams ---------------------------------------------------------------------------------- */

RUNTIME(cudaStreamCreate, v3020, (cudaStream_t * stream), stream)
{
	return (cudaError_t)cuStreamCreate(stream, 0);
}

RUNTIME(cudaStreamCreateWithFlags, v5000, (cudaStream_t * stream, unsigned int flags), stream,
	flags)
{
	return (cudaError_t)cuStreamCreate(stream, flags);
}

RUNTIME(cudaStreamCreateWithPriority, v5050,
	(cudaStream_t * stream, unsigned int flags, int priority), stream, flags, priority)
{
	return (cudaError_t)cuStreamCreateWithPriority(stream, flags, priority);
}

RUNTIME(cudaStreamDestroy, v5050, (cudaStream_t stream), stream)
{
	return (cudaError_t)cuStreamDestroy_v2(stream);
}

RUNTIME_SZ(cudaStreamSynchronize, v3020, v7000, (cudaStream_t stream), stream)
{
	return (cudaError_t)cuStreamSynchronize(runtime_stream(stream));
}

RUNTIME_SZ(cudaStreamQuery, v3020, v7000, (cudaStream_t stream), stream)
{
	return (cudaError_t)cuStreamQuery(runtime_stream(stream));
}

RUNTIME_SZ(cudaStreamGetId, v12000, v12000, (cudaStream_t stream, unsigned long long *id), stream,
	   id)
{
	return (cudaError_t)cuStreamGetId(runtime_stream(stream), id);
}

RUNTIME_SZ(cudaStreamGetFlags, v5050, v7000, (cudaStream_t stream, unsigned int *flags), stream,
	   flags)
{
	return (cudaError_t)cuStreamGetFlags(runtime_stream(stream), flags);
}

RUNTIME_SZ(cudaStreamGetPriority, v5050, v7000, (cudaStream_t stream, int *priority), stream,
	   priority)
{
	return (cudaError_t)cuStreamGetPriority(runtime_stream(stream), priority);
}

RUNTIME_SZ(cudaStreamWaitEvent, v3020, v7000,
	   (cudaStream_t stream, cudaEvent_t event, unsigned int flags), stream, event, flags)
{
	return (cudaError_t)cuStreamWaitEvent(runtime_stream(stream), event, flags);
}

RUNTIME_SZ(cudaLaunchHostFunc, v10000, v10000, (cudaStream_t stream, cudaHostFn_t fn, void *data),
	   stream, fn, data)
{
	return (cudaError_t)cuLaunchHostFunc(runtime_stream(stream), fn, data);
}

/* --- events ----------------------------------------------------------------------------------- */

RUNTIME(cudaEventCreate, v3020, (cudaEvent_t * event), event)
{
	return (cudaError_t)cuEventCreate(event, 0);
}

RUNTIME(cudaEventCreateWithFlags, v3020, (cudaEvent_t * event, unsigned int flags), event, flags)
{
	return (cudaError_t)cuEventCreate(event, flags);
}

RUNTIME(cudaEventDestroy, v3020, (cudaEvent_t event), event)
{
	return (cudaError_t)cuEventDestroy_v2(event);
}

RUNTIME_SZ(cudaEventRecord, v3020, v7000, (cudaEvent_t event, cudaStream_t stream), event, stream)
{
	return (cudaError_t)cuEventRecord(event, runtime_stream(stream));
}

RUNTIME_SZ(cudaEventRecordWithFlags, v11010, v11010,
	   (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event, stream, flags)
{
	return (cudaError_t)cuEventRecordWithFlags(event, runtime_stream(stream), flags);
}

RUNTIME(cudaEventQuery, v3020, (cudaEvent_t event), event)
{
	return (cudaError_t)cuEventQuery(event);
}

RUNTIME(cudaEventSynchronize, v3020, (cudaEvent_t event), event)
{
	return (cudaError_t)cuEventSynchronize(event);
}

RUNTIME(cudaEventElapsedTime, v12080, (float *ms, cudaEvent_t from, cudaEvent_t to), ms, from, to)
{
	return (cudaError_t)cuEventElapsedTime_v2(ms, from, to);
}

/* --- capture ---------------------------------------------------------------------------------- */

RUNTIME_SZ(cudaStreamBeginCapture, v10000, v10000,
	   (cudaStream_t stream, enum cudaStreamCaptureMode mode), stream, mode)
{
	return (cudaError_t)cuStreamBeginCapture_v2(runtime_stream(stream),
						    (CUstreamCaptureMode)mode);
}

RUNTIME_SZ(cudaStreamEndCapture, v10000, v10000, (cudaStream_t stream, cudaGraph_t *graph), stream,
	   graph)
{
	return (cudaError_t)cuStreamEndCapture(runtime_stream(stream), graph);
}

RUNTIME_SZ(cudaStreamIsCapturing, v10000, v10000,
	   (cudaStream_t stream, enum cudaStreamCaptureStatus *status), stream, status)
{
	CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult err = cuStreamIsCapturing(runtime_stream(stream), &s);

	*status = (enum cudaStreamCaptureStatus)s;
	return (cudaError_t)err;
}

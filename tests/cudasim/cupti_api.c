/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cupti_api.c - the entry points of the activity API, and how the library hangs in the core */
#include <string.h>
#include <unistd.h>

#include "cupti_sim.h"

/* --- the core's hooks ------------------------------------------------------------------------- */

static void on_enter(struct sim_call *c)
{
	callbacks_call(c, CUPTI_API_ENTER);
}

static void on_exit_of_call(struct sim_call *c)
{
	callbacks_call(c, CUPTI_API_EXIT);
}

static void on_fork(void)
{
	buffers_forked();
	callbacks_reset();
	records_reset();
}

static const struct sim_tools tools = {
    .enter = on_enter,
    .exit = on_exit_of_call,
    .api = records_api,
    .activity = records_activity,
    .forked = on_fork,
};

static void __attribute__((constructor)) hang_in(void)
{
	sim_tools_set(&tools);
}

static void __attribute__((destructor)) hang_out(void)
{
	sim_tools_set(NULL);
}

/* Tells the truth log what the tool did. */
static CUptiResult told(const char *name, uint32_t arg, CUptiResult result)
{
	sim_truth_tool(name, arg, result);
	return result;
}

static void hang_here(enum sim_hang where)
{
	while (sim_config()->hang == (int64_t)where)
		pause();
}

/* --- versions, time, ids ---------------------------------------------------------------------- */

CUptiResult cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = (uint32_t)sim_config()->version;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *t)
{
	if (!t)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*t = records_now();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT &&
	    type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return CUPTI_ERROR_NOT_SUPPORTED;
	records_thread_ids(type);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	if (!type)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*type = records_thread_id_type();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetContextId(CUcontext ctx, uint32_t *id)
{
	if (!ctx || !id)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext ctx, uint32_t *id)
{
	if (!ctx)
		ctx = sim_self()->ctx;
	if (!ctx || !id)
		return CUPTI_ERROR_INVALID_CONTEXT;
	*id = (uint32_t)ctx->device;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext ctx, CUstream stream, uint8_t per_thread, uint32_t *id)
{
	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!ctx)
		ctx = sim_self()->ctx;
	if (!ctx)
		return CUPTI_ERROR_INVALID_CONTEXT;
	if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD) {
		*id = stream->id;
		return CUPTI_SUCCESS;
	}
	if (stream != CU_STREAM_PER_THREAD && !per_thread) {
		*id = ctx->legacy->id;
		return CUPTI_SUCCESS;
	}
	for (const struct CUstream_st *s = ctx->streams; s; s = s->next) {
		if (s->tid == sim_self()->tid) {
			*id = s->id;
			return CUPTI_SUCCESS;
		}
	}
	return CUPTI_ERROR_INVALID_STREAM;
}

CUptiResult cuptiGetStreamId(CUcontext ctx, CUstream stream, uint32_t *id)
{
	return cuptiGetStreamIdEx(ctx, stream, 0, id);
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id)
{
	if (!graph || !id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = graph->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t *id)
{
	if (!exec || !id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = exec->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
	if (!node || !id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*id = node->id;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceSupported(CUdevice device, int *supported)
{
	if (!supported || device < 0 || device >= sim_config()->devices)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*supported = 1;
	return CUPTI_SUCCESS;
}

/* --- activities ------------------------------------------------------------------------------- */

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
					   CUpti_BuffersCallbackCompleteFunc complete)
{
	if (!request || !complete)
		return CUPTI_ERROR_INVALID_PARAMETER;
	buffers_register(request, complete);
	return told("cuptiActivityRegisterCallbacks", 0, CUPTI_SUCCESS);
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc fn)
{
	return told("cuptiActivityRegisterTimestampCallback", 0, records_clock(fn));
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	return told("cuptiActivityEnable", kind, records_enable(kind, true));
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	return cuptiActivityEnable(kind);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	return told("cuptiActivityDisable", kind, records_enable(kind, false));
}

CUptiResult cuptiActivityEnableContext(CUcontext ctx, CUpti_ActivityKind kind)
{
	(void)ctx;
	return cuptiActivityEnable(kind);
}

CUptiResult cuptiActivityDisableContext(CUcontext ctx, CUpti_ActivityKind kind)
{
	(void)ctx;
	return cuptiActivityDisable(kind);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	records_enable_call(SIM_DRIVER, cbid, enable);
	return told("cuptiActivityEnableDriverApi", cbid, CUPTI_SUCCESS);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	records_enable_call(SIM_RUNTIME, cbid, enable);
	return told("cuptiActivityEnableRuntimeApi", cbid, CUPTI_SUCCESS);
}

/* Accepted; the model has nothing that they would change. */
CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	(void)enable;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableLaunchAttributes(uint8_t enable)
{
	(void)enable;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
	(void)enable;
	return CUPTI_SUCCESS;
}

/* Only full buffers come by themselves, and those come at once. */
CUptiResult cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	if (!buffers_registered())
		return CUPTI_ERROR_INVALID_OPERATION;
	hang_here(HANG_FLUSH);
	return told("cuptiActivityFlushAll", flag,
		    buffers_flush() ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN);
}

CUptiResult cuptiActivityFlush(CUcontext ctx, uint32_t stream, uint32_t flag)
{
	(void)ctx;
	(void)stream;
	return cuptiActivityFlushAll(flag);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext ctx, uint32_t stream, size_t *n)
{
	(void)ctx;
	(void)stream;
	if (!n)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*n = buffers_dropped();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	CUpti_ActivityKind kind;
	uint8_t *next = buffer;
	size_t size;

	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		next = (uint8_t *)*record + record_size(kind);
	}
	if (next + sizeof(kind) > buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	memcpy(&kind, next, sizeof(kind));
	size = record_size(kind);
	if (!size || next + size > buffer + valid)
		return CUPTI_ERROR_INVALID_KIND;
	*record = (CUpti_Activity *)next;
	return CUPTI_SUCCESS;
}

static uint64_t attributes[16];

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value)
{
	if (!size || !value || (unsigned int)attr >= 16)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*size > sizeof(attributes[0]))
		return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	memcpy(&attributes[attr], value, *size);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value)
{
	if (!size || !value || (unsigned int)attr >= 16)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*size > sizeof(attributes[0]))
		*size = sizeof(attributes[0]);
	memcpy(value, &attributes[attr], *size);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	return records_push(kind, id);
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *id)
{
	return records_pop(kind, id);
}

CUptiResult cuptiFinalize(void)
{
	hang_here(HANG_FINALIZE);
	callbacks_reset();
	records_reset();
	if (buffers_registered())
		buffers_stop();
	return told("cuptiFinalize", 0, CUPTI_SUCCESS);
}

/* --- results ---------------------------------------------------------------------------------- */

#define RESULTS(X)                                                                                 \
	X(CUPTI_SUCCESS)                                                                           \
	X(CUPTI_ERROR_INVALID_PARAMETER)                                                           \
	X(CUPTI_ERROR_INVALID_DEVICE)                                                              \
	X(CUPTI_ERROR_INVALID_CONTEXT)                                                             \
	X(CUPTI_ERROR_INVALID_OPERATION)                                                           \
	X(CUPTI_ERROR_OUT_OF_MEMORY)                                                               \
	X(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT)                                               \
	X(CUPTI_ERROR_MAX_LIMIT_REACHED)                                                           \
	X(CUPTI_ERROR_NOT_READY)                                                                   \
	X(CUPTI_ERROR_NOT_COMPATIBLE)                                                              \
	X(CUPTI_ERROR_NOT_INITIALIZED)                                                             \
	X(CUPTI_ERROR_QUEUE_EMPTY)                                                                 \
	X(CUPTI_ERROR_INVALID_STREAM)                                                              \
	X(CUPTI_ERROR_INVALID_KIND)                                                                \
	X(CUPTI_ERROR_NOT_SUPPORTED)                                                               \
	X(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)                                                     \
	X(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)                                          \
	X(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)                                  \
	X(CUPTI_ERROR_UNKNOWN)

static const char *result_name(CUptiResult result)
{
#define NAME(r)                                                                                    \
	case r:                                                                                    \
		return #r;
	switch (result) {
		RESULTS(NAME)
	default:
		return NULL;
	}
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
	if (!str)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*str = result_name(result);
	return *str ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **str)
{
	return cuptiGetResultString(result, str);
}

CUptiResult cuptiGetLastError(void)
{
	return CUPTI_SUCCESS;
}

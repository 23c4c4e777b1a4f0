// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * No code: what cupti.h says about CUPTI's constants and records, asserted against the header of the
 * toolkit at hand, for every version of a record that it declares.
 */
#include <cupti.h>

#include "probes/cupti/cupti.h"

#define SAME(a, b)	  _Static_assert((long long)(a) == (long long)(b), #a " is " #b)
#define AT(s, field, off) _Static_assert(offsetof(s, field) == (off), #s "." #field)

SAME(CUPTI_SUCCESS, CUPTI_OK);
SAME(CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_NO_MORE_RECORDS);
SAME(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CUPTI_RIVAL);
SAME(CUPTI_ACTIVITY_KIND_MEMCPY, KIND_MEMCPY);
SAME(CUPTI_ACTIVITY_KIND_MEMSET, KIND_MEMSET);
SAME(CUPTI_ACTIVITY_KIND_DRIVER, KIND_DRIVER);
SAME(CUPTI_ACTIVITY_KIND_RUNTIME, KIND_RUNTIME);
SAME(CUPTI_ACTIVITY_KIND_DEVICE, KIND_DEVICE);
SAME(CUPTI_ACTIVITY_KIND_CONTEXT, KIND_CONTEXT);
SAME(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, KIND_KERNEL);
SAME(CUPTI_ACTIVITY_KIND_OVERHEAD, KIND_OVERHEAD);
SAME(CUPTI_ACTIVITY_KIND_MEMCPY2, KIND_PEER_COPY);
SAME(CUPTI_ACTIVITY_KIND_STREAM, KIND_STREAM);
SAME(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, KIND_SYNC);
SAME(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, KIND_GRAPH);
SAME(CUPTI_CB_DOMAIN_DRIVER_API, DOMAIN_DRIVER);
SAME(CUPTI_CB_DOMAIN_RUNTIME_API, DOMAIN_RUNTIME);
SAME(CUPTI_API_EXIT, SITE_EXIT);
SAME(CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion, CBID_DRIVER_VERSION);
SAME(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, ATTR_ZEROED_BUFFER);
SAME(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, THREAD_ID_SYSTEM);
SAME(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, FLUSH_FORCED);
AT(CUpti_CallbackData, callbackSite, 0);

#define KERNEL(s)                                                                                  \
	AT(s, registersPerThread, KERNEL_REGISTERS);                                               \
	AT(s, start, KERNEL_START);                                                                \
	AT(s, end, KERNEL_END);                                                                    \
	AT(s, deviceId, KERNEL_DEVICE);                                                            \
	AT(s, contextId, KERNEL_CONTEXT);                                                          \
	AT(s, streamId, KERNEL_STREAM);                                                            \
	AT(s, gridX, KERNEL_GRID);                                                                 \
	AT(s, gridZ, KERNEL_GRID + 8);                                                             \
	AT(s, blockX, KERNEL_BLOCK);                                                               \
	AT(s, blockZ, KERNEL_BLOCK + 8);                                                           \
	AT(s, staticSharedMemory, KERNEL_STATIC_SHARED);                                           \
	AT(s, dynamicSharedMemory, KERNEL_DYNAMIC_SHARED);                                         \
	AT(s, correlationId, KERNEL_CORRELATION);                                                  \
	AT(s, name, KERNEL_NAME)
#define COPY(s)                                                                                    \
	AT(s, copyKind, COPY_KIND);                                                                \
	AT(s, srcKind, COPY_SRC);                                                                  \
	AT(s, dstKind, COPY_DST);                                                                  \
	AT(s, flags, COPY_FLAGS);                                                                  \
	AT(s, bytes, COPY_BYTES);                                                                  \
	AT(s, start, COPY_START);                                                                  \
	AT(s, end, COPY_END);                                                                      \
	AT(s, deviceId, COPY_DEVICE);                                                              \
	AT(s, contextId, COPY_CONTEXT);                                                            \
	AT(s, streamId, COPY_STREAM)
#define PEER(s)                                                                                    \
	COPY(s);                                                                                   \
	AT(s, srcDeviceId, PEER_SRC_DEVICE);                                                       \
	AT(s, dstDeviceId, PEER_DST_DEVICE);                                                       \
	AT(s, correlationId, PEER_CORRELATION)
#define SET(s)                                                                                     \
	AT(s, value, SET_VALUE);                                                                   \
	AT(s, bytes, SET_BYTES);                                                                   \
	AT(s, start, SET_START);                                                                   \
	AT(s, end, SET_END);                                                                       \
	AT(s, deviceId, SET_DEVICE);                                                               \
	AT(s, contextId, SET_CONTEXT);                                                             \
	AT(s, streamId, SET_STREAM);                                                               \
	AT(s, correlationId, SET_CORRELATION);                                                     \
	AT(s, flags, SET_FLAGS);                                                                   \
	AT(s, memoryKind, SET_MEMORY_KIND)
#define SYNC(s)                                                                                    \
	AT(s, type, SYNC_TYPE);                                                                    \
	AT(s, start, SYNC_START);                                                                  \
	AT(s, end, SYNC_END);                                                                      \
	AT(s, correlationId, SYNC_CORRELATION);                                                    \
	AT(s, contextId, SYNC_CONTEXT);                                                            \
	AT(s, streamId, SYNC_STREAM);                                                              \
	AT(s, cudaEventId, SYNC_EVENT)
#define GRAPH(s)                                                                                   \
	AT(s, correlationId, GRAPH_CORRELATION);                                                   \
	AT(s, start, GRAPH_START);                                                                 \
	AT(s, end, GRAPH_END);                                                                     \
	AT(s, deviceId, GRAPH_DEVICE);                                                             \
	AT(s, graphId, GRAPH_ID);                                                                  \
	AT(s, contextId, GRAPH_CONTEXT);                                                           \
	AT(s, streamId, GRAPH_STREAM)
#define OVERHEAD(s)                                                                                \
	AT(s, overheadKind, OVERHEAD_KIND);                                                        \
	AT(s, objectKind, OVERHEAD_OBJECT);                                                        \
	AT(s, objectId, OVERHEAD_OBJECT_ID);                                                       \
	AT(s, start, OVERHEAD_START);                                                              \
	AT(s, end, OVERHEAD_END)
#define DEVICE(s)                                                                                  \
	AT(s, globalMemoryBandwidth, DEVICE_BANDWIDTH);                                            \
	AT(s, globalMemorySize, DEVICE_MEMORY);                                                    \
	AT(s, coreClockRate, DEVICE_CLOCK);                                                        \
	AT(s, numMemcpyEngines, DEVICE_ENGINES);                                                   \
	AT(s, numMultiprocessors, DEVICE_SMS);                                                     \
	AT(s, computeCapabilityMajor, DEVICE_CAPABILITY_MAJOR);                                    \
	AT(s, computeCapabilityMinor, DEVICE_CAPABILITY_MINOR);                                    \
	AT(s, id, DEVICE_ID);                                                                      \
	AT(s, name, DEVICE_NAME)
#define CONTEXT(s)                                                                                 \
	AT(s, contextId, CONTEXT_ID);                                                              \
	AT(s, deviceId, CONTEXT_DEVICE);                                                           \
	AT(s, nullStreamId, CONTEXT_NULL_STREAM)

KERNEL(CUpti_ActivityKernel4);
KERNEL(CUpti_ActivityKernel5);
AT(CUpti_ActivityKernel5, graphNodeId, KERNEL_GRAPH_NODE);
COPY(CUpti_ActivityMemcpy);
AT(CUpti_ActivityMemcpy, correlationId, COPY_CORRELATION);
COPY(CUpti_ActivityMemcpy3);
AT(CUpti_ActivityMemcpy3, correlationId, COPY_CORRELATION);
AT(CUpti_ActivityMemcpy3, graphNodeId, COPY_GRAPH_NODE);
SET(CUpti_ActivityMemset);
SET(CUpti_ActivityMemset2);
AT(CUpti_ActivityMemset2, graphNodeId, SET_GRAPH_NODE);
SYNC(CUpti_ActivitySynchronization);
OVERHEAD(CUpti_ActivityOverhead);
DEVICE(CUpti_ActivityDevice2);
CONTEXT(CUpti_ActivityContext);
AT(CUpti_ActivityAPI, cbid, CALL_CBID);
AT(CUpti_ActivityAPI, start, CALL_START);
AT(CUpti_ActivityAPI, end, CALL_END);
AT(CUpti_ActivityAPI, processId, CALL_TGID);
AT(CUpti_ActivityAPI, threadId, CALL_TID);
AT(CUpti_ActivityAPI, correlationId, CALL_CORRELATION);
AT(CUpti_ActivityAPI, returnValue, CALL_RESULT);
AT(CUpti_ActivityStream, contextId, STREAM_CONTEXT);
AT(CUpti_ActivityStream, streamId, STREAM_ID);
AT(CUpti_ActivityStream, priority, STREAM_PRIORITY);
AT(CUpti_ActivityStream, flag, STREAM_FLAG);
AT(CUpti_ActivityStream, correlationId, STREAM_CORRELATION);

#if CUPTI_API_VERSION >= 130000 /* its headers declare all that came before */
SAME(CUPTI_CB_DOMAIN_STATE, DOMAIN_STATE);
SAME(CUPTI_CBID_STATE_FATAL_ERROR, STATE_FATAL_ERROR);
SAME(sizeof(CUpti_SubscriberParams), sizeof(struct cupti_subscriber_params));
AT(CUpti_SubscriberParams, subscriberName, offsetof(struct cupti_subscriber_params, name));
AT(CUpti_SubscriberParams, oldSubscriberName, offsetof(struct cupti_subscriber_params, old_name));
AT(CUpti_SubscriberParams, oldSubscriberSize, offsetof(struct cupti_subscriber_params, old_size));
#define GRAPH_FIELDS(s, node, graph)                                                               \
	AT(s, graphNodeId, node);                                                                  \
	AT(s, graphId, graph)
KERNEL(CUpti_ActivityKernel6);
KERNEL(CUpti_ActivityKernel7);
KERNEL(CUpti_ActivityKernel8);
KERNEL(CUpti_ActivityKernel9);
KERNEL(CUpti_ActivityKernel10);
GRAPH_FIELDS(CUpti_ActivityKernel5, KERNEL_GRAPH_NODE, KERNEL_GRAPH);
GRAPH_FIELDS(CUpti_ActivityKernel7, KERNEL_GRAPH_NODE, KERNEL_GRAPH);
GRAPH_FIELDS(CUpti_ActivityKernel10, KERNEL_GRAPH_NODE, KERNEL_GRAPH);
COPY(CUpti_ActivityMemcpy6);
AT(CUpti_ActivityMemcpy6, correlationId, COPY_CORRELATION);
GRAPH_FIELDS(CUpti_ActivityMemcpy4, COPY_GRAPH_NODE, COPY_GRAPH);
GRAPH_FIELDS(CUpti_ActivityMemcpy6, COPY_GRAPH_NODE, COPY_GRAPH);
PEER(CUpti_ActivityMemcpyPtoP);
PEER(CUpti_ActivityMemcpyPtoP4);
AT(CUpti_ActivityMemcpyPtoP2, graphNodeId, PEER_GRAPH_NODE);
GRAPH_FIELDS(CUpti_ActivityMemcpyPtoP4, PEER_GRAPH_NODE, PEER_GRAPH);
SET(CUpti_ActivityMemset4);
GRAPH_FIELDS(CUpti_ActivityMemset3, SET_GRAPH_NODE, SET_GRAPH);
GRAPH_FIELDS(CUpti_ActivityMemset4, SET_GRAPH_NODE, SET_GRAPH);
SYNC(CUpti_ActivitySynchronization2);
GRAPH(CUpti_ActivityGraphTrace);
GRAPH(CUpti_ActivityGraphTrace2);
OVERHEAD(CUpti_ActivityOverhead3);
AT(CUpti_ActivityOverhead3, correlationId, OVERHEAD_CORRELATION);
DEVICE(CUpti_ActivityDevice4);
DEVICE(CUpti_ActivityDevice5);
CONTEXT(CUpti_ActivityContext3);
#endif

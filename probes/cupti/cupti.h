/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of CUPTI that the agent uses, as a table of pointers filled by dlopen: the agent is linked
 * to no CUPTI, and one binary works with those of CUDA 11, 12 and 13. Constants and offsets are
 * asserted against the toolkit's header in layout_check.c.
 *
 * Records have stable beginnings and grow at their ends from version to version, so a field is read
 * by its offset, and only where the record at hand is long enough to have it.
 */
#ifndef QBPF_CUPTI_CUPTI_H
#define QBPF_CUPTI_CUPTI_H

#include <stddef.h>
#include <stdint.h>

struct cupti_subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

typedef void (*cupti_callback_fn)(void *, int, uint32_t, const void *);
typedef void (*cupti_request_fn)(uint8_t **, size_t *, size_t *);
typedef void (*cupti_complete_fn)(void *, uint32_t, uint8_t *, size_t, size_t);

/* X(needed, function, arguments); all return a CUptiResult. */
#define CUPTI_FUNCTIONS(X)                                                                         \
	X(1, cuptiGetVersion, (uint32_t *))                                                        \
	X(1, cuptiGetTimestamp, (uint64_t *))                                                      \
	X(0, cuptiActivityRegisterTimestampCallback, (uint64_t(*)(void)))                          \
	X(0, cuptiSetThreadIdType, (int))                                                          \
	X(1, cuptiActivitySetAttribute, (int, size_t *, void *))                                   \
	X(1, cuptiSubscribe, (void **, cupti_callback_fn, void *))                                 \
	X(0, cuptiSubscribe_v2,                                                                    \
	  (void **, cupti_callback_fn, void *, struct cupti_subscriber_params *))                  \
	X(1, cuptiUnsubscribe, (void *))                                                           \
	X(1, cuptiEnableCallback, (uint32_t, void *, int, uint32_t))                               \
	X(1, cuptiActivityRegisterCallbacks, (cupti_request_fn, cupti_complete_fn))                \
	X(1, cuptiActivityEnable, (int))                                                           \
	X(1, cuptiActivityDisable, (int))                                                          \
	X(0, cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t))                                   \
	X(0, cuptiActivityEnableDriverApi, (uint32_t, uint8_t))                                    \
	X(0, cuptiActivityEnableAllSyncRecords, (uint8_t))                                         \
	X(1, cuptiActivityFlushAll, (uint32_t))                                                    \
	X(1, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                             \
	X(1, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                      \
	X(0, cuptiGetCallbackName, (int, uint32_t, const char **))                                 \
	X(0, cuptiFinalize, (void))

struct cupti {
#define X(needed, name, args) int(*name) args;
	CUPTI_FUNCTIONS(X)
#undef X
};

extern struct cupti cupti;

/* CUptiResult */
enum {
	CUPTI_OK = 0,
	CUPTI_NO_MORE_RECORDS = 12,
	CUPTI_RIVAL = 39,
};

/* CUpti_ActivityKind */
enum {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_DEVICE = 8,
	KIND_CONTEXT = 9,
	KIND_KERNEL = 10, /* CONCURRENT_KERNEL; the other one, 3, makes kernels run one by one */
	KIND_OVERHEAD = 17,
	KIND_PEER_COPY = 22,
	KIND_STREAM = 37,
	KIND_SYNC = 38,
	KIND_GRAPH = 51,
};

enum {
	DOMAIN_DRIVER = 1, /* CUpti_CallbackDomain */
	DOMAIN_RUNTIME = 2,
	DOMAIN_STATE = 6,
	STATE_FATAL_ERROR = 1,	 /* CUpti_CallbackIdState */
	CBID_DRIVER_VERSION = 2, /* cuDriverGetVersion among CUpti_driver_api_trace_cbid */
	SITE_EXIT = 1,		 /* CUpti_ApiCallbackSite, the first field of CUpti_CallbackData */
	ATTR_ZEROED_BUFFER = 5,	 /* CUpti_ActivityAttribute, a uint8_t */
	THREAD_ID_SYSTEM = 1,	 /* CUpti_ActivityThreadIdType */
	FLUSH_FORCED = 1,
};

/* Offsets in records. Kernel: CUpti_ActivityKernel4 .. 10 */
enum {
	KERNEL_REGISTERS = 6,
	KERNEL_START = 16,
	KERNEL_END = 24,
	KERNEL_DEVICE = 40,
	KERNEL_CONTEXT = 44,
	KERNEL_STREAM = 48,
	KERNEL_GRID = 52,
	KERNEL_BLOCK = 64,
	KERNEL_STATIC_SHARED = 76,
	KERNEL_DYNAMIC_SHARED = 80,
	KERNEL_CORRELATION = 92,
	KERNEL_NAME = 104,
	KERNEL_GRAPH_NODE = 144, /* 5 and later */
	KERNEL_GRAPH = 156,
};

/* CUpti_ActivityMemcpy .. 6 and, up to the stream, MemcpyPtoP .. 4 */
enum {
	COPY_KIND = 4,
	COPY_SRC = 5,
	COPY_DST = 6,
	COPY_FLAGS = 7,
	COPY_BYTES = 8,
	COPY_START = 16,
	COPY_END = 24,
	COPY_DEVICE = 32,
	COPY_CONTEXT = 36,
	COPY_STREAM = 40,
	COPY_CORRELATION = 44,
	COPY_GRAPH_NODE = 64, /* 3 and later */
	COPY_GRAPH = 72,      /* 4 and later */
	PEER_SRC_DEVICE = 44,
	PEER_DST_DEVICE = 52,
	PEER_CORRELATION = 60,
	PEER_GRAPH_NODE = 72,
	PEER_GRAPH = 80,
};

enum {
	SET_VALUE = 4, /* CUpti_ActivityMemset .. 4 */
	SET_BYTES = 8,
	SET_START = 16,
	SET_END = 24,
	SET_DEVICE = 32,
	SET_CONTEXT = 36,
	SET_STREAM = 40,
	SET_CORRELATION = 44,
	SET_FLAGS = 48,
	SET_MEMORY_KIND = 50,
	SET_GRAPH_NODE = 64, /* 2 and later */
	SET_GRAPH = 72,	     /* 3 and later */

	SYNC_TYPE = 4, /* CUpti_ActivitySynchronization, 2 */
	SYNC_START = 8,
	SYNC_END = 16,
	SYNC_CORRELATION = 24,
	SYNC_CONTEXT = 28,
	SYNC_STREAM = 32,
	SYNC_EVENT = 36,

	CALL_CBID = 4, /* CUpti_ActivityAPI */
	CALL_START = 8,
	CALL_END = 16,
	CALL_TGID = 24,
	CALL_TID = 28,
	CALL_CORRELATION = 32,
	CALL_RESULT = 36,

	GRAPH_CORRELATION = 4, /* CUpti_ActivityGraphTrace, 2 */
	GRAPH_START = 8,
	GRAPH_END = 16,
	GRAPH_DEVICE = 24,
	GRAPH_ID = 28,
	GRAPH_CONTEXT = 32,
	GRAPH_STREAM = 36,

	OVERHEAD_KIND = 4, /* CUpti_ActivityOverhead .. 3 */
	OVERHEAD_OBJECT = 8,
	OVERHEAD_OBJECT_ID = 12,
	OVERHEAD_START = 24,
	OVERHEAD_END = 32,
	OVERHEAD_CORRELATION = 40, /* 3 */

	DEVICE_BANDWIDTH = 8, /* CUpti_ActivityDevice2 .. 5 */
	DEVICE_MEMORY = 16,
	DEVICE_CLOCK = 36,
	DEVICE_ENGINES = 40,
	DEVICE_SMS = 44,
	DEVICE_CAPABILITY_MAJOR = 104,
	DEVICE_CAPABILITY_MINOR = 108,
	DEVICE_ID = 112,
	DEVICE_NAME = 136,

	CONTEXT_ID = 4, /* CUpti_ActivityContext .. 3 */
	CONTEXT_DEVICE = 8,
	CONTEXT_NULL_STREAM = 14,

	STREAM_CONTEXT = 4, /* CUpti_ActivityStream */
	STREAM_ID = 8,
	STREAM_PRIORITY = 12,
	STREAM_FLAG = 16,
	STREAM_CORRELATION = 20,
};

#endif

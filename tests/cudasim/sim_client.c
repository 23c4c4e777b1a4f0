/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_client.c - the CUPTI client of sim_probe: buffers, and each record as a line of CSV */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_client.h"

static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_requests, n_completions, n_live, most_live;

struct client client = {.buffer_size = 64 << 10};

void CUPTIAPI client_request(uint8_t **buffer, size_t *size, size_t *max)
{
	unsigned int live = __atomic_add_fetch(&n_live, 1, __ATOMIC_SEQ_CST);

	__atomic_add_fetch(&n_requests, 1, __ATOMIC_SEQ_CST);
	*max = client.buffer_records;
	*size = client.buffer_size;
	*buffer = client.no_buffers ? NULL : aligned_alloc(8, client.buffer_size);
	pthread_mutex_lock(&print_lock);
	if (live > most_live)
		most_live = live;
	pthread_mutex_unlock(&print_lock);
}

static void print_kernel(const CUpti_ActivityKernel10 *k)
{
	printf("record,kernel,%s,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,0,%d,%u,%" PRIu64 "\n",
	       k->name, k->start, k->end, k->correlationId, k->deviceId, k->contextId, k->streamId,
	       k->gridX, k->graphId, k->graphNodeId);
}

static void print_copy(const CUpti_ActivityMemcpy6 *m)
{
	printf("record,memcpy,,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,%" PRIu64 ",%u,%u,%u,%u\n",
	       m->start, m->end, m->correlationId, m->deviceId, m->contextId, m->streamId, m->bytes,
	       m->copyKind, m->srcKind, m->dstKind, m->flags);
}

static void print_record(const CUpti_Activity *r)
{
	const CUpti_ActivityAPI *a = (const void *)r;
	const CUpti_ActivityMemset4 *s = (const void *)r;
	const CUpti_ActivitySynchronization2 *y = (const void *)r;
	const CUpti_ActivityGraphTrace2 *g = (const void *)r;
	const CUpti_ActivityMemcpyPtoP4 *p = (const void *)r;
	const CUpti_ActivityOverhead3 *o = (const void *)r;
	const CUpti_ActivityExternalCorrelation *x = (const void *)r;
	const char *name = "";

	switch (r->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
	case CUPTI_ACTIVITY_KIND_KERNEL:
		print_kernel((const void *)r);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		print_copy((const void *)r);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		printf("record,memcpy2,,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,%" PRIu64 ",%u,%u\n",
		       p->start, p->end, p->correlationId, p->deviceId, p->contextId, p->streamId,
		       p->bytes, p->srcDeviceId, p->dstDeviceId);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		printf("record,memset,,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,%" PRIu64 "\n", s->start,
		       s->end, s->correlationId, s->deviceId, s->contextId, s->streamId, s->bytes);
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		printf("record,sync,,%" PRIu64 ",%" PRIu64 ",%u,0,%u,%u,0,%u\n", y->start, y->end,
		       y->correlationId, y->contextId, y->streamId, y->type);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		cuptiGetCallbackName(r->kind == CUPTI_ACTIVITY_KIND_RUNTIME
					 ? CUPTI_CB_DOMAIN_RUNTIME_API
					 : CUPTI_CB_DOMAIN_DRIVER_API,
				     a->cbid, &name);
		printf("record,%s,%s,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u\n",
		       r->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? "runtime" : "driver", name,
		       a->start, a->end, a->correlationId, a->processId, a->threadId,
		       a->returnValue);
		break;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		printf("record,graph,,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,0,%u\n", g->start, g->end,
		       g->correlationId, g->deviceId, g->contextId, g->streamId, g->graphId);
		break;
	case CUPTI_ACTIVITY_KIND_OVERHEAD:
		printf("record,overhead,,%" PRIu64 ",%" PRIu64 ",%u,0,0,0,0,%u\n", o->start, o->end,
		       o->correlationId, o->overheadKind);
		break;
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		printf("record,external,,0,0,%u,%u,%" PRIu64 "\n", x->correlationId,
		       x->externalKind, x->externalId);
		break;
	default:
		printf("record,unknown,%d\n", r->kind);
	}
}

void CUPTIAPI client_complete(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid)
{
	CUpti_Activity *r = NULL;
	CUptiResult err;

	(void)ctx, (void)stream, (void)size;
	pthread_mutex_lock(&print_lock);
	n_completions++;
	while (!(err = cuptiActivityGetNextRecord(buffer, valid, &r)))
		print_record(r);
	if (err != CUPTI_ERROR_MAX_LIMIT_REACHED)
		printf("broken,%d\n", err);
	pthread_mutex_unlock(&print_lock);
	__atomic_sub_fetch(&n_live, 1, __ATOMIC_SEQ_CST);
	free(buffer);
}

void client_stop(void)
{
	size_t lost = 0;

	cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	cuptiActivityGetNumDroppedRecords(NULL, 0, &lost);
	printf("dropped,%zu\nbuffers,%u,%u,%u\n", lost, n_requests, n_completions, most_live);
}

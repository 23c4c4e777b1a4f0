// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What CUPTI is asked to record.
 *
 * Of the API calls only those that copy, launch, wait or allocate, picked by name, so that a later
 * CUDA's new variants are in and a loop of cudaEventQuery is not. Where CUPTI has no such choice
 * (before CUDA 12.4) it is all of them.
 */
#include "probes/cupti/agent.h"

#define CBIDS_MAX 2048 /* CUDA 13.0 has 522 and 806 */

static const struct {
	int kind;
	bool needed;
} kinds[] = {
    {KIND_DEVICE, false},   {KIND_CONTEXT, false},   {KIND_STREAM, false}, {KIND_KERNEL, true},
    {KIND_MEMCPY, false},   {KIND_PEER_COPY, false}, {KIND_MEMSET, false}, {KIND_SYNC, false},
    {KIND_OVERHEAD, false}, {KIND_GRAPH, false},
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *const runtime_calls[] = {
    "cudaLaunch",	    "__cudaLaunch",	"cudaGraphLaunch",
    "cudaGraphInstantiate", "cudaGraphUpload",	"cudaMemcpy",
    "cudaMemset",	    "cudaMalloc",	"cudaFree",
    "cudaHostAlloc",	    "cudaHostRegister", "cudaMemPrefetch",
    "cudaStreamWaitEvent",  "cudaEventRecord",	NULL};
static const char *const driver_calls[] = {
    "cuLaunch",	     "cuGraphLaunch",	  "cuGraphInstantiate",
    "cuGraphUpload", "cuMemcpy",	  "cu64Memcpy",
    "cuMemset",	     "cu64Memset",	  "cuMemAlloc",
    "cuMemFree",     "cuMemHostAlloc",	  "cuMemHostRegister",
    "cuMemPrefetch", "cuStreamWaitEvent", "cuEventRecord",
    "cuModuleLoad",  "cuLibraryLoad",	  NULL};

static bool chosen(int domain, const char *name)
{
	const char *const *p = domain == DOMAIN_RUNTIME ? runtime_calls : driver_calls;

	for (; *p; p++)
		if (!strncmp(name, *p, strlen(*p)))
			return true;
	return strstr(name, "Synchronize") != NULL;
}

static int switch_call(int domain, uint32_t cbid, uint8_t on)
{
	if (domain == DOMAIN_RUNTIME)
		return CUPTI(cuptiActivityEnableRuntimeApi, cbid, on);
	return CUPTI(cuptiActivityEnableDriverApi, cbid, on);
}

/* Switches the chosen calls of a domain. False: this CUPTI cannot, or did not. */
static bool switch_calls(int domain, uint8_t on)
{
	const char *name;
	uint32_t cbid, n = 0;

	if (!cupti.cuptiGetCallbackName || !cupti.cuptiActivityEnableRuntimeApi ||
	    !cupti.cuptiActivityEnableDriverApi)
		return false;
	for (cbid = 1; cbid < CBIDS_MAX; cbid++) {
		name = NULL;
		if (CUPTI(cuptiGetCallbackName, domain, cbid, &name) != CUPTI_OK || !name)
			break;
		if (!chosen(domain, name))
			continue;
		if (switch_call(domain, cbid, on) != CUPTI_OK && on)
			return false;
		n++;
	}
	return n > 0;
}

static int enable(int kind)
{
	struct qbpf_ring_head *h = agent.ring.head;
	int code = CUPTI(cuptiActivityEnable, kind);

	if (code == CUPTI_OK) {
		h->kinds |= 1ull << kind;
	} else {
		h->kinds_refused |= 1ull << kind;
		h->kind_fault = code;
		warn(QBPF_RING_WARN_KINDS);
	}
	return code;
}

static void enable_calls(int domain, int kind)
{
	if (switch_calls(domain, 1)) {
		agent.ring.head->kinds |= 1ull << kind;
		return;
	}
	warn(QBPF_RING_WARN_ALL_API);
	enable(kind);
}

bool kinds_enable(void)
{
	size_t i;
	int code;

	/* Queries that found the stream busy say nothing, and come by the million. */
	if (cupti.cuptiActivityEnableAllSyncRecords)
		CUPTI(cuptiActivityEnableAllSyncRecords, 0);
	for (i = 0; i < NKINDS; i++) {
		/* The graph's record takes the place of those of its nodes. */
		if (kinds[i].kind == KIND_GRAPH && (agent.wants & QBPF_RING_WANT_NODES))
			continue;
		code = enable(kinds[i].kind);
		if (code != CUPTI_OK && kinds[i].needed)
			return fault(QBPF_RING_CUPTI_CALL, "cuptiActivityEnable", code);
	}
	if (!(agent.wants & QBPF_RING_WANT_NO_CALLS)) {
		enable_calls(DOMAIN_RUNTIME, KIND_RUNTIME);
		enable_calls(DOMAIN_DRIVER, KIND_DRIVER);
	}
	return true;
}

void kinds_disable(void)
{
	struct qbpf_ring_head *h = agent.ring.head;
	uint64_t on = h->kinds;
	int kind;

	if (on & 1ull << KIND_RUNTIME)
		switch_calls(DOMAIN_RUNTIME, 0);
	if (on & 1ull << KIND_DRIVER)
		switch_calls(DOMAIN_DRIVER, 0);
	for (kind = 0; kind < 64; kind++)
		if (on & 1ull << kind)
			CUPTI(cuptiActivityDisable, kind);
	h->kinds = 0;
}

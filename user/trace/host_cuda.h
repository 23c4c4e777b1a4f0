/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this host has for tracing CUDA: the agent, the driver's library, CUPTI, and whether a process
 * that runs can be given the agent. For `qbpf doctor`.
 */
#ifndef QBPF_TRACE_HOST_CUDA_H
#define QBPF_TRACE_HOST_CUDA_H

#include <limits.h>
#include <stdbool.h>

#include "err.h"

struct cuda_library {
	char path[PATH_MAX];	    /* "": none was loaded */
	char error[PATH_MAX + 256]; /* why one that is there was not loaded; "": none was met */
	int version; /* as it tells it: 13020 is CUDA 13.2 of the driver; 0: it does not */
};

struct host_cuda {
	char agent[PATH_MAX]; /* "": see agent_error */
	struct err agent_error;
	bool libraries_known;	    /* false: to load them went wrong */
	struct cuda_library driver; /* libcuda */
	/* libcupti as the agent looks for it in a program that brings none: the driver's CUDA's, else any. */
	struct cuda_library cupti;
	bool cupti_fits;
	bool kernel_driver; /* NVIDIA's is loaded */
	int ptrace;	    /* 0, or the -errno of seizing a process that is no child of qbpf's */
	int ptrace_scope;   /* yama's; -1: not there */
};

/* The libraries are loaded by a child of its own, for as long as that takes: tens of ms. */
void host_cuda__find(struct host_cuda *c);

#endif

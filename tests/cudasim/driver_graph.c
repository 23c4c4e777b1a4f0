/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* driver_graph.c - the driver's graphs */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

DRIVER(cuGraphCreate, (CUgraph * graph, unsigned int flags), graph, flags)
{
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	*graph = graph_new();
	pthread_mutex_unlock(&sim_lock);
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuGraphDestroy, (CUgraph graph), graph)
{
	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	graph_free(graph);
	return CUDA_SUCCESS;
}

/* Adds a node with sim_lock held and leaves it held, unless there is no memory. */
static CUgraphNode add_locked(CUgraphNode *node, CUgraph graph, enum sim_node_kind kind,
			      const CUgraphNode *deps, size_t n)
{
	pthread_mutex_lock(&sim_lock);
	*node = graph_add(graph, kind, deps, n);
	if (!*node)
		pthread_mutex_unlock(&sim_lock);
	return *node;
}

DRIVER(cuGraphAddKernelNode_v2,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t n,
	const CUDA_KERNEL_NODE_PARAMS *p),
       node, graph, deps, n, p)
{
	struct sim_launch l = {{p->gridDimX, p->gridDimY, p->gridDimZ},
			       {p->blockDimX, p->blockDimY, p->blockDimZ},
			       p->sharedMemBytes,
			       NULL,
			       false};
	struct sim_kernel *k;

	if (!add_locked(node, graph, NODE_OP, deps, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	k = kernel_find(p->func ? (void *)p->func : (void *)p->kern);
	if (k)
		op_launch_node(*node, &l, k, p->kernelParams);
	pthread_mutex_unlock(&sim_lock);
	return k ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER(cuGraphAddMemcpyNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t n,
	const CUDA_MEMCPY3D *copy, CUcontext ctx),
       node, graph, deps, n, copy, ctx)
{
	void *dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost
							      : (void *)(uintptr_t)copy->dstDevice;
	const void *src = copy->srcMemoryType == CU_MEMORYTYPE_HOST
			      ? copy->srcHost
			      : (const void *)(uintptr_t)copy->srcDevice;

	if (copy->Height != 1 || copy->Depth != 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!add_locked(node, graph, NODE_OP, deps, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	op_copy_fill(&(*node)->op, dst, src, copy->WidthInBytes, true);
	(*node)->dst = dst;
	(*node)->src = src;
	(*node)->length = copy_length(&(*node)->op);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

DRIVER(cuGraphAddMemsetNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t n,
	const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx),
       node, graph, deps, n, p, ctx)
{
	if (p->height != 1 || p->elementSize != 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!add_locked(node, graph, NODE_OP, deps, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*node)->op = (struct sim_activity){
	    .kind = SIM_MEMSET,
	    .value = p->value,
	    .bytes = p->width,
	    .dst_kind = MEM_DEVICE,
	    .async = true,
	};
	(*node)->dst = (void *)(uintptr_t)p->dst;
	(*node)->length = copy_length(&(*node)->op);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

DRIVER(cuGraphAddEmptyNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t n),
       node, graph, deps, n)
{
	if (!add_locked(node, graph, NODE_EMPTY, deps, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

DRIVER(cuGraphAddDependencies_v2,
       (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
	size_t n),
       graph, from, to, edges, n)
{
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&sim_lock);
	for (size_t i = 0; i < n && !err; i++) {
		/* The order of the nodes is the order in which they run. */
		if (from[i]->id >= to[i]->id)
			err = CUDA_ERROR_NOT_SUPPORTED;
		else if (!graph_depend(to[i], from[i]))
			err = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sim_lock);
	return err;
}

DRIVER(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n), graph, nodes, n)
{
	if (!graph || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodes) {
		if (*n > graph->n)
			*n = graph->n;
		memcpy(nodes, graph->nodes, *n * sizeof(*nodes));
	} else {
		*n = graph->n;
	}
	return CUDA_SUCCESS;
}

DRIVER(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
       exec, graph, flags)
{
	CUgraphExec e;

	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_lock);
	e->graph = graph_clone(graph);
	pthread_mutex_unlock(&sim_lock);
	if (!e->graph) {
		free(e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->id = e->graph->id;
	*exec = e;
	return CUDA_SUCCESS;
}

DRIVER(cuGraphExecDestroy, (CUgraphExec exec), exec)
{
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	graph_free(exec->graph);
	free(exec);
	return CUDA_SUCCESS;
}

DRIVER_SZ(cuGraphUpload, (CUgraphExec exec, CUstream stream), exec, stream)
{
	return exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_SZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream), exec, stream)
{
	CUresult err = CUDA_SUCCESS;
	struct CUstream_st *s;
	uint64_t held = 0;

	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s)
		err = CUDA_ERROR_INVALID_CONTEXT;
	else if (s->capture)
		err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	else
		graph_launch(exec, s, &held);
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(held);
	return err;
}

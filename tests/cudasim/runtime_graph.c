/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_graph.c - the runtime's graphs */
#include "runtime.h"

RUNTIME(cudaGraphCreate, v10000, (cudaGraph_t * graph, unsigned int flags), graph, flags)
{
	return (cudaError_t)cuGraphCreate(graph, flags);
}

RUNTIME(cudaGraphDestroy, v10000, (cudaGraph_t graph), graph)
{
	return (cudaError_t)cuGraphDestroy(graph);
}

RUNTIME(cudaGraphAddKernelNode, v10000,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
	 const struct cudaKernelNodeParams *params),
	node, graph, deps, n, params)
{
	CUDA_KERNEL_NODE_PARAMS p;
	CUfunction f;
	cudaError_t err = runtime_kernel(params->func, &f);

	if (err)
		return err;
	p = (CUDA_KERNEL_NODE_PARAMS){
	    .func = f,
	    .gridDimX = params->gridDim.x,
	    .gridDimY = params->gridDim.y,
	    .gridDimZ = params->gridDim.z,
	    .blockDimX = params->blockDim.x,
	    .blockDimY = params->blockDim.y,
	    .blockDimZ = params->blockDim.z,
	    .sharedMemBytes = params->sharedMemBytes,
	    .kernelParams = params->kernelParams,
	};
	return (cudaError_t)cuGraphAddKernelNode_v2(node, graph, deps, n, &p);
}

RUNTIME(cudaGraphAddMemcpyNode1D, v11010,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
	 void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
	node, graph, deps, n, dst, src, count, kind)
{
	CUDA_MEMCPY3D c = {
	    .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .srcDevice = (CUdeviceptr)(uintptr_t)src,
	    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .dstDevice = (CUdeviceptr)(uintptr_t)dst,
	    .WidthInBytes = count,
	    .Height = 1,
	    .Depth = 1,
	};

	return (cudaError_t)cuGraphAddMemcpyNode(node, graph, deps, n, &c, NULL);
}

RUNTIME(cudaGraphAddMemsetNode, v10000,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
	 const struct cudaMemsetParams *params),
	node, graph, deps, n, params)
{
	CUDA_MEMSET_NODE_PARAMS p = {
	    .dst = (CUdeviceptr)(uintptr_t)params->dst,
	    .pitch = params->pitch,
	    .value = params->value,
	    .elementSize = params->elementSize,
	    .width = params->width,
	    .height = params->height,
	};

	return (cudaError_t)cuGraphAddMemsetNode(node, graph, deps, n, &p, NULL);
}

RUNTIME(cudaGraphAddEmptyNode, v10000,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n), node,
	graph, deps, n)
{
	return (cudaError_t)cuGraphAddEmptyNode(node, graph, deps, n);
}

RUNTIME(cudaGraphAddDependencies, v12030,
	(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	 const cudaGraphEdgeData *edges, size_t n),
	graph, from, to, edges, n)
{
	return (cudaError_t)cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

RUNTIME(cudaGraphGetNodes, v10000, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n), graph,
	nodes, n)
{
	return (cudaError_t)cuGraphGetNodes(graph, nodes, n);
}

RUNTIME(cudaGraphInstantiate, v12000,
	(cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), exec, graph, flags)
{
	return (cudaError_t)cuGraphInstantiateWithFlags(exec, graph, flags);
}

RUNTIME(cudaGraphInstantiateWithFlags, v11040,
	(cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), exec, graph, flags)
{
	return (cudaError_t)cuGraphInstantiateWithFlags(exec, graph, flags);
}

RUNTIME(cudaGraphExecDestroy, v10000, (cudaGraphExec_t exec), exec)
{
	return (cudaError_t)cuGraphExecDestroy(exec);
}

RUNTIME_SZ(cudaGraphUpload, v10000, v10000, (cudaGraphExec_t exec, cudaStream_t stream), exec,
	   stream)
{
	return (cudaError_t)cuGraphUpload(exec, runtime_stream(stream));
}

RUNTIME_SZ(cudaGraphLaunch, v10000, v10000, (cudaGraphExec_t exec, cudaStream_t stream), exec,
	   stream)
{
	return (cudaError_t)cuGraphLaunch(exec, runtime_stream(stream));
}

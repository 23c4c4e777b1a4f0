/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_memory.c - the runtime's memory: allocation, copies, memsets */
#include "runtime.h"

#define DEV(p) ((CUdeviceptr)(uintptr_t)(p))

/* --- allocation ------------------------------------------------------------------------------- */

RUNTIME(cudaMalloc, v3020, (void **p, size_t size), p, size)
{
	CUdeviceptr d = 0;
	CUresult err;

	if (!p)
		return cudaErrorInvalidValue;
	err = size ? cuMemAlloc_v2(&d, size) : CUDA_SUCCESS;
	*p = (void *)(uintptr_t)d;
	return (cudaError_t)err;
}

RUNTIME(cudaMallocPitch, v3020, (void **p, size_t *pitch, size_t width, size_t height), p, pitch,
	width, height)
{
	CUdeviceptr d = 0;
	CUresult err = cuMemAllocPitch_v2(&d, pitch, width, height, 4);

	*p = (void *)(uintptr_t)d;
	return (cudaError_t)err;
}

RUNTIME(cudaMallocManaged, v6000, (void **p, size_t size, unsigned int flags), p, size, flags)
{
	CUdeviceptr d = 0;
	CUresult err = cuMemAllocManaged(&d, size, flags);

	*p = (void *)(uintptr_t)d;
	return (cudaError_t)err;
}

RUNTIME(cudaFree, v3020, (void *p), p)
{
	return (cudaError_t)cuMemFree_v2(DEV(p));
}

RUNTIME(cudaMallocHost, v3020, (void **p, size_t size), p, size)
{
	return (cudaError_t)cuMemAllocHost_v2(p, size);
}

RUNTIME(cudaHostAlloc, v3020, (void **p, size_t size, unsigned int flags), p, size, flags)
{
	return (cudaError_t)cuMemHostAlloc(p, size, flags);
}

RUNTIME(cudaFreeHost, v3020, (void *p), p)
{
	return (cudaError_t)cuMemFreeHost(p);
}

RUNTIME(cudaHostRegister, v4000, (void *p, size_t size, unsigned int flags), p, size, flags)
{
	return (cudaError_t)cuMemHostRegister_v2(p, size, flags);
}

RUNTIME(cudaHostUnregister, v4000, (void *p), p)
{
	return (cudaError_t)cuMemHostUnregister(p);
}

RUNTIME(cudaHostGetDevicePointer, v3020, (void **dev, void *host, unsigned int flags), dev, host,
	flags)
{
	*dev = host;
	return cudaSuccess;
}

RUNTIME(cudaMemGetInfo, v3020, (size_t * free, size_t *total), free, total)
{
	return (cudaError_t)cuMemGetInfo_v2(free, total);
}

RUNTIME(cudaPointerGetAttributes, v4000, (struct cudaPointerAttributes * attr, const void *p), attr,
	p)
{
	struct sim_block b;

	b = sim_memory_find(p);
	*attr = (struct cudaPointerAttributes){
	    .device = b.device,
	    .hostPointer = b.kind == MEM_PINNED || b.kind == MEM_MANAGED ? (void *)p : NULL,
	    .devicePointer = b.kind == MEM_PAGEABLE ? NULL : (void *)p,
	};
	attr->type = b.kind == MEM_DEVICE    ? cudaMemoryTypeDevice
		     : b.kind == MEM_PINNED  ? cudaMemoryTypeHost
		     : b.kind == MEM_MANAGED ? cudaMemoryTypeManaged
					     : cudaMemoryTypeUnregistered;
	return cudaSuccess;
}

RUNTIME_SZ(cudaMallocAsync, v11020, v11020, (void **p, size_t size, cudaStream_t stream), p, size,
	   stream)
{
	CUdeviceptr d = 0;
	CUresult err = cuMemAllocAsync(&d, size, runtime_stream(stream));

	*p = (void *)(uintptr_t)d;
	return (cudaError_t)err;
}

RUNTIME_SZ(cudaFreeAsync, v11020, v11020, (void *p, cudaStream_t stream), p, stream)
{
	return (cudaError_t)cuMemFreeAsync(DEV(p), runtime_stream(stream));
}

/* --- copies ----------------------------------------------------------------------------------- */

/* The driver's synchronous copies know no stream: the twin picks the thread's own. */
static cudaError_t copy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
	bool own = sim_self()->call->per_thread;
	CUresult err;

	switch (kind) {
	case cudaMemcpyHostToDevice:
		err = own ? cuMemcpyHtoD_v2_ptds(DEV(dst), src, n)
			  : cuMemcpyHtoD_v2(DEV(dst), src, n);
		break;
	case cudaMemcpyDeviceToHost:
		err = own ? cuMemcpyDtoH_v2_ptds(dst, DEV(src), n)
			  : cuMemcpyDtoH_v2(dst, DEV(src), n);
		break;
	case cudaMemcpyDeviceToDevice:
		err = own ? cuMemcpyDtoD_v2_ptds(DEV(dst), DEV(src), n)
			  : cuMemcpyDtoD_v2(DEV(dst), DEV(src), n);
		break;
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		err = own ? cuMemcpy_ptds(DEV(dst), DEV(src), n) : cuMemcpy(DEV(dst), DEV(src), n);
		break;
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
	return (cudaError_t)err;
}

static cudaError_t copy_async(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	CUstream s = runtime_stream(stream);

	switch (kind) {
	case cudaMemcpyHostToDevice:
		return (cudaError_t)cuMemcpyHtoDAsync_v2(DEV(dst), src, n, s);
	case cudaMemcpyDeviceToHost:
		return (cudaError_t)cuMemcpyDtoHAsync_v2(dst, DEV(src), n, s);
	case cudaMemcpyDeviceToDevice:
		return (cudaError_t)cuMemcpyDtoDAsync_v2(DEV(dst), DEV(src), n, s);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return (cudaError_t)cuMemcpyAsync(DEV(dst), DEV(src), n, s);
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

RUNTIME_DS(cudaMemcpy, v3020, v7000,
	   (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind), dst, src, n, kind)
{
	return copy(dst, src, n, kind);
}

RUNTIME_SZ(cudaMemcpyAsync, v3020, v7000,
	   (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream),
	   dst, src, n, kind, stream)
{
	return copy_async(dst, src, n, kind, stream);
}

RUNTIME(cudaMemcpyPeer, v4000, (void *dst, int dst_dev, const void *src, int src_dev, size_t n),
	dst, dst_dev, src, src_dev, n)
{
	return (cudaError_t)cuMemcpyPeer(DEV(dst), NULL, DEV(src), NULL, n);
}

RUNTIME(cudaMemcpyPeerAsync, v4000,
	(void *dst, int dst_dev, const void *src, int src_dev, size_t n, cudaStream_t stream), dst,
	dst_dev, src, src_dev, n, stream)
{
	return (cudaError_t)cuMemcpyPeerAsync(DEV(dst), NULL, DEV(src), NULL, n,
					      runtime_stream(stream));
}

static CUDA_MEMCPY2D rectangle(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
			       size_t width, size_t height)
{
	return (CUDA_MEMCPY2D){
	    .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .srcDevice = DEV(src),
	    .srcPitch = src_pitch,
	    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	    .dstDevice = DEV(dst),
	    .dstPitch = dst_pitch,
	    .WidthInBytes = width,
	    .Height = height,
	};
}

RUNTIME_DS(cudaMemcpy2D, v3020, v7000,
	   (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
	    size_t height, enum cudaMemcpyKind kind),
	   dst, dst_pitch, src, src_pitch, width, height, kind)
{
	CUDA_MEMCPY2D c = rectangle(dst, dst_pitch, src, src_pitch, width, height);

	return (cudaError_t)(sim_self()->call->per_thread ? cuMemcpy2D_v2_ptds(&c)
							  : cuMemcpy2D_v2(&c));
}

RUNTIME_SZ(cudaMemcpy2DAsync, v3020, v7000,
	   (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
	    size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
	   dst, dst_pitch, src, src_pitch, width, height, kind, stream)
{
	CUDA_MEMCPY2D c = rectangle(dst, dst_pitch, src, src_pitch, width, height);

	return (cudaError_t)cuMemcpy2DAsync_v2(&c, runtime_stream(stream));
}

/* --- memsets ---------------------------------------------------------------------------------- */

RUNTIME_DS(cudaMemset, v3020, v7000, (void *p, int value, size_t n), p, value, n)
{
	unsigned char v = (unsigned char)value;

	return (cudaError_t)(sim_self()->call->per_thread ? cuMemsetD8_v2_ptds(DEV(p), v, n)
							  : cuMemsetD8_v2(DEV(p), v, n));
}

RUNTIME_SZ(cudaMemsetAsync, v3020, v7000, (void *p, int value, size_t n, cudaStream_t stream), p,
	   value, n, stream)
{
	return (cudaError_t)cuMemsetD8Async(DEV(p), (unsigned char)value, n,
					    runtime_stream(stream));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* driver_memory.c - the driver's memory: allocation, copies, memsets */
#include <string.h>

#include "driver.h"

#define PTR(dev) ((void *)(uintptr_t)(dev))

/* --- allocation ------------------------------------------------------------------------------- */

static CUresult allocate(void **p, size_t size, enum sim_memory kind)
{
	struct sim_thread *t = sim_self();

	if (!p || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!t->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	*p = memory_new(size, kind, t->ctx->device);
	pthread_mutex_unlock(&sim_lock);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate_device(CUdeviceptr *p, size_t size, enum sim_memory kind)
{
	void *memory = NULL;
	CUresult err = allocate(p ? &memory : NULL, size, kind);

	if (!err)
		*p = (CUdeviceptr)(uintptr_t)memory;
	return err;
}

static CUresult release(const void *p)
{
	size_t size;
	bool ok;

	if (!p)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim_lock);
	ok = memory_free(p, &size);
	pthread_mutex_unlock(&sim_lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytes), dptr, bytes)
{
	return allocate_device(dptr, bytes, MEM_DEVICE);
}

DRIVER(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytes, unsigned int flags), dptr, bytes,
       flags)
{
	return allocate_device(dptr, bytes, MEM_MANAGED);
}

DRIVER(cuMemAllocPitch_v2,
       (CUdeviceptr * dptr, size_t *pitch, size_t width, size_t height, unsigned int element), dptr,
       pitch, width, height, element)
{
	*pitch = (width + 511) / 512 * 512;
	return allocate_device(dptr, *pitch * height, MEM_DEVICE);
}

/* Frees wait for the device, as with the driver. */
DRIVER(cuMemFree_v2, (CUdeviceptr dptr), dptr)
{
	struct CUctx_st *ctx = sim_self()->ctx;
	uint64_t end;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	end = dptr ? context_end(ctx) : 0;
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(end);
	return release(PTR(dptr));
}

DRIVER(cuMemAllocHost_v2, (void **p, size_t bytes), p, bytes)
{
	return allocate(p, bytes, MEM_PINNED);
}

DRIVER(cuMemHostAlloc, (void **p, size_t bytes, unsigned int flags), p, bytes, flags)
{
	return allocate(p, bytes, MEM_PINNED);
}

DRIVER(cuMemFreeHost, (void *p), p)
{
	return release(p);
}

DRIVER(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned int flags), p, bytes, flags)
{
	bool ok;

	if (!p || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	ok = memory_register(p, bytes);
	pthread_mutex_unlock(&sim_lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuMemHostUnregister, (void *p), p)
{
	return release(p);
}

DRIVER(cuMemGetInfo_v2, (size_t * free, size_t *total), free, total)
{
	const struct sim_thread *t = sim_self();

	if (!t->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	*total = 16ull << 30;
	*free = *total - memory_used(t->ctx->device);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

/* Memory of a pool is there at once and goes at once; the stream only orders it. */
DRIVER_SZ(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytes, CUstream stream), dptr, bytes, stream)
{
	return allocate_device(dptr, bytes, MEM_DEVICE);
}

DRIVER_SZ(cuMemFreeAsync, (CUdeviceptr dptr, CUstream stream), dptr, stream)
{
	return release(PTR(dptr));
}

/* --- copies ----------------------------------------------------------------------------------- */

DRIVER_DS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n), dst, src, n)
{
	return op_copy(PTR(dst), PTR(src), n, NULL, false);
}

DRIVER_DS(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t n), dst, src, n)
{
	return op_copy(PTR(dst), src, n, NULL, false);
}

DRIVER_DS(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t n), dst, src, n)
{
	return op_copy(dst, PTR(src), n, NULL, false);
}

DRIVER_DS(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n), dst, src, n)
{
	return op_copy(PTR(dst), PTR(src), n, NULL, false);
}

DRIVER_DS(cuMemcpyPeer,
	  (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t n), dst,
	  dst_ctx, src, src_ctx, n)
{
	return op_copy(PTR(dst), PTR(src), n, NULL, false);
}

DRIVER_SZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream), dst, src, n,
	  stream)
{
	return op_copy(PTR(dst), PTR(src), n, stream, true);
}

DRIVER_SZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t n, CUstream stream), dst,
	  src, n, stream)
{
	return op_copy(PTR(dst), src, n, stream, true);
}

DRIVER_SZ(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t n, CUstream stream), dst, src,
	  n, stream)
{
	return op_copy(dst, PTR(src), n, stream, true);
}

DRIVER_SZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream), dst,
	  src, n, stream)
{
	return op_copy(PTR(dst), PTR(src), n, stream, true);
}

DRIVER_SZ(cuMemcpyPeerAsync,
	  (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t n,
	   CUstream stream),
	  dst, dst_ctx, src, src_ctx, n, stream)
{
	return op_copy(PTR(dst), PTR(src), n, stream, true);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool async)
{
	char *dst = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost : PTR(c->dstDevice);
	const char *src = c->srcMemoryType == CU_MEMORYTYPE_HOST ? c->srcHost : PTR(c->srcDevice);

	if (c->dstMemoryType == CU_MEMORYTYPE_ARRAY || c->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	return op_copy_2d(dst + c->dstY * c->dstPitch + c->dstXInBytes, c->dstPitch,
			  src + c->srcY * c->srcPitch + c->srcXInBytes, c->srcPitch,
			  c->WidthInBytes, c->Height, stream, async);
}

DRIVER_DS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), copy)
{
	return copy_2d(copy, NULL, false);
}

DRIVER_SZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream), copy, stream)
{
	return copy_2d(copy, stream, true);
}

/* --- memsets ---------------------------------------------------------------------------------- */

DRIVER_DS(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t n), dst, value, n)
{
	return op_memset(PTR(dst), value, 1, n, NULL, false);
}

DRIVER_DS(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t n), dst, value, n)
{
	return op_memset(PTR(dst), value, 4, n, NULL, false);
}

DRIVER_SZ(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream), dst,
	  value, n, stream)
{
	return op_memset(PTR(dst), value, 1, n, stream, true);
}

DRIVER_SZ(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t n, CUstream stream), dst,
	  value, n, stream)
{
	return op_memset(PTR(dst), value, 4, n, stream, true);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runtime_device.c - the runtime's initialisation, devices, errors and versions */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

/* --- around every call ------------------------------------------------------------------------ */

static cudaError_t need_context(void)
{
	struct sim_thread *t = sim_self();
	CUcontext ctx;
	CUresult err;

	if (!sim_started()) {
		err = cuInit(0);
		if (err)
			return (cudaError_t)err;
	}
	if (t->ctx)
		return cudaSuccess;
	err = cuDevicePrimaryCtxRetain(&ctx, t->device);
	if (!err)
		err = cuCtxSetCurrent(ctx);
	return (cudaError_t)err;
}

cudaError_t runtime_enter(struct sim_call *c, enum runtime_init init)
{
	cudaError_t err = (cudaError_t)sim_call_enter(c);

	if (err || init == INIT_NONE)
		return err;
	if (init == INIT_CONTEXT)
		return need_context();
	return sim_started() ? cudaSuccess : (cudaError_t)cuInit(0);
}

cudaError_t runtime_exit(struct sim_call *c, cudaError_t err)
{
	/* Those that tell the last error do not make it again. */
	bool tells = c->cbid == CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020 ||
		     c->cbid == CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020;

	if (err && err != cudaErrorNotReady && !tells)
		sim_self()->last_error = (int)err;
	return (cudaError_t)sim_call_exit(c, (int)err);
}

CUstream runtime_stream(cudaStream_t stream)
{
	if (stream)
		return stream;
	return sim_self()->call->per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* --- devices ---------------------------------------------------------------------------------- */

RUNTIME_INIT(cudaGetDeviceCount, v3020, INIT_DRIVER, (int *count), count)
{
	return (cudaError_t)cuDeviceGetCount(count);
}

RUNTIME_INIT(cudaGetDevice, v3020, INIT_DRIVER, (int *device), device)
{
	*device = sim_self()->device;
	return cudaSuccess;
}

RUNTIME_INIT(cudaSetDevice, v3020, INIT_DRIVER, (int device), device)
{
	struct sim_thread *t = sim_self();
	CUcontext ctx;
	CUresult err = cuDevicePrimaryCtxRetain(&ctx, device);

	if (err)
		return (cudaError_t)err;
	t->device = device;
	return (cudaError_t)cuCtxSetCurrent(ctx);
}

RUNTIME(cudaInitDevice, v12000, (int device, unsigned int device_flags, unsigned int flags), device,
	device_flags, flags)
{
	CUcontext ctx;

	return (cudaError_t)cuDevicePrimaryCtxRetain(&ctx, device);
}

RUNTIME_INIT(cudaSetDeviceFlags, v3020, INIT_NONE, (unsigned int flags), flags)
{
	return cudaSuccess;
}

RUNTIME(cudaGetDeviceFlags, v7000, (unsigned int *flags), flags)
{
	*flags = sim_self()->ctx->flags;
	return cudaSuccess;
}

RUNTIME_INIT(cudaGetDeviceProperties, v12000, INIT_DRIVER,
	     (struct cudaDeviceProp * prop, int device), prop, device)
{
	CUresult err;

	memset(prop, 0, sizeof(*prop));
	err = cuDeviceGetName(prop->name, sizeof(prop->name), device);
	if (err)
		return (cudaError_t)err;
	prop->totalGlobalMem = 16ull << 30;
	prop->warpSize = 32;
	prop->maxThreadsPerBlock = SIM_BLOCK_THREADS;
	prop->multiProcessorCount = 132;
	prop->major = 9;
	prop->asyncEngineCount = 2;
	prop->concurrentKernels = 1;
	prop->unifiedAddressing = 1;
	prop->cooperativeLaunch = 1;
	prop->pciBusID = device + 1;
	return cudaSuccess;
}

RUNTIME_INIT(cudaDeviceGetAttribute, v5000, INIT_DRIVER,
	     (int *value, enum cudaDeviceAttr attr, int device), value, attr, device)
{
	return (cudaError_t)cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device);
}

RUNTIME_INIT(cudaDeviceGetPCIBusId, v4010, INIT_DRIVER, (char *id, int len, int device), id, len,
	     device)
{
	if (device < 0 || device >= sim_config()->devices)
		return cudaErrorInvalidDevice;
	snprintf(id, (size_t)len, "0000:%02x:00.0", device + 1);
	return cudaSuccess;
}

RUNTIME(cudaDeviceGetStreamPriorityRange, v5050, (int *least, int *greatest), least, greatest)
{
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

RUNTIME(cudaDeviceCanAccessPeer, v4000, (int *can, int device, int peer), can, device, peer)
{
	return (cudaError_t)cuDeviceCanAccessPeer(can, device, peer);
}

RUNTIME(cudaDeviceEnablePeerAccess, v4000, (int peer, unsigned int flags), peer, flags)
{
	return peer >= 0 && peer < sim_config()->devices ? cudaSuccess : cudaErrorInvalidDevice;
}

RUNTIME(cudaDeviceDisablePeerAccess, v4000, (int peer), peer)
{
	return peer >= 0 && peer < sim_config()->devices ? cudaSuccess : cudaErrorInvalidDevice;
}

RUNTIME_VOID(cudaDeviceSynchronize, v3020, INIT_CONTEXT)
{
	return (cudaError_t)cuCtxSynchronize();
}

RUNTIME_VOID(cudaDeviceReset, v3020, INIT_CONTEXT)
{
	return (cudaError_t)cuCtxSynchronize();
}

/* --- errors and versions ---------------------------------------------------------------------- */

RUNTIME_VOID(cudaGetLastError, v3020, INIT_NONE)
{
	cudaError_t err = (cudaError_t)sim_self()->last_error;

	sim_self()->last_error = cudaSuccess;
	return err;
}

RUNTIME_VOID(cudaPeekAtLastError, v3020, INIT_NONE)
{
	return (cudaError_t)sim_self()->last_error;
}

#define ERRORS(X)                                                                                  \
	X(cudaSuccess, "no error")                                                                 \
	X(cudaErrorInvalidValue, "invalid argument")                                               \
	X(cudaErrorMemoryAllocation, "out of memory")                                              \
	X(cudaErrorInitializationError, "initialization error")                                    \
	X(cudaErrorInsufficientDriver,                                                             \
	  "CUDA driver version is insufficient for CUDA runtime version")                          \
	X(cudaErrorInvalidDeviceFunction, "invalid device function")                               \
	X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                 \
	X(cudaErrorInvalidDevice, "invalid device ordinal")                                        \
	X(cudaErrorDeviceUninitialized, "invalid device context")                                  \
	X(cudaErrorInvalidResourceHandle, "invalid resource handle")                               \
	X(cudaErrorSymbolNotFound, "named symbol not found")                                       \
	X(cudaErrorNotReady, "device not ready")                                                   \
	X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                     \
	X(cudaErrorLaunchFailure, "unspecified launch failure")                                    \
	X(cudaErrorNotSupported, "operation not supported")

const char *cudaGetErrorName(cudaError_t error)
{
#define NAME(e, text)                                                                              \
	case e:                                                                                    \
		return #e;
	switch (error) {
		ERRORS(NAME)
	default:
		return "unrecognized error code";
	}
}

const char *cudaGetErrorString(cudaError_t error)
{
#define TEXT(e, text)                                                                              \
	case e:                                                                                    \
		return text;
	switch (error) {
		ERRORS(TEXT)
	default:
		return "unrecognized error code";
	}
}

RUNTIME_INIT(cudaDriverGetVersion, v3020, INIT_NONE, (int *version), version)
{
	return (cudaError_t)cuDriverGetVersion(version);
}

RUNTIME_INIT(cudaRuntimeGetVersion, v3020, INIT_NONE, (int *version), version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

RUNTIME_VOID(cudaProfilerStart, v4000, INIT_NONE)
{
	return cudaSuccess;
}

RUNTIME_VOID(cudaProfilerStop, v4000, INIT_NONE)
{
	return cudaSuccess;
}

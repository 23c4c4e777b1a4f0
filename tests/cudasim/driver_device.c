/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* driver_device.c - the driver's initialisation, devices, contexts, errors */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

#define DEVICE_MEMORY (16ull << 30)

DRIVER(cuInit, (unsigned int flags), flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_start())
		return CUDA_ERROR_NOT_INITIALIZED;
	return sim_config()->devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

DRIVER(cuDriverGetVersion, (int *version), version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version =
	    (int)(sim_config()->version / 10000 * 1000 + sim_config()->version / 100 % 100 * 10);
	return CUDA_SUCCESS;
}

static CUresult device_check(CUdevice dev)
{
	if (!sim_started())
		return CUDA_ERROR_NOT_INITIALIZED;
	return dev >= 0 && dev < sim_config()->devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

DRIVER(cuDeviceGetCount, (int *count), count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_started())
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = (int)sim_config()->devices;
	return CUDA_SUCCESS;
}

DRIVER(cuDeviceGet, (CUdevice * device, int ordinal), device, ordinal)
{
	CUresult err = device_check(ordinal);

	if (!err)
		*device = ordinal;
	return err;
}

DRIVER(cuDeviceGetName, (char *name, int len, CUdevice dev), name, len, dev)
{
	CUresult err = device_check(dev);

	if (!err)
		snprintf(name, (size_t)len, "cudasim %d", dev);
	return err;
}

DRIVER(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice dev), uuid, dev)
{
	CUresult err = device_check(dev);

	if (!err) {
		memset(uuid, 0, sizeof(*uuid));
		memcpy(uuid->bytes, "cudasim", 7);
		uuid->bytes[15] = (char)dev;
	}
	return err;
}

DRIVER(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice dev), bytes, dev)
{
	CUresult err = device_check(dev);

	if (!err)
		*bytes = DEVICE_MEMORY;
	return err;
}

DRIVER(cuDeviceGetAttribute, (int *value, CUdevice_attribute attrib, CUdevice dev), value, attrib,
       dev)
{
	CUresult err = device_check(dev);

	if (err)
		return err;
	switch (attrib) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		*value = 32;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = 132;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = SIM_BLOCK_THREADS;
		break;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		*value = 1980000;
		break;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		*value = 2;
		break;
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
		*value = 1;
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = dev + 1;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

DRIVER(cuDeviceCanAccessPeer, (int *can, CUdevice dev, CUdevice peer), can, dev, peer)
{
	if (device_check(dev) || device_check(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = dev != peer;
	return CUDA_SUCCESS;
}

/* --- contexts --------------------------------------------------------------------------------- */

DRIVER(cuDevicePrimaryCtxRetain, (CUcontext * ctx, CUdevice dev), ctx, dev)
{
	CUresult err = device_check(dev);

	if (err)
		return err;
	pthread_mutex_lock(&sim_lock);
	*ctx = context_primary(dev);
	pthread_mutex_unlock(&sim_lock);
	return *ctx ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), dev)
{
	return device_check(dev);
}

DRIVER(cuCtxCreate_v4,
       (CUcontext * ctx, CUctxCreateParams *create, unsigned int flags, CUdevice dev), ctx, create,
       flags, dev)
{
	CUresult err = device_check(dev);

	if (err)
		return err;
	pthread_mutex_lock(&sim_lock);
	*ctx = context_new(dev);
	if (*ctx) {
		(*ctx)->flags = flags;
		sim_self()->ctx = *ctx;
	}
	pthread_mutex_unlock(&sim_lock);
	return *ctx ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Its streams may still be in use by the timeline of others, so the memory stays. */
DRIVER(cuCtxDestroy_v2, (CUcontext ctx), ctx)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sim_self()->ctx == ctx)
		sim_self()->ctx = NULL;
	return CUDA_SUCCESS;
}

DRIVER(cuCtxSetCurrent, (CUcontext ctx), ctx)
{
	sim_self()->ctx = ctx;
	return CUDA_SUCCESS;
}

DRIVER(cuCtxGetCurrent, (CUcontext * ctx), ctx)
{
	*ctx = sim_self()->ctx;
	return CUDA_SUCCESS;
}

DRIVER(cuCtxGetDevice, (CUdevice * dev), dev)
{
	if (!sim_self()->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = sim_self()->ctx->device;
	return CUDA_SUCCESS;
}

DRIVER(cuCtxGetId, (CUcontext ctx, unsigned long long *id), ctx, id)
{
	if (!ctx)
		ctx = sim_self()->ctx;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

DRIVER_VOID(cuCtxSynchronize)
{
	struct CUctx_st *ctx = sim_self()->ctx;
	uint64_t end;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	end = context_end(ctx);
	pthread_mutex_unlock(&sim_lock);
	return op_sync(4, ctx, NULL, NULL, end);
}

/* --- errors, entry points --------------------------------------------------------------------- */

static const struct {
	CUresult err;
	const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

DRIVER(cuGetErrorName, (CUresult error, const char **str), error, str)
{
	*str = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		if (errors[i].err == error)
			*str = errors[i].name;
	}
	return *str ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER(cuGetErrorString, (CUresult error, const char **str), error, str)
{
	*str = NULL;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		if (errors[i].err == error)
			*str = errors[i].text;
	}
	return *str ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The newest form of a function first, as programs of today ask for it. */
DRIVER(cuGetProcAddress_v2,
       (const char *symbol, void **fn, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status),
       symbol, fn, version, flags, status)
{
	static const char *const endings[] = {"_v4", "_v3", "_v2", ""};
	bool twin = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	char name[256];

	*fn = NULL;
	for (size_t i = 0; i < 4 && !*fn; i++) {
		snprintf(name, sizeof(name), "%s%s%s", symbol, endings[i], twin ? "_ptsz" : "");
		*fn = dlsym(RTLD_DEFAULT, name);
	}
	for (size_t i = 0; i < 4 && !*fn; i++) {
		snprintf(name, sizeof(name), "%s%s%s", symbol, endings[i], twin ? "_ptds" : "");
		*fn = dlsym(RTLD_DEFAULT, name);
	}
	for (size_t i = 0; i < 4 && !*fn; i++) {
		snprintf(name, sizeof(name), "%s%s", symbol, endings[i]);
		*fn = dlsym(RTLD_DEFAULT, name);
	}
	if (status)
		*status = *fn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *fn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

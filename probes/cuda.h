/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CUDA functions that are traced: the one table of what each does and where its arguments lie.
 *
 *	CUDA_CALLS(X)	X(api, name, how, ...)	api is RUNTIME or DRIVER, name is the symbol without
 *						its twin's suffix, the rest initialises a struct
 *						qbpf_cuda_site (qbpf/abi.h)
 *	CUDA_ERRORS(X)	X(code, runtime's name, driver's name)
 *
 * Every name stands for its twins too: NAME_ptsz and NAME_ptds (stream 0 is the calling thread's own),
 * NAME_v2 and NAME_v3. `how` is V2 where a first version without suffix exists whose sizes have 32
 * bits and whose structures are others (before CUDA 3.2), WRAP for a function that may do no more than
 * jump to the one of the same name without underscores, else PLAIN.
 *
 * Slots are those of the System V calling convention (struct qbpf_cuda_arg): a dim3 takes two, and
 * what is passed in memory (cudaPitchedPtr, cudaExtent) lies on the stack from slot 7 on. Offsets in
 * structures are those of CUDA's headers; tests/e2e/t_cuda_uprobe.py lets the compiler check them.
 * What is polled (cudaStreamQuery, cudaEventQuery) is left out: a probe would slow each round.
 */
#ifndef QBPF_PROBES_CUDA_H
#define QBPF_PROBES_CUDA_H

#include "qbpf/abi.h"

#define CUDA_SLOT(n)                                                                               \
	{                                                                                          \
		.slot = (n)                                                                        \
	}
#define CUDA_AT(n, offset)                                                                         \
	{                                                                                          \
		.slot = (n), .deref = 1, .off = (offset)                                           \
	}

/* One line a function. */
/* clang-format off */
#define CUDA_LAUNCHES(X)                                                                           \
	X(RUNTIME, cudaLaunchKernel, PLAIN, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(1), .grid = QBPF_CUDA_GRID_DIM3, .stream = CUDA_SLOT(8)) \
	X(RUNTIME, __cudaLaunchKernel, WRAP, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(1), .grid = QBPF_CUDA_GRID_DIM3, .stream = CUDA_SLOT(8)) \
	X(RUNTIME, cudaLaunchKernelExC, PLAIN, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(2), .grid = QBPF_CUDA_GRID_CONFIG, .stream = CUDA_AT(1, 32)) \
	X(RUNTIME, cudaLaunchCooperativeKernel, PLAIN, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(1), .grid = QBPF_CUDA_GRID_DIM3, .stream = CUDA_SLOT(8)) \
	X(RUNTIME, cudaGraphLaunch, PLAIN, .class = QBPF_CUDA_GRAPH, .stream = CUDA_SLOT(2)) \
	X(DRIVER, cuLaunchKernel, PLAIN, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(1), .grid = QBPF_CUDA_GRID_SIX, .stream = CUDA_SLOT(9)) \
	X(DRIVER, cuLaunchKernelEx, PLAIN, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(2), .grid = QBPF_CUDA_GRID_CONFIG, .stream = CUDA_AT(1, 32)) \
	X(DRIVER, cuLaunchCooperativeKernel, PLAIN, .class = QBPF_CUDA_LAUNCH, .kernel = CUDA_SLOT(1), .grid = QBPF_CUDA_GRID_SIX, .stream = CUDA_SLOT(9)) \
	X(DRIVER, cuGraphLaunch, PLAIN, .class = QBPF_CUDA_GRAPH, .stream = CUDA_SLOT(2))

#define CUDA_LOOKUPS(X)                                                                            \
	X(RUNTIME, __cudaGetKernel, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .kernel = CUDA_SLOT(2)) \
	X(RUNTIME, cudaGetKernel, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .kernel = CUDA_SLOT(2)) \
	X(RUNTIME, cudaGetFuncBySymbol, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .kernel = CUDA_SLOT(2)) \
	X(RUNTIME, cudaLibraryGetKernel, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .name = CUDA_SLOT(3)) \
	X(DRIVER, cuModuleGetFunction, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .name = CUDA_SLOT(3)) \
	X(DRIVER, cuLibraryGetKernel, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .name = CUDA_SLOT(3)) \
	X(DRIVER, cuKernelGetFunction, PLAIN, .class = QBPF_CUDA_LOOKUP, .out = CUDA_SLOT(1), .kernel = CUDA_SLOT(2), .flags = QBPF_CUDA_KERNEL_ALIAS)

#define CUDA_RUNTIME_COPY(X, name, bytes_, kind_, ...)                                             \
	X(RUNTIME, name, PLAIN, .class = QBPF_CUDA_COPY, .bytes = {bytes_}, .kind = CUDA_SLOT(kind_), __VA_ARGS__)
#define CUDA_PRODUCT(a, b) CUDA_SLOT(a), CUDA_SLOT(b)

#define CUDA_PARMS_3D                                                                              \
	.class = QBPF_CUDA_COPY, .bytes = {CUDA_AT(1, 128), CUDA_AT(1, 136), CUDA_AT(1, 144)},     \
	.array = {CUDA_AT(1, 0), CUDA_AT(1, 64)}, .kind = CUDA_AT(1, 152)
#define CUDA_PARMS_3D_PEER                                                                         \
	.class = QBPF_CUDA_COPY, .bytes = {CUDA_AT(1, 144), CUDA_AT(1, 152), CUDA_AT(1, 160)},     \
	.array = {CUDA_AT(1, 0), CUDA_AT(1, 72)}, .dir = QBPF_CUDA_P2P

#define CUDA_RUNTIME_COPIES(X)                                                                     \
	CUDA_RUNTIME_COPY(X, cudaMemcpy, CUDA_SLOT(3), 4) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyAsync, CUDA_SLOT(3), 4, .stream = CUDA_SLOT(5)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2D, CUDA_PRODUCT(5, 6), 7) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2DAsync, CUDA_PRODUCT(5, 6), 7, .stream = CUDA_SLOT(8)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyToSymbol, CUDA_SLOT(3), 5) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyToSymbolAsync, CUDA_SLOT(3), 5, .stream = CUDA_SLOT(6)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyFromSymbol, CUDA_SLOT(3), 5) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyFromSymbolAsync, CUDA_SLOT(3), 5, .stream = CUDA_SLOT(6)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyToArray, CUDA_SLOT(5), 6) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyToArrayAsync, CUDA_SLOT(5), 6, .stream = CUDA_SLOT(7)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyFromArray, CUDA_SLOT(5), 6) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyFromArrayAsync, CUDA_SLOT(5), 6, .stream = CUDA_SLOT(7)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpyArrayToArray, CUDA_SLOT(7), 8) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2DToArray, CUDA_PRODUCT(6, 7), 8) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2DToArrayAsync, CUDA_PRODUCT(6, 7), 8, .stream = CUDA_SLOT(9)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2DFromArray, CUDA_PRODUCT(6, 7), 8) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2DFromArrayAsync, CUDA_PRODUCT(6, 7), 8, .stream = CUDA_SLOT(9)) \
	CUDA_RUNTIME_COPY(X, cudaMemcpy2DArrayToArray, CUDA_PRODUCT(7, 8), 9) \
	X(RUNTIME, cudaMemcpy3D, PLAIN, CUDA_PARMS_3D) \
	X(RUNTIME, cudaMemcpy3DAsync, PLAIN, CUDA_PARMS_3D, .stream = CUDA_SLOT(2)) \
	X(RUNTIME, cudaMemcpyPeer, PLAIN, .class = QBPF_CUDA_COPY, .bytes = {CUDA_SLOT(5)}, .dir = QBPF_CUDA_P2P) \
	X(RUNTIME, cudaMemcpyPeerAsync, PLAIN, .class = QBPF_CUDA_COPY, .bytes = {CUDA_SLOT(5)}, .dir = QBPF_CUDA_P2P, .stream = CUDA_SLOT(6)) \
	X(RUNTIME, cudaMemcpy3DPeer, PLAIN, CUDA_PARMS_3D_PEER) \
	X(RUNTIME, cudaMemcpy3DPeerAsync, PLAIN, CUDA_PARMS_3D_PEER, .stream = CUDA_SLOT(2)) \
	X(RUNTIME, cudaMemcpyBatchAsync, PLAIN, .class = QBPF_CUDA_COPY, .dir = QBPF_CUDA_DIR_UNKNOWN, .stream = CUDA_SLOT(8)) \
	X(RUNTIME, cudaMemcpy3DBatchAsync, PLAIN, .class = QBPF_CUDA_COPY, .dir = QBPF_CUDA_DIR_UNKNOWN, .stream = CUDA_SLOT(4))

#define CUDA_SET(X, api, name, how, bytes_, scale_, ...)                                           \
	X(api, name, how, .class = QBPF_CUDA_MEMSET, .dir = QBPF_CUDA_NO_DIR, .bytes = {bytes_}, .scale = (scale_), __VA_ARGS__)
#define CUDA_BOX(a, b, c) CUDA_SLOT(a), CUDA_SLOT(b), CUDA_SLOT(c)

#define CUDA_MEMSETS(X)                                                                            \
	CUDA_SET(X, RUNTIME, cudaMemset, PLAIN, CUDA_SLOT(3), 1) \
	CUDA_SET(X, RUNTIME, cudaMemsetAsync, PLAIN, CUDA_SLOT(3), 1, .stream = CUDA_SLOT(4)) \
	CUDA_SET(X, RUNTIME, cudaMemset2D, PLAIN, CUDA_PRODUCT(4, 5), 1) \
	CUDA_SET(X, RUNTIME, cudaMemset2DAsync, PLAIN, CUDA_PRODUCT(4, 5), 1, .stream = CUDA_SLOT(6)) \
	CUDA_SET(X, RUNTIME, cudaMemset3D, PLAIN, CUDA_BOX(11, 12, 13), 1) \
	CUDA_SET(X, RUNTIME, cudaMemset3DAsync, PLAIN, CUDA_BOX(11, 12, 13), 1, .stream = CUDA_SLOT(2)) \
	CUDA_SET(X, DRIVER, cuMemsetD8, V2, CUDA_SLOT(3), 1) \
	CUDA_SET(X, DRIVER, cuMemsetD16, V2, CUDA_SLOT(3), 2) \
	CUDA_SET(X, DRIVER, cuMemsetD32, V2, CUDA_SLOT(3), 4) \
	CUDA_SET(X, DRIVER, cuMemsetD2D8, V2, CUDA_PRODUCT(4, 5), 1) \
	CUDA_SET(X, DRIVER, cuMemsetD2D16, V2, CUDA_PRODUCT(4, 5), 2) \
	CUDA_SET(X, DRIVER, cuMemsetD2D32, V2, CUDA_PRODUCT(4, 5), 4) \
	CUDA_SET(X, DRIVER, cuMemsetD8Async, PLAIN, CUDA_SLOT(3), 1, .stream = CUDA_SLOT(4)) \
	CUDA_SET(X, DRIVER, cuMemsetD16Async, PLAIN, CUDA_SLOT(3), 2, .stream = CUDA_SLOT(4)) \
	CUDA_SET(X, DRIVER, cuMemsetD32Async, PLAIN, CUDA_SLOT(3), 4, .stream = CUDA_SLOT(4)) \
	CUDA_SET(X, DRIVER, cuMemsetD2D8Async, PLAIN, CUDA_PRODUCT(4, 5), 1, .stream = CUDA_SLOT(6)) \
	CUDA_SET(X, DRIVER, cuMemsetD2D16Async, PLAIN, CUDA_PRODUCT(4, 5), 2, .stream = CUDA_SLOT(6)) \
	CUDA_SET(X, DRIVER, cuMemsetD2D32Async, PLAIN, CUDA_PRODUCT(4, 5), 4, .stream = CUDA_SLOT(6))

#define CUDA_DRIVER_COPY(X, name, how, bytes_, dir_, ...)                                          \
	X(DRIVER, name, how, .class = QBPF_CUDA_COPY, .bytes = {CUDA_SLOT(bytes_)}, .dir = QBPF_CUDA_##dir_, __VA_ARGS__)
#define CUDA_STRUCT_2D                                                                              \
	.class = QBPF_CUDA_COPY, .bytes = {CUDA_AT(1, 112), CUDA_AT(1, 120)},                      \
	.from = CUDA_AT(1, 16), .to = CUDA_AT(1, 72), .flags = QBPF_CUDA_MEMORY_TYPES
#define CUDA_STRUCT_3D                                                                              \
	.class = QBPF_CUDA_COPY, .bytes = {CUDA_AT(1, 176), CUDA_AT(1, 184), CUDA_AT(1, 192)},     \
	.from = CUDA_AT(1, 32), .to = CUDA_AT(1, 120), .flags = QBPF_CUDA_MEMORY_TYPES

#define CUDA_DRIVER_COPIES(X)                                                                      \
	CUDA_DRIVER_COPY(X, cuMemcpy, PLAIN, 3, DEFAULT) \
	CUDA_DRIVER_COPY(X, cuMemcpyAsync, PLAIN, 3, DEFAULT, .stream = CUDA_SLOT(4)) \
	CUDA_DRIVER_COPY(X, cuMemcpyPeer, PLAIN, 5, P2P) \
	CUDA_DRIVER_COPY(X, cuMemcpyPeerAsync, PLAIN, 5, P2P, .stream = CUDA_SLOT(6)) \
	CUDA_DRIVER_COPY(X, cuMemcpyHtoD, V2, 3, H2D) \
	CUDA_DRIVER_COPY(X, cuMemcpyHtoDAsync, V2, 3, H2D, .stream = CUDA_SLOT(4)) \
	CUDA_DRIVER_COPY(X, cuMemcpyDtoH, V2, 3, D2H) \
	CUDA_DRIVER_COPY(X, cuMemcpyDtoHAsync, V2, 3, D2H, .stream = CUDA_SLOT(4)) \
	CUDA_DRIVER_COPY(X, cuMemcpyDtoD, V2, 3, D2D) \
	CUDA_DRIVER_COPY(X, cuMemcpyDtoDAsync, V2, 3, D2D, .stream = CUDA_SLOT(4)) \
	X(DRIVER, cuMemcpy2D, V2, CUDA_STRUCT_2D) \
	X(DRIVER, cuMemcpy2DUnaligned, V2, CUDA_STRUCT_2D) \
	X(DRIVER, cuMemcpy2DAsync, V2, CUDA_STRUCT_2D, .stream = CUDA_SLOT(2)) \
	X(DRIVER, cuMemcpy3D, V2, CUDA_STRUCT_3D) \
	X(DRIVER, cuMemcpy3DAsync, V2, CUDA_STRUCT_3D, .stream = CUDA_SLOT(2)) \
	X(DRIVER, cuMemcpyBatchAsync, PLAIN, .class = QBPF_CUDA_COPY, .dir = QBPF_CUDA_DIR_UNKNOWN, .stream = CUDA_SLOT(8))

#define CUDA_GET(X, api, name, how, bytes_, ...)                                                   \
	X(api, name, how, .class = QBPF_CUDA_ALLOC, .dir = QBPF_CUDA_NO_DIR, .bytes = {bytes_}, __VA_ARGS__)
#define CUDA_HOST .flags = QBPF_CUDA_NO_STREAM

#define CUDA_ALLOCS(X)                                                                             \
	CUDA_GET(X, RUNTIME, cudaMalloc, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaMallocHost, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaHostAlloc, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaHostRegister, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaMallocManaged, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaMallocPitch, PLAIN, CUDA_PRODUCT(3, 4), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaMalloc3D, PLAIN, CUDA_BOX(7, 8, 9), CUDA_HOST) \
	CUDA_GET(X, RUNTIME, cudaMallocAsync, PLAIN, CUDA_SLOT(2), .stream = CUDA_SLOT(3)) \
	CUDA_GET(X, RUNTIME, cudaMallocFromPoolAsync, PLAIN, CUDA_SLOT(2), .stream = CUDA_SLOT(4)) \
	CUDA_GET(X, DRIVER, cuMemAlloc, V2, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, DRIVER, cuMemAllocHost, V2, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, DRIVER, cuMemHostAlloc, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, DRIVER, cuMemHostRegister, V2, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, DRIVER, cuMemAllocManaged, PLAIN, CUDA_SLOT(2), CUDA_HOST) \
	CUDA_GET(X, DRIVER, cuMemAllocPitch, V2, CUDA_PRODUCT(3, 4), CUDA_HOST) \
	CUDA_GET(X, DRIVER, cuMemAllocAsync, PLAIN, CUDA_SLOT(2), .stream = CUDA_SLOT(3)) \
	CUDA_GET(X, DRIVER, cuMemAllocFromPoolAsync, PLAIN, CUDA_SLOT(2), .stream = CUDA_SLOT(4))

#define CUDA_OTHER(X, api, name, class_, ...) X(api, name, PLAIN, .class = QBPF_CUDA_##class_, .dir = QBPF_CUDA_NO_DIR)

#define CUDA_OTHERS(X)                                                                             \
	CUDA_OTHER(X, RUNTIME, cudaFree, FREE) \
	CUDA_OTHER(X, RUNTIME, cudaFreeHost, FREE) \
	CUDA_OTHER(X, RUNTIME, cudaFreeAsync, FREE) \
	CUDA_OTHER(X, RUNTIME, cudaHostUnregister, FREE) \
	CUDA_OTHER(X, DRIVER, cuMemFree, FREE) \
	CUDA_OTHER(X, DRIVER, cuMemFreeHost, FREE) \
	CUDA_OTHER(X, DRIVER, cuMemFreeAsync, FREE) \
	CUDA_OTHER(X, DRIVER, cuMemHostUnregister, FREE) \
	CUDA_OTHER(X, RUNTIME, cudaDeviceSynchronize, SYNC) \
	CUDA_OTHER(X, RUNTIME, cudaStreamSynchronize, SYNC) \
	CUDA_OTHER(X, RUNTIME, cudaEventSynchronize, SYNC) \
	CUDA_OTHER(X, DRIVER, cuCtxSynchronize, SYNC) \
	CUDA_OTHER(X, DRIVER, cuStreamSynchronize, SYNC) \
	CUDA_OTHER(X, DRIVER, cuEventSynchronize, SYNC) \
	CUDA_OTHER(X, RUNTIME, cudaStreamWaitEvent, ORDER) \
	CUDA_OTHER(X, RUNTIME, cudaEventRecord, ORDER) \
	CUDA_OTHER(X, RUNTIME, cudaEventRecordWithFlags, ORDER) \
	CUDA_OTHER(X, DRIVER, cuStreamWaitEvent, ORDER) \
	CUDA_OTHER(X, DRIVER, cuEventRecord, ORDER) \
	CUDA_OTHER(X, DRIVER, cuEventRecordWithFlags, ORDER)

#define CUDA_CALLS(X)                                                                              \
	CUDA_LAUNCHES(X) CUDA_LOOKUPS(X) CUDA_RUNTIME_COPIES(X) CUDA_DRIVER_COPIES(X) CUDA_MEMSETS(X) \
	CUDA_ALLOCS(X) CUDA_OTHERS(X)

#define CUDA_ERRORS(X)                                                                             \
	X(1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE") \
	X(2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY") \
	X(3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED") \
	X(4, "cudaErrorCudartUnloading", "CUDA_ERROR_DEINITIALIZED") \
	X(9, "cudaErrorInvalidConfiguration", NULL) \
	X(12, "cudaErrorInvalidPitchValue", NULL) \
	X(13, "cudaErrorInvalidSymbol", NULL) \
	X(21, "cudaErrorInvalidMemcpyDirection", NULL) \
	X(34, "cudaErrorStubLibrary", "CUDA_ERROR_STUB_LIBRARY") \
	X(35, "cudaErrorInsufficientDriver", NULL) \
	X(36, "cudaErrorCallRequiresNewerDriver", NULL) \
	X(46, "cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE") \
	X(98, "cudaErrorInvalidDeviceFunction", NULL) \
	X(100, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE") \
	X(101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE") \
	X(200, "cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE") \
	X(201, "cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT") \
	X(209, "cudaErrorNoKernelImageForDevice", "CUDA_ERROR_NO_BINARY_FOR_GPU") \
	X(214, "cudaErrorECCUncorrectable", "CUDA_ERROR_ECC_UNCORRECTABLE") \
	X(218, "cudaErrorInvalidPtx", "CUDA_ERROR_INVALID_PTX") \
	X(222, "cudaErrorUnsupportedPtxVersion", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION") \
	X(400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE") \
	X(401, "cudaErrorIllegalState", "CUDA_ERROR_ILLEGAL_STATE") \
	X(500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND") \
	X(600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY") \
	X(700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS") \
	X(701, "cudaErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES") \
	X(702, "cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT") \
	X(709, "cudaErrorContextIsDestroyed", "CUDA_ERROR_CONTEXT_IS_DESTROYED") \
	X(710, "cudaErrorAssert", "CUDA_ERROR_ASSERT") \
	X(712, "cudaErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED") \
	X(713, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED") \
	X(716, "cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS") \
	X(719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED") \
	X(720, "cudaErrorCooperativeLaunchTooLarge", "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE") \
	X(800, "cudaErrorNotPermitted", "CUDA_ERROR_NOT_PERMITTED") \
	X(801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED") \
	X(803, "cudaErrorSystemDriverMismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH") \
	X(804, "cudaErrorCompatNotSupportedOnDevice", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE") \
	X(900, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED") \
	X(901, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED") \
	X(906, "cudaErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT") \
	X(908, "cudaErrorStreamCaptureWrongThread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD") \
	X(999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN")
/* clang-format on */

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime_launch.c - the runtime's kernels and launches, and what nvcc's code calls at start-up
 */
#include <stdlib.h>

#include "runtime.h"

cudaError_t runtime_kernel(const void *func, CUfunction *f)
{
	*f = sim_kernel_of(func);
	return *f ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

/* --- launches --------------------------------------------------------------------------------- */

/* What the driver calls an invalid value the runtime calls an invalid configuration. */
static cudaError_t launched(CUresult err)
{
	return err == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : (cudaError_t)err;
}

RUNTIME_SZ(cudaLaunchKernel, v7000, v7000,
	   (const void *func, dim3 grid, dim3 block, void **args, size_t shared,
	    cudaStream_t stream),
	   func, grid, block, args, shared, stream)
{
	CUfunction f;
	cudaError_t err = runtime_kernel(func, &f);

	if (err)
		return err;
	return launched(cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
				       (unsigned int)shared, runtime_stream(stream), args, NULL));
}

RUNTIME_SZ(cudaLaunchCooperativeKernel, v9000, v9000,
	   (const void *func, dim3 grid, dim3 block, void **args, size_t shared,
	    cudaStream_t stream),
	   func, grid, block, args, shared, stream)
{
	CUfunction f;
	cudaError_t err = runtime_kernel(func, &f);

	if (err)
		return err;
	return launched(cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y,
						  block.z, (unsigned int)shared,
						  runtime_stream(stream), args));
}

RUNTIME_SZ(cudaLaunchKernelExC, v11060, v11060,
	   (const cudaLaunchConfig_t *config, const void *func, void **args), config, func, args)
{
	CUlaunchConfig c;
	CUfunction f;
	cudaError_t err = runtime_kernel(func, &f);

	if (err)
		return err;
	c = (CUlaunchConfig){
	    .gridDimX = config->gridDim.x,
	    .gridDimY = config->gridDim.y,
	    .gridDimZ = config->gridDim.z,
	    .blockDimX = config->blockDim.x,
	    .blockDimY = config->blockDim.y,
	    .blockDimZ = config->blockDim.z,
	    .sharedMemBytes = (unsigned int)config->dynamicSmemBytes,
	    .hStream = runtime_stream(config->stream),
	    .attrs = (CUlaunchAttribute *)config->attrs,
	    .numAttrs = config->numAttrs,
	};
	return launched(cuLaunchKernelEx(&c, f, args, NULL));
}

/* nvcc's <<<>>> calls these; they go on to cudaLaunchKernel. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream);

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel((const void *)kernel, grid, block, args, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel_ptsz((const void *)kernel, grid, block, args, shared, stream);
}

/* --- kernels ---------------------------------------------------------------------------------- */

RUNTIME(cudaFuncGetName, v12030, (const char **name, const void *func), name, func)
{
	CUfunction f;
	cudaError_t err = runtime_kernel(func, &f);

	return err ? err : (cudaError_t)cuFuncGetName(name, f);
}

RUNTIME(cudaGetFuncBySymbol, v11000, (cudaFunction_t * f, const void *symbol), f, symbol)
{
	return runtime_kernel(symbol, f);
}

RUNTIME(cudaGetKernel, v12000, (cudaKernel_t * kernel, const void *func), kernel, func)
{
	return runtime_kernel(func, (CUfunction *)kernel);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	return runtime_kernel(func, (CUfunction *)kernel);
}

RUNTIME(cudaFuncGetAttributes, v3020, (struct cudaFuncAttributes * attr, const void *func), attr,
	func)
{
	CUfunction f;

	*attr = (struct cudaFuncAttributes){.maxThreadsPerBlock = SIM_BLOCK_THREADS, .numRegs = 32};
	return runtime_kernel(func, &f);
}

RUNTIME(cudaFuncSetAttribute, v9000, (const void *func, enum cudaFuncAttribute attr, int value),
	func, attr, value)
{
	CUfunction f;

	return runtime_kernel(func, &f);
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor, v6050,
	(int *blocks, const void *func, int size, size_t shared), blocks, func, size, shared)
{
	*blocks = size > 0 ? 2048 / size : 0;
	return cudaSuccess;
}

RUNTIME(cudaLibraryLoadData, v12060,
	(cudaLibrary_t * library, const void *code, enum cudaJitOption *jit, void **jit_values,
	 unsigned int n_jit, enum cudaLibraryOption *options, void **values, unsigned int n),
	library, code, jit, jit_values, n_jit, options, values, n)
{
	return (cudaError_t)cuLibraryLoadData((CUlibrary *)library, code, NULL, NULL, 0, NULL, NULL,
					      0);
}

RUNTIME(cudaLibraryUnload, v12060, (cudaLibrary_t library), library)
{
	return (cudaError_t)cuLibraryUnload((CUlibrary)library);
}

RUNTIME(cudaLibraryGetKernel, v12060,
	(cudaKernel_t * kernel, cudaLibrary_t library, const char *name), kernel, library, name)
{
	return (cudaError_t)cuLibraryGetKernel((CUkernel *)kernel, (CUlibrary)library, name);
}

RUNTIME(cudaLibraryGetKernelCount, v12060, (unsigned int *n, cudaLibrary_t library), n, library)
{
	return (cudaError_t)cuLibraryGetKernelCount(n, (CUlibrary)library);
}

/* --- what the compiler's code calls ----------------------------------------------------------- */

void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

void **__cudaRegisterFatBinary(void *image)
{
	void **handle = malloc(sizeof(*handle));

	if (handle)
		*handle = image;
	return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	free(handle);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
	(void)handle, (void)device, (void)limit, (void)tid, (void)bid, (void)block, (void)grid,
	    (void)warp;
	sim_kernel_register(name, host);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global)
{
	(void)handle, (void)host, (void)device, (void)name, (void)ext, (void)size, (void)constant;
	(void)global;
}

char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

static __thread struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} pushed;

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream)
{
	pushed.grid = grid;
	pushed.block = block;
	pushed.shared = shared;
	pushed.stream = stream;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	*grid = pushed.grid;
	*block = pushed.block;
	*shared = pushed.shared;
	*(cudaStream_t *)stream = pushed.stream;
	return cudaSuccess;
}

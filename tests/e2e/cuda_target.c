// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program that calls CUDA so often that the calls can be counted (built by t_cuda_uprobe.py).
 *
 *	cuda_target runtime N LIBCUDART...	rounds of calls in each library in its turn
 *	cuda_target real N LIBCUDART		the same of NVIDIA's, whose calls may fail
 *	cuda_target driver N LIBCUDA
 *	cuda_target linked N			libcudart as it was linked (-DLINKED)
 *
 * Says "ready" and waits for a line, opens a library, says "opened" and waits for another, for each library
 * (once where there is none to open), and in the end says "count NAME N" for what it has done.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/cuda.h"

/* What probes/cuda.h says of structures, against the toolkit's headers. */
#define SAME(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #field)
SAME(struct cudaMemcpy3DParms, srcArray, 0);
SAME(struct cudaMemcpy3DParms, dstArray, 64);
SAME(struct cudaMemcpy3DParms, extent, 128);
SAME(struct cudaMemcpy3DParms, kind, 152);
SAME(struct cudaMemcpy3DPeerParms, srcArray, 0);
SAME(struct cudaMemcpy3DPeerParms, dstArray, 72);
SAME(struct cudaMemcpy3DPeerParms, extent, 144);
SAME(CUDA_MEMCPY2D, srcMemoryType, 16);
SAME(CUDA_MEMCPY2D, dstMemoryType, 72);
SAME(CUDA_MEMCPY2D, WidthInBytes, 112);
SAME(CUDA_MEMCPY2D, Height, 120);
SAME(CUDA_MEMCPY3D, srcMemoryType, 32);
SAME(CUDA_MEMCPY3D, dstMemoryType, 120);
SAME(CUDA_MEMCPY3D, WidthInBytes, 176);
SAME(CUDA_MEMCPY3D, Height, 184);
SAME(CUDA_MEMCPY3D, Depth, 192);
SAME(cudaLaunchConfig_t, gridDim, 0);
SAME(cudaLaunchConfig_t, blockDim, 12);
SAME(cudaLaunchConfig_t, stream, 32);
SAME(CUlaunchConfig, gridDimX, 0);
SAME(CUlaunchConfig, blockDimZ, 20);
SAME(CUlaunchConfig, hStream, 32);

/* The table's codes are the toolkit's. */
#define ERROR_CHECK(code, runtime, driver) {code, runtime},
static const struct {
	unsigned int code;
	const char *name;
} errors[] = {CUDA_ERRORS(ERROR_CHECK)};

/* Host stubs of kernels. */
void kernel_alpha(float *p, int n);
void kernel_beta(void);
void kernel_alpha(float *p, int n)
{
	(void)p;
	(void)n;
}
void kernel_beta(void)
{
}

static uint64_t failed, calls;

static void did(int err)
{
	calls++;
	failed += err != 0;
}

static void *open_library(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		fprintf(stderr, "cuda_target: %s\n", dlerror());
		exit(1);
	}
	return lib;
}

static void *symbol(void *lib, const char *name)
{
	void *p = lib ? dlsym(lib, name) : NULL;

	if (!p) {
		fprintf(stderr, "cuda_target: no %s\n", name);
		exit(1);
	}
	return p;
}

/* The symbol is the one that the headers map the name to, cuMemAlloc to cuMemAlloc_v2. */
#define TEXT_(name)    #name
#define TEXT(name)     TEXT_(name)
#define GET(lib, name) __typeof__(name) *p_##name = (__typeof__(name) *)symbol(lib, TEXT(name))
#define TWIN(lib, name, twin)                                                                      \
	__typeof__(name) *p_##name##twin = (__typeof__(name) *)symbol(lib, #name #twin)

static unsigned char host[4096];

static void check_errors(void *lib)
{
	GET(lib, cudaGetErrorName);

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(p_cudaGetErrorName(errors[i].code), errors[i].name)) {
			fprintf(stderr, "cuda_target: %u is not %s\n", errors[i].code,
				errors[i].name);
			exit(1);
		}
}

/* Each library: N rounds. */
static void runtime(void *lib, int n, bool real)
{
	void *dev = NULL, *args[2] = {&dev, &n};
	struct cudaMemcpy3DParms box = {.kind = cudaMemcpyHostToDevice, .extent = {4, 5, 6}};
	cudaLaunchConfig_t config = {.gridDim = {5, 6, 7}, .blockDim = {8, 9, 1}};
	GET(lib, cudaMalloc);
	GET(lib, cudaFree);
	GET(lib, cudaMemcpy);
	GET(lib, cudaMemcpyAsync);
	TWIN(lib, cudaMemcpyAsync, _ptsz);
	GET(lib, cudaMemcpy2D);
	GET(lib, cudaMemsetAsync);
	GET(lib, cudaLaunchKernel);
	TWIN(lib, cudaLaunchKernel, _ptsz);
	GET(lib, cudaLaunchKernelExC);
	GET(lib, cudaStreamSynchronize);
	GET(lib, cudaDeviceSynchronize);

	if (real)
		check_errors(lib);
	did(p_cudaMalloc(&dev, 1 << 20));
	for (int i = 0; i < n; i++) {
		did(p_cudaMemcpy(dev, host, 1 + i % 100, cudaMemcpyHostToDevice));
		did(p_cudaMemcpyAsync(dev, host, 1000, cudaMemcpyHostToDevice, NULL));
		did(p_cudaMemcpyAsync_ptsz(host, dev, 7, cudaMemcpyDeviceToHost, NULL));
		did(p_cudaMemcpy2D(dev, 64, host, 64, 10, 3, cudaMemcpyDefault));
		did(p_cudaMemsetAsync(dev, 0, 256, NULL));
		did(p_cudaLaunchKernel((void *)kernel_alpha, (struct dim3){2, 3, 4},
				       (struct dim3){32, 2, 1}, args, 0, NULL));
		did(p_cudaLaunchKernel_ptsz((void *)kernel_beta, (struct dim3){1 + i % 3, 1, 1},
					    (struct dim3){64, 1, 1}, args, 0, NULL));
		did(p_cudaLaunchKernelExC(&config, (void *)kernel_beta, args));
		did(p_cudaStreamSynchronize(NULL));
	}
	if (real) {
		GET(lib, cudaMemcpy3D);

		did(p_cudaMemcpy3D(&box));
	}
	did(p_cudaDeviceSynchronize());
	did(p_cudaFree(dev));
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry gamma(.param .u64 p)\n{\n\tret;\n}\n";

static void driver(void *lib, int n)
{
	void *args[1];
	CUDA_MEMCPY2D rect = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = host,
			      .srcPitch = 64,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstPitch = 64,
			      .WidthInBytes = 20,
			      .Height = 4};
	CUlaunchConfig config = {4, 3, 2, 16, 2, 1, 0, NULL, NULL, 0};
	CUdeviceptr dev = 0;
	CUcontext context;
	CUfunction f;
	CUmodule module;
	CUdevice device;
	GET(lib, cuInit);
	GET(lib, cuDeviceGet);
	GET(lib, cuDevicePrimaryCtxRetain);
	GET(lib, cuCtxSetCurrent);
	GET(lib, cuModuleLoadData);
	GET(lib, cuModuleGetFunction);
	GET(lib, cuMemAlloc);
	GET(lib, cuMemcpyHtoD);
	GET(lib, cuMemcpyDtoHAsync);
	GET(lib, cuMemcpy2D);
	GET(lib, cuMemsetD32);
	GET(lib, cuLaunchKernel);
	GET(lib, cuLaunchKernelEx);
	GET(lib, cuCtxSynchronize);

	if (p_cuInit(0) || p_cuDeviceGet(&device, 0) ||
	    p_cuDevicePrimaryCtxRetain(&context, device) || p_cuCtxSetCurrent(context) ||
	    p_cuModuleLoadData(&module, ptx) || p_cuModuleGetFunction(&f, module, "gamma")) {
		fprintf(stderr, "cuda_target: no device\n");
		exit(1);
	}
	did(p_cuMemAlloc(&dev, 1 << 20));
	args[0] = &dev;
	rect.dstDevice = dev;
	for (int i = 0; i < n; i++) {
		did(p_cuMemcpyHtoD(dev, host, 300));
		did(p_cuMemcpyDtoHAsync(host, dev, 11, NULL));
		did(p_cuMemcpy2D(&rect));
		did(p_cuMemsetD32(dev, 0, 25));
		did(p_cuLaunchKernel(f, 7, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
		did(p_cuLaunchKernelEx(&config, f, args, NULL));
		did(p_cuCtxSynchronize());
	}
}

#ifdef LINKED
static void linked(int n)
{
	void *dev = NULL;

	for (int i = 0; i < n; i++) {
		did(cudaMalloc(&dev, 4096));
		did(cudaMemcpyAsync(dev, host, 100, cudaMemcpyHostToDevice, NULL));
		did(cudaLaunchKernel((void *)kernel_alpha, (struct dim3){2, 3, 4},
				     (struct dim3){32, 2, 1}, NULL, 0, NULL));
		did(cudaDeviceSynchronize());
	}
}
#endif

#define LIBRARIES_MAX 4

static bool go_on(const char *said)
{
	char line[64];

	puts(said);
	return fgets(line, sizeof(line), stdin) != NULL;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;
	void *libs[LIBRARIES_MAX];
	int nlibs = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!go_on("ready"))
		return 1;
	for (int i = 3; i < argc && nlibs < LIBRARIES_MAX; i++) {
		libs[nlibs++] = open_library(argv[i]);
		if (!go_on("opened"))
			return 1;
	}
	if (!nlibs && !go_on("opened"))
		return 1;
	for (int i = 0; i < nlibs; i++) {
		if (!strcmp(what, "driver"))
			driver(libs[i], n);
		else
			runtime(libs[i], n, !strcmp(what, "real"));
	}
#ifdef LINKED
	if (!strcmp(what, "linked"))
		linked(n);
#endif
	printf("count calls %llu\ncount failed %llu\n", (unsigned long long)calls,
	       (unsigned long long)failed);
	return 0;
}

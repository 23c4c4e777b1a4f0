/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* driver_launch.c - the driver's modules, libraries, kernels and launches */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* CUmodule and CUlibrary are a struct sim_library, CUfunction and CUkernel a struct sim_kernel. */

static CUresult load(struct sim_library **lib, const void *image)
{
	const unsigned char *text = image;

	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	/* Machine code has no text to look for names in. */
	*lib = library_new(isprint(text[0]) || isspace(text[0]) ? image : "");
	pthread_mutex_unlock(&sim_lock);
	return *lib ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult find(struct sim_kernel **k, const struct sim_library *lib, const char *name)
{
	if (!lib || !name)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < lib->n; i++) {
		*k = lib->kernels[i];
		if (!strcmp((*k)->name, name))
			return CUDA_SUCCESS;
	}
	if (lib->n)
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&sim_lock);
	*k = kernel_new(name, NULL);
	pthread_mutex_unlock(&sim_lock);
	return *k ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult unload(struct sim_library *lib)
{
	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	free(lib->kernels);
	free(lib);
	return CUDA_SUCCESS;
}

DRIVER(cuModuleLoadData, (CUmodule * module, const void *image), module, image)
{
	return load((struct sim_library **)module, image);
}

DRIVER(cuModuleUnload, (CUmodule module), module)
{
	return unload((struct sim_library *)module);
}

DRIVER(cuModuleGetFunction, (CUfunction * f, CUmodule module, const char *name), f, module, name)
{
	return find((struct sim_kernel **)f, (const struct sim_library *)module, name);
}

DRIVER(cuLibraryLoadData,
       (CUlibrary * library, const void *code, CUjit_option *jit, void **jit_values,
	unsigned int n_jit, CUlibraryOption *options, void **values, unsigned int n),
       library, code, jit, jit_values, n_jit, options, values, n)
{
	return load((struct sim_library **)library, code);
}

DRIVER(cuLibraryUnload, (CUlibrary library), library)
{
	return unload((struct sim_library *)library);
}

DRIVER(cuLibraryGetKernel, (CUkernel * k, CUlibrary library, const char *name), k, library, name)
{
	return find((struct sim_kernel **)k, (const struct sim_library *)library, name);
}

DRIVER(cuLibraryGetKernelCount, (unsigned int *n, CUlibrary library), n, library)
{
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	*n = ((const struct sim_library *)library)->n;
	return CUDA_SUCCESS;
}

DRIVER(cuKernelGetFunction, (CUfunction * f, CUkernel k), f, k)
{
	*f = (CUfunction)k;
	return k ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER(cuFuncGetName, (const char **name, CUfunction f), name, f)
{
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = ((const struct sim_kernel *)f)->name;
	return CUDA_SUCCESS;
}

/* --- launches --------------------------------------------------------------------------------- */

static CUresult launch(const struct sim_launch *l, CUfunction f, void **params)
{
	struct sim_kernel *k;

	pthread_mutex_lock(&sim_lock);
	k = kernel_find(f);
	pthread_mutex_unlock(&sim_lock);
	return k ? op_launch(l, k, params) : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_SZ(cuLaunchKernel,
	  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
	   void **extra),
	  f, gx, gy, gz, bx, by, bz, shared, stream, params, extra)
{
	struct sim_launch l = {{gx, gy, gz}, {bx, by, bz}, shared, stream, false};

	return launch(&l, f, params);
}

DRIVER_SZ(cuLaunchCooperativeKernel,
	  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params),
	  f, gx, gy, gz, bx, by, bz, shared, stream, params)
{
	struct sim_launch l = {{gx, gy, gz}, {bx, by, bz}, shared, stream, true};

	return launch(&l, f, params);
}

DRIVER_SZ(cuLaunchKernelEx,
	  (const CUlaunchConfig *config, CUfunction f, void **params, void **extra), config, f,
	  params, extra)
{
	struct sim_launch l;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	l = (struct sim_launch){
	    {config->gridDimX, config->gridDimY, config->gridDimZ},
	    {config->blockDimX, config->blockDimY, config->blockDimZ},
	    config->sharedMemBytes,
	    config->hStream,
	    false,
	};
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			l.cooperative = config->attrs[i].value.cooperative;
	}
	return launch(&l, f, params);
}

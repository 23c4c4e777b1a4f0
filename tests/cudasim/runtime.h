/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * runtime.h - defining the runtime's entry points, in the manner of driver.h
 *
 *	RUNTIME_SZ(cudaMemcpyAsync, v3020, v7000, (void *dst, ...), dst, ...)
 *	{
 *		...
 *	}
 *
 * The versions are those of the callback ids: of the function, and of its _ptsz or _ptds twin.
 */
#ifndef CUDASIM_RUNTIME_H
#define CUDASIM_RUNTIME_H

#define __CUDA_API_VERSION_INTERNAL
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>
#include <cuda_profiler_api.h>
#include <cupti_runtime_cbid.h>

#include "sim.h"

/* INIT_CONTEXT: the call needs a current context, and makes one. */
enum runtime_init { INIT_NONE, INIT_DRIVER, INIT_CONTEXT };
cudaError_t runtime_enter(struct sim_call *c, enum runtime_init init);
cudaError_t runtime_exit(struct sim_call *c, cudaError_t err);
/* The handle that the driver knows for a stream of this call. */
CUstream runtime_stream(cudaStream_t stream);
/* The kernel that a function pointer means. */
cudaError_t runtime_kernel(const void *func, CUfunction *f);

#define RUNTIME_RUN(sym, version, twin, init, sim_p, call)                                         \
	struct sim_call sim_c = {                                                                  \
	    .name = #sym,                                                                          \
	    .domain = SIM_RUNTIME,                                                                 \
	    .cbid = CUPTI_RUNTIME_TRACE_CBID_##sym##_##version,                                    \
	    .per_thread = twin,                                                                    \
	    .params = sim_p,                                                                       \
	};                                                                                         \
	cudaError_t sim_err = runtime_enter(&sim_c, init);                                         \
                                                                                                   \
	if (!sim_err)                                                                              \
		sim_err = call;                                                                    \
	return runtime_exit(&sim_c, sim_err);

#define RUNTIME_ENTRY(sym, version, body, twin, init, params, ...)                                 \
	cudaError_t sym params                                                                     \
	{                                                                                          \
		sym##_##version##_params sim_args = {__VA_ARGS__};                                 \
		RUNTIME_RUN(sym, version, twin, init, &sim_args, body(__VA_ARGS__))                \
	}

#define RUNTIME_INIT(sym, version, init, params, ...)                                              \
	static cudaError_t sym##_body params;                                                      \
	RUNTIME_ENTRY(sym, version, sym##_body, false, init, params, __VA_ARGS__)                  \
	static cudaError_t sym##_body params

#define RUNTIME(sym, version, params, ...)                                                         \
	RUNTIME_INIT(sym, version, INIT_CONTEXT, params, __VA_ARGS__)

#define RUNTIME_SZ(sym, version, version_twin, params, ...)                                        \
	static cudaError_t sym##_body params;                                                      \
	RUNTIME_ENTRY(sym, version, sym##_body, false, INIT_CONTEXT, params, __VA_ARGS__)          \
	RUNTIME_ENTRY(sym##_ptsz, version_twin, sym##_body, true, INIT_CONTEXT, params,            \
		      __VA_ARGS__)                                                                 \
	static cudaError_t sym##_body params

#define RUNTIME_DS(sym, version, version_twin, params, ...)                                        \
	static cudaError_t sym##_body params;                                                      \
	RUNTIME_ENTRY(sym, version, sym##_body, false, INIT_CONTEXT, params, __VA_ARGS__)          \
	RUNTIME_ENTRY(sym##_ptds, version_twin, sym##_body, true, INIT_CONTEXT, params,            \
		      __VA_ARGS__)                                                                 \
	static cudaError_t sym##_body params

/* With no parameters. */
#define RUNTIME_VOID(sym, version, init)                                                           \
	static cudaError_t sym##_body(void);                                                       \
	cudaError_t sym(void)                                                                      \
	{                                                                                          \
		RUNTIME_RUN(sym, version, false, init, NULL, sym##_body())                         \
	}                                                                                          \
	static cudaError_t sym##_body(void)

#endif /* CUDASIM_RUNTIME_H */

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * driver.h - defining the driver's entry points
 *
 *	DRIVER(cuMemAlloc_v2, (CUdeviceptr *p, size_t n), p, n)
 *	{
 *		...
 *	}
 *
 * is the function of that name with all that goes round it; DRIVER_SZ and DRIVER_DS define its
 * _ptsz or _ptds twin too, for which stream 0 is the thread's own. The prototypes are the header's.
 */
#ifndef CUDASIM_DRIVER_H
#define CUDASIM_DRIVER_H

/* Declares the twins as well. */
#define __CUDA_API_VERSION_INTERNAL
#include <generated_cuda_meta.h>
#include <cupti_driver_cbid.h>

#include "sim.h"

#define DRIVER_RUN(sym, twin, sim_p, call)                                                         \
	struct sim_call sim_c = {                                                                  \
	    .name = #sym,                                                                          \
	    .domain = SIM_DRIVER,                                                                  \
	    .cbid = CUPTI_DRIVER_TRACE_CBID_##sym,                                                 \
	    .per_thread = twin,                                                                    \
	    .params = sim_p,                                                                       \
	};                                                                                         \
	CUresult sim_err = (CUresult)sim_call_enter(&sim_c);                                       \
                                                                                                   \
	if (!sim_err)                                                                              \
		sim_err = call;                                                                    \
	return (CUresult)sim_call_exit(&sim_c, (int)sim_err);

#define DRIVER_ENTRY(sym, body, twin, params, ...)                                                 \
	CUresult sym params                                                                        \
	{                                                                                          \
		sym##_params sim_args = {__VA_ARGS__};                                             \
		DRIVER_RUN(sym, twin, &sim_args, body(__VA_ARGS__))                                \
	}

#define DRIVER(sym, params, ...)                                                                   \
	static CUresult sym##_body params;                                                         \
	DRIVER_ENTRY(sym, sym##_body, false, params, __VA_ARGS__)                                  \
	static CUresult sym##_body params

#define DRIVER_SZ(sym, params, ...)                                                                \
	static CUresult sym##_body params;                                                         \
	DRIVER_ENTRY(sym, sym##_body, false, params, __VA_ARGS__)                                  \
	DRIVER_ENTRY(sym##_ptsz, sym##_body, true, params, __VA_ARGS__)                            \
	static CUresult sym##_body params

#define DRIVER_DS(sym, params, ...)                                                                \
	static CUresult sym##_body params;                                                         \
	DRIVER_ENTRY(sym, sym##_body, false, params, __VA_ARGS__)                                  \
	DRIVER_ENTRY(sym##_ptds, sym##_body, true, params, __VA_ARGS__)                            \
	static CUresult sym##_body params

/* With no parameters. */
#define DRIVER_VOID(sym)                                                                           \
	static CUresult sym##_body(void);                                                          \
	CUresult sym(void)                                                                         \
	{                                                                                          \
		DRIVER_RUN(sym, false, NULL, sym##_body())                                         \
	}                                                                                          \
	static CUresult sym##_body(void)

#endif /* CUDASIM_DRIVER_H */

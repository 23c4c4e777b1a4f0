/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the host asked of CUDA, as seen by probes on its functions: copies with their bytes, kernels with
 * their grids, failures by code. Times are those of the calls: of an asynchronous copy, how long it
 * took to ask for it, and never what the GPU did (model/gpu.h).
 */
#ifndef QBPF_MODEL_CUDA_H
#define QBPF_MODEL_CUDA_H

#include "model/hist.h"

/* Calls of one kind. Figures are of those that did not fail, but for count and failed. */
struct cuda_sums {
	uint64_t count;	       /* calls */
	uint64_t failed;       /* of these */
	uint64_t untold;       /* it was not seen whether they failed: taken not to have */
	uint64_t unsized;      /* calls whose bytes are not known */
	uint64_t legacy;       /* calls on the legacy default stream, which waits for all others */
	uint64_t ns;	       /* time of the calls */
	uint64_t bytes;	       /* modulo 2^64 */
	uint64_t failed_bytes; /* what failed calls were asked for */
};

struct cuda_transfer {
	uint32_t span;	/* index into the snapshot's spans */
	uint32_t dir;	/* enum qbpf_cuda_dir; QBPF_CUDA_NO_DIR: a memset or an allocation */
	uint32_t class; /* enum qbpf_cuda_class */
	struct cuda_sums sums;
	struct hist *sizes; /* bytes of a call (QBPF_HIST_INT), never NULL */
};

struct cuda_kernel {
	uint32_t span; /* that launched it */
	char *name;    /* or "0x..." where it is not known; never NULL */
	bool named;
	bool any_grid;	       /* launches whose grids found no room in the kernel's table */
	uint32_t grid[6];      /* grid x y z, block x y z */
	struct cuda_sums sums; /* without bytes */
};

struct cuda_failure {
	uint32_t span;
	uint32_t code; /* cudaError_t or CUresult */
	uint64_t count;
};

struct cuda_calls {
	struct cuda_transfer *transfers;
	size_t ntransfers;
	struct cuda_kernel *kernels;
	size_t nkernels;
	struct cuda_failure *failures;
	size_t nfailures;
	uint64_t lost;	     /* calls of which a figure found no room */
	uint64_t names_lost; /* names of kernels that found none */
};

struct cuda_calls *cuda_calls__new(void);
void cuda_calls__free(struct cuda_calls *c);
struct cuda_calls *cuda_calls__clone(const struct cuda_calls *c);

/*
 * Each adds to what is already there of the same span and direction, kernel and grid, or code.
 * -ENOMEM, and hist__add_cell's.
 */
int cuda_calls__add_transfer(struct cuda_calls *c, uint32_t span, uint32_t class, uint32_t dir,
			     const struct cuda_sums *sums);
int cuda_calls__add_sizes(struct cuda_calls *c, uint32_t span, uint32_t dir, uint16_t octave,
			  const struct qbpf_hist_cell *cell);
int cuda_calls__add_kernel(struct cuda_calls *c, const struct cuda_kernel *k);
int cuda_calls__add_failure(struct cuda_calls *c, uint32_t span, uint32_t code, uint64_t count);
/* By time, most first; failures by count. */
void cuda_calls__sort(struct cuda_calls *c);
/* c -= base, an earlier state of the same; what has not happened since is left out. */
int cuda_calls__subtract(struct cuda_calls *c, const struct cuda_calls *base);

const char *cuda_direction_name(uint32_t dir); /* "host to device"; "" for QBPF_CUDA_NO_DIR */
const char *cuda_direction_id(uint32_t dir);   /* "h2d" */
const char *cuda_class_name(uint32_t class);   /* "copy", "memset", "allocation" */
/* "cudaErrorInvalidValue", or "CUDA_ERROR_INVALID_VALUE" of the driver; NULL: not in the table. */
const char *cuda_error_name(uint32_t code, bool driver);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a launched kernel is called. A launch names it by the address of its host stub, or by a handle;
 * a handle's name or stub was seen when it was given out, or, if that was before we came, is told by
 * who launches it: nvcc makes one function for each kernel that does.
 */
#ifndef QBPF_TRACE_CUDA_NAMES_H
#define QBPF_TRACE_CUDA_NAMES_H

#include "trace/target.h"

struct cuda_names;

struct cuda_names *cuda_names__new(void);
void cuda_names__free(struct cuda_names *n);

/* What a handle was given out for; the same one may come again. 0 or -ENOMEM. */
int cuda_names__handle(struct cuda_names *n, const struct qbpf_cuda_handle_key *key,
		       const struct qbpf_cuda_handle *handle);

/*
 * The name, which lives as long as n; NULL: no memory. *known: it is one, and no address. Reads
 * symbols of the target's objects where it must: target__drop_images() is the caller's.
 */
const char *cuda_names__get(struct cuda_names *n, struct target *t, uint32_t tgid, uint64_t kernel,
			    uint64_t caller, bool *known);

#endif

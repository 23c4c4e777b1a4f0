/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the host asked of CUDA, for all outputs: sections of a plain report and the document's `cuda`. */
#ifndef QBPF_OUT_CUDA_H
#define QBPF_OUT_CUDA_H

#include "out/json_write.h"
#include "out/page.h"

/* Copies, kernels, failures. `most` rows of a table; 0: no limit. Nothing when there were none. */
void page__cuda(const struct page *p, const struct cuda_calls *c, size_t most);

json_t *json_cuda(struct json_doc *d, const struct snapshot *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the GPU did, for all outputs: sections of a plain report, the document's `gpu`, and the words of
 * an advice. */
#ifndef QBPF_OUT_GPU_H
#define QBPF_OUT_GPU_H

#include "model/gpu.h"
#include "out/json_write.h"
#include "out/page.h"

/* Kernels, copies, streams, idle time, spans, advice, and what is in none of them. `most` rows of a
 * table; 0: no limit. */
void page__gpu(const struct page *p, const struct gpu_summary *g, size_t most);

json_t *json_gpu(struct json_doc *d, const struct gpu_summary *g);

/* Why a record was lost (enum trace_gpu_reason), and of what type it was. */
const char *gpu_loss_reason(uint32_t reason);
const char *gpu_loss_type(uint32_t type);
/* By reason and type; NULL: nothing was lost. */
json_t *json_gpu_losses(struct json_doc *d, const struct snapshot *s);

/* One line, as target bytes: to be made printable. */
#define GPU_ADVICE_TEXT 512
char *gpu_advice__text(const struct gpu_advice *a, char buf[GPU_ADVICE_TEXT]);

/* "GPU 0", and its name; with its process when there are several. */
#define GPU_DEVICE_TEXT 192
char *gpu_device__text(const struct gpu_summary *g, const struct gpu_device *d,
		       char buf[GPU_DEVICE_TEXT]);
/* "GPU 0 stream 7"; with its context and process where these tell streams apart. */
#define GPU_STREAM_TEXT 128
char *gpu_stream__text(const struct gpu_summary *g, const struct gpu_stream *s,
		       char buf[GPU_STREAM_TEXT]);
/* The cause with the name of the span or call. */
#define GPU_IDLE_TEXT 256
char *gpu_idle__text(const struct gpu_idle *i, char buf[GPU_IDLE_TEXT]);

#endif

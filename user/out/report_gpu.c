/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report_gpu.c - the GPU's part of a recording, and which of its records the file does not hold. */
#include <inttypes.h>

#include "out/gpu.h"
#include "out/report_impl.h"

static const char *const words[GPU_LOST_N] = {
    "found no room in the ring to qbpf", "were dropped by CUPTI",
    "found the agent without a buffer", "could not be read", "could not be written to the file"};

/* As far as it is known. */
static uint64_t spans_left_out(const struct analysis *a)
{
	return (a->lost == UINT64_MAX ? 0 : a->lost) + (a->skipped == UINT64_MAX ? 0 : a->skipped);
}

void report__put_gpu(const struct recording *r)
{
	const struct trace_info *info = r->a->info;
	uint64_t sums[GPU_LOST_N] = {0}, left_out = spans_left_out(r->a);

	if (r->page.s->gpu)
		page__gpu(&r->page, r->page.s->gpu, r->o->limit);
	if (r->page.s->gpu && left_out)
		page__line(&r->page, 4,
			   "  spans that the file does not hold: %" PRIu64
			   " (the host was in no traced span then, as far as these figures go)",
			   left_out);
	for (size_t i = 0; i < info->ngpu_losses; i++)
		if (info->gpu_losses[i].reason < GPU_LOST_N)
			sums[info->gpu_losses[i].reason] += info->gpu_losses[i].lost;
	for (int i = 0; i < GPU_LOST_N; i++)
		if (sums[i])
			page__line(&r->page, 4, "  records that %s: %" PRIu64, words[i], sums[i]);
}

json_t *report__gpu_losses(struct json_doc *d, const struct analysis *a)
{
	json_t *array = json_array();

	for (size_t i = 0; i < a->info->ngpu_losses; i++) {
		const struct trace_gpu_loss *l = &a->info->gpu_losses[i];
		json_t *o = json_object();

		json_put_text(d, o, "type", gpu_loss_type(l->type));
		json_put_text(d, o, "reason", gpu_loss_reason(l->reason));
		json_put(d, o, "ring", json_count(l->ring));
		json_put(d, o, "from_ns", json_count(l->from_ns));
		json_put(d, o, "to_ns", json_count(l->to_ns));
		json_put(d, o, "lost", json_count(l->lost));
		json_append(d, array, o);
	}
	return array;
}

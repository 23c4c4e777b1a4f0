/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the sections of a recording's report share. Private to out/report*.c. */
#ifndef QBPF_OUT_REPORT_IMPL_H
#define QBPF_OUT_REPORT_IMPL_H

#include "out/json_write.h"
#include "out/page.h"
#include "out/report.h"

struct recording {
	struct page page; /* of the spans that the file holds */
	const struct analysis *a;
	const struct report_opts *o;
};

/* The name of a span id; of 0 and of an unknown one, words. */
const char *report__span_name(const struct analysis *a, uint32_t span);
/* Sums by self time, greatest first: span ids of those with a share of `hot` or more. */
size_t report__hot_spans(const struct analysis *a, double hot, uint32_t **out, uint64_t *all_ns);
/* Edges of one side of a span, greatest time first; malloc'ed. */
size_t report__edges(const struct analysis *a, uint32_t span, bool callers, struct an_edge **out);
/* `n` stretches of time of one span, windows put together; malloc'ed. */
struct report_stretch {
	uint64_t from_ns; /* since the recording began */
	uint64_t count, sum_ns;
	struct hist *hist; /* owned; NULL: nothing came */
};
size_t report__stretches(const struct analysis *a, uint32_t span, size_t most,
			 struct report_stretch **out);
void report__free_stretches(struct report_stretch *s, size_t n);
/* Losses of one span, by stretches of the recording. */
void report__losses(const struct analysis *a, uint32_t span, uint64_t *lost, size_t n);

/* report_held.c: how much of what happened the file holds. */
void report__put_file(const struct recording *r);
void report__put_held(const struct recording *r);
void report__put_losses(const struct recording *r);
void report__put_open(const struct recording *r);
/* report_time.c: where the time goes. */
void report__put_hot(const struct recording *r);
void report__put_paths(const struct recording *r);
void report__put_over_time(const struct recording *r, uint32_t span);
/* report_gpu.c: what the GPU did, and what of its records is not in the file. */
void report__put_gpu(const struct recording *r);
json_t *report__gpu_losses(struct json_doc *d, const struct analysis *a);
/* report_span.c: one span. */
void report__put_span(struct recording *r, uint32_t span);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.c - the plain report, in the order a reader in a hurry wants it: whom and how long,
 * what tracing cost, the spans with most time, where in the call tree, the distributions, and
 * at the end whatever was refused, failed or lost.
 */
#include "out/cuda.h"
#include "out/gpu.h"
#include "out/page.h"
#include "out/table.h"

#define GPU_ROWS	20
#define HISTOGRAM_SPANS 20 /* as many as one reads; --json has the figures of all */

static const enum span_field span_columns[] = {SF_NAME, SF_COUNT, SF_RATE, SF_P50, SF_P90,
					       SF_P99,	SF_P999,  SF_MAX,  SF_SUM, SF_SHARE};
static const enum span_field value_columns[] = {SF_NAME, SF_COUNT, SF_RATE, SF_MIN,  SF_MEAN,
						SF_P50,	 SF_P90,   SF_P99,  SF_P999, SF_MAX};
static const enum node_field node_columns[] = {NF_NAME, NF_COUNT, NF_SUM, NF_SELF,
					       NF_MIN,	NF_MEAN,  NF_MAX, NF_SHARE};

static void put_histograms(const struct page *r)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < r->rows.n; i++) {
		if (!r->order[i]->in_hist)
			continue;
		if (shown < HISTOGRAM_SPANS) {
			page__histogram(r, r->order[i]);
			shown++;
		} else {
			left++;
		}
	}
	if (left)
		fprintf(r->f, "\n(histograms of %zu more spans with less time not shown)\n", left);
}

void table__write(FILE *f, const struct snapshot *s, const struct table_opts *o)
{
	struct page r;

	if (page__open(&r, f, s, o->width))
		return;
	page__target(&r);
	page__sites(&r, s);
	page__spans(&r, ROW_SPAN, span_columns, COUNT_OF(span_columns), "span");
	page__spans(&r, ROW_VALUE, value_columns, COUNT_OF(value_columns), "value");
	page__spans(&r, ROW_INSTANT, value_columns, COUNT_OF(value_columns),
		    "instant: its intervals");
	if (o->tree)
		page__tree(&r, r.tree, node_columns, COUNT_OF(node_columns));
	if (s->cuda)
		page__cuda(&r, s->cuda, GPU_ROWS);
	if (s->gpu)
		page__gpu(&r, s->gpu, GPU_ROWS);
	if (r.floor_shown)
		page__floor(&r);
	page__unclean(&r);
	page__idle_spans(&r);
	if (o->histograms)
		put_histograms(&r);
	if (o->probes)
		page__probes(&r);
	page__losses(&r);
	if (o->price)
		page__price(&r);
	page__close(&r);
}

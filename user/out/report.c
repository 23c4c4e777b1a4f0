/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report.c - the plain report of a recording: what was recorded and how much of it the file holds,
 * the spans with exact percentiles, the call tree, where the time goes and how that changed, and at
 * the end what is not in the figures.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/cuda.h"
#include "out/report_impl.h"

#define HISTOGRAMS 3 /* --span shows any other */

static const enum span_field span_columns[] = {SF_NAME, SF_COUNT, SF_RATE, SF_P50, SF_P90,
					       SF_P99,	SF_P999,  SF_MAX,  SF_SUM, SF_SHARE};
static const enum span_field value_columns[] = {SF_NAME, SF_COUNT, SF_RATE, SF_MIN,  SF_MEAN,
						SF_P50,	 SF_P90,   SF_P99,  SF_P999, SF_MAX};
static const enum node_field node_columns[] = {NF_NAME, NF_COUNT, NF_SUM, NF_SELF, NF_MIN,
					       NF_MEAN, NF_P99,	  NF_MAX, NF_SHARE};

static void put_thread_tree(struct recording *r, uint32_t thread)
{
	const struct trace_thread *t = &r->a->info->threads[thread];
	struct snapshot one = *r->page.s; /* but for its nodes */
	struct tree *tree = NULL;

	if (!analysis__snap_nodes(r->a, thread, &one.nodes, &one.nnodes))
		tree = tree__new(&one);
	if (tree && tree__root(tree)->first_child) {
		fputs("\nthread ", r->page.f);
		page__text(&r->page, t->name);
		fprintf(r->page.f, " (tid %" PRIu32 ")", t->tid);
		page__tree(&r->page, tree, node_columns, COUNT_OF(node_columns));
	}
	tree__free(tree);
	free(one.nodes);
}

static void put_trees(struct recording *r)
{
	uint64_t unplaced = 0;

	if (r->o->threads)
		for (size_t i = 0; i < r->a->info->nthreads; i++)
			put_thread_tree(r, i);
	else
		page__tree(&r->page, r->page.tree, node_columns, COUNT_OF(node_columns));
	for (size_t i = 0; i < r->a->nnodes; i++)
		if (r->a->nodes[i].parent == QBPF_NODE_LOST)
			unplaced += r->a->nodes[i].count;
	if (unplaced)
		fprintf(r->page.f,
			"(%" PRIu64
			" spans of which the file does not say what was around them stand as "
			"if nothing was)\n",
			unplaced);
}

static void put_histograms(const struct recording *r)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < r->page.rows.n; i++) {
		if (!r->page.order[i]->in_hist)
			continue;
		if (shown == HISTOGRAMS) {
			left++;
			continue;
		}
		page__histogram(&r->page, r->page.order[i]);
		shown++;
	}
	if (left)
		fprintf(r->page.f, "\n(distributions of %zu more: --span NAME)\n", left);
}

static void put_all(struct recording *r)
{
	struct page *p = &r->page, costs = r->page;

	/* Why a site is refused, and what the maps took, is known in full to the kernel's sums. */
	if (r->a->kernel)
		costs.s = r->a->kernel;
	page__spans(p, ROW_SPAN, span_columns, COUNT_OF(span_columns), "span");
	page__spans(p, ROW_VALUE, value_columns, COUNT_OF(value_columns), "value");
	page__spans(p, ROW_INSTANT, value_columns, COUNT_OF(value_columns),
		    "instant: its intervals");
	report__put_held(r);
	put_trees(r);
	if (p->s->cuda)
		page__cuda(p, p->s->cuda, r->o->limit);
	report__put_gpu(r);
	report__put_hot(r);
	report__put_paths(r);
	if (r->a->root)
		report__put_over_time(r, r->a->root);
	put_histograms(r);
	if (p->floor_shown)
		page__floor(p);
	page__unclean(p);
	report__put_open(r);
	page__idle_spans(p);
	page__probes(&costs);
	page__losses(p);
	report__put_losses(r);
	page__price(&costs);
}

int report__write(FILE *f, const struct analysis *a, const struct report_opts *o)
{
	struct recording r = {.a = a, .o = o};
	struct snapshot *s = analysis__snapshot(a);
	int err = s ? page__open(&r.page, f, s, o->width) : -ENOMEM;

	if (err)
		goto out;
	r.page.most_spans = o->limit;
	r.page.most_nodes = o->limit ? o->limit : SIZE_MAX;
	page__target(&r.page);
	report__put_file(&r);
	/* What it cost is known when all hits are. */
	if (a->kernel || (a->counted != UINT64_MAX && a->held >= a->counted))
		page__sites(&r.page, a->kernel ? a->kernel : s);
	if (!o->span) {
		put_all(&r);
	} else {
		uint32_t span = analysis__span(a, o->span);

		if (span)
			report__put_span(&r, span);
		if (r.page.floor_shown)
			page__floor(&r.page);
	}
	page__close(&r.page);
out:
	snapshot__free(s);
	return err;
}

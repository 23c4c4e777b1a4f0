/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report_figures.c - figures that the text and the document of a recording share. */
#include <stdlib.h>
#include <string.h>

#include "out/report_impl.h"

const char *report__span_name(const struct analysis *a, uint32_t span)
{
	if (!span)
		return "(nothing around it)";
	return span - 1 < a->info->nspans ? a->info->spans[span - 1].name : "(not known)";
}

struct weight {
	uint32_t span;
	uint64_t ns;
};

static int compare_weights(const void *pa, const void *pb)
{
	const struct weight *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return a->span < b->span ? -1 : a->span > b->span;
}

size_t report__hot_spans(const struct analysis *a, double hot, uint32_t **out, uint64_t *all_ns)
{
	size_t nspans = a->info->nspans, n = 0;
	struct weight *w = calloc(nspans + 1, sizeof(*w));

	*all_ns = 0;
	*out = malloc((nspans + 1) * sizeof(**out));
	for (size_t i = 0; w && i < nspans; i++) {
		w[i] = (struct weight){i + 1, a->spans[i].self_ns};
		/* Keyed spans overlap anything: their time is not part of the threads'. */
		if (a->info->spans[i].kind == SPAN_KEYED)
			w[i].ns = 0;
		*all_ns += w[i].ns;
	}
	if (w)
		qsort(w, nspans, sizeof(*w), compare_weights);
	while (w && *out && n < nspans && w[n].ns && (double)w[n].ns >= hot * (double)*all_ns) {
		(*out)[n] = w[n].span;
		n++;
	}
	free(w);
	return n;
}

static int compare_edges(const void *pa, const void *pb)
{
	const struct an_edge *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	if (a->caller != b->caller)
		return a->caller < b->caller ? -1 : 1;
	return a->callee < b->callee ? -1 : a->callee > b->callee;
}

size_t report__edges(const struct analysis *a, uint32_t span, bool callers, struct an_edge **out)
{
	size_t n = 0;

	*out = malloc((a->nedges + 1) * sizeof(**out));
	for (size_t i = 0; *out && i < a->nedges; i++)
		if ((callers ? a->edges[i].callee : a->edges[i].caller) == span)
			(*out)[n++] = a->edges[i];
	if (*out)
		qsort(*out, n, sizeof(**out), compare_edges);
	return n;
}

size_t report__stretches(const struct analysis *a, uint32_t span, size_t most,
			 struct report_stretch **out)
{
	size_t each = (a->nwindows + most - 1) / most, n = (a->nwindows + each - 1) / each;
	const struct an_window *w = a->spans[span - 1].windows;
	/* As the windows are cut: see analysis__new. */
	uint64_t width = (a->end_ns - a->start_ns) / a->nwindows + 1;
	struct report_stretch *s = calloc(n, sizeof(*s));

	*out = s;
	if (!s)
		return 0;
	for (size_t i = 0; i < n; i++)
		s[i].from_ns = i * each * width;
	for (size_t i = 0; w && i < a->nwindows; i++) {
		struct report_stretch *to = &s[i / each];

		to->count += w[i].count;
		to->sum_ns += w[i].sum_ns;
		if (!w[i].hist)
			continue;
		if (!to->hist)
			to->hist = hist__new(hist__kind(w[i].hist));
		if (!to->hist || hist__merge(to->hist, w[i].hist)) {
			report__free_stretches(s, n);
			*out = NULL;
			return 0;
		}
	}
	return n;
}

void report__free_stretches(struct report_stretch *s, size_t n)
{
	for (size_t i = 0; s && i < n; i++)
		hist__free(s[i].hist);
	free(s);
}

/* How much of what is lost between `from` and `to` has been by the time `at`, were it evenly. */
static uint64_t lost_by(const struct trace_loss *l, uint64_t at)
{
	uint64_t span = l->to_ns - l->from_ns;

	if (at >= l->to_ns || !span)
		return at >= l->from_ns ? l->lost : 0;
	if (at <= l->from_ns)
		return 0;
	return (uint64_t)((unsigned __int128)l->lost * (at - l->from_ns) / span);
}

/* When within its stretch a span was lost is not known. */
void report__losses(const struct analysis *a, uint32_t span, uint64_t *lost, size_t n)
{
	uint64_t width = (a->end_ns - a->start_ns) / n + 1;

	memset(lost, 0, n * sizeof(*lost));
	for (size_t i = 0; i < a->info->nlosses; i++) {
		const struct trace_loss *l = &a->info->losses[i];
		uint64_t before = 0;

		if (l->span != span || l->to_ns < l->from_ns)
			continue;
		for (size_t k = 0; k < n; k++) {
			uint64_t by =
			    k + 1 == n ? l->lost : lost_by(l, a->start_ns + (k + 1) * width);

			lost[k] += by - before;
			before = by;
		}
	}
}

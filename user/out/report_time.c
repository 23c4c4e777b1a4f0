/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report_time.c - where the time of a recording goes: hot spots, critical paths, changes over time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/grid.h"
#include "out/report_impl.h"
#include "out/text.h"

#define TIME_ROWS 20
#define TIME_BAR  30

void report__put_hot(const struct recording *r)
{
	static const char *const headings[] = {"hot spots: self time", "self", "share", "count",
					       "self/call"};
	const struct analysis *a = r->a;
	struct grid *g = grid__new(COUNT_OF(headings));
	uint64_t all;
	uint32_t *hot;
	size_t n = report__hot_spans(a, r->o->hot, &hot, &all);
	char buf[UNIT_TEXT];

	for (size_t c = 0; g && c < COUNT_OF(headings); c++)
		grid__put(g, c, headings[c]);
	for (size_t i = 0; g && i < n && (!r->o->limit || i < r->o->limit); i++) {
		const struct an_span *s = &a->spans[hot[i] - 1];

		grid__put(g, 0, s->def->name);
		grid__put(g, 1, unit__time(buf, s->self_ns));
		grid__put(g, 2, unit__share(buf, (double)s->self_ns / (double)all));
		grid__put(g, 3, unit__count(buf, s->held));
		grid__put(g, 4, unit__time(buf, (long double)s->self_ns / s->held));
	}
	if (g && n) {
		fputc('\n', r->page.f);
		grid__write(g, r->page.f, r->page.width, r->page.utf8);
	}
	if (all)
		fprintf(r->page.f,
			"%s(%zu of %zu spans have %s or more of the traced time for themselves)\n",
			n ? "" : "\n", n, a->info->nspans, unit__share(buf, r->o->hot));
	grid__free(g);
	free(hot);
}

static void put_step(struct grid *g, const struct analysis *a, size_t level, uint32_t span,
		     const struct an_step *slow, const struct an_step *median)
{
	const struct an_step *steps[] = {slow, median};
	char prefix[2 * TREE_LEVELS + 1], buf[UNIT_TEXT];

	snprintf(prefix, sizeof(prefix), "%*s",
		 (int)(2 * (level < TREE_LEVELS ? level : TREE_LEVELS)), "");
	grid__put_tree(g, prefix, report__span_name(a, span));
	for (size_t i = 0; i < 2; i++) {
		const struct an_step *s = steps[i];

		grid__put(g, 1 + 3 * i, s ? unit__time(buf, s->ns) : "-");
		grid__put(g, 2 + 3 * i, s ? unit__time(buf, s->self_ns) : "-");
		grid__put(g, 3 + 3 * i, s ? unit__share(buf, s->share) : "-");
	}
}

static void put_instance(const struct recording *r, const char *word, const struct event *ev)
{
	const struct trace_thread *t = &r->a->info->threads[ev->thread];
	uint64_t start = r->a->info->meta.start_ns;
	char took[UNIT_TEXT], at[UNIT_TEXT];

	fprintf(r->page.f, "  %s: %s, begun %s after the start, thread ", word,
		unit__time(took, ev->end_ns - ev->start_ns),
		unit__time(at, ev->start_ns > start ? ev->start_ns - start : 0));
	page__text(&r->page, t->name);
	fprintf(r->page.f, " (tid %" PRIu32 ")\n", t->tid);
}

/* The steps that both have in common share a line. */
void report__put_paths(const struct recording *r)
{
	static const char *const headings[] = {"step",	 "slowest", "self", "share",
					       "median", "self",    "share"};
	const struct an_path *slow = &r->a->slowest_path, *median = &r->a->median_path;
	struct grid *g;
	size_t common = 0;

	if (!slow->n)
		return;
	fprintf(r->page.f, "\ncritical path of ");
	page__text(&r->page, report__span_name(r->a, r->a->root));
	fputs(": at each step into the span that took longest\n", r->page.f);
	put_instance(r, "the slowest", &slow->root);
	if (median->n)
		put_instance(r, "the median", &median->root);
	if (r->a->slowest[0].left_out || r->a->median.left_out)
		fprintf(r->page.f, "  (of the longest %zu spans inside it)\n",
			r->a->slowest[0].n - 1);
	g = grid__new(COUNT_OF(headings));
	for (size_t c = 0; g && c < COUNT_OF(headings); c++)
		grid__put(g, c, headings[c]);
	while (g && common < slow->n && common < median->n &&
	       slow->steps[common].span == median->steps[common].span) {
		put_step(g, r->a, common, slow->steps[common].span, &slow->steps[common],
			 &median->steps[common]);
		common++;
	}
	for (size_t i = common; g && i < slow->n; i++)
		put_step(g, r->a, i, slow->steps[i].span, &slow->steps[i], NULL);
	for (size_t i = common; g && i < median->n; i++)
		put_step(g, r->a, i, median->steps[i].span, NULL, &median->steps[i]);
	if (g)
		grid__write(g, r->page.f, r->page.width, r->page.utf8);
	grid__free(g);
}

static void format_quantile(const struct hist *h, double q, bool ns, char buf[UNIT_TEXT])
{
	long double v;

	if (!h || !hist__quantile(h, q, &v))
		strcpy(buf, "-");
	else if (ns)
		unit__time(buf, v);
	else
		unit__value(buf, v);
}

void report__put_over_time(const struct recording *r, uint32_t span)
{
	static const double q[] = {0.5, 0.9, 0.99, 1};
	bool ns = r->a->info->spans[span - 1].kind != SPAN_VALUE;
	struct report_stretch *s;
	size_t all = report__stretches(r->a, span, TIME_ROWS, &s);
	size_t n = r->a->spans[span - 1].held ? all : 0;
	long double most = 0, v;
	double bar_q = 1;

	for (size_t i = 0; i < n; i++)
		if (s[i].hist && hist__quantile(s[i].hist, 0.99, &v))
			bar_q = 0.99;
	for (size_t i = 0; i < n; i++)
		if (s[i].hist && hist__quantile(s[i].hist, bar_q, &v) && v > most)
			most = v;
	if (n) {
		fputc('\n', r->page.f);
		page__text(&r->page, report__span_name(r->a, span));
		fprintf(r->page.f,
			" over time (percentiles of each stretch within 1.6 %%, the bar is %s)\n"
			"%10s %10s %9s %9s %9s %9s\n",
			bar_q < 1 ? "p99" : "max", "from", "count", "p50", "p90", "p99", "max");
	}
	for (size_t i = 0; i < n; i++) {
		char cell[UNIT_TEXT], bar[4 * TIME_BAR + 5] = "";

		fprintf(r->page.f, "%10s %10" PRIu64, unit__time(cell, s[i].from_ns), s[i].count);
		for (size_t k = 0; k < COUNT_OF(q); k++) {
			format_quantile(s[i].hist, q[k], ns, cell);
			fprintf(r->page.f, " %9s", cell);
		}
		if (most > 0 && s[i].hist && hist__quantile(s[i].hist, bar_q, &v))
			text__bar(bar, (double)(v / most), TIME_BAR, r->page.utf8);
		fprintf(r->page.f, "%s%s\n", *bar ? "  " : "", bar);
	}
	report__free_stretches(s, all);
}

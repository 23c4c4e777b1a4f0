/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report_span.c - one span of a recording: figures, callers and callees, distribution, over time. */
#include <stdlib.h>

#include "out/grid.h"
#include "out/report_impl.h"

#define HISTOGRAM_ROWS 40

static const enum span_field figures[] = {SF_NAME, SF_COUNT, SF_MIN,   SF_MEAN, SF_P50, SF_P90,
					  SF_P99,  SF_P999,  SF_P9999, SF_MAX,	SF_SUM};

static void put_edges(const struct recording *r, uint32_t span, bool callers)
{
	const char *const headings[] = {callers ? "called from" : "calls", "count", "total", "mean",
					"of its time"};
	const struct an_span *self = &r->a->spans[span - 1];
	struct grid *g = grid__new(COUNT_OF(headings));
	struct an_edge *edges;
	size_t n = report__edges(r->a, span, callers, &edges);
	char buf[UNIT_TEXT];

	for (size_t c = 0; g && c < COUNT_OF(headings); c++)
		grid__put(g, c, headings[c]);
	for (size_t i = 0; g && i < n && (!r->o->limit || i < r->o->limit); i++) {
		uint32_t other = callers ? edges[i].caller : edges[i].callee;

		grid__put(g, 0, report__span_name(r->a, other));
		grid__put(g, 1, unit__count(buf, edges[i].count));
		/* An instant takes no time. */
		if (!edges[i].total_ns) {
			for (size_t c = 2; c < COUNT_OF(headings); c++)
				grid__put(g, c, "-");
			continue;
		}
		grid__put(g, 2, unit__time(buf, edges[i].total_ns));
		grid__put(g, 3, unit__time(buf, (long double)edges[i].total_ns / edges[i].count));
		grid__put(g, 4,
			  self->total_ns
			      ? unit__share(buf, (double)edges[i].total_ns / (double)self->total_ns)
			      : "-");
	}
	if (g && !callers && self->total_ns) {
		grid__put(g, 0, "(itself)");
		grid__put(g, 1, unit__count(buf, self->held));
		grid__put(g, 2, unit__time(buf, self->self_ns));
		grid__put(g, 3, unit__time(buf, (long double)self->self_ns / self->held));
		grid__put(g, 4, unit__share(buf, (double)self->self_ns / (double)self->total_ns));
	}
	if (g && (n || (!callers && self->total_ns))) {
		fputc('\n', r->page.f);
		grid__write(g, r->page.f, r->page.width, r->page.utf8);
	}
	if (r->o->limit && n > r->o->limit)
		fprintf(r->page.f, "(%zu more with less time; --json has them all)\n",
			n - r->o->limit);
	grid__free(g);
	free(edges);
}

void report__put_span(struct recording *r, uint32_t span)
{
	bool *hidden = malloc(r->page.rows.n * sizeof(*hidden));
	const struct span_row *row = &r->page.rows.rows[span - 1];
	static const char *const headings[ROW_CLASSES] = {"span", "instant: its intervals",
							  "value"};

	for (size_t i = 0; hidden && i < r->page.rows.n; i++)
		hidden[i] = i != span - 1;
	r->page.hidden = hidden;
	r->page.nhidden = hidden ? r->page.rows.n : 0;
	page__spans(&r->page, row->class, figures, COUNT_OF(figures), headings[row->class]);
	if (!page__row_alive(row))
		fputs("\nit never happened\n", r->page.f);
	put_edges(r, span, true);
	put_edges(r, span, false);
	r->page.histogram_rows = HISTOGRAM_ROWS;
	if (row->in_hist)
		page__histogram(&r->page, row);
	report__put_over_time(r, span);
	r->page.hidden = NULL;
	r->page.nhidden = 0;
	free(hidden);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report_held.c - how much of what happened a recording holds: the file itself, spans that are not in
 * it whole, with the kernel's figures for those, losses over time, spans that never ended.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "out/grid.h"
#include "out/report_impl.h"
#include "out/text.h"

#define SPARK_COLUMNS 40
#define OPEN_ROWS     10

static const enum span_field kernel_columns[] = {SF_NAME, SF_COUNT, SF_MIN,  SF_MEAN, SF_P50,
						 SF_P90,  SF_P99,   SF_P999, SF_MAX};

static bool held_whole(const struct an_span *s)
{
	return s->counted == UINT64_MAX || s->held >= s->counted;
}

/* Why the file holds less than was counted. */
static void put_missing(const struct recording *r)
{
	const struct analysis *a = r->a;
	const struct trace_meta *m = &a->info->meta;
	uint64_t explained = a->held + a->lost + a->skipped + a->backwards;

	if (a->lost)
		fprintf(r->page.f, "; %" PRIu64 " lost (the ring or the disk was full)", a->lost);
	if (a->skipped) {
		fprintf(r->page.f, "; %" PRIu64 " left out on purpose", a->skipped);
		if (m->sample > 1)
			fprintf(r->page.f, " (--sample %" PRIu32 ")", m->sample);
		if (m->slow[0]) {
			fputs(" (--slow ", r->page.f);
			page__text(&r->page, m->slow);
			fputc(')', r->page.f);
		}
	}
	if (a->backwards)
		fprintf(r->page.f, "; %" PRIu64 " damaged", a->backwards);
	if (explained < a->counted)
		fprintf(r->page.f, "; %" PRIu64 " not accounted for", a->counted - explained);
	fputc('\n', r->page.f);
}

static void put_share_held(const struct recording *r)
{
	const struct analysis *a = r->a;
	char buf[UNIT_TEXT];

	if (a->counted == UINT64_MAX)
		fprintf(r->page.f, "it holds %" PRIu64 " spans; how many there were is not known\n",
			a->held);
	else if (a->held >= a->counted)
		fprintf(r->page.f, "it holds every span that was counted: %" PRIu64 "\n", a->held);
	else {
		fprintf(r->page.f, "it holds %s of the spans: %" PRIu64 " of %" PRIu64,
			unit__share(buf, (double)a->held / (double)a->counted), a->held,
			a->counted);
		put_missing(r);
	}
}

void report__put_file(const struct recording *r)
{
	const struct trace_info *info = r->a->info;
	const struct trace_meta *m = &info->meta;
	time_t at = (time_t)(m->realtime_ns / 1000000000u);
	char buf[UNIT_TEXT], when[40] = "";
	struct tm tm;

	page__text(&r->page, r->o->path);
	fprintf(r->page.f, "  %s", unit__bytes(buf, info->file_bytes));
	if (m->realtime_ns && gmtime_r(&at, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm))
		fprintf(r->page.f, ", recorded %s", when);
	if (m->hostname[0]) {
		fputs(" on ", r->page.f);
		page__text(&r->page, m->hostname);
	}
	fputs(" by qbpf ", r->page.f);
	page__text(&r->page, m->qbpf_version);
	if (m->command[0]) {
		fputs(": ", r->page.f);
		page__text(&r->page, m->command);
	}
	fputc('\n', r->page.f);
	put_share_held(r);
	if (!info->clean)
		fprintf(r->page.f,
			"note: the recording did not end cleanly; the file was read up to its last "
			"whole "
			"block, at byte %" PRIu64 "\n",
			info->cut_at);
	if (r->a->backwards)
		fprintf(r->page.f,
			"note: %" PRIu64
			" spans end before they begin: the file is damaged there; they are "
			"in no figure\n",
			r->a->backwards);
	if (r->a->unknown)
		fprintf(r->page.f,
			"note: %" PRIu64
			" events are of spans or threads that the file does not explain; "
			"they are in no figure\n",
			r->a->unknown);
	if (info->unknown_blocks)
		fprintf(r->page.f,
			"note: %" PRIu64 " blocks are of types that this qbpf does not know\n",
			info->unknown_blocks);
	if (!r->a->exact)
		fputs("note: some distributions had too many values to be kept exactly; their "
		      "percentiles are within 0.025 %\n",
		      r->page.f);
}

/* The kernel's figures for spans of which the file lacks some. */
static void put_kernel(const struct recording *r)
{
	struct page k;
	bool *hidden = calloc(r->a->info->nspans + 1, sizeof(*hidden));

	for (size_t i = 0; hidden && i < r->a->info->nspans; i++)
		hidden[i] = held_whole(&r->a->spans[i]);
	if (!hidden || page__open(&k, r->page.f, r->a->kernel, r->page.width)) {
		free(hidden);
		return;
	}
	k.hidden = hidden;
	k.nhidden = r->a->info->nspans;
	k.most_spans = r->page.most_spans;
	page__spans(&k, ROW_SPAN, kernel_columns, COUNT_OF(kernel_columns),
		    "all of them, as the kernel counted");
	page__spans(&k, ROW_VALUE, kernel_columns, COUNT_OF(kernel_columns),
		    "all values, as the kernel counted");
	page__spans(&k, ROW_INSTANT, kernel_columns, COUNT_OF(kernel_columns),
		    "all intervals, as the kernel counted");
	fputs("(these percentiles are within 1.6 %; the other tables are about what the file "
	      "holds)\n",
	      r->page.f);
	page__close(&k);
	free(hidden);
}

void report__put_held(const struct recording *r)
{
	static const char *const headings[] = {
	    "not all in the file", "counted", "in the file", "share", "lost", "left out"};
	const struct analysis *a = r->a;
	struct grid *g = grid__new(COUNT_OF(headings));
	size_t shown = 0, all = 0;
	char buf[UNIT_TEXT];

	for (size_t c = 0; g && c < COUNT_OF(headings); c++)
		grid__put(g, c, headings[c]);
	for (size_t i = 0; g && i < r->page.rows.n; i++) {
		const struct an_span *s = &a->spans[r->page.order[i]->index];

		if (held_whole(s))
			continue;
		all++;
		if (r->o->limit && shown == r->o->limit)
			continue;
		shown++;
		grid__put(g, 0, s->def->name);
		grid__put(g, 1, unit__count(buf, s->counted));
		grid__put(g, 2, unit__count(buf, s->held));
		grid__put(g, 3, unit__share(buf, (double)s->held / (double)s->counted));
		grid__put(g, 4, unit__count(buf, s->lost));
		grid__put(g, 5, unit__count(buf, s->skipped));
	}
	if (g && shown) {
		fputc('\n', r->page.f);
		grid__write(g, r->page.f, r->page.width, r->page.utf8);
	}
	if (shown < all)
		fprintf(r->page.f, "(%zu more; --json has them all)\n", all - shown);
	grid__free(g);
	if (all && a->kernel)
		put_kernel(r);
}

/* Numbers as a line of little columns. */
static void put_spark(const struct recording *r, const uint64_t *v, size_t n)
{
	static const char ascii[] = " .:-=+*#@";
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	for (size_t i = 0; i < n; i++) {
		/* 0: nothing; 1 .. 8: eighths of the greatest, rounded up */
		unsigned int level =
		    most ? (unsigned int)(((unsigned __int128)v[i] * 8 + most - 1) / most) : 0;

		if (!level)
			fputc(' ', r->page.f);
		else if (r->page.utf8)
			fprintf(r->page.f, "\xe2\x96%c", 0x80 + level); /* U+2581 .. U+2588 */
		else
			fputc(ascii[level], r->page.f);
	}
}

void report__put_losses(const struct recording *r)
{
	const struct analysis *a = r->a;
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < r->page.rows.n; i++) {
		size_t span = r->page.order[i]->index;
		uint64_t lost[SPARK_COLUMNS], sum = 0;
		char *name, *fit;

		report__losses(a, span + 1, lost, SPARK_COLUMNS);
		for (size_t k = 0; k < SPARK_COLUMNS; k++)
			sum += lost[k];
		if (!sum)
			continue;
		if (r->o->limit && shown == r->o->limit) {
			left++;
			continue;
		}
		if (!shown++)
			fprintf(r->page.f, "\nlost to the file, from the start to the end of the "
					   "recording\n");
		name = text__printable(a->info->spans[span].name, r->page.utf8);
		fit = name ? text__fit_name(name, 40, r->page.utf8) : NULL;
		fputs("  ", r->page.f);
		text__pad(r->page.f, fit ? fit : "?", 40, false, r->page.utf8);
		fprintf(r->page.f, " %10" PRIu64 "  |", sum);
		put_spark(r, lost, SPARK_COLUMNS);
		fputs("|\n", r->page.f);
		free(name);
		free(fit);
	}
	if (left)
		fprintf(r->page.f, "  (%zu more)\n", left);
}

void report__put_open(const struct recording *r)
{
	const struct analysis *a = r->a;
	uint64_t all = 0;
	size_t n = a->nopen < OPEN_ROWS ? a->nopen : OPEN_ROWS;

	for (size_t i = 0; i < a->info->nspans; i++)
		all += a->spans[i].open;
	if (n)
		fputs("\nopen: spans that had no end, in no figure\n", r->page.f);
	for (size_t i = 0; i < n; i++) {
		const struct event *ev = &a->open[i];
		const struct trace_thread *t = &a->info->threads[ev->thread];
		char buf[UNIT_TEXT];

		fputs("  ", r->page.f);
		page__text(&r->page, report__span_name(a, ev->span));
		fprintf(r->page.f, " for %s, thread ", unit__time(buf, ev->end_ns - ev->start_ns));
		page__text(&r->page, t->name);
		fprintf(r->page.f, " (tid %" PRIu32 ")\n", t->tid);
	}
	if (all > n)
		fprintf(r->page.f, "  (%" PRIu64 " more, shorter or of other threads)\n", all - n);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* page.c - the sections that plain reports are made of; see page.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/rows.h"
#include "out/grid.h"
#include "out/page.h"
#include "out/text.h"

#define WIDTH_MOST     400   /* without a terminal: what no name is cut for */
#define PAGE_WIDTH     100   /* the same, of bars */
#define TREE_MIN_SHARE 0.001 /* below it a node is left out, once there are many */
#define TREE_ROWS      200
#define HISTOGRAM_ROWS 20
#define NAMES_SHOWN    6 /* of a group of sites or spans with one thing to say */

void page__text(const struct page *r, const char *s)
{
	char *clean = text__printable(s ? s : "?", r->utf8);

	fputs(clean ? clean : "?", r->f);
	free(clean);
}

void page__line(const struct page *r, unsigned int indent, const char *fmt, ...)
{
	char *text, *clean = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text)
		clean = text__printable(text, r->utf8);
	if (clean)
		text__wrap(r->f, clean, r->width, indent, r->utf8);
	free(clean);
	free(text);
}

void page__target(const struct page *r)
{
	const struct snapshot *s = r->s;
	char buf[UNIT_TEXT];

	page__text(r, s->comm ? s->comm : "target");
	for (size_t i = 0; i < s->npids && i < 4; i++)
		fprintf(r->f, "%s%d", i ? ", " : s->npids > 1 ? " (pids " : " (pid ", s->pids[i]);
	if (s->npids)
		fprintf(r->f, "%s)", s->npids > 4 ? ", ..." : "");
	fprintf(r->f, "  %s",
		unit__time(buf, s->now_ns > s->start_ns ? s->now_ns - s->start_ns : 0));
	if (s->ended)
		fputs(", ended", r->f);
	if (s->kernel) {
		fputs("  Linux ", r->f);
		page__text(r, s->kernel);
	}
	if (s->cpu) {
		fputs("  ", r->f);
		page__text(r, s->cpu);
		if (s->cpus)
			fprintf(r->f, " x %u", s->cpus);
	}
	fputc('\n', r->f);
}

void page__sites(const struct page *r, const struct snapshot *s)
{
	double overhead = snapshot__overhead_pct(s);
	char buf[UNIT_TEXT];

	fprintf(r->f, "%" PRIu64 " %s armed", s->armed, s->armed == 1 ? "site" : "sites");
	if (s->relocated)
		fprintf(r->f, " (%" PRIu64 " relocated)", s->relocated);
	if (s->nrefused)
		fprintf(r->f, ", %zu refused", s->nrefused);
	if (s->nfailed)
		fprintf(r->f, ", %zu failed", s->nfailed);
	fprintf(r->f, "; %s hits/s", unit__rate(buf, snapshot__hits_per_s(s)));
	if (overhead >= 0)
		fprintf(r->f, ", %s cost %s of one CPU\n",
			s->gpu ? "probes (not the agent)" : "tracing",
			unit__share(buf, overhead / 100));
	else
		fputs(", cost not measured\n", r->f);
}

void page__names(const struct page *r, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
		fputs(i ? ", " : "", r->f);
		page__text(r, names[i]);
	}
	if (n > NAMES_SHOWN)
		fprintf(r->f, " and %zu more", n - NAMES_SHOWN);
	fputc('\n', r->f);
}

bool page__row_alive(const struct span_row *r)
{
	return r->count || r->span->open || r->span->abandoned || r->span->orphan_ends ||
	       snap_span__lost(r->span);
}

/* What may give way where there is little room, the first one first. */
static void spare_span_columns(struct grid *g, const enum span_field *columns, size_t n)
{
	static const enum span_field spare[] = {SF_RATE,  SF_P999, SF_P90, SF_MIN,
						SF_SHARE, SF_MEAN, SF_SUM, SF_P50};

	for (size_t i = 0; i < COUNT_OF(spare); i++)
		for (unsigned char c = 1; c < n; c++)
			if (columns[c] == spare[i])
				grid__spare(g, &c, 1);
}

static void spare_node_columns(struct grid *g, const enum node_field *columns, size_t n)
{
	static const enum node_field spare[] = {NF_MIN, NF_P99, NF_MEAN, NF_MAX, NF_SHARE};

	for (size_t i = 0; i < COUNT_OF(spare); i++)
		for (unsigned char c = 1; c < n; c++)
			if (columns[c] == spare[i])
				grid__spare(g, &c, 1);
}

void page__spans(struct page *r, enum row_class class, const enum span_field *columns,
		 size_t ncolumns, const char *heading)
{
	struct grid *g = grid__new(ncolumns);
	size_t shown = 0, left = 0;

	for (size_t c = 0; g && c < ncolumns; c++)
		grid__put(g, c, c ? span_fields[columns[c]].heading : heading);
	spare_span_columns(g, columns, ncolumns);
	for (size_t i = 0; g && i < r->rows.n; i++) {
		const struct span_row *row = r->order[i];
		struct field_value v;
		char buf[UNIT_TEXT];

		if (row->class != class || !page__row_alive(row) ||
		    (row->index < r->nhidden && r->hidden[row->index]))
			continue;
		if (r->most_spans && shown == r->most_spans) {
			left++;
			continue;
		}
		shown++;
		for (size_t c = 0; c < ncolumns; c++) {
			const struct field *f = &span_fields[columns[c]];

			span_field__get(row, columns[c], &v);
			grid__put(g, c, field__format(f, &v, buf));
			r->floor_shown |= v.below_floor && v.state == FIELD_KNOWN;
		}
	}
	if (g && shown) {
		fputc('\n', r->f);
		grid__write(g, r->f, r->width, r->utf8);
	}
	if (left)
		fprintf(r->f, "(%zu more with less time; --json has them all)\n", left);
	grid__free(g);
}

void page__idle_spans(const struct page *r)
{
	const char **names = calloc(r->rows.n + 1, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; names && i < r->rows.n; i++)
		if (!page__row_alive(&r->rows.rows[i]) && !span_row__refused(&r->rows.rows[i]))
			names[n++] = r->rows.rows[i].span->name;
	if (n) {
		fprintf(r->f, "\nno hit yet: ");
		page__names(r, names, n);
	}
	free(names);
}

/* For the words that do not explain themselves. */
static const char *unclean_means(enum span_field f)
{
	switch (f) {
	case SF_ABANDONED:
		return "begun, but its end was never reached: the thread ended, an exception or\n"
		       "   longjmp left it, or it was begun again";
	case SF_ORPHAN_ENDS:
		return "ended, but begun before qbpf was attached";
	default:
		return NULL;
	}
}

void page__unclean(const struct page *r)
{
	static const enum span_field unclean[] = {
	    SF_OPEN,	     SF_ABANDONED,    SF_ORPHAN_ENDS, SF_NODE_OVERFLOW,
	    SF_KEY_RESTARTS, SF_KEY_TIMEOUTS, SF_NAN};
	bool titled = false, seen[COUNT_OF(unclean)] = {false};

	for (size_t i = 0; i < r->rows.n; i++) {
		const struct span_row *row = r->order[i];
		bool named = false;

		for (size_t u = 0; u < COUNT_OF(unclean); u++) {
			struct field_value v;

			span_field__get(row, unclean[u], &v);
			if (v.state != FIELD_KNOWN || v.num == 0)
				continue;
			fputs(titled ? "" : "\nnot in the figures above\n", r->f);
			titled = true;
			fputs(named ? ", " : "  ", r->f);
			if (!named) {
				page__text(r, row->span->name);
				fputs(": ", r->f);
			}
			named = seen[u] = true;
			fprintf(r->f, "%.0Lf %s", v.num, span_fields[unclean[u]].heading);
		}
		if (named)
			fputc('\n', r->f);
	}
	for (size_t u = 0; u < COUNT_OF(unclean); u++)
		if (seen[u] && unclean_means(unclean[u]))
			fprintf(r->f, "  (%s: %s)\n", span_fields[unclean[u]].heading,
				unclean_means(unclean[u]));
}

void page__tree(struct page *r, const struct tree *t, const enum node_field *columns,
		size_t ncolumns)
{
	struct grid *g = grid__new(ncolumns);
	size_t all = 0, shown = 0;

	for (const struct tree_node *n = tree_node__next(tree__root(t)); n; n = tree_node__next(n))
		all++;
	for (size_t c = 0; g && c < ncolumns; c++)
		grid__put(g, c, node_fields[columns[c]].heading);
	spare_node_columns(g, columns, ncolumns);
	for (const struct tree_node *n = tree_node__next(tree__root(t)); g && n;
	     n = tree_node__next(n)) {
		struct field_value v;
		char buf[UNIT_TEXT], prefix[TREE_PREFIX];

		if (all > r->most_nodes && (n->share < TREE_MIN_SHARE || shown >= r->most_nodes))
			continue;
		shown++;
		grid__put_tree(g, tree_prefix(prefix, n, r->utf8), n->name);
		for (size_t c = 1; c < ncolumns; c++) {
			node_field__get(n, columns[c], &v);
			grid__put(g, c, field__format(&node_fields[columns[c]], &v, buf));
			r->floor_shown |= v.below_floor && v.state == FIELD_KNOWN;
		}
	}
	if (g && shown) {
		fputc('\n', r->f);
		grid__write(g, r->f, r->width, r->utf8);
	}
	if (shown < all)
		fprintf(r->f, "(%zu more nodes with little time; --json has them all)\n",
			all - shown);
	grid__free(g);
}

static void format_bound(const struct span_row *row, long double v, char buf[UNIT_TEXT])
{
	if (row->class == ROW_VALUE)
		unit__value(buf, v);
	else
		unit__time(buf, v);
}

void page__histogram(const struct page *r, const struct span_row *row)
{
	static const char *const of[ROW_CLASSES] = {"span", "interval", "value"};
	struct hist_row *rows;
	size_t n = hist_rows__make(row->span->hist, r->histogram_rows, &rows);
	uint64_t most = 0;
	char *bar = malloc(4 * r->bar_width + 5);

	for (size_t i = 0; i < n; i++)
		most = rows[i].n > most ? rows[i].n : most;
	fputc('\n', r->f);
	page__text(r, row->span->name);
	fprintf(r->f, ": %" PRIu64 " %s%s\n", row->in_hist, of[row->class],
		row->in_hist == 1 ? "" : "s");
	for (size_t i = 0; bar && i < n; i++) {
		char lo[UNIT_TEXT], hi[UNIT_TEXT], share[UNIT_TEXT];

		if (rows[i].gap) {
			fprintf(r->f, "%12s\n", "...");
			continue;
		}
		format_bound(row, rows[i].lo, lo);
		format_bound(row, rows[i].hi, hi);
		text__bar(bar, (double)rows[i].n / most, r->bar_width, r->utf8);
		unit__share(share, (double)rows[i].n / row->in_hist);
		fprintf(r->f, "%8s .. %-8s %10" PRIu64, lo, hi, rows[i].n);
		if (rows[i].n)
			fprintf(r->f, " %7s  %s", share, bar);
		fputc('\n', r->f);
	}
	free(bar);
	free(rows);
}

static int compare_notes(const void *pa, const void *pb)
{
	const struct snap_site_note *a = *(const struct snap_site_note *const *)pa;
	const struct snap_site_note *b = *(const struct snap_site_note *const *)pb;
	int c = strcmp(a->reason ? a->reason : "", b->reason ? b->reason : "");

	return c ? c : a < b ? -1 : a > b;
}

/* Sites grouped by reason, so that 1,000 sites of one kind are one line. */
static void put_site_notes(const struct page *r, const struct snap_site_note *notes, size_t n,
			   const char *word)
{
	const struct snap_site_note **sorted = calloc(n + 1, sizeof(*sorted));
	const char **names = calloc(n + 1, sizeof(*names));

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = &notes[i];
	if (sorted)
		qsort(sorted, n, sizeof(*sorted), compare_notes);
	for (size_t i = 0, j; sorted && names && i < n; i = j) {
		const char *reason = sorted[i]->reason ? sorted[i]->reason : "unknown";

		for (j = i; j < n; j++) {
			if (strcmp(sorted[j]->reason ? sorted[j]->reason : "unknown", reason))
				break;
			names[j - i] = sorted[j]->site;
		}
		fprintf(r->f, "%s: ", word);
		page__text(r, reason);
		fputs(j - i == 1 ? ": " : ":\n    ", r->f);
		page__names(r, names, j - i);
	}
	free(sorted);
	free(names);
}

void page__probes(const struct page *r)
{
	const struct snapshot *s = r->s;

	if (s->nrefused || s->nfailed || s->nnotes)
		fputc('\n', r->f);
	put_site_notes(r, s->refused, s->nrefused, "refused");
	put_site_notes(r, s->failed, s->nfailed, "failed");
	for (size_t i = 0; i < s->nnotes; i++) {
		fputs("note: ", r->f);
		page__text(r, s->notes[i]);
		fputc('\n', r->f);
	}
}

void page__losses(const struct page *r)
{
	static const char *const words[SNAP_LOSSES] = {
	    [SNAP_LOSS_DEPTH] = "too deep (64 open spans)",
	    [SNAP_LOSS_HIST] = "histogram table full",
	    [SNAP_LOSS_STORAGE] = "no memory for the thread",
	    [SNAP_LOSS_UNREADABLE] = "argument unreadable",
	    [SNAP_LOSS_KEYS] = "too many open keys",
	    [SNAP_LOSS_MUTED] = "return not delivered by the kernel (over 64 nested)",
	};
	uint64_t total = snapshot__lost(r->s);

	if (!total)
		return;
	fprintf(r->f, "\nlost: %" PRIu64 " events\n", total);
	for (size_t i = 0; i < r->rows.n; i++) {
		const struct snap_span *span = r->order[i]->span;

		if (!snap_span__lost(span))
			continue;
		fputs("  ", r->f);
		page__text(r, span->name);
		for (int why = 0, put = 0; why < SNAP_LOSSES; why++) {
			uint64_t n = snap_span__lost_by(span, why);

			if (n)
				fprintf(r->f, "%s%" PRIu64 " %s", put++ ? ", " : ": ", n,
					words[why]);
		}
		fputc('\n', r->f);
	}
}

void page__price(const struct page *r)
{
	const struct snapshot *s = r->s;
	char buf[UNIT_TEXT];
	bool any = false;

	for (int c = 0; c < PRICE_N; c++) {
		if (!s->price_ns[c])
			continue;
		fprintf(r->f, "%s%s %s%s",
			any ? ", " : "\nprice of a hit here: ", price_class_name(c),
			c == PRICE_URETPROBE ? "+" : "", unit__time(buf, s->price_ns[c]));
		any = true;
	}
	if (s->map_bytes)
		fprintf(r->f, "%s%s", any ? "; kernel memory " : "\nkernel memory ",
			unit__bytes(buf, s->map_bytes));
	if (any || s->map_bytes)
		fputc('\n', r->f);
}

/* The floors of the spans, by what they are: equal ones once. */
void page__floor(const struct page *r)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	char a[UNIT_TEXT], b[UNIT_TEXT];

	for (size_t i = 0; i < r->rows.n; i++) {
		uint64_t ns = r->rows.rows[i].span->floor_ns;

		if (!ns || r->rows.rows[i].class != ROW_SPAN)
			continue;
		lo = ns < lo ? ns : lo;
		hi = ns > hi ? ns : hi;
	}
	unit__time(a, lo);
	unit__time(b, hi);
	fprintf(r->f, "~ below the measuring floor: an empty span reads %s%s%s here\n", a,
		lo < hi ? " .. " : "", lo < hi ? b : "");
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct span_row *a = *(struct span_row *const *)pa,
			      *b = *(struct span_row *const *)pb;
	long double ta = a->class == ROW_SPAN ? a->sum : 0, tb = b->class == ROW_SPAN ? b->sum : 0;

	if (ta != tb)
		return ta < tb ? 1 : -1;
	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return a->index < b->index ? -1 : a->index > b->index;
}

int page__open(struct page *r, FILE *f, const struct snapshot *s, unsigned int width)
{
	unsigned int bars = width ? width : PAGE_WIDTH;

	*r = (struct page){.f = f, .s = s, .width = width ? width : WIDTH_MOST};
	r->most_nodes = TREE_ROWS;
	r->histogram_rows = HISTOGRAM_ROWS;
	r->bar_width = bars > 62 ? bars - 42 : 20;
	r->utf8 = text__utf8();
	r->tree = tree__new(s);
	r->order = calloc(s->nspans + 1, sizeof(*r->order));
	if (!r->tree || !r->order || span_rows__make(&r->rows, s, r->tree)) {
		page__close(r);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->rows.n; i++)
		r->order[i] = &r->rows.rows[i];
	qsort(r->order, r->rows.n, sizeof(*r->order), compare_rows);
	return 0;
}

void page__close(struct page *r)
{
	span_rows__clear(&r->rows);
	free(r->order);
	tree__free(r->tree);
	r->order = NULL;
	r->tree = NULL;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* diff.c - what diff found, as a table and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/diff.h"
#include "out/figure.h"
#include "out/text.h"

enum column {
	COL_NAME,
	COL_OLD,
	COL_OLD_CI,
	COL_NEW,
	COL_NEW_CI,
	COL_CHANGE,
	COL_CI,
	COL_VERDICT,
	COLS
};

/*
 * Rows are blocks of lines below a heading that is never cut; columns are aligned over all of them,
 * so everything is laid out twice: first to learn how wide it is, then to be written.
 */
struct layout {
	FILE *f; /* NULL: only learn */
	const struct diff *d;
	bool all, utf8;
	int width[COLS];
};

static void put_side(FILE *f, const char *what, const struct side *s, bool utf8)
{
	char *path = text__printable(s->path, utf8);
	uint64_t n = 0;

	for (size_t i = 0; i < s->nspans; i++)
		n += s->items[i].count;
	fprintf(f, "%s  %s: %s, %.5gs, %zu spans seen %" PRIu64 " times\n", what, path ? path : "?",
		s->trace ? "trace" : "summary", s->seconds, s->nspans, n);
	free(path);
}

static void put_head(FILE *f, const struct diff *d, bool utf8)
{
	put_side(f, "old", d->a, utf8);
	put_side(f, "new", d->b, utf8);
	fprintf(
	    f,
	    "intervals: %g %%; of changes: for all %zu figures together; changes below %g %% are "
	    "the same\nsums are per second of recording\n",
	    d->opts.confidence * 100, d->compared, d->opts.min_change * 100);
	if (!d->a->trace || !d->b->trace)
		fputs("a summary holds no times: its intervals take spans to be independent\n", f);
}

/* What says little beside its neighbours is shown when it changed. */
static bool is_minor(struct figure f)
{
	return f.kind == FIG_MAX ||
	       (f.kind == FIG_QUANTILE && (f.q == 0.9 || f.q == side_quantiles[4]));
}

static void put_line(struct layout *l, char cells[COLS][INTERVAL_TEXT])
{
	int last = COLS - 1;

	for (int c = 0; c < COLS && !l->f; c++) {
		int n = strlen(cells[c]);

		l->width[c] = n > l->width[c] ? n : l->width[c];
	}
	if (!l->f)
		return;
	while (last > 0 && !cells[last][0])
		last--;
	fprintf(l->f, "  %-*s", l->width[0], cells[0]);
	for (int c = 1; c <= last; c++) {
		bool left = c == COL_OLD_CI || c == COL_NEW_CI || c == COL_VERDICT;

		fprintf(l->f, "  %*s",
			left && c < last ? -l->width[c]
			: left		 ? 0
					 : l->width[c],
			cells[c]);
	}
	fputc('\n', l->f);
}

static void put_figure(struct layout *l, const struct diff_row *r, int k)
{
	const struct diff_figure *fig = &r->figures[k];
	enum figure_dim dim = figure__dim(diff_figures[k], r->class);
	char cells[COLS][INTERVAL_TEXT] = {""}, lo[FIGURE_TEXT], hi[FIGURE_TEXT];

	if (fig->a.state != EST_KNOWN && fig->b.state != EST_KNOWN)
		return;
	if (!l->all && is_minor(diff_figures[k]) && fig->verdict <= DIFF_TOO_FEW)
		return;
	figure__name(cells[COL_NAME], diff_figures[k]);
	if (r->a != SIDE_NONE)
		estimate__text(cells[COL_OLD], dim, &fig->a);
	interval__text(cells[COL_OLD_CI], dim, &fig->a);
	if (r->b != SIDE_NONE)
		estimate__text(cells[COL_NEW], dim, &fig->b);
	interval__text(cells[COL_NEW_CI], dim, &fig->b);
	if (fig->has_change)
		change__text(cells[COL_CHANGE], fig->change);
	if (fig->has_change && fig->has_interval)
		snprintf(cells[COL_CI], INTERVAL_TEXT, "[%s .. %s]", change__text(lo, fig->ci.lo),
			 change__text(hi, fig->ci.hi));
	if (fig->verdict != DIFF_NONE)
		snprintf(cells[COL_VERDICT], INTERVAL_TEXT, "%s", diff_verdict__name(fig->verdict));
	put_line(l, cells);
}

/* "strategy:on_tick: slower, +14.3ms/s" */
static int put_heading(const struct layout *l, const struct diff_row *r)
{
	char time[FIGURE_TEXT], *path, *name = NULL;
	size_t item;
	const struct side *s = diff_row__side(l->d, r, &item);

	path = side__path(s, item);
	name = path ? text__printable(path, l->utf8) : NULL;
	free(path);
	if (!name)
		return -ENOMEM;
	fprintf(l->f, "%s: %s", name,
		r->verdict == DIFF_NONE ? "no verdict" : diff_verdict__name(r->verdict));
	if (r->explains != 0)
		fprintf(l->f, ", %s%s/s", r->explains > 0 ? "+" : "-",
			figure__text(time, DIM_TIME, fabs(r->explains)));
	fputc('\n', l->f);
	free(name);
	return 0;
}

/* Rows [from, to) that are to be shown. */
static int put_rows(struct layout *l, size_t from, size_t to, const char *what)
{
	size_t shown = 0;
	int err = 0;

	for (size_t i = from; i < to && !err; i++) {
		const struct diff_row *r = &l->d->rows[i];

		if (!l->all && !r->changed)
			continue;
		shown++;
		if (l->f)
			err = put_heading(l, r);
		for (int k = 0; k < DIFF_FIGURES; k++)
			put_figure(l, r, k);
	}
	if (l->f && shown < to - from)
		fprintf(l->f, "%zu %s%s without change\n", to - from - shown, shown ? "other " : "",
			what);
	return err;
}

static int put_all(struct layout *l)
{
	char heads[COLS][INTERVAL_TEXT] = {"", "old", "", "new", "", "change", "", "verdict"};
	const struct diff *d = l->d;
	bool any = false;
	int err;

	for (size_t i = 0; i < d->n; i++)
		any |= l->all || d->rows[i].changed;
	if (any)
		put_line(l, heads);
	err = put_rows(l, 0, d->nspans, "spans");
	if (d->n == d->nspans || err)
		return err;
	if (l->f)
		fputs("\nby place in the call tree\n", l->f);
	return put_rows(l, d->nspans, d->n, "places");
}

int diff__write(FILE *f, const struct diff *d, bool all, bool utf8)
{
	struct layout l = {.d = d, .all = all, .utf8 = utf8};
	int err;

	put_all(&l);
	put_head(f, d, utf8);
	fputc('\n', f);
	l.f = f;
	err = put_all(&l);
	if (!err && (fflush(f) || ferror(f)))
		err = errno ? -errno : -EIO;
	return err;
}

/* The names of a verdict in the document have no blanks. */
static const char *verdict_key(enum diff_verdict v)
{
	return v == DIFF_NONE ? NULL : v == DIFF_TOO_FEW ? "too_few" : diff_verdict__name(v);
}

static bool is_absent(const struct estimate *e)
{
	return e->state == EST_ABSENT || e->state == EST_UNKNOWN;
}

static json_t *figure_json(struct json_doc *d, const struct diff_figure *fig, enum figure_dim dim)
{
	json_t *o = json_object();

	json_put_text(d, o, "unit", figure__unit(dim));
	json_put(d, o, "old", estimate__json(d, &fig->a));
	json_put(d, o, "new", estimate__json(d, &fig->b));
	if (fig->has_change)
		json_put(d, o, "change", figure__json(fig->change));
	if (fig->has_change && fig->has_interval)
		json_put(d, o, "change_interval", interval__json(&fig->ci));
	json_put_text(d, o, "verdict", verdict_key(fig->verdict));
	return o;
}

static json_t *row_json(struct json_doc *d, const struct diff *diff, const struct diff_row *r)
{
	json_t *o = json_object(), *figures = json_object(), *path, *reversed;
	char name[FIGURE_NAME];
	size_t item;
	const struct side *s = diff_row__side(diff, r, &item);

	json_put_text(d, o, "name", s->items[item].name);
	if (s->items[item].node) {
		path = json_array();
		reversed = json_array();
		for (size_t i = item; i != SIDE_NONE; i = s->items[i].parent)
			json_append_text(d, reversed, s->items[i].name);
		for (size_t i = json_array_size(reversed); i-- > 0;)
			json_append(d, path, json_incref(json_array_get(reversed, i)));
		json_decref(reversed);
		json_put(d, o, "path", path);
	}
	json_put_text(d, o, "verdict", verdict_key(r->verdict));
	json_put(d, o, "changed", json_boolean(r->changed));
	json_put(d, o, "explains_ns_per_s", json_real(r->explains));
	for (int k = 0; k < DIFF_FIGURES; k++) {
		const struct diff_figure *fig = &r->figures[k];

		if (is_absent(&fig->a) && is_absent(&fig->b))
			continue;
		json_put(d, figures, figure__name(name, diff_figures[k]),
			 figure_json(d, fig, figure__dim(diff_figures[k], r->class)));
	}
	json_put(d, o, "figures", figures);
	return o;
}

static json_t *side_json(struct json_doc *d, const struct side *s)
{
	json_t *o = json_object();

	json_put_text(d, o, "path", s->path);
	json_put_text(d, o, "kind", s->trace ? "trace" : "summary");
	json_put(d, o, "duration_ns", json_count((uint64_t)llround(s->seconds * 1e9)));
	if (s->lost != SIDE_UNKNOWN)
		json_put(d, o, "lost", json_count(s->lost));
	json_put(d, o, "clean", json_boolean(s->clean));
	return o;
}

int diff__write_json(FILE *f, const struct diff *diff)
{
	struct json_doc d = {.root = json_object()};
	json_t *spans = json_array(), *tree = json_array();

	json_put(&d, d.root, "schema", json_string("qbpf.diff/1"));
	json_put(&d, d.root, "old", side_json(&d, diff->a));
	json_put(&d, d.root, "new", side_json(&d, diff->b));
	json_put(&d, d.root, "confidence", json_real(diff->opts.confidence));
	json_put(&d, d.root, "min_change", json_real(diff->opts.min_change));
	json_put(&d, d.root, "compared", json_count(diff->compared));
	for (size_t i = 0; i < diff->n; i++)
		json_append(&d, i < diff->nspans ? spans : tree,
			    row_json(&d, diff, &diff->rows[i]));
	json_put(&d, d.root, "spans", spans);
	json_put(&d, d.root, "tree", tree);
	return json_doc__write(&d, f, false);
}

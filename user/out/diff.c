/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* diff.c - what diff found, as a table and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "out/diff.h"
#include "out/figure.h"
#include "out/grid.h"
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

static void put_figure(struct grid *g, const struct diff_row *r, int k, bool all)
{
	const struct diff_figure *fig = &r->figures[k];
	enum figure_dim dim = figure__dim(diff_figures[k], r->class);
	char name[FIGURE_NAME], text[INTERVAL_TEXT], indented[FIGURE_NAME + 4];
	char lo[FIGURE_TEXT], hi[FIGURE_TEXT];

	if (fig->a.state != EST_KNOWN && fig->b.state != EST_KNOWN)
		return;
	if (!all && is_minor(diff_figures[k]) && fig->verdict <= DIFF_TOO_FEW)
		return;
	snprintf(indented, sizeof(indented), "  %s", figure__name(name, diff_figures[k]));
	grid__put(g, COL_NAME, indented);
	grid__put(g, COL_OLD, r->a == SIDE_NONE ? "" : estimate__text(text, dim, &fig->a));
	grid__put(g, COL_OLD_CI, interval__text(text, dim, &fig->a));
	grid__put(g, COL_NEW, r->b == SIDE_NONE ? "" : estimate__text(text, dim, &fig->b));
	grid__put(g, COL_NEW_CI, interval__text(text, dim, &fig->b));
	grid__put(g, COL_CHANGE, fig->has_change ? change__text(text, fig->change) : "");
	text[0] = '\0';
	if (fig->has_change && fig->has_interval)
		snprintf(text, sizeof(text), "[%s .. %s]", change__text(lo, fig->ci.lo),
			 change__text(hi, fig->ci.hi));
	grid__put(g, COL_CI, text);
	grid__put(g, COL_VERDICT,
		  fig->verdict == DIFF_NONE ? "" : diff_verdict__name(fig->verdict));
}

static int put_row(struct grid *g, const struct diff *d, const struct diff_row *r, bool all)
{
	char time[FIGURE_TEXT], text[FIGURE_TEXT + 4] = "";
	size_t item;
	const struct side *s = diff_row__side(d, r, &item);
	char *name = side__path(s, item);

	if (!name)
		return -ENOMEM;
	if (r->explains != 0)
		snprintf(text, sizeof(text), "%s%s/s", r->explains > 0 ? "+" : "-",
			 figure__text(time, DIM_TIME, fabs(r->explains)));
	grid__put(g, COL_NAME, name);
	for (int c = COL_OLD; c < COLS; c++)
		grid__put(g, c,
			  c == COL_CHANGE    ? text
			  : c == COL_VERDICT ? diff_verdict__name(r->verdict)
					     : "");
	for (int k = 0; k < DIFF_FIGURES; k++)
		put_figure(g, r, k, all);
	free(name);
	return 0;
}

/* Rows [from, to) that are to be shown; how many others there are. */
static int put_table(FILE *f, const struct diff *d, size_t from, size_t to, bool all,
		     unsigned int width, bool utf8)
{
	static const char *const heads[COLS] = {"", "old", "", "new", "", "change", "", "verdict"};
	struct grid *g = grid__new(COLS);
	size_t shown = 0;
	int err = g ? 0 : -ENOMEM;

	for (int c = 0; c < COLS && g; c++)
		grid__put(g, c, c ? heads[c] : from ? "place in the tree" : "span");
	for (size_t i = from; i < to && !err; i++) {
		if (!all && !d->rows[i].changed)
			continue;
		err = put_row(g, d, &d->rows[i], all);
		shown++;
	}
	fputc('\n', f);
	if (!err && shown)
		err = grid__write(g, f, width, utf8);
	if (!err && shown < to - from)
		fprintf(f, "%s%zu %s without change\n", shown ? "and " : "", to - from - shown,
			from ? "places in the tree" : "spans");
	grid__free(g);
	return err;
}

int diff__write(FILE *f, const struct diff *d, bool all, unsigned int width, bool utf8)
{
	int err;

	put_head(f, d, utf8);
	err = put_table(f, d, 0, d->nspans, all, width, utf8);
	if (!err && d->n > d->nspans)
		err = put_table(f, d, d->nspans, d->n, all, width, utf8);
	if (!err && (fflush(f) || ferror(f)))
		err = errno ? -errno : -EIO;
	return err;
}

/* The names of a verdict in the document have no blanks. */
static const char *verdict_key(enum diff_verdict v)
{
	return v == DIFF_NONE ? NULL : v == DIFF_TOO_FEW ? "too_few" : diff_verdict__name(v);
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

		if (fig->a.state == EST_ABSENT && fig->b.state == EST_ABSENT)
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* diff.c - what changed between two recordings. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff.h"
#include "model/match.h"

const struct figure diff_figures[DIFF_FIGURES] = {
    {FIG_COUNT, 0},	  {FIG_RATE, 0},	 {FIG_QUANTILE, 0.5},	 {FIG_QUANTILE, 0.9},
    {FIG_QUANTILE, 0.99}, {FIG_QUANTILE, 0.999}, {FIG_QUANTILE, 0.9999}, {FIG_MAX, 0},
    {FIG_MEAN, 0},	  {FIG_SELF_MEAN, 0},	 {FIG_TOTAL_RATE, 0},	 {FIG_SELF_RATE, 0},
};

const char *diff_verdict__name(enum diff_verdict v)
{
	static const char *const names[DIFF_VERDICTS] = {
	    [DIFF_NONE] = "-",	      [DIFF_SAME] = "same",	[DIFF_TOO_FEW] = "too few",
	    [DIFF_FASTER] = "faster", [DIFF_SLOWER] = "slower", [DIFF_LESS] = "less",
	    [DIFF_MORE] = "more",     [DIFF_NEW] = "new",	[DIFF_GONE] = "gone",
	};

	return names[v];
}

const struct side *diff_row__side(const struct diff *d, const struct diff_row *r, size_t *item)
{
	*item = r->b != SIDE_NONE ? r->b : r->a;
	return r->b != SIDE_NONE ? d->b : d->a;
}

static double total_rate(const struct side *s, uint32_t item)
{
	const struct side_item *it = item != SIDE_NONE ? &s->items[item] : NULL;

	return it && it->class == SIDE_TIME && s->seconds > 0 ? it->total / s->seconds : 0;
}

static void add_row(struct diff *d, uint32_t a, uint32_t b)
{
	struct diff_row *r = &d->rows[d->n];
	size_t item;

	r->a = a;
	r->b = b;
	d->n++;
	r->class = diff_row__side(d, r, &item)->items[item].class;
	r->explains = total_rate(d->b, b) - total_rate(d->a, a);
	if (a == SIDE_NONE || b == SIDE_NONE) {
		r->verdict = a == SIDE_NONE ? DIFF_NEW : DIFF_GONE;
		r->changed = true;
	}
}

/* Spans of b, then those that only a had; nodes likewise. */
static int make_rows(struct diff *d)
{
	uint32_t *match = side__match(d->a, d->b);
	bool *matched = calloc(d->a->n + 1, sizeof(*matched));

	d->rows = calloc(d->a->n + d->b->n + 1, sizeof(*d->rows));
	if (!match || !matched || !d->rows) {
		free(match);
		free(matched);
		return -ENOMEM;
	}
	for (size_t i = 0; i < d->b->n; i++)
		if (match[i] != SIDE_NONE)
			matched[match[i]] = true;
	for (int nodes = 0; nodes < 2; nodes++) {
		for (size_t i = nodes ? d->b->nspans : 0; i < (nodes ? d->b->n : d->b->nspans); i++)
			add_row(d, match[i], i);
		for (size_t i = nodes ? d->a->nspans : 0; i < (nodes ? d->a->n : d->a->nspans); i++)
			if (!matched[i])
				add_row(d, i, SIDE_NONE);
		if (!nodes)
			d->nspans = d->n;
	}
	free(match);
	free(matched);
	return 0;
}

static bool is_known(const struct estimate *e)
{
	return e->state == EST_KNOWN;
}

/* Each side's figures at the confidence that is shown. */
static void estimate_row(struct diff *d, struct diff_row *r, const struct confidence *c)
{
	for (int k = 0; k < DIFF_FIGURES; k++) {
		struct diff_figure *f = &r->figures[k];

		if (r->a != SIDE_NONE)
			side__estimate(d->a, r->a, diff_figures[k], c, &f->a);
		if (r->b != SIDE_NONE)
			side__estimate(d->b, r->b, diff_figures[k], c, &f->b);
		d->compared +=
		    is_known(&f->a) && is_known(&f->b) && f->a.has_interval && f->b.has_interval;
	}
}

static void set_change(struct diff_figure *f, struct figure what, const struct diff *d,
		       const struct diff_row *r, const struct confidence *all)
{
	struct estimate a, b;

	if (!is_known(&f->a) || !is_known(&f->b))
		return;
	f->has_change = f->a.value > 0 && f->b.value > 0;
	if (f->has_change)
		f->change = f->b.value / f->a.value - 1;
	if (!f->a.has_interval || !f->b.has_interval)
		return;
	side__estimate(d->a, r->a, what, all, &a);
	side__estimate(d->b, r->b, what, all, &b);
	/* From nothing to something is no ratio. */
	if (f->has_change)
		f->ci = change_interval(a.value, a.ci, b.value, b.ci);
	else
		f->ci = difference_interval(a.value, a.ci, b.value, b.ci);
	f->has_interval = true;
}

static enum diff_verdict judge(const struct diff_figure *f, bool speed, double min_change)
{
	double change = f->has_change ? f->change : f->b.value - f->a.value;
	bool told = f->ci.lo > 0 || f->ci.hi < 0;

	if (f->a.state == EST_TOO_FEW || f->b.state == EST_TOO_FEW)
		return DIFF_TOO_FEW;
	if (!f->has_interval)
		return DIFF_NONE;
	if (told && (!f->has_change || fabs(change) >= min_change)) {
		if (change > 0)
			return speed ? DIFF_SLOWER : DIFF_MORE;
		return speed ? DIFF_FASTER : DIFF_LESS;
	}
	if (!told &&
	    (f->has_change ? f->ci.lo < -0.5 || f->ci.hi > 1 : f->a.value != 0 || f->b.value != 0))
		return DIFF_TOO_FEW;
	return DIFF_SAME;
}

/* A figure that says how long one span takes; the others say how much there was. */
static bool is_speed(struct figure f, enum side_class class)
{
	return figure__dim(f, class) == DIM_TIME;
}

/* What is worse goes before what is better, so that no average hides it. */
static enum diff_verdict judge_row(const struct diff_row *r)
{
	bool seen[DIFF_VERDICTS] = {false};

	for (int k = 0; k < DIFF_FIGURES; k++) {
		bool amount = !is_speed(diff_figures[k], r->class);

		/* More of the same is no change of speed. */
		if (amount && r->class == SIDE_TIME)
			continue;
		if (diff_figures[k].kind == FIG_RATE && r->class == SIDE_VALUE)
			continue;
		seen[r->figures[k].verdict] = true;
	}
	for (int v = DIFF_SLOWER; v >= DIFF_FASTER; v--)
		if (seen[v])
			return v;
	if (seen[DIFF_MORE] || seen[DIFF_LESS])
		return seen[DIFF_MORE] ? DIFF_MORE : DIFF_LESS;
	return seen[DIFF_SAME] ? DIFF_SAME : seen[DIFF_TOO_FEW] ? DIFF_TOO_FEW : DIFF_NONE;
}

static void compare_row(struct diff *d, struct diff_row *r, const struct confidence *all)
{
	for (int k = 0; k < DIFF_FIGURES && r->verdict != DIFF_NEW && r->verdict != DIFF_GONE;
	     k++) {
		struct diff_figure *f = &r->figures[k];

		set_change(f, diff_figures[k], d, r, all);
		f->verdict = judge(f, is_speed(diff_figures[k], r->class), d->opts.min_change);
		r->changed |= f->verdict > DIFF_TOO_FEW;
	}
	if (r->verdict == DIFF_NONE)
		r->verdict = judge_row(r);
	d->counts[r->verdict]++;
}

static int by_explains(const void *pa, const void *pb)
{
	const struct diff_row *a = pa, *b = pb;
	double x = fabs(a->explains), y = fabs(b->explains);

	if (x != y)
		return x < y ? 1 : -1;
	if (a->b != b->b)
		return a->b < b->b ? -1 : 1;
	return a->a < b->a ? -1 : a->a > b->a;
}

int diff__new(const struct side *a, const struct side *b, const struct diff_opts *o,
	      struct diff **out)
{
	struct diff *d = calloc(1, sizeof(*d));
	struct confidence each, all;
	int err;

	*out = NULL;
	if (!d)
		return -ENOMEM;
	d->a = a;
	d->b = b;
	d->opts = *o;
	err = make_rows(d);
	if (err) {
		diff__free(d);
		return err;
	}
	confidence__init(&each, o->confidence);
	for (size_t i = 0; i < d->n; i++)
		estimate_row(d, &d->rows[i], &each);
	confidence__init(&all, 1 - (1 - o->confidence) / (d->compared ? d->compared : 1));
	for (size_t i = 0; i < d->n; i++)
		compare_row(d, &d->rows[i], &all);
	qsort(d->rows, d->nspans, sizeof(*d->rows), by_explains);
	qsort(d->rows + d->nspans, d->n - d->nspans, sizeof(*d->rows), by_explains);
	*out = d;
	return 0;
}

void diff__free(struct diff *d)
{
	if (!d)
		return;
	free(d->rows);
	free(d);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* figure.c - the figures of a side's items, by name, each with its interval. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/dist.h"
#include "model/rank.h"
#include "model/side_load.h"

static const char *const names[FIG_KINDS] = {
    [FIG_COUNT] = "count",
    [FIG_RATE] = "rate",
    [FIG_TOTAL] = "total",
    [FIG_SELF] = "self",
    [FIG_TOTAL_RATE] = "total/s",
    [FIG_SELF_RATE] = "self/s",
    [FIG_SHARE] = "share",
    [FIG_MIN] = "min",
    [FIG_MEAN] = "mean",
    [FIG_SELF_MEAN] = "self/span",
    [FIG_QUANTILE] = NULL,
    [FIG_MAX] = "max",
    [FIG_LOST] = "lost",
    [FIG_OPEN] = "open",
    [FIG_ORPHAN_ENDS] = "orphan_ends",
    [FIG_ABANDONED] = "abandoned",
};

/* p50, p99.9, p99.99: digits and one point. */
static bool parse_quantile(const char *word, size_t len, double *q)
{
	char text[16];
	double pct;
	char *end;

	if (len < 2 || len >= sizeof(text) || word[0] != 'p')
		return false;
	memcpy(text, word + 1, len - 1);
	text[len - 1] = '\0';
	if (strspn(text, "0123456789.") != len - 1 || text[0] == '.')
		return false;
	pct = strtod(text, &end);
	if (*end || pct <= 0 || pct >= 100)
		return false;
	/* The double next to 0.99 and the like, as constants are. */
	*q = round(pct * 1e10) / 1e12;
	for (int i = 0; i < SIDE_QUANTILES; i++)
		if (fabs(*q - side_quantiles[i]) < 1e-12)
			*q = side_quantiles[i];
	return true;
}

bool figure__parse(const char *word, size_t len, struct figure *out)
{
	out->q = 0;
	for (int k = 0; k < FIG_KINDS; k++)
		if (names[k] && strlen(names[k]) == len && !memcmp(names[k], word, len)) {
			out->kind = k;
			return true;
		}
	out->kind = FIG_QUANTILE;
	return parse_quantile(word, len, &out->q);
}

char *figure__name(char buf[FIGURE_NAME], struct figure f)
{
	if (f.kind == FIG_QUANTILE)
		snprintf(buf, FIGURE_NAME, "p%.12g", f.q * 100);
	else
		snprintf(buf, FIGURE_NAME, "%s", names[f.kind]);
	return buf;
}

enum figure_dim figure__dim(struct figure f, enum side_class class)
{
	switch (f.kind) {
	case FIG_RATE:
		return DIM_RATE;
	case FIG_SHARE:
	case FIG_TOTAL_RATE:
	case FIG_SELF_RATE:
		return DIM_SHARE;
	case FIG_TOTAL:
	case FIG_SELF:
	case FIG_SELF_MEAN:
	case FIG_MIN:
	case FIG_MEAN:
	case FIG_QUANTILE:
	case FIG_MAX:
		return class == SIDE_VALUE ? DIM_VALUE : DIM_TIME;
	default:
		return DIM_COUNT;
	}
}

bool figure__is_fact(struct figure f)
{
	return figure__dim(f, SIDE_TIME) == DIM_COUNT;
}

static void absent(struct estimate *out, const char *why)
{
	out->state = EST_ABSENT;
	out->why = why;
}

static void unknown(struct estimate *out, const char *why)
{
	out->state = EST_UNKNOWN;
	out->why = why;
}

static void known(struct estimate *out, double value)
{
	out->state = EST_KNOWN;
	out->value = value;
}

static void too_few(struct estimate *out, uint64_t needs)
{
	out->state = EST_TOO_FEW;
	out->needs = needs;
}

static void bounds(struct estimate *out, double lo, double hi)
{
	/* An estimate from windows and a value from all of them differ in the last digits. */
	out->ci.lo = lo < out->value ? lo : out->value;
	out->ci.hi = hi > out->value ? hi : out->value;
	out->has_interval = true;
}

static void fact(struct estimate *out, uint64_t n, const char *why)
{
	if (n == SIDE_UNKNOWN)
		unknown(out, why);
	else
		known(out, n);
}

static uint64_t in_buckets(const struct side_item *it)
{
	uint64_t n = 0;

	for (size_t i = 0; i < it->nbuckets; i++)
		n += it->buckets[i].n;
	return n;
}

/* Rank k = 1 .. of a histogram: the edge of its bucket on the side asked for. */
static double bucket_rank(const struct side_item *it, uint64_t k, bool upper)
{
	size_t i = 0;
	double v;

	while (i + 1 < it->nbuckets && k > it->buckets[i].n)
		k -= it->buckets[i++].n;
	v = upper ? it->buckets[i].hi : it->buckets[i].lo;
	return v < it->min ? it->min : v > it->max ? it->max : v;
}

static double item_rank(const struct side_item *it, uint64_t k, uint64_t n, bool upper)
{
	if (k < 1)
		return -INFINITY;
	if (k > n)
		return INFINITY;
	return it->dist ? (double)dist__rank(it->dist, k) : bucket_rank(it, k, upper);
}

static double item_deff(const struct side *s, const struct side_item *it, double q,
			const struct confidence *c)
{
	for (size_t i = 0; it->windows && i < s->nq; i++)
		if (s->q[i] == q)
			return design_effect(it->windows->above[i], it->windows->count, c);
	return 1;
}

/* How many values support it. */
static uint64_t quantile_needs(double q)
{
	return ceil(1 / (1 - q) - 1e-6);
}

static void quantile_of_trace(const struct side_item *it, double q, struct estimate *out)
{
	long double v;

	out->n = dist__count(it->dist) - dist__nan(it->dist);
	if (dist__quantile(it->dist, q, &v))
		known(out, (double)v);
	else
		too_few(out, out->needs);
}

static void quantile_of_summary(const struct side_item *it, double q, struct estimate *out)
{
	int i = 0;
	uint64_t k;

	out->n = it->nbuckets ? in_buckets(it) : it->count;
	while (i < SIDE_QUANTILES && side_quantiles[i] != q)
		i++;
	if (i < SIDE_QUANTILES && it->told[i]) {
		if (isnan(it->q[i]))
			too_few(out, out->needs);
		else
			known(out, it->q[i]);
	} else if (it->nbuckets) {
		k = rank_of_quantile(out->n, q);
		if (k)
			known(out, (bucket_rank(it, k, false) + bucket_rank(it, k, true)) / 2);
		else
			too_few(out, out->needs);
	} else {
		unknown(out, "the summary does not say");
	}
}

static void estimate_quantile(const struct side *s, const struct side_item *it, double q,
			      const struct confidence *c, struct estimate *out)
{
	uint64_t lo, hi;

	out->needs = quantile_needs(q);
	if (it->dist)
		quantile_of_trace(it, q, out);
	else
		quantile_of_summary(it, q, out);
	/* Without windows, what a trace says of chance would rest on independence. */
	if (out->state != EST_KNOWN || (it->dist ? !it->windows : !it->nbuckets))
		return;
	quantile_ranks(out->n, q, item_deff(s, it, q, c), c, &lo, &hi);
	bounds(out, item_rank(it, lo, out->n, false), item_rank(it, hi, out->n, true));
}

/* The spread of a histogram, its values spread over each bucket. */
static void mean_bounds_of_buckets(const struct side_item *it, const struct confidence *c,
				   struct estimate *out)
{
	uint64_t n = in_buckets(it);
	double sum = 0, half = INFINITY;

	for (size_t i = 0; i < it->nbuckets; i++) {
		double width = it->buckets[i].hi - it->buckets[i].lo;
		double d = it->buckets[i].lo + width / 2 - out->value;

		sum += (d * d + width * width / 12) * it->buckets[i].n;
	}
	if (n > 1)
		half = (n <= INTERVAL_WINDOWS ? c->t[n - 1] : c->z) * sqrt(sum / (n - 1) / n);
	bounds(out, it->class == SIDE_TIME ? fmax(out->value - half, 0) : out->value - half,
	       out->value + half);
}

static void ratio_bounds(const double *num, const double *den, const struct confidence *c,
			 double scale, bool not_negative, struct estimate *out)
{
	struct interval ci;

	if (!ratio_interval(num, den, c, &ci))
		return;
	ci.lo *= scale;
	ci.hi *= scale;
	bounds(out, not_negative && ci.lo < 0 ? 0 : ci.lo, ci.hi);
}

static void window_counts(const struct side_item *it, double out[INTERVAL_WINDOWS])
{
	for (int w = 0; w < INTERVAL_WINDOWS; w++)
		out[w] = it->windows->count[w];
}

static void estimate_mean(const struct side_item *it, double sum, bool self,
			  const struct confidence *c, struct estimate *out)
{
	double den[INTERVAL_WINDOWS];

	known(out, sum / out->n);
	if (it->windows) {
		window_counts(it, den);
		ratio_bounds(self ? it->windows->self : it->windows->total, den, c, 1,
			     it->class == SIDE_TIME, out);
	} else if (it->nbuckets && !self) {
		mean_bounds_of_buckets(it, c, out);
	}
}

/* A sum over the recording, per `per` seconds of it. */
static void estimate_sum(const struct side *s, const struct side_item *it, double sum,
			 const double *windows, double per, const struct confidence *c,
			 struct estimate *out)
{
	if (s->seconds <= 0)
		return too_few(out, 1);
	known(out, sum * per / s->seconds);
	if (windows)
		ratio_bounds(windows, NULL, c, INTERVAL_WINDOWS * per / s->seconds,
			     it->class != SIDE_VALUE, out);
}

/* Another node of the same span is around this one: its time counts already. */
static bool is_recursion(const struct side *s, size_t node)
{
	uint32_t span = s->items[node].span;

	for (size_t i = s->items[node].parent; i != SIDE_NONE; i = s->items[i].parent)
		if (s->items[i].span == span)
			return true;
	return false;
}

/* The time of a span's outermost nodes, and whether all of it is known by window. */
static bool sum_nodes(const struct side *s, const struct side_item *span, double *time,
		      double windows[INTERVAL_WINDOWS])
{
	bool known_all = true;

	*time = 0;
	memset(windows, 0, INTERVAL_WINDOWS * sizeof(*windows));
	for (size_t i = span->first; i != SIDE_NONE; i = s->items[i].next) {
		const double *of_node = side_item__time_windows(&s->items[i]);

		if (is_recursion(s, i) || s->items[i].time == 0)
			continue;
		*time += s->items[i].time;
		known_all &= of_node != NULL;
		for (int w = 0; of_node && w < INTERVAL_WINDOWS; w++)
			windows[w] += of_node[w];
	}
	return known_all;
}

/*
 * A span: of the time of all outermost spans, recursion counted once. A node: of the time of the
 * node around it; an outermost one of that of all outermost spans.
 */
static void estimate_share(const struct side *s, size_t item, const struct confidence *c,
			   struct estimate *out)
{
	const struct side_item *it = &s->items[item], *parent;
	const double *num = side_item__time_windows(it), *den = s->roots_windows;
	double sum[INTERVAL_WINDOWS], time = it->time, of = s->roots_ns;

	if (it->node && it->parent != SIDE_NONE) {
		parent = &s->items[it->parent];
		of = parent->time;
		den = side_item__time_windows(parent);
	} else if (!it->node) {
		num = sum_nodes(s, it, &time, sum) && s->trace ? sum : NULL;
	}
	if (of <= 0)
		return too_few(out, 1);
	known(out, time < of ? time / of : 1);
	if (num && den)
		ratio_bounds(num, den, c, 1, true, out);
	if (out->has_interval && out->ci.hi > 1)
		out->ci.hi = 1;
}

static void estimate_rate(const struct side *s, const struct side_item *it,
			  const struct confidence *c, struct estimate *out)
{
	double num[INTERVAL_WINDOWS];

	if (it->windows)
		window_counts(it, num);
	estimate_sum(s, it, it->count, it->windows ? num : NULL, 1, c, out);
}

/* Durations and plain numbers. */
static void estimate_measure(const struct side *s, size_t item, struct figure f,
			     const struct confidence *c, struct estimate *out)
{
	const struct side_item *it = &s->items[item];
	bool self = f.kind == FIG_SELF || f.kind == FIG_SELF_RATE || f.kind == FIG_SELF_MEAN;
	double sum = self ? it->self : it->total, per = 1e-9;
	const double *windows = NULL;

	if (it->windows)
		windows = self ? it->windows->self : it->windows->total;
	if (it->class == SIDE_INSTANT)
		return absent(out, "an instant has no duration");
	if (it->class == SIDE_VALUE && (self || f.kind == FIG_TOTAL_RATE || f.kind == FIG_SHARE))
		return absent(out, "a value is no time");
	if (it->keyed && (self || f.kind == FIG_SHARE))
		return absent(out,
			      "a keyed span nests in nothing: it has no self time and no share");
	switch (f.kind) {
	case FIG_SHARE:
		return estimate_share(s, item, c, out);
	case FIG_TOTAL:
	case FIG_SELF:
		per = s->seconds; /* what another recording as long as this would have */
				  /* fall through */
	case FIG_TOTAL_RATE:
	case FIG_SELF_RATE:
		return estimate_sum(s, it, sum, windows, per, c, out);
	default:
		break;
	}
	out->n = it->dist	? dist__count(it->dist) - dist__nan(it->dist)
		 : it->nbuckets ? in_buckets(it)
				: it->count;
	if (!it->measured || !out->n)
		return too_few(out, f.kind == FIG_QUANTILE ? quantile_needs(f.q) : 1);
	if (f.kind == FIG_QUANTILE)
		estimate_quantile(s, it, f.q, c, out);
	else if (isnan(f.kind == FIG_MAX ? it->max : it->min))
		unknown(out, "the summary does not say");
	else if (f.kind == FIG_MIN || f.kind == FIG_MAX)
		known(out, f.kind == FIG_MIN ? it->min : it->max);
	else
		estimate_mean(it, sum, self, c, out);
}

void side__gpu_lost(const struct side *s, struct estimate *out)
{
	memset(out, 0, sizeof(*out));
	if (s->gpu_ended && !s->gpu_lost)
		unknown(out, "not known: the CUDA agent was gone before its time");
	else
		fact(out, s->gpu_lost, "not known: the recording was cut short");
}

void side__estimate(const struct side *s, size_t item, struct figure f, const struct confidence *c,
		    struct estimate *out)
{
	const struct side_item *it = &s->items[item];
	const char *why = !s->trace  ? "the summary does not say"
			  : s->clean ? "the trace does not say"
				     : "not known: the recording was cut short";

	memset(out, 0, sizeof(*out));
	out->n = it->count;
	if (it->node && f.kind >= FIG_LOST && f.kind <= FIG_ABANDONED)
		return absent(out, "told by span, not by place in the tree");
	switch (f.kind) {
	case FIG_COUNT:
		return known(out, it->count);
	case FIG_LOST:
		return fact(out, it->lost, why);
	case FIG_OPEN:
		return fact(out, it->open, why);
	case FIG_ORPHAN_ENDS:
		return fact(out, it->orphan_ends, why);
	case FIG_ABANDONED:
		return fact(out, it->abandoned, why);
	case FIG_RATE:
		return estimate_rate(s, it, c, out);
	default:
		estimate_measure(s, item, f, c, out);
	}
	/* Every comparison with it would be a fluke. */
	if (out->state == EST_KNOWN && isnan(out->value))
		unknown(out, "no number: there are infinite values of both signs");
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * html_spans.c - the spans of the page: figures of each, and the curves behind its charts.
 *
 * A distribution becomes two lists. "curve": [rank, value, ...], denser towards the slow end, where
 * rank k of n says that n - k + 1 of n took at least that long; and buckets, equal on a logarithmic
 * axis for durations, so that their heights compare.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/fields.h"
#include "out/html_data.h"

#define OCTAVE_POINTS 8	  /* of a curve, each time the tail halves */
#define BUCKETS	      256 /* of a histogram of durations, about */
#define OCTAVE_LEAST  16  /* of these to an octave, however many it has */
#define OCTAVE_MOST   4096
#define VALUE_BUCKETS 160 /* of numbers that are no durations: as many equal ones */

static const struct {
	const char *key;
	double q;
} quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999}};

/* Greatest time first, then most often; never hit last. */
static int by_time(const void *va, const void *vb, void *data)
{
	const struct an_span *spans = data;
	uint32_t ia = *(const uint32_t *)va, ib = *(const uint32_t *)vb;
	const struct an_span *a = &spans[ia], *b = &spans[ib];

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->held != b->held)
		return a->held < b->held ? 1 : -1;
	return ia < ib ? -1 : ia > ib;
}

/* What the distribution is of: "span" durations, "instant" intervals, "value" numbers. */
static const char *class_of(const struct trace_span *def)
{
	if (def->kind == SPAN_VALUE)
		return "value";
	if (def->kind == SPAN_INSTANT || (def->kind == SPAN_FUNC && def->way == RET_NONE))
		return "instant";
	return "span";
}

static void add_number(struct html_data *d, json_t *array, long double v)
{
	json_append(&d->doc, array, html_number(v));
}

static void add_count(struct html_data *d, json_t *array, uint64_t n)
{
	json_append(&d->doc, array, html_count(n));
}

static json_t *curve(struct html_data *d, const struct dist *dist)
{
	uint64_t n = dist__count(dist) - dist__nan(dist), last = 0;
	json_t *array = json_array();

	/* Where 1 in 2^(i/8) is slower; the last point is the maximum. */
	for (unsigned int i = 0; last < n; i++) {
		uint64_t above = (uint64_t)(n / exp2((double)i / OCTAVE_POINTS));
		uint64_t rank = above >= 1 ? n - above + 1 : n;

		if (rank > n)
			rank = n;
		if (rank <= last)
			continue;
		add_count(d, array, rank);
		add_number(d, array, dist__rank(dist, rank));
		last = rank;
	}
	return array;
}

/* How many buckets an octave has: a power of two, the more the narrower the distribution. */
static int octave_buckets(const struct dist_value *values, size_t n)
{
	long double least = n && values[0].value > 1 ? values[0].value : 1, octaves = 0;
	int octave = OCTAVE_LEAST;

	if (n && values[n - 1].value > least)
		octaves = log2l(values[n - 1].value / least);
	while (octave < OCTAVE_MOST && octaves * octave * 2 <= BUCKETS)
		octave *= 2;
	return octave;
}

/* Where bucket i begins. */
static long double edge(int i, int octave)
{
	return i < 0 ? 0 : ceill(exp2l((long double)i / octave));
}

/* Of v >= 0; -1: zero. Edges are whole numbers, so the small ones may be of no width. */
static int bucket_of(long double v, int octave)
{
	int i = v < 1 ? -1 : (int)(log2l(v) * octave);

	while (v >= edge(i + 1, octave))
		i++;
	while (i >= 0 && v < edge(i, octave))
		i--;
	return i;
}

/* Durations: [bucket, n, ...]. */
static json_t *steps(struct html_data *d, const struct dist_value *values, size_t n, int octave)
{
	json_t *array = json_array();
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		int bucket = bucket_of(values[i].value, octave);

		sum += values[i].n;
		if (i + 1 < n && values[i + 1].value < edge(bucket + 1, octave))
			continue;
		json_append(&d->doc, array, json_integer(bucket));
		add_count(d, array, sum);
		sum = 0;
	}
	return array;
}

/* Numbers have any sign and scale: [from, to, n, ...], each alone when they are few, else in equal
 * stretches. */
static json_t *bars(struct html_data *d, const struct dist_value *values, size_t n, bool whole)
{
	json_t *array = json_array();
	long double width = 0, lo, hi;

	if (n > VALUE_BUCKETS)
		width = (values[n - 1].value - values[0].value) / VALUE_BUCKETS;
	/* Integers: as many of them in each. */
	if (whole)
		width = ceill(width);
	for (size_t i = 0, next; i < n; i = next) {
		uint64_t sum = values[i].n;

		lo = hi = values[i].value;
		next = i + 1;
		if (width > 0) {
			lo = values[0].value + floorl((lo - values[0].value) / width) * width;
			hi = lo + width;
			while (next < n && values[next].value < hi)
				sum += values[next++].n;
		}
		add_number(d, array, lo);
		add_number(d, array, hi);
		add_count(d, array, sum);
	}
	return array;
}

static void put_buckets(struct html_data *d, json_t *o, const struct dist *dist)
{
	struct dist_value *values = NULL;
	size_t n = dist__values(dist, &values), from = 0;

	/* An infinity has no place on an axis. */
	while (from < n && isinf((double)values[from].value))
		from++;
	while (n > from && isinf((double)values[n - 1].value))
		n--;
	if (dist__kind(dist) == QBPF_HIST_NS) {
		int octave = octave_buckets(values + from, n - from);

		json_put(&d->doc, o, "octave", json_integer(octave));
		json_put(&d->doc, o, "steps", steps(d, values + from, n - from, octave));
	} else {
		json_put(&d->doc, o, "bars",
			 bars(d, values + from, n - from, dist__kind(dist) == QBPF_HIST_INT));
	}
	free(values);
}

/* The quantile, or null where too few values came to tell. */
static json_t *window_quantile(const struct hist *h, double q)
{
	long double v;

	return h && hist__quantile(h, q, &v) ? html_number(v) : json_null();
}

static json_t *windows(struct html_data *d, const struct an_span *s)
{
	json_t *o = json_object(), *count = json_array(), *p50 = json_array();
	json_t *p99 = json_array(), *max = json_array();

	for (size_t i = 0; i < d->a->nwindows; i++) {
		const struct hist *h = s->windows[i].hist;

		add_count(d, count, s->windows[i].count);
		json_append(&d->doc, p50, window_quantile(h, 0.5));
		json_append(&d->doc, p99, window_quantile(h, 0.99));
		json_append(&d->doc, max,
			    h && hist__count(h) > hist__nan(h) ? html_number(hist__max(h))
							       : json_null());
	}
	json_put(&d->doc, o, "count", count);
	json_put(&d->doc, o, "p50", p50);
	json_put(&d->doc, o, "p99", p99);
	json_put(&d->doc, o, "max", max);
	return o;
}

static void put_figures(struct html_data *d, json_t *o, const struct dist *dist)
{
	struct json_doc *doc = &d->doc;
	long double v;

	json_put(doc, o, "n", html_count(dist__count(dist)));
	if (dist__nan(dist))
		json_put(doc, o, "nan", html_count(dist__nan(dist)));
	if (dist__count(dist) == dist__nan(dist))
		return;
	json_put(doc, o, "sum", html_number(dist__sum(dist)));
	json_put(doc, o, "min", html_number(dist__min(dist)));
	json_put(doc, o, "mean", html_number(dist__mean(dist)));
	json_put(doc, o, "max", html_number(dist__max(dist)));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		if (dist__quantile(dist, quantiles[i].q, &v))
			json_put(doc, o, quantiles[i].key, html_number(v));
	if (!dist__exact(dist))
		json_put(doc, o, "rounded", json_true());
}

/* Where the file lacks some: the kernel's own histogram, which lacks none. */
static void put_kernel(struct html_data *d, json_t *o, const struct an_span *s)
{
	const struct snapshot *k = d->a->kernel;
	size_t i = s - d->a->spans;
	const struct hist *h = k && i < k->nspans ? k->spans[i].hist : NULL;
	json_t *all;

	if (!h || s->counted == UINT64_MAX || s->held >= s->counted ||
	    hist__count(h) <= hist__nan(h))
		return;
	all = json_object();
	json_put(&d->doc, all, "n", html_count(hist__count(h)));
	json_put(&d->doc, all, "min", html_number(hist__min(h)));
	json_put(&d->doc, all, "mean", html_number(hist__mean(h)));
	json_put(&d->doc, all, "max", html_number(hist__max(h)));
	for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++) {
		long double v;

		if (hist__quantile(h, quantiles[q].q, &v))
			json_put(&d->doc, all, quantiles[q].key, html_number(v));
	}
	json_put(&d->doc, o, "kernel", all);
}

static json_t *span(struct html_data *d, const struct an_span *s, bool charts)
{
	struct json_doc *doc = &d->doc;
	json_t *o = json_object();
	const char *class = class_of(s->def);

	json_put(doc, o, "name", html_text(s->def->name));
	json_put(doc, o, "kind", json_string(span_kind_name(s->def->kind)));
	json_put(doc, o, "class", json_string(class));
	json_put(doc, o, "held", html_count(s->held));
	if (s->counted != UINT64_MAX) {
		json_put(doc, o, "counted", html_count(s->counted));
		json_put(doc, o, "lost", html_count(s->lost));
		json_put(doc, o, "skipped", html_count(s->skipped));
	}
	if (s->open)
		json_put(doc, o, "open", html_count(s->open));
	if (s->def->floor_ns)
		json_put(doc, o, "floor", html_count(s->def->floor_ns));
	if (s->def->price_ns)
		json_put(doc, o, "price", html_count(s->def->price_ns));
	put_kernel(d, o, s);
	if (!s->held)
		return o;
	if (!strcmp(class, "span")) {
		json_put(doc, o, "total", html_count(s->total_ns));
		json_put(doc, o, "self", html_count(s->self_ns));
	}
	if (!s->dist)
		return o;
	put_figures(d, o, s->dist);
	if (!charts)
		return o;
	json_put(doc, o, "curve", curve(d, s->dist));
	put_buckets(d, o, s->dist);
	if (s->windows)
		json_put(doc, o, "windows", windows(d, s));
	return o;
}

/*
 * By row: [window, n, ...], in how many losses each window had a part. A stretch of losses may touch
 * several windows; it counts in full in each of them, since nobody knows where it fell.
 */
static void put_losses(struct html_data *d)
{
	const struct analysis *a = d->a;
	size_t n = a->nwindows;
	uint64_t *lost = calloc(d->nrows * n + 1, sizeof(*lost));
	long double width = n ? (long double)(a->end_ns - a->start_ns) / n : 0;
	json_t *o = json_object();
	char key[24];

	if (!lost) {
		d->doc.failed = true;
		json_decref(o);
		return;
	}
	for (size_t i = 0; i < a->info->nlosses && width > 0; i++) {
		const struct trace_loss *l = &a->info->losses[i];
		int32_t row = html_data__row(d, l->span);
		long double from, to;

		if (row == HTML_NO_ROW || !l->lost || l->to_ns < a->start_ns ||
		    l->from_ns > a->end_ns)
			continue;
		from = l->from_ns > a->start_ns ? (l->from_ns - a->start_ns) / width : 0;
		to = (l->to_ns - a->start_ns) / width;
		for (size_t w = (size_t)from; w < n && w <= to; w++)
			lost[row * n + w] += l->lost;
	}
	for (size_t row = 0; row < d->nrows; row++) {
		json_t *array = NULL;

		for (size_t w = 0; w < n; w++) {
			if (!lost[row * n + w])
				continue;
			if (!array) {
				array = json_array();
				snprintf(key, sizeof(key), "%zu", row);
				json_put(&d->doc, o, key, array);
			}
			add_count(d, array, w);
			add_count(d, array, lost[row * n + w]);
		}
	}
	json_put(&d->doc, d->doc.root, "losses", o);
	free(lost);
}

void html_data__spans(struct html_data *d)
{
	size_t n = d->a->info->nspans, charts = 0, held = 0;
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		d->order[i] = i;
		d->row_of[i] = HTML_NO_ROW;
	}
	qsort_r(d->order, n, sizeof(*d->order), by_time, d->a->spans);
	d->nrows = n < HTML_SPANS_MAX ? n : HTML_SPANS_MAX;
	for (size_t i = 0; i < d->nrows; i++) {
		const struct an_span *s = &d->a->spans[d->order[i]];

		d->row_of[d->order[i]] = i;
		held += s->held != 0;
		charts += s->held && charts < HTML_CHARTS_MAX;
		json_append(&d->doc, array, span(d, s, held == charts));
	}
	json_put(&d->doc, d->doc.root, "spans", array);
	json_put(&d->doc, d->doc.root, "spans_left_out", html_count(n - d->nrows));
	json_put(&d->doc, d->doc.root, "charts_left_out", html_count(held - charts));
	put_losses(d);
}

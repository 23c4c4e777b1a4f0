/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fields.c - the figures of spans and nodes, each computed in one place for every output. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out/fields.h"

static const double quantiles[ROW_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 0.9999};

const struct field span_fields[SF_N] = {
    [SF_NAME] = {"name", "span", FIELD_TEXT},
    [SF_KIND] = {"kind", "kind", FIELD_TEXT},
    [SF_COUNT] = {"count", "count", FIELD_COUNT},
    [SF_RATE] = {NULL, "rate/s", FIELD_RATE},
    [SF_SUM] = {"sum", "total", FIELD_TOTAL},
    [SF_MIN] = {"min", "min", FIELD_MEASURE},
    [SF_MEAN] = {"mean", "mean", FIELD_MEASURE},
    [SF_P50] = {"p50", "p50", FIELD_MEASURE},
    [SF_P90] = {"p90", "p90", FIELD_MEASURE},
    [SF_P99] = {"p99", "p99", FIELD_MEASURE},
    [SF_P999] = {"p999", "p99.9", FIELD_MEASURE},
    [SF_P9999] = {"p9999", "p99.99", FIELD_MEASURE},
    [SF_MAX] = {"max", "max", FIELD_MEASURE},
    [SF_SHARE] = {NULL, "share", FIELD_SHARE},
    [SF_FLOOR] = {"floor", "floor", FIELD_TOTAL},
    [SF_OPEN] = {"open", "open", FIELD_COUNT},
    [SF_ABANDONED] = {"abandoned", "abandoned", FIELD_COUNT},
    [SF_ORPHAN_ENDS] = {"orphan_ends", "orphan ends", FIELD_COUNT},
    [SF_NODE_OVERFLOW] = {"node_overflow", "not in the tree", FIELD_COUNT},
    [SF_KEY_RESTARTS] = {"key_restarts", "keys begun again", FIELD_COUNT},
    [SF_KEY_TIMEOUTS] = {"key_timeouts", "keys timed out", FIELD_COUNT},
    [SF_NAN] = {"nan", "not a number", FIELD_COUNT},
};

const struct field node_fields[NF_N] = {
    [NF_NAME] = {"name", "call tree", FIELD_TEXT}, [NF_COUNT] = {"count", "count", FIELD_COUNT},
    [NF_SUM] = {"sum", "total", FIELD_TOTAL},	   [NF_SELF] = {"self", "self", FIELD_TOTAL},
    [NF_MIN] = {"min", "min", FIELD_MEASURE},	   [NF_MEAN] = {NULL, "mean", FIELD_MEASURE},
    [NF_P99] = {"p99", "p99", FIELD_MEASURE},	   [NF_MAX] = {"max", "max", FIELD_MEASURE},
    [NF_SHARE] = {NULL, "share", FIELD_SHARE},
};

const char *span_kind_name(enum span_kind kind)
{
	switch (kind) {
	case SPAN_MARKER:
		return "marker";
	case SPAN_KEYED:
		return "keyed";
	case SPAN_INSTANT:
		return "instant";
	case SPAN_VALUE:
		return "value";
	case SPAN_FUNC:
		return "function";
	case SPAN_CUDA:
		return "cuda";
	}
	return "unknown";
}

/* A span's share: its nodes' shares, leaving out those below another node of the same span, so
 * that recursion counts once. */
static void add_shares(struct span_rows *r, const struct snapshot *s, const struct tree *t)
{
	for (const struct tree_node *n = tree_node__next(tree__root(t)); n;
	     n = tree_node__next(n)) {
		uint32_t span = n->node->span;
		const struct tree_node *up = n->parent;

		if (span >= s->nspans || r->rows[span].class != ROW_SPAN)
			continue;
		while (up->node && up->node->span != span)
			up = up->parent;
		if (up->node)
			continue;
		if (r->rows[span].share < 0)
			r->rows[span].share = 0;
		r->rows[span].share += n->share;
	}
	/* Sums of fractions may exceed 1 by a rounding error. */
	for (size_t i = 0; i < r->n; i++)
		if (r->rows[i].share > 1)
			r->rows[i].share = 1;
}

static void exact_figures(struct span_row *row, const struct dist *d)
{
	row->nan = dist__nan(d);
	row->in_hist = dist__count(d) - row->nan;
	if (!row->in_hist)
		return;
	row->sum = dist__sum(d);
	row->min = dist__min(d);
	row->mean = dist__mean(d);
	row->max = dist__max(d);
	for (int q = 0; q < ROW_QUANTILES; q++)
		row->has_q[q] = dist__quantile(d, quantiles[q], &row->q[q]);
}

int span_rows__make(struct span_rows *r, const struct snapshot *s, const struct tree *t)
{
	double seconds = snapshot__duration_s(s);
	uint64_t *counts = snapshot__counts(s);

	r->n = s->nspans;
	r->rows = calloc(s->nspans + 1, sizeof(*r->rows));
	if (!r->rows || !counts) {
		free(counts);
		span_rows__clear(r);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->nspans; i++) {
		struct span_row *row = &r->rows[i];
		const struct snap_span *span = &s->spans[i];

		row->span = span;
		row->index = i;
		row->class = snap_span__is_instant(span) ? ROW_INSTANT
			     : span->kind == SPAN_VALUE	 ? ROW_VALUE
							 : ROW_SPAN;
		row->count = counts[i];
		row->rate = seconds > 0 ? counts[i] / seconds : 0;
		row->share = -1;
		if (span->exact) {
			exact_figures(row, span->exact);
			continue;
		}
		row->nan = hist__nan(span->hist);
		row->in_hist = hist__count(span->hist) - row->nan;
		if (!row->in_hist)
			continue;
		row->sum = hist__sum(span->hist);
		row->min = hist__min(span->hist);
		row->mean = hist__mean(span->hist);
		row->max = hist__max(span->hist);
		for (int q = 0; q < ROW_QUANTILES; q++)
			row->has_q[q] = hist__quantile(span->hist, quantiles[q], &row->q[q]);
	}
	add_shares(r, s, t);
	free(counts);
	return 0;
}

bool span_row__refused(const struct span_row *r)
{
	return r->span->refused && !r->count;
}

void span_rows__clear(struct span_rows *r)
{
	free(r->rows);
	r->rows = NULL;
	r->n = 0;
}

static void set_count(struct field_value *v, uint64_t n)
{
	v->state = FIELD_KNOWN;
	v->num = n;
}

/* What only some kinds of span have, or what is told only when it happened. */
static void set_if(struct field_value *v, bool there, uint64_t n)
{
	if (there)
		set_count(v, n);
}

static void set_measure(struct field_value *v, const struct span_row *r, bool known, long double x)
{
	/* The mean of opposite infinities is no number. */
	v->state = known && r->in_hist && !isnan(x) ? FIELD_KNOWN : FIELD_UNKNOWN;
	v->num = x;
	v->is_ns = r->class != ROW_VALUE;
	v->below_floor = r->class == ROW_SPAN && r->span->floor_ns && x <= r->span->floor_ns;
}

static void get_measure(const struct span_row *r, enum span_field f, struct field_value *v)
{
	switch (f) {
	case SF_MIN:
		set_measure(v, r, true, r->min);
		break;
	case SF_MEAN:
		set_measure(v, r, true, r->mean);
		break;
	case SF_MAX:
		set_measure(v, r, true, r->max);
		break;
	default: /* SF_P50 .. SF_P9999 */
		set_measure(v, r, r->has_q[f - SF_P50], r->q[f - SF_P50]);
		break;
	}
}

void span_field__get(const struct span_row *r, enum span_field f, struct field_value *v)
{
	const struct snap_span *s = r->span;
	bool paired = r->class == ROW_SPAN;

	*v = (struct field_value){.state = FIELD_ABSENT};
	switch (f) {
	case SF_NAME:
		v->state = FIELD_KNOWN;
		v->text = s->name ? s->name : "?";
		break;
	case SF_KIND:
		v->state = FIELD_KNOWN;
		v->text = span_kind_name(s->kind);
		break;
	case SF_COUNT:
		set_count(v, r->count);
		break;
	case SF_RATE:
		v->state = FIELD_KNOWN;
		v->num = r->rate;
		break;
	case SF_SUM:
		/* An empty sum is a true zero, except of intervals: there is none yet. */
		v->state = r->in_hist || r->class != ROW_INSTANT ? FIELD_KNOWN : FIELD_UNKNOWN;
		v->num = r->sum;
		v->is_ns = r->class != ROW_VALUE;
		break;
	case SF_SHARE:
		v->state = r->share >= 0 ? FIELD_KNOWN : FIELD_ABSENT;
		v->num = r->share;
		break;
	case SF_FLOOR:
		v->is_ns = true;
		set_if(v, paired && s->floor_ns, s->floor_ns);
		break;
	case SF_OPEN:
		set_if(v, paired, s->open);
		break;
	case SF_ABANDONED:
		set_if(v, paired, s->abandoned);
		break;
	case SF_ORPHAN_ENDS:
		set_if(v, paired, s->orphan_ends);
		break;
	case SF_NODE_OVERFLOW:
		set_if(v, s->node_overflow, s->node_overflow);
		break;
	case SF_KEY_RESTARTS:
		set_if(v, s->kind == SPAN_KEYED, s->key_restarts);
		break;
	case SF_KEY_TIMEOUTS:
		set_if(v, s->kind == SPAN_KEYED, s->key_timeouts);
		break;
	case SF_NAN:
		set_if(v, r->nan, r->nan);
		break;
	default:
		get_measure(r, f, v);
		break;
	}
}

/* What a node that has no calls yet cannot have, and what an interval does not tell. */
static void set_node_measure(struct field_value *v, const struct tree_node *n, uint64_t ns)
{
	v->state = n->node->count && ns != SNAP_UNKNOWN ? FIELD_KNOWN : FIELD_UNKNOWN;
	v->num = ns;
	v->below_floor = n->span && n->span->floor_ns && ns <= n->span->floor_ns;
}

void node_field__get(const struct tree_node *n, enum node_field f, struct field_value *v)
{
	const struct snap_node *node = n->node;
	bool timed = n->span && !snap_span__is_instant(n->span) && n->span->kind != SPAN_VALUE;
	long double p99;
	bool enough;

	*v = (struct field_value){.state = FIELD_ABSENT};
	if (f == NF_NAME) {
		v->state = FIELD_KNOWN;
		v->text = n->name ? n->name : "?";
		return;
	}
	if (f == NF_COUNT) {
		set_count(v, node->count);
		return;
	}
	if (!timed)
		return;
	v->is_ns = f != NF_SHARE;
	switch (f) {
	case NF_SUM:
		set_count(v, node->total_ns);
		break;
	case NF_SELF:
		set_count(v, node->self_ns);
		break;
	case NF_MIN:
		set_node_measure(v, n, node->min_ns);
		break;
	case NF_MEAN:
		set_node_measure(v, n, node->count ? node->total_ns / node->count : 0);
		break;
	case NF_P99:
		if (!node->exact) /* the kernel has no histogram of a node */
			return;
		enough = dist__quantile(node->exact, 0.99, &p99);
		set_node_measure(v, n, enough ? (uint64_t)p99 : SNAP_UNKNOWN);
		break;
	case NF_MAX:
		set_node_measure(v, n, node->max_ns);
		break;
	default: /* NF_SHARE */
		v->state = FIELD_KNOWN;
		v->num = n->share;
		break;
	}
}

const char *field__format(const struct field *f, const struct field_value *v, char buf[UNIT_TEXT])
{
	if (v->state != FIELD_KNOWN)
		return "-";
	switch (f->type) {
	case FIELD_TEXT:
		return v->text;
	case FIELD_COUNT:
		return unit__count(buf, (uint64_t)v->num);
	case FIELD_RATE:
		return unit__rate(buf, (double)v->num);
	case FIELD_SHARE:
		return unit__share(buf, (double)v->num);
	case FIELD_MEASURE:
	case FIELD_TOTAL:
		if (!v->is_ns)
			return unit__value(buf, v->num);
		unit__time(buf, v->num);
		if (v->below_floor) {
			memmove(buf + 1, buf, UNIT_TEXT - 1);
			buf[0] = '~';
		}
		return buf;
	}
	return "-";
}

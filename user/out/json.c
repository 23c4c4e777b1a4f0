/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json.c - the summary document, schema qbpf.summary/1 (docs/json.md). */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/fields.h"
#include "out/cuda.h"
#include "out/gpu.h"
#include "out/json.h"
#include "out/json_summary.h"
#include "out/text.h"

static void put_field(struct json_doc *d, json_t *object, const struct field *f,
		      const struct field_value *v)
{
	char key[32];
	json_t *value;

	if (!f->json || v->state == FIELD_ABSENT)
		return;
	snprintf(key, sizeof(key), "%s%s", f->json, v->is_ns ? "_ns" : "");
	if (f->type == FIELD_TEXT) {
		json_put_text(d, object, key, v->text);
		return;
	}
	if (v->state == FIELD_UNKNOWN)
		value = json_null();
	else if (v->is_ns)
		value = json_measure(roundl(v->num));
	else
		value = json_measure(v->num);
	json_put(d, object, key, value);
}

static json_t *target(struct json_doc *d, const struct snapshot *s)
{
	json_t *t = json_object(), *pids = json_array();

	for (size_t i = 0; i < s->npids; i++)
		json_append(d, pids, json_integer(s->pids[i]));
	json_put(d, t, "pids", pids);
	json_put_text(d, t, "comm", s->comm);
	json_put_text(d, t, "exe", s->exe);
	if (s->ended)
		json_put(d, t, "ended", json_true());
	return t;
}

static json_t *host(struct json_doc *d, const struct snapshot *s)
{
	json_t *h = json_object();

	json_put_text(d, h, "kernel", s->kernel);
	json_put_text(d, h, "cpu", s->cpu);
	if (s->cpus)
		json_put(d, h, "cpus", json_integer(s->cpus));
	json_put_text(d, h, "clocksource", s->clocksource);
	return h;
}

static json_t *site_notes(struct json_doc *d, const struct snap_site_note *notes, size_t n,
			  const char *why)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_put_text(d, o, "site", notes[i].site);
		json_put_text(d, o, why, notes[i].reason);
		json_append(d, array, o);
	}
	return array;
}

static json_t *probes(struct json_doc *d, const struct snapshot *s)
{
	json_t *p = json_object(), *notes;

	json_put(d, p, "armed", json_count(s->armed));
	json_put(d, p, "relocated", json_count(s->relocated));
	json_put(d, p, "refused", site_notes(d, s->refused, s->nrefused, "reason"));
	json_put(d, p, "failed", site_notes(d, s->failed, s->nfailed, "error"));
	if (!s->nnotes)
		return p;
	notes = json_array();
	for (size_t i = 0; i < s->nnotes; i++)
		json_append_text(d, notes, s->notes[i]);
	json_put(d, p, "notes", notes);
	return p;
}

static json_t *price(struct json_doc *d, const struct snapshot *s)
{
	json_t *p = json_object(), *per_span = json_object(), *per_hit = json_object();
	double overhead = snapshot__overhead_pct(s);

	for (size_t i = 0; i < s->nspans; i++) {
		char *name = text__valid(s->spans[i].name ? s->spans[i].name : "?");

		if (s->spans[i].price_ns)
			json_put(d, per_span, name, json_count(s->spans[i].price_ns));
		free(name);
	}
	for (int c = 0; c < PRICE_N; c++)
		if (s->price_ns[c])
			json_put(d, per_hit, price_class_name(c), json_count(s->price_ns[c]));
	if (json_object_size(per_span))
		json_put(d, p, "ns_per_span", json_incref(per_span));
	if (json_object_size(per_hit))
		json_put(d, p, "ns_per_hit", json_incref(per_hit));
	json_decref(per_span);
	json_decref(per_hit);
	json_put(d, p, "hits_per_s", json_real(snapshot__hits_per_s(s)));
	if (overhead >= 0)
		json_put(d, p, "overhead_pct", json_real(overhead));
	if (s->map_bytes)
		json_put(d, p, "map_bytes", json_count(s->map_bytes));
	return p;
}

/* [[low, high, count], ...]: low <= v < high, ascending, empty buckets left out. */
static json_t *histogram(struct json_doc *d, const struct hist *h)
{
	json_t *array = json_array();
	struct hist_bucket *b = NULL;
	size_t n = hist__buckets(h, &b);

	for (size_t i = 0; i < n; i++) {
		json_t *bucket = json_array();

		json_append(d, bucket, json_measure(b[i].lo));
		json_append(d, bucket, json_measure(b[i].hi));
		json_append(d, bucket, json_count(b[i].n));
		json_append(d, array, bucket);
	}
	d->failed |= hist__count(h) && !b;
	free(b);
	return array;
}

json_t *json_span(struct json_doc *d, const struct span_row *r, bool full)
{
	static const char *const units[ROW_CLASSES] = {"ns", "ns", "value"};
	/* An instant's figures are intervals: set apart, never to be taken for a latency. */
	json_t *o = json_object(), *measures = r->class == ROW_INSTANT ? json_object() : o;
	struct field_value v;

	for (enum span_field f = 0; f < SF_N; f++) {
		bool measure = f >= SF_SUM && f <= SF_MAX;

		span_field__get(r, f, &v);
		put_field(d, measure ? measures : o, &span_fields[f], &v);
		if (f == SF_KIND)
			json_put(d, o, "unit", json_string(units[r->class]));
	}
	if (full && r->in_hist)
		json_put(d, measures, "histogram", histogram(d, r->span->hist));
	if (r->class == ROW_INSTANT) {
		json_put(d, measures, "count", json_count(r->in_hist));
		json_put(d, o, "interval", measures);
	}
	return o;
}

json_t *json_tree(struct json_doc *d, const struct tree *t)
{
	json_t *roots = json_array(), **children;
	const struct tree_node *n;
	unsigned int deepest = 0;
	struct field_value v;

	for (n = tree_node__next(tree__root(t)); n; n = tree_node__next(n))
		deepest = n->depth > deepest ? n->depth : deepest;
	/* children[k]: where nodes of depth k are to be put. */
	children = calloc(deepest + 2, sizeof(*children));
	if (!children) {
		d->failed = true;
		return roots;
	}
	children[0] = roots;
	for (n = tree_node__next(tree__root(t)); n; n = tree_node__next(n)) {
		json_t *o = json_object();

		for (enum node_field f = 0; f < NF_N; f++) {
			node_field__get(n, f, &v);
			put_field(d, o, &node_fields[f], &v);
		}
		children[n->depth + 1] = json_array();
		json_put(d, o, "children", children[n->depth + 1]);
		json_append(d, children[n->depth], o);
	}
	free(children);
	return roots;
}

static const char *const loss_reasons[SNAP_LOSSES] = {
    [SNAP_LOSS_DEPTH] = "depth_overflow", [SNAP_LOSS_HIST] = "hist_overflow",
    [SNAP_LOSS_STORAGE] = "no_storage",	  [SNAP_LOSS_UNREADABLE] = "unreadable",
    [SNAP_LOSS_KEYS] = "key_overflow",	  [SNAP_LOSS_MUTED] = "ret_muted",
};

static void put_recorded(struct json_doc *d, json_t *o, const struct snap_recorded *r)
{
	json_put(d, o, "held", json_count(r->held));
	json_put(d, o, "lost", json_count(r->lost));
	json_put(d, o, "skipped", json_count(r->skipped));
	if (r->over)
		json_put(d, o, "over", json_count(r->over));
}

static struct snap_recorded recorded_sum(const struct snapshot *s)
{
	struct snap_recorded sum = {0};

	for (size_t i = 0; i < s->nspans; i++) {
		sum.held += s->spans[i].recorded.held;
		sum.lost += s->spans[i].recorded.lost;
		sum.skipped += s->spans[i].recorded.skipped;
		sum.over += s->spans[i].recorded.over;
	}
	return sum;
}

static json_t *trace(struct json_doc *d, const struct snapshot *s)
{
	struct snap_recorded sum = recorded_sum(s);
	uint64_t *counts = snapshot__counts(s), counted = 0;
	json_t *t = json_object();

	json_put_text(d, t, "file", s->recording);
	json_put(d, t, "bytes", json_count(s->recording_bytes));
	put_recorded(d, t, &sum);
	d->failed |= !counts;
	for (size_t i = 0; counts && i < s->nspans; i++)
		counted += counts[i];
	free(counts);
	json_put(d, t, "counted", json_count(counted));
	if (s->recording_fault)
		json_put_text(d, t, "fault", s->recording_fault);
	return t;
}

static json_t *lost(struct json_doc *d, const struct snapshot *s)
{
	json_t *l = json_object(), *sources = json_object(), *spans = json_object();
	json_t *reasons = json_object();
	uint64_t total = snapshot__lost(s);

	json_put(d, sources, "bpf", json_count(total));
	if (s->recording)
		json_put(d, sources, "stream", json_count(recorded_sum(s).lost));
	if (s->gpu || snapshot__gpu_lost(s))
		json_put(d, sources, "gpu", json_count(snapshot__gpu_lost(s)));
	if (s->gpu_unseen)
		json_put(d, sources, "gpu_spans", json_count(s->gpu_unseen));
	for (size_t i = 0; i < s->nspans; i++) {
		uint64_t n = snap_span__lost(&s->spans[i]);
		char *name = text__valid(s->spans[i].name ? s->spans[i].name : "?");

		if (n)
			json_put(d, spans, name, json_count(n));
		free(name);
	}
	for (int why = 0; why < SNAP_LOSSES; why++) {
		uint64_t n = 0;

		for (size_t i = 0; i < s->nspans; i++)
			n += snap_span__lost_by(&s->spans[i], why);
		if (n)
			json_put(d, reasons, loss_reasons[why], json_count(n));
	}
	json_put(d, l, "events", json_count(total));
	json_put(d, l, "by_source", sources);
	json_put(d, l, "by_probe", spans);
	json_put(d, l, "by_reason", reasons);
	return l;
}

int json_summary(struct json_doc *d, const struct snapshot *s, const struct snapshot *costs,
		 bool full)
{
	struct span_rows rows = {0};
	struct tree *t = tree__new(s);
	json_t *spans = json_array();
	int err = t ? span_rows__make(&rows, s, t) : -ENOMEM;

	d->root = json_object();
	if (err) {
		json_decref(spans);
		goto out;
	}
	json_put(d, d->root, "schema", json_string("qbpf.summary/1"));
	json_put(d, d->root, "target", target(d, s));
	json_put(d, d->root, "host", host(d, s));
	json_put(d, d->root, "duration_ns",
		 json_count(s->now_ns > s->start_ns ? s->now_ns - s->start_ns : 0));
	json_put(d, d->root, "probes", probes(d, costs ? costs : s));
	if (costs)
		json_put(d, d->root, "price", price(d, costs));
	for (size_t i = 0; i < rows.n; i++) {
		json_t *o;

		if (span_row__refused(&rows.rows[i]))
			continue;
		o = json_span(d, &rows.rows[i], full);
		if (s->recording)
			put_recorded(d, o, &rows.rows[i].span->recorded);
		json_append(d, spans, o);
	}
	json_put(d, d->root, "spans", spans);
	json_put(d, d->root, "tree", json_tree(d, t));
	if (s->cuda)
		json_put(d, d->root, "cuda", json_cuda(d, s));
	if (s->gpu) {
		json_t *gpu = json_gpu(d, s->gpu), *losses = json_gpu_losses(d, s);

		if (losses)
			json_put(d, gpu, "losses", losses);
		json_put(d, d->root, "gpu", gpu);
	}
	json_put(d, d->root, "lost", lost(d, s));
	if (s->recording)
		json_put(d, d->root, "trace", trace(d, s));
out:
	span_rows__clear(&rows);
	tree__free(t);
	return err;
}

int json__write_summary(FILE *f, const struct snapshot *s, bool compact)
{
	struct json_doc d = {0};
	int err = json_summary(&d, s, s, !compact);

	if (!err)
		return json_doc__write(&d, f, compact);
	json_decref(d.root);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report_json.c - the summary document of a recording: that of a session, with what only a file can
 * tell appended (docs/json.md).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "out/json_summary.h"
#include "out/report_impl.h"

#define STRETCHES 100

static void put_ns(struct json_doc *d, json_t *o, const char *key, uint64_t ns)
{
	json_put(d, o, key, json_count(ns));
}

/* What is not known is absent. */
static void put_known(struct json_doc *d, json_t *o, const char *key, uint64_t n)
{
	if (n != UINT64_MAX)
		json_put(d, o, key, json_count(n));
}

static json_t *trace(struct json_doc *d, const struct analysis *a, const char *path)
{
	const struct trace_info *info = a->info;
	json_t *t = json_object();

	json_put_text(d, t, "file", path);
	json_put(d, t, "bytes", json_count(info->file_bytes));
	json_put_text(d, t, "recorded_by", info->meta.qbpf_version);
	json_put_text(d, t, "command", info->meta.command);
	json_put_text(d, t, "hostname", info->meta.hostname);
	put_ns(d, t, "start_ns", info->meta.start_ns);
	put_ns(d, t, "start_realtime_ns", info->meta.realtime_ns);
	json_put(d, t, "held", json_count(a->held));
	put_known(d, t, "counted", a->counted);
	put_known(d, t, "lost", a->lost);
	put_known(d, t, "skipped", a->skipped);
	if (info->meta.sample > 1)
		json_put(d, t, "sample", json_integer(info->meta.sample));
	if (info->meta.slow[0])
		json_put_text(d, t, "slow", info->meta.slow);
	json_put(d, t, "clean", json_boolean(info->clean));
	if (!info->clean)
		json_put(d, t, "cut_at", json_count(info->cut_at));
	json_put(d, t, "exact", json_boolean(a->exact));
	if (a->backwards)
		json_put(d, t, "backwards", json_count(a->backwards));
	if (a->unknown)
		json_put(d, t, "unknown", json_count(a->unknown));
	return t;
}

/* How much of each span is in the file, and the kernel's figures of those that are not whole. */
static int append_to_spans(struct json_doc *d, const struct analysis *a, const struct snapshot *s)
{
	json_t *spans = json_object_get(d->root, "spans");
	struct tree *t = a->kernel ? tree__new(a->kernel) : NULL;
	struct span_rows rows = {0};
	size_t at = 0;
	int err = 0;

	if (a->kernel)
		err = t ? span_rows__make(&rows, a->kernel, t) : -ENOMEM;
	for (size_t i = 0; !err && i < s->nspans; i++) {
		const struct an_span *from = &a->spans[i];
		json_t *o;

		if (s->spans[i].refused && !from->held)
			continue;
		o = json_array_get(spans, at++);
		json_put(d, o, "held", json_count(from->held));
		put_known(d, o, "counted", from->counted);
		put_known(d, o, "lost", from->lost);
		put_known(d, o, "skipped", from->skipped);
		if (from->def->kind != SPAN_VALUE && from->def->kind != SPAN_INSTANT)
			put_ns(d, o, "self_ns", from->self_ns);
		if (from->backwards)
			json_put(d, o, "backwards", json_count(from->backwards));
		if (from->counted != UINT64_MAX && from->held < from->counted && i < rows.n)
			json_put(d, o, "kernel", json_span(d, &rows.rows[i], false));
	}
	span_rows__clear(&rows);
	tree__free(t);
	return err;
}

static json_t *edges(struct json_doc *d, const struct analysis *a)
{
	json_t *array = json_array();

	for (size_t i = 0; i < a->nedges; i++) {
		const struct an_edge *e = &a->edges[i];
		json_t *o = json_object();

		/* Nothing around it: null. Not known: no key. */
		if (!e->caller)
			json_put(d, o, "caller", json_null());
		else if (e->caller - 1 < a->info->nspans)
			json_put_text(d, o, "caller", report__span_name(a, e->caller));
		json_put_text(d, o, "callee", report__span_name(a, e->callee));
		json_put(d, o, "count", json_count(e->count));
		if (e->total_ns)
			put_ns(d, o, "sum_ns", e->total_ns);
		json_append(d, array, o);
	}
	return array;
}

static json_t *hot(struct json_doc *d, const struct analysis *a, double least)
{
	json_t *array = json_array();
	uint64_t all;
	uint32_t *spans;
	size_t n = report__hot_spans(a, least, &spans, &all);

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();
		uint64_t self = a->spans[spans[i] - 1].self_ns;

		json_put_text(d, o, "name", report__span_name(a, spans[i]));
		put_ns(d, o, "self_ns", self);
		json_put(d, o, "share", json_real((double)self / (double)all));
		json_append(d, array, o);
	}
	free(spans);
	return array;
}

static void put_thread(struct json_doc *d, json_t *o, const struct analysis *a, uint32_t thread)
{
	const struct trace_thread *t = &a->info->threads[thread];

	json_put_text(d, o, "thread", t->name);
	json_put(d, o, "tgid", json_integer(t->tgid));
	json_put(d, o, "tid", json_integer(t->tid));
}

static json_t *path(struct json_doc *d, const struct analysis *a, const struct an_path *p)
{
	json_t *o = json_object(), *steps = json_array();

	put_thread(d, o, a, p->root.thread);
	put_ns(d, o, "start_ns", p->root.start_ns);
	put_ns(d, o, "duration_ns", p->root.end_ns - p->root.start_ns);
	for (size_t i = 0; i < p->n; i++) {
		json_t *step = json_object();

		json_put_text(d, step, "name", report__span_name(a, p->steps[i].span));
		put_ns(d, step, "duration_ns", p->steps[i].ns);
		put_ns(d, step, "self_ns", p->steps[i].self_ns);
		json_put(d, step, "share", json_real(p->steps[i].share));
		json_append(d, steps, step);
	}
	json_put(d, o, "steps", steps);
	return o;
}

static json_t *critical_path(struct json_doc *d, const struct analysis *a)
{
	json_t *o = json_object();

	json_put_text(d, o, "root", report__span_name(a, a->root));
	json_put(d, o, "slowest", path(d, a, &a->slowest_path));
	if (a->median_path.n)
		json_put(d, o, "median", path(d, a, &a->median_path));
	return o;
}

static void put_quantile(struct json_doc *d, json_t *o, const char *key, const struct hist *h,
			 double q)
{
	long double v;
	bool known = h && hist__quantile(h, q, &v);

	json_put(d, o, key, known ? json_measure(v) : json_null());
}

static json_t *over_time(struct json_doc *d, const struct analysis *a, uint32_t span)
{
	bool ns = a->info->spans[span - 1].kind != SPAN_VALUE;
	json_t *o = json_object(), *array = json_array();
	struct report_stretch *s;
	size_t n = report__stretches(a, span, STRETCHES, &s);

	json_put_text(d, o, "span", report__span_name(a, span));
	for (size_t i = 0; i < n; i++) {
		json_t *w = json_object();

		put_ns(d, w, "from_ns", s[i].from_ns);
		json_put(d, w, "count", json_count(s[i].count));
		put_quantile(d, w, ns ? "p50_ns" : "p50", s[i].hist, 0.5);
		put_quantile(d, w, ns ? "p90_ns" : "p90", s[i].hist, 0.9);
		put_quantile(d, w, ns ? "p99_ns" : "p99", s[i].hist, 0.99);
		put_quantile(d, w, ns ? "max_ns" : "max", s[i].hist, 1);
		json_append(d, array, w);
	}
	d->failed |= !s;
	json_put(d, o, "stretches", array);
	report__free_stretches(s, n);
	return o;
}

static json_t *open_spans(struct json_doc *d, const struct analysis *a)
{
	json_t *array = json_array();

	for (size_t i = 0; i < a->nopen; i++) {
		json_t *o = json_object();

		json_put_text(d, o, "name", report__span_name(a, a->open[i].span));
		put_thread(d, o, a, a->open[i].thread);
		put_ns(d, o, "start_ns", a->open[i].start_ns);
		put_ns(d, o, "open_for_ns", a->open[i].end_ns - a->open[i].start_ns);
		json_append(d, array, o);
	}
	return array;
}

static json_t *losses(struct json_doc *d, const struct analysis *a)
{
	static const char *const sources[] = {"bpf", "ring", "gpu"};
	json_t *array = json_array();

	for (size_t i = 0; i < a->info->nlosses; i++) {
		const struct trace_loss *l = &a->info->losses[i];
		json_t *o = json_object();

		json_put_text(d, o, "name", report__span_name(a, l->span));
		if (l->source < COUNT_OF(sources))
			json_put(d, o, "source", json_string(sources[l->source]));
		put_ns(d, o, "from_ns", l->from_ns);
		put_ns(d, o, "to_ns", l->to_ns);
		json_put(d, o, "lost", json_count(l->lost));
		json_put(d, o, "skipped", json_count(l->skipped));
		json_append(d, array, o);
	}
	return array;
}

static json_t *threads(struct json_doc *d, const struct analysis *a, const struct snapshot *s)
{
	json_t *array = json_array();

	for (size_t i = 0; i < a->info->nthreads; i++) {
		struct snapshot one = *s; /* but for its nodes */
		struct tree *t = NULL;

		if (!analysis__snap_nodes(a, i, &one.nodes, &one.nnodes))
			t = tree__new(&one);
		d->failed |= !t;
		if (t && tree__root(t)->first_child) {
			json_t *o = json_object();

			put_thread(d, o, a, i);
			json_put(d, o, "tree", json_tree(d, t));
			json_append(d, array, o);
		}
		tree__free(t);
		free(one.nodes);
	}
	return array;
}

int report__write_json(FILE *f, const struct analysis *a, const struct report_opts *o)
{
	struct snapshot *s = analysis__snapshot(a);
	uint32_t span = o->span ? analysis__span(a, o->span) : a->root;
	bool whole = a->counted != UINT64_MAX && a->held >= a->counted;
	struct json_doc d = {0};
	int err = -ENOMEM;

	if (s)
		err = json_summary(&d, s, a->kernel ? a->kernel : whole ? s : NULL, true);
	if (!err)
		err = append_to_spans(&d, a, s);
	if (err) {
		json_decref(d.root);
		goto out;
	}
	json_put(&d, d.root, "trace", trace(&d, a, o->path));
	if (a->lost != UINT64_MAX)
		json_put(&d, json_object_get(json_object_get(d.root, "lost"), "by_source"),
			 "stream", json_count(a->lost));
	if (a->gpu && a->info->ngpu_losses)
		json_put(&d, json_object_get(d.root, "gpu"), "losses", report__gpu_losses(&d, a));
	json_put(&d, d.root, "edges", edges(&d, a));
	json_put(&d, d.root, "hot", hot(&d, a, o->hot));
	if (a->slowest_path.n)
		json_put(&d, d.root, "critical_path", critical_path(&d, a));
	if (span)
		json_put(&d, d.root, "over_time", over_time(&d, a, span));
	json_put(&d, d.root, "open", open_spans(&d, a));
	json_put(&d, d.root, "losses", losses(&d, a));
	if (o->threads)
		json_put(&d, d.root, "threads", threads(&d, a, s));
	err = json_doc__write(&d, f, false);
out:
	snapshot__free(s);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * side_trace.c - a side from a trace: the analysis for its figures, then one more pass for what the
 * intervals need: sums, and how many durations lie above each percentile, by stretch of time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/analysis.h"
#include "model/side_load.h"
#include "model/snapshot_file.h"

/* Of all windows. Items with few spans do without when there are too many items for it. */
#define WINDOW_BYTES (96u << 20)

struct side_source {
	struct trace_reader *reader;
	struct analysis *an;
};

void side__free_trace(struct side_source *src)
{
	if (!src)
		return;
	analysis__free(src->an);
	trace_reader__free(src->reader);
	free(src);
}

static enum side_class class_of(const struct trace_span *def)
{
	if (def->kind == SPAN_INSTANT || (def->kind == SPAN_FUNC && def->way == RET_NONE))
		return SIDE_INSTANT;
	return def->kind == SPAN_VALUE ? SIDE_VALUE : SIDE_TIME;
}

static void set_dist(struct side_item *it, const struct dist *d)
{
	uint64_t n = d ? dist__count(d) - dist__nan(d) : 0;

	if (it->class == SIDE_INSTANT || !n)
		return;
	it->dist = d;
	it->measured = true;
	it->min = (double)dist__min(d);
	it->max = (double)dist__max(d);
}

static void add_loss(uint64_t *lost, uint64_t more)
{
	*lost = *lost == SIDE_UNKNOWN ? more : *lost + more;
}

static int add_spans(struct side *s, const struct analysis *an)
{
	for (size_t i = 0; i < an->info->nspans; i++) {
		const struct an_span *span = &an->spans[i];
		struct side_item *it = side__add(s, span->def->name);

		if (!it)
			return -ENOMEM;
		it->class = class_of(span->def);
		it->keyed = span->def->kind == SPAN_KEYED;
		it->count = span->held;
		it->lost = span->lost;
		it->open = span->open;
		set_dist(it, span->dist);
		it->total = it->class == SIDE_VALUE ? (double)dist__sum(span->dist)
						    : (double)span->total_ns;
		it->self = span->self_ns;
	}
	s->nspans = s->n;
	/* Cut short: what was lost until then is a lower bound, and more than nothing is enough. */
	for (size_t i = 0; !an->info->clean && i < an->info->nlosses; i++) {
		const struct trace_loss *l = &an->info->losses[i];

		if (!l->lost || !l->span || l->span > s->nspans)
			continue;
		add_loss(&s->items[l->span - 1].lost, l->lost);
		add_loss(&s->lost, l->lost);
	}
	return 0;
}

static void look_at_gpu(struct side *s, const struct analysis *an)
{
	const struct trace_info *info = an->info;

	s->has_gpu = info->ngpu_records || info->ngpu_losses;
	s->gpu_lost = an->gpu ? an->gpu->dropped : 0;
	for (size_t i = 0; i < info->ngpu_losses; i++)
		s->gpu_lost += info->gpu_losses[i].lost;
	for (size_t i = 0; an->gpu && i < an->gpu->nagents; i++)
		s->gpu_ended |= an->gpu->agents[i].end == QBPF_RING_FATAL ||
				an->gpu->agents[i].end == QBPF_RING_SUDDEN;
	/* Cut short: as of spans. */
	if (!info->clean && !s->gpu_lost)
		s->gpu_lost = SIDE_UNKNOWN;
}

/* What only the kernel counted. */
static int add_counts(struct side *s, const struct trace_info *info, struct err *e)
{
	struct snapshot *snap;
	uint64_t lost;
	int err;

	if (!info->aggregates_len)
		return 0;
	err = snapshot__unpack(info->aggregates, info->aggregates_len, &snap, e);
	if (err == -EPROTO)
		return 0; /* of a later version: not known, as if it were not there */
	if (err)
		return err;
	for (size_t i = 0; i < s->nspans && i < snap->nspans; i++) {
		if (strcmp(s->items[i].name, snap->spans[i].name))
			continue;
		s->items[i].open = snap->spans[i].open;
		s->items[i].orphan_ends = snap->spans[i].orphan_ends;
		s->items[i].abandoned = snap->spans[i].abandoned;
		/* Lost to all figures, not only to the file: no depth, no memory. */
		lost = snap_span__lost(&snap->spans[i]);
		if (!lost)
			continue;
		add_loss(&s->items[i].lost, lost);
		add_loss(&s->lost, lost);
	}
	snapshot__free(snap);
	return 0;
}

/* The node of an id; nodes are sorted by it. */
static size_t find_node(const struct analysis *an, uint32_t id)
{
	size_t lo = 0, hi = an->nnodes;

	/* Ids are dense as a rule. */
	if (id && id <= an->nnodes && an->nodes[id - 1].id == id)
		return id - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (an->nodes[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < an->nnodes && an->nodes[lo].id == id ? lo : SIZE_MAX;
}

static int add_nodes(struct side *s, const struct analysis *an)
{
	for (size_t i = 0; i < an->nnodes; i++) {
		const struct an_node *node = &an->nodes[i];
		bool named = node->span && node->span <= an->info->nspans;
		struct side_item *it = side__add(s, named ? s->items[node->span - 1].name : "?");
		size_t parent = find_node(an, node->parent);

		if (!it)
			return -ENOMEM;
		it->node = true;
		it->class = named ? s->items[node->span - 1].class : SIDE_TIME;
		it->span = named ? node->span - 1 : SIDE_NONE;
		if (parent < i)
			it->parent = s->nspans + parent;
		it->count = node->count;
		it->total = node->total_ns;
		it->self = node->self_ns;
		set_dist(it, node->dist);
	}
	return 0;
}

/* Windows for all items that had at least as many spans as there is room for. */
static int make_windows(struct side *s)
{
	size_t each = sizeof(struct side_windows) + s->nq * sizeof(s->items->windows->above[0]);
	size_t room = WINDOW_BYTES / each, n;
	uint64_t least = 1;

	for (;; least *= 2) {
		n = 0;
		for (size_t i = 0; i < s->n; i++)
			n += s->items[i].count >= least;
		if (n <= room)
			break;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (s->items[i].count < least)
			continue;
		s->items[i].windows = calloc(1, each);
		if (!s->items[i].windows)
			return -ENOMEM;
	}
	return 0;
}

/* Of each item the durations that are its percentiles; INFINITY: it has no such. */
static double *make_thresholds(const struct side *s)
{
	double *t = malloc((s->n * s->nq + 1) * sizeof(*t));

	for (size_t i = 0; t && i < s->n; i++)
		for (size_t k = 0; k < s->nq; k++) {
			const struct dist *d = s->items[i].dist;
			long double v;

			t[i * s->nq + k] =
			    d && dist__quantile(d, s->q[k], &v) ? (double)v : INFINITY;
		}
	return t;
}

struct pass {
	struct side *s;
	const struct analysis *an;
	double *thresholds;
	double windows_per_ns;
};

static double value_of(const struct event *ev, enum qbpf_hist_kind kind)
{
	double d;

	if (ev->kind != EVENT_VALUE)
		return (double)(ev->end_ns - ev->start_ns);
	if (kind == QBPF_HIST_INT)
		return (double)(int64_t)ev->arg;
	memcpy(&d, &ev->arg, sizeof(d));
	return d;
}

static void tally(const struct pass *p, size_t item, size_t window, double v, double self)
{
	struct side_windows *w = p->s->items[item].windows;
	const double *t = p->thresholds + item * p->s->nq;

	if (!w)
		return;
	w->count[window]++;
	w->total[window] += v;
	w->self[window] += self;
	for (size_t k = 0; k < p->s->nq; k++)
		w->above[k][window] += v >= t[k];
}

static void look_at(const struct pass *p, const struct event *ev)
{
	size_t span = ev->span - 1, window = 0, node;
	double v, self;

	if (ev->kind == EVENT_OPEN || span >= p->s->nspans || ev->end_ns < ev->start_ns)
		return;
	if (ev->end_ns > p->an->start_ns)
		window = (double)(ev->end_ns - p->an->start_ns) * p->windows_per_ns;
	if (window >= INTERVAL_WINDOWS)
		window = INTERVAL_WINDOWS - 1;
	v = value_of(ev, p->an->spans[span].def->hist);
	if (isnan(v))
		v = 0;
	self = v - (double)ev->child_ns;
	tally(p, span, window, v, self > 0 ? self : 0);
	if (!ev->node)
		return;
	node = find_node(p->an, ev->node);
	if (node != SIZE_MAX)
		tally(p, p->s->nspans + node, window, v, self > 0 ? self : 0);
}

/* What the pass saw less of than the analysis did gets no interval, rather than a wrong one. */
static void drop_partial(struct side *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct side_item *it = &s->items[i];
		uint64_t n = 0;

		for (int w = 0; it->windows && w < INTERVAL_WINDOWS; w++)
			n += it->windows->count[w];
		if (n == it->count)
			continue;
		free(it->windows);
		it->windows = NULL;
	}
}

static int look_at_windows(struct side *s, struct side_source *src, struct err *e)
{
	uint64_t ns = src->an->end_ns - src->an->start_ns;
	struct pass p = {s, src->an, make_thresholds(s), ns ? (double)INTERVAL_WINDOWS / ns : 0};
	const struct event *events;
	size_t n;
	int err = p.thresholds ? make_windows(s) : -ENOMEM;

	if (err) {
		err_set(e, err, "out of memory");
		goto out;
	}
	err = trace_reader__start(src->reader, TRACE_ALL_THREADS, false);
	if (err) {
		err_set(e, err, "%s: cannot be read again", s->path);
		goto out;
	}
	while ((err = trace_reader__next(src->reader, &events, &n, e)) > 0)
		for (size_t i = 0; i < n; i++)
			look_at(&p, &events[i]);
	drop_partial(s);
out:
	free(p.thresholds);
	return err;
}

int side__load_trace(struct side *s, struct err *e)
{
	struct analysis_opts o = {.windows = 1};
	struct side_source *src = calloc(1, sizeof(*src));
	const struct trace_info *info;
	int err;

	if (!src)
		return err_set(e, -ENOMEM, "out of memory");
	s->source = src;
	err = trace_reader__open(s->path, &src->reader, e);
	if (err)
		return err;
	err = analysis__new(src->reader, &o, &src->an, e);
	if (err)
		return err;
	info = src->an->info;
	s->seconds = (double)(src->an->end_ns - src->an->start_ns) / 1e9;
	s->clean = info->clean;
	s->lost = src->an->lost;
	s->inexact = !src->an->exact;
	s->sample = info->meta.sample;
	if (*info->meta.slow) {
		s->slow = strdup(info->meta.slow);
		if (!s->slow)
			return err_set(e, -ENOMEM, "out of memory");
	}
	if (add_spans(s, src->an) || add_nodes(s, src->an))
		return err_set(e, -ENOMEM, "out of memory");
	look_at_gpu(s, src->an);
	err = add_counts(s, info, e);
	return err ? err : look_at_windows(s, src, e);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * analysis.c - what a recording says: the first pass, over all events, from the last to the first.
 *
 * In that order a span comes before what ran inside it, so whatever needs to know what is around an
 * event needs no memory but that of the spans now around. Distributions are kept by place in the call
 * tree; those of the spans follow from them.
 *
 * The second pass (analysis_trees.c) reads only where the slowest and the median outermost spans are;
 * a third (analysis_instants.c) only where instants are hit by several threads, whose intervals need
 * the order of time that a file does not have.
 */
#include <string.h>

#include "model/analysis_impl.h"
#include "model/snapshot_file.h"

#define WINDOWS	      100
#define WINDOWS_LEAST 10
#define SPAN_WINDOWS  48000 /* of all spans together, so that they stay below 64 MiB */
#define TREE_MAX      10000
#define POOL_BYTES    (160ull << 20)
#define AHEAD	      12    /* events to prefetch */
#define NODE_DISTS    50000 /* of each thread apart; about 1 kB each */
#define WINDOW_BYTES  1200  /* about what one span costs in one window */

uint32_t an__window(struct an_build *b, uint64_t ns)
{
	uint64_t w;

	if (ns >= b->lo_ns && ns < b->hi_ns)
		return b->window;
	w = ns > b->a.start_ns ? (ns - b->a.start_ns) / b->window_ns : 0;
	if (w >= b->a.nwindows)
		w = b->a.nwindows - 1;
	b->window = w;
	b->lo_ns = b->a.start_ns + w * b->window_ns;
	b->hi_ns = b->lo_ns + b->window_ns;
	return w;
}

static enum qbpf_hist_kind value_kind(const struct trace_span *def)
{
	return def->kind == SPAN_VALUE && def->hist <= QBPF_HIST_F64 ? def->hist : QBPF_HIST_NS;
}

static struct an_window *window_of(struct an_build *b, struct an_span *s, uint64_t at_ns)
{
	if (!s->windows)
		s->windows = calloc(b->a.nwindows, sizeof(*s->windows));
	return s->windows ? &s->windows[an__window(b, at_ns)] : NULL;
}

static int window_value(const struct an_span *s, struct an_window *w, uint64_t value)
{
	if (!w->hist)
		w->hist = hist__new(value_kind(s->def));
	return w->hist ? hist__add(w->hist, value) : -ENOMEM;
}

static int add_duration(struct dist **d, struct dist_pool *p, uint64_t ns)
{
	if (!*d)
		*d = dist__new(p, QBPF_HIST_NS);
	return *d ? dist__add(*d, ns, 1) : -ENOMEM;
}

int an__add_interval(struct an_build *b, struct an_span *s, uint64_t at_ns, uint64_t ns)
{
	struct an_window *w = window_of(b, s, at_ns);

	if (!w || add_duration(&s->dist, b->pool, ns))
		return -ENOMEM;
	return window_value(s, w, ns);
}

void an__forget_intervals(struct an_build *b, struct an_span *s)
{
	dist__free(s->dist);
	s->dist = NULL;
	for (size_t w = 0; w < b->a.nwindows; w++) {
		hist__free(s->windows[w].hist);
		s->windows[w].hist = NULL;
	}
}

/* The fastest of the slowest stands first and gives way. */
static void keep_slowest(struct an_gather *g, size_t max, const struct event *ev, uint64_t ns)
{
	struct an_instance *h = g->slowest;
	size_t i, child;

	if (g->nslowest < max) {
		for (i = g->nslowest++; i && h[(i - 1) / 2].ns > ns; i = (i - 1) / 2)
			h[i] = h[(i - 1) / 2];
		h[i] = (struct an_instance){ns, *ev};
		return;
	}
	if (ns <= h[0].ns)
		return;
	for (i = 0; (child = 2 * i + 1) < max; i = child) {
		if (child + 1 < max && h[child + 1].ns < h[child].ns)
			child++;
		if (h[child].ns >= ns)
			break;
		h[i] = h[child];
	}
	h[i] = (struct an_instance){ns, *ev};
}

static int add_candidate(struct an_build *b, const struct event *ev, uint64_t ns)
{
	struct an_gather *g = &b->gather[ev->span - 1];
	/* One at least: it says at which depth the outermost ones are. */
	size_t max = b->opts.slowest ? b->opts.slowest : 1;

	g->outer_ns += ns;
	g->outer++;
	if (!g->slowest)
		g->slowest = malloc(max * sizeof(*g->slowest));
	if (!g->slowest)
		return -ENOMEM;
	keep_slowest(g, max, ev, ns);
	return 0;
}

static int add_span(struct an_build *b, struct an_span *s, const struct event *ev)
{
	uint64_t ns = ev->end_ns - ev->start_ns;
	uint64_t self = ns > ev->child_ns ? ns - ev->child_ns : 0;
	struct an_window *w = window_of(b, s, ev->end_ns);
	struct an_node *n;
	int err;

	if (!w)
		return -ENOMEM;
	err = an__node(b, ev, &n);
	if (err)
		return err;
	if (ev->kind == EVENT_SPAN) {
		if (b->root ? ev->span == b->root : an__outermost(b, ev))
			err = add_candidate(b, ev, ns);
		if (!err)
			err = an__enter(b, ev, n->id);
		if (err)
			return err;
	}
	s->total_ns += ns;
	s->self_ns += self;
	w->count++;
	w->sum_ns += ns;
	w->self_ns += self;
	n->min_ns = n->count && n->min_ns < ns ? n->min_ns : ns;
	n->max_ns = n->max_ns > ns ? n->max_ns : ns;
	n->count++;
	n->total_ns += ns;
	n->self_ns += self;
	if (b->node_pool)
		err = add_duration(&n->dist, b->node_pool, ns);
	/* Else the span's follow from its places'. */
	if (!err && b->node_pool != b->pool)
		err = add_duration(&s->dist, b->pool, ns);
	return err ? err : window_value(s, w, ns);
}

/* A span that nests in nothing, or a value: no place in the tree. */
static int add_alone(struct an_build *b, struct an_span *s, const struct event *ev)
{
	bool value = ev->kind == EVENT_VALUE;
	uint64_t x = value ? ev->arg : ev->end_ns - ev->start_ns;
	struct an_window *w = window_of(b, s, ev->end_ns);

	if (!s->dist)
		s->dist = dist__new(b->pool, value_kind(s->def));
	if (!w || !s->dist || dist__add(s->dist, x, 1))
		return -ENOMEM;
	w->count++;
	if (!value) {
		s->total_ns += x;
		s->self_ns += x;
		w->sum_ns += x;
		w->self_ns += x;
	}
	return window_value(s, w, x);
}

static int add_instant(struct an_build *b, struct an_span *s, const struct event *ev)
{
	struct an_gather *g = &b->gather[ev->span - 1];
	struct an_window *w = window_of(b, s, ev->end_ns);
	uint64_t later = g->later_ns;
	struct an_node *n;
	int err;

	if (!w)
		return -ENOMEM;
	w->count++;
	b->instants[w - s->windows]++;
	err = an__node(b, ev, &n);
	if (err)
		return err;
	n->count++;
	if (g->shared)
		return 0;
	if (s->held > 1 && ev->thread != g->thread) {
		g->shared = true;
		an__forget_intervals(b, s);
		return 0;
	}
	g->thread = ev->thread;
	g->later_ns = ev->start_ns;
	return s->held > 1 && later >= ev->start_ns
		   ? an__add_interval(b, s, later, later - ev->start_ns)
		   : 0;
}

/* Sorted as they come: there are few, and few that are kept. */
static int keep_open(struct an_build *b, const struct event *ev)
{
	size_t at = b->a.nopen;

	if (!b->a.open)
		b->a.open = malloc((AN_OPEN_MAX + 1) * sizeof(*b->a.open));
	if (!b->a.open)
		return -ENOMEM;
	if (at == AN_OPEN_MAX && ev->start_ns >= b->a.open[at - 1].start_ns)
		return 0;
	for (; at && b->a.open[at - 1].start_ns > ev->start_ns; at--)
		b->a.open[at] = b->a.open[at - 1];
	b->a.open[at] = *ev;
	b->a.nopen += b->a.nopen < AN_OPEN_MAX;
	return 0;
}

static int add_open(struct an_build *b, struct an_span *s, const struct event *ev)
{
	struct an_node *n;
	int err;

	s->open++;
	err = keep_open(b, ev);
	if (err || !ev->node) /* 0: keyed */
		return err;
	err = an__node(b, ev, &n);
	return err ? err : an__enter(b, ev, n->id);
}

/* What a span's events are: values, instants, or durations. */
static bool kind_fits(const struct trace_span *def, uint8_t kind)
{
	bool instant =
	    def->kind == SPAN_INSTANT || (def->kind == SPAN_FUNC && def->way == RET_NONE);

	if (kind < EVENT_SPAN || kind >= EVENT_KINDS)
		return false;
	if ((kind == EVENT_VALUE) != (def->kind == SPAN_VALUE))
		return false;
	return (kind == EVENT_INSTANT) == instant;
}

static int add_event(struct an_build *b, const struct event *ev)
{
	struct an_span *s;

	if (ev->span - 1 >= b->info->nspans || ev->thread >= b->info->nthreads ||
	    !kind_fits(&b->info->spans[ev->span - 1], ev->kind)) {
		b->a.unknown++;
		return 0;
	}
	s = &b->a.spans[ev->span - 1];
	if (ev->end_ns < ev->start_ns) {
		s->backwards++;
		return 0;
	}
	if (ev->kind == EVENT_OPEN)
		return add_open(b, s, ev);
	s->held++;
	switch (ev->kind) {
	case EVENT_SPAN:
	case EVENT_ASIDE:
		return add_span(b, s, ev);
	case EVENT_INSTANT:
		return add_instant(b, s, ev);
	default: /* EVENT_KEYED, EVENT_VALUE */
		return add_alone(b, s, ev);
	}
}

static int first_pass(struct an_build *b, struct err *e)
{
	const struct event *ev;
	size_t n;
	int err, more;

	err = trace_reader__start(b->reader, TRACE_ALL_THREADS, true);
	if (err)
		return err_set(e, err, "cannot read the trace: %s", strerror(-err));
	while ((more = trace_reader__next(b->reader, &ev, &n, e)) > 0)
		while (n-- > 0) {
			if (n >= 2 * AHEAD)
				an__prefetch_early(b, &ev[n - 2 * AHEAD]);
			if (n >= AHEAD)
				an__prefetch(b, &ev[n - AHEAD]);
			err = add_event(b, &ev[n]);
			if (err)
				return err_set(e, err, "out of memory");
		}
	return more;
}

/* What the windows divide: the recording, and no less than its events. */
static void plan_windows(struct an_build *b)
{
	const struct trace_info *info = b->info;
	size_t n = b->opts.windows ? b->opts.windows : WINDOWS;
	size_t most = SPAN_WINDOWS / (info->nspans + 1);

	if (most < WINDOWS_LEAST)
		most = WINDOWS_LEAST;
	b->a.nwindows = n < most ? n : most;
	b->a.start_ns = info->meta.start_ns;
	b->a.end_ns = info->end_ns > info->last_ns ? info->end_ns : info->last_ns;
	if (info->nevents && (!b->a.start_ns || info->first_ns < b->a.start_ns))
		b->a.start_ns = info->first_ns;
	if (b->a.end_ns < b->a.start_ns)
		b->a.end_ns = b->a.start_ns;
	b->window_ns = (b->a.end_ns - b->a.start_ns) / b->a.nwindows + 1;
}

/*
 * With places for each thread apart, of which there may be very many, the spans have distributions of
 * their own, and each place one only while that costs less than the spans'.
 */
static int plan_memory(struct an_build *b)
{
	size_t bytes = b->opts.pool_bytes ? b->opts.pool_bytes : POOL_BYTES;
	size_t windows = b->a.nwindows * b->info->nspans * WINDOW_BYTES;
	bool few = b->info->nnodes * b->info->nthreads <= NODE_DISTS;

	bytes = windows < bytes / 2 ? bytes - windows : bytes / 2;
	if (b->opts.per_thread)
		bytes /= 2;
	b->pool = dist_pool__new(bytes);
	if (!b->opts.per_thread)
		b->node_pool = b->pool;
	else if (few)
		b->node_pool = dist_pool__new(bytes);
	return b->pool && (b->node_pool || !few || !b->opts.per_thread) ? 0 : -ENOMEM;
}

uint32_t analysis__span(const struct analysis *a, const char *name)
{
	for (size_t i = 0; i < a->info->nspans; i++)
		if (!strcmp(a->info->spans[i].name, name))
			return i + 1;
	return 0;
}

static int prepare(struct an_build *b, struct err *e)
{
	const struct trace_info *info = b->info;
	int err;

	b->a.info = info;
	if (b->opts.root) {
		b->root = analysis__span(&b->a, b->opts.root);
		if (!b->root)
			return err_set(e, -ENOENT, "the trace has no span %s", b->opts.root);
	}
	plan_windows(b);
	if (!b->opts.tree_max)
		b->opts.tree_max = TREE_MAX;
	b->next_id = 1;
	b->a.spans = calloc(info->nspans + 1, sizeof(*b->a.spans));
	b->gather = calloc(info->nspans + 1, sizeof(*b->gather));
	b->threads = calloc(info->nthreads + 1, sizeof(*b->threads));
	b->instants = calloc(b->a.nwindows, sizeof(*b->instants));
	err = plan_memory(b);
	if (!b->a.spans || !b->gather || !b->threads || !b->instants || err)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < info->nspans; i++)
		b->a.spans[i].def = &info->spans[i];
	return 0;
}

static void add_unless_unknown(uint64_t *sum, uint64_t n)
{
	*sum = n == UINT64_MAX || *sum == UINT64_MAX ? UINT64_MAX : *sum + n;
}

/* Sums over spans, and what the kernel counted. */
static int summarize(struct an_build *b)
{
	struct analysis *a = &b->a;

	a->exact = true;
	for (size_t i = 0; i < b->info->nspans; i++) {
		struct an_span *s = &a->spans[i];
		const struct trace_count *c = b->info->counts ? &b->info->counts[i] : NULL;

		s->counted = c ? c->counted : UINT64_MAX;
		s->lost = c ? c->lost : UINT64_MAX;
		s->skipped = c ? c->skipped : UINT64_MAX;
		if (!s->dist)
			s->dist = dist__new(b->pool, value_kind(s->def));
		if (!s->dist)
			return -ENOMEM;
		a->exact &= dist__exact(s->dist);
		a->held += s->held;
		a->backwards += s->backwards;
		add_unless_unknown(&a->counted, s->counted);
		add_unless_unknown(&a->lost, s->lost);
		add_unless_unknown(&a->skipped, s->skipped);
	}
	return 0;
}

/* What only the passes need. */
static void free_gathered(struct an_build *b)
{
	for (size_t i = 0; b->gather && i < b->info->nspans; i++)
		free(b->gather[i].slowest);
	for (size_t i = 0; b->threads && i < b->info->nthreads; i++)
		free(b->threads[i].around);
	free(b->gather);
	free(b->threads);
	free(b->instants);
	b->gather = NULL;
	b->threads = NULL;
	b->instants = NULL;
	id_map__clear(&b->node_at);
	id_map__clear(&b->place_at);
}

int analysis__new(struct trace_reader *r, const struct analysis_opts *o, struct analysis **out,
		  struct err *e)
{
	struct an_build *b = calloc(1, sizeof(*b));
	int err;

	*out = NULL;
	if (!b)
		return err_set(e, -ENOMEM, "out of memory");
	b->opts = *o;
	b->reader = r;
	b->info = trace_reader__info(r);
	err = prepare(b, e);
	if (!err)
		err = first_pass(b, e);
	if (!err)
		err = an__shared_instants(b, e);
	if (!err && (an__finish_nodes(b) || summarize(b)))
		err = err_set(e, -ENOMEM, "out of memory");
	if (!err)
		err = an__trees(b, e);
	if (!err && b->info->aggregates_len)
		err =
		    snapshot__unpack(b->info->aggregates, b->info->aggregates_len, &b->a.kernel, e);
	if (!err)
		err = an__gpu(b, e);
	if (err) {
		analysis__free(&b->a);
		return err;
	}
	free_gathered(b);
	*out = &b->a;
	return 0;
}

void analysis__free(struct analysis *a)
{
	struct an_build *b = (struct an_build *)a;

	if (!a)
		return;
	free_gathered(b);
	for (size_t i = 0; i < a->nnodes; i++)
		if (!a->spans[a->nodes[i].span - 1].dist ||
		    a->spans[a->nodes[i].span - 1].dist != a->nodes[i].dist)
			dist__free(a->nodes[i].dist);
	for (size_t i = 0; a->spans && i < b->info->nspans; i++) {
		dist__free(a->spans[i].dist);
		for (size_t w = 0; a->spans[i].windows && w < a->nwindows; w++)
			hist__free(a->spans[i].windows[w].hist);
		free(a->spans[i].windows);
	}
	for (size_t i = 0; i < a->nslowest; i++)
		free(a->slowest[i].events);
	free(a->slowest);
	free(a->median.events);
	free(a->slowest_path.steps);
	free(a->median_path.steps);
	free(a->nodes);
	free(a->edges);
	free(a->open);
	free(a->spans);
	snapshot__free(a->kernel);
	gpu_summary__put(a->gpu);
	gpu_windows__free(a->gpu_windows);
	if (b->node_pool != b->pool)
		dist_pool__free(b->node_pool);
	dist_pool__free(b->pool);
	free(b);
}

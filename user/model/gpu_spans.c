// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_spans.c - what the GPU did for each span of the host: of every instance, the calls of its
 * thread that lie in it, and the activities of these calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

#define COMPARE(x, y)                                                                              \
	do {                                                                                       \
		if ((x) != (y))                                                                    \
			return (x) < (y) ? -1 : 1;                                                 \
	} while (0)

static int compare_hosts(const void *pa, const void *pb)
{
	const struct gpu_host *a = pa, *b = pb;

	COMPARE(a->key, b->key);
	COMPARE(a->start_ns, b->start_ns);
	COMPARE(b->end_ns, a->end_ns);
	COMPARE(a->depth, b->depth);
	COMPARE(a->span, b->span);
	return 0;
}

/* --- what a thread was in ----------------------------------------------------------------------- */

static void segment(struct gpu_join *j, uint64_t key, uint64_t from, uint32_t span)
{
	struct gpu_segment *last = j->nsegments ? &j->segments[j->nsegments - 1] : NULL;

	if (last && last->key == key && last->from_ns == from)
		last->span = span;
	else
		j->segments[j->nsegments++] = (struct gpu_segment){key, from, span};
}

/* Ends the spans that are over by ns; what is around them goes on. */
static size_t leave(struct gpu_join *j, const uint32_t *open, size_t n, uint64_t key, uint64_t ns)
{
	const struct gpu_host *h = j->g->hosts;

	while (n && (h[open[n - 1]].key != key || h[open[n - 1]].end_ns <= ns)) {
		const struct gpu_host *over = &h[open[--n]];

		/* Of damaged recordings one may outlive what is around it: cut there. */
		while (n && h[open[n - 1]].end_ns < over->end_ns)
			n--;
		segment(j, over->key, over->end_ns, n ? h[open[n - 1]].span : 0);
	}
	return n;
}

int gpu_spans__segments(struct gpu_join *j)
{
	struct gpu *g = j->g;
	uint32_t *open = malloc((g->nhosts + 1) * sizeof(*open));
	size_t n = 0;

	j->segments = malloc((2 * g->nhosts + 1) * sizeof(*j->segments));
	if (!open || !j->segments) {
		free(open);
		return -ENOMEM;
	}
	if (g->nhosts)
		qsort(g->hosts, g->nhosts, sizeof(*g->hosts), compare_hosts);
	for (uint32_t i = 0; i < g->nhosts; i++) {
		const struct gpu_host *h = &g->hosts[i];

		n = leave(j, open, n, h->key, h->start_ns);
		segment(j, h->key, h->start_ns, h->span);
		open[n++] = i;
	}
	leave(j, open, n, 0, UINT64_MAX);
	free(open);
	return 0;
}

size_t gpu_spans__after(const struct gpu_join *j, uint64_t key, uint64_t ns)
{
	size_t lo = 0, hi = j->nsegments;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct gpu_segment *v = &j->segments[mid];

		if (v->key < key || (v->key == key && v->from_ns <= ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* --- instances ---------------------------------------------------------------------------------- */

struct run {
	uint64_t start_ns, end_ns;
};

struct tally {
	struct gpu_join *j;
	struct run *runs;
	uint64_t steps, steps_max; /* how much may be looked at: damaged recordings nest anyhow */
};

static int compare_runs(const void *pa, const void *pb)
{
	const struct run *a = pa, *b = pb;

	COMPARE(a->start_ns, b->start_ns);
	return 0;
}

/* The first activity, in by_call, of that call or a later one. */
static size_t act_at(const struct gpu_join *j, uint32_t call)
{
	size_t lo = 0, hi = j->nby_call;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (j->g->acts[j->by_call[mid]].call < call)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int add_acts(struct tally *t, const struct gpu_host *h, struct gpu_span_row *row,
		    const uint32_t *acts, size_t n)
{
	const struct gpu *g = t->j->g;
	size_t nruns = 0;
	uint64_t until = 0;

	for (size_t i = 0; i < n; i++) {
		const struct gpu_act *a = &g->acts[acts[i]];
		const struct gpu_api *c = &g->calls[a->call];
		bool first = !i || g->acts[acts[i - 1]].call != a->call;

		/* Calls that stick out of the span are not in it. */
		if (c->end_ns > h->end_ns)
			continue;
		t->runs[nruns++] = (struct run){a->start_ns, a->end_ns};
		if (a->type == QBPF_RING_COPY) {
			row->copies++;
			row->copy_bytes += a->bytes;
			row->copy_ns += a->end_ns - a->start_ns;
		} else {
			row->kernel_ns += a->end_ns - a->start_ns;
		}
		if (first && a->start_ns >= c->start_ns &&
		    gpu_add(&row->delay, g->pool, a->start_ns - c->start_ns))
			return -ENOMEM;
	}
	qsort(t->runs, nruns, sizeof(*t->runs), compare_runs);
	for (size_t i = 0; i < nruns; i++) {
		uint64_t from = t->runs[i].start_ns, to = t->runs[i].end_ns, edge = h->end_ns;

		from = from > until ? from : until;
		if (from >= to)
			continue;
		until = to;
		edge = edge < from ? from : edge > to ? to : edge;
		/* What ran before the span began, if the clock errs so far, is not in it. */
		if (edge > h->start_ns)
			row->busy_ns += edge - (from > h->start_ns ? from : h->start_ns);
		row->after_ns += to - edge;
	}
	return 0;
}

/* Of a span that is seen in parts: a call in it has left. */
static bool had_call(const struct gpu *g, const struct gpu_host *h)
{
	uint32_t at = h->cut ? id_map__get(&g->caller_at, h->key) : ID_MAP_NONE;

	return at != ID_MAP_NONE && g->caller_ns[at] >= h->start_ns;
}

static int add_instance(struct tally *t, const struct gpu_host *h)
{
	struct gpu *g = t->j->g;
	size_t first = gpu_join__call_at(g, h->key, h->start_ns), last = first;
	enum gpu_outside where =
	    gpu_cover__span(g, (uint32_t)(h->key >> 32), h->start_ns, h->end_ns);
	struct gpu_span_row *row = &g->spans[h->span];
	uint64_t from, until = 0;
	size_t acts, nacts;
	bool any = false;

	if (where != GPU_INSIDE) {
		row->outside[where]++;
		return 0;
	}
	while (last < g->ncalls &&
	       gpu_thread_key(g->calls[last].tgid, g->calls[last].tid) == h->key &&
	       g->calls[last].start_ns <= h->end_ns) {
		any |= g->calls[last].outer == last && g->calls[last].end_ns <= h->end_ns;
		last++;
		if (++t->steps > t->steps_max)
			break;
	}
	if (!any && !had_call(g, h))
		return 0;
	acts = act_at(t->j, (uint32_t)first);
	nacts = act_at(t->j, (uint32_t)last) - acts;
	t->steps += nacts;
	if (h->cut || t->steps > t->steps_max) {
		row->cut++;
		return 0;
	}
	row->count++;
	row->total_ns += h->end_ns - h->start_ns;
	for (size_t i = first; i < last; i++) {
		const struct gpu_api *c = &g->calls[i];

		if (c->outer != i || c->end_ns > h->end_ns || c->end_ns < c->start_ns)
			continue;
		/* Of damaged recordings calls may overlap: no time counts twice. */
		from = c->start_ns > until ? c->start_ns : until;
		until = c->end_ns > until ? c->end_ns : until;
		if (from < c->end_ns)
			*(c->waits ? &row->sync_ns : &row->launch_ns) += c->end_ns - from;
		row->launches += c->class == GPU_CALL_LAUNCH;
	}
	return add_acts(t, h, row, t->j->by_call + acts, nacts);
}

/* Of a span within itself the outermost counts. */
static bool within_itself(const struct gpu_host *hosts, const uint32_t *open, size_t n,
			  uint32_t span)
{
	while (n--)
		if (hosts[open[n]].span == span)
			return true;
	return false;
}

static int make_rows(struct gpu *g)
{
	struct gpu_span_row *p;
	size_t n = (size_t)g->nspan_names + 1;

	if (g->nspans >= n)
		return 0;
	p = realloc(g->spans, n * sizeof(*p));
	if (!p)
		return -ENOMEM;
	memset(p + g->nspans, 0, (n - g->nspans) * sizeof(*p));
	g->spans = p;
	g->nspans = n;
	return 0;
}

int gpu_spans__sum(struct gpu_join *j)
{
	struct gpu *g = j->g;
	struct tally t = {.j = j};
	uint32_t open[GPU_DEPTH_MAX];
	size_t n = 0;
	int err = make_rows(g);

	t.runs = malloc((j->nby_call + 1) * sizeof(*t.runs));
	t.steps_max = (uint64_t)GPU_DEPTH_MAX * (g->ncalls + g->nacts + 1);
	if (!t.runs)
		err = -ENOMEM;
	for (uint32_t i = 0; i < g->nhosts && !err; i++) {
		const struct gpu_host *h = &g->hosts[i];

		while (n && (g->hosts[open[n - 1]].key != h->key ||
			     g->hosts[open[n - 1]].end_ns < h->end_ns))
			n--;
		if ((j->final || h->end_ns <= j->to_ns) &&
		    !within_itself(g->hosts, open, n, h->span))
			err = add_instance(&t, h);
		if (n < GPU_DEPTH_MAX)
			open[n++] = i;
	}
	free(t.runs);
	return err;
}

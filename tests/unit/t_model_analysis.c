// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The analysis of recordings against figures computed from the events one by one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/analysis.h"
#include "recording.h"

static uint64_t seed = 7;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

/* --- a program of random calls ------------------------------------------------------------------ */

enum { SPANS = 6, INSTANT = 7, VALUE, KEYED, THREADS = 3, PLACES = 20000 };

struct program {
	struct recording_file f;
	uint64_t clock[THREADS];
	uint32_t nodes[PLACES][2]; /* parent, span; id is index + 1 */
};

static uint32_t place(struct program *p, uint32_t parent, uint32_t span)
{
	for (uint32_t i = 0; i < p->f.nnodes; i++)
		if (p->nodes[i][0] == parent && p->nodes[i][1] == span)
			return i + 1;
	assert(p->f.nnodes < PLACES);
	p->nodes[p->f.nnodes][0] = parent;
	p->nodes[p->f.nnodes][1] = span;
	return rec__node(&p->f, parent, span);
}

/* Runs a span; returns its time. Span k calls those after it, and now and then itself. */
static uint64_t call(struct program *p, uint32_t thread, uint32_t parent, uint32_t span,
		     uint16_t depth)
{
	uint64_t *now = &p->clock[thread], start = *now, child = 0;
	uint32_t node = place(p, parent, span);

	*now += rnd(50) * rnd(50);
	for (uint64_t n = rnd(4); n && depth < 5; n--) {
		uint32_t callee = span + rnd(3);

		if (callee <= SPANS)
			child += call(p, thread, node, callee, depth + 1);
		if (rnd(4) == 0)
			rec__event(&p->f, (struct event){.kind = EVENT_INSTANT,
							 .span = INSTANT,
							 .start_ns = *now,
							 .end_ns = *now,
							 .node = place(p, node, INSTANT),
							 .thread = thread,
							 .depth = depth + 1});
		if (rnd(4) == 0)
			rec__event(&p->f, (struct event){.kind = EVENT_VALUE,
							 .span = VALUE,
							 .arg = rnd(100) - 50,
							 .start_ns = *now,
							 .end_ns = *now,
							 .thread = thread,
							 .depth = depth + 1});
		*now += rnd(20);
	}
	*now += rnd(100);
	if (rnd(30) == 0) { /* something that outlived what was around it */
		rec__event(&p->f, (struct event){.kind = EVENT_ASIDE,
						 .span = SPANS,
						 .start_ns = start + (*now - start) / 2,
						 .end_ns = *now,
						 .child_ns = (*now - start) / 4,
						 .node = place(p, 0, SPANS),
						 .thread = thread,
						 .depth = depth + 1});
	}
	if (rnd(20) == 0)
		rec__event(&p->f, (struct event){.kind = EVENT_KEYED,
						 .span = KEYED,
						 .arg = rnd(9),
						 .start_ns = *now - rnd(*now - REC_START + 1),
						 .end_ns = *now,
						 .thread = thread,
						 .begin_tid = 101});
	rec__event(&p->f, (struct event){.kind = EVENT_SPAN,
					 .span = span,
					 .start_ns = start,
					 .end_ns = *now,
					 .child_ns = child,
					 .node = node,
					 .thread = thread,
					 .depth = depth});
	return *now - start;
}

static struct trace_reader *run_program(struct program *p, unsigned int rounds)
{
	memset(p, 0, sizeof(*p));
	rec__open(&p->f);
	for (int i = 1; i <= SPANS; i++)
		rec__span(&p->f, (char[]){'s', '0' + i, 0}, i % 2 ? SPAN_MARKER : SPAN_FUNC,
			  QBPF_HIST_NS);
	rec__span(&p->f, "instant", SPAN_INSTANT, QBPF_HIST_NS);
	rec__span(&p->f, "value", SPAN_VALUE, QBPF_HIST_INT);
	rec__span(&p->f, "keyed", SPAN_KEYED, QBPF_HIST_NS);
	for (int t = 0; t < THREADS; t++) {
		rec__thread(&p->f, (char[]){'t', '0' + t, 0});
		p->clock[t] = REC_START + t;
	}
	while (rounds--)
		for (int t = 0; t < THREADS; t++) {
			call(p, t, 0, 1 + rnd(2), 0);
			p->clock[t] += rnd(500);
		}
	return rec__read(&p->f, REC_START + 100000000, 5, NULL);
}

/* --- what the events say ------------------------------------------------------------------------ */

static bool is_duration(const struct event *ev)
{
	return ev->kind == EVENT_SPAN || ev->kind == EVENT_ASIDE || ev->kind == EVENT_KEYED;
}

static int compare_values(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return a < b ? -1 : a > b;
}

/* Every value of a distribution is one of v, as often. */
static void check_dist(const struct dist *d, int64_t *v, size_t n)
{
	if (!n) {
		assert_true(!d || dist__count(d) == 0);
		return;
	}
	assert_non_null(d);
	qsort(v, n, sizeof(*v), compare_values);
	assert_int_equal(dist__count(d), n);
	for (size_t k = 0; k < n; k++)
		assert_true(dist__rank(d, k + 1) == v[k]);
}

/* Values of a span: durations, numbers, or the intervals of an instant's hits in order of time. */
static size_t span_values(const struct recording_file *f, uint32_t span, int64_t *v)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct event *ev = &f->events[i];

		if (ev->span != span)
			continue;
		if (ev->kind == EVENT_VALUE)
			v[n++] = (int64_t)ev->arg;
		else if (ev->kind == EVENT_INSTANT)
			v[n++] = (int64_t)ev->start_ns;
		else if (is_duration(ev))
			v[n++] = (int64_t)(ev->end_ns - ev->start_ns);
	}
	if (span != INSTANT || !n)
		return n;
	qsort(v, n, sizeof(*v), compare_values);
	for (size_t i = 0; i + 1 < n; i++)
		v[i] = v[i + 1] - v[i];
	return n - 1;
}

static void check_spans(const struct analysis *a, const struct recording_file *f)
{
	int64_t *v = malloc((f->n + 1) * sizeof(*v));

	for (uint32_t span = 1; span <= f->nspans; span++) {
		const struct an_span *s = &a->spans[span - 1];
		uint64_t held = 0, total = 0, self = 0;

		for (size_t i = 0; i < f->n; i++) {
			const struct event *ev = &f->events[i];

			if (ev->span != span || ev->kind == EVENT_OPEN)
				continue;
			held++;
			if (is_duration(ev)) {
				total += ev->end_ns - ev->start_ns;
				self += ev->end_ns - ev->start_ns - ev->child_ns;
			}
		}
		assert_int_equal(s->held, held);
		assert_int_equal(s->counted, held + (span == 1 ? 5 : 0));
		assert_int_equal(s->lost, span == 1 ? 5 : 0);
		assert_int_equal(s->total_ns, total);
		assert_int_equal(s->self_ns, self);
		check_dist(s->dist, v, span_values(f, span, v));
	}
	free(v);
}

static void check_windows(const struct analysis *a, const struct recording_file *f)
{
	uint64_t width = (a->end_ns - a->start_ns) / a->nwindows + 1;

	for (uint32_t span = 1; span <= f->nspans; span++)
		for (size_t w = 0; a->spans[span - 1].held && w < a->nwindows; w++) {
			const struct an_window *got = &a->spans[span - 1].windows[w];
			uint64_t count = 0, sum = 0, most = 0;

			for (size_t i = 0; i < f->n; i++) {
				const struct event *ev = &f->events[i];

				if (ev->span != span || (ev->end_ns - a->start_ns) / width != w)
					continue;
				count++;
				if (is_duration(ev)) {
					uint64_t ns = ev->end_ns - ev->start_ns;

					sum += ns;
					most = ns > most ? ns : most;
				}
			}
			assert_int_equal(got->count, count);
			assert_int_equal(got->sum_ns, sum);
			if (span <= SPANS && count) {
				assert_int_equal(hist__count(got->hist), count);
				assert_true(hist__max(got->hist) == most);
			}
		}
}

/* Nodes of one thread, or of all. */
static void check_nodes(const struct analysis *a, const struct program *p, bool per_thread)
{
	const struct recording_file *f = &p->f;
	int64_t *v = malloc((f->n + 1) * sizeof(*v));
	size_t seen = 0;

	for (size_t k = 0; k < a->nnodes; k++) {
		const struct an_node *n = &a->nodes[k];
		uint64_t count = 0, total = 0, self = 0;
		size_t nv = 0;

		assert_true(k == 0 || n->thread > a->nodes[k - 1].thread ||
			    (n->thread == a->nodes[k - 1].thread && n->id > a->nodes[k - 1].id));
		assert_int_equal(n->parent, p->nodes[n->id - 1][0]);
		assert_int_equal(n->span, p->nodes[n->id - 1][1]);
		assert_true(per_thread ? n->thread < THREADS : n->thread == AN_ALL_THREADS);
		for (size_t i = 0; i < f->n; i++) {
			const struct event *ev = &f->events[i];

			if (ev->node != n->id || (per_thread && ev->thread != n->thread))
				continue;
			count++;
			if (is_duration(ev)) {
				v[nv++] = (int64_t)(ev->end_ns - ev->start_ns);
				total += ev->end_ns - ev->start_ns;
				self += ev->end_ns - ev->start_ns - ev->child_ns;
			}
		}
		assert_int_equal(n->count, count);
		assert_int_equal(n->total_ns, total);
		assert_int_equal(n->self_ns, self);
		check_dist(n->dist, v, nv);
		if (nv) {
			assert_true(n->min_ns == (uint64_t)v[0]);
			assert_true(n->max_ns == (uint64_t)v[nv - 1]);
		}
		seen += count;
	}
	for (size_t i = 0; i < f->n; i++)
		seen -= f->events[i].node != 0;
	assert_int_equal(seen, 0);
	free(v);
}

static void check_edges(const struct analysis *a, const struct program *p)
{
	uint64_t all = 0;

	for (size_t k = 0; k < a->nedges; k++) {
		const struct an_edge *e = &a->edges[k];
		uint64_t count = 0, total = 0;

		assert_true(
		    k == 0 || e->caller > a->edges[k - 1].caller ||
		    (e->caller == a->edges[k - 1].caller && e->callee > a->edges[k - 1].callee));
		for (size_t i = 0; i < p->f.n; i++) {
			const struct event *ev = &p->f.events[i];
			uint32_t parent = ev->node ? p->nodes[ev->node - 1][0] : 0;

			if (!ev->node || ev->span != e->callee ||
			    (parent ? p->nodes[parent - 1][1] : 0) != e->caller)
				continue;
			count++;
			total += is_duration(ev) ? ev->end_ns - ev->start_ns : 0;
		}
		assert_true(count > 0);
		assert_int_equal(e->count, count);
		assert_int_equal(e->total_ns, total);
		all += count;
	}
	for (size_t i = 0; i < p->f.n; i++)
		all -= p->f.events[i].node != 0;
	assert_int_equal(all, 0);
}

/* Events of the tree of events[root], in the order of the recording: it and what precedes it on its
 * thread, deeper, back to what is not. */
static size_t tree_events(const struct recording_file *f, size_t root, struct event *out)
{
	const struct event *r = &f->events[root];
	size_t n = 0;

	out[n++] = *r;
	for (size_t i = root; i-- > 0;) {
		const struct event *ev = &f->events[i];

		if (ev->thread != r->thread || ev->kind == EVENT_ASIDE || ev->kind == EVENT_KEYED)
			continue;
		if (ev->depth <= r->depth)
			break;
		out[n++] = *ev;
	}
	return n;
}

static size_t find_event(const struct recording_file *f, const struct event *ev)
{
	for (size_t i = 0; i < f->n; i++)
		if (!memcmp(&f->events[i], ev, sizeof(*ev)))
			return i;
	fail_msg("an event that never was");
	return 0;
}

static int compare_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct event));
}

/* The same events; parents first; siblings in the order in which they ran. */
static void check_tree(const struct an_tree *t, const struct recording_file *f)
{
	struct event *want = malloc(f->n * sizeof(*want)), *got = malloc(t->n * sizeof(*got));
	size_t n = tree_events(f, find_event(f, &t->events[0]), want);

	assert_int_equal(t->left_out, 0);
	assert_int_equal(t->n, n);
	memcpy(got, t->events, n * sizeof(*got));
	qsort(got, n, sizeof(*got), compare_bytes);
	qsort(want, n, sizeof(*want), compare_bytes);
	assert_memory_equal(got, want, n * sizeof(*got));
	for (size_t i = 1; i < n; i++) {
		const struct event *ev = &t->events[i], *before = &t->events[i - 1];

		assert_true(ev->depth > 0 && ev->depth <= before->depth + 1);
		assert_true(ev->start_ns >= before->start_ns);
		if (ev->depth <= before->depth) /* all of it was over */
			assert_true(ev->start_ns >= before->end_ns);
		else
			assert_true(ev->end_ns <= before->end_ns);
	}
	free(want);
	free(got);
}

/* From the outermost, each time into the longest of the spans directly inside. */
static void check_path(const struct an_path *p, const struct recording_file *f)
{
	size_t at = find_event(f, &p->root), steps = 0;
	uint64_t whole = p->root.end_ns - p->root.start_ns;

	for (;;) {
		const struct event *ev = &f->events[at];
		const struct an_step *s = &p->steps[steps++];
		uint64_t ns = ev->end_ns - ev->start_ns, most = 0;
		size_t best = SIZE_MAX;

		assert_true(steps <= p->n);
		assert_int_equal(s->span, ev->span);
		assert_int_equal(s->ns, ns);
		assert_int_equal(s->self_ns, ns - ev->child_ns);
		assert_true(s->share == (double)ns / (double)whole);
		for (size_t i = at; i-- > 0;) {
			const struct event *in = &f->events[i];

			if (in->thread != ev->thread || in->kind == EVENT_ASIDE ||
			    in->kind == EVENT_KEYED)
				continue;
			if (in->depth <= ev->depth)
				break;
			if (in->kind == EVENT_SPAN && in->depth == ev->depth + 1 &&
			    in->end_ns - in->start_ns >= most) {
				most = in->end_ns - in->start_ns;
				best = i;
			}
		}
		if (best == SIZE_MAX)
			break;
		at = best;
	}
	assert_int_equal(steps, p->n);
}

static void check_slowest(const struct analysis *a, const struct recording_file *f, uint32_t root,
			  bool anywhere)
{
	int64_t *v = malloc((f->n + 1) * sizeof(*v));
	size_t n = 0;
	uint64_t median;

	assert_int_equal(a->root, root);
	for (size_t i = 0; i < f->n; i++)
		if (f->events[i].kind == EVENT_SPAN && f->events[i].span == root &&
		    (anywhere || !f->events[i].depth))
			v[n++] = (int64_t)(f->events[i].end_ns - f->events[i].start_ns);
	qsort(v, n, sizeof(*v), compare_values);
	assert_true(a->nslowest > 0 && a->nslowest <= n);
	for (size_t i = 0; i < a->nslowest; i++) {
		const struct event *ev = &a->slowest[i].events[0];

		assert_int_equal(ev->span, root);
		assert_true(anywhere || ev->depth == 0);
		assert_true(ev->end_ns - ev->start_ns == (uint64_t)v[n - 1 - i]);
		check_tree(&a->slowest[i], f);
	}
	/* Of all its instances, the inner ones too. */
	median = (uint64_t)dist__rank(a->spans[root - 1].dist,
				      (dist__count(a->spans[root - 1].dist) + 1) / 2);
	assert_true(a->median.n > 0);
	if (anywhere)
		assert_true(a->median.events[0].end_ns - a->median.events[0].start_ns == median);
	check_tree(&a->median, f);
	check_path(&a->slowest_path, f);
	check_path(&a->median_path, f);
	free(v);
}

static void t_random_programs(void **state)
{
	(void)state;
	for (unsigned int rounds = 1; rounds <= 200; rounds = rounds * 3 + 1) {
		struct program *p = malloc(sizeof(*p));
		struct trace_reader *r = run_program(p, rounds);
		uint64_t outer[3] = {0};
		struct analysis *a;

		for (size_t i = 0; i < p->f.n; i++) {
			const struct event *ev = &p->f.events[i];

			if (ev->kind == EVENT_SPAN && !ev->depth)
				outer[ev->span] += ev->end_ns - ev->start_ns;
		}
		a = rec__analyse(r, (struct analysis_opts){.slowest = 5, .windows = 13});
		assert_true(a->exact);
		assert_int_equal(a->held, p->f.n);
		assert_int_equal(a->counted, p->f.n + 5);
		assert_int_equal(a->nwindows, 13);
		assert_null(a->kernel);
		check_spans(a, &p->f);
		check_windows(a, &p->f);
		check_nodes(a, p, false);
		check_edges(a, p);
		check_slowest(a, &p->f, outer[1] >= outer[2] ? 1 : 2, false);
		analysis__free(a);

		a = rec__analyse(
		    r, (struct analysis_opts){.slowest = 3, .per_thread = true, .root = "s3"});
		check_spans(a, &p->f);
		check_nodes(a, p, true);
		check_edges(a, p);
		if (a->spans[2].held)
			check_slowest(a, &p->f, 3, true);
		analysis__free(a);
		rec__close(&p->f, r);
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_random_programs)};

	return cmocka_run_group_tests_name("model_analysis", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The analysis of recordings made by hand: places not told, open spans, damage, bounds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/analysis.h"
#include "recording.h"

static struct event span_event(uint32_t span, uint32_t node, uint16_t depth, uint64_t from,
			       uint64_t to, uint64_t child)
{
	return (struct event){.kind = EVENT_SPAN,
			      .span = span,
			      .node = node,
			      .depth = depth,
			      .start_ns = REC_START + from,
			      .end_ns = REC_START + to,
			      .child_ns = child};
}

static const struct an_node *find_node(const struct analysis *a, uint32_t parent, uint32_t span)
{
	for (size_t i = 0; i < a->nnodes; i++)
		if (a->nodes[i].parent == parent && a->nodes[i].span == span)
			return &a->nodes[i];
	fail_msg("no node of span %u in %u", span, parent);
	return NULL;
}

/* Places that the file does not tell: by the span around; else apart, and never with the roots. */
static void t_lost_places(void **state)
{
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	const struct an_node *n;
	uint32_t s[4], root;

	(void)state;
	rec__open(&f);
	for (int i = 0; i < 4; i++)
		s[i] = rec__span(&f, (char[]){'a' + i, 0}, SPAN_MARKER, QBPF_HIST_NS);
	rec__thread(&f, "t");
	root = rec__node(&f, 0, s[0]);
	rec__node(&f, root, s[1]);
	/* a > b (known), a > c > d (lost), c again, whose parent is not in the file; d outermost */
	rec__event(&f, span_event(s[1], 2, 1, 10, 20, 0));
	rec__event(&f, span_event(s[3], QBPF_NODE_LOST, 2, 31, 35, 0));
	rec__event(&f, span_event(s[2], QBPF_NODE_LOST, 1, 30, 40, 4));
	rec__event(&f, span_event(s[1], QBPF_NODE_LOST, 1, 50, 55, 0)); /* the same place as b's */
	rec__event(&f, span_event(s[0], root, 0, 0, 60, 25));
	rec__event(&f, span_event(s[2], QBPF_NODE_LOST, 1, 70, 77, 0));
	rec__event(&f, span_event(s[3], QBPF_NODE_LOST, 0, 80, 81, 0));
	r = rec__read(&f, REC_START + 100, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	assert_int_equal(a->nnodes, 6);
	n = find_node(a, 0, s[0]);
	assert_int_equal(n->id, root);
	assert_int_equal(n->count, 1);
	n = find_node(a, root, s[1]);
	assert_int_equal(n->id, 2);
	assert_int_equal(n->count, 2);
	assert_int_equal(n->total_ns, 15);
	n = find_node(a, root, s[2]);
	assert_int_equal(n->count, 1);
	assert_true(n->id > 2);
	n = find_node(a, n->id, s[3]);
	assert_int_equal(n->total_ns, 4);
	n = find_node(a, QBPF_NODE_LOST, s[2]);
	assert_int_equal(n->total_ns, 7);
	n = find_node(a, 0, s[3]);
	assert_int_equal(n->total_ns, 1);
	assert_int_equal(a->nedges, 6);
	assert_int_equal(a->edges[5].caller, QBPF_NODE_LOST);
	assert_int_equal(a->edges[5].callee, s[2]);
	/* c and d are as deep as the file says, not outermost because their parents are lost. */
	assert_int_equal(a->root, s[0]);
	assert_int_equal(a->slowest[0].n, 5);
	analysis__free(a);
	rec__close(&f, r);
}

/* A main loop that never ends: what it calls is outermost; it is in no figure. */
static void t_open(void **state)
{
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct event open = {.kind = EVENT_OPEN,
			     .span = 1,
			     .node = 1,
			     .start_ns = REC_START,
			     .end_ns = REC_START + 1000};
	struct event inner = open;

	(void)state;
	rec__open(&f);
	rec__span(&f, "main", SPAN_FUNC, QBPF_HIST_NS);
	rec__span(&f, "loop", SPAN_FUNC, QBPF_HIST_NS);
	rec__span(&f, "tick", SPAN_MARKER, QBPF_HIST_NS);
	rec__thread(&f, "t");
	rec__node(&f, 0, 1);
	rec__node(&f, 1, 2);
	rec__node(&f, 2, 3);
	for (int i = 0; i < 9; i++)
		rec__event(&f, span_event(3, 3, 2, 100 * i, 100 * i + 10 + i, 0));
	inner.span = inner.node = 2;
	inner.depth = 1;
	inner.start_ns += 5;
	rec__event(&f, open); /* in any order */
	rec__event(&f, inner);
	r = rec__read(&f, REC_START + 1000, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 2});
	assert_int_equal(a->root, 3);
	assert_int_equal(a->nslowest, 2);
	assert_true(a->slowest[0].events[0].end_ns - a->slowest[0].events[0].start_ns == 18);
	assert_true(a->median.events[0].end_ns - a->median.events[0].start_ns == 14);
	assert_int_equal(a->held, 9);
	assert_int_equal(a->spans[0].held, 0);
	assert_int_equal(a->spans[0].open, 1);
	assert_int_equal(a->spans[0].total_ns, 0);
	assert_int_equal(dist__count(a->spans[0].dist), 0);
	assert_int_equal(a->nopen, 2);
	assert_int_equal(a->open[0].span, 1);
	assert_int_equal(a->open[1].span, 2);
	assert_int_equal(find_node(a, 1, 2)->count, 0);
	assert_int_equal(find_node(a, 2, 3)->count, 9);
	assert_int_equal(a->nedges, 1);
	assert_int_equal(a->edges[0].caller, 2);
	analysis__free(a);
	rec__close(&f, r);
}

/* What cannot be: counted under a name of its own, in no figure. */
static void t_damaged(void **state)
{
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct event ev;

	(void)state;
	rec__open(&f);
	rec__span(&f, "marker", SPAN_MARKER, QBPF_HIST_NS);
	rec__span(&f, "value", SPAN_VALUE, QBPF_HIST_F64);
	rec__span(&f, "instant", SPAN_INSTANT, QBPF_HIST_NS);
	rec__thread(&f, "t");
	rec__node(&f, 0, 1);
	rec__event(&f, span_event(1, 1, 0, 50, 40, 0));	  /* ends before it begins */
	rec__event(&f, span_event(1, 1, 0, 60, 70, 999)); /* children longer than itself */
	rec__event(&f, span_event(1, 1, 1, 10, 90, 0));	  /* deeper, nothing around it */
	rec__event(&f, span_event(2, 1, 0, 60, 70, 0));	  /* a value is no span */
	ev = span_event(1, 1, 0, 5, 5, 0);
	ev.kind = EVENT_INSTANT;
	rec__event(&f, ev); /* a span is no instant */
	ev.kind = EVENT_VALUE;
	rec__event(&f, ev);
	ev.span = 2;
	ev.arg = 0x7ff8000000000000ull;
	rec__event(&f, ev);
	r = rec__read(&f, REC_START + 100, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 9});
	assert_int_equal(a->backwards, 1);
	assert_int_equal(a->spans[0].backwards, 1);
	assert_int_equal(a->unknown, 3);
	assert_int_equal(a->held, 3);
	assert_int_equal(a->spans[0].held, 2);
	assert_int_equal(a->spans[0].total_ns, 90);
	assert_int_equal(a->spans[0].self_ns, 80);
	assert_int_equal(dist__nan(a->spans[1].dist), 1);
	assert_int_equal(a->nslowest, 1); /* depth 1 is not outermost */
	analysis__free(a);
	rec__close(&f, r);
}

/* Intervals of two threads' hits, more than one slice of time, and as many in a single ns. */
static void t_instants(void **state)
{
	enum { EACH = 560000 };
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct dist_value *v;
	struct event ev = {.kind = EVENT_INSTANT, .span = 1, .node = 1};

	(void)state;
	rec__open(&f);
	rec__span(&f, "i", SPAN_INSTANT, QBPF_HIST_NS);
	rec__span(&f, "alone", SPAN_INSTANT, QBPF_HIST_NS);
	rec__thread(&f, "a");
	rec__thread(&f, "b");
	rec__node(&f, 0, 1);
	rec__node(&f, 0, 2);
	for (uint64_t i = 0; i < EACH; i++) { /* 0 3 10 13 20 .. */
		ev.thread = 0;
		ev.start_ns = ev.end_ns = REC_START + 10 * i;
		rec__event(&f, ev);
		ev.thread = 1;
		ev.start_ns = ev.end_ns = REC_START + 10 * i + 3;
		rec__event(&f, ev);
	}
	for (uint64_t i = 0; i < EACH; i++)
		for (uint32_t t = 0; t < 2; t++) {
			ev.thread = t;
			ev.start_ns = ev.end_ns = REC_START + 10 * EACH;
			rec__event(&f, ev);
		}
	ev.span = ev.node = 2;
	for (int i = 1; i <= 3; i++) {
		ev.start_ns = ev.end_ns = REC_START + 10 * EACH + 100 * i * i;
		rec__event(&f, ev);
	}
	r = rec__read(&f, REC_START + 10 * EACH + 5000, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.windows = 7});
	assert_int_equal(a->spans[0].held, 4 * EACH);
	assert_int_equal(dist__count(a->spans[0].dist), 4 * EACH - 1);
	assert_int_equal(dist__values(a->spans[0].dist, &v), 3);
	assert_true(v[0].value == 0 && v[0].n == 2 * EACH - 1);
	assert_true(v[1].value == 3 && v[1].n == EACH);
	assert_true(v[2].value == 7 && v[2].n == EACH);
	free(v);
	assert_int_equal(dist__values(a->spans[1].dist, &v), 2);
	assert_true(v[0].value == 300 && v[0].n == 1);
	assert_true(v[1].value == 500 && v[1].n == 1);
	free(v);
	assert_int_equal(find_node(a, 0, 1)->count, 4 * EACH);
	assert_int_equal(a->root, 0);
	analysis__free(a);
	rec__close(&f, r);
}

/* Of a tree too big the longest stay, and it is still a tree; a pool too small loses bits, no sum. */
static void t_bounds(void **state)
{
	enum { CHILDREN = 5000 };
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct err e = {{0}};
	uint64_t at = 0, sum = 0;

	(void)state;
	rec__open(&f);
	for (int i = 0; i < 3; i++)
		rec__span(&f, (char[]){'a' + i, 0}, SPAN_MARKER, QBPF_HIST_NS);
	rec__thread(&f, "t");
	rec__node(&f, 0, 1);
	rec__node(&f, 1, 2);
	rec__node(&f, 2, 3);
	for (uint64_t i = 0; i < CHILDREN; i++) {
		uint64_t ns = 100000 + i * 7919 % CHILDREN * 10;

		rec__event(&f, span_event(3, 3, 2, at + 1, at + ns - 1, 0));
		rec__event(&f, span_event(2, 2, 1, at, at + ns, ns - 2));
		at += ns;
		sum += ns;
	}
	rec__event(&f, span_event(1, 1, 0, 0, at, sum));
	r = rec__read(&f, REC_START + at, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 1, .tree_max = 101});
	assert_int_equal(a->slowest[0].n, 101);
	assert_int_equal(a->slowest[0].left_out, 2 * CHILDREN + 1 - 101);
	for (size_t i = 1; i < 101; i += 2) { /* the 50 longest, each with what is inside */
		const struct event *ev = &a->slowest[0].events[i];

		assert_int_equal(ev[0].span, 2);
		assert_int_equal(ev[1].span, 3);
		assert_true(ev[0].end_ns - ev[0].start_ns >= 100000 + (CHILDREN - 50) * 10);
		assert_true(ev[1].start_ns == ev[0].start_ns + 1);
		assert_true(i == 1 || ev[0].start_ns >= ev[-2].end_ns);
	}
	assert_int_equal(a->slowest_path.n, 3);
	assert_int_equal(a->slowest_path.steps[1].ns, 100000 + (CHILDREN - 1) * 10);
	analysis__free(a);
	a = rec__analyse(r, (struct analysis_opts){.pool_bytes = 32768, .windows = 1});
	assert_false(a->exact);
	assert_int_equal(a->spans[1].total_ns, sum);
	assert_true(dist__sum(a->spans[1].dist) == sum);
	assert_true(dist__max(a->spans[1].dist) == 100000 + (CHILDREN - 1) * 10);
	analysis__free(a);
	assert_int_equal(analysis__new(r, &(struct analysis_opts){.root = "nobody"}, &a, &e),
			 -ENOENT);
	assert_string_equal(e.text, "the trace has no span nobody");
	assert_null(a);
	rec__close(&f, r);
}

static void t_empty(void **state)
{
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;
	struct snapshot *s;

	(void)state;
	rec__open(&f);
	rec__span(&f, "a", SPAN_MARKER, QBPF_HIST_NS);
	r = rec__read(&f, REC_START, 0, NULL);
	a = rec__analyse(r, (struct analysis_opts){.slowest = 1});
	assert_int_equal(a->held, 0);
	assert_int_equal(a->counted, 0);
	assert_int_equal(a->root, 0);
	assert_int_equal(a->nslowest + a->nnodes + a->nedges + a->median.n, 0);
	assert_null(a->spans[0].windows);
	s = analysis__snapshot(a);
	assert_non_null(s);
	assert_int_equal(hist__count(s->spans[0].hist), 0);
	snapshot__free(s);
	analysis__free(a);
	analysis__free(NULL);
	rec__close(&f, r);
}

/* As a snapshot: the exact figures, and the kernel's counters beside them. */
static void t_snapshot(void **state)
{
	struct recording_file f;
	struct snapshot *kernel = snapshot__new(), *s;
	struct trace_reader *r;
	struct analysis *a;
	uint64_t *counts;

	(void)state;
	rec__open(&f);
	rec__span(&f, "a", SPAN_MARKER, QBPF_HIST_NS);
	rec__span(&f, "i", SPAN_INSTANT, QBPF_HIST_NS);
	rec__thread(&f, "t0");
	rec__thread(&f, "t1");
	rec__node(&f, 0, 1);
	rec__node(&f, 1, 2);
	for (uint32_t i = 0; i < 10; i++) {
		struct event ev = span_event(2, 2, 1, 100 * i + 1, 100 * i + 1, 0);

		ev.kind = EVENT_INSTANT;
		ev.thread = i % 2;
		rec__event(&f, ev);
		ev = span_event(1, 1, 0, 100 * i, 100 * i + 10 + i, 0);
		ev.thread = i % 2;
		rec__event(&f, ev);
	}
	kernel->nspans = 1;
	kernel->spans = calloc(1, sizeof(*kernel->spans));
	kernel->spans[0].hist = hist__new(QBPF_HIST_NS);
	kernel->spans[0].abandoned = 7;
	r = rec__read(&f, REC_START + 5000, 3, kernel);
	for (int per_thread = 0; per_thread < 2; per_thread++) {
		a = rec__analyse(r, (struct analysis_opts){.per_thread = per_thread});
		assert_non_null(a->kernel);
		assert_int_equal(a->kernel->spans[0].abandoned, 7);
		s = analysis__snapshot(a);
		counts = snapshot__counts(s);
		assert_int_equal(counts[0], 10);
		assert_int_equal(counts[1], 10);
		free(counts);
		assert_int_equal(s->spans[0].abandoned, 7);
		assert_ptr_equal(s->spans[0].exact, a->spans[0].dist);
		assert_true(hist__sum(s->spans[0].hist) == 145);
		assert_int_equal(s->nnodes, 2);
		assert_int_equal(s->nodes[0].count, 10);
		assert_int_equal(s->nodes[0].total_ns, 145);
		assert_int_equal(s->nodes[0].min_ns, 10);
		assert_int_equal(s->nodes[0].max_ns, 19);
		assert_int_equal(s->nodes[1].count, 10);
		assert_string_equal(s->comm, "made");
		assert_int_equal(s->npids, 1);
		snapshot__free(s);
		analysis__free(a);
	}
	snapshot__free(kernel);
	rec__close(&f, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_lost_places), cmocka_unit_test(t_open),
	    cmocka_unit_test(t_damaged),     cmocka_unit_test(t_instants),
	    cmocka_unit_test(t_bounds),	     cmocka_unit_test(t_empty),
	    cmocka_unit_test(t_snapshot),
	};

	return cmocka_run_group_tests_name("model_analysis_cases", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Snapshots: copies, differences, derived figures; and the call tree built from one. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/snapshot.h"
#include "model/tree.h"
#include "snap_fixture.h"

static void t_clone_owns_all(void **state)
{
	struct snapshot *s = fixture__strategy(), *c;

	(void)state;
	s->spans[7].refused = true;
	c = snapshot__clone(s);
	assert_non_null(c);
	assert_true(c->spans[7].refused);
	assert_false(c->spans[0].refused);
	assert_ptr_not_equal(c->spans[0].name, s->spans[0].name);
	assert_ptr_not_equal(c->spans[0].hist, s->spans[0].hist);
	snapshot__free(s); /* the sanitizer sees to it that nothing is shared */
	assert_string_equal(c->comm, "strategy");
	assert_string_equal(c->refused[2].reason, "not an instruction boundary");
	assert_int_equal(c->pids[0], 4711);
	assert_int_equal(hist__count(c->spans[0].hist), 20040);
	assert_int_equal(c->nnodes, 5);
	snapshot__free(c);
	snapshot__free(NULL);
	c = snapshot__new();
	s = snapshot__clone(c);
	assert_non_null(s);
	assert_null(s->comm);
	snapshot__free(c);
	snapshot__free(s);
}

static void t_since(void **state)
{
	struct snapshot *base = fixture__strategy(), *s = snapshot__clone(base), *d;
	struct snap_span *span;

	(void)state;
	s->now_ns += 2000000000ull;
	fixture__add(&s->spans[0], 50000, 100);
	s->spans[0].orphan_ends += 3;
	s->spans[0].open = 4;
	s->spans[7].refused = true;
	s->nodes[0].count += 100;
	s->nodes[0].total_ns += 5000000;
	s->nodes[0].self_ns += 5000000;
	/* one call of a node that was there, a new longest one of another, a new span and node */
	s->nodes[1].count += 1;
	s->nodes[1].total_ns += 777;
	s->nodes[2].count += 2;
	s->nodes[2].total_ns += 2004000;
	s->nodes[2].max_ns = 2000000;
	span = fixture__span(s, "strategy:late", SPAN_MARKER, QBPF_HIST_NS);
	fixture__add(span, 9, 1);
	fixture__node(s, 0, s->nspans - 1, 1, 9, 9)->max_ns = 9;

	d = snapshot__since(s, base);
	assert_true(d->spans[7].refused);
	assert_non_null(d);
	assert_true(snapshot__duration_s(d) == 2);
	assert_int_equal(hist__count(d->spans[0].hist), 100);
	assert_true(hist__sum(d->spans[0].hist) == 5000000);
	assert_int_equal(d->spans[0].orphan_ends, 3);
	assert_int_equal(d->spans[0].abandoned, 0);
	assert_int_equal(d->spans[0].open, 4); /* a state, not a count */
	assert_int_equal(hist__count(d->spans[1].hist), 0);
	assert_int_equal(hist__count(d->spans[d->nspans - 1].hist), 1);
	assert_int_equal(d->nodes[0].count, 100);
	assert_int_equal(d->nodes[0].total_ns, 5000000);
	/* 100 calls, no new record: the interval's extremes cannot be told. */
	assert_true(d->nodes[0].min_ns == SNAP_UNKNOWN && d->nodes[0].max_ns == SNAP_UNKNOWN);
	assert_true(d->nodes[1].count == 1 && d->nodes[1].min_ns == 777 &&
		    d->nodes[1].max_ns == 777);
	assert_true(d->nodes[2].max_ns == 2000000 && d->nodes[2].min_ns == SNAP_UNKNOWN);
	assert_true(d->nodes[3].count == 0 && d->nodes[3].max_ns == 0);
	assert_true(d->nodes[5].count == 1 && d->nodes[5].max_ns == 9);
	snapshot__free(d);
	snapshot__free(s);
	snapshot__free(base);
}

static void t_counts_and_hits(void **state)
{
	struct snapshot *s = fixture__strategy();
	uint64_t *counts = snapshot__counts(s);

	(void)state;
	assert_int_equal(counts[0], 20040);
	assert_int_equal(counts[3], 500); /* hits of the instant, one more than intervals */
	assert_int_equal(counts[4], 100);
	assert_int_equal(counts[5], 5); /* the NaN too */
	assert_int_equal(counts[7], 0);
	free(counts);
	/*
	 * Hits: begin and end of tick 2 x 20040 + 1 open + 2 abandoned, decode 2 x 20040, check
	 * 2 x 320 + 2 x 3 too deep + 1 return never seen, order 500, values 100 + 5, one function.
	 */
	assert_true(snapshot__hits_per_s(s) ==
		    (40080 + 3 + 40080 + 640 + 7 + 500 + 105 + 2) / 10.0);
	assert_true(fabs(snapshot__overhead_pct(s) -
			 ((40083 + 40080) * 1250.0 + (647 + 2) * 2500.0 + 605 * 1250.0) / 10e9 *
			     100) < 1e-9);
	assert_int_equal(snapshot__lost(s), 4);
	/* One span that was hit and has no price: a total would be too low, so there is none. */
	s->spans[1].price_ns = 0;
	assert_true(snapshot__overhead_pct(s) < 0);
	s->now_ns = s->start_ns;
	assert_true(snapshot__hits_per_s(s) == 0);
	assert_true(snapshot__overhead_pct(s) < 0);
	snapshot__free(s);
}

static void t_tree_order(void **state)
{
	struct snapshot *s = fixture__strategy();
	struct tree *t = tree__new(s);
	static const uint32_t want[] = {1, 2, 3, 4, 5};
	const struct tree_node *n;
	size_t i = 0;

	(void)state;
	for (n = tree_node__next(tree__root(t)); n; n = tree_node__next(n))
		assert_int_equal(n->node->id, want[i++]);
	assert_int_equal(i, 5);
	n = tree__root(t)->first_child;
	assert_string_equal(n->name, "strategy:tick");
	assert_int_equal(n->depth, 0);
	assert_int_equal(n->first_child->depth, 1);
	assert_ptr_equal(n->first_child->span, &s->spans[1]);
	assert_true(fabs(n->share + n->next_sibling->share - 1) < 1e-12);
	assert_true(fabs(n->first_child->share - 26060000.0 / (276755000.0 + 999600)) < 1e-12);
	tree__free(t);
	tree__free(NULL);
	snapshot__free(s);
}

/* A program's main loop is open all the time: its children's time is the measure. */
static void t_tree_open_root(void **state)
{
	struct snapshot *s = snapshot__new();
	struct tree *t;
	const struct tree_node *n;

	(void)state;
	fixture__span(s, "loop", SPAN_FUNC, QBPF_HIST_NS);
	fixture__span(s, "step", SPAN_FUNC, QBPF_HIST_NS);
	fixture__node(s, 0, 0, 0, 0, 0);
	fixture__node(s, 1, 1, 3, 300, 300);
	fixture__node(s, 1, 0, 1, 100, 100);
	t = tree__new(s);
	n = tree__root(t)->first_child;
	assert_true(n->share == 1);
	assert_true(n->first_child->share == 0.75);
	assert_true(n->first_child->next_sibling->share == 0.25);
	tree__free(t);
	snapshot__free(s);
}

/* Depth far beyond what the kernel gives, and ids that no kernel gives. */
static void t_tree_extremes(void **state)
{
	enum { DEEP = 100000 };
	struct snapshot *s = snapshot__new();
	const struct tree_node *n;
	struct tree *t;
	size_t i = 0;

	(void)state;
	fixture__span(s, "f", SPAN_FUNC, QBPF_HIST_NS);
	s->nodes = calloc(DEEP, sizeof(*s->nodes));
	s->nnodes = DEEP;
	for (i = 0; i < DEEP; i++)
		s->nodes[i] =
		    (struct snap_node){.id = i + 1, .parent = i, .count = 1, .total_ns = DEEP - i};
	t = tree__new(s);
	for (i = 0, n = tree_node__next(tree__root(t)); n; n = tree_node__next(n), i++)
		assert_int_equal(n->depth, i);
	assert_int_equal(i, DEEP);
	tree__free(t);

	s->nnodes = 4;
	s->nodes[0].parent = 1;	  /* its own parent */
	s->nodes[1].parent = 3;	  /* a parent that comes later */
	s->nodes[2].parent = 77;  /* none such */
	s->nodes[3].span = 12345; /* no such span */
	t = tree__new(s);
	for (i = 0, n = tree_node__next(tree__root(t)); n; n = tree_node__next(n), i++)
		assert_non_null(n->name);
	assert_int_equal(i, 4);
	tree__free(t);
	s->nnodes = 0;
	t = tree__new(s);
	assert_null(tree_node__next(tree__root(t)));
	tree__free(t);
	snapshot__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_clone_owns_all),	 cmocka_unit_test(t_since),
	    cmocka_unit_test(t_counts_and_hits), cmocka_unit_test(t_tree_order),
	    cmocka_unit_test(t_tree_open_root),	 cmocka_unit_test(t_tree_extremes),
	};

	return cmocka_run_group_tests_name("model_snapshot", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Spans of markers and functions: exact counts, nesting, and nothing left over. */
#include "harness.h"

DECLARE_SITE(tick_begin);
DECLARE_SITE(tick_end);
DECLARE_SITE(book_begin);
DECLARE_SITE(book_end);

#define ROUNDS 1000

static noinline void book(void)
{
	SITE(book_begin);
	SITE(book_end);
}

static int work_ticks(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		SITE(tick_begin);
		book();
		book();
		SITE(tick_end);
	}
	return 0;
}

static void t_markers_nest(void **state)
{
	struct harness h;
	struct qbpf_node_cell tick, inner;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_ticks);
	probe(&h, tick_begin, 1, QBPF_ROLE_BEGIN, 1);
	probe(&h, tick_end, 1, QBPF_ROLE_END, 2);
	probe(&h, book_begin, 2, QBPF_ROLE_BEGIN, 3);
	probe(&h, book_end, 2, QBPF_ROLE_END, 4);
	assert_int_equal(child_run(&h), 0);

	assert_int_equal(hist_of(&h, 1).n, ROUNDS);
	assert_int_equal(hist_of(&h, 2).n, 2 * ROUNDS);
	assert_int_equal(not_clean(&h, 1), 0);
	assert_int_equal(not_clean(&h, 2), 0);
	assert_int_equal(node_count(&h), 2);
	tick = NODE(&h, 1);
	inner = NODE(&h, 1, 2);
	assert_int_equal(tick.count, ROUNDS);
	assert_int_equal(inner.count, 2 * ROUNDS);
	assert_int_equal(tick.total_ns, hist_of(&h, 1).sum);
	assert_int_equal(tick.self_ns, tick.total_ns - inner.total_ns);
	assert_int_equal(inner.self_ns, inner.total_ns);
	assert_int_equal(inner.min_ns, hist_of(&h, 2).min);
	assert_int_equal(inner.max_ns, hist_of(&h, 2).max);
	harness_close(&h);
}

static noinline int fib(int n)
{
	int r = n < 2 ? n : fib(n - 1) + fib(n - 2);

	__asm__ volatile("" : "+r"(r));
	return r;
}

static int work_fib(void)
{
	return fib(10) == 55 ? 0 : 1;
}

static void t_recursion(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_fib);
	probe_function(&h, fib, 1);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, 177);
	assert_int_equal(not_clean(&h, 1), 0);
	assert_int_equal(NODE(&h, 1).count, 1);
	assert_int_equal(node_count(&h), 10);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_markers_nest),
	    BOTH_WAYS(t_recursion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

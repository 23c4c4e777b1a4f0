/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Markers out of the ordinary: ends without begins, skipped ends, other processes, deep nests. */
#include "harness.h"

DECLARE_SITE(a_begin);
DECLARE_SITE(a_end);
DECLARE_SITE(b_begin);
DECLARE_SITE(b_end);
DECLARE_SITE(r_begin);
DECLARE_SITE(r_end);
DECLARE_SITE(s_begin);
DECLARE_SITE(s_end);

#define ROUNDS 1000

static void probe_pair(struct harness *h, uint32_t span, const char *begin, const char *end)
{
	probe(h, begin, span, QBPF_ROLE_BEGIN, 2 * span);
	probe(h, end, span, QBPF_ROLE_END, 2 * span + 1);
}

static noinline void begin_a(void)
{
	SITE(a_begin);
}

static noinline void end_a(void)
{
	SITE(a_end);
}

static noinline void begin_b(void)
{
	SITE(b_begin);
}

static noinline void end_b(void)
{
	SITE(b_end);
}

/* What attaching to a busy loop looks like: the first end has no begin. */
static int work_orphan(void)
{
	end_a();
	for (int i = 0; i < ROUNDS; i++) {
		begin_a();
		end_a();
	}
	end_b();
	return 0;
}

static void t_orphan_end(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_orphan);
	probe_pair(&h, 1, a_begin, a_end);
	probe_pair(&h, 2, b_begin, b_end);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS);
	assert_int_equal(counts_of(&h, 1).orphan_ends, 1);
	assert_int_equal(not_clean(&h, 1), 1);
	assert_int_equal(hist_of(&h, 2).n, 0);
	assert_int_equal(counts_of(&h, 2).orphan_ends, 1);
	harness_close(&h);
}

/* a begins, b begins, a ends, b ends: spans that cross are both whole, and b is a's child. */
static int work_crossed(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		begin_a();
		begin_b();
		end_a();
		end_b();
	}
	return 0;
}

static void t_crossed(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_crossed);
	probe_pair(&h, 1, a_begin, a_end);
	probe_pair(&h, 2, b_begin, b_end);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS);
	assert_int_equal(not_clean(&h, 1), 0);
	assert_int_equal(hist_of(&h, 2).n, ROUNDS);
	assert_int_equal(not_clean(&h, 2), 0);
	assert_int_equal(node_count(&h), 2);
	harness_close(&h);
}

/*
 * b's end is skipped and a ends: b is given up when it begins again, its later begins pair, and
 * nothing nests in what was left open.
 */
static int work_crossed_skipped(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		begin_a();
		begin_b();
		if (i % 2)
			end_b();
		end_a();
	}
	return 0;
}

static void t_crossed_skipped(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_crossed_skipped);
	probe_pair(&h, 1, a_begin, a_end);
	probe_pair(&h, 2, b_begin, b_end);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS);
	assert_int_equal(not_clean(&h, 1), 0);
	assert_int_equal(hist_of(&h, 2).n, ROUNDS / 2);
	assert_int_equal(counts_of(&h, 2).abandoned, ROUNDS - ROUNDS / 2);
	assert_int_equal(counts_of(&h, 2).orphan_ends, 0);
	assert_int_equal(node_count(&h), 2);
	harness_close(&h);
}

/* Every third end is skipped, as by an exception: that begin pairs with no later end. */
static int work_skipped(void)
{
	for (int i = 0; i < 3 * ROUNDS; i++) {
		begin_a();
		if (i % 3 == 0)
			continue;
		end_a();
	}
	return 0;
}

static void t_skipped_end(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_skipped);
	probe_pair(&h, 1, a_begin, a_end);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, 2 * ROUNDS);
	assert_int_equal(counts_of(&h, 1).abandoned, ROUNDS);
	assert_int_equal(not_clean(&h, 1), ROUNDS);
	assert_int_equal(node_count(&h), 1);
	harness_close(&h);
}

static int depth;
static jmp_buf out;
static bool jumps;

static noinline void recurse(int n)
{
	volatile char pad[32];

	if (n < 0)
		return;
	pad[0] = 0;
	SITE(r_begin);
	if (n)
		recurse(n - 1);
	else if (jumps)
		longjmp(out, 1);
	SITE(r_end);
	(void)pad[0];
}

static int work_recurse(void)
{
	for (int i = 0; i < 10; i++)
		recurse(depth - 1);
	return 0;
}

static void t_depth_100(void **state)
{
	struct harness h;

	depth = 100;
	jumps = false;
	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_recurse);
	probe_pair(&h, 1, r_begin, r_end);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, 640);
	assert_int_equal(counts_of(&h, 1).depth_overflow, 360);
	assert_int_equal(not_clean(&h, 1), 360);
	harness_close(&h);
}

/* Ten levels down, then 90 more that a longjmp throws away: the ten find their own begins. */
static noinline void catcher(int n)
{
	volatile char pad[32];

	if (n < 0)
		return;
	pad[0] = 0;
	SITE(s_begin);
	if (n)
		catcher(n - 1);
	else if (!setjmp(out))
		recurse(depth - 1);
	else
		usleep(1000);
	SITE(s_end);
	(void)pad[0];
}

static int work_thrown(void)
{
	for (int i = 0; i < 10; i++)
		catcher(9);
	return 0;
}

static void thrown(void **state, uint32_t inner_span)
{
	struct harness h;

	depth = 90;
	jumps = true;
	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_thrown);
	probe_pair(&h, 1, s_begin, s_end);
	probe_pair(&h, inner_span, r_begin, r_end);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, 100);
	/* Each catcher is open while the innermost sleeps; a wrong begin would be shorter. */
	assert_true(hist_of(&h, 1).min >= 1000000);
	assert_int_equal(counts_of(&h, inner_span).abandoned, 10 * 54);
	assert_int_equal(counts_of(&h, inner_span).depth_overflow, 10 * 36);
	assert_int_equal(counts_of(&h, 1).orphan_ends, 0);
	harness_close(&h);
}

static void t_thrown_other_span(void **state)
{
	thrown(state, 2);
}

static void t_thrown_same_span(void **state)
{
	thrown(state, 1);
}

/* --- other processes ------------------------------------------------------------------------- */

static int work_pair(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		begin_a();
		end_a();
	}
	return 0;
}

static void run_another(int (*work)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(work());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Links of one process: what another one does with the same file is not seen. */
static void t_others_by_link(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_pair);
	probe_pair(&h, 1, a_begin, a_end);
	run_another(work_pair);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS);
	assert_int_equal(not_clean(&h, 1), 0);
	harness_close(&h);
}

/* Links of all processes, and the filter in the program. */
static void t_others_by_filter(void **state)
{
	struct harness h;
	pid_t child;

	harness_open(&h, way_of(state));
	h.skel->rodata->cfg_filter_tgid = true;
	harness_load(&h);
	child_prepare(&h, work_pair);
	child = h.child;
	h.child = -1;
	probe_pair(&h, 1, a_begin, a_end);
	h.child = child;
	run_another(work_pair);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS);
	assert_int_equal(not_clean(&h, 1), 0);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_orphan_end),	   BOTH_WAYS(t_crossed),
	    BOTH_WAYS(t_crossed_skipped),  BOTH_WAYS(t_skipped_end),
	    BOTH_WAYS(t_depth_100),	   BOTH_WAYS(t_thrown_other_span),
	    BOTH_WAYS(t_thrown_same_span), BOTH_WAYS(t_others_by_link),
	    BOTH_WAYS(t_others_by_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

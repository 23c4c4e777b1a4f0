/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --slow: the whole trees of slow spans reach the ring and nothing else does; nested and recursive
 * watched spans, histories that overflow, spans that are slow before they end or never end.
 */
#include <pthread.h>
#include <time.h>

#include "stream.h"

/* What is not to be slow must not be so by accident: under emulation anything may take 100 ms. */
static uint64_t unit_ns(void)
{
	return getenv("QBPF_TEST_SCALE") ? 80000000 : 10000000;
}

#define LIMIT_NS (5 * unit_ns())
#define NAP_NS	 (6 * unit_ns())

static void nap(void)
{
	struct timespec ts = {.tv_nsec = (long)NAP_NS};

	nanosleep(&ts, NULL);
}

static void watch(struct harness *h, uint32_t span, uint64_t min_ns)
{
	uint64_t limit = min_ns + 1;

	assert_int_equal(bpf_map__update_elem(h->skel->maps.slow_limits, &span, sizeof(span),
					      &limit, sizeof(limit), 0),
			 0);
}

static void run(struct harness *h, void **state, int (*work)(void), bool watch_x, bool watch_y,
		struct records *l)
{
	stream_start(h, state, 1 << 20);
	h->skel->rodata->cfg_slow = true;
	harness_load(h);
	if (watch_x)
		watch(h, X, LIMIT_NS);
	if (watch_y)
		watch(h, Y, LIMIT_NS);
	child_prepare(h, work);
	probe_all(h);
	assert_int_equal(child_run(h), 0);
	read_ring(h, l);
	assert_ordered(l);
}

static void finish(struct harness *h, struct records *l)
{
	for (uint32_t span = X; span < SPANS; span++)
		assert_adds_up(h, l, span);
	free(l->r);
	harness_close(h);
}

/* The spans of the records, without the thread's end, as text: "FX". */
static void assert_spans(const struct records *l, const char *want)
{
	char got[4096] = "";
	size_t n = 0;

	for (size_t i = 0; i < l->n && n < sizeof(got) - 1; i++)
		if (l->r[i].type <= QBPF_RECORD_OPEN)
			got[n++] =
			    (l->r[i].type == QBPF_RECORD_OPEN ? "?xyfi" : "?XYFI")[l->r[i].span];
	got[n] = '\0';
	assert_string_equal(got, want);
}

/* Fast trees are dropped, slow ones come whole; what lies outside does not come. */
static int work_simple(void)
{
	for (int i = 0; i < 5; i++) {
		func();
		mark();
		begin_x();
		func();
		mark();
		begin_y();
		func();
		if (i == 1 || i == 3)
			nap();
		end_y();
		end_x();
	}
	return 0;
}

static void t_simple(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, work_simple, true, false, &l);
	assert_spans(&l, "FIFYXFIFYX");
	assert_int_equal(stream_counts_of(&h, X).over, 2);
	assert_int_equal(stream_counts_of(&h, X).skipped, 3);
	assert_int_equal(stream_counts_of(&h, Y).over, 0);
	assert_int_equal(stream_counts_of(&h, F).skipped, 5 + 6);
	assert_int_equal(stream_counts_of(&h, I).skipped, 5 + 3);
	assert_true(l.r[0].flags & QBPF_RECORD_FIRST);
	for (size_t i = 1; i < l.n; i++)
		assert_false(l.r[i].flags & QBPF_RECORD_FIRST);
	finish(&h, &l);
}

/* A slow y in a fast... x cannot be faster than what it holds: y's limit is the lower one. */
static int work_nested(void)
{
	begin_x();
	func();
	begin_y(); /* fast */
	mark();
	end_y();
	begin_y(); /* slow for y, not for x */
	func();
	nap();
	end_y();
	mark();
	end_x();
	begin_x(); /* slow by what comes after y */
	begin_y();
	mark();
	end_y();
	for (int i = 0; i < 5; i++)
		nap();
	end_x();
	return 0;
}

static void t_nested(void **state)
{
	struct records l = {0};
	struct harness h;

	stream_start(&h, state, 1 << 20);
	h.skel->rodata->cfg_slow = true;
	harness_load(&h);
	watch(&h, X, 4 * NAP_NS);
	watch(&h, Y, LIMIT_NS);
	child_prepare(&h, work_nested);
	probe_all(&h);
	assert_int_equal(child_run(&h), 0);
	read_ring(&h, &l);
	assert_ordered(&l);
	/* Of the first x only the slow y's tree; of the second all, the fast y too. */
	assert_spans(&l, "FY"
			 "IYX");
	assert_int_equal(stream_counts_of(&h, X).over, 1);
	assert_int_equal(stream_counts_of(&h, Y).over, 1);
	finish(&h, &l);
}

/* x in x in x: the middle one is slow by its own child, so all are. */
static noinline void recurse(int depth)
{
	begin_x();
	func();
	if (depth < 3)
		recurse(depth + 1);
	else
		nap();
	end_x();
	__asm__ volatile(""); /* no tail call: its stack pointer would be the caller's */
}

static int work_recursive(void)
{
	begin_y();
	begin_x(); /* fast, in the same y */
	func();
	end_x();
	recurse(0);
	begin_x();
	mark();
	end_x();
	end_y();
	return 0;
}

static void t_recursive(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, work_recursive, true, false, &l);
	assert_spans(&l, "FFFFXXXX");
	assert_int_equal(stream_counts_of(&h, X).over, 4);
	assert_int_equal(stream_counts_of(&h, X).skipped, 2);
	assert_int_equal(held_of(&l, X) + stream_counts_of(&h, X).lost,
			 stream_counts_of(&h, X).over);
	for (size_t i = 4; i < 8; i++)
		assert_int_equal(l.r[i].depth, 8 - i);
	finish(&h, &l);
}

/* More in a span than the history holds: the earliest is lost and counted; the rest comes. */
static int work_overflow(void)
{
	begin_x();
	for (int i = 0; i < QBPF_HISTORY_MAX + 100; i++)
		func();
	mark();
	nap();
	end_x();
	return 0;
}

static void t_overflow(void **state)
{
	struct records l = {0};
	struct harness h;

	stream_start(&h, state, 1 << 20);
	h.skel->rodata->cfg_slow = true;
	harness_load(&h);
	/* On a machine that is so slow that the calls alone take so long, nothing would be lost. */
	watch(&h, X, LIMIT_NS);
	child_prepare(&h, work_overflow);
	probe_all(&h);
	assert_int_equal(child_run(&h), 0);
	read_ring(&h, &l);
	assert_ordered(&l);
	assert_int_equal(held_of(&l, X), 1);
	assert_int_equal(held_of(&l, I), 1);
	assert_int_equal(held_of(&l, F) + stream_counts_of(&h, F).lost, QBPF_HISTORY_MAX + 100);
	assert_int_equal(stream_counts_of(&h, F).skipped, 0);
	if (l.r[l.n - 2].end_ns - l.r[l.n - 2].start_ns < LIMIT_NS + NAP_NS)
		assert_int_equal(stream_counts_of(&h, F).lost, QBPF_HISTORY_MAX);
	finish(&h, &l);
}

/* Over its limit while it is still open: the history is out, all that follows goes straight. */
static int work_long(void)
{
	begin_x();
	func();
	nap();
	for (int i = 0; i < 5 * QBPF_HISTORY_MAX; i++)
		func();
	begin_y();
	end_y();
	end_x();
	return 0;
}

static void t_long(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, work_long, true, true, &l);
	assert_int_equal(held_of(&l, F), 5 * QBPF_HISTORY_MAX + 1);
	assert_int_equal(held_of(&l, Y), 1);
	assert_int_equal(held_of(&l, X), 1);
	assert_int_equal(stream_counts_of(&h, F).lost, 0);
	finish(&h, &l);
}

/* Slow spans that a thread's end leaves open: what they held, and they themselves as open. */
static void *leave_open(void *arg)
{
	begin_x();
	func();
	if (arg)
		nap();
	begin_y();
	pthread_exit(NULL);
}

static int work_leave_open(void)
{
	pthread_t t;

	for (int i = 0; i < 4; i++) {
		if (pthread_create(&t, NULL, leave_open, i == 2 ? &t : NULL))
			return 1;
		pthread_join(t, NULL);
	}
	return 0;
}

static void t_open_at_exit(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, work_leave_open, true, false, &l);
	assert_spans(&l, "Fyx");
	assert_int_equal(stream_counts_of(&h, F).skipped, 3);
	assert_int_equal(counts_of(&h, X).abandoned, 4);
	finish(&h, &l);
}

static int work_stopped(void)
{
	begin_x();
	func();
	begin_y();
	func();
	nap();
	raise(SIGSTOP);
	end_y();
	end_x();
	return 0;
}

/* The history of what is open when the recording ends, and slow by then. */
static void t_open_at_end(void **state)
{
	struct qbpf_record r[8];
	struct records l = {0};
	struct harness h;
	int status;

	stream_start(&h, state, 65536);
	h.skel->rodata->cfg_slow = true;
	harness_load(&h);
	watch(&h, X, LIMIT_NS);
	child_prepare(&h, work_stopped);
	probe_all(&h);
	assert_int_equal(write(h.go[1], "x", 1), 1);
	assert_int_equal(waitpid(h.child, &status, WUNTRACED), h.child);
	assert_true(WIFSTOPPED(status));
	read_ring(&h, &l);
	assert_int_equal(l.n, 0);
	assert_int_equal(stream_counts_of(&h, F).skipped, 2);
	for (int again = 0; again < 2; again++) {
		static const uint32_t span[] = {F, F, Y, X};

		assert_int_equal(read_iter(h.skel->progs.on_stream_end, r, 8, sizeof(r[0])), 4);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(r[i].span, span[i]);
			assert_int_equal(r[i].type, i < 2 ? QBPF_RECORD_SPAN : QBPF_RECORD_OPEN);
		}
	}
	kill(h.child, SIGCONT);
	assert_int_equal(waitpid(h.child, &status, 0), h.child);
	assert_int_equal(status, 0);
	close(h.go[1]);
	read_ring(&h, &l);
	assert_spans(&l, "FFYX");
	finish(&h, &l);
}

/* Slow trees out of the sampled ones only. */
static int work_sampled(void)
{
	for (int i = 0; i < 4; i++) {
		begin_x();
		func();
		if (i > 1)
			nap();
		end_x();
	}
	return 0;
}

static void t_sampled(void **state)
{
	struct records l = {0};
	struct harness h;

	stream_start(&h, state, 65536);
	h.skel->rodata->cfg_slow = true;
	h.skel->rodata->cfg_sample = 2;
	harness_load(&h);
	watch(&h, X, LIMIT_NS);
	child_prepare(&h, work_sampled);
	probe_all(&h);
	assert_int_equal(child_run(&h), 0);
	read_ring(&h, &l);
	assert_spans(&l, "FX");
	assert_int_equal(stream_counts_of(&h, X).over, 1);
	assert_int_equal(stream_counts_of(&h, X).skipped, 3);
	finish(&h, &l);
}

#define THREADS 4
#define ROUNDS	2000

static void *spans(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		begin_x();
		func();
		begin_y();
		mark();
		if (i % 500 == 77)
			nap();
		end_y();
		end_x();
	}
	return arg;
}

static int work_threads(void)
{
	return run_threads(THREADS, spans);
}

static void t_threads(void **state)
{
	struct qbpf_stream_counts x, y;
	struct records l = {0};
	struct harness h;

	run(&h, state, work_threads, true, true, &l);
	x = stream_counts_of(&h, X);
	y = stream_counts_of(&h, Y);
	assert_true(x.over >= THREADS * 4);
	assert_int_equal(held_of(&l, X) + x.lost, x.over);
	assert_true(held_of(&l, Y) >= y.over);
	assert_true(held_of(&l, F) >= THREADS * 4);
	assert_true(x.over < THREADS * ROUNDS / 2);
	for (size_t i = 0; i < l.n; i++)
		if (l.r[i].span == X)
			assert_true(l.r[i].end_ns - l.r[i].start_ns >= LIMIT_NS);
	finish(&h, &l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_simple),      BOTH_WAYS(t_nested),  BOTH_WAYS(t_recursive),
	    BOTH_WAYS(t_overflow),    BOTH_WAYS(t_long),    BOTH_WAYS(t_open_at_exit),
	    BOTH_WAYS(t_open_at_end), BOTH_WAYS(t_sampled), BOTH_WAYS(t_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

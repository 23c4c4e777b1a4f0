/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * --slow: the whole trees of slow spans reach the ring and nothing else does; nested and recursive
 * watched spans, histories that overflow, spans that are slow before they end or never end.
 *
 * What is meant to be fast is slow all the same when its thread does not get to run. So a workload
 * looks at the clock around such parts, and a run in which one was not fast is repeated: every other
 * one has exact counts.
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

#define DELAYED 98 /* a workload's exit code */
#define TRIES	50

static bool delayed;

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* What was begun then is over, and was to be faster than that. */
static void was_fast(uint64_t start_ns, uint64_t limit_ns)
{
	delayed |= clock_ns() - start_ns >= limit_ns;
}

static int outcome(void)
{
	return delayed ? DELAYED : 0;
}

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

struct how {
	int (*work)(void);
	uint64_t x_ns, y_ns; /* limits; 0: not watched */
	uint32_t sample;
};

static void prepare(struct harness *h, void **state, const struct how *how)
{
	stream_start(h, state, 1 << 20);
	h->skel->rodata->cfg_slow = true;
	h->skel->rodata->cfg_sample = how->sample;
	harness_load(h);
	if (how->x_ns)
		watch(h, X, how->x_ns);
	if (how->y_ns)
		watch(h, Y, how->y_ns);
	child_prepare(h, how->work);
	probe_all(h);
}

/* True: the run was for nothing, and everything is put away. */
static bool was_delayed(struct harness *h, int status, int try)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status) != DELAYED)
		return false;
	if (try == TRIES)
		fail_msg("%d runs in which something short took %llu ms", TRIES,
			 (unsigned long long)(LIMIT_NS / 1000000));
	harness_close(h);
	return true;
}

static void run(struct harness *h, void **state, const struct how *how, struct records *l)
{
	int status, try = 0;

	do {
		prepare(h, state, how);
		status = child_run(h);
	} while (was_delayed(h, status, ++try));
	assert_int_equal(status, 0);
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
		bool slow = i == 1 || i == 3;
		uint64_t start_ns;

		func();
		mark();
		start_ns = clock_ns();
		begin_x();
		func();
		mark();
		begin_y();
		func();
		if (slow)
			nap();
		end_y();
		end_x();
		if (!slow)
			was_fast(start_ns, LIMIT_NS);
	}
	return outcome();
}

static void t_simple(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, &(struct how){.work = work_simple, .x_ns = LIMIT_NS}, &l);
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
static void fast_y(void)
{
	uint64_t start_ns = clock_ns();

	begin_y();
	mark();
	end_y();
	was_fast(start_ns, LIMIT_NS);
}

static int work_nested(void)
{
	uint64_t start_ns = clock_ns();

	begin_x();
	func();
	fast_y();
	begin_y(); /* slow for y, not for x */
	func();
	nap();
	end_y();
	mark();
	end_x();
	was_fast(start_ns, 4 * NAP_NS);
	begin_x(); /* slow by what comes after y */
	fast_y();
	for (int i = 0; i < 5; i++)
		nap();
	end_x();
	return outcome();
}

static void t_nested(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, &(struct how){.work = work_nested, .x_ns = 4 * NAP_NS, .y_ns = LIMIT_NS},
	    &l);
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

static void fast_x(void (*inside)(void))
{
	uint64_t start_ns = clock_ns();

	begin_x();
	inside();
	end_x();
	was_fast(start_ns, LIMIT_NS);
}

static int work_recursive(void)
{
	begin_y();
	fast_x(func); /* in the same y */
	recurse(0);
	fast_x(mark);
	end_y();
	return outcome();
}

static void t_recursive(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, &(struct how){.work = work_recursive, .x_ns = LIMIT_NS}, &l);
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

	run(&h, state, &(struct how){.work = work_overflow, .x_ns = LIMIT_NS}, &l);
	assert_int_equal(held_of(&l, X), 1);
	assert_int_equal(held_of(&l, I), 1);
	assert_int_equal(held_of(&l, F) + stream_counts_of(&h, F).lost, QBPF_HISTORY_MAX + 100);
	assert_int_equal(stream_counts_of(&h, F).skipped, 0);
	/* On a machine that is so slow that the calls alone take so long, nothing is lost. */
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

	run(&h, state, &(struct how){.work = work_long, .x_ns = LIMIT_NS, .y_ns = LIMIT_NS}, &l);
	assert_int_equal(held_of(&l, F), 5 * QBPF_HISTORY_MAX + 1);
	assert_int_equal(held_of(&l, Y), 1);
	assert_int_equal(held_of(&l, X), 1);
	assert_int_equal(stream_counts_of(&h, F).lost, 0);
	finish(&h, &l);
}

/* Slow spans that a thread's end leaves open: what they held, and they themselves as open. */
static pid_t leaver;

static void *leave_open(void *arg)
{
	leaver = gettid();
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
		uint64_t start_ns = clock_ns();

		if (pthread_create(&t, NULL, leave_open, i == 2 ? &t : NULL))
			return 1;
		pthread_join(t, NULL);
		/* Who was waited for may still be ending. */
		while (!tgkill(getpid(), leaver, 0))
			usleep(100);
		if (i != 2)
			was_fast(start_ns, LIMIT_NS);
	}
	return outcome();
}

static void t_open_at_exit(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, &(struct how){.work = work_leave_open, .x_ns = LIMIT_NS}, &l);
	assert_spans(&l, "Fyx");
	assert_int_equal(stream_counts_of(&h, F).skipped, 3);
	assert_int_equal(counts_of(&h, X).abandoned, 4);
	finish(&h, &l);
}

static int work_stopped(void)
{
	uint64_t start_ns = clock_ns();

	begin_x();
	func();
	begin_y();
	func();
	was_fast(start_ns, LIMIT_NS);
	if (delayed)
		return DELAYED;
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
	int status, try = 0;

	do {
		prepare(&h, state, &(struct how){.work = work_stopped, .x_ns = LIMIT_NS});
		assert_int_equal(write(h.go[1], "x", 1), 1);
		assert_int_equal(waitpid(h.child, &status, WUNTRACED), h.child);
	} while (was_delayed(&h, status, ++try));
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
	fast_x(func);
	fast_x(func);
	for (int i = 0; i < 2; i++) {
		begin_x();
		func();
		nap();
		end_x();
	}
	return outcome();
}

static void t_sampled(void **state)
{
	struct records l = {0};
	struct harness h;

	run(&h, state, &(struct how){.work = work_sampled, .x_ns = LIMIT_NS, .sample = 2}, &l);
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

	run(&h, state, &(struct how){.work = work_threads, .x_ns = LIMIT_NS, .y_ns = LIMIT_NS}, &l);
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

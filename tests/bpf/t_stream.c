/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recording: every field of every kind of record, each thread's order, and that what is in the
 * ring, what was lost and what was skipped add up to what the aggregates have. --slow is in
 * t_stream_slow.c.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <asm/ptrace.h>

#include "stream.h"

DECLARE_SITE(v_site);
DECLARE_SITE(k_begin);
DECLARE_SITE(k_end);

enum { V = SPANS, K };

static const struct qbpf_arg in_rdi = {
    .base = offsetof(struct pt_regs, rdi),
    .index = QBPF_NO_REG,
    .scale = 1,
    .size = 8,
    .flags = QBPF_ARG_VALID | QBPF_ARG_SIGNED,
};

static void set_arg(struct harness *h, uint32_t site)
{
	struct qbpf_site s = {.arg = in_rdi};

	assert_int_equal(
	    bpf_map__update_elem(h->skel->maps.sites, &site, sizeof(site), &s, sizeof(s), 0), 0);
}

static noinline void value(uint64_t v)
{
	SITE_ARG(v_site, v);
}

static noinline void begin_key(uint64_t key)
{
	SITE_ARG(k_begin, key);
}

static noinline void end_key(uint64_t key)
{
	SITE_ARG(k_end, key);
}

static void run(struct harness *h, int (*work)(void), struct records *l)
{
	harness_load(h);
	child_prepare(h, work);
	set_arg(h, 6);
	set_arg(h, 7);
	set_arg(h, 8);
	probe_all(h);
	probe(h, v_site, V, QBPF_ROLE_VALUE, 6);
	probe(h, k_begin, K, QBPF_ROLE_KEY_BEGIN, 7);
	probe(h, k_end, K, QBPF_ROLE_KEY_END, 8);
	assert_int_equal(child_run(h), 0);
	read_ring(h, l);
}

static void finish(struct harness *h, struct records *l)
{
	for (uint32_t span = X; span <= K; span++)
		assert_adds_up(h, l, span);
	free(l->r);
	memset(l, 0, sizeof(*l));
	harness_close(h);
}

/* --- what a record says ---------------------------------------------------------------------- */

static int work_each(void)
{
	prctl(PR_SET_NAME, "each");
	begin_x();
	func();
	mark();
	value(-5);
	begin_y();
	func();
	end_y();
	end_x();
	mark();
	return 0;
}

static void t_each(void **state)
{
	static const struct {
		uint16_t type, depth;
		uint32_t span;
	} want[] = {
	    {QBPF_RECORD_SPAN, 1, F},	 {QBPF_RECORD_INSTANT, 1, I}, {QBPF_RECORD_VALUE, 1, V},
	    {QBPF_RECORD_SPAN, 2, F},	 {QBPF_RECORD_SPAN, 1, Y},    {QBPF_RECORD_SPAN, 0, X},
	    {QBPF_RECORD_INSTANT, 0, I},
	};
	enum { N = sizeof(want) / sizeof(want[0]) };
	struct records l = {0};
	const struct qbpf_record *r;
	struct harness h;

	stream_start(&h, state, 65536);
	run(&h, work_each, &l);
	assert_int_equal(l.n, N + 1);
	r = l.r;
	for (int i = 0; i < N; i++) {
		assert_int_equal(r[i].type, want[i].type);
		assert_int_equal(r[i].span, want[i].span);
		assert_int_equal(r[i].depth, want[i].depth);
		assert_int_equal(r[i].tid, h.child);
		assert_int_equal(r[i].tgid, h.child);
		assert_int_equal(r[i].flags, i ? 0 : QBPF_RECORD_FIRST);
	}
	assert_ordered(&l);
	assert_int_equal(r[0].node, node_at(&h, (uint32_t[]){X, F}, 2));
	assert_int_equal(r[1].node, node_at(&h, (uint32_t[]){X, I}, 2));
	assert_int_equal(r[2].node, 0);
	assert_int_equal(r[3].node, node_at(&h, (uint32_t[]){X, Y, F}, 3));
	assert_int_equal(r[4].node, node_at(&h, (uint32_t[]){X, Y}, 2));
	assert_int_equal(r[5].node, node_at(&h, (uint32_t[]){X}, 1));
	assert_int_equal(r[6].node, node_at(&h, (uint32_t[]){I}, 1));
	assert_int_equal((int64_t)r[2].arg, -5);
	assert_int_equal(r[1].start_ns, r[1].end_ns);
	assert_int_equal(r[2].start_ns, r[2].end_ns);
	assert_int_equal(r[0].child_ns, 0);
	assert_int_equal(r[4].child_ns, r[3].end_ns - r[3].start_ns);
	assert_int_equal(r[5].child_ns,
			 r[0].end_ns - r[0].start_ns + (r[4].end_ns - r[4].start_ns));
	/* The same figures as the aggregates have. */
	assert_int_equal(hist_of(&h, X).sum, r[5].end_ns - r[5].start_ns);
	assert_int_equal(hist_of(&h, Y).sum, r[4].end_ns - r[4].start_ns);
	assert_int_equal(NODE(&h, X).self_ns, r[5].end_ns - r[5].start_ns - r[5].child_ns);
	assert_int_equal(r[N].type, QBPF_RECORD_EXIT);
	assert_int_equal(r[N].tid, h.child);
	assert_int_equal(r[N].span, 0);
	assert_string_equal(r[N].comm, "each");
	assert_true(r[N].end_ns >= r[N - 1].end_ns);
	finish(&h, &l);
}

/* Without a recording: what nests, and only while somebody wants it. */
static void t_spans_only(void **state)
{
	static const struct {
		uint16_t depth;
		uint32_t span;
	} want[] = {{1, F}, {2, F}, {1, Y}, {0, X}};
	struct harness h;

	for (int wanted = 0; wanted < 2; wanted++) {
		struct records l = {0};

		stream_start(&h, state, 65536);
		h.skel->rodata->cfg_stream = false;
		h.skel->rodata->cfg_spans = true;
		h.skel->bss->spans_wanted = wanted;
		bpf_program__set_autoload(h.skel->progs.on_stream_end, false);
		run(&h, work_each, &l);
		assert_int_equal(l.n, wanted ? 4 : 0);
		for (size_t i = 0; i < l.n; i++) {
			assert_int_equal(l.r[i].type, QBPF_RECORD_SPAN);
			assert_int_equal(l.r[i].span, want[i].span);
			assert_int_equal(l.r[i].depth, want[i].depth);
			assert_int_equal(l.r[i].tid, h.child);
		}
		if (wanted)
			assert_int_equal(hist_of(&h, X).sum, l.r[3].end_ns - l.r[3].start_ns);
		assert_int_equal(hist_of(&h, X).n, 1);
		assert_int_equal(hist_of(&h, F).n, 2);
		free(l.r);
		harness_close(&h);
	}
}

/* x ends while y, begun inside it, is open: y ends by itself. */
static int work_crossing(void)
{
	begin_x();
	begin_y();
	end_x();
	func();
	end_y();
	return 0;
}

static void t_crossing(void **state)
{
	struct records l = {0};
	struct harness h;

	stream_start(&h, state, 65536);
	run(&h, work_crossing, &l);
	assert_int_equal(l.n, 4);
	assert_int_equal(l.r[0].type, QBPF_RECORD_SPAN);
	assert_int_equal(l.r[0].span, X);
	assert_int_equal(l.r[1].type, QBPF_RECORD_SPAN);
	assert_int_equal(l.r[1].span, F);
	assert_int_equal(l.r[1].depth, 0);
	assert_int_equal(l.r[2].type, QBPF_RECORD_ASIDE);
	assert_int_equal(l.r[2].span, Y);
	assert_int_equal(l.r[2].node, node_at(&h, (uint32_t[]){X, Y}, 2));
	assert_true(l.r[2].start_ns < l.r[0].end_ns && l.r[2].end_ns > l.r[1].end_ns);
	assert_int_equal(hist_of(&h, Y).sum, l.r[2].end_ns - l.r[2].start_ns);
	finish(&h, &l);
}

static void *end_keys(void *arg)
{
	for (uint64_t k = 0; k < 10; k++)
		end_key(k << 40 | 7);
	return arg;
}

static int work_keys(void)
{
	pthread_t t;

	for (uint64_t k = 0; k < 10; k++)
		begin_key(k << 40 | 7);
	if (pthread_create(&t, NULL, end_keys, NULL))
		return 1;
	pthread_join(t, NULL);
	return 0;
}

static void t_keys(void **state)
{
	struct records l = {0};
	uint64_t sum = 0;
	struct harness h;

	stream_start(&h, state, 65536);
	run(&h, work_keys, &l);
	/* The first thread has ended nothing, so it leaves no trace. */
	assert_int_equal(l.n, 11);
	for (int i = 0; i < 10; i++) {
		const struct qbpf_record *r = &l.r[i];

		assert_int_equal(r->type, QBPF_RECORD_KEYED);
		assert_int_equal(r->span, K);
		assert_int_equal(r->arg, (uint64_t)i << 40 | 7);
		assert_int_equal(r->begin_tid, h.child);
		assert_int_not_equal(r->tid, h.child);
		assert_int_equal(r->tid, l.r[10].tid);
		sum += r->end_ns - r->start_ns;
	}
	assert_int_equal(hist_of(&h, K).sum, sum);
	assert_int_equal(l.r[10].type, QBPF_RECORD_EXIT);
	finish(&h, &l);
}

/* --- what has no end ------------------------------------------------------------------------- */

static void *leave_open(void *arg)
{
	begin_x();
	func();
	begin_y();
	pthread_exit(arg);
}

static int work_leave_open(void)
{
	pthread_t t;

	for (int i = 0; i < 20; i++) {
		if (pthread_create(&t, NULL, leave_open, NULL))
			return 1;
		pthread_join(t, NULL);
	}
	return 0;
}

/* The records of the thread that the i-th has, if that is its first; how many, at most n. */
static size_t of_thread(const struct records *l, size_t i, struct qbpf_record *out, size_t n)
{
	size_t k = 0;

	if (!(l->r[i].flags & QBPF_RECORD_FIRST))
		return 0;
	for (size_t j = i; j < l->n && k < n; j++) {
		if (l->r[j].tid != l->r[i].tid)
			continue;
		out[k++] = l->r[j];
		if (l->r[j].type == QBPF_RECORD_EXIT)
			break;
	}
	return k;
}

/* A thread that was waited for may still be ending while the next one runs. */
static void t_open_at_exit(void **state)
{
	struct records l = {0};
	unsigned int threads = 0;
	struct harness h;

	stream_start(&h, state, 65536);
	run(&h, work_leave_open, &l);
	assert_int_equal(l.n, 20 * 4);
	for (size_t i = 0; i < l.n; i++) {
		struct qbpf_record r[8];
		size_t n = of_thread(&l, i, r, 8);

		if (!n)
			continue;
		threads++;
		assert_int_equal(n, 4);
		assert_int_equal(r[0].span, F);
		assert_int_equal(r[0].flags, QBPF_RECORD_FIRST);
		assert_int_equal(r[1].type, QBPF_RECORD_OPEN);
		assert_int_equal(r[1].span, Y);
		assert_int_equal(r[1].depth, 1);
		assert_int_equal(r[1].node, node_at(&h, (uint32_t[]){X, Y}, 2));
		assert_int_equal(r[2].type, QBPF_RECORD_OPEN);
		assert_int_equal(r[2].span, X);
		assert_int_equal(r[2].depth, 0);
		assert_int_equal(r[2].child_ns, r[0].end_ns - r[0].start_ns);
		assert_int_equal(r[3].type, QBPF_RECORD_EXIT);
		assert_int_equal(r[1].end_ns, r[3].end_ns);
		assert_int_equal(r[2].end_ns, r[3].end_ns);
		assert_true(r[2].start_ns < r[1].start_ns);
		for (int k = 1; k < 4; k++) {
			assert_int_equal(r[k].tgid, h.child);
			assert_int_equal(r[k].flags, 0);
		}
	}
	assert_int_equal(threads, 20);
	assert_int_equal(counts_of(&h, X).abandoned, 20);
	assert_int_equal(hist_of(&h, X).n, 0);
	finish(&h, &l);
}

static noinline void stop_here(void)
{
	raise(SIGSTOP);
	__asm__ volatile("" ::: "memory");
}

static int work_stopped(void)
{
	begin_x();
	func();
	begin_y();
	stop_here();
	end_y();
	end_x();
	return 0;
}

/* What is open when the recording ends is told by a task iterator, as often as it is asked. */
static void t_open_at_end(void **state)
{
	struct qbpf_record r[8];
	struct records l = {0};
	struct harness h;
	int status;

	stream_start(&h, state, 65536);
	harness_load(&h);
	child_prepare(&h, work_stopped);
	probe_all(&h);
	assert_int_equal(write(h.go[1], "x", 1), 1);
	assert_int_equal(waitpid(h.child, &status, WUNTRACED), h.child);
	assert_true(WIFSTOPPED(status));
	read_ring(&h, &l);
	assert_int_equal(l.n, 1);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(read_iter(h.skel->progs.on_stream_end, r, 8, sizeof(r[0])), 2);
		assert_int_equal(r[0].type, QBPF_RECORD_OPEN);
		assert_int_equal(r[0].size, sizeof(r[0]));
		assert_int_equal(r[0].span, Y);
		assert_int_equal(r[0].depth, 1);
		assert_int_equal(r[1].span, X);
		assert_int_equal(r[1].depth, 0);
		assert_int_equal(r[1].child_ns, l.r[0].end_ns - l.r[0].start_ns);
		assert_int_equal(r[1].tid, h.child);
		assert_int_equal(r[1].flags, 0);
		assert_true(r[1].end_ns > r[0].start_ns && r[0].start_ns > r[1].start_ns);
	}
	kill(h.child, SIGCONT);
	assert_int_equal(waitpid(h.child, &status, 0), h.child);
	assert_int_equal(status, 0);
	close(h.go[1]);
	read_ring(&h, &l);
	finish(&h, &l);
}

/* --- loss ------------------------------------------------------------------------------------ */

#define BURST 10000

static int work_burst(void)
{
	for (int i = 0; i < BURST; i++) {
		begin_x();
		func();
		mark();
		end_x();
	}
	return 0;
}

/* Nobody reads: the ring takes what fits, everything else is counted, the aggregates are whole. */
static void t_full_ring(void **state)
{
	struct records l = {0};
	struct harness h;
	uint64_t held;

	stream_start(&h, state, 4096);
	run(&h, work_burst, &l);
	/* 48 bytes and the ring's own 8 for each; the last byte never fills. */
	held = (4096 - 1) / (sizeof(struct qbpf_record) + 8);
	assert_int_equal(l.n, held);
	assert_int_equal(held_of(&l, X) + held_of(&l, F) + held_of(&l, I), held);
	assert_int_equal(hist_of(&h, X).n, BURST);
	assert_int_equal(hist_of(&h, F).n, BURST);
	assert_int_equal(NODE(&h, X, I).count, BURST);
	assert_int_equal(stream_counts_of(&h, X).lost, BURST - held_of(&l, X));
	assert_int_equal(stream_counts_of(&h, F).lost, BURST - held_of(&l, F));
	assert_int_equal(stream_counts_of(&h, I).lost, BURST - held_of(&l, I));
	assert_int_equal(stream_counts_of(&h, 0).lost, 1); /* the thread's end */
	/* The reader that never comes is called once. */
	assert_int_equal(h.skel->bss->stat_stream_wakeups, 1);
	finish(&h, &l);
}

#define THREADS 8
#define ROUNDS	1000

static void *spans(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		begin_x();
		func();
		begin_y();
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
	struct records l = {0};
	struct harness h;

	stream_start(&h, state, 16 << 20);
	run(&h, work_threads, &l);
	assert_ordered(&l);
	assert_int_equal(held_of(&l, X), THREADS * ROUNDS);
	assert_int_equal(held_of(&l, Y), THREADS * ROUNDS);
	assert_int_equal(held_of(&l, F), THREADS * ROUNDS);
	finish(&h, &l);
}

/* Threads in a ring that is too small and is read meanwhile: some is lost, and it adds up. */
static void t_threads_loss(void **state)
{
	struct records l = {0};
	struct harness h;
	int status = 0;

	stream_start(&h, state, 8192);
	harness_load(&h);
	child_prepare(&h, work_threads);
	probe_all(&h);
	assert_int_equal(write(h.go[1], "x", 1), 1);
	while (!waitpid(h.child, &status, WNOHANG)) {
		read_ring(&h, &l);
		usleep(200000); /* emulated kernels fill it slowly */
	}
	assert_int_equal(status, 0);
	close(h.go[1]);
	read_ring(&h, &l);
	assert_true(held_of(&l, X) > 0);
	assert_true(stream_counts_of(&h, X).lost > 0);
	assert_int_equal(hist_of(&h, X).n, THREADS * ROUNDS);
	finish(&h, &l);
}

/* --- sample ---------------------------------------------------------------------------------- */

static int work_sampled(void)
{
	for (int i = 0; i < 10; i++) {
		begin_x();
		func();
		begin_y();
		mark();
		end_y();
		end_x();
	}
	/* By themselves, each is an outermost: of 10 spans and 10 instants, 1 in 4. */
	for (int i = 0; i < 10; i++)
		mark();
	return 0;
}

static void t_sample(void **state)
{
	static const uint32_t tree[] = {F, I, Y, X};
	struct records l = {0};
	struct harness h;

	stream_start(&h, state, 65536);
	h.skel->rodata->cfg_sample = 4;
	run(&h, work_sampled, &l);
	assert_ordered(&l);
	/* Trees 0, 4, 8 and instants 12 and 16. */
	assert_int_equal(l.n, 3 * 4 + 2 + 1);
	for (int i = 0; i < 12; i++)
		assert_int_equal(l.r[i].span, tree[i % 4]);
	assert_int_equal(l.r[12].span, I);
	assert_int_equal(l.r[13].span, I);
	assert_int_equal(stream_counts_of(&h, X).skipped, 7);
	assert_int_equal(stream_counts_of(&h, F).skipped, 7);
	assert_int_equal(stream_counts_of(&h, Y).skipped, 7);
	assert_int_equal(stream_counts_of(&h, I).skipped, 7 + 8);
	assert_int_equal(stream_counts_of(&h, X).lost, 0);
	assert_int_equal(hist_of(&h, X).n, 10);
	finish(&h, &l);
}

/* --- not recording --------------------------------------------------------------------------- */

/* The loader leaves these maps out then, and the programs load without them. */
static void t_off(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	bpf_map__set_autocreate(h.skel->maps.stream, false);
	bpf_map__set_autocreate(h.skel->maps.stream_counts, false);
	bpf_map__set_autocreate(h.skel->maps.slow_limits, false);
	bpf_map__set_autocreate(h.skel->maps.histories, false);
	harness_load(&h);
	child_prepare(&h, work_burst);
	probe_all(&h);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, X).n, BURST);
	assert_int_equal(NODE(&h, X, F).count, BURST);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_each),	    BOTH_WAYS(t_spans_only),   BOTH_WAYS(t_crossing),
	    BOTH_WAYS(t_keys),	    BOTH_WAYS(t_open_at_exit), BOTH_WAYS(t_open_at_end),
	    BOTH_WAYS(t_full_ring), BOTH_WAYS(t_threads),      BOTH_WAYS(t_threads_loss),
	    BOTH_WAYS(t_sample),    BOTH_WAYS(t_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

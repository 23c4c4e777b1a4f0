/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads and processes: exact counts from many at once, and spans left open by exit, exec,
 * fork and vfork. Also what user space is told, and the list of open frames.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "harness.h"

DECLARE_SITE(x_begin);
DECLARE_SITE(x_end);
DECLARE_SITE(y_begin);
DECLARE_SITE(y_end);

#define THREADS 8
#define ROUNDS	5000

static noinline void begin_x(void)
{
	SITE_1(x_begin);
}

static noinline void end_x(void)
{
	SITE_1(x_end);
}

static noinline void begin_y(void)
{
	SITE_1(y_begin);
}

static noinline void end_y(void)
{
	SITE_1(y_end);
}

static noinline void func(void)
{
	__asm__ volatile("" ::: "memory");
}

static void probe_xy(struct harness *h)
{
	probe(h, x_begin, 1, QBPF_ROLE_BEGIN, 1);
	probe(h, x_end, 1, QBPF_ROLE_END, 2);
	probe(h, y_begin, 2, QBPF_ROLE_BEGIN, 3);
	probe(h, y_end, 2, QBPF_ROLE_END, 4);
	probe_function(h, func, 3);
}

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
	struct qbpf_node_cell x, y, f;
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_threads);
	probe_xy(&h);
	assert_int_equal(child_run(&h), 0);
	for (uint32_t span = 1; span <= 3; span++) {
		assert_int_equal(hist_of(&h, span).n, THREADS * ROUNDS);
		assert_int_equal(not_clean(&h, span), 0);
	}
	x = NODE(&h, 1);
	y = NODE(&h, 1, 2);
	f = NODE(&h, 1, 3);
	assert_int_equal(node_count(&h), 3);
	assert_int_equal(x.count, THREADS * ROUNDS);
	assert_int_equal(y.count, THREADS * ROUNDS);
	assert_int_equal(f.count, THREADS * ROUNDS);
	assert_int_equal(x.self_ns, x.total_ns - y.total_ns - f.total_ns);
	harness_close(&h);
}

/* Each thread ends with x and y open; the next one starts with nothing. */
static void *leave_open(void *arg)
{
	begin_x();
	begin_y();
	pthread_exit(arg);
}

static int work_thread_exit(void)
{
	pthread_t t;

	for (int i = 0; i < 100; i++) {
		pthread_create(&t, NULL, leave_open, NULL);
		pthread_join(t, NULL);
	}
	begin_x();
	return 0;
}

static void t_thread_exit(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_thread_exit);
	probe_xy(&h);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(counts_of(&h, 1).abandoned, 101);
	assert_int_equal(counts_of(&h, 2).abandoned, 100);
	assert_int_equal(not_clean(&h, 1), 101);
	assert_int_equal(hist_of(&h, 1).n + hist_of(&h, 2).n, 0);
	assert_int_equal(node_count(&h), 2);
	harness_close(&h);
}

/* The child has the parent's code and none of its frames. */
static int work_fork(void)
{
	int status, ok = 1;
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		begin_x();
		pid = fork();
		if (!pid) {
			end_x();
			begin_y();
			end_y();
			_exit(0);
		}
		ok &= waitpid(pid, &status, 0) == pid && !status;
		end_x();
	}
	return !ok;
}

/* Probes on all processes; whether children count is up to cfg_follow. */
static void fork_with(struct harness *h, void **state, bool follow, int (*work)(void))
{
	pid_t child;

	harness_open(h, way_of(state));
	h->skel->rodata->cfg_filter_tgid = true;
	h->skel->rodata->cfg_follow = follow;
	harness_load(h);
	child_prepare(h, work);
	child = h->child;
	h->child = -1;
	probe_xy(h);
	h->child = child;
	assert_int_equal(child_run(h), 0);
}

static void t_fork_followed(void **state)
{
	struct harness h;

	fork_with(&h, state, true, work_fork);
	assert_int_equal(hist_of(&h, 1).n, 20);
	assert_int_equal(counts_of(&h, 1).orphan_ends, 20);
	assert_int_equal(not_clean(&h, 1), 20);
	assert_int_equal(NODE(&h, 2).count, 20);
	assert_int_equal(not_clean(&h, 2), 0);
	harness_close(&h);
}

static void t_fork_alone(void **state)
{
	struct harness h;

	fork_with(&h, state, false, work_fork);
	assert_int_equal(hist_of(&h, 1).n, 20);
	assert_int_equal(not_clean(&h, 1), 0);
	assert_int_equal(hist_of(&h, 2).n, 0);
	harness_close(&h);
}

/* Shares the parent's memory and stack, but is another thread. */
static int work_vfork(void)
{
	int status;
	volatile int ok = 1;
	pid_t pid;

	for (int i = 0; i < 20; i++) {
		begin_x();
		pid = vfork();
		if (!pid) {
			func();
			end_x();
			begin_y();
			_exit(0);
		}
		ok &= waitpid(pid, &status, 0) == pid && !status;
		func();
		end_x();
	}
	return !ok;
}

static void t_vfork_followed(void **state)
{
	struct harness h;

	fork_with(&h, state, true, work_vfork);
	assert_int_equal(hist_of(&h, 1).n, 20);
	assert_int_equal(counts_of(&h, 1).orphan_ends, 20);
	assert_int_equal(counts_of(&h, 2).abandoned, 20);
	assert_int_equal(NODE(&h, 3).count, 20);
	assert_int_equal(NODE(&h, 1, 3).count, 20);
	harness_close(&h);
}

/* --- exec ------------------------------------------------------------------------------------ */

static int work_exec(void)
{
	char *argv[] = {"again", "again", NULL};

	begin_x();
	begin_y();
	execv("/proc/self/exe", argv);
	return 1;
}

/* What the new image does. */
static int again(void)
{
	end_x();
	for (int i = 0; i < 10; i++) {
		begin_y();
		end_y();
	}
	return 0;
}

static int collect_notice(void *ctx, void *data, size_t size)
{
	const struct qbpf_notice *n = data;
	unsigned int *seen = ctx;

	assert_true(size >= sizeof(*n));
	assert_int_equal(n->size, sizeof(*n));
	assert_true(n->type >= QBPF_NOTICE_MAPS && n->type <= QBPF_NOTICE_EXIT);
	seen[n->type]++;
	return 0;
}

static void read_notices(struct harness *h, unsigned int seen[5])
{
	struct ring_buffer *rb =
	    ring_buffer__new(bpf_map__fd(h->skel->maps.notices), collect_notice, seen, NULL);

	assert_non_null(rb);
	memset(seen, 0, 5 * sizeof(*seen));
	assert_true(ring_buffer__consume(rb) >= 0);
	ring_buffer__free(rb);
	assert_int_equal(h->skel->bss->stat_notices_lost, 0);
}

static void t_exec(void **state)
{
	unsigned int seen[5];
	struct harness h;

	fork_with(&h, state, false, work_exec);
	assert_int_equal(counts_of(&h, 1).abandoned, 1);
	assert_int_equal(counts_of(&h, 2).abandoned, 1);
	assert_int_equal(counts_of(&h, 1).orphan_ends, 1);
	assert_int_equal(hist_of(&h, 1).n, 0);
	assert_int_equal(NODE(&h, 2).count, 10);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_EXEC], 1);
	assert_int_equal(seen[QBPF_NOTICE_EXIT], 1);
	assert_int_equal(seen[QBPF_NOTICE_FORK], 0);
	harness_close(&h);
}

static void *exec_in_thread(void *arg)
{
	work_exec();
	return arg;
}

static int work_exec_in_thread(void)
{
	pthread_t t;

	begin_x();
	pthread_create(&t, NULL, exec_in_thread, NULL);
	pause();
	return 1;
}

static void t_exec_in_thread(void **state)
{
	unsigned int seen[5];
	struct harness h;

	fork_with(&h, state, false, work_exec_in_thread);
	assert_int_equal(counts_of(&h, 1).abandoned, 2);
	assert_int_equal(counts_of(&h, 2).abandoned, 1);
	assert_int_equal(NODE(&h, 2).count, 10);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_EXEC], 1);
	assert_int_equal(seen[QBPF_NOTICE_EXIT], 1);
	harness_close(&h);
}

static void t_notices(void **state)
{
	unsigned int seen[5];
	struct harness h;

	/* One process that makes 20 more; threads of it make none. */
	fork_with(&h, state, true, work_fork);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_FORK], 20);
	assert_int_equal(seen[QBPF_NOTICE_EXIT], 21);
	harness_close(&h);
	/* Not followed: their memory is still a copy of the target's; that of vfork is not. */
	fork_with(&h, state, false, work_fork);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_FORK], 20);
	assert_int_equal(seen[QBPF_NOTICE_EXIT], 1);
	harness_close(&h);
	fork_with(&h, state, false, work_vfork);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_FORK], 0);
	harness_close(&h);
	fork_with(&h, state, true, work_threads);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_FORK], 0);
	assert_int_equal(seen[QBPF_NOTICE_EXIT], 1);
	harness_close(&h);
}

static int work_ldso(void)
{
	for (int i = 0; i < 7; i++)
		func();
	return 0;
}

static void t_ldso(void **state)
{
	bool multi = way_of(state);
	unsigned int seen[5];
	struct harness h;

	harness_open(&h, multi);
	if (multi)
		bpf_program__set_expected_attach_type(h.skel->progs.on_ldso,
						      BPF_TRACE_UPROBE_MULTI);
	harness_load(&h);
	child_prepare(&h, work_ldso);
	harness_attach(&h, h.skel->progs.on_ldso, false, h.child, func, 0);
	assert_int_equal(child_run(&h), 0);
	read_notices(&h, seen);
	assert_int_equal(seen[QBPF_NOTICE_MAPS], 7);
	harness_close(&h);
}

/* --- open frames ----------------------------------------------------------------------------- */

static noinline void stop_here(void)
{
	raise(SIGSTOP);
	__asm__ volatile("" ::: "memory");
}

static void *stop_thread(void *arg)
{
	begin_y();
	pthread_barrier_wait(arg);
	pause();
	return arg;
}

static int work_open(void)
{
	pthread_barrier_t b;
	pthread_t t;

	pthread_barrier_init(&b, NULL, 2);
	pthread_create(&t, NULL, stop_thread, &b);
	pthread_barrier_wait(&b);
	begin_x();
	begin_y();
	end_y();
	stop_here();
	end_x();
	return 0;
}

static void t_open_frames(void **state)
{
	struct qbpf_open_frame f[8];
	struct timespec now;
	uint64_t now_ns;
	struct harness h;
	int status;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_open);
	probe_xy(&h);
	probe_function(&h, stop_here, 4);
	assert_int_equal(read_open(&h, f, 8), 0);
	assert_int_equal(write(h.go[1], "x", 1), 1);
	assert_int_equal(waitpid(h.child, &status, WUNTRACED), h.child);
	assert_true(WIFSTOPPED(status));
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * 1000000000ULL + now.tv_nsec;

	assert_int_equal(read_open(&h, f, 8), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f[i].tgid, h.child);
		assert_true(f[i].start_ns && f[i].start_ns < now_ns);
	}
	assert_int_equal(f[0].tid, h.child);
	assert_int_equal(f[0].span, 1);
	assert_int_equal(f[0].depth, 0);
	assert_int_equal(f[1].tid, h.child);
	assert_int_equal(f[1].span, 4);
	assert_int_equal(f[1].depth, 1);
	assert_int_equal(f[0].slot, 0);
	assert_int_not_equal(f[1].slot, 0);
	assert_true(f[1].start_ns > f[0].start_ns);
	assert_int_not_equal(f[2].tid, h.child);
	assert_int_equal(f[2].span, 2);
	assert_int_equal(f[2].depth, 0);

	kill(h.child, SIGCONT);
	assert_int_equal(waitpid(h.child, &status, 0), h.child);
	assert_int_equal(status, 0);
	assert_int_equal(read_open(&h, f, 8), 0);
	assert_int_equal(hist_of(&h, 1).n, 1);
	assert_int_equal(hist_of(&h, 4).n, 1);
	assert_int_equal(counts_of(&h, 2).abandoned, 1);
	close(h.go[1]);
	harness_close(&h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_threads),	 BOTH_WAYS(t_thread_exit),    BOTH_WAYS(t_fork_followed),
	    BOTH_WAYS(t_fork_alone),	 BOTH_WAYS(t_vfork_followed), BOTH_WAYS(t_exec),
	    BOTH_WAYS(t_exec_in_thread), BOTH_WAYS(t_notices),	      BOTH_WAYS(t_ldso),
	    BOTH_WAYS(t_open_frames),
	};

	if (argc > 1 && !strcmp(argv[1], "again"))
		return again();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

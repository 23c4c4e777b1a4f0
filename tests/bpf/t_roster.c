// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who is who in a recording, told in any order: what the file then says. Needs no root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "file/reader.h"
#include "trace/roster.h"

/* Above every pid that Linux gives: nothing is found in /proc of them. */
#define TGID 5000000u
#define TID  5000001u

struct told {
	char path[32];
	struct trace_writer *w;
	struct roster *r;
	struct trace_reader *reader;
};

static int begin(void **state)
{
	struct told *t = calloc(1, sizeof(*t));
	struct trace_meta meta = {.qbpf_version = "1", .start_ns = 1};

	assert_non_null(t);
	strcpy(t->path, "/tmp/roster-XXXXXX");
	close(mkstemp(t->path));
	assert_int_equal(trace_writer__new(t->path, &meta, &t->w, NULL), 0);
	t->r = roster__new(t->w);
	assert_non_null(t->r);
	*state = t;
	return 0;
}

static int end(void **state)
{
	struct told *t = *state;

	trace_reader__free(t->reader);
	unlink(t->path);
	free(t);
	return 0;
}

/* Closes the recording and opens it. */
static const struct trace_info *read_back(struct told *t)
{
	const struct event *batch;
	struct err e;
	size_t n;

	assert_int_equal(roster__finish(t->r), 0);
	roster__free(t->r);
	assert_int_equal(trace_writer__close(t->w, 1000, NULL, 0, NULL), 0);
	trace_writer__free(t->w);
	if (trace_reader__open(t->path, &t->reader, &e))
		fail_msg("%s", e.text);
	while (trace_reader__next(t->reader, &batch, &n, &e) > 0)
		;
	return trace_reader__info(t->reader);
}

static void thread(struct told *t, uint32_t tid, uint64_t start_ns)
{
	uint32_t index;

	assert_int_equal(roster__thread(t->r, TGID, tid, true, start_ns, &index), 0);
}

static void thread_end(struct told *t, uint32_t tid, uint64_t end_ns)
{
	assert_int_equal(roster__thread_end(t->r, tid, end_ns, "w"), 0);
}

static void process_end(struct told *t, uint64_t end_ns)
{
	assert_int_equal(roster__process_end(t->r, TGID, end_ns), 0);
}

/*
 * Threads that are killed at once: the first of them to find no other alive tells of the process's
 * end, and the others end after that.
 */
static void t_ends_after_the_notice(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;

	thread(t, TID, 10);
	thread(t, TID + 1, 11);
	thread(t, TID + 2, 12);
	thread_end(t, TID + 1, 100);
	process_end(t, 101);
	thread_end(t, TID + 2, 107);
	thread_end(t, TID, 103);
	info = read_back(t);
	assert_int_equal(info->nthreads, 3);
	assert_int_equal(info->threads[0].end_ns, 103);
	assert_int_equal(info->threads[1].end_ns, 100);
	assert_int_equal(info->threads[2].end_ns, 107);
	assert_int_equal(info->nprocesses, 1);
	assert_int_equal(info->processes[0].end_ns, 107);
}

/* The same, read late: the threads' ends come by another ring than the notice. */
static void t_ends_before_the_notice(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;

	thread(t, TID, 10);
	thread(t, TID + 1, 11);
	thread_end(t, TID, 107);
	thread_end(t, TID + 1, 103);
	process_end(t, 101);
	info = read_back(t);
	assert_int_equal(info->threads[0].end_ns, 107);
	assert_int_equal(info->processes[0].end_ns, 107);
}

/* A thread whose end was lost ends with its process. */
static void t_lost_end(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;

	thread(t, TID, 10);
	thread(t, TID + 1, 11);
	thread_end(t, TID, 50);
	process_end(t, 60);
	info = read_back(t);
	assert_int_equal(info->threads[0].end_ns, 50);
	assert_int_equal(info->threads[1].end_ns, 60);
	assert_int_equal(info->processes[0].end_ns, 60);
}

/* A later process with the same ids: the first one's end is not moved, and lost ends are its own. */
static void t_ids_used_again(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;

	thread(t, TID, 10);
	thread(t, TID + 1, 11);
	process_end(t, 60);
	assert_int_equal(roster__process(t->r, TGID, 70), 0);
	thread(t, TID, 75);
	thread_end(t, TID, 80);
	process_end(t, 90);
	info = read_back(t);
	assert_int_equal(info->nprocesses, 2);
	assert_int_equal(info->processes[0].end_ns, 60);
	assert_int_equal(info->processes[1].end_ns, 90);
	assert_int_equal(info->nthreads, 3);
	assert_int_equal(info->threads[1].end_ns, 60);
	assert_int_equal(info->threads[2].end_ns, 80);
}

/* What was begun first ends last, and the notice of a fork may come after the child's spans. */
static void t_begins_before_what_is_known(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;
	uint32_t index;

	thread(t, TID, 20);
	assert_int_equal(roster__thread(t->r, TGID, TID, false, 15, &index), 0);
	assert_int_equal(index, 0);
	assert_int_equal(roster__process(t->r, TGID, 10), 0);
	assert_int_equal(roster__process(t->r, TGID, 12), 0);
	thread(t, TID + 1, 30);
	info = read_back(t);
	assert_int_equal(info->nprocesses, 1);
	assert_int_equal(info->processes[0].start_ns, 10);
	assert_int_equal(info->threads[0].start_ns, 15);
	assert_int_equal(info->threads[1].start_ns, 30);
}

/* The same without the notice: no thread begins before its process. */
static void t_begins_with_its_thread(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;
	uint32_t index;

	thread(t, TID, 20);
	assert_int_equal(roster__thread(t->r, TGID, TID, false, 15, &index), 0);
	info = read_back(t);
	assert_int_equal(info->threads[0].start_ns, 15);
	assert_int_equal(info->processes[0].start_ns, 15);
}

/* What goes on has no end, though some of its threads ended. */
static void t_goes_on(void **state)
{
	struct told *t = *state;
	const struct trace_info *info;

	thread(t, TID, 10);
	thread(t, TID + 1, 11);
	thread_end(t, TID, 50);
	info = read_back(t);
	assert_int_equal(info->threads[0].end_ns, 50);
	assert_int_equal(info->threads[1].end_ns, 0);
	assert_int_equal(info->processes[0].end_ns, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(t_ends_after_the_notice),
	    CASE(t_ends_before_the_notice),
	    CASE(t_lost_end),
	    CASE(t_ids_used_again),
	    CASE(t_begins_before_what_is_known),
	    CASE(t_begins_with_its_thread),
	    CASE(t_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

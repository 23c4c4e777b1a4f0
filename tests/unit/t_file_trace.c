// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is written is what is read: tables, events, order, with and without a clean end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "file/writer.h"
#include "trace_build.h"

static char path[64];

static struct trace_writer *start_trace(void)
{
	struct trace_meta meta = {.qbpf_version = "9.9",
				  .command = "qbpf attach -p 1\n\xff\"",
				  .kernel = "6.18",
				  .cpu = "cpu",
				  .clocksource = NULL,
				  .hostname = "",
				  .cpus = 3,
				  .start_ns = 1000,
				  .realtime_ns = UINT64_MAX,
				  .sample = 7,
				  .slow = "a>5us",
				  .ring_bytes = 1ull << 40,
				  .nprices = 8,
				  .price_ns = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX}};
	struct trace_writer *w;
	struct err e;

	if (trace_writer__new(path, &meta, &w, &e))
		fail_msg("%s", e.text);
	return w;
}

static void add_spans(struct trace_writer *w, uint32_t n)
{
	struct trace_span s = {.name = "p:s", .kind = 4, .way = 3, .hist = 2, .floor_ns = 9};

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(trace_writer__span(w, &s), 0);
}

static void add_threads(struct trace_writer *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct trace_thread t = {.tgid = 1, .tid = 100 + i, .name = "t", .start_ns = i};

		assert_int_equal(trace_writer__thread(w, i, &t), 0);
	}
}

static struct event span_event(uint32_t thread, uint64_t start, uint64_t end)
{
	return (struct event){.kind = EVENT_SPAN,
			      .span = 1 + (uint32_t)(start % 2),
			      .node = (uint32_t)(start % 5),
			      .thread = thread,
			      .start_ns = start,
			      .end_ns = end};
}

static void end_trace(struct trace_writer *w, uint32_t nspans)
{
	struct trace_count *counts = calloc(nspans, sizeof(*counts));
	struct err e;

	for (uint32_t i = 0; i < nspans; i++)
		counts[i] = (struct trace_count){10 + i, 9, UINT64_MAX, i};
	if (trace_writer__close(w, 77777, counts, nspans, &e))
		fail_msg("%s", e.text);
	trace_writer__free(w);
	free(counts);
}

static struct trace_reader *open_trace(void)
{
	struct trace_reader *r;
	struct err e;

	if (trace_reader__open(path, &r, &e))
		fail_msg("%s", e.text);
	return r;
}

/* All events of a walk in one array; batches of a backward walk are turned around. */
static struct event *collect(struct trace_reader *r, uint32_t thread, bool backwards, size_t *n)
{
	const struct event *events;
	struct event *all = NULL;
	size_t batch, cap = 0;
	struct err e;
	int more;

	*n = 0;
	assert_int_equal(trace_reader__start(r, thread, backwards), 0);
	while ((more = trace_reader__next(r, &events, &batch, &e)) > 0) {
		if (*n + batch > cap) {
			cap = 2 * (*n + batch);
			all = realloc(all, cap * sizeof(*all));
		}
		for (size_t i = 0; i < batch; i++)
			all[*n + i] = events[backwards ? batch - 1 - i : i];
		*n += batch;
	}
	if (more)
		fail_msg("%s", e.text);
	assert_int_equal(trace_reader__next(r, &events, &batch, &e), 0);
	return all;
}

/* --- tables ------------------------------------------------------------------------------------- */

static void t_tables(void **state)
{
	struct trace_writer *w = start_trace();
	char *longest = calloc(1, 1000001);
	const struct trace_span spans[] = {
	    {.name = "", .kind = 255, .way = 255, .hist = 255},
	    {.name = longest, .floor_ns = UINT64_MAX, .price_ns = UINT64_MAX},
	};
	const struct trace_mapping mapping = {"/a b\n", "00ff",	    UINT32_MAX,
					      1,	UINT64_MAX, 1ull << 63};
	const struct trace_probe probes[] = {{2, 0, 255, 1, UINT64_MAX, "why"},
					     {1, TRACE_NO_MAPPING, 0, 0, 0, ""}};
	const struct trace_process process = {1, "c", "/e", 5, 0}, ended = {1, "d", "/f", 5, 6};
	const struct trace_thread thread = {1, 2, "t", 3, 0}, renamed = {1, 2, "u", 3, 4};
	const struct trace_node nodes[] = {
	    {7, 3, 2}, {3, 1, 1}, {1, 0, 2}, {0xfffffffe, 7, 1}, {3, 1, 1}};
	const struct trace_loss loss = {2, SOURCE_GPU, 1, UINT64_MAX, 3, UINT64_MAX};
	const struct trace_clock clock = {1, UINT64_MAX, 3, 4};
	const struct trace_info *i;
	struct trace_reader *r;

	(void)state;
	memset(longest, '\xc3', 1000000);
	for (int n = 0; n < 2; n++)
		assert_int_equal(trace_writer__span(w, &spans[n]), 0);
	assert_int_equal(trace_writer__mapping(w, &mapping), 0);
	for (int n = 0; n < 2; n++)
		assert_int_equal(trace_writer__probe(w, &probes[n]), 0);
	assert_int_equal(trace_writer__process(w, 0, &process), 0);
	assert_int_equal(trace_writer__thread(w, 0, &thread), 0);
	for (int n = 0; n < 5; n++)
		assert_int_equal(trace_writer__node(w, &nodes[n]), 0);
	assert_int_equal(trace_writer__aggregates(w, "first", 5), 0);
	assert_int_equal(trace_writer__loss(w, &loss), 0);
	assert_int_equal(trace_writer__clock(w, &clock), 0);
	assert_int_equal(trace_writer__process(w, 0, &ended), 0);
	assert_int_equal(trace_writer__thread(w, 0, &renamed), 0);
	assert_int_equal(trace_writer__aggregates(w, "the\0last", 8), 0);
	end_trace(w, 2);

	r = open_trace();
	i = trace_reader__info(r);
	assert_string_equal(i->meta.qbpf_version, "9.9");
	assert_string_equal(i->meta.command, "qbpf attach -p 1\n\xff\"");
	assert_string_equal(i->meta.clocksource, "");
	assert_string_equal(i->meta.slow, "a>5us");
	assert_true(i->meta.cpus == 3 && i->meta.sample == 7 && i->meta.nprices == 8);
	assert_true(i->meta.start_ns == 1000 && i->meta.realtime_ns == UINT64_MAX);
	assert_true(i->meta.ring_bytes == 1ull << 40 && i->meta.price_ns[7] == UINT64_MAX);
	assert_int_equal(i->nspans, 2);
	assert_string_equal(i->spans[0].name, "");
	assert_true(i->spans[0].kind == 255 && i->spans[0].way == 255 && i->spans[0].hist == 255);
	assert_string_equal(i->spans[1].name, longest);
	assert_true(i->spans[1].floor_ns == UINT64_MAX && i->spans[1].price_ns == UINT64_MAX);
	assert_int_equal(i->nmappings, 1);
	assert_string_equal(i->mappings[0].path, "/a b\n");
	assert_string_equal(i->mappings[0].build_id, "00ff");
	assert_true(i->mappings[0].tgid == UINT32_MAX && i->mappings[0].start == 1 &&
		    i->mappings[0].end == UINT64_MAX && i->mappings[0].off == 1ull << 63);
	assert_int_equal(i->nprobes, 2);
	assert_true(i->probes[0].span == 2 && !i->probes[0].mapping && i->probes[0].role == 255 &&
		    i->probes[0].armed == 1 && i->probes[0].off == UINT64_MAX);
	assert_string_equal(i->probes[0].reason, "why");
	assert_true(i->probes[1].mapping == TRACE_NO_MAPPING);
	assert_int_equal(i->nprocesses, 1);
	assert_string_equal(i->processes[0].comm, "d");
	assert_string_equal(i->processes[0].exe, "/f");
	assert_true(i->processes[0].tgid == 1 && i->processes[0].end_ns == 6);
	assert_int_equal(i->nthreads, 1);
	assert_string_equal(i->threads[0].name, "u");
	assert_true(i->threads[0].tid == 2 && i->threads[0].end_ns == 4);
	assert_int_equal(i->nnodes, 4);
	for (uint32_t n = 0; n < 4; n++) {
		const struct trace_node want[] = {
		    {1, 0, 2}, {3, 1, 1}, {7, 3, 2}, {0xfffffffe, 7, 1}};

		assert_memory_equal(&i->nodes[n], &want[n], sizeof(want[n]));
		assert_ptr_equal(trace_info__node(i, want[n].id), &i->nodes[n]);
	}
	assert_null(trace_info__node(i, 2));
	assert_null(trace_info__node(i, UINT32_MAX));
	assert_int_equal(i->nlosses, 1);
	assert_memory_equal(&i->losses[0], &loss, sizeof(loss));
	assert_int_equal(i->nclocks, 1);
	assert_memory_equal(&i->clocks[0], &clock, sizeof(clock));
	assert_int_equal(i->aggregates_len, 8);
	assert_memory_equal(i->aggregates, "the\0last", 8);
	assert_true(i->clean && !i->cut_at && !i->unknown_blocks && i->end_ns == 77777);
	assert_true(i->counts[1].counted == 11 && i->counts[1].lost == UINT64_MAX &&
		    i->counts[1].streamed == 9 && i->counts[1].skipped == 1);
	assert_true(!i->nevents && !i->first_ns && !i->last_ns);
	trace_reader__free(r);
	free(longest);
}

/* What leads nowhere is not taken, and spoils nothing. */
static void t_refused(void **state)
{
	struct trace_writer *w = start_trace();
	char *huge = malloc((4u << 20) + 2);
	struct trace_span s = {.name = huge};
	struct trace_probe p = {.span = 1, .mapping = 0, .reason = ""};
	struct trace_thread t = {.name = "t"};
	struct trace_node n = {.id = 5, .parent = 5, .span = 1};
	struct trace_loss l = {.span = 2};
	struct trace_count counts[2] = {{0}};
	struct event ev = span_event(0, 1, 2);
	struct trace_reader *r;
	struct err e;

	(void)state;
	memset(huge, 'x', (4u << 20) + 1);
	huge[(4u << 20) + 1] = '\0';
	assert_int_equal(trace_writer__span(w, &s), -E2BIG);
	add_spans(w, 1);
	assert_int_equal(trace_writer__probe(w, &p), -EINVAL);
	p.mapping = TRACE_NO_MAPPING;
	p.span = 2;
	assert_int_equal(trace_writer__probe(w, &p), -EINVAL);
	p.span = 0;
	assert_int_equal(trace_writer__probe(w, &p), -EINVAL);
	assert_int_equal(trace_writer__thread(w, 1, &t), -EINVAL);
	assert_int_equal(trace_writer__node(w, &n), -EINVAL);
	n = (struct trace_node){.id = 5, .parent = 4, .span = 2};
	assert_int_equal(trace_writer__node(w, &n), -EINVAL);
	n.span = 0;
	assert_int_equal(trace_writer__node(w, &n), -EINVAL);
	n = (struct trace_node){.id = UINT32_MAX, .parent = 0, .span = 1};
	assert_int_equal(trace_writer__node(w, &n), -EINVAL);
	assert_int_equal(trace_writer__loss(w, &l), -EINVAL);
	assert_int_equal(trace_writer__event(w, &ev), -EINVAL);
	add_threads(w, 1);
	ev.span = 2;
	assert_int_equal(trace_writer__event(w, &ev), -EINVAL);
	ev.span = 0;
	assert_int_equal(trace_writer__event(w, &ev), -EINVAL);
	ev.span = 1;
	ev.kind = EVENT_KINDS;
	assert_int_equal(trace_writer__event(w, &ev), -EINVAL);
	ev.kind = EVENT_SPAN;
	assert_int_equal(trace_writer__event(w, &ev), 0);
	assert_int_equal(trace_writer__events(w), 1);
	assert_int_equal(trace_writer__aggregates(w, "", 0), -EINVAL);
	assert_int_equal(trace_writer__close(w, 5, counts, 2, &e), -EINVAL);
	assert_int_equal(trace_writer__close(w, 5, counts, 1, &e), 0);
	trace_writer__free(w);
	r = open_trace();
	assert_int_equal(trace_reader__info(r)->nevents, 1);
	trace_reader__free(r);
	free(huge);
}

/* --- events ------------------------------------------------------------------------------------- */

/* The events of `nthreads` threads that end in turns, some threads far more often than others. */
static uint64_t write_turns(struct trace_writer *w, uint32_t nthreads, uint64_t n)
{
	uint64_t t = 5000;

	for (uint64_t i = 0; i < n; i++) {
		struct event ev =
		    span_event((uint32_t)(i % 7 ? i % 2 : i / 7 % nthreads), t, t + i % 90);

		assert_int_equal(trace_writer__event(w, &ev), 0);
		t += 100;
	}
	return n;
}

static uint32_t thread_of(uint64_t i, uint32_t nthreads)
{
	return (uint32_t)(i % 7 ? i % 2 : i / 7 % nthreads);
}

/* The k-th event of a thread is the k-th that was made for it. */
static void check_turns(const struct event *all, size_t n, uint32_t nthreads, uint32_t only,
			uint64_t made)
{
	uint64_t *next = calloc(nthreads, sizeof(*next));
	uint64_t total = 0;

	for (size_t k = 0; k < n; k++) {
		const struct event *ev = &all[k];
		uint64_t i = next[ev->thread];
		struct event want;

		while (i < made && thread_of(i, nthreads) != ev->thread)
			i++;
		next[ev->thread] = i + 1;
		want = span_event(ev->thread, 5000 + 100 * i, 5000 + 100 * i + i % 90);
		assert_memory_equal(ev, &want, sizeof(want));
	}
	for (uint64_t i = 0; i < made; i++)
		total += only == TRACE_ALL_THREADS || thread_of(i, nthreads) == only;
	assert_int_equal(n, total);
	free(next);
}

static void same_reversed(const struct event *a, const struct event *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_memory_equal(&a[i], &b[n - 1 - i], sizeof(*a));
}

static void check_walks(struct trace_reader *r, uint32_t nthreads, uint64_t made)
{
	static const uint32_t threads[] = {TRACE_ALL_THREADS, 0, 1, 2, 499};

	for (size_t t = 0; t < 5; t++) {
		size_t n, m;
		struct event *all, *back;

		if (threads[t] != TRACE_ALL_THREADS && threads[t] >= nthreads) {
			assert_int_equal(trace_reader__start(r, threads[t], false), -EINVAL);
			continue;
		}
		all = collect(r, threads[t], false, &n);
		back = collect(r, threads[t], true, &m);
		check_turns(all, n, nthreads, threads[t], made);
		assert_int_equal(n, m);
		same_reversed(all, back, n);
		free(all);
		free(back);
	}
}

static void t_order(void **state)
{
	static const uint32_t threads[] = {2, 500};

	(void)state;
	for (int clean = 0; clean < 2; clean++)
		for (int k = 0; k < 2; k++) {
			struct trace_writer *w = start_trace();
			const struct trace_info *info;
			struct trace_reader *r;
			uint64_t made;

			add_spans(w, 2);
			add_threads(w, threads[k]);
			made = write_turns(w, threads[k], 60000);
			assert_int_equal(trace_writer__events(w), made);
			if (clean) {
				end_trace(w, 2);
			} else {
				assert_int_equal(trace_writer__flush(w), 0);
				trace_writer__free(w);
			}
			r = open_trace();
			info = trace_reader__info(r);
			assert_int_equal(info->clean, clean);
			assert_int_equal(info->cut_at, clean ? 0 : info->file_bytes);
			assert_true(!info->counts == !clean);
			assert_int_equal(info->nevents, made);
			assert_int_equal(info->first_ns, 5000);
			assert_int_equal(info->last_ns, 5000 + 100 * 59999 + 59999 % 90);
			assert_int_equal(info->end_ns, clean ? 77777 : info->last_ns);
			check_walks(r, threads[k], made);
			trace_reader__free(r);
		}
}

/* Between: every event inside is there, and what comes is less than all. */
static void t_between(void **state)
{
	struct trace_writer *w = start_trace();
	static const uint64_t from[] = {0, 5000, 1000000, 3000000, UINT64_MAX};
	static const uint64_t to[] = {4999, 5000, 1200000, UINT64_MAX, UINT64_MAX};
	static const bool some[] = {false, true, true, true, false};
	struct trace_reader *r;
	struct err e;

	(void)state;
	add_spans(w, 2);
	add_threads(w, 2);
	write_turns(w, 2, 60000);
	end_trace(w, 2);
	r = open_trace();
	for (int k = 0; k < 5; k++) {
		const struct event *events;
		uint64_t inside = 0, want = 0, got = 0;
		size_t n;

		assert_int_equal(trace_reader__start(r, TRACE_ALL_THREADS, k % 2), 0);
		trace_reader__between(r, from[k], to[k]);
		while (trace_reader__next(r, &events, &n, &e) > 0)
			for (size_t i = 0; i < n; i++, got++)
				inside +=
				    events[i].end_ns >= from[k] && events[i].start_ns <= to[k];
		for (uint64_t i = 0; i < 60000; i++)
			want += 5000 + 100 * i + i % 90 >= from[k] && 5000 + 100 * i <= to[k];
		assert_int_equal(inside, want);
		assert_true(got < 60000 && !got == !some[k]);
	}
	/* Starting anew forgets it. */
	free(collect(r, TRACE_ALL_THREADS, false, &(size_t){0}));
	trace_reader__free(r);
}

/* --- flush, aggregates, index ------------------------------------------------------------------- */

/* After a flush the file holds all, though nothing is closed; the disk needs a moment. */
static void t_flush(void **state)
{
	struct trace_writer *w = start_trace();
	uint64_t seen = 0;

	(void)state;
	add_spans(w, 2);
	add_threads(w, 3);
	for (int turn = 1; turn <= 3; turn++) {
		for (uint32_t t = 0; t < 3; t++) {
			struct event ev = span_event(t, 100 * turn, 100 * turn + 5);

			assert_int_equal(trace_writer__event(w, &ev), 0);
		}
		assert_int_equal(trace_writer__flush(w), 0);
		assert_int_equal(trace_writer__flush(w), 0);
		for (int tries = 0; tries < 12000 && seen != 3u * turn; tries++) {
			struct trace_reader *r;

			usleep(5000);
			if (trace_reader__open(path, &r, NULL))
				continue;
			seen = trace_reader__info(r)->nevents;
			assert_false(trace_reader__info(r)->clean);
			trace_reader__free(r);
		}
		assert_int_equal(seen, 3 * turn);
	}
	end_trace(w, 2);
}

/* Without a flush a crash takes what waits, and no more than that. */
static void t_no_flush(void **state)
{
	struct trace_writer *w = start_trace();
	struct trace_reader *r;

	(void)state;
	add_spans(w, 2);
	add_threads(w, 2);
	write_turns(w, 2, 60000);
	trace_writer__free(w);
	r = open_trace();
	assert_in_range(trace_reader__info(r)->nevents, 60000 - 2 * 4096, 59999);
	assert_int_equal(trace_reader__info(r)->nthreads, 2);
	trace_reader__free(r);
}

/* Aggregates of several parts; of a later set that is not whole nothing counts. */
static void t_aggregates(void **state)
{
	size_t len = (20u << 20) + 17;
	uint8_t *bytes = malloc(len);
	struct trace_writer *w = start_trace();
	struct trace_reader *r;

	(void)state;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * i >> 7);
	assert_int_equal(trace_writer__aggregates(w, "old", 3), 0);
	assert_int_equal(trace_writer__aggregates(w, bytes, len), 0);
	end_trace(w, 0);
	r = open_trace();
	assert_int_equal(trace_reader__info(r)->aggregates_len, len);
	assert_memory_equal(trace_reader__info(r)->aggregates, bytes, len);
	assert_int_equal(truncate(path, (off_t)trace_reader__info(r)->file_bytes - 700), 0);
	trace_reader__free(r);
	r = open_trace();
	assert_false(trace_reader__info(r)->clean);
	assert_int_equal(trace_reader__info(r)->aggregates_len, 3);
	assert_memory_equal(trace_reader__info(r)->aggregates, "old", 3);
	trace_reader__free(r);
	free(bytes);
}

/* More blocks than one INDEX block lists, and more threads than buffers fit. */
static void t_many_blocks(void **state)
{
	struct trace_writer *w = start_trace();
	enum { THREADS = 10000, TURNS = 7 };
	struct trace_reader *r;
	struct event *all;
	size_t n;

	(void)state;
	add_spans(w, 2);
	add_threads(w, THREADS);
	for (uint64_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t t = 0; t < THREADS; t++) {
			struct event ev = span_event(t, 1000 * turn + t % 900, 1000 * turn + 950);

			assert_int_equal(trace_writer__event(w, &ev), 0);
		}
		assert_int_equal(trace_writer__flush(w), 0);
	}
	end_trace(w, 2);
	r = open_trace();
	assert_true(trace_reader__info(r)->clean);
	assert_int_equal(trace_reader__info(r)->nevents, THREADS * TURNS);
	all = collect(r, 9999, false, &n);
	assert_int_equal(n, TURNS);
	for (uint64_t turn = 0; turn < TURNS; turn++)
		assert_int_equal(all[turn].start_ns, 1000 * turn + 9999 % 900);
	free(all);
	free(collect(r, TRACE_ALL_THREADS, false, &n));
	assert_int_equal(n, THREADS * TURNS);
	trace_reader__free(r);
}

/* Buffers of all threads together stay within their bound, so the oldest go to the file. */
static void t_bounded_buffers(void **state)
{
	struct trace_writer *w = start_trace();
	enum { THREADS = 10000, EACH = 300 };
	struct trace_reader *r;

	(void)state;
	add_spans(w, 2);
	add_threads(w, THREADS);
	for (uint32_t i = 0; i < EACH; i++)
		for (uint32_t t = 0; t < THREADS; t++) {
			struct event ev = span_event(t, 1000 * i, 1000 * i + 3);

			if (trace_writer__event(w, &ev))
				fail_msg("event %u of thread %u", i, t);
		}
	/* 168 MB of events were handed in, none of them flushed. */
	trace_writer__free(w);
	r = open_trace();
	assert_in_range(trace_reader__info(r)->nevents, THREADS * EACH - (32u << 20) / 56,
			THREADS * EACH - 1);
	trace_reader__free(r);
}

/* Blocks beyond 4 GiB, by their headers and by the index; what lies between takes no room. */
static void t_beyond_4_gib(void **state)
{
	struct event_codec *c = event_codec__new();
	struct event ev = span_event(2, 100, 105);
	struct bytes raw = {0};
	struct trace_block h;
	struct build b;

	(void)state;
	assert_non_null(c);
	assert_int_equal(event_codec__encode(c, &ev, 1, &raw, &h), 0);
	for (int clean = 0; clean < 2; clean++) {
		struct trace_block hole = {.magic = TRACE_BLOCK_MAGIC,
					   .type = 99,
					   .raw_len = TRACE_RAW_MAX,
					   .stored_len = TRACE_RAW_MAX};
		FILE *f = fopen(path, "w");
		struct trace_reader *r;
		struct event *all;
		uint64_t front;
		size_t n;

		assert_non_null(f);
		build__start(&b);
		build__tables(&b, 2, 3);
		front = b.file.n;
		assert_int_equal(fwrite(b.file.p, 1, front, f), front);
		for (int i = 0; i < 260; i++) {
			struct trace_index_entry entry = {
			    .off = (uint64_t)ftello(f), .stored_len = TRACE_RAW_MAX, .type = 99};

			hole.seq = b.seq++;
			hole.header_crc =
			    trace_crc(&hole, offsetof(struct trace_block, header_crc));
			assert_int_equal(fwrite(&hole, 1, sizeof(hole), f), sizeof(hole));
			assert_int_equal(fseeko(f, TRACE_RAW_MAX, SEEK_CUR), 0);
			build__must(!bytes__append(&b.index, &entry, sizeof(entry)));
		}
		b.before = (uint64_t)ftello(f) - front;
		assert_true(b.before > 1ull << 32);
		build__block(&b, h, raw.p, raw.n);
		if (clean)
			build__finish(&b, 2);
		assert_int_equal(fwrite(b.file.p + front, 1, b.file.n - front, f),
				 b.file.n - front);
		assert_int_equal(fclose(f), 0);
		r = open_trace();
		assert_int_equal(trace_reader__info(r)->clean, clean);
		assert_int_equal(trace_reader__info(r)->unknown_blocks, 260);
		all = collect(r, 2, true, &n);
		assert_int_equal(n, 1);
		assert_memory_equal(all, &ev, sizeof(ev));
		free(all);
		trace_reader__free(r);
		build__free(&b);
	}
	event_codec__free(c);
	free(raw.p);
}

/* A trace with nothing in it. */
static void t_empty(void **state)
{
	struct trace_reader *r;
	size_t n;

	(void)state;
	end_trace(start_trace(), 0);
	r = open_trace();
	assert_true(trace_reader__info(r)->clean);
	assert_int_equal(trace_reader__info(r)->nevents, 0);
	assert_null(collect(r, TRACE_ALL_THREADS, false, &n));
	assert_null(collect(r, TRACE_ALL_THREADS, true, &n));
	assert_int_equal(trace_reader__start(r, 0, false), -EINVAL);
	trace_reader__free(r);
	trace_reader__free(NULL);
	trace_writer__free(NULL);
}

static int setup(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/t_file_trace-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(t_tables),	     CASE(t_refused),	   CASE(t_order),      CASE(t_between),
	    CASE(t_flush),	     CASE(t_no_flush),	   CASE(t_aggregates), CASE(t_many_blocks),
	    CASE(t_bounded_buffers), CASE(t_beyond_4_gib), CASE(t_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

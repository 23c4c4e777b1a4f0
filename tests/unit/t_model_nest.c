// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Begins and ends in order of time, from events in the order of their ends; and lanes. */
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
#include "model/lanes.h"
#include "model/nest.h"

#define NSPANS 26 /* a .. z */

/* --- a trace of one thread, and what the walk says of it -------------------------------------------- */

static char path[] = "/tmp/qbpf-nest-XXXXXX";

static int make_path(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 || close(fd) ? -1 : 0;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

static struct trace_reader *written(const struct event *events, size_t n)
{
	struct trace_meta meta = {.qbpf_version = "",
				  .command = "",
				  .kernel = "",
				  .cpu = "",
				  .clocksource = "",
				  .hostname = "",
				  .slow = ""};
	struct trace_thread thread = {.tgid = 1, .tid = 1, .name = "t"};
	struct trace_count counts[NSPANS] = {{0}};
	struct trace_writer *w;
	struct trace_reader *r;
	struct err e;

	assert_int_equal(trace_writer__new(path, &meta, &w, &e), 0);
	for (char c = 'a'; c <= 'z'; c++) {
		struct trace_span s = {.name = (char[]){c, 0}};

		assert_int_equal(trace_writer__span(w, &s), 0);
	}
	assert_int_equal(trace_writer__thread(w, 0, &thread), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(trace_writer__event(w, &events[i]), 0);
	assert_int_equal(trace_writer__close(w, 1000, counts, NSPANS, &e), 0);
	trace_writer__free(w);
	assert_int_equal(trace_reader__open(path, &r, &e), 0);
	return r;
}

static struct event span(char name, uint16_t depth, uint64_t start, uint64_t end)
{
	return (struct event){.kind = EVENT_SPAN,
			      .span = (uint32_t)(name - 'a' + 1),
			      .node = 1,
			      .depth = depth,
			      .start_ns = start,
			      .end_ns = end};
}

static struct event kind(enum event_kind k, struct event ev)
{
	ev.kind = (uint8_t)k;
	return ev;
}

static int append(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	static const char form[] = "()!?"; /* begin, end, point, apart */
	char *text = ctx, name = (char)('a' + ev->span - 1);
	char *end = text + strlen(text);

	if (step == NEST_BEGIN)
		sprintf(end, "%s%c%u@%llu ", "(", name, level, (unsigned long long)ev->start_ns);
	else
		sprintf(end, "%c%c@%llu ", form[step], name,
			(unsigned long long)(step == NEST_END ? ev->end_ns : ev->start_ns));
	return 0;
}

static void expect(const struct event *events, size_t n, const char *want)
{
	struct trace_reader *r = written(events, n);
	char text[4096] = "";
	struct nest_visit v = {.step = append, .ctx = text};
	struct err e;

	assert_int_equal(nest__walk(r, 0, &v, &e), 0);
	assert_string_equal(text, want);
	trace_reader__free(r);
}

#define EXPECT(want, ...)                                                                          \
	do {                                                                                       \
		const struct event list_[] = {__VA_ARGS__};                                        \
		expect(list_, sizeof(list_) / sizeof(*list_), want);                               \
	} while (0)

static void equal_times_keep_their_order(void **state)
{
	(void)state;
	EXPECT("(p0@22 (c1@22 )c@64 )p@64 (s0@64 )s@70 ", span('c', 1, 22, 64),
	       span('p', 0, 22, 64), span('s', 0, 64, 70));
	/* Of no length: first in its parent, last in it, after it, and inside another. */
	EXPECT("(p0@5 (a1@5 )a@5 (b1@9 (c2@9 )c@9 )b@9 )p@9 (d0@9 )d@9 ", span('a', 1, 5, 5),
	       span('c', 2, 9, 9), span('b', 1, 9, 9), span('p', 0, 5, 9), span('d', 0, 9, 9));
	/* A chain of first children, all at once. */
	EXPECT("(a0@1 (b1@1 (c2@1 (d3@1 )d@1 )c@2 )b@2 )a@3 ", span('d', 3, 1, 1),
	       span('c', 2, 1, 2), span('b', 1, 1, 2), span('a', 0, 1, 3));
}

static void points_stand_where_they_were(void **state)
{
	(void)state;
	EXPECT("!i@1 (a0@1 !j@1 (b1@2 )b@3 !k@3 )a@3 !l@3 ",
	       kind(EVENT_INSTANT, span('i', 0, 1, 1)), kind(EVENT_INSTANT, span('j', 1, 1, 1)),
	       span('b', 1, 2, 3), kind(EVENT_INSTANT, span('k', 1, 3, 3)), span('a', 0, 1, 3),
	       kind(EVENT_INSTANT, span('l', 0, 3, 3)));
}

static void others_are_passed_on(void **state)
{
	(void)state;
	EXPECT("(a0@1 ?k@0 !v@2 ?x@1 )a@9 ", kind(EVENT_KEYED, span('k', 0, 0, 5)),
	       kind(EVENT_VALUE, span('v', 7, 2, 2)), kind(EVENT_ASIDE, span('x', 1, 1, 8)),
	       span('a', 0, 1, 9));
}

static void crossing_spans_are_apart(void **state)
{
	(void)state;
	EXPECT("(b0@15 ?a@10 )b@25 ", span('a', 0, 10, 20), span('b', 0, 15, 25));
	/* A child that begins before its parent, one that ends after it. */
	EXPECT("(p0@10 ?c@5 )p@20 ", span('c', 1, 5, 15), span('p', 0, 10, 20));
	EXPECT("(p0@10 ?c@15 )p@20 ", span('c', 1, 15, 25), span('p', 0, 10, 20));
	EXPECT("(p0@10 ?c@15 )p@20 ", span('c', 1, 15, 12), span('p', 0, 10, 20));
	/* The clock goes back by 50: what comes before and what comes after both stay whole. */
	EXPECT("(a0@10 )a@20 (c0@40 ?b@90 )c@50 ", span('a', 0, 10, 20), span('b', 0, 90, 99),
	       span('c', 0, 40, 50));
}

static void lost_parents_do_no_harm(void **state)
{
	(void)state;
	/* b was in a span at depth 0 that is not in the file; c's parents at 1 and 2 are not either. */
	EXPECT("(b0@1 )b@2 (a0@5 (c1@6 )c@7 (d1@8 )d@9 )a@9 ", span('b', 1, 1, 2),
	       span('c', 3, 6, 7), span('d', 1, 8, 9), span('a', 0, 5, 9));
	EXPECT("(b0@1 )b@2 (c0@2 )c@5 ", span('b', 4, 1, 2), span('c', 2, 2, 5));
}

static void open_spans_come_in_any_order(void **state)
{
	(void)state;
	const char *want = "(o0@1 (m1@2 (d2@3 )d@4 (i2@5 )i@9 )m@9 )o@9 ";
	struct event d = span('d', 2, 3, 4), o = kind(EVENT_OPEN, span('o', 0, 1, 9)),
		     m = kind(EVENT_OPEN, span('m', 1, 2, 9)),
		     i = kind(EVENT_OPEN, span('i', 2, 5, 9));

	EXPECT(want, d, i, m, o);
	EXPECT(want, d, o, m, i);
	EXPECT(want, d, m, i, o);
	EXPECT("(o0@1 (m1@2 )m@9 )o@9 ", m, o);
	/* With a key it nests in nothing, wherever it stands. */
	struct event key = kind(EVENT_OPEN, span('k', 0, 0, 9));

	key.begin_tid = 5;
	EXPECT("?k@0 (o0@1 )o@9 ", o, key);
	EXPECT("?k@0 (o0@1 )o@9 ", key, o);
	EXPECT("(o0@1 (m1@2 (d2@3 )d@4 ?k@0 )m@9 )o@9 ", d, key, o, m);
	EXPECT("(o0@1 (m1@2 (d2@3 )d@4 ?k@0 )m@9 )o@9 ", d, o, m, key);
	/* Two that cannot enclose each other. */
	EXPECT("(o0@1 ?p@4 )o@9 ", o, kind(EVENT_OPEN, span('p', 0, 4, 9)));
}

static bool not_b(void *ctx, const struct event *ev)
{
	(void)ctx;
	return ev->span != 2;
}

static void unwanted_events_are_not_there(void **state)
{
	const struct event list[] = {span('c', 2, 3, 4), span('b', 1, 2, 5), span('a', 0, 1, 6)};
	struct trace_reader *r = written(list, 3);
	char text[200] = "";
	struct nest_visit v = {.want = not_b, .step = append, .ctx = text};
	struct err e;

	(void)state;
	assert_int_equal(nest__walk(r, 0, &v, &e), 0);
	assert_string_equal(text, "(a0@1 (c1@3 )c@4 )a@6 ");
	trace_reader__free(r);
	expect(NULL, 0, "");
}

static int stop_at_third(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	int *n = ctx;

	(void)step;
	(void)ev;
	(void)level;
	return ++*n == 3 ? -ECANCELED : 0;
}

static void a_step_can_end_the_walk(void **state)
{
	const struct event list[] = {span('b', 1, 2, 3), span('a', 0, 1, 6), span('c', 0, 7, 8)};
	struct trace_reader *r = written(list, 3);
	int n = 0;
	struct nest_visit v = {.step = stop_at_third, .ctx = &n};
	struct err e;

	(void)state;
	assert_int_equal(nest__walk(r, 0, &v, &e), -ECANCELED);
	assert_int_equal(n, 3);
	trace_reader__free(r);
}

/* --- against a program that is known ------------------------------------------------------------- */

/* What a program did, in order, and what a trace of it holds. */
struct program {
	struct event *events; /* as a trace has them */
	size_t nevents, room;
	struct known {
		bool begin;
		uint64_t at;
		uint32_t span;
		uint16_t depth;
	} * steps;
	size_t nsteps, steps_room;
	uint64_t now, random;
};

static uint64_t random_of(struct program *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return p->random;
}

static void did(struct program *p, bool begin, uint32_t span_id, uint16_t depth)
{
	if (p->nsteps == p->steps_room) {
		p->steps_room = p->steps_room ? 2 * p->steps_room : 1024;
		p->steps = realloc(p->steps, p->steps_room * sizeof(*p->steps));
		assert_non_null(p->steps);
	}
	p->steps[p->nsteps++] = (struct known){begin, p->now, span_id, depth};
}

/* The clock is coarse: most of what follows each other has the same time. */
static void call(struct program *p, uint16_t depth, uint16_t deepest, size_t max)
{
	struct event ev = {.kind = EVENT_SPAN,
			   .span = 1 + (uint32_t)(random_of(p) % NSPANS),
			   .node = 1,
			   .depth = depth};

	p->now += random_of(p) % 4 == 0;
	ev.start_ns = p->now;
	did(p, true, ev.span, depth);
	for (uint64_t n = random_of(p) % 4; n && depth < deepest && p->nevents < max; n--)
		call(p, (uint16_t)(depth + 1), deepest, max);
	p->now += random_of(p) % 4 == 0;
	ev.end_ns = p->now;
	did(p, false, ev.span, depth);
	if (p->nevents == p->room) {
		p->room = p->room ? 2 * p->room : 1024;
		p->events = realloc(p->events, p->room * sizeof(*p->events));
		assert_non_null(p->events);
	}
	p->events[p->nevents++] = ev;
}

static void program__free(struct program *p)
{
	free(p->events);
	free(p->steps);
}

struct following {
	const struct program *p;
	size_t at, aparts, begins;
	uint64_t last;
	uint32_t open;
	bool exact;
};

static int follow(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	struct following *f = ctx;
	uint64_t at = step == NEST_BEGIN ? ev->start_ns : ev->end_ns;

	if (step == NEST_APART) {
		f->aparts++;
		return 0;
	}
	assert_in_range(step, NEST_BEGIN, NEST_END);
	assert_in_range(at, f->last, UINT64_MAX);
	f->last = at;
	f->begins += step == NEST_BEGIN;
	assert_int_equal(level, step == NEST_BEGIN ? f->open++ : --f->open);
	if (f->exact) {
		const struct known *k = &f->p->steps[f->at++];

		assert_int_equal(k->begin, step == NEST_BEGIN);
		assert_int_equal(k->at, at);
		assert_int_equal(k->span, ev->span);
		assert_int_equal(k->depth, level);
	}
	return 0;
}

static struct following walked(const struct program *p, const struct event *events, size_t n,
			       bool exact)
{
	struct trace_reader *r = written(events, n);
	struct following f = {.p = p, .exact = exact};
	struct nest_visit v = {.step = follow, .ctx = &f};
	struct err e;

	assert_int_equal(nest__walk(r, 0, &v, &e), 0);
	assert_int_equal(f.open, 0);
	assert_int_equal(f.begins + f.aparts, n);
	trace_reader__free(r);
	return f;
}

/* Random programs, one outermost span each: begins and ends are those that happened, in order. */
static void programs_come_back(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct program p = {.random = seed * 0x9e3779b97f4a7c15u};
		struct following f;

		while (p.nevents < 3000)
			call(&p, 0, (uint16_t)(3 + seed % 40), 3000);
		f = walked(&p, p.events, p.nevents, true);
		assert_int_equal(f.aparts, 0);
		assert_int_equal(f.at, p.nsteps);
		program__free(&p);
	}
}

/* Any events may be missing: the others still nest. */
static void losses_make_nothing_cross(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct program p = {.random = seed * 0x9e3779b97f4a7c15u};
		size_t n = 0;

		while (p.nevents < 3000)
			call(&p, 0, 30, 3000);
		for (size_t i = 0; i < p.nevents; i++)
			if (random_of(&p) % 100 >= seed * 2)
				p.events[n++] = p.events[i];
		assert_int_equal(walked(&p, p.events, n, false).aparts, 0);
		program__free(&p);
	}
}

/* Whatever stands in the file, what comes out are brackets in order of time, and each event once. */
static void nonsense_is_put_in_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct program p = {.random = seed * 0x9e3779b97f4a7c15u};
		struct event events[2000];

		for (size_t i = 0; i < 2000; i++) {
			uint64_t r = random_of(&p), near = seed % 2 ? 5 : 200;

			events[i] = span((char)('a' + r % NSPANS), (uint16_t)(r >> 8 & 15),
					 i / 2 + (r >> 16) % near, i / 2 + (r >> 32) % near);
			if ((r >> 56) % 50 == 0)
				events[i].kind = EVENT_OPEN;
			if ((r >> 56) % 97 == 0)
				events[i].end_ns = UINT64_MAX;
		}
		walked(&p, events, 2000, false);
	}
}

/* Many stretches: spans that are open over several of them, and one ns that fills some. */
static void stretches_join(void **state)
{
	size_t n = 0, total = 150000;
	struct event *events = calloc(total, sizeof(*events));
	struct program p = {.random = 7};
	struct following f;

	(void)state;
	assert_non_null(events);
	/* A deep stack whose spans end one after the other, 200 leaves after each. */
	for (uint16_t depth = 700; depth > 0; depth--) {
		for (int i = 0; i < 200; i++) {
			uint64_t t = 1000000 + n;

			if (n > 50000 && n < 120000) /* all at once */
				t = 1050001;
			events[n++] = span('l', depth, t, t);
		}
		events[n] =
		    span('s', (uint16_t)(depth - 1), depth, n < 120000 ? 1060000 + n : n + 1000000);
		if (n > 50000 && n < 120000)
			events[n].end_ns = 1050001;
		else
			events[n].end_ns = 1000000 + n;
		n++;
	}
	f = walked(&p, events, n, false);
	assert_int_equal(f.aparts, 0);
	assert_int_equal(f.begins, 700 * 201);
	free(events);
}

/* More open keys than a stretch has room for, after the spans that they do not enclose. */
static void many_open_keys(void **state)
{
	size_t n = 0;
	struct event *events = calloc(100000, sizeof(*events));
	struct program p = {.random = 7};
	struct following f;

	(void)state;
	assert_non_null(events);
	for (; n < 1000; n++)
		events[n] = span('a', 1, 10 + 2 * n, 11 + 2 * n);
	events[n++] = kind(EVENT_OPEN, span('o', 0, 5, 9000));
	for (; n < 90000; n++) {
		events[n] = kind(EVENT_OPEN, span('k', 0, n % 7, 9000));
		events[n].begin_tid = 1;
	}
	f = walked(&p, events, n, false);
	assert_int_equal(f.begins, 1001);
	assert_int_equal(f.aparts, 90000 - 1001);
	free(events);
}

/* --- lanes --------------------------------------------------------------------------------------- */

static void lanes_do_not_overlap(void **state)
{
	struct program p = {.random = 99};
	uint64_t *ends = calloc(100000, sizeof(*ends));
	struct lanes *l = lanes__new();
	uint32_t lane, used = 0;
	bool fresh;

	(void)state;
	assert_non_null(l);
	assert_non_null(ends);
	for (uint64_t i = 0; i < 50000; i++) {
		uint64_t end = i * 10 + random_of(&p) % 40, len = random_of(&p) % 100;
		uint64_t start = end < len ? 0 : end - len;

		assert_int_equal(lanes__take(l, start, end, &lane, &fresh), 0);
		assert_int_equal(fresh, lane == used);
		used += fresh;
		assert_in_range(ends[lane], 0, start);
		ends[lane] = end;
	}
	/* Of spans of up to 100 ns, one each 10, at most some fifteen overlap. */
	assert_in_range(used, 5, 15);
	lanes__free(l);
	free(ends);
}

static void lanes_are_bounded(void **state)
{
	struct lanes *l = lanes__new();
	uint32_t lane;
	bool fresh;

	(void)state;
	assert_non_null(l);
	for (uint32_t i = 0; i < LANES_MAX + 1000; i++) {
		assert_int_equal(lanes__take(l, 5, 10 + i, &lane, &fresh), 0);
		assert_true(fresh);
		assert_int_equal(lane, i);
	}
	/* The latest that has ended, of those that are kept. */
	assert_int_equal(lanes__take(l, 20, 21, &lane, &fresh), 0);
	assert_false(fresh);
	assert_int_equal(lane, 10);
	assert_int_equal(lanes__take(l, 20, 25, &lane, &fresh), 0);
	assert_false(fresh);
	assert_int_equal(lane, 9);
	lanes__free(l);
	lanes__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_times_keep_their_order),
	    cmocka_unit_test(points_stand_where_they_were),
	    cmocka_unit_test(others_are_passed_on),
	    cmocka_unit_test(crossing_spans_are_apart),
	    cmocka_unit_test(lost_parents_do_no_harm),
	    cmocka_unit_test(open_spans_come_in_any_order),
	    cmocka_unit_test(unwanted_events_are_not_there),
	    cmocka_unit_test(a_step_can_end_the_walk),
	    cmocka_unit_test(programs_come_back),
	    cmocka_unit_test(losses_make_nothing_cross),
	    cmocka_unit_test(nonsense_is_put_in_order),
	    cmocka_unit_test(stretches_join),
	    cmocka_unit_test(many_open_keys),
	    cmocka_unit_test(lanes_do_not_overlap),
	    cmocka_unit_test(lanes_are_bounded),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}

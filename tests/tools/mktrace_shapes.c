// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What happens in the traces that mktrace makes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mktrace.h"
#include "mktrace_gpu.h"
#include "qbpf/abi.h"

/* enum span_kind of plan/plan.h, which a trace's reader sees as numbers. */
enum { MARKER = 0, KEYED = 1, INSTANT = 2, VALUE = 3, FUNC = 4 };

#define DAY_NS 86400000000000ull

static uint64_t *clock_of(struct maker *m, const struct run *r)
{
	return &m->threads[r->thread].clock_ns;
}

/* A span from start to now, without children, in the tree below `parent`. */
static uint32_t leaf(struct maker *m, const struct run *r, uint32_t span, uint32_t parent,
		     uint16_t depth, uint64_t start_ns, uint64_t end_ns)
{
	struct event ev = {.kind = EVENT_SPAN,
			   .span = span,
			   .node = make_node(m, parent, span),
			   .thread = r->thread,
			   .depth = depth,
			   .start_ns = start_ns,
			   .end_ns = end_ns};

	make_event(m, &ev);
	return ev.node;
}

/* --- strategy ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct branch branch;
} strategy[] = {
    {"strategy:on_tick", {0, 600, 4, 1}}, {"feed:decode", {1, 700, 0, 0}},
    {"book:update", {2, 1100, 0, 0}},	  {"strategy:signal", {3, 500, 2, 5}},
    {"order:build", {4, 400, 3, 7}},	  {"strategy:alpha", {5, 1900, 0, 0}},
    {"strategy:beta", {6, 800, 0, 0}},	  {"risk:check", {7, 350, 0, 0}},
    {"order:encode", {8, 450, 0, 0}},	  {"order:send", {9, 1400, 0, 0}},
};

static void strategy_setup(struct maker *m, uint32_t *spans)
{
	for (int i = 0; i < 10; i++)
		spans[i] = make_span(m, strategy[i].name, MARKER, QBPF_HIST_NS);
}

static void strategy_step(struct maker *m, struct run *r)
{
	struct branch tree[10];

	for (int i = 0; i < 10; i++)
		tree[i] = strategy[i].branch;
	*clock_of(m, r) += make_jitter(m, 3000);
	make_run(m, r, tree, 0, 0, 0);
}

/* --- hostile: names ----------------------------------------------------------------------------- */

#define NHOSTILE 20

static void hostile_setup(struct maker *m, uint32_t *spans)
{
	static const char *const names[NHOSTILE - 2] = {
	    "operator\"\"_kg",
	    "a\"b\\c",
	    "bytes \x01\x1b[31m\x7f\xff\xfe",
	    "cut \xe2\x82", /* the euro sign without its last byte */
	    "over\xc0\xaflong \xed\xa0\x80 surrogate",
	    "semi;colon and space",
	    "line\nbreak\r\ttab",
	    "<script>alert('x')</script><!-- & -->",
	    "</script><b>",
	    "=cmd|' /C calc'!A0",
	    "comma,\"quote\",end",
	    "\xf0\x9f\x9a\x80 \xe4\xb8\xad\xe6\x96\x87 \xd7\xa2\xd7\x91\xd7\xa8\xd7\x99\xd7\xaa",
	    "%s%n%d$(id)`id`",
	    "std::vector<std::pair<int, char const*>, std::allocator<void> >::~vector()",
	    "{\"json\": [1, 2]}",
	    "__proto__",
	    " ",
	    "",
	};
	char *longest = malloc(10001);
	int i;

	if (!longest)
		exit(1);
	for (i = 0; i < NHOSTILE - 2; i++)
		spans[i] = make_span(m, names[i], i == 13 ? FUNC : MARKER, QBPF_HIST_NS);
	memset(longest, 'n', 10000);
	longest[10000] = '\0';
	spans[i++] = make_span(m, longest, FUNC, QBPF_HIST_NS);
	/* The same again but for its last byte, which is the second of a pair that is cut. */
	longest[9999] = '\xc3';
	spans[i] = make_span(m, longest, FUNC, QBPF_HIST_NS);
	free(longest);
}

static void hostile_step(struct maker *m, struct run *r)
{
	struct branch tree[NHOSTILE] = {{0, 500, NHOSTILE - 1, 1}};

	for (uint32_t i = 1; i < NHOSTILE; i++)
		tree[i] = (struct branch){i, 200, 0, 0};
	*clock_of(m, r) += make_jitter(m, 1000);
	make_run(m, r, tree, 0, 0, 0);
}

/* --- deep, many: large trees -------------------------------------------------------------------- */

static void deep_setup(struct maker *m, uint32_t *spans)
{
	char name[40];

	for (uint32_t i = 0; i < m->depth; i++) {
		snprintf(name, sizeof(name), "deep::level_%u(int)", i);
		/* The lower half is one function that calls itself. */
		spans[i] =
		    i <= m->depth / 2 ? make_span(m, name, FUNC, QBPF_HIST_NS) : spans[i - 1];
	}
}

static void deep_step(struct maker *m, struct run *r)
{
	struct branch *tree = calloc(m->depth, sizeof(*tree));

	if (!tree)
		exit(1);
	for (uint32_t i = 0; i < m->depth; i++)
		tree[i] = (struct branch){i, 100, i + 1 < m->depth, i + 1};
	*clock_of(m, r) += make_jitter(m, 1000);
	make_run(m, r, tree, 0, 0, 0);
	free(tree);
}

#define NMANY 2047

static void many_setup(struct maker *m, uint32_t *spans)
{
	char name[60];

	for (uint32_t i = 0; i < NMANY; i++) {
		snprintf(name, sizeof(name), "lib%u::function_%u(long, char const*)", i % 13, i);
		spans[i] = make_span(m, name, FUNC, QBPF_HIST_NS);
	}
}

static void many_step(struct maker *m, struct run *r)
{
	struct branch tree[NMANY];

	for (uint32_t i = 0; i < NMANY; i++)
		tree[i] =
		    (struct branch){i, 100 + 7 * (i % 97), 2 * i + 2 < NMANY ? 2 : 0, 2 * i + 1};
	*clock_of(m, r) += make_jitter(m, 1000);
	make_run(m, r, tree, 0, 0, 0);
}

/* --- overlap: spans that outlive the one around them ---------------------------------------------- */

static void overlap_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "overlap:outer", MARKER, QBPF_HIST_NS);
	spans[1] = make_span(m, "overlap:outlives", MARKER, QBPF_HIST_NS);
	spans[2] = make_span(m, "overlap:inner", MARKER, QBPF_HIST_NS);
}

/* Two turns of outer; what began in the first ends within the second or after it. */
static void overlap_step(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + 1000, slack = make_jitter(m, 100);
	struct event outer = {.kind = EVENT_SPAN,
			      .span = r->spans[0],
			      .node = make_node(m, 0, r->spans[0]),
			      .thread = r->thread};
	struct event aside = {.kind = EVENT_ASIDE,
			      .span = r->spans[1],
			      .node = make_node(m, outer.node, r->spans[1]),
			      .thread = r->thread,
			      .depth = 1,
			      .start_ns = t + 50,
			      .end_ns = t + 1500 + slack};

	outer.start_ns = t;
	outer.end_ns = t + 500;
	make_event(m, &outer);
	if (r->steps % 2) {
		leaf(m, r, r->spans[2], outer.node, 1, t + 1100, t + 1400);
		make_event(m, &aside);
	}
	outer.start_ns = t + 1000;
	outer.end_ns = t + 2000 + slack;
	outer.child_ns = r->steps % 2 ? 300 : 0;
	make_event(m, &outer);
	if (r->steps % 2 == 0) {
		aside.end_ns = t + 2500 + slack;
		make_event(m, &aside);
	}
	*clock_of(m, r) = t + 3000 + slack;
}

/* --- equal: times that tie ------------------------------------------------------------------------ */

static void equal_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "equal:parent", MARKER, QBPF_HIST_NS);
	spans[1] = make_span(m, "equal:child", MARKER, QBPF_HIST_NS);
	spans[2] = make_span(m, "equal:sibling", MARKER, QBPF_HIST_NS);
	spans[3] = make_span(m, "equal:zero", MARKER, QBPF_HIST_NS);
}

static void equal_step(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + 22;
	uint32_t parent = make_node(m, 0, r->spans[0]), sibling = make_node(m, 0, r->spans[2]);
	struct event ev = {.kind = EVENT_SPAN, .thread = r->thread, .start_ns = t};

	/* Both begin at 22 and end at 64, where the next begins. */
	leaf(m, r, r->spans[1], parent, 1, t, t + 42);
	ev.span = r->spans[0];
	ev.node = parent;
	ev.end_ns = t + 42;
	ev.child_ns = 42;
	make_event(m, &ev);
	/* Of no length: at its parent's begin, at its end, and one inside another. */
	leaf(m, r, r->spans[3], sibling, 1, t + 42, t + 42);
	leaf(m, r, r->spans[3], make_node(m, sibling, r->spans[3]), 2, t + 80, t + 80);
	leaf(m, r, r->spans[3], sibling, 1, t + 80, t + 80);
	ev.span = r->spans[2];
	ev.node = sibling;
	ev.start_ns = t + 42;
	ev.end_ns = t + 80;
	ev.child_ns = 0;
	make_event(m, &ev);
	/* And one alone, where the last has ended. */
	leaf(m, r, r->spans[3], 0, 0, t + 80, t + 80);
	*clock_of(m, r) = t + 2000;
}

/* --- backwards: a damaged clock ------------------------------------------------------------------- */

static void backwards_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "backwards:outer", MARKER, QBPF_HIST_NS);
	spans[1] = make_span(m, "backwards:inner", MARKER, QBPF_HIST_NS);
}

static void backwards_step(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + 1000, inner = make_jitter(m, 300);
	struct event ev = {.kind = EVENT_SPAN, .span = r->spans[0], .thread = r->thread};

	ev.node = make_node(m, 0, ev.span);
	/* One in ten ends before it begins, one in ten begins before its parent. */
	if (r->steps % 10 == 3)
		leaf(m, r, r->spans[1], ev.node, 1, t + 500, t + 100);
	else if (r->steps % 10 == 7)
		leaf(m, r, r->spans[1], ev.node, 1, t - 700, t + 100);
	else
		leaf(m, r, r->spans[1], ev.node, 1, t + 10, t + 10 + inner);
	ev.start_ns = t;
	ev.end_ns = r->steps % 10 == 5 ? t - 200 : t + 5000;
	ev.child_ns = ev.end_ns > t ? inner : 0;
	make_event(m, &ev);
	/* Now and then the whole clock jumps back. */
	*clock_of(m, r) = r->steps % 100 == 99 ? t - 20000 : t + 5000;
}

/* --- keyed, values, instants ---------------------------------------------------------------------- */

static void keyed_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "keyed:order", KEYED, QBPF_HIST_NS);
	spans[1] = make_span(m, "keyed:request", KEYED, QBPF_HIST_NS);
	spans[2] = make_span(m, "keyed:poll", MARKER, QBPF_HIST_NS);
}

static void keyed_step(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + make_jitter(m, 2000), key = r->steps;
	struct event ev = {.kind = EVENT_KEYED,
			   .span = r->spans[r->steps % 2],
			   .thread = r->thread,
			   .begin_tid = MAKE_TGID + (r->number + r->steps) % m->want_threads,
			   .end_ns = t};

	/* They overlap: each began some turns ago. Keys are ids, addresses and the extremes. */
	ev.start_ns = t - make_jitter(m, 9000);
	if (ev.start_ns < m->start_ns)
		ev.start_ns = m->start_ns;
	ev.arg = r->steps % 3 == 0 ? key : 0x7f0000000000 + 64 * (key % 1000);
	if (r->steps % 1000 == 7)
		ev.arg = UINT64_MAX;
	make_event(m, &ev);
	leaf(m, r, r->spans[2], 0, 0, t + 10, t + 500);
	*clock_of(m, r) = t + 500;
}

static void values_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "values:depth", VALUE, QBPF_HIST_INT);
	spans[1] = make_span(m, "values:price", VALUE, QBPF_HIST_F64);
	spans[2] = make_span(m, "values:around", MARKER, QBPF_HIST_NS);
}

static void values_step(struct maker *m, struct run *r)
{
	static const int64_t ints[] = {INT64_MIN, INT64_MAX, 0, -1, 1};
	static const double reals[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-310, 1.7e308, 0.1};
	uint64_t t = *clock_of(m, r) + make_jitter(m, 1500);
	struct event ev = {.kind = EVENT_VALUE, .thread = r->thread, .depth = 1};
	int64_t whole = (int64_t)(make_random(m) % 2001) - 1000;
	double real = 100 + (double)whole / 64;

	if (r->steps % 50 == 49) {
		whole = ints[r->steps / 50 % 5];
		real = reals[r->steps / 50 % 7];
	}
	ev.span = r->spans[0];
	ev.start_ns = ev.end_ns = t + 100;
	memcpy(&ev.arg, &whole, sizeof(ev.arg));
	make_event(m, &ev);
	ev.span = r->spans[1];
	ev.start_ns = ev.end_ns = t + 150;
	memcpy(&ev.arg, &real, sizeof(ev.arg));
	make_event(m, &ev);
	leaf(m, r, r->spans[2], 0, 0, t, t + 300);
	*clock_of(m, r) = t + 300;
}

static void instants_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "instants:alone", INSTANT, QBPF_HIST_NS);
	spans[1] = make_span(m, "instants:inside", INSTANT, QBPF_HIST_NS);
	spans[2] = make_span(m, "instants:around", MARKER, QBPF_HIST_NS);
}

static void instants_step(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + make_jitter(m, 1500);
	struct event ev = {.kind = EVENT_INSTANT, .thread = r->thread};
	uint32_t around = make_node(m, 0, r->spans[2]);

	ev.span = r->spans[0];
	ev.node = make_node(m, 0, ev.span);
	ev.start_ns = ev.end_ns = t;
	make_event(m, &ev);
	ev.span = r->spans[1];
	ev.node = make_node(m, around, ev.span);
	ev.depth = 1;
	for (uint64_t i = 0; i < r->steps % 4; i++) {
		ev.start_ns = ev.end_ns = t + 100 + i / 2 * 50; /* two at one time */
		make_event(m, &ev);
	}
	leaf(m, r, r->spans[2], 0, 0, t + 50, t + 400);
	*clock_of(m, r) = t + 400;
}

/* --- open, tidreuse: how threads end -------------------------------------------------------------- */

static void open_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "open:outer", MARKER, QBPF_HIST_NS);
	spans[1] = make_span(m, "open:middle", MARKER, QBPF_HIST_NS);
	spans[2] = make_span(m, "open:inner", MARKER, QBPF_HIST_NS);
	spans[3] = make_span(m, "open:done", MARKER, QBPF_HIST_NS);
}

static void open_step(struct maker *m, struct run *r)
{
	static const struct branch tree[] = {
	    {0, 300, 1, 1}, {1, 200, 1, 2}, {2, 100, 1, 3}, {3, 400, 0, 0}};

	*clock_of(m, r) += make_jitter(m, 1000);
	make_run(m, r, tree, 0, 0, 0);
}

/* Three spans stay open around one that is done; every second thread ends with them. */
static void open_finish(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + 1000, end = m->last_ns > t + 5000 ? m->last_ns : t + 5000;
	uint32_t node[3], parent = 0;

	for (int i = 0; i < 3; i++)
		parent = node[i] = make_node(m, parent, r->spans[i]);
	leaf(m, r, r->spans[3], node[2], 3, t + 300, t + 900);
	*clock_of(m, r) = r->number % 2 ? t + 2000 : end;
	for (int i = 2; i >= 0; i--) {
		struct event ev = {.kind = EVENT_OPEN,
				   .span = r->spans[i],
				   .node = node[i],
				   .thread = r->thread,
				   .depth = (uint16_t)i,
				   .start_ns = t + 100u * i,
				   .end_ns = *clock_of(m, r)};

		make_event(m, &ev);
	}
	if (r->number % 2)
		make_thread_end(m, r->thread, r->name);
}

static void tidreuse_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "tidreuse:task", FUNC, QBPF_HIST_NS);
	spans[1] = make_span(m, "tidreuse:part", FUNC, QBPF_HIST_NS);
}

/* After 50 turns the thread ends, and another gets its tid, with another name. */
static void tidreuse_step(struct maker *m, struct run *r)
{
	static const struct branch tree[] = {{0, 400, 1, 1}, {1, 300, 0, 0}};
	uint64_t *clock = clock_of(m, r), now = *clock;

	if (r->steps % 50 == 49) {
		make_thread_end(m, r->thread, r->name);
		r->thread = make_thread(m, m->threads[r->thread].tid,
					r->steps / 50 % 2 ? r->name : "another", now + 500);
	} else {
		*clock += make_jitter(m, 1000);
	}
	make_run(m, r, tree, 0, 0, 0);
}

/* --- uptime: fine times far from zero ------------------------------------------------------------- */

static void uptime_setup(struct maker *m, uint32_t *spans)
{
	spans[0] = make_span(m, "uptime:outer", MARKER, QBPF_HIST_NS);
	spans[1] = make_span(m, "uptime:inner", MARKER, QBPF_HIST_NS);
}

static void uptime_step(struct maker *m, struct run *r)
{
	uint64_t t = *clock_of(m, r) + 1;
	struct event ev = {.kind = EVENT_SPAN,
			   .span = r->spans[0],
			   .node = make_node(m, 0, r->spans[0]),
			   .thread = r->thread,
			   .start_ns = t,
			   .end_ns = t + 3,
			   .child_ns = 1};

	leaf(m, r, r->spans[1], ev.node, 1, t + 1, t + 2);
	make_event(m, &ev);
	*clock_of(m, r) = t + 3;
}

static void empty_step(struct maker *m, struct run *r)
{
	(void)r;
	m->left = 0;
}

#define SHAPE(n, text, ...)                                                                        \
	{                                                                                          \
		.name = #n, .what = text, .setup = n##_setup, .step = n##_step, __VA_ARGS__        \
	}

const struct shape make_shapes[] = {
    SHAPE(strategy, "ten nested spans a tick of 5 to 20 us, with a long tail"),
    SHAPE(hostile, "names with quotes, control bytes, broken UTF-8, markup; 10,000 bytes; empty",
	  .comm = "a;\"b\n\xff", .thread_name = "t\"\\\n\xfe;<i>"),
    SHAPE(deep, "--depth nested functions, the lower half one that calls itself"),
    SHAPE(many, "2,047 functions as a binary tree"),
    SHAPE(overlap, "spans that end after the one around them (ASIDE)"),
    SHAPE(equal, "parent and child alike, spans that touch, spans of no length"),
    SHAPE(backwards, "ends before begins, begins before the parent's, a clock that jumps back"),
    SHAPE(keyed, "KEYED spans that overlap and change threads; keys up to UINT64_MAX"),
    SHAPE(values, "numbers, whole and real: extremes, NaN, infinities, -0.0"),
    SHAPE(instants, "markers alone, in and between spans, two at one time"),
    SHAPE(open, "spans still open when a thread or the recording ends", .finish = open_finish),
    SHAPE(tidreuse, "threads that end and leave their tid to another"),
    SHAPE(uptime, "events 1 ns apart after 100 days", .uptime_ns = 100 * DAY_NS, .alone = true),
    SHAPE(gpu, "ticks that use a GPU: records of its ring, with all that is odd about them",
	  .alone = true),
    {.name = "lost",
     .what = "the strategy with one event in ten lost; held + lost = counted",
     .setup = strategy_setup,
     .step = strategy_step,
     .lost_in = 10,
     .alone = true},
    {.name = "empty",
     .what = "tables, but no event",
     .setup = strategy_setup,
     .step = empty_step,
     .alone = true},
    {.name = "mixed",
     .what = "all but uptime, gpu, lost and empty at once, on threads of their own"},
    {.name = NULL},
};

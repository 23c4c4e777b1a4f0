// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * nest.c - one thread's spans as begins and ends in order of time; see nest.h.
 *
 * Read from the last event to the first, a thread's spans are easy: a span comes before all that ran
 * inside it, so one stack of open spans tells where each belongs, and whether it fits there. That
 * gives begins and ends from the last to the first, so a stretch of events is turned round in memory.
 *
 * To write them from the first to the last the walk goes over the thread twice. The first time,
 * backwards, it keeps what the stack held at the border of each stretch of STRETCH events. The second
 * time, forwards, it takes one stretch after the other, each from the stack at its end. The stacks
 * share what they have in common: `saved` is a tree whose paths to the root are the stacks.
 *
 * Spans without an end stand last in the file, in any order. They are put into order first: they
 * enclose the rest (but for those with a key, which nest in nothing).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/nest.h"

#define STRETCH	 32768
#define OPEN_MAX 65536 /* unended spans that are put into order; far more than a thread can have */

struct frame {
	struct event ev;
	const struct event *stays; /* the same where it outlives the stack, second time only */
	uint32_t saved;		   /* in nest.saved; 0: not there */
};

struct saved {
	struct event ev;
	uint32_t below; /* the frame below it, 0: none */
};

struct border {
	uint32_t top; /* in nest.saved; 0: empty stack */
	uint64_t limit_ns;
};

struct record {
	const struct event *ev;
	uint32_t level;
	uint8_t step;
};

struct nest {
	struct frame *stack;
	size_t height, stack_room;
	uint64_t limit_ns;   /* what comes next, going backwards, has to have ended by then */
	struct saved *saved; /* [0] is unused */
	size_t nsaved, saved_room;
	struct border *borders; /* [i]: when i stretches, counted from the end, were taken */
	size_t nborders, borders_room;
	struct record *records; /* of one stretch, from the last to the first */
	size_t nrecords, records_room;
	struct event *stretch;
	struct event *open; /* the unended spans, innermost first */
	size_t nopen, open_room;
	size_t nevents; /* others that are wanted */
	size_t stray;	/* of them: unended spans that do not stand last */
	bool at_end;	/* only unended spans, and what nests in nothing, have come so far */
	bool recording;
};

/* Makes room for one more of `*n` items. */
static int grow(void *items, size_t n, size_t *room, size_t size)
{
	void **p = items, *more;
	size_t want = *room ? *room * 2 : 64;

	if (n < *room)
		return 0;
	more = reallocarray(*p, want, size);
	if (!more)
		return -ENOMEM;
	*p = more;
	*room = want;
	return 0;
}

static int record(struct nest *n, enum nest_step step, const struct event *ev, size_t level)
{
	if (!n->recording)
		return 0;
	if (grow(&n->records, n->nrecords, &n->records_room, sizeof(*n->records)))
		return -ENOMEM;
	n->records[n->nrecords++] = (struct record){ev, (uint32_t)level, (uint8_t)step};
	return 0;
}

static int pop_to(struct nest *n, size_t height)
{
	while (n->height > height) {
		const struct frame *f = &n->stack[n->height - 1];
		int err = record(n, NEST_BEGIN, f->stays, n->height - 1);

		if (err)
			return err;
		n->limit_ns = f->ev.start_ns;
		n->height--;
	}
	return 0;
}

static int push(struct nest *n, const struct event *ev)
{
	if (grow(&n->stack, n->height, &n->stack_room, sizeof(*n->stack)))
		return -ENOMEM;
	n->stack[n->height++] = (struct frame){.ev = *ev, .stays = ev};
	n->limit_ns = ev->end_ns;
	return 0;
}

static int take_span(struct nest *n, const struct event *ev)
{
	size_t h = n->height;
	uint64_t limit_ns = n->limit_ns;
	int err;

	/* Those that this one is not inside of began later: nothing more can come into them. A
	 * span whose parent was lost is deeper than the later span that is on top of the stack. */
	for (; h; h--) {
		const struct event *top = &n->stack[h - 1].ev;

		if (top->depth < ev->depth &&
		    (ev->start_ns >= top->start_ns || ev->end_ns > top->start_ns))
			break;
		limit_ns = top->start_ns;
	}
	if (ev->end_ns < ev->start_ns || ev->end_ns > limit_ns ||
	    (h && ev->start_ns < n->stack[h - 1].ev.start_ns))
		return record(n, NEST_APART, ev, 0);
	err = pop_to(n, h);
	if (!err)
		err = record(n, NEST_END, ev, h);
	return err ? err : push(n, ev);
}

/* The next event, going backwards. */
static int take(struct nest *n, const struct event *ev)
{
	size_t h = n->height;
	int err;

	switch (ev->kind) {
	case EVENT_SPAN:
		return take_span(n, ev);
	case EVENT_OPEN:
		return event_is_keyed(ev) ? record(n, NEST_APART, ev, 0) : take_span(n, ev);
	case EVENT_INSTANT:
		/* What began after it begins after it, where both times are equal. */
		while (h && n->stack[h - 1].ev.depth >= ev->depth)
			h--;
		err = pop_to(n, h);
		return err ? err : record(n, NEST_POINT, ev, 0);
	case EVENT_VALUE:
		return record(n, NEST_POINT, ev, 0);
	default:
		return record(n, NEST_APART, ev, 0);
	}
}

/* --- the first time: the borders ----------------------------------------------------------------- */

static int save_border(struct nest *n)
{
	uint32_t below = 0;

	for (size_t i = 0; i < n->height; i++) {
		struct frame *f = &n->stack[i];

		if (!f->saved) {
			if (n->nsaved == UINT32_MAX ||
			    grow(&n->saved, n->nsaved, &n->saved_room, sizeof(*n->saved)))
				return -ENOMEM;
			n->saved[n->nsaved] = (struct saved){f->ev, below};
			f->saved = (uint32_t)n->nsaved++;
		}
		below = f->saved;
	}
	if (grow(&n->borders, n->nborders, &n->borders_room, sizeof(*n->borders)))
		return -ENOMEM;
	n->borders[n->nborders++] = (struct border){below, n->limit_ns};
	return 0;
}

static int inner_first(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth > y->depth ? -1 : 1;
	return x->start_ns > y->start_ns ? -1 : x->start_ns < y->start_ns;
}

/* Before the last event that nests in something: the unended spans are complete, and enclose it. */
static int take_open(struct nest *n)
{
	int err = 0;

	n->at_end = false;
	if (n->nopen)
		qsort(n->open, n->nopen, sizeof(*n->open), inner_first);
	for (size_t i = n->nopen; i-- && !err;)
		err = take(n, &n->open[i]);
	/* What came after it in its stretch cares for no stack. */
	if (err || n->nevents % STRETCH == 0)
		return err;
	n->nborders--;
	return save_border(n);
}

/* Without an end, and not paired by a key. */
static bool is_open(const struct event *ev)
{
	return ev->kind == EVENT_OPEN && !event_is_keyed(ev);
}

static int count_one(struct nest *n, const struct event *ev)
{
	bool open = is_open(ev);
	int err = 0;

	if (n->at_end && open && n->nopen < OPEN_MAX) {
		if (grow(&n->open, n->nopen, &n->open_room, sizeof(*n->open)))
			return -ENOMEM;
		n->open[n->nopen++] = *ev;
		return 0;
	}
	if (n->at_end && (open || ev->kind == EVENT_SPAN || ev->kind == EVENT_INSTANT))
		err = take_open(n);
	if (!err && n->nevents % STRETCH == 0)
		err = save_border(n);
	n->nevents++;
	n->stray += open;
	return err ? err : take(n, ev);
}

static int start(struct trace_reader *r, uint32_t thread, bool backwards,
		 const struct nest_visit *v, struct err *e)
{
	int err = trace_reader__start(r, thread, backwards);

	if (err)
		return err_set(e, err, "cannot read the trace again: %s", strerror(-err));
	if (v->to_ns)
		trace_reader__between(r, v->from_ns, v->to_ns);
	return 0;
}

static int no_memory(struct err *e, int err)
{
	return err == -ENOMEM ? err_set(e, err, "out of memory") : err;
}

static int find_borders(struct nest *n, struct trace_reader *r, uint32_t thread,
			const struct nest_visit *v, struct err *e)
{
	const struct event *events;
	size_t count;
	int err = start(r, thread, true, v, e);

	if (err)
		return err;
	while ((err = trace_reader__next(r, &events, &count, e)) > 0)
		while (count--) {
			if (v->want && !v->want(v->want_ctx, &events[count]))
				continue;
			err = count_one(n, &events[count]);
			if (err)
				return no_memory(e, err);
		}
	if (!err && n->at_end && n->nopen)
		qsort(n->open, n->nopen, sizeof(*n->open), inner_first);
	return err;
}

/* --- the second time: the records ---------------------------------------------------------------- */

static int restore(struct nest *n, const struct border *b)
{
	size_t height = 0;

	for (uint32_t i = b->top; i; i = n->saved[i].below)
		height++;
	while (n->stack_room < height)
		if (grow(&n->stack, n->stack_room, &n->stack_room, sizeof(*n->stack)))
			return -ENOMEM;
	n->height = height;
	for (uint32_t i = b->top; i; i = n->saved[i].below)
		n->stack[--height] = (struct frame){n->saved[i].ev, &n->saved[i].ev, i};
	n->limit_ns = b->limit_ns;
	return 0;
}

/* Takes one stretch, from the stack at its end, and gives it out from its first event on. */
static int play(struct nest *n, const struct border *end, const struct event *events, size_t count,
		bool first, const struct nest_visit *v, struct err *e)
{
	int err = restore(n, end);

	n->nrecords = 0;
	while (count-- && !err)
		err = take(n, &events[count]);
	if (!err && first)
		err = pop_to(n, 0);
	if (err)
		return no_memory(e, err);
	for (size_t i = n->nrecords; i-- && err >= 0;)
		err = v->step(v->ctx, n->records[i].step, n->records[i].ev, n->records[i].level);
	return err < 0 ? err : 0;
}

static int play_stretches(struct nest *n, struct trace_reader *r, uint32_t thread,
			  const struct nest_visit *v, struct err *e)
{
	const struct event *events;
	size_t count, held = 0, left = n->nevents, stray = n->stray;
	int err;

	n->stretch = reallocarray(NULL, left < STRETCH ? left : STRETCH, sizeof(*n->stretch));
	if (!n->stretch)
		return no_memory(e, -ENOMEM);
	err = start(r, thread, false, v, e);
	if (err)
		return err;
	while (left && (err = trace_reader__next(r, &events, &count, e)) > 0)
		for (size_t i = 0; i < count && left; i++) {
			if (v->want && !v->want(v->want_ctx, &events[i]))
				continue;
			/* Those that stand last are in n->open. */
			if (is_open(&events[i]) && !stray)
				continue;
			stray -= is_open(&events[i]);
			n->stretch[held++] = events[i];
			if (--left % STRETCH)
				continue;
			err = play(n, &n->borders[left / STRETCH], n->stretch, held,
				   left + held == n->nevents, v, e);
			if (err)
				return err;
			held = 0;
		}
	if (err >= 0 && left)
		err = err_set(e, -EBADMSG, "the trace changed while it was read");
	return err < 0 ? err : 0;
}

int nest__walk(struct trace_reader *r, uint32_t thread, const struct nest_visit *v, struct err *e)
{
	const struct border none = {0, UINT64_MAX};
	struct nest n = {.limit_ns = UINT64_MAX, .nsaved = 1, .at_end = true};
	int err = find_borders(&n, r, thread, v, e);

	if (err)
		goto out;
	n.recording = true;
	if (n.nevents)
		err = play_stretches(&n, r, thread, v, e);
	if (!err)
		err = play(&n, &none, n.open, n.nopen, n.at_end, v, e);
out:
	free(n.stack);
	free(n.saved);
	free(n.borders);
	free(n.records);
	free(n.stretch);
	free(n.open);
	return err;
}

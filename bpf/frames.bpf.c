// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rare paths of the frame stack: abandoning, searching below the top, and finding out by
 * stack pointers which functions have been left. See frames.bpf.h for the rules.
 */
#include "frames.bpf.h"
#include "task.bpf.h"

/*
 * Two addresses further apart than this are on different stacks. Thread stacks are 8 MiB unless
 * someone asks for more; when one is larger than this, dead frames are found by the next return
 * of a function below them instead.
 */
#define STACK_MAX (64ULL << 20)

/*
 * Loops here are bpf_loop(): the verifier looks at a callback a few times, at a plain loop of 64
 * steps hundreds of times, and loading the programs is most of what starting qbpf takes.
 */
struct walk {
	struct qbpf_thread *t;
	__u64 a, b; /* what is looked for, or a limit */
	__u32 i;    /* where the walk is */
	int found;
};

static long drop_one(__u32 n __attribute__((unused)), struct walk *w)
{
	struct qbpf_thread *t = w->t;
	__u32 d = t->depth;
	struct qbpf_frame *f;

	if (!d)
		return 1;
	f = frame_at(t, d - 1);
	if (d <= w->a && f->cookie)
		return 1;
	if (f->cookie)
		count_span(QBPF_COOKIE_SPAN(f->cookie), abandoned);
	t->depth = d - 1;
	return 0;
}

/* Abandons frames[keep .. depth), then removes closed frames that are the top now. */
__noinline int frames_drop(struct qbpf_thread *t, __u32 keep)
{
	struct walk w = {.t = t, .a = keep};

	if (!t)
		return 0;
	if (t->depth > keep)
		t->over = 0;
	bpf_loop(QBPF_FRAMES_MAX, drop_one, &w, 0);
	return 0;
}

static long retire_one(__u32 i, struct walk *w)
{
	struct qbpf_frame *f;
	__u32 span;

	if (i >= w->t->depth)
		return 1;
	f = frame_at(w->t, i);
	span = QBPF_COOKIE_SPAN(f->cookie);
	if (f->cookie && is_retired(span)) {
		count_span(span, abandoned);
		f->cookie = 0;
	}
	return 0;
}

/* Closes the frames whose end will not come, so that nothing nests in them any more. */
__noinline int frames_retire(struct qbpf_thread *t)
{
	struct walk w = {.t = t};

	if (!t)
		return 0;
	t->generation = generation;
	bpf_loop(QBPF_FRAMES_MAX, retire_one, &w, 0);
	frames_drop(t, t->depth);
	return 0;
}

static long drop_one_aside(__u32 i, struct walk *w)
{
	if (i >= w->t->naside)
		return 1;
	count_span(QBPF_COOKIE_SPAN(aside_at(w->t, i)->cookie), abandoned);
	return 0;
}

/* The thread, or its program, ends. */
__noinline int frames_drop_all(struct qbpf_thread *t)
{
	struct walk w = {.t = t};

	if (!t)
		return 0;
	frames_drop(t, 0);
	bpf_loop(QBPF_ASIDE_MAX, drop_one_aside, &w, 0);
	t->naside = 0;
	return 0;
}

/* Takes aside[i] out; the order of the others does not matter. */
__noinline int aside_remove(struct qbpf_thread *t, __u32 i)
{
	if (!t || !t->naside)
		return 0;
	t->naside--;
	*aside_at(t, i) = *aside_at(t, t->naside);
	return 0;
}

/* Room for one more: when all are taken, each is given up in its turn. */
static __always_inline __u32 aside_make_room(struct qbpf_thread *t)
{
	__u32 turn;

	if (t->naside < QBPF_ASIDE_MAX)
		return t->naside++;
	turn = t->aside_turn++;
	count_span(QBPF_COOKIE_SPAN(aside_at(t, turn)->cookie), abandoned);
	return turn;
}

/* frames[i], open, is given up if it is a function's, else set aside. */
__noinline int frame_set_aside(struct qbpf_thread *t, __u32 i)
{
	struct qbpf_frame *f;

	if (!t)
		return 0;
	f = frame_at(t, i);
	if (is_function(f->cookie))
		count_span(QBPF_COOKIE_SPAN(f->cookie), abandoned);
	else
		*aside_at(t, aside_make_room(t)) = *f;
	return 0;
}

static long set_one_aside(__u32 n, struct walk *w)
{
	struct qbpf_thread *t = w->t;
	__u32 d = t->depth;

	if (d <= w->a)
		return 1;
	t->depth = d - 1;
	if (frame_at(t, d - 1)->cookie)
		frame_set_aside(t, d - 1);
	return 0;
}

/*
 * Sets aside the markers of frames[keep .. depth), whose enclosing span has ended. A function
 * there has been left, or it would have returned.
 */
__noinline int frames_set_aside(struct qbpf_thread *t, __u32 keep)
{
	struct walk w = {.t = t, .a = keep};

	if (!t)
		return 0;
	t->over = 0;
	bpf_loop(QBPF_FRAMES_MAX, set_one_aside, &w, 0);
	return 0;
}

static long same_aside(__u32 i, struct walk *w)
{
	struct qbpf_frame *f;

	if (i >= w->t->naside)
		return 1;
	f = aside_at(w->t, i);
	if (f->cookie != w->a || f->sp != w->b)
		return 0;
	w->found = i;
	return 1;
}

/* The same site begins again with the same stack pointer: the end was skipped. */
__noinline int aside_restart(struct qbpf_thread *t, __u64 cookie, __u64 sp)
{
	struct walk w = {.t = t, .a = cookie, .b = sp, .found = -1};

	if (!t)
		return 0;
	bpf_loop(QBPF_ASIDE_MAX, same_aside, &w, 0);
	if (w.found >= 0) {
		count_span(QBPF_COOKIE_SPAN(cookie), abandoned);
		aside_remove(t, w.found);
	}
	return 0;
}

static long best_aside(__u32 i, struct walk *w)
{
	struct qbpf_frame *f;

	if (i >= w->t->naside)
		return 1;
	f = aside_at(w->t, i);
	if (QBPF_COOKIE_SPAN(f->cookie) != (__u32)w->a)
		return 0;
	if (f->sp == w->b) {
		w->found = i;
		return 1;
	}
	if (w->found < 0 || f->start_ns >= aside_at(w->t, w->found)->start_ns)
		w->found = i;
	return 0;
}

/* The one that a marker's end at sp closes: begun at the same stack pointer, else the latest. */
__noinline int aside_find(struct qbpf_thread *t, __u32 span, __u64 sp)
{
	struct walk w = {.t = t, .a = span, .b = sp, .found = -1};

	if (!t)
		return -1;
	bpf_loop(QBPF_ASIDE_MAX, best_aside, &w, 0);
	return w.found;
}

struct purge {
	struct qbpf_thread *t;
	__u64 limit, reach;
	struct alt_stack alt;
	__u32 keep;
};

static long is_left(__u32 n, struct purge *p)
{
	__u32 keep = p->keep;
	__u64 base;

	if (!keep)
		return 1;
	/* Without a base there is no function: 0 is near nothing. */
	base = frame_at(p->t, keep - 1)->base;
	if (base > p->limit)
		return 1;
	if (p->limit - base >= p->reach && !on_alt_stack(&p->alt, base))
		return 1;
	p->keep = keep - 1;
	return 0;
}

/*
 * Drops the frames of functions whose slots lie at or below `limit` and that have been left. On
 * a signal stack those are frames of the same stack; the handler interrupts what is elsewhere.
 * From outside, a frame on the signal stack has been left as well.
 */
__noinline int frames_purge_below(struct qbpf_thread *t, __u64 limit)
{
	struct purge p = {.t = t, .limit = limit, .reach = STACK_MAX};

	if (!t)
		return 0;
	p.keep = t->depth;
	current_alt_stack(&p.alt);
	if (on_alt_stack(&p.alt, limit)) {
		p.reach = limit - p.alt.start;
		p.alt.size = 0;
	}
	bpf_loop(QBPF_FRAMES_MAX, is_left, &p, 0);
	if (p.keep < t->depth)
		frames_drop(t, p.keep);
	return 0;
}

__noinline int frames_purge(struct qbpf_thread *t, __u64 slot)
{
	return frames_purge_below(t, is_return_trampoline(slot) ? slot - 1 : slot);
}

/* lea -128(%rsp),%rsp: how a marker steps over the red zone. */
#define STEP_INSN 0x8024648d48ULL

__noinline int frames_purge_marker(struct qbpf_thread *t, __u64 sp, __u64 ip)
{
	__u64 insn = 0;

	if (!bpf_probe_read_user(&insn, 5, (void *)ip - 5) && insn == STEP_INSN)
		sp += RED_ZONE;
	/* In a function that has yet to push anything, %rsp is the slot itself. */
	return frames_purge_below(t, sp - 1);
}

static long bury_one(__u32 i, struct walk *w)
{
	struct qbpf_frame *f;

	if (i >= w->t->depth)
		return 1;
	f = frame_at(w->t, i);
	if (f->sp != w->b || !is_function(f->cookie))
		return 0;
	count_span(QBPF_COOKIE_SPAN(f->cookie), abandoned);
	f->cookie = 0;
	return 1;
}

/*
 * Where stacks are switched, frames lie on several and none is known to be dead but the one
 * whose slot another function takes.
 */
__noinline int frames_bury(struct qbpf_thread *t, __u64 slot)
{
	struct walk w = {.t = t, .b = slot};

	if (!t)
		return 0;
	bpf_loop(QBPF_FRAMES_MAX, bury_one, &w, 0);
	frames_drop(t, t->depth);
	return 0;
}

/* In the walks below, w->i frames are still to be looked at. */
static long find_restarted(__u32 n, struct walk *w)
{
	struct qbpf_frame *f;

	if (!w->i)
		return 1;
	f = frame_at(w->t, --w->i);
	if (f->sp > w->b + RED_ZONE)
		return 1;
	if (f->sp != w->b || f->cookie != w->a)
		return 0;
	w->found = w->i;
	return 1;
}

/*
 * A site that begins while a frame that it opened at the same stack pointer is still open:
 * the code has come round again and the end was skipped.
 */
__noinline int frames_restart(struct qbpf_thread *t, __u64 cookie, __u64 sp)
{
	struct walk w = {.t = t, .a = cookie, .b = sp, .found = -1};

	if (!t)
		return 0;
	w.i = t->depth;
	bpf_loop(QBPF_FRAMES_MAX, find_restarted, &w, 0);
	if (w.found >= 0)
		frames_drop(t, w.found);
	return 0;
}

/* The latest of the span, unless one begun at the same stack pointer comes before. */
static long find_marker(__u32 n, struct walk *w)
{
	struct qbpf_frame *f;

	if (!w->i)
		return 1;
	f = frame_at(w->t, --w->i);
	if (COOKIE_WHAT(f->cookie) != (__u32)w->a)
		return 0;
	if (f->sp == w->b) {
		w->found = w->i;
		return 1;
	}
	if (w->found < 0)
		w->found = w->i;
	return f->sp > w->b;
}

/* The frame that a marker's end at sp closes, or -1. */
__noinline int frames_find_marker(struct qbpf_thread *t, __u32 span, __u64 sp)
{
	struct walk w = {.t = t, .a = WHAT(span, QBPF_ROLE_BEGIN), .b = sp, .found = -1};

	if (!t)
		return -1;
	w.i = t->depth;
	bpf_loop(QBPF_FRAMES_MAX, find_marker, &w, 0);
	return w.found;
}

static long find_function(__u32 n, struct walk *w)
{
	struct qbpf_frame *f;

	if (!w->i)
		return 1;
	f = frame_at(w->t, --w->i);
	if (f->sp != w->b || QBPF_COOKIE_SPAN(f->cookie) != (__u32)w->a || !is_function(f->cookie))
		return 0;
	w->found = w->i;
	return 1;
}

/* The frame of the function that returns from slot, or -1. */
__noinline int frames_find_function(struct qbpf_thread *t, __u32 span, __u64 slot)
{
	struct walk w = {.t = t, .a = span, .b = slot, .found = -1};

	if (!t)
		return -1;
	w.i = t->depth;
	bpf_loop(QBPF_FRAMES_MAX, find_function, &w, 0);
	return w.found;
}

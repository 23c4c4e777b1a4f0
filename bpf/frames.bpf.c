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

/* Abandons frames[keep .. depth), then removes closed frames that are the top now. */
__noinline int frames_drop(struct qbpf_thread *t, __u32 keep)
{
	if (!t)
		return 0;
	if (t->depth > keep)
		t->over = 0;
	for (int i = 0; i < QBPF_FRAMES_MAX; i++) {
		__u32 d = t->depth;
		struct qbpf_frame *f;

		if (!d)
			break;
		f = frame_at(t, d - 1);
		if (d <= keep && f->cookie)
			break;
		if (f->cookie)
			count_span(QBPF_COOKIE_SPAN(f->cookie), abandoned);
		t->depth = d - 1;
	}
	return 0;
}

/* The thread, or its program, ends. */
__noinline int frames_drop_all(struct qbpf_thread *t)
{
	if (!t)
		return 0;
	frames_drop(t, 0);
	for (__u32 i = 0; i < QBPF_ASIDE_MAX && i < t->naside; i++)
		count_span(QBPF_COOKIE_SPAN(aside_at(t, i)->cookie), abandoned);
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

/*
 * Sets aside the markers of frames[keep .. depth), whose enclosing span has ended. A function
 * there has been left, or it would have returned.
 */
__noinline int frames_set_aside(struct qbpf_thread *t, __u32 keep)
{
	if (!t)
		return 0;
	t->over = 0;
	for (int i = 0; i < QBPF_FRAMES_MAX; i++) {
		__u32 d = t->depth;

		if (d <= keep)
			break;
		t->depth = d - 1;
		if (frame_at(t, d - 1)->cookie)
			frame_set_aside(t, d - 1);
	}
	return 0;
}

/* The same site begins again with the same stack pointer: the end was skipped. */
__noinline int aside_restart(struct qbpf_thread *t, __u64 cookie, __u64 sp)
{
	if (!t)
		return 0;
	for (__u32 i = 0; i < QBPF_ASIDE_MAX && i < t->naside; i++) {
		struct qbpf_frame *f = aside_at(t, i);

		if (f->cookie != cookie || f->sp != sp)
			continue;
		count_span(QBPF_COOKIE_SPAN(cookie), abandoned);
		aside_remove(t, i);
		break;
	}
	return 0;
}

/* The one that a marker's end at sp closes: begun at the same stack pointer, else the latest. */
__noinline int aside_find(struct qbpf_thread *t, __u32 span, __u64 sp)
{
	__u64 latest_ns = 0;
	int found = -1;

	if (!t)
		return -1;
	for (__u32 i = 0; i < QBPF_ASIDE_MAX && i < t->naside; i++) {
		struct qbpf_frame *f = aside_at(t, i);

		if (QBPF_COOKIE_SPAN(f->cookie) != span)
			continue;
		if (f->sp == sp)
			return i;
		if (f->start_ns >= latest_ns) {
			latest_ns = f->start_ns;
			found = i;
		}
	}
	return found;
}

/* a < b, 1 or 0, of user addresses; without a branch, which in a loop the verifier pays dearly. */
static __always_inline __u64 below(__u64 a, __u64 b)
{
	__u64 diff = a - b;

	barrier_var(diff);
	return diff >> 63;
}

/*
 * Drops the frames of functions whose slots lie at or below `limit` and that have been left. On
 * a signal stack those are frames of the same stack; the handler interrupts what is elsewhere.
 * From outside, a frame on the signal stack has been left as well.
 */
__noinline int frames_purge_below(struct qbpf_thread *t, __u64 limit)
{
	__u64 reach = STACK_MAX;
	struct alt_stack alt;
	__u32 keep;

	if (!t)
		return 0;
	keep = t->depth;
	current_alt_stack(&alt);
	if (on_alt_stack(&alt, limit)) {
		reach = limit - alt.start;
		alt.size = 0;
	}
	for (int i = 0; i < QBPF_FRAMES_MAX && keep; i++) {
		__u64 base = frame_at(t, keep - 1)->base;
		__u64 on_alt = below(alt.start, base) & ~below(alt.start + alt.size, base);

		/* Without a base there is no function: 0 is near nothing. */
		if (!((below(limit - base, reach) | on_alt) & ~below(limit, base) & 1))
			break;
		keep--;
	}
	if (keep < t->depth)
		frames_drop(t, keep);
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

/*
 * A site that begins while a frame that it opened at the same stack pointer is still open:
 * the code has come round again and the end was skipped.
 */
__noinline int frames_restart(struct qbpf_thread *t, __u64 cookie, __u64 sp)
{
	__u32 d;

	if (!t)
		return 0;
	d = t->depth;
	for (int i = 0; i < QBPF_FRAMES_MAX && d; i++) {
		struct qbpf_frame *f = frame_at(t, --d);

		if (f->sp > sp + RED_ZONE)
			break;
		if (f->sp == sp && f->cookie == cookie) {
			frames_drop(t, d);
			break;
		}
	}
	return 0;
}

/* The frame that a marker's end at sp closes, or -1: two plain loops verify faster than one. */
__noinline int frames_find_marker(struct qbpf_thread *t, __u32 span, __u64 sp)
{
	__u32 what = WHAT(span, QBPF_ROLE_BEGIN), d;

	if (!t)
		return -1;
	d = t->depth;
	for (int i = 0; i < QBPF_FRAMES_MAX && d; i++) {
		struct qbpf_frame *f = frame_at(t, --d);

		if (COOKIE_WHAT(f->cookie) != what)
			continue;
		if (f->sp == sp)
			return d;
		if (f->sp > sp)
			break;
	}
	d = t->depth;
	for (int i = 0; i < QBPF_FRAMES_MAX && d; i++)
		if (COOKIE_WHAT(frame_at(t, --d)->cookie) == what)
			return d;
	return -1;
}

/* The frame of the function that returns from slot, or -1. */
__noinline int frames_find_function(struct qbpf_thread *t, __u32 span, __u64 slot)
{
	__u32 d;

	if (!t)
		return -1;
	d = t->depth;
	for (int i = 0; i < QBPF_FRAMES_MAX && d; i++) {
		struct qbpf_frame *f = frame_at(t, --d);

		if (f->sp == slot && QBPF_COOKIE_SPAN(f->cookie) == span && is_function(f->cookie))
			return d;
	}
	return -1;
}

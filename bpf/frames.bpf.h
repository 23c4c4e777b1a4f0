/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stack of open frames of one thread: opening, finding, closing and abandoning.
 *
 * Only the thread itself changes its stack, from probes that it hits one after the other, so
 * there is no locking; the snapshot iterator reads along and may see a frame half written.
 *
 * Stacks grow down. A function frame is known by its slot, the address of its return address:
 * while the function runs, the stack pointer is at or below the slot, so a hit with the stack
 * pointer above it proves that longjmp or an exception has left the function. A marker's frame
 * records the stack pointer too, but a marker may lie in a helper that has returned, so that
 * alone proves nothing: a marker's frame dies when longjmp or an exception leaves the function
 * frame below it (`base`), or when the same site begins again with the same stack pointer. For the
 * same reason an end prefers, among the open frames of its span, one begun at its own stack pointer
 * over those begun further down: recursion that an exception has cut short leaves such.
 *
 * Spans may cross: a PostgreSQL transaction begins inside one query and ends inside another. When a
 * span ends while markers begun inside it are open, those are set aside: they can still end, and
 * count, but what begins later does not nest in them, since the end may as well have been skipped.
 *
 * The fast paths are here; what rarely happens is out of line in frames.bpf.c.
 */
#ifndef QBPF_FRAMES_BPF_H
#define QBPF_FRAMES_BPF_H

#include "cells.bpf.h"
#include "stream.bpf.h"

/* A cookie's span and role, without its site. */
#define COOKIE_WHAT(c)	 ((__u32)(c))
#define WHAT(span, role) ((__u32)QBPF_COOKIE(span, role, 0))

/* frames.bpf.c */
int frames_drop(struct qbpf_thread *t, __u32 keep);
int frames_drop_all(struct qbpf_thread *t);
int frames_retire(struct qbpf_thread *t);
int frames_bury(struct qbpf_thread *t, __u64 slot);
int frames_set_aside(struct qbpf_thread *t, __u32 keep);
int aside_restart(struct qbpf_thread *t, __u64 cookie, __u64 sp);
int aside_find(struct qbpf_thread *t, __u32 span, __u64 sp);
int aside_remove(struct qbpf_thread *t, __u32 i);
int frames_purge(struct qbpf_thread *t, __u64 slot);
int frames_purge_marker(struct qbpf_thread *t, __u64 sp, __u64 ip);
int frames_restart(struct qbpf_thread *t, __u64 cookie, __u64 sp);
int frames_find_marker(struct qbpf_thread *t, __u32 span, __u64 sp);
int frames_find_function(struct qbpf_thread *t, __u32 span, __u64 slot);
/* spans.bpf.c */
int function_enter(__u64 cookie, __u64 slot);
int function_leave(__u32 span, __u64 slot, __u64 now_ns);

static __always_inline struct qbpf_frame *frame_at(struct qbpf_thread *t, __u32 i)
{
	/* Else the compiler sees through the mask, drops it, and the verifier cannot. */
	barrier_var(i);
	return &t->frames[i & (QBPF_FRAMES_MAX - 1)];
}

static __always_inline struct qbpf_thread *thread_get(__u64 flags)
{
	struct qbpf_thread *t;

	t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, flags);
	if (t && t->generation != generation)
		frames_retire(t);
	return t;
}

static __always_inline struct qbpf_frame *aside_at(struct qbpf_thread *t, __u32 i)
{
	barrier_var(i);
	return &t->aside[i & (QBPF_ASIDE_MAX - 1)];
}

/* A marker may have stepped over the red zone: its %rsp is that of its function less this. */
#define RED_ZONE 128

/* The nearest function frame's slot; 0: none, or it would tell nothing. */
static __always_inline __u64 top_base(struct qbpf_thread *t)
{
	return t->depth && !cfg_stack_switch ? frame_at(t, t->depth - 1)->base : 0;
}

/*
 * Drops frames of functions that have been left, seen from a function's entry: also those whose
 * slot is the new function's own, unless the old one jumped here (a tail call).
 */
static __always_inline void purge(struct qbpf_thread *t, __u64 slot)
{
	__u64 base = top_base(t);

	if (base && base <= slot)
		frames_purge(t, slot);
}

/* The same, seen from a marker. */
static __always_inline void purge_marker(struct qbpf_thread *t, struct pt_regs *ctx)
{
	__u64 base = top_base(t);

	if (base && base < ctx->sp + RED_ZONE)
		frames_purge_marker(t, ctx->sp, ctx->ip);
}

static __always_inline bool is_function(__u64 cookie)
{
	__u32 role = QBPF_COOKIE_ROLE(cookie);

	return role == QBPF_ROLE_ENTRY || role == QBPF_ROLE_ENTRY_INSN;
}

/* Opens a frame. The clock is read last, so that our own work is not in the span. */
static __always_inline void open_frame(struct qbpf_thread *t, __u64 cookie, __u64 sp)
{
	__u32 span = QBPF_COOKIE_SPAN(cookie), parent = QBPF_NODE_ROOT, d = t->depth;
	struct qbpf_frame *f;
	__u64 base = 0;

	if (d >= QBPF_FRAMES_MAX) {
		t->over++;
		count_span(span, depth_overflow);
		return;
	}
	if (d) {
		f = frame_at(t, d - 1);
		parent = f->node;
		base = f->base;
	}
	f = frame_at(t, d);
	/* A loop opens the same frame again and again: what it was tells its node. */
	if (COOKIE_WHAT(f->cookie) != COOKIE_WHAT(cookie) || f->parent != parent ||
	    f->node == QBPF_NODE_LOST || !f->node) {
		f->node = node_of(parent, span);
		f->parent = parent;
	}
	f->cookie = cookie;
	f->sp = sp;
	f->base = is_function(cookie) ? sp : base;
	f->child_ns = 0;
	*(volatile __u64 *)&f->start_ns = 0;
	if (cfg_stream && (cfg_sample > 1 || cfg_slow))
		stream_open(t, d, span);
	t->depth = d + 1;
	f->start_ns = bpf_ktime_get_ns();
}

/*
 * Closes frames[i] at now_ns. The frames above it are set aside, except when `keep_above` says
 * that functions above it are still running: then its place stays, empty, until they are done.
 */
static __always_inline void close_frame(struct qbpf_thread *t, __u32 i, __u64 now_ns,
					bool keep_above)
{
	struct qbpf_frame *f = frame_at(t, i);
	__u64 start_ns = f->start_ns, ns = now_ns - start_ns, child_ns = f->child_ns;
	__u32 span = QBPF_COOKIE_SPAN(f->cookie), node = f->node;
	__u32 how = cfg_stream ? frame_how(f) : 0, mark = f->mark;
	bool outlives = false;

	if ((__s64)ns < 0)
		ns = 0;
	if (i) {
		struct qbpf_frame *below = frame_at(t, i - 1);

		below->child_ns += ns;
		/* Rare: the frame below was closed before this one. */
		if (!below->cookie)
			keep_above = outlives = true;
	}
	if (keep_above || t->depth != i + 1 || t->over) {
		if (!keep_above)
			frames_set_aside(t, i + 1);
		f->cookie = 0;
		frames_drop(t, t->depth);
	} else {
		t->depth = i;
	}
	span_add(span, node, ns, child_ns);
	if (cfg_stream || (cfg_spans && spans_wanted)) {
		struct qbpf_record r = {
		    .type = outlives ? QBPF_RECORD_ASIDE : QBPF_RECORD_SPAN,
		    .depth = i,
		    .span = span,
		    .node = node,
		    .start_ns = start_ns,
		    .end_ns = start_ns + ns,
		    .child_ns = child_ns,
		};

		stream_add(t, &r, mark, how);
	}
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What happens at a hit: on_site for every uprobe, on_return for every uretprobe. The cookie
 * says which span, which role and which site. See frames.bpf.h for how ends find their begins.
 */
#include "frames.bpf.h"
#include "args.bpf.h"
#include "task.bpf.h"

static __always_inline int begin_marker(struct pt_regs *ctx, __u64 cookie)
{
	struct qbpf_thread *t = thread_get(BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 sp = ctx->sp;

	if (!t) {
		count_span(QBPF_COOKIE_SPAN(cookie), no_storage);
		return 0;
	}
	purge_marker(t, ctx);
	if (t->depth && frame_at(t, t->depth - 1)->sp <= sp + RED_ZONE)
		frames_restart(t, cookie, sp);
	if (t->naside)
		aside_restart(t, cookie, sp);
	open_frame(t, cookie, sp);
	return 0;
}

/* Closes the span if it was set aside; false: it was not. */
static __always_inline bool end_aside(struct qbpf_thread *t, __u32 span, __u64 sp, __u64 now_ns)
{
	struct qbpf_frame *f;
	int i;

	if (!t->naside)
		return false;
	i = aside_find(t, span, sp);
	if (i < 0)
		return false;
	f = aside_at(t, i);
	span_add(span, f->node, now_ns - f->start_ns, f->child_ns);
	if (cfg_stream) {
		struct qbpf_record r = {
		    .type = QBPF_RECORD_ASIDE,
		    .span = span,
		    .node = f->node,
		    .start_ns = f->start_ns,
		    .end_ns = now_ns,
		    .child_ns = f->child_ns,
		};
		__u32 how = f->skip ? HOW_SKIP : f->watched ? HOW_WATCHED : 0, mark = f->mark;

		/* Not inside what was open around its begin, but what is now. */
		if (t->depth && frame_at(t, t->depth - 1)->inside)
			how |= HOW_INSIDE;
		stream_add(t, &r, mark, how);
	}
	aside_remove(t, i);
	return true;
}

/*
 * Is this the end of a begin that found the stack full? Those lie below the top frame's stack
 * pointer, so an end from above it means that they, and perhaps more, are gone.
 */
static __always_inline bool end_over(struct qbpf_thread *t, __u32 span, __u64 sp)
{
	int i;

	if (sp > frame_at(t, t->depth - 1)->sp) {
		i = frames_find_marker(t, span, sp);
		if (i >= 0 && frame_at(t, i)->sp == sp)
			return false;
		/* Which begin it belongs to cannot be known: give up its span's frames. */
		count_span(span, orphan_ends);
		if (i >= 0)
			frames_drop(t, i);
		t->over = 0;
		return true;
	}
	t->over--;
	return true;
}

static __always_inline int end_marker(struct pt_regs *ctx, __u32 span, __u64 now_ns)
{
	struct qbpf_thread *t = thread_get(0);
	__u64 sp = ctx->sp;
	bool keep_above = false;
	struct qbpf_frame *f;
	int i;

	if (!t)
		goto orphan;
	purge_marker(t, ctx);
	if (!t->depth)
		goto not_nested;
	if (t->over && end_over(t, span, sp))
		return 0;
	i = t->depth - 1;
	f = frame_at(t, i);
	if (COOKIE_WHAT(f->cookie) != WHAT(span, QBPF_ROLE_BEGIN) || f->sp != sp) {
		__u64 base = f->base;

		i = frames_find_marker(t, span, sp);
		if (i < 0)
			goto not_nested;
		/* Purged, so any function frame above is of one that still runs. */
		keep_above = frame_at(t, i)->base != base && !cfg_stack_switch;
	}
	close_frame(t, i, now_ns, keep_above);
	return 0;
not_nested:
	if (end_aside(t, span, sp, now_ns))
		return 0;
orphan:
	count_span(span, orphan_ends);
	return 0;
}

static __always_inline int enter_function(__u64 cookie, __u64 slot)
{
	struct qbpf_thread *t = thread_get(BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 span = QBPF_COOKIE_SPAN(cookie);

	if (!t) {
		count_span(span, no_storage);
		return 0;
	}
	purge(t, slot);
	if (cfg_stack_switch && t->depth)
		frames_bury(t, slot);
	if (QBPF_COOKIE_ROLE(cookie) == QBPF_ROLE_ENTRY && return_probes_full()) {
		count_span(span, ret_muted);
		return 0;
	}
	open_frame(t, cookie, slot);
	return 0;
}

static __always_inline int leave_function(__u32 span, __u64 slot, __u64 now_ns)
{
	struct qbpf_thread *t = thread_get(0);
	struct qbpf_frame *f;
	int i;

	if (!t || !t->depth)
		goto orphan;
	i = t->depth - 1;
	f = frame_at(t, i);
	if (f->sp != slot || QBPF_COOKIE_SPAN(f->cookie) != span || !is_function(f->cookie)) {
		i = frames_find_function(t, span, slot);
		if (i < 0) {
			if (!t->over)
				goto orphan;
			t->over--;
			return 0;
		}
	}
	close_frame(t, i, now_ns, false);
	return 0;
orphan:
	count_span(span, orphan_ends);
	return 0;
}

/* The same for the programs of cuda.bpf.c: verified once. */
__noinline int function_enter(__u64 cookie, __u64 slot)
{
	return enter_function(cookie, slot);
}

__noinline int function_leave(__u32 span, __u64 slot, __u64 now_ns)
{
	return leave_function(span, slot, now_ns);
}

/*
 * The interval since the span's last hit on any thread. The clock is read after the last time,
 * so the interval cannot be negative; when another thread comes between, try again. Gives the
 * hit's time: a recording that has it has the same intervals.
 */
static __always_inline __u64 add_interval(__u32 span)
{
	struct qbpf_span_counts *sc = bpf_map_lookup_elem(&span_counts, &span);

	if (!sc)
		return bpf_ktime_get_ns();
#pragma clang loop unroll(disable)
	for (int i = 0; i < EXCHANGE_TRIES; i++) {
		__u64 last = *(volatile __u64 *)&sc->last_ns, now = bpf_ktime_get_ns();

		if (__sync_val_compare_and_swap(&sc->last_ns, last, now) != last)
			continue;
		if (last)
			value_add(span, now - last, 0);
		return now;
	}
	__sync_fetch_and_add(&sc->hist_overflow, 1);
	return bpf_ktime_get_ns();
}

/* A thread whose frames matter only if it has any; a recording knows threads by their storage. */
static __always_inline struct qbpf_thread *thread_if_any(void)
{
	return thread_get(cfg_stream ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

static __always_inline int instant(struct pt_regs *ctx, __u32 span)
{
	__u64 now_ns = add_interval(span);
	struct qbpf_thread *t = thread_if_any();
	__u32 parent = QBPF_NODE_ROOT, node;

	if (t) {
		purge_marker(t, ctx);
		if (t->depth)
			parent = frame_at(t, t->depth - 1)->node;
	}
	node = node_of(parent, span);
	instant_add(span, node);
	if (cfg_stream) {
		struct qbpf_record r = {
		    .type = QBPF_RECORD_INSTANT,
		    .span = span,
		    .node = node,
		    .start_ns = now_ns,
		    .end_ns = now_ns,
		};

		stream_alone(t, &r);
	}
	return 0;
}

static __always_inline const struct qbpf_arg *site_arg(__u64 cookie)
{
	__u32 id = QBPF_COOKIE_SITE(cookie);
	struct qbpf_site *site = bpf_map_lookup_elem(&sites, &id);

	return site ? &site->arg : NULL;
}

static __always_inline int value(struct pt_regs *ctx, __u64 cookie, __u64 now_ns)
{
	const struct qbpf_arg *a = site_arg(cookie);
	__u32 span = QBPF_COOKIE_SPAN(cookie), sign = 0;
	__u64 v;

	if (!a || !read_arg(ctx, a, &v)) {
		count_span(span, unreadable);
		return 0;
	}
	if (cfg_stream) {
		struct qbpf_record r = {
		    .type = QBPF_RECORD_VALUE,
		    .span = span,
		    .start_ns = now_ns,
		    .end_ns = now_ns,
		    .arg = v,
		};
		struct qbpf_thread *t = thread_if_any();

		if (t)
			purge_marker(t, ctx);
		stream_alone(t, &r);
	}
	if (a->flags & QBPF_ARG_FLOAT)
		return value_add_f64(span, v);
	if (a->flags & QBPF_ARG_SIGNED && (__s64)v < 0) {
		v = -v;
		sign = QBPF_HIST_NEGATIVE;
	}
	return value_add(span, v, sign);
}

static __always_inline bool open_key(struct pt_regs *ctx, __u64 cookie, struct qbpf_open_key *key)
{
	const struct qbpf_arg *a = site_arg(cookie);

	key->span = QBPF_COOKIE_SPAN(cookie);
	key->tgid = bpf_get_current_pid_tgid() >> 32;
	if (a && read_arg(ctx, a, &key->value))
		return true;
	count_span(key->span, unreadable);
	return false;
}

static __always_inline int begin_key(struct pt_regs *ctx, __u64 cookie)
{
	struct qbpf_open open = {.tid = bpf_get_current_pid_tgid()};
	struct qbpf_open_key key = {};
	int err; /* see create() in cells.bpf.c */

	if (!open_key(ctx, cookie, &key))
		return 0;
	open.start_ns = bpf_ktime_get_ns();
	err = bpf_map_update_elem(&keyed, &key, &open, BPF_NOEXIST);
	if (err == -EEXIST) {
		count_span(key.span, key_restarts);
		err = bpf_map_update_elem(&keyed, &key, &open, BPF_ANY);
	}
	if (err)
		count_span(key.span, key_overflow);
	return 0;
}

static __always_inline int end_key(struct pt_regs *ctx, __u64 cookie, __u64 now_ns)
{
	struct qbpf_open_key key = {};
	__u32 begin_tid = 0;
	struct qbpf_open *open;
	__u64 ns = 0;

	if (!open_key(ctx, cookie, &key))
		return 0;
	open = bpf_map_lookup_elem(&keyed, &key);
	if (open) {
		ns = now_ns - open->start_ns;
		begin_tid = open->tid;
	}
	/* Of several threads that end the same key, the one that removes it counts. */
	if (!open || bpf_map_delete_elem(&keyed, &key)) {
		count_span(key.span, orphan_ends);
		return 0;
	}
	if ((__s64)ns < 0)
		ns = 0;
	if (cfg_stream) {
		struct qbpf_record r = {
		    .type = QBPF_RECORD_KEYED,
		    .span = key.span,
		    .begin_tid = begin_tid,
		    .start_ns = now_ns - ns,
		    .end_ns = now_ns,
		    .arg = key.value,
		};

		stream_alone(thread_if_any(), &r);
	}
	return value_add(key.span, ns, 0);
}

SEC("uprobe")
int on_site(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), now_ns = 0;
	__u32 span = QBPF_COOKIE_SPAN(cookie), role = QBPF_COOKIE_ROLE(cookie);

	if (role == QBPF_ROLE_END || role == QBPF_ROLE_RET_INSN || role == QBPF_ROLE_TAIL_JUMP ||
	    role == QBPF_ROLE_KEY_END || (cfg_stream && role == QBPF_ROLE_VALUE))
		now_ns = bpf_ktime_get_ns();
	if (not_ours(span))
		return 0;
	switch (role) {
	case QBPF_ROLE_BEGIN:
		return begin_marker(ctx, cookie);
	case QBPF_ROLE_END:
		return end_marker(ctx, span, now_ns);
	case QBPF_ROLE_ENTRY:
	case QBPF_ROLE_ENTRY_INSN:
		return enter_function(cookie, ctx->sp);
	case QBPF_ROLE_RET_INSN:
	case QBPF_ROLE_TAIL_JUMP:
		return leave_function(span, ctx->sp, now_ns);
	case QBPF_ROLE_INSTANT:
		return instant(ctx, span);
	case QBPF_ROLE_VALUE:
		return value(ctx, cookie, now_ns);
	case QBPF_ROLE_KEY_BEGIN:
		return begin_key(ctx, cookie);
	case QBPF_ROLE_KEY_END:
		return end_key(ctx, cookie, now_ns);
	}
	return 0;
}

/* The return address has been taken off the stack: its slot is just below. */
SEC("uretprobe")
int on_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 span = QBPF_COOKIE_SPAN(bpf_get_attach_cookie(ctx));

	if (not_ours(span))
		return 0;
	return leave_function(span, ctx->sp - 8, now_ns);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions of CUDA: spans as any function's, and what they were asked to do. The arguments are read
 * at the entry and kept with the thread; when the call returns, its code says whether it was done:
 * bytes, by direction, and launches, by kernel and grid, are added up then, with the call's time.
 *
 * A call inside another call (the driver's inside the runtime's) is part of that one: it has a span
 * and no figures. A call inside one of the same function (a library that stands before the real one, a
 * twin that calls its brother) has not even a span: it is the same call.
 */
#include "frames.bpf.h"

/* The loader sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct qbpf_cuda_site);
} cuda_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct qbpf_cuda_thread);
} cuda_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct qbpf_cuda_key);
	__type(value, struct qbpf_cuda_cell);
} cuda_cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct qbpf_cuda_key);
	__type(value, struct qbpf_cuda_cell);
} cuda_launches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct qbpf_cuda_handle_key);
	__type(value, struct qbpf_cuda_handle);
} cuda_handles SEC(".maps");

/* Calls of which some figure found no room, or that could not be followed to their end. */
__u64 stat_cuda_lost = 0;
/* Names of handles that found no room. */
__u64 stat_cuda_names_lost = 0;

/* What the calling convention gives at a function's entry. */
struct cuda_regs {
	__u64 r[8]; /* slots 1 to 6 */
	__u64 sp;
	__u64 caller;
};

#define STACK_SLOT 7 /* the first that lies on the stack, above the return address */

/* One argument; 0: it could not be read. */
__noinline int cuda_arg(struct cuda_regs *regs, __u32 slot, __u32 off, bool deref, __u64 *v)
{
	__u64 at;

	if (!regs || !v || !slot)
		return 0;
	if (slot >= STACK_SLOT) {
		at = regs->sp + 8 * (slot - STACK_SLOT + 1);
		if (bpf_probe_read_user(v, sizeof(*v), (void *)at))
			return 0;
	} else {
		*v = regs->r[(slot - 1) & 7];
	}
	if (!deref)
		return 1;
	at = *v + off;
	return !bpf_probe_read_user(v, sizeof(*v), (void *)at);
}

#define ARG(regs, a, v) cuda_arg(regs, (a).slot, (a).off, (a).deref, v)

/* Is one of the memories an array? Then the width counts elements of a size that only CUDA knows. */
static __always_inline bool has_array(struct cuda_regs *regs, const struct qbpf_cuda_site *s)
{
	__u64 v = 0;

	for (int i = 0; i < 2; i++)
		if (s->array[i].slot && (!ARG(regs, s->array[i], &v) || v))
			return true;
	return false;
}

__noinline int cuda_bytes(struct cuda_regs *regs, const struct qbpf_cuda_site *s,
			  struct qbpf_cuda_open *o)
{
	__u64 v = 0, bytes;

	if (!regs || !s || !o)
		return 0;
	if (!s->bytes[0].slot || has_array(regs, s))
		return 0;
	bytes = s->scale ? s->scale : 1;
	for (int i = 0; i < 3 && s->bytes[i].slot; i++) {
		if (!ARG(regs, s->bytes[i], &v))
			return 0;
		bytes *= s->flags & QBPF_CUDA_SIZE32 ? (__u32)v : v;
	}
	o->bytes = bytes;
	o->flags |= QBPF_CUDA_SIZED;
	return 0;
}

/* CUmemorytype: 1 host, 2 device, 3 array, 4 unified. */
static __always_inline __u32 direction(__u32 from, __u32 to)
{
	if (from < 1 || from > 3 || to < 1 || to > 3)
		return QBPF_CUDA_DEFAULT;
	return (from == 1 ? 0 : 2) + (to == 1 ? 0 : 1);
}

__noinline int cuda_direction(struct cuda_regs *regs, const struct qbpf_cuda_site *s,
			      struct qbpf_cuda_open *o)
{
	__u64 from = 0, to = 0;

	if (!regs || !s || !o)
		return 0;
	o->dir = s->dir;
	if (s->kind.slot) {
		o->dir = QBPF_CUDA_DIR_UNKNOWN;
		if (ARG(regs, s->kind, &from) && (__u32)from <= QBPF_CUDA_DEFAULT)
			o->dir = from;
	} else if (s->flags & QBPF_CUDA_MEMORY_TYPES) {
		o->dir = QBPF_CUDA_DIR_UNKNOWN;
		if (ARG(regs, s->from, &from) && ARG(regs, s->to, &to))
			o->dir = direction(from, to);
	}
	return 0;
}

/* Handles 0, 1 and 2 are the default stream, the legacy one and the thread's own. */
__noinline int cuda_stream(struct cuda_regs *regs, const struct qbpf_cuda_site *s,
			   struct qbpf_cuda_open *o)
{
	__u64 v = 0;

	if (!regs || !s || !o)
		return 0;
	o->stream = QBPF_CUDA_STREAM_NONE;
	if (s->flags & QBPF_CUDA_NO_STREAM || (s->stream.slot && !ARG(regs, s->stream, &v)))
		return 0;
	if (v > 2)
		o->stream = QBPF_CUDA_STREAM_OWN;
	else if (v == 2 || (!v && s->flags & QBPF_CUDA_PER_THREAD))
		o->stream = QBPF_CUDA_STREAM_PER_THREAD;
	else
		o->stream = QBPF_CUDA_STREAM_LEGACY;
	return 0;
}

__noinline int cuda_launch(struct cuda_regs *regs, const struct qbpf_cuda_site *s,
			   struct qbpf_cuda_open *o)
{
	__u64 v = 0;

	if (!regs || !s || !o)
		return 0;
	o->kernel = ARG(regs, s->kernel, &v) ? v : 0;
	o->caller = regs->caller;
	switch (s->grid) {
	case QBPF_CUDA_GRID_DIM3:
		o->grid[0] = regs->r[1];
		o->grid[1] = regs->r[1] >> 32;
		o->grid[2] = regs->r[2];
		o->grid[3] = regs->r[3];
		o->grid[4] = regs->r[3] >> 32;
		o->grid[5] = regs->r[4];
		break;
	case QBPF_CUDA_GRID_SIX:
		for (int i = 0; i < 5; i++)
			o->grid[i] = regs->r[i + 1];
		o->grid[5] = cuda_arg(regs, STACK_SLOT, 0, false, &v) ? v : 0;
		break;
	case QBPF_CUDA_GRID_CONFIG:
		if (bpf_probe_read_user(o->grid, sizeof(o->grid), (void *)regs->r[0]))
			__builtin_memset(o->grid, 0, sizeof(o->grid));
		break;
	}
	return 0;
}

static __always_inline void lookup_args(struct cuda_regs *regs, const struct qbpf_cuda_site *s,
					struct qbpf_cuda_open *o)
{
	__u64 v = 0;

	o->kernel = ARG(regs, s->out, &v) ? v : 0;
	v = 0;
	if (s->name.slot) {
		o->caller = ARG(regs, s->name, &v) ? v : 0;
		o->flags |= QBPF_CUDA_NAMED;
	}
	if (s->kernel.slot)
		o->bytes = ARG(regs, s->kernel, &v) ? v : 0;
	if (s->flags & QBPF_CUDA_KERNEL_ALIAS)
		o->flags |= QBPF_CUDA_ALIAS;
}

static __always_inline struct qbpf_cuda_open *open_at(struct qbpf_cuda_thread *ct, __u32 frame)
{
	barrier_var(frame);
	return &ct->open[frame & (QBPF_CUDA_OPEN_MAX - 1)];
}

/* Is the call that was put there still running? */
static __always_inline bool is_open(struct qbpf_thread *t, const struct qbpf_cuda_open *o)
{
	struct qbpf_frame *f;

	if (!o->slot || o->frame >= t->depth)
		return false;
	f = frame_at(t, o->frame);
	return f->sp == o->slot && is_function(f->cookie);
}

static __always_inline bool inside_call(struct qbpf_thread *t, struct qbpf_cuda_thread *ct)
{
	for (int i = 0; i < QBPF_CUDA_OPEN_MAX; i++)
		if (is_open(t, &ct->open[i]))
			return true;
	return false;
}

/* Is the thread in a call of this very function, above the slot? */
static __always_inline bool in_same_call(struct qbpf_thread *t, struct qbpf_cuda_thread *ct,
					 __u32 span, __u64 slot)
{
	struct qbpf_frame *f;

	if (!t->depth)
		return false;
	f = frame_at(t, t->depth - 1);
	return QBPF_COOKIE_SPAN(f->cookie) == span && f->sp > slot &&
	       is_open(t, open_at(ct, t->depth - 1));
}

__noinline int cuda_enter(struct cuda_regs *regs, __u64 cookie)
{
	__u32 site_id = QBPF_COOKIE_SITE(cookie), span = QBPF_COOKIE_SPAN(cookie);
	struct task_struct *task = bpf_get_current_task_btf();
	struct qbpf_thread *t = thread_get(BPF_LOCAL_STORAGE_GET_F_CREATE);
	const struct qbpf_cuda_site *s;
	struct qbpf_cuda_thread *ct;
	struct qbpf_cuda_open *o;
	bool nested;

	if (!regs)
		return 0;
	ct = bpf_task_storage_get(&cuda_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	s = bpf_map_lookup_elem(&cuda_sites, &site_id);
	if (!t || !ct || !s) {
		__sync_fetch_and_add(&stat_cuda_lost, 1);
		return function_enter(cookie, regs->sp);
	}
	purge(t, regs->sp);
	if (in_same_call(t, ct, span, regs->sp))
		return 0;
	nested = inside_call(t, ct);
	o = open_at(ct, t->depth);
	o->flags = nested ? QBPF_CUDA_NESTED : 0;
	o->class = s->class;
	o->frame = t->depth;
	o->slot = regs->sp;
	if (s->class == QBPF_CUDA_LOOKUP) {
		lookup_args(regs, s, o);
	} else if (!nested) {
		o->bytes = 0;
		cuda_bytes(regs, s, o);
		cuda_direction(regs, s, o);
		cuda_stream(regs, s, o);
		if (s->class == QBPF_CUDA_LAUNCH)
			cuda_launch(regs, s, o);
	}
	return function_enter(cookie, regs->sp);
}

static const struct qbpf_cuda_cell new_cell = {};

/* How a call ended. */
struct cuda_end {
	__u64 ns;
	__u32 code;
	bool told; /* code is known */
};

static __always_inline void cell_add(struct qbpf_cuda_cell *c, const struct qbpf_cuda_open *o,
				     const struct cuda_end *end)
{
	bool failed = end->told && end->code, sized = o->flags & QBPF_CUDA_SIZED;

	__sync_fetch_and_add(&c->count, 1);
	if (!end->told)
		__sync_fetch_and_add(&c->untold, 1);
	if (!sized)
		__sync_fetch_and_add(&c->unsized_count, 1);
	if (failed) {
		__sync_fetch_and_add(&c->failed, 1);
		if (sized)
			__sync_fetch_and_add(&c->failed_bytes, o->bytes);
		return;
	}
	__sync_fetch_and_add(&c->ns, end->ns);
	if (sized)
		__sync_fetch_and_add(&c->bytes, o->bytes);
}

/* See create() in cells.bpf.c; a failure may also be a full map. */
#define CELL(map, key)                                                                             \
	({                                                                                         \
		struct qbpf_cuda_cell *c_ = bpf_map_lookup_elem(map, key);                         \
		for (int i_ = 0; !c_ && i_ < 3; i_++) {                                            \
			int err_ = bpf_map_update_elem(map, key, &new_cell, BPF_NOEXIST);          \
			c_ = bpf_map_lookup_elem(map, key);                                        \
			if (err_ == -E2BIG)                                                        \
				break;                                                             \
		}                                                                                  \
		c_;                                                                                \
	})

__noinline int cuda_count_error(__u32 span, __u32 code)
{
	struct qbpf_cuda_key key = {.span = span, .code = code, .what = QBPF_CUDA_CELL_ERROR};
	struct qbpf_cuda_cell *c = CELL(&cuda_cells, &key);

	if (c)
		__sync_fetch_and_add(&c->count, 1);
	else
		__sync_fetch_and_add(&stat_cuda_lost, 1);
	return 0;
}

__noinline int cuda_count_bytes(__u32 span, struct qbpf_cuda_open *o, struct cuda_end *end)
{
	struct qbpf_cuda_key key = {.span = span, .what = QBPF_CUDA_CELL_BYTES};
	struct qbpf_cuda_cell *c;

	if (!o || !end)
		return 0;
	key.dir = o->dir;
	key.stream = o->stream;
	c = CELL(&cuda_cells, &key);
	if (!c) {
		__sync_fetch_and_add(&stat_cuda_lost, 1);
		return 0;
	}
	cell_add(c, o, end);
	if (o->flags & QBPF_CUDA_SIZED && !(end->told && end->code) &&
	    !bytes_add(QBPF_CUDA_BYTES(span, o->dir & (QBPF_CUDA_DIRS - 1)), o->bytes))
		__sync_fetch_and_add(&stat_cuda_lost, 1);
	return 0;
}

/* A grid that finds no room is counted with its kernel, whatever the grid. */
__noinline int cuda_count_launch(__u32 span, struct qbpf_cuda_open *o, struct cuda_end *end)
{
	struct qbpf_cuda_key key = {.span = span, .what = QBPF_CUDA_CELL_LAUNCH};
	struct qbpf_cuda_cell *c;

	if (!o || !end)
		return 0;
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	key.kernel = o->kernel;
	key.caller = o->caller;
	key.stream = o->stream;
	__builtin_memcpy(key.grid, o->grid, sizeof(key.grid));
	c = CELL(&cuda_launches, &key);
	if (!c) {
		__builtin_memset(key.grid, 0, sizeof(key.grid));
		c = CELL(&cuda_cells, &key);
	}
	if (c)
		cell_add(c, o, end);
	else
		__sync_fetch_and_add(&stat_cuda_lost, 1);
	return 0;
}

/*
 * A kernel's handle has been given out: what it is called, or which host function it is of. The value is
 * put together in the thread's own storage, which is asked for here: of a pointer that a function was
 * given the verifier knows no more than that there is memory, and before Linux 6.2 that is not enough
 * for a map's new value.
 */
__noinline int cuda_keep_handle(struct qbpf_cuda_open *o)
{
	struct qbpf_cuda_handle_key key = {.tgid = bpf_get_current_pid_tgid() >> 32};
	struct task_struct *task = bpf_get_current_task_btf();
	struct qbpf_cuda_thread *ct = bpf_task_storage_get(&cuda_threads, task, NULL, 0);
	struct qbpf_cuda_handle *h;

	if (!ct || !o)
		return 0;
	if (bpf_probe_read_user(&key.handle, sizeof(key.handle), (void *)o->kernel) || !key.handle)
		return 0;
	h = &ct->handle;
	__builtin_memset(h, 0, sizeof(*h));
	h->kernel = o->flags & QBPF_CUDA_NAMED ? 0 : o->bytes;
	h->alias = !!(o->flags & QBPF_CUDA_ALIAS);
	if (o->flags & QBPF_CUDA_NAMED &&
	    bpf_probe_read_user_str(h->name, sizeof(h->name), (void *)o->caller) < 0)
		h->name[0] = 0;
	if (bpf_map_update_elem(&cuda_handles, &key, h, BPF_ANY))
		__sync_fetch_and_add(&stat_cuda_names_lost, 1);
	return 0;
}

static __always_inline void finish(struct qbpf_cuda_open *o, __u32 span, struct cuda_end *end)
{
	bool failed = end->told && end->code;

	if (o->class == QBPF_CUDA_LOOKUP && !failed)
		cuda_keep_handle(o);
	if (o->flags & QBPF_CUDA_NESTED)
		return;
	if (failed)
		cuda_count_error(span, end->code);
	switch (o->class) {
	case QBPF_CUDA_LAUNCH:
		cuda_count_launch(span, o, end);
		break;
	case QBPF_CUDA_COPY:
	case QBPF_CUDA_MEMSET:
	case QBPF_CUDA_ALLOC:
		cuda_count_bytes(span, o, end);
		break;
	}
}

__noinline int cuda_leave(__u32 span, __u64 slot, __u64 now_ns, __u32 code, bool told)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cuda_end end = {.code = code, .told = told};
	struct qbpf_thread *t = thread_get(0);
	struct qbpf_cuda_thread *ct;
	struct qbpf_cuda_open *o;
	struct qbpf_frame *f;
	int i;

	ct = bpf_task_storage_get(&cuda_threads, task, NULL, 0);
	if (!t || !ct || !t->depth)
		return function_leave(span, slot, now_ns);
	i = t->depth - 1;
	f = frame_at(t, i);
	if (f->sp != slot || QBPF_COOKIE_SPAN(f->cookie) != span) {
		i = frames_find_function(t, span, slot);
		if (i < 0 && in_same_call(t, ct, span, slot))
			return 0;
	}
	if (i >= 0) {
		o = open_at(ct, i);
		if (o->slot == slot && o->frame == (__u32)i) {
			end.ns = now_ns - frame_at(t, i)->start_ns;
			if ((__s64)end.ns < 0)
				end.ns = 0;
			finish(o, span, &end);
			o->slot = 0;
		} else {
			__sync_fetch_and_add(&stat_cuda_lost, 1);
		}
	}
	return function_leave(span, slot, now_ns);
}

SEC("uprobe")
int on_cuda(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), now_ns = 0;
	__u32 span = QBPF_COOKIE_SPAN(cookie), role = QBPF_COOKIE_ROLE(cookie);
	struct cuda_regs regs = {};

	if (role != QBPF_ROLE_ENTRY && role != QBPF_ROLE_ENTRY_INSN) {
		now_ns = bpf_ktime_get_ns();
		if (not_ours(span))
			return 0;
		return cuda_leave(span, ctx->sp, now_ns, ctx->ax, role == QBPF_ROLE_RET_INSN);
	}
	if (not_ours(span))
		return 0;
	regs.r[0] = ctx->di;
	regs.r[1] = ctx->si;
	regs.r[2] = ctx->dx;
	regs.r[3] = ctx->cx;
	regs.r[4] = ctx->r8;
	regs.r[5] = ctx->r9;
	regs.sp = ctx->sp;
	if (bpf_probe_read_user(&regs.caller, sizeof(regs.caller), (void *)ctx->sp))
		regs.caller = 0;
	return cuda_enter(&regs, cookie);
}

SEC("uretprobe")
int on_cuda_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 span = QBPF_COOKIE_SPAN(bpf_get_attach_cookie(ctx));

	if (not_ours(span))
		return 0;
	return cuda_leave(span, ctx->sp - 8, now_ns, ctx->ax, true);
}

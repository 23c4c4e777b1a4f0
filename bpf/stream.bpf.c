// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recording: from what ends to the ring buffer, at once or by way of a history. See stream.bpf.h. */
#include "frames.bpf.h"

/* Unlike count_span's, these counters are each CPU's own: with --sample they are no rare path. */
#define count_stream(span_, field, n)                                                              \
	do {                                                                                       \
		__u32 id_ = (span_);                                                               \
		struct qbpf_stream_counts *sc_ = bpf_map_lookup_elem(&stream_counts, &id_);        \
		if (sc_)                                                                           \
			__sync_fetch_and_add(&sc_->field, n);                                      \
	} while (0)

static __always_inline __u64 wake_flags(void)
{
	if (stream_woken || bpf_ringbuf_query(&stream, BPF_RB_AVAIL_DATA) < cfg_stream_wake)
		return BPF_RB_NO_WAKEUP;
	stream_woken = true;
	__sync_fetch_and_add(&stat_stream_wakeups, 1);
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline void emit(struct qbpf_thread *t, struct qbpf_record *r)
{
	long err;

	if (!t->streamed)
		r->flags |= QBPF_RECORD_FIRST;
	err = bpf_ringbuf_output(&stream, r, sizeof(*r), wake_flags());
	if (!err)
		t->streamed = 1;
	else
		/* An open span is not counted as one, so its loss is nobody's. */
		count_stream(r->type == QBPF_RECORD_OPEN ? 0 : r->span, lost, 1);
}

struct settle {
	struct qbpf_thread *t;
	struct qbpf_history *h;
	__u32 from;
	bool all, lose;
};

static __always_inline struct qbpf_record *record_at(struct qbpf_history *h, __u32 i)
{
	barrier_var(i);
	return &h->records[i & (QBPF_HISTORY_MAX - 1)];
}

static long settle_one(__u32 i, struct settle *s)
{
	struct qbpf_record *r;

	if (i >= s->h->n)
		return 1;
	r = record_at(s->h, i);
	if (s->all || r->flags & QBPF_RECORD_KEEP) {
		count_stream(r->span, skipped, -1);
		emit(s->t, r);
	} else if (s->lose) {
		count_stream(r->span, skipped, -1);
		count_stream(r->span, lost, 1);
	}
	return 0;
}

/* Empties the history: all of it, or what is to be kept, goes to the ring. */
__noinline int history_settle(struct qbpf_thread *t, struct qbpf_history *h, bool all, bool lose)
{
	struct settle s = {.t = t, .h = h, .all = all, .lose = lose};

	if (!cfg_slow || !t || !h || !h->n)
		return 0;
	bpf_loop(QBPF_HISTORY_MAX, settle_one, &s, 0);
	h->base += h->n;
	h->n = 0;
	return 0;
}

static long keep_one(__u32 i, struct settle *s)
{
	i += s->from;
	if (i >= s->h->n)
		return 1;
	record_at(s->h, i)->flags |= QBPF_RECORD_KEEP;
	return 0;
}

/* The tree of a slow span, whose begin left `mark`. */
__noinline int history_keep(struct qbpf_history *h, __u32 mark)
{
	struct settle s = {.h = h};

	if (!cfg_slow || !h)
		return 0;
	/* Settled meanwhile: what is there now came later. */
	s.from = (__s32)(mark - h->base) > 0 ? mark - h->base : 0;
	bpf_loop(QBPF_HISTORY_MAX, keep_one, &s, 0);
	return 0;
}

static __always_inline void history_append(struct qbpf_thread *t, struct qbpf_history *h,
					   const struct qbpf_record *r)
{
	if (h->n >= QBPF_HISTORY_MAX)
		history_settle(t, h, false, true);
	*record_at(h, h->n) = *r;
	h->n++;
}

/* The outermost watched span is over its limit already, although it is still open. */
static __always_inline bool outer_is_slow(struct qbpf_thread *t, const struct qbpf_history *h,
					  __u64 now_ns)
{
	return now_ns - frame_at(t, h->outer)->start_ns >= h->min_ns;
}

/* 0: not watched; else the least time in ns that is slow, plus 1. */
static __always_inline __u64 slow_limit(__u32 span)
{
	__u64 *limit = bpf_map_lookup_elem(&slow_limits, &span);

	return limit ? *limit : 0;
}

static __always_inline void emit_skipped(struct qbpf_thread *t, struct qbpf_record *r)
{
	count_stream(r->span, skipped, -1);
	emit(t, r);
}

__noinline int stream_add_slow(struct qbpf_thread *t, struct qbpf_record *r, __u32 mark, __u32 how)
{
	struct qbpf_history *h;
	bool slow = false;

	if (!cfg_slow || !t || !r)
		return 0;
	if (how & HOW_WATCHED) {
		__u64 limit = slow_limit(r->span);

		slow = limit && r->end_ns - r->start_ns >= limit - 1;
	}
	if (slow)
		count_stream(r->span, over, 1);
	count_stream(r->span, skipped, 1);
	if (!(how & (HOW_WATCHED | HOW_INSIDE)))
		return 0;
	/* A keyed span has no tree: what runs on its thread need not belong to it. */
	if (r->type == QBPF_RECORD_KEYED && !(how & HOW_INSIDE)) {
		if (slow)
			emit_skipped(t, r);
		return 0;
	}
	h = bpf_task_storage_get(&histories, bpf_get_current_task_btf(), NULL, 0);
	if (!h) {
		/* There was no memory for one: what is slow by itself is still seen. */
		if (slow) {
			emit_skipped(t, r);
		} else {
			count_stream(r->span, skipped, -1);
			count_stream(r->span, lost, 1);
		}
		return 0;
	}
	if (!(how & HOW_INSIDE)) {
		history_settle(t, h, slow, false);
		if (slow)
			emit_skipped(t, r);
		return 0;
	}
	if (outer_is_slow(t, h, r->end_ns)) {
		history_settle(t, h, true, false);
		emit_skipped(t, r);
		return 0;
	}
	if (slow) {
		r->flags |= QBPF_RECORD_KEEP;
		if (r->type == QBPF_RECORD_SPAN)
			history_keep(h, mark);
	}
	history_append(t, h, r);
	return 0;
}

__noinline int stream_add(struct qbpf_thread *t, struct qbpf_record *r, __u32 mark, __u32 how)
{
	__u64 id;

	if ((!cfg_stream && !cfg_spans) || !r)
		return 0;
	if (!t) {
		count_stream(r->span, lost, 1);
		return 0;
	}
	if (cfg_sample > 1 && how & HOW_SKIP) {
		count_stream(r->span, skipped, 1);
		return 0;
	}
	id = bpf_get_current_pid_tgid();
	r->size = sizeof(*r);
	r->tgid = id >> 32;
	r->tid = id;
	if (cfg_slow)
		return stream_add_slow(t, r, mark, how);
	emit(t, r);
	return 0;
}

/* Whether the thread's next outermost thing is left out. */
static __always_inline bool sample_skips(struct qbpf_thread *t)
{
	__u32 turn = t->sample_turn;

	t->sample_turn = turn + 1 < cfg_sample ? turn + 1 : 0;
	return turn != 0;
}

/* What frames[i], just opened, means to the recording; needed for --sample and --slow only. */
__noinline int stream_open(struct qbpf_thread *t, __u32 i, __u32 span)
{
	struct qbpf_history *h;
	struct qbpf_frame *f;
	__u64 limit;

	if (!cfg_stream || !t)
		return 0;
	f = frame_at(t, i);
	f->skip = 0;
	f->inside = 0;
	f->watched = 0;
	if (i) {
		const struct qbpf_frame *below = frame_at(t, i - 1);

		f->skip = below->skip;
		f->inside = below->inside;
	} else if (cfg_sample > 1) {
		f->skip = sample_skips(t);
	}
	if (!cfg_slow || f->skip)
		return 0;
	limit = slow_limit(span);
	if (!limit)
		return 0;
	h = bpf_task_storage_get(&histories, bpf_get_current_task_btf(), NULL,
				 f->inside ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (h && !f->inside) {
		/* Something may be left of one that was abandoned. */
		history_settle(t, h, false, false);
		h->outer = i;
		h->min_ns = limit - 1;
	}
	f->mark = h ? h->base + h->n : 0;
	f->watched = 1;
	f->inside++;
	return 0;
}

/* An instant, a value, or the end of a keyed span. */
__noinline int stream_alone(struct qbpf_thread *t, struct qbpf_record *r)
{
	__u32 how = 0;

	if (!cfg_stream || !r)
		return 0;
	if (t && t->depth) {
		const struct qbpf_frame *f = frame_at(t, t->depth - 1);

		r->depth = t->depth;
		how = (f->skip ? HOW_SKIP : 0) | (f->inside ? HOW_INSIDE : 0);
	} else if (t && cfg_sample > 1 && sample_skips(t)) {
		how = HOW_SKIP;
	}
	if (cfg_slow && r->type == QBPF_RECORD_KEYED)
		how |= HOW_WATCHED;
	return stream_add(t, r, 0, how);
}

/* Where the open frames of a thread go to when it ends or the recording does. */
struct over {
	struct qbpf_thread *t;
	struct seq_file *seq; /* NULL: to the ring */
	struct qbpf_record out;
	__u32 i;
};

static __always_inline void over_put(struct over *o, struct qbpf_record *r)
{
	if (o->seq)
		bpf_seq_write(o->seq, r, sizeof(*r));
	else
		emit(o->t, r);
	r->flags = 0;
}

static __always_inline void over_frame(struct over *o, const struct qbpf_frame *f)
{
	struct qbpf_record *r = &o->out;

	r->span = QBPF_COOKIE_SPAN(f->cookie);
	r->start_ns = f->start_ns;
	if (!r->span || !r->start_ns || f->skip || (cfg_slow && !f->inside))
		return;
	r->node = f->node;
	r->child_ns = f->child_ns;
	over_put(o, r);
}

/* From the innermost, as they would end. */
static long over_nested(__u32 n __attribute__((unused)), struct over *o)
{
	if (!o->i)
		return 1;
	o->i--;
	o->out.depth = o->i;
	over_frame(o, frame_at(o->t, o->i));
	return 0;
}

static long over_aside(__u32 i, struct over *o)
{
	if (i >= o->t->naside)
		return 1;
	o->out.depth = 0;
	over_frame(o, aside_at(o->t, i));
	return 0;
}

static __always_inline void over_frames(struct over *o)
{
	o->out.type = QBPF_RECORD_OPEN;
	o->out.size = sizeof(o->out);
	o->i = o->t->depth;
	bpf_loop(QBPF_FRAMES_MAX, over_nested, o, 0);
	bpf_loop(QBPF_ASIDE_MAX, over_aside, o, 0);
}

/* True if what the thread has open inside watched spans is to be recorded. */
static __always_inline bool over_is_slow(struct qbpf_thread *t, const struct qbpf_history *h,
					 __u64 now_ns)
{
	return t->depth && frame_at(t, t->depth - 1)->inside && outer_is_slow(t, h, now_ns);
}

/*
 * The thread ends (EXIT), or its program does (EXEC): what it leaves open, then that. `tid` is what it
 * had until now; exec gives the first thread's to whoever calls it.
 */
__noinline int stream_thread_over(struct qbpf_thread *t, __u32 type, __u32 tid)
{
	struct qbpf_record r = {.type = type, .size = sizeof(r)};
	__u64 id = bpf_get_current_pid_tgid();
	struct over o = {.t = t};
	bool open = true;

	if (!cfg_stream || !t)
		return 0;
	r.end_ns = o.out.end_ns = bpf_ktime_get_ns();
	r.tgid = o.out.tgid = id >> 32;
	r.tid = o.out.tid = tid;
	if (cfg_slow) {
		struct qbpf_history *h;

		h = bpf_task_storage_get(&histories, bpf_get_current_task_btf(), NULL, 0);
		open = h && over_is_slow(t, h, r.end_ns);
		if (h)
			history_settle(t, h, open, false);
	}
	if (open)
		over_frames(&o);
	if (t->streamed) {
		bpf_get_current_comm(r.comm, sizeof(r.comm));
		emit(t, &r);
	}
	/* After exec the same task is another thread to the trace. */
	t->streamed = 0;
	return 0;
}

struct rest {
	struct over *o;
	struct qbpf_history *h;
	bool all;
};

static long rest_one(__u32 i, struct rest *s)
{
	struct qbpf_record *r;

	if (i >= s->h->n)
		return 1;
	r = record_at(s->h, i);
	if (s->all || r->flags & QBPF_RECORD_KEEP)
		bpf_seq_write(s->o->seq, r, sizeof(*r));
	return 0;
}

/*
 * What the targets' threads have in their histories and have open, once nothing is counted any
 * more. It changes nothing, since a reader's buffer may be full and the same task be shown again.
 */
SEC("?iter/task")
int on_stream_end(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct over o = {.seq = ctx->meta->seq};
	bool open = true;

	if (!cfg_stream || !task || !is_target(task->tgid))
		return 0;
	o.t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!o.t)
		return 0;
	o.out.end_ns = bpf_ktime_get_ns();
	o.out.tgid = task->tgid;
	o.out.tid = task->pid;
	if (!o.t->streamed)
		o.out.flags = QBPF_RECORD_FIRST;
	if (cfg_slow) {
		struct rest s = {.o = &o};

		s.h = bpf_task_storage_get(&histories, task, NULL, 0);
		if (!s.h)
			return 0;
		open = s.all = over_is_slow(o.t, s.h, o.out.end_ns);
		bpf_loop(QBPF_HISTORY_MAX, rest_one, &s, 0);
	}
	if (open)
		over_frames(&o);
	return 0;
}

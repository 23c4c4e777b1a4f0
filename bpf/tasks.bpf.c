// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes and threads that come, change and go: closes what they leave open, follows forks,
 * tells user space when to look again, and lists the frames that are open now.
 */
#include "frames.bpf.h"

static __always_inline void notify(__u32 type, __u32 tgid, __u32 tid, __u64 arg)
{
	struct qbpf_notice *n = bpf_ringbuf_reserve(&notices, sizeof(*n), 0);

	if (!n) {
		__sync_fetch_and_add(&stat_notices_lost, 1);
		return;
	}
	n->type = type;
	n->size = sizeof(*n);
	n->tgid = tgid;
	n->tid = tid;
	n->pad = 0;
	n->time_ns = bpf_ktime_get_ns();
	n->arg = arg;
	bpf_ringbuf_submit(n, 0);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *p)
{
	struct qbpf_thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32;

	if (t) {
		if (cfg_stream)
			stream_thread_over(t, QBPF_RECORD_EXIT, id);
		frames_drop_all(t);
	}
	/* Two last threads may both see 0 here; who takes the target off the list tells. */
	if (!BPF_CORE_READ(p, signal, live.counter) && !bpf_map_delete_elem(&targets, &tgid))
		notify(QBPF_NOTICE_EXIT, tgid, id, 0);
	return 0;
}

/*
 * Fields of tasks are read by BPF_CORE_READ: for each load through a typed pointer the verifier
 * searches the kernel's whole BTF, half a millisecond a piece.
 *
 * A child starts with no frames: a new task has no storage. User space is told of a child with
 * a copy of the target's memory even when it is not followed, because the copy has the target's
 * probes in it (Linux 6.18 does not undo optimised ones).
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, child_tgid = BPF_CORE_READ(child, tgid), one = 1;

	if (child_tgid == tgid || !is_target(tgid))
		return 0;
	if (cfg_follow)
		bpf_map_update_elem(&targets, &child_tgid, &one, BPF_ANY);
	else if (BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm))
		return 0;
	notify(QBPF_NOTICE_FORK, tgid, id, child_tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p, pid_t old_pid)
{
	struct qbpf_thread *t = bpf_task_storage_get(&threads, p, NULL, 0);
	__u64 id = bpf_get_current_pid_tgid();

	if (t) {
		if (cfg_stream)
			stream_thread_over(t, QBPF_RECORD_EXEC, old_pid);
		frames_drop_all(t);
	}
	if (is_target(id >> 32))
		notify(QBPF_NOTICE_EXEC, id >> 32, id, 0);
	return 0;
}

SEC("uprobe")
int on_ldso(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (is_target(id >> 32))
		notify(QBPF_NOTICE_MAPS, id >> 32, id, 0);
	return 0;
}

struct lister {
	struct qbpf_thread *t;
	struct seq_file *seq;
	struct qbpf_open_frame out;
};

static __always_inline void list_frame(struct lister *l, const struct qbpf_frame *f)
{
	l->out.span = QBPF_COOKIE_SPAN(f->cookie);
	l->out.start_ns = f->start_ns;
	if (!l->out.span || !l->out.start_ns)
		return;
	bpf_seq_write(l->seq, &l->out, sizeof(l->out));
	l->out.depth++;
}

static long list_open(__u32 i, struct lister *l)
{
	struct qbpf_frame *f;

	if (i >= l->t->depth)
		return 1;
	f = frame_at(l->t, i);
	l->out.slot = is_function(f->cookie) ? f->sp : 0;
	list_frame(l, f);
	return 0;
}

static long list_aside(__u32 i, struct lister *l)
{
	if (i >= l->t->naside)
		return 1;
	l->out.slot = 0;
	l->out.depth = 0;
	list_frame(l, aside_at(l->t, i));
	return 0;
}

/* The threads run on while this reads: a frame may be torn, so what looks so is left out. */
SEC("iter/task")
int on_open_frames(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct lister l = {.seq = ctx->meta->seq};

	if (!task || !is_target(task->tgid))
		return 0;
	l.t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!l.t)
		return 0;
	l.out.tgid = task->tgid;
	l.out.tid = task->pid;
	bpf_loop(QBPF_FRAMES_MAX, list_open, &l, 0);
	bpf_loop(QBPF_ASIDE_MAX, list_aside, &l, 0);
	return 0;
}

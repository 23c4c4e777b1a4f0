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
	__u32 tgid = p->tgid;

	if (t)
		frames_drop_all(t);
	/* Two last threads may both see 0 here; who takes the target off the list tells. */
	if (!p->signal->live.counter && !bpf_map_delete_elem(&targets, &tgid))
		notify(QBPF_NOTICE_EXIT, tgid, p->pid, 0);
	return 0;
}

/*
 * A child starts with no frames: a new task has no storage. User space is told of a child with
 * a copy of the target's memory even when it is not followed, because the copy has the target's
 * probes in it (Linux 6.18 does not undo optimised ones).
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = parent->tgid, child_tgid = child->tgid, one = 1;

	if (child_tgid == tgid || !is_target(tgid))
		return 0;
	if (cfg_follow)
		bpf_map_update_elem(&targets, &child_tgid, &one, BPF_ANY);
	else if (child->mm == parent->mm)
		return 0;
	notify(QBPF_NOTICE_FORK, tgid, parent->pid, child_tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *p)
{
	struct qbpf_thread *t = bpf_task_storage_get(&threads, p, NULL, 0);

	if (t)
		frames_drop_all(t);
	if (is_target(p->tgid))
		notify(QBPF_NOTICE_EXEC, p->tgid, p->pid, 0);
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

/* The threads run on while this reads: a frame may be torn, so what looks so is left out. */
SEC("iter/task")
int on_open_frames(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct qbpf_open_frame out = {};
	struct qbpf_thread *t;

	if (!task || !is_target(task->tgid))
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t)
		return 0;
	out.tgid = task->tgid;
	out.tid = task->pid;
	for (__u32 i = 0; i < QBPF_FRAMES_MAX && i < t->depth; i++) {
		struct qbpf_frame *f = frame_at(t, i);

		out.span = QBPF_COOKIE_SPAN(f->cookie);
		out.start_ns = f->start_ns;
		out.slot = is_function(f->cookie) ? f->sp : 0;
		if (!out.span || !out.start_ns)
			continue;
		bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
		out.depth++;
	}
	for (__u32 i = 0; i < QBPF_ASIDE_MAX && i < t->naside; i++) {
		struct qbpf_frame *f = aside_at(t, i);

		out.span = QBPF_COOKIE_SPAN(f->cookie);
		out.start_ns = f->start_ns;
		out.slot = 0;
		out.depth = 0;
		bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	}
	return 0;
}

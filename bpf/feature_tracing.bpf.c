// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the session's programs are made of, loaded and never attached:
 *
 *	tp_btf          ac4414b5ca47 "bpf: Attach raw_tp program with BTF via type name" (5.5)
 *	task iterator   eaaacd23910f "bpf: Add task and task/file iterator targets" (5.8)
 *	task storage    a10787e6d58c "bpf: Enable task local storage for tracing programs" (5.13)
 *	ring buffer     457f44363a88 "bpf: Implement BPF ring buffer and verifier support" (5.8)
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 *v = bpf_task_storage_get(&stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (v)
		bpf_ringbuf_output(&records, v, sizeof(*v), 0);
	return 0;
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		bpf_task_storage_delete(&stacks, task);
	return 0;
}

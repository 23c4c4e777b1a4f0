/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel knows of the current thread: its signal stack, its uprobes' trampoline. */
#ifndef QBPF_TASK_BPF_H
#define QBPF_TASK_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* Return probes of one thread that the kernel keeps track of (MAX_URETPROBE_DEPTH). */
#define URETPROBE_DEPTH 64

struct alt_stack {
	__u64 start, size;
};

static __always_inline void current_alt_stack(struct alt_stack *alt)
{
	struct task_struct *task = bpf_get_current_task_btf();

	alt->start = BPF_CORE_READ(task, sas_ss_sp);
	alt->size = BPF_CORE_READ(task, sas_ss_size);
}

/* As the kernel's own on_sig_stack(). */
static __always_inline bool on_alt_stack(const struct alt_stack *alt, __u64 sp)
{
	return sp > alt->start && sp - alt->start <= alt->size;
}

/* Where uretprobes return to, in this process; 0: it has none yet. */
static __always_inline __u64 return_trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xol_area *area;

	if (!task->mm)
		return 0;
	area = task->mm->uprobes_state.xol_area;
	return area ? area->vaddr : 0;
}

static __always_inline bool is_return_trampoline(__u64 slot)
{
	__u64 trampoline = return_trampoline(), ret = 0;

	if (!trampoline || bpf_probe_read_user(&ret, sizeof(ret), (void *)slot))
		return false;
	return ret == trampoline;
}

/* The kernel has its limit of return probes pending: one more would not be armed. */
static __always_inline bool return_probes_full(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct uprobe_task *utask = task->utask;

	return utask && utask->depth >= URETPROBE_DEPTH;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this host can do: kernel features found by trying, capabilities, lockdown. Each
 * feature names the kernel version that brought it. `qbpf doctor` prints the table; arming
 * reads it.
 */
#ifndef QBPF_TRACE_HOST_H
#define QBPF_TRACE_HOST_H

#include "err.h"
#include "plan/plan.h"

enum host_state { HOST_OK, HOST_WARN, HOST_FAIL };

struct host_check {
	const char *name; /* "BTF", "CAP_BPF", "uprobe_multi" ... */
	enum host_state state;
	char *found;   /* what is there */
	char *meaning; /* what it means for tracing */
	char *remedy;  /* what to do, NULL when nothing */
};

struct host {
	char *kernel, *cpu, *clocksource;
	unsigned int cpus;
	/* Effective, and in the initial user namespace. CAP_SYS_ADMIN includes BPF and PERFMON. */
	bool btf, cap_bpf, cap_perfmon, cap_sys_admin, cap_sys_ptrace, cap_checkpoint_restore;
	bool uprobe_multi;	  /* BPF links for many uprobes (6.6) */
	bool uprobe_multi_pid_ok; /* its pid filter takes all threads (fixed in 6.10) */
	bool uretprobe_syscall;	  /* 6.11 */
	bool nop5_optimised;	  /* 6.18: measured, or by version */
	bool task_storage, ringbuf, attach_cookie, tp_btf;
	bool guard_possible;	   /* bpf_probe_write_user: lockdown none, CAP_SYS_ADMIN */
	const char *lockdown;	   /* "none", "integrity", "confidentiality", "unknown" */
	struct host_check *checks; /* only after host__probe_full */
	size_t nchecks;
	unsigned int version; /* KERNEL_VERSION(a, b, c) */
	bool init_userns;
	int bpf_error;	  /* 0, or the -errno with which the kernel refuses any program */
	bool perf_uprobe; /* uprobes through perf events may be made: the fallback */
};

/* What a session needs to know, about 1 ms. Never fails for a missing feature. */
int host__probe(struct host **out, struct err *e);
/* The same and every row of `qbpf doctor`, tried on a child of its own: tens of ms. */
int host__probe_full(struct host **out, struct err *e);
void host__free(struct host *h);
/* The reduced form that preflight takes. */
void host__plan_kernel(const struct host *h, struct plan_kernel *k);
/*
 * Does a forked child die on a nop5 that its parent had probed? Tried on a child of qbpf's own,
 * tens of ms: asked only for targets that can fork (plan_kernel.nop5_fork_unsafe).
 */
bool host__nop5_fork_unsafe(const struct host *h);
/* The one line that says why tracing cannot start here, or 0: -EPERM, -EOPNOTSUPP. */
int host__can_trace(const struct host *h, struct err *e);

#endif

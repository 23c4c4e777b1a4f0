/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arming: from the plan's sites to BPF links. All sites of one object go into one
 * uprobe_multi link for entries and one for returns where the kernel has it, else into one
 * perf-event link each. A site that the kernel refuses never costs another site: a failing
 * batch is halved until the culprit stands alone, and its errno is kept in the plan.
 *
 * Links live in file descriptors only: whatever ends this process, the kernel takes every
 * probe and every semaphore count away.
 */
#ifndef QBPF_TRACE_ARM_H
#define QBPF_TRACE_ARM_H

#include <bpf/libbpf.h>

#include "plan/plan.h"
#include "trace/target.h"

struct armer;

struct armer_opts {
	struct bpf_program *on_site;		      /* entries, markers */
	struct bpf_program *on_return;		      /* uretprobes */
	struct bpf_program *on_cuda, *on_cuda_return; /* the same of functions of CUDA */
	bool multi;				      /* uprobe_multi links */
	bool per_span; /* a link per span, so that spans can be detached alone */
	bool all_pids; /* --follow: no pid filter in the links */
};

struct armer *armer__new(const struct armer_opts *o);
const struct armer_opts *armer__opts(const struct armer *a);
/* Other programs for functions of CUDA, before the first of them is armed. */
void armer__set_cuda(struct armer *a, struct bpf_program *entry, struct bpf_program *ret);
void armer__free(struct armer *a); /* takes every probe away */

/*
 * Arms the plan's sites[from ..) whose verdict allows it. Sets armed or arm_errno in each. An
 * error is returned only when nothing can be armed by this process at all (-EPERM, -EMFILE).
 */
int armer__arm(struct armer *a, struct plan *p, const struct target *t, size_t from, struct err *e);

/* Takes away all probes of one span (per_span only) or -EOPNOTSUPP. */
int armer__detach_span(struct armer *a, struct plan *p, uint32_t span);

/* One extra uprobe outside the plan: the dynamic linker's hook, the guard's unwinder entries.
 * For every pid of the target, or, with all_pids, for every process. */
int armer__attach_extra(struct armer *a, struct bpf_program *prog, const struct target *t,
			uint32_t object, uint64_t off, bool all_pids);

/* Text for a kernel's refusal of a site. */
const char *arm_strerror(int err, bool has_semaphore);

/* Path by which links name an object: its open descriptor, whatever happened to its name. */
void arm_fd_path(int fd, char buf[32]);

#endif

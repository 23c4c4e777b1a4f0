/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What host.c, host_trial.c and host_checks.c share: the trials on a live child that only
 * `qbpf doctor` takes the time for, and the rows made of everything found.
 */
#ifndef QBPF_TRACE_HOST_CHECKS_H
#define QBPF_TRACE_HOST_CHECKS_H

#include <stdint.h>

#include "trace/host.h"

/* One trial: 0 it worked, else the -errno of the step that failed. */
struct host_trials {
	int perf_uprobe;    /* a probe through a perf event fired with its cookie */
	int multi_uprobe;   /* the same through uprobe_multi */
	bool multi_threads; /* ... and its pid filter let a second thread through */
	int nop5;	    /* a probed nop5 ran */
	bool nop5_rewritten;
	uint8_t nop5_first; /* byte found at the site: 0xe8 call, 0xcc int3 */
	int tracing;	    /* tp_btf, task iterator, task storage, ring buffer load */
	int read_kernel;    /* bpf_probe_read_kernel loads: lockdown is not confidentiality */
};

void host_trials__run(const struct host *h, struct host_trials *t);

struct host_cuda;

/* Fills h->checks. -ENOMEM. */
int host_checks__fill(struct host *h, const struct host_trials *t, const struct host_cuda *c);

/* First line of a small file of proc or sysfs, without its newline. */
int host_read_line(const char *path, char *buf, size_t size);

#endif

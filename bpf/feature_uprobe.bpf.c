// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether uprobes fire, and with their cookie: counts hits of a child of qbpf's own.
 *
 *	on_perf_hit   perf-event link with a cookie: 82e6b1eee6a8 "bpf: Allow to specify user-
 *		      provided bpf_cookie for BPF perf links" (5.15)
 *	on_multi_hit  89ae89f53d20 "bpf: Add multi uprobe link" (6.6); pid filter by process
 *		      since 46ba0e49b642 "bpf: fix multi-uprobe PID filtering logic" (6.10)
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 hits;
__u64 last_cookie;

static int count(void *ctx)
{
	__sync_fetch_and_add(&hits, 1);
	last_cookie = bpf_get_attach_cookie(ctx);
	return 0;
}

SEC("uprobe")
int on_perf_hit(void *ctx)
{
	return count(ctx);
}

SEC("uprobe.multi")
int on_multi_hit(void *ctx)
{
	return count(ctx);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bpf_probe_read_kernel: refused under lockdown=confidentiality (LOCKDOWN_BPF_READ_KERNEL,
 * 9d1f8be5cf42 "bpf: Restrict bpf when kernel lockdown is in confidentiality mode", 5.4).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 seen;

SEC("uprobe")
int on_any(void *ctx)
{
	return bpf_probe_read_kernel(&seen, sizeof(seen), ctx);
}

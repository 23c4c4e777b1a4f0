// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where the maps, knobs and counters of maps.bpf.h live. */
#define EXTERN
#include "maps.bpf.h"

const volatile bool cfg_filter_tgid = false;
const volatile bool cfg_follow = false;
const volatile bool cfg_stack_switch = false;

volatile bool counting = true;
volatile __u32 generation = 0;

__u64 stat_notices_lost = 0;

/* bpf_probe_read_user and friends are for GPL-compatible programs. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

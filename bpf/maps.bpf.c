// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where the maps, knobs and counters of maps.bpf.h and stream.bpf.h live. */
#define EXTERN
#include "maps.bpf.h"
#include "stream.bpf.h"

const volatile bool cfg_filter_tgid = false;
const volatile bool cfg_follow = false;
const volatile bool cfg_stack_switch = false;

const volatile bool cfg_stream = false;
const volatile __u64 cfg_stream_wake = 0;
const volatile __u32 cfg_sample = 0;
const volatile bool cfg_slow = false;
const volatile bool cfg_spans = false;

volatile bool counting = true;
volatile __u32 generation = 0;

__u64 stat_notices_lost = 0;

volatile bool spans_wanted = false;
volatile bool stream_woken = false;
__u64 stat_stream_wakeups = 0;

/* bpf_probe_read_user and friends are for GPL-compatible programs. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps and knobs that the programs share: defined in maps.bpf.c, declared for all others.
 * Record types are those of qbpf/abi.h.
 */
#ifndef QBPF_MAPS_BPF_H
#define QBPF_MAPS_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "qbpf/abi.h"

#ifndef EXTERN
#define EXTERN extern
#endif

/* errno values that the programs tell apart; vmlinux.h has no macros. */
#define E2BIG  7
#define EEXIST 17

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct qbpf_thread);
} threads SEC(".maps");

/*
 * The cells are allocated as they are first hit (BPF_F_NO_PREALLOC), so the limits cost nothing
 * until they are used. The loader sets max_entries of all of these.
 */
EXTERN struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct qbpf_node_key);
	__type(value, struct qbpf_node);
} nodes SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct qbpf_node_cell_key);
	__type(value, struct qbpf_node_cell);
} node_cells SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct qbpf_hist_key);
	__type(value, struct qbpf_hist_cell);
} hist_cells SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct qbpf_span_counts);
} span_counts SEC(".maps");

/* Spans whose probes were taken away while the session goes on: their ends will not come. */
EXTERN struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} retired SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct qbpf_site);
} sites SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct qbpf_open_key);
	__type(value, struct qbpf_open);
} keyed SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} notices SEC(".maps");

/* The processes to trace, tgid -> 1: all that the tracepoints look at, and see cfg_filter_tgid. */
EXTERN struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* The links reach more processes than the targets: look at each hit's tgid. */
extern const volatile bool cfg_filter_tgid;
/* Forked children of targets become targets. */
extern const volatile bool cfg_follow;
/* Some target switches stacks: stack pointers tell nothing about which frames are dead. */
extern const volatile bool cfg_stack_switch;

/*
 * False while a session is being armed and after its end: all spans then begin and end to count
 * at the same moment, however long arming takes.
 */
extern volatile bool counting;
/* Goes up whenever a span is retired: each thread then drops its frames of such. */
extern volatile __u32 generation;

/* Notices that found the ring full: user space must look at everything again. */
extern __u64 stat_notices_lost;

/* Counts one under the span's own name; the slow path only. */
#define count_span(span_, field)                                                                   \
	do {                                                                                       \
		__u32 id_ = (span_);                                                               \
		struct qbpf_span_counts *sc_ = bpf_map_lookup_elem(&span_counts, &id_);            \
		if (sc_)                                                                           \
			__sync_fetch_and_add(&sc_->field, 1);                                      \
	} while (0)

static __always_inline bool is_retired(__u32 span)
{
	__u32 *gone;

	if (!generation)
		return false;
	gone = bpf_map_lookup_elem(&retired, &span);
	return gone && *gone;
}

static __always_inline bool is_target(__u32 tgid)
{
	return bpf_map_lookup_elem(&targets, &tgid) != NULL;
}

/* A hit that is not to be looked at: nothing of it is counted. */
static __always_inline bool not_ours(__u32 span)
{
	return !counting || is_retired(span) ||
	       (cfg_filter_tgid && !is_target(bpf_get_current_pid_tgid() >> 32));
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recording: one record for each thing that ends, into a ring buffer. Without a recording these
 * maps do not exist and the verifier drops all calls, so nothing here may be reached but behind
 * cfg_stream. A full ring costs nobody anything: the span is in the aggregates, and is counted.
 *
 * --sample: one in so many outermost spans is recorded, with everything inside; it is decided when
 * it begins (frame.skip). What lies in no span is its own outermost.
 *
 * --slow: what ends inside a watched span waits in the thread's history until the outermost
 * watched span has ended or has been open for longer than its limit: then all of it goes to the
 * ring, in order. If that one was fast, only the trees of slow spans inside it go (they are marked
 * to be kept, since order within a thread is), the rest is dropped. A full history is settled
 * early: what was not to be kept is lost. All waiting records are counted as skipped meanwhile, so
 * that counts add up at any moment.
 */
#ifndef QBPF_STREAM_BPF_H
#define QBPF_STREAM_BPF_H

#include "maps.bpf.h"

/* The loader sets the sizes. */
EXTERN struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stream SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct qbpf_stream_counts);
} stream_counts SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} slow_limits SEC(".maps");

EXTERN struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct qbpf_history);
} histories SEC(".maps");

extern const volatile bool cfg_stream;
/* The reader is woken when so many bytes wait; it looks now and then by itself. */
extern const volatile __u64 cfg_stream_wake;
extern const volatile __u32 cfg_sample; /* one in so many; 0 and 1: all */
extern const volatile bool cfg_slow;
/* Nothing is recorded, but nested spans are streamed, and nothing else, while spans_wanted is set. */
extern const volatile bool cfg_spans;
extern volatile bool spans_wanted;

/* The reader has been woken and has not begun to read: it clears this. */
extern volatile bool stream_woken;
extern __u64 stat_stream_wakeups;

/* How a thing stands in its thread, for stream_add. */
enum stream_how {
	HOW_SKIP = 1 << 0,    /* --sample leaves it out */
	HOW_WATCHED = 1 << 1, /* its span is watched, and it was when it began */
	HOW_INSIDE = 1 << 2,  /* a watched span is open around it */
};

/*
 * stream.bpf.c. What t is to the record: the thread whose hit it is; NULL: it has no storage, and
 * the record is lost. `mark` is that of the frame.
 */
int stream_add(struct qbpf_thread *t, struct qbpf_record *r, __u32 mark, __u32 how);
int stream_open(struct qbpf_thread *t, __u32 i, __u32 span);
int stream_alone(struct qbpf_thread *t, struct qbpf_record *r);
int stream_thread_over(struct qbpf_thread *t, __u32 type, __u32 tid);

static __always_inline __u32 frame_how(const struct qbpf_frame *f)
{
	return (f->skip ? HOW_SKIP : 0) | (f->watched ? HOW_WATCHED : 0) |
	       (f->inside > f->watched ? HOW_INSIDE : 0);
}

#endif

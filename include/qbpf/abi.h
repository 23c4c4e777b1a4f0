/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qbpf/abi.h - every record that crosses a boundary between the BPF programs and user space.
 *
 * One definition for both sides. All integers are little-endian host order, all times
 * CLOCK_MONOTONIC nanoseconds. Structures have no implicit padding (checked below and by
 * -Wpadded in the test suite); a record may only grow at its end.
 *
 * The maps that hold these records, by name:
 *
 *   threads      task storage          -> qbpf_thread      the stack of open frames of one thread
 *   nodes        hash qbpf_node_key    -> qbpf_node        the call tree's shape
 *   node_cells   hash qbpf_node_cell_key -> qbpf_node_cell a node's sums on one CPU
 *   hist_cells   hash qbpf_hist_key    -> qbpf_hist_cell   32 buckets of one histogram on one CPU
 *   span_counts  array span id         -> qbpf_span_counts what went wrong, per span
 *   retired      array span id         -> u32              1: its probes were taken away
 *   sites        array site id         -> qbpf_site        argument places
 *   keyed        hash qbpf_open_key    -> qbpf_open        open spans that are paired by a key
 *   notices      ring buffer           -> qbpf_notice      "look at /proc again", never a span
 *
 * and, while a recording is made (else they do not exist):
 *
 *   stream        ring buffer          -> qbpf_record      what ended, one by one
 *   stream_counts per-CPU array span id -> qbpf_stream_counts what of that is not in the ring
 *   slow_limits   array span id        -> u64              --slow: least ns + 1; 0: not watched
 *   histories     task storage         -> qbpf_history     --slow: what may yet be recorded
 *
 * and for CUDA functions:
 *
 *   cuda_sites    hash site id         -> qbpf_cuda_site   where its arguments lie
 *   cuda_threads  task storage         -> qbpf_cuda_thread the calls that a thread is in
 *   cuda_cells    hash qbpf_cuda_key   -> qbpf_cuda_cell   copies, errors, kernels beyond the next
 *   cuda_launches hash qbpf_cuda_key   -> qbpf_cuda_cell   a kernel with its grid
 *   cuda_handles  hash qbpf_cuda_handle_key -> qbpf_cuda_handle  what kernel a handle is
 *
 * A cell is created by the first hit on its CPU, so memory follows what really runs, not
 * spans x CPUs. Within a cell every update is atomic: on preemptible kernels two threads
 * can be inside the same program on one CPU.
 */
#ifndef QBPF_ABI_H
#define QBPF_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define QBPF_FRAMES_MAX	   64	       /* open frames of one thread */
#define QBPF_ASIDE_MAX	   16	       /* open spans that outlive the one around them, a thread */
#define QBPF_SPANS_MAX	   (1 << 20)   /* span ids are 1 .. QBPF_SPANS_MAX - 1; 0 is "none" */
#define QBPF_NODE_ROOT	   0	       /* the parent of a thread's outermost spans */
#define QBPF_NODE_LOST	   0xffffffffu /* the node table was full; the histogram still counts */
#define QBPF_NO_REG	   0xffffu
#define QBPF_HIST_SUB_BITS 5
#define QBPF_HIST_SUB	   (1 << QBPF_HIST_SUB_BITS) /* buckets per octave: 1/32, 1.6 % at midpoint */

/*
 * What a site means to its span. The cookie of a probe carries it with the span and the site,
 * so that a hit costs no lookup: bits 0..23 span, 24..31 role, 32..63 site.
 */
enum qbpf_role {
	QBPF_ROLE_NONE = 0,
	QBPF_ROLE_BEGIN = 1,	 /* a marker opens a frame */
	QBPF_ROLE_END = 2,	 /* a marker closes the nearest frame of its span */
	QBPF_ROLE_INSTANT = 3,	 /* a marker alone: counts, histogram of the interval */
	QBPF_ROLE_VALUE = 4,	 /* a marker that carries a number */
	QBPF_ROLE_KEY_BEGIN = 5, /* opens the span of this key, on any thread */
	QBPF_ROLE_KEY_END = 6,
	QBPF_ROLE_ENTRY = 7,	/* a function's entry; %rsp is the return address's slot */
	QBPF_ROLE_RETURN = 8,	/* a uretprobe; closes the frame whose slot is %rsp - 8 */
	QBPF_ROLE_RET_INSN = 9, /* a RET instruction; closes the frame whose slot is %rsp */
	QBPF_ROLE_TAIL_JUMP =
	    10, /* a jump out of the function, armed with RET_INSN sites: an end */
	/*
	 * An entry whose ends are RET_INSN and TAIL_JUMP sites. ENTRY does as well, but counts the
	 * call as ret_muted when 64 uretprobes are pending, which such a function does not need.
	 */
	QBPF_ROLE_ENTRY_INSN = 11,
};

#define QBPF_COOKIE(span, role, site)                                                              \
	((__u64)((span)&0xffffffu) | (__u64)(role) << 24 | (__u64)(__u32)(site) << 32)
#define QBPF_COOKIE_SPAN(c) ((__u32)(c)&0xffffffu)
#define QBPF_COOKIE_ROLE(c) ((__u32)((c) >> 24) & 0xffu)
#define QBPF_COOKIE_SITE(c) ((__u32)((c) >> 32))

/* How the buckets of a span's histogram are to be read. */
enum qbpf_hist_kind {
	QBPF_HIST_NS = 0,  /* unsigned nanoseconds */
	QBPF_HIST_INT = 1, /* signed 64-bit integers: sign and magnitude */
	QBPF_HIST_F64 = 2, /* doubles: sign, exponent, top five bits of the mantissa */
};

/*
 * A histogram is a set of cells, each one octave of values.
 *
 * NS and INT: octave 0 holds magnitudes 0..31 exactly, one a bucket. Octave k >= 1 holds
 * [2^(k+4), 2^(k+5)) in 32 equal buckets. k <= 59, so every 64-bit magnitude has a bucket.
 * INT sets QBPF_HIST_NEGATIVE in the octave of a negative value.
 * F64: octave is the biased exponent (0..2047), bucket the top 5 bits of the mantissa;
 * QBPF_HIST_NEGATIVE is the sign. NaN and infinities (exponent 2047) are counted there.
 */
#define QBPF_HIST_NEGATIVE 0x8000u

struct qbpf_hist_key {
	__u32 span;
	__u16 octave;
	__u16 cpu;
};

/*
 * NS, INT: the sum of magnitudes is sum_lo alone (modulo 2^64; sum_hi counts its carries).
 * F64: the 53-bit mantissa m of each value adds m & (2^26 - 1) to sum_lo and m >> 26 to
 * sum_hi, so the sum is exact for 2^37 values: (sum_hi * 2^26 + sum_lo) * 2^(octave - 1075)
 * (for octave 0, subnormals, 2^-1074).
 */
struct qbpf_hist_cell {
	__u64 sum_lo;
	__u64 sum_hi;
	__u64 min; /* lowest and highest value in this cell as magnitude or, for F64, raw bits */
	__u64 max;
	__u64 n[QBPF_HIST_SUB];
};

struct qbpf_node_key {
	__u32 parent;
	__u32 span;
};

struct qbpf_node {
	__u32 id; /* 1, 2, ... in order of first appearance */
	__u32 pad;
};

struct qbpf_node_cell_key {
	__u32 node;
	__u32 cpu;
};

/* Times in ns. self = total less the time of direct children. An instant has count only. */
struct qbpf_node_cell {
	__u64 count;
	__u64 total_ns;
	__u64 self_ns;
	__u64 min_ns;
	__u64 max_ns;
};

/* Everything that did not become a clean span, under its own name. Rare, so not per CPU. */
struct qbpf_span_counts {
	__u64 orphan_ends; /* an end with no open frame of its span */
	__u64 abandoned;   /* a begin that gets no end: thread exit, longjmp, throw, begun again */
	__u64 depth_overflow; /* a begin below QBPF_FRAMES_MAX open frames */
	__u64 node_overflow;  /* closed and in the histogram, but the call tree had no room */
	__u64 hist_overflow;  /* closed, but no cell for the histogram could be had */
	__u64 no_storage;     /* a hit that found no room for its thread's stack */
	__u64 unreadable;     /* a key or value argument that could not be read */
	__u64 key_overflow;   /* no room for another open key */
	__u64 key_restarts;   /* a key begun again while open: the first begin is dropped */
	__u64 key_timeouts;   /* an open key swept by user space */
	__u64 last_ns;	      /* instants: time of the last hit */
	__u64 ret_muted;      /* returns that the kernel can no longer deliver (over 64 nested) */
};

/*
 * Where one argument lies, in terms of the registers at the site (byte offsets into struct
 * pt_regs). value = deref ? *(base + index * scale + off) : base + off. No base: off alone.
 * A rip-relative operand is base = ip with the distance already in off.
 */
enum qbpf_arg_flags {
	QBPF_ARG_DEREF = 1 << 0,
	QBPF_ARG_SIGNED = 1 << 1,
	QBPF_ARG_FLOAT = 1 << 2, /* size 4 or 8: IEEE-754 bits */
	QBPF_ARG_VALID = 1 << 3, /* absent: this argument is unreadable */
};

struct qbpf_arg {
	__s64 off;
	__u16 base;  /* QBPF_NO_REG: none */
	__u16 index; /* QBPF_NO_REG: none */
	__u8 scale;  /* 1, 2, 4, 8 */
	__u8 size;   /* 1, 2, 4, 8 bytes, of the value */
	__u8 shift;  /* bits to shift a register right first: %ah is 8 */
	__u8 flags;
};

struct qbpf_site {
	struct qbpf_arg arg; /* the key or the value; not VALID where the role needs none */
};

/* One open span of a thread. What a frame held outlives its end: node and parent are a cache. */
struct qbpf_frame {
	__u64 start_ns;
	__u64 child_ns; /* time of closed direct children */
	__u64 sp;	/* stack pointer at the begin; of a function: its return address's slot */
	__u64 base;	/* slot of the nearest function frame, this one or below; 0: none */
	__u64 cookie;	/* of the site that opened it; 0: already closed, live frames above it */
	__u32 node;
	__u32 parent; /* node of the frame below */
	__u32 mark;   /* --slow, watched: the thread's history at its begin, see qbpf_history */
	__u8 watched; /* --slow: its span is */
	__u8 inside;  /* --slow: as many of the frames up to this one are watched */
	__u8 skip;    /* --sample: it is not recorded */
	__u8 pad;
};

struct qbpf_thread {
	__u32 depth;	   /* frames[0 .. depth) are open */
	__u32 over;	   /* begins beyond QBPF_FRAMES_MAX that are still open */
	__u32 naside;	   /* aside[0 .. naside) are open */
	__u32 aside_turn;  /* which of them makes room next */
	__u32 generation;  /* of `retired`, as these frames know it */
	__u32 sample_turn; /* 0: its next outermost span is recorded */
	__u32 streamed;	   /* 1: some record of it is in the ring */
	__u32 pad;
	struct qbpf_frame frames[QBPF_FRAMES_MAX];
	/* Markers' frames whose enclosing span has ended before them: open, but nothing nests in them. */
	struct qbpf_frame aside[QBPF_ASIDE_MAX];
};

struct qbpf_open_key {
	__u64 value;
	__u32 span;
	__u32 tgid;
};

struct qbpf_open {
	__u64 start_ns;
	__u32 tid;
	__u32 pad;
};

enum qbpf_record_type {
	QBPF_RECORD_SPAN = 1,	 /* closed, nested */
	QBPF_RECORD_ASIDE = 2,	 /* closed, after the span around it */
	QBPF_RECORD_KEYED = 3,	 /* ended on this thread */
	QBPF_RECORD_INSTANT = 4, /* start_ns = end_ns, as for VALUE */
	QBPF_RECORD_VALUE = 5,
	QBPF_RECORD_OPEN = 6, /* its thread or its program ended, or the recording: at end_ns */
	QBPF_RECORD_EXIT = 7, /* the thread ended; of these two, span is 0 */
	QBPF_RECORD_EXEC = 8, /* the thread runs another program now */
};

enum qbpf_record_flags {
	QBPF_RECORD_FIRST = 1 << 0, /* no record of this thread came before: a tid may be reused */
	QBPF_RECORD_KEEP = 1 << 1,  /* in a history: to be recorded, whatever the spans around do */
};

/* What ended, as the ring buffer `stream` carries it: each thread's in the order of their ends. */
struct qbpf_record {
	__u16 type;
	__u16 size;  /* of the whole record */
	__u16 depth; /* frames open around it */
	__u16 flags;
	__u32 span;
	union {
		__u32 node;	 /* 0: none */
		__u32 begin_tid; /* KEYED */
	};
	__u32 tgid;
	__u32 tid;
	__u64 end_ns;
	union {
		struct {
			__u64 start_ns;
			union {
				__u64 child_ns; /* SPAN, ASIDE, OPEN */
				__u64
				    arg; /* KEYED: the key. VALUE: an integer, or a double's bits */
			};
		};
		char comm[16]; /* EXIT: the thread's; EXEC: the new program's */
	};
};

/* What of a span is counted in the aggregates and is not in the ring. Sums over CPUs. */
struct qbpf_stream_counts {
	__u64 lost;    /* the ring was full, or the history */
	__s64 skipped; /* by --sample and --slow; of one CPU it may be negative */
	__u64 over;    /* --slow: watched and over the limit */
};

/*
 * What has ended on a thread inside watched spans of --slow, until the outermost of them shows
 * whether it is slow. A record's number is base + its index; base only grows.
 */
#define QBPF_HISTORY_MAX 512

struct qbpf_history {
	__u32 base;
	__u32 n;
	__u32 outer; /* frame of the outermost watched span */
	__u32 pad;
	__u64 min_ns; /* from which on that one is slow */
	struct qbpf_record records[QBPF_HISTORY_MAX];
};

enum qbpf_notice_type {
	QBPF_NOTICE_MAPS = 1, /* the dynamic linker has mapped or unmapped objects */
	QBPF_NOTICE_FORK = 2, /* arg: the child's tgid */
	QBPF_NOTICE_EXEC = 3,
	QBPF_NOTICE_EXIT = 4, /* the last thread of a process ended */
};

struct qbpf_notice {
	__u16 type;
	__u16 size; /* of the whole record */
	__u32 tgid;
	__u32 tid;
	__u32 pad;
	__u64 time_ns;
	__u64 arg;
};

/* One open frame, as the snapshot program (a task iterator) writes it. */
struct qbpf_open_frame {
	__u32 tgid;
	__u32 tid;
	__u32 span;
	__u32 depth; /* 0 is the outermost */
	__u64 start_ns;
	__u64 slot; /* of a function: the address of its return address; else 0 */
};

/* One return that the kernel awaits in a thread, as on_return_slots (a task iterator) writes it. */
struct qbpf_return_slot {
	__u32 tgid;
	__u32 tid;
	__u64 slot;	  /* where the return address lies */
	__u64 ret;	  /* what it was */
	__u64 trampoline; /* what it is now, unless a guard has restored it */
};

/* --- CUDA ------------------------------------------------------------------------------------- */

enum qbpf_cuda_class {
	QBPF_CUDA_NONE = 0,
	QBPF_CUDA_LAUNCH = 1, /* of a kernel */
	QBPF_CUDA_GRAPH = 2,  /* of a graph */
	QBPF_CUDA_COPY = 3,
	QBPF_CUDA_MEMSET = 4,
	QBPF_CUDA_ALLOC = 5,
	QBPF_CUDA_FREE = 6,
	QBPF_CUDA_SYNC = 7,   /* the host waits for the GPU */
	QBPF_CUDA_ORDER = 8,  /* events: recorded, or waited for by a stream */
	QBPF_CUDA_LOOKUP = 9, /* gives a kernel's handle */
};

/* The first five are cudaMemcpyKind. */
enum qbpf_cuda_dir {
	QBPF_CUDA_H2H = 0,
	QBPF_CUDA_H2D = 1,
	QBPF_CUDA_D2H = 2,
	QBPF_CUDA_D2D = 3,
	QBPF_CUDA_DEFAULT = 4, /* the driver tells by the addresses */
	QBPF_CUDA_P2P = 5,     /* between devices */
	QBPF_CUDA_DIR_UNKNOWN = 6,
	QBPF_CUDA_NO_DIR = 7, /* no copy */
	QBPF_CUDA_DIRS = 8,
};

enum qbpf_cuda_flags {
	QBPF_CUDA_SIZE32 = 1 << 0,	 /* sizes have 32 bits */
	QBPF_CUDA_PER_THREAD = 1 << 1,	 /* stream 0 is the thread's own default stream */
	QBPF_CUDA_MEMORY_TYPES = 1 << 2, /* the direction follows from two CUmemorytype */
	QBPF_CUDA_NO_STREAM = 1 << 3,	 /* works on no stream */
	QBPF_CUDA_KERNEL_ALIAS = 1 << 4, /* lookup: the name is that of another handle */
};

/* How a launch is given its grid and blocks. */
enum qbpf_cuda_grid {
	QBPF_CUDA_NO_GRID = 0,
	QBPF_CUDA_GRID_DIM3 = 1,   /* two dim3 by value, in slots 2 to 5 */
	QBPF_CUDA_GRID_SIX = 2,	   /* six numbers, in slots 2 to 7 */
	QBPF_CUDA_GRID_CONFIG = 3, /* slot 1 points at six numbers, and the stream at 32 */
};

/*
 * An argument: what the calling convention puts into the slot (1 to 6: %rdi to %r9; 7 and up: on the
 * stack above the return address, 8 bytes each), or, `deref`, 8 bytes at slot + off.
 */
struct qbpf_cuda_arg {
	__u8 slot; /* 0: there is none */
	__u8 deref;
	__u16 off;
};

struct qbpf_cuda_site {
	struct qbpf_cuda_arg bytes[3]; /* their product x scale; the first absent: not known */
	struct qbpf_cuda_arg array[2]; /* if one is not 0, the bytes are not known */
	struct qbpf_cuda_arg kind;     /* cudaMemcpyKind, instead of dir */
	struct qbpf_cuda_arg from, to; /* CUmemorytype, instead of dir */
	struct qbpf_cuda_arg stream;
	struct qbpf_cuda_arg kernel; /* launched; of a lookup: a host function or another handle */
	struct qbpf_cuda_arg out;    /* lookup: where the handle goes */
	struct qbpf_cuda_arg name;   /* lookup: its name */
	__u8 class;
	__u8 dir;
	__u8 scale; /* 0: 1 */
	__u8 grid;
	__u8 flags;
	__u8 pad[3];
};

enum qbpf_cuda_stream {
	QBPF_CUDA_STREAM_NONE = 0,
	QBPF_CUDA_STREAM_LEGACY = 1, /* the default one: waits for all others, and they for it */
	QBPF_CUDA_STREAM_PER_THREAD = 2,
	QBPF_CUDA_STREAM_OWN = 3,
};

/* One call on its way, at the index of its frame modulo: calls do not nest deep. */
#define QBPF_CUDA_OPEN_MAX 8

struct qbpf_cuda_open {
	__u64 slot;   /* of its return address; 0: free */
	__u64 bytes;  /* lookup: the host function or other handle that it is asked for */
	__u64 kernel; /* lookup: where the handle goes */
	__u64 caller; /* return address; lookup: where the name is */
	__u32 grid[6];
	__u32 frame; /* its index */
	__u8 class;
	__u8 dir;
	__u8 stream;
	__u8 flags; /* enum qbpf_cuda_open_flags */
};

enum qbpf_cuda_open_flags {
	QBPF_CUDA_SIZED = 1 << 0,  /* bytes are known */
	QBPF_CUDA_NESTED = 1 << 1, /* inside another call: part of that */
	QBPF_CUDA_NAMED = 1 << 2,  /* lookup: there is a name */
	QBPF_CUDA_ALIAS = 1 << 3,
};

struct qbpf_cuda_handle_key {
	__u64 handle;
	__u32 tgid;
	__u32 pad;
};

#define QBPF_CUDA_NAME_MAX 240

struct qbpf_cuda_handle {
	__u64 kernel; /* the host function or, `alias`, another handle; 0: only the name is known */
	__u32 alias;
	__u32 pad;
	char name[QBPF_CUDA_NAME_MAX];
};

struct qbpf_cuda_thread {
	struct qbpf_cuda_open open[QBPF_CUDA_OPEN_MAX];
	struct qbpf_cuda_handle handle; /* being put together */
};

enum qbpf_cuda_what {
	QBPF_CUDA_CELL_ERROR = 1,  /* span, code */
	QBPF_CUDA_CELL_BYTES = 2,  /* span, dir, stream: copies, memsets, allocations */
	QBPF_CUDA_CELL_LAUNCH = 3, /* and kernel, caller, tgid and, of cuda_launches, grid */
};

struct qbpf_cuda_key {
	__u32 span;
	__u32 tgid;
	__u64 kernel;
	__u64 caller;
	__u32 grid[6];
	__u32 code;
	__u8 what;
	__u8 dir;
	__u8 stream;
	__u8 pad;
};

/* A call is in one of: failed, or neither, or untold (its end was a jump to another function). */
struct qbpf_cuda_cell {
	__u64 count;
	__u64 failed;
	__u64 untold; /* taken to have succeeded */
	__u64 ns;     /* of those that did not fail, as bytes */
	__u64 bytes;
	__u64 failed_bytes;
	__u64 unsized_count; /* its bytes are not known */
};

/* The histogram of a span's bytes, by direction, has this for its key's span. */
#define QBPF_CUDA_BYTES_FLAG	   0x80000000u
#define QBPF_CUDA_BYTES(span, dir) (QBPF_CUDA_BYTES_FLAG | (__u32)(dir) << 24 | (span))

#if !defined(__cplusplus)
_Static_assert(sizeof(struct qbpf_cuda_site) == 56, "abi");
_Static_assert(sizeof(struct qbpf_cuda_open) == 64, "abi");
_Static_assert(sizeof(struct qbpf_cuda_handle) == 256, "abi");
_Static_assert(sizeof(struct qbpf_cuda_key) == 56, "abi");
_Static_assert(sizeof(struct qbpf_cuda_cell) == 56, "abi");
_Static_assert(sizeof(struct qbpf_hist_key) == 8, "abi");
_Static_assert(sizeof(struct qbpf_hist_cell) == 32 + 8 * QBPF_HIST_SUB, "abi");
_Static_assert(sizeof(struct qbpf_node_cell) == 40, "abi");
_Static_assert(sizeof(struct qbpf_span_counts) == 96, "abi");
_Static_assert(sizeof(struct qbpf_arg) == 16, "abi");
_Static_assert(sizeof(struct qbpf_frame) == 56, "abi");
_Static_assert(sizeof(struct qbpf_thread) == 32 + 56 * (QBPF_FRAMES_MAX + QBPF_ASIDE_MAX), "abi");
_Static_assert(sizeof(struct qbpf_record) == 48, "abi");
_Static_assert(sizeof(struct qbpf_stream_counts) == 24, "abi");
_Static_assert(sizeof(struct qbpf_history) == 24 + 48 * QBPF_HISTORY_MAX, "abi");
_Static_assert(sizeof(struct qbpf_notice) == 32, "abi");
_Static_assert(sizeof(struct qbpf_open_frame) == 32, "abi");
_Static_assert(sizeof(struct qbpf_return_slot) == 32, "abi");
#endif

#endif

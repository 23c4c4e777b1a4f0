/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a trace says about itself, beside its events: the tables that ids lead to. The writer takes
 * these as they become known, the reader gives them back whole.
 *
 * Strings are bytes as the target has them, NUL-terminated, never NULL after reading: whoever shows
 * them makes them fit. All times are CLOCK_MONOTONIC ns.
 */
#ifndef QBPF_FILE_INFO_H
#define QBPF_FILE_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Written once, first. */
struct trace_meta {
	char *qbpf_version;
	char *command; /* the command line */
	char *kernel, *cpu, *clocksource, *hostname;
	uint32_t cpus;
	uint64_t start_ns;    /* recording began */
	uint64_t realtime_ns; /* CLOCK_REALTIME at start_ns */
	uint32_t sample;      /* one in so many outermost spans is recorded; 0, 1: all */
	char *slow;	      /* the rule of --slow; "": none */
	uint64_t ring_bytes;
	uint32_t nprices;
	uint64_t price_ns[8]; /* by enum price_class: what a hit costs the target; 0: unknown */
};

/* span id = index + 1. Appended when a library is opened later. */
struct trace_span {
	char *name;	   /* provider:name, or the demangled function */
	uint8_t kind;	   /* enum span_kind */
	uint8_t way;	   /* enum return_way */
	uint8_t hist;	   /* enum qbpf_hist_kind: how to read a VALUE's number */
	uint64_t floor_ns; /* what an empty span of this kind reads; 0: unknown */
	uint64_t price_ns; /* what one costs the target; 0: unknown */
};

#define TRACE_NO_MAPPING UINT32_MAX

/* One armed or refused site of a span. */
struct trace_probe {
	uint32_t span;
	uint32_t mapping; /* index, or TRACE_NO_MAPPING */
	uint8_t role;	  /* enum qbpf_role */
	uint8_t armed;
	uint64_t off; /* in the file */
	char *reason; /* why refused, or moved; "": nothing to say */
};

/* A file that the target maps. */
struct trace_mapping {
	char *path;
	char *build_id; /* hex; "": it has none */
	uint32_t tgid;
	uint64_t start, end, off; /* of its first executable segment */
};

struct trace_process {
	uint32_t tgid;
	char *comm, *exe;
	uint64_t start_ns; /* first seen */
	uint64_t end_ns;   /* 0: still there when the recording ended */
};

/* Appended when first seen; written again under the same index when its name or end is known. */
struct trace_thread {
	uint32_t tgid, tid;
	char *name;
	uint64_t start_ns; /* first seen */
	uint64_t end_ns;   /* 0: still there */
};

/* A place in the call tree. Ids are dense but come in any order; roots have parent 0, every other
 * node's parent has a lower id. */
struct trace_node {
	uint32_t id, parent, span;
};

/* What one span's probes could not put into the file, in one stretch of time. */
struct trace_loss {
	uint32_t span;
	uint32_t source; /* enum trace_source */
	uint64_t from_ns, to_ns;
	uint64_t lost;	  /* the ring was full */
	uint64_t skipped; /* left out on purpose: --sample, --slow */
};

enum trace_source { SOURCE_BPF = 0, SOURCE_RING = 1, SOURCE_GPU = 2 };

/* A pair of clock readings, taken once in a while: drift of realtime against monotonic. */
struct trace_clock {
	uint64_t monotonic_ns, realtime_ns, boottime_ns;
	uint64_t error_ns; /* the reading took so long: a bound */
};

/* Seen from the end of a recording that was closed cleanly. By span id - 1. */
struct trace_count {
	uint64_t counted;  /* closed spans, instants, values, as the kernel counted them */
	uint64_t streamed; /* of these, put into the ring */
	uint64_t lost;	   /* found the ring full, or the disk */
	uint64_t skipped;  /* left out on purpose */
};

/* Records of the GPU that are not in the file. */
struct trace_gpu_loss {
	uint32_t ring;	 /* which, as in its records */
	uint32_t type;	 /* enum qbpf_ring_type; 0: not known */
	uint32_t reason; /* enum trace_gpu_reason */
	uint64_t from_ns, to_ns;
	uint64_t lost;
};

enum trace_gpu_reason {
	GPU_LOST_RING = 0,    /* the shared-memory ring was full, or had no free lane */
	GPU_LOST_CUPTI = 1,   /* CUPTI dropped them, and no DROPPED record in the file says so */
	GPU_LOST_BUFFERS = 2, /* the agent had no buffer left */
	GPU_LOST_BROKEN = 3,  /* could not be read */
	GPU_LOST_DISK = 4,
	GPU_LOST_N
};

/* A name that GPU records lead to: id = index + 1; id 0 is one that is not known. */
struct trace_gpu_name {
	char *text; /* a kernel's as the compiler mangled it */
};

struct trace_info {
	struct trace_meta meta;
	struct trace_span *spans;
	struct trace_probe *probes;
	struct trace_mapping *mappings;
	struct trace_process *processes;
	struct trace_thread *threads;
	struct trace_node *nodes; /* sorted by id */
	struct trace_loss *losses;
	struct trace_clock *clocks;
	struct trace_count *counts; /* nspans, or NULL: not closed cleanly */
	size_t nspans, nprobes, nmappings, nprocesses, nthreads, nnodes, nlosses, nclocks;
	struct trace_gpu_name *gpu_names;
	struct trace_gpu_loss *gpu_losses;
	size_t ngpu_names, ngpu_losses;
	uint64_t ngpu_records, gpu_bytes; /* in all blocks; of these, in the file */
	const void *aggregates; /* the last state of the kernel's sums: model/snapshot_file.h */
	size_t aggregates_len;
	uint64_t nevents;	    /* in all blocks */
	uint64_t first_ns, last_ns; /* of all events; 0 when there is none */
	uint64_t end_ns; /* recording ended; of a file cut short: the last that is known */
	bool clean;	 /* closed by the writer */
	uint64_t cut_at; /* not clean: offset of the first byte that is not part of a block */
	uint64_t unknown_blocks;	  /* of types that this version does not know: skipped */
	uint64_t file_bytes, event_bytes; /* of the file; of its event blocks */
};

#endif

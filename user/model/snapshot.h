/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A snapshot: the whole state of a session at one moment, as every output sees it. trace/
 * fills it from the maps; the model completes it (self times, shares, percentages); out/
 * only reads it. Owns all it points to.
 */
#ifndef QBPF_MODEL_SNAPSHOT_H
#define QBPF_MODEL_SNAPSHOT_H

#include "file/info.h"
#include "model/dist.h"
#include "model/cuda.h"
#include "model/gpu.h"
#include "model/hist.h"
#include "plan/plan.h"

/* What a recording made of a span's closed ones; held + lost + skipped is all of them. */
struct snap_recorded {
	uint64_t held;	  /* in the file */
	uint64_t lost;	  /* the ring was full, or the disk */
	uint64_t skipped; /* by --sample and --slow */
	uint64_t over;	  /* watched by --slow and over the limit */
};

struct snap_span {
	char *name;
	enum span_kind kind;
	enum return_way way;	 /* functions */
	struct hist *hist;	 /* never NULL */
	uint64_t open;		 /* frames or keys open now */
	uint64_t oldest_open_ns; /* start time of the oldest one, 0: none */
	uint64_t abandoned, orphan_ends;
	uint64_t depth_overflow, node_overflow, hist_overflow, no_storage;
	uint64_t unreadable, key_overflow, key_restarts, key_timeouts, ret_muted;
	uint64_t floor_ns; /* what an empty span of this kind reads on this host; 0: unknown */
	uint64_t price_ns; /* what one span costs the target; 0: unknown */
	bool refused;	   /* none of its sites is armed: it cannot have a hit */
	/* Of a recording: what hist holds, exactly; not owned, not copied to a file. NULL: there is
	 * only hist. */
	const struct dist *exact;
	struct snap_recorded recorded; /* zeros without a recording */
};

/* A minimum or maximum that the difference of two snapshots cannot tell. */
#define SNAP_UNKNOWN UINT64_MAX

struct snap_node {
	uint32_t id;	 /* from the kernel; nodes[] is sorted by id */
	uint32_t parent; /* id, 0: a root */
	uint32_t span;	 /* index into spans[] (span id - 1) */
	uint64_t count, total_ns, self_ns, min_ns, max_ns;
	const struct dist *exact; /* of a recording; not owned. NULL: there is none */
};

struct snap_site_note {
	char *site;   /* "strategy:tick__begin at 0x1234 in /usr/bin/foo" */
	char *reason; /* or the error, for failed ones */
};

struct snapshot {
	uint64_t start_ns, now_ns; /* CLOCK_MONOTONIC */
	/* target */
	int *pids;
	size_t npids;
	char *comm, *exe;
	bool ended; /* the target is gone */
	/* host */
	char *kernel, *cpu, *clocksource;
	unsigned int cpus;
	/* spans and tree */
	struct snap_span *spans;
	size_t nspans;
	struct snap_node *nodes;
	size_t nnodes;
	/* probes */
	uint64_t armed, relocated;
	struct snap_site_note *refused;
	size_t nrefused;
	struct snap_site_note *failed;
	size_t nfailed;
	char **notes;
	size_t nnotes;
	/* price: ns per hit by class; PRICE_N entries, 0: not measured */
	uint64_t price_ns[PRICE_N];
	uint64_t map_bytes; /* kernel memory that the maps take */
	/* recording */
	char *recording;       /* the file; NULL: nothing is recorded */
	char *recording_fault; /* what ended it before its time; NULL: nothing */
	uint64_t recording_bytes;
	struct cuda_calls *cuda; /* owned; NULL: no function of CUDA is traced */
	struct gpu_summary *gpu; /* since the start; one owner of it. NULL: no GPU was heard of */
	/* Records that did not get here, since the start; type 0: it is not known. */
	uint64_t gpu_lost[GPU_LOST_N][QBPF_RING_TYPES];
	uint64_t gpu_unseen; /* spans that gpu's figures lack, without a recording */
};

struct snapshot *snapshot__new(void);
void snapshot__free(struct snapshot *s);
struct snapshot *snapshot__clone(const struct snapshot *s);

/* s - base for counts and sums, as after "reset" or for one interval: `base` is an earlier
 * snapshot of the same session. Returns a new snapshot. */
struct snapshot *snapshot__since(const struct snapshot *s, const struct snapshot *base);

/* A marker alone, or a function whose returns are not seen: counted, its histogram is that of
 * the intervals between hits. */
bool snap_span__is_instant(const struct snap_span *span);

/* Derived figures, all pure functions of the snapshot. */
double snapshot__duration_s(const struct snapshot *s);
double snapshot__hits_per_s(const struct snapshot *s);	 /* probe hits, all sites */
double snapshot__overhead_pct(const struct snapshot *s); /* price x hits over wall time of one
							    CPU; negative: unknown */
/* What each span happened, by index; malloc'ed, NULL: no memory. An instant's hits are those of
 * its nodes (the histogram has one interval less), every other span's are in its histogram. */
uint64_t *snapshot__counts(const struct snapshot *s);
/* Why something that was counted is in no figure. */
enum snap_loss {
	SNAP_LOSS_DEPTH,
	SNAP_LOSS_HIST,
	SNAP_LOSS_STORAGE,
	SNAP_LOSS_UNREADABLE,
	SNAP_LOSS_KEYS,
	SNAP_LOSS_MUTED,
	SNAP_LOSSES
};

uint64_t snap_span__lost_by(const struct snap_span *s, enum snap_loss why);
uint64_t snap_span__lost(const struct snap_span *s);   /* for all reasons */
uint64_t snapshot__lost(const struct snapshot *s);     /* spans counted but not aggregated */
uint64_t snapshot__gpu_lost(const struct snapshot *s); /* records of the GPU, for all reasons */

#endif

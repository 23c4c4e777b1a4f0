/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the GPU did and why it waited: records of qbpf/ring.h and spans of the host go in, in any
 * order, sums come out.
 *
 * What goes in is kept until it is joined, so its order makes no difference, but only so much of it: beyond
 * opts.max_bytes, and with gpu__settle, the oldest is joined and added to the sums. What comes later
 * and is older is counted as `late`, and takes part in sums by name only.
 *
 * JOINING. A span is around an API call of the same thread that lies in it. A driver call within a
 * runtime call is the same call. A call and what it made the GPU do (an activity: kernel, copy, memset,
 * or graph as a whole) have the correlation id in common; of several calls with that id (it wraps; a
 * process that has called exec begins anew) the last that began before the activity. Several
 * activities may have one call: those of a graph.
 *
 * TIMES are CLOCK_MONOTONIC ns. Records on CUPTI's own clock are converted by the CLOCK records
 * around them. A time that cannot be is in no figure: the activity is `untimed`.
 */
#ifndef QBPF_MODEL_GPU_H
#define QBPF_MODEL_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/event.h"
#include "qbpf/ring.h"

struct gpu;
struct gpu_visitor; /* below */

struct gpu_opts {
	size_t max_bytes;		   /* of what waits to be joined; 0: 192 MiB */
	size_t pool_bytes;		   /* of distributions; 0: 32 MiB */
	const struct gpu_visitor *visitor; /* is shown all, one by one; NULL: nobody */
};

struct gpu *gpu__new(const struct gpu_opts *o);
void gpu__free(struct gpu *g);

/* Ids that records and events lead to, from the trace's tables or made up by the caller: 1, 2, .. of
 * names and spans, 0, 1, .. of threads. Each before what leads to it; strings are copied. 0 or -ENOMEM;
 * -EINVAL: not the next one. */
int gpu__name(struct gpu *g, uint32_t id, const char *text);
int gpu__span_name(struct gpu *g, uint32_t id, const char *text);
int gpu__thread(struct gpu *g, uint32_t index, uint32_t tgid, uint32_t tid);

/* What a process is called, by the tgid that its START record has. Again, when it has another name. */
int gpu__process(struct gpu *g, uint32_t tgid, const char *comm);

/* When the spans of the host were seen; to_ns GPU_UNKNOWN: they still are. Before that: always. */
void gpu__probes(struct gpu *g, uint64_t from_ns, uint64_t to_ns);

/* A record of ring number `ring`: of one process at a time. Unknown types are counted. 0 or -ENOMEM. */
int gpu__record(struct gpu *g, uint32_t ring, const struct qbpf_ring_record *rec);
/* A closed span of a thread; others than EVENT_SPAN are passed by. 0 or -ENOMEM. */
int gpu__span(struct gpu *g, const struct event *ev);

/* Joins and sums up what ended by to_ns, or a little earlier, where no span is open: whoever calls says
 * that no older one is to come. */
int gpu__settle(struct gpu *g, uint64_t to_ns);
/* All of it. What has no partner now has none. */
int gpu__finish(struct gpu *g);

/* --- one by one --------------------------------------------------------------------------------- */

/* An activity as it leaves, joined. */
struct gpu_seen {
	const struct qbpf_ring_record *rec; /* as it came in: its times are of its own clock */
	uint32_t ring, generation;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; 0 of an untimed one */
	uint64_t id;		   /* > 0, of this one alone */
	uint64_t asked_ns;	   /* the call's begin, or its own start; 0: untimed and no call */
	uint32_t tgid, tid;	   /* of the call */
	bool has_call;
	bool untimed;
	bool late; /* came after its time was settled: has no call */
};

/* A call as it leaves: after all that it made the GPU do. */
struct gpu_seen_call {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; 0: unknown */
	uint64_t first_id;	   /* of its activities, which have ids in a row */
	uint32_t activities;	   /* so many */
	uint32_t ring, tgid, tid, correlation;
	uint32_t name; /* id; 0: none */
	uint32_t error, domain;
	bool waits; /* the host waits in it for the GPU */
};

/* A piece of a gap, in which a device had nothing to do, of one cause. */
struct gpu_seen_idle {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	uint32_t ring, device;
	uint32_t name; /* id, of a span or a name, by cause; 0: none */
	uint8_t cause; /* enum gpu_cause */
};

/* Each returns 0 or a negative errno, which ends what the model was at. */
struct gpu_visitor {
	void *ctx;
	/* Of one settling in the order of devices and starts. */
	int (*activity)(void *ctx, const struct gpu_seen *a);
	/* By thread and begin, the outer one first. */
	int (*call)(void *ctx, const struct gpu_seen_call *c);
	/* By device, in no order within a gap; NULL: not wanted. */
	int (*idle)(void *ctx, const struct gpu_seen_idle *i);
	/* A settling is done: of what is still to come nothing was asked for before to_ns, as far
	 * as can be known. */
	int (*settled)(void *ctx, uint64_t to_ns);
};

/* --- what came out ------------------------------------------------------------------------------ */

#define GPU_UNKNOWN UINT64_MAX /* of a figure: the sample does not tell it */

/* Durations. */
struct gpu_figure {
	uint64_t count, total_ns, min_ns, max_ns; /* min and max are 0 when count is */
	uint64_t p50_ns, p90_ns, p99_ns;	  /* GPU_UNKNOWN: too few */
};

/* All kernels of one name; graphs launched as a whole are rows too. */
struct gpu_kernel {
	char *name;   /* demangled; of a graph "graph 7"; never NULL */
	char *symbol; /* as the compiler has it; NULL: no kernel or not known */
	bool graph;
	struct gpu_figure time;	 /* on the GPU */
	struct gpu_figure delay; /* from the launch's begin to the start, the first one of a call */
	struct gpu_figure call;	 /* the launch itself, on the host: the others */
	uint64_t first_calls;	 /* the first launch in each process, and */
	uint64_t first_call_ns;	 /* what they took */
	uint64_t seen_calls;	 /* the first that was seen, where the agent came later, and */
	uint64_t seen_call_ns;	 /* what they took: it may have been launched before */
	uint32_t grid[3], block[3]; /* of the largest launch */
	bool varies;		    /* others had other ones */
	uint32_t registers, shared; /* most of them */
	uint64_t untimed;
};

enum gpu_direction {
	GPU_TO_DEVICE,
	GPU_TO_HOST,
	GPU_ON_DEVICE,
	GPU_BETWEEN, /* two devices */
	GPU_ON_HOST,
	GPU_MEMSET,
	GPU_OTHER,
	GPU_DIRECTIONS
};
const char *gpu_direction_name(enum gpu_direction d);
/* Of a CUpti_ActivityMemcpyKind. */
enum gpu_direction gpu_direction_of(uint8_t kind);

/* All copies of one direction, kind of host memory and way of calling. */
struct gpu_copy {
	enum gpu_direction direction;
	bool pageable;	  /* the host's memory is */
	bool synchronous; /* the call returned when it was done */
	struct gpu_figure time;
	uint64_t bytes, min_bytes, max_bytes;
	uint64_t bytes_per_s; /* GPU_UNKNOWN: no time */
	struct gpu_figure delay;
	struct gpu_figure call; /* of synchronous ones: what the host waited */
	uint64_t alone_ns;	/* of time, without a kernel beside it on the device */
	uint64_t tiny, tiny_ns; /* of GPU_TINY bytes or less */
	uint64_t untimed;
};
#define GPU_TINY 4096

/* Calls of one API function. */
enum gpu_call_class { GPU_CALL_LAUNCH, GPU_CALL_COPY, GPU_CALL_SET, GPU_CALL_SYNC, GPU_CALL_OTHER };
struct gpu_call {
	char *name;
	enum gpu_call_class class;
	struct gpu_figure time;
	uint64_t failed;
	uint32_t error; /* of the last that failed */
};

/* Why a device had nothing to do. */
enum gpu_cause {
	GPU_IDLE_HOST,	 /* what came next had not been asked for: `name` is the span */
	GPU_IDLE_SYNC,	 /* the same, and the thread was in a call that waits: `name` is the call */
	GPU_IDLE_CALL,	 /* the same, in another call of the API */
	GPU_IDLE_LAUNCH, /* asked for, and not begun yet */
	GPU_IDLE_DEPENDENCY, /* asked for, and its stream was told to wait for an event */
	GPU_IDLE_UNKNOWN,    /* what came next has no call, or no span was seen at the time */
	GPU_CAUSES
};
const char *gpu_cause_name(enum gpu_cause c);

struct gpu_idle {
	enum gpu_cause cause;
	char *name; /* NULL: no span around, or the cause has no name */
	uint64_t gaps, total_ns, max_ns;
};

struct gpu_device {
	uint32_t ring, device;
	uint32_t
	    tgid;   /* of the ring's process; 0: not known, or several had it one after the other */
	char *comm; /* its name; NULL: not known */
	char *name; /* NULL: not known */
	uint32_t sms, capability_major, capability_minor, copy_engines;
	uint64_t memory_bytes, bandwidth_kbps;
	uint64_t activities;
	uint64_t from_ns, to_ns; /* its first start, its last end: what the following divide */
	uint64_t busy_ns;	 /* something runs */
	uint64_t compute_ns;	 /* a kernel, a graph or a memset does */
	uint64_t copy_ns;	 /* a copy does */
	uint64_t overlap_ns;	 /* both */
	uint64_t idle_ns;	 /* nothing: the sum of `idle` */
	struct gpu_idle *idle;	 /* greatest first */
	size_t nidle;
	/* What its times are wrong by, true + error, by causality: error_low <= error <= error_high.
	 * A launch begins before what it launches, and a wait returns after what it waits for.
	 * INT64_MIN, INT64_MAX: nothing tells. low above high: the error changed, by that much at
	 * least. */
	int64_t error_low_ns, error_high_ns;
	uint64_t early; /* activities that begin up to 1 ms before their call: in no delay */
};

enum { GPU_QUEUE_STEPS = 12 }; /* the last: that long or longer */

struct gpu_stream {
	uint32_t ring, generation, device, context, stream;
	uint32_t tgid; /* as of a device */
	bool null;     /* the default one of its context */
	uint32_t priority;
	uint64_t kernels, copies, sets;
	uint64_t kernel_ns, copy_ns, set_ns;
	struct gpu_figure delay;
	uint64_t queue_max; /* asked for and not done, at once */
	/* How many of them, when they were asked for, made it 1; 2; 3 or 4; 5 to 8; and so on. */
	uint64_t queue_found[GPU_QUEUE_STEPS];
	uint64_t queue_ns; /* sum of their times from call to end: / (to - from) is the mean */
	uint64_t from_ns, to_ns; /* first call, last end */
	uint64_t idle_ns;	 /* of it, between first start and last end */
};

/* Where a span lies that is not in the time that its process's agent recorded. */
enum gpu_outside {
	GPU_BEFORE_AGENT,
	GPU_AFTER_AGENT, /* or between two of them */
	GPU_PARTLY,
	GPU_OUTSIDE,
	GPU_INSIDE = GPU_OUTSIDE
};
const char *gpu_outside_name(enum gpu_outside o);

/* In what launches were: all of those that are in `calls`. */
enum gpu_launches {
	GPU_IN_SPAN,
	GPU_IN_NO_SPAN,	   /* that was seen */
	GPU_BEFORE_PROBES, /* spans were not seen yet */
	GPU_AFTER_PROBES,
	GPU_LAUNCHES
};
const char *gpu_launches_name(enum gpu_launches l);

/* What the GPU did for one span of the host: all its instances with a call of the API in them. */
struct gpu_span {
	uint32_t id; /* of gpu__span_name */
	char *name;
	uint64_t count;	    /* such instances */
	uint64_t total_ns;  /* they took: launch + sync + own, exactly */
	uint64_t launch_ns; /* in calls of the API that do not wait */
	uint64_t sync_ns;   /* in those that do, synchronous copies as well */
	uint64_t own_ns;    /* the rest: the CPU's */
	uint64_t busy_ns;   /* of total: something that it had asked for ran on a GPU */
	uint64_t after_ns;  /* the same, after its end */
	uint64_t launches, copies, copy_bytes, kernel_ns, copy_ns;
	struct gpu_figure delay;
	uint64_t cut; /* instances that were too long to be seen as a whole: in nothing else */
	uint64_t outside[GPU_OUTSIDE]; /* that the agent did not see as a whole: in nothing else */
};

/* The time in which all that a process asked for was recorded. */
struct gpu_agent {
	uint32_t ring, generation; /* 1, 2, ...: processes that had this ring */
	uint32_t tgid;
	uint32_t end;		 /* enum qbpf_ring_reason; 0: it goes on */
	bool from_start;	 /* it had not used CUDA before */
	uint64_t from_ns, to_ns; /* to: GPU_UNKNOWN: it goes on */
};
const char *gpu_end_name(uint32_t reason);

enum gpu_advice_kind {
	GPU_ADVICE_SYNC_COPY,	 /* synchronous copies */
	GPU_ADVICE_PAGEABLE,	 /* copies from and to pageable memory */
	GPU_ADVICE_TINY,	 /* many copies of few bytes */
	GPU_ADVICE_LAUNCH_BOUND, /* a kernel that takes less time than its launch */
	GPU_ADVICE_FIRST_LAUNCH, /* first launches that take long */
	GPU_ADVICE_HOST_LATE,	 /* a device waits for a span of the host */
	GPU_ADVICE_SYNC_GAP,	 /* a device waits while the host waits */
	GPU_ADVICE_FAILED,	 /* calls that fail */
	GPU_ADVICE_KINDS
};
const char *gpu_advice_name(enum gpu_advice_kind k);

/* What it rests on: figures that are in the summary elsewhere, or sums of them. */
struct gpu_advice {
	enum gpu_advice_kind kind;
	char *name;		      /* of the kernel, span or call; NULL: of none */
	uint32_t device;	      /* HOST_LATE, SYNC_GAP */
	uint32_t tgid;		      /* the same: of its process, when there are several; else 0 */
	enum gpu_direction direction; /* PAGEABLE, TINY */
	uint32_t error;		      /* FAILED */
	uint64_t count;		      /* copies, launches, gaps, calls */
	uint64_t bytes;
	uint64_t cost_ns; /* what they took: SYNC_COPY: of the host; TINY, PAGEABLE: of the GPU;
			     LAUNCH_BOUND, FIRST_LAUNCH: of the host; gaps: idle time */
	uint64_t of_ns;	  /* to compare with: SYNC_COPY: the time in which only copies ran;
			     LAUNCH_BOUND: on the GPU; FIRST_LAUNCH: so many warm ones; gaps: the time from
			     the device's first start to its last end */
	uint64_t save_ns; /* an upper bound of what can be saved; GPU_UNKNOWN: not told */
};

enum gpu_missing {
	GPU_NO_CALL,	  /* an activity without an API call */
	GPU_NO_ACTIVITY,  /* a launch, copy or memset without an activity */
	GPU_NO_SYNC_CALL, /* a synchronization without an API call */
	GPU_MISSING
};
const char *gpu_missing_name(enum gpu_missing m);

enum { GPU_OVERHEAD_KINDS = 8 }; /* CUpti_ActivityOverheadKind >> 16, and 0: all others */

struct gpu_summary {
	struct gpu_device *devices; /* by ring, then number; as streams */
	struct gpu_kernel *kernels; /* greatest total first; as copies, calls and spans */
	struct gpu_copy *copies;
	struct gpu_stream *streams;
	struct gpu_call *calls;
	struct gpu_span *spans;
	struct gpu_advice *advice; /* greatest cost first */
	size_t ndevices, nkernels, ncopies, nstreams, ncalls, nspans, nadvice;
	uint64_t records, unknown_records;
	uint64_t activities; /* kernels, copies, memsets and graphs, untimed ones as well */
	uint64_t untimed;    /* zero, reversed or impossible times */
	uint64_t late;	     /* came after their time was settled: in sums by name alone */
	uint64_t waiting;    /* activities that are in no figure yet */
	uint64_t missing[GPU_MISSING];
	struct gpu_agent *agents; /* by ring and generation */
	size_t nagents;
	uint64_t probes_from_ns, probes_to_ns; /* 0: not known; GPU_UNKNOWN: they go on */
	uint64_t launches[GPU_LAUNCHES];
	uint64_t outside[GPU_OUTSIDE];	 /* spans, of all names */
	uint64_t dropped;		 /* CUPTI says that it dropped so many records */
	uint64_t overflow;		 /* of a bounded table: names, streams, devices */
	uint64_t overheads, overhead_ns; /* the driver's and CUPTI's own */
	/* The times of devices are wrong by no more than this, by causality; GPU_UNKNOWN: nothing
	 * tells, or the error changed. */
	uint64_t clock_error_ns;
	uint64_t clock_change_ns;  /* by so much at least; 0: as far as can be told it did not */
	uint64_t convert_error_ns; /* a bound of what the conversion itself adds */
	bool converted;		   /* from CUPTI's own clock */
	bool exact;		   /* percentiles are */
	int refs;		   /* gpu_summary__get, __put */
};

/* Of all that is settled. NULL: no memory. Does not change when more comes. */
struct gpu_summary *gpu__summary(const struct gpu *g);
/* Several processes have devices, so that a device's number does not tell which it is. */
bool gpu_summary__shared(const struct gpu_summary *s);
/* Nothing of a GPU came. */
bool gpu__empty(const struct gpu *g);

/* What is new in `now` since `then`, of the same model, which is no later: greatest, least and percentiles
 * of what there was before are GPU_UNKNOWN where nothing tells them. NULL: no memory. */
struct gpu_summary *gpu_summary__since(const struct gpu_summary *now,
				       const struct gpu_summary *then);
struct gpu_summary *gpu_summary__get(struct gpu_summary *s); /* one more owner; NULL is legal */
void gpu_summary__put(struct gpu_summary *s);

#endif

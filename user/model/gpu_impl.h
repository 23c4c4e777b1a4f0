/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the model of the GPU: what waits to be joined, and the sums.
 *
 *	gpu.c		what comes in
 *	gpu_process.c	whose a ring is
 *	gpu_clock.c	times made CLOCK_MONOTONIC, generations
 *	gpu_join.c	calls, activities and spans find each other
 *	gpu_device.c	what devices did over time, and why they were idle
 *	gpu_streams.c	the same of streams
 *	gpu_waits.c	what waits of the host tell about clocks
 *	gpu_visit.c	each activity and call as it leaves, for whoever shows them
 *	gpu_spans.c	what the GPU did for spans of the host
 *	gpu_cover.c	in which times what was seen
 *	gpu_rows.c	what there are sums of
 *	gpu_sums.c	sums by name
 *	gpu_summary.c	what is told
 *	gpu_since.c	the same since an earlier one
 *	gpu_advice.c	what to make of it
 *	gpu_windows.c	a visitor: what was in some windows of time
 */
#ifndef QBPF_MODEL_GPU_IMPL_H
#define QBPF_MODEL_GPU_IMPL_H

#include "model/dist.h"
#include "model/gpu.h"
#include "model/id_map.h"

#define GPU_NONE	  UINT32_MAX
#define GPU_SKEW_NS	  1000000ull	/* a time that is further off than this is no time */
#define GPU_FUTURE_NS	  1000000000ull /* behind all that the host has said: the same */
#define GPU_KERNELS_MAX	  16384
#define GPU_STREAMS_MAX	  8192
#define GPU_DEVICES_MAX	  1024
#define GPU_CALLS_MAX	  4096
#define GPU_RINGS_MAX	  1024
#define GPU_PROCESSES_MAX 4096
#define GPU_NAMES_MAX	  (1u << 20)
#define GPU_POINTS_MAX	  (1u << 20)
#define GPU_STARTS_MAX	  1024
#define GPU_CALLERS_MAX	  65536
#define GPU_DEPTH_MAX	  64 /* spans around a call that it counts for */

/* A kernel, copy, memset, or a graph's launch as a whole. */
struct gpu_act {
	uint64_t start_ns, end_ns;
	uint64_t bytes;
	struct qbpf_ring_record *rec; /* a copy, for the visitor; NULL: there is none */
	uint32_t correlation, device, context, stream;
	uint32_t row;  /* of kernels; of a copy its group */
	uint32_t call; /* joined: index, or GPU_NONE */
	uint32_t generation, stream_row;
	uint16_t ring, device_row;
	uint8_t type; /* enum qbpf_ring_type */
	bool synchronous, converted;
	bool settled; /* joined: is to be summed up, now */
	bool untimed; /* joined: its times cannot be */
	bool first;   /* joined: of its call */
};

struct gpu_api {
	uint64_t start_ns, end_ns;
	uint64_t number; /* for the visitor; 0: none of its activities was seen */
	uint32_t seen;	 /* so many of them were */
	uint32_t tgid, tid, correlation, name, error;
	uint32_t outer; /* joined: the call that it is a part of, or itself */
	uint16_t ring;
	uint8_t class, domain;
	bool waits; /* the host waits in it for the GPU */
	bool converted;
	bool counted; /* it is in the sums, and */
	bool told;    /* its first activity is */
	bool has_act; /* joined with some activity, now or before */
	bool kept;    /* joined: stays, for what is still to come */
};

struct gpu_wait {
	uint64_t start_ns, end_ns;
	uint32_t correlation, context, stream, kind;
	uint32_t call;
	uint16_t ring;
	bool converted;
};

/* A span of the host. */
struct gpu_host {
	uint64_t start_ns, end_ns;
	uint64_t key; /* of its thread */
	uint32_t span;
	uint16_t depth;
	bool cut; /* some of its calls may have been settled before it came */
};

struct gpu_point {
	uint64_t cupti_ns, monotonic_ns;
	uint32_t error_ns;
};

struct gpu_start {
	uint64_t monotonic_ns;
	uint32_t clock;
};

struct gpu_ring {
	struct gpu_point *points; /* sorted by cupti_ns once sorted is set */
	struct gpu_start *starts; /* by time */
	size_t npoints, points_cap, nstarts, starts_cap;
	bool sorted;
	bool changed;  /* it was several processes', one after the other */
	uint32_t tgid; /* of the last; 0: not known */
};

struct gpu_process {
	uint32_t tgid;
	char *comm;
};

struct gpu_name {
	char *text;
	uint32_t same; /* the first id of this text */
	uint8_t class; /* of a call */
	bool classified, waits;
	uint32_t kernel; /* row + 1 */
	uint32_t api;	 /* row + 1 */
};

struct gpu_kernel_row {
	uint32_t name; /* id; of a graph its number */
	bool graph;
	struct dist *time, *delay, *call;
	uint64_t first_calls, first_call_ns, seen_calls, seen_call_ns, untimed;
	uint32_t grid[3], block[3];
	bool has_grid, varies;
	uint32_t registers, shared;
};

struct gpu_copy_row {
	struct dist *time, *delay, *call;
	uint64_t bytes, min_bytes, max_bytes, alone_ns, tiny, tiny_ns, untimed;
};
#define GPU_COPY_ROWS (GPU_DIRECTIONS * 4)

struct gpu_call_row {
	uint32_t name;
	struct dist *time;
	uint64_t failed, last_failed_ns;
	uint32_t error;
};

struct gpu_idle_row {
	uint32_t name; /* id of a span or a name, by cause; 0: none */
	uint8_t cause;
	uint64_t gaps, total_ns, max_ns;
};

struct gpu_device_row {
	uint32_t ring, device;
	struct qbpf_ring_device about; /* size 0: none came */
	uint64_t activities, early;
	uint64_t from_ns, to_ns; /* 0: nothing yet; to: the end of the last busy time */
	uint64_t busy_ns, compute_ns, copy_ns, overlap_ns, idle_ns;
	int64_t error_low_ns, error_high_ns;
	struct gpu_idle_row *idle;
	size_t nidle, idle_cap;
};

struct gpu_stream_row {
	uint32_t ring, generation, device, context, stream;
	struct dist *delay;
	uint64_t count[3], time_ns[3]; /* kernels and graphs, copies, memsets */
	uint64_t queue_found[GPU_QUEUE_STEPS];
	uint64_t queue_max, queue_ns, from_ns, first_ns, to_ns, idle_ns; /* times: 0: none yet */
};

struct gpu_span_row {
	uint64_t count, total_ns, launch_ns, sync_ns, busy_ns, after_ns;
	uint64_t launches, copies, copy_bytes, kernel_ns, copy_ns, cut;
	uint64_t outside[GPU_OUTSIDE];
	struct dist *delay;
};

/* What a CONTEXT or STREAM record said. */
struct gpu_known_stream {
	uint32_t ring, context, stream, priority;
};

struct gpu {
	struct gpu_opts opts;
	struct dist_pool *pool;
	struct gpu_name *names; /* [0] is none */
	uint32_t nnames, names_cap;
	struct id_map name_at; /* by hash of the text */
	char **span_names;     /* [0] is none */
	uint32_t nspan_names, span_names_cap;
	uint64_t *threads; /* tgid << 32 | tid */
	uint32_t nthreads, threads_cap;
	struct gpu_ring *rings;
	uint32_t nrings;
	struct gpu_process *processes;
	size_t nprocesses, processes_cap;
	struct gpu_agent *agents;
	uint32_t *agent_next;	/* of the same process; GPU_NONE: none */
	struct id_map agent_at; /* by tgid: its first */
	size_t nagents, agents_cap, agent_next_cap;
	uint64_t probes_from_ns, probes_to_ns;

	/* waiting */
	struct gpu_act *acts;
	struct gpu_api *calls;
	struct gpu_wait *waits;
	struct gpu_host *hosts;
	size_t nacts, ncalls, nwaits, nhosts;
	size_t acts_cap, calls_cap, waits_cap, hosts_cap;
	uint64_t settled_ns; /* all that ended by then is in the sums */
	uint64_t newest_ns;  /* of all that came and can be */
	uint64_t host_ns;    /* the latest time that the host told; 0: none */

	/* sums */
	struct gpu_kernel_row *kernels;
	struct gpu_copy_row copies[GPU_COPY_ROWS];
	struct gpu_call_row *apis;
	struct gpu_device_row *devices;
	struct gpu_stream_row *streams;
	struct gpu_span_row *spans; /* by id; nspan_names + 1, or fewer */
	struct gpu_known_stream *known, *nulls;
	size_t nkernels, napis, ndevices, nstreams, nspans, nknown, nnulls;
	size_t kernels_cap, apis_cap, devices_cap, streams_cap, known_cap, nulls_cap;
	struct id_map graph_at, device_at, stream_at;
	struct id_map first_at; /* launched before: ring, generation, kernel */
	struct id_map
	    caller_at; /* by thread: in caller_ns, the end of its last call that has left */
	uint64_t *caller_ns;
	size_t ncallers, callers_cap;
	uint64_t records, unknown_records, activities, untimed, late, dropped, overflow;
	uint64_t overheads, overhead_ns, missing[GPU_MISSING], convert_error_ns;
	uint64_t launches[GPU_LAUNCHES];
	bool converted;
	uint64_t numbered; /* calls that were given a number, and activities without a call */
};

/* Room for one more element of `size` bytes in an array. 0 or -ENOMEM. */
int gpu_grow(void *array, size_t n, size_t *cap, size_t size);
static inline int gpu_add(struct dist **d, struct dist_pool *p, uint64_t ns)
{
	if (!*d)
		*d = dist__new(p, QBPF_HIST_NS);
	return *d ? dist__add(*d, ns, 1) : -ENOMEM;
}

/* gpu_process.c: a START record of this ring has come. */
void gpu_process__note(struct gpu_ring *r, uint32_t tgid);
/* The one process that had the ring; 0: not known, or there were several. */
uint32_t gpu_process__of(const struct gpu *g, uint32_t ring);
const char *gpu_process__comm(const struct gpu *g, uint32_t tgid); /* NULL: not known */
void gpu_process__clear(struct gpu *g);

/* gpu_clock.c: times of what waits become CLOCK_MONOTONIC. */
void gpu_clock__convert(struct gpu *g);
/* All that waits is younger than this: readings of clocks before it are of no use any more. */
void gpu_clock__forget(struct gpu *g, uint64_t ns);
/* Which of the processes that had this ring one after the other. */
uint32_t gpu_clock__generation(const struct gpu *g, uint32_t ring, uint64_t ns);

/*
 * One settling: everything that waits, sorted and joined. Calls are sorted by thread and begin,
 * activities by device and start, spans by thread and begin (the outer first); the others are
 * orders of these, as indices.
 */
struct gpu_join {
	struct gpu *g;
	uint64_t to_ns; /* what ends by then is settled */
	bool final;
	uint32_t *by_id;     /* calls by ring, correlation, begin */
	uint32_t *by_call;   /* timed activities that have a call, by it and start */
	uint32_t *by_stream; /* timed activities by stream, begin of the call, start */
	size_t nby_call, nby_stream;
	/* What each thread was in, from a moment to the next one of the thread. */
	struct gpu_segment {
		uint64_t key, from_ns;
		uint32_t span;
	} * segments;
	size_t nsegments;
};

/* As gpu__settle, at that very moment. */
int gpu_join__settle(struct gpu *g, uint64_t to_ns);
/* The first call, of all sorted, of that thread or a later one that does not begin before ns. */
size_t gpu_join__call_at(const struct gpu *g, uint64_t key, uint64_t ns);
/* When an activity was asked for. */
static inline uint64_t gpu_asked_ns(const struct gpu *g, const struct gpu_act *a)
{
	return a->call == GPU_NONE || g->calls[a->call].start_ns > a->start_ns
		   ? a->start_ns
		   : g->calls[a->call].start_ns;
}

/* The parts of a settling, in this order. 0 or -ENOMEM. */
int gpu_waits__check(struct gpu_join *j);    /* what waits tell: clocks, untimed ones */
int gpu_spans__segments(struct gpu_join *j); /* sorts the spans as well */
int gpu_devices__sweep(struct gpu_join *j);
int gpu_streams__sum(struct gpu_join *j);
int gpu_spans__sum(struct gpu_join *j);
int gpu_sums__settle(struct gpu_join *j);

/* Of all segments the first, of that thread or a later one, that begins after ns. */
size_t gpu_spans__after(const struct gpu_join *j, uint64_t key, uint64_t ns);

/* gpu_cover.c */
int gpu_cover__window(struct gpu *g, uint32_t ring, const struct qbpf_ring_window *w);
enum gpu_outside gpu_cover__span(const struct gpu *g, uint32_t tgid, uint64_t start_ns,
				 uint64_t end_ns);
/* A call that launches, as it is counted. */
void gpu_cover__launch(struct gpu_join *j, const struct gpu_api *c);
/* Is all seen that this process (a number of gpu_clock__generation) ever asked a GPU for? */
bool gpu_cover__from_start(const struct gpu *g, uint32_t ring, uint32_t generation);

/* One activity that came too late: by name alone. */
int gpu_sums__late(struct gpu *g, const struct gpu_act *a);
void gpu_sums__untimed(struct gpu *g, const struct gpu_act *a);

/* The rows; created when new. GPU_NONE: no room. */
uint32_t gpu_row__kernel(struct gpu *g, uint32_t name);
uint32_t gpu_row__graph(struct gpu *g, uint32_t graph);
uint32_t gpu_row__device(struct gpu *g, uint32_t ring, uint32_t device);
uint32_t gpu_row__stream(struct gpu *g, const struct gpu_act *a);
uint32_t gpu_row__api(struct gpu *g, uint32_t name);

/* gpu_visit.c. Before it is summed up or dropped: an activity of g->acts. 0 or what the visitor said. */
int gpu_visit__activity(struct gpu_join *j, struct gpu_act *a, bool late);
/* A call that leaves. */
int gpu_visit__call(struct gpu *g, const struct gpu_api *c);
/* A piece of a gap, as it is found. */
int gpu_visit__idle(struct gpu *g, const struct gpu_seen_idle *i);
int gpu_visit__settled(struct gpu_join *j);
/* The call that an activity was asked for by, whose times cannot be; GPU_NONE: there is none. */
uint32_t gpu_join__call_of_untimed(const struct gpu_join *j, const struct gpu_act *a);
/* A call whose activity may still come. */
bool gpu_join__expects(const struct gpu_api *c);

/* gpu_advice.c: fills s->advice. */
int gpu_advice__make(struct gpu_summary *s);
/* gpu_summary.c: sorts all rows, and makes the advice. */
int gpu_summary__finish(struct gpu_summary *s);
void gpu_copy__rate(struct gpu_copy *c);
void gpu_name__classify(struct gpu_name *n);

static inline uint64_t gpu_thread_key(uint32_t tgid, uint32_t tid)
{
	return (uint64_t)tgid << 32 | tid;
}

static inline bool gpu_is_compute(const struct gpu_act *a)
{
	return a->type != QBPF_RING_COPY;
}

#endif

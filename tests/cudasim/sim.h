/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sim.h - the simulated GPU behind the simulated libcuda, libcudart and libcupti
 *
 * The core lives in libcuda.so.1, as the driver does; the other two libraries are linked to it and
 * use its sim_* functions. README.md describes the model and how it is steered.
 *
 * Times are ns of the simulator's clock: CLOCK_MONOTONIC, or a virtual one. All that happens on a
 * device is computed when it is submitted: what an operation waits for has then a known end, so
 * its own start and end are known too, and the host only has to wait for them. An end of SIM_NEVER
 * is that of a kernel that never ends and of all that waits for it.
 */
#ifndef CUDASIM_SIM_H
#define CUDASIM_SIM_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SIM_NEVER	  UINT64_MAX
#define SIM_DEVICES	  8
#define SIM_SLOTS	  128
#define SIM_QUEUE_MAX	  1024
#define SIM_BLOCK_THREADS 1024 /* that a block can have */

/* --- config.c: the environment ---------------------------------------------------------------- */

enum sim_hang { HANG_NONE, HANG_FINALIZE, HANG_FLUSH };
enum sim_order { ORDER_NATURAL, ORDER_API_FIRST, ORDER_API_LAST, ORDER_SHUFFLE };
enum sim_times { TIMES_TRUE, TIMES_ZERO, TIMES_REVERSED, TIMES_FUTURE };

/* Every number of CUDASIM; the table in config.c has their names, README.md what they mean. */
struct sim_config {
	int64_t virtual_clock, seed, devices, slots, queue, jitter;
	int64_t call_ns, init_ns, load_ns, latency_ns, node_ns, kernel_ns, host_ns;
	int64_t copy_ns, h2d_mbs, d2h_mbs, d2d_mbs, p2p_mbs, pageable_mbs, memset_mbs;
	int64_t correlation;
	/* libcupti */
	int64_t version, record_pad, threads, subscribe, enable_kind, enable_error, drop, order,
	    times, times_every, offset_ns, drift_ppb, hang, race, complete_ns, fatal;
};
const struct sim_config *sim_config(void);

/* The error that CUDASIM_FAIL wants from this call of `name`; 0: none. */
int sim_fault(const char *name);

/* How long CUDASIM_KERNELS wants `name` to run: false when it does not say. arg < 0: ns. */
bool sim_kernel_rule(const char *name, int *arg, uint64_t *ns);

/* --- clock.c ---------------------------------------------------------------------------------- */

uint64_t sim_now(void);
/* Returns when sim_now() is `when`; never for SIM_NEVER. */
void sim_wait_until(uint64_t when);
/* The host works for that long. */
void sim_spend(uint64_t ns);
/* When the simulator was loaded. */
uint64_t sim_epoch(void);
/* What has to be added to a time of this clock to get CLOCK_REALTIME. */
int64_t sim_realtime_offset(void);
/* A number of 64 bits that depends on the seed and on n alone. */
uint64_t sim_random(uint64_t n);

/* --- activities: what a device did ------------------------------------------------------------ */

enum sim_kind {
	SIM_KERNEL,
	SIM_MEMCPY,
	SIM_MEMSET,
	SIM_SYNC,
	SIM_GRAPH,
	SIM_OVERHEAD,
	SIM_EVENT,
	SIM_HOSTFN,
};

struct sim_activity {
	enum sim_kind kind;
	uint32_t correlation, tid;
	uint32_t device, context, stream;
	uint64_t submit, start, end;
	/* kernels; name is never freed */
	const char *name;
	uint32_t grid[3], block[3], shared;
	uint8_t launch_type;
	/* copies and memsets: CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind */
	uint64_t bytes;
	uint8_t copy_kind, src_kind, dst_kind;
	bool async;
	uint32_t value, src_device, dst_device, src_context, dst_context;
	/* syncs: CUpti_ActivitySynchronizationType; overheads: CUpti_ActivityOverheadKind */
	uint32_t type, event, result;
	/* 0: not in a graph */
	uint32_t graph;
	uint64_t node;
};

/* --- call.c: what happens around every entry point -------------------------------------------- */

enum sim_domain { SIM_DRIVER = 1, SIM_RUNTIME = 2 }; /* CUpti_CallbackDomain */

struct sim_call {
	struct sim_call *parent; /* the runtime call that made this driver call */
	const char *name;
	enum sim_domain domain;
	uint32_t cbid, correlation, tid;
	bool per_thread; /* stream 0 is the thread's own */
	const void *params;
	uint64_t enter, exit;
	uint64_t tool_data;
	int result;
};

/* The thread's own state. */
struct sim_thread {
	struct sim_call *call;
	uint32_t tid;
	int device;
	CUcontext ctx;
	int last_error;
};
struct sim_thread *sim_self(void);

/* 0, or the error that the call has to return at once; call sim_call_exit in any case. */
int sim_call_enter(struct sim_call *c);
int sim_call_exit(struct sim_call *c, int result);

/* What libcupti hangs into the core. activity() and dropped work are called with sim_lock held. */
struct sim_tools {
	void (*enter)(struct sim_call *c);
	void (*exit)(struct sim_call *c);
	void (*api)(const struct sim_call *c);
	void (*activity)(const struct sim_activity *a);
	void (*forked)(void);
};
void sim_tools_set(const struct sim_tools *tools);
void sim_activity_done(const struct sim_activity *a);

/* Starts the simulator once: cuInit's work. False in a forked child, as the driver has it. */
bool sim_start(void);
bool sim_started(void);

extern pthread_mutex_t sim_lock; /* guards contexts, streams, events, graphs, memory, kernels */

/* --- truth.c: CUDASIM_TRUTH ------------------------------------------------------------------- */

void truth_open(void);
void truth_call(const struct sim_call *c);
void truth_activity(const struct sim_activity *a);
/* What a tool did: a CUPTI call, its argument and result. */
void sim_truth_tool(const char *name, uint32_t arg, int result);
/* A record that a tool did not get: what is the kind of the record. */
void sim_truth_lost(const char *what, uint32_t correlation);
void truth_forget(void);

/* --- memory.c --------------------------------------------------------------------------------- */

enum sim_memory { MEM_PAGEABLE = 1, MEM_PINNED = 2, MEM_DEVICE = 3, MEM_MANAGED = 5 };

struct sim_block {
	uintptr_t start;
	size_t size;
	enum sim_memory kind;
	int device;
	bool owned; /* ours to free */
};
/* All with sim_lock held. NULL: no memory. */
void *memory_new(size_t size, enum sim_memory kind, int device);
bool memory_register(void *p, size_t size);
bool memory_free(const void *p, size_t *size);
/* A copy of what is known about the block that holds p; pageable when it is not ours. */
struct sim_block memory_find(const void *p);
size_t memory_used(int device);
/* The same as memory_find, without the lock. */
struct sim_block sim_memory_find(const void *p);

/* --- kernels.c -------------------------------------------------------------------------------- */

#define SIM_PARAMS 16

struct sim_kernel {
	const char *name;
	const void *stub; /* host function; NULL: none */
	int n_params;	  /* -1: unknown */
	uint8_t param_size[SIM_PARAMS];
	int length_arg; /* -1: length_ns */
	uint64_t length_ns;
	uint32_t loaded; /* bit per device */
	void (*effect)(void **args);
	struct sim_kernel *next;
};
/* With sim_lock held. */
struct sim_kernel *kernel_new(const char *name, const void *stub);
/* By host stub, or a kernel itself; makes one for a host function with a symbol. NULL: no kernel. */
struct sim_kernel *kernel_find(const void *func);
uint64_t kernel_length(const struct sim_kernel *k, void **args);

/* Without the lock. */
void sim_kernel_register(const char *name, const void *stub);
CUfunction sim_kernel_of(const void *func);

struct sim_library {
	struct sim_kernel **kernels;
	unsigned int n;
};
struct sim_library *library_new(const char *image);

/* --- timeline.c ------------------------------------------------------------------------------- */

struct sim_graph;

struct CUctx_st {
	uint32_t id;
	int device;
	struct CUstream_st *legacy;
	struct CUstream_st *streams;
	uint64_t blocking_end; /* of all streams that the legacy one waits for */
	unsigned int flags;
};

struct CUstream_st {
	struct CUctx_st *ctx;
	struct CUstream_st *next;
	uint32_t id;
	bool blocking; /* waits for the legacy stream and the other way round */
	uint32_t tid;  /* per-thread default stream of that thread; 0: not one */
	int priority;
	unsigned int flags;
	uint64_t end; /* of what was submitted last */
	uint64_t ends[SIM_QUEUE_MAX];
	unsigned int n_ends;
	struct CUgraph_st *capture;
	struct CUgraphNode_st *capture_last;
	bool capture_origin;
};

struct CUevent_st {
	uint32_t id;
	unsigned int flags;
	bool recorded;
	uint64_t time;
	struct CUctx_st *ctx;
	struct CUgraph_st *capture;
	struct CUgraphNode_st *capture_node;
};

/* With sim_lock held, all of them. */
struct CUctx_st *context_new(int device);
struct CUctx_st *context_primary(int device);
struct CUstream_st *stream_new(struct CUctx_st *ctx, unsigned int flags, int priority);
void stream_free(struct CUstream_st *s);
/* The stream that a handle means in the current call; NULL: no context. */
struct CUstream_st *stream_of(CUstream handle);
uint64_t context_end(const struct CUctx_st *ctx);

/* Fills what is common, places the operation on its engine and tells the tools. The time until
 * which the host is held up by a full queue comes back in *held. */
void timeline_submit(struct CUstream_st *s, struct sim_activity *a, uint64_t length,
		     uint64_t *held);
/* The same for a node of a graph, which is ready at `ready`. */
void timeline_place(const struct CUctx_st *ctx, struct sim_activity *a, uint64_t ready,
		    uint64_t length);
uint64_t timeline_ready(const struct CUstream_st *s, uint64_t now);
void timeline_advance(struct CUstream_st *s, uint64_t end);
uint64_t timeline_held(const struct CUstream_st *s);
/* Adds what identifies the operation to *a. */
void timeline_name(const struct CUstream_st *s, struct sim_activity *a);
uint64_t copy_length(const struct sim_activity *a);

/* --- graph.c ---------------------------------------------------------------------------------- */

enum sim_node_kind { NODE_EMPTY, NODE_OP, NODE_HOST, NODE_RECORD, NODE_WAIT };

struct CUgraphNode_st {
	struct CUgraph_st *graph;
	uint64_t id;
	enum sim_node_kind kind;
	struct sim_activity op;
	uint64_t length;
	struct sim_kernel *kernel;
	void *args[SIM_PARAMS]; /* copies; of kernels whose parameters are known */
	void *dst;
	const void *src;
	CUhostFn fn;
	void *fn_data;
	CUevent event;
	struct CUgraphNode_st **deps;
	unsigned int n_deps;
	uint64_t end; /* while the graph is being launched */
};

struct CUgraph_st {
	uint32_t id;
	struct CUgraphNode_st **nodes;
	unsigned int n, cap;
};

struct CUgraphExec_st {
	uint32_t id;
	struct CUgraph_st *graph; /* a copy of its own */
};

/* With sim_lock held. */
struct CUgraph_st *graph_new(void);
struct CUgraph_st *graph_clone(const struct CUgraph_st *g);
void graph_free(struct CUgraph_st *g);
struct CUgraphNode_st *graph_add(struct CUgraph_st *g, enum sim_node_kind kind,
				 struct CUgraphNode_st *const *deps, size_t n_deps);
bool graph_depend(struct CUgraphNode_st *node, struct CUgraphNode_st *on);
/* The node for something submitted to a stream that is being captured. */
struct CUgraphNode_st *graph_capture(struct CUstream_st *s, enum sim_node_kind kind);
void graph_launch(struct CUgraphExec_st *e, struct CUstream_st *s, uint64_t *held);
/* Runs fn at `when`, in the order of submission. */
void hostfn_submit(uint64_t when, CUhostFn fn, void *data);
/* Returns when all host functions that were due before `until` have returned. */
void hostfn_wait(uint64_t until);

/* --- ops.c: what the driver's functions have in common ---------------------------------------- */

struct sim_launch {
	unsigned int grid[3], block[3], shared;
	CUstream stream;
	bool cooperative;
};
CUresult op_launch(const struct sim_launch *l, struct sim_kernel *k, void **args);
struct CUgraphNode_st *op_launch_node(struct CUgraphNode_st *n, const struct sim_launch *l,
				      struct sim_kernel *k, void **args);
void op_copy_fill(struct sim_activity *a, const void *dst, const void *src, size_t bytes,
		  bool async);
CUresult op_copy(void *dst, const void *src, size_t bytes, CUstream stream, bool async);
CUresult op_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		    size_t height, CUstream stream, bool async);
CUresult op_memset(void *dst, uint32_t value, size_t element, size_t n, CUstream stream,
		   bool async);
CUresult op_sync(uint32_t type, const struct CUctx_st *ctx, const struct CUstream_st *s,
		 const struct CUevent_st *e, uint64_t until);

#endif /* CUDASIM_SIM_H */

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a recording says: computed in two passes over a trace, with bounded memory, and read by
 * report, html, diff and check. Everything here is about the spans that the file holds, except
 * where a field says "counted": those are the kernel's own sums.
 *
 * Durations: SPAN, ASIDE and KEYED events. OPEN spans are in no figure.
 */
#ifndef QBPF_MODEL_ANALYSIS_H
#define QBPF_MODEL_ANALYSIS_H

#include "err.h"
#include "file/reader.h"
#include "model/dist.h"
#include "model/gpu_windows.h"
#include "model/hist.h"
#include "model/snapshot.h"

struct analysis_opts {
	size_t windows;	 /* stretches of time for figures over time; 0: 100 */
	size_t slowest;	 /* how many of the slowest outermost spans to keep whole; 0: none */
	size_t tree_max; /* events to keep of each of those; 0: 10000 */
	bool per_thread; /* nodes of each thread apart */
	/* Whose slowest: a span's name; NULL: the outermost span with most time. */
	const char *root;
	size_t pool_bytes; /* of all distributions and figures over time; 0: 160 MiB */
	size_t gpu_most;   /* what a GPU did beside each of the slowest, so much; 0: not wanted */
};

/* One stretch of time of one span. */
struct an_window {
	uint64_t count, sum_ns, self_ns;
	struct hist *hist; /* NULL: nothing came */
};

struct an_span {
	const struct trace_span *def;
	uint64_t held;			 /* in the file */
	uint64_t counted, lost, skipped; /* the kernel's; UINT64_MAX: not known (not clean) */
	uint64_t open;
	/* Durations; values; of an instant the intervals from hit to hit, of all threads in order of
	 * time. Never NULL. */
	struct dist *dist;
	uint64_t total_ns, self_ns;
	struct an_window *windows; /* nwindows, or NULL when held is 0 */
	uint64_t backwards; /* ended before they began: the file is damaged; in nothing else */
};

#define AN_ALL_THREADS UINT32_MAX
#define AN_OPEN_MAX    256

/*
 * A place in the call tree. Where the file does not say which, it is told by the span around it;
 * where that is not in the file either, its parent is QBPF_NODE_LOST, and so its caller. Such places
 * have ids beyond those of the trace's node table. A parent is there too, perhaps with count 0 (it
 * was never seen to end), and its id is below its children's.
 */
struct an_node {
	uint32_t id, parent; /* parent 0: a root */
	uint32_t span;	     /* id */
	uint32_t thread;     /* index, or AN_ALL_THREADS */
	uint64_t count, total_ns, self_ns;
	uint64_t min_ns, max_ns; /* of durations; 0 when there is none */
	/* NULL: it has no durations (an instant, or count is 0), or there are so many nodes, each
	 * thread having its own, that only sums are kept. */
	struct dist *dist;
};

/* Calls from one span directly into another. */
struct an_edge {
	uint32_t caller; /* span id; 0: nothing around it; QBPF_NODE_LOST: not known */
	uint32_t callee;
	uint64_t count, total_ns;
};

/*
 * One outermost span with all that ran inside it on its thread, instants and values too, in the order
 * in which they began: whatever is deeper and follows, until one is not, is inside. Beyond tree_max
 * the shortest are left out.
 */
struct an_tree {
	struct event *events; /* [0] is the outermost */
	size_t n;
	uint64_t left_out; /* beyond tree_max */
};

/* One step of the path of greatest time down a tree. */
struct an_step {
	uint32_t span;
	uint64_t ns;	  /* of the one instance on the path */
	uint64_t self_ns; /* of it */
	double share;	  /* ns of the outermost span's, 0..1 */
};

struct an_path {
	struct an_step *steps;
	size_t n;
	struct event root;
};

struct analysis {
	const struct trace_info *info; /* the reader's: must outlive this */
	uint64_t start_ns, end_ns;     /* what the windows divide */
	size_t nwindows;	       /* fewer than asked for when there are many spans */
	struct an_span *spans;	       /* info->nspans, by id - 1 */
	struct an_node *nodes;	       /* sorted by thread, then id */
	size_t nnodes;
	struct an_edge *edges; /* sorted by caller, then callee */
	size_t nedges;
	uint32_t root;		 /* span id of the outermost spans below; 0: there is none */
	struct an_tree *slowest; /* the slowest first */
	size_t nslowest;
	struct an_tree median; /* the root span of median duration; n 0: none */
	struct an_path slowest_path, median_path;
	uint64_t held, counted, lost, skipped; /* sums; UINT64_MAX: not known */
	bool exact;			       /* no distribution had to give up bits */
	uint64_t backwards;		       /* sum of the spans' */
	uint64_t unknown;   /* events of spans, threads or kinds that the file does not explain */
	struct event *open; /* that never ended: the oldest AN_OPEN_MAX, the oldest first */
	size_t nopen;
	struct gpu_summary *gpu; /* NULL: the file has nothing of a GPU */
	/* What the GPU did beside each of `slowest`, then beside the median; where there is none of
	 * them, from the file's start to its end. NULL: nothing of a GPU, or not asked for. */
	struct gpu_windows *gpu_windows;
	struct snapshot *kernel; /* the kernel's own sums, within 1.6 %; NULL: not in the file */
};

/* -ENOENT: there is no span opts->root. Negative with e: the trace is damaged. */
int analysis__new(struct trace_reader *r, const struct analysis_opts *o, struct analysis **out,
		  struct err *e);
void analysis__free(struct analysis *a);

/* The id of a span's name; 0: there is no such span. */
uint32_t analysis__span(const struct analysis *a, const char *name);
/* Index of the node around nodes[i]; SIZE_MAX: a root, or what is around it is not known. */
size_t analysis__parent(const struct analysis *a, size_t i);

/*
 * The same figures as a snapshot, for the views that show one: spans and nodes have their exact
 * distributions (a must outlive it); what only the kernel counts (abandoned ...) is the kernel's, when
 * that is in the file. NULL: no memory.
 */
struct snapshot *analysis__snapshot(const struct analysis *a);
/* Nodes of one thread, or of all together; malloc'ed. -ENOMEM. */
int analysis__snap_nodes(const struct analysis *a, uint32_t thread, struct snap_node **out,
			 size_t *n);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How an analysis is put together: what the passes over a trace share. Private to
 * model/analysis*.c.
 */
#ifndef QBPF_MODEL_ANALYSIS_IMPL_H
#define QBPF_MODEL_ANALYSIS_IMPL_H

#include "model/analysis.h"
#include "model/id_map.h"

/* One instance of a span that may become one of the slowest. */
struct an_instance {
	uint64_t ns;
	struct event ev;
};

/* What is gathered for one span beside its figures. */
struct an_gather {
	struct an_instance *slowest; /* a heap, the fastest of them first */
	size_t nslowest;
	uint64_t outer_ns, outer; /* of its outermost instances: time and number */
	uint64_t later_ns;	  /* instants: the hit after this one; 0: none */
	uint32_t thread;	  /* instants: of all hits so far */
	bool shared;		  /* instants: several threads have it, a pass of its own */
	bool begun;		  /* which has seen the first hit */
};

/* A span that may be around what comes next, at one depth of one thread. */
struct an_around {
	uint64_t start_ns, end_ns;
	uint32_t node; /* id */
	bool open;     /* never ended */
};

struct an_thread {
	struct an_around *around;
	uint32_t depth, cap;
};

/* The analysis and what it owns beyond what its readers see. */
struct an_build {
	struct analysis a; /* first: the one is the other */
	struct analysis_opts opts;
	struct trace_reader *reader;
	const struct trace_info *info;
	struct dist_pool *pool;
	struct dist_pool *node_pool; /* of nodes: the same; another; NULL: they have none */
	uint32_t root;		     /* id of opts.root; 0: not given */
	/* while it is being put together */
	struct an_gather *gather; /* by span */
	struct an_thread *threads;
	size_t nodes_cap;
	struct id_map node_at;	/* thread << 32 | id -> index into a.nodes */
	struct id_map place_at; /* parent << 32 | span -> id; only once it is needed */
	bool places_known;
	uint32_t next_id;      /* of a place that the trace's table does not have */
	uint64_t window_ns;    /* width */
	uint64_t *instants;    /* by window, of all spans */
	uint64_t lo_ns, hi_ns; /* of the window last asked for */
	uint32_t window;
};

/* The window of a time. */
uint32_t an__window(struct an_build *b, uint64_t ns);
/* An interval of an instant that ended at at_ns. */
int an__add_interval(struct an_build *b, struct an_span *s, uint64_t at_ns, uint64_t ns);
void an__forget_intervals(struct an_build *b, struct an_span *s);

/*
 * analysis_nodes.c. Events come from the last to the first, so a span comes before all that ran
 * inside it.
 *
 * The node of a span or instant. It stays at its place until the next call.
 */
int an__node(struct an_build *b, const struct event *ev, struct an_node **out);
/* Most of the time goes into waiting for the memory of distributions: have it fetched meanwhile, in two
 * steps. */
void an__prefetch_early(const struct an_build *b, const struct event *ev);
void an__prefetch(const struct an_build *b, const struct event *ev);
/* The span is around what comes next. */
int an__enter(struct an_build *b, const struct event *ev, uint32_t node);
/* Nothing is around it but spans that never ended. */
bool an__outermost(const struct an_build *b, const struct event *ev);
/* Ancestors, order, edges, and the spans' distributions from those of their nodes. */
int an__finish_nodes(struct an_build *b);

/* analysis_instants.c: intervals of instants that several threads hit. */
int an__shared_instants(struct an_build *b, struct err *e);

/* analysis_gpu.c: what the GPU did. */
int an__gpu(struct an_build *b, struct err *e);

/* analysis_trees.c: whole trees of some outermost spans, and the paths of greatest time. */
int an__trees(struct an_build *b, struct err *e);

#endif

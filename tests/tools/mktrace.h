/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What mktrace and its shapes share. */
#ifndef MKTRACE_H
#define MKTRACE_H

#include <stdio.h>

#include "file/writer.h"

#define MAKE_TGID     4000
#define MAKE_REALTIME 1700000000000000000ull /* of the clock's zero */

struct maker;
struct run;

struct shape {
	const char *name, *what;
	/* Makes the spans: room for --depth and 4096 more. NULL: all other shapes at once. */
	void (*setup)(struct maker *m, uint32_t *spans);
	void (*step)(struct maker *m, struct run *r); /* some events more, on one thread */
	void (*finish)(struct maker *m, struct run *r);
	uint64_t uptime_ns; /* the machine has run for so much longer */
	uint64_t lost_in;   /* one in so many is lost, unless --lose says other */
	const char *comm;
	char *thread_name;
	bool alone; /* does not take part when all shapes run */
};

extern const struct shape make_shapes[]; /* up to one without a name */

/* A thread that runs a shape. */
struct run {
	const struct shape *shape;
	const uint32_t *spans;
	uint32_t thread, number;
	char *name;
	uint64_t steps;
};

struct made_thread {
	uint64_t clock_ns, start_ns;
	uint32_t tid;
};

/* A place in a program's call tree; children lie side by side in the same array. */
struct branch {
	uint32_t span; /* index into the run's spans */
	uint32_t self_ns;
	uint32_t nchildren, first_child;
};

struct maker {
	const struct shape *shape;
	uint64_t left; /* events still to make */
	uint32_t want_threads, depth;
	uint64_t random;
	uint64_t start_ns;
	char *slow_name;
	double slow_factor;
	uint64_t lost_in;
	bool no_close;
	FILE *truth; /* NULL: not asked for */

	struct trace_writer *writer;
	uint32_t nspans, nthreads, nnodes, nruns;
	struct trace_count *counts; /* by span, as the next two */
	uint64_t *window_lost;
	double *factors; /* of --slow-span */
	struct made_thread *threads;
	struct trace_node *nodes;
	uint32_t *node_slots, node_mask;
	struct run *runs;
	uint64_t window_ns, last_ns;
};

uint64_t make_random(struct maker *m);
uint64_t make_jitter(struct maker *m, uint64_t base_ns);
/* kind: enum span_kind; hist: enum qbpf_hist_kind. With two probes. */
uint32_t make_span(struct maker *m, const char *name, uint8_t kind, uint8_t hist);
uint32_t make_thread(struct maker *m, uint32_t tid, const char *name, uint64_t start_ns);
void make_thread_end(struct maker *m, uint32_t thread, const char *name);
uint32_t make_node(struct maker *m, uint32_t parent, uint32_t span);
void make_event(struct maker *m, const struct event *ev);
/* Runs branch i of the tree below `parent`; returns its duration. */
uint64_t make_run(struct maker *m, const struct run *r, const struct branch *tree, uint32_t i,
		  uint32_t parent, uint16_t depth);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the session's BPF maps into a snapshot. The programs keep running meanwhile: each
 * cell is read whole, cells are not read at the same instant, so a snapshot of a busy target
 * can be a few hits ahead in one place of another. After disarming it is exact.
 */
#ifndef QBPF_TRACE_MAPS_READ_H
#define QBPF_TRACE_MAPS_READ_H

#include "model/snapshot.h"
#include "qbpf.skel.h"

/* Fills spans' histograms, counters, open frames, and the nodes. s->spans (nspans) exist with
 * names and empty histograms. */
int maps_read(struct qbpf_bpf *skel, struct snapshot *s, struct err *e);

/* Calls fn for each element of a hash map until it returns other than 0, which is returned. */
int maps_each(struct bpf_map *map, int (*fn)(void *ctx, const void *key, const void *value),
	      void *ctx);

/* Calls fn for each record of `size` bytes that a task iterator writes now. */
int maps_each_record(struct bpf_program *iter, size_t size,
		     void (*fn)(void *ctx, const void *record), void *ctx);

/* Calls fn for each node of the call tree until it returns other than 0, which is returned. */
int maps_each_node(struct qbpf_bpf *skel,
		   int (*fn)(void *ctx, uint32_t id, uint32_t parent, uint32_t span), void *ctx);

/* The same for each open keyed span. */
int maps_each_open_key(struct qbpf_bpf *skel,
		       int (*fn)(void *ctx, const struct qbpf_open_key *key,
				 const struct qbpf_open *open),
		       void *ctx);

/* Deletes open keys begun before `before_ns`, counting them into timeouts[span id]. */
int maps_sweep_keys(struct qbpf_bpf *skel, uint64_t before_ns, uint64_t *timeouts, size_t nspans);

/* Kernel memory of all maps, bytes. */
uint64_t maps_memory(struct qbpf_bpf *skel);

#endif

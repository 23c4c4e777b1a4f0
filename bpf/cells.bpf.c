// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How cells and nodes come into being: once each, so out of the way of the hot path. These are
 * global functions: the verifier checks them once, whoever calls.
 */
#include "cells.bpf.h"

/*
 * An allocation fails when the per-CPU reserve of the kernel's BPF allocator is empty; that is
 * refilled by an interrupt that follows at once, hence the second and third try.
 */
#define ALLOC_TRIES 3

static const struct qbpf_hist_cell new_hist_cell = {.min = ~0ULL};
static const struct qbpf_node_cell new_node_cell = {.min_ns = ~0ULL};
static const struct qbpf_node_cell new_instant_cell = {};

static __u32 last_node = 0;
static bool nodes_full = false;

/* 0: it exists now, whoever made it. */
#define create(map, key, value)                                                                    \
	({                                                                                         \
		long err_ = -1;                                                                    \
		for (int i_ = 0; i_ < ALLOC_TRIES; i_++) {                                         \
			err_ = bpf_map_update_elem(map, key, value, BPF_NOEXIST);                  \
			if (!err_ || err_ == -EEXIST || err_ == -E2BIG)                            \
				break;                                                             \
		}                                                                                  \
		err_ == -EEXIST ? 0 : err_;                                                        \
	})

__noinline __u32 node_new(__u32 parent, __u32 span)
{
	struct qbpf_node_key key = {.parent = parent, .span = span};
	struct qbpf_node val = {}, *n;
	long err;

	/* Nodes are never removed; without this each hit would try, and use up an id. */
	if (nodes_full)
		return QBPF_NODE_LOST;
	val.id = __sync_fetch_and_add(&last_node, 1) + 1;
	err = create(&nodes, &key, &val);
	if (err == -E2BIG)
		nodes_full = true;
	n = bpf_map_lookup_elem(&nodes, &key);
	return n ? n->id : QBPF_NODE_LOST;
}

__noinline int node_cell_new(__u32 node, __u32 cpu, __u32 instant)
{
	struct qbpf_node_cell_key key = {.node = node, .cpu = cpu};

	if (instant)
		return create(&node_cells, &key, &new_instant_cell);
	return create(&node_cells, &key, &new_node_cell);
}

__noinline int hist_cell_new(__u32 span, __u32 octave, __u32 cpu)
{
	struct qbpf_hist_key key = {.span = span, .octave = octave, .cpu = cpu};

	return create(&hist_cells, &key, &new_hist_cell);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where closed spans are summed: nodes of the call tree, their cells and the histograms'.
 *
 * A cell belongs to one CPU, but a program can be preempted inside another thread's, so
 * every update is atomic. What creates a cell is out of line: it runs once per cell.
 */
#ifndef QBPF_CELLS_BPF_H
#define QBPF_CELLS_BPF_H

#include "maps.bpf.h"

/*
 * Only tasks that share a CPU and preempt each other in the same cell can make an exchange
 * fail, so the bound is never met in practice; it is there for the verifier.
 */
#define EXCHANGE_TRIES 8

/*
 * cells.bpf.c. Global functions are verified once, whoever calls them; inlined into the programs,
 * every path that leads there would multiply with every path through them.
 */
__u32 node_new(__u32 parent, __u32 span);
int span_add(__u32 span, __u32 node, __u64 ns, __u64 child_ns);
int instant_add(__u32 span, __u32 node);
int value_add(__u32 span, __u64 magnitude, __u32 sign);
int value_add_f64(__u32 span, __u64 bits);
int bytes_add(__u32 key, __u64 bytes);

static __always_inline __u32 node_of(__u32 parent, __u32 span)
{
	struct qbpf_node_key key = {.parent = parent, .span = span};
	struct qbpf_node *n;

	if (parent == QBPF_NODE_LOST)
		return QBPF_NODE_LOST;
	n = bpf_map_lookup_elem(&nodes, &key);
	return n ? n->id : node_new(parent, span);
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The call tree's nodes, their cells and the histograms' cells: how they come into being, and
 * how a closed span is added to them.
 */
#include "cells.bpf.h"

static __always_inline void store_min(__u64 *p, __u64 v)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < EXCHANGE_TRIES; i++) {
		__u64 old = *(volatile __u64 *)p;

		if (v >= old || __sync_val_compare_and_swap(p, old, v) == old)
			return;
	}
}

static __always_inline void store_max(__u64 *p, __u64 v)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < EXCHANGE_TRIES; i++) {
		__u64 old = *(volatile __u64 *)p;

		if (v <= old || __sync_val_compare_and_swap(p, old, v) == old)
			return;
	}
}

/* Index of the highest bit set; v is not 0. BPF has no instruction for it before cpu v4. */
static __always_inline __u32 top_bit(__u64 v)
{
	__u32 r = 0, w = v;

	if (v >> 32) {
		w = v >> 32;
		r = 32;
	}
	if (w >> 16) {
		w >>= 16;
		r += 16;
	}
	if (w >> 8) {
		w >>= 8;
		r += 8;
	}
	if (w >> 4) {
		w >>= 4;
		r += 4;
	}
	if (w >> 2) {
		w >>= 2;
		r += 2;
	}
	return r + (w >> 1);
}

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

/*
 * 0: it exists now, whoever made it. An int, because map operations returned one until 6.4
 * (d7ba4cc900bf): the upper half of a negative result is then not set.
 */
#define create(map, key, value)                                                                    \
	({                                                                                         \
		int err_ = -1;                                                                     \
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
	int err;

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

static __noinline int node_cell_new(__u32 node, __u32 cpu, __u32 instant)
{
	struct qbpf_node_cell_key key = {.node = node, .cpu = cpu};

	if (instant)
		return create(&node_cells, &key, &new_instant_cell);
	return create(&node_cells, &key, &new_node_cell);
}

static __noinline int hist_cell_new(__u32 span, __u32 octave, __u32 cpu)
{
	struct qbpf_hist_key key = {.span = span, .octave = octave, .cpu = cpu};

	return create(&hist_cells, &key, &new_hist_cell);
}

static __always_inline struct qbpf_node_cell *node_cell(__u32 node, bool instant)
{
	struct qbpf_node_cell_key key = {.node = node, .cpu = bpf_get_smp_processor_id()};
	struct qbpf_node_cell *c = bpf_map_lookup_elem(&node_cells, &key);

	if (c)
		return c;
	node_cell_new(node, key.cpu, instant);
	return bpf_map_lookup_elem(&node_cells, &key);
}

/* False: the tree had no room. */
static __always_inline bool node_add(__u32 node, __u64 ns, __u64 child_ns)
{
	struct qbpf_node_cell *c;

	if (node == QBPF_NODE_LOST)
		return false;
	c = node_cell(node, false);
	if (!c)
		return false;
	__sync_fetch_and_add(&c->count, 1);
	__sync_fetch_and_add(&c->total_ns, ns);
	__sync_fetch_and_add(&c->self_ns, ns > child_ns ? ns - child_ns : 0);
	store_min(&c->min_ns, ns);
	store_max(&c->max_ns, ns);
	return true;
}

static __always_inline struct qbpf_hist_cell *hist_cell(__u32 span, __u32 octave)
{
	struct qbpf_hist_key key = {
	    .span = span, .octave = octave, .cpu = bpf_get_smp_processor_id()};
	struct qbpf_hist_cell *c = bpf_map_lookup_elem(&hist_cells, &key);

	if (c)
		return c;
	hist_cell_new(span, octave, key.cpu);
	return bpf_map_lookup_elem(&hist_cells, &key);
}

/* An integer's magnitude; `sign` is 0 or QBPF_HIST_NEGATIVE. False: no cell could be had. */
static __always_inline bool hist_add(__u32 span, __u64 v, __u32 sign)
{
	__u32 octave = 0, bucket = v;
	struct qbpf_hist_cell *c;
	__u64 old;

	if (v >= QBPF_HIST_SUB) {
		__u32 e = top_bit(v);

		octave = e - (QBPF_HIST_SUB_BITS - 1);
		bucket = v >> (e - QBPF_HIST_SUB_BITS);
	}
	c = hist_cell(span, octave | sign);
	if (!c)
		return false;
	__sync_fetch_and_add(&c->n[bucket & (QBPF_HIST_SUB - 1)], 1);
	old = __sync_fetch_and_add(&c->sum_lo, v);
	if (old + v < old)
		__sync_fetch_and_add(&c->sum_hi, 1);
	store_min(&c->min, v);
	store_max(&c->max, v);
	return true;
}

/* A double, as its bits. */
static __always_inline bool hist_add_f64(__u32 span, __u64 bits)
{
	__u32 exp = (bits >> 52) & 0x7ff;
	__u64 m = bits & ((1ULL << 52) - 1);
	struct qbpf_hist_cell *c;

	c = hist_cell(span, exp | (bits >> 63 ? QBPF_HIST_NEGATIVE : 0));
	if (!c)
		return false;
	__sync_fetch_and_add(&c->n[(m >> (52 - QBPF_HIST_SUB_BITS)) & (QBPF_HIST_SUB - 1)], 1);
	store_min(&c->min, bits);
	store_max(&c->max, bits);
	if (exp == 0x7ff)
		return true;
	if (exp)
		m |= 1ULL << 52;
	__sync_fetch_and_add(&c->sum_lo, m & ((1 << 26) - 1));
	__sync_fetch_and_add(&c->sum_hi, m >> 26);
	return true;
}

/* A closed span: to its node and to its histogram. The node may be lost; the span is not. */
__noinline int span_add(__u32 span, __u32 node, __u64 ns, __u64 child_ns)
{
	if (!node_add(node, ns, child_ns))
		count_span(span, node_overflow);
	if (!hist_add(span, ns, 0))
		count_span(span, hist_overflow);
	return 0;
}

__noinline int instant_add(__u32 span, __u32 node)
{
	struct qbpf_node_cell *c = node != QBPF_NODE_LOST ? node_cell(node, true) : NULL;

	if (c)
		__sync_fetch_and_add(&c->count, 1);
	else
		count_span(span, node_overflow);
	return 0;
}

__noinline int value_add(__u32 span, __u64 magnitude, __u32 sign)
{
	if (!hist_add(span, magnitude, sign))
		count_span(span, hist_overflow);
	return 0;
}

__noinline int value_add_f64(__u32 span, __u64 bits)
{
	if (!hist_add_f64(span, bits))
		count_span(span, hist_overflow);
	return 0;
}

/* To a histogram that is no span's own, QBPF_CUDA_BYTES(). 0: there was no room. */
__noinline int bytes_add(__u32 key, __u64 bytes)
{
	return hist_add(key, bytes, 0);
}

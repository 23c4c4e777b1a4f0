/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The price of a hit, by class of site, measured on this host: a child process of qbpf's own
 * runs instructions of each class with and without the session's real programs armed on them.
 */
#ifndef QBPF_TRACE_PRICE_H
#define QBPF_TRACE_PRICE_H

#include "err.h"
#include "plan/plan.h"

/* All 0 until measured. The floors are medians of what an empty span reads. */
struct price {
	uint64_t ns[PRICE_N];	    /* per hit; URETPROBE: what it adds to its entry */
	uint64_t floor_marker_ns;   /* two optimised nop5 markers, the red zone stepped over */
	uint64_t floor_stepped_ns;  /* two single-stepped instructions */
	uint64_t floor_func_ns;	    /* an entry and a uretprobe */
	uint64_t floor_emulated_ns; /* two 1-byte nops */
};

/*
 * The programs must be loaded and nothing armed yet; obj is the object that they and their maps
 * belong to. About 10 ms. The child's hits go to spans at the end of the id space, whose nodes
 * and cells are taken out of the maps again: all that remains is that node ids do not start at
 * 1. -ENODATA: probes were armed but hits were not seen.
 */
struct bpf_object;
struct bpf_program;
int price__measure(struct bpf_object *obj, struct bpf_program *on_site,
		   struct bpf_program *on_return, bool multi, struct price *out, struct err *e);

#endif

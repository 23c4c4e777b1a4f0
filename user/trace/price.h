/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The price of a hit, by class of site, measured on this host: a child process of qbpf's own
 * runs instructions of each class with and without the session's real programs armed on them.
 */
#ifndef QBPF_TRACE_PRICE_H
#define QBPF_TRACE_PRICE_H

#include "err.h"
#include "plan/plan.h"

struct price {
	uint64_t ns[PRICE_N];	/* per hit; URETPROBE: what it adds to its entry */
	uint64_t floor_marker_ns; /* what an empty span of two nop5 markers reads */
	uint64_t floor_stepped_ns;
	uint64_t floor_func_ns; /* what an empty function reads by uretprobe */
};

/* prog_fd programs: see session.c. A few ms. */
struct bpf_program;
int price__measure(struct bpf_program *on_site, struct bpf_program *on_return, bool multi,
		   struct price *out, struct err *e);

#endif

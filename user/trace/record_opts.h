/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is to be recorded, and how. */
#ifndef QBPF_TRACE_RECORD_OPTS_H
#define QBPF_TRACE_RECORD_OPTS_H

#include <stddef.h>
#include <stdint.h>

#include "plan/slow.h"

#define RECORD_RING_MIN	    4096u
#define RECORD_RING_DEFAULT (8u << 20)
#define RECORD_RING_MAX	    (1u << 30)

struct record_opts {
	const char *path;  /* of the .qbpf; NULL: no recording */
	const char *shown; /* what it will be turned into, which was asked for; NULL: nothing */
	const char *command;
	size_t ring_bytes; /* a power of two, at least a page */
	int cpu;	   /* PLACEMENT_AUTO, or where qbpf's threads are to run */
	uint32_t sample;   /* 0, 1: all */
	const struct slow_rule *slow;
	size_t nslow;
};

#endif

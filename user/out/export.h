/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A trace in the formats of other tools. Flat memory: whatever the trace's length, each keeps one
 * stretch of one thread's events and, by span, thread and node, what the tables hold anyway.
 *
 * What cannot be drawn where it belongs (spans that overlap others on their thread, keyed spans) is
 * never left out of a format that shows events: it gets a track, a profile or a row of its own.
 */
#ifndef QBPF_OUT_EXPORT_H
#define QBPF_OUT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "file/reader.h"

enum export_format {
	EXPORT_PERFETTO,   /* protobuf: ui.perfetto.dev, trace_processor */
	EXPORT_CHROME,	   /* JSON, "Trace Event Format" */
	EXPORT_SPEEDSCOPE, /* speedscope's own JSON, one profile per thread */
	EXPORT_FOLDED,	   /* "a;b;c 123": flame-graph scripts */
	EXPORT_CSV,	   /* RFC 4180, one line per event */
	EXPORT_HGRM,	   /* HdrHistogram's percentile distribution, a section per span */
	EXPORT_FORMATS
};

/* What was written, and what the format has no place for. */
struct export_counts {
	uint64_t spans;	      /* SPAN, ASIDE, KEYED and OPEN events written */
	uint64_t points;      /* instants and values */
	uint64_t overlapping; /* of the spans: drawn beside their thread, for they cross others */
	uint64_t left_out;    /* events of kinds that the format cannot show */
	/* Of the GPU; left out where the format has no place for them, or spans are selected. */
	uint64_t activities, calls;
	uint64_t untimed;      /* of the activities: shown where they were asked for */
	uint64_t gpu_left_out; /* records */
};

struct export_opts {
	const char *span;   /* glob of span names; NULL: all */
	const char *thread; /* a tid, or a glob of thread names; NULL: all */
	uint64_t from_ns,
	    to_ns;	 /* CLOCK_MONOTONIC: events that touch this range; to_ns 0: no end */
	bool by_count;	 /* folded: hits instead of self time */
	bool gpu_tracks; /* perfetto: plain tracks of the GPU instead of render stages */
	struct export_counts *counts; /* filled when not NULL */
};

/*
 * Writes to `out`, which the caller flushes and closes. -EBADMSG: the trace is damaged; -ENOENT:
 * no span or thread of that name; or the errno of writing (-EPIPE included).
 */
int export__write(struct trace_reader *r, enum export_format f, const struct export_opts *o,
		  FILE *out, struct err *e);

/* "perfetto" .. "hgrm". -EINVAL: none of them. */
int export__parse_format(const char *name, enum export_format *f);
/* By what a file name ends in: .pftrace .json .speedscope.json .folded .csv .hgrm. */
int export__format_of_path(const char *path, enum export_format *f);
const char *export__format_name(enum export_format f);

#endif

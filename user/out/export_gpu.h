/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The GPU's part of a trace, for the exporters: each activity with its device, stream and name, each
 * API call with its thread, and how busy devices and streams were over time.
 *
 * Memory is that of the model that joins them (model/gpu.h), which is bounded, and of the tables: names,
 * devices, streams.
 */
#ifndef QBPF_OUT_EXPORT_GPU_H
#define QBPF_OUT_EXPORT_GPU_H

#include "model/gpu.h"
#include "model/lanes.h"
#include "out/export_impl.h"

/* What an activity or a call is called. */
struct gpu_title {
	char *text;	    /* demangled: the target's bytes, never NULL */
	const char *symbol; /* of a kernel, as the compiler has it; NULL: no kernel, or not known */
	char *fit;	    /* see export_gpu__fit */
	uint32_t sent;	    /* for the exporter: 0 at first */
};

/* A device as one process knows it: others may know another one by its number. */
struct gpu_row_device {
	uint32_t tgid, number;
	struct qbpf_ring_device about; /* size 0: no record told of it */
	char *name;		       /* "GPU 0 (...)", printable */
	bool counted;		       /* for the exporter: false at first */
};

struct gpu_row_stream {
	uint32_t device; /* index */
	uint32_t context, stream;
	char *name;	     /* "stream 7", with its context when that is not the device's first */
	struct lanes *lanes; /* for the exporter: NULL at first */
	bool described, counted; /* the same: false at first */
};

struct gpu_item {
	const struct gpu_seen *seen;
	uint32_t device, stream; /* indices */
	uint32_t title;		 /* index */
	uint32_t context, correlation;
	uint64_t bytes; /* of copies and memsets */
	/* Of an untimed one: where it is shown, the call's begin or the recording's. */
	uint64_t start_ns, end_ns;
};

struct gpu_item_call {
	const struct gpu_seen_call *seen;
	uint32_t title;
	uint32_t thread; /* index, or TRACE_ALL_THREADS: the trace's tables have none */
};

/* Each returns 0 or a negative errno. */
struct gpu_sink {
	void *ctx;
	int (*activity)(void *ctx, const struct gpu_item *a);
	int (*call)(void *ctx, const struct gpu_item_call *c);
	/* From now on so many activities of a stream were asked for and not done; NULL: not wanted. */
	int (*queue)(void *ctx, uint32_t stream, uint64_t at_ns, uint64_t n);
	/* In the window that begins here something ran on a device for such a share of it (0 .. 1),
	 * and in the following windows as well, up to the next such news. */
	int (*busy)(void *ctx, uint32_t device, uint64_t at_ns, double share);
};

struct export_gpu {
	struct exporter *x;
	struct gpu_title *titles;
	struct gpu_row_device *devices; /* by process and number; others follow */
	struct gpu_row_stream *streams;
	size_t ntitles, ndevices, nstreams;
	uint64_t window_ns; /* of busy shares */
	struct export_gpu_priv *priv;
};

/* *out is NULL when the trace has no such records, or none that are wanted. */
int export_gpu__new(struct exporter *x, struct export_gpu **out);
void export_gpu__free(struct export_gpu *g);
/* Once. */
int export_gpu__walk(struct export_gpu *g, const struct gpu_sink *sink);

/* A title made fit by `make`, which is asked once for each. NULL: no memory. */
const char *export_gpu__fit(struct export_gpu *g, uint32_t title, export_name make);
/* The thing that it is: "kernel", "copy", "memset", "graph". */
const char *export_gpu__kind(const struct gpu_item *a);
static inline bool gpu_item__kernel(const struct gpu_item *a)
{
	return a->seen->rec->type == QBPF_RING_KERNEL;
}

/* export_levels.c: changes of a number, which come in any order, put into the order of time. */
struct level {
	struct level_change {
		uint64_t ns;
		int64_t by;
	} * changes;
	size_t n, cap;
	uint64_t now;
	uint64_t at_ns; /* up to here it is told */
	/* of shares */
	uint64_t window;  /* number of the window at hand */
	uint64_t busy_ns; /* in it */
	double told;	  /* the last share; below 0: none */
};
typedef int (*level_tell)(void *ctx, uint64_t at_ns, uint64_t n);
typedef int (*level_tell_share)(void *ctx, uint64_t at_ns, double share);
/* 0 or -ENOMEM. */
int level__add(struct level *l, uint64_t from_ns, uint64_t to_ns);
/* All changes before to_ns: each new value; or, for windows of window_ns from zero_ns on, each new share
 * of time in which it was not 0. */
int level__tell(struct level *l, uint64_t to_ns, level_tell tell, void *ctx);
int level__tell_share(struct level *l, uint64_t to_ns, uint64_t zero_ns, uint64_t window_ns,
		      level_tell_share tell, void *ctx);
void level__free(struct level *l);

#endif

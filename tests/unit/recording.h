/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recordings made by hand for tests: written through the writer, opened with the reader. */
#ifndef QBPF_TESTS_RECORDING_H
#define QBPF_TESTS_RECORDING_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/reader.h"
#include "file/writer.h"
#include "model/analysis.h"
#include "model/snapshot_file.h"

#define REC_START 1000000000ull

struct recording_file {
	struct trace_writer *w;
	char path[64];
	uint32_t nspans, nthreads, nnodes;
	struct event *events; /* as they were handed in */
	size_t n;
};

static inline void rec__open(struct recording_file *f)
{
	struct trace_meta meta = {
	    .qbpf_version = "9.9",
	    .command = "qbpf attach -p 7 -o made.qbpf",
	    .kernel = "6.18.5",
	    .cpu = "Example CPU",
	    .clocksource = "tsc",
	    .hostname = "made",
	    .cpus = 2,
	    .start_ns = REC_START,
	    .realtime_ns = 1700000000000000000ull,
	    .slow = "",
	    .nprices = PRICE_N,
	    .price_ns = {1250},
	};
	struct trace_process p = {.tgid = 7, .comm = "made", .exe = "/opt/made", .start_ns = 1};
	int fd;

	memset(f, 0, sizeof(*f));
	strcpy(f->path, "/tmp/recording-XXXXXX");
	fd = mkstemp(f->path);
	assert(fd >= 0);
	close(fd);
	assert(!trace_writer__new(f->path, &meta, &f->w, NULL));
	assert(!trace_writer__process(f->w, 0, &p));
}

static inline uint32_t rec__span(struct recording_file *f, const char *name, uint8_t kind,
				 uint8_t hist)
{
	struct trace_span s = {.name = (char *)name, .kind = kind, .hist = hist, .price_ns = 1000};

	s.way = kind == SPAN_FUNC ? RET_URETPROBE : RET_AUTO;
	assert(!trace_writer__span(f->w, &s));
	return ++f->nspans;
}

static inline uint32_t rec__thread(struct recording_file *f, const char *name)
{
	struct trace_thread t = {
	    .tgid = 7, .tid = 100 + f->nthreads, .name = (char *)name, .start_ns = REC_START};

	assert(!trace_writer__thread(f->w, f->nthreads, &t));
	return f->nthreads++;
}

static inline uint32_t rec__node(struct recording_file *f, uint32_t parent, uint32_t span)
{
	struct trace_node n = {.id = f->nnodes + 1, .parent = parent, .span = span};

	assert(!trace_writer__node(f->w, &n));
	return ++f->nnodes;
}

static inline void rec__event(struct recording_file *f, struct event ev)
{
	if (!(f->n & (f->n - 1))) {
		f->events = realloc(f->events, (2 * f->n + 1) * sizeof(ev));
		assert(f->events);
	}
	f->events[f->n++] = ev;
	assert(!trace_writer__event(f->w, &ev));
}

/* Closes it, everything counted as held but `lost` more of span 1; opens it. */
static inline struct trace_reader *rec__read(struct recording_file *f, uint64_t end_ns,
					     uint64_t lost, const struct snapshot *kernel)
{
	struct trace_count *counts = calloc(f->nspans + 1, sizeof(*counts));
	struct trace_reader *r;
	struct err e = {{0}};
	void *bytes;
	size_t len;

	for (size_t i = 0; i < f->n; i++) {
		if (f->events[i].kind == EVENT_OPEN)
			continue;
		counts[f->events[i].span - 1].counted++;
		counts[f->events[i].span - 1].streamed++;
	}
	counts[0].counted += lost;
	counts[0].lost = lost;
	if (kernel) {
		assert(!snapshot__pack(kernel, &bytes, &len));
		assert(!trace_writer__aggregates(f->w, bytes, len));
		free(bytes);
	}
	assert(!trace_writer__close(f->w, end_ns, counts, f->nspans, &e));
	trace_writer__free(f->w);
	free(counts);
	assert(!trace_reader__open(f->path, &r, &e));
	unlink(f->path);
	return r;
}

static inline struct analysis *rec__analyse(struct trace_reader *r, struct analysis_opts o)
{
	struct analysis *a;

	assert(!analysis__new(r, &o, &a, NULL));
	return a;
}

static inline void rec__close(struct recording_file *f, struct trace_reader *r)
{
	trace_reader__free(r);
	free(f->events);
}

#endif

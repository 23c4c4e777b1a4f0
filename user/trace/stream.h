/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread that takes records from the BPF ring and hands them to the trace's writer, with the tables
 * that they lead to, losses and clocks, and closed spans to the model of the GPU. Either may be
 * missing. session_record.c tells it of the session.
 *
 *	stream__start -> stream__stop -> stream__finish
 *
 * A fault of the disk ends the recording and nothing else: records are taken and counted as lost
 * from there on. Only stream__fault tells.
 */
#ifndef QBPF_TRACE_STREAM_H
#define QBPF_TRACE_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "file/writer.h"
#include "qbpf.skel.h"
#include "trace/record_opts.h"

/* What became of one span's closed ones. */
struct stream_count {
	uint64_t streamed; /* taken from the ring */
	uint64_t lost;	   /* the ring was full, or a history of --slow */
	uint64_t skipped;
	uint64_t over; /* --slow: over the limit */
};

struct gpu_feed;
struct stream;

/* Creates the file, if there is to be one, and starts the thread. The probes may be armed, nothing
 * counts yet. `feed`: who gets the spans, too; NULL: nobody. */
int stream__start(struct qbpf_bpf *skel, const struct record_opts *o, const struct trace_meta *meta,
		  size_t span_room, struct gpu_feed *feed, struct stream **out, struct err *e);
void stream__free(struct stream *s);

/* Tables, from any thread. Ids follow from the order. Errors stay with the writer. */
void stream__span(struct stream *s, const struct trace_span *row);
void stream__probe(struct stream *s, const struct trace_probe *row);
/* Its index, or TRACE_NO_MAPPING. */
uint32_t stream__mapping(struct stream *s, const struct trace_mapping *row);
void stream__process(struct stream *s, uint32_t tgid, uint64_t seen_ns);
void stream__process_end(struct stream *s, uint32_t tgid, uint64_t end_ns);

/*
 * The file's writer, for who has something that does not come from the BPF ring: until it is returned,
 * with what it said, the stream waits. NULL: there is no file, or it has failed.
 */
struct trace_writer *stream__borrow_writer(struct stream *s);
void stream__return_writer(struct stream *s, int err);

/* Nothing counts any more and no program runs: takes what is left in the ring, and what is open. */
int stream__stop(struct stream *s, uint64_t end_ns, struct err *e);
/* After stop, where there is a file. `counted` by span id - 1. Writes counts and `aggregates` (malloc'ed by the caller,
 * may be NULL) and closes the file. The fault of the disk, if there was one. */
int stream__finish(struct stream *s, uint64_t end_ns, const uint64_t *counted, size_t n,
		   const void *aggregates, size_t aggregates_len, struct err *e);

/* As they are now; exact after stop. out[0 .. n] by span id, zeroed by the caller; 0 is what belongs
 * to none: ends of threads and what they had open. */
int stream__counts(const struct stream *s, struct stream_count *out, size_t n);
/* Of a span that is in the file: after finish exactly, before as far as the disk has not refused. */
uint64_t stream__held(const struct stream *s, uint32_t span, const struct stream_count *c);
/* Records of the GPU of that type that are in the file: after finish. */
uint64_t stream__gpu_held(const struct stream *s, uint32_t type);
uint64_t stream__bytes(const struct stream *s);
uint64_t stream__wakeups(const struct stream *s);
/* What ended the recording before its time, as a positive errno; 0: nothing. */
int stream__fault(const struct stream *s);

#endif

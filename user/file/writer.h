/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing a trace file (docs/trace-format.md). One thread feeds it; a second, the writer's own,
 * compresses and writes. When that one falls behind, trace_writer__event waits.
 *
 * A fault of the disk is kept: later calls return it too, the file stays readable up to its last
 * whole block, and nothing else happens. The caller says so and may go on without a recording.
 */
#ifndef QBPF_FILE_WRITER_H
#define QBPF_FILE_WRITER_H

#include "err.h"
#include "file/event.h"
#include "file/info.h"
#include "qbpf/ring.h"

struct trace_writer;

/* Creates the file (mode 0644 less umask; to the user behind sudo, see SUDO_UID). Nothing is
 * written before the first flush or full block: an existing regular file is replaced only then, and
 * a file that was created for nothing is removed by trace_writer__free. */
int trace_writer__new(const char *path, const struct trace_meta *meta, struct trace_writer **out,
		      struct err *e);

/* Append to a table: ids follow from the order. Strings are copied. 0 or a negative errno: -EINVAL,
 * without any effect, for an entry that leads to what was not handed in before (a span, a mapping, an
 * index that is not next, a node's id that is not above its parent's). */
int trace_writer__span(struct trace_writer *w, const struct trace_span *s);
int trace_writer__probe(struct trace_writer *w, const struct trace_probe *p);
int trace_writer__mapping(struct trace_writer *w, const struct trace_mapping *m);
int trace_writer__process(struct trace_writer *w, uint32_t index, const struct trace_process *p);
int trace_writer__thread(struct trace_writer *w, uint32_t index, const struct trace_thread *t);
int trace_writer__node(struct trace_writer *w, const struct trace_node *n);
int trace_writer__loss(struct trace_writer *w, const struct trace_loss *l);
int trace_writer__clock(struct trace_writer *w, const struct trace_clock *c);

/* Events of one thread in the order in which they ended; threads in any order. */
int trace_writer__event(struct trace_writer *w, const struct event *ev);

/* The next name that GPU records lead to; *id is its place in the table, 1 .. */
int trace_writer__gpu_name(struct trace_writer *w, const char *text, uint32_t *id);
int trace_writer__gpu_loss(struct trace_writer *w, const struct trace_gpu_loss *l);

/*
 * A record of the GPU, of one type of qbpf/ring.h or of a later one. `ring`: which, 0 .., when there
 * are several. Its names are ids of trace_writer__gpu_name, its tgid and tid those of the trace's
 * threads; the rest is as it came out of the ring. -EINVAL: too short for its type, or a name that was
 * not handed in. The records of one ring stay in order.
 */
int trace_writer__gpu(struct trace_writer *w, uint32_t ring, const struct qbpf_ring_record *rec);

/* What has been handed in goes to the writer's thread now, and from there to the disk without a
 * wait for it: once a second, so that a crash costs no more. */
int trace_writer__flush(struct trace_writer *w);

/* An opaque state of the kernel's sums; the last one in the file counts. */
int trace_writer__aggregates(struct trace_writer *w, const void *bytes, size_t len);

/* Closes cleanly: counts (nspans entries), index, end. Then only trace_writer__free is legal. */
int trace_writer__close(struct trace_writer *w, uint64_t end_ns, const struct trace_count *counts,
			size_t ncounts, struct err *e);
/* Without close before: the file is as a crash would leave it. */
void trace_writer__free(struct trace_writer *w);

uint64_t trace_writer__events(const struct trace_writer *w);
uint64_t trace_writer__gpu_records(const struct trace_writer *w);
/* Of one span id, those that are in the file, whatever the disk did. Only after close. */
uint64_t trace_writer__held(const struct trace_writer *w, uint32_t span);
/* Of one type of GPU records, the same. */
uint64_t trace_writer__gpu_held(const struct trace_writer *w, uint32_t type);
uint64_t trace_writer__bytes(const struct trace_writer *w);
/* 0, or what the disk said. */
int trace_writer__error(const struct trace_writer *w);

#endif

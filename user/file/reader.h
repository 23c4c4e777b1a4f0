/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading a trace file (docs/trace-format.md). The tables are read when it is opened, events come
 * in batches of one thread. Memory is that of the tables, of an index (32 bytes a block) and of one
 * block.
 *
 * A file without a clean end is read up to its last whole block (info->clean). Anything else that is
 * wrong is an error, one line that names the offset.
 *
 * Of what comes out, spans and threads are in the tables, and a node's parent is a node of a lower
 * id. Times are as recorded: of a damaged recording an event may end before it starts, begin before
 * its parent, or have a child_ns above its duration; and an event's node need not be in the table.
 */
#ifndef QBPF_FILE_READER_H
#define QBPF_FILE_READER_H

#include "err.h"
#include "file/event.h"
#include "file/info.h"
#include "qbpf/ring.h"

struct trace_reader;

#define TRACE_ALL_THREADS UINT32_MAX

/* -ENOENT .., -EBADMSG: not a trace, or damaged; -EPROTO: of a later major version. */
int trace_reader__open(const char *path, struct trace_reader **out, struct err *e);
void trace_reader__free(struct trace_reader *r);
const struct trace_info *trace_reader__info(const struct trace_reader *r);

/*
 * Starts over: the events of one thread or of all. All threads: batches come in the order of the
 * file, so each thread's events are in order, and different threads' nearly by time. `backwards`:
 * the same from the last event to the first; batches are then still ascending inside, walk them from
 * their end.
 */
int trace_reader__start(struct trace_reader *r, uint32_t thread, bool backwards);

/* 1: *events is good until the next call; 0: no more; negative: damaged, see e. */
int trace_reader__next(struct trace_reader *r, const struct event **events, size_t *n,
		       struct err *e);

/* Only blocks that hold an event within [from_ns, to_ns] come from now on (until __start). Their
 * other events come too: look at the times. */
void trace_reader__between(struct trace_reader *r, uint64_t from_ns, uint64_t to_ns);

/*
 * The records of the GPU, in the order in which they were handed in, one at a time: a walk of its own,
 * besides that over events. `rec` is at least as long as its type says, good until the next
 * call; types above those of qbpf/ring.h may come. Its contents are as recorded: a name may be none.
 */
void trace_reader__gpu_start(struct trace_reader *r);
/* 1, 0: no more, or negative. */
int trace_reader__gpu_next(struct trace_reader *r, uint32_t *ring,
			   const struct qbpf_ring_record **rec, struct err *e);
/* The next record lies before the next batch of events in the file: for both walks at once, in the
 * order of the file, which is nearly that of time. */
bool trace_reader__gpu_first(const struct trace_reader *r);

/* The text of a GPU record's name; NULL: it is not known. */
const char *trace_info__gpu_name(const struct trace_info *info, uint32_t id);

/* Whose node is that? NULL: not in the table. */
const struct trace_node *trace_info__node(const struct trace_info *info, uint32_t id);

#endif

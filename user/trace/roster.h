/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is who in a recording: which thread of the trace a tid is at the moment, and the names and
 * life times of threads and processes, written to the trace as they become known.
 *
 * Errors are those of memory and of the writer; the latter stay with it.
 */
#ifndef QBPF_TRACE_ROSTER_H
#define QBPF_TRACE_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "file/writer.h"

struct roster;

struct roster *roster__new(struct trace_writer *w);
void roster__free(struct roster *r);

/*
 * The index of the thread that has something that began at start_ns. `first`: nothing of this
 * thread came before, so whatever had the tid was another.
 */
int roster__thread(struct roster *r, uint32_t tgid, uint32_t tid, bool first, uint64_t start_ns,
		   uint32_t *index);
/* The thread ended, or runs another program from now on. comm: its name; NULL: as it was read. */
int roster__thread_end(struct roster *r, uint32_t tid, uint64_t end_ns, const char *comm);

/* Known before anything of it ended; no harm twice. */
int roster__process(struct roster *r, uint32_t tgid, uint64_t seen_ns);
int roster__process_end(struct roster *r, uint32_t tgid, uint64_t end_ns);
/* It runs another program, and is called comm. */
int roster__process_exec(struct roster *r, uint32_t tgid, const char *comm);

/* The names of those still there may have changed. */
int roster__finish(struct roster *r);

#endif

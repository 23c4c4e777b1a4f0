/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the exporter of Chrome's JSON: what its files share.
 *
 *	chrome.c	the document, spans, losses
 *	chrome_gpu.c	devices, streams, calls of the CUDA API
 */
#ifndef QBPF_OUT_CHROME_IMPL_H
#define QBPF_OUT_CHROME_IMPL_H

#include "out/export_impl.h"
#include "out/scribe.h"

struct chrome {
	struct exporter *x;
	struct scribe s;
	uint64_t zero_ns;
	uint32_t *tids;	   /* by thread: as shown */
	bool *described;   /* by thread */
	uint64_t async;	   /* ids given out */
	uint32_t next_row; /* the next made-up id of a row that is no thread's */
	uint64_t keyed;
	bool any;
};

/* chrome.c. An event is begin, its parts, end. */
void chrome__begin(struct chrome *c, const char *phase);
void chrome__row(struct chrome *c, uint32_t pid, uint32_t tid);
void chrome__time(struct chrome *c, uint64_t ns);
void chrome__id(struct chrome *c, uint64_t id);
void chrome__end(struct chrome *c);
/* process_name, thread_name */
int chrome__label(struct chrome *c, const char *what, uint32_t pid, uint32_t tid, const char *text);
/* The names of a thread and its process, once. */
int chrome__describe(struct chrome *c, uint32_t thread);

/* chrome_gpu.c: all of it. */
int chrome__gpu(struct chrome *c);

#endif

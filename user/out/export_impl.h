/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the exporters share: the trace, what of it is wanted, and names.
 *
 *	export.c	formats by name, selection, names
 *	export_gpu.c	the GPU's part
 *	perfetto*.c, chrome.c, speedscope.c, folded.c, csv.c, hgrm.c
 */
#ifndef QBPF_OUT_EXPORT_IMPL_H
#define QBPF_OUT_EXPORT_IMPL_H

#include "model/nest.h"
#include "out/export.h"
#include "out/scribe.h"

struct exporter {
	struct trace_reader *r;
	const struct trace_info *info;
	const struct export_opts *o;
	FILE *out;
	struct err *e;
	struct export_counts counts;
	bool *spans;	   /* wanted, by id; [0] is unused */
	bool *threads;	   /* wanted, by index */
	uint32_t *by_tid;  /* threads in the order of process, tid and begin */
	char **names;	   /* by span id; see exporter__fit_name */
	uint32_t bad_span; /* an event's, that the tables do not have */
	uint32_t bad_thread;
	bool bad;
};

int export_perfetto(struct exporter *x);
int export_chrome(struct exporter *x);
int export_speedscope(struct exporter *x);
int export_folded(struct exporter *x);
int export_csv(struct exporter *x);
int export_hgrm(struct exporter *x);

/* Whether this event is to be written; counts nothing. `ctx` is the exporter. */
bool exporter__wants(void *ctx, const struct event *ev);
bool exporter__wants_loss(const struct exporter *x, const struct trace_loss *loss);
/* The losses that are wanted, one after the other: *at is 0 at first. *name: of what, as the target has
 * it; *loss has its times and numbers. false: no more. */
bool exporter__next_loss(const struct exporter *x, size_t *at, struct trace_loss *loss,
			 const char **name);
/* The events of one thread in order of time; see nest.h. */
typedef int (*export_step)(void *ctx, enum nest_step step, const struct event *ev, uint32_t level);
int exporter__walk(struct exporter *x, uint32_t thread, export_step step, void *ctx);
/* All wanted events in the order of the file. */
typedef int (*export_each)(void *ctx, const struct event *ev);
int exporter__each(struct exporter *x, export_each each, void *ctx);
int exporter__no_memory(struct exporter *x);
/* What writing came to: 0, or err with its line. */
int exporter__written(struct exporter *x, int err);
/* The end of a format that writes through a scribe: err, or what writing the rest came to. */
int exporter__finish(struct exporter *x, struct scribe *s, int err);

/* Its name as the target has it: foreign bytes, never NULL. */
const char *exporter__span_name(const struct exporter *x, uint32_t span);
/* The same made fit by `make` (malloc'ed), which is asked once for each span. NULL: no memory. */
typedef char *(*export_name)(const char *name);
const char *exporter__fit_name(struct exporter *x, uint32_t span, export_name make);
/* NULL: none is known. */
const struct trace_process *exporter__process(const struct exporter *x, uint32_t thread);
/* The process of that id which was there at ns, as an index; nprocesses: none is known. */
size_t exporter__process_at(const struct exporter *x, uint32_t tgid, uint64_t ns);
/* Whether a thread of that id is known: the one that was there at ns, else the first that came. */
bool exporter__thread(const struct exporter *x, uint32_t tgid, uint32_t tid, uint64_t ns,
		      uint32_t *thread);
/* Of a KEYED event: whether it began on another thread than it ended on, which is in the trace. */
bool exporter__beginner(const struct exporter *x, const struct event *ev, uint32_t *thread);
/* The earliest time of the trace, from which the JSON formats count. */
uint64_t exporter__zero_ns(const struct exporter *x);

/*
 * Viewers give pid and tid 0 a meaning of their own, and a tid that is reused is one row to those
 * that know threads by tid alone. Ids made up for these are above any that Linux gives out.
 */
#define EXPORT_MADE_UP_ID (4194304 + 1)
uint32_t export__pid(uint32_t tgid);

/* A JSON string with its quotes: valid UTF-8, control characters as \u00NN. malloc'ed. */
char *export__json(const char *s);
/* Valid UTF-8 without control characters, which become \xNN; malloc'ed. */
char *export__text(const char *s);

static inline uint64_t event_ns(const struct event *ev)
{
	return ev->end_ns > ev->start_ns ? ev->end_ns - ev->start_ns : 0;
}

static inline uint64_t event_self_ns(const struct event *ev)
{
	uint64_t ns = event_ns(ev);

	return ev->child_ns < ns ? ns - ev->child_ns : 0;
}

static inline bool event_is_span(const struct event *ev)
{
	return ev->kind != EVENT_INSTANT && ev->kind != EVENT_VALUE;
}

#endif

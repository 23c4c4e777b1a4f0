// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * csv.c - all events, one line each, in the order of the file; RFC 4180. What the GPU did and calls of
 * its API follow; a recording that has them has five more columns, which all lines have.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/export_gpu.h"
#include "out/export_impl.h"
#include "out/scribe.h"
#include "out/text.h"
#include "qbpf/abi.h"

struct csv {
	struct exporter *x;
	struct scribe s;
	char **threads;		/* by index: process, pid, tid, name, as they stand in a line */
	struct export_gpu *gpu; /* NULL: there is nothing of it */
};

static const char *const kinds[EVENT_KINDS] = {
    [EVENT_SPAN] = "span",	 [EVENT_ASIDE] = "aside", [EVENT_KEYED] = "keyed",
    [EVENT_INSTANT] = "instant", [EVENT_VALUE] = "value", [EVENT_OPEN] = "open",
};

/* Always in quotes: text may hold commas, quotes and newlines. */
static char *quoted(const char *s)
{
	char *valid = text__valid(s), *out = valid ? malloc(2 * strlen(valid) + 3) : NULL, *o = out;

	if (out) {
		*o++ = '"';
		for (const char *p = valid; *p; p++) {
			if (*p == '"')
				*o++ = '"';
			*o++ = *p;
		}
		*o++ = '"';
		*o = '\0';
	}
	free(valid);
	return out;
}

static const char *thread_text(struct csv *c, uint32_t thread)
{
	const struct trace_thread *t = &c->x->info->threads[thread];
	const struct trace_process *proc = exporter__process(c->x, thread);
	char *comm, *name;

	if (c->threads[thread])
		return c->threads[thread];
	comm = quoted(proc ? proc->comm : "");
	name = quoted(t->name);
	if (!comm || !name ||
	    asprintf(&c->threads[thread], "%s,%u,%u,%s", comm, t->tgid, t->tid, name) < 0)
		c->threads[thread] = NULL;
	free(comm);
	free(name);
	return c->threads[thread];
}

static void put_value(struct csv *c, const struct event *ev)
{
	double value;

	if (c->x->info->spans[ev->span - 1].hist != QBPF_HIST_F64) {
		scribe__i64(&c->s, (int64_t)ev->arg);
		return;
	}
	memcpy(&value, &ev->arg, sizeof(value));
	if (isnan(value)) /* without the sign that a NaN can have */
		scribe__text(&c->s, "nan");
	else
		scribe__double(&c->s, value);
}

static void put_numbers(struct csv *c, const struct event *ev)
{
	struct scribe *s = &c->s;
	bool self = ev->kind == EVENT_SPAN || ev->kind == EVENT_ASIDE;

	scribe__text(s, ",");
	scribe__u64(s, ev->start_ns);
	scribe__text(s, ",");
	/* Of a damaged recording it may be negative: what is written is what was read. */
	scribe__i64(s, (int64_t)(ev->end_ns - ev->start_ns));
	scribe__text(s, ",");
	if (self)
		scribe__u64(s, event_self_ns(ev));
	scribe__text(s, ",");
	scribe__u64(s, ev->depth);
	scribe__text(s, ",");
	if (ev->node && ev->node != QBPF_NODE_LOST)
		scribe__u64(s, ev->node);
	scribe__text(s, ",");
	if (event_is_keyed(ev))
		scribe__u64(s, ev->arg);
	scribe__text(s, ",");
	if (event_is_keyed(ev) && ev->begin_tid)
		scribe__u64(s, ev->begin_tid);
	scribe__text(s, ",");
	if (ev->kind == EVENT_VALUE)
		put_value(c, ev);
	scribe__text(s, c->gpu ? ",,,,,\r\n" : "\r\n");
}

static int put(void *ctx, const struct event *ev)
{
	struct csv *c = ctx;
	const char *name = exporter__fit_name(c->x, ev->span, quoted);
	const char *thread = thread_text(c, ev->thread);

	if (!name || !thread)
		return exporter__no_memory(c->x);
	scribe__text(&c->s, ev->kind < EVENT_KINDS && kinds[ev->kind] ? kinds[ev->kind] : "");
	scribe__text(&c->s, ",");
	scribe__text(&c->s, name);
	scribe__text(&c->s, ",");
	scribe__text(&c->s, thread);
	put_numbers(c, ev);
	c->x->counts.spans += event_is_span(ev);
	c->x->counts.points += !event_is_span(ev);
	return c->s.err;
}

/* --- the GPU ------------------------------------------------------------------------------------- */

/* The thread that asked for it; of one that no table has, its ids. */
static int put_asker(struct csv *c, uint32_t tgid, uint32_t tid, uint64_t ns, bool has_thread)
{
	const struct trace_info *info = c->x->info;
	size_t process = exporter__process_at(c->x, tgid, ns);
	const char *known;
	uint32_t thread;
	char *comm;

	if (has_thread && exporter__thread(c->x, tgid, tid, ns, &thread)) {
		known = thread_text(c, thread);
		scribe__text(&c->s, known ? known : "");
		return known ? 0 : exporter__no_memory(c->x);
	}
	comm = quoted(process < info->nprocesses ? info->processes[process].comm : "");
	if (!comm)
		return exporter__no_memory(c->x);
	scribe__text(&c->s, comm);
	free(comm);
	scribe__text(&c->s, ",");
	scribe__u64(&c->s, tgid);
	scribe__text(&c->s, ",");
	if (has_thread)
		scribe__u64(&c->s, tid);
	scribe__text(&c->s, ",");
	return 0;
}

static int put_title(struct csv *c, const char *kind, uint32_t title)
{
	const char *name = export_gpu__fit(c->gpu, title, quoted);

	scribe__text(&c->s, "gpu-");
	scribe__text(&c->s, kind);
	scribe__text(&c->s, ",");
	scribe__text(&c->s, name ? name : "");
	scribe__text(&c->s, ",");
	return name ? 0 : exporter__no_memory(c->x);
}

/* What is not known is left empty. */
static void put_times(struct csv *c, bool known, uint64_t start_ns, uint64_t end_ns)
{
	scribe__text(&c->s, ",");
	if (known)
		scribe__u64(&c->s, start_ns);
	scribe__text(&c->s, ",");
	if (known)
		scribe__u64(&c->s, end_ns - start_ns);
	scribe__text(&c->s, ",,,,,,");
}

static int put_activity(void *ctx, const struct gpu_item *a)
{
	struct csv *c = ctx;
	const struct gpu_row_device *d = &c->gpu->devices[a->device];
	int err = put_title(c, export_gpu__kind(a), a->title);

	if (!err)
		err = put_asker(c, d->tgid, a->seen->tid, a->seen->asked_ns, a->seen->has_call);
	put_times(c, !a->seen->untimed, a->start_ns, a->end_ns);
	scribe__text(&c->s, ",");
	scribe__u64(&c->s, d->number);
	scribe__text(&c->s, ",");
	scribe__u64(&c->s, a->context);
	scribe__text(&c->s, ",");
	scribe__u64(&c->s, c->gpu->streams[a->stream].stream);
	scribe__text(&c->s, ",");
	scribe__u64(&c->s, a->correlation);
	scribe__text(&c->s, ",");
	if (a->seen->rec->type == QBPF_RING_COPY || a->seen->rec->type == QBPF_RING_SET)
		scribe__u64(&c->s, a->bytes);
	scribe__text(&c->s, "\r\n");
	return err ? err : c->s.err;
}

/* `value` is its error. */
static int put_call(void *ctx, const struct gpu_item_call *call)
{
	struct csv *c = ctx;
	const struct gpu_seen_call *s = call->seen;
	int err = put_title(c, "call", call->title);

	if (!err)
		err = put_asker(c, s->tgid, s->tid, s->start_ns, true);
	put_times(c, s->start_ns && s->end_ns >= s->start_ns, s->start_ns, s->end_ns);
	scribe__u64(&c->s, s->error);
	scribe__text(&c->s, ",,,,");
	scribe__u64(&c->s, s->correlation);
	scribe__text(&c->s, ",\r\n");
	return err ? err : c->s.err;
}

static int put_all(struct csv *c)
{
	const struct gpu_sink sink = {c, put_activity, put_call, NULL, NULL};
	int err = export_gpu__new(c->x, &c->gpu);

	if (err)
		return err;
	scribe__text(&c->s,
		     "kind,name,process,pid,tid,thread,start_ns,dur_ns,self_ns,depth,node,key,"
		     "begin_tid,value");
	scribe__text(&c->s, c->gpu ? ",device,context,stream,correlation,bytes\r\n" : "\r\n");
	err = exporter__each(c->x, put, c);
	if (!err && c->gpu)
		err = export_gpu__walk(c->gpu, &sink);
	export_gpu__free(c->gpu);
	return err;
}

int export_csv(struct exporter *x)
{
	struct csv *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return exporter__no_memory(x);
	c->x = x;
	c->s.f = x->out;
	c->threads = calloc(x->info->nthreads + 1, sizeof(*c->threads));
	err = c->threads ? put_all(c) : exporter__no_memory(x);
	err = exporter__finish(x, &c->s, err);
	for (size_t i = 0; c->threads && i < x->info->nthreads; i++)
		free(c->threads[i]);
	free(c->threads);
	free(c);
	return err;
}

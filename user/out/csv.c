// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* csv.c - all events, one line each, in the order of the file; RFC 4180. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/export_impl.h"
#include "out/scribe.h"
#include "out/text.h"
#include "qbpf/abi.h"

struct csv {
	struct exporter *x;
	struct scribe s;
	char **threads; /* by index: process, pid, tid, name, as they stand in a line */
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
	scribe__text(s, "\r\n");
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

int export_csv(struct exporter *x)
{
	struct csv *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return exporter__no_memory(x);
	c->x = x;
	c->s.f = x->out;
	c->threads = calloc(x->info->nthreads + 1, sizeof(*c->threads));
	scribe__text(&c->s,
		     "kind,name,process,pid,tid,thread,start_ns,dur_ns,self_ns,depth,node,key,"
		     "begin_tid,value\r\n");
	err = c->threads ? exporter__each(x, put, c) : exporter__no_memory(x);
	err = exporter__finish(x, &c->s, err);
	for (size_t i = 0; c->threads && i < x->info->nthreads; i++)
		free(c->threads[i]);
	free(c->threads);
	free(c);
	return err;
}

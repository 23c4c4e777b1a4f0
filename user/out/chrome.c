// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * chrome.c - a trace as JSON in the "Trace Event Format".
 *
 * Times are microseconds with three decimals, made from integers, from the trace's begin on: readers
 * take them as doubles, which keep ns for 104 days. Nested spans are complete events (X), the outer
 * before the inner where they begin at once; all that may overlap is a pair of async events (b, e)
 * with an id of its own. Readers sort by time and keep the order of equal times.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/id_map.h"
#include "model/lanes.h"
#include "out/chrome_impl.h"
#include "qbpf/abi.h"

/* Rows are known by tid alone: a thread whose tid was another's before gets a made-up one. */
static int choose_tids(struct chrome *c)
{
	const struct trace_info *info = c->x->info;
	struct id_map seen = {0};
	int err = 0;

	for (uint32_t i = 0; i < info->nthreads && !err; i++) {
		uint64_t key = (uint64_t)info->threads[i].tgid << 32 | info->threads[i].tid;

		c->tids[i] = info->threads[i].tid;
		if (!c->tids[i] || id_map__get(&seen, key) != ID_MAP_NONE)
			c->tids[i] = EXPORT_MADE_UP_ID + i;
		else
			err = id_map__put(&seen, key, i);
	}
	id_map__clear(&seen);
	return err;
}

/* --- parts of an event --------------------------------------------------------------------------- */

void chrome__begin(struct chrome *c, const char *phase)
{
	scribe__text(&c->s, c->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	scribe__text(&c->s, phase);
	c->any = true;
}

void chrome__row(struct chrome *c, uint32_t pid, uint32_t tid)
{
	scribe__text(&c->s, ",\"pid\":");
	scribe__u64(&c->s, pid);
	scribe__text(&c->s, ",\"tid\":");
	scribe__u64(&c->s, tid);
}

static void put_thread(struct chrome *c, uint32_t thread)
{
	chrome__row(c, export__pid(c->x->info->threads[thread].tgid), c->tids[thread]);
}

void chrome__time(struct chrome *c, uint64_t ns)
{
	scribe__text(&c->s, ",\"ts\":");
	scribe__us(&c->s, (int64_t)(ns - c->zero_ns));
}

static int put_name(struct chrome *c, uint32_t span)
{
	const char *name = exporter__fit_name(c->x, span, export__json);

	if (!name)
		return exporter__no_memory(c->x);
	scribe__text(&c->s, ",\"name\":");
	scribe__text(&c->s, name);
	return 0;
}

void chrome__id(struct chrome *c, uint64_t id)
{
	char text[32];

	snprintf(text, sizeof(text), ",\"id\":\"0x%" PRIx64 "\"", id);
	scribe__text(&c->s, text);
}

/* The next of an event's arguments; *n counts them. */
static void put_note(struct chrome *c, size_t *n, const char *key)
{
	scribe__text(&c->s, (*n)++ ? ",\"" : ",\"args\":{\"");
	scribe__text(&c->s, key);
	scribe__text(&c->s, "\":");
}

static void put_notes(struct chrome *c, const struct event *ev)
{
	size_t n = 0;

	if (event_is_keyed(ev)) {
		put_note(c, &n, "key");
		/* Readers that take numbers for doubles would round it. */
		scribe__text(&c->s, "\"");
		scribe__u64(&c->s, ev->arg);
		scribe__text(&c->s, "\"");
	}
	if (ev->end_ns < ev->start_ns) {
		put_note(c, &n, "ends_before_begin_ns");
		scribe__u64(&c->s, ev->start_ns - ev->end_ns);
	}
	if (ev->kind == EVENT_OPEN) {
		put_note(c, &n, "unfinished");
		scribe__text(&c->s, "true");
	}
	if (n)
		scribe__text(&c->s, "}");
}

void chrome__end(struct chrome *c)
{
	scribe__text(&c->s, "}");
}

/* process_name, thread_name */
int chrome__label(struct chrome *c, const char *what, uint32_t pid, uint32_t tid, const char *text)
{
	char *json = export__json(text);

	if (!json)
		return exporter__no_memory(c->x);
	chrome__begin(c, "M\",\"name\":\"");
	scribe__text(&c->s, what);
	scribe__text(&c->s, "\"");
	chrome__row(c, pid, tid);
	scribe__text(&c->s, ",\"args\":{\"name\":");
	scribe__text(&c->s, json);
	scribe__text(&c->s, "}");
	chrome__end(c);
	free(json);
	return 0;
}

int chrome__describe(struct chrome *c, uint32_t thread)
{
	const struct trace_thread *t = &c->x->info->threads[thread];
	const struct trace_process *proc = exporter__process(c->x, thread);
	uint32_t pid = export__pid(t->tgid);
	char *name = NULL;
	int err = 0;

	if (c->described[thread])
		return 0;
	c->described[thread] = true;
	if (proc)
		err = chrome__label(c, "process_name", pid, c->tids[thread], proc->comm);
	if (err)
		return err;
	if (c->tids[thread] == t->tid)
		return chrome__label(c, "thread_name", pid, t->tid, t->name);
	if (asprintf(&name, "%s (tid %u again)", t->name, t->tid) < 0)
		return exporter__no_memory(c->x);
	err = chrome__label(c, "thread_name", pid, c->tids[thread], name);
	free(name);
	return err;
}

/* --- events -------------------------------------------------------------------------------------- */

static int put_nested(struct chrome *c, const struct event *ev)
{
	chrome__begin(c, "X\",\"cat\":\"span\"");
	put_thread(c, ev->thread);
	chrome__time(c, ev->start_ns);
	scribe__text(&c->s, ",\"dur\":");
	scribe__us(&c->s, (int64_t)event_ns(ev));
	put_notes(c, ev);
	if (put_name(c, ev->span))
		return -ENOMEM;
	chrome__end(c);
	return 0;
}

static int put_half(struct chrome *c, const struct event *ev, const char *head, uint64_t at_ns,
		    uint32_t thread, uint64_t id)
{
	chrome__begin(c, head);
	chrome__id(c, id);
	put_thread(c, thread);
	chrome__time(c, at_ns);
	return put_name(c, ev->span);
}

/* A span that may overlap anything. */
static int put_async(struct chrome *c, const struct event *ev, bool keyed)
{
	uint64_t id = ++c->async;
	int err = put_half(c, ev, keyed ? "b\",\"cat\":\"keyed\"" : "b\",\"cat\":\"overlapping\"",
			   ev->start_ns, ev->thread, id);

	if (err)
		return err;
	put_notes(c, ev);
	chrome__end(c);
	c->x->counts.spans++;
	c->x->counts.overlapping += !keyed;
	err = put_half(c, ev, keyed ? "e\",\"cat\":\"keyed\"" : "e\",\"cat\":\"overlapping\"",
		       ev->start_ns + event_ns(ev), ev->thread, id);
	chrome__end(c);
	return err;
}

static int put_instant(struct chrome *c, const struct event *ev)
{
	chrome__begin(c, "i\",\"cat\":\"instant\",\"s\":\"t\"");
	put_thread(c, ev->thread);
	chrome__time(c, ev->start_ns);
	return put_name(c, ev->span);
}

/* What no curve can show is an instant. */
static int put_value(struct chrome *c, const struct event *ev)
{
	bool real = c->x->info->spans[ev->span - 1].hist == QBPF_HIST_F64;
	double value;
	int err;

	memcpy(&value, &ev->arg, sizeof(value));
	if (real && !isfinite(value)) {
		err = put_instant(c, ev);
		scribe__text(&c->s, ",\"args\":{\"value\":\"");
		scribe__text(&c->s, isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity");
		scribe__text(&c->s, "\"}");
		chrome__end(c);
		return err;
	}
	chrome__begin(c, "C\",\"cat\":\"value\"");
	put_thread(c, ev->thread);
	chrome__time(c, ev->start_ns);
	scribe__text(&c->s, ",\"args\":{\"value\":");
	if (real)
		scribe__double(&c->s, value);
	else
		scribe__i64(&c->s, (int64_t)ev->arg);
	scribe__text(&c->s, "}");
	err = put_name(c, ev->span);
	chrome__end(c);
	return err;
}

static int on_step(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	struct chrome *c = ctx;
	int err = step == NEST_END ? 0 : chrome__describe(c, ev->thread);

	(void)level;
	if (err)
		return err;
	switch (step) {
	case NEST_BEGIN:
		c->x->counts.spans++;
		return put_nested(c, ev);
	case NEST_END:
		return c->s.err;
	case NEST_POINT:
		c->x->counts.points++;
		if (ev->kind == EVENT_VALUE)
			return put_value(c, ev);
		err = put_instant(c, ev);
		chrome__end(c);
		return err;
	case NEST_APART:
		break;
	}
	if (!event_is_keyed(ev))
		return put_async(c, ev, false);
	c->keyed++;
	return 0;
}

/* After the threads' spans: an arrow's end belongs to the span that is open there, which must stand
 * before it. */
static int on_keyed(void *ctx, const struct event *ev)
{
	struct chrome *c = ctx;
	uint32_t beginner;
	int err;

	if (!event_is_keyed(ev))
		return 0;
	err = put_async(c, ev, true);
	if (err || ev->kind == EVENT_OPEN || !exporter__beginner(c->x, ev, &beginner))
		return err ? err : c->s.err;
	err = chrome__describe(c, beginner);
	if (!err)
		err = put_half(c, ev, "s\",\"cat\":\"keyed\"", ev->start_ns, beginner, c->async);
	chrome__end(c);
	if (!err)
		err = put_half(c, ev, "f\",\"bp\":\"e\",\"cat\":\"keyed\"",
			       ev->start_ns + event_ns(ev), ev->thread, c->async);
	chrome__end(c);
	return err;
}

/* --- losses -------------------------------------------------------------------------------------- */

static int put_loss(struct chrome *c, const struct trace_loss *loss, const char *of, uint32_t pid,
		    uint32_t tid)
{
	uint64_t ns = loss->to_ns > loss->from_ns ? loss->to_ns - loss->from_ns : 0;
	char *name, *json;

	if (asprintf(&name, "%s: %" PRIu64 " %s", of, loss->lost ? loss->lost : loss->skipped,
		     loss->lost ? "lost" : "left out") < 0)
		return exporter__no_memory(c->x);
	json = export__json(name);
	free(name);
	if (!json)
		return exporter__no_memory(c->x);
	chrome__begin(c, "X\",\"cat\":\"lost\",\"name\":");
	scribe__text(&c->s, json);
	free(json);
	chrome__row(c, pid, tid);
	chrome__time(c, loss->from_ns);
	scribe__text(&c->s, ",\"dur\":");
	scribe__us(&c->s, (int64_t)ns);
	scribe__text(&c->s, ",\"args\":{\"lost\":");
	scribe__u64(&c->s, loss->lost);
	scribe__text(&c->s, ",\"left_out_on_purpose\":");
	scribe__u64(&c->s, loss->skipped);
	scribe__text(&c->s, "}");
	chrome__end(c);
	return 0;
}

static int put_losses(struct chrome *c)
{
	const struct trace_info *info = c->x->info;
	uint32_t pid = export__pid(info->nprocesses ? info->processes[0].tgid : 0), lane;
	struct lanes *lanes = lanes__new();
	struct trace_loss loss;
	const char *of;
	size_t at = 0;
	bool fresh;
	int err = 0;

	while (lanes && !err && exporter__next_loss(c->x, &at, &loss, &of)) {
		uint64_t end_ns = loss.to_ns > loss.from_ns ? loss.to_ns : loss.from_ns;

		err = lanes__take(lanes, loss.from_ns, end_ns, &lane, &fresh);
		lane += c->next_row; /* nothing comes after these */
		if (!err && fresh)
			err = chrome__label(c, "thread_name", pid, lane, "not in this trace");
		if (!err)
			err = put_loss(c, &loss, of, pid, lane);
	}
	if (!lanes)
		err = exporter__no_memory(c->x);
	lanes__free(lanes);
	return err;
}

/* --- the document -------------------------------------------------------------------------------- */

static int put_end(struct chrome *c)
{
	const struct trace_meta *meta = &c->x->info->meta;
	char *command = export__json(meta->command), *host = export__json(meta->hostname);

	if (command && host) {
		scribe__text(&c->s,
			     "\n],\"displayTimeUnit\":\"ns\",\"metadata\":{\"qbpf\":\"" QBPF_VERSION
			     "\",\"clock\":\"CLOCK_MONOTONIC\",\"zero_ns\":\"");
		scribe__u64(&c->s, c->zero_ns);
		scribe__text(&c->s, "\",\"realtime_ns\":\"");
		scribe__u64(&c->s, meta->realtime_ns + (c->zero_ns - meta->start_ns));
		scribe__text(&c->s, "\",\"host\":");
		scribe__text(&c->s, host);
		scribe__text(&c->s, ",\"command\":");
		scribe__text(&c->s, command);
		scribe__text(&c->s, "}}\n");
	}
	free(command);
	free(host);
	return command && host ? 0 : exporter__no_memory(c->x);
}

static int put_all(struct chrome *c)
{
	int err = choose_tids(c);

	if (err)
		return exporter__no_memory(c->x);
	scribe__text(&c->s, "{\"traceEvents\":[");
	for (uint32_t i = 0; i < c->x->info->nthreads && !err; i++)
		if (c->x->threads[i])
			err = exporter__walk(c->x, i, on_step, c);
	if (!err && c->keyed)
		err = exporter__each(c->x, on_keyed, c);
	if (!err)
		err = chrome__gpu(c);
	if (!err)
		err = put_losses(c);
	return err ? err : put_end(c);
}

int export_chrome(struct exporter *x)
{
	struct chrome *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return exporter__no_memory(x);
	c->x = x;
	c->s.f = x->out;
	c->zero_ns = exporter__zero_ns(x);
	c->next_row = EXPORT_MADE_UP_ID + (uint32_t)x->info->nthreads;
	c->tids = calloc(x->info->nthreads + 1, sizeof(*c->tids));
	c->described = calloc(x->info->nthreads + 1, sizeof(*c->described));
	err = c->tids && c->described ? put_all(c) : exporter__no_memory(x);
	err = exporter__finish(x, &c->s, err);
	free(c->tids);
	free(c->described);
	free(c);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * speedscope.c - a trace in speedscope's own format: one evented profile per thread.
 *
 * Such a profile is one stack over time, so spans that overlap others, keyed ones among them, have a
 * second profile of their thread, where they lie end to end: their number and lengths are right there,
 * their times mean nothing. Instants and values have no place in the format.
 *
 * Frames come last, for it is only then known which of them are in use; an unfinished span is a frame
 * of its own, so that its time does not mix with that of finished ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/export_impl.h"
#include "out/scribe.h"

struct frames {
	uint32_t finished, unfinished; /* index + 1; 0: not in use */
};

struct speedscope {
	struct exporter *x;
	struct scribe s;
	uint64_t zero_ns;
	struct frames *spans; /* by id */
	uint32_t *used;	      /* by frame: span id, UNFINISHED */
	uint32_t nframes, used_room;
	uint32_t nprofiles;
	/* the profile at hand */
	bool open, any;
	uint64_t first, last, apart;
};

#define UNFINISHED (1u << 31)

static int frame_of(struct speedscope *sp, const struct event *ev, uint32_t *frame)
{
	uint32_t *known = ev->kind == EVENT_OPEN ? &sp->spans[ev->span].unfinished
						 : &sp->spans[ev->span].finished;

	if (!*known) {
		if (sp->nframes == sp->used_room) {
			uint32_t room = sp->used_room ? 2 * sp->used_room : 64;
			uint32_t *more = reallocarray(sp->used, room, sizeof(*more));

			if (!more)
				return exporter__no_memory(sp->x);
			sp->used = more;
			sp->used_room = room;
		}
		sp->used[sp->nframes] = ev->span | (ev->kind == EVENT_OPEN ? UNFINISHED : 0);
		*known = ++sp->nframes;
	}
	*frame = *known - 1;
	return 0;
}

static int begin_profile(struct speedscope *sp, uint32_t thread, const char *suffix, uint64_t at)
{
	const struct trace_thread *t = &sp->x->info->threads[thread];
	const struct trace_process *proc = exporter__process(sp->x, thread);
	char *name, *json;

	if (asprintf(&name, "%s%s%s (tid %u)%s", proc ? proc->comm : "", proc ? " / " : "", t->name,
		     t->tid, suffix) < 0)
		return exporter__no_memory(sp->x);
	json = export__json(name);
	free(name);
	if (!json)
		return exporter__no_memory(sp->x);
	scribe__text(&sp->s, sp->nprofiles++ ? ",\n{" : "\n{");
	scribe__text(&sp->s, "\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":");
	scribe__text(&sp->s, json);
	scribe__text(&sp->s, ",\"events\":[");
	free(json);
	sp->open = true;
	sp->any = false;
	sp->first = sp->last = at;
	return 0;
}

static void end_profile(struct speedscope *sp)
{
	scribe__text(&sp->s, "],\"startValue\":");
	scribe__u64(&sp->s, sp->first);
	scribe__text(&sp->s, ",\"endValue\":");
	scribe__u64(&sp->s, sp->last);
	scribe__text(&sp->s, "}");
	sp->open = false;
}

static void put(struct speedscope *sp, const char *type, uint32_t frame, uint64_t at)
{
	scribe__text(&sp->s, sp->any ? ",{\"type\":\"" : "{\"type\":\"");
	scribe__text(&sp->s, type);
	scribe__text(&sp->s, "\",\"frame\":");
	scribe__u64(&sp->s, frame);
	scribe__text(&sp->s, ",\"at\":");
	scribe__u64(&sp->s, at);
	scribe__text(&sp->s, "}");
	sp->any = true;
	sp->last = at;
}

static int on_step(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	struct speedscope *sp = ctx;
	uint64_t at = (step == NEST_BEGIN ? ev->start_ns : ev->end_ns) - sp->zero_ns;
	uint32_t frame;
	int err;

	(void)level;
	if (step == NEST_POINT) {
		sp->x->counts.left_out++;
		return sp->s.err;
	}
	if (step == NEST_APART) {
		sp->apart++;
		return 0;
	}
	err = sp->open ? 0 : begin_profile(sp, ev->thread, "", at);
	if (!err)
		err = frame_of(sp, ev, &frame);
	if (err)
		return err;
	sp->x->counts.spans += step == NEST_BEGIN;
	put(sp, step == NEST_BEGIN ? "O" : "C", frame, at);
	return sp->s.err;
}

static int on_apart(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	struct speedscope *sp = ctx;
	uint32_t frame;
	int err;

	(void)level;
	if (step != NEST_APART)
		return 0;
	err =
	    sp->open ? 0 : begin_profile(sp, ev->thread, ": overlapping spans, laid end to end", 0);
	if (!err)
		err = frame_of(sp, ev, &frame);
	if (err)
		return err;
	sp->x->counts.spans++;
	sp->x->counts.overlapping += !event_is_keyed(ev);
	put(sp, "O", frame, sp->last);
	put(sp, "C", frame, sp->last + event_ns(ev));
	return sp->s.err;
}

static int put_thread(struct speedscope *sp, uint32_t thread)
{
	int err;

	sp->apart = 0;
	err = exporter__walk(sp->x, thread, on_step, sp);
	if (sp->open)
		end_profile(sp);
	if (err || !sp->apart)
		return err;
	err = exporter__walk(sp->x, thread, on_apart, sp);
	if (sp->open)
		end_profile(sp);
	return err;
}

static int put_frames(struct speedscope *sp)
{
	for (uint32_t i = 0; i < sp->nframes; i++) {
		const char *name = exporter__span_name(sp->x, sp->used[i] & ~UNFINISHED);
		char *whole = NULL, *json;

		if (sp->used[i] & UNFINISHED && asprintf(&whole, "%s (unfinished)", name) < 0)
			return exporter__no_memory(sp->x);
		json = export__json(whole ? whole : name);
		free(whole);
		if (!json)
			return exporter__no_memory(sp->x);
		scribe__text(&sp->s, i ? ",\n{\"name\":" : "\n{\"name\":");
		scribe__text(&sp->s, json);
		scribe__text(&sp->s, "}");
		free(json);
	}
	return 0;
}

static int put_all(struct speedscope *sp)
{
	char *command = export__json(sp->x->info->meta.command);
	int err = 0;

	if (!command)
		return exporter__no_memory(sp->x);
	scribe__text(&sp->s, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			     "\"exporter\":\"qbpf " QBPF_VERSION "\",\"activeProfileIndex\":0,"
			     "\"name\":");
	scribe__text(&sp->s, command);
	scribe__text(&sp->s, ",\"profiles\":[");
	free(command);
	for (uint32_t i = 0; i < sp->x->info->nthreads && !err; i++)
		if (sp->x->threads[i])
			err = put_thread(sp, i);
	if (err)
		return err;
	/* A document without a profile is not one. */
	if (!sp->nprofiles)
		scribe__text(&sp->s, "\n{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":"
				     "\"no spans\",\"events\":[],\"startValue\":0,\"endValue\":0}");
	scribe__text(&sp->s, "\n],\"shared\":{\"frames\":[");
	err = put_frames(sp);
	scribe__text(&sp->s, "\n]}}\n");
	return err;
}

int export_speedscope(struct exporter *x)
{
	struct speedscope *sp = calloc(1, sizeof(*sp));
	int err;

	if (!sp)
		return exporter__no_memory(x);
	sp->x = x;
	sp->s.f = x->out;
	sp->zero_ns = exporter__zero_ns(x);
	sp->spans = calloc(x->info->nspans + 1, sizeof(*sp->spans));
	err = sp->spans ? put_all(sp) : exporter__no_memory(x);
	err = exporter__finish(x, &sp->s, err);
	free(sp->used);
	free(sp->spans);
	free(sp);
	return err;
}

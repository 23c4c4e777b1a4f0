// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * perfetto.c - a trace as Perfetto's protobuf.
 *
 * Perfetto's importer trusts the writer, so these rules are kept here (they were learnt from what it
 * does with files that break them):
 *
 * - The first packet is a snapshot of MONOTONIC, BOOTTIME and REALTIME with MONOTONIC as primary
 *   clock; without it every event is dropped, or moved to another clock.
 * - Each thread is a sequence of packets, which begins with cleared state and the thread's track as
 *   default. Names are sent once in a sequence, before their first use.
 * - On a track begins and ends are brackets in order of time (model/nest.h). Spans that cross others
 *   go to lanes (model/lanes.h) on tracks beside the thread's.
 * - A track keeps 512 levels and mixes up the ends of what is deeper: every 512 levels go on on a
 *   track of their own.
 * - Times are int64. Process 0 and thread 0 are the idle task's.
 *
 * A span is two packets: their parts are serialized once (perfetto_pack.h), so that only the time is
 * new. All that is rare is built and serialized anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/perfetto_impl.h"
#include "qbpf/abi.h"

#define TRACK_LEVELS 512

/* --- one thread ---------------------------------------------------------------------------------- */

int perfetto__begin(struct perfetto *p, const struct event *ev, uint64_t track, uint64_t *flow)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation notes[3], *list[3] = {&notes[0], &notes[1], &notes[2]};
	char *unfinished = "unfinished";
	size_t n = 0;
	int err = perfetto__need_name(p, ev->span);

	if (err)
		return err;
	for (int i = 0; i < 3; i++)
		perfetto__debug_annotation__init(&notes[i]);
	if (event_is_keyed(ev)) {
		notes[n].name = "key";
		notes[n].has_uint_value = 1;
		notes[n++].uint_value = ev->arg;
	}
	if (ev->end_ns < ev->start_ns) {
		notes[n].name = "ends_before_begin_ns";
		notes[n].has_uint_value = 1;
		notes[n++].uint_value = ev->start_ns - ev->end_ns;
	}
	if (ev->kind == EVENT_OPEN) {
		notes[n].name = unfinished;
		notes[n].has_bool_value = 1;
		notes[n++].bool_value = 1;
	}
	te.n_debug_annotations = n;
	te.debug_annotations = list;
	te.n_categories = ev->kind == EVENT_OPEN;
	te.categories = &unfinished;
	te.n_flow_ids = flow != NULL;
	te.flow_ids = flow;
	te.has_name_iid = 1;
	te.name_iid = ev->span;
	te.has_track_uuid = 1;
	te.track_uuid = track;
	return perfetto__event(p, ev->start_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, &te);
}

int perfetto__end(struct perfetto *p, uint64_t at_ns, uint64_t track)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;

	te.has_track_uuid = 1;
	te.track_uuid = track;
	return perfetto__event(p, at_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, &te);
}

/* The track of a level; described when it is new. */
static int level_track(struct perfetto *p, uint32_t level, uint64_t *track)
{
	uint32_t turn = level / TRACK_LEVELS;
	char name[48];
	int err = 0;

	*track = turn ? perfetto__uuid(p, UUID_DEEP, p->thread, turn)
		      : perfetto__thread_uuid(p, p->thread);
	while (p->deep < turn && !err) {
		p->deep++;
		snprintf(name, sizeof(name), "depth %u and more", p->deep * TRACK_LEVELS);
		err = perfetto__named_track(p, perfetto__uuid(p, UUID_DEEP, p->thread, p->deep),
					    perfetto__thread_uuid(p, p->thread), name);
	}
	return err;
}

static int begin_slowly(struct perfetto *p, const struct event *ev, uint32_t level)
{
	uint64_t track;
	int err = level_track(p, level, &track);

	return err ? err : perfetto__begin(p, ev, track, NULL);
}

/* A span that crosses others of its thread. */
static int send_beside(struct perfetto *p, const struct event *ev)
{
	uint64_t end_ns = ev->start_ns + event_ns(ev), track;
	uint32_t lane;
	bool fresh;
	int err;

	if (event_is_keyed(ev)) {
		p->keyed++;
		return 0;
	}
	if (lanes__take(p->beside, ev->start_ns, end_ns, &lane, &fresh))
		return exporter__no_memory(p->x);
	track = perfetto__uuid(p, UUID_BESIDE, p->thread, lane);
	if (fresh) {
		err = perfetto__named_track(p, track, perfetto__thread_uuid(p, p->thread),
					    "spans that overlap others");
		if (err)
			return err;
	}
	p->x->counts.spans++;
	p->x->counts.overlapping++;
	err = perfetto__begin(p, ev, track, NULL);
	return err ? err : perfetto__end(p, end_ns, track);
}

static int describe_counter(struct perfetto *p, uint32_t span, uint64_t process, uint64_t track)
{
	Perfetto__TrackDescriptor desc = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;

	/* Again when processes take turns: the same descriptor twice is no other track. */
	if (p->spans[span].counter == process)
		return 0;
	p->spans[span].counter = process;
	desc.uuid = track;
	desc.has_parent_uuid = 1;
	desc.parent_uuid = process;
	desc.counter = &counter;
	desc.name = (char *)exporter__fit_name(p->x, span, export__text);
	return desc.name ? perfetto__track(p, 0, &desc) : exporter__no_memory(p->x);
}

/* What no curve can show: not a number, or without end. */
static int send_odd_value(struct perfetto *p, const struct event *ev, double value)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation note = PERFETTO__DEBUG_ANNOTATION__INIT, *list = &note;
	int err = perfetto__need_name(p, ev->span);

	note.name = "value";
	note.string_value = isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
	te.has_name_iid = 1;
	te.name_iid = ev->span;
	te.n_debug_annotations = 1;
	te.debug_annotations = &list;
	return err ? err
		   : perfetto__event(p, ev->start_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT,
				     &te);
}

static int send_value(struct perfetto *p, const struct event *ev)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	uint64_t process = perfetto__process_uuid(p, p->thread);
	int err;

	if (p->x->info->spans[ev->span - 1].hist == QBPF_HIST_F64) {
		memcpy(&te.double_counter_value, &ev->arg, sizeof(te.double_counter_value));
		if (!isfinite(te.double_counter_value))
			return send_odd_value(p, ev, te.double_counter_value);
		te.has_double_counter_value = 1;
	} else {
		te.has_counter_value = 1;
		te.counter_value = (int64_t)ev->arg;
	}
	te.has_track_uuid = 1;
	te.track_uuid = perfetto__uuid(p, UUID_COUNTER, process, ev->span);
	err = describe_counter(p, ev->span, process, te.track_uuid);
	return err ? err
		   : perfetto__event(p, ev->start_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER,
				     &te);
}

static int begin_thread(struct perfetto *p)
{
	int err = perfetto__describe_thread(p, p->thread);

	if (!err)
		err = perfetto__begin_sequence(p, SEQUENCE_THREADS + p->thread,
					       perfetto__thread_uuid(p, p->thread));
	return err;
}

static int on_step(void *ctx, enum nest_step step, const struct event *ev, uint32_t level)
{
	struct perfetto *p = ctx;
	uint64_t track;
	int err = 0;

	if (p->sequence != SEQUENCE_THREADS + p->thread)
		err = begin_thread(p);
	if (!err && step != NEST_END && step != NEST_APART && ev->kind != EVENT_VALUE)
		err = perfetto__need_name(p, ev->span);
	if (err)
		return err;
	switch (step) {
	case NEST_BEGIN:
		p->x->counts.spans++;
		if (level >= TRACK_LEVELS || ev->kind == EVENT_OPEN)
			return begin_slowly(p, ev, level);
		return perfetto__packed(p, pack__parts(p->pack, perfetto__time(ev->start_ns),
						       &p->in_sequence, &p->spans[ev->span].begin));
	case NEST_END:
		if (level >= TRACK_LEVELS) {
			err = level_track(p, level, &track);
			return err ? err : perfetto__end(p, ev->end_ns, track);
		}
		return perfetto__packed(
		    p, pack__parts(p->pack, perfetto__time(ev->end_ns), &p->in_sequence, &p->end));
	case NEST_POINT:
		p->x->counts.points++;
		if (ev->kind == EVENT_VALUE)
			return send_value(p, ev);
		return perfetto__packed(p, pack__parts(p->pack, perfetto__time(ev->start_ns),
						       &p->in_sequence, &p->spans[ev->span].point));
	case NEST_APART:
		break;
	}
	return send_beside(p, ev);
}

static int write_thread(struct perfetto *p, uint32_t thread)
{
	int err;

	p->thread = thread;
	p->deep = 0;
	p->beside = lanes__new();
	if (!p->beside)
		return exporter__no_memory(p->x);
	p->sequence = SEQUENCE_TABLES;
	err = exporter__walk(p->x, thread, on_step, p);
	lanes__free(p->beside);
	p->beside = NULL;
	return err;
}

/* --- the file ------------------------------------------------------------------------------------ */

/* MONOTONIC, BOOTTIME and REALTIME at one moment. */
static int write_clocks(struct perfetto *p)
{
	const struct trace_info *info = p->x->info;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__ClockSnapshot__Clock clocks[3], *list[3];
	/* Without a reading of boot time there is no telling how long the machine has slept. */
	struct trace_clock now = {info->meta.start_ns, info->meta.realtime_ns, info->meta.start_ns,
				  0};

	if (info->nclocks)
		now = info->clocks[0];
	for (size_t i = 0; i < 3; i++) {
		perfetto__clock_snapshot__clock__init(&clocks[i]);
		clocks[i].has_clock_id = 1;
		clocks[i].has_timestamp = 1;
		list[i] = &clocks[i];
	}
	clocks[0].clock_id = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
	clocks[0].timestamp = perfetto__time(now.monotonic_ns);
	clocks[1].clock_id = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_BOOTTIME;
	clocks[1].timestamp = perfetto__time(now.boottime_ns);
	clocks[2].clock_id = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_REALTIME;
	clocks[2].timestamp = perfetto__time(now.realtime_ns);
	snapshot.n_clocks = 3;
	snapshot.clocks = list;
	snapshot.has_primary_trace_clock = 1;
	snapshot.primary_trace_clock = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
	packet.clock_snapshot = &snapshot;
	packet.has_trusted_packet_sequence_id = 1;
	packet.trusted_packet_sequence_id = SEQUENCE_TABLES;
	return perfetto__packed(p, pack__plain(p->pack, &packet));
}

/* Last: a file that was cut loads without a word, so a whole one says that it is. */
static int write_end(struct perfetto *p)
{
	const struct trace_info *info = p->x->info;
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation notes[2] = {PERFETTO__DEBUG_ANNOTATION__INIT,
					      PERFETTO__DEBUG_ANNOTATION__INIT};
	Perfetto__DebugAnnotation *list[2] = {&notes[0], &notes[1]};
	uint64_t track = perfetto__uuid(p, UUID_SESSION, 0, 0);
	int err = perfetto__named_track(p, track, 0, "qbpf");

	notes[0].name = "spans";
	notes[0].has_uint_value = 1;
	notes[0].uint_value = p->x->counts.spans;
	notes[1].name = "recording_closed";
	notes[1].has_bool_value = 1;
	notes[1].bool_value = info->clean;
	te.name = "trace end";
	te.has_track_uuid = 1;
	te.track_uuid = track;
	te.n_debug_annotations = 2;
	te.debug_annotations = list;
	if (!err)
		err =
		    perfetto__event(p, info->end_ns > info->last_ns ? info->end_ns : info->last_ns,
				    PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT, &te);
	return err ? err : perfetto__packed(p, pack__end(p->pack));
}

static int write_all(struct perfetto *p)
{
	int err = write_clocks(p);

	if (!err)
		err = perfetto__begin_sequence(p, SEQUENCE_TABLES, 0);
	if (!err)
		err = perfetto__event_part(p, &p->end, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END,
					   0);
	for (uint32_t i = 0; i < p->x->info->nthreads && !err; i++)
		if (p->x->threads[i])
			err = write_thread(p, i);
	if (!err && p->keyed)
		err = perfetto__keyed(p);
	if (!err)
		err = perfetto__gpu(p);
	p->sequence = SEQUENCE_TABLES;
	if (!err)
		err = perfetto__losses(p);
	return err ? err : write_end(p);
}

int export_perfetto(struct exporter *x)
{
	const struct trace_info *info = x->info;
	struct perfetto p = {.x = x, .salt = perfetto__salt(info)};
	int err;

	p.pack = pack__new(x->out);
	p.spans = calloc(info->nspans + 1, sizeof(*p.spans));
	p.processes = calloc(info->nprocesses + 1, sizeof(*p.processes));
	p.threads = calloc(info->nthreads + 1, sizeof(*p.threads));
	if (p.pack && p.spans && p.processes && p.threads)
		err = write_all(&p);
	else
		err = exporter__no_memory(x);
	for (size_t i = 0; p.spans && i <= info->nspans; i++) {
		while (p.spans[i].keyed) {
			struct keyed_lanes *k = p.spans[i].keyed;

			p.spans[i].keyed = k->next;
			lanes__free(k->lanes);
			free(k);
		}
	}
	free(p.spans);
	free(p.processes);
	free(p.threads);
	pack__free(p.pack);
	return err;
}

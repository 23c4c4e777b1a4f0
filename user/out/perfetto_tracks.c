// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The Perfetto exporter's packets, sequences, names and tracks; see perfetto_impl.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/perfetto_impl.h"

int perfetto__packed(const struct perfetto *p, int err)
{
	if (!err)
		return 0;
	return err_set(p->x->e, err, err == -ENOMEM ? "out of memory" : "cannot write: %s",
		       strerror(-err));
}

static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

uint64_t perfetto__uuid(const struct perfetto *p, enum uuid_kind kind, uint64_t a, uint64_t b)
{
	uint64_t v = mix(mix(mix(p->salt + kind) + a) + b);

	return v ? v : 1; /* 0 is the root of all tracks */
}

uint64_t perfetto__salt(const struct trace_info *info)
{
	uint64_t v = mix(info->meta.start_ns) ^ info->meta.realtime_ns;

	for (const char *s = info->meta.hostname; *s; s++)
		v = mix(v + (unsigned char)*s);
	return v;
}

uint64_t perfetto__time(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : ns;
}

/* --- packets ------------------------------------------------------------------------------------- */

int perfetto__send(struct perfetto *p, Perfetto__TracePacket *packet)
{
	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = p->sequence;
	if (!packet->has_sequence_flags) {
		packet->has_sequence_flags = 1;
		packet->sequence_flags =
		    PERFETTO__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_NEEDS_INCREMENTAL_STATE;
	}
	return perfetto__packed(p, pack__packet(p->pack, packet));
}

int perfetto__event(struct perfetto *p, uint64_t at_ns, Perfetto__TrackEvent__Type type,
		    Perfetto__TrackEvent *ev)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	ev->has_type = 1;
	ev->type = type;
	packet.has_timestamp = 1;
	packet.timestamp = perfetto__time(at_ns);
	packet.track_event = ev;
	return perfetto__send(p, &packet);
}

int perfetto__track(struct perfetto *p, uint64_t at_ns, Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	track->has_uuid = 1;
	packet.track_descriptor = track;
	packet.has_timestamp = at_ns != 0;
	packet.timestamp = perfetto__time(at_ns);
	return perfetto__send(p, &packet);
}

/* A plain track below another; parent 0: none. */
int perfetto__named_track(struct perfetto *p, uint64_t id, uint64_t parent, const char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;

	track.uuid = id;
	track.name = (char *)name;
	track.has_parent_uuid = parent != 0;
	track.parent_uuid = parent;
	return perfetto__track(p, 0, &track);
}

/* Goes to a sequence that was not used before. `track`: of events that name none; 0: no default. */
int perfetto__begin_sequence(struct perfetto *p, uint32_t sequence, uint64_t track)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__TrackEventDefaults events = PERFETTO__TRACK_EVENT_DEFAULTS__INIT;
	Perfetto__TracePacket part = PERFETTO__TRACE_PACKET__INIT;
	int err;

	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
	events.has_track_uuid = 1;
	events.track_uuid = track;
	if (track)
		defaults.track_event_defaults = &events;
	packet.trace_packet_defaults = &defaults;
	packet.has_first_packet_on_sequence = 1;
	packet.first_packet_on_sequence = 1;
	packet.has_sequence_flags = 1;
	packet.sequence_flags =
	    PERFETTO__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_INCREMENTAL_STATE_CLEARED;
	p->sequence = sequence;
	err = perfetto__send(p, &packet);
	if (err)
		return err;
	part.has_trusted_packet_sequence_id = 1;
	part.trusted_packet_sequence_id = sequence;
	part.has_sequence_flags = 1;
	part.sequence_flags = PERFETTO__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_NEEDS_INCREMENTAL_STATE;
	return perfetto__packed(p, pack_part__make(&p->in_sequence, &part));
}

int perfetto__event_part(struct perfetto *p, struct pack_part *part,
			 Perfetto__TrackEvent__Type type, uint32_t name_iid)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent ev = PERFETTO__TRACK_EVENT__INIT;

	ev.has_type = 1;
	ev.type = type;
	ev.has_name_iid = name_iid != 0;
	ev.name_iid = name_iid;
	packet.track_event = &ev;
	return perfetto__packed(p, pack_part__make(part, &packet));
}

/* A span's name is sent once in a sequence; its id is the span's. */
int perfetto__send_name(struct perfetto *p, uint32_t span)
{
	struct span_state *s = &p->spans[span];
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__EventName name = PERFETTO__EVENT_NAME__INIT, *names = &name;
	int err;

	if (!s->begin.len) {
		err = perfetto__event_part(p, &s->begin,
					   PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, span);
		if (!err)
			err = perfetto__event_part(p, &s->point,
						   PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT, span);
		if (err)
			return err;
	}
	name.name = (char *)exporter__fit_name(p->x, span, export__text);
	if (!name.name)
		return exporter__no_memory(p->x);
	name.has_iid = 1;
	name.iid = span;
	data.n_event_names = 1;
	data.event_names = &names;
	packet.interned_data = &data;
	s->sequence = p->sequence;
	return perfetto__send(p, &packet);
}

/* --- processes and threads ----------------------------------------------------------------------- */

/* Of a process that is in no table, the pid alone tells it. */
static uint64_t process_uuid(const struct perfetto *p, uint32_t tgid, uint64_t ns)
{
	return perfetto__uuid(p, UUID_PROCESS, exporter__process_at(p->x, tgid, ns), tgid);
}

uint64_t perfetto__process_uuid(const struct perfetto *p, uint32_t thread)
{
	const struct trace_thread *t = &p->x->info->threads[thread];

	return process_uuid(p, t->tgid, t->start_ns);
}

uint64_t perfetto__thread_uuid(const struct perfetto *p, uint32_t thread)
{
	return perfetto__uuid(p, UUID_THREAD, thread, 0);
}

int perfetto__need_process(struct perfetto *p, uint32_t tgid, uint64_t ns, uint64_t *uuid)
{
	const struct trace_info *info = p->x->info;
	size_t at = exporter__process_at(p->x, tgid, ns);
	const struct trace_process *proc = at < info->nprocesses ? &info->processes[at] : NULL;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ProcessDescriptor desc = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	char *comm = NULL, *exe = NULL;
	int err = 0;

	*uuid = process_uuid(p, tgid, ns);
	if (proc && p->processes[at])
		return 0;
	p->processes[at] = true;
	desc.has_pid = 1;
	desc.pid = (int32_t)export__pid(tgid);
	if (proc) {
		comm = export__text(proc->comm);
		exe = export__text(proc->exe);
		if (!comm || !exe) {
			err = exporter__no_memory(p->x);
			goto out;
		}
		desc.process_name = comm;
		desc.n_cmdline = *exe != '\0';
		desc.cmdline = &exe;
		desc.has_start_timestamp_ns = 1;
		desc.start_timestamp_ns = (int64_t)perfetto__time(proc->start_ns);
	}
	track.uuid = *uuid;
	track.process = &desc;
	err = perfetto__track(p, proc ? proc->start_ns : 0, &track);
out:
	free(comm);
	free(exe);
	return err;
}

int perfetto__other_thread(struct perfetto *p, uint32_t tgid, uint32_t tid, uint64_t ns,
			   uint64_t *uuid)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor desc = PERFETTO__THREAD_DESCRIPTOR__INIT;
	uint64_t process;
	int err = perfetto__need_process(p, tgid, ns, &process);

	if (err)
		return err;
	*uuid = perfetto__uuid(p, UUID_OTHER_THREAD, tgid, tid);
	desc.has_pid = 1;
	desc.pid = (int32_t)export__pid(tgid);
	desc.has_tid = 1;
	desc.tid = tid ? tid : EXPORT_MADE_UP_ID;
	track.uuid = *uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = process;
	track.thread = &desc;
	return perfetto__track(p, 0, &track);
}

int perfetto__describe_thread(struct perfetto *p, uint32_t thread)
{
	const struct trace_thread *t = &p->x->info->threads[thread];
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__ThreadDescriptor desc = PERFETTO__THREAD_DESCRIPTOR__INIT;
	uint64_t process;
	int err;

	if (p->threads[thread])
		return 0;
	p->threads[thread] = true;
	err = perfetto__need_process(p, t->tgid, t->start_ns, &process);
	if (err)
		return err;
	desc.thread_name = export__text(t->name);
	if (!desc.thread_name)
		return exporter__no_memory(p->x);
	desc.has_pid = 1;
	desc.pid = (int32_t)export__pid(t->tgid);
	desc.has_tid = 1;
	desc.tid = t->tid ? t->tid : EXPORT_MADE_UP_ID + (int64_t)thread;
	track.uuid = perfetto__thread_uuid(p, thread);
	track.has_parent_uuid = 1;
	track.parent_uuid = process;
	track.thread = &desc;
	err = perfetto__track(p, t->start_ns, &track);
	free(desc.thread_name);
	return err;
}

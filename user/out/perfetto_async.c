// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The Perfetto exporter's tracks across threads: keyed spans with their flows, and losses. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/perfetto_impl.h"

/* One end of an arrow: an instant on a thread. */
static int send_flow(struct perfetto *p, const struct event *ev, uint32_t thread, uint64_t at_ns,
		     bool ends, uint64_t *flow)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	int err = perfetto__describe_thread(p, thread);

	te.has_name_iid = 1;
	te.name_iid = ev->span;
	te.has_track_uuid = 1;
	te.track_uuid = perfetto__thread_uuid(p, thread);
	if (ends) {
		te.n_terminating_flow_ids = 1;
		te.terminating_flow_ids = flow;
	} else {
		te.n_flow_ids = 1;
		te.flow_ids = flow;
	}
	return err ? err
		   : perfetto__event(p, at_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT, &te);
}

/* The lanes of this span in this process, new when it is the first. */
static struct lanes *lanes_of(struct perfetto *p, uint32_t span, uint64_t process)
{
	struct keyed_lanes *k = p->spans[span].keyed;

	while (k && k->process != process)
		k = k->next;
	if (k)
		return k->lanes;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->process = process;
	k->next = p->spans[span].keyed;
	p->spans[span].keyed = k;
	k->lanes = lanes__new();
	return k->lanes;
}

static int keyed_track(struct perfetto *p, const struct event *ev, uint64_t end_ns, uint64_t *track)
{
	uint64_t process = perfetto__process_uuid(p, ev->thread);
	struct lanes *lanes = lanes_of(p, ev->span, process);
	uint32_t lane;
	bool fresh;
	int err;

	if (!lanes || lanes__take(lanes, ev->start_ns, end_ns, &lane, &fresh))
		return exporter__no_memory(p->x);
	*track = perfetto__uuid(p, UUID_KEYED, process + ev->span, lane);
	if (!fresh)
		return 0;
	err = perfetto__describe_thread(p, ev->thread);
	/* Tracks of one name below one process are shown as one. */
	return err ? err
		   : perfetto__named_track(p, *track, process,
					   exporter__fit_name(p->x, ev->span, export__text));
}

static int on_keyed(void *ctx, const struct event *ev)
{
	struct perfetto *p = ctx;
	uint64_t end_ns = ev->start_ns + event_ns(ev), track = 0, flow;
	uint32_t beginner;
	bool flows;
	int err;

	if (!event_is_keyed(ev))
		return 0;
	p->x->counts.spans++;
	flows = ev->kind == EVENT_KEYED && exporter__beginner(p->x, ev, &beginner);
	err = perfetto__need_name(p, ev->span);
	if (!err)
		err = keyed_track(p, ev, end_ns, &track);
	if (!err && flows) {
		flow = p->salt + p->flows++;
		err = send_flow(p, ev, beginner, ev->start_ns, false, &flow);
	}
	if (!err)
		err = perfetto__begin(p, ev, track, flows ? &flow : NULL);
	if (!err)
		err = perfetto__end(p, end_ns, track);
	if (!err && flows)
		err = send_flow(p, ev, ev->thread, end_ns, true, &flow);
	return err;
}

int perfetto__keyed(struct perfetto *p)
{
	int err = perfetto__begin_sequence(p, SEQUENCE_KEYED, 0);

	return err ? err : exporter__each(p->x, on_keyed, p);
}

/* --- losses -------------------------------------------------------------------------------------- */

static int send_loss(struct perfetto *p, const struct trace_loss *loss, const char *name,
		     uint64_t track)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation notes[2] = {PERFETTO__DEBUG_ANNOTATION__INIT,
					      PERFETTO__DEBUG_ANNOTATION__INIT};
	Perfetto__DebugAnnotation *list[2] = {&notes[0], &notes[1]};
	uint64_t end_ns = loss->to_ns > loss->from_ns ? loss->to_ns : loss->from_ns;
	int err;

	notes[0].name = "lost";
	notes[0].has_uint_value = 1;
	notes[0].uint_value = loss->lost;
	notes[1].name = "left_out_on_purpose";
	notes[1].has_uint_value = 1;
	notes[1].uint_value = loss->skipped;
	te.n_debug_annotations = 2;
	te.debug_annotations = list;
	te.has_track_uuid = 1;
	te.track_uuid = track;
	if (loss->lost)
		err = asprintf(&te.name, "%s: %" PRIu64 " lost", name, loss->lost);
	else
		err = asprintf(&te.name, "%s: %" PRIu64 " left out", name, loss->skipped);
	if (err < 0)
		return exporter__no_memory(p->x);
	err = perfetto__event(p, loss->from_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, &te);
	free(te.name);
	return err ? err : perfetto__end(p, end_ns, track);
}

static int add_loss(struct perfetto *p, struct lanes *lanes, const struct trace_loss *loss,
		    const char *of)
{
	uint64_t end_ns = loss->to_ns > loss->from_ns ? loss->to_ns : loss->from_ns, track;
	uint32_t lane;
	bool fresh;
	char *name;
	int err = 0;

	if (lanes__take(lanes, loss->from_ns, end_ns, &lane, &fresh))
		return exporter__no_memory(p->x);
	track = perfetto__uuid(p, UUID_LOST, lane, 0);
	if (fresh)
		err = perfetto__named_track(p, track, 0, "not in this trace");
	if (err)
		return err;
	name = export__text(of);
	err = name ? send_loss(p, loss, name, track) : exporter__no_memory(p->x);
	free(name);
	return err;
}

int perfetto__losses(struct perfetto *p)
{
	struct lanes *lanes = lanes__new();
	struct trace_loss loss;
	const char *of;
	size_t at = 0;
	int err = 0;

	if (!lanes)
		return exporter__no_memory(p->x);
	while (!err && exporter__next_loss(p->x, &at, &loss, &of))
		err = add_loss(p, lanes, &loss, of);
	lanes__free(lanes);
	return err;
}

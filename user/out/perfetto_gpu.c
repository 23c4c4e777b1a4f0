// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * perfetto_gpu.c - what the GPU did: render stages, or plain tracks; never both.
 *
 * A render stage is one packet with begin and duration, so those that overlap in a stream need no care;
 * viewers show them by device and queue, and by process for their numeric arguments `device`,
 * `context` and `stream`. Plain tracks are brackets: what overlaps goes on one more track of the
 * stream's name. Levels are counters below the process' "GPU" in both.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/perfetto_impl.h"

/* Ids of stages; queues follow, by stream. */
enum { STAGE_KERNEL = 1, STAGE_COPY, STAGE_SET, STAGE_GRAPH, STAGE_QUEUES };
#define ARGS_MAX  8
#define EXTRA_MAX 4

struct gpu_out {
	struct perfetto *p;
	struct export_gpu *g;
	struct perfetto_calls *calls;
	bool *described; /* by device: its tracks */
	size_t ndescribed;
};

int perfetto__need_title(struct perfetto *p, struct export_gpu *g, uint32_t title, uint64_t *iid)
{
	struct gpu_title *t = &g->titles[title];
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__EventName name = PERFETTO__EVENT_NAME__INIT, *names = &name;
	Perfetto__InternedComputeKernel kernel = PERFETTO__INTERNED_COMPUTE_KERNEL__INIT;
	Perfetto__InternedComputeKernel *kernels = &kernel;
	char *symbol = NULL;
	int err;

	*iid = title + 1ull;
	if (t->sent)
		return 0;
	t->sent = 1;
	name.has_iid = 1;
	name.iid = *iid;
	name.name = (char *)export_gpu__fit(g, title, export__text);
	data.n_event_names = 1;
	data.event_names = &names;
	if (t->symbol) {
		symbol = export__text(t->symbol);
		kernel.has_iid = 1;
		kernel.iid = *iid;
		kernel.name = symbol;
		kernel.demangled_name = name.name;
		data.n_compute_kernels = 1;
		data.compute_kernels = &kernels;
	}
	packet.interned_data = &data;
	err = name.name && (symbol || !t->symbol) ? perfetto__send(p, &packet)
						  : exporter__no_memory(p->x);
	free(symbol);
	return err;
}

/* --- devices and streams ------------------------------------------------------------------------- */

static uint64_t process_ns(const struct perfetto *p)
{
	return exporter__zero_ns(p->x);
}

static uint64_t device_uuid(const struct gpu_out *o, uint32_t device)
{
	const struct gpu_row_device *d = &o->g->devices[device];

	return perfetto__uuid(o->p, UUID_DEVICE, d->tgid, d->number);
}

/* "GPU" below the process, and the device below that. */
static int need_device(struct gpu_out *o, uint32_t device)
{
	const struct gpu_row_device *d = &o->g->devices[device];
	uint64_t process, folder;
	bool *more;
	int err;

	if (device >= o->ndescribed) {
		more = reallocarray(o->described, device + 1, sizeof(*more));
		if (!more)
			return exporter__no_memory(o->p->x);
		memset(more + o->ndescribed, 0, device + 1 - o->ndescribed);
		o->described = more;
		o->ndescribed = device + 1;
	}
	if (o->described[device])
		return 0;
	o->described[device] = true;
	err = perfetto__need_process(o->p, d->tgid, process_ns(o->p), &process);
	folder = perfetto__uuid(o->p, UUID_GPU, process, 0);
	if (!err)
		err = perfetto__named_track(o->p, folder, process, "GPU");
	return err ? err : perfetto__named_track(o->p, device_uuid(o, device), folder, d->name);
}

/* The queue of a stream, and the context that it belongs to, which stands for the process. */
static int need_queue(struct gpu_out *o, uint32_t stream)
{
	struct gpu_row_stream *s = &o->g->streams[stream];
	const struct gpu_row_device *d = &o->g->devices[s->device];
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedGraphicsContext context = PERFETTO__INTERNED_GRAPHICS_CONTEXT__INIT;
	Perfetto__InternedGraphicsContext *contexts = &context;
	Perfetto__InternedGpuRenderStageSpecification queue =
	    PERFETTO__INTERNED_GPU_RENDER_STAGE_SPECIFICATION__INIT;
	Perfetto__InternedGpuRenderStageSpecification *queues = &queue;

	if (s->described)
		return 0;
	s->described = true;
	context.has_iid = 1;
	context.iid = stream + 1ull;
	context.has_pid = 1;
	context.pid = (int32_t)export__pid(d->tgid);
	context.has_api = 1;
	context.api = PERFETTO__INTERNED_GRAPHICS_CONTEXT__API__CUDA;
	queue.has_iid = 1;
	queue.iid = STAGE_QUEUES + (uint64_t)stream;
	queue.name = s->name;
	queue.description = d->name;
	data.n_graphics_contexts = 1;
	data.graphics_contexts = &contexts;
	data.n_gpu_specifications = 1;
	data.gpu_specifications = &queues;
	packet.interned_data = &data;
	return perfetto__send(o->p, &packet);
}

static int send_stages(struct gpu_out *o)
{
	static char *const names[] = {"kernel", "copy", "memset", "graph"};
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedGpuRenderStageSpecification specs[4], *list[4];

	for (int i = 0; i < 4; i++) {
		perfetto__interned_gpu_render_stage_specification__init(&specs[i]);
		specs[i].has_iid = 1;
		specs[i].iid = (uint64_t)(STAGE_KERNEL + i);
		specs[i].name = names[i];
		specs[i].has_category = 1;
		specs[i].category =
		    i == 0 || i == 3
			? PERFETTO__INTERNED_GPU_RENDER_STAGE_SPECIFICATION__RENDER_STAGE_CATEGORY__COMPUTE
			: PERFETTO__INTERNED_GPU_RENDER_STAGE_SPECIFICATION__RENDER_STAGE_CATEGORY__OTHER;
		list[i] = &specs[i];
	}
	data.n_gpu_specifications = 4;
	data.gpu_specifications = list;
	packet.interned_data = &data;
	return perfetto__send(o->p, &packet);
}

/* A device's place in it is its number in the events. */
static int send_info(struct gpu_out *o)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__GpuInfo info = PERFETTO__GPU_INFO__INIT;
	Perfetto__GpuInfo__Gpu *gpus, **list;
	char(*capability)[32];
	size_t n = o->g->ndevices;
	int err;

	if (!n)
		return 0;
	gpus = calloc(n, sizeof(*gpus));
	list = calloc(n, sizeof(*list));
	capability = calloc(n, sizeof(*capability));
	for (size_t i = 0; gpus && list && capability && i < n; i++) {
		const struct gpu_row_device *d = &o->g->devices[i];

		perfetto__gpu_info__gpu__init(&gpus[i]);
		snprintf(capability[i], sizeof(capability[i]), "sm_%" PRIu32 "%" PRIu32,
			 d->about.capability_major, d->about.capability_minor);
		gpus[i].name = d->name;
		gpus[i].vendor = "NVIDIA";
		gpus[i].architecture = d->about.capability_major ? capability[i] : NULL;
		list[i] = &gpus[i];
	}
	info.n_gpus = n;
	info.gpus = list;
	packet.gpu_info = &info;
	err = gpus && list && capability ? perfetto__send(o->p, &packet)
					 : exporter__no_memory(o->p->x);
	free(gpus);
	free(list);
	free(capability);
	return err;
}

/* --- render stages ------------------------------------------------------------------------------- */

struct stage {
	Perfetto__GpuRenderStageEvent ev;
	Perfetto__GpuRenderStageEvent__ComputeKernelLaunch launch;
	Perfetto__GpuRenderStageEvent__Dim3 grid, block;
	Perfetto__GpuRenderStageEvent__ExtraComputeArg args[ARGS_MAX], *arg_list[ARGS_MAX];
	Perfetto__GpuRenderStageEvent__ExtraData extra[EXTRA_MAX], *extra_list[EXTRA_MAX];
};

static void put_arg(struct stage *s, char *name, uint64_t value)
{
	Perfetto__GpuRenderStageEvent__ExtraComputeArg *a = &s->args[s->launch.n_args];

	perfetto__gpu_render_stage_event__extra_compute_arg__init(a);
	a->name = name;
	a->has_uint_value = 1;
	a->uint_value = value;
	s->arg_list[s->launch.n_args++] = a;
}

static void put_extra(struct stage *s, char *name, char *value)
{
	Perfetto__GpuRenderStageEvent__ExtraData *x = &s->extra[s->ev.n_extra_data];

	perfetto__gpu_render_stage_event__extra_data__init(x);
	x->name = name;
	x->value = value;
	s->extra_list[s->ev.n_extra_data++] = x;
}

static void set_dim(Perfetto__GpuRenderStageEvent__Dim3 *d, const uint32_t v[3])
{
	perfetto__gpu_render_stage_event__dim3__init(d);
	d->has_x = d->has_y = d->has_z = 1;
	d->x = v[0];
	d->y = v[1];
	d->z = v[2];
}

static void put_launch(struct stage *s, const struct gpu_out *o, const struct gpu_item *a)
{
	const struct qbpf_ring_kernel *k = (const void *)a->seen->rec;

	perfetto__gpu_render_stage_event__compute_kernel_launch__init(&s->launch);
	s->launch.args = s->arg_list;
	put_arg(s, "device", o->g->devices[a->device].number);
	put_arg(s, "context", a->context);
	put_arg(s, "stream", o->g->streams[a->stream].stream);
	put_arg(s, "correlation", a->correlation);
	if (gpu_item__kernel(a)) {
		set_dim(&s->grid, k->grid);
		set_dim(&s->block, k->block);
		s->launch.grid_size = &s->grid;
		s->launch.workgroup_size = &s->block;
		put_arg(s, "registers_per_thread", k->registers);
		put_arg(s, "shared_mem_static", k->static_shared);
		put_arg(s, "shared_mem_dynamic", k->dynamic_shared);
	} else if (a->seen->rec->type != QBPF_RING_GRAPH) {
		put_arg(s, "bytes", a->bytes);
	}
	s->ev.launch = &s->launch;
}

static uint64_t stage_of(const struct gpu_item *a)
{
	switch (a->seen->rec->type) {
	case QBPF_RING_KERNEL:
		return STAGE_KERNEL;
	case QBPF_RING_COPY:
		return STAGE_COPY;
	case QBPF_RING_SET:
		return STAGE_SET;
	default:
		return STAGE_GRAPH;
	}
}

static int send_stage(struct gpu_out *o, const struct gpu_item *a)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	struct stage s;
	int err = need_queue(o, a->stream);

	perfetto__gpu_render_stage_event__init(&s.ev);
	if (!err)
		err = perfetto__need_title(o->p, o->g, a->title, &s.ev.name_iid);
	if (err)
		return err;
	s.ev.extra_data = s.extra_list;
	s.ev.has_event_id = s.ev.has_context = s.ev.has_gpu_id = s.ev.has_hw_queue_iid = 1;
	s.ev.has_stage_iid = s.ev.has_name_iid = 1;
	s.ev.event_id = a->seen->id;
	s.ev.context = a->stream + 1ull;
	s.ev.gpu_id = (int32_t)a->device;
	s.ev.hw_queue_iid = STAGE_QUEUES + (uint64_t)a->stream;
	s.ev.stage_iid = stage_of(a);
	if (o->g->titles[a->title].symbol) {
		s.ev.has_kernel_iid = 1;
		s.ev.kernel_iid = s.ev.name_iid;
	}
	put_launch(&s, o, a);
	if (a->seen->untimed)
		put_extra(&s, "untimed",
			  "its recorded times cannot be: shown where it was asked for");
	else
		s.ev.has_duration = 1;
	s.ev.duration = a->end_ns - a->start_ns;
	if (!a->seen->has_call)
		put_extra(&s, "call", "not in the recording");
	packet.has_timestamp = 1;
	packet.timestamp = perfetto__time(a->start_ns);
	packet.gpu_render_stage_event = &s.ev;
	return perfetto__send(o->p, &packet);
}

/* --- plain tracks -------------------------------------------------------------------------------- */

/* A track of the stream on which nothing overlaps it. */
static int stream_track(struct gpu_out *o, const struct gpu_item *a, uint64_t *track)
{
	struct gpu_row_stream *s = &o->g->streams[a->stream];
	uint32_t lane;
	bool fresh;
	int err = need_device(o, a->device);

	if (err)
		return err;
	if (!s->lanes)
		s->lanes = lanes__new();
	if (!s->lanes || lanes__take(s->lanes, a->start_ns, a->end_ns, &lane, &fresh))
		return exporter__no_memory(o->p->x);
	*track = perfetto__uuid(o->p, UUID_STREAM, device_uuid(o, a->device) + a->stream, lane);
	return fresh ? perfetto__named_track(o->p, *track, device_uuid(o, a->device), s->name) : 0;
}

static void put_note(Perfetto__TrackEvent *te, Perfetto__DebugAnnotation *notes, char *name,
		     uint64_t value)
{
	Perfetto__DebugAnnotation *n = &notes[te->n_debug_annotations];

	perfetto__debug_annotation__init(n);
	n->name = name;
	n->has_uint_value = 1;
	n->uint_value = value;
	te->debug_annotations[te->n_debug_annotations++] = n;
}

static void put_text(Perfetto__TrackEvent *te, Perfetto__DebugAnnotation *notes, char *name,
		     char *value)
{
	put_note(te, notes, name, 0);
	notes[te->n_debug_annotations - 1].has_uint_value = 0;
	notes[te->n_debug_annotations - 1].string_value = value;
}

static int send_slice(struct gpu_out *o, const struct gpu_item *a)
{
	const struct qbpf_ring_kernel *k = (const void *)a->seen->rec;
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;
	Perfetto__DebugAnnotation notes[8], *list[8];
	uint64_t flow = a->seen->id + o->p->salt;
	char grid[48], block[48];
	int err = stream_track(o, a, &te.track_uuid);

	if (!err)
		err = perfetto__need_title(o->p, o->g, a->title, &te.name_iid);
	if (err)
		return err;
	te.has_track_uuid = te.has_name_iid = 1;
	te.debug_annotations = list;
	put_text(&te, notes, "kind", (char *)export_gpu__kind(a));
	put_note(&te, notes, "correlation", a->correlation);
	if (gpu_item__kernel(a)) {
		snprintf(grid, sizeof(grid), "%u x %u x %u", k->grid[0], k->grid[1], k->grid[2]);
		snprintf(block, sizeof(block), "%u x %u x %u", k->block[0], k->block[1],
			 k->block[2]);
		put_text(&te, notes, "grid", grid);
		put_text(&te, notes, "block", block);
	} else if (a->seen->rec->type != QBPF_RING_GRAPH) {
		put_note(&te, notes, "bytes", a->bytes);
	}
	if (a->seen->untimed)
		put_text(&te, notes, "untimed",
			 "its recorded times cannot be: shown where it was asked for");
	if (a->seen->has_call) {
		te.n_terminating_flow_ids = 1;
		te.terminating_flow_ids = &flow;
	} else {
		put_text(&te, notes, "call", "not in the recording");
	}
	if (a->seen->untimed)
		return perfetto__event(o->p, a->start_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT,
				       &te);
	err =
	    perfetto__event(o->p, a->start_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, &te);
	return err ? err : perfetto__end(o->p, a->end_ns, te.track_uuid);
}

/* --- levels -------------------------------------------------------------------------------------- */

static int send_counter(struct gpu_out *o, uint64_t track, uint64_t at_ns, bool real, double share,
			uint64_t n)
{
	Perfetto__TrackEvent te = PERFETTO__TRACK_EVENT__INIT;

	te.has_track_uuid = 1;
	te.track_uuid = track;
	te.has_double_counter_value = real;
	te.double_counter_value = share;
	te.has_counter_value = !real;
	te.counter_value = (int64_t)n;
	return perfetto__event(o->p, at_ns, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER, &te);
}

static int counter_track(struct gpu_out *o, uint32_t device, uint64_t uuid, const char *of,
			 const char *what, char *unit)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	int err = need_device(o, device);

	if (err)
		return err;
	if (asprintf(&track.name, "%s: %s", of, what) < 0)
		return exporter__no_memory(o->p->x);
	counter.unit_name = unit;
	track.uuid = uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = device_uuid(o, device);
	track.counter = &counter;
	err = perfetto__track(o->p, 0, &track);
	free(track.name);
	return err;
}

static int on_queue(void *ctx, uint32_t stream, uint64_t at_ns, uint64_t n)
{
	struct gpu_out *o = ctx;
	struct gpu_row_stream *s = &o->g->streams[stream];
	uint64_t uuid = perfetto__uuid(o->p, UUID_QUEUE, device_uuid(o, s->device), stream);
	int err = 0;

	if (!s->counted)
		err = counter_track(o, s->device, uuid, s->name, "asked for and not done",
				    "activities");
	s->counted = true;
	return err ? err : send_counter(o, uuid, at_ns, false, 0, n);
}

static int on_busy(void *ctx, uint32_t device, uint64_t at_ns, double share)
{
	struct gpu_out *o = ctx;
	struct gpu_row_device *d = &o->g->devices[device];
	uint64_t uuid = perfetto__uuid(o->p, UUID_BUSY, device_uuid(o, device), 0);
	int err = 0;

	if (!d->counted)
		err = counter_track(o, device, uuid, d->name, "busy", "%");
	d->counted = true;
	return err ? err : send_counter(o, uuid, at_ns, true, 100 * share, 0);
}

/* --- all of it ----------------------------------------------------------------------------------- */

static int on_activity(void *ctx, const struct gpu_item *a)
{
	struct gpu_out *o = ctx;

	return o->p->x->o->gpu_tracks ? send_slice(o, a) : send_stage(o, a);
}

static int on_call(void *ctx, const struct gpu_item_call *c)
{
	return perfetto_calls__add(((struct gpu_out *)ctx)->calls, c);
}

static int send_all(struct gpu_out *o)
{
	const struct gpu_sink sink = {o, on_activity, on_call, on_queue, on_busy};
	int err = perfetto__begin_sequence(o->p, SEQUENCE_GPU, 0);

	if (!err && !o->p->x->o->gpu_tracks) {
		err = send_info(o);
		if (!err)
			err = send_stages(o);
	}
	if (!err)
		err = export_gpu__walk(o->g, &sink);
	return err ? err : perfetto_calls__end(o->calls);
}

int perfetto__gpu(struct perfetto *p)
{
	struct gpu_out o = {.p = p};
	int err = export_gpu__new(p->x, &o.g);

	if (err || !o.g)
		return err;
	o.calls = perfetto_calls__new(p, o.g);
	err = o.calls ? send_all(&o) : exporter__no_memory(p->x);
	perfetto_calls__free(o.calls);
	export_gpu__free(o.g);
	free(o.described);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu.c - what comes into the model of the GPU, and how much of it may wait. */
#include "model/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

#define WAITING_BYTES (192ull << 20)
#define POOL_BYTES    (32ull << 20)
#define HALVINGS      8

int gpu_grow(void *array, size_t n, size_t *cap, size_t size)
{
	void **p = array, *q;
	size_t more;

	if (n < *cap)
		return 0;
	more = *cap ? 2 * *cap : 64;
	q = realloc(*p, more * size);
	if (!q)
		return -ENOMEM;
	*p = q;
	*cap = more;
	return 0;
}

struct gpu *gpu__new(const struct gpu_opts *o)
{
	struct gpu *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->opts = *o;
	g->probes_to_ns = GPU_UNKNOWN;
	if (!g->opts.max_bytes)
		g->opts.max_bytes = WAITING_BYTES;
	g->pool = dist_pool__new(o->pool_bytes ? o->pool_bytes : POOL_BYTES);
	if (!g->pool) {
		free(g);
		return NULL;
	}
	return g;
}

static void free_sums(struct gpu *g)
{
	for (size_t i = 0; i < g->nkernels; i++) {
		dist__free(g->kernels[i].time);
		dist__free(g->kernels[i].delay);
		dist__free(g->kernels[i].call);
	}
	for (size_t i = 0; i < GPU_COPY_ROWS; i++) {
		dist__free(g->copies[i].time);
		dist__free(g->copies[i].delay);
		dist__free(g->copies[i].call);
	}
	for (size_t i = 0; i < g->napis; i++)
		dist__free(g->apis[i].time);
	for (size_t i = 0; i < g->nstreams; i++)
		dist__free(g->streams[i].delay);
	for (size_t i = 0; i < g->nspans; i++)
		dist__free(g->spans[i].delay);
	for (size_t i = 0; i < g->ndevices; i++)
		free(g->devices[i].idle);
	free(g->kernels);
	free(g->apis);
	free(g->devices);
	free(g->streams);
	free(g->spans);
	free(g->known);
	free(g->nulls);
	id_map__clear(&g->graph_at);
	id_map__clear(&g->device_at);
	id_map__clear(&g->stream_at);
	id_map__clear(&g->first_at);
	id_map__clear(&g->caller_at);
	free(g->caller_ns);
}

void gpu__free(struct gpu *g)
{
	if (!g)
		return;
	free_sums(g);
	for (uint32_t i = 1; i <= g->nnames; i++)
		free(g->names[i].text);
	for (uint32_t i = 1; i <= g->nspan_names; i++)
		free(g->span_names[i]);
	for (size_t i = 0; i < g->nacts; i++)
		free(g->acts[i].rec);
	for (uint32_t i = 0; i < g->nrings; i++) {
		free(g->rings[i].points);
		free(g->rings[i].starts);
	}
	gpu_process__clear(g);
	id_map__clear(&g->name_at);
	id_map__clear(&g->agent_at);
	free(g->agents);
	free(g->agent_next);
	free(g->names);
	free(g->span_names);
	free(g->threads);
	free(g->rings);
	free(g->acts);
	free(g->calls);
	free(g->waits);
	free(g->hosts);
	dist_pool__free(g->pool);
	free(g);
}

/* --- names -------------------------------------------------------------------------------------- */

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3ull;
	return h;
}

int gpu__name(struct gpu *g, uint32_t id, const char *text)
{
	uint64_t hash = hash_text(text);
	size_t cap = g->names_cap;
	struct gpu_name *n;
	uint32_t same;
	int err;

	if (id > GPU_NAMES_MAX) { /* what leads to it has no name */
		g->overflow++;
		return 0;
	}
	if (id != g->nnames + 1)
		return -EINVAL;
	err = gpu_grow(&g->names, id, &cap, sizeof(*g->names));
	if (err)
		return err;
	g->names_cap = (uint32_t)cap;
	n = &g->names[id];
	memset(n, 0, sizeof(*n));
	n->text = strdup(text);
	if (!n->text)
		return -ENOMEM;
	g->nnames = id;
	n->same = id;
	same = id_map__get(&g->name_at, hash);
	if (same == ID_MAP_NONE)
		return id_map__put(&g->name_at, hash, id);
	if (!strcmp(g->names[same].text, text))
		n->same = same;
	return 0;
}

int gpu__span_name(struct gpu *g, uint32_t id, const char *text)
{
	size_t cap = g->span_names_cap;
	int err;

	if (id != g->nspan_names + 1)
		return -EINVAL;
	err = gpu_grow(&g->span_names, id, &cap, sizeof(*g->span_names));
	if (err)
		return err;
	g->span_names_cap = (uint32_t)cap;
	g->span_names[id] = strdup(text);
	if (!g->span_names[id])
		return -ENOMEM;
	g->nspan_names = id;
	return 0;
}

int gpu__thread(struct gpu *g, uint32_t index, uint32_t tgid, uint32_t tid)
{
	size_t cap = g->threads_cap;
	int err;

	if (index < g->nthreads) {
		g->threads[index] = gpu_thread_key(tgid, tid);
		return 0;
	}
	if (index != g->nthreads)
		return -EINVAL;
	err = gpu_grow(&g->threads, index, &cap, sizeof(*g->threads));
	if (err)
		return err;
	g->threads_cap = (uint32_t)cap;
	g->threads[g->nthreads++] = gpu_thread_key(tgid, tid);
	return 0;
}

/* --- room --------------------------------------------------------------------------------------- */

static size_t waiting_bytes(const struct gpu *g)
{
	/* Joining needs about as much again in indices. */
	size_t act =
	    sizeof(struct gpu_act) + 12 + (g->opts.visitor ? sizeof(struct qbpf_ring_kernel) : 0);

	return g->nacts * act + g->ncalls * (sizeof(struct gpu_api) + 4) +
	       g->nwaits * sizeof(struct gpu_wait) +
	       g->nhosts * (sizeof(struct gpu_host) + 4 + 2 * sizeof(struct gpu_segment));
}

/* Settles the older half in time; when that is not enough, half of what is left of it. */
static int make_room(struct gpu *g)
{
	int err = 0;

	gpu_clock__convert(g);
	for (int i = 0; !err && i < HALVINGS && waiting_bytes(g) > g->opts.max_bytes / 4 * 3; i++) {
		uint64_t from = g->settled_ns, to = g->newest_ns;

		if (!from)
			for (size_t k = 0; k < g->nacts + g->ncalls; k++) {
				uint64_t ns = k < g->nacts ? g->acts[k].end_ns
							   : g->calls[k - g->nacts].end_ns;

				if (ns && (!from || ns < from))
					from = ns;
			}
		err = gpu_join__settle(g, from < to ? from + (to - from + 1) / 2 : to);
	}
	/* Times that are no times, or launches that never run. */
	if (!err && waiting_bytes(g) > g->opts.max_bytes / 4 * 3)
		err = gpu__finish(g);
	return err;
}

static int check_room(struct gpu *g)
{
	return waiting_bytes(g) > g->opts.max_bytes ? make_room(g) : 0;
}

static struct gpu_ring *ring_of(struct gpu *g, uint32_t ring)
{
	if (ring >= g->nrings) {
		struct gpu_ring *p = realloc(g->rings, (ring + 1) * sizeof(*p));

		if (!p)
			return NULL;
		memset(p + g->nrings, 0, (ring + 1 - g->nrings) * sizeof(*p));
		g->rings = p;
		g->nrings = ring + 1;
	}
	return &g->rings[ring];
}

/* --- records ------------------------------------------------------------------------------------ */

static uint32_t known_name(const struct gpu *g, uint32_t id)
{
	return id <= g->nnames && id ? g->names[id].same : 0;
}

static int add_act(struct gpu *g, const void *rec, struct gpu_act a)
{
	size_t size = ((const struct qbpf_ring_record *)rec)->size;

	a.call = GPU_NONE;
	g->activities++;
	if (gpu_grow(&g->acts, g->nacts, &g->acts_cap, sizeof(*g->acts)))
		return -ENOMEM;
	if (g->opts.visitor) {
		a.rec = malloc(size);
		if (!a.rec)
			return -ENOMEM;
		memcpy(a.rec, rec, size);
	}
	g->acts[g->nacts++] = a;
	return 0;
}

static void note_shape(struct gpu_kernel_row *row, const struct qbpf_ring_kernel *k)
{
	unsigned __int128 now = 1, then = 1;
	int order = 0;

	if (k->registers > row->registers)
		row->registers = k->registers;
	if (k->static_shared + k->dynamic_shared > row->shared)
		row->shared = k->static_shared + k->dynamic_shared;
	for (int i = 0; i < 3; i++) {
		now *= (unsigned __int128)k->grid[i] * k->block[i];
		then *= (unsigned __int128)row->grid[i] * row->block[i];
	}
	for (int i = 2; i >= 0 && row->has_grid; i--) {
		if (!order && k->grid[i] != row->grid[i])
			order = k->grid[i] > row->grid[i] ? 1 : -1;
		if (!order && k->block[i] != row->block[i])
			order = k->block[i] > row->block[i] ? 1 : -1;
	}
	row->varies |= order != 0;
	if (row->has_grid && (now < then || (now == then && order <= 0)))
		return;
	row->has_grid = true;
	memcpy(row->grid, k->grid, sizeof(row->grid));
	memcpy(row->block, k->block, sizeof(row->block));
}

static int kernel(struct gpu *g, uint32_t ring, const struct qbpf_ring_kernel *k)
{
	uint32_t row = gpu_row__kernel(g, known_name(g, k->name));

	if (row != GPU_NONE)
		note_shape(&g->kernels[row], k);
	return add_act(g, k,
		       (struct gpu_act){.start_ns = k->start_ns,
					.end_ns = k->end_ns,
					.correlation = k->correlation,
					.device = k->device,
					.context = k->context,
					.stream = k->stream,
					.row = row,
					.ring = (uint16_t)ring,
					.type = QBPF_RING_KERNEL});
}

static int graph(struct gpu *g, uint32_t ring, const struct qbpf_ring_graph *r)
{
	return add_act(g, r,
		       (struct gpu_act){.start_ns = r->start_ns,
					.end_ns = r->end_ns,
					.correlation = r->correlation,
					.device = r->device,
					.context = r->context,
					.stream = r->stream,
					.row = gpu_row__graph(g, r->graph),
					.ring = (uint16_t)ring,
					.type = QBPF_RING_GRAPH});
}

/* CUpti_ActivityMemcpyKind: 3 .. 7 are those with arrays. */
enum gpu_direction gpu_direction_of(uint8_t kind)
{
	static const uint8_t directions[] = {
	    GPU_OTHER,	   GPU_TO_DEVICE, GPU_TO_HOST,	 GPU_TO_DEVICE, GPU_TO_HOST, GPU_ON_DEVICE,
	    GPU_ON_DEVICE, GPU_ON_DEVICE, GPU_ON_DEVICE, GPU_ON_HOST,	GPU_BETWEEN};

	return kind < sizeof(directions) ? directions[kind] : GPU_OTHER;
}

#define PAGEABLE 1 /* CUpti_ActivityMemoryKind */

static int copy(struct gpu *g, uint32_t ring, const struct qbpf_ring_copy *c)
{
	/* Copies of a graph's nodes are as asynchronous as the graph is. */
	bool synchronous = !(c->flags & 1) && !c->graph_node;
	bool pageable = c->src_kind == PAGEABLE || c->dst_kind == PAGEABLE;

	return add_act(
	    g, c,
	    (struct gpu_act){.start_ns = c->start_ns,
			     .end_ns = c->end_ns,
			     .bytes = c->bytes,
			     .correlation = c->correlation,
			     .device = c->device,
			     .context = c->context,
			     .stream = c->stream,
			     .row = gpu_direction_of(c->kind) * 4u + pageable * 2u + synchronous,
			     .ring = (uint16_t)ring,
			     .type = QBPF_RING_COPY,
			     .synchronous = synchronous});
}

static int set(struct gpu *g, uint32_t ring, const struct qbpf_ring_set *s)
{
	return add_act(g, s,
		       (struct gpu_act){.start_ns = s->start_ns,
					.end_ns = s->end_ns,
					.bytes = s->bytes,
					.correlation = s->correlation,
					.device = s->device,
					.context = s->context,
					.stream = s->stream,
					.row = GPU_MEMSET * 4u,
					.ring = (uint16_t)ring,
					.type = QBPF_RING_SET});
}

static int call(struct gpu *g, uint32_t ring, const struct qbpf_ring_call *c)
{
	uint32_t id = known_name(g, c->name);
	struct gpu_api a = {.start_ns = c->start_ns,
			    .end_ns = c->end_ns,
			    .tgid = c->tgid,
			    .tid = c->tid,
			    .correlation = c->correlation,
			    .name = id,
			    .error = c->error,
			    .outer = GPU_NONE,
			    .ring = (uint16_t)ring,
			    .class = GPU_CALL_OTHER,
			    .domain = (uint8_t)c->domain};

	if (id) {
		gpu_name__classify(&g->names[id]);
		a.class = g->names[id].class;
		a.waits = g->names[id].waits;
	}
	if (gpu_grow(&g->calls, g->ncalls, &g->calls_cap, sizeof(*g->calls)))
		return -ENOMEM;
	g->calls[g->ncalls++] = a;
	return 0;
}

static int wait(struct gpu *g, uint32_t ring, const struct qbpf_ring_sync *s)
{
	if (gpu_grow(&g->waits, g->nwaits, &g->waits_cap, sizeof(*g->waits)))
		return -ENOMEM;
	g->waits[g->nwaits++] = (struct gpu_wait){.start_ns = s->start_ns,
						  .end_ns = s->end_ns,
						  .correlation = s->correlation,
						  .context = s->context,
						  .stream = s->stream,
						  .kind = s->kind,
						  .call = GPU_NONE,
						  .ring = (uint16_t)ring};
	return 0;
}

static int device(struct gpu *g, uint32_t ring, const struct qbpf_ring_device *d)
{
	uint32_t row = gpu_row__device(g, ring, d->device);

	if (row == GPU_NONE)
		return 0;
	g->devices[row].about = *d;
	g->devices[row].about.name = known_name(g, d->name);
	return 0;
}

/* Of contexts only the null stream's id matters; of streams their priority. */
static int stream(struct gpu *g, uint32_t ring, uint32_t context, uint32_t id, uint32_t priority,
		  bool null)
{
	struct gpu_known_stream **p = null ? &g->nulls : &g->known;
	size_t *n = null ? &g->nnulls : &g->nknown, *cap = null ? &g->nulls_cap : &g->known_cap;

	for (size_t i = 0; i < *n; i++)
		if ((*p)[i].ring == ring && (*p)[i].context == context && (*p)[i].stream == id) {
			(*p)[i].priority = priority;
			return 0;
		}
	if (*n >= GPU_DEVICES_MAX) {
		g->overflow++;
		return 0;
	}
	if (gpu_grow(p, *n, cap, sizeof(**p)))
		return -ENOMEM;
	(*p)[(*n)++] = (struct gpu_known_stream){ring, context, id, priority};
	return 0;
}

static int clock_point(struct gpu *g, struct gpu_ring *r, const struct qbpf_ring_clock_point *c)
{
	if (r->npoints >= GPU_POINTS_MAX) {
		g->overflow++;
		return 0;
	}
	if (gpu_grow(&r->points, r->npoints, &r->points_cap, sizeof(*r->points)))
		return -ENOMEM;
	r->points[r->npoints++] = (struct gpu_point){c->cupti_ns, c->monotonic_ns, c->error_ns};
	r->sorted = false;
	return 0;
}

static int start(struct gpu *g, struct gpu_ring *r, const struct qbpf_ring_start *s)
{
	size_t at = r->nstarts;

	gpu_process__note(r, s->tgid);
	if (at >= GPU_STARTS_MAX) {
		g->overflow++;
		return 0;
	}
	if (gpu_grow(&r->starts, r->nstarts, &r->starts_cap, sizeof(*r->starts)))
		return -ENOMEM;
	for (; at && r->starts[at - 1].monotonic_ns > s->monotonic_ns; at--)
		r->starts[at] = r->starts[at - 1];
	r->starts[at] = (struct gpu_start){s->monotonic_ns, s->clock};
	r->nstarts++;
	return 0;
}

static void heard_from_host(struct gpu *g, uint64_t ns)
{
	if (ns > g->host_ns)
		g->host_ns = ns;
	if (ns > g->newest_ns)
		g->newest_ns = ns;
}

static int take(struct gpu *g, uint32_t ring, const struct qbpf_ring_record *rec)
{
	const void *r = rec;
	struct gpu_ring *of = ring_of(g, ring);

	if (!of)
		return -ENOMEM;
	switch (rec->type) {
	case QBPF_RING_KERNEL:
		return kernel(g, ring, r);
	case QBPF_RING_COPY:
		return copy(g, ring, r);
	case QBPF_RING_SET:
		return set(g, ring, r);
	case QBPF_RING_GRAPH:
		return graph(g, ring, r);
	case QBPF_RING_CALL:
		return call(g, ring, r);
	case QBPF_RING_SYNC:
		return wait(g, ring, r);
	case QBPF_RING_DEVICE:
		return device(g, ring, r);
	case QBPF_RING_CONTEXT: {
		const struct qbpf_ring_context *c = r;

		return stream(g, ring, c->context, c->null_stream, 0, true);
	}
	case QBPF_RING_STREAM: {
		const struct qbpf_ring_stream *s = r;

		return stream(g, ring, s->context, s->stream, s->priority, false);
	}
	case QBPF_RING_CLOCK:
		heard_from_host(g, ((const struct qbpf_ring_clock_point *)r)->monotonic_ns);
		return clock_point(g, of, r);
	case QBPF_RING_START:
		heard_from_host(g, ((const struct qbpf_ring_start *)r)->monotonic_ns);
		return start(g, of, r);
	case QBPF_RING_WINDOW:
		return gpu_cover__window(g, ring, r);
	case QBPF_RING_DROPPED:
		g->dropped += ((const struct qbpf_ring_dropped *)r)->count;
		return 0;
	case QBPF_RING_OVERHEAD: {
		const struct qbpf_ring_overhead *o = r;

		g->overheads++;
		if (o->end_ns > o->start_ns && o->start_ns)
			g->overhead_ns += o->end_ns - o->start_ns;
		return 0;
	}
	default:
		g->unknown_records++;
		return 0;
	}
}

int gpu__record(struct gpu *g, uint32_t ring, const struct qbpf_ring_record *rec)
{
	int err;

	g->records++;
	if (ring >= GPU_RINGS_MAX) {
		g->overflow++;
		return 0;
	}
	err = take(g, ring, rec);
	return err ? err : check_room(g);
}

int gpu__span(struct gpu *g, const struct event *ev)
{
	if (ev->kind != EVENT_SPAN || ev->thread >= g->nthreads || ev->end_ns < ev->start_ns ||
	    !ev->span || ev->span > g->nspan_names)
		return 0;
	if (gpu_grow(&g->hosts, g->nhosts, &g->hosts_cap, sizeof(*g->hosts)))
		return -ENOMEM;
	heard_from_host(g, ev->end_ns);
	g->hosts[g->nhosts++] = (struct gpu_host){.start_ns = ev->start_ns,
						  .end_ns = ev->end_ns,
						  .key = g->threads[ev->thread],
						  .span = ev->span,
						  .depth = ev->depth,
						  .cut = ev->start_ns < g->settled_ns};
	return check_room(g);
}

bool gpu__empty(const struct gpu *g)
{
	return !g->records;
}

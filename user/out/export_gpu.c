// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* export_gpu.c - the GPU's part of a trace, joined by the model, with names, rows and levels. */
#include "out/export_gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"
#include "model/id_map.h"

#define WAITING_BYTES (32u << 20) /* of what the model joins */
#define WINDOWS	      1000
#define WINDOW_MIN_NS 100000

struct start {
	uint32_t ring, tgid;
	uint64_t ns;
};

struct export_gpu_priv {
	struct start *starts; /* by ring and time */
	struct id_map title_at, device_at, stream_at;
	struct {
		uint32_t tgid, context, stream;
	} * nulls;
	size_t nstarts, starts_cap, nnulls, nulls_cap;
	size_t titles_cap, devices_cap, streams_cap;
	struct level *queues, *busy; /* by stream, by device */
	size_t queues_cap, busy_cap;
	const struct gpu_sink *sink;
	size_t telling; /* whose level is told */
};

static int grow(void *array, size_t n, size_t *cap, size_t size)
{
	void **p = array, *q;
	size_t more = *cap ? 2 * *cap : 16;

	if (n < *cap)
		return 0;
	q = reallocarray(*p, more, size);
	if (!q)
		return -ENOMEM;
	memset((char *)q + *cap * size, 0, (more - *cap) * size);
	*p = q;
	*cap = more;
	return 0;
}

/* --- what processes, devices and streams there are ----------------------------------------------- */

static int by_ring(const void *pa, const void *pb)
{
	const struct start *a = pa, *b = pb;

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* The process that had this ring at that time; without a word of it, the trace's first. */
static uint32_t tgid_of(const struct export_gpu *g, uint32_t ring, uint32_t generation)
{
	const struct export_gpu_priv *p = g->priv;
	const struct trace_info *info = g->x->info;

	for (size_t i = 0; i < p->nstarts; i++) {
		if (p->starts[i].ring != ring)
			continue;
		while (generation > 1 && i + 1 < p->nstarts && p->starts[i + 1].ring == ring) {
			generation--;
			i++;
		}
		return p->starts[i].tgid;
	}
	return info->nprocesses ? info->processes[0].tgid : 0;
}

/* *about: what a record says of it; NULL: none came. */
static int name_device(struct export_gpu *g, struct gpu_row_device *d,
		       const struct qbpf_ring_device *about)
{
	const char *name = about ? trace_info__gpu_name(g->x->info, about->name) : NULL;
	char *fit = export__text(name ? name : "");
	int n = -1;

	free(d->name);
	d->name = NULL;
	if (about)
		d->about = *about;
	if (fit)
		n = *fit ? asprintf(&d->name, "GPU %u (%s)", d->number, fit)
			 : asprintf(&d->name, "GPU %u", d->number);
	free(fit);
	return n < 0 ? -ENOMEM : 0;
}

/* Its index, new when it is the first of it. */
static int device_of(struct export_gpu *g, uint32_t tgid, uint32_t number, uint32_t *out)
{
	struct export_gpu_priv *p = g->priv;
	uint64_t key = (uint64_t)tgid << 32 | number;
	uint32_t at = id_map__get(&p->device_at, key);
	struct gpu_row_device *d;

	*out = at;
	if (at != ID_MAP_NONE)
		return 0;
	if (grow(&g->devices, g->ndevices, &p->devices_cap, sizeof(*g->devices)) ||
	    grow(&p->busy, g->ndevices, &p->busy_cap, sizeof(*p->busy)) ||
	    id_map__put(&p->device_at, key, (uint32_t)g->ndevices))
		return -ENOMEM;
	*out = (uint32_t)g->ndevices;
	d = &g->devices[g->ndevices++];
	d->tgid = tgid;
	d->number = number;
	return name_device(g, d, NULL);
}

static bool is_null(const struct export_gpu *g, uint32_t tgid, uint32_t context, uint32_t stream)
{
	for (size_t i = 0; i < g->priv->nnulls; i++)
		if (g->priv->nulls[i].tgid == tgid && g->priv->nulls[i].context == context &&
		    g->priv->nulls[i].stream == stream)
			return true;
	return false;
}

static int name_stream(struct export_gpu *g, struct gpu_row_stream *s)
{
	const char *role =
	    is_null(g, g->devices[s->device].tgid, s->context, s->stream) ? " (default)" : "";
	bool another = false;
	int n;

	for (size_t i = 0; i < g->nstreams; i++)
		another |= g->streams[i].device == s->device && g->streams[i].context != s->context;
	n = another ? asprintf(&s->name, "stream %u of context %u%s", s->stream, s->context, role)
		    : asprintf(&s->name, "stream %u%s", s->stream, role);
	if (n < 0)
		s->name = NULL;
	return n < 0 ? -ENOMEM : 0;
}

static int stream_of(struct export_gpu *g, uint32_t device, uint32_t context, uint32_t stream,
		     uint32_t *out)
{
	struct export_gpu_priv *p = g->priv;
	uint64_t key = ((uint64_t)context << 32 | stream) * 0x9e3779b97f4a7c15u + device;
	struct gpu_row_stream *s;

	/* Different ones may have one key: the next is as good. */
	while ((*out = id_map__get(&p->stream_at, key)) != ID_MAP_NONE) {
		s = &g->streams[*out];
		if (s->device == device && s->context == context && s->stream == stream)
			return 0;
		key++;
	}
	if (grow(&g->streams, g->nstreams, &p->streams_cap, sizeof(*g->streams)) ||
	    grow(&p->queues, g->nstreams, &p->queues_cap, sizeof(*p->queues)) ||
	    id_map__put(&p->stream_at, key, (uint32_t)g->nstreams))
		return -ENOMEM;
	*out = (uint32_t)g->nstreams;
	s = &g->streams[g->nstreams++];
	s->device = device;
	s->context = context;
	s->stream = stream;
	return name_stream(g, s);
}

/* The fields that all kinds of activities have, at different places. */
static uint32_t look_at(const struct qbpf_ring_record *rec, struct gpu_item *a, uint32_t *stream,
			uint32_t *id)
{
	const void *r = rec;

#define COMMON(p)                                                                                  \
	do {                                                                                       \
		a->context = (p)->context;                                                         \
		a->correlation = (p)->correlation;                                                 \
		*stream = (p)->stream;                                                             \
	} while (0)
	if (rec->type == QBPF_RING_KERNEL) {
		const struct qbpf_ring_kernel *k = r;

		COMMON(k);
		*id = k->name;
		return k->device;
	}
	if (rec->type == QBPF_RING_COPY) {
		const struct qbpf_ring_copy *c = r;

		COMMON(c);
		*id = gpu_direction_of(c->kind);
		a->bytes = c->bytes;
		return c->device;
	}
	if (rec->type == QBPF_RING_SET) {
		const struct qbpf_ring_set *s = r;

		COMMON(s);
		*id = 0;
		a->bytes = s->bytes;
		return s->device;
	}
	const struct qbpf_ring_graph *graph = r;

	COMMON(graph);
	*id = graph->graph;
	return graph->device;
#undef COMMON
}

/* --- before all: who is there -------------------------------------------------------------------- */

static int note_start(struct export_gpu_priv *p, uint32_t ring, const struct qbpf_ring_start *s)
{
	if (grow(&p->starts, p->nstarts, &p->starts_cap, sizeof(*p->starts)))
		return -ENOMEM;
	p->starts[p->nstarts++] = (struct start){ring, s->tgid, s->monotonic_ns};
	return 0;
}

/* The process that writes into a ring at this place of the file. */
static uint32_t writer_of(const struct export_gpu *g, uint32_t ring)
{
	const struct export_gpu_priv *p = g->priv;

	for (size_t i = p->nstarts; i > 0; i--)
		if (p->starts[i - 1].ring == ring)
			return p->starts[i - 1].tgid;
	return tgid_of(g, ring, 1);
}

static int note_context(struct export_gpu *g, uint32_t tgid, const struct qbpf_ring_context *c)
{
	struct export_gpu_priv *p = g->priv;

	if (is_null(g, tgid, c->context, c->null_stream))
		return 0;
	if (grow(&p->nulls, p->nnulls, &p->nulls_cap, sizeof(*p->nulls)))
		return -ENOMEM;
	p->nulls[p->nnulls].tgid = tgid;
	p->nulls[p->nnulls].context = c->context;
	p->nulls[p->nnulls++].stream = c->null_stream;
	return 0;
}

static int note(struct export_gpu *g, uint32_t ring, const struct qbpf_ring_record *rec)
{
	const void *r = rec;
	const struct qbpf_ring_device *d = r;
	uint32_t at, stream, id;
	struct gpu_item a;
	int err;

	switch (rec->type) {
	case QBPF_RING_START:
		return note_start(g->priv, ring, r);
	case QBPF_RING_CONTEXT:
		return note_context(g, writer_of(g, ring), r);
	case QBPF_RING_DEVICE:
		err = device_of(g, writer_of(g, ring), d->device, &at);
		return err ? err : name_device(g, &g->devices[at], d);
	case QBPF_RING_KERNEL:
	case QBPF_RING_COPY:
	case QBPF_RING_SET:
	case QBPF_RING_GRAPH:
		return device_of(g, writer_of(g, ring), look_at(rec, &a, &stream, &id), &at);
	default:
		return 0;
	}
}

static int by_process(const void *pa, const void *pb)
{
	const struct gpu_row_device *a = pa, *b = pb;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int sort_devices(struct export_gpu *g)
{
	int err = 0;

	if (!g->ndevices)
		return 0;
	qsort(g->devices, g->ndevices, sizeof(*g->devices), by_process);
	id_map__clear(&g->priv->device_at);
	for (size_t i = 0; i < g->ndevices && !err; i++)
		err = id_map__put(&g->priv->device_at,
				  (uint64_t)g->devices[i].tgid << 32 | g->devices[i].number,
				  (uint32_t)i);
	return err;
}

static int look_around(struct export_gpu *g)
{
	struct trace_reader *r = g->x->r;
	const struct qbpf_ring_record *rec;
	uint32_t ring;
	int more, err = 0;

	trace_reader__gpu_start(r);
	while (!err && (more = trace_reader__gpu_next(r, &ring, &rec, g->x->e)) != 0) {
		if (more < 0)
			return more;
		err = note(g, ring, rec);
	}
	if (!err && g->priv->nstarts)
		qsort(g->priv->starts, g->priv->nstarts, sizeof(*g->priv->starts), by_ring);
	if (!err)
		err = sort_devices(g);
	return err ? exporter__no_memory(g->x) : 0;
}

int export_gpu__new(struct exporter *x, struct export_gpu **out)
{
	uint64_t zero_ns = exporter__zero_ns(x);
	struct export_gpu *g;
	int err;

	*out = NULL;
	/* A selection of spans is one of the host's. */
	if (!x->info->ngpu_records || x->o->span)
		return 0;
	g = calloc(1, sizeof(*g));
	if (g)
		g->priv = calloc(1, sizeof(*g->priv));
	if (!g || !g->priv) {
		free(g);
		return exporter__no_memory(x);
	}
	g->x = x;
	g->window_ns = x->info->end_ns > zero_ns ? (x->info->end_ns - zero_ns) / WINDOWS : 0;
	if (g->window_ns < WINDOW_MIN_NS)
		g->window_ns = WINDOW_MIN_NS;
	err = look_around(g);
	if (err) {
		export_gpu__free(g);
		return err;
	}
	*out = g;
	return 0;
}

void export_gpu__free(struct export_gpu *g)
{
	struct export_gpu_priv *p = g ? g->priv : NULL;

	if (!g)
		return;
	for (size_t i = 0; i < g->ntitles; i++) {
		free(g->titles[i].text);
		free(g->titles[i].fit);
	}
	for (size_t i = 0; i < g->ndevices; i++) {
		free(g->devices[i].name);
		level__free(&p->busy[i]);
	}
	for (size_t i = 0; i < g->nstreams; i++) {
		free(g->streams[i].name);
		lanes__free(g->streams[i].lanes);
		level__free(&p->queues[i]);
	}
	id_map__clear(&p->title_at);
	id_map__clear(&p->device_at);
	id_map__clear(&p->stream_at);
	free(p->starts);
	free(p->nulls);
	free(p->queues);
	free(p->busy);
	free(p);
	free(g->titles);
	free(g->devices);
	free(g->streams);
	free(g);
}

/* --- names --------------------------------------------------------------------------------------- */

static char *title_text(const struct export_gpu *g, uint32_t type, uint32_t id, const char **symbol)
{
	const char *name = trace_info__gpu_name(g->x->info, id);
	char *text = NULL;

	switch (type) {
	case QBPF_RING_KERNEL:
		*symbol = name;
		text = name ? symbol_demangle(name) : NULL;
		return text ? text : strdup(name ? name : "(a kernel without a name)");
	case QBPF_RING_COPY:
		return asprintf(&text, "copy %s", gpu_direction_name(id)) < 0 ? NULL : text;
	case QBPF_RING_SET:
		return strdup("memset");
	case QBPF_RING_GRAPH:
		return asprintf(&text, "graph %u", id) < 0 ? NULL : text;
	default:
		return strdup(name ? name : "(a call without a name)");
	}
}

static int title_of(struct export_gpu *g, uint32_t type, uint32_t id, uint32_t *out)
{
	struct export_gpu_priv *p = g->priv;
	uint64_t key = (uint64_t)type << 32 | id;
	struct gpu_title *t;

	*out = id_map__get(&p->title_at, key);
	if (*out != ID_MAP_NONE)
		return 0;
	if (grow(&g->titles, g->ntitles, &p->titles_cap, sizeof(*g->titles)))
		return -ENOMEM;
	t = &g->titles[g->ntitles];
	t->text = title_text(g, type, id, &t->symbol);
	if (!t->text)
		return -ENOMEM;
	*out = (uint32_t)g->ntitles++;
	return id_map__put(&p->title_at, key, *out);
}

const char *export_gpu__fit(struct export_gpu *g, uint32_t title, export_name make)
{
	struct gpu_title *t = &g->titles[title];

	if (!t->fit)
		t->fit = make(t->text);
	return t->fit;
}

const char *export_gpu__kind(const struct gpu_item *a)
{
	switch (a->seen->rec->type) {
	case QBPF_RING_KERNEL:
		return "kernel";
	case QBPF_RING_COPY:
		return "copy";
	case QBPF_RING_SET:
		return "memset";
	default:
		return "graph";
	}
}

/* --- one by one ---------------------------------------------------------------------------------- */

static bool in_range(const struct exporter *x, uint64_t start_ns, uint64_t end_ns)
{
	return end_ns >= x->o->from_ns && (!x->o->to_ns || start_ns <= x->o->to_ns);
}

/* Whether the thread of a call is wanted; *thread: which, if it is known. */
static bool wants_thread(const struct exporter *x, uint32_t tgid, uint32_t tid, uint64_t ns,
			 uint32_t *thread)
{
	bool known = exporter__thread(x, tgid, tid, ns, thread);

	if (!known)
		*thread = TRACE_ALL_THREADS;
	return !x->o->thread || (known && x->threads[*thread]);
}

static int on_activity(void *ctx, const struct gpu_seen *s)
{
	struct export_gpu *g = ctx;
	struct export_gpu_priv *p = g->priv;
	struct gpu_item a = {.seen = s, .start_ns = s->start_ns, .end_ns = s->end_ns};
	uint32_t stream, id, number = look_at(s->rec, &a, &stream, &id), thread;

	if (s->untimed)
		a.start_ns = a.end_ns = s->asked_ns ? s->asked_ns : exporter__zero_ns(g->x);
	if (g->x->o->thread && !s->has_call)
		return 0;
	if (s->has_call && !wants_thread(g->x, s->tgid, s->tid, s->asked_ns, &thread))
		return 0;
	if (device_of(g, tgid_of(g, s->ring, s->generation), number, &a.device) ||
	    stream_of(g, a.device, a.context, stream, &a.stream) ||
	    title_of(g, s->rec->type, id, &a.title))
		return exporter__no_memory(g->x);
	if (!s->untimed && !g->x->o->thread && p->sink->queue &&
	    (level__add(&p->queues[a.stream], s->asked_ns, s->end_ns) ||
	     level__add(&p->busy[a.device], s->start_ns, s->end_ns)))
		return exporter__no_memory(g->x);
	if (!in_range(g->x, a.start_ns, a.end_ns))
		return 0;
	g->x->counts.activities++;
	g->x->counts.untimed += s->untimed;
	return p->sink->activity(p->sink->ctx, &a);
}

static int on_call(void *ctx, const struct gpu_seen_call *s)
{
	struct export_gpu *g = ctx;
	struct gpu_item_call c = {.seen = s};

	if (!wants_thread(g->x, s->tgid, s->tid, s->start_ns, &c.thread) ||
	    !in_range(g->x, s->start_ns, s->end_ns))
		return 0;
	if (title_of(g, QBPF_RING_CALL, s->name, &c.title))
		return exporter__no_memory(g->x);
	g->x->counts.calls++;
	return g->priv->sink->call(g->priv->sink->ctx, &c);
}

static int tell_queue(void *ctx, uint64_t at_ns, uint64_t n)
{
	struct export_gpu *g = ctx;
	const struct gpu_sink *sink = g->priv->sink;

	if (!in_range(g->x, at_ns, at_ns))
		return 0;
	return sink->queue(sink->ctx, (uint32_t)g->priv->telling, at_ns, n);
}

static int tell_busy(void *ctx, uint64_t at_ns, double share)
{
	struct export_gpu *g = ctx;
	const struct gpu_sink *sink = g->priv->sink;

	if (!in_range(g->x, at_ns, at_ns))
		return 0;
	return sink->busy(sink->ctx, (uint32_t)g->priv->telling, at_ns, share);
}

static int on_settled(void *ctx, uint64_t to_ns)
{
	struct export_gpu *g = ctx;
	struct export_gpu_priv *p = g->priv;
	int err = 0;

	for (size_t i = 0; i < g->nstreams && !err; i++) {
		p->telling = i;
		err = level__tell(&p->queues[i], to_ns, tell_queue, g);
	}
	for (size_t i = 0; i < g->ndevices && !err; i++) {
		p->telling = i;
		err = level__tell_share(&p->busy[i], to_ns, exporter__zero_ns(g->x), g->window_ns,
					tell_busy, g);
	}
	return err;
}

static int feed(struct export_gpu *g, struct gpu *model)
{
	const struct trace_info *info = g->x->info;
	const struct qbpf_ring_record *rec;
	uint32_t ring;
	int more, err = 0;

	for (size_t i = 0; i < info->ngpu_names && !err; i++)
		err = gpu__name(model, (uint32_t)i + 1, info->gpu_names[i].text);
	trace_reader__gpu_start(g->x->r);
	while (!err && (more = trace_reader__gpu_next(g->x->r, &ring, &rec, g->x->e)) != 0) {
		if (more < 0)
			return more;
		err = gpu__record(model, ring, rec);
	}
	if (!err)
		err = gpu__finish(model);
	return err == -ENOMEM ? exporter__no_memory(g->x) : err;
}

int export_gpu__walk(struct export_gpu *g, const struct gpu_sink *sink)
{
	const struct gpu_visitor visitor = {
	    .ctx = g, .activity = on_activity, .call = on_call, .settled = on_settled};
	const struct gpu_opts opts = {.max_bytes = WAITING_BYTES, .visitor = &visitor};
	struct gpu *model = gpu__new(&opts);
	int err;

	g->priv->sink = sink;
	err = model ? feed(g, model) : exporter__no_memory(g->x);
	gpu__free(model);
	return err;
}

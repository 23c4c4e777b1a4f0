// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_summary.c - the sums as they are told: named, sorted, with percentiles. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"
#include "model/gpu_impl.h"

const char *gpu_direction_name(enum gpu_direction d)
{
	static const char *const names[] = {
	    "host to device", "device to host", "on the device", "device to device",
	    "on the host",    "memset",		"other"};

	return d < GPU_DIRECTIONS ? names[d] : "?";
}

const char *gpu_cause_name(enum gpu_cause c)
{
	static const char *const names[] = {"host",   "sync",	    "call",
					    "launch", "dependency", "unknown"};

	return c < GPU_CAUSES ? names[c] : "?";
}

const char *gpu_missing_name(enum gpu_missing m)
{
	static const char *const names[] = {"no_call", "no_activity", "no_sync_call"};

	return m < GPU_MISSING ? names[m] : "?";
}

const char *gpu_outside_name(enum gpu_outside o)
{
	static const char *const names[] = {"before_agent", "after_agent", "partly"};

	return o < GPU_OUTSIDE ? names[o] : "?";
}

const char *gpu_launches_name(enum gpu_launches l)
{
	static const char *const names[] = {"in_spans", "in_no_span", "before_probes",
					    "after_probes"};

	return l < GPU_LAUNCHES ? names[l] : "?";
}

const char *gpu_end_name(uint32_t reason)
{
	static const char *const names[] = {"none", "asked", "reader_gone",
					    "exit", "fatal", "sudden"};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "?";
}

static char *copy_text(const char *s, bool *failed)
{
	char *copy = s ? strdup(s) : NULL;

	*failed |= s && !copy;
	return copy;
}

/* Sums of times that a hostile file makes up may be beyond any. */
static uint64_t whole(long double v)
{
	return v >= 0x1p64L ? UINT64_MAX - 1 : (uint64_t)v;
}

static struct gpu_figure figure_of(const struct dist *d)
{
	struct gpu_figure f = {.p50_ns = GPU_UNKNOWN, .p90_ns = GPU_UNKNOWN, .p99_ns = GPU_UNKNOWN};
	long double v;

	if (!d)
		return f;
	f.count = dist__count(d);
	f.total_ns = whole(dist__sum(d));
	f.min_ns = whole(dist__min(d));
	f.max_ns = whole(dist__max(d));
	if (dist__quantile(d, 0.5, &v))
		f.p50_ns = whole(v);
	if (dist__quantile(d, 0.9, &v))
		f.p90_ns = whole(v);
	if (dist__quantile(d, 0.99, &v))
		f.p99_ns = whole(v);
	return f;
}

static const char *name_of(const struct gpu *g, uint32_t id)
{
	return id ? g->names[id].text : NULL;
}

/* --- rows --------------------------------------------------------------------------------------- */

static int compare_kernels(const void *pa, const void *pb)
{
	const struct gpu_kernel *a = pa, *b = pb;

	if (a->time.total_ns != b->time.total_ns)
		return a->time.total_ns < b->time.total_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

static char *kernel_name(const struct gpu *g, const struct gpu_kernel_row *r)
{
	char text[32];
	char *name;

	if (r->graph) {
		snprintf(text, sizeof(text), "graph %u", r->name);
		return strdup(text);
	}
	if (!r->name)
		return strdup("(unnamed)");
	name = symbol_demangle(g->names[r->name].text);
	return name ? name : strdup(g->names[r->name].text);
}

static bool put_kernels(struct gpu_summary *s, const struct gpu *g)
{
	bool failed = false;

	s->kernels = calloc(g->nkernels + 1, sizeof(*s->kernels));
	if (!s->kernels)
		return true;
	for (size_t i = 0; i < g->nkernels; i++) {
		const struct gpu_kernel_row *r = &g->kernels[i];
		struct gpu_kernel *k = &s->kernels[s->nkernels];

		if (!r->time && !r->untimed)
			continue;
		k->name = kernel_name(g, r);
		if (!k->name)
			return true;
		s->nkernels++;
		k->symbol = copy_text(r->graph ? NULL : name_of(g, r->name), &failed);
		k->graph = r->graph;
		k->time = figure_of(r->time);
		k->delay = figure_of(r->delay);
		k->call = figure_of(r->call);
		k->first_calls = r->first_calls;
		k->first_call_ns = r->first_call_ns;
		k->seen_calls = r->seen_calls;
		k->seen_call_ns = r->seen_call_ns;
		memcpy(k->grid, r->grid, sizeof(k->grid));
		memcpy(k->block, r->block, sizeof(k->block));
		k->varies = r->varies;
		k->registers = r->registers;
		k->shared = r->shared;
		k->untimed = r->untimed;
		s->exact &= !r->time || dist__exact(r->time);
	}
	return failed;
}

static int compare_copies(const void *pa, const void *pb)
{
	const struct gpu_copy *a = pa, *b = pb;

	if (a->time.total_ns != b->time.total_ns)
		return a->time.total_ns < b->time.total_ns ? 1 : -1;
	if (a->direction != b->direction)
		return a->direction < b->direction ? -1 : 1;
	if (a->pageable != b->pageable)
		return a->pageable ? 1 : -1;
	return a->synchronous - b->synchronous;
}

void gpu_copy__rate(struct gpu_copy *c)
{
	unsigned __int128 rate;

	c->bytes_per_s = GPU_UNKNOWN;
	if (!c->time.total_ns)
		return;
	rate = (unsigned __int128)c->bytes * 1000000000u / c->time.total_ns;
	if (rate < GPU_UNKNOWN)
		c->bytes_per_s = (uint64_t)rate;
}

static bool put_copies(struct gpu_summary *s, const struct gpu *g)
{
	s->copies = calloc(GPU_COPY_ROWS, sizeof(*s->copies));
	if (!s->copies)
		return true;
	for (uint32_t i = 0; i < GPU_COPY_ROWS; i++) {
		const struct gpu_copy_row *r = &g->copies[i];
		struct gpu_copy *c = &s->copies[s->ncopies];

		if (!r->time && !r->untimed)
			continue;
		s->ncopies++;
		c->direction = i / 4;
		c->pageable = i & 2;
		c->synchronous = i & 1;
		c->time = figure_of(r->time);
		c->delay = figure_of(r->delay);
		c->call = figure_of(r->call);
		c->bytes = r->bytes;
		c->min_bytes = r->min_bytes;
		c->max_bytes = r->max_bytes;
		gpu_copy__rate(c);
		c->alone_ns = r->alone_ns;
		c->tiny = r->tiny;
		c->tiny_ns = r->tiny_ns;
		c->untimed = r->untimed;
		s->exact &= !r->time || dist__exact(r->time);
	}
	return false;
}

static int compare_calls(const void *pa, const void *pb)
{
	const struct gpu_call *a = pa, *b = pb;

	if (a->time.total_ns != b->time.total_ns)
		return a->time.total_ns < b->time.total_ns ? 1 : -1;
	return strcmp(a->name, b->name);
}

static bool put_calls(struct gpu_summary *s, const struct gpu *g)
{
	s->calls = calloc(g->napis + 1, sizeof(*s->calls));
	if (!s->calls)
		return true;
	for (size_t i = 0; i < g->napis; i++) {
		const struct gpu_call_row *r = &g->apis[i];
		struct gpu_call *c = &s->calls[s->ncalls];

		c->name = strdup(r->name ? g->names[r->name].text : "(unnamed)");
		if (!c->name)
			return true;
		s->ncalls++;
		c->class = r->name ? g->names[r->name].class : GPU_CALL_OTHER;
		c->time = figure_of(r->time);
		c->failed = r->failed;
		c->error = r->error;
	}
	return false;
}

static int compare_idle(const void *pa, const void *pb)
{
	const struct gpu_idle *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

static bool put_idle(struct gpu_device *d, const struct gpu_device_row *r, const struct gpu *g)
{
	bool failed = false;

	d->idle = calloc(r->nidle + 1, sizeof(*d->idle));
	if (!d->idle)
		return true;
	for (; d->nidle < r->nidle; d->nidle++) {
		const struct gpu_idle_row *from = &r->idle[d->nidle];
		const char *name = from->cause == GPU_IDLE_HOST
				       ? (from->name ? g->span_names[from->name] : NULL)
				       : name_of(g, from->name);

		d->idle[d->nidle] = (struct gpu_idle){.cause = from->cause,
						      .name = copy_text(name, &failed),
						      .gaps = from->gaps,
						      .total_ns = from->total_ns,
						      .max_ns = from->max_ns};
	}
	return failed;
}

static int compare_devices(const void *pa, const void *pb)
{
	const struct gpu_device *a = pa, *b = pb;

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

/* The bound of all devices whose clock is bounded on both sides, if that is one at all. */
static void note_error(struct gpu_summary *s, const struct gpu_device_row *r)
{
	uint64_t low = magnitude(r->error_low_ns), high = magnitude(r->error_high_ns);

	if (r->error_low_ns == INT64_MIN || r->error_high_ns == INT64_MAX)
		return;
	if (r->error_low_ns > r->error_high_ns) {
		uint64_t change = (uint64_t)r->error_low_ns - (uint64_t)r->error_high_ns;

		if (change > s->clock_change_ns)
			s->clock_change_ns = change;
		return;
	}
	low = low > high ? low : high;
	if (s->clock_error_ns == GPU_UNKNOWN || low > s->clock_error_ns)
		s->clock_error_ns = low;
}

static bool put_devices(struct gpu_summary *s, const struct gpu *g)
{
	bool failed = false;

	s->devices = calloc(g->ndevices + 1, sizeof(*s->devices));
	if (!s->devices)
		return true;
	for (; s->ndevices < g->ndevices; s->ndevices++) {
		const struct gpu_device_row *r = &g->devices[s->ndevices];
		struct gpu_device *d = &s->devices[s->ndevices];

		*d = (struct gpu_device){.ring = r->ring,
					 .device = r->device,
					 .tgid = gpu_process__of(g, r->ring),
					 .sms = r->about.sms,
					 .capability_major = r->about.capability_major,
					 .capability_minor = r->about.capability_minor,
					 .copy_engines = r->about.copy_engines,
					 .memory_bytes = r->about.memory_bytes,
					 .bandwidth_kbps = r->about.bandwidth_kbps,
					 .activities = r->activities,
					 .from_ns = r->from_ns,
					 .to_ns = r->to_ns,
					 .busy_ns = r->busy_ns,
					 .compute_ns = r->compute_ns,
					 .copy_ns = r->copy_ns,
					 .overlap_ns = r->overlap_ns,
					 .idle_ns = r->idle_ns,
					 .error_low_ns = r->error_low_ns,
					 .error_high_ns = r->error_high_ns,
					 .early = r->early};
		d->name = copy_text(name_of(g, r->about.name), &failed);
		d->comm = copy_text(gpu_process__comm(g, d->tgid), &failed);
		failed |= put_idle(d, r, g);
		note_error(s, r);
	}
	if (s->clock_change_ns)
		s->clock_error_ns = GPU_UNKNOWN;
	return failed;
}

static int compare_streams(const void *pa, const void *pb)
{
	const struct gpu_stream *a = pa, *b = pb;

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->generation < b->generation ? -1 : a->generation > b->generation;
}

static const struct gpu_known_stream *find(const struct gpu_known_stream *list, size_t n,
					   const struct gpu_stream_row *r)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].ring == r->ring && list[i].context == r->context &&
		    list[i].stream == r->stream)
			return &list[i];
	return NULL;
}

static bool put_streams(struct gpu_summary *s, const struct gpu *g)
{
	s->streams = calloc(g->nstreams + 1, sizeof(*s->streams));
	if (!s->streams)
		return true;
	for (size_t i = 0; i < g->nstreams; i++) {
		const struct gpu_stream_row *r = &g->streams[i];
		const struct gpu_known_stream *known = find(g->known, g->nknown, r);

		if (!r->to_ns)
			continue;
		s->streams[s->nstreams++] =
		    (struct gpu_stream){.ring = r->ring,
					.generation = r->generation,
					.tgid = gpu_process__of(g, r->ring),
					.device = r->device,
					.context = r->context,
					.stream = r->stream,
					.null = find(g->nulls, g->nnulls, r),
					.priority = known ? known->priority : 0,
					.kernels = r->count[0],
					.copies = r->count[1],
					.sets = r->count[2],
					.kernel_ns = r->time_ns[0],
					.copy_ns = r->time_ns[1],
					.set_ns = r->time_ns[2],
					.delay = figure_of(r->delay),
					.queue_max = r->queue_max,
					.queue_ns = r->queue_ns,
					.from_ns = r->from_ns,
					.to_ns = r->to_ns,
					.idle_ns = r->idle_ns};
		memcpy(s->streams[s->nstreams - 1].queue_found, r->queue_found,
		       sizeof(r->queue_found));
	}
	return false;
}

static int compare_spans(const void *pa, const void *pb)
{
	const struct gpu_span *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static bool put_spans(struct gpu_summary *s, const struct gpu *g)
{
	s->spans = calloc(g->nspans + 1, sizeof(*s->spans));
	if (!s->spans)
		return true;
	for (uint32_t i = 1; i < g->nspans; i++) {
		const struct gpu_span_row *r = &g->spans[i];
		struct gpu_span *p = &s->spans[s->nspans];

		for (int o = 0; o < GPU_OUTSIDE; o++)
			s->outside[o] += r->outside[o];
		if (!r->count && !r->cut)
			continue;
		*p = (struct gpu_span){.id = i,
				       .name = strdup(g->span_names[i]),
				       .count = r->count,
				       .total_ns = r->total_ns,
				       .launch_ns = r->launch_ns,
				       .sync_ns = r->sync_ns,
				       .own_ns = r->total_ns - r->launch_ns - r->sync_ns,
				       .busy_ns = r->busy_ns,
				       .after_ns = r->after_ns,
				       .launches = r->launches,
				       .copies = r->copies,
				       .copy_bytes = r->copy_bytes,
				       .kernel_ns = r->kernel_ns,
				       .copy_ns = r->copy_ns,
				       .delay = figure_of(r->delay),
				       .cut = r->cut};
		if (!p->name)
			return true;
		memcpy(p->outside, r->outside, sizeof(p->outside));
		s->nspans++;
	}
	return false;
}

static int compare_agents(const void *pa, const void *pb)
{
	const struct gpu_agent *a = pa, *b = pb;

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	return a->generation < b->generation ? -1 : a->generation > b->generation;
}

static bool put_agents(struct gpu_summary *s, const struct gpu *g)
{
	s->agents = calloc(g->nagents + 1, sizeof(*s->agents));
	if (!s->agents)
		return true;
	s->nagents = g->nagents;
	if (g->nagents)
		memcpy(s->agents, g->agents, g->nagents * sizeof(*s->agents));
	qsort(s->agents, s->nagents, sizeof(*s->agents), compare_agents);
	return false;
}

/* --- the whole ---------------------------------------------------------------------------------- */

int gpu_summary__finish(struct gpu_summary *s)
{
	qsort(s->kernels, s->nkernels, sizeof(*s->kernels), compare_kernels);
	qsort(s->copies, s->ncopies, sizeof(*s->copies), compare_copies);
	qsort(s->calls, s->ncalls, sizeof(*s->calls), compare_calls);
	qsort(s->devices, s->ndevices, sizeof(*s->devices), compare_devices);
	qsort(s->streams, s->nstreams, sizeof(*s->streams), compare_streams);
	qsort(s->spans, s->nspans, sizeof(*s->spans), compare_spans);
	for (size_t i = 0; i < s->ndevices; i++)
		qsort(s->devices[i].idle, s->devices[i].nidle, sizeof(*s->devices[i].idle),
		      compare_idle);
	return gpu_advice__make(s);
}

struct gpu_summary *gpu__summary(const struct gpu *g)
{
	struct gpu_summary *s = calloc(1, sizeof(*s));
	bool failed;

	if (!s)
		return NULL;
	s->refs = 1;
	s->exact = true;
	s->records = g->records;
	s->unknown_records = g->unknown_records;
	s->activities = g->activities;
	s->untimed = g->untimed;
	s->late = g->late;
	s->waiting = g->nacts;
	memcpy(s->missing, g->missing, sizeof(s->missing));
	memcpy(s->launches, g->launches, sizeof(s->launches));
	s->probes_from_ns = g->probes_from_ns;
	s->probes_to_ns = g->probes_to_ns;
	s->dropped = g->dropped;
	s->overflow = g->overflow;
	s->overheads = g->overheads;
	s->overhead_ns = g->overhead_ns;
	s->clock_error_ns = GPU_UNKNOWN;
	s->convert_error_ns = g->convert_error_ns;
	s->converted = g->converted;
	failed = put_kernels(s, g);
	failed |= put_copies(s, g);
	failed |= put_calls(s, g);
	failed |= put_devices(s, g);
	failed |= put_streams(s, g);
	failed |= put_spans(s, g);
	failed |= put_agents(s, g);
	if (!failed)
		failed = gpu_summary__finish(s);
	if (!failed)
		return s;
	gpu_summary__put(s);
	return NULL;
}

bool gpu_summary__shared(const struct gpu_summary *s)
{
	for (size_t i = 1; i < s->ndevices; i++)
		if (s->devices[i].ring != s->devices[0].ring)
			return true;
	return false;
}

struct gpu_summary *gpu_summary__get(struct gpu_summary *s)
{
	if (s)
		__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void gpu_summary__put(struct gpu_summary *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < s->nkernels; i++) {
		free(s->kernels[i].name);
		free(s->kernels[i].symbol);
	}
	for (size_t i = 0; i < s->ndevices; i++) {
		for (size_t k = 0; k < s->devices[i].nidle; k++)
			free(s->devices[i].idle[k].name);
		free(s->devices[i].idle);
		free(s->devices[i].name);
		free(s->devices[i].comm);
	}
	for (size_t i = 0; i < s->ncalls; i++)
		free(s->calls[i].name);
	for (size_t i = 0; i < s->nspans; i++)
		free(s->spans[i].name);
	for (size_t i = 0; i < s->nadvice; i++)
		free(s->advice[i].name);
	free(s->kernels);
	free(s->copies);
	free(s->calls);
	free(s->devices);
	free(s->streams);
	free(s->spans);
	free(s->advice);
	free(s->agents);
	free(s);
}

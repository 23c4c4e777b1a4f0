// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* json_gpu.c - the summary document's `gpu` (docs/json.md). */
#include "out/gpu.h"

static void put_ns(struct json_doc *d, json_t *o, const char *key, uint64_t ns)
{
	json_put(d, o, key, ns == GPU_UNKNOWN ? json_null() : json_count(ns));
}

static void put_figure(struct json_doc *d, json_t *o, const struct gpu_figure *f)
{
	json_put(d, o, "count", json_count(f->count));
	json_put(d, o, "sum_ns", json_count(f->total_ns));
	if (!f->count)
		return;
	put_ns(d, o, "min_ns", f->min_ns);
	put_ns(d, o, "mean_ns", (f->total_ns + f->count / 2) / f->count);
	put_ns(d, o, "p50_ns", f->p50_ns);
	put_ns(d, o, "p90_ns", f->p90_ns);
	put_ns(d, o, "p99_ns", f->p99_ns);
	put_ns(d, o, "max_ns", f->max_ns);
}

static void put_part(struct json_doc *d, json_t *o, const char *key, const struct gpu_figure *f)
{
	json_t *part;

	if (!f->count)
		return;
	part = json_object();
	put_figure(d, part, f);
	json_put(d, o, key, part);
}

static void put_count(struct json_doc *d, json_t *o, const char *key, uint64_t n)
{
	json_put(d, o, key, json_count(n));
}

static void put_some(struct json_doc *d, json_t *o, const char *key, uint64_t n)
{
	if (n)
		put_count(d, o, key, n);
}

static json_t *idle(struct json_doc *d, const struct gpu_device *v)
{
	json_t *array = json_array();

	for (size_t i = 0; i < v->nidle; i++) {
		json_t *o = json_object();

		json_put_text(d, o, "cause", gpu_cause_name(v->idle[i].cause));
		json_put_text(d, o, "name", v->idle[i].name);
		put_count(d, o, "gaps", v->idle[i].gaps);
		put_count(d, o, "sum_ns", v->idle[i].total_ns);
		put_count(d, o, "max_ns", v->idle[i].max_ns);
		json_append(d, array, o);
	}
	return array;
}

static json_t *devices(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *array = json_array();

	for (size_t i = 0; i < g->ndevices; i++) {
		const struct gpu_device *v = &g->devices[i];
		json_t *o = json_object();

		put_count(d, o, "device", v->device);
		put_count(d, o, "ring", v->ring);
		put_some(d, o, "pid", v->tgid);
		if (v->comm)
			json_put_text(d, o, "comm", v->comm);
		json_put_text(d, o, "name", v->name);
		put_some(d, o, "sms", v->sms);
		put_some(d, o, "copy_engines", v->copy_engines);
		put_some(d, o, "memory_bytes", v->memory_bytes);
		put_some(d, o, "bandwidth_kbps", v->bandwidth_kbps);
		put_count(d, o, "activities", v->activities);
		put_count(d, o, "from_ns", v->from_ns);
		put_count(d, o, "to_ns", v->to_ns);
		put_count(d, o, "busy_ns", v->busy_ns);
		put_count(d, o, "compute_ns", v->compute_ns);
		put_count(d, o, "copy_ns", v->copy_ns);
		put_count(d, o, "overlap_ns", v->overlap_ns);
		put_count(d, o, "idle_ns", v->idle_ns);
		json_put(d, o, "idle", idle(d, v));
		if (v->error_low_ns != INT64_MIN)
			json_put(d, o, "clock_error_low_ns", json_integer(v->error_low_ns));
		if (v->error_high_ns != INT64_MAX)
			json_put(d, o, "clock_error_high_ns", json_integer(v->error_high_ns));
		put_some(d, o, "early", v->early);
		json_append(d, array, o);
	}
	return array;
}

static json_t *triple(struct json_doc *d, const uint32_t v[3])
{
	json_t *array = json_array();

	for (int i = 0; i < 3; i++)
		json_append(d, array, json_count(v[i]));
	return array;
}

static json_t *kernels(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *array = json_array();

	for (size_t i = 0; i < g->nkernels; i++) {
		const struct gpu_kernel *k = &g->kernels[i];
		json_t *o = json_object();

		json_put_text(d, o, "name", k->name);
		json_put_text(d, o, "symbol", k->symbol);
		put_figure(d, o, &k->time);
		put_part(d, o, "delay", &k->delay);
		put_part(d, o, "launch", &k->call);
		if (k->first_calls) {
			put_count(d, o, "first_launches", k->first_calls);
			put_count(d, o, "first_launch_ns", k->first_call_ns);
		}
		if (k->seen_calls) {
			put_count(d, o, "first_seen", k->seen_calls);
			put_count(d, o, "first_seen_ns", k->seen_call_ns);
		}
		if (!k->graph) {
			json_put(d, o, "grid", triple(d, k->grid));
			json_put(d, o, "block", triple(d, k->block));
			json_put(d, o, "varies", json_boolean(k->varies));
			put_some(d, o, "registers", k->registers);
			put_some(d, o, "shared_bytes", k->shared);
		}
		put_some(d, o, "untimed", k->untimed);
		json_append(d, array, o);
	}
	return array;
}

static json_t *copies(struct json_doc *d, const struct gpu_summary *g)
{
	static const char *const keys[] = {"to_device", "to_host", "on_device", "between_devices",
					   "on_host",	"memset",  "other"};
	json_t *array = json_array();

	for (size_t i = 0; i < g->ncopies; i++) {
		const struct gpu_copy *c = &g->copies[i];
		json_t *o = json_object();

		json_put_text(d, o, "direction", keys[c->direction]);
		json_put(d, o, "pageable", json_boolean(c->pageable));
		json_put(d, o, "synchronous", json_boolean(c->synchronous));
		put_figure(d, o, &c->time);
		put_count(d, o, "bytes", c->bytes);
		put_count(d, o, "min_bytes", c->min_bytes);
		put_count(d, o, "max_bytes", c->max_bytes);
		put_ns(d, o, "bytes_per_s", c->bytes_per_s);
		put_part(d, o, "delay", &c->delay);
		put_part(d, o, "host", &c->call);
		if (c->direction != GPU_MEMSET)
			put_count(d, o, "alone_ns", c->alone_ns);
		put_count(d, o, "tiny", c->tiny);
		put_some(d, o, "untimed", c->untimed);
		json_append(d, array, o);
	}
	return array;
}

/* As far as any was found. */
static json_t *queue_found(struct json_doc *d, const struct gpu_stream *s)
{
	json_t *array = json_array();
	size_t n = GPU_QUEUE_STEPS;

	while (n && !s->queue_found[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		json_append(d, array, json_count(s->queue_found[i]));
	return array;
}

static json_t *streams(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *array = json_array();

	for (size_t i = 0; i < g->nstreams; i++) {
		const struct gpu_stream *s = &g->streams[i];
		json_t *o = json_object();

		put_count(d, o, "ring", s->ring);
		put_some(d, o, "pid", s->tgid);
		put_count(d, o, "device", s->device);
		put_count(d, o, "context", s->context);
		put_count(d, o, "stream", s->stream);
		if (s->generation > 1)
			put_count(d, o, "generation", s->generation);
		json_put(d, o, "default", json_boolean(s->null));
		put_count(d, o, "kernels", s->kernels);
		put_count(d, o, "kernel_ns", s->kernel_ns);
		put_count(d, o, "copies", s->copies);
		put_count(d, o, "copy_ns", s->copy_ns);
		put_count(d, o, "memsets", s->sets);
		put_count(d, o, "memset_ns", s->set_ns);
		put_part(d, o, "delay", &s->delay);
		put_count(d, o, "queue_max", s->queue_max);
		put_count(d, o, "queue_ns", s->queue_ns);
		json_put(d, o, "queue_found", queue_found(d, s));
		put_count(d, o, "from_ns", s->from_ns);
		put_count(d, o, "to_ns", s->to_ns);
		put_count(d, o, "idle_ns", s->idle_ns);
		json_append(d, array, o);
	}
	return array;
}

static json_t *calls(struct json_doc *d, const struct gpu_summary *g)
{
	static const char *const classes[] = {"launch", "copy", "memset", "sync", "other"};
	json_t *array = json_array();

	for (size_t i = 0; i < g->ncalls; i++) {
		const struct gpu_call *c = &g->calls[i];
		json_t *o = json_object();

		json_put_text(d, o, "name", c->name);
		json_put_text(d, o, "class", classes[c->class]);
		put_figure(d, o, &c->time);
		if (c->failed) {
			put_count(d, o, "failed", c->failed);
			put_count(d, o, "error", c->error);
		}
		json_append(d, array, o);
	}
	return array;
}

static void put_outside(struct json_doc *d, json_t *o, const uint64_t outside[GPU_OUTSIDE])
{
	json_t *by;
	bool any = false;

	for (int i = 0; i < GPU_OUTSIDE; i++)
		any |= outside[i] > 0;
	if (!any)
		return;
	by = json_object();
	for (int i = 0; i < GPU_OUTSIDE; i++)
		put_count(d, by, gpu_outside_name(i), outside[i]);
	json_put(d, o, "outside", by);
}

static json_t *spans(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *array = json_array();

	for (size_t i = 0; i < g->nspans; i++) {
		const struct gpu_span *s = &g->spans[i];
		json_t *o = json_object();

		json_put_text(d, o, "name", s->name);
		put_count(d, o, "count", s->count);
		put_count(d, o, "sum_ns", s->total_ns);
		put_count(d, o, "own_ns", s->own_ns);
		put_count(d, o, "launch_ns", s->launch_ns);
		put_count(d, o, "wait_ns", s->sync_ns);
		put_count(d, o, "busy_ns", s->busy_ns);
		put_count(d, o, "after_ns", s->after_ns);
		put_count(d, o, "launches", s->launches);
		put_count(d, o, "kernel_ns", s->kernel_ns);
		put_count(d, o, "copies", s->copies);
		put_count(d, o, "copy_bytes", s->copy_bytes);
		put_count(d, o, "copy_ns", s->copy_ns);
		put_part(d, o, "delay", &s->delay);
		put_some(d, o, "cut", s->cut);
		put_outside(d, o, s->outside);
		json_append(d, array, o);
	}
	return array;
}

static json_t *advice(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *array = json_array();
	char text[GPU_ADVICE_TEXT];

	for (size_t i = 0; i < g->nadvice; i++) {
		const struct gpu_advice *a = &g->advice[i];
		json_t *o = json_object();

		json_put_text(d, o, "kind", gpu_advice_name(a->kind));
		json_put_text(d, o, "text", gpu_advice__text(a, text));
		json_put_text(d, o, "name", a->name);
		put_count(d, o, "count", a->count);
		if (a->kind != GPU_ADVICE_FAILED)
			put_count(d, o, "cost_ns", a->cost_ns);
		if (a->save_ns != GPU_UNKNOWN)
			put_count(d, o, "save_at_most_ns", a->save_ns);
		json_append(d, array, o);
	}
	return array;
}

json_t *json_gpu_losses(struct json_doc *d, const struct snapshot *s)
{
	json_t *array = NULL;

	for (uint32_t why = 0; why < GPU_LOST_N; why++)
		for (uint32_t type = 0; type < QBPF_RING_TYPES; type++) {
			json_t *o;

			if (!s->gpu_lost[why][type])
				continue;
			array = array ? array : json_array();
			o = json_object();
			json_put_text(d, o, "type", gpu_loss_type(type));
			json_put_text(d, o, "reason", gpu_loss_reason(why));
			json_put(d, o, "lost", json_count(s->gpu_lost[why][type]));
			json_append(d, array, o);
		}
	return array;
}

static json_t *agents(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *array = json_array();

	for (size_t i = 0; i < g->nagents; i++) {
		const struct gpu_agent *a = &g->agents[i];
		json_t *o = json_object();

		put_count(d, o, "ring", a->ring);
		put_count(d, o, "generation", a->generation);
		put_count(d, o, "pid", a->tgid);
		json_put(d, o, "from_start", json_boolean(a->from_start));
		put_count(d, o, "from_ns", a->from_ns);
		if (a->end) {
			put_count(d, o, "to_ns", a->to_ns);
			json_put_text(d, o, "end", gpu_end_name(a->end));
		}
		json_append(d, array, o);
	}
	return array;
}

/* The two windows, and what is in one of them only. */
static void put_windows(struct json_doc *d, json_t *o, const struct gpu_summary *g)
{
	json_t *probes = json_object(), *launches = json_object();

	json_put(d, o, "agents", agents(d, g));
	if (g->probes_from_ns)
		put_count(d, probes, "from_ns", g->probes_from_ns);
	if (g->probes_to_ns != GPU_UNKNOWN)
		put_count(d, probes, "to_ns", g->probes_to_ns);
	json_put(d, o, "probes", probes);
	for (int i = 0; i < GPU_LAUNCHES; i++)
		put_count(d, launches, gpu_launches_name(i), g->launches[i]);
	json_put(d, o, "launches", launches);
	put_outside(d, o, g->outside);
}

json_t *json_gpu(struct json_doc *d, const struct gpu_summary *g)
{
	json_t *o = json_object(), *missing = json_object();

	json_put(d, o, "devices", devices(d, g));
	json_put(d, o, "kernels", kernels(d, g));
	json_put(d, o, "copies", copies(d, g));
	json_put(d, o, "streams", streams(d, g));
	json_put(d, o, "calls", calls(d, g));
	if (g->nspans)
		json_put(d, o, "spans", spans(d, g));
	json_put(d, o, "advice", advice(d, g));
	put_windows(d, o, g);
	put_count(d, o, "activities", g->activities);
	put_count(d, o, "untimed", g->untimed);
	put_ns(d, o, "clock_error_ns", g->clock_error_ns);
	put_some(d, o, "clock_change_ns", g->clock_change_ns);
	if (g->converted)
		put_count(d, o, "convert_error_ns", g->convert_error_ns);
	for (int m = 0; m < GPU_MISSING; m++)
		put_count(d, missing, gpu_missing_name(m), g->missing[m]);
	json_put(d, o, "missing", missing);
	put_count(d, o, "dropped", g->dropped);
	put_some(d, o, "late", g->late);
	put_some(d, o, "waiting", g->waiting);
	put_some(d, o, "overflow", g->overflow);
	put_some(d, o, "unknown_records", g->unknown_records);
	if (g->overheads) {
		put_count(d, o, "overheads", g->overheads);
		put_count(d, o, "overhead_ns", g->overhead_ns);
	}
	json_put(d, o, "exact", json_boolean(g->exact));
	return o;
}

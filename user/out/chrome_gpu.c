// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * chrome_gpu.c - what the GPU did, as JSON in the "Trace Event Format".
 *
 * A device is a process with a made-up pid, a stream one of its threads; what overlaps in a stream has
 * one more row of the same name, for readers refuse or move complete events that cross. Calls
 * have rows of their own beside their thread, for the same reason. An arrow begins in the call and
 * ends in what it made the GPU do; both stand before it in the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/id_map.h"
#include "out/chrome_impl.h"
#include "out/export_gpu.h"

#define ARROWS_MAX 16384 /* of one call: a graph's launch */

/* Rows of one stream, or of one thread's calls, by lane. */
struct rows {
	struct lanes *lanes;
	uint32_t *tids;
	size_t n;
};

struct gpu_out {
	struct chrome *c;
	struct export_gpu *g;
	struct rows *rows; /* of streams, by index; then of callers */
	size_t nrows, rows_cap;
	struct id_map stream_at, caller_at;
	uint32_t *pids; /* by device; 0: not given yet */
	size_t npids;
};

static int no_memory(const struct gpu_out *o)
{
	return exporter__no_memory(o->c->x);
}

/* --- rows ---------------------------------------------------------------------------------------- */

static int rows_of(struct gpu_out *o, struct id_map *map, uint64_t key, struct rows **out)
{
	uint32_t at = id_map__get(map, key);

	if (at == ID_MAP_NONE) {
		if (o->nrows == o->rows_cap) {
			size_t cap = o->rows_cap ? 2 * o->rows_cap : 16;
			struct rows *p = reallocarray(o->rows, cap, sizeof(*p));

			if (!p)
				return no_memory(o);
			o->rows = p;
			o->rows_cap = cap;
		}
		at = (uint32_t)o->nrows;
		o->rows[at] = (struct rows){.lanes = lanes__new()};
		if (!o->rows[at].lanes)
			return no_memory(o);
		o->nrows++;
		if (id_map__put(map, key, at))
			return no_memory(o);
	}
	*out = &o->rows[at];
	return 0;
}

/* The row for what lasts from start to end; *fresh: it has no name yet. */
static int row_of(struct gpu_out *o, struct rows *r, uint64_t start_ns, uint64_t end_ns,
		  uint32_t *tid, bool *fresh)
{
	uint32_t lane, *more;

	if (lanes__take(r->lanes, start_ns, end_ns, &lane, fresh))
		return no_memory(o);
	if (lane >= r->n) {
		more = reallocarray(r->tids, lane + 1, sizeof(*more));
		if (!more)
			return no_memory(o);
		r->tids = more;
		while (r->n <= lane)
			r->tids[r->n++] = o->c->next_row++;
	}
	*tid = r->tids[lane];
	return 0;
}

static int device_pid(struct gpu_out *o, uint32_t device, uint32_t *pid)
{
	const struct gpu_row_device *d = &o->g->devices[device];
	char *name = NULL;
	uint32_t *more;
	int err;

	if (device >= o->npids) {
		more = reallocarray(o->pids, device + 1, sizeof(*more));
		if (!more)
			return no_memory(o);
		memset(more + o->npids, 0, (device + 1 - o->npids) * sizeof(*more));
		o->pids = more;
		o->npids = device + 1;
	}
	*pid = o->pids[device];
	if (*pid)
		return 0;
	/* The first made-up id is that of process 0. */
	*pid = o->pids[device] = EXPORT_MADE_UP_ID + 1 + device;
	if (asprintf(&name, "%s of process %u", d->name, d->tgid) < 0)
		return no_memory(o);
	err = chrome__label(o->c, "process_name", *pid, *pid, name);
	free(name);
	return err;
}

/* --- events -------------------------------------------------------------------------------------- */

static int put_name(struct gpu_out *o, uint32_t title)
{
	const char *name = export_gpu__fit(o->g, title, export__json);

	if (!name)
		return no_memory(o);
	scribe__text(&o->c->s, ",\"name\":");
	scribe__text(&o->c->s, name);
	return 0;
}

static void put_number(struct gpu_out *o, const char *key, uint64_t v)
{
	scribe__text(&o->c->s, key);
	scribe__u64(&o->c->s, v);
}

static void put_dim(struct gpu_out *o, const char *key, const uint32_t v[3])
{
	put_number(o, key, v[0]);
	put_number(o, ",", v[1]);
	put_number(o, ",", v[2]);
	scribe__text(&o->c->s, "]");
}

static void put_args(struct gpu_out *o, const struct gpu_item *a)
{
	const struct qbpf_ring_kernel *k = (const void *)a->seen->rec;

	put_number(o, ",\"args\":{\"correlation\":", a->correlation);
	put_number(o, ",\"context\":", a->context);
	put_number(o, ",\"stream\":", o->g->streams[a->stream].stream);
	if (gpu_item__kernel(a)) {
		put_dim(o, ",\"grid\":[", k->grid);
		put_dim(o, ",\"block\":[", k->block);
		put_number(o, ",\"registers\":", k->registers);
		put_number(o, ",\"shared_bytes\":", (uint64_t)k->static_shared + k->dynamic_shared);
	} else if (a->seen->rec->type != QBPF_RING_GRAPH) {
		put_number(o, ",\"bytes\":", a->bytes);
	}
	if (a->seen->untimed)
		scribe__text(&o->c->s, ",\"untimed\":true");
	if (!a->seen->has_call)
		scribe__text(&o->c->s, ",\"call\":\"not in the recording\"");
	scribe__text(&o->c->s, "}");
}

static int put_arrow(struct gpu_out *o, const char *phase, uint64_t id, uint32_t pid, uint32_t tid,
		     uint64_t at_ns)
{
	chrome__begin(o->c, phase);
	chrome__id(o->c, id);
	chrome__row(o->c, pid, tid);
	chrome__time(o->c, at_ns);
	scribe__text(&o->c->s, ",\"name\":\"asked for\"");
	chrome__end(o->c);
	return o->c->s.err;
}

static int on_activity(void *ctx, const struct gpu_item *a)
{
	struct gpu_out *o = ctx;
	uint32_t pid, tid;
	struct rows *r;
	bool fresh, untimed = a->seen->untimed;
	int err = device_pid(o, a->device, &pid);

	if (!err)
		err = rows_of(o, &o->stream_at, a->stream, &r);
	if (!err)
		err = row_of(o, r, a->start_ns, a->end_ns, &tid, &fresh);
	if (!err && fresh)
		err = chrome__label(o->c, "thread_name", pid, tid, o->g->streams[a->stream].name);
	if (err)
		return err;
	chrome__begin(o->c, untimed ? "i\",\"s\":\"t\",\"cat\":\"gpu-" : "X\",\"cat\":\"gpu-");
	scribe__text(&o->c->s, export_gpu__kind(a));
	scribe__text(&o->c->s, "\"");
	chrome__row(o->c, pid, tid);
	chrome__time(o->c, a->start_ns);
	if (!untimed) {
		scribe__text(&o->c->s, ",\"dur\":");
		scribe__us(&o->c->s, (int64_t)(a->end_ns - a->start_ns));
	}
	put_args(o, a);
	err = put_name(o, a->title);
	chrome__end(o->c);
	if (err || untimed || !a->seen->has_call)
		return err ? err : o->c->s.err;
	return put_arrow(o, "f\",\"bp\":\"e\",\"cat\":\"gpu\"", a->seen->id, pid, tid, a->start_ns);
}

/* The row of a thread's calls, which has a name of its own. */
static int name_caller(struct gpu_out *o, const struct gpu_item_call *call, uint32_t pid,
		       uint32_t tid)
{
	const struct trace_info *info = o->c->x->info;
	char *name = NULL;
	int err, n;

	if (call->thread == TRACE_ALL_THREADS)
		n = asprintf(&name, "CUDA API of thread %u", call->seen->tid);
	else
		n = asprintf(&name, "CUDA API of %s (%u)", info->threads[call->thread].name,
			     o->c->tids[call->thread]);
	if (n < 0)
		return no_memory(o);
	err = call->thread == TRACE_ALL_THREADS ? 0 : chrome__describe(o->c, call->thread);
	if (!err)
		err = chrome__label(o->c, "thread_name", pid, tid, name);
	free(name);
	return err;
}

static int put_call(struct gpu_out *o, const struct gpu_item_call *call, uint32_t pid, uint32_t tid,
		    uint64_t start_ns, uint64_t end_ns)
{
	const struct gpu_seen_call *s = call->seen;
	int err;

	chrome__begin(o->c, "X\",\"cat\":\"cuda\"");
	chrome__row(o->c, pid, tid);
	chrome__time(o->c, start_ns);
	scribe__text(&o->c->s, ",\"dur\":");
	scribe__us(&o->c->s, (int64_t)(end_ns - start_ns));
	put_number(o, ",\"args\":{\"correlation\":", s->correlation);
	if (s->error)
		put_number(o, ",\"error\":", s->error);
	if (!s->start_ns || s->end_ns < s->start_ns)
		scribe__text(&o->c->s, ",\"untimed\":true");
	scribe__text(&o->c->s, "}");
	err = put_name(o, call->title);
	chrome__end(o->c);
	return err ? err : o->c->s.err;
}

static int on_call(void *ctx, const struct gpu_item_call *call)
{
	struct gpu_out *o = ctx;
	const struct gpu_seen_call *s = call->seen;
	uint64_t start_ns = s->start_ns ? s->start_ns : o->c->zero_ns;
	uint64_t end_ns = s->end_ns > start_ns ? s->end_ns : start_ns;
	uint64_t key = call->thread == TRACE_ALL_THREADS ? (uint64_t)s->tgid << 32 | s->tid
							 : UINT64_MAX - call->thread;
	uint32_t pid = export__pid(s->tgid), tid = 0;
	struct rows *r;
	bool fresh;
	int err = rows_of(o, &o->caller_at, key, &r);

	if (!err)
		err = row_of(o, r, start_ns, end_ns, &tid, &fresh);
	if (!err && fresh)
		err = name_caller(o, call, pid, tid);
	if (!err)
		err = put_call(o, call, pid, tid, start_ns, end_ns);
	for (uint32_t i = 0; i < s->activities && i < ARROWS_MAX && !err; i++)
		err = put_arrow(o, "s\",\"cat\":\"gpu\"", s->first_id + i, pid, tid, start_ns);
	return err;
}

/* --- levels -------------------------------------------------------------------------------------- */

static int put_counter(struct gpu_out *o, uint32_t device, uint64_t at_ns, const char *of,
		       const char *what)
{
	uint32_t pid;
	int err = device_pid(o, device, &pid);
	char *name = NULL, *json;

	if (err)
		return err;
	if (asprintf(&name, "%s: %s", of, what) < 0)
		return no_memory(o);
	json = export__json(name);
	free(name);
	if (!json)
		return no_memory(o);
	chrome__begin(o->c, "C\",\"cat\":\"gpu\",\"name\":");
	scribe__text(&o->c->s, json);
	free(json);
	chrome__row(o->c, pid, pid);
	chrome__time(o->c, at_ns);
	scribe__text(&o->c->s, ",\"args\":{\"value\":");
	return 0;
}

static int on_queue(void *ctx, uint32_t stream, uint64_t at_ns, uint64_t n)
{
	struct gpu_out *o = ctx;
	const struct gpu_row_stream *s = &o->g->streams[stream];
	int err = put_counter(o, s->device, at_ns, s->name, "asked for and not done");

	if (err)
		return err;
	scribe__u64(&o->c->s, n);
	scribe__text(&o->c->s, "}");
	chrome__end(o->c);
	return o->c->s.err;
}

static int on_busy(void *ctx, uint32_t device, uint64_t at_ns, double share)
{
	struct gpu_out *o = ctx;
	int err = put_counter(o, device, at_ns, o->g->devices[device].name, "busy %");

	if (err)
		return err;
	scribe__double(&o->c->s, 100 * share);
	scribe__text(&o->c->s, "}");
	chrome__end(o->c);
	return o->c->s.err;
}

int chrome__gpu(struct chrome *c)
{
	struct gpu_out o = {.c = c};
	const struct gpu_sink sink = {&o, on_activity, on_call, on_queue, on_busy};
	int err = export_gpu__new(c->x, &o.g);

	if (err || !o.g)
		return err;
	err = export_gpu__walk(o.g, &sink);
	for (size_t i = 0; i < o.nrows; i++) {
		lanes__free(o.rows[i].lanes);
		free(o.rows[i].tids);
	}
	free(o.rows);
	free(o.pids);
	id_map__clear(&o.stream_at);
	id_map__clear(&o.caller_at);
	export_gpu__free(o.g);
	return err;
}

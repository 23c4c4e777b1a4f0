// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * html_gpu.c - the page's `gpu`: the summary document's (docs/json.md), its longest tables cut, and what
 * the GPU did beside each of the slowest spans, one by one.
 *
 *	names	 texts that the following lead to by their index
 *	windows	 {at, ns, thread: key of "threads" or -1, acts, calls, idle, *_left_out, untimed}: of each of
 *		 slowest.trees, then of the median; without any of these, one of the whole recording.
 *		 Starts are ns after the window's, before it too.
 *	acts	 [kind, device, stream, start, ns, name, call, own, asked, bytes, correlation, grid ..]
 *	calls	 [start, ns, name, waits, error]
 *	idle	 [device, start, ns, cause, row of the span or name]
 *
 * Indices are -1 where there is no such thing, -2 where it is not on the page.
 */
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"
#include "model/id_map.h"
#include "out/gpu.h"
#include "out/html_data.h"

static const struct {
	const char *key;
	size_t most;
} tables[] = {
    {"devices", 64}, {"kernels", 1000}, {"streams", 2000}, {"calls", 500}, {"spans", 1000}};
#define IDLE_MOST  60 /* causes of one device */
#define NAMES_MAX  4000
#define EVENTS_MAX 60000 /* of acts, calls and idle of all windows together */

enum { OF_KERNEL = 1, OF_CALL = 2 };

struct gpu_page {
	struct html_data *d;
	const struct gpu_summary *s;
	json_t *names;
	struct id_map name_at;
};

/* --- the summary -------------------------------------------------------------------------------- */

static json_int_t trim(json_t *array, size_t most)
{
	size_t n = json_array_size(array);

	for (size_t i = n; i > most; i--)
		json_array_remove(array, i - 1);
	return n > most ? (json_int_t)(n - most) : 0;
}

/* Text that is longer than a name may be, wherever it is. */
static void cut_text(struct html_data *d, json_t *v)
{
	const char *key;
	json_t *part;
	void *next;

	for (size_t i = 0; i < json_array_size(v); i++)
		cut_text(d, json_array_get(v, i));
	json_object_foreach_safe(v, next, key, part)
	{
		if (json_is_string(part) && json_string_length(part) > HTML_NAME_MAX)
			json_put(&d->doc, v, key, html_text(json_string_value(part)));
		else
			cut_text(d, part);
	}
}

/* The words that the plain report has for it. */
static void put_words(struct gpu_page *p, json_t *devices)
{
	char name[GPU_DEVICE_TEXT], why[GPU_IDLE_TEXT];

	for (size_t i = 0; i < json_array_size(devices); i++) {
		json_t *device = json_array_get(devices, i),
		       *idle = json_object_get(device, "idle");
		const struct gpu_device *v = &p->s->devices[i];

		json_put(&p->d->doc, device, "text", html_text(gpu_device__text(p->s, v, name)));
		json_put(&p->d->doc, device, "idle_left_out", json_integer(trim(idle, IDLE_MOST)));
		for (size_t k = 0; k < json_array_size(idle); k++)
			json_put(&p->d->doc, json_array_get(idle, k), "text",
				 html_text(gpu_idle__text(&v->idle[k], why)));
	}
}

static json_t *summary(struct gpu_page *p)
{
	json_t *o = json_gpu(&p->d->doc, p->s), *left = json_object();
	json_t *kernels = json_object_get(o, "kernels");

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		json_put(&p->d->doc, left, tables[i].key,
			 json_integer(trim(json_object_get(o, tables[i].key), tables[i].most)));
	json_put(&p->d->doc, o, "left_out", left);
	put_words(p, json_object_get(o, "devices"));
	for (size_t i = 0; i < json_array_size(kernels); i++)
		json_object_del(json_array_get(kernels, i), "symbol"); /* not shown */
	cut_text(p->d, o);
	return o;
}

/* --- names, places ------------------------------------------------------------------------------ */

/* Index into `names`. */
static json_int_t name_of(struct gpu_page *p, unsigned int of, uint32_t id)
{
	const char *text = trace_info__gpu_name(p->d->a->info, id);
	uint64_t key = (uint64_t)of << 32 | id;
	uint32_t at = id_map__get(&p->name_at, key);
	char *demangled;

	if (!text || at != ID_MAP_NONE)
		return text ? (json_int_t)at : -1;
	at = (uint32_t)json_array_size(p->names);
	if (at == NAMES_MAX)
		return -2;
	if (id_map__put(&p->name_at, key, at)) {
		p->d->doc.failed = true;
		return -1;
	}
	demangled = of == OF_KERNEL ? symbol_demangle(text) : NULL;
	json_append(&p->d->doc, p->names, html_text(demangled ? demangled : text));
	free(demangled);
	return at;
}

static json_int_t device_of(const struct gpu_page *p, uint32_t ring, uint32_t device)
{
	for (size_t i = 0; i < p->s->ndevices && i < tables[0].most; i++)
		if (p->s->devices[i].ring == ring && p->s->devices[i].device == device)
			return (json_int_t)i;
	return -2;
}

static json_int_t stream_of(const struct gpu_page *p, const struct gpu_window_act *a)
{
	for (size_t i = 0; i < p->s->nstreams && i < tables[2].most; i++) {
		const struct gpu_stream *s = &p->s->streams[i];

		if (s->ring == a->ring && s->generation == a->generation &&
		    s->device == a->device && s->context == a->context && s->stream == a->stream)
			return (json_int_t)i;
	}
	return -2;
}

/* --- windows ------------------------------------------------------------------------------------ */

/* Which of one kind are on the page. */
struct choice {
	const char *items; /* each begins with its start and end */
	size_t n, size;
	bool (*first)(const void *item); /* goes before longer ones; NULL: none does */
	json_int_t *place;		 /* on the page; -1: left out */
	size_t shown;
};

static uint64_t length(const struct choice *c, size_t i)
{
	const uint64_t *ns = (const void *)(c->items + i * c->size);

	return ns[1] - ns[0];
}

static int by_length(const void *pa, const void *pb, void *data)
{
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
	uint64_t na = length(data, a), nb = length(data, b);
	const struct choice *c = data;

	if (c->first && c->first(c->items + a * c->size) != c->first(c->items + b * c->size))
		return c->first(c->items + a * c->size) ? -1 : 1;
	if (na != nb)
		return na < nb ? 1 : -1;
	return a < b ? -1 : a > b;
}

static bool is_own(const void *item)
{
	return ((const struct gpu_window_act *)item)->own;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The longest, so many; they stay in their order. */
static bool choose(struct choice *c, size_t most)
{
	size_t *order = malloc((c->n + 1) * sizeof(*order));

	c->place = malloc((c->n + 1) * sizeof(*c->place));
	if (!order || !c->place) {
		free(order);
		return false;
	}
	for (size_t i = 0; i < c->n; i++) {
		order[i] = i;
		c->place[i] = c->n <= most ? 0 : -1;
	}
	if (c->n > most)
		qsort_r(order, c->n, sizeof(*order), by_length, c);
	for (size_t i = 0; i < c->n && i < most; i++)
		c->place[order[i]] = 0;
	for (size_t i = 0; i < c->n; i++)
		if (!c->place[i])
			c->place[i] = (json_int_t)c->shown++;
	free(order);
	return true;
}

/* Times in a window are near each other: no double is too small. */
static json_t *since(const struct gpu_window *w, uint64_t ns)
{
	return json_integer((json_int_t)(ns - w->start_ns));
}

static json_t *act(struct gpu_page *p, const struct gpu_window *w, const struct gpu_window_act *a,
		   const struct choice *calls)
{
	struct json_doc *doc = &p->d->doc;
	json_t *o = json_array();
	static const char *const kinds[] = {[QBPF_RING_KERNEL] = "kernel",
					    [QBPF_RING_COPY] = "copy",
					    [QBPF_RING_SET] = "memset",
					    [QBPF_RING_GRAPH] = "graph"};
	bool copies = a->type == QBPF_RING_COPY || a->type == QBPF_RING_SET;

	json_append(doc, o,
		    json_string(copies ? gpu_direction_name(a->direction) : kinds[a->type]));
	json_append(doc, o, json_integer(device_of(p, a->ring, a->device)));
	json_append(doc, o, json_integer(stream_of(p, a)));
	json_append(doc, o, since(w, a->start_ns));
	json_append(doc, o, html_count(a->end_ns - a->start_ns));
	json_append(doc, o,
		    json_integer(a->type == QBPF_RING_KERNEL  ? name_of(p, OF_KERNEL, a->name)
				 : a->type == QBPF_RING_GRAPH ? (json_int_t)a->name
							      : -1));
	json_append(doc, o, json_integer(a->call == GPU_WINDOW_NONE ? -1 : calls->place[a->call]));
	json_append(doc, o, json_integer(a->own));
	json_append(doc, o, since(w, a->asked_ns));
	json_append(doc, o, html_count(a->bytes));
	json_append(doc, o, json_integer(a->correlation));
	for (int i = 0; i < 3 && a->type == QBPF_RING_KERNEL; i++)
		json_append(doc, o, json_integer(a->grid[i]));
	for (int i = 0; i < 3 && a->type == QBPF_RING_KERNEL; i++)
		json_append(doc, o, json_integer(a->block[i]));
	return o;
}

static json_t *call(struct gpu_page *p, const struct gpu_window *w, const struct gpu_window_call *c)
{
	struct json_doc *doc = &p->d->doc;
	json_t *o = json_array();

	json_append(doc, o, since(w, c->start_ns));
	json_append(doc, o, html_count(c->end_ns - c->start_ns));
	json_append(doc, o, json_integer(name_of(p, OF_CALL, c->name)));
	json_append(doc, o, json_integer(c->waits));
	json_append(doc, o, json_integer(c->error));
	return o;
}

/* Why: of a span its row. */
static json_int_t late(struct gpu_page *p, const struct gpu_window_idle *i)
{
	int32_t row;

	if (i->cause != GPU_IDLE_HOST)
		return name_of(p, OF_CALL, i->name);
	row = html_data__row(p->d, i->name);
	return !i->name ? -1 : row == HTML_NO_ROW ? -2 : row;
}

static json_t *idle(struct gpu_page *p, const struct gpu_window *w, const struct gpu_window_idle *i)
{
	struct json_doc *doc = &p->d->doc;
	json_t *o = json_array();

	json_append(doc, o, json_integer(device_of(p, i->ring, i->device)));
	json_append(doc, o, since(w, i->start_ns));
	json_append(doc, o, html_count(i->end_ns - i->start_ns));
	json_append(doc, o, json_integer(i->cause));
	json_append(doc, o, json_integer(late(p, i)));
	return o;
}

static int32_t thread_of(const struct html_data *d, const struct gpu_window *w)
{
	const struct trace_info *info = d->a->info;

	for (size_t i = 0; w->tid && i < info->nthreads; i++)
		if (info->threads[i].tgid == w->tgid && info->threads[i].tid == w->tid)
			return (int32_t)i;
	return -1;
}

/* `room`: of all kinds together. */
static json_t *window(struct gpu_page *p, const struct gpu_window *w, size_t *room)
{
	struct choice acts = {(const void *)w->acts, w->nacts, sizeof(*w->acts), is_own, NULL, 0};
	struct choice calls = {(const void *)w->calls, w->ncalls, sizeof(*w->calls), NULL, NULL, 0};
	struct choice gaps = {(const void *)w->idle, w->nidle, sizeof(*w->idle), NULL, NULL, 0};
	json_t *o = json_object(), *list[3] = {json_array(), json_array(), json_array()};
	size_t ncalls = least(w->ncalls, *room / 3), ngaps = least(w->nidle, *room / 3);
	struct json_doc *doc = &p->d->doc;

	if (!choose(&acts, *room - ncalls - ngaps) || !choose(&calls, ncalls) ||
	    !choose(&gaps, ngaps)) {
		doc->failed = true;
		acts.n = calls.n = gaps.n = 0;
	}
	for (size_t i = 0; i < acts.n; i++)
		if (acts.place[i] >= 0)
			json_append(doc, list[0], act(p, w, &w->acts[i], &calls));
	for (size_t i = 0; i < calls.n; i++)
		if (calls.place[i] >= 0)
			json_append(doc, list[1], call(p, w, &w->calls[i]));
	for (size_t i = 0; i < gaps.n; i++)
		if (gaps.place[i] >= 0)
			json_append(doc, list[2], idle(p, w, &w->idle[i]));
	*room = acts.shown + calls.shown + gaps.shown;
	json_put(doc, o, "at", html_time(p->d, w->start_ns));
	json_put(doc, o, "ns", html_count(w->end_ns - w->start_ns));
	json_put(doc, o, "thread", json_integer(thread_of(p->d, w)));
	json_put(doc, o, "acts", list[0]);
	json_put(doc, o, "calls", list[1]);
	json_put(doc, o, "idle", list[2]);
	json_put(doc, o, "acts_left_out", html_count(w->acts_left_out + (w->nacts - acts.shown)));
	json_put(doc, o, "calls_left_out",
		 html_count(w->calls_left_out + (w->ncalls - calls.shown)));
	json_put(doc, o, "idle_left_out", html_count(w->idle_left_out + (w->nidle - gaps.shown)));
	json_put(doc, o, "untimed", html_count(w->untimed));
	free(acts.place);
	free(calls.place);
	free(gaps.place);
	return o;
}

void html_data__gpu(struct html_data *d)
{
	struct gpu_page p = {.d = d, .s = d->a->gpu};
	size_t n = gpu_windows__count(d->a->gpu_windows), left = EVENTS_MAX, trees;
	json_t *o, *windows, *slowest = json_object_get(d->doc.root, "slowest");

	if (!p.s)
		return;
	o = summary(&p);
	windows = json_array();
	p.names = json_array();
	trees = json_array_size(json_object_get(slowest, "trees"));
	for (size_t i = 0; i < n; i++) {
		/* Each has its share of what is left; trees without room on the page have none. */
		size_t room = left / (n - i);
		bool median = i + 1 == n && json_object_get(slowest, "median");

		if (i >= trees && !median && n > 1)
			continue;
		json_append(&d->doc, windows,
			    window(&p, gpu_windows__get(d->a->gpu_windows, i), &room));
		left -= room;
	}
	json_put(&d->doc, o, "names", p.names);
	json_put(&d->doc, o, "windows", windows);
	json_put(&d->doc, d->doc.root, "gpu", o);
	id_map__clear(&p.name_at);
}

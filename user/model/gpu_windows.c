// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_windows.c - a visitor of the model that keeps what lies in some windows of time. */
#include "model/gpu_windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What all that is kept begins with. */
struct stretch {
	uint64_t start_ns, end_ns;
};

/* The longest of what came. Once it is full a heap, the shortest first. */
struct longest {
	char *items;
	size_t n, cap, size;
	uint64_t left_out;
};

enum { OWN, OTHERS, CALLS, IDLE, KINDS };
static const size_t sizes[KINDS] = {sizeof(struct gpu_window_act), sizeof(struct gpu_window_act),
				    sizeof(struct gpu_window_call), sizeof(struct gpu_window_idle)};
#define SIZE_LARGEST sizeof(struct gpu_window_act)

struct window {
	struct gpu_window told;
	struct longest kept[KINDS];
};

struct gpu_windows {
	struct window *list;
	size_t n, cap, most;
	uint64_t from_ns, to_ns; /* of all of them */
	struct gpu_visitor visitor;
};

static uint64_t length(const struct longest *l, size_t i)
{
	const struct stretch *s = (const void *)(l->items + i * l->size);

	return s->end_ns - s->start_ns;
}

static void swap(struct longest *l, size_t i, size_t k)
{
	char x[SIZE_LARGEST];

	memcpy(x, l->items + i * l->size, l->size);
	memcpy(l->items + i * l->size, l->items + k * l->size, l->size);
	memcpy(l->items + k * l->size, x, l->size);
}

static void sift_down(struct longest *l, size_t i)
{
	size_t child;

	for (; (child = 2 * i + 1) < l->n; i = child) {
		if (child + 1 < l->n && length(l, child + 1) < length(l, child))
			child++;
		if (length(l, i) <= length(l, child))
			break;
		swap(l, i, child);
	}
}

static int keep(struct longest *l, size_t most, const void *item)
{
	const struct stretch *s = item;

	if (l->n == most) {
		l->left_out++;
		if (!most || s->end_ns - s->start_ns <= length(l, 0))
			return 0;
		memcpy(l->items, item, l->size);
		sift_down(l, 0);
		return 0;
	}
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		char *items = reallocarray(l->items, cap, l->size);

		if (!items)
			return -ENOMEM;
		l->items = items;
		l->cap = cap;
	}
	memcpy(l->items + l->n++ * l->size, item, l->size);
	for (size_t i = most / 2; l->n == most && i-- > 0;)
		sift_down(l, i);
	return 0;
}

static bool overlaps(const struct gpu_window *w, uint64_t start_ns, uint64_t end_ns)
{
	return start_ns <= w->end_ns && end_ns >= w->start_ns;
}

static bool of_thread(const struct gpu_window *w, uint32_t tgid, uint32_t tid)
{
	return !w->tid || (w->tgid == tgid && w->tid == tid);
}

/* --- what comes --------------------------------------------------------------------------------- */

static void describe(struct gpu_window_act *a, const struct qbpf_ring_record *rec)
{
	a->type = (uint8_t)rec->type;
	if (rec->type == QBPF_RING_KERNEL) {
		const struct qbpf_ring_kernel *k = (const void *)rec;

		a->name = k->name;
		a->device = k->device;
		a->context = k->context;
		a->stream = k->stream;
		a->correlation = k->correlation;
		memcpy(a->grid, k->grid, sizeof(a->grid));
		memcpy(a->block, k->block, sizeof(a->block));
	} else if (rec->type == QBPF_RING_COPY) {
		const struct qbpf_ring_copy *c = (const void *)rec;

		a->direction = (uint8_t)gpu_direction_of(c->kind);
		a->device = c->device;
		a->context = c->context;
		a->stream = c->stream;
		a->correlation = c->correlation;
		a->bytes = c->bytes;
	} else if (rec->type == QBPF_RING_SET) {
		const struct qbpf_ring_set *s = (const void *)rec;

		a->direction = GPU_MEMSET;
		a->device = s->device;
		a->context = s->context;
		a->stream = s->stream;
		a->correlation = s->correlation;
		a->bytes = s->bytes;
	} else {
		const struct qbpf_ring_graph *g = (const void *)rec;

		a->name = g->graph;
		a->device = g->device;
		a->context = g->context;
		a->stream = g->stream;
		a->correlation = g->correlation;
	}
}

static int on_activity(void *ctx, const struct gpu_seen *s)
{
	struct gpu_windows *all = ctx;
	struct gpu_window_act a = {.start_ns = s->start_ns,
				   .end_ns = s->end_ns,
				   .asked_ns = s->asked_ns,
				   .id = s->id,
				   .ring = s->ring,
				   .generation = s->generation,
				   .call = GPU_WINDOW_NONE};
	int err = 0;

	if (s->asked_ns > all->to_ns || (!s->untimed && s->end_ns < all->from_ns))
		return 0;
	describe(&a, s->rec);
	for (size_t i = 0; i < all->n && !err; i++) {
		struct window *w = &all->list[i];

		a.own = (s->has_call || !w->told.tid) && s->asked_ns >= w->told.start_ns &&
			s->asked_ns <= w->told.end_ns && of_thread(&w->told, s->tgid, s->tid);
		if (s->untimed)
			w->told.untimed += a.own;
		else if (a.own || overlaps(&w->told, a.start_ns, a.end_ns))
			err = keep(&w->kept[a.own ? OWN : OTHERS], all->most, &a);
	}
	return err;
}

static int on_call(void *ctx, const struct gpu_seen_call *s)
{
	const struct gpu_window_call c = {.start_ns = s->start_ns,
					  .end_ns = s->end_ns,
					  .first_id = s->first_id,
					  .activities = s->activities,
					  .name = s->name,
					  .error = s->error,
					  .waits = s->waits};
	struct gpu_windows *all = ctx;
	int err = 0;

	if (!s->start_ns || s->end_ns < s->start_ns)
		return 0;
	for (size_t i = 0; i < all->n && !err; i++) {
		struct window *w = &all->list[i];

		if (of_thread(&w->told, s->tgid, s->tid) &&
		    overlaps(&w->told, c.start_ns, c.end_ns))
			err = keep(&w->kept[CALLS], all->most, &c);
	}
	return err;
}

static int on_idle(void *ctx, const struct gpu_seen_idle *s)
{
	const struct gpu_window_idle v = {.start_ns = s->start_ns,
					  .end_ns = s->end_ns,
					  .ring = s->ring,
					  .device = s->device,
					  .name = s->name,
					  .cause = s->cause};
	struct gpu_windows *all = ctx;
	int err = 0;

	if (s->start_ns > all->to_ns || s->end_ns < all->from_ns)
		return 0;
	for (size_t i = 0; i < all->n && !err; i++)
		if (overlaps(&all->list[i].told, v.start_ns, v.end_ns))
			err = keep(&all->list[i].kept[IDLE], all->most, &v);
	return err;
}

static int on_settled(void *ctx, uint64_t to_ns)
{
	(void)ctx;
	(void)to_ns;
	return 0;
}

/* --- put into order ----------------------------------------------------------------------------- */

static int by_start(const void *pa, const void *pb)
{
	const struct stretch *a = pa, *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	/* The outer one first. */
	return a->end_ns > b->end_ns ? -1 : a->end_ns < b->end_ns;
}

static int by_id(const void *pa, const void *pb)
{
	const struct gpu_window_act *const *a = pa, *const *b = pb;

	return (*a)->id < (*b)->id ? -1 : (*a)->id > (*b)->id;
}

/* Each activity's call, where both were kept. */
static int link_calls(struct gpu_window *w)
{
	struct gpu_window_act **order = calloc(w->nacts + 1, sizeof(struct gpu_window_act *));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < w->nacts; i++)
		order[i] = &w->acts[i];
	qsort(order, w->nacts, sizeof(*order), by_id);
	for (size_t c = 0; c < w->ncalls; c++) {
		const struct gpu_window_call *k = &w->calls[c];
		size_t lo = 0, hi = w->nacts;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (order[mid]->id < k->first_id)
				lo = mid + 1;
			else
				hi = mid;
		}
		for (; lo < w->nacts && order[lo]->id - k->first_id < k->activities; lo++)
			order[lo]->call = (uint32_t)c;
	}
	free(order);
	return 0;
}

/* The others' behind its own. */
static int join_acts(struct longest *own, struct longest *others)
{
	size_t n = own->n + others->n;
	char *items = reallocarray(own->items, n + 1, own->size);

	if (!items)
		return -ENOMEM;
	if (others->n)
		memcpy(items + own->n * own->size, others->items, others->n * own->size);
	own->items = items;
	own->n = n;
	own->left_out += others->left_out;
	free(others->items);
	*others = (struct longest){.size = own->size};
	return 0;
}

static int finish_window(struct window *v)
{
	struct longest *k = v->kept;
	struct gpu_window *w = &v->told;

	if (join_acts(&k[OWN], &k[OTHERS]))
		return -ENOMEM;
	for (size_t kind = 0; kind < KINDS; kind++)
		if (k[kind].n)
			qsort(k[kind].items, k[kind].n, k[kind].size, by_start);
	w->acts = (void *)k[OWN].items;
	w->calls = (void *)k[CALLS].items;
	w->idle = (void *)k[IDLE].items;
	w->nacts = k[OWN].n;
	w->ncalls = k[CALLS].n;
	w->nidle = k[IDLE].n;
	w->acts_left_out = k[OWN].left_out;
	w->calls_left_out = k[CALLS].left_out;
	w->idle_left_out = k[IDLE].left_out;
	return link_calls(w);
}

int gpu_windows__finish(struct gpu_windows *all)
{
	int err = 0;

	for (size_t i = 0; i < all->n && !err; i++)
		err = finish_window(&all->list[i]);
	return err;
}

/* --- its life ----------------------------------------------------------------------------------- */

struct gpu_windows *gpu_windows__new(size_t most)
{
	struct gpu_windows *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->most = most;
	w->from_ns = UINT64_MAX;
	w->visitor = (struct gpu_visitor){.ctx = w,
					  .activity = on_activity,
					  .call = on_call,
					  .idle = on_idle,
					  .settled = on_settled};
	return w;
}

void gpu_windows__free(struct gpu_windows *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		for (size_t kind = 0; kind < KINDS; kind++)
			free(w->list[i].kept[kind].items);
	free(w->list);
	free(w);
}

int gpu_windows__add(struct gpu_windows *w, uint64_t start_ns, uint64_t end_ns, uint32_t tgid,
		     uint32_t tid)
{
	struct window *new;

	if (w->n == w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		struct window *list = reallocarray(w->list, cap, sizeof(*list));

		if (!list)
			return -ENOMEM;
		w->list = list;
		w->cap = cap;
	}
	new = &w->list[w->n++];
	*new = (struct window){
	    .told = {.start_ns = start_ns, .end_ns = end_ns, .tgid = tgid, .tid = tid}};
	for (size_t kind = 0; kind < KINDS; kind++)
		new->kept[kind].size = sizes[kind];
	w->from_ns = start_ns < w->from_ns ? start_ns : w->from_ns;
	w->to_ns = end_ns > w->to_ns ? end_ns : w->to_ns;
	return 0;
}

const struct gpu_visitor *gpu_windows__visitor(struct gpu_windows *w)
{
	return &w->visitor;
}

size_t gpu_windows__count(const struct gpu_windows *w)
{
	return w ? w->n : 0;
}

const struct gpu_window *gpu_windows__get(const struct gpu_windows *w, size_t i)
{
	return &w->list[i].told;
}

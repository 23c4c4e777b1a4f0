// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_device.c - what each device did from the last settling to this one: busy, computing, copying,
 * both, or idle, and what it was idle for.
 *
 * A gap ends when something begins. The time of the gap before that was asked for is the host's: what
 * its thread did then is the cause, piece by piece. The time after is the launch's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

#define WAIT_FOR_EVENT 2 /* CUpti_ActivitySynchronizationType: a stream is told to wait */
#define PIECES_MAX     32
#define STEPS_MAX      4096 /* calls of a thread that one gap looks at */
#define IDLE_ROWS_MAX  256

struct interval {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* sum of the intervals before this one */
	uint32_t act;	    /* the first of it */
};

/* Unions of the times of activities, ascending. */
struct unions {
	struct interval *busy, *compute, *copy;
	size_t nbusy, ncompute, ncopy;
};

struct stream_wait {
	uint32_t ring, context, stream;
	uint64_t start_ns;
};

struct sweep {
	struct gpu_join *j;
	struct gpu_device_row *d;
	struct unions u;
	struct stream_wait *waits;
	size_t nwaits;
	/* one gap */
	struct gpu_idle_row pieces[PIECES_MAX];
	size_t npieces;
	int err;
};

/* --- unions ------------------------------------------------------------------------------------- */

static void put(struct interval *list, size_t *n, uint64_t from, uint64_t to, uint32_t act)
{
	struct interval *last = *n ? &list[*n - 1] : NULL;

	/* What begins at the end of the last prolongs it. */
	if (last && from <= last->end_ns) {
		if (to > last->end_ns)
			last->end_ns = to;
		return;
	}
	list[*n] = (struct interval){
	    from, to, last ? last->before_ns + (last->end_ns - last->start_ns) : 0, act};
	++*n;
}

static uint64_t sum_of(const struct interval *list, size_t n)
{
	return n ? list[n - 1].before_ns + (list[n - 1].end_ns - list[n - 1].start_ns) : 0;
}

/* How much of what is before ns is covered. */
static uint64_t covered_by(const struct interval *list, size_t n, uint64_t ns)
{
	size_t lo = 0, hi = n;
	const struct interval *v;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (list[mid].start_ns < ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return 0;
	v = &list[lo - 1];
	return v->before_ns + ((ns < v->end_ns ? ns : v->end_ns) - v->start_ns);
}

static uint64_t covered(const struct interval *list, size_t n, uint64_t from, uint64_t to)
{
	return covered_by(list, n, to) - covered_by(list, n, from);
}

/* --- causes ------------------------------------------------------------------------------------- */

static void add_piece(struct sweep *s, enum gpu_cause cause, uint32_t name, uint64_t from,
		      uint64_t to)
{
	struct gpu_seen_idle seen = {from, to, s->d->ring, s->d->device, name, (uint8_t)cause};
	size_t i = 0;

	if (from >= to || s->err)
		return;
	s->err = gpu_visit__idle(s->j->g, &seen);
	while (i < s->npieces && (s->pieces[i].cause != cause || s->pieces[i].name != name))
		i++;
	if (i == PIECES_MAX) { /* a gap of that many causes: by kind alone, in what is there */
		for (i = 0; i < PIECES_MAX - 1 && s->pieces[i].cause != cause; i++)
			;
	}
	if (i == s->npieces)
		s->pieces[s->npieces++] = (struct gpu_idle_row){.cause = cause, .name = name};
	s->pieces[i].total_ns += to - from;
}

static uint64_t between(uint64_t ns, uint64_t low, uint64_t high)
{
	return ns < low ? low : ns > high ? high : ns;
}

/* As far as spans were seen at the time. */
static void in_no_span(struct sweep *s, uint64_t from, uint64_t to)
{
	uint64_t begin = between(s->j->g->probes_from_ns, from, to);
	uint64_t end = between(s->j->g->probes_to_ns, begin, to);

	add_piece(s, GPU_IDLE_UNKNOWN, 0, from, begin);
	add_piece(s, GPU_IDLE_HOST, 0, begin, end);
	add_piece(s, GPU_IDLE_UNKNOWN, 0, end, to);
}

/* The thread was in none of the API's calls: in which span? */
static void in_spans(struct sweep *s, uint64_t key, uint64_t from, uint64_t to)
{
	const struct gpu_join *j = s->j;
	size_t lo = gpu_spans__after(j, key, from);

	while (from < to) {
		const struct gpu_segment *now = lo ? &j->segments[lo - 1] : NULL;
		uint64_t until = to;

		if (lo < j->nsegments && j->segments[lo].key == key && j->segments[lo].from_ns < to)
			until = j->segments[lo].from_ns;
		if (now && now->key == key && now->span)
			add_piece(s, GPU_IDLE_HOST, now->span, from, until);
		else
			in_no_span(s, from, until);
		from = until;
		lo++;
	}
}

/* What the thread of call number c did between from and to, before that call. */
static void on_host(struct sweep *s, uint32_t c, uint64_t from, uint64_t to)
{
	const struct gpu *g = s->j->g;
	uint64_t key = gpu_thread_key(g->calls[c].tgid, g->calls[c].tid);

	for (uint32_t i = c, steps = 0; i-- > 0 && to > from && steps < STEPS_MAX; steps++) {
		const struct gpu_api *k = &g->calls[i];
		uint64_t begin, end;

		if (gpu_thread_key(k->tgid, k->tid) != key)
			break;
		if (k->outer != i)
			continue;
		if (k->end_ns <= from)
			break;
		begin = k->start_ns > from ? k->start_ns : from;
		end = k->end_ns < to ? k->end_ns : to;
		if (begin >= end)
			continue;
		in_spans(s, key, end, to);
		add_piece(s, k->waits ? GPU_IDLE_SYNC : GPU_IDLE_CALL, k->name, begin, end);
		to = begin;
	}
	in_spans(s, key, from, to);
}

static int compare_waits(const void *pa, const void *pb)
{
	const struct stream_wait *a = pa, *b = pb;

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Was the activity's stream told to wait, since the activity before it was asked for? */
static bool depends(const struct sweep *s, const struct gpu_act *a)
{
	const struct gpu_join *j = s->j;
	const struct gpu *g = j->g;
	uint64_t asked = gpu_asked_ns(g, a), before = 0;
	struct stream_wait key = {a->ring, a->context, a->stream, asked + 1};
	size_t lo = 0, hi = s->nwaits;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_waits(&s->waits[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || s->waits[lo - 1].ring != a->ring || s->waits[lo - 1].context != a->context ||
	    s->waits[lo - 1].stream != a->stream)
		return false;
	/* The last wait before it: was there an activity in between? */
	before = s->waits[lo - 1].start_ns;
	lo = 0;
	hi = j->nby_stream;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct gpu_act *b = &g->acts[j->by_stream[mid]];

		if (b->stream_row < a->stream_row ||
		    (b->stream_row == a->stream_row && gpu_asked_ns(g, b) < asked))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return true;
	a = &g->acts[j->by_stream[lo - 1]];
	return a->stream_row != g->acts[j->by_stream[lo]].stream_row || gpu_asked_ns(g, a) < before;
}

static void keep_pieces(struct sweep *s)
{
	struct gpu_device_row *d = s->d;

	for (size_t i = 0; i < s->npieces && !s->err; i++) {
		const struct gpu_idle_row *p = &s->pieces[i];
		uint32_t name = d->nidle < IDLE_ROWS_MAX ? p->name : 0;
		size_t at = 0;

		while (at < d->nidle && (d->idle[at].cause != p->cause ||
					 (d->idle[at].name != p->name && d->idle[at].name != name)))
			at++;
		if (at == d->nidle) {
			s->err = gpu_grow(&d->idle, d->nidle, &d->idle_cap, sizeof(*d->idle));
			if (s->err)
				return;
			d->idle[d->nidle++] =
			    (struct gpu_idle_row){.cause = p->cause, .name = name};
		}
		d->idle[at].gaps++;
		d->idle[at].total_ns += p->total_ns;
		if (p->total_ns > d->idle[at].max_ns)
			d->idle[at].max_ns = p->total_ns;
	}
}

static void gap(struct sweep *s, uint64_t from, uint64_t to, uint32_t act)
{
	const struct gpu *g = s->j->g;
	const struct gpu_act *a = &g->acts[act];
	uint64_t asked;

	s->npieces = 0;
	s->d->idle_ns += to - from;
	if (a->call == GPU_NONE) {
		add_piece(s, GPU_IDLE_UNKNOWN, 0, from, to);
	} else {
		asked = g->calls[a->call].start_ns;
		asked = asked < from ? from : asked > to ? to : asked;
		on_host(s, a->call, from, asked);
		add_piece(s, depends(s, a) ? GPU_IDLE_DEPENDENCY : GPU_IDLE_LAUNCH, 0, asked, to);
	}
	keep_pieces(s);
}

/* --- one device --------------------------------------------------------------------------------- */

static void make_unions(struct sweep *s, size_t first, size_t last, uint64_t from, uint64_t to)
{
	const struct gpu *g = s->j->g;
	struct unions *u = &s->u;

	u->nbusy = u->ncompute = u->ncopy = 0;
	for (size_t i = first; i < last; i++) {
		const struct gpu_act *a = &g->acts[i];
		uint64_t start = a->start_ns > from ? a->start_ns : from;
		uint64_t end = a->end_ns < to ? a->end_ns : to;

		if (a->untimed || start > end || a->device_row == UINT16_MAX)
			continue;
		put(u->busy, &u->nbusy, start, end, (uint32_t)i);
		if (gpu_is_compute(a))
			put(u->compute, &u->ncompute, start, end, (uint32_t)i);
		else
			put(u->copy, &u->ncopy, start, end, (uint32_t)i);
	}
}

static void sweep_device(struct sweep *s, size_t first, size_t last, uint64_t from, uint64_t to)
{
	struct gpu *g = s->j->g;
	struct gpu_device_row *d = s->d;
	struct unions *u = &s->u;

	make_unions(s, first, last, from, to);
	d->compute_ns += sum_of(u->compute, u->ncompute);
	d->copy_ns += sum_of(u->copy, u->ncopy);
	d->busy_ns += sum_of(u->busy, u->nbusy);
	for (size_t i = 0; i < u->ncopy; i++)
		d->overlap_ns +=
		    covered(u->compute, u->ncompute, u->copy[i].start_ns, u->copy[i].end_ns);
	for (size_t i = 0; i < u->nbusy; i++) {
		const struct interval *v = &u->busy[i];

		if (!d->from_ns)
			d->from_ns = v->start_ns;
		else if (v->start_ns > d->to_ns)
			gap(s, d->to_ns, v->start_ns, v->act);
		d->to_ns = v->end_ns;
	}
	for (size_t i = first; i < last; i++) {
		const struct gpu_act *a = &g->acts[i];
		uint64_t start = a->start_ns > from ? a->start_ns : from;
		uint64_t end = a->end_ns < to ? a->end_ns : to;

		if (a->untimed)
			continue;
		d->activities += a->settled;
		d->early +=
		    a->settled && a->call != GPU_NONE && a->start_ns < g->calls[a->call].start_ns;
		if (a->type == QBPF_RING_COPY && start < end)
			g->copies[a->row].alone_ns +=
			    end - start - covered(u->compute, u->ncompute, start, end);
	}
}

static int find_waits(struct sweep *s)
{
	const struct gpu *g = s->j->g;

	s->waits = malloc((g->nwaits + 1) * sizeof(*s->waits));
	if (!s->waits)
		return -ENOMEM;
	for (size_t i = 0; i < g->nwaits; i++) {
		const struct gpu_wait *w = &g->waits[i];

		if (w->kind == WAIT_FOR_EVENT)
			s->waits[s->nwaits++] =
			    (struct stream_wait){w->ring, w->context, w->stream, w->start_ns};
	}
	qsort(s->waits, s->nwaits, sizeof(*s->waits), compare_waits);
	return 0;
}

int gpu_devices__sweep(struct gpu_join *j)
{
	struct gpu *g = j->g;
	struct sweep s = {.j = j};
	struct interval *room = malloc(3 * (g->nacts + 1) * sizeof(*room));
	size_t first = 0, last;

	s.err = room ? find_waits(&s) : -ENOMEM;
	s.u.busy = room;
	s.u.compute = room + g->nacts + 1;
	s.u.copy = room + 2 * (g->nacts + 1);
	for (; first < g->nacts && !s.err; first = last) {
		const struct gpu_act *a = &g->acts[first];
		uint32_t row = gpu_row__device(g, a->ring, a->device);

		for (last = first; last < g->nacts && g->acts[last].ring == a->ring &&
				   g->acts[last].device == a->device;)
			last++;
		if (row == GPU_NONE)
			continue;
		s.d = &g->devices[row];
		sweep_device(&s, first, last, g->settled_ns, j->final ? UINT64_MAX : j->to_ns);
	}
	free(s.waits);
	free(room);
	return s.err;
}

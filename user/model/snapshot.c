/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * snapshot.c - the life of a snapshot, the difference of two, and the figures that follow
 * from one: rates, overhead, losses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot.h"

struct snapshot *snapshot__new(void)
{
	return calloc(1, sizeof(struct snapshot));
}

static void notes__free(struct snap_site_note *notes, size_t n)
{
	if (!notes)
		return;
	for (size_t i = 0; i < n; i++) {
		free(notes[i].site);
		free(notes[i].reason);
	}
	free(notes);
}

void snapshot__free(struct snapshot *s)
{
	if (!s)
		return;
	free(s->pids);
	free(s->comm);
	free(s->exe);
	free(s->kernel);
	free(s->cpu);
	free(s->clocksource);
	free(s->recording);
	free(s->recording_fault);
	cuda_calls__free(s->cuda);
	gpu_summary__put(s->gpu);
	for (size_t i = 0; s->spans && i < s->nspans; i++) {
		free(s->spans[i].name);
		hist__free(s->spans[i].hist);
	}
	free(s->spans);
	free(s->nodes);
	notes__free(s->refused, s->nrefused);
	notes__free(s->failed, s->nfailed);
	for (size_t i = 0; s->notes && i < s->nnotes; i++)
		free(s->notes[i]);
	free(s->notes);
	free(s);
}

/* Copies that keep NULL as NULL and note a lack of memory in *failed. */
static char *copy_string(const char *s, bool *failed)
{
	char *c = s ? strdup(s) : NULL;

	*failed |= s && !c;
	return c;
}

static void *copy_array(const void *a, size_t n, size_t size, bool *failed)
{
	void *c;

	if (!a || !n)
		return NULL;
	c = malloc(n * size);
	if (c)
		memcpy(c, a, n * size);
	*failed |= !c;
	return c;
}

static struct snap_site_note *copy_notes(const struct snap_site_note *notes, size_t n, bool *failed)
{
	struct snap_site_note *c;

	if (!n)
		return NULL;
	c = calloc(n, sizeof(*c));
	if (!c) {
		*failed = true;
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		c[i].site = copy_string(notes[i].site, failed);
		c[i].reason = copy_string(notes[i].reason, failed);
	}
	return c;
}

static struct snap_span *copy_spans(const struct snap_span *spans, size_t n, bool *failed)
{
	struct snap_span *c = copy_array(spans, n, sizeof(*c), failed);

	if (!c)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		c[i].name = copy_string(spans[i].name, failed);
		c[i].hist = spans[i].hist ? hist__clone(spans[i].hist) : NULL;
		*failed |= !c[i].hist;
	}
	return c;
}

struct snapshot *snapshot__clone(const struct snapshot *s)
{
	struct snapshot *c = snapshot__new();
	bool failed = false;

	if (!c)
		return NULL;
	*c = *s;
	c->pids = copy_array(s->pids, s->npids, sizeof(*s->pids), &failed);
	c->comm = copy_string(s->comm, &failed);
	c->exe = copy_string(s->exe, &failed);
	c->kernel = copy_string(s->kernel, &failed);
	c->cpu = copy_string(s->cpu, &failed);
	c->clocksource = copy_string(s->clocksource, &failed);
	c->recording = copy_string(s->recording, &failed);
	c->recording_fault = copy_string(s->recording_fault, &failed);
	c->gpu = gpu_summary__get(s->gpu);
	c->cuda = s->cuda ? cuda_calls__clone(s->cuda) : NULL;
	failed |= s->cuda && !c->cuda;
	c->spans = copy_spans(s->spans, s->nspans, &failed);
	c->nodes = copy_array(s->nodes, s->nnodes, sizeof(*s->nodes), &failed);
	c->refused = copy_notes(s->refused, s->nrefused, &failed);
	c->failed = copy_notes(s->failed, s->nfailed, &failed);
	c->notes = s->nnotes ? calloc(s->nnotes, sizeof(*c->notes)) : NULL;
	failed |= s->nnotes && !c->notes;
	for (size_t i = 0; c->notes && i < s->nnotes; i++)
		c->notes[i] = copy_string(s->notes[i], &failed);
	if (failed) {
		snapshot__free(c);
		return NULL;
	}
	return c;
}

static uint64_t sub_floor(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What went wrong in a span: the counters that only grow. */
#define SPAN_COUNTERS(X)                                                                           \
	X(abandoned)                                                                               \
	X(orphan_ends)                                                                             \
	X(depth_overflow)                                                                          \
	X(node_overflow)                                                                           \
	X(hist_overflow)                                                                           \
	X(no_storage)                                                                              \
	X(unreadable)                                                                              \
	X(key_overflow)                                                                            \
	X(key_restarts)                                                                            \
	X(key_timeouts)                                                                            \
	X(ret_muted)

static int span_since(struct snap_span *s, const struct snap_span *base)
{
#define SUBTRACT(field) s->field = sub_floor(s->field, base->field);
	SPAN_COUNTERS(SUBTRACT)
#undef SUBTRACT
	return hist__subtract(s->hist, base->hist);
}

/*
 * Sums subtract; a minimum or maximum of the interval is known only when it is a new record,
 * when nothing came before, or when there was one call. Else it is SNAP_UNKNOWN.
 */
static void node_since(struct snap_node *n, const struct snap_node *base)
{
	bool new_min = n->min_ns<base->min_ns, new_max = n->max_ns> base->max_ns;

	if (!base->count)
		return;
	n->count = sub_floor(n->count, base->count);
	n->total_ns = sub_floor(n->total_ns, base->total_ns);
	n->self_ns = sub_floor(n->self_ns, base->self_ns);
	if (n->count == 0) {
		n->min_ns = n->max_ns = 0;
	} else if (n->count == 1) {
		n->min_ns = n->max_ns = n->total_ns;
	} else {
		n->min_ns = new_min ? n->min_ns : SNAP_UNKNOWN;
		n->max_ns = new_max ? n->max_ns : SNAP_UNKNOWN;
	}
}

static int gpu_since(struct snapshot *d, const struct snapshot *base)
{
	struct gpu_summary *since = gpu_summary__since(d->gpu, base->gpu);

	if (!since)
		return -ENOMEM;
	gpu_summary__put(d->gpu);
	d->gpu = since;
	return 0;
}

struct snapshot *snapshot__since(const struct snapshot *s, const struct snapshot *base)
{
	struct snapshot *d = snapshot__clone(s);
	size_t b = 0;

	if (!d)
		return NULL;
	d->start_ns = base->now_ns;
	for (size_t i = 0; i < d->nspans && i < base->nspans; i++) {
		if (span_since(&d->spans[i], &base->spans[i])) {
			snapshot__free(d);
			return NULL;
		}
	}
	if (d->cuda && base->cuda && cuda_calls__subtract(d->cuda, base->cuda)) {
		snapshot__free(d);
		return NULL;
	}
	if (d->gpu && base->gpu && gpu_since(d, base)) {
		snapshot__free(d);
		return NULL;
	}
	for (size_t i = 0; i < d->nnodes; i++) {
		while (b < base->nnodes && base->nodes[b].id < d->nodes[i].id)
			b++;
		if (b < base->nnodes && base->nodes[b].id == d->nodes[i].id)
			node_since(&d->nodes[i], &base->nodes[b]);
	}
	return d;
}

double snapshot__duration_s(const struct snapshot *s)
{
	return s->now_ns > s->start_ns ? (double)(s->now_ns - s->start_ns) / 1e9 : 0;
}

bool snap_span__is_instant(const struct snap_span *span)
{
	return span->kind == SPAN_INSTANT || (span->kind == SPAN_FUNC && span->way == RET_NONE);
}

uint64_t *snapshot__counts(const struct snapshot *s)
{
	uint64_t *counts = calloc(s->nspans + 1, sizeof(*counts));

	if (!counts)
		return NULL;
	for (size_t i = 0; i < s->nnodes; i++) {
		uint32_t span = s->nodes[i].span;

		if (span < s->nspans && snap_span__is_instant(&s->spans[span]))
			counts[span] += s->nodes[i].count;
	}
	for (size_t i = 0; i < s->nspans; i++) {
		uint64_t in_hist = hist__count(s->spans[i].hist);

		if (snap_span__is_instant(&s->spans[i]))
			counts[i] += s->spans[i].node_overflow;
		if (counts[i] < in_hist)
			counts[i] = in_hist;
	}
	return counts;
}

/* Whether one hit makes the whole of it, rather than a begin and an end. */
static bool single_hit(const struct snap_span *s)
{
	return snap_span__is_instant(s) || s->kind == SPAN_VALUE;
}

static uint64_t span_hits(const struct snap_span *s, uint64_t count)
{
	if (single_hit(s))
		return count + s->unreadable + s->no_storage;
	return 2 * (count + s->hist_overflow + s->depth_overflow) + s->orphan_ends + s->abandoned +
	       s->open + s->no_storage + s->unreadable + s->key_overflow + s->key_restarts +
	       s->key_timeouts + s->ret_muted;
}

double snapshot__hits_per_s(const struct snapshot *s)
{
	double hits = 0, seconds = snapshot__duration_s(s);
	uint64_t *counts = snapshot__counts(s);

	for (size_t i = 0; counts && i < s->nspans; i++)
		hits += span_hits(&s->spans[i], counts[i]);
	free(counts);
	return seconds > 0 ? hits / seconds : 0;
}

double snapshot__overhead_pct(const struct snapshot *s)
{
	double cost_ns = 0, seconds = snapshot__duration_s(s);
	uint64_t *counts = snapshot__counts(s);
	bool known = seconds > 0 && counts;

	for (size_t i = 0; known && i < s->nspans; i++) {
		const struct snap_span *span = &s->spans[i];
		uint64_t hits = span_hits(span, counts[i]);

		known = !hits || span->price_ns;
		cost_ns += (double)hits * span->price_ns / (single_hit(span) ? 1 : 2);
	}
	free(counts);
	return known ? cost_ns / (seconds * 1e9) * 100 : -1;
}

uint64_t snap_span__lost_by(const struct snap_span *s, enum snap_loss why)
{
	const uint64_t by[SNAP_LOSSES] = {
	    [SNAP_LOSS_DEPTH] = s->depth_overflow, [SNAP_LOSS_HIST] = s->hist_overflow,
	    [SNAP_LOSS_STORAGE] = s->no_storage,   [SNAP_LOSS_UNREADABLE] = s->unreadable,
	    [SNAP_LOSS_KEYS] = s->key_overflow,	   [SNAP_LOSS_MUTED] = s->ret_muted,
	};

	return by[why];
}

uint64_t snapshot__gpu_lost(const struct snapshot *s)
{
	uint64_t n = 0;

	for (int why = 0; why < GPU_LOST_N; why++)
		for (unsigned type = 0; type < QBPF_RING_TYPES; type++)
			n += s->gpu_lost[why][type];
	return n;
}

uint64_t snap_span__lost(const struct snap_span *s)
{
	uint64_t lost = 0;

	for (int why = 0; why < SNAP_LOSSES; why++)
		lost += snap_span__lost_by(s, why);
	return lost;
}

uint64_t snapshot__lost(const struct snapshot *s)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < s->nspans; i++)
		lost += snap_span__lost(&s->spans[i]);
	return lost;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_clock.c - the times of what waits become CLOCK_MONOTONIC.
 *
 * Between two readings of both clocks the offset is taken to change evenly, before the first and after
 * the last it is theirs with the drift of the two next to it. In truth it may have changed
 * anywhere between them: the whole change is the bound of the error, with what the readings tell
 * of their own.
 */
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

#define POINTS_KEPT 1024 /* so many are no burden */

static int by_cupti(const void *pa, const void *pb)
{
	const struct gpu_point *a = pa, *b = pb;

	if (a->cupti_ns != b->cupti_ns)
		return a->cupti_ns < b->cupti_ns ? -1 : 1;
	if (a->monotonic_ns != b->monotonic_ns)
		return a->monotonic_ns < b->monotonic_ns ? -1 : 1;
	return a->error_ns < b->error_ns ? -1 : a->error_ns > b->error_ns;
}

static void sort_points(struct gpu_ring *r)
{
	size_t n = 0;

	if (r->sorted)
		return;
	if (r->npoints)
		qsort(r->points, r->npoints, sizeof(*r->points), by_cupti);
	for (size_t i = 0; i < r->npoints; i++)
		if (!n || r->points[n - 1].cupti_ns != r->points[i].cupti_ns)
			r->points[n++] = r->points[i];
	r->npoints = n;
	r->sorted = true;
}

void gpu_clock__forget(struct gpu *g, uint64_t ns)
{
	for (uint32_t i = 0; i < g->nrings; i++) {
		struct gpu_ring *r = &g->rings[i];
		size_t old = 0;

		if (!r->sorted)
			continue;
		while (old < r->npoints && r->points[old].monotonic_ns < ns)
			old++;
		/* Two tell the drift. */
		if (old < POINTS_KEPT + 2)
			continue;
		r->npoints -= old - 2;
		memmove(r->points, r->points + old - 2, r->npoints * sizeof(*r->points));
	}
}

/* The last point at or before ns; 0 when there is none. */
static size_t point_at(const struct gpu_ring *r, uint64_t ns)
{
	size_t lo = 0, hi = r->npoints;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->points[mid].cupti_ns <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* Is that time one of CUPTI's own clock? Where the STARTs differ, or none came, what it is next to
 * says so: the clocks are decades apart. */
static bool on_cupti_clock(const struct gpu_ring *r, uint64_t ns)
{
	bool cupti = false, monotonic = false;
	const struct gpu_point *p;

	if (!r->npoints)
		return false;
	for (size_t i = 0; i < r->nstarts; i++) {
		cupti |= r->starts[i].clock == QBPF_RING_CLOCK_CUPTI;
		monotonic |= r->starts[i].clock != QBPF_RING_CLOCK_CUPTI;
	}
	if (cupti != monotonic)
		return cupti;
	p = &r->points[point_at(r, ns)];
	return distance(p->cupti_ns, ns) < distance(p->monotonic_ns, ns);
}

static uint64_t convert(struct gpu *g, const struct gpu_ring *r, uint64_t ns)
{
	size_t at = point_at(r, ns);
	const struct gpu_point *a, *b;
	__int128 offset, drift, between, result;
	uint64_t error;

	if (at && at == r->npoints - 1)
		at--;
	a = &r->points[at];
	b = &r->points[at + 1 < r->npoints ? at + 1 : at];
	offset = (__int128)a->monotonic_ns - a->cupti_ns;
	drift = (__int128)b->monotonic_ns - b->cupti_ns - offset;
	between = (__int128)b->cupti_ns - a->cupti_ns;
	result = (__int128)ns + offset;
	error = a->error_ns > b->error_ns ? a->error_ns : b->error_ns;
	if (between) {
		__int128 run = (__int128)ns - a->cupti_ns;

		/* A time far outside is not worth a drift; and the product must not overflow. */
		if (run > 16 * between)
			run = 16 * between;
		if (run < -16 * between)
			run = -16 * between;
		if (drift < INT64_MAX && drift > -INT64_MAX && run < INT64_MAX && run > -INT64_MAX)
			result += drift * run / between;
		if (drift < 0)
			drift = -drift;
		error =
		    drift > (__int128)(UINT64_MAX - error) ? UINT64_MAX : error + (uint64_t)drift;
	}
	if (error > g->convert_error_ns)
		g->convert_error_ns = error;
	return result < 1 || result > UINT64_MAX ? 0 : (uint64_t)result;
}

/* 0 stays 0: unknown. */
static void make_monotonic(struct gpu *g, uint32_t ring, uint64_t *start_ns, uint64_t *end_ns)
{
	const struct gpu_ring *r = &g->rings[ring];

	if (*start_ns && on_cupti_clock(r, *start_ns)) {
		*start_ns = convert(g, r, *start_ns);
		g->converted = true;
	}
	if (*end_ns && on_cupti_clock(r, *end_ns)) {
		*end_ns = convert(g, r, *end_ns);
		g->converted = true;
	}
}

void gpu_clock__convert(struct gpu *g)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < g->nrings; i++)
		sort_points(&g->rings[i]);
	for (size_t i = 0; i < g->ncalls; i++) {
		struct gpu_api *c = &g->calls[i];

		if (!c->converted)
			make_monotonic(g, c->ring, &c->start_ns, &c->end_ns);
		c->converted = true;
		if (c->end_ns > g->host_ns && c->end_ns >= c->start_ns && c->start_ns)
			g->host_ns = c->end_ns;
	}
	for (size_t i = 0; i < g->nwaits; i++) {
		if (!g->waits[i].converted)
			make_monotonic(g, g->waits[i].ring, &g->waits[i].start_ns,
				       &g->waits[i].end_ns);
		g->waits[i].converted = true;
	}
	for (size_t i = 0; i < g->nacts; i++) {
		struct gpu_act *a = &g->acts[i];

		if (!a->converted)
			make_monotonic(g, a->ring, &a->start_ns, &a->end_ns);
		a->converted = true;
		if (a->end_ns > last)
			last = a->end_ns;
	}
	if (g->host_ns > g->newest_ns)
		g->newest_ns = g->host_ns;
	if (!g->host_ns && last > g->newest_ns)
		g->newest_ns = last;
}

uint32_t gpu_clock__generation(const struct gpu *g, uint32_t ring, uint64_t ns)
{
	const struct gpu_ring *r = &g->rings[ring];
	size_t lo = 0, hi = r->nstarts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->starts[mid].monotonic_ns <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? (uint32_t)lo : 1;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_sums.c - sums by name: kernels, kinds of copies, API functions. */
#include <errno.h>
#include <stdlib.h>

#include "model/gpu_impl.h"

struct launch {
	uint64_t start_ns;
	uint32_t call, row, generation;
	uint64_t key; /* of what is launched for the first time */
};

static int compare_launches(const void *pa, const void *pb)
{
	const struct launch *a = pa, *b = pb;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->call < b->call ? -1 : a->call > b->call;
}

static int add_time(struct gpu *g, const struct gpu_act *a)
{
	uint64_t ns = a->end_ns - a->start_ns;
	struct gpu_copy_row *c;
	bool first;

	if (a->row == GPU_NONE)
		return 0;
	if (a->type == QBPF_RING_KERNEL || a->type == QBPF_RING_GRAPH)
		return gpu_add(&g->kernels[a->row].time, g->pool, ns);
	c = &g->copies[a->row];
	first = !c->time;
	c->bytes += a->bytes;
	if (first || a->bytes < c->min_bytes)
		c->min_bytes = a->bytes;
	if (a->bytes > c->max_bytes)
		c->max_bytes = a->bytes;
	if (a->bytes <= GPU_TINY) {
		c->tiny++;
		c->tiny_ns += ns;
	}
	return gpu_add(&c->time, g->pool, ns);
}

int gpu_sums__late(struct gpu *g, const struct gpu_act *a)
{
	g->late++;
	return add_time(g, a);
}

void gpu_sums__untimed(struct gpu *g, const struct gpu_act *a)
{
	g->untimed++;
	if (a->row == GPU_NONE)
		return;
	if (a->type == QBPF_RING_KERNEL || a->type == QBPF_RING_GRAPH)
		g->kernels[a->row].untimed++;
	else
		g->copies[a->row].untimed++;
}

/* What the first activity of a call tells of the call. */
static int add_first(struct gpu *g, const struct gpu_act *a)
{
	const struct gpu_api *c = &g->calls[a->call];
	bool copy = a->type == QBPF_RING_COPY || a->type == QBPF_RING_SET;
	struct dist **delay = copy ? &g->copies[a->row].delay : &g->kernels[a->row].delay;
	int err = 0;

	if (a->start_ns >= c->start_ns)
		err = gpu_add(delay, g->pool, a->start_ns - c->start_ns);
	if (!err && a->synchronous && c->waits && c->end_ns >= c->start_ns)
		err = gpu_add(&g->copies[a->row].call, g->pool, c->end_ns - c->start_ns);
	return err;
}

/*
 * The first launch of a kernel in a process loads it: apart from the others. Where the agent came
 * later, the first that it saw may have been a warm one.
 */
static int add_launches(struct gpu *g, struct launch *l, size_t n)
{
	int err = 0;

	qsort(l, n, sizeof(*l), compare_launches);
	for (size_t i = 0; i < n && !err; i++) {
		const struct gpu_api *c = &g->calls[l[i].call];
		struct gpu_kernel_row *row = &g->kernels[l[i].row];

		if (id_map__get(&g->first_at, l[i].key) != ID_MAP_NONE) {
			err = gpu_add(&row->call, g->pool, c->end_ns - c->start_ns);
			continue;
		}
		if (gpu_cover__from_start(g, c->ring, l[i].generation)) {
			row->first_calls++;
			row->first_call_ns += c->end_ns - c->start_ns;
		} else {
			row->seen_calls++;
			row->seen_call_ns += c->end_ns - c->start_ns;
		}
		err = id_map__put(&g->first_at, l[i].key, 0);
	}
	return err;
}

static int add_calls(struct gpu_join *j)
{
	struct gpu *g = j->g;

	for (size_t i = 0; i < g->ncalls; i++) {
		struct gpu_api *c = &g->calls[i];
		struct gpu_call_row *row;
		uint32_t at;

		if (c->outer != i || c->counted || (!j->final && c->end_ns > j->to_ns))
			continue;
		c->counted = true;
		if (c->class == GPU_CALL_LAUNCH)
			gpu_cover__launch(j, c);
		at = gpu_row__api(g, c->name);
		if (at == GPU_NONE || c->end_ns < c->start_ns)
			continue;
		row = &g->apis[at];
		if (gpu_add(&row->time, g->pool, c->end_ns - c->start_ns))
			return -ENOMEM;
		if (!c->error)
			continue;
		row->failed++;
		if (c->end_ns >= row->last_failed_ns) {
			row->last_failed_ns = c->end_ns;
			row->error = c->error;
		}
	}
	return 0;
}

int gpu_sums__settle(struct gpu_join *j)
{
	struct gpu *g = j->g;
	struct launch *l = malloc((g->nacts + 1) * sizeof(*l));
	size_t n = 0;
	int err = l ? 0 : -ENOMEM;

	for (size_t i = 0; i < g->nacts && !err; i++) {
		const struct gpu_act *a = &g->acts[i];
		const struct gpu_api *c = a->call == GPU_NONE ? NULL : &g->calls[a->call];

		if (!a->settled || a->untimed)
			continue;
		err = add_time(g, a);
		if (err || !c || !a->first || a->row == GPU_NONE)
			continue;
		err = add_first(g, a);
		if ((a->type == QBPF_RING_KERNEL || a->type == QBPF_RING_GRAPH) &&
		    c->class == GPU_CALL_LAUNCH && c->end_ns >= c->start_ns)
			l[n++] =
			    (struct launch){c->start_ns, a->call, a->row, a->generation,
					    (uint64_t)a->ring << 48 |
						(uint64_t)(a->generation & 0xffff) << 32 | a->row};
	}
	if (!err)
		err = add_launches(g, l, n);
	if (!err)
		err = add_calls(j);
	free(l);
	return err;
}

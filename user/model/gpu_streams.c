// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_streams.c - sums of each stream: what ran in it, how long it waited, how much waited at once. */
#include <errno.h>
#include <stdlib.h>

#include "model/gpu_impl.h"

struct sum {
	struct gpu_join *j;
	uint64_t *asked, *done; /* of what is asked for: sorted apart */
	struct {
		uint64_t start_ns, end_ns;
	} * runs;
	size_t nops, nruns;
};

static int compare_times(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* All activities of one call in one stream are one thing that was asked for. */
static void add_op(struct sum *s, const struct gpu_act *a, bool same)
{
	uint64_t asked = gpu_asked_ns(s->j->g, a);

	if (same) {
		if (a->end_ns > s->done[s->nops - 1])
			s->done[s->nops - 1] = a->end_ns;
		return;
	}
	/* Some of its call were summed up before: it only goes on. */
	s->asked[s->nops] = a->call != GPU_NONE && !a->first ? a->start_ns : asked;
	s->done[s->nops++] = a->end_ns;
}

/* 1; 2; 3 and 4; 5 to 8 .. */
static unsigned int step_of(uint64_t length)
{
	unsigned int step = length > 1 ? 64 - (unsigned int)__builtin_clzll(length - 1) : 0;

	return step < GPU_QUEUE_STEPS ? step : GPU_QUEUE_STEPS - 1;
}

static void sum_queue(const struct sum *s, struct gpu_stream_row *row)
{
	size_t in = 0, out = 0;

	for (size_t i = 0; i < s->nops; i++) {
		row->queue_ns += s->done[i] - s->asked[i];
		if (!row->from_ns || s->asked[i] < row->from_ns)
			row->from_ns = s->asked[i];
	}
	qsort(s->asked, s->nops, sizeof(*s->asked), compare_times);
	qsort(s->done, s->nops, sizeof(*s->done), compare_times);
	while (in < s->nops) {
		if (out < in && s->done[out] <= s->asked[in]) {
			out++;
			continue;
		}
		in++;
		if (in - out > row->queue_max)
			row->queue_max = in - out;
		row->queue_found[step_of(in - out)]++;
	}
}

static void sum_runs(const struct sum *s, struct gpu_stream_row *row)
{
	qsort(s->runs, s->nruns, sizeof(*s->runs), compare_times);
	for (size_t i = 0; i < s->nruns; i++) {
		if (!row->first_ns)
			row->first_ns = s->runs[i].start_ns;
		else if (s->runs[i].start_ns > row->to_ns)
			row->idle_ns += s->runs[i].start_ns - row->to_ns;
		if (s->runs[i].end_ns > row->to_ns)
			row->to_ns = s->runs[i].end_ns;
	}
}

static int add_act(struct sum *s, struct gpu_stream_row *row, const struct gpu_act *a)
{
	const struct gpu *g = s->j->g;
	unsigned int kind = a->type == QBPF_RING_COPY ? 1 : a->type == QBPF_RING_SET ? 2 : 0;

	row->count[kind]++;
	row->time_ns[kind] += a->end_ns - a->start_ns;
	s->runs[s->nruns].start_ns = a->start_ns;
	s->runs[s->nruns++].end_ns = a->end_ns;
	if (!a->first || a->start_ns < g->calls[a->call].start_ns)
		return 0;
	return gpu_add(&row->delay, g->pool, a->start_ns - g->calls[a->call].start_ns);
}

int gpu_streams__sum(struct gpu_join *j)
{
	struct gpu *g = j->g;
	struct sum s = {.j = j};
	int err = 0;

	s.asked = malloc((j->nby_stream + 1) * sizeof(*s.asked));
	s.done = malloc((j->nby_stream + 1) * sizeof(*s.done));
	s.runs = malloc((j->nby_stream + 1) * sizeof(*s.runs));
	if (!s.asked || !s.done || !s.runs)
		err = -ENOMEM;
	for (size_t i = 0; i < j->nby_stream && !err;) {
		uint32_t stream = g->acts[j->by_stream[i]].stream_row, before = GPU_NONE;
		struct gpu_stream_row *row = &g->streams[stream];

		s.nops = s.nruns = 0;
		for (; i < j->nby_stream && !err; i++) {
			const struct gpu_act *a = &g->acts[j->by_stream[i]];

			if (a->stream_row != stream)
				break;
			if (!a->settled)
				continue;
			add_op(&s, a, a->call != GPU_NONE && a->call == before);
			before = a->call;
			err = add_act(&s, row, a);
		}
		sum_queue(&s, row);
		sum_runs(&s, row);
	}
	free(s.asked);
	free(s.done);
	free(s.runs);
	return err;
}

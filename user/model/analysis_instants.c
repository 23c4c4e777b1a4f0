/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * analysis_instants.c - intervals of instants that several threads hit.
 *
 * A file has each thread's events in order, but not those of all threads together. So time is cut into
 * slices whose hits fit into memory, each is read on its own and sorted.
 */
#include <string.h>

#include "model/analysis_impl.h"

#define SLICE_HITS (1 << 20) /* 16 MiB of them */

struct hit {
	uint64_t ns;
	uint32_t span;
	uint32_t pad;
};

struct slicer {
	struct an_build *b;
	struct hit *hits;
	size_t n;
};

static int compare_hits(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int take(struct slicer *s, uint32_t span, uint64_t ns)
{
	struct an_gather *g = &s->b->gather[span - 1];
	uint64_t last = g->later_ns;
	bool first = !g->begun;

	g->begun = true;
	g->later_ns = ns;
	return first ? 0 : an__add_interval(s->b, &s->b->a.spans[span - 1], ns, ns - last);
}

/* The hits of [from, to]. Within one ns no order is needed, and however many they are they fit. */
static int read_slice(struct slicer *s, uint64_t from, uint64_t to, struct err *e)
{
	const struct event *ev;
	int err, more;
	size_t n;

	s->n = 0;
	err = trace_reader__start(s->b->reader, TRACE_ALL_THREADS, false);
	if (err)
		return err_set(e, err, "cannot read the trace: %s", strerror(-err));
	trace_reader__between(s->b->reader, from, to);
	while ((more = trace_reader__next(s->b->reader, &ev, &n, e)) > 0)
		for (size_t i = 0; i < n; i++) {
			if (ev[i].kind != EVENT_INSTANT || ev[i].start_ns < from ||
			    ev[i].start_ns > to || ev[i].span - 1 >= s->b->info->nspans ||
			    ev[i].end_ns < ev[i].start_ns || ev[i].thread >= s->b->info->nthreads ||
			    !s->b->gather[ev[i].span - 1].shared)
				continue;
			if (from == to) {
				if (take(s, ev[i].span, from))
					return err_set(e, -ENOMEM, "out of memory");
				continue;
			}
			if (s->n == SLICE_HITS)
				return 1;
			s->hits[s->n++] = (struct hit){ev[i].start_ns, ev[i].span, 0};
		}
	return more;
}

static int do_slice(struct slicer *s, uint64_t from, uint64_t to, struct err *e)
{
	int err = read_slice(s, from, to, e);

	if (err > 0) { /* too many: in halves */
		uint64_t middle = from + (to - from) / 2;

		err = do_slice(s, from, middle, e);
		return err ? err : do_slice(s, middle + 1, to, e);
	}
	qsort(s->hits, s->n, sizeof(*s->hits), compare_hits);
	for (size_t i = 0; i < s->n && !err; i++)
		if (take(s, s->hits[i].span, s->hits[i].ns))
			err = err_set(e, -ENOMEM, "out of memory");
	return err;
}

int an__shared_instants(struct an_build *b, struct err *e)
{
	struct slicer s = {.b = b};
	uint64_t from = 0, expected = 0;
	bool any = false;
	int err = 0;

	for (size_t i = 0; i < b->info->nspans; i++)
		any |= b->gather[i].shared;
	if (!any)
		return 0;
	s.hits = malloc(SLICE_HITS * sizeof(*s.hits));
	if (!s.hits)
		return err_set(e, -ENOMEM, "out of memory");
	/* As many windows together as will fit; the first and last have what lies beyond. */
	for (size_t w = 0; w < b->a.nwindows && !err; w++) {
		bool last = w + 1 == b->a.nwindows;

		expected += b->instants[w];
		if (!last && expected + b->instants[w + 1] <= SLICE_HITS)
			continue;
		err = do_slice(&s, from,
			       last ? UINT64_MAX : b->a.start_ns + (w + 1) * b->window_ns - 1, e);
		from = b->a.start_ns + (w + 1) * b->window_ns;
		expected = 0;
	}
	free(s.hits);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * --max-overhead PCT: when what the probes cost the target exceeds its share of one CPU, the
 * spans that cost most are detached, dearest first, until the rest fits.
 */
#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "trace/session_impl.h"

struct span_cost {
	uint32_t span;
	double pct;
};

static int dearest_first(const void *x, const void *y)
{
	const struct span_cost *a = x, *b = y;

	return a->pct > b->pct ? -1 : a->pct < b->pct;
}

/* Everything that went through a span's probes. */
static uint64_t span_hits(const struct snap_span *sp)
{
	return hist__count(sp->hist) + sp->abandoned + sp->orphan_ends + sp->depth_overflow +
	       sp->hist_overflow + sp->no_storage;
}

static bool span_is_armed(const struct session *s, uint32_t span)
{
	for (size_t i = 0; i < s->plan->nsites; i++)
		if (s->plan->sites[i].span == span && s->plan->sites[i].armed)
			return true;
	return false;
}

/* Frames that are open now would stay so, and what comes later would nest in them. */
static void retire(struct session *s, __u32 span)
{
	__u32 one = 1;

	bpf_map__update_elem(s->skel->maps.retired, &span, sizeof(span), &one, sizeof(one),
			     BPF_ANY);
	s->skel->bss->generation++;
}

static int detach_until_fits(struct session *s, struct span_cost *costs, size_t n, double total)
{
	qsort(costs, n, sizeof(*costs), dearest_first);
	for (size_t i = 0; i < n && total > s->o.max_overhead_pct && costs[i].pct > 0; i++) {
		const char *name = s->plan->spans[costs[i].span - 1].name;

		retire(s, costs[i].span);
		if (armer__detach_span(s->armer, s->plan, costs[i].span))
			return -EOPNOTSUPP;
		total -= costs[i].pct;
		log_warn("tracing costs %.2f %% of one CPU, over the limit of %.2f %%: detached %s "
			 "(%.2f %%)",
			 total + costs[i].pct, s->o.max_overhead_pct, name, costs[i].pct);
		plan__note(s->plan,
			   "%s: detached by --max-overhead %.2f, it cost %.2f %% of one CPU", name,
			   s->o.max_overhead_pct, costs[i].pct);
	}
	return 0;
}

int session__keep_budget(struct session *s, struct err *e)
{
	struct snapshot *now = NULL;
	struct span_cost *costs;
	double total = 0, wall_ns;
	size_t n = 0;
	int err;

	err = session__snapshot(s, &now, e);
	if (err)
		return err;
	if (!s->last) {
		s->last = now;
		return 0;
	}
	wall_ns = now->now_ns - s->last->now_ns;
	costs = calloc(now->nspans ? now->nspans : 1, sizeof(*costs));
	if (!costs) {
		snapshot__free(now);
		return err_set(e, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < now->nspans; i++) {
		uint64_t before = i < s->last->nspans ? span_hits(&s->last->spans[i]) : 0;
		uint64_t hits = span_hits(&now->spans[i]) - before;

		if (!hits || !span_is_armed(s, i + 1))
			continue;
		costs[n].span = i + 1;
		costs[n].pct = 100.0 * hits * now->spans[i].price_ns / wall_ns;
		total += costs[n++].pct;
	}
	err = detach_until_fits(s, costs, n, total);
	free(costs);
	snapshot__free(s->last);
	s->last = now;
	return err;
}

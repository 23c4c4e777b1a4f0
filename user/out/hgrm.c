// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * hgrm.c - percentile distributions as HdrHistogram writes them, from exact values.
 *
 * Durations in ns of spans, the numbers of values; one section for each span, headed by a line that
 * begins with '#'. HdrHistogram's plotter shows one histogram a file: --span gives one.
 *
 * The steps are HdrHistogram's: five for each halving of what is left up to 100 %.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/dist.h"
#include "out/export_impl.h"
#include "plan/plan.h"

#define STEPS_PER_HALF 5
#define POOL_BYTES     (96 << 20)

struct hgrm {
	struct exporter *x;
	struct dist_pool *pool;
	struct dist **dists; /* by span id */
};

static int add(void *ctx, const struct event *ev)
{
	struct hgrm *h = ctx;
	const struct trace_span *span = &h->x->info->spans[ev->span - 1];
	bool value = ev->kind == EVENT_VALUE;

	/* A damaged record has no duration, an unfinished span has none yet. */
	if (ev->kind == EVENT_INSTANT || ev->kind == EVENT_OPEN ||
	    (!value && ev->end_ns < ev->start_ns)) {
		h->x->counts.left_out++;
		return 0;
	}
	if (!h->dists[ev->span])
		h->dists[ev->span] = dist__new(h->pool, value ? span->hist : QBPF_HIST_NS);
	if (!h->dists[ev->span] || dist__add(h->dists[ev->span], value ? ev->arg : event_ns(ev), 1))
		return exporter__no_memory(h->x);
	h->x->counts.spans += !value;
	h->x->counts.points += value;
	return 0;
}

static double deviation(const struct dist_value *values, size_t n, long double mean, uint64_t count)
{
	long double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum +=
		    (values[i].value - mean) * (values[i].value - mean) * (long double)values[i].n;
	return count ? (double)sqrtl(sum / (long double)count) : 0;
}

static void put_step(FILE *f, long double value, double level, uint64_t upto)
{
	fprintf(f, "%12.3Lf %2.12f %10llu", value, level / 100, (unsigned long long)upto);
	if (level < 100)
		fprintf(f, " %14.2f", 1 / (1 - level / 100));
	fputc('\n', f);
}

/* A value stands once for each step that its share of all has passed, the greatest once, and again
 * as 100 %. */
static void put_steps(FILE *f, const struct dist_value *values, size_t n, uint64_t count)
{
	uint64_t upto = 0; /* values up to and with values[i] */
	double level = 0;

	for (size_t i = 0; i < n; i++) {
		bool more = true;

		upto += values[i].n;
		while (more && level <= 100.0 * (double)upto / (double)count) {
			int halvings = (int)log2(100.0 / (100.0 - level)) + 1;

			put_step(f, values[i].value, level, upto);
			level += 100.0 / (STEPS_PER_HALF * ldexp(1, halvings));
			more = i + 1 < n;
		}
	}
	if (n)
		put_step(f, values[n - 1].value, 100, count);
}

static int put_span(struct hgrm *h, uint32_t span, bool first)
{
	const struct dist *d = h->dists[span];
	const char *name = exporter__fit_name(h->x, span, export__text);
	uint64_t count = dist__count(d) - dist__nan(d);
	struct dist_value *values = NULL;
	size_t n = dist__values(d, &values);
	FILE *f = h->x->out;

	if (!name || (count && !n)) {
		free(values);
		return exporter__no_memory(h->x);
	}
	fprintf(f, "%s#[Span: %s%s]\n", first ? "" : "\n", name,
		dist__kind(d) == QBPF_HIST_NS ? ", ns" : "");
	if (dist__nan(d))
		fprintf(f, "#[Not a number: %llu more]\n", (unsigned long long)dist__nan(d));
	if (!dist__exact(d))
		fprintf(f, "#[Values within 0.025 %% of the exact ones]\n");
	fprintf(f, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		"1/(1-Percentile)");
	put_steps(f, values, n, count);
	fprintf(f, "#[Mean    = %12.3Lf, StdDeviation   = %12.3f]\n", dist__mean(d),
		deviation(values, n, dist__mean(d), count));
	fprintf(f, "#[Max     = %12.3Lf, Total count    = %12llu]\n", dist__max(d),
		(unsigned long long)count);
	fprintf(f, "#[Buckets = %12zu, SubBuckets     = %12d]\n", n, 1);
	free(values);
	return ferror(f) ? exporter__written(h->x, errno ? -errno : -EIO) : 0;
}

static int put_all(struct hgrm *h)
{
	int err = exporter__each(h->x, add, h);
	bool first = true;

	errno = 0;
	for (uint32_t i = 1; i <= h->x->info->nspans && !err; i++) {
		if (!h->dists[i])
			continue;
		err = put_span(h, i, first);
		first = false;
	}
	if (!err && first)
		err = err_set(h->x->e, -ENOENT, "the trace holds no finished span to show");
	return err;
}

int export_hgrm(struct exporter *x)
{
	struct hgrm h = {.x = x, .pool = dist_pool__new(POOL_BYTES)};
	int err;

	h.dists = calloc(x->info->nspans + 1, sizeof(*h.dists));
	err = h.pool && h.dists ? put_all(&h) : exporter__no_memory(x);
	for (size_t i = 0; h.dists && i <= x->info->nspans; i++)
		dist__free(h.dists[i]);
	free(h.dists);
	dist_pool__free(h.pool);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* page_gpu.c - the GPU's sections of a plain report. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/gpu.h"
#include "out/grid.h"
#include "out/units.h"

struct columns {
	struct grid *g;
	size_t at;
};

static struct columns open_grid(const char *const *headings, size_t n, const unsigned char *spare,
				size_t nspare)
{
	struct columns c = {grid__new(n), 0};

	for (size_t i = 0; c.g && i < n; i++)
		grid__put(c.g, i, headings[i]);
	grid__spare(c.g, spare, nspare);
	return c;
}

/* With an array of its columns that give way where there is little room, the first one first. */
#define OPEN_GRID(headings, spare) open_grid(headings, COUNT_OF(headings), spare, COUNT_OF(spare))

static void put(struct columns *c, const char *text)
{
	if (c->g)
		grid__put(c->g, c->at++, text);
}

static void put_count(struct columns *c, uint64_t n)
{
	char buf[UNIT_TEXT];

	put(c, unit__count(buf, n));
}

static void put_time(struct columns *c, uint64_t ns)
{
	char buf[UNIT_TEXT];

	put(c, ns == GPU_UNKNOWN ? "-" : unit__time(buf, ns));
}

static void put_mean(struct columns *c, uint64_t total_ns, uint64_t count)
{
	char buf[UNIT_TEXT];

	put(c, count ? unit__time(buf, (long double)total_ns / count) : "-");
}

static void put_share(struct columns *c, uint64_t part, uint64_t of)
{
	char buf[UNIT_TEXT];

	put(c, of ? unit__share(buf, (double)part / (double)of) : "-");
}

static void write_grid(const struct page *p, struct columns *c)
{
	if (c->g)
		grid__write(c->g, p->f, p->width, p->utf8);
	grid__free(c->g);
}

static void write_table(const struct page *p, struct columns *c)
{
	fputc('\n', p->f);
	write_grid(p, c);
}

static size_t rows_of(size_t n, size_t most)
{
	return most && most < n ? most : n;
}

static void put_left(const struct page *p, size_t n, size_t shown, const char *what)
{
	if (n > shown)
		page__line(p, 0, "(%zu more %s not shown)", n - shown, what);
}

static void put_devices(const struct page *p, const struct gpu_summary *g)
{
	char name[GPU_DEVICE_TEXT], share[4][UNIT_TEXT], time[2][UNIT_TEXT];

	fputc('\n', p->f);
	for (size_t i = 0; i < g->ndevices; i++) {
		const struct gpu_device *d = &g->devices[i];
		uint64_t all = d->to_ns - d->from_ns;
		double of = all ? (double)all : 1;

		gpu_device__text(g, d, name);
		if (!d->activities) {
			page__line(p, 2, "%s: nothing ran on it", name);
			continue;
		}
		unit__share(share[0], (double)d->busy_ns / of);
		unit__share(share[1], (double)d->compute_ns / of);
		unit__share(share[2], (double)d->copy_ns / of);
		unit__share(share[3], (double)d->overlap_ns / of);
		page__line(p, 2,
			   "%s: busy %s of %s (kernels %s, copies %s, both at once %s), idle %s",
			   name, share[0], unit__time(time[0], all), share[1], share[2], share[3],
			   unit__time(time[1], d->idle_ns));
	}
}

static void put_kernels(const struct page *p, const struct gpu_summary *g, size_t most)
{
	static const char *const headings[] = {"kernel", "count",  "total", "min",
					       "mean",	 "p50",	   "p99",   "max",
					       "delay",	 "launch", "first", "grid"};
	static const unsigned char spare[] = {11, 10, 3, 5, 9, 7, 8, 6, 4};
	struct columns c = OPEN_GRID(headings, spare);
	size_t n = rows_of(g->nkernels, most);
	char shape[96];

	for (size_t i = 0; c.g && i < n; i++) {
		const struct gpu_kernel *k = &g->kernels[i];

		c.at = 0;
		put(&c, k->name);
		put_count(&c, k->time.count);
		put_time(&c, k->time.total_ns);
		put_time(&c, k->time.min_ns);
		put_mean(&c, k->time.total_ns, k->time.count);
		put_time(&c, k->time.p50_ns);
		put_time(&c, k->time.p99_ns);
		put_time(&c, k->time.max_ns);
		put_mean(&c, k->delay.total_ns, k->delay.count);
		put_mean(&c, k->call.total_ns, k->call.count);
		put_mean(&c, k->first_call_ns, k->first_calls);
		snprintf(shape, sizeof(shape), "%s%ux%ux%u/%ux%ux%u", k->varies ? "<=" : "",
			 k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2]);
		put(&c, k->graph ? "-" : shape);
	}
	write_table(p, &c);
	put_left(p, g->nkernels, n, "kernels");
	page__line(
	    p, 0,
	    "(means: delay from the launch's begin to the kernel's start; launch: the host's "
	    "call; first: the first one in a process, not in launch; '-' where the agent came "
	    "later)");
}

static void put_copies(const struct page *p, const struct gpu_summary *g)
{
	static const char *const headings[] = {"copy",	"count", "bytes",     "total",
					       "rate",	"mean",	 "p99",	      "max",
					       "delay", "alone", "host waits"};
	static const unsigned char spare[] = {7, 6, 9, 8, 3, 10, 5, 4};
	struct columns c = OPEN_GRID(headings, spare);
	char text[UNIT_TEXT + 8], name[96];

	for (size_t i = 0; c.g && i < g->ncopies; i++) {
		const struct gpu_copy *k = &g->copies[i];

		c.at = 0;
		snprintf(name, sizeof(name), "%s%s%s", gpu_direction_name(k->direction),
			 k->pageable ? ", pageable" : "", k->synchronous ? ", sync" : "");
		put(&c, name);
		put_count(&c, k->time.count);
		put(&c, unit__bytes(text, k->bytes));
		put_time(&c, k->time.total_ns);
		if (k->bytes_per_s == GPU_UNKNOWN) {
			put(&c, "-");
		} else {
			unit__bytes(text, k->bytes_per_s);
			put(&c, strcat(text, "/s"));
		}
		put_mean(&c, k->time.total_ns, k->time.count);
		put_time(&c, k->time.p99_ns);
		put_time(&c, k->time.max_ns);
		put_mean(&c, k->delay.total_ns, k->delay.count);
		put_time(&c, k->direction == GPU_MEMSET ? GPU_UNKNOWN : k->alone_ns);
		put_time(&c, k->synchronous ? k->call.total_ns : GPU_UNKNOWN);
	}
	write_table(p, &c);
	page__line(p, 0,
		   "(sync: the call returned when it was done; alone: without a kernel beside it "
		   "on the device)");
}

static void put_streams(const struct page *p, const struct gpu_summary *g, size_t most)
{
	static const char *const headings[] = {"stream",     "kernels",	  "their time", "copies",
					       "their time", "delay p50", "p99",	"idle",
					       "queue mean", "max"};
	static const unsigned char spare[] = {6, 9, 8, 7, 5, 4, 3};
	struct columns c = OPEN_GRID(headings, spare);
	size_t n = rows_of(g->nstreams, most);
	char text[GPU_STREAM_TEXT];

	for (size_t i = 0; c.g && i < n; i++) {
		const struct gpu_stream *s = &g->streams[i];

		c.at = 0;
		put(&c, gpu_stream__text(g, s, text));
		put_count(&c, s->kernels);
		put_time(&c, s->kernel_ns);
		put_count(&c, s->copies + s->sets);
		put_time(&c, s->copy_ns + s->set_ns);
		put_time(&c, s->delay.p50_ns);
		put_time(&c, s->delay.p99_ns);
		put_time(&c, s->idle_ns);
		snprintf(text, sizeof(text), "%.2f",
			 s->to_ns > s->from_ns
			     ? (double)s->queue_ns / (double)(s->to_ns - s->from_ns)
			     : 0);
		put(&c, text);
		if (s->queue_max == GPU_UNKNOWN)
			put(&c, "-");
		else
			put_count(&c, s->queue_max);
	}
	write_table(p, &c);
	put_left(p, g->nstreams, n, "streams");
}

static void put_idle(const struct page *p, const struct gpu_summary *g, size_t most)
{
	static const char *const headings[] = {"idle GPU: why", "gaps", "total", "of its time",
					       "longest"};
	static const unsigned char spare[] = {4, 1};

	for (size_t i = 0; i < g->ndevices; i++) {
		const struct gpu_device *d = &g->devices[i];
		size_t n = rows_of(d->nidle, most);
		char text[GPU_IDLE_TEXT], name[GPU_DEVICE_TEXT];
		struct columns c;

		if (!n)
			continue;
		fputc('\n', p->f);
		if (g->ndevices > 1)
			page__line(p, 2, "%s", gpu_device__text(g, d, name));
		c = OPEN_GRID(headings, spare);
		for (size_t k = 0; c.g && k < n; k++) {
			c.at = 0;
			put(&c, gpu_idle__text(&d->idle[k], text));
			put_count(&c, d->idle[k].gaps);
			put_time(&c, d->idle[k].total_ns);
			put_share(&c, d->idle[k].total_ns, d->to_ns - d->from_ns);
			put_time(&c, d->idle[k].max_ns);
		}
		write_grid(p, &c);
		put_left(p, d->nidle, n, "causes");
	}
}

static void put_spans(const struct page *p, const struct gpu_summary *g, size_t most)
{
	static const char *const headings[] = {"span, each",  "count",	  "mean",     "own",
					       "in launches", "in waits", "GPU busy", "GPU after",
					       "launches",    "copied"};
	static const unsigned char spare[] = {9, 8, 7, 3, 6, 4};
	struct columns c = OPEN_GRID(headings, spare);
	size_t n = rows_of(g->nspans, most);
	char text[UNIT_TEXT];

	if (!n) {
		grid__free(c.g);
		return;
	}
	for (size_t i = 0; c.g && i < n; i++) {
		const struct gpu_span *s = &g->spans[i];

		c.at = 0;
		put(&c, s->name);
		put_count(&c, s->count);
		put_mean(&c, s->total_ns, s->count);
		put_mean(&c, s->own_ns, s->count);
		put_mean(&c, s->launch_ns, s->count);
		put_mean(&c, s->sync_ns, s->count);
		put_mean(&c, s->busy_ns, s->count);
		put_mean(&c, s->after_ns, s->count);
		snprintf(text, sizeof(text), "%.1f",
			 s->count ? (double)s->launches / (double)s->count : 0);
		put(&c, text);
		put(&c, unit__bytes(text, s->count ? s->copy_bytes / s->count : 0));
	}
	write_table(p, &c);
	put_left(p, g->nspans, n, "spans");
	if (g->launches[GPU_IN_NO_SPAN])
		page__line(p, 0, "(%" PRIu64 " launches were in spans, %" PRIu64 " in none)",
			   g->launches[GPU_IN_SPAN], g->launches[GPU_IN_NO_SPAN]);
	page__line(
	    p, 0,
	    "(mean = own + in launches + in waits; GPU busy: what it asked for ran meanwhile, "
	    "GPU after: when it had ended)");
}

static void put_advice(const struct page *p, const struct gpu_summary *g)
{
	char text[GPU_ADVICE_TEXT];

	if (g->nadvice)
		fputs("\nadvice\n", p->f);
	for (size_t i = 0; i < g->nadvice; i++)
		page__line(p, 4, "  * %s", gpu_advice__text(&g->advice[i], text));
}

static void put_line(const struct page *p, uint64_t n, const char *what)
{
	if (n)
		page__line(p, 4, "  %s: %" PRIu64, what, n);
}

static void put_ends(const struct page *p, const struct gpu_summary *g)
{
	char at[UNIT_TEXT];

	for (size_t i = 0; i < g->nagents; i++) {
		const struct gpu_agent *a = &g->agents[i];
		bool after = a->to_ns > g->probes_from_ns;

		if (a->end != QBPF_RING_FATAL && a->end != QBPF_RING_SUDDEN)
			continue;
		page__line(p, 2, "nothing of the GPU is known of process %" PRIu32 " %s%s%s: %s",
			   a->tgid, after ? "after " : "",
			   after ? unit__time(at, a->to_ns - g->probes_from_ns) : "since the start",
			   after ? " of tracing" : "",
			   a->end == QBPF_RING_FATAL ? "CUPTI reported a fatal error"
						     : "it ended suddenly");
	}
}

static void put_outside(const struct page *p, const struct gpu_summary *g)
{
	char a[UNIT_TEXT], b[UNIT_TEXT], converted[96] = "";
	bool outside = g->launches[GPU_BEFORE_PROBES] || g->launches[GPU_AFTER_PROBES];

	for (int i = 0; i < GPU_OUTSIDE; i++)
		outside |= g->outside[i] > 0;

	fputc('\n', p->f);
	if (g->converted)
		snprintf(converted, sizeof(converted),
			 " (converted from CUPTI's clock to within %s)",
			 unit__time(b, g->convert_error_ns));
	if (g->clock_change_ns)
		page__line(
		    p, 2, "GPU times drift against the host's: their error changed by %s or more%s",
		    unit__time(a, g->clock_change_ns), converted);
	else if (g->clock_error_ns != GPU_UNKNOWN)
		page__line(p, 2, "GPU times are right to within %s%s",
			   unit__time(a, g->clock_error_ns), converted);
	else
		page__line(p, 2, "how right GPU times are, nothing tells%s", converted);
	put_ends(p, g);
	if (outside || g->untimed || g->late || g->waiting || g->dropped || g->overflow ||
	    g->unknown_records || g->missing[GPU_NO_CALL] || g->missing[GPU_NO_ACTIVITY])
		fputs("not in all of these figures:\n", p->f);
	put_line(p, g->launches[GPU_BEFORE_PROBES], "launches before the probes were armed");
	put_line(p, g->launches[GPU_AFTER_PROBES], "launches after the probes were let go");
	put_line(p, g->outside[GPU_BEFORE_AGENT], "spans before the agent was at work");
	put_line(p, g->outside[GPU_AFTER_AGENT], "spans after the agent was at work");
	put_line(p, g->outside[GPU_PARTLY], "spans that the agent saw a part of");
	put_line(p, g->untimed, "activities whose times cannot be");
	put_line(p, g->missing[GPU_NO_CALL], "activities without the API call that asked for them");
	put_line(
	    p, g->missing[GPU_NO_ACTIVITY],
	    "launches, copies or memsets that nothing came of (captured into a graph, or lost)");
	put_line(p, g->dropped, "records that CUPTI dropped");
	put_line(p, g->late, "activities that came too late to be put into the order of time");
	put_line(p, g->waiting, "activities that have just come");
	put_line(p, g->overflow, "records for which a table had no room");
	put_line(p, g->unknown_records, "records of types that this qbpf does not know");
}

void page__gpu(const struct page *p, const struct gpu_summary *g, size_t most)
{
	put_devices(p, g);
	if (g->nkernels)
		put_kernels(p, g, most);
	if (g->ncopies)
		put_copies(p, g);
	if (g->nstreams)
		put_streams(p, g, most);
	put_idle(p, g, most);
	put_spans(p, g, most);
	put_advice(p, g);
	put_outside(p, g);
}

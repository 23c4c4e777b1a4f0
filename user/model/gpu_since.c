// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_since.c - what the GPU did since an earlier summary of the same model.
 *
 * Counts and times are subtracted. Of a distribution its greatest and least are known where they are new
 * ones, its percentiles are not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

static uint64_t less(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static void figure_since(struct gpu_figure *f, const struct gpu_figure *then)
{
	if (!then->count)
		return;
	f->count = less(f->count, then->count);
	f->total_ns = less(f->total_ns, then->total_ns);
	if (!f->count) {
		f->min_ns = f->max_ns = 0;
	} else {
		if (f->min_ns >= then->min_ns)
			f->min_ns = GPU_UNKNOWN;
		if (f->max_ns <= then->max_ns)
			f->max_ns = GPU_UNKNOWN;
	}
	f->p50_ns = f->p90_ns = f->p99_ns = GPU_UNKNOWN;
}

/* --- rows of then, found again ------------------------------------------------------------------- */

/* Rows of one kind, as pointers in the order of what they are about. */
struct index {
	const void **rows;
	size_t n;
	int (*compare)(const void *pa, const void *pb);
};

static int index__make(struct index *x, const void *rows, size_t n, size_t size,
		       int (*compare)(const void *, const void *))
{
	*x = (struct index){calloc(n + 1, sizeof(*x->rows)), n, compare};
	if (!x->rows)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		x->rows[i] = (const char *)rows + i * size;
	qsort(x->rows, n, sizeof(*x->rows), compare);
	return 0;
}

static const void *index__find(const struct index *x, const void *row)
{
	const void *const *at = bsearch(&row, x->rows, x->n, sizeof(*x->rows), x->compare);

	return at ? *at : NULL;
}

#define ROWS_OF(type, a, b)                                                                        \
	const struct type *a = *(const struct type *const *)pa;                                    \
	const struct type *b = *(const struct type *const *)pb

static int by_kernel(const void *pa, const void *pb)
{
	ROWS_OF(gpu_kernel, a, b);
	int c = strcmp(a->name, b->name);

	if (c)
		return c;
	if (a->graph != b->graph)
		return a->graph ? 1 : -1;
	return strcmp(a->symbol ? a->symbol : "", b->symbol ? b->symbol : "");
}

static int by_copy(const void *pa, const void *pb)
{
	ROWS_OF(gpu_copy, a, b);

	if (a->direction != b->direction)
		return a->direction < b->direction ? -1 : 1;
	if (a->pageable != b->pageable)
		return a->pageable ? 1 : -1;
	return a->synchronous - b->synchronous;
}

static int by_call(const void *pa, const void *pb)
{
	ROWS_OF(gpu_call, a, b);

	return strcmp(a->name, b->name);
}

static int by_span(const void *pa, const void *pb)
{
	ROWS_OF(gpu_span, a, b);

	return a->id < b->id ? -1 : a->id > b->id;
}

static int by_device(const void *pa, const void *pb)
{
	ROWS_OF(gpu_device, a, b);

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static int by_stream(const void *pa, const void *pb)
{
	ROWS_OF(gpu_stream, a, b);

	if (a->ring != b->ring)
		return a->ring < b->ring ? -1 : 1;
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return a->stream < b->stream ? -1 : a->stream > b->stream;
}

static int by_cause(const void *pa, const void *pb)
{
	ROWS_OF(gpu_idle, a, b);

	if (a->cause != b->cause)
		return a->cause < b->cause ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

/* --- one row since another ------------------------------------------------------------------------ */

/* Each tells whether anything has happened since. */

static bool kernel_since(void *row, const void *before)
{
	const struct gpu_kernel *then = before;
	struct gpu_kernel *k = row;

	figure_since(&k->time, &then->time);
	figure_since(&k->delay, &then->delay);
	figure_since(&k->call, &then->call);
	k->first_calls = less(k->first_calls, then->first_calls);
	k->first_call_ns = less(k->first_call_ns, then->first_call_ns);
	k->seen_calls = less(k->seen_calls, then->seen_calls);
	k->seen_call_ns = less(k->seen_call_ns, then->seen_call_ns);
	k->untimed = less(k->untimed, then->untimed);
	return k->time.count || k->untimed;
}

static bool copy_since(void *row, const void *before)
{
	const struct gpu_copy *then = before;
	struct gpu_copy *c = row;

	figure_since(&c->time, &then->time);
	figure_since(&c->delay, &then->delay);
	figure_since(&c->call, &then->call);
	c->bytes -= then->bytes; /* modulo 2^64, as it was added up */
	gpu_copy__rate(c);
	c->alone_ns = less(c->alone_ns, then->alone_ns);
	c->tiny = less(c->tiny, then->tiny);
	c->tiny_ns = less(c->tiny_ns, then->tiny_ns);
	c->untimed = less(c->untimed, then->untimed);
	return c->time.count || c->untimed;
}

static bool call_since(void *row, const void *before)
{
	const struct gpu_call *then = before;
	struct gpu_call *c = row;

	figure_since(&c->time, &then->time);
	c->failed = less(c->failed, then->failed);
	return c->time.count || c->failed;
}

static bool span_since(void *row, const void *before)
{
	const struct gpu_span *then = before;
	struct gpu_span *s = row;

	s->count = less(s->count, then->count);
	s->total_ns = less(s->total_ns, then->total_ns);
	s->launch_ns = less(s->launch_ns, then->launch_ns);
	s->sync_ns = less(s->sync_ns, then->sync_ns);
	s->own_ns = less(s->own_ns, then->own_ns);
	s->busy_ns = less(s->busy_ns, then->busy_ns);
	s->after_ns = less(s->after_ns, then->after_ns);
	s->launches = less(s->launches, then->launches);
	s->copies = less(s->copies, then->copies);
	s->copy_bytes -= then->copy_bytes;
	s->kernel_ns = less(s->kernel_ns, then->kernel_ns);
	s->copy_ns = less(s->copy_ns, then->copy_ns);
	figure_since(&s->delay, &then->delay);
	s->cut = less(s->cut, then->cut);
	for (int i = 0; i < GPU_OUTSIDE; i++)
		s->outside[i] = less(s->outside[i], then->outside[i]);
	return s->count || s->cut;
}

static bool stream_since(void *row, const void *before)
{
	const struct gpu_stream *then = before;
	struct gpu_stream *s = row;

	s->kernels = less(s->kernels, then->kernels);
	s->copies = less(s->copies, then->copies);
	s->sets = less(s->sets, then->sets);
	s->kernel_ns = less(s->kernel_ns, then->kernel_ns);
	s->copy_ns = less(s->copy_ns, then->copy_ns);
	s->set_ns = less(s->set_ns, then->set_ns);
	figure_since(&s->delay, &then->delay);
	if (s->queue_max <= then->queue_max)
		s->queue_max = GPU_UNKNOWN;
	for (int i = 0; i < GPU_QUEUE_STEPS; i++)
		s->queue_found[i] = less(s->queue_found[i], then->queue_found[i]);
	s->queue_ns = less(s->queue_ns, then->queue_ns);
	s->from_ns = then->to_ns;
	s->idle_ns = less(s->idle_ns, then->idle_ns);
	return s->kernels || s->copies || s->sets;
}

static bool idle_since(void *row, const void *before)
{
	const struct gpu_idle *then = before;
	struct gpu_idle *i = row;

	i->gaps = less(i->gaps, then->gaps);
	i->total_ns = less(i->total_ns, then->total_ns);
	if (i->max_ns <= then->max_ns)
		i->max_ns = GPU_UNKNOWN;
	return i->gaps || i->total_ns;
}

/* --- all rows of a kind --------------------------------------------------------------------------- */

struct kind {
	size_t size;
	int (*compare)(const void *, const void *);
	bool (*since)(void *row, const void *then);
	void (*clear)(void *row);
};

static void clear_kernel(void *row)
{
	free(((struct gpu_kernel *)row)->name);
	free(((struct gpu_kernel *)row)->symbol);
}

static void clear_call(void *row)
{
	free(((struct gpu_call *)row)->name);
}

static void clear_span(void *row)
{
	free(((struct gpu_span *)row)->name);
}

static void clear_idle(void *row)
{
	free(((struct gpu_idle *)row)->name);
}

static void clear_nothing(void *row)
{
	(void)row;
}

static const struct kind kernels = {sizeof(struct gpu_kernel), by_kernel, kernel_since,
				    clear_kernel},
			 copies = {sizeof(struct gpu_copy), by_copy, copy_since, clear_nothing},
			 calls = {sizeof(struct gpu_call), by_call, call_since, clear_call},
			 spans = {sizeof(struct gpu_span), by_span, span_since, clear_span},
			 streams = {sizeof(struct gpu_stream), by_stream, stream_since,
				    clear_nothing},
			 idles = {sizeof(struct gpu_idle), by_cause, idle_since, clear_idle};

/* Rows to which nothing has happened since are no rows any more. */
static int rows_since(const struct kind *kind, void *rows, size_t *n, const void *then,
		      size_t nthen)
{
	struct index before;
	size_t kept = 0;
	int err = index__make(&before, then, nthen, kind->size, kind->compare);

	if (err)
		return err;
	for (size_t i = 0; i < *n; i++) {
		char *row = (char *)rows + i * kind->size;
		const void *old = index__find(&before, row);

		if (old && !kind->since(row, old)) {
			kind->clear(row);
			continue;
		}
		if (kept != i)
			memcpy((char *)rows + kept * kind->size, row, kind->size);
		kept++;
	}
	*n = kept;
	free(before.rows);
	return 0;
}

static int device_since(struct gpu_device *d, const struct gpu_device *then)
{
	if (then->activities)
		d->from_ns = then->to_ns;
	d->activities = less(d->activities, then->activities);
	d->busy_ns = less(d->busy_ns, then->busy_ns);
	d->compute_ns = less(d->compute_ns, then->compute_ns);
	d->copy_ns = less(d->copy_ns, then->copy_ns);
	d->overlap_ns = less(d->overlap_ns, then->overlap_ns);
	d->idle_ns = less(d->idle_ns, then->idle_ns);
	d->early = less(d->early, then->early);
	return rows_since(&idles, d->idle, &d->nidle, then->idle, then->nidle);
}

static int devices_since(struct gpu_summary *s, const struct gpu_summary *then)
{
	struct index before;
	int err =
	    index__make(&before, then->devices, then->ndevices, sizeof(*then->devices), by_device);

	for (size_t i = 0; i < s->ndevices && !err; i++) {
		const void *old = index__find(&before, &s->devices[i]);

		if (old)
			err = device_since(&s->devices[i], old);
	}
	free(before.rows);
	return err;
}

static void counts_since(struct gpu_summary *s, const struct gpu_summary *then)
{
	s->records = less(s->records, then->records);
	s->unknown_records = less(s->unknown_records, then->unknown_records);
	s->activities = less(s->activities, then->activities);
	s->untimed = less(s->untimed, then->untimed);
	s->late = less(s->late, then->late);
	for (int i = 0; i < GPU_LAUNCHES; i++)
		s->launches[i] = less(s->launches[i], then->launches[i]);
	for (int i = 0; i < GPU_OUTSIDE; i++)
		s->outside[i] = less(s->outside[i], then->outside[i]);
	for (int m = 0; m < GPU_MISSING; m++)
		s->missing[m] = less(s->missing[m], then->missing[m]);
	s->dropped = less(s->dropped, then->dropped);
	s->overflow = less(s->overflow, then->overflow);
	s->overheads = less(s->overheads, then->overheads);
	s->overhead_ns = less(s->overhead_ns, then->overhead_ns);
}

/* --- a copy ----------------------------------------------------------------------------------------- */

/* Rows of another one's become those of *rows. */
static bool copy_rows(void *rows, size_t *n, size_t size)
{
	void **array = rows, *copy = calloc(*n + 1, size);

	if (copy && *n)
		memcpy(copy, *array, *n * size);
	*array = copy;
	*n = copy ? *n : 0;
	return !copy;
}

static bool copy_text(char **text)
{
	char *copy = *text ? strdup(*text) : NULL;
	bool failed = *text && !copy;

	*text = copy;
	return failed;
}

static bool copy_devices(struct gpu_summary *s)
{
	bool failed = copy_rows(&s->devices, &s->ndevices, sizeof(*s->devices));

	for (size_t i = 0; i < s->ndevices; i++) {
		struct gpu_device *d = &s->devices[i];

		failed |= copy_text(&d->name);
		failed |= copy_text(&d->comm);
		failed |= copy_rows(&d->idle, &d->nidle, sizeof(*d->idle));
		for (size_t k = 0; k < d->nidle; k++)
			failed |= copy_text(&d->idle[k].name);
	}
	return failed;
}

/* But for its advice. */
static struct gpu_summary *copy_of(const struct gpu_summary *from)
{
	struct gpu_summary *s = malloc(sizeof(*s));
	bool failed;

	if (!s)
		return NULL;
	*s = *from;
	s->refs = 1;
	s->advice = NULL;
	s->nadvice = 0;
	failed = copy_devices(s);
	failed |= copy_rows(&s->kernels, &s->nkernels, sizeof(*s->kernels));
	failed |= copy_rows(&s->copies, &s->ncopies, sizeof(*s->copies));
	failed |= copy_rows(&s->streams, &s->nstreams, sizeof(*s->streams));
	failed |= copy_rows(&s->calls, &s->ncalls, sizeof(*s->calls));
	failed |= copy_rows(&s->spans, &s->nspans, sizeof(*s->spans));
	failed |= copy_rows(&s->agents, &s->nagents, sizeof(*s->agents));
	for (size_t i = 0; i < s->nkernels; i++) {
		failed |= copy_text(&s->kernels[i].name);
		failed |= copy_text(&s->kernels[i].symbol);
	}
	for (size_t i = 0; i < s->ncalls; i++)
		failed |= copy_text(&s->calls[i].name);
	for (size_t i = 0; i < s->nspans; i++)
		failed |= copy_text(&s->spans[i].name);
	if (!failed)
		return s;
	gpu_summary__put(s);
	return NULL;
}

struct gpu_summary *gpu_summary__since(const struct gpu_summary *now,
				       const struct gpu_summary *then)
{
	struct gpu_summary *s = copy_of(now);
	int err;

	if (!s)
		return NULL;
	counts_since(s, then);
	err = rows_since(&kernels, s->kernels, &s->nkernels, then->kernels, then->nkernels);
	if (!err)
		err = rows_since(&copies, s->copies, &s->ncopies, then->copies, then->ncopies);
	if (!err)
		err = rows_since(&calls, s->calls, &s->ncalls, then->calls, then->ncalls);
	if (!err)
		err = rows_since(&spans, s->spans, &s->nspans, then->spans, then->nspans);
	if (!err)
		err = rows_since(&streams, s->streams, &s->nstreams, then->streams, then->nstreams);
	if (!err)
		err = devices_since(s, then);
	if (!err)
		err = gpu_summary__finish(s);
	if (!err)
		return s;
	gpu_summary__put(s);
	return NULL;
}

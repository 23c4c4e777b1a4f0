// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The thread between the rings and the sums; see gpu_feed.h. */
#include "trace/gpu_feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/proc_state.h"
#include "log.h"
#include "model/id_map.h"
#include "quiet_thread.h"
#include "trace/stream.h"

#define QUEUE_BYTES (32u << 20)
#define WAIT_BYTES  (64u << 20) /* of what the model keeps to be joined */
#define WAIT_MS	    20
/*
 * The agent hands over every 100 ms, but not before the kernels around it are done: what is younger than
 * this may lack something that is still to come, and is in no figure yet.
 */
#define LAG_NS	    1000000000ull
#define THREADS_MAX 65536
#define SLICE	    4096 /* items between two chances for whoever wants the sums */

struct gpu_feed {
	struct gpu_queue *queue;
	struct stream *file;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	pthread_mutex_t lock; /* of all below */
	struct gpu *model;
	struct id_map threads; /* by tgid and tid */
	uint32_t nnames, nspan_names, nthreads;
	uint64_t seen_ns; /* all that came from anywhere by then is in the model */
	bool finished;
	int fault; /* what ended the summing up: memory */
	struct gpu_feed_counts counts;
};

struct gpu_feed *gpu_feed__new(void)
{
	static const struct gpu_opts opts = {.max_bytes = WAIT_BYTES};
	struct gpu_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	f->queue = gpu_queue__new(QUEUE_BYTES);
	f->model = gpu__new(&opts);
	if (f->queue && f->model)
		return f;
	gpu_feed__free(f);
	return NULL;
}

static void stop_thread(struct gpu_feed *f)
{
	if (!f->running)
		return;
	f->stop = true;
	gpu_queue__wake(f->queue);
	pthread_join(f->thread, NULL);
	f->running = false;
}

void gpu_feed__free(struct gpu_feed *f)
{
	if (!f)
		return;
	stop_thread(f);
	gpu_queue__free(f->queue);
	gpu__free(f->model);
	id_map__clear(&f->threads);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

struct gpu_queue *gpu_feed__queue(struct gpu_feed *f)
{
	return f->queue;
}

/* --- to the model ------------------------------------------------------------------------------- */

/* The first one ends it. With the lock. */
static void note_fault(struct gpu_feed *f, int err)
{
	if (!err || f->fault)
		return;
	f->fault = err;
	log_warn("no more figures of the GPU: %s", strerror(-err));
}

static int add_span(struct gpu_feed *f, const struct gpu_host_span *s)
{
	struct event ev = {
	    .start_ns = s->start_ns,
	    .end_ns = s->end_ns,
	    .span = s->span,
	    .depth = (uint16_t)s->depth,
	    .kind = EVENT_SPAN,
	};
	uint64_t key = (uint64_t)s->tgid << 32 | s->tid;
	int err = 0;

	ev.thread = id_map__get(&f->threads, key);
	/* The model goes by tid, not by place: places are used again. */
	if (ev.thread == ID_MAP_NONE && f->nthreads == THREADS_MAX) {
		id_map__clear(&f->threads);
		f->nthreads = 0;
	}
	if (ev.thread == ID_MAP_NONE) {
		ev.thread = f->nthreads;
		err = gpu__thread(f->model, ev.thread, s->tgid, s->tid);
		if (!err)
			err = id_map__put(&f->threads, key, f->nthreads++);
	}
	return err ? err : gpu__span(f->model, &ev);
}

/* What the process is called that has just begun to write into a ring. */
static int add_process(struct gpu_feed *f, const struct qbpf_ring_start *s)
{
	char proc[32], *comm;
	size_t len;
	int err;

	snprintf(proc, sizeof(proc), "/proc/%u", s->tgid);
	if (proc_state__read_file(proc, "comm", &comm, &len))
		return 0; /* it has ended */
	comm[strcspn(comm, "\n")] = '\0';
	err = gpu__process(f->model, s->tgid, comm);
	free(comm);
	return err;
}

static void to_model(struct gpu_feed *f, const struct gpu_item *item)
{
	const struct qbpf_ring_record *rec = (const void *)(item + 1);
	const void *what = item + 1;
	int err = 0;

	if (item->kind == GPU_ITEM_RECORD)
		f->counts.taken[rec->type < QBPF_RING_TYPES ? rec->type : 0]++;
	if (f->fault)
		return;
	switch (item->kind) {
	case GPU_ITEM_NAME:
		err = gpu__name(f->model, ++f->nnames, what);
		break;
	case GPU_ITEM_RECORD:
		if (rec->type == QBPF_RING_START)
			err = add_process(f, what);
		if (!err)
			err = gpu__record(f->model, item->ring, what);
		break;
	case GPU_ITEM_SPAN:
		err = add_span(f, what);
		break;
	default:
		break;
	}
	note_fault(f, err);
}

/* --- to the file -------------------------------------------------------------------------------- */

static int to_file(struct trace_writer *w, const struct gpu_item *item)
{
	const void *what = item + 1;
	uint32_t id;

	switch (item->kind) {
	case GPU_ITEM_NAME:
		return trace_writer__gpu_name(w, what, &id);
	case GPU_ITEM_RECORD:
		return trace_writer__gpu(w, item->ring, what);
	case GPU_ITEM_LOSS:
		return trace_writer__gpu_loss(w, what);
	default:
		return 0;
	}
}

/* Hands on so many items, then the stream has its writer back; returns the next one. */
static const struct gpu_item *record_slice(struct gpu_feed *f, const struct gpu_batch *b,
					   const struct gpu_item *item, struct gpu_feed_counts *n)
{
	struct trace_writer *w = stream__borrow_writer(f->file);
	int err = 0;

	for (int i = 0; i < SLICE && item; i++, item = gpu_batch__next(b, item)) {
		const struct qbpf_ring_record *rec = (const void *)(item + 1);

		if (w && !err)
			err = to_file(w, item);
		if (item->kind == GPU_ITEM_RECORD && (!w || err))
			n->refused[rec->type < QBPF_RING_TYPES ? rec->type : 0]++;
	}
	stream__return_writer(f->file, err);
	return item;
}

static void record(struct gpu_feed *f, const struct gpu_batch *b)
{
	const struct gpu_item *item = gpu_batch__next(b, NULL);
	struct gpu_feed_counts n = {.spans_lost = 0};

	while (item)
		item = record_slice(f, b, item, &n);
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < QBPF_RING_TYPES; i++)
		f->counts.refused[i] += n.refused[i];
	pthread_mutex_unlock(&f->lock);
}

/* --- the thread --------------------------------------------------------------------------------- */

static void sum_up(struct gpu_feed *f, const struct gpu_batch *b)
{
	const struct gpu_item *item = gpu_batch__next(b, NULL);
	uint64_t seen = UINT64_MAX;

	while (item) {
		pthread_mutex_lock(&f->lock);
		for (int i = 0; i < SLICE && item; i++, item = gpu_batch__next(b, item))
			to_model(f, item);
		pthread_mutex_unlock(&f->lock);
	}
	for (int i = 0; i < GPU_ORIGINS; i++)
		if (b->seen_ns[i] < seen)
			seen = b->seen_ns[i];
	pthread_mutex_lock(&f->lock);
	f->seen_ns = seen;
	pthread_mutex_unlock(&f->lock);
}

static void take_batch(struct gpu_feed *f, unsigned wait_ms)
{
	struct gpu_batch b;

	gpu_queue__take(f->queue, wait_ms, &b);
	if (f->file)
		record(f, &b);
	sum_up(f, &b);
}

static void *run(void *arg)
{
	struct gpu_feed *f = arg;

	while (!f->stop)
		take_batch(f, WAIT_MS);
	return NULL;
}

int gpu_feed__start(struct gpu_feed *f, struct stream *file)
{
	int err;

	f->file = file;
	err = quiet_thread__start(&f->thread, run, f);
	f->running = !err;
	return err;
}

void gpu_feed__span_name(struct gpu_feed *f, const char *name)
{
	pthread_mutex_lock(&f->lock);
	if (!f->fault)
		note_fault(f, gpu__span_name(f->model, ++f->nspan_names, name));
	pthread_mutex_unlock(&f->lock);
}

void gpu_feed__span(struct gpu_feed *f, const struct gpu_host_span *span)
{
	if (!gpu_queue__is_full(f->queue) &&
	    gpu_queue__push(f->queue, GPU_ITEM_SPAN, 0, span, sizeof(*span)) >= 0)
		return;
	__atomic_fetch_add(&f->counts.spans_lost, 1, __ATOMIC_RELAXED);
}

void gpu_feed__probes(struct gpu_feed *f, uint64_t from_ns, uint64_t to_ns)
{
	pthread_mutex_lock(&f->lock);
	gpu__probes(f->model, from_ns, to_ns);
	pthread_mutex_unlock(&f->lock);
}

void gpu_feed__finish(struct gpu_feed *f)
{
	if (f->finished)
		return;
	stop_thread(f);
	take_batch(f, 0);
	f->finished = true;
	if (!f->fault)
		note_fault(f, gpu__finish(f->model));
}

struct gpu_summary *gpu_feed__summary(struct gpu_feed *f)
{
	struct gpu_summary *s = NULL;

	pthread_mutex_lock(&f->lock);
	if (!f->fault && !f->finished && f->seen_ns > LAG_NS)
		note_fault(f, gpu__settle(f->model, f->seen_ns - LAG_NS));
	if (!gpu__empty(f->model))
		s = gpu__summary(f->model);
	pthread_mutex_unlock(&f->lock);
	return s;
}

void gpu_feed__counts(struct gpu_feed *f, struct gpu_feed_counts *out)
{
	pthread_mutex_lock(&f->lock);
	*out = f->counts;
	pthread_mutex_unlock(&f->lock);
}

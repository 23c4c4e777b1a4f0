// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a recording hands in, gathered into blocks: events by thread, table entries by table. An
 * event's block goes to the sink only after all entries that were handed in before it.
 */
#include "file/writer.h"

#include <stdlib.h>
#include <string.h>

#include "file/ring_reader.h"
#include "file/sink.h"
#include "file/tables.h"
#include "qbpf/abi.h"

#define BLOCK_EVENTS_FULL 4096	       /* events of a full block */
#define BUFFER_FIRST	  8	       /* events that a thread's first buffer takes */
#define BUFFERS_MAX	  (32u << 20)  /* bytes of all threads' buffers */
#define ENTRIES_FULL	  (256u << 10) /* bytes of one table, or of GPU records, that wait */

/* Events of one thread that are not yet a block. */
struct buffer {
	struct event *events;
	uint32_t n, cap;
	bool busy;		    /* its last buffer came to be full */
	struct buffer *prev, *next; /* by age of the first event, while n is not 0 */
};

struct entries {
	struct bytes raw;
	uint32_t count;
};

struct trace_writer {
	struct sink *sink;
	struct entries tables[BLOCK_TABLES]; /* by block type; most are tables */
	bool entries_wait;
	struct entries gpu; /* records of one ring */
	uint32_t gpu_ring;
	uint64_t gpu_records;
	uint32_t nspans, nmappings, nprocesses, nthreads, nnames;
	struct buffer **buffers; /* by thread */
	uint32_t buffers_cap;
	struct buffer ages; /* head of the list: next is the oldest */
	size_t buffered;    /* bytes */
	uint64_t events;
	int err; /* what is wrong here and not at the sink: memory */
};

/* --- tables ------------------------------------------------------------------------------------- */

/* All entries that wait, in an order in which each finds what it leads to. */
static int hand_over_entries(struct trace_writer *w)
{
	int err = 0;

	if (!w->entries_wait)
		return 0;
	for (unsigned int type = 0; type < BLOCK_TABLES; type++) {
		struct entries *t = &w->tables[type];
		struct entries taken = *t;

		if (!taken.count)
			continue;
		*t = (struct entries){0};
		if (!err)
			err = sink__entries(w->sink, (uint16_t)type, taken.count, taken.raw);
		else
			free(taken.raw.p);
	}
	w->entries_wait = false;
	return err;
}

static int add_entry(struct trace_writer *w, unsigned int type, uint32_t index, const void *entry)
{
	struct entries *t = &w->tables[type];
	int err = trace_writer__error(w);

	if (!err)
		err = table__encode(table__of(type), &t->raw, index, entry);
	if (err == -ENOMEM)
		w->err = err;
	if (err)
		return err;
	t->count++;
	w->entries_wait = true;
	return t->raw.n >= ENTRIES_FULL ? hand_over_entries(w) : 0;
}

int trace_writer__span(struct trace_writer *w, const struct trace_span *s)
{
	int err = w->nspans < QBPF_SPANS_MAX - 1 ? 0 : -ENOSPC;

	if (!err)
		err = add_entry(w, BLOCK_SPANS, 0, s);
	if (!err)
		w->nspans++;
	return err;
}

int trace_writer__probe(struct trace_writer *w, const struct trace_probe *p)
{
	if (!p->span || p->span > w->nspans ||
	    (p->mapping >= w->nmappings && p->mapping != TRACE_NO_MAPPING))
		return -EINVAL;
	return add_entry(w, BLOCK_PROBES, 0, p);
}

int trace_writer__mapping(struct trace_writer *w, const struct trace_mapping *m)
{
	int err = add_entry(w, BLOCK_MAPPINGS, 0, m);

	if (!err)
		w->nmappings++;
	return err;
}

static int add_indexed(struct trace_writer *w, unsigned int type, uint32_t index, uint32_t *n,
		       const void *entry)
{
	int err = index <= *n && index != TRACE_NO_THREAD ? 0 : -EINVAL;

	if (!err)
		err = add_entry(w, type, index, entry);
	if (!err && index == *n)
		++*n;
	return err;
}

int trace_writer__process(struct trace_writer *w, uint32_t index, const struct trace_process *p)
{
	return add_indexed(w, BLOCK_PROCESSES, index, &w->nprocesses, p);
}

int trace_writer__thread(struct trace_writer *w, uint32_t index, const struct trace_thread *t)
{
	return add_indexed(w, BLOCK_THREADS, index, &w->nthreads, t);
}

int trace_writer__node(struct trace_writer *w, const struct trace_node *n)
{
	if (!n->id || n->id == QBPF_NODE_LOST || n->parent >= n->id || !n->span ||
	    n->span > w->nspans)
		return -EINVAL;
	return add_entry(w, BLOCK_NODES, 0, n);
}

int trace_writer__loss(struct trace_writer *w, const struct trace_loss *l)
{
	if (l->span > w->nspans)
		return -EINVAL;
	return add_entry(w, BLOCK_LOSSES, 0, l);
}

int trace_writer__clock(struct trace_writer *w, const struct trace_clock *c)
{
	return add_entry(w, BLOCK_CLOCKS, 0, c);
}

/* --- the GPU ------------------------------------------------------------------------------------ */

int trace_writer__gpu_name(struct trace_writer *w, const char *text, uint32_t *id)
{
	int err = w->nnames < UINT32_MAX - 1 ? 0 : -ENOSPC;
	struct trace_gpu_name name = {(char *)text};

	if (!err)
		err = add_entry(w, BLOCK_GPU_NAMES, 0, &name);
	if (!err)
		*id = ++w->nnames;
	return err;
}

int trace_writer__gpu_loss(struct trace_writer *w, const struct trace_gpu_loss *l)
{
	return l->reason < GPU_LOST_N ? add_entry(w, BLOCK_GPU_LOSSES, 0, l) : -EINVAL;
}

static int hand_over_gpu(struct trace_writer *w)
{
	struct entries taken = w->gpu;
	int err;

	if (!taken.count)
		return 0;
	w->gpu = (struct entries){0};
	err = hand_over_entries(w);
	if (!err)
		return sink__gpu(w->sink, w->gpu_ring, taken.count, taken.raw);
	free(taken.raw.p);
	return err;
}

static uint32_t name_of(const struct qbpf_ring_record *rec)
{
	switch (rec->type) {
	case QBPF_RING_KERNEL:
		return rec->first;
	case QBPF_RING_CALL:
		return ((const struct qbpf_ring_call *)rec)->name;
	case QBPF_RING_DEVICE:
		return ((const struct qbpf_ring_device *)rec)->name;
	default:
		return 0;
	}
}

int trace_writer__gpu(struct trace_writer *w, uint32_t ring, const struct qbpf_ring_record *rec)
{
	int err = trace_writer__error(w);

	if (err)
		return err;
	if (!rec->type || rec->size < ring_type_size(rec->type) || rec->size & 7 ||
	    rec->size > QBPF_RING_RECORD_MAX || name_of(rec) > w->nnames || ring == TRACE_NO_THREAD)
		return -EINVAL;
	if (ring != w->gpu_ring || w->gpu.raw.n + rec->size > ENTRIES_FULL)
		err = hand_over_gpu(w);
	w->gpu_ring = ring;
	if (err)
		return err;
	err = bytes__append(&w->gpu.raw, rec, rec->size);
	if (err)
		return w->err = err;
	w->gpu.count++;
	w->gpu_records++;
	return 0;
}

/* --- events ------------------------------------------------------------------------------------- */

static void leave_ages(struct buffer *b)
{
	b->prev->next = b->next;
	b->next->prev = b->prev;
	b->prev = b->next = NULL;
}

static int hand_over_events(struct trace_writer *w, struct buffer *b)
{
	struct event *events = b->events;
	uint32_t n = b->n, cap = b->cap;
	int err = hand_over_entries(w);

	leave_ages(b);
	b->busy = n == BLOCK_EVENTS_FULL;
	b->events = NULL;
	b->n = b->cap = 0;
	w->buffered -= cap * sizeof(*events);
	if (!err)
		return sink__events(w->sink, events, n, cap);
	free(events);
	return err;
}

static int grow(struct trace_writer *w, struct buffer *b)
{
	uint32_t cap = b->cap ? b->cap * 2 : b->busy ? BLOCK_EVENTS_FULL : BUFFER_FIRST;
	struct event *events;

	events = realloc(b->events, cap * sizeof(*events));
	if (!events)
		return -ENOMEM;
	w->buffered += (cap - b->cap) * sizeof(*events);
	b->events = events;
	b->cap = cap;
	return 0;
}

static int buffer_of(struct trace_writer *w, uint32_t thread, struct buffer **out)
{
	if (thread >= w->buffers_cap) {
		uint32_t cap = w->nthreads + w->nthreads / 2 + 16;
		struct buffer **p = realloc(w->buffers, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		memset(p + w->buffers_cap, 0, (cap - w->buffers_cap) * sizeof(*p));
		w->buffers = p;
		w->buffers_cap = cap;
	}
	if (!w->buffers[thread])
		w->buffers[thread] = calloc(1, sizeof(struct buffer));
	*out = w->buffers[thread];
	return *out ? 0 : -ENOMEM;
}

int trace_writer__event(struct trace_writer *w, const struct event *ev)
{
	int err = trace_writer__error(w);
	struct buffer *b;

	if (err)
		return err;
	if (ev->thread >= w->nthreads || !ev->span || ev->span > w->nspans || !ev->kind ||
	    ev->kind >= EVENT_KINDS)
		return -EINVAL;
	err = buffer_of(w, ev->thread, &b);
	if (!err && b->n == b->cap)
		err = grow(w, b);
	if (err)
		return w->err = err;
	if (!b->n) {
		b->prev = w->ages.prev;
		b->next = &w->ages;
		b->prev->next = w->ages.prev = b;
	}
	b->events[b->n++] = *ev;
	if (b->n == BLOCK_EVENTS_FULL)
		err = hand_over_events(w, b);
	while (!err && w->buffered > BUFFERS_MAX)
		err = hand_over_events(w, w->ages.next);
	if (!err)
		w->events++;
	return err;
}

/* --- the file ----------------------------------------------------------------------------------- */

int trace_writer__new(const char *path, const struct trace_meta *meta, struct trace_writer **out,
		      struct err *e)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	int err;

	*out = NULL;
	if (!w)
		return err_set(e, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	w->ages.next = w->ages.prev = &w->ages;
	err = sink__new(path, &w->sink, e);
	if (!err) {
		err = add_entry(w, BLOCK_META, 0, meta);
		if (err)
			err_set(e, err, "%s: %s", path, strerror(-err));
	}
	if (err) {
		trace_writer__free(w);
		return err;
	}
	*out = w;
	return 0;
}

int trace_writer__flush(struct trace_writer *w)
{
	int err = trace_writer__error(w);

	if (!err)
		err = hand_over_entries(w);
	if (!err)
		err = hand_over_gpu(w);
	while (!err && w->ages.next != &w->ages)
		err = hand_over_events(w, w->ages.next);
	return err;
}

int trace_writer__aggregates(struct trace_writer *w, const void *bytes, size_t len)
{
	struct bytes raw = {0};
	int err = trace_writer__error(w);

	if (!len || len > TRACE_TABLES_MAX / 2)
		return -EINVAL;
	if (!err)
		err = hand_over_entries(w);
	if (!err)
		err = bytes__append(&raw, bytes, len);
	return err ? err : sink__aggregates(w->sink, raw);
}

int trace_writer__close(struct trace_writer *w, uint64_t end_ns, const struct trace_count *counts,
			size_t ncounts, struct err *e)
{
	static const struct trace_count none;
	int err;

	if (ncounts > w->nspans)
		return err_set(e, -EINVAL, "more counts than spans");
	err = trace_writer__flush(w);
	for (size_t i = 0; i < w->nspans && !err; i++)
		err = add_entry(w, BLOCK_COUNTS, 0, i < ncounts ? &counts[i] : &none);
	if (!err)
		err = hand_over_entries(w);
	return sink__close(w->sink, end_ns, err, e);
}

void trace_writer__free(struct trace_writer *w)
{
	if (!w)
		return;
	sink__free(w->sink);
	for (size_t i = 0; i < sizeof(w->tables) / sizeof(w->tables[0]); i++)
		free(w->tables[i].raw.p);
	free(w->gpu.raw.p);
	for (uint32_t i = 0; i < w->buffers_cap; i++) {
		if (w->buffers[i])
			free(w->buffers[i]->events);
		free(w->buffers[i]);
	}
	free(w->buffers);
	free(w);
}

uint64_t trace_writer__events(const struct trace_writer *w)
{
	return w->events;
}

uint64_t trace_writer__gpu_records(const struct trace_writer *w)
{
	return w->gpu_records;
}

uint64_t trace_writer__gpu_held(const struct trace_writer *w, uint32_t type)
{
	return sink__gpu_held(w->sink, type);
}

uint64_t trace_writer__held(const struct trace_writer *w, uint32_t span)
{
	return sink__held(w->sink, span);
}

uint64_t trace_writer__bytes(const struct trace_writer *w)
{
	return sink__bytes(w->sink);
}

int trace_writer__error(const struct trace_writer *w)
{
	return w->err ? w->err : sink__error(w->sink);
}

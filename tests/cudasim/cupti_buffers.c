/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cupti_buffers.c - the tool's buffers: who asks for them, fills them and gives them back
 *
 * Each thread that makes calls fills a buffer of its own with their records and asks for it in the
 * middle of the call, as CUPTI 13 does by default. What a device did goes to the worker of its
 * stream, which writes it once it is over. Full buffers are completed by the workers in turn, and
 * those that a flush empties as well, so requests and completions come from many threads at once.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cupti_sim.h"

#define WORKERS 16
#define POLL_NS 1000000

struct buffer {
	struct buffer *next;
	uint8_t *p;
	size_t size, used, max, n;
};

/* Where one thread writes; they are never freed, since a flush may come after their thread's end. */
struct producer {
	struct producer *next;
	pthread_mutex_t lock;
	struct buffer *buffer;
};

struct worker {
	pthread_t thread;
	struct producer producer;
	struct record *due, *last; /* sorted by when they are due, then by age */
	struct buffer *full, **full_tail;
	uint64_t asked, done; /* flushes */
	bool busy, stop;
};

/* `lock` guards all that follows; a producer's lock may be held when it is taken, not the other way. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct producer *producers;
static struct worker workers[WORKERS];
static unsigned int n_workers, turn;
static size_t dropped, n_records;
static _Atomic int64_t n_calls; /* records of calls, for fatal= */
static _Atomic bool given_up;
static struct record *held, **held_tail = &held; /* order=: waits for a flush */
static size_t n_held;
static _Atomic bool registered;
static bool raced;
static unsigned int n_writing; /* threads in the middle of a call's record */

static __thread struct producer *mine;
static __thread struct worker *me;
static __thread unsigned int writing;

/* --- buffers ---------------------------------------------------------------------------------- */

static void give_back(struct buffer *b)
{
	struct timespec ts = {.tv_nsec = (long)sim_config()->complete_ns};

	if (ts.tv_nsec)
		nanosleep(&ts, NULL);
	complete(NULL, 0, b->p, b->size, b->used);
	free(b);
}

/* To the worker whose turn it is. */
static void hand_over(struct buffer *b)
{
	struct worker *w;

	pthread_mutex_lock(&lock);
	if (!n_workers) {
		pthread_mutex_unlock(&lock);
		give_back(b);
		return;
	}
	w = &workers[turn++ % n_workers];
	b->next = NULL;
	*w->full_tail = b;
	w->full_tail = &b->next;
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
}

static struct buffer *buffer_new(void)
{
	struct buffer *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	request(&b->p, &b->size, &b->max);
	if (b->p && b->size)
		return b;
	free(b);
	return NULL;
}

static void *race_thread(void *barrier)
{
	struct buffer *b;

	pthread_barrier_wait(barrier);
	b = buffer_new();
	if (b)
		give_back(b);
	return NULL;
}

/* race=N: the first request is N at once, of which the buffers come back empty. */
static void race(void)
{
	pthread_t threads[64];
	pthread_barrier_t barrier;
	unsigned int n = (unsigned int)sim_config()->race;

	if (!n || __atomic_exchange_n(&raced, true, __ATOMIC_SEQ_CST))
		return;
	pthread_barrier_init(&barrier, NULL, n);
	for (unsigned int i = 0; i < n; i++) {
		if (pthread_create(&threads[i], NULL, race_thread, &barrier))
			abort();
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool drop(const struct record *r, bool wanted)
{
	const struct sim_config *c = sim_config();
	bool lost = wanted;

	pthread_mutex_lock(&lock);
	if (!lost && c->drop && ++n_records % (size_t)c->drop == 0)
		lost = true;
	if (lost)
		dropped++;
	pthread_mutex_unlock(&lock);
	if (lost)
		sim_truth_lost(r->api ? "api" : "device", r->correlation);
	return lost;
}

static void append(struct buffer *b, const struct record *r)
{
	memcpy(b->p + b->used, r->bytes, r->size);
	b->used += r->size;
	b->n++;
}

static bool has_room(const struct buffer *b, const struct record *r)
{
	return b->used + r->size <= b->size && (!b->max || b->n < b->max);
}

/* What is in the buffers then is lost as well: nobody hands it over. */
static bool give_up(const struct record *r)
{
	int64_t at = sim_config()->fatal;

	if (at && r->api && ++n_calls == at) {
		given_up = true;
		callbacks_fatal();
	}
	return given_up;
}

/* Only the producer's own thread fills its buffer; a flush may take it away at any time. */
static void write_record(struct producer *p, struct record *r)
{
	struct buffer *b, *old;

	if (give_up(r) || drop(r, false)) {
		free(r);
		return;
	}
	pthread_mutex_lock(&p->lock);
	b = p->buffer;
	if (b && has_room(b, r)) {
		append(b, r);
		pthread_mutex_unlock(&p->lock);
		free(r);
		return;
	}
	p->buffer = NULL;
	pthread_mutex_unlock(&p->lock);
	if (b)
		hand_over(b);
	race();
	b = buffer_new();
	if (b && has_room(b, r)) {
		append(b, r);
		pthread_mutex_lock(&p->lock);
		old = p->buffer; /* of calls that the tool made while it was asked */
		p->buffer = b;
		pthread_mutex_unlock(&p->lock);
		b = old;
	} else {
		drop(r, true);
	}
	if (b)
		hand_over(b);
	free(r);
}

static struct producer *producer_of_thread(void)
{
	if (me)
		return &me->producer;
	if (!mine) {
		mine = calloc(1, sizeof(*mine));
		if (!mine)
			abort();
		pthread_mutex_init(&mine->lock, NULL);
		pthread_mutex_lock(&lock);
		mine->next = producers;
		producers = mine;
		pthread_mutex_unlock(&lock);
	}
	return mine;
}

/* Gives away what a thread has in its buffer. */
static void producer_empty(struct producer *p)
{
	struct buffer *b;

	pthread_mutex_lock(&p->lock);
	b = p->buffer;
	p->buffer = NULL;
	pthread_mutex_unlock(&p->lock);
	if (b)
		hand_over(b);
}

/* --- orders on demand ------------------------------------------------------------------------- */

static void hold(struct record *r)
{
	pthread_mutex_lock(&lock);
	r->next = NULL;
	*held_tail = r;
	held_tail = &r->next;
	n_held++;
	pthread_mutex_unlock(&lock);
}

static void write_where(struct record **all, size_t n, bool api)
{
	for (size_t i = 0; i < n; i++) {
		if (all[i] && all[i]->api == api) {
			write_record(producer_of_thread(), all[i]);
			all[i] = NULL;
		}
	}
}

/* Writes what was held in the order that is wanted. */
static void release_held(void)
{
	struct record *list, **all;
	size_t n, i = 0;

	pthread_mutex_lock(&lock);
	list = held;
	n = n_held;
	held = NULL;
	held_tail = &held;
	n_held = 0;
	pthread_mutex_unlock(&lock);
	if (!n)
		return;
	all = calloc(n, sizeof(*all));
	if (!all)
		abort();
	for (; list; list = list->next)
		all[i++] = list;
	if (sim_config()->order == ORDER_SHUFFLE) {
		for (i = n - 1; i > 0; i--) {
			size_t j = (size_t)(sim_random(i) % (i + 1));
			struct record *r = all[i];

			all[i] = all[j];
			all[j] = r;
		}
		for (i = 0; i < n; i++)
			write_record(producer_of_thread(), all[i]);
	} else {
		write_where(all, n, sim_config()->order == ORDER_API_FIRST);
		write_where(all, n, sim_config()->order != ORDER_API_FIRST);
	}
	free(all);
}

/* --- workers ---------------------------------------------------------------------------------- */

/* The first record that is due; with `lock` held. */
static struct record *take_due(struct worker *w)
{
	struct record *r = w->due;

	if (!r || r->due > sim_now())
		return NULL;
	w->due = r->next;
	if (r->next)
		r->next->prev = NULL;
	else
		w->last = NULL;
	return r;
}

static void put_device(struct worker *w, struct record *r)
{
	if (sim_config()->order == ORDER_NATURAL)
		write_record(&w->producer, r);
	else
		hold(r);
}

static struct buffer *take_full(struct worker *w)
{
	struct buffer *b = w->full;

	if (b) {
		w->full = b->next;
		if (!w->full)
			w->full_tail = &w->full;
	}
	return b;
}

/* One thing at a time, with `lock` held on entry and on return; false: nothing to do. With the
 * virtual clock only a flush makes records come: otherwise their order would be left to chance. */
static bool work(struct worker *w)
{
	bool flush = w->asked != w->done;
	struct record *r = flush || !sim_config()->virtual_clock ? take_due(w) : NULL;
	struct buffer *b = r ? NULL : take_full(w);
	uint64_t asked = w->asked;

	if (!r && !b && !flush)
		return false;
	w->busy = true;
	pthread_mutex_unlock(&lock);
	if (r)
		put_device(w, r);
	else if (b)
		give_back(b);
	else
		producer_empty(&w->producer);
	pthread_mutex_lock(&lock);
	w->busy = false;
	if (!r && !b)
		w->done = asked;
	pthread_cond_broadcast(&idle);
	return true;
}

static void sleep_until_woken(struct worker *w)
{
	struct timespec ts;
	uint64_t ns;

	if (!w->due || sim_config()->virtual_clock) {
		pthread_cond_wait(&wake, &lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	ns = (uint64_t)ts.tv_nsec + POLL_NS;
	ts.tv_sec += (time_t)(ns / 1000000000u);
	ts.tv_nsec = (long)(ns % 1000000000u);
	pthread_cond_timedwait(&wake, &lock, &ts);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	me = w;
	pthread_mutex_lock(&lock);
	for (;;) {
		if (work(w))
			continue;
		if (w->stop)
			break;
		sleep_until_woken(w);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* With `lock` held. */
static void workers_start(void)
{
	if (n_workers)
		return;
	for (int64_t i = 0; i < sim_config()->threads; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){.full_tail = &w->full};
		pthread_mutex_init(&w->producer.lock, NULL);
		w->producer.next = producers;
		producers = &w->producer;
		if (pthread_create(&w->thread, NULL, worker_main, w))
			abort();
	}
	n_workers = (unsigned int)sim_config()->threads;
}

/* --- what the rest calls ---------------------------------------------------------------------- */

void buffers_register(CUpti_BuffersCallbackRequestFunc req, CUpti_BuffersCallbackCompleteFunc done)
{
	pthread_mutex_lock(&lock);
	request = req;
	complete = done;
	registered = true;
	pthread_mutex_unlock(&lock);
}

bool buffers_registered(void)
{
	return registered;
}

void buffers_api(struct record *r)
{
	pthread_mutex_lock(&lock);
	if (!registered) {
		pthread_mutex_unlock(&lock);
		free(r);
		return;
	}
	workers_start();
	n_writing++;
	pthread_mutex_unlock(&lock);
	writing++;
	if (sim_config()->order == ORDER_NATURAL)
		write_record(producer_of_thread(), r);
	else
		hold(r);
	writing--;
	pthread_mutex_lock(&lock);
	n_writing--;
	pthread_cond_broadcast(&idle);
	pthread_mutex_unlock(&lock);
}

void buffers_device(struct record *r, uint32_t stream)
{
	struct record *after;
	struct worker *w;

	pthread_mutex_lock(&lock);
	if (!registered) {
		pthread_mutex_unlock(&lock);
		free(r);
		return;
	}
	workers_start();
	w = &workers[stream % n_workers];
	/* A worker that has something to wait for looks by itself. */
	if (!w->due)
		pthread_cond_broadcast(&wake);
	for (after = w->last; after && after->due > r->due; after = after->prev)
		;
	r->prev = after;
	r->next = after ? after->next : w->due;
	if (r->next)
		r->next->prev = r;
	else
		w->last = r;
	if (after)
		after->next = r;
	else
		w->due = r;
	pthread_mutex_unlock(&lock);
}

/* Asks all workers to write and return what they have, and waits for it. */
static void flush_workers(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < n_workers; i++)
		workers[i].asked++;
	pthread_cond_broadcast(&wake);
	for (unsigned int i = 0; !me && i < n_workers; i++) {
		const struct worker *w = &workers[i];

		while (w->done != w->asked || w->full || w->busy)
			pthread_cond_wait(&idle, &lock);
	}
	pthread_mutex_unlock(&lock);
}

/* Forced or not: no buffer ever holds an unfinished record. */
bool buffers_flush(void)
{
	struct producer *p;

	if (given_up)
		return false;
	if (sim_config()->order != ORDER_NATURAL) {
		flush_workers();
		release_held();
	}
	pthread_mutex_lock(&lock);
	p = producers;
	pthread_mutex_unlock(&lock);
	for (; p; p = p->next)
		producer_empty(p);
	flush_workers();
	/* Their own buffers went to each other. */
	flush_workers();
	return true;
}

size_t buffers_dropped(void)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return n;
}

void buffers_stop(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	registered = false;
	while (n_writing > writing)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
	buffers_flush();
	pthread_mutex_lock(&lock);
	n = n_workers;
	for (unsigned int i = 0; i < n; i++)
		workers[i].stop = true;
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < n; i++) {
		if (&workers[i] != me)
			pthread_join(workers[i].thread, NULL);
	}
	pthread_mutex_lock(&lock);
	n_workers = 0;
	for (struct producer **p = &producers; *p;) {
		bool ours =
		    (char *)*p >= (char *)workers && (char *)*p < (char *)(workers + WORKERS);

		if (ours)
			*p = (*p)->next;
		else
			p = &(*p)->next;
	}
	for (unsigned int i = 0; i < n; i++) {
		while (workers[i].due) {
			struct record *r = workers[i].due;

			workers[i].due = r->next;
			free(r);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* The child has no workers, and no use for what its parent left behind. */
void buffers_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&wake, NULL);
	pthread_cond_init(&idle, NULL);
	registered = false;
	n_writing = 0;
	n_workers = 0;
	producers = NULL;
	mine = NULL;
}

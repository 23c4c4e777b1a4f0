// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reader of the ring; see stream.h.
 *
 * It looks every few ms while records come and less often while none do. The programs wake it only
 * when a share of the ring has filled (cfg_stream_wake), which epoll tells edge-triggered: level-
 * triggered it would return for each single record.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "clock.h"
#include "quiet_thread.h"
#include "trace/maps_read.h"
#include "trace/stream_impl.h"

#define BATCH	  32768 /* records between two looks at the clock and at who waits for the lock */
#define WAIT_BUSY 4	/* ms */
#define WAIT_IDLE 32

/* --- records ------------------------------------------------------------------------------------ */

static bool node_is_known(const struct stream *s, uint32_t id)
{
	return id < s->nnodes && s->nodes[id / 8] & 1 << id % 8;
}

static int write_node(void *ctx, uint32_t id, uint32_t parent, uint32_t span)
{
	struct trace_node row = {.id = id, .parent = parent, .span = span};
	struct stream *s = ctx;

	if (!id || id == QBPF_NODE_LOST || node_is_known(s, id) || !span || span > s->nspans)
		return 0;
	if (id >= s->nnodes) {
		size_t n = ((size_t)id + id / 2 + 1024) / 8 * 8;
		unsigned char *bits = realloc(s->nodes, n / 8);

		if (!bits)
			return -ENOMEM;
		memset(bits + s->nnodes / 8, 0, (n - s->nnodes) / 8);
		s->nodes = bits;
		s->nnodes = n;
	}
	s->nodes[id / 8] |= 1 << id % 8;
	trace_writer__node(s->w, &row);
	return 0;
}

/* A node is in the kernel's map before anything in it can end. */
static uint32_t known_node(struct stream *s, uint32_t id)
{
	if (!id || id == QBPF_NODE_LOST || node_is_known(s, id))
		return id;
	if (maps_each_node(s->skel, write_node, s))
		return QBPF_NODE_LOST;
	return node_is_known(s, id) ? id : QBPF_NODE_LOST;
}

/*
 * What is open at the end comes from a task iterator. A thread that ends at the same moment tells
 * the same, or the rest of it, by the ring. 1: known already.
 */
static int was_shown(struct stream *s, uint32_t thread)
{
	unsigned char *p;

	if (!s->iterating)
		return thread < s->nshown && s->shown[thread];
	if (thread >= s->nshown) {
		p = realloc(s->shown, 2 * (size_t)thread + 16);
		if (!p)
			return -ENOMEM;
		memset(p + s->nshown, 0, 2 * (size_t)thread + 16 - s->nshown);
		s->shown = p;
		s->nshown = 2 * thread + 16;
	}
	s->shown[thread] = 1;
	return 0;
}

static void put_event(struct stream *s, const struct qbpf_record *r)
{
	struct event ev = {
	    .start_ns = r->start_ns,
	    .end_ns = r->end_ns,
	    .span = r->span,
	    .depth = r->depth,
	    .kind = (uint8_t)r->type,
	};
	int err;

	if (s->fault)
		return;
	switch (r->type) {
	case QBPF_RECORD_KEYED:
		ev.begin_tid = r->begin_tid;
		ev.arg = r->arg;
		break;
	case QBPF_RECORD_VALUE:
		ev.arg = r->arg;
		break;
	case QBPF_RECORD_INSTANT:
		ev.node = known_node(s, r->node);
		break;
	default:
		ev.node = known_node(s, r->node);
		ev.child_ns = r->child_ns;
	}
	if (s->over_ns && r->type == QBPF_RECORD_OPEN)
		ev.end_ns = s->over_ns;
	if (ev.end_ns < ev.start_ns)
		ev.end_ns = ev.start_ns;
	if (ev.child_ns > ev.end_ns - ev.start_ns)
		ev.child_ns = ev.end_ns - ev.start_ns;
	err = roster__thread(s->roster, r->tgid, r->tid, r->flags & QBPF_RECORD_FIRST, ev.start_ns,
			     &ev.thread);
	if (!err && s->over_ns && r->type == QBPF_RECORD_OPEN)
		err = was_shown(s, ev.thread);
	if (!err)
		err = trace_writer__event(s->w, &ev);
	stream__note_fault(s, err > 0 ? 0 : err);
}

static void feed_span(struct stream *s, const struct qbpf_record *r)
{
	const struct gpu_host_span span = {
	    .start_ns = r->start_ns,
	    .end_ns = r->end_ns > r->start_ns ? r->end_ns : r->start_ns,
	    .tgid = r->tgid,
	    .tid = r->tid,
	    .span = r->span,
	    .depth = r->depth,
	};

	gpu_feed__span(s->feed, &span);
}

static void take_record(struct stream *s, const struct qbpf_record *r)
{
	bool end = r->type == QBPF_RECORD_EXIT || r->type == QBPF_RECORD_EXEC;

	if (end && !s->w)
		return;
	if (end) {
		bool exec = r->type == QBPF_RECORD_EXEC;
		char comm[sizeof(r->comm) + 1] = "";

		memcpy(comm, r->comm, sizeof(r->comm));
		stream__note_fault(
		    s, roster__thread_end(s->roster, r->tid, r->end_ns, exec ? NULL : comm));
		if (exec)
			stream__note_fault(s, roster__process_exec(s->roster, r->tgid, comm));
		return;
	}
	if (!r->span || r->span > s->nspans || r->type > QBPF_RECORD_OPEN)
		return;
	if (r->type != QBPF_RECORD_OPEN)
		__atomic_fetch_add(&s->spans[r->span].streamed, 1, __ATOMIC_RELAXED);
	if (s->feed && r->type == QBPF_RECORD_SPAN)
		feed_span(s, r);
	if (s->w)
		put_event(s, r);
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct stream *s = ctx;

	if (size >= sizeof(struct qbpf_record))
		take_record(s, data);
	return ++s->taken < BATCH ? 0 : -EAGAIN;
}

/* True: there is more. */
static bool take_batch(struct stream *s)
{
	uint64_t now = now_ns();
	bool more;

	s->taken = 0;
	s->skel->bss->stream_woken = false;
	more = ring_buffer__consume(s->ring) == -EAGAIN;
	if (s->feed && !more)
		gpu_queue__seen(gpu_feed__queue(s->feed), GPU_FROM_HOST, now);
	return more;
}

/* --- the thread --------------------------------------------------------------------------------- */

static void *run(void *arg)
{
	struct stream *s = arg;
	struct epoll_event ev;
	int wait = WAIT_BUSY;

	for (;;) {
		uint64_t stop;
		bool more;

		epoll_wait(s->epfd, &ev, 1, wait);
		pthread_mutex_lock(&s->lock);
		more = take_batch(s);
		stream__each_second(s, now_ns());
		pthread_mutex_unlock(&s->lock);
		if (more)
			wait = 0;
		else if (s->taken)
			wait = WAIT_BUSY;
		else if (wait < WAIT_IDLE)
			wait = wait ? 2 * wait : WAIT_BUSY;
		if (read(s->stopfd, &stop, sizeof(stop)) == sizeof(stop))
			return NULL;
	}
}

static int start_thread(struct stream *s)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int err;

	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	s->stopfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epfd < 0 || s->stopfd < 0)
		return -errno;
	if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, bpf_map__fd(s->skel->maps.stream), &ev))
		return -errno;
	ev.events = EPOLLIN;
	if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, s->stopfd, &ev))
		return -errno;
	err = quiet_thread__start(&s->thread, run, s);
	s->running = !err;
	return err;
}

static void stop_thread(struct stream *s)
{
	uint64_t one = 1;

	if (!s->running)
		return;
	s->running = false;
	if (write(s->stopfd, &one, sizeof(one)) == sizeof(one))
		pthread_join(s->thread, NULL);
}

int stream__start(struct qbpf_bpf *skel, const struct record_opts *o, const struct trace_meta *meta,
		  size_t span_room, struct gpu_feed *feed, struct stream **out, struct err *e)
{
	struct stream *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return err_set(e, err, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	s->epfd = s->stopfd = -1;
	s->skel = skel;
	s->feed = feed;
	s->room = span_room;
	s->slow = o->nslow;
	s->cpus = libbpf_num_possible_cpus();
	s->start_ns = s->second_ns = meta->start_ns;
	err_set(e, err, "out of memory");
	if (s->cpus < 1)
		goto out;
	s->spans = calloc(span_room + 1, sizeof(*s->spans));
	if (!s->spans)
		goto out;
	if (o->path) {
		err = trace_writer__new(o->path, meta, &s->w, e);
		if (err)
			goto out;
		s->roster = roster__new(s->w);
		if (!s->roster) {
			err = -ENOMEM;
			goto out;
		}
		stream__put_clock(s, meta->start_ns);
	}
	s->ring = ring_buffer__new(bpf_map__fd(skel->maps.stream), on_record, s, NULL);
	if (!s->ring) {
		err = err_set(e, -errno, "cannot open the ring of records");
		goto out;
	}
	err = start_thread(s);
	if (err) {
		err_set(e, err, "cannot start the recording's thread: %s", strerror(-err));
		goto out;
	}
	*out = s;
	return 0;
out:
	stream__free(s);
	return err;
}

void stream__free(struct stream *s)
{
	if (!s)
		return;
	stop_thread(s);
	ring_buffer__free(s->ring);
	trace_writer__free(s->w);
	roster__free(s->roster);
	if (s->epfd >= 0)
		close(s->epfd);
	if (s->stopfd >= 0)
		close(s->stopfd);
	pthread_mutex_destroy(&s->lock);
	free(s->spans);
	free(s->nodes);
	free(s->shown);
	free(s);
}

/* --- tables ------------------------------------------------------------------------------------- */

void stream__span(struct stream *s, const struct trace_span *row)
{
	pthread_mutex_lock(&s->lock);
	if (s->nspans < s->room) {
		if (s->w)
			stream__note_fault(s, trace_writer__span(s->w, row));
		if (s->feed)
			gpu_feed__span_name(s->feed, row->name);
		s->nspans++;
	}
	pthread_mutex_unlock(&s->lock);
}

void stream__probe(struct stream *s, const struct trace_probe *row)
{
	pthread_mutex_lock(&s->lock);
	stream__note_fault(s, trace_writer__probe(s->w, row));
	pthread_mutex_unlock(&s->lock);
}

uint32_t stream__mapping(struct stream *s, const struct trace_mapping *row)
{
	uint32_t index = TRACE_NO_MAPPING;
	int err;

	pthread_mutex_lock(&s->lock);
	err = trace_writer__mapping(s->w, row);
	if (!err)
		index = s->nmappings++;
	stream__note_fault(s, err);
	pthread_mutex_unlock(&s->lock);
	return index;
}

void stream__process(struct stream *s, uint32_t tgid, uint64_t seen_ns)
{
	pthread_mutex_lock(&s->lock);
	if (s->roster)
		stream__note_fault(s, roster__process(s->roster, tgid, seen_ns));
	pthread_mutex_unlock(&s->lock);
}

void stream__process_end(struct stream *s, uint32_t tgid, uint64_t end_ns)
{
	pthread_mutex_lock(&s->lock);
	if (s->roster)
		stream__note_fault(s, roster__process_end(s->roster, tgid, end_ns));
	pthread_mutex_unlock(&s->lock);
}

struct trace_writer *stream__borrow_writer(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	return s->fault ? NULL : s->w;
}

void stream__return_writer(struct stream *s, int err)
{
	stream__note_fault(s, err);
	pthread_mutex_unlock(&s->lock);
}

/* --- the end ------------------------------------------------------------------------------------ */

static void take_rest(void *ctx, const void *record)
{
	const struct qbpf_record *r = record;
	struct stream *s = ctx;

	if (r->span && r->span <= s->nspans && r->type < QBPF_RECORD_OPEN)
		s->spans[r->span].adjust--;
	take_record(s, r);
}

/* An open keyed span is whoever's began it. */
static int take_open_key(void *ctx, const struct qbpf_open_key *key, const struct qbpf_open *open)
{
	struct stream *s = ctx;
	struct event ev = {
	    .start_ns = open->start_ns,
	    .end_ns = s->over_ns > open->start_ns ? s->over_ns : open->start_ns,
	    .arg = key->value,
	    .span = key->span,
	    .begin_tid = open->tid,
	    .kind = EVENT_OPEN,
	};
	int err;

	if (!key->span || key->span > s->nspans || s->fault)
		return 0;
	err = roster__thread(s->roster, key->tgid, open->tid, false, open->start_ns, &ev.thread);
	if (!err)
		err = trace_writer__event(s->w, &ev);
	stream__note_fault(s, err);
	return 0;
}

int stream__stop(struct stream *s, uint64_t end_ns, struct err *e)
{
	int err;

	stop_thread(s);
	while (take_batch(s))
		;
	if (!s->w)
		return 0;
	s->over_ns = end_ns;
	s->iterating = true;
	err = maps_each_record(s->skel->progs.on_stream_end, sizeof(struct qbpf_record), take_rest,
			       s);
	s->iterating = false;
	while (take_batch(s))
		;
	/* Of what --sample and --slow leave out nothing is known before its end. */
	if (!err && !s->slow && s->skel->rodata->cfg_sample <= 1)
		err = maps_each_open_key(s->skel, take_open_key, s);
	return err ? err_set(e, err, "cannot read what is open from the kernel: %s", strerror(-err))
		   : 0;
}

int stream__finish(struct stream *s, uint64_t end_ns, const uint64_t *counted, size_t n,
		   const void *aggregates, size_t aggregates_len, struct err *e)
{
	struct stream_count *counts = calloc(s->nspans + 1, sizeof(*counts));
	struct trace_count *rows = calloc(s->nspans + 1, sizeof(*rows));
	int err = counts && rows ? stream__read_counts(s, counts, s->nspans) : -ENOMEM;

	for (size_t i = 0; i < s->nspans && !err; i++)
		rows[i] = (struct trace_count){
		    .counted = i < n ? counted[i] : 0,
		    .streamed = counts[i + 1].streamed,
		    .lost = counts[i + 1].lost,
		    .skipped = counts[i + 1].skipped,
		};
	/* The reader may have told of a second that ended after that. */
	stream__put_losses(s, s->second_ns, end_ns > s->second_ns ? end_ns : s->second_ns + 1,
			   true);
	stream__put_clock(s, end_ns);
	stream__note_fault(s, err);
	stream__note_fault(s, roster__finish(s->roster));
	if (aggregates && !s->fault)
		stream__note_fault(s, trace_writer__aggregates(s->w, aggregates, aggregates_len));
	/* Also after a fault: it tells what is in the file, and says what the fault was. */
	err = trace_writer__close(s->w, end_ns, rows, rows && counts ? s->nspans : 0, e);
	stream__note_fault(s, err);
	s->closed = true;
	free(counts);
	free(rows);
	return -s->fault;
}

int stream__counts(const struct stream *s, struct stream_count *out, size_t n)
{
	return stream__read_counts(s, out, n < s->room ? n : s->room);
}

uint64_t stream__held(const struct stream *s, uint32_t span, const struct stream_count *c)
{
	return s->closed && s->fault ? trace_writer__held(s->w, span) : c->streamed;
}

uint64_t stream__gpu_held(const struct stream *s, uint32_t type)
{
	return trace_writer__gpu_held(s->w, type);
}

uint64_t stream__bytes(const struct stream *s)
{
	return trace_writer__bytes(s->w);
}

uint64_t stream__wakeups(const struct stream *s)
{
	return s->skel->bss->stat_stream_wakeups;
}

int stream__fault(const struct stream *s)
{
	return s->fault;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The queue and the thread behind a trace writer. */
#include "file/sink.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#include "file/codec.h"
#include "qbpf/ring.h"
#include "quiet_thread.h"

#define QUEUE_MAX  (32u << 20) /* bytes of items that wait */
#define INDEX_MAX  65536u      /* entries of one INDEX block */
#define PART_MAX   (8u << 20)  /* of one AGGREGATES block */
#define ZSTD_LEVEL 1

struct item {
	struct item *next;
	uint16_t type;
	uint32_t thread; /* of the block's header */
	uint32_t count;
	size_t cost;	      /* bytes of memory */
	struct bytes raw;     /* entries, aggregates, GPU records */
	struct event *events; /* EVENTS */
	uint64_t end_ns;      /* END */
};

struct sink {
	char *path;
	int fd;
	bool created, regular;
	bool started; /* the file's header is written */
	/* of the thread alone */
	struct event_codec *codec;
	ZSTD_CCtx *zstd;
	struct bytes raw, stored;
	struct bytes index;  /* entries since the last INDEX block */
	uint64_t last_index; /* its offset; 0: none yet */
	uint64_t seq, nevents;
	uint64_t *held; /* by span id: events written */
	uint32_t nheld;
	uint64_t gpu_held[QBPF_RING_TYPES]; /* the same of records of the GPU */
	/* shared */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	struct item *first, **last;
	size_t queued; /* bytes */
	bool finish;
	atomic_int err;
	_Atomic uint64_t bytes; /* offset of the next block */
};

/* --- the thread --------------------------------------------------------------------------------- */

static int write_all(struct sink *s, const void *head, size_t head_len, const void *tail,
		     size_t tail_len)
{
	struct iovec parts[2] = {{(void *)head, head_len}, {(void *)tail, tail_len}};
	struct iovec *p = parts;

	for (;;) {
		ssize_t n;

		for (; p < parts + 2 && !p->iov_len; p++)
			;
		if (p == parts + 2)
			return 0;
		n = writev(s->fd, p, (int)(parts + 2 - p));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOSPC;
		for (size_t left = (size_t)n; left;) {
			size_t step = left < p->iov_len ? left : p->iov_len;

			p->iov_base = (char *)p->iov_base + step;
			p->iov_len -= step;
			left -= step;
			if (!p->iov_len)
				p++;
		}
	}
}

static int start_file(struct sink *s)
{
	struct trace_file_header h = {
	    .major = TRACE_MAJOR, .minor = TRACE_MINOR, .size = sizeof(h)};
	int err;

	memcpy(h.magic, TRACE_MAGIC, sizeof(h.magic));
	h.crc = trace_crc(&h, offsetof(struct trace_file_header, crc));
	/* What was there before is only given up now that something takes its place. */
	if (s->regular && ftruncate(s->fd, 0))
		return -errno;
	s->started = true;
	err = write_all(s, &h, sizeof(h), NULL, 0);
	if (!err)
		atomic_store(&s->bytes, sizeof(h));
	return err;
}

static int write_block(struct sink *s, struct trace_block *b, const void *payload)
{
	int err = 0;

	if (!s->started)
		err = start_file(s);
	if (err)
		return err;
	b->magic = TRACE_BLOCK_MAGIC;
	b->seq = s->seq;
	trace_block__seal(b, payload);
	err = write_all(s, b, sizeof(*b), payload, b->stored_len);
	if (err)
		return err;
	s->seq++;
	atomic_fetch_add(&s->bytes, sizeof(*b) + b->stored_len);
	return 0;
}

/* Compresses where that helps. */
static int write_raw(struct sink *s, struct trace_block *b, const uint8_t *raw, size_t len)
{
	size_t n;
	int err;

	if (len > TRACE_RAW_MAX)
		return -E2BIG;
	s->stored.n = 0;
	err = bytes__reserve(&s->stored, ZSTD_compressBound(len));
	if (err)
		return err;
	b->raw_len = b->stored_len = (uint32_t)len;
	b->codec = CODEC_NONE;
	n = ZSTD_compressCCtx(s->zstd, s->stored.p, s->stored.cap, raw, len, ZSTD_LEVEL);
	if (!ZSTD_isError(n) && n < len) {
		b->codec = CODEC_ZSTD;
		b->stored_len = (uint32_t)n;
		raw = s->stored.p;
	}
	return write_block(s, b, raw);
}

static int write_index(struct sink *s)
{
	struct trace_block b = {
	    .type = BLOCK_INDEX,
	    .thread = TRACE_NO_THREAD,
	    .count = (uint32_t)(s->index.n / sizeof(struct trace_index_entry)),
	    .ref = s->last_index,
	};
	uint64_t off = atomic_load(&s->bytes);
	int err = write_raw(s, &b, s->index.p, s->index.n);

	if (err)
		return err;
	s->index.n = 0;
	s->last_index = off;
	return 0;
}

/* Any block but INDEX and END. */
static int write_indexed(struct sink *s, struct trace_block *b, const uint8_t *raw, size_t len)
{
	struct trace_index_entry entry = {
	    .start_ns = b->start_ns,
	    .end_ns = b->end_ns,
	    .thread = b->thread,
	    .count = b->count,
	    .type = b->type,
	};
	int err = write_raw(s, b, raw, len);

	if (err)
		return err;
	entry.stored_len = b->stored_len;
	entry.off = atomic_load(&s->bytes) - sizeof(*b) - b->stored_len;
	err = bytes__append(&s->index, &entry, sizeof(entry));
	if (!err && s->index.n / sizeof(entry) >= INDEX_MAX)
		err = write_index(s);
	return err;
}

static int write_aggregates(struct sink *s, const struct item *it)
{
	uint32_t parts = (uint32_t)((it->raw.n + PART_MAX - 1) / PART_MAX);
	int err = 0;

	for (uint32_t i = 0; i < parts && !err; i++) {
		size_t from = (size_t)i * PART_MAX, left = it->raw.n - from;
		struct trace_block b = {.type = BLOCK_AGGREGATES, .thread = i, .count = parts};

		err = write_indexed(s, &b, it->raw.p + from, left < PART_MAX ? left : PART_MAX);
	}
	return err;
}

static int write_end(struct sink *s, uint64_t end_ns)
{
	struct trace_block b = {
	    .type = BLOCK_END, .thread = TRACE_NO_THREAD, .start_ns = s->nevents, .end_ns = end_ns};
	int err = 0;

	if (s->index.n || !s->last_index)
		err = write_index(s);
	b.ref = s->last_index;
	return err ? err : write_block(s, &b, NULL);
}

static int make_room_for_held(struct sink *s, const struct item *it)
{
	uint32_t most = 0;
	uint64_t *held;

	for (uint32_t i = 0; i < it->count; i++)
		if (it->events[i].span > most)
			most = it->events[i].span;
	if (most < s->nheld)
		return 0;
	most += most / 2 + 1;
	held = realloc(s->held, most * sizeof(*held));
	if (!held)
		return -ENOMEM;
	memset(held + s->nheld, 0, (most - s->nheld) * sizeof(*held));
	s->held = held;
	s->nheld = most;
	return 0;
}

static void count_gpu(struct sink *s, const struct item *it)
{
	const struct qbpf_ring_record *rec;

	for (size_t at = 0; at < it->raw.n; at += rec->size) {
		rec = (const void *)(it->raw.p + at);
		s->gpu_held[rec->type < QBPF_RING_TYPES ? rec->type : 0]++;
	}
}

static int write_item(struct sink *s, const struct item *it)
{
	struct trace_block b = {.type = it->type, .thread = it->thread, .count = it->count};
	int err;

	if (it->type == BLOCK_AGGREGATES)
		return write_aggregates(s, it);
	if (it->type == BLOCK_END)
		return write_end(s, it->end_ns);
	if (it->type != BLOCK_EVENTS) {
		err = write_indexed(s, &b, it->raw.p, it->raw.n);
		if (!err && it->type == BLOCK_GPU)
			count_gpu(s, it);
		return err;
	}
	err = make_room_for_held(s, it);
	if (!err)
		err = event_codec__encode(s->codec, it->events, it->count, &s->raw, &b);
	if (!err)
		err = write_indexed(s, &b, s->raw.p, s->raw.n);
	if (err)
		return err;
	s->nevents += it->count;
	for (uint32_t i = 0; i < it->count; i++)
		s->held[it->events[i].span]++;
	return 0;
}

static void free_item(struct item *it)
{
	free(it->raw.p);
	free(it->events);
	free(it);
}

/* The first fault of the disk. A pipe keeps what it has got. */
static void fail(struct sink *s, int err)
{
	atomic_store(&s->err, err);
	if (s->regular && s->started && ftruncate(s->fd, (off_t)atomic_load(&s->bytes)))
		return; /* the reader finds the torn block and stops before it */
}

static void *run(void *arg)
{
	struct sink *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct item *it;
		int err = 0;

		while (!s->first && !s->finish)
			pthread_cond_wait(&s->more, &s->lock);
		it = s->first;
		if (!it)
			break;
		s->first = it->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&s->lock);
		if (!atomic_load(&s->err))
			err = write_item(s, it);
		if (err)
			fail(s, err);
		pthread_mutex_lock(&s->lock);
		s->queued -= it->cost;
		pthread_cond_broadcast(&s->less);
		free_item(it);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* --- the callers' side -------------------------------------------------------------------------- */

static int push(struct sink *s, struct item it)
{
	struct item *copy = NULL;
	int err = atomic_load(&s->err);

	if (!err) {
		copy = malloc(sizeof(*copy));
		err = copy ? 0 : -ENOMEM;
	}
	if (err) {
		free(it.raw.p);
		free(it.events);
		return err;
	}
	*copy = it;
	copy->next = NULL;
	copy->cost += sizeof(*copy);
	pthread_mutex_lock(&s->lock);
	while (s->queued && s->queued + copy->cost > QUEUE_MAX)
		pthread_cond_wait(&s->less, &s->lock);
	*s->last = copy;
	s->last = &copy->next;
	s->queued += copy->cost;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	return atomic_load(&s->err);
}

int sink__entries(struct sink *s, uint16_t type, uint32_t count, struct bytes raw)
{
	return push(s, (struct item){.type = type,
				     .thread = TRACE_NO_THREAD,
				     .count = count,
				     .cost = raw.cap,
				     .raw = raw});
}

int sink__gpu(struct sink *s, uint32_t ring, uint32_t count, struct bytes raw)
{
	return push(
	    s, (struct item){
		   .type = BLOCK_GPU, .thread = ring, .count = count, .cost = raw.cap, .raw = raw});
}

int sink__events(struct sink *s, struct event *events, size_t n, size_t cap)
{
	return push(s, (struct item){.type = BLOCK_EVENTS,
				     .count = (uint32_t)n,
				     .cost = cap * sizeof(*events),
				     .events = events});
}

int sink__aggregates(struct sink *s, struct bytes raw)
{
	return push(s, (struct item){.type = BLOCK_AGGREGATES, .cost = raw.cap, .raw = raw});
}

/* Under sudo the file belongs to the user who asked for it. */
static void give_to_user(int fd)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	unsigned long u, g;
	char *uend, *gend;

	if (geteuid() || !uid || !gid || !*uid || !*gid)
		return;
	u = strtoul(uid, &uend, 10);
	g = strtoul(gid, &gend, 10);
	if (*uend || *gend || u > INT32_MAX || g > INT32_MAX)
		return;
	if (fchown(fd, (uid_t)u, (gid_t)g))
		return; /* a file system without owners: root's file is still a trace */
}

static int open_file(struct sink *s)
{
	struct stat st;

	s->fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	s->created = s->fd >= 0;
	/* A link that leads nowhere exists as well, so this too may create. */
	if (s->fd < 0 && errno == EEXIST)
		s->fd = open(s->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (s->fd < 0 || fstat(s->fd, &st))
		return -errno;
	/* File systems without locks are no reason not to record. */
	if (flock(s->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		s->created = false; /* what is there is the other's */
		return -EBUSY;
	}
	s->regular = S_ISREG(st.st_mode);
	if (s->created)
		give_to_user(s->fd);
	return 0;
}

/* No signal of the process is ever handled here; SIGXFSZ and SIGPIPE of a write stay unseen. */
static int start_thread(struct sink *s)
{
	int err = quiet_thread__start(&s->thread, run, s);

	s->running = !err;
	return err;
}

static void stop_thread(struct sink *s)
{
	if (!s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->finish = true;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->running = false;
}

int sink__new(const char *path, struct sink **out, struct err *e)
{
	struct sink *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	*out = NULL;
	if (!s)
		return err_set(e, err, "%s: %s", path, strerror(-err));
	s->fd = -1;
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	pthread_cond_init(&s->less, NULL);
	s->path = strdup(path);
	s->codec = event_codec__new();
	s->zstd = ZSTD_createCCtx();
	if (s->path && s->codec && s->zstd)
		err = open_file(s);
	if (!err)
		err = start_thread(s);
	if (err) {
		sink__free(s);
		return err_set(e, err, "%s: %s", path,
			       err == -EBUSY ? "another recording is being written there"
					     : strerror(-err));
	}
	*out = s;
	return 0;
}

int sink__close(struct sink *s, uint64_t end_ns, int err, struct err *e)
{
	struct stat st;

	if (!err)
		err = push(s, (struct item){.type = BLOCK_END, .end_ns = end_ns});
	stop_thread(s);
	err = sink__error(s) ? sink__error(s) : err;
	if (!err && s->regular && !fstat(s->fd, &st) && !st.st_nlink) {
		err = -ESTALE; /* whole, and nobody can have it */
		atomic_store(&s->err, err);
	}
	if (close(s->fd) && !err) {
		err = -errno;
		atomic_store(&s->err, err);
	}
	s->fd = -1;
	return err ? err_set(e, err, "%s: %s", s->path, strerror(-err)) : 0;
}

static void remove_empty(const struct sink *s)
{
	struct stat ours, there;

	if (!fstat(s->fd, &ours) && !stat(s->path, &there) && ours.st_dev == there.st_dev &&
	    ours.st_ino == there.st_ino && !there.st_size)
		unlink(s->path);
}

void sink__free(struct sink *s)
{
	if (!s)
		return;
	stop_thread(s);
	if (s->fd >= 0 && s->created && !s->started)
		remove_empty(s);
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->less);
	pthread_cond_destroy(&s->more);
	pthread_mutex_destroy(&s->lock);
	event_codec__free(s->codec);
	ZSTD_freeCCtx(s->zstd);
	free(s->raw.p);
	free(s->stored.p);
	free(s->index.p);
	free(s->held);
	free(s->path);
	free(s);
}

uint64_t sink__gpu_held(const struct sink *s, uint32_t type)
{
	return s->gpu_held[type < QBPF_RING_TYPES ? type : 0];
}

uint64_t sink__held(const struct sink *s, uint32_t span)
{
	return span < s->nheld ? s->held[span] : 0;
}

uint64_t sink__bytes(const struct sink *s)
{
	return atomic_load(&s->bytes);
}

int sink__error(const struct sink *s)
{
	return atomic_load(&s->err);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shared-memory ring, both sides, and each of them against the worst the other can do. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "file/ring_reader.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A reader, and the same file mapped a second time, as a producer does. */
struct pair {
	struct ring_reader *reader;
	struct qbpf_ring ring;
	unsigned char *map;
	size_t bytes;
};

static void pair_open(struct pair *p, const struct ring_options *o)
{
	struct stat st;
	struct err e;

	p->reader = ring_reader__new(o, &e);
	assert_non_null(p->reader);
	assert_int_equal(fstat(ring_reader__fd(p->reader), &st), 0);
	p->bytes = (size_t)st.st_size;
	p->map =
	    mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_reader__fd(p->reader), 0);
	assert_true(p->map != MAP_FAILED);
	assert_int_equal(qbpf_ring_open(&p->ring, p->map, p->bytes), 0);
}

static void pair_close(struct pair *p)
{
	munmap(p->map, p->bytes);
	ring_reader__free(p->reader);
}

static const uint16_t sizes[] = {
    [QBPF_RING_KERNEL] = sizeof(struct qbpf_ring_kernel),
    [QBPF_RING_COPY] = sizeof(struct qbpf_ring_copy),
    [QBPF_RING_SET] = sizeof(struct qbpf_ring_set),
    [QBPF_RING_SYNC] = sizeof(struct qbpf_ring_sync),
    [QBPF_RING_CALL] = sizeof(struct qbpf_ring_call),
    [QBPF_RING_GRAPH] = sizeof(struct qbpf_ring_graph),
    [QBPF_RING_OVERHEAD] = sizeof(struct qbpf_ring_overhead),
    [QBPF_RING_DEVICE] = sizeof(struct qbpf_ring_device),
    [QBPF_RING_CONTEXT] = sizeof(struct qbpf_ring_context),
    [QBPF_RING_STREAM] = sizeof(struct qbpf_ring_stream),
    [QBPF_RING_CLOCK] = sizeof(struct qbpf_ring_clock_point),
    [QBPF_RING_DROPPED] = sizeof(struct qbpf_ring_dropped),
    [QBPF_RING_START] = sizeof(struct qbpf_ring_start),
    [QBPF_RING_WINDOW] = sizeof(struct qbpf_ring_window),
};
#define NTYPES (sizeof(sizes) / sizeof(sizes[0]))

/* A record of `type`, some bytes longer than it needs to be, whose content follows from n. */
static uint32_t make(unsigned char *buf, unsigned type, uint32_t extra, uint32_t n)
{
	struct qbpf_ring_record *r = (struct qbpf_ring_record *)buf;
	uint32_t size = sizes[type] + extra, i;

	r->type = (uint16_t)type;
	r->size = (uint16_t)size;
	r->first = n;
	for (i = sizeof(*r); i < size; i++)
		buf[i] = (unsigned char)(n * 31 + i);
	return size;
}

struct seen {
	uint64_t n[QBPF_RING_TYPES], all, wrong;
	uint32_t last;
	bool in_order;
};

static int see(void *ctx, const struct qbpf_ring_record *rec)
{
	struct seen *s = ctx;
	unsigned char want[QBPF_RING_RECORD_MAX];

	make(want, rec->type, rec->size - sizes[rec->type], rec->first);
	s->wrong += memcmp(want, rec, rec->size) != 0;
	if (s->all && rec->first != s->last + 1)
		s->in_order = false;
	s->last = rec->first;
	s->n[rec->type]++;
	s->all++;
	return 0;
}

static void each_type_arrives(void **state)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct seen s = {.in_order = true};
	struct qbpf_ring_writer w;
	struct ring_status st;
	struct pair p;
	unsigned t;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(qbpf_ring_claim(&p.ring, 7, 3, &w), 0);
	assert_int_equal(p.ring.lane[3].owner, 7);
	for (t = 1; t < NTYPES; t++) {
		make(buf, t, 0, t);
		assert_int_equal(qbpf_ring_put(&w, buf), 0);
	}
	make(buf, QBPF_RING_KERNEL, 40, NTYPES); /* of a later version: longer */
	assert_int_equal(qbpf_ring_put(&w, buf), 0);
	qbpf_ring_release(&w);
	assert_int_equal(p.ring.lane[3].owner, 0);
	assert_int_equal(ring_reader__poll(p.reader, see, &s), 0);
	assert_int_equal(s.all, NTYPES);
	assert_int_equal(s.wrong, 0);
	assert_true(s.in_order);
	assert_int_equal(ring_reader__poll(p.reader, see, &s), 0);
	assert_int_equal(s.all, NTYPES);
	ring_reader__status(p.reader, &st);
	assert_int_equal(st.read[QBPF_RING_KERNEL], 2);
	assert_int_equal(st.read[QBPF_RING_START], 1);
	assert_int_equal(ring_status__lost(&st), 0);
	pair_close(&p);
}

/* Through the end of a small lane, thousands of times, at every fill. */
static void wrapping_keeps_bytes_and_order(void **state)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct ring_options o = {.lanes = 1, .lane_bytes = 4096};
	struct seen s = {.in_order = true};
	struct qbpf_ring_writer w;
	struct pair p;
	uint32_t n, type, batch, extra;

	(void)state;
	pair_open(&p, &o);
	assert_int_equal(qbpf_ring_claim(&p.ring, 1, 0, &w), 0);
	for (n = 0; n < 100000;) {
		for (batch = (uint32_t)(rnd() % 8); batch && n < 100000; batch--) {
			type = 1 + (uint32_t)(rnd() % (NTYPES - 1));
			extra = (uint32_t)(rnd() % 40) * 8;
			make(buf, type, extra, n);
			assert_int_equal(qbpf_ring_put(&w, buf), 0);
			n++;
		}
		assert_int_equal(ring_reader__poll(p.reader, see, &s), 0);
	}
	ring_reader__poll(p.reader, see, &s);
	assert_int_equal(s.all, 100000);
	assert_int_equal(s.wrong, 0);
	assert_true(s.in_order);
	pair_close(&p);
}

static void loss_is_exact_while_the_reader_stops(void **state)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct ring_options o = {.lanes = 2, .lane_bytes = 4096};
	uint64_t tried[QBPF_RING_TYPES] = {0};
	struct qbpf_ring_writer a, b, none;
	struct seen s = {.in_order = true};
	struct ring_status st;
	struct pair p;
	unsigned t;
	int i;

	(void)state;
	pair_open(&p, &o);
	assert_int_equal(qbpf_ring_claim(&p.ring, 1, 0, &a), 0);
	assert_int_equal(qbpf_ring_claim(&p.ring, 2, 0, &b), 0);
	assert_int_equal(qbpf_ring_claim(&p.ring, 3, 0, &none), -1);
	for (i = 0; i < 3000; i++) {
		t = 1 + (unsigned)(rnd() % (NTYPES - 1));
		make(buf, t, 0, 0);
		tried[t]++;
		qbpf_ring_put(i % 3 == 0 ? &a : i % 3 == 1 ? &b : &none, buf);
	}
	assert_int_equal(ring_reader__fill(p.reader) > 90, 1);
	ring_reader__poll(p.reader, see, &s);
	assert_int_equal(ring_reader__fill(p.reader), 0);
	ring_reader__status(p.reader, &st);
	assert_int_equal(s.wrong, 0);
	for (t = 1; t < NTYPES; t++) {
		assert_int_equal(s.n[t] + st.lost[t], tried[t]);
		assert_true(s.n[t] > 0 && st.lost[t] > 900 / NTYPES);
	}
	assert_int_equal(ring_status__lost(&st), 3000 - s.all);
	make(buf, QBPF_RING_CALL, 0, 0); /* and there is room again */
	assert_int_equal(qbpf_ring_put(&a, buf), 0);
	qbpf_ring_release(&none);
	pair_close(&p);
}

/* A poll that its caller ends goes on with the next record. */
static int stop_at(void *ctx, const struct qbpf_ring_record *rec)
{
	uint32_t *n = ctx;

	assert_int_equal(rec->first, *n);
	return ++*n % 3 == 0 ? 42 : 0;
}

static void a_poll_can_be_ended(void **state)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct qbpf_ring_writer w;
	struct pair p;
	uint32_t n = 0, i;

	(void)state;
	pair_open(&p, NULL);
	qbpf_ring_claim(&p.ring, 1, 0, &w);
	for (i = 0; i < 10; i++) {
		make(buf, QBPF_RING_SYNC, 0, i);
		qbpf_ring_put(&w, buf);
	}
	for (i = 1; i <= 3; i++) {
		assert_int_equal(ring_reader__poll(p.reader, stop_at, &n), 42);
		assert_int_equal(n, 3 * i);
	}
	assert_int_equal(ring_reader__poll(p.reader, stop_at, &n), 0);
	assert_int_equal(n, 10);
	pair_close(&p);
}

/* --- strings ----------------------------------------------------------------------------------- */

static void strings_are_kept_once(void **state)
{
	char buf[QBPF_RING_STRING_MAX + 1], *giant = malloc(70000);
	struct pair p;
	uint32_t a, b, c, d, used;

	(void)state;
	pair_open(&p, NULL);
	a = qbpf_ring_intern(&p.ring, "price", 5);
	b = qbpf_ring_intern(&p.ring, "prices", 6);
	c = qbpf_ring_intern(&p.ring, "", 0);
	assert_true(a && b && c && a != b && b != c);
	used = p.ring.head->strings_used;
	assert_int_equal(qbpf_ring_intern(&p.ring, "price", 5), a);
	assert_int_equal(qbpf_ring_intern(&p.ring, "prices?", 6), b);
	assert_int_equal(qbpf_ring_intern(&p.ring, "", 0), c);
	assert_int_equal(p.ring.head->strings_used, used);
	assert_int_equal(ring_reader__string(p.reader, a, buf, sizeof(buf)), 5);
	assert_string_equal(buf, "price");
	assert_int_equal(ring_reader__string(p.reader, b, buf, 3), 6);
	assert_string_equal(buf, "pr");
	assert_int_equal(ring_reader__string(p.reader, b, buf, 0), 6);
	assert_int_equal(ring_reader__string(p.reader, 0, buf, sizeof(buf)), -ENOENT);
	assert_string_equal(buf, "");
	/* Two names with the same beginning, longer than what is kept. */
	memset(giant, 'x', 70000);
	a = qbpf_ring_intern(&p.ring, giant, 69999);
	giant[69998] = 'y';
	d = qbpf_ring_intern(&p.ring, giant, 69999);
	assert_true(a && d && a != d);
	assert_int_equal(qbpf_ring_intern(&p.ring, giant, 69999), d);
	assert_int_equal(ring_reader__string(p.reader, d, buf, sizeof(buf)), QBPF_RING_STRING_MAX);
	free(giant);
	pair_close(&p);
}

static void a_full_string_table_is_counted(void **state)
{
	struct ring_options o = {.strings = 64, .strings_bytes = 1024};
	uint32_t first = 0, ids = 0, i, id;
	struct ring_status st;
	struct pair p;
	char name[32];

	(void)state;
	pair_open(&p, &o);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "kernel_%u", i);
		id = qbpf_ring_intern(&p.ring, name, (uint32_t)strlen(name));
		if (!i)
			first = id;
		ids += id != 0;
	}
	assert_int_equal(ids, 1024 / 32);
	assert_int_equal(qbpf_ring_intern(&p.ring, "kernel_0", 8), first);
	ring_reader__status(p.reader, &st);
	assert_int_equal(st.lost_strings, 200 - ids);
	pair_close(&p);
}

/* --- many threads ------------------------------------------------------------------------------ */

#define THREADS 8
#define ROUNDS	2000

struct job {
	struct pair *p;
	uint32_t n, put;
	uint32_t ids[64];
};

/* Claims, writes a few, gives back. The first field says who and which. */
static void *produce(void *arg)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct job *j = arg;
	struct qbpf_ring_writer w;
	char name[32];
	uint32_t i, k;

	for (i = 0; i < ROUNDS; i++) {
		qbpf_ring_claim(&j->p->ring, j->n + 1, j->n, &w);
		for (k = 0; k < 5; k++) {
			make(buf, QBPF_RING_CALL, 0, j->n << 24 | (i * 5 + k));
			j->put += qbpf_ring_put(&w, buf) == 0;
		}
		qbpf_ring_release(&w);
		snprintf(name, sizeof(name), "kernel_%u", i % 64);
		j->ids[i % 64] = qbpf_ring_intern(&j->p->ring, name, (uint32_t)strlen(name));
	}
	return NULL;
}

struct each {
	bool got[THREADS][ROUNDS * 5];
	uint64_t all, twice;
};

static int see_each(void *ctx, const struct qbpf_ring_record *rec)
{
	struct each *e = ctx;
	bool *got = &e->got[rec->first >> 24][rec->first & 0xffffff];

	e->all++;
	e->twice += *got;
	*got = true;
	return 0;
}

static void more_threads_than_lanes(void **state)
{
	struct ring_options o = {.lanes = 3, .lane_bytes = 4096};
	static struct each e;
	struct job jobs[THREADS];
	struct ring_status st;
	uint64_t put = 0;
	pthread_t ids[THREADS];
	struct pair p;
	int i, k;

	(void)state;
	memset(&e, 0, sizeof(e));
	pair_open(&p, &o);
	for (i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){.p = &p, .n = (uint32_t)i};
		assert_int_equal(pthread_create(&ids[i], NULL, produce, &jobs[i]), 0);
	}
	for (i = 0; i < 300; i++) {
		ring_reader__poll(p.reader, see_each, &e);
		usleep(100);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
		put += jobs[i].put;
		for (k = 0; k < 64; k++)
			assert_int_equal(jobs[i].ids[k], jobs[0].ids[k]);
	}
	ring_reader__poll(p.reader, see_each, &e);
	ring_reader__status(p.reader, &st);
	assert_int_equal(e.all, put);
	assert_int_equal(e.twice, 0);
	assert_int_equal(put + st.lost[QBPF_RING_CALL], THREADS * ROUNDS * 5);
	assert_int_equal(st.lost_strings + st.bad_lanes, 0);
	pair_close(&p);
}

/* --- a hostile other side ---------------------------------------------------------------------- */

static int swallow(void *ctx, const struct qbpf_ring_record *rec)
{
	char buf[QBPF_RING_STRING_MAX + 1];
	struct pair *p = ctx;

	assert_true(rec->size >= sizes[rec->type] && rec->size <= QBPF_RING_RECORD_MAX);
	ring_reader__string(p->reader, rec->first, buf, sizeof(buf));
	return 0;
}

static void look_everywhere(struct pair *p)
{
	char line[400];
	struct ring_status st;

	ring_reader__poll(p->reader, swallow, p);
	ring_reader__fill(p->reader);
	ring_reader__status(p->reader, &st);
	ring_status__explain(&st, line, sizeof(line));
	assert_true(strlen(line) > 5 && !strchr(line, '\n'));
}

/* What was valid, with a few bytes or words changed anywhere, or with plain noise. */
static void the_reader_survives_any_bytes(void **state)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct ring_options o = {
	    .lanes = 4, .lane_bytes = 4096, .strings = 16, .strings_bytes = 1024};
	struct qbpf_ring_writer w;
	uint64_t v, bad = 0;
	struct ring_status st;
	struct pair p;
	int round, i;
	size_t at;

	(void)state;
	for (round = 0; round < 1500; round++) {
		pair_open(&p, &o);
		qbpf_ring_claim(&p.ring, 1, (uint32_t)round % 4, &w);
		for (i = 0; i < 30; i++) {
			make(buf, 1 + (unsigned)(rnd() % (NTYPES - 1)), 0,
			     qbpf_ring_intern(&p.ring, "abc", 1 + i % 3));
			qbpf_ring_put(&w, buf);
		}
		for (i = 0; i < 12; i++) {
			v = rnd() % 3 ? rnd() : rnd() % 5000;
			at = (size_t)(rnd() % (p.bytes / 8)) * 8;
			if (i % 3 == 0) /* positions and records, not the empty space */
				at =
				    (size_t)((unsigned char *)&p.ring.lane[rnd() % 4] - p.map) + 64;
			else if (i % 3 == 1)
				at = (size_t)(p.ring.data - p.map) + (size_t)(round % 4) * 4096 +
				     rnd() % 2000 / 8 * 8;
			memcpy(p.map + at, &v, rnd() % 2 ? 2 : 8);
			look_everywhere(&p);
		}
		ring_reader__status(p.reader, &st);
		bad += st.bad_lanes;
		pair_close(&p);
	}
	assert_true(bad > 1000);
	pair_open(&p, &o);
	for (at = 0; at < p.bytes; at++)
		p.map[at] = (unsigned char)rnd();
	look_everywhere(&p);
	ring_reader__status(p.reader, &st);
	assert_int_equal(st.bad_lanes, 4);
	pair_close(&p);
}

static void *scribble(void *arg)
{
	struct pair *p = arg;
	uint64_t x = 1;

	while (!__atomic_load_n(&p->ring.head->reserved[0], __ATOMIC_RELAXED)) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		p->map[984 + 8 + (x >> 20) % (p->bytes - 992)] = (unsigned char)(x >> 56);
		if (!(x >> 60))
			p->ring.lane[0].written = x % 3 ? p->ring.lane[0].consumed + 512 : x;
	}
	return NULL;
}

/* The other side changes what is being read, while it is being read. */
static void the_reader_survives_changing_bytes(void **state)
{
	struct ring_options o = {
	    .lanes = 64, .lane_bytes = 4096, .strings = 16, .strings_bytes = 1024};
	pthread_t id;
	struct pair p;
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		int k;

		pair_open(&p, &o);
		assert_int_equal(pthread_create(&id, NULL, scribble, &p), 0);
		for (k = 0; k < 200; k++)
			look_everywhere(&p);
		__atomic_store_n(&p.ring.head->reserved[0], 1, __ATOMIC_RELAXED);
		pthread_join(id, NULL);
		pair_close(&p);
	}
}

/* The writing side keeps inside of its lane and its tables whatever stands in the file. */
static void the_writer_survives_any_bytes(void **state)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	struct ring_options o = {
	    .lanes = 4, .lane_bytes = 4096, .strings = 16, .strings_bytes = 1024};
	struct qbpf_ring_writer w;
	unsigned char *guarded;
	struct qbpf_ring ring;
	struct pair p;
	char name[8];
	size_t at, bytes;
	int i;

	(void)state;
	pair_open(&p, &o);
	/* A private copy with unmapped pages around it. */
	bytes = (p.bytes + 4095) & ~(size_t)4095;
	guarded = mmap(NULL, bytes + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(guarded != MAP_FAILED);
	guarded += 4096;
	assert_int_equal(mprotect(guarded, bytes, PROT_READ | PROT_WRITE), 0);
	memcpy(guarded, p.map, p.bytes);
	assert_int_equal(qbpf_ring_open(&ring, guarded, bytes), 0);
	for (i = 0; i < 20000; i++) {
		for (at = 0; at < 8; at++) {
			uint64_t v = rnd() % 2 ? rnd() : rnd() % 2000;
			size_t where = (size_t)(rnd() % (bytes / 8)) * 8;

			if (at < 4)
				where = (size_t)((unsigned char *)&ring.lane[at] - guarded) +
					(rnd() % 3) * 64;
			else if (at == 4)
				where = offsetof(struct qbpf_ring_head, strings_used);
			else if (at == 5)
				where = sizeof(struct qbpf_ring_head) + rnd() % 16 * 8;
			memcpy(guarded + where, &v, rnd() % 2 ? 4 : 8);
		}
		qbpf_ring_claim(&ring, 1, (uint32_t)i, &w);
		make(buf, QBPF_RING_KERNEL, 0, 1);
		qbpf_ring_put(&w, buf);
		qbpf_ring_release(&w);
		snprintf(name, sizeof(name), "%d", i % 100);
		qbpf_ring_intern(&ring, name, (uint32_t)strlen(name));
	}
	munmap(guarded - 4096, bytes + 8192);
	pair_close(&p);
}

static void a_bad_geometry_is_no_ring(void **state)
{
	struct qbpf_ring ring;
	struct qbpf_ring_head h;
	struct pair p;
	size_t at, opened = 0;
	uint32_t v;
	int i;

	(void)state;
	pair_open(&p, NULL);
	memcpy(&h, p.map, sizeof(h));
	assert_int_equal(qbpf_ring_open(&ring, p.map, p.bytes - 1), -1);
	assert_int_equal(qbpf_ring_open(&ring, p.map, 100), -1);
	for (i = 0; i < 50000; i++) {
		memcpy(p.map, &h, sizeof(h));
		at = (size_t)(rnd() % 16) * 4;
		v = rnd() % 2 ? (uint32_t)rnd() : 1u << rnd() % 32;
		memcpy(p.map + at, &v, 4);
		if (qbpf_ring_open(&ring, p.map, p.bytes))
			continue;
		opened++;
		assert_true(ring.data + (uint64_t)ring.lanes * ring.lane_bytes <= p.map + p.bytes);
		assert_true(ring.strings + ring.strings_bytes <= (unsigned char *)ring.lane);
	}
	assert_true(opened > 0);
	memcpy(p.map, &h, sizeof(h));
	pair_close(&p);
}

/* --- the file ---------------------------------------------------------------------------------- */

/* Does someone hold the reader's lock, as the producer sees it? */
static bool locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(path, O_RDWR | O_CLOEXEC), got;

	assert_true(fd >= 0);
	got = fcntl(fd, F_OFD_GETLK, &lock);
	close(fd);
	assert_int_equal(got, 0);
	return lock.l_type != F_UNLCK;
}

/* A child that inherited the descriptor must not make a dead reader look alive. */
static void the_lock_ends_with_the_reader(void **state)
{
	char path[64];
	struct pair p;
	int go[2], fd, status;
	pid_t pid;
	char c;

	(void)state;
	pair_open(&p, NULL);
	fd = dup(ring_reader__fd(p.reader));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(locked(path));
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (!pid) { /* keeps all but what execve would close */
		for (int i = 3; i < 100; i++)
			if (fcntl(i, F_GETFD) >= 0 && (fcntl(i, F_GETFD) & FD_CLOEXEC))
				close(i);
		close(go[1]);
		_exit(read(go[0], &c, 1) != 0);
	}
	assert_true(locked(path));
	ring_reader__free(p.reader);
	while (locked(path)) /* the child has not closed it yet */
		usleep(1000);
	close(go[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	munmap(p.map, p.bytes);
	close(go[0]);
	close(fd);
}

static void the_file_cannot_shrink(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, NULL);
	assert_int_equal(ftruncate(ring_reader__fd(p.reader), 4096), -1);
	assert_int_equal(errno, EPERM);
	pair_close(&p);
}

static void adopting(void **state)
{
	int fd = memfd_create("x", MFD_ALLOW_SEALING), other = open("/dev/null", O_RDWR), tmp;
	char name[] = "/tmp/qbpf-ring-XXXXXX";
	struct ring_reader *r;
	struct stat st;
	struct err e = {""};

	(void)state;
	r = ring_reader__adopt(fd, NULL, &e);
	assert_non_null(r);
	assert_null(ring_reader__adopt(fd, NULL, &e)); /* no longer empty */
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(e.text, "empty memfd"));
	assert_null(ring_reader__adopt(other, NULL, &e));
	assert_null(ring_reader__adopt(-1, NULL, &e));
	assert_int_equal(errno, EBADF);
	tmp = mkstemp(name); /* a file that can shrink */
	assert_true(tmp >= 0);
	unlink(name);
	assert_null(ring_reader__adopt(tmp, NULL, &e));
	assert_non_null(strstr(e.text, "empty memfd"));
	assert_int_equal(fstat(tmp, &st), 0);
	assert_int_equal(st.st_size + st.st_blocks, 0); /* left as it was */
	ring_reader__free(r);
	ring_reader__free(NULL);
	close(fd);
	close(other);
	close(tmp);
}

/* --- words ------------------------------------------------------------------------------------- */

static void faults_name_their_remedy(void **state)
{
	static const struct {
		enum qbpf_ring_fault fault;
		int code;
		uint32_t warnings;
		const char *part;
	} rows[] = {
	    {QBPF_RING_CUPTI_CALL, 39, 0, "another profiler holds CUPTI (ncu); end it"},
	    {QBPF_RING_CUPTI_CALL, 35, 0, "NVreg_RestrictProfilingToAdminUsers=0"},
	    {QBPF_RING_CUPTI_CALL, 15, 0, "not initialised"},
	    {QBPF_RING_CUPTI_CALL, 999, 0, "no usable CUDA driver"},
	    {QBPF_RING_CUPTI_CALL, 999, QBPF_RING_WARN_STUBS, "stubs folder is on LD_LIBRARY_PATH"},
	    {QBPF_RING_CUPTI_CALL, 77, 0, "cuptiX returned 77"},
	    {QBPF_RING_NO_CUPTI, 0, 0, "no libcupti.so of CUDA 13"},
	    {QBPF_RING_OLD_CUPTI, 0, 0, "has no cuptiX"},
	    {QBPF_RING_OTHER_MAJOR, 0, 0, "is of CUDA 12, the driver of CUDA 13"},
	    {QBPF_RING_STUBS, 0, 0, "take the stubs folder off"},
	    {QBPF_RING_NO_THREAD, EAGAIN, 0, "cannot start a thread"},
	    {QBPF_RING_NO_MEMORY, ENOMEM, 0, "no memory"},
	};
	char line[400];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ring_status s = {.state = QBPF_RING_REFUSED,
					.fault = rows[i].fault,
					.fault_code = rows[i].code,
					.warnings = rows[i].warnings,
					.driver_version = 13000,
					.cupti_major = 12,
					.fault_call = "cuptiX",
					.rival = "ncu"};

		ring_status__explain(&s, line, sizeof(line));
		if (!strstr(line, rows[i].part))
			fail_msg("%s: no '%s'", line, rows[i].part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_type_arrives),
	    cmocka_unit_test(wrapping_keeps_bytes_and_order),
	    cmocka_unit_test(loss_is_exact_while_the_reader_stops),
	    cmocka_unit_test(a_poll_can_be_ended),
	    cmocka_unit_test(strings_are_kept_once),
	    cmocka_unit_test(a_full_string_table_is_counted),
	    cmocka_unit_test(more_threads_than_lanes),
	    cmocka_unit_test(the_reader_survives_any_bytes),
	    cmocka_unit_test(the_reader_survives_changing_bytes),
	    cmocka_unit_test(the_writer_survives_any_bytes),
	    cmocka_unit_test(a_bad_geometry_is_no_ring),
	    cmocka_unit_test(the_lock_ends_with_the_reader),
	    cmocka_unit_test(the_file_cannot_shrink),
	    cmocka_unit_test(adopting),
	    cmocka_unit_test(faults_name_their_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

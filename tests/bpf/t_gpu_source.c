// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From an agent's ring to the queue behind it: in order, of bounded size, every loss told. No root. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "file/info.h"
#include "trace/gpu_source.h"

#define RECORDS 3000
#define NAMES	7

static void queue_holds_what_it_took(void **state)
{
	struct gpu_queue *q = gpu_queue__new(4096);
	uint64_t n = 0, taken = 0;
	const struct gpu_item *item = NULL;
	struct gpu_batch b;
	int ret;

	(void)state;
	assert_non_null(q);
	do {
		ret = gpu_queue__push(q, GPU_ITEM_RECORD, 3, &n, sizeof(n));
		assert_true(ret >= 0);
		n++;
		assert_int_equal(gpu_queue__is_full(q), ret);
	} while (!ret);
	assert_int_equal(n, (4096 + 23) / 24);
	/* Names still have room, not without end. */
	while (gpu_queue__push(q, GPU_ITEM_NAME, 3, &n, sizeof(n)) >= 0)
		n++;
	assert_in_range(n, 1000, 100000);
	gpu_queue__seen(q, GPU_FROM_HOST, 77);
	gpu_queue__take(q, 0, &b);
	while ((item = gpu_batch__next(&b, item))) {
		assert_int_equal(*(const uint64_t *)(const void *)(item + 1), taken++);
		assert_int_equal(item->ring, 3);
	}
	assert_int_equal(taken, n);
	assert_int_equal(b.seen_ns[GPU_FROM_HOST], 77);
	assert_int_equal(b.seen_ns[GPU_FROM_RINGS], 0);
	assert_false(gpu_queue__is_full(q));
	gpu_queue__take(q, 0, &b);
	assert_null(gpu_batch__next(&b, NULL));
	gpu_queue__free(q);
}

#define PUSHERS 4
#define PUSHES	20000

static struct gpu_queue *shared;

static void *push_many(void *arg)
{
	uint64_t who = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < PUSHES;) {
		uint64_t words[2] = {who, i};

		if (!gpu_queue__is_full(shared) &&
		    gpu_queue__push(shared, GPU_ITEM_SPAN, 0, words, sizeof(words)) >= 0)
			i++;
	}
	return NULL;
}

/* Several push while one takes: each one's are there, all and in order. */
static void many_push(void **state)
{
	uint64_t next[PUSHERS] = {0}, all = 0;
	pthread_t threads[PUSHERS];
	struct gpu_batch b;

	(void)state;
	shared = gpu_queue__new(65536);
	for (uintptr_t i = 0; i < PUSHERS; i++)
		pthread_create(&threads[i], NULL, push_many, (void *)i);
	while (all < PUSHERS * PUSHES) {
		const struct gpu_item *item = NULL;

		gpu_queue__take(shared, 10, &b);
		while ((item = gpu_batch__next(&b, item))) {
			const uint64_t *words = (const void *)(item + 1);

			assert_int_equal(words[1], next[words[0]]++);
			all++;
		}
	}
	for (int i = 0; i < PUSHERS; i++)
		pthread_join(threads[i], NULL);
	gpu_queue__free(shared);
}

/* --- a ring ------------------------------------------------------------------------------------- */

struct side {
	struct ring_reader *reader;
	struct qbpf_ring ring; /* as the producer sees it */
	struct qbpf_ring_writer w;
	void *map;
	size_t bytes;
	uint64_t put, tried;
};

static void side_open(struct side *s, uint32_t lane_bytes)
{
	struct ring_options o = {.lanes = 1, .lane_bytes = lane_bytes, .strings = 64};
	struct qbpf_ring_head *h;
	struct err e;

	memset(s, 0, sizeof(*s));
	s->reader = ring_reader__new(&o, &e);
	assert_non_null(s->reader);
	h = mmap(NULL, sizeof(*h), PROT_READ, MAP_SHARED, ring_reader__fd(s->reader), 0);
	assert_ptr_not_equal(h, MAP_FAILED);
	s->bytes = h->total_bytes;
	munmap(h, sizeof(*h));
	s->map =
	    mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_reader__fd(s->reader), 0);
	assert_ptr_not_equal(s->map, MAP_FAILED);
	assert_int_equal(qbpf_ring_open(&s->ring, s->map, s->bytes), 0);
	assert_int_equal(qbpf_ring_claim(&s->ring, 1, 0, &s->w), 0);
}

static void side_close(struct side *s)
{
	munmap(s->map, s->bytes);
	ring_reader__free(s->reader);
}

static void put_kernel(struct side *s)
{
	struct qbpf_ring_kernel k = {.type = QBPF_RING_KERNEL, .size = sizeof(k)};
	char name[16];
	int len = snprintf(name, sizeof(name), "kernel%d", (int)(s->tried % NAMES));

	k.name = qbpf_ring_intern(&s->ring, name, (uint32_t)len);
	k.correlation = (uint32_t)s->tried++;
	s->put += !qbpf_ring_put(&s->w, &k);
}

struct seen {
	char names[64][16];
	uint32_t nnames;
	uint64_t kernels, lost, next;
};

static void take(struct gpu_queue *q, uint32_t ring, struct seen *seen)
{
	const struct gpu_item *item = NULL;
	struct gpu_batch b;

	gpu_queue__take(q, 0, &b);
	while ((item = gpu_batch__next(&b, item))) {
		const struct qbpf_ring_kernel *k = (const void *)(item + 1);
		const struct trace_gpu_loss *l = (const void *)(item + 1);
		char want[16];

		if (item->kind == GPU_ITEM_NAME)
			snprintf(seen->names[++seen->nnames], 16, "%s", (const char *)(item + 1));
		if (item->kind == GPU_ITEM_LOSS) {
			assert_int_equal(l->type, QBPF_RING_KERNEL);
			assert_int_equal(l->reason, GPU_LOST_RING);
			assert_int_equal(l->ring, ring);
			seen->lost += l->lost;
		}
		if (item->kind != GPU_ITEM_RECORD)
			continue;
		assert_int_equal(item->ring, ring);
		assert_in_range(k->correlation, seen->next, UINT32_MAX);
		seen->next = k->correlation + 1;
		snprintf(want, sizeof(want), "kernel%u", k->correlation % NAMES);
		assert_in_range(k->name, 1, seen->nnames);
		assert_string_equal(seen->names[k->name], want);
		seen->kernels++;
	}
}

/* A queue that is smaller than what the ring holds: the rest waits there. */
static void a_full_queue_leaves_it_in_the_ring(void **state)
{
	struct gpu_queue *q = gpu_queue__new(8192);
	struct gpu_names names = {0};
	struct seen seen = {.nnames = 0};
	struct gpu_source src;
	struct side s;
	int rounds = 0;

	(void)state;
	side_open(&s, 1 << 20);
	src = (struct gpu_source){.ring = s.reader, .number = 5};
	for (int i = 0; i < RECORDS; i++)
		put_kernel(&s);
	assert_int_equal(s.put, RECORDS);
	while (gpu_source__poll(&src, &names, q)) {
		assert_true(gpu_queue__is_full(q));
		assert_true(gpu_source__poll(&src, &names, q)); /* takes nothing more */
		take(q, 5, &seen);
		rounds++;
	}
	take(q, 5, &seen);
	assert_in_range(rounds, RECORDS * 88 / 8192 - 1, RECORDS * 128 / 8192 + 2);
	assert_int_equal(seen.kernels, RECORDS);
	assert_int_equal(seen.nnames, NAMES);
	assert_int_equal(names.n, NAMES);
	gpu_source__tell_losses(&src, q, 1000, true);
	take(q, 5, &seen);
	assert_int_equal(seen.lost, 0);
	gpu_source__clear(&src);
	gpu_queue__free(q);
	side_close(&s);
}

/* A ring that nobody reads for a while: taken + lost is all, told bit by bit. */
static void losses_add_up(void **state)
{
	struct gpu_queue *q = gpu_queue__new(1 << 20);
	struct gpu_names names = {.n = 0};
	struct seen seen = {.nnames = 0};
	struct gpu_source src;
	struct side s;

	(void)state;
	side_open(&s, 16384);
	src = (struct gpu_source){.ring = s.reader};
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 1000; i++)
			put_kernel(&s);
		assert_false(gpu_source__poll(&src, &names, q));
		gpu_source__tell_losses(&src, q, 1000 * (uint64_t)round, round == 4);
		take(q, 0, &seen);
		assert_int_equal(seen.kernels, s.put);
		assert_int_equal(seen.kernels + seen.lost, s.tried);
	}
	assert_true(seen.lost > 3000);
	gpu_source__clear(&src);
	gpu_queue__free(q);
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(queue_holds_what_it_took),
	    cmocka_unit_test(many_push),
	    cmocka_unit_test(a_full_queue_leaves_it_in_the_ring),
	    cmocka_unit_test(losses_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Two buffers: one is filled, one is read, and they change places; see gpu_queue.h. */
#include "trace/gpu_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPARE (256u << 10) /* bytes for what comes when the queue is full already */

struct gpu_queue {
	pthread_mutex_t lock;
	pthread_cond_t some;
	unsigned char *fill,
	    *read; /* of max + SPARE bytes, which cost nothing before they are used */
	size_t n, max;
	bool awake;
	uint64_t seen_ns[GPU_ORIGINS];
};

struct gpu_queue *gpu_queue__new(size_t max_bytes)
{
	struct gpu_queue *q = calloc(1, sizeof(*q));
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->some, &attr);
	pthread_condattr_destroy(&attr);
	q->max = max_bytes;
	q->fill = malloc(max_bytes + SPARE);
	q->read = malloc(max_bytes + SPARE);
	if (q->fill && q->read)
		return q;
	gpu_queue__free(q);
	return NULL;
}

void gpu_queue__free(struct gpu_queue *q)
{
	if (!q)
		return;
	free(q->fill);
	free(q->read);
	pthread_cond_destroy(&q->some);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

int gpu_queue__push(struct gpu_queue *q, enum gpu_item_kind kind, uint32_t ring, const void *what,
		    size_t bytes)
{
	struct gpu_item item = {.kind = kind, .ring = ring, .bytes = (uint32_t)(bytes + 7) & ~7u};
	int ret = 0;

	pthread_mutex_lock(&q->lock);
	if (q->n + sizeof(item) + item.bytes > q->max + SPARE) {
		ret = -ENOBUFS;
	} else {
		memcpy(q->fill + q->n, &item, sizeof(item));
		memcpy(q->fill + q->n + sizeof(item), what, bytes);
		q->n += sizeof(item) + item.bytes;
		ret = q->n >= q->max;
		if (q->n >= q->max / 4)
			pthread_cond_signal(&q->some);
	}
	pthread_mutex_unlock(&q->lock);
	return ret;
}

bool gpu_queue__is_full(struct gpu_queue *q)
{
	bool full;

	pthread_mutex_lock(&q->lock);
	full = q->n >= q->max;
	pthread_mutex_unlock(&q->lock);
	return full;
}

void gpu_queue__seen(struct gpu_queue *q, enum gpu_origin from, uint64_t ns)
{
	pthread_mutex_lock(&q->lock);
	q->seen_ns[from] = ns;
	pthread_mutex_unlock(&q->lock);
}

void gpu_queue__wake(struct gpu_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->awake = true;
	pthread_cond_signal(&q->some);
	pthread_mutex_unlock(&q->lock);
}

void gpu_queue__take(struct gpu_queue *q, unsigned wait_ms, struct gpu_batch *out)
{
	struct timespec until;
	unsigned char *full;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)wait_ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&q->lock);
	while (!q->awake && q->n < q->max / 4 &&
	       !pthread_cond_timedwait(&q->some, &q->lock, &until))
		;
	q->awake = false;
	full = q->fill;
	q->fill = q->read;
	q->read = full;
	out->items = full;
	out->bytes = q->n;
	memcpy(out->seen_ns, q->seen_ns, sizeof(q->seen_ns));
	q->n = 0;
	pthread_mutex_unlock(&q->lock);
}

const struct gpu_item *gpu_batch__next(const struct gpu_batch *b, const struct gpu_item *item)
{
	const unsigned char *at = b->items;

	if (item)
		at = (const unsigned char *)(item + 1) + item->bytes;
	return at < b->items + b->bytes ? (const struct gpu_item *)(const void *)at : NULL;
}

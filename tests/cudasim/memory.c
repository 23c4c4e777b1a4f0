/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memory.c - what is known about addresses: device memory, pinned memory, all else is pageable
 *
 * Device memory is host memory that the program has no business to touch.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct sim_block *blocks; /* sorted by start */
static size_t n_blocks, cap_blocks;

/* Index of the first block that starts above p. */
static size_t above(uintptr_t p)
{
	size_t lo = 0, hi = n_blocks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (blocks[mid].start > p)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static bool insert(struct sim_block b)
{
	size_t at = above(b.start);

	if (n_blocks == cap_blocks) {
		size_t cap = cap_blocks ? 2 * cap_blocks : 64;
		struct sim_block *more = realloc(blocks, cap * sizeof(*blocks));

		if (!more)
			return false;
		blocks = more;
		cap_blocks = cap;
	}
	memmove(&blocks[at + 1], &blocks[at], (n_blocks - at) * sizeof(*blocks));
	blocks[at] = b;
	n_blocks++;
	return true;
}

void *memory_new(size_t size, enum sim_memory kind, int device)
{
	void *p = NULL;

	if (posix_memalign(&p, 512, size ? size : 1))
		return NULL;
	if (insert((struct sim_block){(uintptr_t)p, size, kind, device, true}))
		return p;
	free(p);
	return NULL;
}

bool memory_register(void *p, size_t size)
{
	return insert((struct sim_block){(uintptr_t)p, size, MEM_PINNED, 0, false});
}

bool memory_free(const void *p, size_t *size)
{
	size_t at = above((uintptr_t)p);

	if (!at || blocks[at - 1].start != (uintptr_t)p)
		return false;
	at--;
	*size = blocks[at].size;
	if (blocks[at].owned)
		free((void *)blocks[at].start);
	memmove(&blocks[at], &blocks[at + 1], (n_blocks - at - 1) * sizeof(*blocks));
	n_blocks--;
	return true;
}

struct sim_block memory_find(const void *p)
{
	size_t at = above((uintptr_t)p);

	if (at &&
	    (uintptr_t)p - blocks[at - 1].start < (blocks[at - 1].size ? blocks[at - 1].size : 1))
		return blocks[at - 1];
	return (struct sim_block){(uintptr_t)p, 0, MEM_PAGEABLE, 0, false};
}

struct sim_block sim_memory_find(const void *p)
{
	struct sim_block b;

	pthread_mutex_lock(&sim_lock);
	b = memory_find(p);
	pthread_mutex_unlock(&sim_lock);
	return b;
}

size_t memory_used(int device)
{
	size_t sum = 0;

	for (size_t i = 0; i < n_blocks; i++) {
		if (blocks[i].kind == MEM_DEVICE && blocks[i].device == device)
			sum += blocks[i].size;
	}
	return sum;
}

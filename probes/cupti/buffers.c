// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The memory that CUPTI fills: a fixed number of buffers, mapped once, zeroed after each use on the
 * thread that brings them back (CUPTI would do it on the target's), and never unmapped, because CUPTI
 * may hold some for ever. When all are out, every request gets the same discard buffer and one
 * record's worth of it: what is written there is never read, only counted.
 */
#include <errno.h>
#include <sys/mman.h>

#include "probes/cupti/agent.h"

/* CUPTI wants one for each thread that makes calls, so there are many rather than large ones. */
#define BUFFERS	      256u
#define BUFFER_BYTES  ((size_t)256 << 10)
#define WORD_BITS     64u
#define DISCARD_BYTES ((size_t)64 << 10)
/* Resident from the beginning, so that the target's threads do not take the page faults. */
#define READY 8u

static uint8_t *pool;			    /* BUFFERS of them, then the discard buffer */
static uint64_t taken[BUFFERS / WORD_BITS]; /* a bit for each */
static uint32_t turn;			    /* the lane for the next buffer */

static uint8_t *discard(void)
{
	return pool + BUFFERS * BUFFER_BYTES;
}

bool buffers_make(void)
{
	void *map;

	if (pool)
		return true;
	map = mmap(NULL, BUFFERS * BUFFER_BYTES + DISCARD_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return fault(QBPF_RING_NO_MEMORY, "mmap", errno);
#ifdef MADV_POPULATE_WRITE
	madvise(map, READY * BUFFER_BYTES, MADV_POPULATE_WRITE);
#endif
	pool = map;
	return true;
}

uint32_t buffers_out(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BUFFERS / WORD_BITS; i++)
		n += (uint32_t)__builtin_popcountll(__atomic_load_n(&taken[i], __ATOMIC_RELAXED));
	return n;
}

/* The lowest that is free, taken; NULL: none is. */
static uint8_t *take(uint32_t word)
{
	uint64_t was = __atomic_load_n(&taken[word], __ATOMIC_RELAXED), bit;

	while (was != UINT64_MAX) {
		bit = ~was & (was + 1);
		if (__atomic_compare_exchange_n(&taken[word], &was, was | bit, true,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return pool + (word * (size_t)WORD_BITS + (size_t)__builtin_ctzll(bit)) *
					  BUFFER_BYTES;
	}
	return NULL;
}

void buffers_request(uint8_t **buffer, size_t *size, size_t *max)
{
	for (uint32_t i = 0; i < BUFFERS / WORD_BITS; i++) {
		*buffer = take(i);
		if (*buffer) {
			*size = BUFFER_BYTES;
			*max = 0;
			return;
		}
	}
	*buffer = discard();
	*size = DISCARD_BYTES;
	*max = 1;
}

/* All records of a buffer: the length of one is known from where the next begins. */
static void read_buffer(struct qbpf_ring_writer *w, uint8_t *buffer, size_t valid)
{
	void *next = NULL;
	uint8_t *at = NULL;
	int code;

	for (;;) {
		code = cupti.cuptiActivityGetNextRecord(buffer, valid, &next);
		if (code != CUPTI_OK)
			break;
		if ((uint8_t *)next < (at ? at + 8 : buffer) ||
		    (uint8_t *)next > buffer + valid - 4) {
			code = -1;
			break;
		}
		if (at)
			record_put(w, at, (size_t)((uint8_t *)next - at));
		at = next;
	}
	if (at)
		record_put(w, at, (size_t)(buffer + valid - at));
	if (code != CUPTI_NO_MORE_RECORDS)
		__atomic_fetch_add(&agent.ring.head->broken, 1, __ATOMIC_RELAXED);
}

static bool too_late(void)
{
	uint64_t deadline = __atomic_load_n(&agent.deadline_ns, __ATOMIC_RELAXED);

	return deadline && monotonic_ns() > deadline;
}

/* The ring stays mapped while this runs: see agent.inside. */
static void take_in(uint8_t *buffer, size_t valid)
{
	struct qbpf_ring_head *h = agent.ring.head;
	struct qbpf_ring_writer w;

	if (too_late()) {
		__atomic_fetch_add(&h->late, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&h->buffers, 1, __ATOMIC_RELAXED);
	if (buffer == discard()) {
		__atomic_fetch_add(&h->discarded, valid ? 1 : 0, __ATOMIC_RELAXED);
		return;
	}
	/* In turn, so that a burst from one thread fills all of the ring and not one lane. */
	qbpf_ring_claim(&agent.ring, thread_id(), __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED),
			&w);
	read_buffer(&w, buffer, valid);
	qbpf_ring_release(&w);
}

void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	size_t off = (size_t)(buffer - pool);

	(void)context, (void)stream, (void)size;
	if (!pool || buffer < pool || off > BUFFERS * BUFFER_BYTES || off % BUFFER_BYTES)
		return; /* not one of ours */
	if (buffer != discard() && valid > BUFFER_BYTES)
		valid = BUFFER_BYTES;
	__atomic_fetch_add(&agent.inside, 1, __ATOMIC_SEQ_CST);
	if (valid && __atomic_load_n(&agent.recording, __ATOMIC_SEQ_CST))
		take_in(buffer, valid);
	__atomic_fetch_add(&agent.completed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&agent.inside, 1, __ATOMIC_SEQ_CST);
	if (buffer == discard())
		return;
	memset(buffer, 0, valid);
	off /= BUFFER_BYTES;
	__atomic_fetch_and(&taken[off / WORD_BITS], ~(1ull << (off % WORD_BITS)), __ATOMIC_RELEASE);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the agent. Rules for all of it, because it lives in someone else's process: no exit, no
 * abort, no output, no signal handler, nothing that waits for the GPU or for the reader on a thread
 * of the target, no lock held while CUPTI is called, no memory without bound.
 */
#ifndef QBPF_CUPTI_AGENT_H
#define QBPF_CUPTI_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "qbpf/ring.h"
#include "probes/cupti/cupti.h"

struct agent {
	struct qbpf_ring ring;
	void *map; /* of the ring */
	uint64_t map_bytes;
	int fd;		/* of the ring: to look for the reader's lock */
	uint32_t wants; /* QBPF_RING_WANT_* */
	uint32_t flush_ms;
	bool first_in;	 /* nobody called CUPTI before: the clock can be chosen */
	bool registered; /* CUPTI knows our buffer functions */
	void *subscriber;
	uint32_t clock;	      /* enum qbpf_ring_clock */
	uint64_t deadline_ns; /* while detaching: buffers that come later are ignored */

	/* Atomic. A buffer function counts itself in before it looks at `recording`, and whoever
	 * clears `recording` waits for the count before it unmaps the ring. */
	uint32_t recording;
	uint32_t inside;
	uint32_t completed; /* buffers so far */
	uint32_t held;	    /* this process is the ring's producer */
	uint32_t fatal;	    /* CUPTI said that it gave up */
	uint64_t callbacks;
};

extern struct agent agent;

#define ROUND_MS 100u /* how often the agent's thread looks around */

uint64_t monotonic_ns(void);
uint32_t thread_id(void);

/* A CUPTI call, in the ring for the reader to see should it hang. */
void call_enter(const char *name);
void call_leave(void);
#define CUPTI(name, ...)                                                                           \
	({                                                                                         \
		int result_;                                                                       \
		call_enter(#name);                                                                 \
		result_ = cupti.name(__VA_ARGS__);                                                 \
		call_leave();                                                                      \
		result_;                                                                           \
	})

/* Says in the ring what went wrong; always false. */
bool fault(enum qbpf_ring_fault what, const char *call, int code);
void warn(uint32_t bit);
void set_text(char *to, size_t size, const char *from);

/* producer.c: the ring as a file. */
int open_ring(const char *path);
void close_ring(void);
bool reader_lives(void);
bool become_producer(void);
void set_state(enum qbpf_ring_state state);

/* begin.c: false after a fault. What was begun has to be taken back by detach(). */
bool switch_on(void);

/* find.c: which libcupti, and its functions. */
bool cuda_is_mapped(void);
bool cupti_load(void);
/* Calls cuDriverGetVersion of the mapped driver; 0: there is none. */
int driver_version(void);

/* kinds.c: what is recorded. */
bool kinds_enable(void);
void kinds_disable(void);

/* buffers.c */
bool buffers_make(void);
void buffers_request(uint8_t **buffer, size_t *size, size_t *max);
void buffers_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
uint32_t buffers_out(void);

/* records.c: one activity of `bytes` bytes, put into the ring or counted as lost. */
void record_put(struct qbpf_ring_writer *w, const uint8_t *activity, size_t bytes);
void record_names_reset(void);
/* What CUPTI dropped by itself since the last time. */
void count_dropped(void);

/* clock.c */
uint64_t clock_for_cupti(void);
void mark_time(void);
/* Records are complete from ns on, or (end) only until then. */
void mark_window(enum qbpf_ring_reason end, uint64_t ns);

/* detach.c: takes everything back. */
void on_callback(void *context, int domain, uint32_t cbid, const void *data);
void detach(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of a stream, shared by stream*.c alone. */
#ifndef QBPF_TRACE_STREAM_IMPL_H
#define QBPF_TRACE_STREAM_IMPL_H

#include <pthread.h>

#include "trace/gpu_feed.h"
#include "trace/roster.h"
#include "trace/stream.h"

/* Of one span id. */
struct span_state {
	uint64_t streamed;
	int64_t adjust;	    /* of skipped: what stream__stop has taken from the histories */
	uint64_t lost_told; /* in the trace's losses so far */
	uint64_t skipped_told;
};

struct stream {
	struct qbpf_bpf *skel;
	struct gpu_feed *feed;	/* or NULL */
	struct trace_writer *w; /* or NULL, and there is no roster either */
	struct ring_buffer *ring;
	int epfd, stopfd;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock; /* of all below, and of the writer */
	struct roster *roster;
	struct span_state *spans; /* [0 .. room] */
	size_t room;
	size_t nspans; /* written */
	uint32_t nmappings;
	unsigned char *nodes; /* bits by id: written */
	size_t nnodes;	      /* bits that there are */
	int cpus;
	uint64_t taken; /* records of this look */
	uint64_t start_ns, second_ns, clock_ns;
	uint64_t over_ns;     /* not 0: the recording ended then, only what is open comes */
	unsigned char *shown; /* by thread: what it has open is in the trace */
	uint32_t nshown;
	bool slow, iterating, closed;
	_Atomic int fault;
};

/* The first fault stays. An entry that the writer does not take is a fault too: it should. */
static inline void stream__note_fault(struct stream *s, int err)
{
	if (err && !s->fault)
		s->fault = -err;
}

/* stream_second.c */
/* Without the lock, which is held for as long as a slow disk takes. out[0 .. n] by span id. */
int stream__read_counts(const struct stream *s, struct stream_count *out, size_t n);
void stream__put_losses(struct stream *s, uint64_t from_ns, uint64_t to_ns, bool last);
void stream__put_clock(struct stream *s, uint64_t now);
/* Nothing where there is no file, and before a second is over. */
void stream__each_second(struct stream *s, uint64_t now);

#endif

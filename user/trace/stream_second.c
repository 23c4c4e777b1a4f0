// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the trace is told once a second: what was lost, and what time it is. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <bpf/bpf.h>

#include "clock.h"
#include "trace/stream_impl.h"

#define SECOND	    1000000000ull
#define CLOCK_EVERY (10 * SECOND)

int stream__read_counts(const struct stream *s, struct stream_count *out, size_t n)
{
	struct qbpf_stream_counts *percpu = calloc((size_t)s->cpus, sizeof(*percpu));
	int fd = bpf_map__fd(s->skel->maps.stream_counts), err = percpu ? 0 : -ENOMEM;

	for (__u32 id = 0; id <= n && !err; id++) {
		struct stream_count *c = &out[id];
		int64_t skipped = s->spans[id].adjust;

		err = bpf_map_lookup_elem(fd, &id, percpu);
		*c = (struct stream_count){
		    .streamed = __atomic_load_n(&s->spans[id].streamed, __ATOMIC_RELAXED)};
		for (int i = 0; i < s->cpus && !err; i++) {
			c->lost += percpu[i].lost;
			c->over += percpu[i].over;
			skipped += percpu[i].skipped;
		}
		c->skipped = skipped > 0 ? (uint64_t)skipped : 0;
	}
	free(percpu);
	return err;
}

/* What waits in a history counts as skipped and may yet be recorded: with --slow, that is told at
 * the end alone. */
void stream__put_losses(struct stream *s, uint64_t from_ns, uint64_t to_ns, bool last)
{
	struct stream_count *counts = calloc(s->nspans + 1, sizeof(*counts));
	int err = counts ? stream__read_counts(s, counts, s->nspans) : -ENOMEM;

	for (size_t i = 1; i <= s->nspans && !err; i++) {
		struct span_state *st = &s->spans[i];
		struct trace_loss row = {
		    .span = (uint32_t)i,
		    .source = SOURCE_BPF,
		    .from_ns = from_ns,
		    .to_ns = to_ns,
		    .lost = counts[i].lost - st->lost_told,
		};

		if (!s->slow || last)
			row.skipped = counts[i].skipped - st->skipped_told;
		if (!row.lost && !row.skipped)
			continue;
		if (s->slow && last)
			row.from_ns = row.lost ? from_ns : s->start_ns;
		st->lost_told += row.lost;
		st->skipped_told += row.skipped;
		err = trace_writer__loss(s->w, &row);
	}
	free(counts);
	stream__note_fault(s, err);
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

void stream__put_clock(struct stream *s, uint64_t now)
{
	struct trace_clock row = {.monotonic_ns = now_ns()};

	row.realtime_ns = clock_of(CLOCK_REALTIME);
	row.boottime_ns = clock_of(CLOCK_BOOTTIME);
	row.error_ns = now_ns() - row.monotonic_ns;
	s->clock_ns = now;
	stream__note_fault(s, trace_writer__clock(s->w, &row));
}

void stream__each_second(struct stream *s, uint64_t now)
{
	if (!s->w || s->fault || now - s->second_ns < SECOND)
		return;
	stream__put_losses(s, s->second_ns, now, false);
	if (now - s->clock_ns >= CLOCK_EVERY)
		stream__put_clock(s, now);
	s->second_ns = now;
	stream__note_fault(s, trace_writer__flush(s->w));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as records of a GPU and spans of the host, in the model: it ends, stays within its memory,
 * and what it tells holds together.
 *
 * Input: a byte that says what comes (0 .. 15 a record of that type, 16 .. 23 a span, 24 .. 31
 * settle), a byte for the ring or thread, and what is left of the record, or two times.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu_records.h"
#include "model/gpu.h"

#define TIME_MASK 0xffffffffffffull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t sizes[] = {8, 88, 72, 64, 40, 48, 40, 48, 48, 16, 24, 32, 24, 24, 64, 64};

static void must(int ok)
{
	if (!ok)
		abort();
}

static void check(struct gpu_summary *s)
{
	must(s != NULL);
	for (size_t i = 0; i < s->ndevices; i++) {
		const struct gpu_device *d = &s->devices[i];
		uint64_t idle = 0;

		for (size_t k = 0; k < d->nidle; k++)
			idle += d->idle[k].total_ns;
		must(idle == d->idle_ns && d->busy_ns + d->idle_ns == d->to_ns - d->from_ns);
		must(d->compute_ns + d->copy_ns - d->overlap_ns == d->busy_ns);
	}
	for (size_t i = 0; i < s->nspans; i++)
		must(s->spans[i].launch_ns + s->spans[i].sync_ns + s->spans[i].own_ns ==
		     s->spans[i].total_ns);
	gpu_summary__put(s);
}

static void feed(struct gpu *g, unsigned int what, unsigned int who, const uint8_t *data, size_t n)
{
	union gr_record rec = {.head = {(uint16_t)what, what < 16 ? (uint16_t)sizes[what] : 0, 0}};
	uint64_t words[2] = {0, 0};
	struct event ev = {.kind = EVENT_SPAN, .span = what % 4, .thread = who};

	memcpy((char *)&rec + 4, data, n < sizeof(rec) - 4 ? n : sizeof(rec) - 4);
	memcpy(words, data, n < sizeof(words) ? n : sizeof(words));
	ev.depth = (uint16_t)(words[0] >> 60);
	ev.start_ns = words[0] & TIME_MASK;
	ev.end_ns = words[1] & TIME_MASK;
	if (what < 16)
		must(!gpu__record(g, who, &rec.head));
	else if (what < 24)
		must(!gpu__span(g, &ev));
	else
		must(!gpu__settle(g, ev.start_ns));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"cudaLaunchKernel", "cudaMemcpy", "cuLaunchKernel",
					    "cudaStreamSynchronize", "_Z1kv"};
	struct gpu_opts o = {.max_bytes = 1 << 14, .pool_bytes = 1 << 16};
	struct gpu *g = gpu__new(&o);

	must(g != NULL);
	for (uint32_t i = 0; i < 5; i++)
		must(!gpu__name(g, i + 1, names[i]));
	for (uint32_t i = 0; i < 3; i++)
		must(!gpu__span_name(g, i + 1, "a:b") && !gpu__thread(g, i, 7, 100 + i));
	while (size >= 2) {
		unsigned int what = data[0] % 32, who = data[1] % 4;
		size_t n = what < 16 ? sizes[what] - 4 : 16;

		n = n < size - 2 ? n : size - 2;
		feed(g, what, who, data + 2, n);
		data += n + 2;
		size -= n + 2;
	}
	check(gpu__summary(g));
	must(!gpu__finish(g));
	check(gpu__summary(g));
	gpu__free(g);
	return 0;
}

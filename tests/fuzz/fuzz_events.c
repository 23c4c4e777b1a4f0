// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as the payload of a whole EVENTS block: two bytes for the number of events, then the
 * columns. What decodes must come out the same after it was encoded again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace_build.h"

#define NSPANS 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

/* The block's times, as its events have them: decoding compares both. */
static void set_times(struct trace_block *b, const struct event *events)
{
	b->start_ns = UINT64_MAX;
	b->end_ns = 0;
	for (size_t i = 0; i < b->count; i++) {
		uint64_t lo = events[i].start_ns, hi = events[i].end_ns;

		if (hi < lo) {
			lo = events[i].end_ns;
			hi = events[i].start_ns;
		}
		b->start_ns = lo < b->start_ns ? lo : b->start_ns;
		b->end_ns = hi > b->end_ns ? hi : b->end_ns;
	}
}

static void again(struct event_codec *c, const struct event *events, const struct trace_block *b)
{
	struct event *copy = calloc(b->count, sizeof(*copy));
	struct bytes raw = {0};
	struct trace_block other;
	const char *why;

	check(copy && !event_codec__encode(c, events, b->count, &raw, &other));
	check(other.start_ns == b->start_ns && other.end_ns == b->end_ns);
	check(!bytes__reserve(&raw, EVENT_PADDING));
	memset(raw.p + raw.n, 0, EVENT_PADDING);
	check(!event_codec__decode(c, raw.p, &other, NSPANS, copy, &why));
	check(!memcmp(copy, events, b->count * sizeof(*copy)));
	free(copy);
	free(raw.p);
}

static void through_reader(const struct trace_block *h, const uint8_t *payload, size_t len, bool ok)
{
	const struct event *events;
	struct trace_reader *r;
	struct build b;
	struct err e;
	size_t n;

	build__start(&b);
	b.compress = 1;
	build__tables(&b, NSPANS, 4);
	build__block(&b, *h, payload, len);
	build__finish(&b, NSPANS);
	check(!build__open(&b, &r, &e));
	check(trace_reader__next(r, &events, &n, &e) == (ok ? 1 : -EBADMSG));
	trace_reader__free(r);
	build__free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_block b = {.type = BLOCK_EVENTS, .thread = 3, .end_ns = UINT64_MAX};
	struct event_codec *c = event_codec__new();
	struct event *events;
	const char *why = NULL;
	uint8_t *raw;
	int err;

	if (size < 2 || !(data[0] | data[1])) {
		event_codec__free(c);
		return 0;
	}
	b.count = data[0] | (uint32_t)data[1] << 8;
	b.raw_len = b.stored_len = (uint32_t)size - 2;
	events = calloc(b.count, sizeof(*events));
	raw = calloc(1, size + EVENT_PADDING);
	check(c && events && raw);
	memcpy(raw, data + 2, size - 2);
	err = event_codec__decode(c, raw, &b, NSPANS, events, &why);
	check(!err || err == -EBADMSG);
	set_times(&b, events);
	err = event_codec__decode(c, raw, &b, NSPANS, events, &why);
	check(!err || (err == -EBADMSG && why));
	if (!err)
		again(c, events, &b);
	if (!err || size % 16 == 0)
		through_reader(&b, raw, size - 2, !err);
	free(events);
	free(raw);
	event_codec__free(c);
	return 0;
}

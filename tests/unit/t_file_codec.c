// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events to columns and back: every value that an event can have, and columns that lie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "file/codec.h"
#include "file/varint.h"

#define NSPANS 0xfffff

static struct event_codec *codec;

/* Encodes, decodes and compares; returns the payload's length. */
static size_t round_trip(const struct event *in, size_t n)
{
	struct event *out = calloc(n, sizeof(*out));
	struct bytes raw = {0};
	struct trace_block b;
	const char *why = "";
	uint64_t lo = UINT64_MAX, hi = 0;
	size_t len;

	assert_non_null(out);
	assert_int_equal(event_codec__encode(codec, in, n, &raw, &b), 0);
	assert_int_equal(b.type, BLOCK_EVENTS);
	assert_int_equal(b.count, n);
	assert_int_equal(b.thread, in[0].thread);
	assert_int_equal(b.raw_len, raw.n);
	for (size_t i = 0; i < n; i++) {
		lo = in[i].start_ns < lo ? in[i].start_ns : lo;
		lo = in[i].end_ns < lo ? in[i].end_ns : lo;
		hi = in[i].start_ns > hi ? in[i].start_ns : hi;
		hi = in[i].end_ns > hi ? in[i].end_ns : hi;
	}
	assert_true(b.start_ns == lo && b.end_ns == hi);
	/* Exactly so many bytes and no more, so that the sanitizer sees each read too far. */
	len = raw.n;
	raw.p = realloc(raw.p, len + EVENT_PADDING);
	memset(raw.p + len, 0, EVENT_PADDING);
	if (event_codec__decode(codec, raw.p, &b, NSPANS, out, &why))
		fail_msg("does not decode: %s", why);
	for (size_t i = 0; i < n; i++)
		if (memcmp(&in[i], &out[i], sizeof(in[i])) != 0)
			fail_msg("event %zu of %zu is another", i, n);
	free(raw.p);
	free(out);
	return len;
}

static void t_extremes(void **state)
{
	static const uint64_t words[] = {
	    0, 1, 63, 64, 8191, 8192, INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
	enum { N = sizeof(words) / sizeof(words[0]) };
	static const uint32_t halves[] = {0, 1, 255, 65536, UINT32_MAX};
	static const uint16_t depths[] = {0, 1, 63, UINT16_MAX - 1, UINT16_MAX};
	struct event *all = calloc(6ull * N * N * N, sizeof(*all));
	size_t n = 0;

	(void)state;
	for (int kind = EVENT_SPAN; kind < EVENT_KINDS; kind++)
		for (int a = 0; a < N; a++)
			for (int b = 0; b < N; b++)
				for (int c = 0; c < N; c++) {
					struct event ev = {.start_ns = words[a],
							   .end_ns = words[b],
							   .child_ns = words[c],
							   .arg = words[(a + b + c) % N],
							   .span = n % 2 ? NSPANS : 1,
							   .node = halves[(a + c) % 5],
							   .thread = 77,
							   .begin_tid = halves[(b + c) % 5],
							   .depth = depths[(a + 2 * b + c) % 5],
							   .kind = (uint8_t)kind};

					round_trip(&ev, 1);
					all[n++] = ev;
				}
	round_trip(all, n);
	free(all);
}

/* Equal times, children that touch their parent, points at the ends: nothing but order matters. */
static void t_ties(void **state)
{
	struct event ev[] = {
	    {.kind = EVENT_SPAN, .span = 2, .depth = 1, .start_ns = 22, .end_ns = 64},
	    {.kind = EVENT_INSTANT, .span = 3, .depth = 1, .start_ns = 64, .end_ns = 64},
	    {.kind = EVENT_SPAN, .span = 1, .start_ns = 22, .end_ns = 64, .child_ns = 42},
	    {.kind = EVENT_SPAN, .span = 1, .start_ns = 64, .end_ns = 64},
	    {.kind = EVENT_VALUE, .span = 4, .start_ns = 64, .end_ns = 64},
	    {.kind = EVENT_OPEN, .span = 1, .depth = 1, .start_ns = 64, .end_ns = 64},
	    {.kind = EVENT_OPEN, .span = 1, .start_ns = 64, .end_ns = 64},
	};

	(void)state;
	round_trip(ev, sizeof(ev) / sizeof(ev[0]));
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Anything at all, with more symbols than a byte can number and with few. */
static void t_random(void **state)
{
	static const size_t counts[] = {1, 2, 255, 256, 257, 1000, 4096, TRACE_EVENTS_MAX};
	struct event *ev = calloc(TRACE_EVENTS_MAX, sizeof(*ev));

	(void)state;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (int few = 0; few < 2; few++) {
			for (size_t i = 0; i < counts[c]; i++)
				ev[i] = (struct event){
				    .start_ns = next_random() >> (next_random() & 63),
				    .end_ns = next_random() >> (next_random() & 63),
				    .child_ns = next_random() >> (next_random() & 63),
				    .arg = next_random() >> (next_random() & 63),
				    .span = 1 + (uint32_t)(next_random() % (few ? 3 : NSPANS)),
				    .node = (uint32_t)next_random() >> (few ? 30 : 0),
				    .thread = 5,
				    .begin_tid = few ? 0 : (uint32_t)next_random(),
				    .depth = (uint16_t)(next_random() >> (few ? 62 : 48)),
				    .kind = (uint8_t)(1 + next_random() % (EVENT_KINDS - 1))};
			round_trip(ev, counts[c]);
		}
	free(ev);
}

/* A tick of a parent and two children takes few bytes, and child_ns none. */
static void t_small(void **state)
{
	struct event ev[3000];
	uint64_t t = 1000000;

	(void)state;
	memset(ev, 0, sizeof(ev));
	for (size_t i = 0; i < 3000; i += 3) {
		for (size_t c = 0; c < 2; c++)
			ev[i + c] = (struct event){.kind = EVENT_SPAN,
						   .span = (uint32_t)(2 + c),
						   .node = (uint32_t)(2 + c),
						   .depth = 1,
						   .start_ns = t + 20 + 2000 * c,
						   .end_ns = t + 1500 + 2000 * c + i};
		ev[i + 2] = (struct event){.kind = EVENT_SPAN,
					   .span = 1,
					   .node = 1,
					   .start_ns = t,
					   .end_ns = t + 3520 + i};
		for (size_t c = 0; c < 2; c++)
			ev[i + 2].child_ns += ev[i + c].end_ns - ev[i + c].start_ns;
		t += 10000 + i;
	}
	/* A symbol, and a time to find the begin by, and one for the duration: two bytes each. */
	assert_in_range(round_trip(ev, 3000), 3000, 5 * 3000 + 100);
}

static void t_refused(void **state)
{
	struct event ev = {.kind = 0, .span = 1};
	struct bytes raw = {0};
	struct trace_block b;

	(void)state;
	assert_int_equal(event_codec__encode(codec, &ev, 1, &raw, &b), -EINVAL);
	ev.kind = EVENT_KINDS;
	assert_int_equal(event_codec__encode(codec, &ev, 1, &raw, &b), -EINVAL);
	ev.kind = EVENT_SPAN;
	assert_int_equal(event_codec__encode(codec, &ev, 0, &raw, &b), -EINVAL);
	assert_int_equal(event_codec__encode(codec, &ev, TRACE_EVENTS_MAX + 1, &raw, &b), -EINVAL);
	free(raw.p);
}

/* --- columns that lie --------------------------------------------------------------------------- */

struct payload {
	uint8_t p[400];
	size_t n;
};

/* Header and parts; a dictionary entry is 5 bytes here. */
static struct payload payload(const uint32_t lens[7], uint64_t base, const void *parts, size_t len)
{
	struct payload out = {.n = 40 + len};

	memcpy(out.p, lens, 28);
	memcpy(out.p + 32, &base, 8);
	memcpy(out.p + 40, parts, len);
	return out;
}

static int decode(const struct payload *p, uint32_t count, uint64_t lo, uint64_t hi,
		  struct event *out, const char **why)
{
	struct trace_block b = {.type = BLOCK_EVENTS,
				.count = count,
				.raw_len = (uint32_t)p->n,
				.start_ns = lo,
				.end_ns = hi};
	uint8_t *raw = calloc(1, p->n + EVENT_PADDING);
	int err;

	memcpy(raw, p->p, p->n);
	err = event_codec__decode(codec, raw, &b, 3, out, why);
	free(raw);
	return err;
}

static void t_lies(void **state)
{
	/* Two events of one symbol: [10, 15] and [20, 25]. */
	static const uint32_t good[7] = {1, 5, 2, 2, 0, 0, 0};
	static const uint8_t parts[] = {EVENT_SPAN, 0, 3, 9, 0, /**/ 0, 0, /**/ 20, 10, /**/ 5, 5};
	static const struct {
		int at; /* below 0: lens[-at - 1] */
		uint32_t value;
	} wrong[] = {
	    {-1, 0},  {-1, 2}, {-1, UINT32_MAX}, {-2, 4}, {-2, 6}, {-2, UINT32_MAX}, {-3, 1},
	    {-3, 3},  {-4, 1}, {-5, 1},		 {-6, 2}, {-7, 2}, {0, 0},	     {0, 7},
	    {0, 255}, {1, 1},  {1, 2},		 {1, 4},  {1, 8},  {2, 0},	     {2, 4},
	    {4, 128}, {6, 1},  {7, 128},	 {7, 22}, {9, 4},  {10, 255},	     {8, 12},
	};
	struct event out[2];
	struct payload p = payload(good, 0, parts, sizeof(parts));
	const char *why;

	(void)state;
	assert_int_equal(decode(&p, 2, 10, 25, out, &why), 0);
	assert_true(out[0].start_ns == 10 && out[0].end_ns == 15 && out[0].node == 9);
	assert_true(out[1].start_ns == 20 && out[1].end_ns == 25 && out[1].span == 3);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		p = payload(good, 0, parts, sizeof(parts));
		if (wrong[i].at < 0)
			memcpy(p.p + 4 * (-wrong[i].at - 1), &wrong[i].value, 4);
		else
			p.p[40 + wrong[i].at] = (uint8_t)wrong[i].value;
		why = NULL;
		if (decode(&p, 2, 10, 25, out, &why) != -EBADMSG || !why)
			fail_msg("lie %zu is believed", i);
	}
	p = payload(good, 0, parts, sizeof(parts));
	assert_int_equal(decode(&p, 2, 9, 25, out, &why), -EBADMSG);
	assert_int_equal(decode(&p, 2, 10, 26, out, &why), -EBADMSG);
	assert_int_equal(decode(&p, 3, 10, 25, out, &why), -EBADMSG);
	assert_int_equal(decode(&p, 0, 10, 25, out, &why), -EBADMSG);
	for (size_t n = 0; n < sizeof(parts) + 40; n++) {
		p.n = n;
		assert_int_equal(decode(&p, 2, 10, 25, out, &why), -EBADMSG);
	}
}

/* A varint of eleven bytes, or of more than 64 bits, is none. */
static void t_varint(void **state)
{
	uint8_t ten[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0};
	const uint8_t *p = ten;
	uint64_t v;

	(void)state;
	assert_true(varint__get(&p, &v));
	assert_true(v == UINT64_MAX && p == ten + 10);
	ten[9] = 0x02;
	p = ten;
	assert_false(varint__get(&p, &v));
	ten[9] = 0x81;
	p = ten;
	assert_false(varint__get(&p, &v));
	for (int bit = 0; bit < 64; bit++)
		for (uint64_t near = 0; near < 3; near++) {
			uint64_t want = (1ull << bit) - 1 + near;
			uint8_t buf[VARINT_MAX];
			uint8_t *end = varint__put(buf, want);

			p = buf;
			assert_true(varint__get(&p, &v));
			assert_true(v == want && p == end);
			assert_true(unzigzag(zigzag(want)) == want);
			assert_true(zigzag(0 - want) == (want ? want * 2 - 1 : 0) || bit == 63);
		}
}

static int setup(void **state)
{
	(void)state;
	codec = event_codec__new();
	return codec ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	event_codec__free(codec);
	event_codec__free(NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_extremes), cmocka_unit_test(t_ties),    cmocka_unit_test(t_random),
	    cmocka_unit_test(t_small),	  cmocka_unit_test(t_refused), cmocka_unit_test(t_lies),
	    cmocka_unit_test(t_varint),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

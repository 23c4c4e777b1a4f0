/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The payload of an EVENTS block: events of one thread as columns (docs/trace-format.md).
 *
 * What repeats (kind, span, node, depth) is a symbol of the block's own dictionary. Times are told
 * relative to what the order of ends makes likely: a span without a child begins soon after the end
 * before it; one with children begins soon before the first and ends soon after the last, and its
 * children's time is their sum. What is not as likely costs more bytes, never a wrong value.
 */
#ifndef QBPF_FILE_CODEC_H
#define QBPF_FILE_CODEC_H

#include "file/bytes.h"
#include "file/event.h"
#include "file/format.h"

struct event_codec;

/* One thread at a time may use it. NULL: no memory. */
struct event_codec *event_codec__new(void);
void event_codec__free(struct event_codec *c);

/* Bytes that must lie, as zeros, behind a payload that is decoded. */
#define EVENT_PADDING 16

/* Replaces what is in *out by the payload; fills the block's type, count, start_ns and end_ns. n is
 * 1 .. TRACE_EVENTS_MAX. 0, -ENOMEM or -EINVAL (an event of no known kind). */
int event_codec__encode(struct event_codec *c, const struct event *events, size_t n,
			struct bytes *out, struct trace_block *b);

/* raw[0 .. b->raw_len + EVENT_PADDING) to b->count events. -EBADMSG: *why says what is wrong. */
int event_codec__decode(struct event_codec *c, const uint8_t *raw, const struct trace_block *b,
			uint32_t nspans, struct event *events, const char **why);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perfetto packets on their way into a file: gathered into groups, each compressed and written as one
 * packet. Packets go into the file in the order in which they come here.
 */
#ifndef QBPF_OUT_PERFETTO_PACK_H
#define QBPF_OUT_PERFETTO_PACK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "perfetto.pb-c.h"

struct pack;

struct pack *pack__new(FILE *out);
void pack__free(struct pack *p);

/* 0 or a negative errno: of memory, or of writing. */
int pack__packet(struct pack *p, const Perfetto__TracePacket *packet);
/* The same, at once and not compressed: what tells a file's type must be in its first bytes. */
int pack__plain(struct pack *p, const Perfetto__TracePacket *packet);

/*
 * A part of a packet, serialized once and used many times: a message's serialized parts, one after
 * the other, are the serialization of all that they hold.
 */
#define PART_MAX 16
struct pack_part {
	uint8_t len;
	uint8_t bytes[PART_MAX];
};
/* -E2BIG: it does not fit. */
int pack_part__make(struct pack_part *part, const Perfetto__TracePacket *packet);
/* A packet of this time and these two parts. */
int pack__parts(struct pack *p, uint64_t timestamp_ns, const struct pack_part *a,
		const struct pack_part *b);

/* What is left is written. */
int pack__end(struct pack *p);

#endif

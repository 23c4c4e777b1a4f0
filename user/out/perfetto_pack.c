// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Groups of compressed Perfetto packets; see perfetto_pack.h. */
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "out/perfetto_pack.h"

/* Perfetto asks for less than 512 KiB a packet; a packet of more (a long name) is a group alone. */
#define GROUP_BYTES (128 << 10)
#define LEVEL	    1 /* of 12: 3 saves a tenth and takes half as long again, 6 takes thrice as long */
#define TAG_PACKET  0x0a /* Trace.packet, length-delimited */
#define TAG_TIME    0x40 /* TracePacket.timestamp, varint */
#define FRAME_MAX   16	 /* tag and length of any packet */
#define VARINT_MAX  10

struct pack {
	FILE *out;
	struct libdeflate_compressor *deflate;
	uint8_t *group, *small; /* as it is, and compressed */
	size_t len, room, small_room;
};

struct pack *pack__new(FILE *out)
{
	struct pack *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->out = out;
	p->deflate = libdeflate_alloc_compressor(LEVEL);
	p->room = GROUP_BYTES;
	p->group = malloc(p->room);
	if (!p->deflate || !p->group) {
		pack__free(p);
		return NULL;
	}
	return p;
}

void pack__free(struct pack *p)
{
	if (!p)
		return;
	if (p->deflate)
		libdeflate_free_compressor(p->deflate);
	free(p->group);
	free(p->small);
	free(p);
}

static size_t put_varint(uint8_t *to, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

static size_t put_frame(uint8_t *to, size_t len)
{
	to[0] = TAG_PACKET;
	return 1 + put_varint(to + 1, len);
}

static int write_out(struct pack *p, const void *bytes, size_t len)
{
	errno = 0;
	if (fwrite(bytes, 1, len, p->out) == len)
		return 0;
	return errno ? -errno : -EIO;
}

static int write_packet(struct pack *p, const Perfetto__TracePacket *packet)
{
	size_t len = perfetto__trace_packet__get_packed_size(packet), frame;
	uint8_t *bytes = malloc(FRAME_MAX + len);
	int err;

	if (!bytes)
		return -ENOMEM;
	frame = put_frame(bytes, len);
	perfetto__trace_packet__pack(packet, bytes + frame);
	err = write_out(p, bytes, frame + len);
	free(bytes);
	return err;
}

static int flush(struct pack *p)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	size_t bound = libdeflate_zlib_compress_bound(p->deflate, p->len);

	if (!p->len)
		return 0;
	if (bound > p->small_room) {
		free(p->small);
		p->small = malloc(bound);
		p->small_room = p->small ? bound : 0;
		if (!p->small)
			return -ENOMEM;
	}
	packet.has_compressed_packets = 1;
	packet.compressed_packets.data = p->small;
	packet.compressed_packets.len =
	    libdeflate_zlib_compress(p->deflate, p->group, p->len, p->small, p->small_room);
	if (!packet.compressed_packets.len)
		return -EIO;
	p->len = 0;
	return write_packet(p, &packet);
}

/* Where the next `len` bytes of packets go; NULL: see *err. */
static uint8_t *room_for(struct pack *p, size_t len, int *err)
{
	*err = 0;
	if (p->len + len > GROUP_BYTES)
		*err = flush(p);
	if (!*err && len > p->room) {
		uint8_t *more = realloc(p->group, len);

		if (more) {
			p->group = more;
			p->room = len;
		} else {
			*err = -ENOMEM;
		}
	}
	return *err ? NULL : p->group + p->len;
}

int pack__packet(struct pack *p, const Perfetto__TracePacket *packet)
{
	size_t len = perfetto__trace_packet__get_packed_size(packet), frame;
	int err;
	uint8_t *to = room_for(p, FRAME_MAX + len, &err);

	if (!to)
		return err;
	frame = put_frame(to, len);
	perfetto__trace_packet__pack(packet, to + frame);
	p->len += frame + len;
	return 0;
}

int pack__plain(struct pack *p, const Perfetto__TracePacket *packet)
{
	int err = flush(p);

	return err ? err : write_packet(p, packet);
}

int pack_part__make(struct pack_part *part, const Perfetto__TracePacket *packet)
{
	size_t len = perfetto__trace_packet__get_packed_size(packet);

	if (len > PART_MAX)
		return -E2BIG;
	part->len = (uint8_t)len;
	perfetto__trace_packet__pack(packet, part->bytes);
	return 0;
}

int pack__parts(struct pack *p, uint64_t timestamp_ns, const struct pack_part *a,
		const struct pack_part *b)
{
	uint8_t time[1 + VARINT_MAX] = {TAG_TIME};
	size_t ntime = 1 + put_varint(time + 1, timestamp_ns), len = ntime + a->len + b->len;
	int err;
	/* Whole parts are copied, for their size is then known to the compiler. */
	uint8_t *to = room_for(p, FRAME_MAX + sizeof(time) + 2 * PART_MAX, &err);
	size_t at;

	if (!to)
		return err;
	at = put_frame(to, len);
	memcpy(to + at, time, sizeof(time));
	at += ntime;
	memcpy(to + at, a->bytes, PART_MAX);
	at += a->len;
	memcpy(to + at, b->bytes, PART_MAX);
	p->len += at + b->len;
	return 0;
}

int pack__end(struct pack *p)
{
	return flush(p);
}

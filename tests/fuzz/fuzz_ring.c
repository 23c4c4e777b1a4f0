/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A producer that does whatever it likes with the ring's memory, and the reader: it stays within the
 * mapping, a poll ends and hands over no more than fits into the lanes, a lane that it gave up stays
 * so, and what it tells stays one line.
 *
 * Input: steps of a byte, a place and a value. Bits 0 .. 2 of the byte: 0, 1 bytes at the place in the
 * file; 2 a word of a lane's head; 3, 4 the head of a record where the lane is written next, and the
 * position moved on; 5 a whole record as a good producer puts it; 6 a string's head or slot; 7 a look
 * at everything. Bit 3: look after that, too.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "file/ring_reader.h"

#define LANES 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	struct ring_reader *reader;
	struct qbpf_ring ring;
	unsigned char *map;
	size_t bytes;
	uint64_t handed; /* by one poll */
	uint32_t bad;
};

static void must(int ok)
{
	if (!ok)
		abort();
}

static int on_record(void *ctx, const struct qbpf_ring_record *rec)
{
	char buf[QBPF_RING_STRING_MAX + 1];
	struct fuzz *f = ctx;
	int len;

	must(ring_type_name(rec->type) != NULL);
	must(rec->size >= ring_type_size(rec->type) && rec->size <= QBPF_RING_RECORD_MAX);
	len = ring_reader__string(f->reader, rec->first, buf, 1 + rec->first % sizeof(buf));
	must(len < 0 ? !buf[0] : len <= (int)QBPF_RING_STRING_MAX);
	f->handed++;
	return rec->first == 0xfeed; /* a caller that wants no more */
}

static void look(struct fuzz *f)
{
	struct ring_status st;
	char line[512];
	int ret;

	f->handed = 0;
	ret = ring_reader__poll(f->reader, on_record, f);
	must(ret == 0 || ret == 1);
	must(f->handed <= (uint64_t)LANES * f->ring.lane_bytes / sizeof(struct qbpf_ring_record));
	must(ring_reader__fill(f->reader) <= 100);
	ring_reader__status(f->reader, &st);
	must(st.bad_lanes >= f->bad && st.bad_lanes <= LANES);
	f->bad = st.bad_lanes;
	ring_status__lost(&st);
	ring_status__explain(&st, line, sizeof(line));
	must(line[0] && !memchr(line, '\n', strlen(line)));
}

static void put(struct fuzz *f, size_t at, const void *value, size_t bytes)
{
	if (at + bytes <= f->bytes)
		memcpy(f->map + at, value, bytes);
}

/* Something that looks like a record, as far as the values let it. */
static void put_head(struct fuzz *f, uint32_t place, uint64_t value)
{
	struct qbpf_ring_lane *lane = &f->ring.lane[place % LANES];
	uint32_t pos = (uint32_t)lane->written & (f->ring.lane_bytes - 1) & ~7u;
	struct qbpf_ring_record rec;

	memcpy(&rec, &value, sizeof(rec));
	memcpy(f->ring.data + (size_t)(place % LANES) * f->ring.lane_bytes + pos, &rec,
	       sizeof(rec));
	lane->written += place & 4 ? rec.size : rec.size & ~7u;
}

static void put_good(struct fuzz *f, uint32_t place, uint64_t value)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX] = {0};
	struct qbpf_ring_record *rec = (struct qbpf_ring_record *)buf;
	struct qbpf_ring_writer w;
	char name[16];

	rec->type = (uint16_t)(1 + value % QBPF_RING_WINDOW);
	rec->size = (uint16_t)(ring_type_size(rec->type) + (value >> 8) % 64 * 8);
	memset(name, 'a' + (int)(value >> 16) % 26, sizeof(name));
	qbpf_ring_claim(&f->ring, 1, place, &w);
	rec->first = qbpf_ring_intern(&f->ring, name, (value >> 24) % sizeof(name));
	qbpf_ring_put(&w, buf);
	qbpf_ring_release(&w);
}

static void step(struct fuzz *f, uint8_t what, uint32_t place, uint64_t value)
{
	size_t lane = (size_t)((unsigned char *)&f->ring.lane[place % LANES] - f->map);

	switch (what & 7) {
	case 0:
	case 1:
		put(f, place % f->bytes, &value, 1u << (what >> 4 & 3));
		break;
	case 2:
		put(f, lane + (place >> 8) % 3 * 64, &value, what & 16 ? 4 : 8);
		break;
	case 3:
	case 4:
		put_head(f, place, value);
		break;
	case 5:
		put_good(f, place, value);
		break;
	case 6:
		put(f, sizeof(struct qbpf_ring_head) + place % 2048 / 8 * 8, &value, 8);
		break;
	default:
		look(f);
	}
	if (what & 8)
		look(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ring_options o = {
	    .lanes = LANES, .lane_bytes = 4096, .strings = 16, .strings_bytes = 1024};
	struct fuzz f = {0};
	struct stat st;
	struct err e;
	uint32_t place;
	uint64_t value;

	f.reader = ring_reader__new(&o, &e);
	must(f.reader && !fstat(ring_reader__fd(f.reader), &st));
	f.bytes = (size_t)st.st_size;
	f.map =
	    mmap(NULL, f.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_reader__fd(f.reader), 0);
	must(f.map != MAP_FAILED && !qbpf_ring_open(&f.ring, f.map, f.bytes));
	for (; size >= 13; data += 13, size -= 13) {
		memcpy(&place, data + 1, sizeof(place));
		memcpy(&value, data + 5, sizeof(value));
		step(&f, data[0], place, value);
	}
	look(&f);
	munmap(f.map, f.bytes);
	ring_reader__free(f.reader);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trace files put together block by block, with right checksums around whatever a test or a fuzzer
 * wants inside: what only a hostile writer would leave.
 */
#ifndef QBPF_TEST_TRACE_BUILD_H
#define QBPF_TEST_TRACE_BUILD_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "file/reader_impl.h"

struct build {
	struct bytes file, index, table;
	uint64_t seq, nevents;
	uint32_t nentries; /* in `table` */
	int compress;
	uint64_t before; /* bytes of the file that are not in `file` */
};

static inline void build__must(int ok)
{
	if (!ok) {
		fprintf(stderr, "cannot build a trace\n");
		abort();
	}
}

static inline void build__start(struct build *b)
{
	struct trace_file_header h = {.major = TRACE_MAJOR, .size = sizeof(h)};

	memset(b, 0, sizeof(*b));
	memcpy(h.magic, TRACE_MAGIC, sizeof(h.magic));
	h.crc = trace_crc(&h, offsetof(struct trace_file_header, crc));
	build__must(!bytes__append(&b->file, &h, sizeof(h)));
}

static inline void build__free(struct build *b)
{
	free(b->file.p);
	free(b->index.p);
	free(b->table.p);
}

/* Appends a block with everything in *h that is not the payload's. */
static inline void build__raw(struct build *b, struct trace_block *h, const void *payload)
{
	h->magic = TRACE_BLOCK_MAGIC;
	h->seq = b->seq++;
	trace_block__seal(h, payload);
	build__must(!bytes__append(&b->file, h, sizeof(*h)));
	build__must(!bytes__append(&b->file, payload, h->stored_len));
}

static inline void build__block(struct build *b, struct trace_block h, const void *payload,
				size_t len)
{
	struct trace_index_entry entry = {.off = b->before + b->file.n,
					  .start_ns = h.start_ns,
					  .end_ns = h.end_ns,
					  .thread = h.thread,
					  .count = h.count,
					  .type = h.type};
	struct bytes packed = {0};
	size_t n;

	h.raw_len = h.stored_len = (uint32_t)len;
	if (b->compress) {
		build__must(!bytes__reserve(&packed, ZSTD_compressBound(len)));
		n = ZSTD_compress(packed.p, packed.cap, payload, len, 1);
		if (!ZSTD_isError(n) && n < len) {
			h.codec = CODEC_ZSTD;
			h.stored_len = (uint32_t)n;
			payload = packed.p;
		}
	}
	entry.stored_len = h.stored_len;
	build__raw(b, &h, payload);
	build__must(!bytes__append(&b->index, &entry, sizeof(entry)));
	if (h.type == BLOCK_EVENTS)
		b->nevents += h.count;
	free(packed.p);
}

/* Entries of one table gather; build__flush makes their block. */
static inline void build__entry(struct build *b, unsigned int type, uint32_t index,
				const void *entry)
{
	build__must(!table__encode(table__of(type), &b->table, index, entry));
	b->nentries++;
}

static inline void build__flush(struct build *b, unsigned int type)
{
	struct trace_block h = {
	    .type = (uint16_t)type, .thread = TRACE_NO_THREAD, .count = b->nentries};

	build__block(b, h, b->table.p, b->table.n);
	b->table.n = 0;
	b->nentries = 0;
}

/* Meta, nspans spans and nthreads threads. */
static inline void build__tables(struct build *b, uint32_t nspans, uint32_t nthreads)
{
	struct trace_meta meta = {.qbpf_version = "1", .start_ns = 1};
	struct trace_span span = {.name = "p:s"};
	struct trace_thread thread = {.tgid = 7, .tid = 8, .name = "t"};

	build__entry(b, BLOCK_META, 0, &meta);
	build__flush(b, BLOCK_META);
	for (uint32_t i = 0; i < nspans; i++)
		build__entry(b, BLOCK_SPANS, 0, &span);
	build__flush(b, BLOCK_SPANS);
	for (uint32_t i = 0; i < nthreads; i++)
		build__entry(b, BLOCK_THREADS, i, &thread);
	build__flush(b, BLOCK_THREADS);
}

/* Counts of nspans spans, index and end. */
static inline void build__finish(struct build *b, uint32_t nspans)
{
	struct trace_block h = {.type = BLOCK_INDEX, .thread = TRACE_NO_THREAD};
	struct trace_count none = {0};
	uint64_t index_off;

	for (uint32_t i = 0; i < nspans; i++)
		build__entry(b, BLOCK_COUNTS, 0, &none);
	build__flush(b, BLOCK_COUNTS);
	index_off = b->before + b->file.n;
	h.count = (uint32_t)(b->index.n / sizeof(struct trace_index_entry));
	h.raw_len = h.stored_len = (uint32_t)b->index.n;
	build__raw(b, &h, b->index.p);
	h = (struct trace_block){.type = BLOCK_END,
				 .thread = TRACE_NO_THREAD,
				 .start_ns = b->nevents,
				 .end_ns = 99,
				 .ref = index_off};
	build__raw(b, &h, NULL);
}

static inline int build__open_bytes(const void *p, size_t n, struct trace_reader **r, struct err *e)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	build__must(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	return trace_reader__open_fd(fd, "made.qbpf", r, e);
}

static inline int build__open(const struct build *b, struct trace_reader **r, struct err *e)
{
	return build__open_bytes(b->file.p, b->file.n, r, e);
}

#endif

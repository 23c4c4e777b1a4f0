/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The trace file's fixed parts, as docs/trace-format.md lays them down: the file's header, the
 * header of a block, the types of blocks and the limits. All integers are little-endian.
 */
#ifndef QBPF_FILE_FORMAT_H
#define QBPF_FILE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian, as the host");

#define TRACE_MAGIC	  "\x89qbpf\r\n\x1a"
#define TRACE_MAJOR	  1
#define TRACE_MINOR	  1
#define TRACE_BLOCK_MAGIC 0x4b4c4251u /* "QBLK" */

#define TRACE_RAW_MAX	 (16u << 20)  /* of a block's payload, before compression */
#define TRACE_EVENTS_MAX 65535u	      /* in one block */
#define TRACE_TABLES_MAX (512u << 20) /* of all tables and the aggregates that count */
#define TRACE_RECORD_MAX (4u << 20)   /* of one table entry */
#define TRACE_NO_THREAD	 UINT32_MAX

enum trace_block_type {
	BLOCK_META = 1,
	BLOCK_SPANS = 2,
	BLOCK_MAPPINGS = 3,
	BLOCK_PROBES = 4,
	BLOCK_PROCESSES = 5,
	BLOCK_THREADS = 6,
	BLOCK_NODES = 7,
	BLOCK_LOSSES = 8,
	BLOCK_CLOCKS = 9,
	BLOCK_EVENTS = 10,
	BLOCK_AGGREGATES = 11,
	BLOCK_COUNTS = 12,
	BLOCK_INDEX = 13,
	BLOCK_END = 14,
	BLOCK_GPU = 32, /* records of qbpf/ring.h */
	BLOCK_GPU_NAMES = 33,
	BLOCK_GPU_LOSSES = 34,
	/* .. 47: kept for the GPU */
};

#define BLOCK_TABLES (BLOCK_GPU_LOSSES + 1) /* types of tables are below */

enum trace_codec { CODEC_NONE = 0, CODEC_ZSTD = 1 };

struct trace_file_header {
	uint8_t magic[8];
	uint16_t major, minor;
	uint32_t size; /* of this header */
	uint8_t reserved[44];
	uint32_t crc; /* of all before it */
};

_Static_assert(sizeof(struct trace_file_header) == 64, "file header");

struct trace_block {
	uint32_t magic;
	uint16_t type;
	uint8_t codec;
	uint8_t reserved;
	uint32_t thread; /* EVENTS: index; AGGREGATES: number of the part; GPU: which ring; else
			    TRACE_NO_THREAD */
	uint32_t count;	 /* entries; AGGREGATES: parts */
	uint32_t raw_len;
	uint32_t stored_len;
	uint64_t seq;	   /* 0, 1, .. */
	uint64_t start_ns; /* EVENTS: the lowest time in it; END: number of events in the file */
	uint64_t end_ns;   /* EVENTS: the highest; END: when the recording ended */
	uint64_t ref;	   /* INDEX: offset of the one before, or 0; END: of the last INDEX */
	uint32_t payload_crc;
	uint32_t header_crc; /* of all before it */
};

_Static_assert(sizeof(struct trace_block) == 64, "block header");

/* One block in an INDEX block: every block but INDEX and END, in the order of the file. */
struct trace_index_entry {
	uint64_t off;
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t count;
	uint32_t stored_len;
	uint16_t type;
	uint16_t reserved;
};

_Static_assert(sizeof(struct trace_index_entry) == 40, "index entry");

/* Fills in both CRCs. */
void trace_block__seal(struct trace_block *b, const void *payload);
/* Magic and header CRC are right. */
bool trace_block__valid(const struct trace_block *b);
uint32_t trace_crc(const void *bytes, size_t len);

#endif

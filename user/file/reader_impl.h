/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the reader share: blocks (reader_blocks.c), tables (reader_tables.c), and the
 * walk over a file's blocks and its events (reader.c). */
#ifndef QBPF_FILE_READER_IMPL_H
#define QBPF_FILE_READER_IMPL_H

#include <zstd.h>

#include "file/codec.h"
#include "file/reader.h"
#include "file/tables.h"

/* An EVENTS block. */
struct block_place {
	uint64_t off, start_ns, end_ns;
	uint32_t thread, count;
};

_Static_assert(sizeof(struct block_place) == 32, "reader.h promises 32 bytes a block");

/* A GPU block. */
struct gpu_place {
	uint64_t off;
	uint32_t ring, count;
};

struct trace_reader {
	int fd;
	char *name;
	uint64_t size;
	struct trace_info info;
	/* tables while they are read */
	struct strings strings;
	size_t caps[BLOCK_TABLES]; /* entries that a table has room for, by block type */
	size_t ncounts;
	uint64_t table_bytes;
	bool has_meta;
	/* the aggregates that count, and those that are not complete yet: offsets of their parts */
	uint64_t *parts, *new_parts;
	uint32_t nparts, nnew_parts, new_parts_cap;
	/* one block */
	struct bytes stored, raw;
	ZSTD_DCtx *zstd;
	/* events */
	struct event_codec *codec;
	struct event *events;
	size_t events_cap;
	struct block_place *blocks;
	size_t nblocks, blocks_cap;
	uint32_t *by_thread;  /* numbers of blocks, those of one thread together; made when asked */
	size_t *thread_first; /* nthreads + 1: where each thread's are in by_thread */
	/* records of the GPU: a list of blocks, and the one that is being read */
	struct gpu_place *gpu;
	size_t ngpu, gpu_cap, gpu_at;
	struct bytes gpu_raw;
	size_t gpu_off;	   /* in it */
	uint32_t gpu_left; /* records */
	/* the walk */
	const uint32_t *order; /* NULL: all */
	size_t at, left;       /* of the order: next block; how many there still are */
	bool backwards;
	uint64_t from_ns, to_ns;
};

/* Takes over fd; `name` is for messages. */
int trace_reader__open_fd(int fd, const char *name, struct trace_reader **out, struct err *e);

/* err_set() with the file's name and the offset. Returns -EBADMSG. */
int reader_damaged(const struct trace_reader *r, struct err *e, uint64_t off, const char *why);

/* -EIO when the file is shorter than it was. */
int reader_pread(const struct trace_reader *r, uint64_t off, void *to, size_t len, struct err *e);

enum header_state {
	HEADER_GOOD,
	HEADER_CUT, /* the file ends here, or goes on with zeros alone */
};
/* The block's header: of a known codec and of lengths within the limits and the file. */
int reader_header(struct trace_reader *r, uint64_t off, struct trace_block *b,
		  enum header_state *state, struct err *e);
/* Its payload, checked and decompressed, into r->raw, with EVENT_PADDING zeros behind it. */
int reader_payload(struct trace_reader *r, uint64_t off, const struct trace_block *b,
		   struct err *e);
/* Is the payload there as it was written? 1, 0 or a negative errno. */
int reader_payload_whole(struct trace_reader *r, uint64_t off, const struct trace_block *b,
			 struct err *e);
/* Offset behind the file's last byte that is not zero. */
int reader_data_end(const struct trace_reader *r, uint64_t *end, struct err *e);

/* Calls `each` for every block but INDEX and END in the order of the file; sets clean, cut_at and,
 * when clean, end_ns. */
typedef int (*block_fn)(struct trace_reader *r, uint64_t off, const struct trace_block *b,
			struct err *e);
int reader_walk(struct trace_reader *r, block_fn each, struct err *e);

/* reader_gpu.c: a GPU block is there. */
int reader_gpu(struct trace_reader *r, uint64_t off, const struct trace_block *b, struct err *e);

/* Tables and aggregates: a block; and, after the last one, what only the whole can tell. */
int reader_table(struct trace_reader *r, uint64_t off, const struct trace_block *b, struct err *e);
int reader_aggregates(struct trace_reader *r, uint64_t off, const struct trace_block *b,
		      struct err *e);
int reader_tables_done(struct trace_reader *r, struct err *e);

#endif

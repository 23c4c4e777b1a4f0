// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The blocks of a trace file, one at a time and in a row: by the index of a file that was closed
 * cleanly, else by their headers up to the place where the file was cut off.
 */
#include <string.h>
#include <unistd.h>

#include "file/reader_impl.h"

int reader_damaged(const struct trace_reader *r, struct err *e, uint64_t off, const char *why)
{
	return err_set(e, -EBADMSG, "%.256s: damaged at offset %llu: %s", r->name,
		       (unsigned long long)off, why);
}

int reader_pread(const struct trace_reader *r, uint64_t off, void *to, size_t len, struct err *e)
{
	char *p = to;

	while (len) {
		ssize_t n = pread(r->fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "%.256s: offset %llu: %s", r->name,
				       (unsigned long long)off, strerror(errno));
		if (!n)
			return err_set(e, -EIO, "%.256s: became shorter while it was read",
				       r->name);
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int reader_data_end(const struct trace_reader *r, uint64_t *end, struct err *e)
{
	uint8_t chunk[16384];
	uint64_t at = r->size;

	while (at) {
		size_t n = at < sizeof(chunk) ? (size_t)at : sizeof(chunk);
		int err = reader_pread(r, at - n, chunk, n, e);

		if (err)
			return err;
		for (; n; n--, at--)
			if (chunk[n - 1]) {
				*end = at;
				return 0;
			}
	}
	*end = 0;
	return 0;
}

int reader_header(struct trace_reader *r, uint64_t off, struct trace_block *b,
		  enum header_state *state, struct err *e)
{
	uint64_t data_end;
	int err;

	*state = HEADER_CUT;
	if (r->size - off < sizeof(*b))
		return 0;
	err = reader_pread(r, off, b, sizeof(*b), e);
	if (err)
		return err;
	if (!trace_block__valid(b)) {
		err = reader_data_end(r, &data_end, e);
		if (err)
			return err;
		/* After a loss of power the last bytes of a file may have become zeros. */
		if (data_end < off + sizeof(*b))
			return 0;
		return reader_damaged(r, e, off, "no block where one must be");
	}
	if (b->raw_len > TRACE_RAW_MAX || b->stored_len > b->raw_len)
		return reader_damaged(r, e, off, "a block of an impossible length");
	if (b->codec > CODEC_ZSTD || (b->codec == CODEC_NONE && b->stored_len != b->raw_len))
		return reader_damaged(r, e, off, "a block that is compressed in an unknown way");
	if (b->stored_len > r->size - off - sizeof(*b))
		return 0;
	*state = HEADER_GOOD;
	return 0;
}

int reader_payload_whole(struct trace_reader *r, uint64_t off, const struct trace_block *b,
			 struct err *e)
{
	int err;

	r->stored.n = 0;
	err = bytes__reserve(&r->stored, b->stored_len + 1);
	if (err)
		return err_set(e, err, "%.256s: %s", r->name, strerror(-err));
	err = reader_pread(r, off + sizeof(*b), r->stored.p, b->stored_len, e);
	if (err)
		return err;
	return trace_crc(r->stored.p, b->stored_len) == b->payload_crc;
}

int reader_payload(struct trace_reader *r, uint64_t off, const struct trace_block *b, struct err *e)
{
	int err = reader_payload_whole(r, off, b, e);
	size_t n;

	if (err < 0)
		return err;
	if (!err)
		return reader_damaged(r, e, off, "a block's checksum is wrong");
	r->raw.n = 0;
	err = bytes__reserve(&r->raw, b->raw_len + EVENT_PADDING);
	if (err)
		return err_set(e, err, "%.256s: %s", r->name, strerror(-err));
	if (b->codec == CODEC_NONE) {
		memcpy(r->raw.p, r->stored.p, b->raw_len);
	} else {
		n = ZSTD_decompressDCtx(r->zstd, r->raw.p, b->raw_len, r->stored.p, b->stored_len);
		if (ZSTD_isError(n) || n != b->raw_len)
			return reader_damaged(r, e, off, "a block does not decompress");
	}
	memset(r->raw.p + b->raw_len, 0, EVENT_PADDING);
	return 0;
}

/* --- all blocks --------------------------------------------------------------------------------- */

/* Without an index: header by header. */
static int walk_headers(struct trace_reader *r, block_fn each, struct err *e)
{
	uint64_t off = sizeof(struct trace_file_header), seq = 0, data_end;
	int err = reader_data_end(r, &data_end, e);

	while (!err) {
		enum header_state state;
		struct trace_block b;
		uint64_t next;

		err = reader_header(r, off, &b, &state, e);
		if (err || state == HEADER_CUT)
			break;
		next = off + sizeof(b) + b.stored_len;
		if (next > data_end) {
			err = reader_payload_whole(r, off, &b, e);
			if (err < 0)
				return err;
			if (!err)
				break;
			err = 0;
		}
		if (b.seq != seq)
			return reader_damaged(r, e, off, "a block is out of order");
		if (b.type == BLOCK_END)
			return reader_damaged(r, e, next, "something follows the end");
		if (b.type != BLOCK_INDEX)
			err = each(r, off, &b, e);
		seq++;
		off = next;
	}
	r->info.cut_at = off;
	return err;
}

/* Offsets of the INDEX blocks, from the first to the last. */
static int index_chain(struct trace_reader *r, uint64_t end_off, uint64_t last, struct bytes *chain,
		       struct err *e)
{
	uint64_t above = end_off, off = last, *p;
	int err = 0;

	while (off && !err) {
		enum header_state state;
		struct trace_block b;

		if (off >= above || off < sizeof(struct trace_file_header))
			return reader_damaged(r, e, above, "a reference to an index leads nowhere");
		err = reader_header(r, off, &b, &state, e);
		if (err)
			return err;
		if (state != HEADER_GOOD || b.type != BLOCK_INDEX)
			return reader_damaged(r, e, off, "no index where one must be");
		err = bytes__append(chain, &off, sizeof(off));
		if (err)
			return err_set(e, err, "%.256s: %s", r->name, strerror(-err));
		above = off;
		off = b.ref;
	}
	p = (uint64_t *)chain->p;
	for (size_t i = 0, n = chain->n / sizeof(*p); i < n / 2; i++) {
		uint64_t swap = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = swap;
	}
	return 0;
}

/* Every block that one INDEX block lists; they must lie end to end from *off up to it. */
static int walk_index_block(struct trace_reader *r, uint64_t index_off, uint64_t *off,
			    block_fn each, struct err *e)
{
	struct bytes list = {0};
	enum header_state state;
	struct trace_block b;
	int err;

	err = reader_header(r, index_off, &b, &state, e);
	if (!err)
		err = reader_payload(r, index_off, &b, e);
	if (err)
		return err;
	if (b.raw_len != b.count * sizeof(struct trace_index_entry))
		return reader_damaged(r, e, index_off, "an index of a wrong length");
	/* Tables are read while the list is walked. */
	list = r->raw;
	r->raw = (struct bytes){0};
	for (size_t i = 0; i < b.count && !err; i++) {
		struct trace_index_entry entry;
		struct trace_block listed;

		memcpy(&entry, list.p + i * sizeof(entry), sizeof(entry));
		if (entry.off != *off || entry.stored_len > TRACE_RAW_MAX ||
		    entry.off + sizeof(b) + entry.stored_len > index_off ||
		    entry.type == BLOCK_INDEX || entry.type == BLOCK_END) {
			err = reader_damaged(r, e, index_off, "the index does not fit the file");
			break;
		}
		listed = (struct trace_block){.type = entry.type,
					      .thread = entry.thread,
					      .count = entry.count,
					      .stored_len = entry.stored_len,
					      .start_ns = entry.start_ns,
					      .end_ns = entry.end_ns};
		err = each(r, entry.off, &listed, e);
		*off = entry.off + sizeof(b) + entry.stored_len;
	}
	if (!err && *off != index_off)
		err = reader_damaged(r, e, index_off, "the index does not fit the file");
	*off = index_off + sizeof(b) + b.stored_len;
	free(list.p);
	return err;
}

static int walk_index(struct trace_reader *r, uint64_t end_off, const struct trace_block *end,
		      block_fn each, struct err *e)
{
	uint64_t off = sizeof(struct trace_file_header);
	struct bytes chain = {0};
	int err;

	err = index_chain(r, end_off, end->ref, &chain, e);
	for (size_t i = 0; i < chain.n / sizeof(uint64_t) && !err; i++)
		err = walk_index_block(r, ((uint64_t *)chain.p)[i], &off, each, e);
	if (!err && off != end_off)
		err = reader_damaged(r, e, end_off, "the index does not fit the file");
	if (!err && r->info.nevents != end->start_ns)
		err = reader_damaged(r, e, end_off, "the number of events is another");
	free(chain.p);
	return err;
}

int reader_walk(struct trace_reader *r, block_fn each, struct err *e)
{
	uint64_t off = r->size - sizeof(struct trace_block);
	struct trace_block end;
	int err;

	if (r->size < sizeof(struct trace_file_header) + sizeof(end))
		return walk_headers(r, each, e);
	err = reader_pread(r, off, &end, sizeof(end), e);
	if (err)
		return err;
	if (!trace_block__valid(&end) || end.type != BLOCK_END || end.stored_len)
		return walk_headers(r, each, e);
	r->info.clean = true;
	r->info.end_ns = end.end_ns;
	return walk_index(r, off, &end, each, e);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The records of the GPU in a trace, one after the other. */
#include "file/reader_impl.h"
#include "file/ring_reader.h"

#define GPU_RECORD_LEAST sizeof(struct qbpf_ring_record)

int reader_gpu(struct trace_reader *r, uint64_t off, const struct trace_block *b, struct err *e)
{
	if (!b->count || b->count > TRACE_RAW_MAX / GPU_RECORD_LEAST)
		return reader_damaged(r, e, off, "a block of an impossible number of GPU records");
	if (r->ngpu == r->gpu_cap) {
		size_t cap = r->gpu_cap ? r->gpu_cap * 2 : 64;
		struct gpu_place *p = realloc(r->gpu, cap * sizeof(*p));

		if (!p)
			return err_set(e, -ENOMEM, "%.256s: %s", r->name, strerror(ENOMEM));
		r->gpu = p;
		r->gpu_cap = cap;
	}
	r->gpu[r->ngpu++] = (struct gpu_place){off, b->thread, b->count};
	r->info.ngpu_records += b->count;
	r->info.gpu_bytes += sizeof(*b) + b->stored_len;
	return 0;
}

void trace_reader__gpu_start(struct trace_reader *r)
{
	r->gpu_at = 0;
	r->gpu_left = 0;
}

static int read_block(struct trace_reader *r, const struct gpu_place *place, struct err *e)
{
	struct bytes other = r->raw;
	enum header_state state;
	struct trace_block b;
	int err = reader_header(r, place->off, &b, &state, e);

	if (err)
		return err;
	if (state != HEADER_GOOD || b.type != BLOCK_GPU || b.thread != place->ring ||
	    b.count != place->count)
		return reader_damaged(r, e, place->off, "a block is not what the index says");
	/* The walk over events keeps what it has. */
	r->raw = r->gpu_raw;
	err = reader_payload(r, place->off, &b, e);
	r->gpu_raw = r->raw;
	r->raw = other;
	if (err)
		return err;
	r->gpu_raw.n = b.raw_len;
	r->gpu_off = 0;
	r->gpu_left = b.count;
	return 0;
}

int trace_reader__gpu_next(struct trace_reader *r, uint32_t *ring,
			   const struct qbpf_ring_record **out, struct err *e)
{
	const struct qbpf_ring_record *rec;
	const struct gpu_place *place;
	size_t left;
	int err;

	if (!r->gpu_left) {
		if (r->gpu_at == r->ngpu)
			return 0;
		err = read_block(r, &r->gpu[r->gpu_at++], e);
		if (err) {
			r->gpu_at = r->ngpu;
			return err;
		}
	}
	place = &r->gpu[r->gpu_at - 1];
	left = r->gpu_raw.n - r->gpu_off;
	/* Sizes are multiples of 8, so every record lies where its type may. */
	rec = (const void *)(r->gpu_raw.p + r->gpu_off);
	if (left < sizeof(*rec) || rec->size > left || rec->size & 7 ||
	    rec->size > QBPF_RING_RECORD_MAX || rec->size < ring_type_size(rec->type) ||
	    (r->gpu_left == 1 && rec->size != left)) {
		r->gpu_at = r->ngpu;
		r->gpu_left = 0;
		return reader_damaged(r, e, place->off, "a GPU record of an impossible length");
	}
	r->gpu_off += rec->size;
	r->gpu_left--;
	*ring = place->ring;
	*out = rec;
	return 1;
}

bool trace_reader__gpu_first(const struct trace_reader *r)
{
	if (r->gpu_left)
		return true;
	if (r->gpu_at == r->ngpu)
		return false;
	return !r->left ||
	       r->gpu[r->gpu_at].off < r->blocks[r->order ? r->order[r->at] : r->at].off;
}

const char *trace_info__gpu_name(const struct trace_info *info, uint32_t id)
{
	return id && id <= info->ngpu_names ? info->gpu_names[id - 1].text : NULL;
}

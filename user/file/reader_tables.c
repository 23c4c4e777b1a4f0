// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tables of a trace, read when it is opened, and whether what they lead to is there. */
#include <string.h>

#include "file/reader_impl.h"
#include "qbpf/abi.h"

struct array {
	void **p;
	size_t *n;
};

static struct array array_of(struct trace_reader *r, unsigned int type)
{
	struct trace_info *i = &r->info;

	switch (type) {
	case BLOCK_SPANS:
		return (struct array){(void **)&i->spans, &i->nspans};
	case BLOCK_MAPPINGS:
		return (struct array){(void **)&i->mappings, &i->nmappings};
	case BLOCK_PROBES:
		return (struct array){(void **)&i->probes, &i->nprobes};
	case BLOCK_PROCESSES:
		return (struct array){(void **)&i->processes, &i->nprocesses};
	case BLOCK_THREADS:
		return (struct array){(void **)&i->threads, &i->nthreads};
	case BLOCK_NODES:
		return (struct array){(void **)&i->nodes, &i->nnodes};
	case BLOCK_LOSSES:
		return (struct array){(void **)&i->losses, &i->nlosses};
	case BLOCK_CLOCKS:
		return (struct array){(void **)&i->clocks, &i->nclocks};
	case BLOCK_GPU_NAMES:
		return (struct array){(void **)&i->gpu_names, &i->ngpu_names};
	case BLOCK_GPU_LOSSES:
		return (struct array){(void **)&i->gpu_losses, &i->ngpu_losses};
	default: /* COUNTS */
		return (struct array){(void **)&i->counts, &r->ncounts};
	}
}

/* An entry's place: at the end, or where it says. NULL: no memory, or -EBADMSG in *err. */
static void *place(struct trace_reader *r, const struct table *t, uint32_t index, int *err)
{
	struct array a = array_of(r, t->block);
	size_t *cap = &r->caps[t->block];

	*err = 0;
	if (t->indexed && index < *a.n)
		return (char *)*a.p + (size_t)index * t->size;
	*err = -EBADMSG;
	if ((t->indexed && index != *a.n) || *a.n >= UINT32_MAX - 1)
		return NULL;
	*err = -ENOMEM;
	if (*a.n == *cap) {
		size_t more = *cap ? *cap * 2 : 64;
		void *p = realloc(*a.p, more * t->size);

		if (!p)
			return NULL;
		*a.p = p;
		*cap = more;
	}
	*err = 0;
	return (char *)*a.p + (*a.n)++ * t->size;
}

static const char *wrong_entry(const struct trace_reader *r, unsigned int type, const void *entry)
{
	const struct trace_node *node = entry;

	switch (type) {
	case BLOCK_META:
		if (r->has_meta)
			return "comes twice";
		return ((const struct trace_meta *)entry)->nprices > 8 ? "has too many prices"
								       : NULL;
	case BLOCK_SPANS:
		return r->info.nspans >= QBPF_SPANS_MAX - 1 ? "is one too many" : NULL;
	case BLOCK_NODES:
		if (!node->id || node->id == QBPF_NODE_LOST || node->parent >= node->id)
			return "has an impossible id or parent";
		return !node->span || node->span > r->info.nspans ? "has an unknown span" : NULL;
	case BLOCK_LOSSES:
		return ((const struct trace_loss *)entry)->span > r->info.nspans
			   ? "has an unknown span"
			   : NULL;
	case BLOCK_PROBES: {
		const struct trace_probe *p = entry;

		if (!p->span || p->span > r->info.nspans)
			return "has an unknown span";
		return p->mapping >= r->info.nmappings && p->mapping != TRACE_NO_MAPPING
			   ? "has an unknown mapping"
			   : NULL;
	}
	case BLOCK_COUNTS:
		return r->ncounts >= r->info.nspans ? "is one too many" : NULL;
	default:
		return NULL;
	}
}

static int wrong_table(const struct trace_reader *r, struct err *e, uint64_t off,
		       const struct table *t, uint32_t number, const char *why)
{
	return err_set(e, -EBADMSG, "%.256s: damaged at offset %llu: %s: entry %u %s", r->name,
		       (unsigned long long)off, t->name, number, why);
}

static int out_of_memory(const struct trace_reader *r, struct err *e)
{
	return err_set(e, -ENOMEM, "%.256s: %s", r->name, strerror(ENOMEM));
}

static int read_entries(struct trace_reader *r, uint64_t off, const struct trace_block *b,
			const struct table *t, struct err *e)
{
	const uint8_t *p = r->raw.p, *end = p + b->raw_len;
	union {
		struct trace_meta meta;
		struct trace_span span;
		struct trace_probe probe;
		struct trace_mapping mapping;
		struct trace_process process;
		struct trace_thread thread;
		struct trace_loss loss;
		struct trace_clock clock;
		struct trace_count count;
		struct trace_gpu_name name;
		struct trace_gpu_loss gpu_loss;
	} entry;
	uint32_t index = 0;
	const char *why;
	void *to;
	int err;

	for (uint32_t i = 0; i < b->count; i++) {
		err = table__decode(t, &p, end, &r->strings, &index, &entry, &why);
		if (err == -ENOMEM)
			return out_of_memory(r, e);
		if (!err)
			why = wrong_entry(r, b->type, &entry);
		if (err || why)
			return wrong_table(r, e, off, t, i, why);
		if (b->type == BLOCK_META) {
			r->info.meta = entry.meta;
			r->has_meta = true;
			continue;
		}
		to = place(r, t, index, &err);
		if (err == -ENOMEM)
			return out_of_memory(r, e);
		if (!to)
			return wrong_table(r, e, off, t, i, "has an index that is not next");
		memcpy(to, &entry, t->size);
	}
	return p == end ? 0 : wrong_table(r, e, off, t, b->count, "is not announced");
}

int reader_table(struct trace_reader *r, uint64_t off, const struct trace_block *b, struct err *e)
{
	const struct table *t = table__of(b->type);

	r->table_bytes += b->raw_len;
	if (r->table_bytes > TRACE_TABLES_MAX)
		return reader_damaged(r, e, off, "the tables are too large");
	return read_entries(r, off, b, t, e);
}

/* --- aggregates --------------------------------------------------------------------------------- */

int reader_aggregates(struct trace_reader *r, uint64_t off, const struct trace_block *b,
		      struct err *e)
{
	if (!b->thread)
		r->nnew_parts = 0;
	if (b->thread != r->nnew_parts || b->thread >= b->count)
		return reader_damaged(r, e, off, "a part of the aggregates is out of order");
	if (r->nnew_parts == r->new_parts_cap) {
		uint32_t cap = r->new_parts_cap * 2 + 4;
		uint64_t *p = realloc(r->new_parts, cap * sizeof(*p));

		if (!p)
			return out_of_memory(r, e);
		r->new_parts = p;
		r->new_parts_cap = cap;
	}
	r->new_parts[r->nnew_parts++] = off;
	if (r->nnew_parts < b->count)
		return 0;
	free(r->parts);
	r->parts = r->new_parts;
	r->nparts = r->nnew_parts;
	r->new_parts = NULL;
	r->nnew_parts = r->new_parts_cap = 0;
	return 0;
}

static int load_aggregates(struct trace_reader *r, struct err *e)
{
	struct bytes all = {0};
	int err = 0;

	for (uint32_t i = 0; i < r->nparts && !err; i++) {
		enum header_state state;
		struct trace_block b;

		err = reader_header(r, r->parts[i], &b, &state, e);
		if (!err)
			err = reader_payload(r, r->parts[i], &b, e);
		if (err)
			break;
		r->table_bytes += b.raw_len;
		if (r->table_bytes > TRACE_TABLES_MAX)
			err = reader_damaged(r, e, r->parts[i], "the aggregates are too large");
		else if (bytes__append(&all, r->raw.p, b.raw_len))
			err = out_of_memory(r, e);
	}
	r->info.aggregates = all.p;
	r->info.aggregates_len = all.n;
	return err;
}

/* --- the whole ---------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	uint32_t x = ((const struct trace_node *)a)->id, y = ((const struct trace_node *)b)->id;

	return x < y ? -1 : x > y;
}

/*
 * Sorts; the same node twice becomes one. A file that was cut off may lack a node's parent: what
 * hangs on it goes too, and events say that node all the same.
 */
static int finish_nodes(struct trace_reader *r, struct err *e)
{
	struct trace_info *info = &r->info;
	size_t n = 0;

	if (!info->nnodes)
		return 0;
	qsort(info->nodes, info->nnodes, sizeof(info->nodes[0]), by_id);
	for (size_t i = 0; i < info->nnodes; i++) {
		struct trace_node node = info->nodes[i];

		if (n && info->nodes[n - 1].id == node.id) {
			if (info->nodes[n - 1].parent == node.parent &&
			    info->nodes[n - 1].span == node.span)
				continue;
			return err_set(e, -EBADMSG, "%.256s: damaged: node %u is two nodes",
				       r->name, node.id);
		}
		if (node.parent) {
			size_t known = info->nnodes;
			bool found;

			info->nnodes = n;
			found = trace_info__node(info, node.parent);
			info->nnodes = known;
			if (!found && info->clean)
				return err_set(e, -EBADMSG,
					       "%.256s: damaged: node %u lacks its parent %u",
					       r->name, node.id, node.parent);
			if (!found)
				continue;
		}
		info->nodes[n++] = node;
	}
	info->nnodes = n;
	return 0;
}

int reader_tables_done(struct trace_reader *r, struct err *e)
{
	static char empty[1];
	struct trace_info *info = &r->info;
	int err;

	if (!r->has_meta && info->clean)
		return reader_damaged(r, e, sizeof(struct trace_file_header), "meta is missing");
	if (!r->has_meta)
		info->meta = (struct trace_meta){.qbpf_version = empty,
						 .command = empty,
						 .kernel = empty,
						 .cpu = empty,
						 .clocksource = empty,
						 .hostname = empty,
						 .slow = empty};
	if (info->clean && r->ncounts != info->nspans)
		return err_set(e, -EBADMSG, "%.256s: damaged: counts of %zu spans, %zu spans",
			       r->name, r->ncounts, info->nspans);
	if (!info->clean) {
		free(info->counts);
		info->counts = NULL;
		info->end_ns =
		    info->last_ns > info->meta.start_ns ? info->last_ns : info->meta.start_ns;
		for (size_t i = 0; i < info->nlosses; i++)
			if (info->losses[i].to_ns > info->end_ns)
				info->end_ns = info->losses[i].to_ns;
		for (size_t i = 0; i < info->nclocks; i++)
			if (info->clocks[i].monotonic_ns > info->end_ns)
				info->end_ns = info->clocks[i].monotonic_ns;
	}
	err = finish_nodes(r, e);
	return err ? err : load_aggregates(r, e);
}

const struct trace_node *trace_info__node(const struct trace_info *info, uint32_t id)
{
	const struct trace_node key = {.id = id};

	if (!info->nnodes)
		return NULL;
	return bsearch(&key, info->nodes, info->nnodes, sizeof(key), by_id);
}

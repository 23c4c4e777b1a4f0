// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Table entries to bytes and back, driven by a description of their fields. */
#include "file/tables.h"

#include "file/info.h"

enum { U8 = 1, U32, U64, STR };

#define FIELD(type, s, m)                                                                          \
	{                                                                                          \
		type, 1, offsetof(struct s, m)                                                     \
	}

static const struct table_field meta_fields[] = {
    FIELD(STR, trace_meta, qbpf_version), FIELD(STR, trace_meta, command),
    FIELD(STR, trace_meta, kernel),	  FIELD(STR, trace_meta, cpu),
    FIELD(STR, trace_meta, clocksource),  FIELD(STR, trace_meta, hostname),
    FIELD(U32, trace_meta, cpus),	  FIELD(U64, trace_meta, start_ns),
    FIELD(U64, trace_meta, realtime_ns),  FIELD(U32, trace_meta, sample),
    FIELD(STR, trace_meta, slow),	  FIELD(U64, trace_meta, ring_bytes),
    FIELD(U32, trace_meta, nprices),	  {U64, 8, offsetof(struct trace_meta, price_ns)},
};

static const struct table_field span_fields[] = {
    FIELD(STR, trace_span, name),     FIELD(U8, trace_span, kind),
    FIELD(U8, trace_span, way),	      FIELD(U8, trace_span, hist),
    FIELD(U64, trace_span, floor_ns), FIELD(U64, trace_span, price_ns),
};

static const struct table_field probe_fields[] = {
    FIELD(U32, trace_probe, span), FIELD(U32, trace_probe, mapping),
    FIELD(U8, trace_probe, role),  FIELD(U8, trace_probe, armed),
    FIELD(U64, trace_probe, off),  FIELD(STR, trace_probe, reason),
};

static const struct table_field mapping_fields[] = {
    FIELD(STR, trace_mapping, path), FIELD(STR, trace_mapping, build_id),
    FIELD(U32, trace_mapping, tgid), FIELD(U64, trace_mapping, start),
    FIELD(U64, trace_mapping, end),  FIELD(U64, trace_mapping, off),
};

static const struct table_field process_fields[] = {
    FIELD(U32, trace_process, tgid),   FIELD(STR, trace_process, comm),
    FIELD(STR, trace_process, exe),    FIELD(U64, trace_process, start_ns),
    FIELD(U64, trace_process, end_ns),
};

static const struct table_field thread_fields[] = {
    FIELD(U32, trace_thread, tgid),   FIELD(U32, trace_thread, tid),
    FIELD(STR, trace_thread, name),   FIELD(U64, trace_thread, start_ns),
    FIELD(U64, trace_thread, end_ns),
};

static const struct table_field node_fields[] = {
    FIELD(U32, trace_node, id),
    FIELD(U32, trace_node, parent),
    FIELD(U32, trace_node, span),
};

static const struct table_field loss_fields[] = {
    FIELD(U32, trace_loss, span),  FIELD(U32, trace_loss, source), FIELD(U64, trace_loss, from_ns),
    FIELD(U64, trace_loss, to_ns), FIELD(U64, trace_loss, lost),   FIELD(U64, trace_loss, skipped),
};

static const struct table_field clock_fields[] = {
    FIELD(U64, trace_clock, monotonic_ns),
    FIELD(U64, trace_clock, realtime_ns),
    FIELD(U64, trace_clock, boottime_ns),
    FIELD(U64, trace_clock, error_ns),
};

static const struct table_field count_fields[] = {
    FIELD(U64, trace_count, counted),
    FIELD(U64, trace_count, streamed),
    FIELD(U64, trace_count, lost),
    FIELD(U64, trace_count, skipped),
};

static const struct table_field gpu_name_fields[] = {
    FIELD(STR, trace_gpu_name, text),
};

static const struct table_field gpu_loss_fields[] = {
    FIELD(U32, trace_gpu_loss, ring),	FIELD(U32, trace_gpu_loss, type),
    FIELD(U32, trace_gpu_loss, reason), FIELD(U64, trace_gpu_loss, from_ns),
    FIELD(U64, trace_gpu_loss, to_ns),	FIELD(U64, trace_gpu_loss, lost),
};

#define TABLE(block, name, s, fields, indexed)                                                     \
	[block] = {name,  block, indexed, sizeof(struct s), sizeof(fields) / sizeof(fields[0]),    \
		   fields}

static const struct table tables[] = {
    TABLE(BLOCK_META, "meta", trace_meta, meta_fields, false),
    TABLE(BLOCK_SPANS, "spans", trace_span, span_fields, false),
    TABLE(BLOCK_PROBES, "probes", trace_probe, probe_fields, false),
    TABLE(BLOCK_MAPPINGS, "mappings", trace_mapping, mapping_fields, false),
    TABLE(BLOCK_PROCESSES, "processes", trace_process, process_fields, true),
    TABLE(BLOCK_THREADS, "threads", trace_thread, thread_fields, true),
    TABLE(BLOCK_NODES, "nodes", trace_node, node_fields, false),
    TABLE(BLOCK_LOSSES, "losses", trace_loss, loss_fields, false),
    TABLE(BLOCK_CLOCKS, "clocks", trace_clock, clock_fields, false),
    TABLE(BLOCK_COUNTS, "counts", trace_count, count_fields, false),
    TABLE(BLOCK_GPU_NAMES, "GPU names", trace_gpu_name, gpu_name_fields, false),
    TABLE(BLOCK_GPU_LOSSES, "GPU losses", trace_gpu_loss, gpu_loss_fields, false),
};

const struct table *table__of(unsigned int type)
{
	if (type >= sizeof(tables) / sizeof(tables[0]) || !tables[type].fields)
		return NULL;
	return &tables[type];
}

static size_t width(uint8_t type)
{
	return type == U8 ? 1 : type == U32 ? 4 : 8;
}

static int put_u32(struct bytes *out, uint32_t v)
{
	return bytes__append(out, &v, sizeof(v));
}

static int put_string(struct bytes *out, const char *s, size_t from)
{
	size_t len = s ? strlen(s) : 0;
	int err;

	if (len > TRACE_RECORD_MAX - (out->n - from))
		return -E2BIG;
	err = put_u32(out, (uint32_t)len);
	return err ? err : bytes__append(out, s, len);
}

int table__encode(const struct table *t, struct bytes *out, uint32_t index, const void *entry)
{
	size_t from = out->n;
	uint32_t len;
	int err;

	err = put_u32(out, 0);
	if (!err && t->indexed)
		err = put_u32(out, index);
	for (unsigned int i = 0; i < t->nfields && !err; i++) {
		const struct table_field *f = &t->fields[i];
		const char *at = (const char *)entry + f->off;

		if (f->type == STR)
			err = put_string(out, *(char *const *)at, from);
		else
			err = bytes__append(out, at, f->n * width(f->type));
	}
	if (!err && out->n - from > TRACE_RECORD_MAX)
		err = -E2BIG;
	if (err) {
		out->n = from;
		return err;
	}
	len = (uint32_t)(out->n - from - 4);
	memcpy(out->p + from, &len, sizeof(len));
	return 0;
}

struct strings_chunk {
	struct strings_chunk *next;
	size_t n, cap;
	char text[];
};

void strings__free(struct strings *s)
{
	struct strings_chunk *c = s->chunks, *next;

	for (; c; c = next) {
		next = c->next;
		free(c);
	}
	s->chunks = NULL;
}

static char *strings__add(struct strings *s, const uint8_t *p, size_t len)
{
	struct strings_chunk *c = s->chunks;
	char *text;

	if (!c || c->cap - c->n < len + 1) {
		size_t cap = len + 1 > 65536 ? len + 1 : 65536;

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		c->next = s->chunks;
		c->n = 0;
		c->cap = cap;
		s->chunks = c;
	}
	text = c->text + c->n;
	memcpy(text, p, len);
	text[len] = '\0';
	c->n += len + 1;
	return text;
}

static int get_string(const uint8_t **p, const uint8_t *end, struct strings *s, char **out,
		      const char **why)
{
	uint32_t len;

	if (end - *p < 4) {
		*why = "is too short";
		return -EBADMSG;
	}
	memcpy(&len, *p, sizeof(len));
	*p += 4;
	if (len > (size_t)(end - *p)) {
		*why = "has a string that is longer than itself";
		return -EBADMSG;
	}
	if (memchr(*p, '\0', len)) {
		*why = "has a string with a zero byte";
		return -EBADMSG;
	}
	*out = strings__add(s, *p, len);
	*p += len;
	return *out ? 0 : -ENOMEM;
}

int table__decode(const struct table *t, const uint8_t **p, const uint8_t *end, struct strings *s,
		  uint32_t *index, void *entry, const char **why)
{
	const uint8_t *at = *p, *stop;
	uint32_t len;
	int err;

	*why = "is too short";
	memset(entry, 0, t->size);
	if (end - at < 4)
		return -EBADMSG;
	memcpy(&len, at, sizeof(len));
	at += 4;
	if (len > TRACE_RECORD_MAX || len > (size_t)(end - at)) {
		*why = "is longer than its block";
		return -EBADMSG;
	}
	stop = at + len;
	if (t->indexed) {
		if (len < 4)
			return -EBADMSG;
		memcpy(index, at, sizeof(*index));
		at += 4;
	}
	for (unsigned int i = 0; i < t->nfields; i++) {
		const struct table_field *f = &t->fields[i];
		char *to = (char *)entry + f->off;
		size_t size = f->n * width(f->type);

		if (f->type == STR) {
			err = get_string(&at, stop, s, (char **)to, why);
			if (err)
				return err;
		} else {
			if ((size_t)(stop - at) < size)
				return -EBADMSG;
			memcpy(to, at, size);
			at += size;
		}
	}
	*p = stop;
	return 0;
}

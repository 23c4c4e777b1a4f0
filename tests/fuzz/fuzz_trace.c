// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as a trace file: as they are; with the checksums put right, so that a changed length or
 * type goes further than its checksum; and as the payloads of blocks that are whole.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "file/ring_reader.h"
#include "trace_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

static uint64_t walk(struct trace_reader *r, uint32_t thread, bool backwards, uint64_t *sum)
{
	const struct trace_info *info = trace_reader__info(r);
	const struct event *events;
	uint64_t total = 0;
	struct err e;
	size_t n;
	int err;

	*sum = 0;
	check(!trace_reader__start(r, thread, backwards));
	while ((err = trace_reader__next(r, &events, &n, &e)) > 0) {
		check(n && n <= TRACE_EVENTS_MAX);
		total += n;
		for (size_t i = 0; i < n; i++) {
			const struct event *ev = &events[i];

			check(ev->thread < info->nthreads && ev->span && ev->span <= info->nspans);
			check(ev->kind && ev->kind < EVENT_KINDS);
			check(thread == TRACE_ALL_THREADS || ev->thread == thread);
			check(ev->start_ns >= info->first_ns && ev->start_ns <= info->last_ns);
			check(ev->end_ns >= info->first_ns && ev->end_ns <= info->last_ns);
			*sum += ev->start_ns * 3 + ev->end_ns * 5 + ev->child_ns * 7 + ev->arg;
			trace_info__node(info, ev->node);
		}
	}
	check(err == 0 || err == -EBADMSG);
	return err ? UINT64_MAX : total;
}

/* Every string can be read to its end, every reference leads somewhere. */
static void look_at(const struct trace_info *info)
{
	size_t len =
	    strlen(info->meta.command) + strlen(info->meta.slow) + strlen(info->meta.hostname);

	for (size_t i = 0; i < info->nspans; i++)
		len += strlen(info->spans[i].name);
	for (size_t i = 0; i < info->nprobes; i++) {
		const struct trace_probe *p = &info->probes[i];

		len += strlen(p->reason);
		check(p->span && p->span <= info->nspans);
		check(p->mapping < info->nmappings || p->mapping == TRACE_NO_MAPPING);
	}
	for (size_t i = 0; i < info->nmappings; i++)
		len += strlen(info->mappings[i].path) + strlen(info->mappings[i].build_id);
	for (size_t i = 0; i < info->nprocesses; i++)
		len += strlen(info->processes[i].comm) + strlen(info->processes[i].exe);
	for (size_t i = 0; i < info->nthreads; i++)
		len += strlen(info->threads[i].name);
	for (size_t i = 0; i < info->nlosses; i++)
		check(info->losses[i].span <= info->nspans);
	for (size_t i = 0; i < info->nnodes; i++) {
		const struct trace_node *n = &info->nodes[i];

		check(!i || info->nodes[i - 1].id < n->id);
		check(n->parent < n->id && n->span && n->span <= info->nspans);
		check(!n->parent || trace_info__node(info, n->parent));
	}
	for (size_t i = 0; info->counts && i < info->nspans; i++)
		len += info->counts[i].counted & 1;
	for (size_t i = 0; i < info->aggregates_len; i++)
		len += ((const uint8_t *)info->aggregates)[i];
	check(len < SIZE_MAX);
	check(!info->clean == !info->counts || !info->nspans);
}

/* Every byte of every record may be looked at. */
static void walk_gpu(struct trace_reader *r)
{
	const struct qbpf_ring_record *rec;
	uint64_t n[2] = {0};
	struct err e;
	uint32_t ring;
	int more = 0;

	for (int round = 0; round < 2; round++) {
		trace_reader__gpu_start(r);
		while ((more = trace_reader__gpu_next(r, &ring, &rec, &e)) > 0) {
			check(rec->size >= ring_type_size(rec->type));
			n[round] += trace_crc(rec, rec->size) + (1ull << 40);
		}
	}
	check(n[0] == n[1]);
}

static void read_all(const uint8_t *data, size_t size)
{
	struct trace_reader *r;
	uint64_t n, m, sum, again;
	struct err e;

	e.text[0] = '\0';
	if (build__open_bytes(data, size, &r, &e)) {
		check(e.text[0] && !strchr(e.text, '\n'));
		return;
	}
	look_at(trace_reader__info(r));
	n = walk(r, TRACE_ALL_THREADS, false, &sum);
	check(n == UINT64_MAX || n == trace_reader__info(r)->nevents);
	m = walk(r, TRACE_ALL_THREADS, true, &again);
	check((m == UINT64_MAX) == (n == UINT64_MAX));
	check(n == UINT64_MAX || (m == n && again == sum));
	walk_gpu(r);
	if (trace_reader__info(r)->nthreads)
		walk(r, 0, false, &sum);
	trace_reader__free(r);
}

/* Right checksums for every block that its lengths let one find. */
static void put_right(uint8_t *p, size_t size)
{
	struct trace_file_header h;
	struct trace_block b;

	if (size < sizeof(h))
		return;
	memcpy(&h, p, sizeof(h));
	h.crc = trace_crc(&h, offsetof(struct trace_file_header, crc));
	memcpy(p, &h, sizeof(h));
	for (size_t off = sizeof(h); size - off >= sizeof(b); off += sizeof(b) + b.stored_len) {
		memcpy(&b, p + off, sizeof(b));
		if (b.stored_len > size - off - sizeof(b))
			return;
		trace_block__seal(&b, p + off + sizeof(b));
		memcpy(p + off, &b, sizeof(b));
	}
}

/* Blocks of: type, thread, count (2 bytes), length (2 bytes), payload. */
static void from_blocks(const uint8_t *data, size_t size, bool finish)
{
	struct build b;

	build__start(&b);
	while (size >= 6) {
		size_t len = data[4] | (size_t)data[5] << 8;
		uint16_t kind = data[0] % 20; /* 16 ..: the GPU's */
		struct trace_block h = {.type = kind < 16 ? kind : kind + 16,
					.thread = data[1] == 255 ? UINT32_MAX : data[1],
					.count = data[2] | (uint32_t)data[3] << 8,
					.end_ns = UINT64_MAX};

		data += 6;
		size -= 6;
		len = len < size ? len : size;
		if (h.type != BLOCK_END && h.type != BLOCK_INDEX)
			build__block(&b, h, data, len);
		data += len;
		size -= len;
	}
	if (finish)
		build__finish(&b, 0);
	read_all(b.file.p, b.file.n);
	build__free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size && (data[0] & 0xfe) == 0x40) {
		from_blocks(data + 1, size - 1, data[0] & 1);
		return 0;
	}
	read_all(data, size);
	copy = malloc(size + 1);
	check(copy != NULL);
	memcpy(copy, data, size);
	put_right(copy, size);
	read_all(copy, size);
	free(copy);
	return 0;
}

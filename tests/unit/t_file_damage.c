// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Traces that were cut off, damaged, or made to do harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "qbpf/abi.h"
#include "trace_build.h"

#define HEADER sizeof(struct trace_file_header)

/* What a whole read of some bytes comes to. */
struct result {
	int err; /* of opening or reading */
	bool clean;
	uint64_t cut_at, nevents, nspans, nthreads;
	char text[400];
};

static struct result read_bytes(const void *p, size_t n)
{
	struct result res = {0};
	const struct event *events;
	struct trace_reader *r;
	uint64_t seen = 0;
	struct err e = {""};
	size_t batch;

	res.err = build__open_bytes(p, n, &r, &e);
	if (!res.err) {
		const struct trace_info *info = trace_reader__info(r);

		res.clean = info->clean;
		res.cut_at = info->cut_at;
		res.nevents = info->nevents;
		res.nspans = info->nspans;
		res.nthreads = info->nthreads;
		while ((res.err = trace_reader__next(r, &events, &batch, &e)) > 0)
			seen += batch;
		if (!res.err)
			assert_int_equal(seen, res.nevents);
		trace_reader__free(r);
	} else {
		assert_null(r);
	}
	assert_true(!res.err == !e.text[0]);
	memcpy(res.text, e.text, sizeof(res.text));
	return res;
}

static void add_events(struct build *b, uint32_t thread, uint64_t from_ns, uint32_t n)
{
	struct event_codec *c = event_codec__new();
	struct event *ev = calloc(n, sizeof(*ev));
	struct trace_block h;
	struct bytes raw = {0};

	for (uint32_t i = 0; i < n; i++)
		ev[i] = (struct event){.kind = EVENT_SPAN,
				       .span = 1 + i % 2,
				       .node = i % 3,
				       .thread = thread,
				       .start_ns = from_ns + 100 * i,
				       .end_ns = from_ns + 100 * i + i * i % 97};
	assert_int_equal(event_codec__encode(c, ev, n, &raw, &h), 0);
	build__block(b, h, raw.p, raw.n);
	event_codec__free(c);
	free(raw.p);
	free(ev);
}

/* A small trace with a block of each kind; offsets of its blocks, nothing of them compressed or
 * all. */
static void small_trace(struct build *b, int compress)
{
	struct trace_node nodes[] = {{1, 0, 1}, {2, 1, 2}};
	struct trace_loss loss = {.span = 1, .lost = 5};
	struct trace_block part = {.type = BLOCK_AGGREGATES, .thread = 0, .count = 1};

	build__start(b);
	b->compress = compress;
	build__tables(b, 2, 3);
	add_events(b, 1, 1000, 40);
	build__entry(b, BLOCK_NODES, 0, &nodes[0]);
	build__entry(b, BLOCK_NODES, 0, &nodes[1]);
	build__flush(b, BLOCK_NODES);
	add_events(b, 0, 1500, 30);
	build__block(b, part, "sums of all kinds", 17);
	build__entry(b, BLOCK_LOSSES, 0, &loss);
	build__flush(b, BLOCK_LOSSES);
	add_events(b, 2, 9000, 10);
	build__finish(b, 2);
}

/* End of the last block that ends at or before `len`, and the events up to there. */
static uint64_t whole_blocks(const struct build *b, size_t len, uint64_t *nevents)
{
	uint64_t off = HEADER;
	struct trace_block h;

	*nevents = 0;
	while (len - off >= sizeof(h)) {
		memcpy(&h, b->file.p + off, sizeof(h));
		if (len - off - sizeof(h) < h.stored_len)
			break;
		off += sizeof(h) + h.stored_len;
		if (h.type == BLOCK_EVENTS)
			*nevents += h.count;
	}
	return off;
}

static void t_cut(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct build b;
		struct result res;

		small_trace(&b, compress);
		res = read_bytes(b.file.p, b.file.n);
		assert_int_equal(res.err, 0);
		assert_true(res.clean && res.nevents == 80);
		for (size_t len = 0; len < b.file.n; len++) {
			uint64_t nevents, end;

			res = read_bytes(b.file.p, len);
			if (len < HEADER) {
				assert_int_equal(res.err, -EBADMSG);
				continue;
			}
			end = whole_blocks(&b, len, &nevents);
			if (res.err)
				fail_msg("cut at %zu: %s", len, res.text);
			assert_false(res.clean);
			assert_int_equal(res.cut_at, end);
			assert_int_equal(res.nevents, nevents);
		}
		build__free(&b);
	}
}

/* What a loss of power leaves: the length is there, the last bytes are zeros. */
static void t_zero_tail(void **state)
{
	static const size_t tails[] = {0, 1, 63, 64, 65, 5000, 100000};

	(void)state;
	for (size_t t = 0; t < sizeof(tails) / sizeof(tails[0]); t++) {
		struct build b;
		uint8_t *copy;

		small_trace(&b, 1);
		copy = calloc(1, b.file.n + tails[t]);
		for (size_t len = HEADER; len < b.file.n; len++) {
			uint64_t nevents, end, had;
			struct result res;

			/* Zeros that were zeros before are no damage. */
			memset(copy, 0, b.file.n + tails[t]);
			memcpy(copy, b.file.p, len);
			for (had = len; had < b.file.n && !b.file.p[had]; had++)
				;
			end = whole_blocks(&b, had, &nevents);
			res = read_bytes(copy, b.file.n + tails[t]);
			if (res.err)
				fail_msg("zeros from %zu: %s", len, res.text);
			if (had == b.file.n)
				continue;
			assert_false(res.clean);
			assert_int_equal(res.cut_at, end);
			assert_int_equal(res.nevents, nevents);
		}
		free(copy);
		build__free(&b);
	}
}

/* Whatever byte changes: an error that names an offset within the file. Only the last byte of all
 * may become a zero, as a cut leaves it; the file is then not clean. */
static void t_flips(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		struct build b;

		small_trace(&b, compress);
		for (size_t i = 0; i < b.file.n; i++)
			for (int all = 0; all < 2; all++) {
				uint8_t was = b.file.p[i];
				struct result res;
				const char *at;

				b.file.p[i] = all ? (uint8_t)~was : was ^ (uint8_t)(1 << i % 8);
				res = read_bytes(b.file.p, b.file.n);
				if (!res.err && (res.clean || b.file.p[b.file.n - 1]))
					fail_msg("byte %zu: not seen", i);
				b.file.p[i] = was;
				if (i < 8 || !res.err)
					continue;
				assert_int_equal(res.err, -EBADMSG);
				at = strstr(res.text, "offset ");
				assert_non_null(at);
				assert_in_range(strtoull(at + 7, NULL, 10), 0, b.file.n);
			}
		build__free(&b);
	}
}

/* The same without an index: header by header. */
static void t_flips_cut(void **state)
{
	struct trace_block last;
	struct build b;
	uint64_t nevents, end;

	(void)state;
	/* Up to the index, which nobody reads when the end is missing. */
	small_trace(&b, 1);
	memcpy(&last, b.file.p + b.file.n - sizeof(last), sizeof(last));
	end = whole_blocks(&b, last.ref, &nevents);
	assert_int_equal(end, last.ref);
	for (size_t i = 0; i < end; i++) {
		uint8_t was = b.file.p[i];
		struct result res;

		b.file.p[i] = (uint8_t)~was;
		res = read_bytes(b.file.p, end);
		b.file.p[i] = was;
		if (!res.err && i + 1 < end)
			fail_msg("byte %zu: not seen", i);
	}
	build__free(&b);
}

/* --- hostile blocks ------------------------------------------------------------------------------ */

#define expect(b, want, words)                                                                     \
	do {                                                                                       \
		struct result got_ = read_bytes((b)->file.p, (b)->file.n);                         \
		if (got_.err != (want) || !strstr(got_.text, words))                               \
			fail_msg("%d: %s", got_.err, got_.text);                                   \
		build__free(b);                                                                    \
	} while (0)

static void one_entry(struct build *b, unsigned int type, uint32_t index, const void *entry)
{
	build__start(b);
	build__tables(b, 2, 3);
	build__entry(b, type, index, entry);
	build__flush(b, type);
	build__finish(b, 2);
}

static void t_entries(void **state)
{
	struct trace_probe probe = {.span = 3, .mapping = TRACE_NO_MAPPING};
	struct trace_thread thread = {.tid = 1};
	struct trace_node node = {.id = 2, .parent = 2, .span = 1};
	struct trace_loss loss = {.span = 3};
	struct trace_meta meta = {.nprices = 9};
	struct build b;

	(void)state;
	one_entry(&b, BLOCK_PROBES, 0, &probe);
	expect(&b, -EBADMSG, "probes: entry 0 has an unknown span");
	probe.span = 0;
	one_entry(&b, BLOCK_PROBES, 0, &probe);
	expect(&b, -EBADMSG, "unknown span");
	probe = (struct trace_probe){.span = 1, .mapping = 0};
	one_entry(&b, BLOCK_PROBES, 0, &probe);
	expect(&b, -EBADMSG, "unknown mapping");
	one_entry(&b, BLOCK_THREADS, 4, &thread);
	expect(&b, -EBADMSG, "threads: entry 0 has an index that is not next");
	one_entry(&b, BLOCK_THREADS, UINT32_MAX, &thread);
	expect(&b, -EBADMSG, "index");
	one_entry(&b, BLOCK_THREADS, 3, &thread);
	expect(&b, 0, "");
	one_entry(&b, BLOCK_LOSSES, 0, &loss);
	expect(&b, -EBADMSG, "losses: entry 0 has an unknown span");
	one_entry(&b, BLOCK_META, 0, &meta);
	expect(&b, -EBADMSG, "meta: entry 0 comes twice");
	one_entry(&b, BLOCK_NODES, 0, &node);
	expect(&b, -EBADMSG, "nodes: entry 0 has an impossible id or parent");
	node = (struct trace_node){.id = 0, .span = 1};
	one_entry(&b, BLOCK_NODES, 0, &node);
	expect(&b, -EBADMSG, "impossible");
	node.id = QBPF_NODE_LOST;
	one_entry(&b, BLOCK_NODES, 0, &node);
	expect(&b, -EBADMSG, "impossible");
	node = (struct trace_node){.id = 9, .parent = 8, .span = 1};
	one_entry(&b, BLOCK_NODES, 0, &node);
	expect(&b, -EBADMSG, "node 9 lacks its parent 8");
	node.span = 3;
	one_entry(&b, BLOCK_NODES, 0, &node);
	expect(&b, -EBADMSG, "unknown span");
	build__start(&b);
	build__entry(&b, BLOCK_META, 0, &meta);
	build__flush(&b, BLOCK_META);
	expect(&b, -EBADMSG, "too many prices");
}

/* Two nodes of one id; the same twice is one; and what hangs on nothing in a file that was cut. */
static void t_nodes(void **state)
{
	struct trace_node nodes[] = {{5, 4, 1}, {4, 0, 1}, {5, 4, 1},
				     {5, 4, 2}, {9, 8, 1}, {10, 9, 1}};
	const struct trace_info *info;
	struct trace_reader *r;
	struct build b;
	struct err e;

	(void)state;
	build__start(&b);
	build__tables(&b, 2, 0);
	for (int i = 0; i < 4; i++)
		build__entry(&b, BLOCK_NODES, 0, &nodes[i]);
	build__flush(&b, BLOCK_NODES);
	expect(&b, -EBADMSG, "node 5 is two nodes");

	build__start(&b);
	build__tables(&b, 2, 0);
	for (int i = 0; i < 6; i++)
		if (i != 3)
			build__entry(&b, BLOCK_NODES, 0, &nodes[i]);
	build__flush(&b, BLOCK_NODES);
	assert_int_equal(build__open(&b, &r, &e), 0);
	info = trace_reader__info(r);
	assert_int_equal(info->nnodes, 2);
	assert_true(info->nodes[0].id == 4 && info->nodes[1].id == 5);
	assert_null(trace_info__node(info, 10));
	trace_reader__free(r);
	build__free(&b);
}

/* Bytes that are no entries: lengths that lie, strings that do not end. */
static void t_entry_bytes(void **state)
{
	static const struct {
		uint8_t bytes[24];
		size_t len;
		const char *words;
	} rows[] = {
	    {{0}, 0, "too short"},
	    {{1, 0, 0}, 3, "too short"},
	    {{0, 0, 0, 0}, 4, "too short"},
	    {{255, 255, 255, 255}, 4, "longer than its block"},
	    {{5, 0, 0, 0, 0, 0, 0, 0}, 8, "longer than its block"},
	    {{4, 0, 0, 0, 1, 0, 0, 0}, 8, "longer than itself"},
	    {{4, 0, 0, 0, 255, 255, 255, 255}, 8, "longer than itself"},
	    {{5, 0, 0, 0, 1, 0, 0, 0, 0}, 9, "zero byte"},
	    {{7, 0, 0, 0, 1, 0, 0, 0, 65, 1, 1}, 11, "too short"},
	};
	struct trace_block h = {.type = BLOCK_SPANS, .thread = TRACE_NO_THREAD, .count = 1};
	struct build b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		build__start(&b);
		build__tables(&b, 0, 0);
		build__block(&b, h, rows[i].bytes, rows[i].len);
		expect(&b, -EBADMSG, rows[i].words);
	}
	/* An entry more than the block says. */
	build__start(&b);
	build__tables(&b, 1, 0);
	build__entry(&b, BLOCK_SPANS, 0, &(struct trace_span){.name = "a"});
	build__entry(&b, BLOCK_SPANS, 0, &(struct trace_span){.name = "b"});
	b.nentries = 1;
	build__flush(&b, BLOCK_SPANS);
	expect(&b, -EBADMSG, "entry 1 is not announced");
}

static void t_blocks(void **state)
{
	struct trace_block h = {.type = BLOCK_EVENTS, .thread = 3, .count = 1, .end_ns = 5};
	uint8_t zeros[64] = {0};
	struct build b;

	(void)state;
	build__start(&b);
	build__tables(&b, 2, 3);
	build__block(&b, h, zeros, 64);
	build__finish(&b, 2);
	expect(&b, -EBADMSG, "a thread that is not in the table");
	for (uint32_t count = 0; count < 2; count++) {
		build__start(&b);
		build__tables(&b, 2, 3);
		h = (struct trace_block){.type = BLOCK_EVENTS, .thread = 1, .count = count * 65536};
		build__block(&b, h, zeros, 64);
		expect(&b, -EBADMSG, "an impossible number of events");
	}
	build__start(&b);
	build__tables(&b, 2, 3);
	h = (struct trace_block){.type = BLOCK_EVENTS, .thread = 1, .count = 1, .start_ns = 5};
	build__block(&b, h, zeros, 64);
	expect(&b, -EBADMSG, "ends before it starts");
	build__start(&b);
	build__tables(&b, 2, 3);
	h.end_ns = 5;
	build__block(&b, h, zeros, 64);
	build__finish(&b, 2);
	expect(&b, -EBADMSG, "columns");
	/* Parts of aggregates. */
	for (uint32_t part = 0; part < 3; part++) {
		build__start(&b);
		build__tables(&b, 0, 0);
		h = (struct trace_block){
		    .type = BLOCK_AGGREGATES, .thread = part, .count = part % 2};
		build__block(&b, h, zeros, 64);
		expect(&b, -EBADMSG, "out of order");
	}
	/* Counts of fewer spans than there are. */
	build__start(&b);
	build__tables(&b, 2, 0);
	build__finish(&b, 1);
	expect(&b, -EBADMSG, "counts of 1 spans, 2 spans");
	build__start(&b);
	build__tables(&b, 2, 0);
	build__finish(&b, 3);
	expect(&b, -EBADMSG, "one too many");
	build__start(&b);
	build__finish(&b, 0);
	expect(&b, -EBADMSG, "meta is missing");
}

/* A type of a later version is skipped and counted, with the index and without. */
static void t_unknown(void **state)
{
	struct trace_block h = {.type = 47, .thread = 99, .count = 7};

	(void)state;
	for (int finish = 0; finish < 2; finish++) {
		struct trace_reader *r;
		struct build b;
		struct err e;

		build__start(&b);
		build__tables(&b, 2, 3);
		build__block(&b, h, "later", 5);
		add_events(&b, 1, 10, 5);
		h.type = 65535;
		build__block(&b, h, "", 0);
		if (finish)
			build__finish(&b, 2);
		assert_int_equal(build__open(&b, &r, &e), 0);
		assert_int_equal(trace_reader__info(r)->unknown_blocks, 2);
		assert_int_equal(trace_reader__info(r)->nevents, 5);
		trace_reader__free(r);
		build__free(&b);
	}
}

static void t_versions(void **state)
{
	struct trace_file_header h;
	struct build b;

	(void)state;
	for (int major = 0; major < 2; major++) {
		build__start(&b);
		memcpy(&h, b.file.p, sizeof(h));
		h.major = major ? 1 : 2;
		h.minor = 9;
		h.crc = trace_crc(&h, offsetof(struct trace_file_header, crc));
		memcpy(b.file.p, &h, sizeof(h));
		expect(&b, major ? 0 : -EPROTO, major ? "" : "a trace of version 2.9");
	}
}

/* --- lengths that ask for memory ---------------------------------------------------------------- */

static void t_lengths(void **state)
{
	struct trace_block h = {.type = BLOCK_NODES, .thread = TRACE_NO_THREAD, .count = 1};
	static const struct {
		uint32_t raw, stored;
		uint8_t codec;
		const char *words;
	} rows[] = {
	    {UINT32_MAX, 8, CODEC_ZSTD, "impossible length"},
	    {TRACE_RAW_MAX + 1, 8, CODEC_ZSTD, "impossible length"},
	    {7, 8, CODEC_ZSTD, "impossible length"},
	    {9, 8, CODEC_NONE, "unknown way"},
	    {9, 8, 2, "unknown way"},
	    {TRACE_RAW_MAX, 8, CODEC_ZSTD, "does not decompress"},
	};
	struct build b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		build__start(&b);
		build__tables(&b, 1, 1);
		h.raw_len = rows[i].raw;
		h.stored_len = rows[i].stored;
		h.codec = rows[i].codec;
		build__raw(&b, &h, "\x28\xb5\x2f\xfd\0\0\0\0");
		expect(&b, -EBADMSG, rows[i].words);
	}
}

/* Small in the file, huge when decompressed: the tables have a limit, and so has their memory. */
static void t_bombs(void **state)
{
	struct trace_block h = {
	    .type = BLOCK_LOSSES, .thread = TRACE_NO_THREAD, .count = (15u << 20) / 44};
	struct build b;

	(void)state;
	build__start(&b);
	b.compress = 1;
	build__tables(&b, 1, 1);
	for (uint32_t i = 0; i < h.count; i++)
		build__entry(&b, BLOCK_LOSSES, 0, &(struct trace_loss){.span = 1});
	for (int i = 0; i < 40; i++)
		build__block(&b, h, b.table.p, b.table.n);
	assert_in_range(b.file.n, 1, 4 << 20);
	expect(&b, -EBADMSG, "the tables are too large");
}

/* --- the index ---------------------------------------------------------------------------------- */

/* Changes the index of a small trace and seals it again. */
static void with_index(struct build *b,
		       void (*change)(struct trace_index_entry *entries, size_t n,
				      struct trace_block *index, struct trace_block *end))
{
	struct trace_block end, index;
	struct trace_index_entry *entries;
	size_t len;
	uint8_t *p;

	small_trace(b, 0);
	memcpy(&end, b->file.p + b->file.n - sizeof(end), sizeof(end));
	p = b->file.p + end.ref;
	memcpy(&index, p, sizeof(index));
	len = index.count * sizeof(*entries);
	entries = malloc(len);
	memcpy(entries, p + sizeof(index), len);
	change(entries, index.count, &index, &end);
	memcpy(p + sizeof(index), entries, len);
	free(entries);
	trace_block__seal(&index, p + sizeof(index));
	memcpy(p, &index, sizeof(index));
	trace_block__seal(&end, NULL);
	memcpy(b->file.p + b->file.n - sizeof(end), &end, sizeof(end));
}

#define CHANGE(name, ...)                                                                          \
	static void name(struct trace_index_entry *entries, size_t n, struct trace_block *index,   \
			 struct trace_block *end)                                                  \
	{                                                                                          \
		(void)entries, (void)n, (void)index, (void)end;                                    \
		__VA_ARGS__;                                                                       \
	}

CHANGE(offset_off, entries[3].off++)
CHANGE(offset_far, entries[n - 1].off = UINT64_MAX - 10)
CHANGE(length_off, entries[2].stored_len++)
CHANGE(length_far, entries[n - 1].stored_len = UINT32_MAX)
CHANGE(one_less, index->count--)
CHANGE(of_itself, entries[2].type = BLOCK_INDEX)
CHANGE(other_type, entries[1].type = BLOCK_THREADS)
CHANGE(other_thread, entries[3].thread = 2)
CHANGE(other_count, (entries[3].count++, end->start_ns++))
CHANGE(other_time, entries[3].end_ns++)
CHANGE(fewer_events, end->start_ns--)
CHANGE(no_index, end->ref = 0)
CHANGE(ref_to_header, end->ref = 8)
CHANGE(ref_beyond, end->ref = UINT64_MAX - 63)
CHANGE(ref_to_table, end->ref = HEADER)
CHANGE(index_loop, index->ref = end->ref)
CHANGE(index_forward, index->ref = end->ref + 1)

static void t_index(void **state)
{
	static const struct {
		void (*change)(struct trace_index_entry *, size_t, struct trace_block *,
			       struct trace_block *);
		const char *words;
	} rows[] = {
	    {offset_off, "index does not fit"},
	    {offset_far, "index does not fit"},
	    {length_off, "what the index says"},
	    {length_far, "index does not fit"},
	    {one_less, "index of a wrong length"},
	    {of_itself, "index does not fit"},
	    {other_type, "what the index says"},
	    {other_thread, "what the index says"},
	    {other_count, "what the index says"},
	    {other_time, "what the index says"},
	    {fewer_events, "number of events"},
	    {no_index, "index does not fit"},
	    {ref_to_header, "leads nowhere"},
	    {ref_beyond, "leads nowhere"},
	    {ref_to_table, "no index"},
	    {index_loop, "leads nowhere"},
	    {index_forward, "leads nowhere"},
	};
	struct build b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		with_index(&b, rows[i].change);
		expect(&b, -EBADMSG, rows[i].words);
	}
}

static void t_rows(void **state)
{
	struct build b;

	(void)state;
	/* A block that is missing in the middle. */
	build__start(&b);
	build__tables(&b, 2, 1);
	b.seq++;
	add_events(&b, 0, 1, 3);
	expect(&b, -EBADMSG, "out of order");
	/* Something behind the end. */
	small_trace(&b, 0);
	build__must(!bytes__append(&b.file, "x", 1));
	expect(&b, -EBADMSG, "something follows the end");
}

/* --- files that are no traces ------------------------------------------------------------------- */

static void t_not_a_trace(void **state)
{
	static const struct {
		const char *path;
		int err;
		const char *words;
	} rows[] = {
	    {"/nonexistent/x.qbpf", -ENOENT, "/nonexistent/x.qbpf: No such file or directory"},
	    {"/proc/self/exe", -EBADMSG, "/proc/self/exe: not a qbpf trace"},
	    {"/dev/null", -EINVAL,
	     "/dev/null: a device, not a regular file; a trace is not read from front to back: "
	     "save it "
	     "to a file first"},
	    {"-", -EINVAL,
	     "-: a pipe, not a regular file; a trace is not read from front to back: save it to a "
	     "file first"},
	    {"/tmp", -EINVAL, "/tmp: a folder, not a regular file"},
	};
	struct result res;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct trace_reader *r = (void *)1;
		struct err e;

		assert_int_equal(trace_reader__open(rows[i].path, &r, &e), rows[i].err);
		assert_null(r);
		assert_string_equal(e.text, rows[i].words);
		assert_int_equal(trace_reader__open(rows[i].path, &r, NULL), rows[i].err);
	}
	res = read_bytes("", 0);
	assert_string_equal(res.text, "made.qbpf: not a qbpf trace");
	res = read_bytes("\x89qbpf\r\n\x1a", 8);
	assert_string_equal(res.text,
			    "made.qbpf: damaged at offset 8: the file ends within its header");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_cut),	     cmocka_unit_test(t_zero_tail),
	    cmocka_unit_test(t_flips),	     cmocka_unit_test(t_flips_cut),
	    cmocka_unit_test(t_entries),     cmocka_unit_test(t_nodes),
	    cmocka_unit_test(t_entry_bytes), cmocka_unit_test(t_blocks),
	    cmocka_unit_test(t_unknown),     cmocka_unit_test(t_versions),
	    cmocka_unit_test(t_lengths),     cmocka_unit_test(t_bombs),
	    cmocka_unit_test(t_index),	     cmocka_unit_test(t_rows),
	    cmocka_unit_test(t_not_a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

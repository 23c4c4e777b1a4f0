// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* GPU records in a trace: what goes in comes out, cut off and damaged as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "file/ring_reader.h"
#include "file/writer.h"
#include "trace_build.h"

static struct trace_writer *begin(char *path)
{
	struct trace_meta meta = {.qbpf_version = "1", .slow = "", .start_ns = 5};
	struct trace_span span = {.name = "p:s"};
	struct trace_thread thread = {.tgid = 7, .tid = 8, .name = "t"};
	struct trace_writer *w;
	int fd;

	strcpy(path, "/tmp/gpu-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(trace_writer__new(path, &meta, &w, NULL), 0);
	assert_int_equal(trace_writer__span(w, &span), 0);
	assert_int_equal(trace_writer__thread(w, 0, &thread), 0);
	return w;
}

static struct trace_reader *finish(struct trace_writer *w, const char *path)
{
	struct trace_reader *r;
	struct err e;

	assert_int_equal(trace_writer__close(w, 99, NULL, 0, &e), 0);
	trace_writer__free(w);
	assert_int_equal(trace_reader__open(path, &r, &e), 0);
	unlink(path);
	return r;
}

/* Record number i: all types, and one of a later version; each third one is longer than it must be. */
static void make(uint32_t i, uint64_t words[128])
{
	struct qbpf_ring_record *rec = (void *)words;
	uint16_t type = (uint16_t)(1 + i % 14);

	for (uint32_t k = 0; k < 128; k++)
		words[k] = i * 0x9e3779b97f4a7c15ull + k;
	rec->type = type == 14 ? 40000 : type;
	rec->size = (uint16_t)(ring_type_size(rec->type) + (i % 3 ? 0 : 8 * (i % 50)));
	if (type == QBPF_RING_KERNEL)
		rec->first = i % 3;
	if (type == QBPF_RING_CALL)
		((struct qbpf_ring_call *)rec)->name = i % 3;
	if (type == QBPF_RING_DEVICE)
		((struct qbpf_ring_device *)rec)->name = i % 3;
}

static void put(struct trace_writer *w, uint32_t ring, uint32_t i)
{
	uint64_t words[128];

	make(i, words);
	assert_int_equal(trace_writer__gpu(w, ring, (const void *)words), 0);
}

static void expect(struct trace_reader *r, uint32_t ring, uint32_t i)
{
	const struct qbpf_ring_record *rec;
	uint64_t words[128];
	uint32_t got_ring;

	make(i, words);
	assert_int_equal(trace_reader__gpu_next(r, &got_ring, &rec, NULL), 1);
	assert_int_equal(got_ring, ring);
	assert_int_equal((uintptr_t)rec % 8, 0);
	assert_int_equal(rec->size, ((struct qbpf_ring_record *)words)->size);
	assert_memory_equal(rec, words, rec->size);
}

static void put_names(struct trace_writer *w)
{
	uint32_t id;

	assert_int_equal(trace_writer__gpu_name(w, "_Z6signalPKf", &id), 0);
	assert_int_equal(id, 1);
	assert_int_equal(trace_writer__gpu_name(w, "bytes \x01\xff", &id), 0);
	assert_int_equal(id, 2);
}

#define MANY 30000

static void t_round_trip(void **state)
{
	struct trace_gpu_loss loss = {1, QBPF_RING_KERNEL, GPU_LOST_CUPTI, 10, 20, UINT64_MAX};
	const struct qbpf_ring_record *rec;
	const struct trace_info *info;
	struct trace_writer *w;
	struct trace_reader *r;
	char path[32];
	uint32_t ring;

	(void)state;
	w = begin(path);
	put_names(w);
	for (uint32_t i = 0; i < MANY; i++)
		put(w, i / 1000 % 3, i);
	assert_int_equal(trace_writer__gpu_loss(w, &loss), 0);
	assert_int_equal(trace_writer__gpu_records(w), MANY);
	r = finish(w, path);
	info = trace_reader__info(r);
	assert_int_equal(info->ngpu_records, MANY);
	assert_int_equal(info->unknown_blocks, 0);
	assert_true(info->gpu_bytes > 1000 && info->gpu_bytes < info->file_bytes);
	assert_int_equal(info->ngpu_names, 2);
	assert_string_equal(trace_info__gpu_name(info, 2), "bytes \x01\xff");
	assert_null(trace_info__gpu_name(info, 0));
	assert_null(trace_info__gpu_name(info, 3));
	assert_int_equal(info->ngpu_losses, 1);
	assert_int_equal(info->gpu_losses[0].ring, 1);
	assert_int_equal(info->gpu_losses[0].type, QBPF_RING_KERNEL);
	assert_int_equal(info->gpu_losses[0].reason, GPU_LOST_CUPTI);
	assert_int_equal(info->gpu_losses[0].from_ns, 10);
	assert_int_equal(info->gpu_losses[0].to_ns, 20);
	assert_true(info->gpu_losses[0].lost == UINT64_MAX);
	for (int round = 0; round < 2; round++) {
		trace_reader__gpu_start(r);
		for (uint32_t i = 0; i < MANY; i++)
			expect(r, i / 1000 % 3, i);
		assert_int_equal(trace_reader__gpu_next(r, &ring, &rec, NULL), 0);
		assert_int_equal(trace_reader__gpu_next(r, &ring, &rec, NULL), 0);
	}
	trace_reader__free(r);
}

/* Both walks at once, in the order in which things were written. */
static void t_with_events(void **state)
{
	struct event ev = {.kind = EVENT_SPAN, .span = 1};
	const struct event *events;
	struct trace_writer *w;
	struct trace_reader *r;
	uint32_t records = 0, batches = 0;
	char path[32];
	size_t n;

	(void)state;
	w = begin(path);
	put_names(w);
	for (uint32_t i = 0; i < 100; i++) {
		ev.start_ns = ev.end_ns + 10;
		ev.end_ns = ev.start_ns + 5;
		assert_int_equal(trace_writer__event(w, &ev), 0);
		put(w, 0, 2 * i);
		put(w, 0, 2 * i + 1);
		if (i % 10 == 9)
			assert_int_equal(trace_writer__flush(w), 0);
	}
	r = finish(w, path);
	trace_reader__gpu_start(r);
	for (;;) {
		while (trace_reader__gpu_first(r))
			expect(r, 0, records++);
		if (trace_reader__next(r, &events, &n, NULL) != 1)
			break;
		assert_int_equal(records, 20 * (batches + 1));
		assert_int_equal(n, 10);
		assert_int_equal(events[0].start_ns, 10 + 150 * batches);
		batches++;
	}
	assert_int_equal(batches, 10);
	assert_int_equal(records, 200);
	trace_reader__free(r);
}

static void t_refused(void **state)
{
	struct trace_gpu_loss loss = {.reason = GPU_LOST_N};
	struct trace_writer *w;
	struct trace_reader *r;
	uint64_t words[128];
	struct qbpf_ring_record *rec = (void *)words;
	char path[32];

	(void)state;
	w = begin(path);
	put_names(w);
	make(0, words);
	rec->first = 3; /* there are two names */
	assert_int_equal(trace_writer__gpu(w, 0, rec), -EINVAL);
	make(0, words);
	rec->size = 80;
	assert_int_equal(trace_writer__gpu(w, 0, rec), -EINVAL);
	make(1, words);
	rec->size += 4;
	assert_int_equal(trace_writer__gpu(w, 0, rec), -EINVAL);
	rec->size = 1032;
	assert_int_equal(trace_writer__gpu(w, 0, rec), -EINVAL);
	rec->type = QBPF_RING_PAD;
	rec->size = 64;
	assert_int_equal(trace_writer__gpu(w, 0, rec), -EINVAL);
	make(1, words);
	assert_int_equal(trace_writer__gpu(w, TRACE_NO_THREAD, rec), -EINVAL);
	assert_int_equal(trace_writer__gpu_loss(w, &loss), -EINVAL);
	put(w, 0, 1);
	r = finish(w, path);
	assert_int_equal(trace_reader__info(r)->ngpu_records, 1);
	expect(r, 0, 1);
	trace_reader__free(r);
}

/* --- cut off and damaged ------------------------------------------------------------------------ */

static struct bytes small_file(void)
{
	struct event ev = {.kind = EVENT_SPAN, .span = 1, .start_ns = 10, .end_ns = 20};
	struct bytes file = {0};
	struct trace_writer *w;
	char path[32];
	struct err e;
	FILE *f;
	int c;

	w = begin(path);
	put_names(w);
	for (uint32_t i = 0; i < 40; i++) {
		put(w, 0, i);
		if (i % 10 == 9) {
			assert_int_equal(trace_writer__event(w, &ev), 0);
			assert_int_equal(trace_writer__flush(w), 0);
		}
	}
	assert_int_equal(trace_writer__close(w, 99, NULL, 0, &e), 0);
	trace_writer__free(w);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((c = getc(f)) != EOF) {
		uint8_t byte = (uint8_t)c;

		assert_int_equal(bytes__append(&file, &byte, 1), 0);
	}
	fclose(f);
	unlink(path);
	return file;
}

/* How many records come out, all as they were put in; -1: damaged. */
static int read_all(const struct bytes *file, size_t len)
{
	const struct qbpf_ring_record *rec;
	struct trace_reader *r;
	struct err e;
	uint64_t words[128];
	uint32_t ring, n = 0;
	int more;

	if (build__open_bytes(file->p, len, &r, &e))
		return -1;
	while ((more = trace_reader__gpu_next(r, &ring, &rec, &e)) > 0) {
		make(n++, words);
		assert_memory_equal(rec, words, ((struct qbpf_ring_record *)words)->size);
	}
	if (!more)
		assert_int_equal(n, trace_reader__info(r)->ngpu_records);
	trace_reader__free(r);
	return more ? -1 : (int)n;
}

static void t_cut(void **state)
{
	struct bytes file = small_file();
	int before = 0, steps = 0;

	(void)state;
	assert_int_equal(read_all(&file, file.n), 40);
	for (size_t len = sizeof(struct trace_file_header); len < file.n; len++) {
		int n = read_all(&file, len);

		assert_true(n == before || n == before + 10);
		steps += n != before;
		before = n;
	}
	assert_int_equal(steps, 4);
	free(file.p);
}

static void t_flips(void **state)
{
	struct bytes file = small_file();
	int damaged = 0;

	(void)state;
	for (size_t at = 0; at < file.n; at++) {
		int n;

		file.p[at] ^= (uint8_t)(1u << at % 8);
		n = read_all(&file, file.n);
		/* A broken end is one that is not there: the records are. */
		assert_true(n == -1 || n == 40);
		damaged += n == -1;
		file.p[at] ^= (uint8_t)(1u << at % 8);
	}
	assert_true(damaged > (int)file.n / 2);
	free(file.p);
}

/* Blocks with right checksums around records that cannot be. */
static void t_hostile(void **state)
{
	static const struct {
		uint16_t type, size;
		uint32_t count;
		size_t len;
		const char *why;
	} cases[] = {
	    {QBPF_RING_KERNEL, 88, 0, 88, "impossible number"},
	    {QBPF_RING_KERNEL, 88, 1u << 31, 88, "impossible number"},
	    {QBPF_RING_KERNEL, 88, 2, 88, "impossible length"},
	    {QBPF_RING_KERNEL, 88, 1, 96, "impossible length"},
	    {QBPF_RING_KERNEL, 88, 1, 80, "impossible length"},
	    {QBPF_RING_KERNEL, 80, 1, 80, "impossible length"},
	    {QBPF_RING_KERNEL, 0, 1, 88, "impossible length"},
	    {QBPF_RING_KERNEL, 92, 1, 92, "impossible length"},
	    {500, 0, 1, 8, "impossible length"},
	    {500, 1032, 1, 1032, "impossible length"},
	    {500, 8, 1, 4, "impossible length"},
	    {500, 8, 1, 0, "impossible length"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trace_block h = {.type = BLOCK_GPU, .count = cases[i].count};
		struct qbpf_ring_record rec = {cases[i].type, cases[i].size, 0};
		const struct qbpf_ring_record *out;
		uint8_t payload[1200] = {0};
		struct trace_reader *r;
		struct err e = {{0}};
		struct build b;
		uint32_t ring;
		int err;

		memcpy(payload, &rec, sizeof(rec));
		build__start(&b);
		build__tables(&b, 1, 1);
		build__block(&b, h, payload, cases[i].len);
		build__finish(&b, 1);
		err = build__open(&b, &r, &e);
		if (!err) {
			do
				err = trace_reader__gpu_next(r, &ring, &out, &e);
			while (err > 0);
			/* And no more of it. */
			assert_int_equal(trace_reader__gpu_next(r, &ring, &out, &e), 0);
			trace_reader__free(r);
		}
		assert_int_equal(err, -EBADMSG);
		if (!strstr(e.text, cases[i].why))
			fail_msg("case %zu: %s", i, e.text);
		build__free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_round_trip), cmocka_unit_test(t_with_events),
	    cmocka_unit_test(t_refused),    cmocka_unit_test(t_cut),
	    cmocka_unit_test(t_flips),	    cmocka_unit_test(t_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

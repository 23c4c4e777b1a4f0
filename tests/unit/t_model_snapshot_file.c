// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A snapshot to bytes and back, and bytes that are none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/snapshot_file.h"
#include "snap_fixture.h"

static struct snapshot *there_and_back(const struct snapshot *s)
{
	struct snapshot *got;
	struct err e = {{0}};
	void *bytes;
	size_t len;

	assert_int_equal(snapshot__pack(s, &bytes, &len), 0);
	assert_int_equal(snapshot__unpack(bytes, len, &got, &e), 0);
	free(bytes);
	return got;
}

static void same_text(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_ptr_equal(a, b);
}

static void same_hist(const struct hist *a, const struct hist *b)
{
	struct hist_bucket *va, *vb;
	size_t n = hist__buckets(a, &va);

	assert_int_equal(hist__kind(a), hist__kind(b));
	assert_int_equal(hist__buckets(b, &vb), n);
	assert_memory_equal(va, vb, n * sizeof(*va));
	assert_true(hist__sum(a) == hist__sum(b));
	assert_true(hist__min(a) == hist__min(b));
	assert_true(hist__max(a) == hist__max(b));
	assert_int_equal(hist__nan(a), hist__nan(b));
	free(va);
	free(vb);
}

static void same_notes(const struct snap_site_note *a, const struct snap_site_note *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		same_text(a[i].site, b[i].site);
		same_text(a[i].reason, b[i].reason);
	}
}

/* Everything between the pointers, whatever is appended to the structure later. */
static void same_span(struct snap_span a, struct snap_span b)
{
	same_text(a.name, b.name);
	same_hist(a.hist, b.hist);
	a.name = b.name = NULL;
	a.hist = b.hist = NULL;
	assert_int_equal(a.kind, b.kind);
	assert_int_equal(a.way, b.way);
	assert_int_equal(a.refused, b.refused);
	assert_memory_equal(&a.open, &b.open,
			    offsetof(struct snap_span, refused) - offsetof(struct snap_span, open));
}

static void same_cuda(const struct cuda_calls *a, const struct cuda_calls *b)
{
	assert_int_equal(a->ntransfers, b->ntransfers);
	for (size_t i = 0; i < a->ntransfers; i++) {
		assert_memory_equal(&a->transfers[i], &b->transfers[i],
				    offsetof(struct cuda_transfer, sizes));
		same_hist(a->transfers[i].sizes, b->transfers[i].sizes);
	}
	assert_int_equal(a->nkernels, b->nkernels);
	for (size_t i = 0; i < a->nkernels; i++) {
		struct cuda_kernel x = a->kernels[i], y = b->kernels[i];

		same_text(x.name, y.name);
		assert_int_equal(x.span, y.span);
		assert_int_equal(x.named, y.named);
		assert_int_equal(x.any_grid, y.any_grid);
		assert_memory_equal(x.grid, y.grid, sizeof(x.grid));
		assert_memory_equal(&x.sums, &y.sums, sizeof(x.sums));
	}
	assert_int_equal(a->nfailures, b->nfailures);
	for (size_t i = 0; i < a->nfailures; i++) {
		assert_int_equal(a->failures[i].span, b->failures[i].span);
		assert_int_equal(a->failures[i].code, b->failures[i].code);
		assert_int_equal(a->failures[i].count, b->failures[i].count);
	}
	assert_int_equal(a->lost, b->lost);
	assert_int_equal(a->names_lost, b->names_lost);
}

static void same_snapshot(const struct snapshot *a, const struct snapshot *b)
{
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->now_ns, b->now_ns);
	assert_int_equal(a->npids, b->npids);
	assert_memory_equal(a->pids, b->pids, a->npids * sizeof(*a->pids));
	same_text(a->comm, b->comm);
	same_text(a->exe, b->exe);
	assert_int_equal(a->ended, b->ended);
	same_text(a->kernel, b->kernel);
	same_text(a->cpu, b->cpu);
	same_text(a->clocksource, b->clocksource);
	assert_int_equal(a->cpus, b->cpus);
	assert_int_equal(a->nspans, b->nspans);
	for (size_t i = 0; i < a->nspans; i++)
		same_span(a->spans[i], b->spans[i]);
	assert_int_equal(a->nnodes, b->nnodes);
	for (size_t i = 0; i < a->nnodes; i++) {
		assert_int_equal(a->nodes[i].id, b->nodes[i].id);
		assert_int_equal(a->nodes[i].parent, b->nodes[i].parent);
		assert_int_equal(a->nodes[i].span, b->nodes[i].span);
		assert_memory_equal(&a->nodes[i].count, &b->nodes[i].count, 5 * sizeof(uint64_t));
	}
	assert_int_equal(a->armed, b->armed);
	assert_int_equal(a->relocated, b->relocated);
	assert_int_equal(a->nrefused, b->nrefused);
	same_notes(a->refused, b->refused, a->nrefused);
	assert_int_equal(a->nfailed, b->nfailed);
	same_notes(a->failed, b->failed, a->nfailed);
	assert_int_equal(a->nnotes, b->nnotes);
	for (size_t i = 0; i < a->nnotes; i++)
		same_text(a->notes[i], b->notes[i]);
	assert_memory_equal(a->price_ns, b->price_ns, sizeof(a->price_ns));
	assert_int_equal(a->map_bytes, b->map_bytes);
	assert_int_equal(a->cuda != NULL, b->cuda != NULL);
	if (a->cuda)
		same_cuda(a->cuda, b->cuda);
}

static struct cuda_calls *full_cuda(void)
{
	struct cuda_kernel k = {.span = UINT32_MAX,
				.name = (char[]){"alpha(float*)"},
				.named = true,
				.grid = {1, 2, UINT32_MAX, 4, 5, 6}};
	struct qbpf_hist_cell cell = {.sum_lo = 7, .min = 7, .max = 7, .n = {[7] = 1}};
	struct cuda_sums sums = {1, 2, 3, 4, 5, UINT64_MAX, 7, 8};
	struct cuda_calls *c = cuda_calls__new();

	assert_int_equal(cuda_calls__add_transfer(c, 3, QBPF_CUDA_COPY, QBPF_CUDA_D2H, &sums), 0);
	assert_int_equal(cuda_calls__add_sizes(c, 3, QBPF_CUDA_D2H, 0, &cell), 0);
	sums.bytes = 9;
	assert_int_equal(cuda_calls__add_transfer(c, 4, QBPF_CUDA_ALLOC, QBPF_CUDA_NO_DIR, &sums),
			 0);
	k.sums = sums;
	assert_int_equal(cuda_calls__add_kernel(c, &k), 0);
	k.any_grid = true;
	assert_int_equal(cuda_calls__add_kernel(c, &k), 0);
	assert_int_equal(cuda_calls__add_failure(c, 5, 999, 77), 0);
	c->lost = 11;
	c->names_lost = 12;
	return c;
}

/* Every field has a value of its own, the greatest and the smallest among them. */
static struct snapshot *full(void)
{
	struct snapshot *s = fixture__strategy();
	uint64_t v = 1000;

	s->ended = true;
	s->notes = fixture__grow(NULL, 0, sizeof(*s->notes));
	s->notes[s->nnotes++] = strdup("a note");
	for (size_t i = 0; i < s->nspans; i++) {
		struct snap_span *x = &s->spans[i];

		x->way = RET_NONE - i % 5;
		for (uint64_t *p = &x->open; p <= &x->price_ns; p++)
			*p = v++;
		x->refused = i & 1;
	}
	s->spans[1].ret_muted = UINT64_MAX;
	fixture__add(&s->spans[0], UINT64_MAX, 3);
	fixture__add(&s->spans[4], (uint64_t)INT64_MIN, 3);
	fixture__add(&s->spans[4], INT64_MAX, 2);
	fixture__add(&s->spans[5], 0x7ff0000000000000ull, 1);
	fixture__add(&s->spans[5], 0x8000000000000001ull, 1);
	s->nodes[0].min_ns = s->nodes[0].max_ns = SNAP_UNKNOWN;
	s->nodes[4].id = UINT32_MAX;
	s->nodes[4].parent = UINT32_MAX;
	s->nodes[4].span = UINT32_MAX;
	s->cuda = full_cuda();
	return s;
}

static void t_round_trip(void **state)
{
	struct snapshot *s = full(), *got = there_and_back(s);

	(void)state;
	same_snapshot(s, got);
	snapshot__free(got);
	snapshot__free(s);
	s = snapshot__new();
	got = there_and_back(s);
	same_snapshot(s, got);
	snapshot__free(got);
	snapshot__free(s);
}

/* Cut anywhere, or with something behind it: one line, nothing leaks. */
static void t_cut(void **state)
{
	struct snapshot *s = full(), *got;
	struct err e;
	void *bytes;
	size_t len;

	(void)state;
	assert_int_equal(snapshot__pack(s, &bytes, &len), 0);
	for (size_t n = 0; n < len; n++) {
		char *copy = malloc(n ? n : 1); /* so that a byte too many is seen */

		memcpy(copy, bytes, n);
		e.text[0] = '\0';
		assert_int_equal(snapshot__unpack(copy, n, &got, &e), -EBADMSG);
		assert_null(got);
		assert_non_null(strstr(e.text, "damaged at byte "));
		free(copy);
	}
	bytes = realloc(bytes, len + 1);
	((char *)bytes)[len] = 0;
	assert_int_equal(snapshot__unpack(bytes, len + 1, &got, &e), -EBADMSG);
	((char *)bytes)[0] = 3;
	assert_int_equal(snapshot__unpack(bytes, len, &got, &e), -EPROTO);
	assert_non_null(strstr(e.text, "version 3"));
	free(bytes);
	snapshot__free(s);
}

/* Some bytes changed: refused, or a snapshot that packs again. */
static void t_hostile(void **state)
{
	struct snapshot *s = full();
	unsigned int refused = 0, taken = 0;
	uint64_t seed = 0x1234567;
	void *bytes;
	size_t len;

	(void)state;
	assert_int_equal(snapshot__pack(s, &bytes, &len), 0);
	for (int i = 0; i < 20000; i++) {
		uint8_t *copy = malloc(len);
		struct snapshot *got;
		int err;

		memcpy(copy, bytes, len);
		for (int k = 0; k <= i % 4; k++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			copy[(seed >> 20) % len] = (uint8_t)(seed >> 56);
		}
		err = snapshot__unpack(copy, len, &got, NULL);
		if (err) {
			assert_true(err == -EBADMSG || err == -EPROTO);
			refused++;
		} else {
			void *again;
			size_t n;

			assert_int_equal(snapshot__pack(got, &again, &n), 0);
			free(again);
			snapshot__free(got);
			taken++;
		}
		free(copy);
	}
	assert_true(refused > 1000 && taken > 1000);
	free(bytes);
	snapshot__free(s);
}

/* A length that no memory holds costs none. */
static void t_long_lists(void **state)
{
	static const uint8_t start[] = {1, 0, 0}; /* version, start_ns, now_ns */
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	uint8_t bytes[64] = {0};
	struct snapshot *got;

	(void)state;
	memcpy(bytes, start, sizeof(start));
	memcpy(bytes + sizeof(start), huge, sizeof(huge));
	assert_int_equal(snapshot__unpack(bytes, sizeof(bytes), &got, NULL), -EBADMSG);
	bytes[12] = 0x7f; /* more than 64 bits */
	assert_int_equal(snapshot__unpack(bytes, sizeof(bytes), &got, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_round_trip),
	    cmocka_unit_test(t_cut),
	    cmocka_unit_test(t_hostile),
	    cmocka_unit_test(t_long_lists),
	};

	return cmocka_run_group_tests_name("model_snapshot_file", tests, NULL, NULL);
}

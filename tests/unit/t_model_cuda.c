// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the host asked of CUDA: adding up, the difference of two states, words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/cuda.h"

static void add_copy(struct cuda_calls *c, uint32_t span, uint32_t dir, uint64_t bytes, int times)
{
	struct cuda_sums s = {.count = 1, .ns = 10, .bytes = bytes};
	/* one bucket: these sizes are below 32 */
	struct qbpf_hist_cell cell = {.sum_lo = bytes, .min = bytes, .max = bytes};

	cell.n[bytes] = 1;
	for (; times; times--) {
		assert_int_equal(cuda_calls__add_transfer(c, span, QBPF_CUDA_COPY, dir, &s), 0);
		assert_int_equal(cuda_calls__add_sizes(c, span, dir, 0, &cell), 0);
	}
}

static void add_launch(struct cuda_calls *c, const char *name, uint32_t grid, uint64_t count)
{
	struct cuda_kernel k = {.span = 9, .name = (char *)(uintptr_t)name, .named = true};

	k.grid[0] = grid;
	k.sums.count = count;
	k.sums.ns = 3 * count;
	assert_int_equal(cuda_calls__add_kernel(c, &k), 0);
}

static void t_adds_up(void **state)
{
	struct cuda_calls *c = cuda_calls__new();

	(void)state;
	add_copy(c, 1, QBPF_CUDA_H2D, 8, 3);
	add_copy(c, 1, QBPF_CUDA_D2H, 31, 1);
	add_copy(c, 2, QBPF_CUDA_H2D, 16, 5);
	add_launch(c, "alpha", 4, 10);
	add_launch(c, "alpha", 5, 1);
	add_launch(c, "alpha", 4, 10);
	add_launch(c, "beta", 4, 40);
	assert_int_equal(cuda_calls__add_failure(c, 1, 700, 2), 0);
	assert_int_equal(cuda_calls__add_failure(c, 1, 35, 1), 0);
	assert_int_equal(cuda_calls__add_failure(c, 1, 700, 3), 0);
	cuda_calls__sort(c);
	assert_int_equal(c->ntransfers, 3);
	assert_int_equal(c->transfers[0].span, 2); /* the most time */
	assert_int_equal(c->transfers[0].sums.bytes, 80);
	assert_int_equal(c->transfers[1].sums.count, 3);
	assert_int_equal(c->transfers[1].sums.bytes, 24);
	assert_int_equal(hist__count(c->transfers[1].sizes), 3);
	assert_true(hist__sum(c->transfers[1].sizes) == 24);
	assert_true(hist__max(c->transfers[2].sizes) == 31);
	assert_int_equal(c->nkernels, 3);
	assert_string_equal(c->kernels[0].name, "beta");
	assert_int_equal(c->kernels[1].sums.count, 20);
	assert_int_equal(c->kernels[2].grid[0], 5);
	assert_int_equal(c->nfailures, 2);
	assert_int_equal(c->failures[0].code, 700);
	assert_int_equal(c->failures[0].count, 5);
	cuda_calls__free(c);
}

/* What has not happened since is left out; what is new stays whole. */
static void t_subtracts(void **state)
{
	struct cuda_calls *base = cuda_calls__new(), *now;

	(void)state;
	add_copy(base, 1, QBPF_CUDA_H2D, 8, 3);
	add_copy(base, 2, QBPF_CUDA_H2D, 4, 2);
	add_launch(base, "alpha", 4, 10);
	add_launch(base, "beta", 4, 10);
	assert_int_equal(cuda_calls__add_failure(base, 1, 35, 4), 0);
	assert_int_equal(cuda_calls__add_failure(base, 1, 36, 4), 0);
	base->lost = 5;
	now = cuda_calls__clone(base);
	assert_non_null(now);
	add_copy(now, 1, QBPF_CUDA_H2D, 16, 2);
	add_launch(now, "alpha", 4, 7);
	add_launch(now, "gamma", 1, 1);
	assert_int_equal(cuda_calls__add_failure(now, 1, 36, 1), 0);
	now->lost = 8;
	assert_int_equal(cuda_calls__subtract(now, base), 0);
	assert_int_equal(now->ntransfers, 1);
	assert_int_equal(now->transfers[0].sums.count, 2);
	assert_int_equal(now->transfers[0].sums.bytes, 32);
	assert_int_equal(hist__count(now->transfers[0].sizes), 2);
	assert_true(hist__min(now->transfers[0].sizes) == 16);
	assert_int_equal(now->nkernels, 2);
	assert_string_equal(now->kernels[0].name, "alpha");
	assert_int_equal(now->kernels[0].sums.count, 7);
	assert_string_equal(now->kernels[1].name, "gamma");
	assert_int_equal(now->nfailures, 1);
	assert_int_equal(now->failures[0].code, 36);
	assert_int_equal(now->failures[0].count, 1);
	assert_int_equal(now->lost, 3);
	/* The other has not changed. */
	assert_int_equal(base->ntransfers, 2);
	assert_int_equal(base->kernels[0].sums.count, 10);
	cuda_calls__free(now);
	cuda_calls__free(base);
}

static void t_words(void **state)
{
	(void)state;
	assert_string_equal(cuda_error_name(35, false), "cudaErrorInsufficientDriver");
	assert_string_equal(cuda_error_name(1, true), "CUDA_ERROR_INVALID_VALUE");
	assert_null(cuda_error_name(35, true));
	assert_null(cuda_error_name(123456, false));
	assert_string_equal(cuda_direction_id(QBPF_CUDA_H2D), "h2d");
	assert_string_equal(cuda_direction_id(QBPF_CUDA_DIRS), "none");
	assert_string_equal(cuda_direction_name(QBPF_CUDA_D2H), "device to host");
	assert_string_equal(cuda_class_name(QBPF_CUDA_MEMSET), "memset");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_adds_up),
	    cmocka_unit_test(t_subtracts),
	    cmocka_unit_test(t_words),
	};

	return cmocka_run_group_tests_name("model_cuda", tests, NULL, NULL);
}

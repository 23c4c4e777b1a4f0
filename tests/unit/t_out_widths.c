// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tables at the widths that terminals have: no line is wider, what matters most is there, and names that
 * differ still do. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/gpu.h"
#include "out/gpu.h"
#include "out/names.h"
#include "out/table.h"
#include "out/text.h"
#include "snap_fixture.h"

#define CALLS 8
static const char *const calls[CALLS] = {"cuda:cudaMemcpyAsync",   "cuda:cudaMallocAsync",
					 "cuda:cudaMemcpy2DAsync", "cuda:cudaMemcpy3DAsync",
					 "cuda:cudaMemsetAsync",   "cuda:cudaStreamSynchronize",
					 "cuda:cudaFreeAsync",	   "cuda:cudaEventSynchronize"};

#define KERNELS 4
static const char *const kernels[KERNELS] = {
    "void strategies::momentum::gemm_kernel<float, 128, 64, true>(float const*, float*, int)",
    "void strategies::momentum::gemm_kernel<float, 128, 32, true>(float const*, float*, int)",
    "book::update(double*, int)", "k()"};

static const unsigned int widths[] = {60, 80, 100, 200};

#define FIGURE                                                                                     \
	{                                                                                          \
		.count = 123456, .total_ns = 987654321, .min_ns = 12345, .max_ns = 98765432,       \
		.p50_ns = 23456, .p90_ns = 34567, .p99_ns = 45678                                  \
	}

static struct gpu_kernel kernel_rows[KERNELS];
static struct gpu_stream stream_rows[] = {
    {.context = 1, .stream = 7, .kernels = 1000, .kernel_ns = 123456789, .delay = FIGURE},
    {.context = 1, .stream = 17, .kernels = 1000, .kernel_ns = 123456789, .delay = FIGURE},
    {.context = 1, .stream = 18, .null = true, .copies = 7, .copy_ns = 55555},
    {.ring = 1, .tgid = 1234567, .context = 2, .stream = 7, .kernels = 1, .kernel_ns = 1},
};
static struct gpu_copy copy_rows[] = {
    {.direction = GPU_TO_DEVICE, .time = FIGURE, .bytes = 1ull << 33, .bytes_per_s = 1ull << 34},
    {.direction = GPU_TO_DEVICE, .pageable = true, .time = FIGURE, .bytes = 1ull << 33},
    {.direction = GPU_TO_DEVICE, .pageable = true, .synchronous = true, .time = FIGURE},
    {.direction = GPU_TO_HOST, .synchronous = true, .time = FIGURE, .call = FIGURE},
    {.direction = GPU_MEMSET, .time = FIGURE, .bytes = 4096},
};
static struct gpu_span span_rows[CALLS];
static struct gpu_idle idle_rows[CALLS];
static struct gpu_device device_rows[] = {
    {.name = (char *)"NVIDIA H200",
     .activities = 5,
     .to_ns = 1000000000,
     .idle = idle_rows,
     .nidle = CALLS},
    {.ring = 1,
     .tgid = 1234567,
     .comm = (char *)"strategy",
     .name = (char *)"NVIDIA H200",
     .activities = 5,
     .to_ns = 1000000000},
};
static struct gpu_advice advice_rows[] = {
    {.kind = GPU_ADVICE_SYNC_COPY,
     .count = 300,
     .bytes = 1 << 30,
     .cost_ns = 5000000,
     .of_ns = 4000000,
     .save_ns = 3000000},
    {.kind = GPU_ADVICE_LAUNCH_BOUND, .count = 300, .cost_ns = 5000000, .of_ns = 40000},
};

static struct gpu_summary gpu = {
    .devices = device_rows,
    .ndevices = COUNT_OF(device_rows),
    .kernels = kernel_rows,
    .nkernels = KERNELS,
    .copies = copy_rows,
    .ncopies = COUNT_OF(copy_rows),
    .streams = stream_rows,
    .nstreams = COUNT_OF(stream_rows),
    .spans = span_rows,
    .nspans = CALLS,
    .advice = advice_rows,
    .nadvice = COUNT_OF(advice_rows),
    .untimed = 3,
    .dropped = 4,
    .late = 5,
    .clock_change_ns = 77777,
    .converted = true,
    .convert_error_ns = 1234,
    .missing = {1, 2, 3},
};

static void fill(void)
{
	for (size_t i = 0; i < KERNELS; i++)
		kernel_rows[i] = (struct gpu_kernel){.name = (char *)(uintptr_t)kernels[i],
						     .time = FIGURE,
						     .delay = FIGURE,
						     .call = FIGURE,
						     .grid = {1024, 1024, 1},
						     .block = {256, 1, 1}};
	for (size_t i = 0; i < CALLS; i++) {
		span_rows[i] = (struct gpu_span){.name = (char *)(uintptr_t)calls[i],
						 .count = 123456,
						 .total_ns = 987654321,
						 .launch_ns = 12345678};
		idle_rows[i] = (struct gpu_idle){.cause = GPU_IDLE_CALL,
						 .gaps = 1234,
						 .name = (char *)(uintptr_t)calls[i] + 5,
						 .total_ns = 1234567,
						 .max_ns = 23456};
	}
	advice_rows[1].name = kernel_rows[0].name;
}

/* The figures of one table: the lines from its heading to the next blank one. */
struct part {
	char **lines;
	size_t n;
};

static char *printed(void (*write)(FILE *f, unsigned int width), unsigned int width)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	write(f, width);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void check_lines(const char *text, unsigned int width)
{
	char line[4096];

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		if (text__width(line, true) > width)
			fail_msg("%u columns, at most %u: %s", text__width(line, true), width,
				 line);
	}
}

/* A table's rows by its heading's first words: as many as there are names, and their names all differ. */
static void check_table(const char *text, const char *heading, size_t rows,
			const char *const *columns)
{
	char names[16][256], head[512];
	const char *at = strstr(text, heading);

	assert_non_null(at);
	at++;
	assert_in_range(rows, 1, 16);
	snprintf(head, sizeof(head), "%.*s", (int)strcspn(at, "\n"), at);
	for (; *columns; columns++)
		if (!strstr(head, *columns))
			fail_msg("there is no %s in: %s", *columns, head);
	for (size_t i = 0; i < rows; i++) {
		const char *end;

		at += strcspn(at, "\n") + 1;
		end = strstr(at, "  ");
		assert_non_null(end);
		snprintf(names[i], sizeof(names[i]), "%.*s", (int)(end - at), at);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(names[i], names[k]))
				fail_msg("two rows are called %s in:\n%s", names[i], text);
	}
}

static void write_gpu(FILE *f, unsigned int width)
{
	struct page p = {.f = f, .width = width, .utf8 = true};

	page__gpu(&p, &gpu, 20);
}

#define COLUMNS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void t_gpu(void **state)
{
	(void)state;
	fill();
	for (size_t i = 0; i < COUNT_OF(widths); i++) {
		char *text = printed(write_gpu, widths[i]);
		bool wide = widths[i] >= 80, all = widths[i] >= 200;

		check_lines(text, widths[i]);
		check_table(text, "\nkernel ", KERNELS, COLUMNS("count", "total", "mean"));
		check_table(text, "\ncopy ", COUNT_OF(copy_rows), COLUMNS("count", "bytes"));
		check_table(text, "\nstream ", COUNT_OF(stream_rows),
			    COLUMNS("kernels", "their time"));
		check_table(text, "\nidle GPU: why ", CALLS, COLUMNS("total", "of its time"));
		check_table(text, "\nspan, each ", CALLS, COLUMNS("count", "mean", "in waits"));
		if (wide) {
			check_table(text, "\nkernel ", KERNELS, COLUMNS("p99", "max"));
			check_table(text, "\ncopy ", COUNT_OF(copy_rows), COLUMNS("rate", "mean"));
			check_table(text, "\nstream ", COUNT_OF(stream_rows), COLUMNS("copies"));
			check_table(text, "\nspan, each ", CALLS, COLUMNS("in launches"));
		}
		if (all)
			check_table(text, "\nkernel ", KERNELS, COLUMNS("p50", "launch", "grid"));
		assert_true(all == !strstr(text, "(no room for "));
		free(text);
	}
}

static void write_live(FILE *f, unsigned int width)
{
	struct table_opts o = {.width = width, .tree = true};
	struct snapshot *s = snapshot__new();

	s->now_ns = 1000000000;
	s->comm = strdup("made");
	s->cuda = cuda_calls__new();
	for (uint32_t i = 0; i < CALLS; i++) {
		struct cuda_sums sums = {
		    .count = 123456, .failed = 3, .ns = 987654321, .bytes = 1ull << 33};

		fixture__add(fixture__span(s, calls[i], SPAN_CUDA, QBPF_HIST_NS), 12345 + i,
			     123456);
		fixture__node(s, 0, i, 123456, 1234567890, 1234567890);
		assert_int_equal(
		    cuda_calls__add_transfer(s->cuda, i, QBPF_CUDA_COPY, QBPF_CUDA_D2H, &sums), 0);
	}
	for (size_t i = 0; i < KERNELS; i++)
		assert_int_equal(
		    cuda_calls__add_kernel(
			s->cuda, &(struct cuda_kernel){.name = (char *)(uintptr_t)kernels[i],
						       .sums = {.count = 123456, .ns = 1234567},
						       .grid = {1024, 1024, 1, 256, 1, 1}}),
		    0);
	table__write(f, s, &o);
	snapshot__free(s);
}

static void t_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(widths); i++) {
		char *text = printed(write_live, widths[i]);

		check_lines(text, widths[i]);
		check_table(text, "\nspan ", CALLS, COLUMNS("count", "p99", "max"));
		check_table(text, "\ncall tree ", CALLS, COLUMNS("count", "total", "self"));
		check_table(text, "\nCUDA copies and memory ", CALLS,
			    COLUMNS("direction", "calls", "bytes"));
		check_table(text, "\nCUDA kernel ", KERNELS, COLUMNS("launches", "in the call"));
		if (widths[i] >= 80)
			check_table(text, "\nspan ", CALLS, COLUMNS("p50", "total"));
		free(text);
	}
}

static void check_fits(const char *const *names, size_t n, unsigned int width, bool utf8,
		       const char *const *want)
{
	unsigned int rooms[16] = {0};
	char *fits[16];
	size_t alike = 99;

	for (size_t i = 0; i < n; i++)
		rooms[i] = width;
	assert_int_equal(names__fit(names, rooms, n, utf8, fits, &alike), 0);
	assert_int_equal(alike, 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(text__width(fits[i], utf8) <= width);
		if (want)
			assert_string_equal(fits[i], want[i]);
		free(fits[i]);
	}
}

static void t_names(void **state)
{
	static const char *const some[] = {"cudaMemcpy2DAsync", "cudaMemcpy3DAsync",
					   "cudaMemcpyAsync", "cudaMemcpy2DAsync"};
	static const char *const overloads[] = {"book::update(double*, int)",
						"book::update(double*, long)"};
	static const char *const one[] = {"cudaMemcpyAsync", "cudaMemcpyAsync"};
	unsigned int rooms[] = {7, 7};
	char *fits[2];
	size_t alike;

	(void)state;
	check_fits(some, 4, 16, true,
		   COLUMNS("cudaMemc\xe2\x80\xa6"
			   "2DAsync",
			   "cudaMemc\xe2\x80\xa6"
			   "3DAsync",
			   "cudaMemcpyAsync",
			   "cudaMemc\xe2\x80\xa6"
			   "2DAsync"));
	check_fits(
	    some, 4, 16, false,
	    COLUMNS("cudaMem..2DAsync", "cudaMem..3DAsync", "cudaMemcpyAsync", "cudaMem..2DAsync"));
	check_fits(overloads, 2, 20, false,
		   COLUMNS("book::update(d..int)", "book::update(..long)"));
	check_fits(calls, CALLS, 12, true, NULL);
	for (unsigned int w = 16; w < 100; w++)
		check_fits(kernels, KERNELS, w, true, NULL);
	/* Too little room to tell two names apart is told. */
	assert_int_equal(names__fit(overloads, rooms, 2, false, fits, &alike), 0);
	assert_int_equal(alike, 2);
	free(fits[0]);
	free(fits[1]);
	/* One name twice is no two names. */
	assert_int_equal(names__fit(one, rooms, 2, false, fits, &alike), 0);
	assert_int_equal(alike, 0);
	free(fits[0]);
	free(fits[1]);
}

static void check_wrap(const char *text, unsigned int width, unsigned int indent, const char *want)
{
	char *got = NULL;
	size_t len;
	FILE *f = open_memstream(&got, &len);

	text__wrap(f, text, width, indent, true);
	fclose(f);
	assert_string_equal(got, want);
	free(got);
}

static void t_wrap(void **state)
{
	(void)state;
	check_wrap("  * one two  three", 40, 4, "  * one two  three\n");
	check_wrap("  * one two three four", 14, 4, "  * one two\n    three four\n");
	check_wrap("one two", 7, 0, "one two\n");
	check_wrap("one two", 6, 0, "one\ntwo\n");
	check_wrap("abcdefghijklmnop q", 10, 2, "abcde\xe2\x80\xa6op q\n");
	check_wrap("", 10, 2, "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_gpu),
	    cmocka_unit_test(t_calls),
	    cmocka_unit_test(t_names),
	    cmocka_unit_test(t_wrap),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The markers of qbpf/probe.h as the reader of USDT notes sees them: this program reads itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/image.h"
#include "elf/usdt.h"
#include "qbpf/probe.h"

static struct elf_image *img;
static struct usdt_table *table;

static volatile int hits;
static unsigned int handler_line, twin_line[2];

__attribute__((noinline)) static void handler(int x, double d, float f)
{
	handler_line = __LINE__ + 1;
	QBPF_FUNC();
	QBPF_SPAN(feed, parse);

	hits += x;
	QBPF_VALUE(risk, exposure, d);
	QBPF_VALUE(risk, ratio, f);
	QBPF_VALUE(risk, size, x);
	DTRACE_PROBE4(mixed, args, x, d, (unsigned char)x, f);
	if (QBPF_ENABLED(order, sent))
		DTRACE_PROBE1(order, sent, &hits);
	DTRACE_PROBE(order, idle);
}

/* Two functions on one line: the id tells them apart. */
/* clang-format off */
#define TWIN(name, i) \
	__attribute__((noinline)) static void name(void) \
	{ \
		QBPF_FUNC(); \
		twin_line[i] = __LINE__; \
		hits++; \
	}
#define TWINS(a, b) TWIN(a, 0) TWIN(b, 1)
/* clang-format on */
TWINS(twin_a, twin_b)

static unsigned int find(const char *provider, const char *name, const struct usdt_marker **out)
{
	unsigned int n = 0;

	for (size_t i = 0; i < table->n; i++) {
		const struct usdt_marker *m = &table->markers[i];

		if (strcmp(m->provider, provider) || strcmp(m->name, name))
			continue;
		*out = m;
		n++;
	}
	return n;
}

static const struct usdt_marker *one(const char *provider, const char *name)
{
	const struct usdt_marker *m = NULL;

	assert_int_equal(find(provider, name, &m), 1);
	return m;
}

static void test_spans(void **state)
{
	const struct usdt_marker *begin = one("feed", "parse__begin");
	const struct usdt_marker *end = one("feed", "parse__end");

	(void)state;
	assert_int_equal(begin->nargs, 0);
	assert_int_equal(end->nargs, 0);
	assert_true(begin->addr != end->addr);
	assert_null(begin->func);
	assert_int_equal(begin->sema_off, 0);
	assert_int_equal(table->bad, 0);
}

static void test_functions(void **state)
{
	static const char *const names[] = {"handler", "twin_a", "twin_b"};
	unsigned int lines[] = {handler_line, twin_line[0], twin_line[1]};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct usdt_marker *m[2];
		char name[64];

		snprintf(name, sizeof(name), "%s__begin", names[i]);
		m[0] = one("qbpf_func", name);
		snprintf(name, sizeof(name), "%s__end", names[i]);
		m[1] = one("qbpf_func", name);
		for (size_t j = 0; j < 2; j++) {
			assert_string_equal(m[j]->func, names[i]);
			assert_string_equal(m[j]->file, __FILE__);
			assert_int_equal(m[j]->line, lines[i]);
		}
	}
}

static void expect_arg(const struct usdt_arg *a, int size, bool is_signed, bool is_float)
{
	assert_int_equal(a->kind, USDT_ARG_REG);
	assert_int_equal(a->size, size);
	assert_int_equal(a->is_signed, is_signed);
	assert_int_equal(a->is_float, is_float);
}

static void test_values(void **state)
{
	const struct usdt_marker *m = one("mixed", "args");

	(void)state;
	expect_arg(&one("risk", "exposure__value")->args[0], 8, false, true);
	expect_arg(&one("risk", "ratio__value")->args[0], 4, false, true);
	expect_arg(&one("risk", "size__value")->args[0], 4, true, false);
	assert_int_equal(m->nargs, 4);
	expect_arg(&m->args[0], 4, true, false);
	expect_arg(&m->args[1], 8, false, true);
	expect_arg(&m->args[2], 1, false, false);
	expect_arg(&m->args[3], 4, false, true);
}

static void test_semaphore(void **state)
{
	uint64_t addr;

	(void)state;
	assert_true(one("order", "sent")->sema_off != 0);
	assert_int_equal(elf_image__off_to_addr(img, one("order", "sent")->sema_off, &addr), 0);
	assert_false(elf_image__addr_is_code(img, addr));
	assert_int_equal(one("order", "idle")->sema_off, 0);
}

static int open_self(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), err;

	(void)state;
	handler(1, 2.5, 0.5f);
	twin_a();
	twin_b();
	if (fd < 0)
		return -1;
	err = elf_image__open(fd, "self", &img, NULL);
	close(fd);
	return err ? err : usdt_table__read(img, &table, NULL);
}

static int close_self(void **state)
{
	(void)state;
	usdt_table__free(table);
	elf_image__free(img);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_spans),
	    cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_semaphore),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}

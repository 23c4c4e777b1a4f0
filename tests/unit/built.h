/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Real compilers' code for unit tests: compiles a snippet into a temporary folder and opens
 * what discovery would. A compiler that is not installed skips the test. Run from the root of
 * the repository, where include/ is.
 */
#ifndef QBPF_TESTS_BUILT_H
#define QBPF_TESTS_BUILT_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/image.h"
#include "elf/symbols.h"
#include "elf/unwind.h"
#include "elf/usdt.h"

struct built {
	char dir[64];
	struct elf_image *img;
	struct func_table *funcs;
	struct unwind_table *unwind;
	struct usdt_table *markers;
};

/* `command` is the compiler with its flags, the source is C++ when it is g++ or clang++. Makes an
 * executable, or a library with -shared. */
static inline void built_make(struct built *b, const char *command, const char *source)
{
	char text[512], word[32];
	struct err e = {{0}};
	FILE *f;
	int fd;

	memset(b, 0, sizeof(*b));
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(command, " "), command);
	snprintf(text, sizeof(text), "command -v %s >/dev/null", word);
	if (system(text))
		skip();
	strcpy(b->dir, "/tmp/qbpf-built-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(text, sizeof(text), "%s/a.%s", b->dir, strstr(word, "++") ? "cc" : "c");
	f = fopen(text, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(text, sizeof(text), "%s -w -Iinclude %s/a.* -o %s/out", command, b->dir, b->dir);
	assert_int_equal(system(text), 0);
	snprintf(text, sizeof(text), "%s/out", b->dir);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_image__open(fd, "out", &b->img, &e), 0);
	close(fd);
	assert_int_equal(func_table__read(b->img, &(struct symbols_opts){0}, &b->funcs, &e), 0);
	assert_int_equal(unwind_table__read(b->img, &b->unwind, &e), 0);
	assert_int_equal(usdt_table__read(b->img, &b->markers, &e), 0);
}

static inline void built_free(struct built *b)
{
	char text[128];

	usdt_table__free(b->markers);
	unwind_table__free(b->unwind);
	func_table__free(b->funcs);
	elf_image__free(b->img);
	snprintf(text, sizeof(text), "rm -r %s", b->dir);
	assert_int_equal(system(text), 0);
}

/* The function of this demangled name. */
static inline const struct elf_func *built_func(const struct built *b, const char *name)
{
	for (size_t i = 0; i < b->funcs->n; i++)
		if (!strcmp(func_table__demangled(b->funcs, i), name))
			return &b->funcs->funcs[i];
	fail_msg("no function %s", name);
	return NULL;
}

#endif

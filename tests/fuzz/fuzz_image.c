// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as an ELF file: headers, sections, notes, symbols, .gnu_debugdata, bytes of code. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/symbols.h"
#include "elf/usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

static void check_functions(const struct elf_image *img, const struct func_table *t)
{
	const uint8_t *bytes;
	uint64_t off;

	for (size_t i = 0; i < t->n; i++) {
		const struct elf_func *f = &t->funcs[i];

		check(f->name && *f->name && f->demangled && f->alias_of < t->n);
		check(strlen(f->name) <= 8192);
		if (f->flags & FUNC_IMPORTED) {
			check(!f->addr && !f->off);
			continue;
		}
		check(!i || t->funcs[i - 1].addr <= f->addr);
		check(!elf_image__addr_to_off(img, f->addr, &off) && off == f->off);
		check(t->funcs[f->alias_of].addr == f->addr);
		if (f->size && i < 100)
			check(func_table__find_addr(t, f->addr) != NULL);
		if (i < 20)
			elf_image__bytes(img, f->addr, f->size, &bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* No debug files: what this machine has must not matter. */
	struct symbols_opts opts = {.root = "/nonexistent"};
	struct elf_image *img = NULL;
	struct usdt_table *markers = NULL;
	struct func_table *funcs = NULL;
	const uint8_t *content;
	struct err e;
	size_t len;
	int fd, err;

	/* A file, because libelf takes other ways with memory. */
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	err = elf_image__open(fd, "fuzz", &img, &e);
	close(fd);
	if (err) {
		check(e.text[0] != '\0');
		return 0;
	}
	elf_image__info(img);
	for (int twice = 0; twice < 2; twice++)
		if (!elf_image__section(img, ".debug_line", &content, &len, NULL) && len)
			check(memchr(content, content[len - 1], len) != NULL);
	if (!usdt_table__read(img, &markers, &e)) {
		for (size_t i = 0; i < markers->n; i++) {
			const struct usdt_marker *m = &markers->markers[i];
			struct qbpf_arg out;

			check(*m->provider && *m->name && m->off < size && m->sema_off < size);
			check(m->nargs <= USDT_ARGS_MAX && strlen(m->argstr) < size);
			for (unsigned int j = 0; j < m->nargs; j++) {
				check(!m->args[j].symbol);
				usdt_arg__to_abi(&m->args[j], &out);
			}
		}
	}
	if (!func_table__read(img, &opts, &funcs, &e))
		check_functions(img, funcs);
	func_table__free(funcs);
	usdt_table__free(markers);
	elf_image__free(img);
	return 0;
}

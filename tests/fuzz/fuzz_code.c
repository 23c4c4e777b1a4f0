// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as an ELF file whose code and unwind tables preflight looks at. */
#include <stdint.h>
#include <stdlib.h>

#include "elf/disasm.h"
#include "elf/symbols.h"
#include "elf/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct elf_image *img, const struct unwind_table *unwind, uint64_t addr,
		    uint64_t size)
{
	struct func_facts facts;
	uint64_t start, len;
	unsigned int n;

	insn_classify(img, addr, &n);
	insn_boundary(img, addr, addr + 7);
	if (!func_facts__read(img, addr, size, &facts)) {
		for (unsigned int i = 0; i < facts.nret; i++)
			if (facts.rets[i] - addr >= size)
				abort();
		func_facts__clear(&facts);
	}
	red_zone_possible(img, addr, size, addr + 5);
	if (unwind)
		unwind_table__find(unwind, addr, &start, &len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols_opts opts = {.root = "/nonexistent", .no_demangle = true};
	struct unwind_table *unwind = NULL;
	struct func_table *funcs = NULL;
	struct elf_image *img = NULL;
	struct err e;

	if (elf_image__open_memory(data, size, "fuzz", &img, &e))
		return 0;
	if (unwind_table__read(img, &unwind, &e))
		unwind = NULL;
	if (!func_table__read(img, &opts, &funcs, &e))
		for (size_t i = 0; i < funcs->n && i < 10; i++)
			look_at(img, unwind, funcs->funcs[i].addr, funcs->funcs[i].size);
	look_at(img, unwind, elf_image__headers(img)->entry, 64);
	func_table__free(funcs);
	unwind_table__free(unwind);
	elf_image__free(img);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions of a file: .symtab, .dynsym, .gnu_debugdata, and a separate debug file found by
 * build ID or .gnu_debuglink and accepted only if its build ID (or CRC) matches.
 */
#ifndef QBPF_ELF_SYMBOLS_H
#define QBPF_ELF_SYMBOLS_H

#include "elf/image.h"

enum func_flags {
	FUNC_IFUNC = 1 << 0,	    /* the symbol is a resolver, not the function */
	FUNC_IMPORTED = 1 << 1,	    /* undefined here; addr and off are 0 */
	FUNC_SIZE_GUESSED = 1 << 2, /* st_size was 0; size reaches to the next symbol */
	FUNC_COLD = 1 << 3,	    /* NAME.cold and similar: a part, not a function */
	FUNC_LOCAL = 1 << 4,
};

struct elf_func {
	const char *name; /* raw, without @VERSION */
	/* == name when it is not mangled; full signature for C++. With no_demangle NULL until
	 * func_table__demangled() has been asked. */
	const char *demangled;
	uint64_t addr;
	uint64_t off;
	uint64_t size; /* 0: unknown */
	uint32_t flags;
	uint32_t
	    alias_of; /* index of the preferred name at the same addr; own index if preferred */
};

struct func_table {
	struct elf_func *funcs; /* sorted by addr, imported ones last */
	size_t n;
	const char *source; /* ".symtab", "debug file /...", ".dynsym and .gnu_debugdata", ... */
	void *priv;
};

struct symbols_opts {
	const char *root; /* prefix for debug file look-up ("/proc/PID/root"), NULL: "" */
	bool no_demangle; /* of 100,000 C++ names takes 0.2 s: ask for those that matter */
};

int func_table__read(const struct elf_image *img, const struct symbols_opts *opts,
		     struct func_table **out, struct err *e);
void func_table__free(struct func_table *t);
/* The function that covers addr, or NULL. */
const struct elf_func *func_table__find_addr(const struct func_table *t, uint64_t addr);

/* The demangled name of funcs[i], made on first use and kept. Never NULL. */
const char *func_table__demangled(struct func_table *t, size_t i);

/* Demangles C++ and Rust (both schemes) into a malloc'ed string; NULL: not mangled, or hostile
 * (longer than 8 KiB, or growing beyond 64 KiB). */
char *symbol_demangle(const char *name);

#endif

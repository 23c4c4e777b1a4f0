/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinding facts of a function, from .eh_frame and .gcc_except_table: may an exception
 * pass through it? The image must outlive the table. Not thread-safe per table.
 */
#ifndef QBPF_ELF_UNWIND_H
#define QBPF_ELF_UNWIND_H

#include "elf/image.h"

struct unwind_table;

int unwind_table__read(const struct elf_image *img, struct unwind_table **out, struct err *e);
void unwind_table__free(struct unwind_table *t);

enum unwind_pass {
	UNWIND_UNKNOWN,	 /* no FDE, or undecodable */
	UNWIND_THROUGH,	 /* no LSDA, or call sites with cleanups: an exception can pass */
	UNWIND_NOEXCEPT, /* every call site ends in terminate: nothing can leave it */
};

/*
 * About the FDE around addr alone: nothing leaves a function only if the same holds for each of
 * its parts, and if it has no tail calls.
 *
 * start and size receive the FDE's range (also a second opinion on the symbol's size); untouched
 * when UNWIND_UNKNOWN.
 */
enum unwind_pass unwind_table__find(const struct unwind_table *t, uint64_t addr, uint64_t *start,
				    uint64_t *size);

/*
 * Does the FDE around addr begin inside a frame that is already built (its first row says more
 * than "the return address is at %rsp")? A cold part that the compiler moved away often does, a
 * function never.
 */
bool unwind_table__starts_framed(const struct unwind_table *t, uint64_t addr);

#endif

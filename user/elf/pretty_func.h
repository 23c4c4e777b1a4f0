/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The qualified name in what a compiler says of a function. Used by usdt_func.c alone. */
#ifndef QBPF_ELF_PRETTY_FUNC_H
#define QBPF_ELF_PRETTY_FUNC_H

#include <stddef.h>

/*
 * text is __PRETTY_FUNCTION__ of gcc or clang, or __func__. Writes the function's qualified name
 * alone, the same for both compilers as far as they tell the same: without return type,
 * parameters and specifiers, template arguments of classes as values. text itself when it
 * cannot be understood or the name does not fit; truncated only when text does not fit either.
 */
void pretty_func__name(const char *text, char *out, size_t cap);

#endif

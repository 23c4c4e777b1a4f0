/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* symbol_demangle() for many names of one file, whose failures add up. Used by symbols.c alone. */
#ifndef QBPF_ELF_DEMANGLE_H
#define QBPF_ELF_DEMANGLE_H

#include <stddef.h>

/* Adds to *abandoned the bytes of output that were made and thrown away. */
char *symbol_demangle_counted(const char *name, size_t *abandoned);

#endif

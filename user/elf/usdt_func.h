/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names behind QBPF_FUNC(): .note.qbpf, whose records (include/qbpf/probe.h) say which
 * function, file and line a marker "qbpf_func:L42__begin" stands in. Used by usdt.c alone.
 */
#ifndef QBPF_ELF_USDT_FUNC_H
#define QBPF_ELF_USDT_FUNC_H

#include "elf/usdt.h"

/* Gives the qbpf_func markers of t their func, file, line and a name made of them. */
int usdt_func__name(const struct elf_image *img, struct usdt_table *t);

/* A copy that lives as long as t, and a NUL behind it; NULL: out of memory. */
char *usdt_table__keep(struct usdt_table *t, const void *data, size_t len);

#endif

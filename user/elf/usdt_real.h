/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which arguments are floating point: .note.qbpf, whose records of type 2 (include/qbpf/probe.h)
 * say it of markers whose own notes do not, so that other tools can read them. Used by usdt.c
 * alone.
 */
#ifndef QBPF_ELF_USDT_REAL_H
#define QBPF_ELF_USDT_REAL_H

#include "elf/usdt.h"

/* Sets is_float in the arguments of t that have a record. */
int usdt_real__mark(const struct elf_image *img, struct usdt_table *t);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Symbols that are kept apart from their file: a separate debug file, or the compressed
 * ELF image in .gnu_debugdata. Only local files are looked at; nothing is ever downloaded.
 */
#ifndef QBPF_ELF_DEBUGFILE_H
#define QBPF_ELF_DEBUGFILE_H

#include "elf/image.h"

/*
 * The debug file of img under root (NULL: ""), by build ID or .gnu_debuglink. It is accepted only
 * if its build ID is the same or, where one of them has none, its CRC is the one in the link.
 * Its name is its path. -ENOENT: there is none.
 */
int debugfile__open(const struct elf_image *img, const char *root, struct elf_image **out);

/* .gnu_debugdata, decompressed into malloc'ed *data and opened. -ENOENT: there is none. */
int debugfile__open_embedded(const struct elf_image *img, uint8_t **data, struct elf_image **out);

#endif

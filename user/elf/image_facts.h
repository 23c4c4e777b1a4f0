/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a file's sections, notes and symbol names say about the program's habits: the part of
 * struct elf_info that takes more than the headers. Used by image.c alone.
 */
#ifndef QBPF_ELF_IMAGE_FACTS_H
#define QBPF_ELF_IMAGE_FACTS_H

#include "elf/image.h"

void elf_facts__build_id(const struct elf_image *img, struct elf_info *info);
void elf_facts__read(const struct elf_image *img, struct elf_info *info);
#endif

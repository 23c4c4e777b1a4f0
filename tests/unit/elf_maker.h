/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes small ELF files in memory, right or wrong on purpose: one code segment, one data
 * segment, and sections as the test adds them.
 */
#ifndef QBPF_TESTS_ELF_MAKER_H
#define QBPF_TESTS_ELF_MAKER_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAKER_TEXT_ADDR 0x401000u /* file offset 0x1000 - 0xe00 = 0x200: they differ */
#define MAKER_TEXT_OFF	0x200u
#define MAKER_DATA_ADDR 0x603000u
#define MAKER_DATA_OFF	0x300u
#define MAKER_SIZE	0x100u /* of each segment */
#define MAKER_MAX	24     /* sections */

struct maker {
	uint8_t *data;
	size_t len;
	Elf64_Shdr sh[MAKER_MAX];
	size_t nsh;
	char names[512];
	size_t names_len;
};

static inline void maker_put(struct maker *m, size_t off, const void *data, size_t len)
{
	if (off + len > m->len) {
		m->data = realloc(m->data, off + len);
		memset(m->data + m->len, 0, off + len - m->len);
		m->len = off + len;
	}
	if (len)
		memcpy(m->data + off, data, len);
}

static inline void maker_init(struct maker *m)
{
	Elf64_Phdr ph[2] = {
	    {.p_type = PT_LOAD,
	     .p_flags = PF_R | PF_X,
	     .p_offset = MAKER_TEXT_OFF,
	     .p_vaddr = MAKER_TEXT_ADDR,
	     .p_filesz = MAKER_SIZE,
	     .p_memsz = MAKER_SIZE},
	    {.p_type = PT_LOAD,
	     .p_flags = PF_R | PF_W,
	     .p_offset = MAKER_DATA_OFF,
	     .p_vaddr = MAKER_DATA_ADDR,
	     .p_filesz = MAKER_SIZE,
	     .p_memsz = 2 * MAKER_SIZE},
	};
	uint8_t nops[MAKER_SIZE];

	memset(m, 0, sizeof(*m));
	m->nsh = 1;
	m->names_len = 1;
	memset(nops, 0x90, sizeof(nops));
	maker_put(m, sizeof(Elf64_Ehdr), ph, sizeof(ph));
	maker_put(m, MAKER_TEXT_OFF, nops, sizeof(nops));
	maker_put(m, MAKER_DATA_OFF, nops, sizeof(nops));
}

/* Returns the section's index. */
static inline uint32_t maker_section(struct maker *m, const char *name, uint32_t type,
				     const void *data, size_t len, uint32_t link)
{
	size_t n = strlen(name) + 1, off = (m->len + 7) & ~(size_t)7;
	Elf64_Shdr *sh = &m->sh[m->nsh];

	memcpy(m->names + m->names_len, name, n);
	*sh = (Elf64_Shdr){.sh_name = (uint32_t)m->names_len,
			   .sh_type = type,
			   .sh_offset = off,
			   .sh_size = len,
			   .sh_link = link,
			   .sh_addralign = 1};
	m->names_len += n;
	maker_put(m, off, data, len);
	return (uint32_t)m->nsh++;
}

/* Section headers last; fill in the ELF header. */
static inline Elf64_Ehdr *maker_finish(struct maker *m)
{
	uint32_t str = maker_section(m, ".shstrtab", SHT_STRTAB, "", 0, 0);
	size_t off;
	Elf64_Ehdr eh = {
	    .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_EXEC,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_ehsize = sizeof(eh),
	    .e_phoff = sizeof(eh),
	    .e_phentsize = sizeof(Elf64_Phdr),
	    .e_phnum = 2,
	    .e_shentsize = sizeof(Elf64_Shdr),
	};

	m->sh[str].sh_offset = m->len;
	m->sh[str].sh_size = m->names_len;
	maker_put(m, m->len, m->names, m->names_len);
	off = (m->len + 7) & ~(size_t)7;
	maker_put(m, off, m->sh, m->nsh * sizeof(m->sh[0]));
	eh.e_shoff = off;
	eh.e_shnum = (uint16_t)m->nsh;
	eh.e_shstrndx = (uint16_t)str;
	maker_put(m, 0, &eh, sizeof(eh));
	return (Elf64_Ehdr *)m->data;
}

static inline void maker_free(struct maker *m)
{
	free(m->data);
}

/* Appends a stapsdt note to buf; returns the new length. */
static inline size_t maker_note(uint8_t *buf, size_t at, uint64_t pc, uint64_t base, uint64_t sema,
				const char *provider, const char *name, const char *args)
{
	size_t p = strlen(provider) + 1, n = strlen(name) + 1, a = strlen(args) + 1;
	Elf64_Nhdr nh = {.n_namesz = 8, .n_descsz = (uint32_t)(24 + p + n + a), .n_type = 3};
	uint64_t addrs[3] = {pc, base, sema};
	uint8_t *out = buf + at;

	memcpy(out, &nh, sizeof(nh));
	memcpy(out + 12, "stapsdt", 8);
	memcpy(out + 20, addrs, 24);
	memcpy(out + 44, provider, p);
	memcpy(out + 44 + p, name, n);
	memcpy(out + 44 + p + n, args, a);
	at += 20 + nh.n_descsz;
	while (at & 3)
		buf[at++] = 0;
	return at;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One ELF file of a target, opened once and checked: headers, segments, sections. Everything
 * a hostile file can get wrong is refused here with one line; what comes out of this API is
 * in bounds. Not thread-safe per image; different images are independent.
 *
 * Three kinds of address are never mixed: `addr` is a virtual address in the file's own
 * numbering (st_value), `off` is a file offset (what a uprobe wants), and a run-time address is
 * addr + load bias of a mapping.
 */
#ifndef QBPF_ELF_IMAGE_H
#define QBPF_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define BUILD_ID_MAX 64

enum elf_machine { ELF_OTHER, ELF_X86_64, ELF_AARCH64 };

struct elf_info {
	enum elf_machine machine;
	bool pie;		   /* ET_DYN */
	bool has_interp;	   /* dynamically linked executable */
	bool is_go;		   /* .go.buildinfo, .gopclntab or a Go note: stacks move */
	bool is_rust;		   /* informational */
	bool has_gcc_except;	   /* .gcc_except_table: functions with landing pads */
	bool imports_throw;	   /* imports or defines __cxa_throw, _Unwind_RaiseException */
	bool imports_cancel;	   /* uses pthread_cancel, pthread_exit: forced unwinding */
	bool imports_fork;	   /* imports fork, daemon, clone ..., or cannot be told */
	bool imports_stack_switch; /* swapcontext, makecontext, boost jump_fcontext, ... */
	bool stripped;		   /* no .symtab in this file (func_table.source tells of others) */
	uint64_t entry;		   /* addr */
	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_len; /* 0: none */
	uint64_t size;	     /* of the file */
	/* imported, or linked in statically; also when that cannot be told */
	bool imports_dlopen;	  /* dlopen, dlmopen, dlsym, dlvsym */
	bool imports_sigaltstack; /* sigaltstack */
	bool imports_syscall;	  /* syscall */
	bool has_cuda; /* may define functions of CUDA; false is certain, but of a debug file */
};

struct elf_image;

/* fd is borrowed only for the call (dup it inside). `name` is for messages and reports. */
int elf_image__open(int fd, const char *name, struct elf_image **out, struct err *e);
/* The same of bytes in memory, which must outlive the image; without compressed sections. */
int elf_image__open_memory(const void *data, size_t len, const char *name, struct elf_image **out,
			   struct err *e);
void elf_image__free(struct elf_image *img);

/* The first call scans the symbol names for the imports_ flags and the languages. */
const struct elf_info *elf_image__info(const struct elf_image *img);
/* Adds what the names in its debug file tell: a stripped program hides what is linked in. */
void elf_image__learn(const struct elf_image *img, const struct elf_image *debug_file);
/* The same object without that scan: machine, pie, has_interp, entry, build_id, size. */
const struct elf_info *elf_image__headers(const struct elf_image *img);
/*
 * Looks at all executable bytes for code that changes stacks (%rsp loaded from memory, from a
 * general register other than %rbp, or exchanged) and for system calls that fork, whatever
 * library function they are not made by. May say yes wrongly: instructions are not decoded.
 */
void elf_image__scan_code(const struct elf_image *img, bool *switches_stack, bool *raw_fork);
const char *elf_image__name(const struct elf_image *img);

/* -ENOENT when no loaded segment covers it. */
int elf_image__addr_to_off(const struct elf_image *img, uint64_t addr, uint64_t *off);
int elf_image__off_to_addr(const struct elf_image *img, uint64_t off, uint64_t *addr);
/* True when the address lies in a segment that is mapped executable. */
bool elf_image__addr_is_code(const struct elf_image *img, uint64_t addr);

/* Up to len bytes of the file's content at addr; returns how many are there (0: none, never
 * more than ELF_BYTES_MAX). The pointer lives as long as the image. */
#define ELF_BYTES_MAX (16u << 20)
size_t elf_image__bytes(const struct elf_image *img, uint64_t addr, size_t len,
			const uint8_t **out);
/* Executable bytes at *addr, or the first ones after it, which moves it; 0: none. Not kept. */
size_t elf_image__read_code(const struct elf_image *img, uint64_t *addr, void *buf, size_t len);
/* A section by name, content decompressed and bounded; -ENOENT. addr may be NULL. */
int elf_image__section(const struct elf_image *img, const char *name, const uint8_t **data,
		       size_t *len, uint64_t *addr);

/* One section header, checked: type, link and so on as in Elf64_Shdr. */
struct elf_section {
	const char *name; /* "" when it has none */
	uint32_t index, type, link;
	uint64_t flags, addr, size, entsize;
};

/* The first section after index `after` (0: from the start) with this name (NULL: any) and type
 * (0: any); -ENOENT. */
int elf_image__next_section(const struct elf_image *img, uint32_t after, const char *name,
			    uint32_t type, struct elf_section *out);
int elf_image__section_header(const struct elf_image *img, uint32_t index, struct elf_section *out);
/* Its content, decompressed and bounded. */
int elf_image__section_data(const struct elf_image *img, const struct elf_section *sec,
			    const uint8_t **data, size_t *len);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT notes (.note.stapsdt): which markers a file has, where their sites and semaphores are,
 * where their arguments lie.
 */
#ifndef QBPF_ELF_USDT_H
#define QBPF_ELF_USDT_H

#include "elf/image.h"
#include "elf/usdt_arg.h"

#define USDT_ARGS_MAX	   12
#define QBPF_FUNC_PROVIDER "qbpf_func" /* of the markers that QBPF_FUNC() places */

struct usdt_marker {
	const char *provider; /* owned by the image's marker table */
	const char *name;
	const char *argstr; /* as in the note */
	uint64_t addr;	    /* of the site, corrected for prelink (.stapsdt.base) */
	uint64_t off;	    /* file offset of the site */
	uint64_t sema_off;  /* file offset of the 16-bit semaphore, 0: none */
	unsigned int nargs;
	struct usdt_arg args[USDT_ARGS_MAX];
	/*
	 * QBPF_FUNC() sites (provider "qbpf_func", records in .note.qbpf, see qbpf/probe.h): what
	 * the record says of this site. `name` is then FUNCTION__begin or FUNCTION__end, where
	 * FUNCTION is func without return type and parameters. NULL and 0 for any other marker.
	 */
	const char *func; /* as the compiler spells it: __PRETTY_FUNCTION__ or __func__ */
	const char *file;
	unsigned int line;
};

struct usdt_table {
	struct usdt_marker *markers;
	size_t n;
	size_t bad; /* notes that could not be used (truncated, address in no segment) */
	void *priv;
};

/* A file without notes gives n = 0 and success. */
int usdt_table__read(const struct elf_image *img, struct usdt_table **out, struct err *e);
void usdt_table__free(struct usdt_table *t);

#endif

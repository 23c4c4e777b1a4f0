/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What injection must know of a process: its functions, room for code, whose each address is. */
#ifndef QBPF_TRACE_INJECT_SITE_H
#define QBPF_TRACE_INJECT_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/maps.h"
#include "trace/inject_stub.h"

/* Who owns a piece of code. */
enum code_owner {
	CODE_OTHER,	/* the program's */
	CODE_LIBC,	/* the C library, its threads, its dl */
	CODE_LDSO,	/* the dynamic linker */
	CODE_ALLOCATOR, /* an allocator's library */
	CODE_MIXED,	/* a program with an allocator linked in */
	CODE_VDSO,	/* the kernel's, which reads clocks */
	CODE_UNKNOWN,	/* of no file */
};

struct inject_symbol {
	uint64_t start, end; /* run-time addresses */
	const char *name;
};

struct inject_object {
	const struct map_object *map;
	enum code_owner owner;
	struct inject_symbol *symbols; /* exported functions; of CODE_LIBC only */
	size_t nsymbols;
	struct elf_image *img;
	bool stays; /* the program cannot unload it */
};

struct inject_site {
	pid_t pid;
	pid_t task; /* a thread that lives: the first may have ended */
	int mem;    /* /proc/PID/mem: of the program that runs now, and of no later one; or -1 */
	struct proc_maps *maps;
	struct inject_object *objects;
	struct inject_consts consts; /* but for `back` */
	uint64_t vdso_start, vdso_end;
	uint64_t cave;	 /* room for INJECT_STUB_BYTES of code */
	bool has_cuda;	 /* a libcuda or libcudart is mapped */
	char loaded[64]; /* the agent is mapped already: its soname */
};

/* Refuses, with the reason, what cannot be had at all. */
int inject_site__read(pid_t pid, struct inject_site **out, struct err *e);
void inject_site__free(struct inject_site *s);

/* Has the process ended, or started another program, since? */
bool inject_site__is_gone(const struct inject_site *s);

enum code_owner inject_site__owner(const struct inject_site *s, uint64_t addr);
/* The exported function of the C library around an address; NULL: none is known. */
const char *inject_site__libc_name(const struct inject_site *s, uint64_t addr);
/* The object an address is in, or NULL. */
const struct inject_object *inject_site__object(const struct inject_site *s, uint64_t addr);

#endif

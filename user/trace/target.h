/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The target of a session: its processes and every object (executable, library) that they
 * map, opened and read once however many processes share it. Also what preflight must know
 * about the processes themselves.
 */
#ifndef QBPF_TRACE_TARGET_H
#define QBPF_TRACE_TARGET_H

#include <sys/types.h>

#include "elf/maps.h"
#include "plan/plan.h"

struct target_object {
	char *path;
	uint64_t dev, ino;
	int fd; /* of the mapped inode; what links are attached by */
	bool is_exe, is_ldso, is_libc;
	bool deleted;
	struct elf_image *img; /* NULL after target__drop_images() */
	struct usdt_table *markers;
	struct func_table *funcs;
	struct unwind_table *unwind;
	bool funcs_read, unwind_read;
	char *unusable; /* why it could not be opened or read; owned; NULL: fine */
	/* What it could do to a probe, kept when images are dropped; `scanned`: found out. */
	bool scanned;
	bool imports_throw, imports_cancel, imports_fork, stack_switch, signal_stack, is_go,
	    has_cuda;
};

/* Code of an object in a process; kept when the process has ended. */
struct target_range {
	pid_t pid;
	uint32_t object;
	uint64_t start, end; /* run-time addresses */
	uint64_t off;	     /* file offset of start */
};

struct target {
	pid_t *pids;
	size_t npids;
	char comm[32]; /* of the first */
	char *exe;
	struct target_object *objects;
	struct plan_object *plan_objects; /* the same, as plan/ sees them */
	size_t nobjects;
	struct target_range *ranges; /* as of the last target__refresh() */
	size_t nranges;
};

struct target *target__new(void);
void target__free(struct target *t);

/* Adds a process: -ESRCH, -EACCES ... with e. Its objects come with target__refresh. */
int target__add_pid(struct target *t, pid_t pid, struct err *e);
void target__remove_pid(struct target *t, pid_t pid);

/* A file as the only object: `qbpf list FILE`. */
int target__add_file(struct target *t, const char *path, struct err *e);

/*
 * Reads the maps of every process again and appends objects not yet known: the new ones are
 * objects[old nobjects ..). A process that has ended meanwhile is skipped (-ESRCH only when
 * all have).
 */
int target__refresh(struct target *t, struct err *e);

/* Reads functions and unwinding facts of objects[from ..) as far as `want` says. An object
 * that cannot be read is marked unusable, not fatal. */
enum target_want { TARGET_MARKERS = 1, TARGET_FUNCS = 2, TARGET_UNWIND = 4 };
int target__read(struct target *t, size_t from, unsigned int want, struct err *e);
int target__read_one(struct target *t, size_t index, unsigned int want, struct err *e);

/* Which object's code lies at a run-time address of a process, and where in the file. -ENOENT. */
int target__find(const struct target *t, pid_t pid, uint64_t addr, uint32_t *object, uint64_t *off);

/* Frees what only planning needs, keeping descriptors. */
void target__drop_images(struct target *t);

void target__facts(const struct target *t, struct plan_process *out);

/* True while the process exists and is no zombie. */
bool pid_is_alive(pid_t pid);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a live process maps: the objects behind /proc/PID/maps, each opened by the very inode
 * that is mapped (map_files), never by a path that may since have been replaced.
 */
#ifndef QBPF_ELF_MAPS_H
#define QBPF_ELF_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"

struct map_range {
	uint64_t start, end; /* run-time addresses */
	uint64_t off;	     /* file offset of start */
	bool exec, write;
};

struct map_object {
	char *path; /* as the target sees it, without " (deleted)" */
	bool deleted;
	bool is_exe;  /* /proc/PID/exe */
	bool is_ldso; /* the program interpreter */
	uint64_t dev, ino;
	int fd; /* O_RDONLY of the mapped inode; -1 when it could not be opened */
	/* Why not. EXDEV with an fd: only its inode number is known to be that of the mapped file,
	 * because btrfs gives mappings another device number than stat(), and the target's memory
	 * could not be read to compare. Such a file must prove its build ID or not be used. */
	int open_errno;
	struct map_range *ranges;
	size_t nranges;
};

struct proc_maps {
	struct map_object *objects; /* only objects with at least one executable mapping */
	size_t n;
};

/* -ESRCH: no such process; -EACCES; -ENOENT with e: no user memory (kernel thread, zombie). */
int proc_maps__read(pid_t pid, struct proc_maps **out, struct err *e);
void proc_maps__free(struct proc_maps *m);

/* The two halves of it, for tests. Parses the text of a maps file; fds stay -1. */
int proc_maps__parse(const char *text, size_t len, struct proc_maps **out);
/* Opens the objects of what was parsed; proc is "/proc/PID". */
void proc_maps__open(struct proc_maps *m, const char *proc);

#endif

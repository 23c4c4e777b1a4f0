/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that commands write: whole under their name or not at all, and never over what the
 * command reads or writes besides.
 */
#ifndef QBPF_CMD_OUTFILE_H
#define QBPF_CMD_OUTFILE_H

#include <stdio.h>

#include "err.h"

/* An output as an option has named it. */
struct outname {
	const char *option; /* NULL: it was not asked for */
	const char *path;   /* NULL: stdout */
};

struct outfile {
	FILE *f;
	char *path, *temp; /* temp NULL: written in place */
};

/* "-" and no argument are stdout. -EINVAL with e: an empty name. */
int outname__parse(const char *option, const char *arg, struct outname *out, struct err *e);
/* -EINVAL with e: two outputs are one file, or both on stdout, or one is an input. NULL inputs and
 * "-" are none. */
int outname__apart(const struct outname *outs, size_t nouts, const char *const *ins, size_t nins,
		   struct err *e);

/*
 * A regular file is written under another name beside the one that is wanted, and renamed when it is
 * whole. What is none (a pipe, /dev/null) is written to as it is, and so is a file in a folder that
 * takes no new ones. path NULL: stdout.
 */
int outfile__open(struct outfile *o, const char *path, struct err *e);
/* `err`: what writing has given, with e. Nothing is left when it failed. */
int outfile__close(struct outfile *o, int err, struct err *e);
/* All of it: open, write(f, what), close. A reader of stdout that went away is no fault. Never -EINVAL,
 * which is a usage error. */
int outfile__write(const char *path, int (*write)(FILE *f, const void *what), const void *what,
		   struct err *e);
/* SIGINT, SIGTERM and SIGHUP take an unfinished file away before they end the program. */
void outfile__catch_signals(void);

#endif

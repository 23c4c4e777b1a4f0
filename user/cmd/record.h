/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* -o FILE: where the recording goes, and what is made of it at the end. */
#ifndef QBPF_CMD_RECORD_H
#define QBPF_CMD_RECORD_H

#include "cmd/options.h"

struct record {
	const struct options *o;
	char *partial; /* the recording of which `output` will be made; NULL: it is output itself */
	char *command;
};

/* -EINVAL with e: the name is one of a kind of file that attach does not write. */
int record__check_name(const char *path, struct err *e);
/* Fills opts->record from the options; argv is the command's own. Owned by r. */
int record__open(struct record *r, const struct options *o, int argc, char **argv,
		 struct record_opts *out, struct err *e);
/* Makes what was asked for of a recording that is complete. */
int record__convert(struct record *r, struct err *e);
void record__clear(struct record *r);

#endif

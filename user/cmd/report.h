/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a session's figures go: JSON or the plain report, on stdout or in a file. A reader that
 * went away (EPIPE) is no fault: `gone` is set and the command ends quietly.
 */
#ifndef QBPF_CMD_REPORT_H
#define QBPF_CMD_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/options.h"
#include "model/snapshot.h"

struct report {
	const struct options *o;
	FILE *json; /* NULL: no JSON */
	bool fresh; /* nothing is written yet: what an older document had is still there */
	bool made;  /* the file was not there before */
	bool gone;
};

/* Before anything is armed: a named pipe waits here for its reader. */
int report__open(struct report *r, const struct options *o, struct err *e);
/* SIGUSR1, or one interval: JSON is a line, the plain report is short. */
int report__interim(struct report *r, const struct snapshot *s, struct err *e);
int report__final(struct report *r, const struct snapshot *s, struct err *e);
int report__close(struct report *r, struct err *e);
/*
 * A terminal's own width; of a file or a pipe what COLUMNS asks for, else 0: whoever reads it
 * later can scroll, and a cut name cannot be had back.
 */
unsigned int report__width(void);

#endif

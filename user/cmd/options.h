/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options of attach, run and list: one table drives parsing and help.
 */
#ifndef QBPF_CMD_OPTIONS_H
#define QBPF_CMD_OPTIONS_H

#include <sys/types.h>

#include "plan/plan.h"
#include "trace/record_opts.h"

enum opt_command { OPT_ATTACH = 1 << 0, OPT_RUN = 1 << 1, OPT_LIST = 1 << 2 };

struct options {
	pid_t *pids;
	size_t npids;
	struct plan_opts plan;
	bool follow, wait, plain, quiet;
	int verbose;
	double duration_s; /* 0: until the target ends or SIGINT */
	double interval_s; /* 0: not given */
	double max_overhead_pct;
	bool json;
	const char *json_file; /* NULL: stdout */
	const char *output;    /* -o, as given; record.path is where the recording itself goes */
	struct record_opts record;
	struct slow_rule *slow; /* record.slow */
	char **rest;		/* FILE, or CMD ARG... */
	int nrest;
	bool help;
};

/* 0, or -EINVAL after having printed what is wrong. */
int options__parse(struct options *o, enum opt_command cmd, int argc, char **argv);
void options__clear(struct options *o);
void options__help(enum opt_command cmd);

#endif

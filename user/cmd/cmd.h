/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subcommands. Each takes its own argv (argv[0] is its name) and returns the exit code. */
#ifndef QBPF_CMD_CMD_H
#define QBPF_CMD_CMD_H

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_BROKEN = 3,  /* check: a rule is broken */
	EXIT_TOO_FEW = 4, /* check: none is, but some have too few samples */
};

int cmd_attach(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_check(int argc, char **argv);

#endif

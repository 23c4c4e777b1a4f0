// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command table. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "log.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
    {"attach", cmd_attach, "trace a running process"},
    {"run", cmd_run, "start a program and trace it from its first instruction"},
    {"report", cmd_report, "what a recording says: exact percentiles, where the time goes"},
    {"export", cmd_export, "a trace in the formats of other tools"},
    {"list", cmd_list, "what can be probed in a process or a file, and what it costs"},
    {"diff", cmd_diff, "what changed between two recordings"},
    {"check", cmd_check, "hold a recording against a budget, for CI"},
    {"doctor", cmd_doctor, "what this host can do, what it lacks, and what to do about it"},
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *f)
{
	fprintf(f, "usage: qbpf COMMAND [OPTION...]\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(f, "  %-8s  %s\n", commands[i].name, commands[i].help);
	fprintf(f, "\nqbpf COMMAND --help lists its options.\n");
}

/*
 * A closed descriptor 0, 1 or 2 would be taken by the next file that is opened. Whether stdout is
 * usable is the command's business, which finds /dev/full or a closed pipe the same way.
 */
static int claim_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (fd == STDOUT_FILENO) {
			fprintf(stderr, "qbpf: stdout is closed: there is nowhere to report to\n");
			return -EBADF;
		}
		if (open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			return -EBADF;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (claim_standard_fds())
		return EXIT_FAILED;
	setlocale(LC_CTYPE, ""); /* numbers look the same everywhere */
	/* Both are errors of a write, too, which say where. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		printf("qbpf %s\n", QBPF_VERSION);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	log_err("unknown command %s (see qbpf --help)", argv[1]);
	return EXIT_USAGE;
}

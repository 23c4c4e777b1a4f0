// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf run: start a program and trace it from its first instruction. */
#include <sys/wait.h>

#include "clock.h"
#include "cmd/cmd.h"
#include "cmd/cuda.h"
#include "cmd/record.h"
#include "cmd/watch.h"
#include "log.h"

/* The child's status as a shell passes it on. */
static int exit_code_of(int status)
{
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_OK;
}

int cmd_run(int argc, char **argv)
{
	struct session_opts so;
	struct launch *launch = NULL;
	struct cuda cuda = {0};
	struct session *s = NULL;
	struct record record = {0};
	struct report report;
	struct options o;
	struct err e = {{0}};
	uint64_t start_ns = now_ns();
	int err, status = 0;
	pid_t pid;

	if (options__parse(&o, OPT_RUN, argc, argv)) {
		options__clear(&o);
		return EXIT_USAGE;
	}
	if (o.help) {
		options__help(OPT_RUN);
		options__clear(&o);
		return EXIT_OK;
	}
	err = report__open(&report, &o, &e);
	if (!err)
		err = watch__block_signals(&e);
	if (err)
		goto out;
	err = cuda__for_run(&o, &cuda, &e);
	if (err)
		goto out;
	err = launch__start(o.rest, &launch, &e);
	if (cuda.agents)
		agents__child_started(cuda.agents);
	if (err)
		goto out;
	pid = launch__pid(launch);
	watch__session_opts(&o, &so);
	err = record__open(&record, &o, argc, argv, &so.record, &e);
	if (err)
		goto out;
	so.pids = &pid;
	so.npids = 1;
	so.starting = true;
	cuda__session_opts(&cuda, &so);
	err = session__new(&so, &s, &e);
	if (err)
		goto out;
	err = watch__prepare(s, &o, true, &e);
	if (err)
		goto out;
	err = watch__loop(s, &o, &report, launch, &status, start_ns, &e);
	if (!err)
		err = record__convert(&record, &e);
	if (!err)
		err = cuda__finish(&o, cuda.agents, &e);
out:
	if (err) {
		log_err("%s", e.text);
		launch__kill(launch);
	}
	report__close(&report, &e);
	session__free(s);
	cuda__clear(&cuda);
	launch__free(launch);
	record__clear(&record);
	options__clear(&o);
	return err ? EXIT_FAILED : exit_code_of(status);
}

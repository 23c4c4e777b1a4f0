// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf attach: trace a running process. */
#include "clock.h"
#include "cmd/cmd.h"
#include "cmd/cuda.h"
#include "cmd/record.h"
#include "cmd/watch.h"
#include "log.h"

int cmd_attach(int argc, char **argv)
{
	struct session_opts so;
	struct session *s = NULL;
	struct cuda cuda = {0};
	struct record record = {0};
	struct report report;
	struct options o;
	struct err e = {{0}};
	uint64_t start_ns = now_ns();
	int err;

	if (options__parse(&o, OPT_ATTACH, argc, argv)) {
		options__clear(&o);
		return EXIT_USAGE;
	}
	if (o.help) {
		options__help(OPT_ATTACH);
		options__clear(&o);
		return EXIT_OK;
	}
	err = report__open(&report, &o, &e);
	if (!err)
		err = watch__block_signals(&e);
	if (err)
		goto out;
	watch__session_opts(&o, &so);
	err = record__open(&record, &o, argc, argv, &so.record, &e);
	if (err)
		goto out;
	err = cuda__for_attach(&o, &cuda, &e);
	if (err)
		goto out;
	cuda__session_opts(&cuda, &so);
	err = session__new(&so, &s, &e);
	if (err)
		goto out;
	err = cuda__attach(&o, cuda.agents, &e);
	if (err)
		goto out;
	err = watch__prepare(s, &o, o.wait, &e);
	if (err)
		goto out;
	err = watch__loop(s, &o, &report, NULL, NULL, start_ns, &e);
	if (!err)
		err = record__convert(&record, &e);
	if (!err)
		err = cuda__finish(&o, cuda.agents, &e);
out:
	if (err)
		log_err("%s", e.text);
	report__close(&report, &e);
	session__free(s);
	cuda__clear(&cuda);
	record__clear(&record);
	options__clear(&o);
	return err ? EXIT_FAILED : EXIT_OK;
}

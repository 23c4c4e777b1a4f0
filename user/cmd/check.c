// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf check: hold a recording against a budget, for CI. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/compare.h"
#include "cmd/outfile.h"
#include "log.h"
#include "out/check.h"
#include "out/text.h"

struct check_args {
	struct budget budget;
	const char *baseline, *recording;
	struct outname json, junit;
	double confidence;
	bool strict;
};

static const char help[] =
    "usage: qbpf check (TRACE | SUMMARY.json) (--budget FILE | RULE)... [OPTION...]\n"
    "\n"
    "Holds a recording, or the JSON document of attach, run or report, against rules:\n"
    "  'strategy:on_tick p99 < 50us'  'strategy:on_tick/alpha share < 30%'  '* lost == 0'\n"
    "  'order:* p99.9 < baseline * 1.05 + 2us'\n"
    "\n"
    "  -b, --budget FILE        rules, one a line; # begins a comment\n"
    "  -B, --baseline FILE      what `baseline` in a rule refers to: a trace or a summary\n"
    "  -c, --confidence PCT     of the intervals (default 99)\n"
    "      --strict             a rule holds only when the whole interval keeps it\n"
    "      --junit FILE         write JUnit XML, for CI systems\n"
    "      --json[=FILE]        a JSON document, on stdout or in FILE\n"
    "  -h, --help               this text\n"
    "\n"
    "Exit status: 0 all rules hold; 3 one is broken; 4 none is, but some have too few samples;\n"
    "1 the recording cannot be read; 2 a rule or an option is wrong. See qbpf-check(1).\n";

enum { CODE_STRICT = 256, CODE_JUNIT, CODE_JSON };

static const struct option options[] = {
    {"budget", required_argument, NULL, 'b'},
    {"baseline", required_argument, NULL, 'B'},
    {"confidence", required_argument, NULL, 'c'},
    {"strict", no_argument, NULL, CODE_STRICT},
    {"junit", required_argument, NULL, CODE_JUNIT},
    {"json", optional_argument, NULL, CODE_JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* No output goes over another, or over what is read. */
static int apart(const struct check_args *a, struct err *e)
{
	const struct outname outs[] = {a->json, a->junit};
	const char **ins = calloc(a->budget.n + 2, sizeof(*ins));
	int err;

	if (!ins)
		return err_set(e, -ENOMEM, "out of memory");
	ins[0] = a->recording;
	ins[1] = a->baseline;
	for (size_t i = 0; i < a->budget.n; i++)
		ins[i + 2] = a->budget.rules[i].file;
	err = outname__apart(outs, 2, ins, a->budget.n + 2, e);
	free(ins);
	return err;
}

/* 0; 1: help was asked for; -EINVAL: a usage error, told; else a failure, told. */
static int parse(struct check_args *a, int argc, char **argv)
{
	struct err e = {{0}};
	int c, err = 0;

	optind = 0;
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, ":b:B:c:h", options, NULL)) != -1) {
		if (c == 'b')
			err = budget__read(&a->budget, optarg, &e);
		else if (c == 'B')
			a->baseline = optarg;
		else if (c == 'c')
			err = compare__confidence(optarg, &a->confidence, &e);
		else if (c == CODE_STRICT)
			a->strict = true;
		else if (c == CODE_JUNIT)
			err = outname__parse("--junit", optarg, &a->junit, &e);
		else if (c == CODE_JSON)
			err = outname__parse("--json", optarg, &a->json, &e);
		else if (c == 'h')
			return 1;
		else
			return compare__bad_option("check", argv[optind - 1], c);
	}
	if (!err && optind == argc)
		err = err_set(&e, -EINVAL, "which recording? (see qbpf check --help)");
	if (!err)
		a->recording = argv[optind++];
	for (; !err && optind < argc; optind++)
		err = budget__add(&a->budget, argv[optind], &e);
	if (!err && !a->budget.n)
		err = err_set(&e, -EINVAL, "no rules: give --budget FILE or 'SPAN FIGURE < LIMIT'");
	if (!err && budget__needs_baseline(&a->budget) && !a->baseline)
		err = err_set(&e, -EINVAL, "a rule refers to a baseline: give --baseline FILE");
	if (!err && a->baseline && !strcmp(a->baseline, "-") && !strcmp(a->recording, "-"))
		err = err_set(&e, -EINVAL, "only one of recording and baseline can be stdin");
	if (!err)
		err = apart(a, &e);
	if (err)
		compare__fault(&e);
	return err;
}

static int load(const struct check_args *a, const char *path, struct side **out, struct err *e)
{
	double extra[SIDE_Q_MAX - SIDE_QUANTILES];
	const size_t max = sizeof(extra) / sizeof(*extra);
	size_t n = budget__quantiles(&a->budget, extra, max);

	if (n > max)
		return err_set(e, -EINVAL,
			       "the rules ask for %zu percentiles beside the usual five; at most "
			       "%zu are possible",
			       n, max);
	return compare__load(path, extra, n, out, e);
}

static int write_text(FILE *f, const void *check)
{
	return check__write(f, check, text__utf8());
}

static int write_json(FILE *f, const void *check)
{
	return check__write_json(f, check);
}

static int write_junit(FILE *f, const void *check)
{
	return check__write_junit(f, check);
}

static bool on_stdout(const struct outname *o)
{
	return o->option && !o->path;
}

static int check(const struct check_args *a, enum exit_code *code, struct err *e)
{
	struct check_opts o = {.confidence = a->confidence, .strict = a->strict};
	struct side *side = NULL, *baseline = NULL;
	struct check *c = NULL;
	int err = load(a, a->recording, &side, e);

	if (!err && a->baseline)
		err = load(a, a->baseline, &baseline, e);
	if (err)
		goto out;
	o.baseline = baseline;
	err = check__run(&a->budget, side, &o, &c, e);
	/* The files first: they are there even when nobody reads stdout. */
	if (!err && a->junit.option)
		err = outfile__write(a->junit.path, write_junit, c, e);
	if (!err && a->json.option)
		err = outfile__write(a->json.path, write_json, c, e);
	if (!err && !on_stdout(&a->json) && !on_stdout(&a->junit))
		err = outfile__write(NULL, write_text, c, e);
	if (!err)
		*code = c->counts[CHECK_BROKEN]	   ? EXIT_BROKEN
			: c->counts[CHECK_TOO_FEW] ? EXIT_TOO_FEW
						   : EXIT_OK;
out:
	check__free(c);
	side__free(baseline);
	side__free(side);
	return err;
}

int cmd_check(int argc, char **argv)
{
	struct check_args a = {.confidence = 0.99};
	enum exit_code code = EXIT_OK;
	struct err e = {{0}};
	int err = parse(&a, argc, argv);

	if (err == 1) {
		fputs(help, stdout);
		code = EXIT_OK;
	} else if (!err) {
		outfile__catch_signals();
		err = check(&a, &code, &e);
		if (err)
			compare__fault(&e);
	}
	if (err < 0)
		code = err == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	budget__clear(&a.budget);
	return code;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf diff: what changed between two recordings. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/compare.h"
#include "cmd/outfile.h"
#include "out/diff.h"
#include "out/text.h"

struct diff_args {
	const char *old, *new;
	struct outname json;
	struct diff_opts opts;
	bool all;
};

/* What write_text() needs to know. */
struct shown {
	const struct diff *diff;
	bool all;
};

static const char help[] =
    "usage: qbpf diff OLD NEW [OPTION...]\n"
    "\n"
    "Compares two recordings (traces, or JSON documents of attach, run or report), by span and by\n"
    "place in the call tree, and tells changes that chance does not explain.\n"
    "\n"
    "  -a, --all                what did not change, too\n"
    "  -c, --confidence PCT     of the intervals and verdicts (default 99)\n"
    "  -m, --min-change PCT     smaller changes are \"same\" (default 2)\n"
    "      --json[=FILE]        a JSON document, on stdout or in FILE\n"
    "  -h, --help               this text\n"
    "\n"
    "Exit status: 0 whatever changed (qbpf check is the gate); 1 failed; 2 usage.\n";

static const struct option options[] = {
    {"all", no_argument, NULL, 'a'},
    {"confidence", required_argument, NULL, 'c'},
    {"min-change", required_argument, NULL, 'm'},
    {"json", optional_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_change(const char *text, double *out, struct err *e)
{
	char *end;
	double pct = strtod(text, &end);

	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(pct >= 0 && pct <= 1e6))
		return err_set(e, -EINVAL, "--min-change %.40s: not a percentage", text);
	*out = pct / 100;
	return 0;
}

/* 0; 1: help was asked for; -EINVAL: a usage error, told. */
static int parse(struct diff_args *a, int argc, char **argv)
{
	struct err e = {{0}};
	int c, err = 0;

	optind = 0;
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, ":ac:m:h", options, NULL)) != -1) {
		if (c == 'a')
			a->all = true;
		else if (c == 'c')
			err = compare__confidence(optarg, &a->opts.confidence, &e);
		else if (c == 'm')
			err = parse_change(optarg, &a->opts.min_change, &e);
		else if (c == 'j')
			err = outname__parse("--json", optarg, &a->json, &e);
		else if (c == 'h')
			return 1;
		else
			return compare__bad_option("diff", argv[optind - 1], c);
	}
	if (!err && argc - optind != 2)
		err = err_set(&e, -EINVAL, "two recordings, OLD and NEW (see qbpf diff --help)");
	if (!err) {
		a->old = argv[optind];
		a->new = argv[optind + 1];
		if (!strcmp(a->old, "-") && !strcmp(a->new, "-"))
			err = err_set(&e, -EINVAL, "only one of the recordings can be stdin");
	}
	if (!err)
		err = outname__apart(&a->json, 1, (const char *[]){a->old, a->new}, 2, &e);
	if (err)
		compare__fault(&e);
	return err;
}

static int write_text(FILE *f, const void *what)
{
	const struct shown *s = what;

	return diff__write(f, s->diff, s->all, text__utf8());
}

static int write_json(FILE *f, const void *what)
{
	const struct shown *s = what;

	return diff__write_json(f, s->diff);
}

static int diff(const struct diff_args *a, struct err *e)
{
	struct side *old = NULL, *new = NULL;
	struct diff *d = NULL;
	struct shown shown;
	int err = compare__load(a->old, NULL, 0, &old, e);

	if (!err)
		err = compare__load(a->new, NULL, 0, &new, e);
	if (err)
		goto out;
	err = diff__new(old, new, &a->opts, &d);
	if (err) {
		err_set(e, err, "out of memory");
		goto out;
	}
	shown = (struct shown){d, a->all};
	if (a->json.option)
		err = outfile__write(a->json.path, write_json, &shown, e);
	if (!err && !(a->json.option && !a->json.path))
		err = outfile__write(NULL, write_text, &shown, e);
out:
	diff__free(d);
	side__free(old);
	side__free(new);
	return err;
}

int cmd_diff(int argc, char **argv)
{
	struct diff_args a = {.opts = {.confidence = 0.99, .min_change = 0.02}};
	struct err e = {{0}};
	int err = parse(&a, argc, argv);

	if (err == 1) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (err)
		return EXIT_USAGE;
	outfile__catch_signals();
	err = diff(&a, &e);
	if (err)
		compare__fault(&e);
	return err ? EXIT_FAILED : EXIT_OK;
}

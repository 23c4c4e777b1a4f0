// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf report: what a recording says, as text, as a document, or as a page. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/compare.h"
#include "cmd/outfile.h"
#include "cmd/report.h"
#include "log.h"
#include "out/html.h"
#include "out/report.h"
#include "plan/near.h"
#include "plan/span_name.h"

#define LIMIT	     40	  /* rows of a table */
#define HOT	     0.05 /* of the traced time */
#define WINDOWS	     100
#define HTML_SLOWEST 50 /* whole trees on the page's timeline */
#define TREE_MAX     20000
#define GPU_MOST     4000 /* of what the GPU did beside one of them */

struct report_args {
	struct report_opts report;
	struct outname json, html;
	const char *root;
};

static const char help[] =
    "usage: qbpf report TRACE [OPTION...]\n"
    "\n"
    "      --span NAME      this span only: callers, callees, distribution, over time\n"
    "      --threads        the call tree of each thread\n"
    "      --root NAME      critical paths of this span (default: the outermost span with\n"
    "                       most time)\n"
    "      --hot PCT        hot spots have so much of the traced time for themselves\n"
    "                       (default 5)\n"
    "      --limit N        rows of one table (default 40; 0: all)\n"
    "      --json[=FILE]    the summary document, on stdout or in FILE, in place of the text\n"
    "      --html[=FILE]    one self-contained page, the same\n"
    "  -h, --help           this text\n"
    "\n"
    "Exit status: 0; 1 the trace cannot be read; 2 usage. See qbpf-report(1).\n";

enum { CODE_SPAN = 256, CODE_THREADS, CODE_ROOT, CODE_HOT, CODE_LIMIT, CODE_JSON, CODE_HTML };

static const struct option options[] = {
    {"span", required_argument, NULL, CODE_SPAN},
    {"threads", no_argument, NULL, CODE_THREADS},
    {"root", required_argument, NULL, CODE_ROOT},
    {"hot", required_argument, NULL, CODE_HOT},
    {"limit", required_argument, NULL, CODE_LIMIT},
    {"json", optional_argument, NULL, CODE_JSON},
    {"html", optional_argument, NULL, CODE_HTML},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int parse_hot(const char *text, double *out)
{
	char *end;
	double pct = strtod(text, &end);

	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(pct >= 0 && pct <= 100)) {
		log_err("--hot %s: not between 0 and 100 (percent)", text);
		return -EINVAL;
	}
	*out = pct / 100;
	return 0;
}

static int parse_limit(const char *text, size_t *out)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno) {
		log_err("--limit %s: not a number of rows", text);
		return -EINVAL;
	}
	*out = n;
	return 0;
}

static int take_output(const char *option, struct outname *out)
{
	struct err e = {{0}};
	int err = outname__parse(option, optarg, out, &e);

	if (err)
		log_err("%s", e.text);
	return err;
}

static int take_option(struct report_args *a, int code)
{
	switch (code) {
	case CODE_SPAN:
		a->report.span = optarg;
		return 0;
	case CODE_THREADS:
		a->report.threads = true;
		return 0;
	case CODE_ROOT:
		a->root = optarg;
		return 0;
	case CODE_HOT:
		return parse_hot(optarg, &a->report.hot);
	case CODE_LIMIT:
		return parse_limit(optarg, &a->report.limit);
	case CODE_JSON:
		return take_output("--json", &a->json);
	case CODE_HTML:
		return take_output("--html", &a->html);
	default:
		return 1; /* help */
	}
}

/* 0; 1: help was asked for; -EINVAL: a usage error, told. */
static int parse(struct report_args *a, int argc, char **argv)
{
	struct err e = {{0}};
	int c, err;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return compare__bad_option("report", argv[optind - 1], c);
		err = take_option(a, c);
		if (err)
			return err;
	}
	if (optind + 1 != argc) {
		log_err(optind == argc ? "which trace? (see qbpf report --help)"
				       : "one trace at a time (see qbpf report --help)");
		return -EINVAL;
	}
	a->report.path = argv[optind];
	err = outname__apart((struct outname[]){a->json, a->html}, 2, &a->report.path, 1, &e);
	if (err)
		log_err("%s", e.text);
	return err;
}

struct job {
	const struct report_args *args;
	const struct analysis *a;
};

static int write_text(FILE *f, const void *what)
{
	const struct job *j = what;
	int err;

	errno = 0;
	err = report__write(f, j->a, &j->args->report);
	if (!err && (fflush(f) || ferror(f)))
		err = errno ? -errno : -EIO;
	return err;
}

static int write_json(FILE *f, const void *what)
{
	const struct job *j = what;

	return report__write_json(f, j->a, &j->args->report);
}

static int write_html(FILE *f, const void *what)
{
	return html__write(f, ((const struct job *)what)->a, NULL);
}

/* The span that was meant: *name becomes its own name. */
static int find_span(const struct trace_info *info, const char *path, const char *option,
		     const char **name, struct err *e)
{
	struct nearest near = {.want = *name, .want_len = *name ? strnlen(*name, NEAR_MAX) : 0};
	const char *found = NULL, *other;
	char names[NEAR_TEXT];

	for (size_t i = 0; *name && i < info->nspans; i++)
		if (!strcmp(info->spans[i].name, *name))
			return 0;
	for (size_t i = 0; *name && i < info->nspans; i++) {
		other = info->spans[i].name;
		nearest__offer_span(&near, other);
		if (!span_name__means(*name, other))
			continue;
		if (found && strcmp(found, other))
			return err_set(e, -EINVAL, "%s %.100s: it means %.150s and %.150s", option,
				       *name, found, other);
		found = other;
	}
	nearest__join(&near, names, sizeof(names));
	if (*name && !found)
		return err_set(e, -ENOENT, "%.200s: there is no span %.100s in it%s%s%s", path,
			       *name, *names ? " (did you mean " : "", names, *names ? "?)" : "");
	*name = found;
	return 0;
}

static int report(struct report_args *args, struct err *e)
{
	struct analysis_opts o = {
	    .windows = WINDOWS,
	    .slowest = args->html.option ? HTML_SLOWEST : 1,
	    .tree_max = TREE_MAX,
	    .per_thread = args->report.threads,
	    .gpu_most = args->html.option ? GPU_MOST : 0,
	};
	struct trace_reader *r = NULL;
	struct job j = {.args = args};
	struct analysis *a = NULL;
	const struct trace_info *info;
	int err;

	err = trace_reader__open(args->report.path, &r, e);
	if (err)
		goto out;
	info = trace_reader__info(r);
	err = find_span(info, args->report.path, "--span", &args->report.span, e);
	if (!err)
		err = find_span(info, args->report.path, "--root", &args->root, e);
	o.root = args->root;
	if (!err)
		err = analysis__new(r, &o, &a, e);
	if (err)
		goto out;
	j.a = a;
	if (args->json.option)
		err = outfile__write(args->json.path, write_json, &j, e);
	if (!err && args->html.option)
		err = outfile__write(args->html.path, write_html, &j, e);
	if (!err && !args->json.option && !args->html.option)
		err = outfile__write(NULL, write_text, &j, e);
out:
	analysis__free(a);
	trace_reader__free(r);
	return err;
}

int cmd_report(int argc, char **argv)
{
	struct report_args a = {.report = {.limit = LIMIT, .hot = HOT, .width = report__width()}};
	struct err e = {{0}};
	int err = parse(&a, argc, argv);

	if (err > 0) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	if (err)
		return EXIT_USAGE;
	outfile__catch_signals();
	err = report(&a, &e);
	if (err)
		compare__fault(&e);
	return err ? EXIT_FAILED : EXIT_OK;
}

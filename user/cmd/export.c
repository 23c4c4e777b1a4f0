// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf export: a trace in the formats of other tools. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/outfile.h"
#include "log.h"
#include "out/export.h"

enum { CODE_BY = 256, CODE_SPAN, CODE_THREAD, CODE_FROM, CODE_TO, CODE_GPU_TRACKS };

static const struct option longs[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"by", required_argument, NULL, CODE_BY},
    {"span", required_argument, NULL, CODE_SPAN},
    {"thread", required_argument, NULL, CODE_THREAD},
    {"from", required_argument, NULL, CODE_FROM},
    {"to", required_argument, NULL, CODE_TO},
    {"gpu-tracks", no_argument, NULL, CODE_GPU_TRACKS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: qbpf export [OPTION...] TRACE\n"
    "\n"
    "  -f, --format FORMAT   perfetto, chrome, speedscope, folded, csv or hgrm\n"
    "                        (default: by the name that -o gives: .pftrace, .json,\n"
    "                        .speedscope.json, .folded, .csv, .hgrm)\n"
    "  -o, --output OUT      write to OUT (default: stdout)\n"
    "      --by time|count   folded: self time in ns (default), or hits\n"
    "      --span GLOB       only spans of such names\n"
    "      --thread TID|GLOB only this thread, or threads of such names\n"
    "      --from TIME       only what ends at TIME or later: 2, 1.5s, 20ms, 7us, 9ns\n"
    "      --to TIME         after the recording's begin, or begins by then\n"
    "      --gpu-tracks      perfetto: the GPU's streams as plain tracks, not as render stages\n"
    "  -h, --help            this text\n";

struct export_args {
	const char *trace;
	struct outname out;
	enum export_format format;
	bool has_format, has_by, has_from, has_to, help;
	uint64_t from_ns, to_ns; /* after the recording's begin */
	struct export_opts opts;
};

/* --- arguments ----------------------------------------------------------------------------------- */

static int parse_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	char *end;
	double v = strtod(text, &end);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		if (end == text || !(v >= 0) || v * units[i].ns > 9e18)
			break;
		*ns = (uint64_t)llround(v * units[i].ns);
		return 0;
	}
	log_err("not a time: %s (2, 1.5s, 20ms, 7us, 9ns)", text);
	return -EINVAL;
}

static int take_option(struct export_args *a, int code, const char *arg)
{
	struct err e = {{0}};

	switch (code) {
	case 'f':
		a->has_format = true;
		if (!export__parse_format(arg, &a->format))
			return 0;
		log_err("no such format: %s (perfetto, chrome, speedscope, folded, csv, hgrm)",
			arg);
		return -EINVAL;
	case 'o':
		if (!outname__parse("-o", arg, &a->out, &e))
			return 0;
		log_err("%s", e.text);
		return -EINVAL;
	case CODE_BY:
		a->has_by = true;
		a->opts.by_count = !strcmp(arg, "count");
		if (a->opts.by_count || !strcmp(arg, "time"))
			return 0;
		log_err("--by is time or count, not %s", arg);
		return -EINVAL;
	case CODE_SPAN:
		a->opts.span = arg;
		return 0;
	case CODE_THREAD:
		a->opts.thread = arg;
		return 0;
	case CODE_FROM:
		a->has_from = true;
		return parse_time(arg, &a->from_ns);
	case CODE_TO:
		a->has_to = true;
		return parse_time(arg, &a->to_ns);
	case CODE_GPU_TRACKS:
		a->opts.gpu_tracks = true;
		return 0;
	case 'h':
		a->help = true;
		return 0;
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int parse(struct export_args *a, int argc, char **argv)
{
	struct err e = {{0}};
	int code;

	optind = 0;
	while ((code = getopt_long(argc, argv, "f:o:h", longs, NULL)) != -1) {
		if (take_option(a, code, optarg))
			return -EINVAL;
		if (a->help)
			return 0;
	}
	if (optind + 1 != argc) {
		log_err(optind == argc ? "which trace? (see qbpf export --help)"
				       : "one trace at a time (see qbpf export --help)");
		return -EINVAL;
	}
	a->trace = argv[optind];
	if (!a->has_format && (!a->out.path || export__format_of_path(a->out.path, &a->format))) {
		log_err("which format? -f perfetto|chrome|speedscope|folded|csv|hgrm");
		return -EINVAL;
	}
	if (a->has_by && a->format != EXPORT_FOLDED) {
		log_err("--by is for folded alone, not for %s", export__format_name(a->format));
		return -EINVAL;
	}
	if (a->opts.gpu_tracks && a->format != EXPORT_PERFETTO) {
		log_err("--gpu-tracks is for perfetto alone, not for %s",
			export__format_name(a->format));
		return -EINVAL;
	}
	if (a->has_from && a->has_to && a->from_ns > a->to_ns) {
		log_err("--from is after --to");
		return -EINVAL;
	}
	if (!a->out.path && a->format == EXPORT_PERFETTO && isatty(STDOUT_FILENO)) {
		log_err("not writing binary data to a terminal: -o OUT.pftrace");
		return -EINVAL;
	}
	if (!outname__apart(&a->out, 1, &a->trace, 1, &e))
		return 0;
	log_err("%s", e.text);
	return -EINVAL;
}

/* --- the command --------------------------------------------------------------------------------- */

static void tell(const struct export_args *a, const struct trace_info *info)
{
	const struct export_counts *n = a->opts.counts;

	if (!info->clean)
		log_warn("%s was not closed: this is what it holds up to byte %llu", a->trace,
			 (unsigned long long)info->cut_at);
	if (n->overlapping)
		log_warn("%llu spans overlap others on their thread: they are shown beside it",
			 (unsigned long long)n->overlapping);
	if (n->left_out)
		log_warn("%llu events left out, for which %s has no place",
			 (unsigned long long)n->left_out, export__format_name(a->format));
	if (n->gpu_left_out)
		log_warn("%llu records of the GPU left out, for which %s has no place",
			 (unsigned long long)n->gpu_left_out, export__format_name(a->format));
	if (n->untimed)
		log_warn(
		    "%llu GPU activities have no possible times: they are shown where they were "
		    "asked for, without a duration",
		    (unsigned long long)n->untimed);
}

static int export(struct export_args *a, struct err *e)
{
	struct export_counts counts = {0};
	struct outfile o;
	struct trace_reader *r;
	const struct trace_info *info;
	int err = trace_reader__open(a->trace, &r, e);

	if (err)
		return err;
	info = trace_reader__info(r);
	a->opts.counts = &counts;
	if (a->has_from)
		a->opts.from_ns = info->meta.start_ns + a->from_ns;
	/* 0 means without end. */
	if (a->has_to)
		a->opts.to_ns = info->meta.start_ns + a->to_ns ? info->meta.start_ns + a->to_ns : 1;
	else if (a->has_from)
		a->opts.to_ns = UINT64_MAX;
	if (a->has_from && a->opts.from_ns > info->end_ns) {
		err = err_set(e, -ENOENT, "%.200s: --from is behind its end, %.9gs after its begin",
			      a->trace, (double)(info->end_ns - info->meta.start_ns) / 1e9);
		goto out;
	}
	err = outfile__open(&o, a->out.path, e);
	if (!err)
		err = export__write(r, a->format, &a->opts, o.f, e);
	if (err && err != -EPIPE && o.f && ferror(o.f))
		err_set(e, err, "%s: %s", a->out.path ? a->out.path : "stdout", strerror(-err));
	err = outfile__close(&o, err, e);
	if (!err)
		tell(a, info);
out:
	trace_reader__free(r);
	return err;
}

int cmd_export(int argc, char **argv)
{
	struct export_args a = {0};
	struct err e = {{0}};
	int err;

	if (parse(&a, argc, argv))
		return EXIT_USAGE;
	if (a.help) {
		fputs(help, stdout);
		return EXIT_OK;
	}
	outfile__catch_signals();
	err = export(&a, &e);
	if (err == -EPIPE) /* whoever read it has gone */
		return EXIT_OK;
	if (err)
		log_err("%s", e.text);
	return err ? EXIT_FAILED : EXIT_OK;
}

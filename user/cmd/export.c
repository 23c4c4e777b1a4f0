// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf export: a trace in the formats of other tools. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "log.h"
#include "out/export.h"

enum { CODE_BY = 256, CODE_SPAN, CODE_THREAD, CODE_FROM, CODE_TO };

static const struct option longs[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"by", required_argument, NULL, CODE_BY},
    {"span", required_argument, NULL, CODE_SPAN},
    {"thread", required_argument, NULL, CODE_THREAD},
    {"from", required_argument, NULL, CODE_FROM},
    {"to", required_argument, NULL, CODE_TO},
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
    "  -h, --help            this text\n";

struct export_args {
	const char *trace, *out;
	enum export_format format;
	bool has_format, has_from, has_to, help;
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
	switch (code) {
	case 'f':
		a->has_format = true;
		if (!export__parse_format(arg, &a->format))
			return 0;
		log_err("no such format: %s (perfetto, chrome, speedscope, folded, csv, hgrm)",
			arg);
		return -EINVAL;
	case 'o':
		a->out = arg;
		return 0;
	case CODE_BY:
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
	case 'h':
		a->help = true;
		return 0;
	default:
		return -EINVAL; /* getopt has said why */
	}
}

static int parse(struct export_args *a, int argc, char **argv)
{
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
	if (!a->has_format && (!a->out || export__format_of_path(a->out, &a->format))) {
		log_err("which format? -f perfetto|chrome|speedscope|folded|csv|hgrm");
		return -EINVAL;
	}
	if (a->has_from && a->has_to && a->from_ns > a->to_ns) {
		log_err("--from is after --to");
		return -EINVAL;
	}
	if (!a->out && a->format == EXPORT_PERFETTO && isatty(STDOUT_FILENO)) {
		log_err("not writing binary data to a terminal: -o OUT.pftrace");
		return -EINVAL;
	}
	return 0;
}

/* --- the output file ----------------------------------------------------------------------------- */

/*
 * Written under another name beside the one that is wanted, and renamed when it is whole: what stands
 * under that name is never half a file. What is no regular file (a pipe, /dev/null) is written to as
 * it is.
 */
struct output {
	FILE *f;
	char *path, *temp; /* temp NULL: written in place */
};

static char *volatile unlink_on_signal;

static void on_signal(int sig)
{
	if (unlink_on_signal)
		unlink(unlink_on_signal);
	signal(sig, SIG_DFL);
	raise(sig);
}

static int create_temp(struct output *o, mode_t mode, struct err *e)
{
	int fd, err;

	if (asprintf(&o->temp, "%s.XXXXXX", o->path) < 0) {
		o->temp = NULL;
		return err_set(e, -ENOMEM, "out of memory");
	}
	fd = mkostemp(o->temp, O_CLOEXEC);
	err = -errno;
	if (fd < 0) {
		free(o->temp);
		o->temp = NULL;
		return err_set(e, err, "%s: %s", o->path, strerror(-err));
	}
	unlink_on_signal = o->temp;
	o->f = fdopen(fd, "w");
	if (!o->f) {
		close(fd);
		return err_set(e, -ENOMEM, "out of memory");
	}
	if (fchmod(fd, mode))
		log_dbg("%s: %s", o->temp, strerror(errno));
	return 0;
}

static int open_output(struct output *o, const struct export_args *a, struct err *e)
{
	struct stat st, trace;
	mode_t mask = umask(0);
	mode_t mode = 0666 & ~mask;

	umask(mask);
	if (!a->out) {
		o->f = stdout;
		return 0;
	}
	/* Through a symbolic link, so that the link stays. */
	o->path = realpath(a->out, NULL);
	if (!o->path)
		o->path = strdup(a->out);
	if (!o->path)
		return err_set(e, -ENOMEM, "out of memory");
	if (!stat(o->path, &st)) {
		if (!stat(a->trace, &trace) && st.st_dev == trace.st_dev &&
		    st.st_ino == trace.st_ino)
			return err_set(e, -EINVAL, "%s is the trace itself", a->out);
		if (!S_ISREG(st.st_mode)) {
			o->f = fopen(o->path, "we");
			return o->f ? 0 : err_set(e, -errno, "%s: %s", a->out, strerror(errno));
		}
		mode = st.st_mode & 07777;
	}
	return create_temp(o, mode, e);
}

static int close_output(struct output *o, int err, struct err *e)
{
	errno = 0;
	if (o->f && fflush(o->f) && !err)
		err = err_set(e, errno ? -errno : -EIO, "cannot write: %s", strerror(errno));
	if (o->f && o->f != stdout && fclose(o->f) && !err)
		err = err_set(e, -errno, "cannot write: %s", strerror(errno));
	if (o->temp && !err && rename(o->temp, o->path))
		err = err_set(e, -errno, "%s: %s", o->path, strerror(errno));
	if (o->temp && err)
		unlink(o->temp);
	unlink_on_signal = NULL;
	free(o->temp);
	free(o->path);
	return err;
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
}

static int export(struct export_args *a, struct err *e)
{
	struct export_counts counts = {0};
	struct output o = {0};
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
	err = open_output(&o, a, e);
	if (!err)
		err = export__write(r, a->format, &a->opts, o.f, e);
	err = close_output(&o, err, e);
	if (!err)
		tell(a, info);
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
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGHUP, on_signal);
	err = export(&a, &e);
	if (err == -EPIPE) /* whoever read it has gone */
		return EXIT_OK;
	if (err)
		log_err("%s", e.text);
	return err ? EXIT_FAILED : EXIT_OK;
}

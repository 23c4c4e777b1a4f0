// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options of attach, run and list; see options.h. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/options.h"
#include "cmd/outfile.h"
#include "cmd/record.h"
#include "log.h"
#include "trace/placement.h"

struct option_def {
	int code; /* the short letter, or a number above 255 */
	const char *name;
	const char *arg; /* NULL: none; "[=FILE]": optional */
	unsigned int commands;
	const char *section;
	const char *help;
};

enum {
	CODE_RETURNS = 256,
	CODE_MAX_OVERHEAD,
	CODE_FOLLOW,
	CODE_UNSAFE,
	CODE_JSON,
	CODE_PLAIN,
	CODE_WAIT,
	CODE_MAX_SPANS,
	CODE_SLOW,
	CODE_SAMPLE,
	CODE_RING,
	CODE_CPU,
	CODE_CUDA,
	CODE_CUDA_API,
};

#define ALL   (OPT_ATTACH | OPT_RUN | OPT_LIST)
#define TRACE (OPT_ATTACH | OPT_RUN)

static const struct option_def defs[] = {
    {'p', "pid", "PID[,PID...]", OPT_ATTACH | OPT_LIST, "Target", "the process to look at"},
    {'u', "marker", "GLOB", ALL, "What to trace",
     "USDT markers provider:name (default: all but the C library's)"},
    {'f', "function", "GLOB", ALL, "What to trace",
     "functions, demangled or raw; OBJ!GLOB limits it to one object"},
    {'s', "span", "NAME=BEGIN..END[,key=argN]", ALL, "What to trace",
     "a span by hand; a key pairs across threads"},
    {CODE_RETURNS, "returns", "auto|guard|uretprobe|ret|none", ALL, "What to trace",
     "how function ends are seen (default auto)"},
    {CODE_CUDA, "cuda", "auto|uprobe|agent|off", ALL, "What to trace",
     "how CUDA is seen: calls by uprobes, the GPU by an agent (default auto)"},
    {CODE_CUDA_API, "cuda-api", "auto|runtime|driver|both", ALL, "What to trace",
     "which of CUDA's calls (default: the runtime's, else the driver's)"},
    {CODE_UNSAFE, "unsafe", NULL, ALL, "What to trace", "arm what preflight refuses"},
    {CODE_MAX_SPANS, "max-spans", "N", ALL, "What to trace",
     "refuse a selection of more spans (default 4096)"},
    {CODE_FOLLOW, "follow", NULL, TRACE, "How", "forked children too"},
    {CODE_WAIT, "wait", NULL, TRACE, "How",
     "go on when nothing matches yet: a library may be opened later"},
    {'d', "duration", "SEC", TRACE, "How", "stop after SEC seconds"},
    {'i', "interval", "SEC", TRACE, "How", "interval of the live view and of reports"},
    {CODE_MAX_OVERHEAD, "max-overhead", "PCT", TRACE, "How",
     "detach the dearest spans above PCT % of one CPU"},
    {'o', "output", "FILE", TRACE, "Recording",
     "record every span; .pftrace, .json ... are made of it at the end"},
    {CODE_SLOW, "slow", "SPAN>TIME", TRACE, "Recording",
     "only the whole call trees of spans that take longer, as in 'tick>50us'"},
    {CODE_SAMPLE, "sample", "N", TRACE, "Recording",
     "one in N outermost spans, with everything inside"},
    {CODE_RING, "ring", "SIZE", TRACE, "Recording",
     "of the buffer in the kernel, 4K to 1G (default 8M)"},
    {CODE_CPU, "cpu", "N", TRACE, "Recording",
     "qbpf's own threads run there (default: away from the target)"},
    {CODE_JSON, "json", "[=FILE]", ALL, "Output",
     "one JSON document, on stdout or in FILE (with -i: a line per interval)"},
    {CODE_PLAIN, "plain", NULL, TRACE, "Output", "no full-screen view"},
    {'v', "verbose", NULL, ALL, "Output", "say more (-vv: libbpf too)"},
    {'q', "quiet", NULL, ALL, "Output", "errors only on stderr"},
    {'h', "help", NULL, ALL, "Output", "this text"},
};

#define NDEFS (sizeof(defs) / sizeof(defs[0]))

static const char *command_name(enum opt_command c)
{
	return c == OPT_ATTACH ? "attach" : c == OPT_RUN ? "run" : "list";
}

static const char *command_usage(enum opt_command c)
{
	switch (c) {
	case OPT_ATTACH:
		return "-p PID[,PID...] [OPTION...]";
	case OPT_RUN:
		return "[OPTION...] -- CMD [ARG...]";
	default:
		return "(-p PID | FILE) [OPTION...]";
	}
}

void options__help(enum opt_command cmd)
{
	const char *section = "";
	char left[64];

	printf("usage: qbpf %s %s\n", command_name(cmd), command_usage(cmd));
	for (size_t i = 0; i < NDEFS; i++) {
		const struct option_def *d = &defs[i];
		bool optional = d->arg && d->arg[0] == '[' && d->arg[1] == '=';

		if (!(d->commands & (unsigned int)cmd))
			continue;
		if (strcmp(section, d->section)) {
			section = d->section;
			printf("\n%s:\n", section);
		}
		snprintf(left, sizeof(left), "%s%c%s --%s%s%s", d->code < 256 ? "-" : " ",
			 d->code < 256 ? d->code : ' ', d->code < 256 ? "," : " ", d->name,
			 d->arg && !optional ? " " : "", d->arg ? d->arg : "");
		if (strlen(left) > 30)
			printf("  %s\n  %-30s  %s\n", left, "", d->help);
		else
			printf("  %-30s  %s\n", left, d->help);
	}
}

static int parse_pids(struct options *o, const char *text)
{
	const char *p = text;

	for (;;) {
		char *end;
		long v;
		pid_t *pids;

		errno = 0;
		v = strtol(p, &end, 10);
		if (!isdigit((unsigned char)*p) || errno || v <= 0 || v > INT_MAX ||
		    (*end && *end != ',')) {
			log_err("-p %s: not a process id", text);
			return -EINVAL;
		}
		pids = realloc(o->pids, (o->npids + 1) * sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		o->pids = pids;
		o->pids[o->npids++] = v;
		if (!*end)
			return 0;
		p = end + 1;
	}
}

static int parse_number(const char *option, const char *text, double min, double *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v) || v < min || v > 1e9) {
		log_err("%s %s: not a number of at least %g", option, text, min);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

static int parse_integer(const char *option, const char *text, unsigned long min, unsigned long max,
			 unsigned long *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno || *end || *out < min || *out > max) {
		log_err("%s %s: not a whole number from %lu to %lu", option, text, min, max);
		return -EINVAL;
	}
	return 0;
}

/* 8388608, 8192K, 8M, 8MB, 8MiB: what the prefix says is of 1024 in each. ULONG_MAX: none of these. */
static unsigned long size_of(const char *text)
{
	static const char prefixes[] = "KMG";
	const char *prefix;
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno)
		return ULONG_MAX;
	prefix = *end ? strchr(prefixes, toupper((unsigned char)*end)) : NULL;
	if (prefix) {
		unsigned int bits = 10 * (unsigned int)(prefix - prefixes + 1);

		if (v > ULONG_MAX >> bits)
			return ULONG_MAX;
		v <<= bits;
		end++;
	}
	return !*end || !strcasecmp(end, "B") || (prefix && !strcasecmp(end, "iB")) ? v : ULONG_MAX;
}

/* A power of two of whole pages, as the kernel wants it. */
static int parse_ring(const char *text, size_t *out)
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE), v = size_of(text);

	if (v < RECORD_RING_MIN || v > RECORD_RING_MAX) {
		log_err("--ring %s: not a size from 4K to 1G (8M, 8MB and 8MiB are the same)",
			text);
		return -EINVAL;
	}
	for (*out = page; *out < v; *out *= 2)
		;
	return 0;
}

static int append_slow(struct options *o, const char *text)
{
	struct slow_rule *l = realloc(o->slow, (o->record.nslow + 1) * sizeof(*l));
	struct err e = {{0}};
	int err;

	if (!l)
		return -ENOMEM;
	o->slow = l;
	o->record.slow = l;
	err = slow_rule__parse(text, &l[o->record.nslow], &e);
	if (err)
		log_err("%s", e.text);
	else
		o->record.nslow++;
	return err;
}

static int append(const char ***list, size_t *n, const char *text)
{
	const char **l = realloc(*list, (*n + 1) * sizeof(*l));

	if (!l)
		return -ENOMEM;
	*list = l;
	l[(*n)++] = text;
	return 0;
}

static int apply(struct options *o, int code, char *arg)
{
	struct outname json = {0};
	struct err e = {{0}};
	unsigned long n = 0;
	double v;
	int err;

	switch (code) {
	case 'p':
		return parse_pids(o, arg);
	case 'u':
		return append(&o->plan.markers, &o->plan.nmarkers, arg);
	case 'f':
		return append(&o->plan.funcs, &o->plan.nfuncs, arg);
	case 's':
		return append(&o->plan.spans, &o->plan.nspans, arg);
	case CODE_RETURNS:
		err = return_way_parse(arg, &o->plan.returns);
		if (err)
			log_err("--returns %s: one of auto, guard, uretprobe, ret, none", arg);
		return err;
	case CODE_CUDA:
		err = cuda_mode_parse(arg, &o->plan.cuda);
		if (err)
			log_err("--cuda %s: one of auto, uprobe, agent, off", arg);
		return err;
	case CODE_CUDA_API:
		err = cuda_api_parse(arg, &o->plan.cuda_api);
		if (err)
			log_err("--cuda-api %s: one of auto, runtime, driver, both", arg);
		return err;
	case CODE_UNSAFE:
		o->plan.unsafe = true;
		return 0;
	case CODE_MAX_SPANS:
		err = parse_number("--max-spans", arg, 1, &v);
		if (!err)
			o->plan.max_spans = v < QBPF_SPANS_MAX / 2 ? (size_t)v : QBPF_SPANS_MAX / 2;
		return err;
	case CODE_FOLLOW:
		o->follow = true;
		return 0;
	case CODE_WAIT:
		o->wait = true;
		return 0;
	case 'd':
		return parse_number("-d", arg, 0.001, &o->duration_s);
	case 'i':
		return parse_number("-i", arg, 0.01, &o->interval_s);
	case CODE_MAX_OVERHEAD:
		return parse_number("--max-overhead", arg, 0.001, &o->max_overhead_pct);
	case 'o':
		if (o->output || !*arg || !strcmp(arg, "-")) {
			log_err("-o %s: %s", arg,
				!*arg	    ? "no name"
				: o->output ? "there can be only one"
					    : "a recording goes to a file, not to stdout");
			return -EINVAL;
		}
		if (record__check_name(arg, &e)) {
			log_err("%s", e.text);
			return -EINVAL;
		}
		o->output = arg;
		return 0;
	case CODE_SLOW:
		return append_slow(o, arg);
	case CODE_SAMPLE:
		err = parse_integer("--sample", arg, 1, 1000000000, &n);
		o->record.sample = (uint32_t)n;
		return err;
	case CODE_RING:
		return parse_ring(arg, &o->record.ring_bytes);
	case CODE_CPU:
		err = parse_integer("--cpu", arg, 0, 1023, &n);
		o->record.cpu = (int)n;
		return err;
	case CODE_JSON:
		err = outname__parse("--json", arg, &json, &e);
		if (err)
			log_err("%s", e.text);
		o->json = true;
		o->json_file = json.path;
		return err;
	case CODE_PLAIN:
		o->plain = true;
		return 0;
	case 'v':
		o->verbose++;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	default:
		return -EINVAL;
	}
}

/* getopt's tables from ours. */
static void build_tables(enum opt_command cmd, char *shorts, struct option *longs)
{
	size_t n = 0;

	if (cmd == OPT_RUN)
		*shorts++ = '+'; /* what follows the first word is the program's own */
	*shorts++ = ':';
	for (size_t i = 0; i < NDEFS; i++) {
		const struct option_def *d = &defs[i];

		if (!(d->commands & (unsigned int)cmd))
			continue;
		if (d->code < 256) {
			*shorts++ = d->code;
			if (d->arg)
				*shorts++ = ':';
		}
		longs[n++] = (struct option){
		    .name = d->name,
		    .has_arg = !d->arg				      ? no_argument
			       : d->arg[0] == '[' && d->arg[1] == '=' ? optional_argument
								      : required_argument,
		    .val = d->code,
		};
	}
	*shorts = 0;
	memset(&longs[n], 0, sizeof(longs[n]));
}

static int check(const struct options *o, enum opt_command cmd)
{
	const struct outname outs[] = {{o->output ? "-o" : NULL, o->output},
				       {o->json ? "--json" : NULL, o->json_file}};
	struct err e = {{0}};

	/* What run is given is a program's command line, and its own business. */
	if (outname__apart(outs, 2, (const char *const *)o->rest,
			   cmd == OPT_LIST ? (size_t)o->nrest : 0, &e)) {
		log_err("%s", e.text);
		return -EINVAL;
	}
	if (plan_opts__check(&o->plan, &e)) {
		log_err("%s", e.text);
		return -EINVAL;
	}
	if (!o->output && (o->record.nslow || o->record.sample || o->record.ring_bytes ||
			   o->record.cpu != PLACEMENT_AUTO)) {
		log_err("--slow, --sample, --ring and --cpu are of a recording: -o FILE");
		return -EINVAL;
	}
	if (cmd == OPT_ATTACH && !o->npids) {
		log_err("attach: which process? -p PID");
		return -EINVAL;
	}
	if (cmd == OPT_ATTACH && o->nrest) {
		log_err("attach: unexpected argument: %s", o->rest[0]);
		return -EINVAL;
	}
	if (cmd == OPT_RUN && !o->nrest) {
		log_err("run: which program? qbpf run [OPTION...] -- CMD [ARG...]");
		return -EINVAL;
	}
	if (cmd == OPT_LIST && (o->npids > 0) + o->nrest != 1) {
		log_err("list: one of -p PID or FILE");
		return -EINVAL;
	}
	return 0;
}

int options__parse(struct options *o, enum opt_command cmd, int argc, char **argv)
{
	char shorts[2 * NDEFS + 4];
	struct option longs[NDEFS + 1];
	int c, err;

	memset(o, 0, sizeof(*o));
	o->plan.max_spans = 4096;
	o->record.cpu = PLACEMENT_AUTO;
	build_tables(cmd, shorts, longs);
	opterr = 0;
	optind = 1;
	for (;;) {
		int at = optind;

		c = getopt_long(argc, argv, shorts, longs, NULL);
		if (c == -1)
			break;
		if (c == '?' || c == ':') {
			if (c == ':')
				log_err("%s: needs a value", argv[optind - 1]);
			else if (optopt && optopt < 256)
				log_err("unknown option -%c (see qbpf %s --help)", optopt,
					command_name(cmd));
			else
				log_err("unknown option %s (see qbpf %s --help)", argv[at],
					command_name(cmd));
			return -EINVAL;
		}
		err = apply(o, c, optarg);
		if (err)
			return err;
	}
	o->rest = argv + optind;
	o->nrest = argc - optind;
	if (o->help)
		return 0;
	log_max = o->quiet	   ? LOG_ERR
		  : o->verbose > 1 ? LOG_LIBBPF
		  : o->verbose	   ? LOG_DBG
				   : LOG_INFO;
	return check(o, cmd);
}

void options__clear(struct options *o)
{
	free(o->pids);
	free(o->plan.markers);
	free(o->plan.funcs);
	free(o->plan.spans);
	for (size_t i = 0; i < o->record.nslow; i++)
		slow_rule__clear(&o->slow[i]);
	free(o->slow);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * qbpf doctor [--json]: what this host can do, one row a fact, with its meaning and remedy, and
 * what a hit costs here. Exits 0 when tracing is possible, else 1.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "log.h"
#include "out/text.h"
#include "trace/host.h"
#include "trace/session.h"

static const char *const state_words[] = {
    [HOST_OK] = "ok", [HOST_WARN] = "warn", [HOST_FAIL] = "FAIL"};
static const char *const state_json[] = {
    [HOST_OK] = "ok", [HOST_WARN] = "warn", [HOST_FAIL] = "fail"};

/* The classes of sites, with what an empty span of two of them reads. */
struct cost {
	const char *what;
	const char *key; /* in JSON */
	uint64_t ns, floor_ns;
};

#define COSTS 4

static void list_costs(const struct price *p, struct cost out[COSTS])
{
	out[0] = (struct cost){"a 5-byte nop (our markers)", "nop5", p->ns[PRICE_NOP5],
			       p->floor_marker_ns};
	out[1] = (struct cost){"a 1-byte nop, push, jmp", "emulated", p->ns[PRICE_EMULATED],
			       p->floor_emulated_ns};
	out[2] = (struct cost){"any other instruction", "stepped", p->ns[PRICE_STEPPED],
			       p->floor_stepped_ns};
	out[3] = (struct cost){"a uretprobe, on top of its entry", "uretprobe",
			       p->ns[PRICE_URETPROBE], p->floor_func_ns};
}

static bool is_measured(const struct price *p)
{
	return p->ns[PRICE_NOP5] != 0;
}

static void print_price(const struct price *p)
{
	struct cost costs[COSTS];

	if (!is_measured(p)) {
		printf("\nThe price of a hit could not be measured.\n");
		return;
	}
	list_costs(p, costs);
	printf("\nWhat a hit costs the target here, and what an empty span of such sites reads:\n");
	for (int i = 0; i < COSTS; i++)
		printf("      %-33s %8.2f us %8.2f us\n", costs[i].what, (double)costs[i].ns / 1000,
		       (double)costs[i].floor_ns / 1000);
}

/* Paths and what is said of them hold bytes from the environment and from files' names. */
static void print_found(const char *found)
{
	char *clean = text__printable(found, text__utf8());

	puts(clean ? clean : "?");
	free(clean);
}

static void print_rows(const struct host *h, const struct price *p, const char *refusal)
{
	size_t width = 0;

	printf("%s, %u CPUs, Linux %s\n\n", h->cpu, h->cpus, h->kernel);
	for (size_t i = 0; i < h->nchecks; i++)
		if (strlen(h->checks[i].name) > width)
			width = strlen(h->checks[i].name);
	for (size_t i = 0; i < h->nchecks; i++) {
		const struct host_check *c = &h->checks[i];

		printf("%-4s  %-*s  ", state_words[c->state], (int)width, c->name);
		print_found(c->found);
		if (c->meaning)
			printf("      %-*s  %s\n", (int)width, "", c->meaning);
		if (c->remedy)
			printf("      %-*s  -> %s\n", (int)width, "", c->remedy);
	}
	if (!refusal)
		print_price(p);
	if (refusal)
		printf("\nTracing is not possible: %s\n", refusal);
	else
		printf("\nTracing is possible.\n");
}

static json_t *price_json(const struct price *p)
{
	json_t *ns = json_object(), *floors = json_object();
	struct cost costs[COSTS];

	list_costs(p, costs);
	for (int i = 0; i < COSTS; i++) {
		json_object_set_new(ns, costs[i].key, json_integer((json_int_t)costs[i].ns));
		json_object_set_new(floors, costs[i].key,
				    json_integer((json_int_t)costs[i].floor_ns));
	}
	return json_pack("{s:o, s:o}", "ns_per_hit", ns, "floor_ns", floors);
}

static int print_json(const struct host *h, const struct price *p, const char *refusal)
{
	json_t *rows = json_array();
	json_t *doc =
	    json_pack("{s:s, s:{s:s, s:s, s:i, s:s}, s:b, s:o}", "schema", "qbpf.doctor/1", "host",
		      "kernel", h->kernel, "cpu", h->cpu, "cpus", (int)h->cpus, "clocksource",
		      h->clocksource, "can_trace", !refusal, "checks", rows);
	int err = doc ? 0 : -ENOMEM;

	if (refusal && !err)
		err = json_object_set_new(doc, "refusal", json_string(refusal)) ? -ENOMEM : 0;
	if (is_measured(p) && !err)
		err = json_object_set_new(doc, "price", price_json(p)) ? -ENOMEM : 0;
	for (size_t i = 0; !err && i < h->nchecks; i++) {
		const struct host_check *c = &h->checks[i];
		char *found = text__valid(c->found);
		json_t *row = json_pack("{s:s, s:s, s:s}", "name", c->name, "state",
					state_json[c->state], "found", found ? found : "?");

		free(found);
		if (c->meaning)
			json_object_set_new(row, "meaning", json_string(c->meaning));
		if (c->remedy)
			json_object_set_new(row, "remedy", json_string(c->remedy));
		err = row && !json_array_append_new(rows, row) ? 0 : -ENOMEM;
	}
	if (!err && json_dumpf(doc, stdout, JSON_INDENT(2)))
		err = -EIO;
	if (!err)
		putchar('\n');
	json_decref(doc);
	return err;
}

static void usage(FILE *f)
{
	fputs("usage: qbpf doctor [--json]\n"
	      "Shows what this host can do for tracing, what it lacks with the remedy, and what a\n"
	      "hit costs here. Exits 0 when tracing is possible, else 1.\n",
	      f);
}

/* As the other commands say it (options.c); no option of this one takes a value. */
static void refuse_option(const char *arg)
{
	if (optopt && !strncmp(arg, "--", 2))
		log_err("%.*s takes no value (see qbpf doctor --help)", (int)strcspn(arg, "="),
			arg);
	else if (optopt && optopt < 256)
		log_err("unknown option -%c (see qbpf doctor --help)", optopt);
	else
		log_err("unknown option %s (see qbpf doctor --help)", arg);
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
	    {"json", no_argument, NULL, 'j'},
	    {"help", no_argument, NULL, 'h'},
	    {0},
	};
	struct err e = {""}, refusal = {""};
	struct host *h = NULL;
	struct price price = {0};
	bool json = false;
	int c, err;

	opterr = 0;
	optind = 1;
	for (;;) {
		int at = optind;

		c = getopt_long(argc, argv, "h", options, NULL);
		if (c == -1)
			break;
		if (c == 'h') {
			usage(stdout);
			return EXIT_OK;
		}
		if (c == '?') {
			refuse_option(argv[at]);
			return EXIT_USAGE;
		}
		json = true;
	}
	if (optind < argc) {
		log_err("doctor: unexpected argument '%s'", argv[optind]);
		return EXIT_USAGE;
	}
	err = host__probe_full(&h, &e);
	if (err) {
		log_err("doctor: %s", e.text);
		return EXIT_FAILED;
	}
	if (!host__can_trace(h, &refusal))
		refusal.text[0] = '\0';
	err = 0;
	if (!*refusal.text)
		session__measure_host(h, &price);
	if (json)
		err = print_json(h, &price, *refusal.text ? refusal.text : NULL);
	else
		print_rows(h, &price, *refusal.text ? refusal.text : NULL);
	if (fflush(stdout) || ferror(stdout))
		err = -EIO;
	if (err)
		log_err("doctor: cannot write: %s", strerror(-err));
	host__free(h);
	return err || *refusal.text ? EXIT_FAILED : EXIT_OK;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * qbpf doctor [--json]: what this host can do, one row a fact, with its meaning and remedy.
 * Exits 0 when tracing is possible here, else 1.
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
#include "trace/host.h"

static const char *const state_words[] = {
	[HOST_OK] = "ok", [HOST_WARN] = "warn", [HOST_FAIL] = "FAIL"};
static const char *const state_json[] = {
	[HOST_OK] = "ok", [HOST_WARN] = "warn", [HOST_FAIL] = "fail"};

static void print_rows(const struct host *h, const char *refusal)
{
	size_t width = 0;

	printf("%s, %u CPUs, Linux %s\n\n", h->cpu, h->cpus, h->kernel);
	for (size_t i = 0; i < h->nchecks; i++)
		if (strlen(h->checks[i].name) > width)
			width = strlen(h->checks[i].name);
	for (size_t i = 0; i < h->nchecks; i++) {
		const struct host_check *c = &h->checks[i];

		printf("%-4s  %-*s  %s\n", state_words[c->state], (int)width, c->name, c->found);
		if (c->meaning)
			printf("      %-*s  %s\n", (int)width, "", c->meaning);
		if (c->remedy)
			printf("      %-*s  -> %s\n", (int)width, "", c->remedy);
	}
	if (refusal)
		printf("\nTracing is not possible: %s\n", refusal);
	else
		printf("\nTracing is possible.\n");
}

static int print_json(const struct host *h, const char *refusal)
{
	json_t *rows = json_array();
	json_t *doc = json_pack("{s:s, s:{s:s, s:s, s:i, s:s}, s:b, s:o}", "schema", "qbpf.doctor/1",
				"host", "kernel", h->kernel, "cpu", h->cpu, "cpus", (int)h->cpus,
				"clocksource", h->clocksource, "can_trace", !refusal, "checks", rows);
	int err = doc ? 0 : -ENOMEM;

	if (refusal && !err)
		err = json_object_set_new(doc, "refusal", json_string(refusal)) ? -ENOMEM : 0;
	for (size_t i = 0; !err && i < h->nchecks; i++) {
		const struct host_check *c = &h->checks[i];
		json_t *row = json_pack("{s:s, s:s, s:s}", "name", c->name, "state",
					state_json[c->state], "found", c->found);

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
	      "Shows what this host can do for tracing, what it lacks, and the remedy.\n",
	      f);
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
	bool json = false;
	int c, err;

	optind = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return EXIT_OK;
		}
		if (c != 'j') {
			usage(stderr);
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
	if (json)
		err = print_json(h, *refusal.text ? refusal.text : NULL);
	else
		print_rows(h, *refusal.text ? refusal.text : NULL);
	if (fflush(stdout) || ferror(stdout))
		err = -EIO;
	if (err)
		log_err("doctor: cannot write: %s", strerror(-err));
	host__free(h);
	return err || *refusal.text ? EXIT_FAILED : EXIT_OK;
}

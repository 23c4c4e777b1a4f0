// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* qbpf list: what can be probed in a process or a file, and each verdict. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/outfile.h"
#include "log.h"
#include "out/json.h"
#include "out/list.h"
#include "trace/host.h"
#include "trace/session.h"
#include "trace/target.h"

/* With no selection: every marker, the C library's too, and every function of the program. */
static const char *all_markers[] = {"*"};

static int select_all(struct options *o, const struct target *t, char **func, const char **funcs)
{
	const char *base = "";

	if (o->plan.nmarkers || o->plan.nfuncs || o->plan.nspans)
		return 0;
	o->plan.markers = all_markers;
	o->plan.nmarkers = 1;
	for (size_t i = 0; i < t->nobjects; i++)
		if (t->objects[i].is_exe)
			base = t->objects[i].path;
	if (strrchr(base, '/'))
		base = strrchr(base, '/') + 1;
	if (asprintf(func, "%s!*", base) < 0) {
		*func = NULL;
		return -ENOMEM;
	}
	funcs[0] = *func;
	o->plan.funcs = funcs;
	o->plan.nfuncs = 1;
	return 0;
}

struct listing {
	const struct plan *plan;
	const struct target *target;
	const uint64_t *ns; /* PRICE_N of them */
};

static int write_json(FILE *f, const void *what)
{
	const struct listing *l = what;

	return json__write_list(f, l->plan, l->target->plan_objects, l->target->nobjects, l->ns);
}

static int write_text(FILE *f, const void *what)
{
	const struct listing *l = what;

	list__write(f, l->plan, l->target->plan_objects, l->target->nobjects, l->ns);
	return 0;
}

static int read_target(const struct options *o, struct target *t, struct err *e)
{
	int err = 0;

	for (size_t i = 0; i < o->npids && !err; i++)
		err = target__add_pid(t, o->pids[i], e);
	if (!err && o->npids)
		err = target__refresh(t, e);
	if (!err && o->nrest)
		err = target__add_file(t, o->rest[0], e);
	if (!err)
		err = target__read(t, 0, TARGET_MARKERS | TARGET_FUNCS | TARGET_UNWIND, e);
	/* A file named on its own must be readable; among many mapped ones, one line each. */
	for (size_t i = 0; !err && i < t->nobjects; i++) {
		const struct target_object *obj = &t->objects[i];

		if (!obj->unusable)
			continue;
		if (o->nrest)
			return err_set(e, -EINVAL, "%s", obj->unusable);
		log_warn("%s: %s", obj->path, obj->unusable);
	}
	return err;
}

static void warn_unmatched(void *ctx, const char *option, const char *glob, const char *near)
{
	size_t *n = ctx;

	++*n;
	log_err("%s %s matches nothing%s%s%s", option, glob, *near ? " (did you mean " : "", near,
		*near ? "?)" : "");
}

static int list(struct options *o, struct err *e)
{
	struct target *t = target__new();
	struct plan *p = plan__new();
	const char *funcs[1];
	struct plan_process proc;
	struct plan_kernel kernel;
	struct price price;
	struct host *host = NULL;
	char *func = NULL;
	size_t missing = 0;
	bool all;
	int err;

	memset(&price, 0, sizeof(price));
	if (!t || !p) {
		err = err_set(e, -ENOMEM, "out of memory");
		goto out;
	}
	err = read_target(o, t, e);
	if (err)
		goto out;
	all = !o->plan.nmarkers && !o->plan.nfuncs && !o->plan.nspans;
	err = select_all(o, t, &func, funcs);
	if (err)
		goto out;
	o->plan.max_spans = 0;
	err = plan_select(p, &o->plan, t->plan_objects, 0, t->nobjects, e);
	if (err)
		goto out;
	err = host__probe(&host, e);
	if (err)
		goto out;
	host__plan_kernel(host, &kernel);
	target__facts(t, &proc);
	if (proc.can_fork)
		kernel.nop5_fork_unsafe = host__can_trace(host, NULL)
					      ? kernel.nop5_optimised
					      : host__nop5_fork_unsafe(host);
	plan_preflight(p, &o->plan, t->plan_objects, t->nobjects, &proc, &kernel);
	if (!host__can_trace(host, NULL))
		session__measure_host(host, &price);
	err = outfile__write(o->json_file, o->json ? write_json : write_text,
			     &(struct listing){p, t, price.ns}, e);
	if (!err && !all)
		plan_unmatched(p, &o->plan, t->plan_objects, t->nobjects, warn_unmatched, &missing);
	if (missing)
		err = err_set(e, -ENOENT, "no such probe");
out:
	if (func) {
		free(func);
		o->plan.funcs = NULL;
	}
	if (o->plan.markers == all_markers)
		o->plan.markers = NULL;
	host__free(host);
	plan__free(p);
	target__free(t);
	return err;
}

int cmd_list(int argc, char **argv)
{
	struct options o;
	struct err e = {{0}};
	int err;

	if (options__parse(&o, OPT_LIST, argc, argv)) {
		options__clear(&o);
		return EXIT_USAGE;
	}
	if (o.help) {
		options__help(OPT_LIST);
		options__clear(&o);
		return EXIT_OK;
	}
	err = list(&o, &e);
	if (err)
		log_err("%s", e.text);
	options__clear(&o);
	return err ? EXIT_FAILED : EXIT_OK;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plan_select(): checks the patterns, runs the selectors, keeps the limit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"

static int check_patterns(const char *option, const char **list, size_t n, struct err *e)
{
	struct pattern pt;
	size_t i;
	int err;

	for (i = 0; i < n; i++) {
		err = pattern__parse(&pt, list[i]);
		if (err)
			return err_set(e, err, "%s '%s': the pattern is empty", option, list[i]);
		pattern__clear(&pt);
	}
	return 0;
}

int plan_opts__check(const struct plan_opts *o, struct err *e)
{
	int err = check_patterns("-u", o->markers, o->nmarkers, e);

	if (!err)
		err = check_patterns("-f", o->funcs, o->nfuncs, e);
	return err ? err : select_by_hand_check(o, e);
}

static int check_count(const struct plan *p, const struct plan_opts *o, int err, struct err *e)
{
	if (err)
		return err_set(e, err, "out of memory for %zu spans", p->nspans);
	if (o->max_spans && p->nspans > o->max_spans)
		return err_set(e, -E2BIG, "%zu spans match, more than %zu: narrow -u or -f",
			       p->nspans, o->max_spans);
	return 0;
}

int plan_select(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		size_t from, size_t n, struct err *e)
{
	int err;

	err = plan_opts__check(o, e);
	if (err)
		return err;
	/* Names given by hand come first, so that they are never the ones to get a suffix. */
	err = select_by_hand(p, o, objs, from, n, e);
	if (err)
		return err;
	err = select_cuda(p, o, objs, from, n);
	if (!err)
		err = select_markers(p, o, objs, from, n);
	if (!err)
		err = select_funcs(p, o, objs, from, n);
	return check_count(p, o, err, e);
}

int plan_select_cuda(struct plan *p, const struct plan_opts *o, const struct plan_object *objs,
		     size_t n, struct err *e)
{
	return check_count(p, o, select_cuda(p, o, objs, 0, n), e);
}

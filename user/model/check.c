/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * check.c - holding a recording against a budget.
 *
 * What cannot be known must not pass: a rule that means no span, or a figure that the recording does
 * not have, is broken. Only what more samples would tell is "too few".
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/check.h"
#include "model/match.h"
#include "model/select_item.h"

#define GPU_RECORDS (SIDE_NONE - 1) /* in place of an item: records of the GPU that were lost */

struct run {
	struct check *check;
	struct confidence confidence;
	uint32_t *match; /* item of the side -> of the baseline */
	struct err *e;
};

const char *check_verdict__name(enum check_verdict v)
{
	static const char *const names[CHECK_VERDICTS] = {"ok", "BROKEN", "too few"};

	return names[v];
}

static int __attribute__((format(printf, 3, 4)))
settle(struct check_case *c, enum check_verdict v, const char *fmt, ...)
{
	va_list ap;
	int n;

	c->verdict = v;
	if (!fmt)
		return 0;
	va_start(ap, fmt);
	n = vasprintf(&c->why, fmt, ap);
	va_end(ap);
	if (n >= 0)
		return 0;
	c->why = NULL;
	return -ENOMEM;
}

static struct check_case *add_case(struct check *ch, const struct rule *r)
{
	/* Powers of two. */
	if (!(ch->n & (ch->n - 1))) {
		struct check_case *cases =
		    realloc(ch->cases, (ch->n ? ch->n * 2 : 1) * sizeof(*cases));

		if (!cases)
			return NULL;
		ch->cases = cases;
	}
	memset(&ch->cases[ch->n], 0, sizeof(*ch->cases));
	ch->cases[ch->n].rule = r;
	return &ch->cases[ch->n++];
}

static void estimate(const struct run *run, const struct side *s, size_t item, struct figure f,
		     struct estimate *out)
{
	if (item == GPU_RECORDS)
		side__gpu_lost(s, out);
	else
		side__estimate(s, item, f, &run->confidence, out);
}

/* 0; 1: the case is settled; or -ENOMEM. */
static int get_baseline(struct run *run, size_t item, struct check_case *c, struct quantity *out)
{
	const struct side *base = run->check->baseline;
	bool gpu = item == GPU_RECORDS;
	uint32_t at = !gpu ? run->match[item] : base->has_gpu ? GPU_RECORDS : SIDE_NONE;
	struct estimate est;
	int err = 0;

	if (at == SIDE_NONE)
		err = settle(c, CHECK_TOO_FEW, "%s has no such %s", base->path,
			     gpu ? "records" : "span");
	else
		estimate(run, base, at, c->rule->figure, &est);
	if (at == SIDE_NONE)
		return err ? err : 1;
	if (est.state == EST_KNOWN) {
		out->is_time = c->dim == DIM_TIME;
		out->value = est.value;
		out->ci = est.has_interval ? est.ci : (struct interval){est.value, est.value};
		return 0;
	}
	if (est.state == EST_TOO_FEW)
		err = settle(c, CHECK_TOO_FEW, "%s has %" PRIu64 " of it, it takes %" PRIu64,
			     base->path, est.n, est.needs);
	else
		err = settle(c, CHECK_BROKEN, "%s: %s", base->path, est.why);
	return err ? err : 1;
}

static bool holds(enum compare op, double v, double limit)
{
	switch (op) {
	case CMP_LT:
		return v < limit;
	case CMP_LE:
		return v <= limit;
	case CMP_GT:
		return v > limit;
	case CMP_GE:
		return v >= limit;
	case CMP_EQ:
		return v == limit;
	default:
		return v != limit;
	}
}

/* The interval of the difference between figure and limit: does it hold zero? */
static bool is_uncertain(const struct check_case *c)
{
	struct interval point = {c->figure.value, c->figure.value}, d;

	if (c->rule->compare == CMP_EQ || c->rule->compare == CMP_NE)
		return false;
	if (!c->figure.has_interval && c->limit.ci.lo == c->limit.ci.hi)
		return false;
	d = difference_interval(c->limit.value, c->limit.ci, c->figure.value,
				c->figure.has_interval ? c->figure.ci : point);
	return d.lo <= 0 && d.hi >= 0;
}

static int judge(struct run *run, size_t item, struct check_case *c)
{
	const struct rule *r = c->rule;
	struct quantity baseline = {0};
	const char *why;
	bool ok;
	int err = 0;

	estimate(run, run->check->side, item, r->figure, &c->figure);
	if (c->figure.state == EST_ABSENT || c->figure.state == EST_UNKNOWN)
		return settle(c, CHECK_BROKEN, "%s", c->figure.why);
	c->has_figure = c->figure.state == EST_KNOWN;
	if (limit__has_baseline(r->limit)) {
		err = get_baseline(run, item, c, &baseline);
		if (err)
			return err < 0 ? err : 0;
	}
	why = limit__eval(r->limit, c->dim == DIM_TIME, &baseline, &c->limit);
	if (why)
		return settle(c, CHECK_BROKEN, "%s", why);
	c->has_limit = true;
	if (!c->has_figure)
		return settle(c, CHECK_TOO_FEW, "%" PRIu64 " of it, it takes %" PRIu64, c->figure.n,
			      c->figure.needs);
	ok = holds(r->compare, c->figure.value, c->limit.value);
	c->uncertain = is_uncertain(c);
	if (ok && c->uncertain && run->check->strict)
		return settle(c, CHECK_BROKEN, "not certain, and --strict");
	return settle(c, ok ? CHECK_OK : CHECK_BROKEN, NULL);
}

/* NULL, or why the rule does not fit this span at all: a glob passes it over. */
static const char *misfit(struct run *run, const struct rule *r, size_t item)
{
	bool time = figure__dim(r->figure, run->check->side->items[item].class) == DIM_TIME;
	struct quantity one = {time, 1, {1, 1}}, out;
	struct estimate est;
	const char *why;

	side__estimate(run->check->side, item, r->figure, &run->confidence, &est);
	if (est.state == EST_ABSENT)
		return est.why;
	why = limit__eval(r->limit, time, &one, &out);
	return why && isnan(out.value) ? NULL : why;
}

static int check_item(struct run *run, const struct rule *r, size_t item)
{
	struct check_case *c = add_case(run->check, r);

	if (!c)
		return -ENOMEM;
	c->dim = figure__dim(r->figure, run->check->side->items[item].class);
	c->name = side__path(run->check->side, item);
	return c->name ? judge(run, item, c) : -ENOMEM;
}

/* Of the GPU there are no spans, but of all that could be lost its records are a part. */
static int check_gpu(struct run *run, const struct rule *r)
{
	struct check_case *c;

	if (!run->check->side->has_gpu || r->figure.kind != FIG_LOST || strcmp(r->span, "*") != 0)
		return 0;
	c = add_case(run->check, r);
	if (!c)
		return -ENOMEM;
	c->dim = figure__dim(r->figure, SIDE_TIME);
	c->name = strdup("records of the GPU");
	return c->name ? judge(run, GPU_RECORDS, c) : -ENOMEM;
}

/* The rule means nothing here: broken. */
static int check_nothing(struct run *run, const struct rule *r, const char *why)
{
	struct check_case *c = add_case(run->check, r);

	return c ? settle(c, CHECK_BROKEN, "%s", why ? why : "no such span") : -ENOMEM;
}

static int check_rule(struct run *run, const struct rule *r)
{
	const char *unfit = NULL, *why;
	char place[RULE_PLACE], *explained;
	struct selection sel;
	size_t taken = 0;
	int err = side__select(run->check->side, r->span, &sel, &explained);

	if (err == -ENOENT || err == -ENOTUNIQ) {
		err = check_nothing(run, r, explained);
		goto out;
	}
	for (size_t i = 0; !err && i < sel.n; i++) {
		why = misfit(run, r, sel.items[i]);
		unfit = why ? why : unfit;
		/* "* p99 < 50us" is about times; it passes values and instants over. */
		if (why && sel.wild)
			continue;
		if (why)
			break;
		err = check_item(run, r, sel.items[i]);
		taken++;
	}
	if (!err && unfit && !sel.wild)
		err = err_set(run->e, -EINVAL, "%s: %.150s: %s", rule__place(place, r), r->span,
			      unfit);
	else if (!err && unfit && !taken)
		err = check_nothing(run, r, unfit);
	if (!err)
		err = check_gpu(run, r);
out:
	free(explained);
	selection__clear(&sel);
	return err;
}

int check__run(const struct budget *b, const struct side *s, const struct check_opts *o,
	       struct check **out, struct err *e)
{
	struct run run = {.e = e, .check = calloc(1, sizeof(*run.check))};
	int err = 0;

	*out = NULL;
	e->text[0] = '\0';
	if (!run.check) {
		err = -ENOMEM;
		goto out;
	}
	confidence__init(&run.confidence, o->confidence);
	*run.check = (struct check){.budget = b,
				    .side = s,
				    .baseline = o->baseline,
				    .confidence = o->confidence,
				    .strict = o->strict};
	if (o->baseline) {
		run.match = side__match(o->baseline, s);
		err = run.match ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < b->n && !err; i++)
		err = check_rule(&run, &b->rules[i]);
	for (size_t i = 0; i < run.check->n; i++) {
		run.check->counts[run.check->cases[i].verdict]++;
		run.check->uncertain += run.check->cases[i].uncertain;
	}
out:
	free(run.match);
	if (err == -ENOMEM)
		err_set(e, err, "out of memory");
	if (err)
		check__free(run.check);
	else
		*out = run.check;
	return err;
}

void check__free(struct check *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++) {
		free(c->cases[i].name);
		free(c->cases[i].why);
	}
	free(c->cases);
	free(c);
}

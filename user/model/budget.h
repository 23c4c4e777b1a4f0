/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Budgets: rules that a recording must keep, one a line (qbpf-check(1)).
 *
 *	strategy:on_tick p99 < 50us
 *	strategy:on_tick/alpha share < 30%
 *	* lost == 0
 *	order:* p99.9 < baseline * 1.05 + 2us
 *
 * A rule is a SPAN, a figure, a comparison and a limit. Names may hold blanks and < > =, so a rule
 * is read from its end: a limit holds no comparison, hence the last one is the rule's own.
 */
#ifndef QBPF_MODEL_BUDGET_H
#define QBPF_MODEL_BUDGET_H

#include "err.h"
#include "model/side.h"

enum compare { CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_EQ, CMP_NE };

struct limit; /* the expression on the right */

struct rule {
	char *text; /* as written, without comment and outer blanks */
	char *span; /* the pattern */
	struct figure figure;
	enum compare compare;
	struct limit *limit;
	const char *file; /* of the budget; NULL: an argument */
	size_t line;	  /* 1 .., or the number of the argument */
};

struct budget {
	struct rule *rules;
	size_t n;
	char **files; /* what rule.file points to */
	size_t nfiles;
};

/* One rule, an argument of the command line. -EINVAL: e says where and what. */
int budget__add(struct budget *b, const char *text, struct err *e);
/* A file of rules; '#' behind a blank or at the start of a line begins a comment. */
int budget__read(struct budget *b, const char *path, struct err *e);
void budget__clear(struct budget *b);
bool budget__needs_baseline(const struct budget *b);
/* The percentiles that its rules ask for, side__load()'s extra ones; returns how many there are. */
size_t budget__quantiles(const struct budget *b, double *out, size_t max);

/* "budget.txt:3", "rule 2". */
#define RULE_PLACE 128
char *rule__place(char buf[RULE_PLACE], const struct rule *r);

/* limit.c: the expression. A quantity is a time in ns or a plain number, with its interval. */
struct quantity {
	bool is_time;
	double value;
	struct interval ci;
};

/* Parses text[at .. len). -EINVAL: *bad is where, e->text is what. */
int limit__parse(const char *text, size_t len, size_t at, struct limit **out, size_t *bad,
		 struct err *e);
void limit__free(struct limit *l);
bool limit__has_baseline(const struct limit *l);
/* NULL, or why it makes no sense: a time that has no unit, one time by another. `want_time`: what
 * the figure is; `baseline` may be NULL when it is not used. out->value is NAN when it is a matter
 * of values, which another baseline may not have. */
const char *limit__eval(const struct limit *l, bool want_time, const struct quantity *baseline,
			struct quantity *out);

#endif

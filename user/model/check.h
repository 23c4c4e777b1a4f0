/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Holding a recording against a budget: each rule, for each span that it means, gets a verdict. */
#ifndef QBPF_MODEL_CHECK_H
#define QBPF_MODEL_CHECK_H

#include "model/budget.h"

enum check_verdict { CHECK_OK, CHECK_BROKEN, CHECK_TOO_FEW, CHECK_VERDICTS };

struct check_case {
	const struct rule *rule;
	char *name; /* of the span, or the path; NULL: the rule means none */
	enum check_verdict verdict;
	/* The figure's interval holds the limit: the verdict is that of the figure itself, but another
	 * recording might come to the other one. */
	bool uncertain;
	char *why; /* what kept the figure or the limit from being known; NULL: both are */
	enum figure_dim dim;
	bool has_figure, has_limit;
	struct estimate figure;
	struct quantity limit;
};

struct check {
	const struct budget *budget;
	const struct side *side, *baseline;
	double confidence;
	bool strict;
	struct check_case *cases;
	size_t n;
	size_t counts[CHECK_VERDICTS], uncertain;
};

struct check_opts {
	const struct side *baseline; /* NULL: none */
	double confidence;
	bool strict; /* a rule holds only when the whole interval keeps it */
};

/* -EINVAL: a rule makes no sense for the span that it means; e says which. Points into its
 * arguments. */
int check__run(const struct budget *b, const struct side *s, const struct check_opts *o,
	       struct check **out, struct err *e);
void check__free(struct check *c);

const char *check_verdict__name(enum check_verdict v);

#endif

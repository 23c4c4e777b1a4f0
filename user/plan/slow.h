/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --slow 'SPAN>50us': which spans are watched, and from how many ns on one of them is slow. */
#ifndef QBPF_PLAN_SLOW_H
#define QBPF_PLAN_SLOW_H

#include "plan/plan.h"

struct slow_rule {
	const char *text; /* as given, borrowed */
	char *glob;	  /* of span names */
	uint64_t min_ns;
};

/*
 * SPAN>TIME or SPAN>=TIME; SPAN is a name or a glob, TIME a number with one of ns, us, ms, s. The
 * last '>' counts, since there are names with others. -EINVAL with e.
 */
int slow_rule__parse(const char *text, struct slow_rule *out, struct err *e);
void slow_rule__clear(struct slow_rule *r);
/* It has a duration. */
bool slow_rule__can_watch(const struct plan_span *span);
/* And that name, as span_name__means() takes it. */
bool slow_rule__matches(const struct slow_rule *r, const struct plan_span *span);

#endif

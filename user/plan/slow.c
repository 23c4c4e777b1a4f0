// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* slow.c - the rules of --slow; see slow.h. */
#include "plan/slow.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/span_name.h"

static const struct {
	const char *name;
	double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/* Times that are no number of ns are rounded up: what is below them is not slow. */
static int parse_time(const char *text, bool above, uint64_t *min_ns)
{
	char *end;
	double v;

	/* strtod takes hexadecimal, nan and blanks too. */
	if (!isdigit((unsigned char)*text) && *text != '.')
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	v = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double ns = v * units[i].ns;

		if (strcmp(end, units[i].name))
			continue;
		if (!(ns < 1e18))
			return -ERANGE;
		/* 0.1 us is 100 ns, however it is held. */
		if (fabs(ns - nearbyint(ns)) < 1e-6 * ns)
			ns = nearbyint(ns);
		*min_ns = above ? (uint64_t)floor(ns) + 1 : (uint64_t)ceil(ns);
		return 0;
	}
	return -EINVAL;
}

int slow_rule__parse(const char *text, struct slow_rule *out, struct err *e)
{
	const char *at = strrchr(text, '>'), *time;
	size_t len = at ? (size_t)(at - text) : 0;

	memset(out, 0, sizeof(*out));
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	if (!len)
		return err_set(e, -EINVAL, "--slow %s: not SPAN>TIME, as in 'strategy:tick>50us'",
			       text);
	time = at + 1 + (at[1] == '=');
	while (isspace((unsigned char)*time))
		time++;
	if (parse_time(time, at[1] != '=', &out->min_ns))
		return err_set(e, -EINVAL,
			       "--slow %s: '%s' is no time: a number with ns, us, ms or s", text,
			       time);
	out->text = text;
	out->glob = strndup(text, len);
	return out->glob ? 0 : err_set(e, -ENOMEM, "out of memory");
}

void slow_rule__clear(struct slow_rule *r)
{
	free(r->glob);
	memset(r, 0, sizeof(*r));
}

bool slow_rule__can_watch(const struct plan_span *s)
{
	return s->kind == SPAN_MARKER || s->kind == SPAN_KEYED ||
	       ((s->kind == SPAN_FUNC || s->kind == SPAN_CUDA) && s->way != RET_NONE);
}

bool slow_rule__matches(const struct slow_rule *r, const struct plan_span *span)
{
	return slow_rule__can_watch(span) && span_name__means(r->glob, span->name);
}

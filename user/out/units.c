/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* units.c - numbers as people read them: three significant digits and a unit. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "out/units.h"

/* Three significant digits of 0 <= v; the caller has seen to it that v rounds to below 1000. */
static int three_digits(char *buf, double v)
{
	return snprintf(buf, UNIT_TEXT, "%.*f", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v);
}

/* v in the largest unit in which it is at least 1, each `step` times the one before it. */
static char *scaled(char buf[UNIT_TEXT], double v, double step, const char *const *units, int n)
{
	int i = 0, len;

	while (i < n - 1 && v >= (step == 1000 ? 999.5 : step)) {
		v /= step;
		i++;
	}
	if (i == 0 && v == floor(v)) /* whole ns, bytes, events: no decimals */
		len = snprintf(buf, UNIT_TEXT, "%.0f", v);
	else if (v < 1e15)
		len = three_digits(buf, v);
	else
		len = snprintf(buf, UNIT_TEXT, "%.3g", v);
	snprintf(buf + len, UNIT_TEXT - len, "%s", units[i]);
	return buf;
}

char *unit__time(char buf[UNIT_TEXT], long double ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};

	return scaled(buf, (double)ns, 1000, units, 4);
}

char *unit__count(char buf[UNIT_TEXT], uint64_t n)
{
	snprintf(buf, UNIT_TEXT, "%" PRIu64, n);
	return buf;
}

char *unit__rate(char buf[UNIT_TEXT], double per_s)
{
	static const char *const units[] = {"", "k", "M", "G"};

	return scaled(buf, per_s, 1000, units, 4);
}

char *unit__share(char buf[UNIT_TEXT], double share)
{
	double pct = share * 100;

	if (pct > 0 && pct < 0.005)
		snprintf(buf, UNIT_TEXT, "<0.01%%");
	else if (pct > 99.9 && pct < 100)
		snprintf(buf, UNIT_TEXT, ">99.9%%");
	else if (pct >= 99.95)
		snprintf(buf, UNIT_TEXT, "%.0f%%", pct);
	else
		snprintf(buf, UNIT_TEXT, "%.*f%%", pct < 9.995 ? 2 : 1, pct);
	return buf;
}

char *unit__value(char buf[UNIT_TEXT], long double v)
{
	if (v == floorl(v) && fabsl(v) < 1e7L)
		snprintf(buf, UNIT_TEXT, "%.0Lf", v);
	else
		snprintf(buf, UNIT_TEXT, "%.4Lg", v);
	return buf;
}

char *unit__bytes(char buf[UNIT_TEXT], uint64_t n)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};

	return scaled(buf, (double)n, 1024, units, 5);
}

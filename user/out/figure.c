/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* figure.c - a figure with its interval as text and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "out/figure.h"

/* Five significant digits without trailing zeros, never an exponent below 1e15. */
static void digits(char *buf, size_t size, double v)
{
	double a = fabs(v);
	int whole = a >= 1 ? (int)floor(log10(a)) + 1 : 1, len;

	if (a >= 1e15 || (a > 0 && a < 1e-4)) {
		snprintf(buf, size, "%.4g", v);
		return;
	}
	len = snprintf(buf, size, "%.*f", whole < 5 ? 5 - whole : 0, v);
	if (!strchr(buf, '.'))
		return;
	while (len && buf[len - 1] == '0')
		buf[--len] = '\0';
	if (len && buf[len - 1] == '.')
		buf[--len] = '\0';
}

static void scaled(char *buf, double v, const char *const *units, int n, double step)
{
	char text[FIGURE_TEXT - 8];
	int i = 0;

	while (i < n - 1 && fabs(v) >= step * 0.999995) {
		v /= step;
		i++;
	}
	digits(text, sizeof(text), v);
	snprintf(buf, FIGURE_TEXT, "%s%s", text, units[i]);
}

char *figure__text(char buf[FIGURE_TEXT], enum figure_dim dim, double v)
{
	static const char *const times[] = {"ns", "us", "ms", "s"};
	static const char *const rates[] = {"/s", "k/s", "M/s", "G/s"};
	static const char *const shares[] = {"%"}, *const plain[] = {""};

	switch (dim) {
	case DIM_TIME:
		scaled(buf, v, times, 4, 1000);
		break;
	case DIM_RATE:
		scaled(buf, v, rates, 4, 1000);
		break;
	case DIM_SHARE:
		scaled(buf, v * 100, shares, 1, INFINITY);
		break;
	case DIM_COUNT:
		snprintf(buf, FIGURE_TEXT, v < 1e18 ? "%.0f" : "%.6g", v);
		break;
	default:
		scaled(buf, v, plain, 1, INFINITY);
	}
	return buf;
}

/* What follows the digits of a figure's text. */
static char *unit_of(char *text)
{
	return text + strspn(text, "+-.0123456789e");
}

char *interval__text(char buf[INTERVAL_TEXT], enum figure_dim dim, const struct estimate *e)
{
	char lo[FIGURE_TEXT] = "?", hi[FIGURE_TEXT] = "?";

	buf[0] = '\0';
	if (e->state != EST_KNOWN || !e->has_interval)
		return buf;
	if (isfinite(e->ci.lo))
		figure__text(lo, dim, e->ci.lo);
	if (isfinite(e->ci.hi))
		figure__text(hi, dim, e->ci.hi);
	/* The unit once, when both have the same. */
	if (*lo != '?' && !strcmp(unit_of(lo), unit_of(hi)))
		*unit_of(lo) = '\0';
	snprintf(buf, INTERVAL_TEXT, "[%s .. %s]", lo, hi);
	return buf;
}

char *estimate__text(char buf[FIGURE_TEXT], enum figure_dim dim, const struct estimate *e)
{
	if (e->state == EST_KNOWN)
		return figure__text(buf, dim, e->value);
	snprintf(buf, FIGURE_TEXT, "%s", e->state == EST_TOO_FEW ? "too few" : "-");
	return buf;
}

char *change__text(char buf[FIGURE_TEXT], double change)
{
	double pct = change * 100;

	if (!isfinite(pct))
		snprintf(buf, FIGURE_TEXT, "?");
	else if (fabs(pct) < 999.5)
		snprintf(buf, FIGURE_TEXT, "%+.1f%%", pct);
	else
		snprintf(buf, FIGURE_TEXT, "x%.3g", change + 1);
	return buf;
}

const char *figure__unit(enum figure_dim dim)
{
	static const char *const units[] = {[DIM_TIME] = "ns",
					    [DIM_COUNT] = "count",
					    [DIM_RATE] = "per_s",
					    [DIM_SHARE] = "share",
					    [DIM_VALUE] = "value"};

	return units[dim];
}

json_t *figure__json(double v)
{
	if (!isfinite(v))
		return json_null();
	if (v == floor(v) && fabs(v) < 9.2e18)
		return json_integer((json_int_t)v);
	return json_real(v);
}

json_t *interval__json(const struct interval *i)
{
	return json_pack("[o, o]", figure__json(i->lo), figure__json(i->hi));
}

json_t *estimate__json(struct json_doc *d, const struct estimate *e)
{
	json_t *o;

	if (e->state == EST_ABSENT || e->state == EST_UNKNOWN)
		return json_null();
	o = json_object();
	json_put(d, o, "value", e->state == EST_KNOWN ? figure__json(e->value) : json_null());
	if (e->state == EST_KNOWN && e->has_interval)
		json_put(d, o, "interval", interval__json(&e->ci));
	json_put(d, o, "n", json_count(e->n));
	if (e->state == EST_TOO_FEW)
		json_put(d, o, "needs", json_count(e->needs));
	return o;
}

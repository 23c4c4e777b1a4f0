/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A figure with its interval as text and as JSON, for diff and check. */
#ifndef QBPF_OUT_FIGURE_H
#define QBPF_OUT_FIGURE_H

#include "model/side.h"
#include "out/json_write.h"

#define FIGURE_TEXT   40
#define INTERVAL_TEXT (2 * FIGURE_TEXT + 8)

/* Five significant digits: a limit and what just breaks it should not look alike. */
char *figure__text(char buf[FIGURE_TEXT], enum figure_dim dim, double v);
/* "[46.9 .. 48.8us]", a missing bound as "?"; "" when there is none. */
char *interval__text(char buf[INTERVAL_TEXT], enum figure_dim dim, const struct estimate *e);
/* "-" when absent, "too few", or the value. */
char *estimate__text(char buf[FIGURE_TEXT], enum figure_dim dim, const struct estimate *e);
/* "+12.3%" */
char *change__text(char buf[FIGURE_TEXT], double change);

const char *figure__unit(enum figure_dim dim);	  /* "ns" "per_s" "share" "count" "value" */
json_t *figure__json(double v);			  /* null when it is no number */
json_t *interval__json(const struct interval *i); /* [lo, hi], null for a missing bound */
/* {"value", "interval", "n"} with null for what is not known; "needs" when there are too few. */
json_t *estimate__json(struct json_doc *d, const struct estimate *e);

#endif

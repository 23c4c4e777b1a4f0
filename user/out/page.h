/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sections that plain reports are made of, of a live session or a recording. Plain text, no
 * escape sequences; what comes from the target is made printable.
 */
#ifndef QBPF_OUT_PAGE_H
#define QBPF_OUT_PAGE_H

#include <stdio.h>

#include "model/snapshot.h"
#include "model/tree.h"
#include "out/fields.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

struct page {
	FILE *f;
	const struct snapshot *s;
	unsigned int width, bar_width;
	bool utf8;
	struct tree *tree; /* of s */
	struct span_rows rows;
	struct span_row **order; /* by time, greatest first */
	bool floor_shown;	 /* a figure below the floor: page__floor explains */
	size_t most_spans;	 /* in one table; 0: no limit */
	const bool *hidden;	 /* by index: spans that no table shows; NULL: none */
	size_t nhidden;
	size_t most_nodes, histogram_rows;
};

/* width: columns; 0: no terminal, as many as the names need. 0 or -ENOMEM. */
int page__open(struct page *r, FILE *f, const struct snapshot *s, unsigned int width);
void page__close(struct page *r);

/* Foreign text, printable. */
void page__text(const struct page *r, const char *s);
/* A line, which may become several; target bytes in it become printable. */
void page__line(const struct page *r, unsigned int indent, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Names that share one fate, a few of them, and the end of the line. */
void page__names(const struct page *r, const char *const *names, size_t n);

/* Whom, for how long, on what host: a line. */
void page__target(const struct page *r);
/* How many sites are armed and what they cost: a line. */
void page__sites(const struct page *r, const struct snapshot *s);
/* Whether anything has happened in it, so that it is worth a line. */
bool page__row_alive(const struct span_row *r);
/* The spans of one class, in the order of time. The first column's heading is `heading`. */
void page__spans(struct page *r, enum row_class class, const enum span_field *columns,
		 size_t ncolumns, const char *heading);
/* Spans that were never hit. */
void page__idle_spans(const struct page *r);
/* What did not become a clean span, when there is any. */
void page__unclean(const struct page *r);
void page__tree(struct page *r, const struct tree *t, const enum node_field *columns,
		size_t ncolumns);
void page__histogram(const struct page *r, const struct span_row *row);
/* Refused and failed sites, notes. */
void page__probes(const struct page *r);
/* What the kernel could not aggregate, by span and reason. */
void page__losses(const struct page *r);
void page__price(const struct page *r);
/* What "~" means. */
void page__floor(const struct page *r);

#endif

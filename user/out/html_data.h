/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data of the page: one JSON document, read only by the page's own script (html/data.js), with
 * which it changes together. Times are ns after the start of the recording. A number that a double
 * cannot hold exactly is a string of its digits.
 */
#ifndef QBPF_OUT_HTML_DATA_H
#define QBPF_OUT_HTML_DATA_H

#include "model/analysis.h"
#include "out/json_write.h"

/* What one page holds at most: by time, greatest first. A few MB in all. */
#define HTML_SPANS_MAX	4000   /* rows of the table */
#define HTML_CHARTS_MAX 400    /* of these with charts */
#define HTML_NODES_MAX	20000  /* of the call tree, and what is around them */
#define HTML_EDGES_MAX	20000  /* from one span into another */
#define HTML_EVENTS_MAX 100000 /* of all slowest spans together */
#define HTML_TREES_MAX	100    /* slowest spans */
#define HTML_SITES_MAX	500    /* refused sites */
#define HTML_NAME_MAX	1000   /* bytes of a name */

#define HTML_NO_ROW (-1)

struct html_data {
	struct json_doc doc;
	const struct analysis *a;
	int32_t *row_of; /* by span id - 1: index into the page's "spans", or HTML_NO_ROW */
	uint32_t *order; /* index of the span of each row */
	size_t nrows;
};

/* Builds the document in d->doc; html_data__clear in any case. 0 or -ENOMEM. */
int html_data__make(struct html_data *d, const struct analysis *a);
void html_data__clear(struct html_data *d);

/* The parts; each puts its keys into d->doc.root. */
void html_data__spans(struct html_data *d);
void html_data__tree(struct html_data *d);
void html_data__slowest(struct html_data *d);
/* After these; no key where the recording has nothing of a GPU. */
void html_data__gpu(struct html_data *d);

/* Row of a span id as the page has it; HTML_NO_ROW for one it has not. */
int32_t html_data__row(const struct html_data *d, uint32_t span);

json_t *html_count(uint64_t n);
json_t *html_number(long double v);
/* Valid UTF-8, cut to HTML_NAME_MAX bytes. */
json_t *html_text(const char *s);
/* An absolute time as the page has it; before the start: 0. */
json_t *html_time(const struct html_data *d, uint64_t ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the summary document, for those who append to it. */
#ifndef QBPF_OUT_JSON_SUMMARY_H
#define QBPF_OUT_JSON_SUMMARY_H

#include "out/fields.h"
#include "out/json_write.h"

/*
 * Makes d->root. `costs`: whose probes and prices; NULL: prices are not known. full: with the spans'
 * histograms. 0 or -ENOMEM; d->root is the caller's to free or to write either way.
 */
int json_summary(struct json_doc *d, const struct snapshot *s, const struct snapshot *costs,
		 bool full);
json_t *json_span(struct json_doc *d, const struct span_row *r, bool full);
/* Nested without recursion; siblings are ordered by time. */
json_t *json_tree(struct json_doc *d, const struct tree *t);

#endif

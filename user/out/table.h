/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plain report: spans, histograms, call tree, refused probes, losses, price. Plain text,
 * no escape sequences, aligned, units readable.
 */
#ifndef QBPF_OUT_TABLE_H
#define QBPF_OUT_TABLE_H

#include <stdio.h>

#include "model/snapshot.h"

struct table_opts {
	unsigned int width; /* columns; 0: no terminal, as many as the names need */
	bool histograms;    /* one per span, for the final report */
	bool tree;
	bool probes; /* refused, failed, notes */
	bool price;
};

void table__write(FILE *f, const struct snapshot *s, const struct table_opts *o);

#endif

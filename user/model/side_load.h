/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the two sources fill a side. Private to model/side*.c. */
#ifndef QBPF_MODEL_SIDE_LOAD_H
#define QBPF_MODEL_SIDE_LOAD_H

#include <stdio.h>

#include "model/side.h"

/* Each fills an empty side whose path and quantiles are set. */
int side__load_trace(struct side *s, struct err *e);
int side__load_summary(struct side *s, FILE *f, struct err *e);
void side__free_trace(struct side_source *source);

/* Appends an item; NULL: no memory. Moves items. */
struct side_item *side__add(struct side *s, const char *name);
/* When all items are there: links, and the times that shares refer to. 0 or -ENOMEM. */
int side__settle(struct side *s);
/* `time` by window; NULL: not known. */
const double *side_item__time_windows(const struct side_item *it);

#endif

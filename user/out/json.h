/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The summary document, schema qbpf.summary/1 (DESIGN.md). One line when compact. */
#ifndef QBPF_OUT_JSON_H
#define QBPF_OUT_JSON_H

#include <stdio.h>

#include "model/snapshot.h"
#include "plan/plan.h"

/* 0 or a negative errno of writing. Names are made valid UTF-8. */
int json__write_summary(FILE *f, const struct snapshot *s, bool compact);

/* `qbpf list --json`: schema qbpf.list/1: objects, markers with args and sites, functions,
 * verdict, reason, price and way of each. */
int json__write_list(FILE *f, const struct plan *p, const struct plan_object *objs, size_t nobjs,
		     const uint64_t price_ns[PRICE_N]);

#endif

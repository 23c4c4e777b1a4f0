/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `qbpf list` as text: per object its markers and functions, each with verdict and price. */
#ifndef QBPF_OUT_LIST_H
#define QBPF_OUT_LIST_H

#include <stdio.h>

#include "plan/plan.h"

void list__write(FILE *f, const struct plan *p, const struct plan_object *objs, size_t nobjs,
		 const uint64_t price_ns[PRICE_N]);

#endif

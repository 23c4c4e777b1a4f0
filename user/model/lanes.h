/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Spans that may overlap, spread over lanes in which none does: for each a lane whose latest span has
 * ended when this one begins. Spans that come nearly in the order of their ends need about as many
 * lanes as ever overlap; any order is right.
 */
#ifndef QBPF_MODEL_LANES_H
#define QBPF_MODEL_LANES_H

#include <stdbool.h>
#include <stdint.h>

struct lanes;

struct lanes *lanes__new(void);
void lanes__free(struct lanes *l);

/*
 * *lane: 0, 1, ..; *fresh: it was not in use before. More than LANES_MAX are not kept open: what finds
 * no room then has a lane to itself. end_ns >= start_ns. 0 or -ENOMEM.
 */
#define LANES_MAX 4096
int lanes__take(struct lanes *l, uint64_t start_ns, uint64_t end_ns, uint32_t *lane, bool *fresh);

#endif

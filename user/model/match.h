/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which item of one side is which of another: spans by name, nodes by the names down to them. */
#ifndef QBPF_MODEL_MATCH_H
#define QBPF_MODEL_MATCH_H

#include "model/side.h"

/* For each item of b the item of a, or SIDE_NONE. Of equal names the first goes with the first.
 * malloc'ed; NULL: no memory. */
uint32_t *side__match(const struct side *a, const struct side *b);

#endif

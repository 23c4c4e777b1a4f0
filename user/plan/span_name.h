/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What people write for the names of spans: whole, shortened, or as a glob. */
#ifndef QBPF_PLAN_SPAN_NAME_H
#define QBPF_PLAN_SPAN_NAME_H

#include <stdbool.h>

/* What follows the provider of a marker's name; NULL: it has none ("a::b" is a function's). */
const char *span_name__tail(const char *name);
/* The name itself, a glob of it, a marker's without its provider, a function's without its
 * parameters. */
bool span_name__means(const char *pattern, const char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which markers belong together by their names: the default pairs, all of which nest on a
 * thread (DESIGN.md, Pairing).
 */
#ifndef QBPF_PLAN_PAIRING_H
#define QBPF_PLAN_PAIRING_H

#include <stddef.h>

/* The words that open a span, each with its ends; both lists end with NULL. */
struct pair_rule {
	const char *begin;
	const char *ends[8];
};

extern const struct pair_rule pair_rules[];
extern const size_t npair_rules;

/*
 * If `name` is a word alone, or ends in one behind "__", "_" or "-", returns the length of
 * what precedes the word, separator included, and sets *base_len to what precedes the
 * separator; else -1. "tick__begin", "begin" -> 6, base 4.
 */
int pair_stem(const char *name, const char *word, size_t *base_len);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "did you mean ...?": of many names the few that resemble one most. */
#ifndef QBPF_PLAN_NEAR_H
#define QBPF_PLAN_NEAR_H

#include <stddef.h>

#define NEAR_N	 3
#define NEAR_MAX 128 /* longer names are compared by their start */

struct nearest {
	const char *want;
	size_t want_len; /* at most NEAR_MAX */
	struct {
		char name[NEAR_MAX + 1];
		unsigned int distance;
	} best[NEAR_N];
	size_t n;
};

#define NEAR_TEXT (NEAR_N * (NEAR_MAX + 3))

void nearest__offer(struct nearest *nr, const char *name, size_t len);
/* A span's name: whole, and without its provider. */
void nearest__offer_span(struct nearest *nr, const char *name);
/* "a, b, c"; "" when nothing resembles it. */
void nearest__join(const struct nearest *nr, char *out, size_t size);

#endif

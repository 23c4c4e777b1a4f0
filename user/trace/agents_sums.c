// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the CUDA agents have delivered, in words; see agents.h. */
#include <stdio.h>
#include <stdlib.h>

#include "trace/agents.h"

/* Types that a person asks for, in that order. */
static const struct {
	enum qbpf_ring_type type;
	const char *one, *many;
} shown[] = {
    {QBPF_RING_KERNEL, "kernel", "kernels"}, {QBPF_RING_GRAPH, "graph", "graphs"},
    {QBPF_RING_COPY, "copy", "copies"},	     {QBPF_RING_SET, "memset", "memsets"},
    {QBPF_RING_SYNC, "sync", "syncs"},	     {QBPF_RING_CALL, "call", "calls"},
};

static void put_lost(FILE *f, const struct agents_sums *s)
{
	uint64_t ring = 0, other = 0, lost;
	const char *sep = ": ";

	for (unsigned t = 0; t < QBPF_RING_TYPES; t++)
		other += s->lost[t];
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		ring += s->lost[shown[i].type];
	other -= ring;
	lost = ring + s->dropped + s->discarded;
	if (lost)
		fprintf(f, "; lost %llu", (unsigned long long)lost);
	if (ring) {
		fprintf(f, "%s%llu found the agent's ring full", sep, (unsigned long long)ring);
		sep = ", ";
	}
	if (s->dropped) {
		fprintf(f, "%s%llu were dropped by CUPTI", sep, (unsigned long long)s->dropped);
		sep = ", ";
	}
	if (s->discarded)
		fprintf(f, "%s%llu found no buffer", sep, (unsigned long long)s->discarded);
	if (other)
		fprintf(f, "; lost %llu clock readings and descriptions",
			(unsigned long long)other);
}

char *agents_sums__text(const struct agents_sums *s, uint64_t unseen_spans)
{
	const char *sep = " ";
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fputs("GPU:", f);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		uint64_t n = s->read[shown[i].type];

		if (!n)
			continue;
		fprintf(f, "%s%llu %s", sep, (unsigned long long)n,
			n == 1 ? shown[i].one : shown[i].many);
		sep = ", ";
	}
	if (*sep == ' ')
		fputs(" nothing", f);
	put_lost(f, s);
	if (s->broken || s->unreadable)
		fprintf(f, "; could not be read: %llu records, the rest of %llu buffers",
			(unsigned long long)s->unreadable, (unsigned long long)s->broken);
	if (s->sudden)
		fprintf(f, "; the last ones of %u that ended suddenly are missing", s->sudden);
	if (s->second)
		fputs("; of another process nothing came", f);
	if (unseen_spans)
		fprintf(f, "; its figures lack %llu spans: the ring was full (--ring)",
			(unsigned long long)unseen_spans);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

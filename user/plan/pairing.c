/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The default pairs of markers, as data. */
#include <string.h>

#include "plan/pairing.h"

/*
 * Only pairs that nest on a thread. In order: an end belongs to the first begin that claims
 * it, and one begin takes every end that is there (PostgreSQL: transaction__start ->
 * transaction__commit | transaction__abort).
 */
const struct pair_rule pair_rules[] = {
    {"begin", {"end", "commit", "abort"}},
    {"start", {"end", "done", "stop", "finish", "commit", "abort"}},
    {"entry", {"return", "exit"}},
    {"enter", {"exit", "leave"}},
};
const size_t npair_rules = sizeof(pair_rules) / sizeof(*pair_rules);

int pair_stem(const char *name, const char *word, size_t *base_len)
{
	size_t len = strlen(name), wlen = strlen(word), stem;

	if (len < wlen || strcmp(name + len - wlen, word))
		return -1;
	stem = len - wlen;
	*base_len = stem;
	if (!stem)
		return 0;
	if (stem > 2 && name[stem - 1] == '_' && name[stem - 2] == '_')
		*base_len = stem - 2;
	else if (stem > 1 && (name[stem - 1] == '_' || name[stem - 1] == '-'))
		*base_len = stem - 1;
	else
		return -1;
	return stem;
}

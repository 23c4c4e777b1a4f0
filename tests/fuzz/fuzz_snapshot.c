// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a packed snapshot: refused with a line, or whole, and then the same after another trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot *s, *again;
	struct err e = {{0}};
	void *first, *second;
	size_t n, m;

	if (snapshot__unpack(data, size, &s, &e)) {
		check(e.text[0] && !strchr(e.text, '\n'));
		return 0;
	}
	for (size_t i = 0; i < s->nspans; i++)
		check(s->spans[i].hist != NULL);
	free(snapshot__counts(s));
	check(!snapshot__pack(s, &first, &n));
	check(!snapshot__unpack(first, n, &again, &e));
	check(!snapshot__pack(again, &second, &m));
	check(n == m && !memcmp(first, second, n));
	free(first);
	free(second);
	snapshot__free(s);
	snapshot__free(again);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares text with a file of tests/golden; with UPDATE=1 in the environment writes it. */
#ifndef QBPF_TESTS_GOLDEN_H
#define QBPF_TESTS_GOLDEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void golden__check(const char *name, const char *text)
{
	char path[256], *want = NULL;
	const char *update = getenv("UPDATE");
	size_t len = 0, n;
	FILE *f;

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (update && !strcmp(update, "1")) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		assert_int_equal(fclose(f), 0);
		return;
	}
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read; UPDATE=1 makes it", path);
	want = calloc(1, 1 << 20);
	assert_non_null(want);
	while ((n = fread(want + len, 1, (1 << 20) - 1 - len, f)) > 0)
		len += n;
	fclose(f);
	if (strcmp(want, text)) {
		size_t at = 0, line = 1;

		while (want[at] && want[at] == text[at])
			line += want[at++] == '\n';
		fprintf(stderr, "%s differs in line %zu; got:\n%s", path, line, text);
		free(want);
		fail_msg("%s differs in line %zu", path, line);
	}
	free(want);
}

#endif

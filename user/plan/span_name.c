// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* span_name.c - what people write for the names of spans; see span_name.h. */
#include "plan/span_name.h"

#include <string.h>

#include "plan/glob.h"

const char *span_name__tail(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon && colon[1] != ':' ? colon + 1 : NULL;
}

bool span_name__means(const char *pattern, const char *name)
{
	const char *tail = span_name__tail(name);
	size_t len = strlen(pattern);

	/* A literal name may have what a glob would take for a set: operator[]. */
	if (!strcmp(pattern, name) || glob_match(pattern, name))
		return true;
	if (tail)
		return !span_name__tail(pattern) && glob_match(pattern, tail);
	return len && !strncmp(pattern, name, len) && name[len] == '(';
}

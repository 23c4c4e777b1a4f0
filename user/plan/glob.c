/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Globs over names. */
#include <string.h>

#include "plan/glob.h"

/* The end of the set that starts at '[' (behind its ']'), or NULL: it is not closed. */
static const char *set_end(const char *g)
{
	g++;
	if (*g == '!' || *g == '^')
		g++;
	if (*g == ']')
		g++;
	g = strchr(g, ']');
	return g ? g + 1 : NULL;
}

static bool set_has(const char *g, const char *end, unsigned char c)
{
	bool negate, found = false;
	unsigned char lo, hi;

	g++;
	negate = *g == '!' || *g == '^';
	if (negate)
		g++;
	for (end--; g < end; g++) {
		lo = hi = *g;
		if (g + 2 < end && g[1] == '-') {
			hi = g[2];
			g += 2;
		}
		if (c >= lo && c <= hi)
			found = true;
	}
	return found != negate;
}

bool glob_is_wild(const char *g)
{
	for (; *g; g++) {
		if (*g == '\\' && g[1])
			g++;
		else if (*g == '*' || *g == '?' || (*g == '[' && set_end(g)))
			return true;
	}
	return false;
}

/* One element of the glob against one character; *next is the element behind it. */
static bool match_one(const char *g, unsigned char c, const char **next)
{
	const char *end;

	if (*g == '?') {
		*next = g + 1;
		return true;
	}
	if (*g == '[') {
		end = set_end(g);
		if (end) {
			*next = end;
			return set_has(g, end, c);
		}
	}
	if (*g == '\\' && g[1])
		g++;
	*next = g + 1;
	return (unsigned char)*g == c;
}

bool glob_match_n(const char *g, const char *s, size_t len)
{
	const char *end = s + len, *star = NULL, *retry = NULL, *next;

	while (s < end) {
		if (*g == '*') {
			star = ++g;
			retry = s;
		} else if (*g && match_one(g, *s, &next)) {
			g = next;
			s++;
		} else if (star) {
			g = star;
			s = ++retry;
		} else {
			return false;
		}
	}
	while (*g == '*')
		g++;
	return !*g;
}

bool glob_match(const char *g, const char *s)
{
	return glob_match_n(g, s, strlen(s));
}

size_t glob_next_run(const char **glob, const char **run)
{
	const char *g = *glob, *end;

	*run = g;
	for (; *g; g++) {
		if (*g != '*' && *g != '?' && *g != '[' && *g != '\\')
			continue;
		if (g != *run)
			break;
		end = *g == '[' ? set_end(g) : NULL;
		if (end)
			g = end - 1;
		else if (*g == '\\' && g[1])
			g++;
		*run = g + 1;
	}
	*glob = g;
	return g - *run;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What -u and -f are given: [OBJ!]GLOB. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/build.h"
#include "plan/glob.h"

/* The '!' that ends an object's name; that of "operator!=" does not. */
static const char *find_bang(const char *s)
{
	const char *bang;

	for (bang = strchr(s, '!'); bang; bang = strchr(bang + 1, '!')) {
		if (bang == s || bang[-1] == '[')
			continue;
		if (bang - s >= 8 && !memcmp(bang - 8, "operator", 8))
			continue;
		return bang;
	}
	return NULL;
}

static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		*to++ = *s;
	}
	*to = '\0';
}

int pattern__parse(struct pattern *pt, const char *text)
{
	const char *bang = find_bang(text);
	const char *rest = bang ? bang + 1 : text;

	memset(pt, 0, sizeof(*pt));
	pt->text = text;
	if (!*rest)
		return -EINVAL;
	pt->glob = strdup(rest);
	if (bang)
		pt->obj = strndup(text, bang - text);
	if (!pt->glob || (bang && !pt->obj)) {
		pattern__clear(pt);
		return -ENOMEM;
	}
	pt->wild = glob_is_wild(pt->glob);
	if (!pt->wild)
		unescape(pt->glob);
	return 0;
}

void pattern__clear(struct pattern *pt)
{
	free(pt->obj);
	free(pt->glob);
	memset(pt, 0, sizeof(*pt));
}

bool pattern__object(const struct pattern *pt, const char *path)
{
	return !pt->obj || glob_match(pt->obj, path_base(path));
}

bool pattern__marker(const struct pattern *pt, const char *provider, const char *name)
{
	size_t plen = strlen(provider);
	const char *colon = strchr(pt->glob, ':');
	char *full;
	bool yes;

	if (!pt->wild) {
		if (!colon)
			return !strcmp(pt->glob, name);
		return !strncmp(pt->glob, provider, plen) && pt->glob[plen] == ':' &&
		       !strcmp(pt->glob + plen + 1, name);
	}
	if (!colon && glob_match(pt->glob, name))
		return true;
	full = malloc(plen + strlen(name) + 2);
	if (!full)
		return false;
	memcpy(full, provider, plen);
	full[plen] = ':';
	strcpy(full + plen + 1, name);
	yes = glob_match(pt->glob, full);
	free(full);
	return yes;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* names.c - cuts a column of names; see names.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out/names.h"
#include "out/text.h"

struct named {
	const char *name;
	char **fit;
	unsigned int room;
};

static int by_looks(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;
	int c = strcmp(*a->fit, *b->fit);

	return c ? c : strcmp(a->name, b->name);
}

/* The end of the names that look like the first; *distinct: how many different ones they are. */
static size_t group_end(const struct named *v, size_t from, size_t n, size_t *distinct)
{
	size_t i = from + 1;

	*distinct = 1;
	for (; i < n && !strcmp(*v[i].fit, *v[from].fit); i++)
		*distinct += strcmp(v[i].name, v[i - 1].name) != 0;
	return i;
}

/* Bytes, of whole characters. In their order the first and the last have least in common. */
static size_t common_prefix(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	while (n && (a[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* The beginning of s that fits into so many columns; how many it takes. */
static size_t head_of(const char *s, size_t most, unsigned int width, bool utf8, unsigned int *used)
{
	size_t n = 0, next;

	*used = 0;
	while (n < most) {
		char one[8] = "";
		unsigned int w;

		for (next = n + 1; next < most && (s[next] & 0xc0) == 0x80; next++)
			;
		if (next - n >= sizeof(one))
			break;
		memcpy(one, s + n, next - n);
		w = text__width(one, utf8);
		if (*used + w > width)
			break;
		*used += w;
		n = next;
	}
	return n;
}

/* What `same` bytes are alike of gives way: "cudaMem...2DAsync". NULL: no memory. */
static char *cut_before(const struct named *v, size_t same, bool utf8)
{
	const char *dots = utf8 ? "\xe2\x80\xa6" : "..", *rest = v->name + same;
	unsigned int ndots = utf8 ? 1 : 2, left = text__width(rest, utf8), half = v->room / 2, head,
		     used;
	char *end, *out = NULL;
	size_t n;

	head = v->room - ndots - (left < half ? left : half);
	n = head_of(v->name, same, head, utf8, &used);
	end = text__fit(rest, v->room - used - ndots, utf8);
	if (end && asprintf(&out, "%.*s%s%s", (int)n, v->name, dots, end) < 0)
		out = NULL;
	free(end);
	return out;
}

static int tell_apart(struct named *v, size_t n, bool utf8)
{
	size_t same = common_prefix(v[0].name, v[n - 1].name);

	for (size_t i = 0; i < n; i++) {
		char *other;

		if (v[i].room < 8 || same < 3 || text__width(v[i].name, utf8) <= v[i].room)
			continue;
		other = cut_before(&v[i], same, utf8);
		if (!other)
			return -ENOMEM;
		free(*v[i].fit);
		*v[i].fit = other;
	}
	return 0;
}

static int tell_all_apart(struct named *v, size_t n, bool utf8, size_t *alike)
{
	size_t end, distinct;
	int err = 0;

	qsort(v, n, sizeof(*v), by_looks);
	for (size_t i = 0; i < n && !err; i = end) {
		end = group_end(v, i, n, &distinct);
		if (distinct > 1)
			err = tell_apart(&v[i], end - i, utf8);
	}
	qsort(v, n, sizeof(*v), by_looks);
	*alike = 0;
	for (size_t i = 0; i < n; i = end) {
		end = group_end(v, i, n, &distinct);
		*alike += distinct > 1 ? distinct : 0;
	}
	return err;
}

int names__fit(const char *const *names, const unsigned int *room, size_t n, bool utf8, char **fits,
	       size_t *alike)
{
	struct named *v = calloc(n + 1, sizeof(*v));
	int err = v ? 0 : -ENOMEM;

	for (size_t i = 0; i < n; i++) {
		fits[i] = err ? NULL : text__fit_name(names[i], room[i], utf8);
		if (!fits[i])
			err = -ENOMEM;
		else
			v[i] = (struct named){names[i], &fits[i], room[i]};
	}
	if (!err)
		err = tell_all_apart(v, n, utf8, alike);
	free(v);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* side.c - one side of a comparison: loading it, and what its parts are called. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/side_load.h"

/* Nodes that never ended whose times are kept by window: 64 MiB. */
#define UNENDED_MAX 32768

const double side_quantiles[SIDE_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 0.9999};

struct side_item *side__add(struct side *s, const char *name)
{
	struct side_item *it;

	/* Powers of two. */
	if (!(s->n & (s->n - 1))) {
		it = realloc(s->items, (s->n ? s->n * 2 : 1) * sizeof(*it));
		if (!it)
			return NULL;
		s->items = it;
	}
	it = &s->items[s->n];
	memset(it, 0, sizeof(*it));
	it->name = strdup(name);
	if (!it->name)
		return NULL;
	it->span = s->n++;
	it->parent = it->first = it->next = SIDE_NONE;
	it->lost = it->open = it->orphan_ends = it->abandoned = SIDE_UNKNOWN;
	for (int i = 0; i < SIDE_QUANTILES; i++)
		it->q[i] = NAN;
	return it;
}

/* The time of each node, from the leaves up: what never ended has that of its children. */
static int set_times(struct side *s)
{
	double *children = calloc(s->n + 1, sizeof(*children));

	if (!children)
		return -ENOMEM;
	for (size_t i = s->n; i-- > 0;) {
		struct side_item *it = &s->items[i];

		it->time = it->total;
		if (!it->node || it->class != SIDE_TIME)
			continue;
		if (children[i] > it->time)
			it->time = children[i];
		if (it->parent == SIDE_NONE)
			s->roots_ns += it->time;
		else
			children[it->parent] += it->time;
	}
	free(children);
	return 0;
}

const double *side_item__time_windows(const struct side_item *it)
{
	if (it->time > it->total)
		return it->time_windows;
	return it->windows ? it->windows->total : NULL;
}

/* sum += time of the item; without that sum is not known either. */
static void add_windows(double **sum, const struct side_item *it)
{
	const double *windows = side_item__time_windows(it);

	if (it->time == 0 || !*sum)
		return;
	if (!windows) {
		free(*sum);
		*sum = NULL;
		return;
	}
	for (int w = 0; w < INTERVAL_WINDOWS; w++)
		(*sum)[w] += windows[w];
}

/* The times by window of the root and of what never ended, as long as these are not too many. */
static int set_time_windows(struct side *s)
{
	size_t unended = 0;

	for (size_t i = s->nspans; i < s->n; i++)
		unended += s->items[i].time > s->items[i].total;
	for (size_t i = s->nspans; i < s->n && unended <= UNENDED_MAX; i++) {
		if (s->items[i].time <= s->items[i].total)
			continue;
		s->items[i].time_windows = calloc(INTERVAL_WINDOWS, sizeof(double));
		if (!s->items[i].time_windows)
			return -ENOMEM;
	}
	s->roots_windows = calloc(INTERVAL_WINDOWS, sizeof(double));
	if (!s->roots_windows)
		return -ENOMEM;
	for (size_t i = s->n; i-- > s->nspans;) {
		struct side_item *it = &s->items[i];

		if (it->class != SIDE_TIME)
			continue;
		if (it->parent == SIDE_NONE)
			add_windows(&s->roots_windows, it);
		else
			add_windows(&s->items[it->parent].time_windows, it);
	}
	return 0;
}

int side__settle(struct side *s)
{
	int err;

	for (size_t i = s->n; i-- > s->nspans;) {
		struct side_item *it = &s->items[i];

		if (it->span == SIDE_NONE)
			continue;
		it->next = s->items[it->span].first;
		s->items[it->span].first = i;
	}
	err = set_times(s);
	return err || !s->trace ? err : set_time_windows(s);
}

/* What it starts with: '{' or '[' of JSON, or anything else, which the trace reader judges. */
static int sniff(FILE *f, bool *json, const char *path, struct err *e)
{
	int c = EOF, skipped = 0;

	*json = false;
	while (skipped++ < 65536 && (c = getc(f)) != EOF && c && strchr(" \t\r\n\xef\xbb\xbf", c))
		;
	if (ferror(f))
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (c == EOF)
		return err_set(e, -EBADMSG, "%s: empty: neither a trace nor a summary", path);
	*json = c == '{' || c == '[';
	if (*json && ungetc(c, f) == EOF)
		return err_set(e, -EIO, "%s: cannot be read", path);
	return 0;
}

int side__load(const char *path, const double *extra, size_t nextra, struct side **out,
	       struct err *e)
{
	struct side *s = calloc(1, sizeof(*s));
	bool json = false, in = !strcmp(path, "-");
	FILE *f = NULL;
	int err;

	*out = NULL;
	if (s)
		s->path = strdup(in ? "stdin" : path);
	if (!s || !s->path) {
		err = err_set(e, -ENOMEM, "out of memory");
		goto out;
	}
	s->lost = SIDE_UNKNOWN;
	memcpy(s->q, side_quantiles, sizeof(side_quantiles));
	s->nq = SIDE_QUANTILES;
	for (size_t i = 0; i < nextra && s->nq < SIDE_Q_MAX; i++)
		s->q[s->nq++] = extra[i];
	f = in ? stdin : fopen(path, "re");
	if (!f) {
		err = err_set(e, -errno, "%s: %s", path, strerror(errno));
		goto out;
	}
	err = sniff(f, &json, s->path, e);
	if (err)
		goto out;
	if (json)
		err = side__load_summary(s, f, e);
	else if (in)
		err = err_set(e, -EBADMSG, "stdin is no summary; a trace must be a file");
	else {
		s->trace = true;
		err = side__load_trace(s, e);
	}
	if (!err && side__settle(s))
		err = err_set(e, -ENOMEM, "out of memory");
out:
	if (f && !in)
		fclose(f);
	if (err) {
		side__free(s);
		return err;
	}
	*out = s;
	return 0;
}

void side__free(struct side *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		free(s->items[i].name);
		free(s->items[i].buckets);
		free(s->items[i].windows);
		free(s->items[i].time_windows);
	}
	free(s->items);
	free(s->roots_windows);
	side__free_trace(s->source);
	free(s->slow);
	free(s->path);
	free(s);
}

char *side__path(const struct side *s, size_t item)
{
	size_t len = 0, at, i = item;
	char *path;

	do {
		len += strlen(s->items[i].name) + 1;
		i = s->items[i].parent;
	} while (i != SIDE_NONE);
	path = malloc(len);
	if (!path)
		return NULL;
	at = len;
	i = item;
	do {
		size_t n = strlen(s->items[i].name);

		path[--at] = i == item ? '\0' : '/';
		at -= n;
		memcpy(path + at, s->items[i].name, n);
		i = s->items[i].parent;
	} while (i != SIDE_NONE);
	return path;
}

char *side__caveat(const struct side *s)
{
	const char *sep = ": ";
	char *text = NULL;
	size_t len;
	FILE *f;

	if ((!s->lost || s->lost == SIDE_UNKNOWN) && s->clean && !s->slow && s->sample < 2 &&
	    !s->skipped)
		return NULL;
	f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fputs(s->path, f);
	if (s->lost && s->lost != SIDE_UNKNOWN) {
		fprintf(f, "%s%" PRIu64 " spans were lost", sep, s->lost);
		sep = ", ";
	}
	if (!s->clean) {
		fprintf(f, "%sthe recording was cut short", sep);
		sep = ", ";
	}
	if (s->skipped) {
		fprintf(f, "%s%" PRIu64 " spans were left out on purpose", sep, s->skipped);
		sep = ", ";
	}
	if (s->sample > 1) {
		fprintf(f, "%sone outermost span in %" PRIu32 " was recorded", sep, s->sample);
		sep = ", ";
	}
	if (s->slow)
		fprintf(f, "%sonly what --slow '%s' chose was kept", sep, s->slow);
	fputs(": the figures are of the rest", f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

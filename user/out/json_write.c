/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_write.c - building JSON documents with jansson.
 *
 * A value that could not be made is NULL; putting NULL somewhere fails and harms nothing, so
 * failures are collected here and told once, when the document is written.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/json_write.h"
#include "out/text.h"

void json_put(struct json_doc *d, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		d->failed = true;
}

void json_append(struct json_doc *d, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		d->failed = true;
}

void json_put_text(struct json_doc *d, json_t *object, const char *key, const char *text)
{
	char *valid;

	if (!text)
		return;
	valid = text__valid(text);
	json_put(d, object, key, valid ? json_string(valid) : NULL);
	free(valid);
}

void json_append_text(struct json_doc *d, json_t *array, const char *text)
{
	char *valid = text__valid(text ? text : "");

	json_append(d, array, valid ? json_string(valid) : NULL);
	free(valid);
}

json_t *json_measure(long double v)
{
	if (isnan(v))
		return json_null();
	if (isinf((double)v))
		return json_string(v > 0 ? "inf" : "-inf");
	if (v == floorl(v) && v >= (long double)INT64_MIN && v <= (long double)INT64_MAX)
		return json_integer((json_int_t)v);
	return json_real((double)v);
}

json_t *json_count(uint64_t n)
{
	/* jansson has no unsigned 64-bit integer. */
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

/* The length of an array of plain numbers that starts at p, or 0: it is something else. */
static size_t number_array(const char *p)
{
	size_t n = strspn(p + 1, " \n0123456789+-.eE,nul") + 1;

	return p[n] == ']' && n > 1 ? n + 1 : 0;
}

/* Puts arrays of plain numbers on one line each, in place: a histogram has hundreds. */
static void join_numbers(char *text)
{
	char *out = text, *end;
	bool in_string = false;

	for (char *p = text; *p;) {
		size_t n = *p == '[' && !in_string ? number_array(p) : 0;

		if (n) {
			for (end = p + n; p < end; p++) {
				if (*p == '\n')
					continue;
				if (*p != ' ')
					*out++ = *p;
				if (*p == ',')
					*out++ = ' ';
			}
			continue;
		}
		if (*p == '\\') /* of a string: an escaped quote does not end it */
			*out++ = *p++;
		else if (*p == '"')
			in_string = !in_string;
		*out++ = *p++;
	}
	*out = '\0';
}

int json_doc__write(struct json_doc *d, FILE *f, bool compact)
{
	char *text =
	    d->failed ? NULL : json_dumps(d->root, compact ? JSON_COMPACT : JSON_INDENT(2));
	int err = 0;

	if (!text) {
		err = -ENOMEM;
		goto out;
	}
	if (!compact)
		join_numbers(text);
	if (fputs(text, f) == EOF || fputc('\n', f) == EOF || fflush(f))
		err = errno ? -errno : -EIO;
out:
	free(text);
	json_decref(d->root);
	return err;
}

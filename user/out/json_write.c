/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_write.c - building JSON documents with jansson.
 *
 * A value that could not be made is NULL; putting NULL somewhere fails and harms nothing, so
 * failures are collected here and told once, when the document is written.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

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

json_t *json_count(uint64_t n)
{
	/* jansson has no unsigned 64-bit integer. */
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

int json_doc__write(struct json_doc *d, FILE *f, bool compact)
{
	size_t flags = compact ? JSON_COMPACT : JSON_INDENT(2);
	int err = 0;

	if (d->failed)
		err = -ENOMEM;
	else if (json_dumpf(d->root, f, flags) || fputc('\n', f) == EOF || fflush(f))
		err = errno ? -errno : -EIO;
	json_decref(d->root);
	return err;
}

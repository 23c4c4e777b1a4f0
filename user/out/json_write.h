/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Building JSON documents with jansson: failures are collected, and told when written. */
#ifndef QBPF_OUT_JSON_WRITE_H
#define QBPF_OUT_JSON_WRITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_doc {
	json_t *root;
	bool failed; /* some allocation has failed */
};

void json_put(struct json_doc *d, json_t *object, const char *key, json_t *value);
void json_append(struct json_doc *d, json_t *array, json_t *value);
/* Text is made valid UTF-8; NULL leaves the key out. */
void json_put_text(struct json_doc *d, json_t *object, const char *key, const char *text);
void json_append_text(struct json_doc *d, json_t *array, const char *text);
json_t *json_count(uint64_t n);
/* Whole numbers exactly; an infinity has no JSON form and is told as text. */
json_t *json_measure(long double v);
/* Writes the document and a newline, and frees it. */
int json_doc__write(struct json_doc *d, FILE *f, bool compact);

#endif

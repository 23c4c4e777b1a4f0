/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes that grow at their end. */
#ifndef QBPF_FILE_BYTES_H
#define QBPF_FILE_BYTES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	uint8_t *p;
	size_t n, cap;
};

/* Room for `more` bytes after the n that are there. */
static inline int bytes__reserve(struct bytes *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *p;

	if (b->p && b->cap - b->n >= more)
		return 0;
	while (cap - b->n < more)
		cap *= 2;
	p = realloc(b->p, cap);
	if (!p)
		return -ENOMEM;
	b->p = p;
	b->cap = cap;
	return 0;
}

static inline int bytes__append(struct bytes *b, const void *src, size_t len)
{
	int err = bytes__reserve(b, len);

	if (err)
		return err;
	if (len)
		memcpy(b->p + b->n, src, len);
	b->n += len;
	return 0;
}

#endif

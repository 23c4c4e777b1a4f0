/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Much text, fast: a buffer in front of a FILE, and numbers without printf. Faults are kept, and
 * told by scribe__flush. */
#ifndef QBPF_OUT_SCRIBE_H
#define QBPF_OUT_SCRIBE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SCRIBE_ROOM (64 << 10)

struct scribe {
	FILE *f;
	size_t n;
	int err; /* the first fault */
	char buf[SCRIBE_ROOM];
};

static inline void scribe__empty(struct scribe *s)
{
	errno = 0;
	if (!s->err && fwrite(s->buf, 1, s->n, s->f) != s->n)
		s->err = errno ? -errno : -EIO;
	s->n = 0;
}

static inline void scribe__bytes(struct scribe *s, const char *p, size_t len)
{
	while (len > SCRIBE_ROOM - s->n) {
		size_t part = SCRIBE_ROOM - s->n;

		memcpy(s->buf + s->n, p, part);
		s->n += part;
		p += part;
		len -= part;
		scribe__empty(s);
	}
	memcpy(s->buf + s->n, p, len);
	s->n += len;
}

static inline void scribe__text(struct scribe *s, const char *text)
{
	scribe__bytes(s, text, strlen(text));
}

static inline void scribe__u64(struct scribe *s, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	scribe__bytes(s, digits + at, sizeof(digits) - at);
}

static inline void scribe__i64(struct scribe *s, int64_t v)
{
	if (v < 0)
		scribe__bytes(s, "-", 1);
	scribe__u64(s, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* ns as microseconds with all three decimals: exact, where a double would not be. */
static inline void scribe__us(struct scribe *s, int64_t ns)
{
	uint64_t abs = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	uint32_t rest = (uint32_t)(abs % 1000);
	char decimals[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
			    (char)('0' + rest % 10)};

	if (ns < 0)
		scribe__bytes(s, "-", 1);
	scribe__u64(s, abs / 1000);
	scribe__bytes(s, decimals, sizeof(decimals));
}

/* A double that reads back as the same one; not for NaN and infinities. */
static inline void scribe__double(struct scribe *s, double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", v);
	scribe__text(s, text);
}

static inline int scribe__flush(struct scribe *s)
{
	scribe__empty(s);
	return s->err;
}

#endif

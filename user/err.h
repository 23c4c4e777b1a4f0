/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct err: the one line that explains a negative errno. Whoever detects a fault fills it
 * (what, where); callers pass it on; the command prints it once.
 */
#ifndef QBPF_ERR_H
#define QBPF_ERR_H

#include <stdarg.h>
#include <stdio.h>

struct err {
	char text[400];
};

/* Fills e (NULL is allowed) and returns code, so that a fault is one statement. */
static inline int __attribute__((format(printf, 3, 4)))
err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

#endif

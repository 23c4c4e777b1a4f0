/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * html.c - the page as a file: the assembled assets (html/assemble.sh) with the data in between.
 *
 * The data stands in a <script type="application/json">. Names in it are the target's, so no '<'
 * may reach the HTML parser: JSON has it only inside strings, where \u003c says the same.
 */
#include <errno.h>
#include <string.h>

#include "out/html.h"
#include "out/html_data.h"

/* user/out/html/ as one page, up to and after the place of the data: two strings. */
__asm__(".section .rodata\n"
	"page_head:	.incbin \"html/head.html\"\n"
	"		.byte 0\n"
	"page_tail:	.incbin \"html/tail.html\"\n"
	"		.byte 0\n"
	".previous\n");
extern const char page_head[], page_tail[];

static int put(FILE *f, const char *bytes, size_t len)
{
	return fwrite(bytes, 1, len, f) == len ? 0 : -1;
}

/* jansson's way out: bytes of JSON, in pieces of any size. */
static int put_escaped(const char *bytes, size_t len, void *data)
{
	const char *end = bytes + len, *lt;
	FILE *f = data;

	while ((lt = memchr(bytes, '<', end - bytes))) {
		if (put(f, bytes, lt - bytes) || fputs("\\u003c", f) == EOF)
			return -1;
		bytes = lt + 1;
	}
	return put(f, bytes, end - bytes);
}

int html__write(FILE *f, const struct analysis *a, struct err *e)
{
	struct html_data d = {0};
	int err = html_data__make(&d, a);

	if (err) {
		err_set(e, err, "no memory for the page");
		goto out;
	}
	errno = 0;
	if (fputs(page_head, f) == EOF ||
	    json_dump_callback(d.doc.root, put_escaped, f, JSON_COMPACT) ||
	    fputs(page_tail, f) == EOF || fflush(f)) {
		err = errno ? -errno : -EIO;
		err_set(e, err, "cannot write the page: %s", strerror(-err));
	}
out:
	html_data__clear(&d);
	return err;
}

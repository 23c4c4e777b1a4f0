/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * junit.c - what check found, as the XML that CI systems show: one test suite, a test case for each
 * rule and span. A broken rule is a failure, too few samples is "skipped".
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/check.h"
#include "out/text.h"

/*
 * Valid UTF-8, markup escaped. Bytes that XML 1.0 has no way to write, not even escaped (control
 * characters, U+FFFE and U+FFFF), become \xNN of each byte. Line ends and tabs are written as
 * references, or attributes would lose them.
 */
static int put_xml(FILE *f, const char *text)
{
	char *valid = text__valid(text);

	if (!valid)
		return -ENOMEM;
	for (const char *p = valid; *p; p++) {
		unsigned char c = *p;

		if (c == '&')
			fputs("&amp;", f);
		else if (c == '<')
			fputs("&lt;", f);
		else if (c == '>')
			fputs("&gt;", f);
		else if (c == '"')
			fputs("&quot;", f);
		else if (c == '\t' || c == '\n' || c == '\r')
			fprintf(f, "&#%d;", c);
		else if (c < 0x20)
			fprintf(f, "\\x%02x", c);
		else if (!strncmp(p, "\xef\xbf\xbe", 3) || !strncmp(p, "\xef\xbf\xbf", 3)) {
			fprintf(f, "\\xef\\xbf\\x%02x", (unsigned char)p[2]);
			p += 2;
		} else
			putc(c, f);
	}
	free(valid);
	return 0;
}

static int put_attribute(FILE *f, const char *key, const char *text)
{
	int err;

	fprintf(f, " %s=\"", key);
	err = put_xml(f, text);
	fputc('"', f);
	return err;
}

static int put_case(FILE *f, const struct check_case *c)
{
	static const char *const elements[CHECK_VERDICTS] = {
	    [CHECK_BROKEN] = "failure", [CHECK_TOO_FEW] = "skipped"};
	const char *element = elements[c->verdict];
	char *text = check_case__text(c);
	int err = text ? 0 : -ENOMEM;

	fputs("    <testcase", f);
	if (!err)
		err = put_attribute(f, "classname", c->rule->text);
	if (!err)
		err = put_attribute(f, "name", c->name ? c->name : c->rule->span);
	if (!err && c->rule->file) {
		err = put_attribute(f, "file", c->rule->file);
		fprintf(f, " line=\"%zu\"", c->rule->line);
	}
	fputs(">\n", f);
	if (!err && element) {
		fprintf(f, "      <%s", element);
		if (c->verdict == CHECK_BROKEN)
			fputs(" type=\"broken\"", f);
		err = put_attribute(f, "message", text);
		fputs("/>\n", f);
	} else if (!err) {
		fputs("      <system-out>", f);
		err = put_xml(f, text);
		fputs("</system-out>\n", f);
	}
	fputs("    </testcase>\n", f);
	free(text);
	return err;
}

int check__write_junit(FILE *f, const struct check *c)
{
	int err;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite", f);
	err = put_attribute(f, "name", "qbpf check");
	fprintf(f, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n", c->n,
		c->counts[CHECK_BROKEN], c->counts[CHECK_TOO_FEW]);
	fputs("    <properties>\n      <property name=\"recording\"", f);
	if (!err)
		err = put_attribute(f, "value", c->side->path);
	fputs("/>\n    </properties>\n", f);
	for (size_t i = 0; i < c->n && !err; i++)
		err = put_case(f, &c->cases[i]);
	fputs("  </testsuite>\n</testsuites>\n", f);
	if (!err && (fflush(f) || ferror(f)))
		err = errno ? -errno : -EIO;
	return err;
}

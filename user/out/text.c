/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * text.c - foreign strings made fit for an output, and their width in columns.
 *
 * UTF-8 is decoded here and not by mbrtowc(), because JSON is UTF-8 whatever the locale is,
 * and because names come from ELF files and not from this terminal.
 */
#include <langinfo.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "out/text.h"

bool text__utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* Length of the valid UTF-8 sequence at s (1..4) and its code point; 0: invalid. */
static size_t decode(const unsigned char *s, uint32_t *cp)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len;

	if (s[0] < 0x80) {
		*cp = s[0];
		return 1;
	}
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if ((s[0] & 0xf0) == 0xe0)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	else
		return 0;
	*cp = s[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	/* Overlong forms, surrogates, beyond Unicode. */
	if (*cp < least[len] || (*cp >= 0xd800 && *cp <= 0xdfff) || *cp > 0x10ffff)
		return 0;
	return len;
}

char *text__valid(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	char *out = malloc(3 * strlen(s) + 1), *o = out;
	uint32_t cp;

	if (!out)
		return NULL;
	while (*p) {
		size_t len = decode(p, &cp);

		memcpy(o, len ? (const char *)p : "\xef\xbf\xbd", len ? len : 3);
		o += len ? len : 3;
		p += len ? len : 1;
	}
	*o = '\0';
	return out;
}

/* Columns of one code point, -1: not to be shown as it is. */
static int columns(uint32_t cp, bool utf8)
{
	if (cp < 0x80)
		return cp >= 0x20 && cp != 0x7f ? 1 : -1;
	return utf8 ? wcwidth((wchar_t)cp) : -1;
}

char *text__printable(const char *s, bool utf8)
{
	const unsigned char *p = (const unsigned char *)s;
	char *out = malloc(4 * strlen(s) + 1), *o = out;
	uint32_t cp;

	if (!out)
		return NULL;
	while (*p) {
		size_t len = decode(p, &cp);

		if (len && columns(cp, utf8) >= 0) {
			memcpy(o, p, len);
			o += len;
			p += len;
		} else {
			o += sprintf(o, "\\x%02x", *p);
			p++;
		}
	}
	*o = '\0';
	return out;
}

/* The next character of printable text. */
static size_t next_char(const char *s, bool utf8, unsigned int *width)
{
	uint32_t cp;
	size_t len = decode((const unsigned char *)s, &cp);
	int w = len ? columns(cp, utf8) : -1;

	*width = w < 0 ? 1 : w;
	return len ? len : 1;
}

unsigned int text__width(const char *s, bool utf8)
{
	unsigned int sum = 0, w;

	while (*s) {
		s += next_char(s, utf8, &w);
		sum += w;
	}
	return sum;
}

char *text__fit(const char *s, unsigned int width, bool utf8)
{
	const char *dots = utf8 ? "\xe2\x80\xa6" : "..";
	unsigned int total = text__width(s, utf8), ndots = utf8 ? 1 : 2;
	unsigned int head, used = 0, w;
	char *out = malloc(strlen(s) + 4);
	size_t n = 0, len;

	if (!out)
		return NULL;
	if (total <= width) {
		strcpy(out, s);
		return out;
	}
	if (width < ndots + 2) { /* no room to say that something is missing */
		ndots = 0;
		head = width;
	} else {
		/* The end tells overloads and innermost names apart: it gets a third. */
		head = (width - ndots) - (width - ndots) / 3;
	}
	for (len = next_char(s, utf8, &w); *s && used + w <= head; len = next_char(s, utf8, &w)) {
		memcpy(out + n, s, len);
		n += len;
		s += len;
		used += w;
	}
	if (ndots) {
		memcpy(out + n, dots, strlen(dots));
		n += strlen(dots);
		used += ndots;
		total = text__width(s, utf8);
		while (*s && used + total > width) {
			s += next_char(s, utf8, &w);
			total -= w;
		}
		strcpy(out + n, s);
		return out;
	}
	out[n] = '\0';
	return out;
}

/* Whether this may stand behind a parameter list: nothing, or what a demangler adds to it. */
static bool ends_function(const char *s)
{
	static const char *const tails[] = {" const", " volatile", " &", " [clone", "[abi:"};

	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++)
		if (!strncmp(s, tails[i], strlen(tails[i])))
			return true;
	return !*s;
}

/* The parameter list of a demangled name: its '(' and the ')' that closes it. */
static bool parameters(const char *s, const char **open, const char **close)
{
	unsigned int depth = 0;
	const char *p = s + strlen(s);

	while (p > s && !(p[-1] == ')' && ends_function(p)))
		p--;
	if (p == s)
		return false;
	*close = p - 1;
	for (p = *close; p > s; p--) {
		depth += *p == ')';
		depth -= *p == '(';
		if (!depth)
			break;
	}
	*open = p;
	return !depth && p > s;
}

char *text__fit_name(const char *s, unsigned int width, bool utf8)
{
	const char *dots = utf8 ? "\xe2\x80\xa6" : "..", *open, *close;
	char *brief, *fit;

	if (text__width(s, utf8) > width && !strncmp(s, "cuda:cu", 7))
		s += 5;
	if (text__width(s, utf8) <= width || !parameters(s, &open, &close) ||
	    close - open - 1 <= (utf8 ? 1 : 2))
		return text__fit(s, width, utf8);
	if (asprintf(&brief, "%.*s(%s%s", (int)(open - s), s, dots, close) < 0)
		return NULL;
	fit = text__fit(brief, width, utf8);
	free(brief);
	return fit;
}

void text__wrap(FILE *f, const char *s, unsigned int width, unsigned int indent, bool utf8)
{
	unsigned int at = 0, room = width > indent + 8 ? width - indent : 8, w;
	size_t blanks, len;
	char *word, *fit;

	for (bool first = true; *s; s += blanks + len, first = false) {
		blanks = strspn(s, " ");
		len = strcspn(s + blanks, " ");
		word = strndup(s + blanks, len);
		fit = word ? text__fit(word, room, utf8) : NULL;
		free(word);
		if (!fit)
			break;
		w = text__width(fit, utf8);
		if (!first && at + blanks + w > width) {
			fprintf(f, "\n%*s", (int)indent, "");
			at = indent;
		} else {
			fprintf(f, "%*s", (int)blanks, "");
			at += (unsigned int)blanks;
		}
		fputs(fit, f);
		at += w;
		free(fit);
	}
	fputc('\n', f);
}

void text__pad(FILE *f, const char *s, unsigned int width, bool right, bool utf8)
{
	unsigned int w = text__width(s, utf8);
	int pad = w < width ? (int)(width - w) : 0;

	if (right)
		fprintf(f, "%*s%s", pad, "", s);
	else
		fprintf(f, "%s%*s", s, pad, "");
}

void text__bar(char *buf, double share, unsigned int width, bool utf8)
{
	/* U+2588 is a full block, U+2589 .. U+258F have seven to one eighths. */
	unsigned int eighths;

	if (!(share > 0))
		share = 0;
	if (share > 1)
		share = 1;
	eighths = (unsigned int)(share * width * 8 + 0.5);
	if (share > 0 && !eighths)
		eighths = 1;
	if (!utf8) {
		unsigned int n = (eighths + 4) / 8;

		n = share > 0 && !n ? 1 : n;
		memset(buf, '#', n);
		buf[n] = '\0';
		return;
	}
	for (; eighths >= 8; eighths -= 8, buf += 3)
		memcpy(buf, "\xe2\x96\x88", 3);
	if (eighths) {
		memcpy(buf, "\xe2\x96\x88", 3);
		buf[2] = (char)(0x88 + 8 - eighths);
		buf += 3;
	}
	*buf = '\0';
}

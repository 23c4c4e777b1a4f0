/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* budget.c - reading rules, from arguments and files. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/budget.h"

#define FILE_MAX (16u << 20)

/* Where a rule's text lies, for messages: column = at + column0 + 1. */
struct place {
	const char *file;
	size_t line, column0;
};

static int fault(const struct place *p, size_t at, const char *what, struct err *e)
{
	if (p->file)
		return err_set(e, -EINVAL, "%s:%zu:%zu: %s", p->file, p->line, p->column0 + at + 1,
			       what);
	return err_set(e, -EINVAL, "rule %zu, column %zu: %s", p->line, p->column0 + at + 1, what);
}

/* What is quoted in a message: no control bytes, no endless text. */
static void quoted(char *buf, size_t size, const char *text, size_t len)
{
	size_t n = 0;

	for (; n < len && n + 1 < size; n++)
		buf[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
	buf[n] = '\0';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const struct {
	const char *text;
	enum compare compare;
} comparisons[] = {{"<", CMP_LT},  {"<=", CMP_LE}, {">", CMP_GT},
		   {">=", CMP_GE}, {"==", CMP_EQ}, {"!=", CMP_NE}};

/* The last comparison of text[from .. len): [*start, *end). */
static int find_comparison(const char *text, size_t from, size_t len, size_t *start, size_t *end,
			   enum compare *out)
{
	size_t e = len, s;

	while (e > from && !strchr("<>=!", text[e - 1]))
		e--;
	if (e == from)
		return -ENOENT;
	for (s = e; s > from && e - s < 2 && strchr("<>=!", text[s - 1]); s--)
		;
	*start = s;
	*end = e;
	for (size_t i = 0; i < sizeof(comparisons) / sizeof(*comparisons); i++)
		if (strlen(comparisons[i].text) == e - s &&
		    !memcmp(text + s, comparisons[i].text, e - s)) {
			*out = comparisons[i].compare;
			return 0;
		}
	return -EINVAL;
}

/* The end of a quoted span that starts at text[0], or 0: it is not closed. */
static size_t quoted_end(const char *text, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if (text[i] == text[0])
			return i + 1;
	return 0;
}

static int parse_span(struct rule *r, const char *text, size_t len, const struct place *p,
		      struct err *e)
{
	size_t n = len, quote = 0;

	if (text[0] == '\'' || text[0] == '"') {
		quote = quoted_end(text, len);
		while (n && is_blank(text[n - 1]))
			n--;
		if (quote != n || n < 3)
			return fault(p, quote, "expected a figure behind the quoted span", e);
		text++;
		n -= 2;
	}
	while (n && is_blank(text[n - 1]) && !quote)
		n--;
	r->span = strndup(text, n);
	return r->span ? 0 : err_set(e, -ENOMEM, "out of memory");
}

/* No reading of it, as a time or as a plain number, could ever make sense. */
static const char *senseless(const struct rule *r)
{
	struct quantity out, baseline = {.value = 1, .ci = {1, 1}};
	const char *why = NULL;

	for (enum side_class c = SIDE_TIME; c <= SIDE_VALUE; c++) {
		baseline.is_time = figure__dim(r->figure, c) == DIM_TIME;
		why = limit__eval(r->limit, baseline.is_time, &baseline, &out);
		if (!why || (isnan(out.value) && limit__has_baseline(r->limit)))
			return NULL;
	}
	return why;
}

/* A share is at most 1: whoever writes 30 means 30 %, and would have a rule that always holds. */
static bool lacks_percent(const struct rule *r)
{
	struct quantity out, none = {0};

	return r->figure.kind == FIG_SHARE && !limit__has_baseline(r->limit) &&
	       !limit__eval(r->limit, false, &none, &out) && out.value > 1;
}

static int parse_rule(struct rule *r, const char *text, size_t len, const struct place *p,
		      struct err *e)
{
	size_t from = 0, start, end, word, bad;
	char name[40], what[300];
	const char *why;
	int err;

	if (text[0] == '\'' || text[0] == '"') {
		from = quoted_end(text, len);
		if (!from)
			return fault(p, 0, "the quoted span has no end", e);
	}
	err = find_comparison(text, from, len, &start, &end, &r->compare);
	if (err)
		return fault(p, err == -ENOENT ? len : start,
			     "expected a comparison (< <= > >= == !=) and a limit", e);
	for (word = start; word > from && is_blank(text[word - 1]);)
		word--;
	bad = word;
	while (word > from && !is_blank(text[word - 1]))
		word--;
	if (!figure__parse(text + word, bad - word, &r->figure)) {
		quoted(name, sizeof(name), text + word, bad - word);
		snprintf(what, sizeof(what),
			 "%s%s%s (count rate total self share min mean pN max total/s self/s "
			 "self/span lost open orphan_ends abandoned)",
			 *name ? "no such figure: '" : "expected a figure", name, *name ? "'" : "");
		return fault(p, word, what, e);
	}
	if (!word)
		return fault(p, 0, "expected a span before the figure (* for all of them)", e);
	err = parse_span(r, text, word, p, e);
	if (err)
		return err;
	err = limit__parse(text, len, end, &r->limit, &bad, e);
	if (err == -EINVAL) {
		snprintf(what, sizeof(what), "%.200s", e->text);
		return fault(p, bad, what, e);
	}
	if (err)
		return err;
	why = senseless(r);
	if (!why && lacks_percent(r))
		why = "no share is above 100 %: is a % missing?";
	return why ? fault(p, end, why, e) : 0;
}

static void rule__clear(struct rule *r)
{
	free(r->text);
	free(r->span);
	limit__free(r->limit);
}

static int add(struct budget *b, const char *text, size_t len, struct place p, struct err *e)
{
	struct rule r = {.file = p.file, .line = p.line}, *rules;
	int err;

	r.text = strndup(text, len);
	if (!r.text)
		return err_set(e, -ENOMEM, "out of memory");
	err = parse_rule(&r, text, len, &p, e);
	if (err)
		goto out;
	/* Powers of two. */
	if (!(b->n & (b->n - 1))) {
		rules = realloc(b->rules, (b->n ? b->n * 2 : 1) * sizeof(*rules));
		if (!rules) {
			err = err_set(e, -ENOMEM, "out of memory");
			goto out;
		}
		b->rules = rules;
	}
	b->rules[b->n++] = r;
	return 0;
out:
	rule__clear(&r);
	return err;
}

static void trim(const char **text, size_t *len, size_t *column0)
{
	while (*len && is_blank(**text)) {
		++*text;
		--*len;
		++*column0;
	}
	while (*len && (is_blank((*text)[*len - 1]) || (*text)[*len - 1] == '\r'))
		--*len;
}

int budget__add(struct budget *b, const char *text, struct err *e)
{
	struct place p = {.line = 1};
	size_t len = strlen(text);

	for (size_t i = 0; i < b->n; i++)
		p.line += !b->rules[i].file;
	if (strchr(text, '\n'))
		return fault(&p, strcspn(text, "\n"), "a rule is one line", e);
	trim(&text, &len, &p.column0);
	if (!len)
		return fault(&p, 0, "an empty rule", e);
	return add(b, text, len, p, e);
}

/* The length of a line without its comment. */
static size_t without_comment(const char *line, size_t len)
{
	char quote = '\0';

	for (size_t i = 0; i < len; i++) {
		bool behind_blank = !i || is_blank(line[i - 1]);

		if (line[i] == '#' && behind_blank && !quote)
			return i;
		if (quote && line[i] == quote)
			quote = '\0';
		else if (!quote && behind_blank && (line[i] == '"' || line[i] == '\''))
			quote = line[i];
	}
	return len;
}

static int read_lines(struct budget *b, const char *text, size_t len, const char *file,
		      struct err *e)
{
	struct place p = {.file = file};
	size_t before = b->n;
	int err = 0;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	while (len && !err) {
		const char *nl = memchr(text, '\n', len), *line = text;
		size_t all = nl ? (size_t)(nl - text) : len, n = without_comment(line, all);

		p.line++;
		p.column0 = 0;
		if (memchr(line, '\0', n))
			return fault(&p, strlen(line), "a zero byte: is this a budget file?", e);
		trim(&line, &n, &p.column0);
		if (n)
			err = add(b, line, n, p, e);
		text += all + !!nl;
		len -= all + !!nl;
	}
	if (!err && b->n == before)
		return err_set(e, -EINVAL, "%s: no rules in it", file);
	return err;
}

/* All of f and a zero byte. */
static int read_all(FILE *f, char **text, size_t *len)
{
	size_t cap = 0, n;
	char *p;

	*text = NULL;
	*len = 0;
	do {
		if (*len + 1 >= cap) {
			cap = cap ? cap * 2 : 4096;
			if (cap > FILE_MAX)
				return -EFBIG;
			p = realloc(*text, cap);
			if (!p)
				return -ENOMEM;
			*text = p;
		}
		n = fread(*text + *len, 1, cap - 1 - *len, f);
		*len += n;
	} while (n);
	(*text)[*len] = '\0';
	return ferror(f) ? -errno : 0;
}

int budget__read(struct budget *b, const char *path, struct err *e)
{
	char **files = realloc(b->files, (b->nfiles + 1) * sizeof(*files));
	char *text = NULL, *name = strdup(path);
	FILE *f = NULL;
	size_t len;
	int err;

	if (files)
		b->files = files;
	if (!files || !name) {
		free(name);
		return err_set(e, -ENOMEM, "out of memory");
	}
	b->files[b->nfiles++] = name;
	f = fopen(path, "re");
	if (!f)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	err = read_all(f, &text, &len);
	if (err)
		err_set(e, err, "%s: %s", path, strerror(-err));
	else
		err = read_lines(b, text, len, name, e);
	fclose(f);
	free(text);
	return err;
}

void budget__clear(struct budget *b)
{
	for (size_t i = 0; i < b->n; i++)
		rule__clear(&b->rules[i]);
	for (size_t i = 0; i < b->nfiles; i++)
		free(b->files[i]);
	free(b->rules);
	free(b->files);
	memset(b, 0, sizeof(*b));
}

bool budget__needs_baseline(const struct budget *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (limit__has_baseline(b->rules[i].limit))
			return true;
	return false;
}

size_t budget__quantiles(const struct budget *b, double *out, size_t max)
{
	size_t n = 0, k;

	for (size_t i = 0; i < b->n; i++) {
		double q = b->rules[i].figure.q;
		bool known = b->rules[i].figure.kind != FIG_QUANTILE;

		for (k = 0; k < SIDE_QUANTILES; k++)
			known |= side_quantiles[k] == q;
		for (k = 0; k < n && k < max; k++)
			known |= out[k] == q;
		if (known)
			continue;
		if (n < max)
			out[n] = q;
		n++;
	}
	return n;
}

char *rule__place(char buf[RULE_PLACE], const struct rule *r)
{
	if (r->file)
		snprintf(buf, RULE_PLACE, "%.100s:%zu", r->file, r->line);
	else
		snprintf(buf, RULE_PLACE, "rule %zu", r->line);
	return buf;
}

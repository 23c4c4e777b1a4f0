/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit.c - the right side of a rule: numbers with units, `baseline`, + - * / and parentheses.
 *
 * Kept as a program for a stack machine. What is a time and what is a plain number is known only
 * when it is run, because "p99" of a span is a time and of a value a number.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/budget.h"

#define OPS_MAX	  64 /* numbers and operators of one limit */
#define DEPTH_MAX 16 /* parentheses */

enum op_kind { OP_NUMBER, OP_TIME, OP_BASELINE, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_NEGATE };

struct op {
	enum op_kind kind;
	double value;
};

struct limit {
	size_t n;
	struct op ops[OPS_MAX];
};

struct parser {
	const char *text;
	size_t at, len;
	int depth;
	struct limit *out;
	struct err *e;
};

static int fault(struct parser *p, const char *what)
{
	return err_set(p->e, -EINVAL, "%s", what);
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->len && strchr(" \t", p->text[p->at]) && p->text[p->at])
		p->at++;
}

static int emit(struct parser *p, enum op_kind kind, double value)
{
	if (p->out->n == OPS_MAX)
		return fault(p, "the limit is too long");
	p->out->ops[p->out->n++] = (struct op){kind, value};
	return 0;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '%' || c & 0x80;
}

static size_t span_of(const struct parser *p, const char *set)
{
	size_t n = 0;

	while (p->at + n < p->len && p->text[p->at + n] && strchr(set, p->text[p->at + n]))
		n++;
	return n;
}

/* 1.05, 50us, 1e6, 30% */
static int parse_number(struct parser *p)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"ns", 1},		 {"us", 1e3}, {"\xc2\xb5s", 1e3},
		     {"\xce\xbcs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	size_t start = p->at, n;
	char digits[64];
	char *end;
	double v;

	p->at += span_of(p, "0123456789.");
	if (p->at + 1 < p->len && strchr("eE", p->text[p->at]) && p->text[p->at] &&
	    strchr("0123456789+-", p->text[p->at + 1]) && p->text[p->at + 1]) {
		p->at += 2;
		p->at += span_of(p, "0123456789");
	}
	n = p->at - start;
	if (n >= sizeof(digits)) {
		p->at = start;
		return fault(p, "the number is too long");
	}
	memcpy(digits, p->text + start, n);
	digits[n] = '\0';
	v = strtod(digits, &end);
	if (!n || *end || !isfinite(v)) {
		p->at = start;
		return fault(p, !n || *end ? "expected a number" : "the number is too great");
	}
	skip_blanks(p);
	for (n = 0; p->at + n < p->len && is_letter(p->text[p->at + n]);)
		n++;
	if (!n)
		return emit(p, OP_NUMBER, v);
	if (n == 1 && p->text[p->at] == '%') {
		p->at++;
		return emit(p, OP_NUMBER, v / 100);
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strlen(units[i].name) == n && !memcmp(units[i].name, p->text + p->at, n)) {
			p->at += n;
			return emit(p, OP_TIME, v * units[i].ns);
		}
	return fault(p, "no such unit (ns us ms s %)");
}

static int parse_sum(struct parser *p);

static int parse_factor(struct parser *p)
{
	static const char word[] = "baseline";
	size_t n = sizeof(word) - 1;
	int err;
	char c;

	skip_blanks(p);
	c = p->at < p->len ? p->text[p->at] : '\0';
	if (c == '(' || c == '-') {
		if (++p->depth > DEPTH_MAX)
			return fault(p, "too many parentheses");
		p->at++;
		err = c == '(' ? parse_sum(p) : parse_factor(p);
		p->depth--;
		if (err)
			return err;
		if (c == '-')
			return emit(p, OP_NEGATE, 0);
		skip_blanks(p);
		if (p->at == p->len || p->text[p->at] != ')')
			return fault(p, "expected )");
		p->at++;
		return 0;
	}
	if (p->len - p->at >= n && !memcmp(p->text + p->at, word, n) &&
	    (p->len - p->at == n || !is_letter(p->text[p->at + n]))) {
		p->at += n;
		return emit(p, OP_BASELINE, 0);
	}
	if ((c >= '0' && c <= '9') || c == '.')
		return parse_number(p);
	return fault(p, "expected a limit: a number with its unit, or baseline");
}

static int parse_product(struct parser *p)
{
	int err = parse_factor(p);

	while (!err) {
		char c;

		skip_blanks(p);
		c = p->at < p->len ? p->text[p->at] : '\0';
		if (c != '*' && c != '/')
			break;
		p->at++;
		err = parse_factor(p);
		if (!err)
			err = emit(p, c == '*' ? OP_MUL : OP_DIV, 0);
	}
	return err;
}

static int parse_sum(struct parser *p)
{
	int err = parse_product(p);

	while (!err) {
		char c;

		skip_blanks(p);
		c = p->at < p->len ? p->text[p->at] : '\0';
		if (c != '+' && c != '-')
			break;
		p->at++;
		err = parse_product(p);
		if (!err)
			err = emit(p, c == '+' ? OP_ADD : OP_SUB, 0);
	}
	return err;
}

int limit__parse(const char *text, size_t len, size_t at, struct limit **out, size_t *bad,
		 struct err *e)
{
	struct parser p = {.text = text, .at = at, .len = len, .e = e};
	int err;

	*out = NULL;
	*bad = at;
	p.out = calloc(1, sizeof(*p.out));
	if (!p.out)
		return err_set(e, -ENOMEM, "out of memory");
	err = parse_sum(&p);
	if (!err) {
		skip_blanks(&p);
		if (p.at < len)
			err = fault(&p, "the limit should end here");
	}
	*bad = p.at;
	if (err)
		limit__free(p.out);
	else
		*out = p.out;
	return err;
}

void limit__free(struct limit *l)
{
	free(l);
}

bool limit__has_baseline(const struct limit *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->ops[i].kind == OP_BASELINE)
			return true;
	return false;
}

static void multiply(struct quantity *a, const struct quantity *b)
{
	double p[4] = {a->ci.lo * b->ci.lo, a->ci.lo * b->ci.hi, a->ci.hi * b->ci.lo,
		       a->ci.hi * b->ci.hi};

	a->ci.lo = fmin(fmin(p[0], p[1]), fmin(p[2], p[3]));
	a->ci.hi = fmax(fmax(p[0], p[1]), fmax(p[2], p[3]));
	a->value *= b->value;
	a->is_time |= b->is_time;
}

static const char *binary(struct quantity *a, const struct quantity *b, enum op_kind kind)
{
	struct quantity inverse = {.value = 1 / b->value, .ci = {1 / b->ci.hi, 1 / b->ci.lo}};
	double sign = kind == OP_SUB ? -1 : 1;

	switch (kind) {
	case OP_MUL:
		if (a->is_time && b->is_time)
			return "a time by a time is no time";
		multiply(a, b);
		return NULL;
	case OP_DIV:
		if (b->is_time && !a->is_time)
			return "a number by a time is no limit";
		if (b->ci.lo <= 0 && b->ci.hi >= 0) {
			a->value = NAN;
			return "it divides by what may be zero";
		}
		multiply(a, &inverse);
		a->is_time &= !b->is_time;
		return NULL;
	default:
		/* Zero is zero in any unit. */
		if (a->is_time != b->is_time && a->value != 0 && b->value != 0)
			return "a time and a number without unit do not add up";
		a->is_time |= b->is_time;
		a->value += sign * b->value;
		a->ci = (struct interval){a->ci.lo + (sign > 0 ? b->ci.lo : -b->ci.hi),
					  a->ci.hi + (sign > 0 ? b->ci.hi : -b->ci.lo)};
		return NULL;
	}
}

const char *limit__eval(const struct limit *l, bool want_time, const struct quantity *baseline,
			struct quantity *out)
{
	struct quantity stack[OPS_MAX] = {{0}}, *top = stack;

	for (size_t i = 0; i < l->n; i++) {
		const struct op *op = &l->ops[i];
		const char *why;

		switch (op->kind) {
		case OP_NUMBER:
		case OP_TIME:
			*top++ = (struct quantity){
			    op->kind == OP_TIME, op->value, {op->value, op->value}};
			break;
		case OP_BASELINE:
			*top++ = *baseline;
			break;
		case OP_NEGATE:
			top[-1].value = -top[-1].value;
			top[-1].ci = (struct interval){-top[-1].ci.hi, -top[-1].ci.lo};
			break;
		default:
			top--;
			why = binary(&top[-1], top, op->kind);
			if (why) {
				out->value = top[-1].value;
				return why;
			}
		}
	}
	*out = stack[0];
	if (!isfinite(out->value)) {
		out->value = NAN;
		return "the limit is beyond any number";
	}
	if (isnan(out->ci.lo) || isnan(out->ci.hi))
		out->ci = (struct interval){-INFINITY, INFINITY};
	if (want_time && !out->is_time && out->value != 0)
		return "the figure is a time: the limit needs a unit (ns us ms s)";
	if (!want_time && out->is_time)
		return "the figure is no time, the limit is one";
	return NULL;
}

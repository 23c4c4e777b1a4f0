/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operands of USDT arguments on x86-64, in the assembler's AT&T syntax. */
#include "elf/usdt_operand.h"

#define X86_RSP 7

static bool take_symbol(struct cursor *c, struct usdt_arg *a)
{
	const char *start = c->p;
	bool quoted = take(c, '"');

	if (quoted) {
		start = c->p;
		while (!at_end(c) && *c->p != '"' && *c->p != '\\')
			c->p++;
	} else {
		while (!at_end(c) && is_symbol_char(*c->p))
			c->p++;
	}
	if (c->p == start || c->p - start > USDT_SYMBOL_MAX || a->symbol)
		return false;
	a->symbol = start;
	a->symbol_len = (uint16_t)(c->p - start);
	return !quoted || take(c, '"');
}

/* sum; nothing at all is the sum 0. */
static bool take_sum(struct cursor *c, struct usdt_arg *a)
{
	for (bool first = true;; first = false) {
		bool minus = false, sign = false;
		uint64_t v;

		while (!at_end(c) && (*c->p == '+' || *c->p == '-')) {
			minus ^= *c->p++ == '-';
			sign = true;
		}
		if (!sign && (!first || at_end(c) || *c->p == '('))
			return true;
		if (at_end(c))
			return false;
		if (!is_digit(*c->p)) {
			if (minus || !take_symbol(c, a))
				return false;
		} else {
			if (!take_number(c, &v))
				return false;
			a->off = (int64_t)((uint64_t)a->off + (minus ? -v : v));
		}
	}
}

static const char *const x86_names[16] = {"ax", "dx", "cx", "bx", "si", "di", "bp", "sp",
					  "8",	"9",  "10", "11", "12", "13", "14", "15"};

/* p[0 .. n) without the "%". */
static bool x86_reg(const char *p, size_t n, struct reg *r)
{
	static const struct {
		const char *name;
		int num;
		uint8_t shift;
	} bytes[] = {{"al", 0, 0},  {"dl", 1, 0},  {"cl", 2, 0},  {"bl", 3, 0},
		     {"sil", 4, 0}, {"dil", 5, 0}, {"bpl", 6, 0}, {"spl", 7, 0},
		     {"ah", 0, 8},  {"dh", 1, 8},  {"ch", 2, 8},  {"bh", 3, 8}};

	*r = (struct reg){.num = USDT_REG_NONE};
	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		if (name_is(p, n, bytes[i].name)) {
			*r = (struct reg){bytes[i].num, 1, bytes[i].shift};
			return true;
		}
	}
	if (name_is(p, n, "rip")) {
		*r = (struct reg){X86_RIP, 8, 0};
		return true;
	}
	for (int i = 0; i < 8; i++) {
		if (name_is(p, n, x86_names[i]))
			*r = (struct reg){i, 2, 0};
		else if (n == 3 && p[0] == 'e' && name_is(p + 1, n - 1, x86_names[i]))
			*r = (struct reg){i, 4, 0};
		else if (n == 3 && p[0] == 'r' && name_is(p + 1, n - 1, x86_names[i]))
			*r = (struct reg){i, 8, 0};
		else
			continue;
		return true;
	}
	if (n < 2 || p[0] != 'r')
		return false;
	for (int i = 8; i < 16; i++) {
		size_t len = strlen(x86_names[i]);
		uint8_t size = 8;

		if (n < 1 + len || memcmp(p + 1, x86_names[i], len))
			continue;
		if (n == 2 + len)
			size = p[n - 1] == 'd' ? 4 : p[n - 1] == 'w' ? 2 : p[n - 1] == 'b' ? 1 : 0;
		else if (n != 1 + len)
			continue;
		/* %r1 is a prefix of nothing here, but %r10l exists in old assemblers: not ours */
		if (!size)
			return false;
		*r = (struct reg){i, size, 0};
		return true;
	}
	return false;
}

static bool take_x86_reg(struct cursor *c, struct reg *r)
{
	size_t n;

	if (!take(c, '%'))
		return false;
	n = word_len(c);
	if (!x86_reg(c->p, n, r))
		return false;
	c->p += n;
	return true;
}

static const char *x86_why_no_reg(const char *p, size_t n)
{
	static const struct {
		const char *prefix, *why;
	} kinds[] = {
	    {"xmm", "in a vector register, which a probe cannot read"},
	    {"ymm", "in a vector register, which a probe cannot read"},
	    {"zmm", "in a vector register, which a probe cannot read"},
	    {"mm", "in an MMX register, which a probe cannot read"},
	    {"st", "in an x87 register, which a probe cannot read"},
	    {"k", "in a mask register, which a probe cannot read"},
	    {"fs", "thread-local: relative to a segment"},
	    {"gs", "thread-local: relative to a segment"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (n >= strlen(kinds[i].prefix) &&
		    !memcmp(p, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].why;
	return "no register of this name";
}

static void x86_parse_reg(struct cursor *c, struct usdt_arg *a)
{
	const char *name = c->p + 1;
	struct reg r;

	if (!take_x86_reg(c, &r)) {
		usdt_arg__refuse(a, x86_why_no_reg(name, (size_t)(c->end - name)));
		return;
	}
	if (!at_end(c)) {
		usdt_arg__refuse(a, "not understood");
		return;
	}
	a->kind = USDT_ARG_REG;
	a->base = r.num;
	a->shift = r.shift;
	if (a->size > r.size)
		usdt_arg__refuse(a, "larger than its register");
	else if (r.num == X86_RIP)
		usdt_arg__refuse(a, "not understood");
}

/* After the displacement: "(%base,%index,scale)", all of it optional. */
static const char *x86_parse_address(struct cursor *c, struct usdt_arg *a)
{
	uint64_t scale = 1;
	struct reg r;

	if (!take(c, '('))
		return at_end(c) ? NULL : "not understood";
	skip_blanks(c);
	if (!at_end(c) && *c->p == '%') {
		if (!take_x86_reg(c, &r) || r.size != 8)
			return "its address is not in a 64-bit register";
		a->base = r.num;
		skip_blanks(c);
	}
	if (take(c, ',')) {
		skip_blanks(c);
		if (!take_x86_reg(c, &r) || r.size != 8 || r.num == X86_RIP || r.num == X86_RSP)
			return "its index is not in a 64-bit register";
		a->index = r.num;
		skip_blanks(c);
		if (take(c, ',')) {
			skip_blanks(c);
			if (!take_number(c, &scale) ||
			    (scale != 1 && scale != 2 && scale != 4 && scale != 8))
				return "its scale is none of 1, 2, 4, 8";
			skip_blanks(c);
		}
		a->scale = (uint8_t)scale;
	}
	if (!take(c, ')') || !at_end(c))
		return "not understood";
	if (a->base == USDT_REG_NONE && a->index == USDT_REG_NONE)
		return "not understood";
	if (a->base == X86_RIP && a->index != USDT_REG_NONE)
		return "%rip with an index";
	return NULL;
}

static void parse_const(struct cursor *c, struct usdt_arg *a)
{
	if (at_end(c) || !take_sum(c, a) || !at_end(c)) {
		usdt_arg__refuse(a, "not understood");
		return;
	}
	a->kind = USDT_ARG_CONST;
	if (!a->symbol)
		a->off = fit(a, a->off);
	/* An integer that the assembler was given for a double: its meaning is anyone's guess. */
	if (a->is_float && (a->off || a->symbol))
		usdt_arg__refuse(a, "a constant that claims to be floating point");
}

void usdt_operand__x86(struct cursor *c, struct usdt_arg *a)
{
	const char *why;

	if (take(c, '$')) {
		parse_const(c, a);
		return;
	}
	if (!at_end(c) && *c->p == '%') {
		x86_parse_reg(c, a);
		return;
	}
	a->kind = USDT_ARG_MEM;
	if (at_end(c) || !take_sum(c, a)) {
		usdt_arg__refuse(a, "not understood");
		return;
	}
	if (a->symbol && !at_end(c) && *c->p == '@') {
		usdt_arg__refuse(a, "through a relocated symbol (thread-local, GOT or PLT)");
		return;
	}
	why = x86_parse_address(c, a);
	if (why) {
		usdt_arg__refuse(a, why);
		return;
	}
	/* A bare number is an absolute address, which nothing emits; a bare symbol is one too. */
	if (a->base == USDT_REG_NONE && a->index == USDT_REG_NONE && !a->symbol) {
		usdt_arg__refuse(a, "not understood");
		return;
	}
	if (a->base == X86_RIP)
		a->rip_rel = true;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operands of USDT arguments on AArch64: listed, though nothing is armed there yet. */
#include "elf/usdt_operand.h"

#define AARCH64_SP	 31
#define AARCH64_REG_ZERO 64 /* xzr: not a DWARF number, the constant 0 */

/* x0..x30, w0..w30, sp, wsp, xzr, wzr and the ABI's names fp, lr. */
static bool take_aarch64_reg(struct cursor *c, struct reg *r)
{
	size_t n = word_len(c);
	const char *p = c->p;
	int num = 0;

	if (name_is(p, n, "sp")) {
		*r = (struct reg){AARCH64_SP, 8, 0};
	} else if (name_is(p, n, "wsp")) {
		*r = (struct reg){AARCH64_SP, 4, 0};
	} else if (name_is(p, n, "fp")) {
		*r = (struct reg){29, 8, 0};
	} else if (name_is(p, n, "lr")) {
		*r = (struct reg){30, 8, 0};
	} else if (name_is(p, n, "xzr")) {
		*r = (struct reg){AARCH64_REG_ZERO, 8, 0};
	} else if (name_is(p, n, "wzr")) {
		*r = (struct reg){AARCH64_REG_ZERO, 4, 0};
	} else {
		if (n < 2 || n > 3 || (p[0] != 'x' && p[0] != 'w') || (n == 3 && p[1] == '0'))
			return false;
		for (size_t i = 1; i < n; i++) {
			if (!is_digit(p[i]))
				return false;
			num = num * 10 + (p[i] - '0');
		}
		if (num > 30)
			return false;
		*r = (struct reg){num, p[0] == 'x' ? 8 : 4, 0};
	}
	c->p += n;
	return true;
}

static bool take_signed(struct cursor *c, int64_t *out)
{
	bool minus = false;
	uint64_t v;

	take(c, '#');
	if (take(c, '-'))
		minus = true;
	else
		take(c, '+');
	if (!take_number(c, &v))
		return false;
	*out = (int64_t)(minus ? -v : v);
	return true;
}

/* After "[". */
static const char *aarch64_parse_address(struct cursor *c, struct usdt_arg *a)
{
	struct reg r;
	int64_t shift = 0;

	skip_blanks(c);
	if (!take_aarch64_reg(c, &r) || r.size != 8 || r.num == AARCH64_REG_ZERO)
		return "its address is not in a 64-bit register";
	a->base = r.num;
	skip_blanks(c);
	if (take(c, ',')) {
		skip_blanks(c);
		if (take_aarch64_reg(c, &r)) {
			if (r.size != 8 || r.num == AARCH64_REG_ZERO || r.num == AARCH64_SP)
				return "its index is not in a 64-bit register";
			a->index = r.num;
			skip_blanks(c);
			if (take(c, ',')) {
				skip_blanks(c);
				if (word_len(c) != 3 || memcmp(c->p, "lsl", 3))
					return "its index is extended";
				c->p += 3;
				skip_blanks(c);
				if (!take_signed(c, &shift) || shift < 0 || shift > 3)
					return "not understood";
				skip_blanks(c);
			}
			a->scale = (uint8_t)(1 << shift);
		} else if (!take_signed(c, &a->off)) {
			return "not understood";
		}
		skip_blanks(c);
	}
	if (!take(c, ']') || !at_end(c))
		return "not understood";
	return NULL;
}

void usdt_operand__aarch64(struct cursor *c, struct usdt_arg *a)
{
	const char *why = NULL;
	struct reg r;

	if (take(c, '[')) {
		a->kind = USDT_ARG_MEM;
		why = aarch64_parse_address(c, a);
	} else if (take_aarch64_reg(c, &r)) {
		a->kind = USDT_ARG_REG;
		a->base = r.num;
		if (r.num == AARCH64_REG_ZERO) {
			a->kind = USDT_ARG_CONST;
			a->base = USDT_REG_NONE;
		}
		if (!at_end(c))
			why = "not understood";
		else if (a->size > r.size)
			why = "larger than its register";
	} else if (!at_end(c) && strchr("vqdshbz", *c->p) && c->end - c->p > 1 &&
		   is_digit(c->p[1])) {
		why = "in a vector register, which a probe cannot read";
	} else if (take_signed(c, &a->off) && at_end(c)) {
		a->kind = USDT_ARG_CONST;
		a->off = fit(a, a->off);
		if (a->is_float && a->off)
			why = "a constant that claims to be floating point";
	} else {
		why = "not understood";
	}
	if (why)
		usdt_arg__refuse(a, why);
}

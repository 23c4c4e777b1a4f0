/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses USDT argument strings and turns the result into what BPF evaluates.
 *
 * sys/sdt.h lets the compiler print each operand as it would in an instruction, so the
 * grammar is the assembler's:
 *
 *	args	= [ arg { blank arg } ]
 *	arg	= [ "-" ] SIZE [ "f" ] "@" operand | operand
 *
 *	x86-64	operand = "%" REG | "$" sum | [ sum ] [ "(" [ %base ] [ "," %index [ "," SCALE ] ]
 *")" ] AArch64	operand = REG | NUMBER | "[" base [ "," NUMBER | "," index [ "," "lsl" N ] ] "]" sum
 *= [ sign ] term { sign term }, term = NUMBER | SYMBOL
 *
 * SIZE is bytes, "-" means signed, "f" floating point. A number from a wrong reading would
 * be worse than none: whatever does not fit this grammar to its last byte is UNREADABLE.
 */
#include <errno.h>
#include <string.h>

#include "elf/usdt_operand.h"

void usdt_arg__refuse(struct usdt_arg *a, const char *why)
{
	a->kind = USDT_ARG_UNREADABLE;
	a->why = why;
	a->symbol = NULL;
	a->symbol_len = 0;
}

/* "-4@", "8f@": true and c behind it, or false and c unmoved. */
static bool take_size(struct cursor *c, struct usdt_arg *a, bool *known)
{
	struct cursor s = *c;
	bool minus = take(&s, '-');
	unsigned int size = 0, digits = 0;
	char type = 0;

	while (!at_end(&s) && is_digit(*s.p) && digits++ < 4)
		size = size * 10 + (unsigned int)(*s.p++ - '0');
	if (!digits)
		return false;
	if (!at_end(&s) && *s.p != '@')
		type = *s.p++;
	if (!take(&s, '@'))
		return false;
	*known = (size == 1 || size == 2 || size == 4 || size == 8) && (!type || type == 'f');
	if (*known) {
		a->size = (uint8_t)size;
		a->is_signed = minus;
		a->is_float = type == 'f';
	}
	*c = s;
	return true;
}

static void parse_arg(struct cursor c, bool aarch64, struct usdt_arg *a)
{
	bool known = true;

	*a = (struct usdt_arg){
	    .base = USDT_REG_NONE, .index = USDT_REG_NONE, .scale = 1, .aarch64 = aarch64};
	if (!take_size(&c, a, &known)) {
		/* Its signedness is not known either, so any number would be a guess. */
		usdt_arg__refuse(a, "no size given");
		return;
	}
	if (!known) {
		usdt_arg__refuse(a, "not an integer or floating-point number of 1, 2, 4, 8 bytes");
		return;
	}
	if (a->is_float && a->size < 4) {
		usdt_arg__refuse(a, "a floating-point number of this size");
		return;
	}
	if (aarch64)
		usdt_operand__aarch64(&c, a);
	else
		usdt_operand__x86(&c, a);
	if (a->kind == USDT_ARG_UNREADABLE) {
		a->base = a->index = USDT_REG_NONE;
		a->off = 0;
		a->shift = 0;
		a->rip_rel = false;
	}
}

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r' || ch == '\v' || ch == '\f';
}

/*
 * Where the argument that starts at p ends. A blank ends it before a size in any case, so
 * that an unbalanced bracket costs one argument; else unless it is inside brackets, or what
 * follows is the rest of an operand in Intel's syntax ("DWORD PTR [rbp-4]"), which must not
 * be taken for an argument of its own and shift the others.
 */
static const char *arg_end(const char *p, const char *end)
{
	struct usdt_arg scratch;
	int depth = 0;
	bool known;

	for (; p < end; p++) {
		struct cursor next;

		if (*p == '(' || *p == '[')
			depth++;
		else if ((*p == ')' || *p == ']') && depth)
			depth--;
		if (!is_blank(*p))
			continue;
		next = (struct cursor){p, end};
		while (next.p < end && is_blank(*next.p))
			next.p++;
		if (take_size(&next, &scratch, &known))
			return p;
		if (end - next.p > 3 && !memcmp(next.p, "PTR", 3) && is_blank(next.p[3])) {
			next.p += 3;
			while (next.p < end && is_blank(*next.p))
				next.p++;
		} else if (!depth && next.p < end && *next.p != '[') {
			return p;
		}
		p = next.p - 1;
	}
	return end;
}

unsigned int usdt_args__parse(const char *argstr, bool aarch64, struct usdt_arg *args,
			      unsigned int max)
{
	const char *p = argstr, *end = argstr + strlen(argstr);
	unsigned int n = 0;

	while (n < max) {
		struct cursor c;

		while (p < end && is_blank(*p))
			p++;
		if (p == end)
			break;
		c.p = p;
		p = arg_end(p, end);
		c.end = p;
		while (is_blank(c.end[-1]))
			c.end--;
		parse_arg(c, aarch64, &args[n++]);
	}
	return n;
}

void usdt_arg__resolve(struct usdt_arg *a, uint64_t addr, uint64_t site, bool pie)
{
	uint64_t target = addr + (uint64_t)a->off;

	a->symbol = NULL;
	a->symbol_len = 0;
	if (a->index != USDT_REG_NONE || (a->base != USDT_REG_NONE && a->base != X86_RIP)) {
		/* gy(,%rax,8): the address itself is the displacement, so it must be fixed. */
		if (pie)
			usdt_arg__refuse(a,
					 "an absolute address in a file that is loaded anywhere");
		else
			a->off = (int64_t)target;
		return;
	}
	if (a->kind == USDT_ARG_CONST && !pie) {
		a->off = fit(a, (int64_t)target);
		return;
	}
	if (a->kind == USDT_ARG_CONST) {
		if (a->size != 8) {
			usdt_arg__refuse(a, "part of an address");
			return;
		}
		a->kind = USDT_ARG_REG;
	}
	a->base = X86_RIP;
	a->rip_rel = true;
	a->off = (int64_t)(target - site);
}

int usdt_arg__to_abi(const struct usdt_arg *a, struct qbpf_arg *out)
{
	/* Byte offsets into struct pt_regs of x86-64, by DWARF register number. */
	static const uint16_t pt_regs[17] = {80, 96, 88, 40, 104, 112, 32, 152, 72,
					     64, 56, 48, 24, 16,  8,   0,  128};

	memset(out, 0, sizeof(*out));
	out->base = out->index = QBPF_NO_REG;
	if (a->kind == USDT_ARG_UNREADABLE || a->aarch64 || a->symbol || a->base > X86_RIP ||
	    a->index > X86_RIP)
		return -EOPNOTSUPP;
	if (a->base >= 0)
		out->base = pt_regs[a->base];
	if (a->index >= 0)
		out->index = pt_regs[a->index];
	out->off = a->off;
	out->scale = a->scale;
	out->size = a->size;
	out->shift = a->shift;
	out->flags = QBPF_ARG_VALID;
	if (a->kind == USDT_ARG_MEM)
		out->flags |= QBPF_ARG_DEREF;
	if (a->is_float)
		out->flags |= QBPF_ARG_FLOAT;
	else if (a->is_signed)
		out->flags |= QBPF_ARG_SIGNED;
	return 0;
}

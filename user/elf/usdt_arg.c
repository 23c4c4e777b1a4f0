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
 *	x86-64	operand = "%" REG | "$" sum | [ sum ] [ "(" [ %base ] [ "," %index [ "," SCALE ] ] ")" ]
 *	AArch64	operand = REG | NUMBER | "[" base [ "," NUMBER | "," index [ "," "lsl" N ] ] "]"
 *	sum	= [ sign ] term { sign term }, term = NUMBER | SYMBOL
 *
 * SIZE is bytes, "-" means signed, "f" floating point. A number from a wrong reading would
 * be worse than none: whatever does not fit this grammar to its last byte is UNREADABLE.
 */
#include <errno.h>
#include <string.h>

#include "elf/usdt_arg.h"

#define X86_RIP	    16
#define X86_RSP	    7
#define AARCH64_SP  31
#define AARCH64_REG_ZERO 64 /* xzr: not a DWARF number, the constant 0 */

struct cursor {
	const char *p, *end;
};

static bool at_end(const struct cursor *c)
{
	return c->p == c->end;
}

static bool take(struct cursor *c, char ch)
{
	if (at_end(c) || *c->p != ch)
		return false;
	c->p++;
	return true;
}

static void skip_blanks(struct cursor *c)
{
	while (!at_end(c) && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

static bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static bool is_symbol_char(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || is_digit(ch) || ch == '_' ||
	       ch == '.' || ch == '$' || (unsigned char)ch >= 0x80;
}

static int digit_value(char ch, unsigned int radix)
{
	unsigned int v;

	if (is_digit(ch))
		v = (unsigned int)(ch - '0');
	else if ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'f')
		v = (unsigned int)((ch | 0x20) - 'a') + 10;
	else
		return -1;
	return v < radix ? (int)v : -1;
}

/* An unsigned number as the assembler reads it: 0x is hexadecimal, a leading 0 octal. */
static bool take_number(struct cursor *c, uint64_t *out)
{
	unsigned int radix = 10;
	uint64_t v = 0;

	if (at_end(c) || !is_digit(*c->p))
		return false;
	if (*c->p == '0' && c->end - c->p > 1) {
		radix = 8;
		if ((c->p[1] | 0x20) == 'x') {
			radix = 16;
			c->p += 2;
			if (at_end(c) || digit_value(*c->p, radix) < 0)
				return false;
		}
	}
	while (!at_end(c)) {
		int d = digit_value(*c->p, radix);

		if (d < 0)
			break;
		if (__builtin_mul_overflow(v, (uint64_t)radix, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
		c->p++;
	}
	/* 12ab, 089: not a number after all */
	if (!at_end(c) && is_symbol_char(*c->p))
		return false;
	*out = v;
	return true;
}

void usdt_arg__refuse(struct usdt_arg *a, const char *why)
{
	a->kind = USDT_ARG_UNREADABLE;
	a->why = why;
	a->symbol = NULL;
	a->symbol_len = 0;
}

/* As the program would see it after a load of a->size bytes. */
static int64_t fit(const struct usdt_arg *a, int64_t v)
{
	unsigned int unused = 64 - 8 * a->size;

	if (unused == 0)
		return v;
	if (a->is_signed)
		return (int64_t)((uint64_t)v << unused) >> unused;
	return (int64_t)((uint64_t)v << unused >> unused);
}

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
	if (c->p == start || c->p - start > UINT16_MAX || a->symbol)
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

struct reg {
	int num; /* DWARF */
	uint8_t size, shift;
};

static const char *const x86_names[16] = {"ax", "dx", "cx", "bx", "si",	 "di",	"bp",  "sp",
					  "8",	"9",  "10", "11", "12", "13", "14", "15"};

static bool name_is(const char *p, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(p, name, n);
}

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

static size_t word_len(const struct cursor *c)
{
	size_t n = 0;

	while (c->p + n < c->end && ((c->p[n] >= 'a' && c->p[n] <= 'z') || is_digit(c->p[n])))
		n++;
	return n;
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

static void x86_parse_operand(struct cursor *c, struct usdt_arg *a)
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

static void aarch64_parse_operand(struct cursor *c, struct usdt_arg *a)
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

	*a = (struct usdt_arg){.base = USDT_REG_NONE, .index = USDT_REG_NONE, .scale = 1,
			       .aarch64 = aarch64};
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
		aarch64_parse_operand(&c, a);
	else
		x86_parse_operand(&c, a);
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
			usdt_arg__refuse(a, "an absolute address in a file that is loaded anywhere");
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the operand parsers of the machines share: a cursor over one argument and the pieces
 * of the grammar in usdt_arg.c. Used by usdt_arg*.c alone.
 */
#ifndef QBPF_ELF_USDT_OPERAND_H
#define QBPF_ELF_USDT_OPERAND_H

#include <string.h>

#include "elf/usdt_arg.h"

#define X86_RIP 16 /* DWARF */

/* Operands of an argument whose size is known already; they set all else or refuse. */
struct cursor;
void usdt_operand__x86(struct cursor *c, struct usdt_arg *a);
void usdt_operand__aarch64(struct cursor *c, struct usdt_arg *a);

struct cursor {
	const char *p, *end;
};

static inline bool at_end(const struct cursor *c)
{
	return c->p == c->end;
}

static inline bool take(struct cursor *c, char ch)
{
	if (at_end(c) || *c->p != ch)
		return false;
	c->p++;
	return true;
}

static inline void skip_blanks(struct cursor *c)
{
	while (!at_end(c) && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

static inline bool is_digit(char ch)
{
	return ch >= '0' && ch <= '9';
}

static inline bool is_symbol_char(char ch)
{
	return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || is_digit(ch) || ch == '_' ||
	       ch == '.' || ch == '$' || (unsigned char)ch >= 0x80;
}

static inline int digit_value(char ch, unsigned int radix)
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
static inline bool take_number(struct cursor *c, uint64_t *out)
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

/* As the program would see it after a load of a->size bytes. */
static inline int64_t fit(const struct usdt_arg *a, int64_t v)
{
	unsigned int unused = 64 - 8 * a->size;

	if (unused == 0)
		return v;
	if (a->is_signed)
		return (int64_t)((uint64_t)v << unused) >> unused;
	return (int64_t)((uint64_t)v << unused >> unused);
}

struct reg {
	int num; /* DWARF */
	uint8_t size, shift;
};

static inline bool name_is(const char *p, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(p, name, n);
}

static inline size_t word_len(const struct cursor *c)
{
	size_t n = 0;

	while (c->p + n < c->end && ((c->p[n] >= 'a' && c->p[n] <= 'z') || is_digit(c->p[n])))
		n++;
	return n;
}

#endif

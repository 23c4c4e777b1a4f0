/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The argument strings of USDT notes: every operand form that gcc and clang emit for x86-64
 * and aarch64, e.g. "-4@%edi", "8@-8(%rbp)", "8f@16(%rdi,%rsi,8)", "-4@gy(%rip)", "8@$5",
 * "-4@[sp, 128]". What cannot be read is unreadable for that argument alone.
 */
#ifndef QBPF_ELF_USDT_ARG_H
#define QBPF_ELF_USDT_ARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qbpf/abi.h"

enum usdt_arg_kind {
	USDT_ARG_UNREADABLE, /* parsed or not, its value cannot be had; `why` says why */
	USDT_ARG_CONST,	     /* off is the value */
	USDT_ARG_REG,
	USDT_ARG_MEM,
};

#define USDT_REG_NONE	(-1)
#define USDT_SYMBOL_MAX 1024 /* longer names are not looked up */

struct usdt_arg {
	enum usdt_arg_kind kind;
	uint8_t size; /* 1, 2, 4, 8 */
	bool is_signed;
	bool is_float;
	int base; /* DWARF register number of the machine, USDT_REG_NONE */
	int index;
	uint8_t scale;
	uint8_t shift; /* %ah: 8 */
	/* off is relative to the site's own address (MEM: value at site addr + off, REG: the value
	 * is that address). A site that is armed elsewhere has to correct off by the distance. */
	bool rip_rel;
	int64_t off;
	bool aarch64;	    /* base and index are AArch64 DWARF numbers: to be listed, not armed */
	const char *symbol; /* not NULL: a symbol in argstr that `off` still has to be added to */
	uint16_t symbol_len;
	const char *why; /* static text, for UNREADABLE */
};

/* Splits and parses argstr into args[max]; returns the number of arguments. Never fails. The
 * arguments may point into argstr. */
unsigned int usdt_args__parse(const char *argstr, bool aarch64, struct usdt_arg *args,
			      unsigned int max);

/* Puts a symbol's address in: `addr` of the symbol, `site` of the probe, `pie` of the file. */
void usdt_arg__resolve(struct usdt_arg *a, uint64_t addr, uint64_t site, bool pie);
void usdt_arg__refuse(struct usdt_arg *a, const char *why);

/* The form that BPF evaluates (pt_regs offsets of x86-64). -EOPNOTSUPP when unreadable. */
int usdt_arg__to_abi(const struct usdt_arg *a, struct qbpf_arg *out);

#endif

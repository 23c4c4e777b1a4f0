/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Single instructions: where they begin and what a probe on them costs.
 *
 * The kernel's rules (arch/x86/kernel/uprobes.c) are encoded as facts and were checked on 6.18 by
 * registering a probe on every one- and two-byte opcode: it refuses the prefixes es cs ss ds (ds is
 * notrack) and lock, privileged and port instructions, int, int3, iret, far transfers, mov to
 * %ss, and near jumps and calls with an operand-size prefix.
 *
 * It looks at the opcode byte of VEX and EVEX instructions as if it were a one-byte opcode. Where
 * that makes it refuse one, nothing is lost. But where the byte is that of a branch, a nop or popf,
 * it takes the probe and then treats the instruction as one: vpor (eb) jumps by its ModRM byte,
 * vmovdqu (7f) is skipped, vcmpps (c2) goes on in the kernel's copy. The target computes wrong
 * results or crashes, so these are bad places here whatever the kernel says.
 */
#include <string.h>

#include "elf/code.h"

/* One bit an opcode that the kernel refuses in 64-bit code. */
static const uint16_t refused_rows[16] = {
    [0x0] = 1 << 0x6 | 1 << 0x7 | 1 << 0xe,
    [0x1] = 1 << 0x6 | 1 << 0x7 | 1 << 0xe | 1 << 0xf,
    [0x2] = 1 << 0x7 | 1 << 0xf,
    [0x3] = 1 << 0x7 | 1 << 0xf,
    [0x6] = 1 << 0x0 | 1 << 0x1 | 1 << 0x2 | 0xf000,
    [0x8] = 1 << 0x2,
    [0x9] = 1 << 0xa,
    [0xc] = 0xf000,
    [0xd] = 1 << 0x4 | 1 << 0x5 | 1 << 0x6,
    [0xe] = 0x00f0 | 1 << 0xa | 0xf000,
    [0xf] = 1 << 0x1 | 1 << 0x4 | 1 << 0xa | 1 << 0xb,
};

/* The same for opcode bytes of VEX and EVEX instructions that the kernel mistakes and accepts. */
static const uint16_t mistaken_rows[16] = {
    [0x7] = 0xffff,		 /* jcc: skipped, or jumps */
    [0x9] = 1 << 0x0 | 1 << 0xd, /* nop: skipped; popf: leaves the trap flag */
    [0xc] = 1 << 0x2 | 1 << 0x3 | 1 << 0xa | 1 << 0xb, /* ret: does not come back */
    [0xe] = 1 << 0x8 | 1 << 0x9 | 1 << 0xb,	       /* call, jmp */
    [0xf] = 1 << 0xf,				       /* indirect call, jmp */
};

struct encoding {
	bool opsize, rep, bad_prefix;
	uint8_t rex;
	uint8_t op; /* the opcode's last byte before ModRM in its map */
	bool two;   /* behind 0f */
	bool vex;   /* VEX or EVEX: op is the opcode byte */
	bool xop;
	uint8_t map; /* of VEX and EVEX */
	size_t at;   /* offset of what follows the opcode */
};

static bool parse_encoding(const uint8_t *b, size_t len, struct encoding *e)
{
	size_t i = 0;

	memset(e, 0, sizeof(*e));
	for (;; i++) {
		if (i == len)
			return false;
		if (b[i] == 0x66)
			e->opsize = true;
		else if (b[i] == 0xf2 || b[i] == 0xf3)
			e->rep = true;
		else if (b[i] == 0x26 || b[i] == 0x2e || b[i] == 0x36 || b[i] == 0x3e ||
			 b[i] == 0xf0)
			e->bad_prefix = true;
		else if (b[i] != 0x64 && b[i] != 0x65 && b[i] != 0x67)
			break;
	}
	if (b[i] >> 4 == 4)
		e->rex = b[i++];
	if (i + 1 >= len) {
		if (i == len)
			return false;
		e->op = b[i];
		e->at = i + 1;
		return true;
	}
	if (b[i] == 0xc5 || b[i] == 0xc4 || b[i] == 0x62) {
		e->vex = true;
		e->map = b[i] == 0xc5 ? 1 : b[i + 1] & (b[i] == 0xc4 ? 0x1f : 7);
		i += b[i] == 0xc5 ? 2 : b[i] == 0xc4 ? 3 : 4;
		if (i >= len)
			return false;
	} else if (b[i] == 0x0f) {
		e->two = true;
		i++;
	} else if (b[i] == 0x8f && (b[i + 1] & 0x1f) >= 8) {
		e->xop = true; /* else pop */
	}
	e->op = b[i];
	e->at = i + 1;
	return true;
}

/* FMA4: four operands behind map 3. The kernel's decoder does not know them, nor XOP. */
static bool is_fma4(const struct encoding *e)
{
	return e->vex && e->map == 3 &&
	       ((e->op >= 0x5c && e->op <= 0x5f) || (e->op >= 0x68 && e->op <= 0x6f) ||
		(e->op >= 0x78 && e->op <= 0x7f));
}

static bool kernel_refuses(const uint8_t *b, size_t len, const struct encoding *e)
{
	if (e->bad_prefix)
		return true;
	if (e->two)
		return e->opsize && e->op >> 4 == 8; /* jcc with a 16-bit distance */
	if (refused_rows[e->op >> 4] >> (e->op & 15) & 1)
		return true;
	if (e->xop || is_fma4(e))
		return true;
	if (e->op == 0x8e) /* mov to %ss masks the trap that follows it; seen in VEX too */
		return e->at < len && (b[e->at] >> 3 & 7) == 2;
	return !e->vex && e->opsize &&
	       (e->op >> 4 == 7 || e->op == 0xe8 || e->op == 0xe9 || e->op == 0xeb);
}

static bool kernel_mistakes(const struct encoding *e)
{
	return e->vex && mistaken_rows[e->op >> 4] >> (e->op & 15) & 1;
}

static bool is_nop(const struct insn *in, const struct encoding *e)
{
	if (e->two)
		return e->op == 0x1f;
	return !e->vex && e->op == 0x90 && !(e->rex & 1) && !e->rep && in->len <= 9;
}

static bool is_emulated(const struct insn *in, const struct encoding *e)
{
	if (e->vex)
		return false;
	if (e->two)
		return e->op >> 4 == 8; /* jcc */
	if (e->op >> 4 == 7 || e->op == 0xe8 || e->op == 0xe9 || e->op == 0xeb)
		return true;
	/* push, alone or with the REX.B that makes it r8..r15 */
	return e->op >= 0x50 && e->op <= 0x57 && (in->len == 1 || (in->len == 2 && e->rex == 0x41));
}

static enum insn_class classify(const uint8_t *b, size_t len, const struct insn *in)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	struct encoding e;

	if (in->len == 4 && !memcmp(b, endbr64, 4))
		return INSN_ENDBR;
	if (!parse_encoding(b, len, &e))
		return INSN_BAD;
	/* 6.18 rewrites any nop of five bytes, whatever its encoding. */
	if (in->len == 5 && is_nop(in, &e) && !e.bad_prefix)
		return INSN_NOP5;
	if (in->len >= 10 && e.two && e.op == 0x1f)
		return INSN_NOP10;
	if (kernel_refuses(b, len, &e) || kernel_mistakes(&e))
		return INSN_BAD;
	if (in->flow == FLOW_RET)
		return INSN_RET;
	return is_nop(in, &e) || is_emulated(in, &e) ? INSN_EMULATED : INSN_STEPPED;
}

enum insn_class insn_classify(const struct elf_image *img, uint64_t addr, unsigned int *len)
{
	const uint8_t *bytes;
	struct insn in;
	size_t n;

	if (len)
		*len = 0;
	if (elf_image__headers(img)->machine != ELF_X86_64 || !elf_image__addr_is_code(img, addr))
		return INSN_BAD;
	n = elf_image__bytes(img, addr, INSN_LEN_MAX, &bytes);
	if (!n || !insn__decode(bytes, n, addr, &in))
		return INSN_BAD;
	if (len)
		*len = in.len;
	return classify(bytes, n, &in);
}

bool insn_boundary(const struct elf_image *img, uint64_t from, uint64_t addr)
{
	const uint8_t *bytes;
	struct insn in;
	uint64_t at;
	size_t n;

	if (addr < from || elf_image__headers(img)->machine != ELF_X86_64)
		return false;
	if (addr == from)
		return true;
	n = elf_image__bytes(img, from, addr - from, &bytes);
	if (n != addr - from)
		return false;
	for (at = 0; at < n; at += in.len)
		if (!insn__decode(bytes + at, n - at, from + at, &in))
			return false;
	return true;
}

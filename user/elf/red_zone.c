/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Can live data lie below the stack pointer?
 *
 * The System V ABI lets a function keep data in the 128 bytes below %rsp as long as nothing that it
 * calls could overwrite them; gcc and clang do so in leaf functions. The answer here is "no" only
 * by a proof that needs no data flow: over the whole function, with its cold parts,
 *
 *  - no operand (lea counts) lies below %rsp;
 *  - where %rbp is the frame pointer, no operand lies further below it than the frame reaches that
 *    was allocated right behind "mov %rsp,%rbp";
 *  - in a function without calls, no operand indexes the stack and no other register receives a
 *    copy of %rsp, for what is reached that way cannot be bounded. (With a call in it the
 *    function has no red zone by the compilers' own rule, so there the address is taken of locals.)
 */
#include <string.h>

#include "elf/code.h"

bool red_zone_stepped_over(const struct elf_image *img, uint64_t addr)
{
	static const uint8_t down[] = {0x48, 0x8d, 0x64, 0x24, 0x80};
	static const uint8_t up[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00};
	const size_t nop = 5, total = sizeof(down) + nop + sizeof(up);
	const uint8_t *b;

	return addr > sizeof(down) &&
	       elf_image__bytes(img, addr - sizeof(down), total, &b) == total &&
	       !memcmp(b, down, sizeof(down)) && !memcmp(b + sizeof(down) + nop, up, sizeof(up));
}

static bool is_stack(uint16_t reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP;
}

static bool is_frame(uint16_t reg)
{
	return reg == X86_REG_RBP || reg == X86_REG_EBP;
}

/* "mov %rsp,%rbp" or "lea N(%rsp),%rbp"; *above is N. */
static bool sets_frame(const struct insn *in, int64_t *above)
{
	*above = 0;
	if (in->dst != X86_REG_RBP)
		return false;
	if (in->id == X86_INS_MOV && !in->has_mem)
		return in->src == X86_REG_RSP;
	*above = in->disp;
	return in->id == X86_INS_LEA && in->base == X86_REG_RSP && !in->index;
}

/* How far below %rbp the stack is in use after the straight line behind insns[i]. */
static int64_t frame_reach(const struct code *c, size_t i, int64_t above)
{
	const struct insn *in;
	int64_t reach = above;

	for (i++; i < c->n && c->insns[i].flow == FLOW_NEXT; i++) {
		in = &c->insns[i];
		if (in->id == X86_INS_PUSH)
			reach += 8;
		else if (in->id == X86_INS_SUB && in->dst == X86_REG_RSP && !in->src &&
			 !in->has_mem)
			reach += in->imm;
		else if (in->id == X86_INS_POP || in->id == X86_INS_LEAVE ||
			 (in->id == X86_INS_ADD && in->dst == X86_REG_RSP))
			break;
	}
	return reach;
}

struct use {
	bool calls;
	bool below;	     /* something lies below %rsp */
	bool unbound;	     /* indexed, or through a copy of %rsp */
	bool frame;	     /* %rbp is a frame pointer */
	bool from_elsewhere; /* indexed off %rbp */
	int64_t reach;	     /* least reach of any frame */
	int64_t deepest;     /* furthest operand below %rbp */
};

static void look(const struct code *c, size_t i, struct use *u)
{
	const struct insn *in = &c->insns[i];
	int64_t above, reach;

	if (in->flow == FLOW_CALL)
		u->calls = true;
	if (in->has_mem && is_stack(in->base)) {
		if (in->id == X86_INS_LEA && in->dst == X86_REG_RSP)
			u->unbound |= in->index && in->index != X86_REG_RIZ;
		else if (in->disp < 0)
			u->below = true;
		else if (in->index && in->index != X86_REG_RIZ)
			u->unbound = true;
		else if (in->id == X86_INS_LEA && in->dst != X86_REG_RBP)
			u->unbound = true;
	}
	if (in->has_mem && is_stack(in->index))
		u->unbound = true;
	if (in->has_mem && is_frame(in->base)) {
		if (-in->disp > u->deepest)
			u->deepest = -in->disp;
		u->from_elsewhere |= in->index && in->index != X86_REG_RIZ;
	}
	if (sets_frame(in, &above)) {
		reach = frame_reach(c, i, above);
		if (!u->frame || reach < u->reach)
			u->reach = reach;
		u->frame = true;
	} else if (in->id != X86_INS_CMP && in->id != X86_INS_TEST) {
		u->unbound |= is_stack(in->src) && !is_stack(in->dst);
		u->unbound |= is_stack(in->dst) && in->id == X86_INS_PUSH;
	}
	if (in->id == X86_INS_ENTER)
		u->below = true; /* no compiler emits it: not worth a proof */
}

bool red_zone_possible_ranges(const struct elf_image *img, const struct code_range *r, size_t n,
			      uint64_t addr)
{
	struct use u = {0};
	struct code c;
	bool possible;
	size_t i;

	if (red_zone_stepped_over(img, addr))
		return false;
	if (!n)
		return true;
	if (addr == r[0].addr ||
	    (addr == r[0].addr + 4 && insn_classify(img, r[0].addr, NULL) == INSN_ENDBR))
		return false;
	if (code__read(img, r, n, &c))
		return true;
	for (i = 0; i < c.n; i++)
		look(&c, i, &u);
	possible = !c.decoded || u.below || (!u.calls && u.unbound);
	if (u.frame)
		possible |= u.deepest > u.reach || (!u.calls && u.from_elsewhere);
	code__clear(&c);
	return possible;
}

bool red_zone_possible(const struct elf_image *img, uint64_t start, uint64_t size, uint64_t addr)
{
	struct code_range r = {start, size};

	return red_zone_possible_ranges(img, &r, size ? 1 : 0, addr);
}

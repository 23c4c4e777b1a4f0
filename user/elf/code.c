/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decodes functions with Capstone.
 *
 * Capstone 4 knows no instruction set extension newer than 2018, but those in VEX and EVEX
 * encoding have a regular length, so they are measured here when Capstone gives up: none of
 * them changes control flow, and their memory operand is found the same way in all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/code.h"

struct decoder {
	csh handle;
	cs_insn *insn;
};

/* One per thread for the life of the process: opening one costs more than a function. */
static struct decoder *decoder(void)
{
	static __thread struct decoder d;

	if (d.insn)
		return &d;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d.handle) != CS_ERR_OK)
		return NULL;
	cs_option(d.handle, CS_OPT_DETAIL, CS_OPT_ON);
	d.insn = cs_malloc(d.handle);
	if (!d.insn)
		cs_close(&d.handle);
	return d.insn ? &d : NULL;
}

static int64_t get_disp(const uint8_t *p, size_t n)
{
	int32_t v;

	if (n == 1)
		return (int8_t)*p;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* ModRM, SIB and displacement at p; returns their length, 0: does not fit. */
static size_t read_modrm(const uint8_t *p, size_t len, struct insn *out)
{
	uint8_t mod, rm, base;
	size_t at = 1, ndisp;

	if (!len)
		return 0;
	mod = p[0] >> 6;
	rm = p[0] & 7;
	if (mod == 3)
		return 1;
	out->has_mem = true;
	base = rm;
	if (rm == 4) {
		if (len < 2)
			return 0;
		base = p[1] & 7;
		if ((p[1] >> 3 & 7) != 4)
			out->index = X86_REG_RAX; /* which one does not matter */
		at = 2;
	}
	ndisp = mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0;
	if (at + ndisp > len)
		return 0;
	if (ndisp)
		out->disp = get_disp(p + at, ndisp);
	if (base == 4)
		out->base = X86_REG_RSP;
	else if (base == 5 && mod)
		out->base = X86_REG_RBP;
	return at + ndisp;
}

/*
 * VEX (c4, c5) and EVEX (62) by their encoding. Base registers r12 and r13 are taken for rsp
 * and rbp, which errs on the safe side.
 */
static bool decode_vex(const uint8_t *b, size_t len, uint64_t addr, struct insn *out)
{
	size_t at, modrm, imm;
	uint8_t map, op;

	memset(out, 0, sizeof(*out));
	out->addr = addr;
	if (len < 5)
		return false;
	if (b[0] == 0xc5) {
		map = 1;
		at = 2;
	} else if (b[0] == 0xc4) {
		map = b[1] & 0x1f;
		at = 3;
	} else if (b[0] == 0x62) {
		map = b[1] & 7;
		at = 4;
	} else {
		return false;
	}
	op = b[at++];
	if (map == 1 && op == 0x77) { /* vzeroupper */
		out->len = at;
		return true;
	}
	if (!map || map == 4 || map > 6)
		return false;
	imm =
	    map == 3 ||
	    (map == 1 && ((op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6)));
	modrm = read_modrm(b + at, len - at, out);
	if (!modrm || at + modrm + imm > len)
		return false;
	out->len = at + modrm + imm;
	return true;
}

static void read_operands(const cs_x86 *x, struct insn *out)
{
	const cs_x86_op *o;
	unsigned int i;

	for (i = 0; i < x->op_count; i++) {
		o = &x->operands[i];
		if (o->type == X86_OP_REG) {
			if (i == 0)
				out->dst = o->reg;
			else
				out->src = o->reg;
		} else if (o->type == X86_OP_IMM) {
			out->imm = o->imm;
		} else if (o->type == X86_OP_MEM && !out->has_mem) {
			out->has_mem = true;
			out->base = o->mem.base;
			out->index = o->mem.index;
			out->scale = o->mem.scale;
			out->disp = o->mem.disp;
			if (o->mem.base == X86_REG_RIP) {
				out->rip_rel = true;
				out->disp += out->addr + out->len;
			}
		}
	}
}

static enum flow flow_of(csh handle, const cs_insn *in, const cs_x86 *x)
{
	switch (in->id) {
	case X86_INS_JMP:
		return x->operands[0].type == X86_OP_IMM ? FLOW_JUMP : FLOW_INDIRECT;
	case X86_INS_LJMP:
		return FLOW_INDIRECT;
	case X86_INS_CALL:
	case X86_INS_LCALL:
		return FLOW_CALL;
	case X86_INS_RET:
		return FLOW_RET;
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETD:
	case X86_INS_IRETQ:
	case X86_INS_SYSRET:
	case X86_INS_SYSEXIT:
	case X86_INS_HLT:
	case X86_INS_UD2:
	case X86_INS_INT3:
		return FLOW_STOP;
	default:
		return cs_insn_group(handle, in, CS_GRP_JUMP) || in->id == X86_INS_XBEGIN
			   ? FLOW_COND
			   : FLOW_NEXT;
	}
}

bool insn__decode(const uint8_t *bytes, size_t len, uint64_t addr, struct insn *out)
{
	struct decoder *d = decoder();
	const uint8_t *p = bytes;
	uint64_t at = addr;
	const cs_x86 *x;

	if (!d || !len)
		return false;
	if (!cs_disasm_iter(d->handle, &p, &len, &at, d->insn))
		return decode_vex(bytes, len, addr, out);
	memset(out, 0, sizeof(*out));
	x = &d->insn->detail->x86;
	out->addr = addr;
	out->id = d->insn->id;
	out->len = d->insn->size;
	out->flow = flow_of(d->handle, d->insn, x);
	read_operands(x, out);
	if (out->flow == FLOW_JUMP || out->flow == FLOW_COND || out->flow == FLOW_CALL)
		out->target = out->imm;
	return true;
}

bool code__inside(const struct code *c, uint64_t addr)
{
	size_t i;

	for (i = 0; i < c->nranges; i++)
		if (addr - c->ranges[i].addr < c->ranges[i].size)
			return true;
	return false;
}

const struct insn *code__at(const struct code *c, uint64_t addr)
{
	size_t i, lo, hi, mid;

	for (i = 0; i < c->nranges && addr - c->ranges[i].addr >= c->ranges[i].size;)
		i++;
	if (i == c->nranges)
		return NULL;
	for (lo = c->first[i], hi = c->first[i + 1]; lo < hi;) {
		mid = lo + (hi - lo) / 2;
		if (c->insns[mid].addr == addr)
			return &c->insns[mid];
		if (c->insns[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static int code__push(struct code *c, size_t *cap, const struct insn *in)
{
	struct insn *bigger;

	if (c->n == *cap) {
		*cap = *cap ? *cap * 2 : 64;
		bigger = reallocarray(c->insns, *cap, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		c->insns = bigger;
	}
	c->insns[c->n++] = *in;
	return 0;
}

static int read_range(struct code *c, size_t *cap, const struct code_range *r)
{
	const uint8_t *bytes;
	struct insn in;
	size_t at = 0;
	int err;

	if (!r->size || r->size > FUNC_SIZE_MAX || !elf_image__addr_is_code(c->img, r->addr) ||
	    elf_image__bytes(c->img, r->addr, r->size, &bytes) != r->size)
		return -EINVAL;
	for (; at < r->size; at += in.len) {
		if (!insn__decode(bytes + at, r->size - at, r->addr + at, &in))
			return -EINVAL;
		err = code__push(c, cap, &in);
		if (err)
			return err;
	}
	return 0;
}

int code__read(const struct elf_image *img, const struct code_range *r, size_t n, struct code *out)
{
	size_t i, cap = 0;
	int err = 0;

	*out = (struct code){.img = img, .ranges = r, .nranges = n};
	if (elf_image__headers(img)->machine != ELF_X86_64 || n > RANGES_MAX) {
		out->nranges = 0;
		return 0;
	}
	for (i = 0; !err && i < n; i++) {
		err = read_range(out, &cap, &r[i]);
		out->first[i + 1] = out->n;
	}
	if (err == -ENOMEM) {
		code__clear(out);
		return err;
	}
	out->decoded = !err && out->n;
	/* Data between the instructions would throw the decoding out of step: jumps tell. */
	for (i = 0; out->decoded && i < out->n; i++)
		if ((out->insns[i].flow == FLOW_JUMP || out->insns[i].flow == FLOW_COND) &&
		    code__inside(out, out->insns[i].target) && !code__at(out, out->insns[i].target))
			out->decoded = false;
	return 0;
}

void code__clear(struct code *c)
{
	free(c->insns);
	memset(c, 0, sizeof(*c));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How control leaves a function: its RETs, tail jumps and calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/code.h"

static int push_addr(uint64_t **list, unsigned int n, uint64_t addr)
{
	uint64_t *bigger = *list;

	if (!(n & (n - 1))) { /* room for the next power of two */
		bigger = reallocarray(*list, n ? 2 * n : 1, sizeof(**list));
		if (!bigger)
			return -ENOMEM;
		*list = bigger;
	}
	bigger[n] = addr;
	return 0;
}

static bool is_endbr(const struct elf_image *img, uint64_t addr)
{
	return insn_classify(img, addr, NULL) == INSN_ENDBR;
}

static bool moves_rsp(const struct insn *in)
{
	return in->id == X86_INS_PUSH ||
	       (in->dst == X86_REG_RSP && (in->id == X86_INS_SUB || in->id == X86_INS_ADD ||
					   in->id == X86_INS_AND || in->id == X86_INS_LEA));
}

static bool first_use_moves_rsp(const struct code *c)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (moves_rsp(&c->insns[i]))
			return true;
		if (c->insns[i].flow != FLOW_NEXT || c->insns[i].base == X86_REG_RSP ||
		    c->insns[i].src == X86_REG_RSP || c->insns[i].dst == X86_REG_RSP)
			return false;
	}
	return false;
}

static int add_tail(struct func_facts *out, const struct insn *in)
{
	if (push_addr(&out->tails, out->ntail, in->addr) ||
	    push_addr(&out->tail_targets, out->ntail, in->target))
		return -ENOMEM;
	out->ntail++;
	return 0;
}

static int add_insn(const struct code *c, size_t i, uint64_t second, const int32_t *depths,
		    struct func_facts *out)
{
	const struct insn *in = &c->insns[i];
	uint64_t entry = c->ranges[0].addr;
	int err = 0;

	if (in->id == X86_INS_SYSCALL || in->id == X86_INS_SYSENTER)
		out->syscall_insn = true;
	switch (in->flow) {
	case FLOW_CALL:
		out->has_calls = true;
		break;
	case FLOW_RET:
		err = push_addr(&out->rets, out->nret, in->addr);
		out->nret += !err;
		break;
	case FLOW_STOP:
		/* A far return is a way out that cannot be watched. */
		out->has_indirect_jump |=
		    in->id != X86_INS_HLT && in->id != X86_INS_UD2 && in->id != X86_INS_INT3;
		break;
	case FLOW_INDIRECT:
		if (code__jump_table(c, i, NULL, NULL))
			break;
		if (code__indirect_tail(c, i, depths))
			err = add_tail(out, in);
		else
			out->has_indirect_jump = true;
		break;
	case FLOW_JUMP:
	case FLOW_COND:
		out->loops_to_entry |= in->target == entry;
		out->loops_past_endbr |= in->target == second && second != entry;
		if (code__inside(c, in->target))
			break;
		err = push_addr(&out->exits, out->nexits, in->target);
		out->nexits += !err;
		if (in->flow == FLOW_COND)
			out->has_cond_tail = true;
		else if (!err)
			err = add_tail(out, in);
		break;
	default:
		break;
	}
	return err;
}

int func_facts__read_ranges(const struct elf_image *img, const struct code_range *r, size_t n,
			    struct func_facts *out)
{
	int32_t *depths = NULL;
	uint64_t second;
	struct code c;
	size_t i;
	int err;

	memset(out, 0, sizeof(*out));
	if (!n)
		return -EINVAL;
	err = code__read(img, r, n, &c);
	if (err)
		return err;
	second = r[0].addr + (is_endbr(img, r[0].addr) ? 4 : 0);
	out->decoded = c.decoded;
	out->adjusts_rsp = first_use_moves_rsp(&c);
	for (i = 0; i < c.n && c.insns[i].flow != FLOW_INDIRECT;)
		i++;
	if (i < c.n)
		err = code__depths(&c, &depths);
	for (i = 0; !err && i < c.n; i++)
		err = add_insn(&c, i, second, depths, out);
	free(depths);
	code__clear(&c);
	if (err)
		func_facts__clear(out);
	return err;
}

int func_facts__read(const struct elf_image *img, uint64_t addr, uint64_t size,
		     struct func_facts *out)
{
	struct code_range r = {addr, size};

	return func_facts__read_ranges(img, &r, 1, out);
}

void func_facts__clear(struct func_facts *f)
{
	free(f->rets);
	free(f->tails);
	free(f->tail_targets);
	free(f->exits);
	memset(f, 0, sizeof(*f));
}

bool may_loop_to_entry(const struct elf_image *img, uint64_t addr, uint64_t size)
{
	uint64_t second = addr + (is_endbr(img, addr) ? 4 : 0), target;
	const uint8_t *b;
	size_t n, i;
	int32_t far;

	n = elf_image__bytes(img, addr, size, &b);
	for (i = 0; i + 1 < n; i++) {
		if (b[i] >> 4 == 7 || b[i] == 0xeb || (b[i] >= 0xe0 && b[i] <= 0xe3)) {
			target = addr + i + 2 + (int8_t)b[i + 1];
			if (target == addr || target == second)
				return true;
		}
		if (i + 4 < n && (b[i] == 0xe9 || (i && b[i - 1] == 0x0f && b[i] >> 4 == 8))) {
			memcpy(&far, b + i + 1, 4);
			target = addr + i + 5 + far;
			if (target == addr || target == second)
				return true;
		}
	}
	return false;
}

bool code_jumps_into(const struct elf_image *img, const struct code_range *from,
		     const struct code_range *into)
{
	struct code c;
	bool found = false;
	size_t i;

	if (code__read(img, from, 1, &c))
		return false;
	for (i = 0; i < c.n && !found; i++)
		found = (c.insns[i].flow == FLOW_JUMP || c.insns[i].flow == FLOW_COND) &&
			c.insns[i].target - into->addr < into->size;
	code__clear(&c);
	return found;
}

struct sought {
	uint64_t addr;
	bool found;
};

static void seek(void *ctx, uint64_t target)
{
	struct sought *s = ctx;

	s->found |= target == s->addr;
}

bool insn_only_falls_through(const struct elf_image *img, const struct code_range *r, size_t n,
			     uint64_t addr)
{
	struct sought s = {.addr = addr};
	const struct insn *at;
	struct code c;
	bool ok = false;
	size_t i;

	if (code__read(img, r, n, &c))
		return false;
	at = c.decoded ? code__at(&c, addr) : NULL;
	/* What comes before must be there, end where this begins, and go on. */
	if (!at || at == c.insns || at[-1].addr + at[-1].len != addr || at[-1].flow != FLOW_NEXT)
		goto out;
	for (i = 0; i < c.n; i++) {
		if ((c.insns[i].flow == FLOW_JUMP || c.insns[i].flow == FLOW_COND) &&
		    c.insns[i].target == addr)
			goto out;
		if (c.insns[i].flow == FLOW_INDIRECT && !code__jump_table(&c, i, seek, &s))
			goto out;
	}
	ok = !s.found;
out:
	code__clear(&c);
	return ok;
}

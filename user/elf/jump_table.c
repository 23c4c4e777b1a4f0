/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells a switch from a tail call through a pointer: both end in an indirect jump.
 *
 * gcc and clang compile a switch to one of
 *	lea table(%rip),%B ; movslq (%B,%I,4),%R ; add %B,%R ; jmp *%R
 *	jmp *table(,%I,8)		or  mov table(,%I,8),%R ; jmp *%R
 * It counts as one only when the table can be read from the file and its first two entries,
 * which every table of a switch has, lead into this function.
 */
#include <string.h>

#include "elf/code.h"

#define LOOK_BACK   12 /* instructions from the jump to the load of the entry */
#define ENTRIES_MAX 4096

struct table {
	uint64_t addr;
	bool relative; /* 32-bit distances from addr, else 64-bit addresses */
};

/* The table's address that register r holds at insns[i]: the nearest lea before it. */
static bool find_lea(const struct code *c, size_t i, uint16_t r, uint64_t *addr)
{
	const struct insn *in;

	while (i-- > 0) {
		in = &c->insns[i];
		if (in->dst != r || in->id == X86_INS_CMP || in->id == X86_INS_TEST ||
		    in->id == X86_INS_PUSH)
			continue;
		if (in->id != X86_INS_LEA || !in->rip_rel)
			return false;
		*addr = in->disp;
		return true;
	}
	return false;
}

static bool find_load(const struct code *c, size_t i, uint16_t r, struct table *t)
{
	uint16_t other = 0; /* what was added to r: one of the two is the table, one the entry */
	const struct insn *in;
	size_t back;

	for (back = 0; back < LOOK_BACK && i-- > 0; back++) {
		in = &c->insns[i];
		if (in->flow != FLOW_NEXT)
			return false;
		if (!in->dst || (in->dst != r && in->dst != other) || in->id == X86_INS_CMP ||
		    in->id == X86_INS_TEST)
			continue;
		if (in->id == X86_INS_ADD && !other && !in->has_mem) {
			other = in->src;
			continue;
		}
		if (in->id == X86_INS_MOVSXD && in->has_mem && other && in->index &&
		    in->scale == 4 && !in->disp && in->base == (in->dst == r ? other : r)) {
			t->relative = true;
			return find_lea(c, i, in->base, &t->addr);
		}
		if (in->id == X86_INS_MOV && in->has_mem && !other && !in->base && in->index &&
		    in->scale == 8 && in->disp > 0) {
			t->relative = false;
			t->addr = in->disp;
			return true;
		}
		return false;
	}
	return false;
}

static bool read_entry(const struct code *c, const struct table *t, size_t k, uint64_t *target)
{
	const uint8_t *bytes;
	int32_t distance;

	if (t->relative) {
		if (elf_image__bytes(c->img, t->addr + 4 * k, 4, &bytes) != 4)
			return false;
		memcpy(&distance, bytes, 4);
		*target = t->addr + distance;
		return true;
	}
	if (elf_image__bytes(c->img, t->addr + 8 * k, 8, &bytes) != 8)
		return false;
	memcpy(target, bytes, 8);
	return true;
}

bool code__jump_table(const struct code *c, size_t i, void (*cb)(void *ctx, uint64_t target),
		      void *ctx)
{
	const struct insn *in = &c->insns[i];
	struct table t = {0};
	uint64_t target;
	size_t k;

	if (in->flow != FLOW_INDIRECT || in->id != X86_INS_JMP)
		return false;
	if (in->has_mem) {
		if (in->base || !in->index || in->scale != 8 || in->disp <= 0)
			return false;
		t.addr = in->disp;
	} else if (!find_load(c, i, in->dst, &t)) {
		return false;
	}
	for (k = 0; k < 2; k++)
		if (!read_entry(c, &t, k, &target) || !code__at(c, target))
			return false;
	/* Entries beyond the table's end may be another's; too many targets do no harm. */
	for (k = 0; cb && k < ENTRIES_MAX && read_entry(c, &t, k, &target); k++) {
		if (!code__inside(c, target))
			break;
		cb(ctx, target);
	}
	return true;
}

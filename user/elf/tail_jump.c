/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells a tail call through a pointer (a virtual function, a callback) from the indirect jumps that
 * stay in the function (computed goto; code__jump_table() knows switches).
 *
 * It is a tail call only if the frame is gone: %rsp is where it was at the entry. That is computed
 * by following every path from the entry, which is exact for what compilers emit, because the depth
 * of the stack at an instruction does not depend on the path to it. A computed goto without a frame
 * is told by the label's address, which the function must take, or load from an indexed table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/code.h"

#define UNKNOWN	  INT32_MIN
#define LOOK_BACK 32

struct state {
	size_t i;
	int32_t depth; /* bytes that %rsp lies below its value at the entry */
	int32_t frame; /* the same of %rbp, where it is a frame pointer */
};

struct walk {
	const struct code *c;
	int32_t *depth;
	struct state *todo;
	size_t n, cap;
	struct state from; /* for the targets of a jump table */
	bool failed;
};

static void add(struct walk *w, size_t i, int32_t depth, int32_t frame)
{
	struct state *bigger;

	if (w->depth[i] != UNKNOWN)
		return;
	if (w->n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 64;
		bigger = reallocarray(w->todo, w->cap, sizeof(*bigger));
		if (!bigger) {
			w->failed = true;
			return;
		}
		w->todo = bigger;
	}
	w->todo[w->n++] = (struct state){i, depth, frame};
}

static void add_target(void *ctx, uint64_t target)
{
	struct walk *w = ctx;
	const struct insn *in = code__at(w->c, target);

	if (in)
		add(w, in - w->c->insns, w->from.depth, w->from.frame);
}

/* What one instruction does to %rsp and %rbp. */
static void apply(const struct insn *in, int32_t *depth, int32_t *frame)
{
	bool on_rsp = in->dst == X86_REG_RSP;

	if (in->id == X86_INS_PUSH || in->id == X86_INS_PUSHFQ) {
		*depth = *depth == UNKNOWN ? UNKNOWN : *depth + 8;
	} else if (in->id == X86_INS_POP || in->id == X86_INS_POPFQ) {
		*depth = *depth == UNKNOWN ? UNKNOWN : *depth - 8;
		if (in->dst == X86_REG_RBP)
			*frame = UNKNOWN;
	} else if (in->id == X86_INS_LEAVE) {
		*depth = *frame == UNKNOWN ? UNKNOWN : *frame - 8;
		*frame = UNKNOWN;
	} else if (on_rsp && in->id == X86_INS_LEA && in->base == X86_REG_RBP && !in->index) {
		*depth = *frame == UNKNOWN ? UNKNOWN : *frame - (int32_t)in->disp;
	} else if (on_rsp && in->id == X86_INS_MOV && in->src == X86_REG_RBP) {
		*depth = *frame;
	} else if (on_rsp && *depth != UNKNOWN && !in->src && !in->has_mem &&
		   (in->id == X86_INS_SUB || in->id == X86_INS_ADD)) {
		*depth += (int32_t)(in->id == X86_INS_SUB ? in->imm : -in->imm);
	} else if (on_rsp && in->id == X86_INS_LEA && *depth != UNKNOWN &&
		   in->base == X86_REG_RSP && !in->index) {
		*depth -= (int32_t)in->disp;
	} else if (on_rsp && in->id != X86_INS_CMP && in->id != X86_INS_TEST) {
		*depth = UNKNOWN;
	} else if (in->dst == X86_REG_RBP && in->id == X86_INS_MOV && in->src == X86_REG_RSP) {
		*frame = *depth;
	} else if (in->dst == X86_REG_RBP && in->id != X86_INS_CMP && in->id != X86_INS_TEST) {
		*frame = UNKNOWN;
	}
}

static void follow(struct walk *w, struct state s)
{
	const struct insn *in, *to;
	int32_t depth = s.depth, frame = s.frame;

	for (; s.i < w->c->n && w->depth[s.i] == UNKNOWN; s.i++) {
		in = &w->c->insns[s.i];
		if (depth == UNKNOWN)
			return;
		w->depth[s.i] = depth;
		if (in->flow == FLOW_JUMP || in->flow == FLOW_COND) {
			to = code__at(w->c, in->target);
			if (to)
				add(w, to - w->c->insns, depth, frame);
		}
		if (in->flow == FLOW_INDIRECT) {
			w->from = (struct state){s.i, depth, frame};
			code__jump_table(w->c, s.i, add_target, w);
		}
		if (in->flow != FLOW_NEXT && in->flow != FLOW_COND && in->flow != FLOW_CALL)
			return;
		apply(in, &depth, &frame);
		if (s.i + 1 < w->c->n && in[1].addr != in->addr + in->len)
			return;
	}
}

int code__depths(const struct code *c, int32_t **out)
{
	struct walk w = {.c = c};
	size_t i;

	*out = NULL;
	if (!c->n)
		return 0;
	w.depth = malloc(c->n * sizeof(*w.depth));
	if (!w.depth)
		return -ENOMEM;
	for (i = 0; i < c->n; i++)
		w.depth[i] = UNKNOWN;
	add(&w, 0, 0, UNKNOWN);
	while (w.n && !w.failed)
		follow(&w, w.todo[--w.n]);
	free(w.todo);
	if (w.failed) {
		free(w.depth);
		return -ENOMEM;
	}
	*out = w.depth;
	return 0;
}

/* Does the function take the address of a place inside itself? */
static bool takes_label(const struct code *c)
{
	const struct insn *in;
	size_t i;

	for (i = 0; i < c->n; i++) {
		in = &c->insns[i];
		if (in->id == X86_INS_LEA && in->rip_rel && code__inside(c, in->disp) &&
		    (uint64_t)in->disp != c->ranges[0].addr)
			return true;
		if ((in->id == X86_INS_MOV || in->id == X86_INS_MOVABS) && in->imm &&
		    code__inside(c, in->imm) && (uint64_t)in->imm != c->ranges[0].addr)
			return true;
	}
	return false;
}

/* An argument register and its lower halves; capstone numbers them apart. */
static bool is_part_of(uint16_t reg, uint16_t whole)
{
	static const uint16_t args[6][4] = {
	    {X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
	    {X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
	    {X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL},
	    {X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL},
	    {X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
	    {X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
	};
	size_t i, j;

	for (i = 0; i < 6; i++)
		for (j = 0; args[i][0] == whole && j < 4; j++)
			if (args[i][j] == reg)
				return true;
	return false;
}

/* The register still is an argument: nothing between the entry and insns[i] writes it. */
static bool is_argument(const struct code *c, size_t i, uint16_t reg)
{
	if (!is_part_of(reg, reg))
		return false;
	while (i-- > 0)
		if (c->insns[i].flow != FLOW_NEXT || is_part_of(c->insns[i].dst, reg))
			return false;
	return true;
}

/* The register's value comes, in this block, from no indexed table. */
static bool plain_pointer(const struct code *c, size_t i, uint16_t reg)
{
	bool loads = c->insns[i].has_mem; /* the register holds where the pointer lies */
	const struct insn *in;
	size_t back;

	for (back = 0; back < LOOK_BACK && i-- > 0; back++) {
		in = &c->insns[i];
		if (in->flow != FLOW_NEXT && in->flow != FLOW_COND)
			return false;
		if (in->dst == reg && in->id != X86_INS_CMP && in->id != X86_INS_TEST &&
		    in->id != X86_INS_PUSH)
			return !in->index && (in->id == X86_INS_MOV || in->id == X86_INS_POP ||
					      (loads && in->id == X86_INS_LEA));
	}
	return false;
}

bool code__indirect_tail(const struct code *c, size_t i, const int32_t *depths)
{
	const struct insn *in = &c->insns[i];

	if (in->flow != FLOW_INDIRECT || in->id != X86_INS_JMP || !depths || depths[i] != 0 ||
	    takes_label(c))
		return false;
	if (in->has_mem && in->index)
		return false;
	return (in->has_mem && in->rip_rel) ||
	       plain_pointer(c, i, in->has_mem ? in->base : in->dst) ||
	       is_argument(c, i, in->has_mem ? in->base : in->dst);
}

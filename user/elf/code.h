/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The instructions of a function, decoded once into small records: what flows where, and
 * what touches memory through which register. Private to elf/; disasm.h is the interface.
 */
#ifndef QBPF_ELF_CODE_H
#define QBPF_ELF_CODE_H

#include <capstone/capstone.h>

#include "elf/disasm.h"

#define INSN_LEN_MAX  15
#define FUNC_SIZE_MAX (1u << 20) /* a larger function counts as not decodable */
#define RANGES_MAX    8

enum flow { FLOW_NEXT, FLOW_JUMP, FLOW_COND, FLOW_CALL, FLOW_INDIRECT, FLOW_RET, FLOW_STOP };

struct insn {
	uint64_t addr;
	uint64_t target; /* of a direct jump or call */
	int64_t disp;	 /* of the memory operand */
	int64_t imm;
	uint16_t id;	   /* enum x86_insn; 0: decoded by its encoding only */
	uint16_t dst, src; /* register operands (enum x86_reg), 0: none */
	uint16_t base, index;
	uint8_t scale;
	uint8_t len;
	uint8_t flow; /* enum flow */
	bool has_mem;
	bool rip_rel; /* disp is the absolute address */
};

/* One instruction from up to INSN_LEN_MAX bytes; false: not decodable. */
bool insn__decode(const uint8_t *bytes, size_t len, uint64_t addr, struct insn *out);

struct code {
	const struct elf_image *img;
	const struct code_range *ranges;
	size_t nranges;
	struct insn *insns; /* in the order of the ranges */
	size_t n;
	size_t first[RANGES_MAX + 1]; /* insns[first[i] .. first[i + 1]) is range i */
	bool decoded;		      /* all of it, and every jump inside lands on an instruction */
};

/* 0 or -ENOMEM; undecodable code is no error but decoded = false. ranges are borrowed. */
int code__read(const struct elf_image *img, const struct code_range *r, size_t n, struct code *out);
void code__clear(struct code *c);
bool code__inside(const struct code *c, uint64_t addr);
/* The instruction that starts at addr, or NULL. */
const struct insn *code__at(const struct code *c, uint64_t addr);
/*
 * Is the indirect jump insns[i] one through a jump table of this function? Where it is, calls
 * cb for every target that could be read (NULL allowed).
 */
bool code__jump_table(const struct code *c, size_t i, void (*cb)(void *ctx, uint64_t target),
		      void *ctx);

/*
 * How far %rsp lies below its value at the entry, before each instruction (malloc'ed, n of them;
 * INT32_MIN: not known). 0 or -ENOMEM.
 */
int code__depths(const struct code *c, int32_t **out);
/* Is the indirect jump insns[i] certainly a tail call? */
bool code__indirect_tail(const struct code *c, size_t i, const int32_t *depths);

#endif

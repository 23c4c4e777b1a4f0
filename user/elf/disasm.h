/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the bytes at a site are (Capstone), as far as arming needs to know: is it an
 * instruction boundary, what will the kernel do with it, what does a hit cost.
 */
#ifndef QBPF_ELF_DISASM_H
#define QBPF_ELF_DISASM_H

#include "elf/image.h"

/* Classes of instruction by what a probe on them costs (DESIGN.md, Safety). */
enum insn_class {
	INSN_BAD,      /* not decodable, or the kernel refuses it */
	INSN_NOP5,     /* optimised by 6.18+: call + syscall, stores at -8(%rsp) */
	INSN_NOP10,    /* 6.18 refuses it */
	INSN_EMULATED, /* nop, push, jmp, jcc, call: int3, emulated */
	INSN_STEPPED,  /* int3 and a single step out of line */
	INSN_ENDBR,    /* endbr64: stepped, better probed at +4 */
	INSN_RET,      /* stepped */
};

struct func_facts {
	bool decoded;	    /* every byte from entry to size decoded */
	bool has_calls;	    /* any call: could be crossed by an exception */
	bool adjusts_rsp;   /* moves %rsp (sub, push, and, lea) before anything else uses it */
	unsigned int nret;
	uint64_t *rets;	    /* addr of each RET instruction */
	unsigned int ntail;
	uint64_t *tails;    /* addr of each unconditional jump out of the function */
	bool has_cond_tail; /* a conditional jump out of the function */
	bool has_indirect_jump; /* jmp *reg or *mem: table or tail call, cannot be told */
	bool syscall_insn;
};

enum insn_class insn_classify(const struct elf_image *img, uint64_t addr, unsigned int *len);

/* True when linear disassembly from `from` meets `addr` as the start of an instruction. */
bool insn_boundary(const struct elf_image *img, uint64_t from, uint64_t addr);

int func_facts__read(const struct elf_image *img, uint64_t addr, uint64_t size,
		     struct func_facts *out);
void func_facts__clear(struct func_facts *f);

/*
 * Red zone: can live data lie below %rsp at addr, inside the function [start, start + size)?
 * True unless proven otherwise: addr is the entry, the function never touches memory below
 * %rsp on any path, or the site is stepped over ("lea -128(%rsp),%rsp" immediately before).
 */
bool red_zone_possible(const struct elf_image *img, uint64_t start, uint64_t size, uint64_t addr);

#endif

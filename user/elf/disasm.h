/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the bytes at a site are (Capstone), as far as arming needs to know: is it an
 * instruction boundary, what will the kernel do with it, what does a hit cost. x86-64 only;
 * of any other machine nothing decodes.
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

/* A function is one range, or several: NAME and its parts NAME.cold. The first has the entry. */
struct code_range {
	uint64_t addr, size;
};

struct func_facts {
	bool decoded;	  /* every byte from entry to size decoded */
	bool has_calls;	  /* any call: could be crossed by an exception */
	bool adjusts_rsp; /* moves %rsp (sub, push, and, lea) before anything else uses it */
	unsigned int nret;
	uint64_t *rets; /* addr of each RET instruction */
	unsigned int ntail;
	uint64_t *tails;    /* addr of each unconditional jump out of the function, also through a
			     * pointer where that is certain */
	bool has_cond_tail; /* a conditional jump out of the function */
	bool has_indirect_jump; /* jmp *reg or *mem: table or tail call, cannot be told */
	bool syscall_insn;
	uint64_t *tail_targets; /* where tails[] go; 0: where a pointer says */
	unsigned int nexits;
	uint64_t *exits;       /* targets of all direct jumps out of it, conditional ones too */
	bool loops_to_entry;   /* a jump inside goes back to the first instruction */
	bool loops_past_endbr; /* ... or to that behind the endbr64 at the entry */
};

enum insn_class insn_classify(const struct elf_image *img, uint64_t addr, unsigned int *len);

/* True when linear disassembly from `from` meets `addr` as the start of an instruction. */
bool insn_boundary(const struct elf_image *img, uint64_t from, uint64_t addr);

int func_facts__read(const struct elf_image *img, uint64_t addr, uint64_t size,
		     struct func_facts *out);
int func_facts__read_ranges(const struct elf_image *img, const struct code_range *r, size_t n,
			    struct func_facts *out);
void func_facts__clear(struct func_facts *f);

/*
 * Red zone: can live data lie below %rsp at addr, inside the function [start, start + size)?
 * True unless proven otherwise: addr is the entry, the function never touches memory below
 * %rsp on any path, or the site is stepped over ("lea -128(%rsp),%rsp" immediately before).
 */
bool red_zone_possible(const struct elf_image *img, uint64_t start, uint64_t size, uint64_t addr);
bool red_zone_possible_ranges(const struct elf_image *img, const struct code_range *r, size_t n,
			      uint64_t addr);
/* The site is stepped over by our own markers' instructions: known by its bytes alone. */
bool red_zone_stepped_over(const struct elf_image *img, uint64_t addr);

/* Does a direct jump in one range lead into the other? Tells which NAME a NAME.cold belongs to. */
bool code_jumps_into(const struct elf_image *img, const struct code_range *from,
		     const struct code_range *into);

/*
 * Can control reach addr by falling through from the instruction before it, and only so?
 * False unless proven: then a probe on that instruction sees all that passes addr.
 */
bool insn_only_falls_through(const struct elf_image *img, const struct code_range *r, size_t n,
			     uint64_t addr);

/* A quick look, before any disassembly: can some jump in the range go to the first instruction
 * (or to that behind an endbr64)? False is certain; true must be confirmed by func_facts. */
bool may_loop_to_entry(const struct elf_image *img, uint64_t addr, uint64_t size);

#endif

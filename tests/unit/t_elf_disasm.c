// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Instructions as bytes: classes, boundaries, ways out of a function, the red zone. What the
 * kernel refuses was found by asking it (see user/elf/disasm.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "elf/disasm.h"
#include "elf_maker.h"

#define T MAKER_TEXT_ADDR

struct text {
	struct maker m;
	struct elf_image *img;
};

/* The text segment is nops, with these bytes at `at`. */
static void text_make(struct text *t, size_t at, const uint8_t *bytes, size_t n)
{
	maker_init(&t->m);
	maker_put(&t->m, MAKER_TEXT_OFF + at, bytes, n);
	maker_finish(&t->m);
	assert_int_equal(elf_image__open_memory(t->m.data, t->m.len, "text", &t->img, NULL), 0);
}

static void text_free(struct text *t)
{
	elf_image__free(t->img);
	maker_free(&t->m);
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void classes(void **state)
{
	static const struct {
		const char *what;
		enum insn_class class;
		unsigned int len;
		uint8_t bytes[15];
	} rows[] = {
	    {"nop", INSN_EMULATED, 1, {0x90}},
	    {"66 nop", INSN_EMULATED, 2, {0x66, 0x90}},
	    {"nop3", INSN_EMULATED, 3, {0x0f, 0x1f, 0x00}},
	    {"nop5", INSN_NOP5, 5, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
	    {"nop5 of clang", INSN_NOP5, 5, {0x0f, 0x1f, 0x44, 0x00, 0x08}},
	    {"nop5 of another form", INSN_NOP5, 5, {0x66, 0x0f, 0x1f, 0x40, 0x00}},
	    {"nop5 by prefixes", INSN_NOP5, 5, {0x66, 0x66, 0x66, 0x66, 0x90}},
	    {"nop8", INSN_EMULATED, 8, {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}},
	    {"nop10", INSN_NOP10, 10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}},
	    {"lea of 5 bytes", INSN_STEPPED, 5, {0x48, 0x8d, 0x74, 0x26, 0x00}},
	    {"push %rbp", INSN_EMULATED, 1, {0x55}},
	    {"push %r12", INSN_EMULATED, 2, {0x41, 0x54}},
	    {"push mem", INSN_STEPPED, 2, {0xff, 0x33}},
	    {"jmp", INSN_EMULATED, 2, {0xeb, 0x10}},
	    {"jmp near", INSN_EMULATED, 5, {0xe9, 0x10, 0, 0, 0}},
	    {"je", INSN_EMULATED, 2, {0x74, 0x10}},
	    {"je near", INSN_EMULATED, 6, {0x0f, 0x84, 0x10, 0, 0, 0}},
	    {"call", INSN_EMULATED, 5, {0xe8, 0x10, 0, 0, 0}},
	    {"jmp *%rax", INSN_STEPPED, 2, {0xff, 0xe0}},
	    {"endbr64", INSN_ENDBR, 4, {0xf3, 0x0f, 0x1e, 0xfa}},
	    {"ret", INSN_RET, 1, {0xc3}},
	    {"rep ret", INSN_RET, 2, {0xf3, 0xc3}},
	    {"ret imm", INSN_RET, 3, {0xc2, 0x08, 0x00}},
	    {"sub", INSN_STEPPED, 4, {0x48, 0x83, 0xec, 0x08}},
	    {"mov %fs:", INSN_STEPPED, 9, {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0}},
	    {"syscall", INSN_STEPPED, 2, {0x0f, 0x05}},
	    {"vmovaps", INSN_STEPPED, 4, {0xc5, 0xf8, 0x28, 0xc1}},
	    {"lock cmpxchg", INSN_BAD, 4, {0xf0, 0x0f, 0xb1, 0x17}},
	    {"notrack jmp", INSN_BAD, 3, {0x3e, 0xff, 0xe0}},
	    {"cs nop", INSN_BAD, 3, {0x2e, 0x66, 0x90}},
	    {"int3", INSN_BAD, 1, {0xcc}},
	    {"hlt", INSN_BAD, 1, {0xf4}},
	    {"in", INSN_BAD, 1, {0xec}},
	    {"iretq", INSN_BAD, 2, {0x48, 0xcf}},
	    {"mov to %ss", INSN_BAD, 2, {0x8e, 0xd0}},
	    {"je 16 bits", INSN_BAD, 5, {0x66, 0x0f, 0x84, 0x10, 0x00}},
	    {"vmovd (the kernel takes its 6e for outs)", INSN_BAD, 4, {0xc5, 0xf9, 0x6e, 0xc6}},
	    /* The kernel takes these for branches, nops, popf and ret (see user/elf/disasm.c). */
	    {"vpor", INSN_BAD, 4, {0xc5, 0xf1, 0xeb, 0xc2}},
	    {"vpsubsb", INSN_BAD, 4, {0xc5, 0xf1, 0xe8, 0xc2}},
	    {"vpsubsw", INSN_BAD, 4, {0xc5, 0xf1, 0xe9, 0xc2}},
	    {"vpcmpeqb", INSN_BAD, 4, {0xc5, 0xf1, 0x74, 0xc2}},
	    {"vmovdqu store", INSN_BAD, 4, {0xc5, 0xfa, 0x7f, 0x07}},
	    {"vmovdqu32 store", INSN_BAD, 6, {0x62, 0xf1, 0x7e, 0x48, 0x7f, 0x07}},
	    {"vpshufd", INSN_BAD, 5, {0xc5, 0xf9, 0x70, 0xc1, 0x1b}},
	    {"vmovd to r32", INSN_BAD, 4, {0xc5, 0xf9, 0x7e, 0xc0}},
	    {"vmovq to r64", INSN_BAD, 5, {0xc4, 0xe1, 0xf9, 0x7e, 0xc0}},
	    {"vzeroupper", INSN_BAD, 3, {0xc5, 0xf8, 0x77}},
	    {"vpsrlw imm", INSN_BAD, 5, {0xc5, 0xf1, 0x71, 0xd2, 0x04}},
	    {"vpbroadcastb", INSN_BAD, 5, {0xc4, 0xe2, 0x79, 0x78, 0xc1}},
	    {"vpbroadcastb r32", INSN_BAD, 6, {0x62, 0xf2, 0x7d, 0x48, 0x7a, 0xc0}},
	    {"vporq", INSN_BAD, 6, {0x62, 0xf1, 0xf5, 0x48, 0xeb, 0xc2}},
	    {"kmovw", INSN_BAD, 4, {0xc5, 0xf8, 0x90, 0xc9}},
	    {"vpgatherdd", INSN_BAD, 6, {0xc4, 0xe2, 0x69, 0x90, 0x04, 0x0f}},
	    {"vfnmadd132ss", INSN_BAD, 5, {0xc4, 0xe2, 0x71, 0x9d, 0xc2}},
	    {"vcmpps", INSN_BAD, 5, {0xc5, 0xf0, 0xc2, 0xc2, 0x01}},
	    {"vcmpps to a mask", INSN_BAD, 7, {0x62, 0xf1, 0x74, 0x48, 0xc2, 0xca, 0x01}},
	    {"vsha512rnds2", INSN_BAD, 5, {0xc4, 0xe2, 0x77, 0xcb, 0xc2}},
	    {"vpmaskmovd with a 2", INSN_BAD, 5, {0xc4, 0xe2, 0x71, 0x8e, 0x17}},
	    {"vfmaddps (FMA4)", INSN_BAD, 6, {0xc4, 0xe3, 0xf1, 0x68, 0xc2, 0x30}},
	    {"vfmaddsubps (FMA4)", INSN_BAD, 6, {0xc4, 0xe3, 0xf1, 0x5c, 0xc2, 0x30}},
	    {"vfnmaddps (FMA4)", INSN_BAD, 6, {0xc4, 0xe3, 0xf1, 0x78, 0xc2, 0x30}},
	    {"vpcmov (XOP)", INSN_BAD, 6, {0x8f, 0xe8, 0x70, 0xa2, 0xc2, 0x30}},
	    {"vphaddbw (XOP)", INSN_BAD, 5, {0x8f, 0xe9, 0x78, 0xc1, 0xc1}},
	    {"blcfill (XOP)", INSN_BAD, 5, {0x8f, 0xe9, 0x78, 0x01, 0xc8}},
	    {"pop mem", INSN_STEPPED, 2, {0x8f, 0x07}},
	    {"vpxor (out)", INSN_BAD, 4, {0xc5, 0xf1, 0xef, 0xc2}},
	    {"vaddps", INSN_STEPPED, 4, {0xc5, 0xf0, 0x58, 0xc2}},
	    {"vmovdqu load (outs)", INSN_BAD, 4, {0xc5, 0xfa, 0x6f, 0x07}},
	    {"vmulpd %zmm", INSN_STEPPED, 6, {0x62, 0xf1, 0xf5, 0x48, 0x59, 0xc2}},
	    {"vpalignr", INSN_STEPPED, 6, {0xc4, 0xe3, 0x71, 0x0f, 0xc2, 0x04}},
	    {"vfmadd213sd", INSN_STEPPED, 5, {0xc4, 0xe2, 0xf1, 0xa9, 0xc2}},
	    {"andn", INSN_STEPPED, 5, {0xc4, 0xe2, 0x78, 0xf2, 0xc1}},
	    /* Newer than Capstone 4: vaddph %zmm1,%zmm2,%zmm3 */
	    {"AVX512-FP16", INSN_STEPPED, 6, {0x62, 0xf5, 0x6c, 0x48, 0x58, 0xd9}},
	    {"invalid", INSN_BAD, 0, {0x06}},
	};
	struct text t;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned int len = 77;
		enum insn_class c;

		text_make(&t, 0, rows[i].bytes, sizeof(rows[i].bytes));
		c = insn_classify(t.img, T, &len);
		if (c != rows[i].class || len != rows[i].len)
			fail_msg("%s: class %d length %u", rows[i].what, c, len);
		text_free(&t);
	}
}

static void edges(void **state)
{
	unsigned int len;
	struct text t;

	(void)state;
	/* A nop5 cut off by the end of the segment. */
	text_make(&t, MAKER_SIZE - 3, BYTES(0x0f, 0x1f, 0x44));
	assert_int_equal(insn_classify(t.img, T + MAKER_SIZE - 3, &len), INSN_BAD);
	assert_int_equal(insn_classify(t.img, T + MAKER_SIZE, &len), INSN_BAD);
	assert_int_equal(insn_classify(t.img, 0, &len), INSN_BAD);
	assert_int_equal(insn_classify(t.img, MAKER_DATA_ADDR, &len), INSN_BAD);
	text_free(&t);
}

static void boundaries(void **state)
{
	struct text t;

	(void)state;
	/* mov $0x90909090,%eax ; ret */
	text_make(&t, 0, BYTES(0xb8, 0x90, 0x90, 0x90, 0x90, 0xc3));
	assert_true(insn_boundary(t.img, T, T));
	assert_false(insn_boundary(t.img, T, T + 1));
	assert_false(insn_boundary(t.img, T, T + 4));
	assert_true(insn_boundary(t.img, T, T + 5));
	assert_true(insn_boundary(t.img, T, T + 6));
	assert_false(insn_boundary(t.img, T + 6, T));
	text_free(&t);
	/* What does not decode hides what follows. */
	text_make(&t, 0, BYTES(0x06, 0x90));
	assert_false(insn_boundary(t.img, T, T + 1));
	text_free(&t);
}

static void facts(void **state)
{
	struct func_facts f;
	struct text t;

	(void)state;
	/* 0: push %rbx; 1: call +0; 6: je 9; 8: ret; 9: pop %rbx; a: jmp T+0x80; f: ret */
	text_make(&t, 0,
		  BYTES(0x53, 0xe8, 0, 0, 0, 0, 0x74, 0x01, 0xc3, 0x5b, 0xe9, 0x71, 0, 0, 0, 0xc3));
	assert_int_equal(func_facts__read(t.img, T, 16, &f), 0);
	assert_true(f.decoded && f.has_calls && f.adjusts_rsp);
	assert_int_equal(f.nret, 2);
	assert_int_equal(f.rets[0], T + 8);
	assert_int_equal(f.rets[1], T + 15);
	assert_int_equal(f.ntail, 1);
	assert_int_equal(f.tails[0], T + 10);
	assert_int_equal(f.tail_targets[0], T + 0x80);
	assert_false(f.has_cond_tail || f.has_indirect_jump || f.loops_to_entry);
	func_facts__clear(&f);
	/* The same function with its size a byte short: the last instruction does not end. */
	assert_int_equal(func_facts__read(t.img, T, 14, &f), 0);
	assert_false(f.decoded);
	func_facts__clear(&f);
	text_free(&t);

	/* 0: jne T+0x40 (out); 2: jmp *%rax; 4: jmp T (loop) */
	text_make(&t, 0, BYTES(0x75, 0x3e, 0xff, 0xe0, 0xeb, 0xfa));
	assert_int_equal(func_facts__read(t.img, T, 6, &f), 0);
	assert_true(f.decoded && f.has_cond_tail && f.has_indirect_jump && f.loops_to_entry);
	assert_int_equal(f.nret + f.ntail, 0);
	func_facts__clear(&f);
	assert_true(may_loop_to_entry(t.img, T, 6));
	assert_false(may_loop_to_entry(t.img, T, 4));
	text_free(&t);

	/* endbr64; 4: pause; 6: jmp 4: the loop is behind the endbr64, not at the entry. */
	text_make(&t, 0, BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0xf3, 0x90, 0xeb, 0xfc));
	assert_int_equal(func_facts__read(t.img, T, 8, &f), 0);
	assert_true(f.decoded && f.loops_past_endbr && !f.loops_to_entry);
	func_facts__clear(&f);
	text_free(&t);

	/* A jump into the middle of an instruction: the decoding is out of step. */
	text_make(&t, 0, BYTES(0xb8, 0x90, 0x90, 0x90, 0xc3, 0xeb, 0xfb, 0xc3));
	assert_int_equal(func_facts__read(t.img, T, 8, &f), 0);
	assert_false(f.decoded);
	func_facts__clear(&f);
	text_free(&t);
}

/* A function and its cold part: jumps between them are not ways out, the part's RET is one. */
static void two_ranges(void **state)
{
	struct code_range r[2] = {{T, 4}, {T + 0x40, 4}};
	struct func_facts f;
	struct text t;

	(void)state;
	text_make(&t, 0, BYTES(0x74, 0x3e, 0x90, 0xc3)); /* je T+0x40; nop; ret */
	memcpy(t.m.data + MAKER_TEXT_OFF + 0x40, (uint8_t[]){0xeb, 0xc0, 0x90, 0xc3}, 4);
	assert_int_equal(func_facts__read_ranges(t.img, r, 1, &f), 0);
	assert_true(f.has_cond_tail);
	assert_int_equal(f.nexits, 1);
	assert_int_equal(f.exits[0], T + 0x40);
	func_facts__clear(&f);
	assert_true(code_jumps_into(t.img, &r[0], &r[1]));
	assert_true(code_jumps_into(t.img, &r[1], &r[0]));
	assert_int_equal(func_facts__read_ranges(t.img, r, 2, &f), 0);
	assert_true(f.decoded && !f.has_cond_tail);
	assert_int_equal(f.nret, 2);
	assert_int_equal(f.rets[1], T + 0x43);
	func_facts__clear(&f);
	text_free(&t);
}

static void red_zone(void **state)
{
	/* The nop5 to be probed is at +8 in each; all end in ret. */
	static const struct {
		const char *what;
		bool possible;
		uint8_t bytes[40];
	} rows[] = {
	    {"mov below %rsp, as leaf functions do",
	     true,
	     {0x48, 0x89, 0x7c, 0x24, 0xf8, 0x0f, 0x1f, 0x00, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}},
	    {"... on another path, behind the ret", true, {0x75, 0x0c, 0x0f, 0x1f, 0x80, 0,   0,
							   0x90, 0x0f, 0x1f, 0x44, 0,	 0,   0xc3,
							   0x48, 0x89, 0x7c, 0x24, 0xf8, 0xc3}},
	    {"nothing on the stack",
	     false,
	     {0x8d, 0x47, 0x01, 0x0f, 0x1f, 0x44, 0x00, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}},
	    /* push %rbp; mov %rsp,%rbp; mov %edi,-4(%rbp): %rbp is %rsp */
	    {"below %rbp without room (-O0 leaf)",
	     true,
	     {0x55, 0x48, 0x89, 0xe5, 0x89, 0x7d, 0xfc, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0x5d, 0xc3}},
	    /* push %rbp; mov %rsp,%rbp; sub $16,%rsp; nop5; mov %edi,-4(%rbp); leave; ret */
	    {"below %rbp within the frame",
	     false,
	     {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x0f, 0x1f, 0x44, 0, 0, 0x89, 0x7d,
	      0xfc, 0xc9, 0xc3}},
	    {"below %rbp beyond the frame",
	     true,
	     {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x0f, 0x1f, 0x44, 0, 0, 0x89, 0x7d,
	      0xe0, 0xc9, 0xc3}},
	    /* mov %rsp,%rax; mov %edi,-8(%rax) */
	    {"through a copy of %rsp",
	     true,
	     {0x48, 0x89, 0xe0, 0x89, 0x78, 0xf8, 0x66, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}},
	    /* sub $8,%rsp; ... */
	    {"indexed stack in a leaf",
	     true,
	     {0x48, 0x83, 0xec, 0x08, 0x89, 0x3c, 0x84, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}},
	    /* lea -128(%rsp),%rsp instead of sub */
	    {"lea that moves %rsp",
	     false,
	     {0x48, 0x8d, 0x64, 0x24, 0x80, 0x90, 0x90, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}},
	    {"does not decode",
	     true,
	     {0x06, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}},
	};
	struct text t;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = sizeof(rows[i].bytes);

		while (rows[i].bytes[size - 1] != 0xc3)
			size--;
		text_make(&t, 0, rows[i].bytes, size);
		if (red_zone_possible(t.img, T, size, T + 8) != rows[i].possible)
			fail_msg("%s", rows[i].what);
		/* At the entry nothing lives there, whatever the function does later. */
		assert_false(red_zone_possible(t.img, T, size, T));
		assert_true(red_zone_possible(t.img, T, 0, T + 8));
		text_free(&t);
	}
}

static void stepped_over(void **state)
{
	/* mov %rdi,-8(%rsp) ; lea -128(%rsp),%rsp ; nop5 ; lea 128(%rsp),%rsp ; ret */
	static const uint8_t code[] = {0x48, 0x89, 0x7c, 0x24, 0xf8, 0x48, 0x8d, 0x64,
				       0x24, 0x80, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x48,
				       0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00, 0xc3};
	uint8_t half[sizeof(code)];
	struct text t;

	(void)state;
	text_make(&t, 0, code, sizeof(code));
	assert_true(red_zone_stepped_over(t.img, T + 10));
	assert_false(red_zone_possible(t.img, T, sizeof(code), T + 10));
	assert_true(red_zone_possible(t.img, T, sizeof(code), T + 5));
	text_free(&t);
	/* Without the way back it is someone else's lea. */
	memcpy(half, code, sizeof(half));
	half[19] = 0x40;
	text_make(&t, 0, half, sizeof(half));
	assert_false(red_zone_stepped_over(t.img, T + 10));
	assert_true(red_zone_possible(t.img, T, sizeof(half), T + 10));
	text_free(&t);
}

static void falls_through(void **state)
{
	struct code_range r = {T, 8};
	struct text t;

	(void)state;
	/* 0: test; 2: nop; 3: nop4; 7: ret */
	text_make(&t, 0, BYTES(0x85, 0xc0, 0x90, 0x0f, 0x1f, 0x40, 0x00, 0xc3));
	assert_true(insn_only_falls_through(t.img, &r, 1, T + 3));
	assert_false(insn_only_falls_through(t.img, &r, 1, T + 4)); /* no instruction */
	assert_false(insn_only_falls_through(t.img, &r, 1, T));	    /* nothing before */
	text_free(&t);
	/* 0: je 3; 2: nop; 3: nop4 */
	text_make(&t, 0, BYTES(0x74, 0x01, 0x90, 0x0f, 0x1f, 0x40, 0x00, 0xc3));
	assert_false(insn_only_falls_through(t.img, &r, 1, T + 3));
	text_free(&t);
	/* 0: jmp 2; padding that nothing passes */
	text_make(&t, 0, BYTES(0x90, 0x90, 0xc3, 0x0f, 0x1f, 0x40, 0x00, 0xc3));
	assert_false(insn_only_falls_through(t.img, &r, 1, T + 3));
	text_free(&t);
	/* An indirect jump may go anywhere. */
	text_make(&t, 0, BYTES(0x85, 0xc0, 0x90, 0x0f, 0x1f, 0x00, 0xff, 0xe0));
	assert_false(insn_only_falls_through(t.img, &r, 1, T + 3));
	text_free(&t);
}

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33);
}

/* Random bytes, and random pieces of real code: nothing crashes, what comes out is in bounds. */
static void fuzz(void **state)
{
	static const uint8_t seeds[][10] = {
	    {0xff, 0x24, 0xc5, 0x00, 0x10, 0x40, 0x00},
	    {0x48, 0x63, 0x04, 0x87},
	    {0x48, 0x01, 0xf8},
	    {0xff, 0xe0},
	    {0xc3},
	    {0x48, 0x89, 0xe5},
	    {0x55},
	    {0xc9},
	    {0x48, 0x8d, 0x3d, 0x05, 0, 0, 0},
	    {0xeb, 0xfe},
	    {0x74, 0x02},
	    {0xc5, 0xf8, 0x28, 0x44, 0x24, 0xf0},
	    {0x62, 0xf1, 0x7c, 0x48, 0x28, 0x44, 0x24, 0xff},
	    {0x0f, 0x1f, 0x44, 0, 0},
	};
	uint64_t s = 42, decoded = 0;
	uint8_t bytes[MAKER_SIZE];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct code_range r[2];
		struct func_facts f;
		unsigned int len;
		struct text t;
		size_t n = 0;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = rnd(&s);
		while (round & 1 && n + 10 < sizeof(bytes)) {
			size_t k = rnd(&s) % (sizeof(seeds) / sizeof(seeds[0]));

			memcpy(bytes + n, seeds[k], 10);
			n += 1 + rnd(&s) % 10;
		}
		text_make(&t, 0, bytes, sizeof(bytes));
		for (unsigned int i = 0; i < 3; i++) {
			uint64_t at = T + rnd(&s) % MAKER_SIZE;

			insn_classify(t.img, at, &len);
			assert_true(len <= 15 && at + len <= T + MAKER_SIZE);
			insn_boundary(t.img, T, at);
		}
		r[0] = (struct code_range){T + rnd(&s) % 64, 1 + rnd(&s) % 64};
		r[1] = (struct code_range){T + 128 + rnd(&s) % 64, 1 + rnd(&s) % 96};
		assert_int_equal(func_facts__read_ranges(t.img, r, 1 + (round & 2) / 2, &f), 0);
		decoded += f.decoded;
		for (unsigned int i = 0; i < f.nret; i++)
			assert_true(f.rets[i] - T < MAKER_SIZE);
		for (unsigned int i = 0; i < f.ntail; i++)
			assert_true(f.tails[i] - T < MAKER_SIZE);
		func_facts__clear(&f);
		red_zone_possible_ranges(t.img, r, 2, r[0].addr + 1);
		insn_only_falls_through(t.img, r, 2, r[0].addr + 1);
		may_loop_to_entry(t.img, r[0].addr, r[0].size);
		text_free(&t);
	}
	assert_true(decoded > 100); /* it did not all end at the first byte */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(classes),	    cmocka_unit_test(edges),
	    cmocka_unit_test(boundaries),   cmocka_unit_test(facts),
	    cmocka_unit_test(two_ranges),   cmocka_unit_test(red_zone),
	    cmocka_unit_test(stepped_over), cmocka_unit_test(falls_through),
	    cmocka_unit_test(fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

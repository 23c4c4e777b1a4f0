// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Operands of USDT notes against what they mean, and their translation for BPF. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "elf/usdt_arg.h"

/*
 * The golden text of an argument: kind, size, u/s/f, then what differs from the default.
 * Registers are DWARF numbers. "?" is unreadable.
 */
static void show(const struct usdt_arg *a, char *out, size_t size)
{
	static const char *const kinds[] = {"?", "const", "reg", "mem"};
	int n = snprintf(out, size, "%s", kinds[a->kind]);

	if (a->kind == USDT_ARG_UNREADABLE) {
		assert_non_null(a->why);
		assert_null(a->symbol);
		return;
	}
	assert_null(a->why);
	n += snprintf(out + n, size - (size_t)n, "%d%s", a->size,
		      a->is_float    ? "f"
		      : a->is_signed ? "s"
				     : "u");
	if (a->base != USDT_REG_NONE)
		n += snprintf(out + n, size - (size_t)n, " b%d", a->base);
	if (a->index != USDT_REG_NONE)
		n += snprintf(out + n, size - (size_t)n, " i%d*%d", a->index, a->scale);
	if (a->shift)
		n += snprintf(out + n, size - (size_t)n, " >>%d", a->shift);
	if (a->off || a->kind == USDT_ARG_CONST)
		n += snprintf(out + n, size - (size_t)n, " %+lld", (long long)a->off);
	if (a->rip_rel)
		n += snprintf(out + n, size - (size_t)n, " rip");
	if (a->symbol)
		snprintf(out + n, size - (size_t)n, " %.*s", a->symbol_len, a->symbol);
}

struct row {
	const char *argstr, *want; /* one text for each argument, separated by " | " */
};

static const struct row x86[] = {
    /* none */
    {"", ""},
    {"   ", ""},
    /* inputs.md */
    {"8@(%rsp) 8@8(%rsp) -4@24(%rsp)", "mem8u b7 | mem8u b7 +8 | mem4s b7 +24"},
    {"8@(%rax,%rbx,8)", "mem8u b0 i3*8"},
    {"1@-96(%rbp,%rax,8)", "mem1u b6 i0*8 -96"},
    {"-4@gy(%rip)", "mem4s b16 rip gy"},
    {"8f@16+gpx(%rip)", "mem8f b16 +16 rip gpx"},
    {"8@%xmm0", "?"},
    {"8f@%rax", "reg8f b0"},
    {"-8@v0", "mem8s v0"}, /* an absolute symbol, for usdt.c to find or refuse */
    {"16@-32(%rbp)", "?"},
    {"%edi", "?"},
    {"4@i%ra+1r", "?"},
    {"8@x25 2@[x22, 20] -4@[sp, 128]", "mem8u x25 | ? | ?"},
    {"-1@[x0, x1]", "?"},
    /* one bad argument costs none of the others */
    {"8@%xmm0 %edi 4@%esi", "? | ? | reg4u b4"},
    {"-4@%edi 16@(%rax) 8@%rdx", "reg4s b5 | ? | reg8u b1"},
    {"8@(%rsp 4@%edi", "? | reg4u b5"},
    {"8@[%rsp 4@%edi", "? | reg4u b5"},
    {"4@$5 garbage! 4@$6", "const4u +5 | ? | const4u +6"},
    /* Intel syntax is not read, and does not shift what follows */
    {"-4@DWORD PTR [rbp-4] 8@%rdi", "? | reg8u b5"},
    {"-4@edi 8@QWORD PTR gy[rip+16]", "mem4s edi | ?"},
    /* registers, whole and in part */
    {"8@%rax 8@%rdx 8@%rcx 8@%rbx", "reg8u b0 | reg8u b1 | reg8u b2 | reg8u b3"},
    {"8@%rsi 8@%rdi 8@%rbp 8@%rsp", "reg8u b4 | reg8u b5 | reg8u b6 | reg8u b7"},
    {"8@%r8 8@%r9 8@%r10 8@%r15", "reg8u b8 | reg8u b9 | reg8u b10 | reg8u b15"},
    {"-4@%eax 2@%ax -1@%al 1@%ah", "reg4s b0 | reg2u b0 | reg1s b0 | reg1u b0 >>8"},
    {"1@%bh 1@%ch 1@%dh", "reg1u b3 >>8 | reg1u b2 >>8 | reg1u b1 >>8"},
    {"1@%sil 1@%dil 1@%bpl 1@%spl", "reg1u b4 | reg1u b5 | reg1u b6 | reg1u b7"},
    {"4@%r8d 2@%r8w 1@%r8b -1@%r15b", "reg4u b8 | reg2u b8 | reg1u b8 | reg1s b15"},
    {"2@%di 2@%sp 4@%esp", "reg2u b5 | reg2u b7 | reg4u b7"},
    {"4@%rax 1@%eax", "reg4u b0 | reg1u b0"}, /* the low part */
    {"8@%eax 2@%ah 4@%ax", "? | ? | ?"},      /* wider than the register */
    {"8@%r16 8@%r 8@%r8x 8@%rzx 8@% 8@%%rax", "? | ? | ? | ? | ? | ?"},
    {"8@%rip 8@%eip 8@%st(0) 8@%mm0 8@%k1 8@%ymm3", "? | ? | ? | ? | ? | ?"},
    {"4f@%xmm1 8f@%xmm0 4f@%eax 8f@%eax 2f@%ax", "? | ? | reg4f b0 | ? | ?"},
    /* memory */
    {"8@0(%rsp) 8@-8(%rbp)", "mem8u b7 | mem8u b6 -8"},
    {"8f@8(%rdi,%rsi,8) 4f@(%rsi)", "mem8f b5 i4*8 +8 | mem4f b4"},
    {"-4@(%rdi,%rsi)", "mem4s b5 i4*1"},
    {"8@(,%rsi,4) 8@arr(,%rsi,8)", "mem8u i4*4 | mem8u i4*8 arr"},
    {"8@(%rax,%rbx,3) 8@(%rax,%rbx,16) 8@(%rax,%rbx,)", "? | ? | ?"},
    {"8@(%rax,%rsp,8) 8@(%rax,%rip) 8@(%rip,%rax)", "? | ? | ?"},
    {"8@(%eax) 8@(%rax,%ebx,8) 8@(%al)", "? | ? | ?"},
    {"8@() 8@(,) 8@(%rax 8@%rax) 8@(%rax)) 8@((%rax))", "? | ? | ? | ? | ? | ?"},
    {"8@ 8@- 8@+ 8@$ 8@4(", "? | ? | ? | ? | ?"},
    {"8@0x10(%rax) 8@-0x10(%rax) 8@010(%rax)", "mem8u b0 +16 | mem8u b0 -16 | mem8u b0 +8"},
    {"8@ 8(%rax)", "? | ?"},
    {"8@-8+16(%rax) 8@8+-4(%rax)", "mem8u b0 +8 | mem8u b0 +4"},
    {"8@5", "?"},
    {"8@( %rax , %rbx , 8 )", "mem8u b0 i3*8"},
    /* symbols */
    {"-4@gy", "mem4s gy"},
    {"-4@gy+4(%rip)", "mem4s b16 +4 rip gy"},
    {"-4@gy-4(%rip) -4@4+gy(%rip)", "mem4s b16 -4 rip gy | mem4s b16 +4 rip gy"},
    {"-4@-8+gy+4(%rip)", "mem4s b16 -4 rip gy"},
    {"8f@.LC0(%rip)", "mem8f b16 rip .LC0"},
    {"4@_ZN3foo3barE(%rip) 4@gy(%rax)", "mem4u b16 rip _ZN3foo3barE | mem4u b0 gy"},
    {"4@\"a b\"(%rip)", "? | ?"}, /* a blank in a name: not worth a wrong split */
    {"4@\"a.b\"(%rip)", "mem4u b16 rip a.b"},
    {"4@a+b(%rip) 4@-a(%rip) 4@a-b(%rip)", "? | ? | ?"},
    {"8@gy@GOTPCREL(%rip) 8@tv@tpoff(%rax) 8@%fs:0 8@%fs:tv@tpoff 8@%gs:(%rax)",
     "? | ? | ? | ? | ?"},
    {"8@16(%rip)", "mem8u b16 +16 rip"},
    /* constants fit their size and sign */
    {"4@$5 -4@$-5 4@$-1 -1@$255 8@$-1", "const4u +5 | const4s -5 | const4u +4294967295 | "
					"const1s -1 | const8u -1"},
    {"8@$0x7fffffffffffffff 8@$18446744073709551615", "const8u +9223372036854775807 | const8u -1"},
    {"8@$18446744073709551616 4@$5x 4@$ 4@$1.5 4@$089", "? | ? | ? | ? | ?"},
    {"8@$gy 4@$gy+8", "const8u +0 gy | const4u +8 gy"},
    {"8f@$0 8f@$1", "const8f +0 | ?"},
    /* sizes */
    {"0@%rax 3@%rax 5@$1 32@(%rax) 99999@%rax -@%rax", "? | ? | ? | ? | ? | ?"},
    {"8q@%rax 1f@%al 2f@%ax 8ff@%rax", "? | ? | ? | ?"},
    {"@%rax @ -8", "? | ? | ?"},
    {"8@%rax\t4@%esi\n2@%dx", "reg8u b0 | reg4u b4 | reg2u b1"},
    /* more than fit */
    {"1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@$8 1@$9 1@$10 1@$11 1@$12 1@$13",
     "const1u +1 | const1u +2 | const1u +3 | const1u +4 | const1u +5 | const1u +6 | const1u +7 | "
     "const1u +8 | const1u +9 | const1u +10 | const1u +11 | const1u +12"},
};

static const struct row aarch64[] = {
    {"8@x25 2@[x22, 20] -4@[sp, 128]", "reg8u b25 | mem2u b22 +20 | mem4s b31 +128"},
    {"-1@[x0, x1]", "mem1s b0 i1*1"},
    {"-8@v0", "?"},
    {"4@i%ra+1r", "?"},
    {"8@x0 4@w1 8@sp 8@x30 8@x29", "reg8u b0 | reg4u b1 | reg8u b31 | reg8u b30 | reg8u b29"},
    {"8@x31 8@w3 8@x 8@x01 8@x300 4@wsp", "? | ? | ? | ? | ? | reg4u b31"},
    {"8@xzr -4@wzr 8@fp 8@lr", "const8u +0 | const4s +0 | reg8u b29 | reg8u b30"},
    {"8@[sp] 8@[x1,8] 8@[x1, -8] 8@[x1, #16]",
     "mem8u b31 | mem8u b1 +8 | mem8u b1 -8 | mem8u b1 +16"},
    {"8@[x1, x2, lsl 3] 8@[x1, x2, lsl #2] 8@[x1, w2, sxtw 3]",
     "mem8u b1 i2*8 | mem8u b1 i2*4 | ?"},
    {"8@[x1, x2, lsl 4] 8@[w1] 8@[xzr] 8@[x1, sp]", "? | ? | ? | ?"},
    {"8@[x1 4@w2", "? | reg4u b2"},
    {"8@[x1, 4@w2", "? | reg4u b2"},
    {"4@5 -4@-5 4@#7 -4@#-7", "const4u +5 | const4s -5 | const4u +7 | const4s -7"},
    {"8@d0 4@s3 16@q1 8f@d7", "? | ? | ? | ?"},
    {"8@[x0, :lo12:gy] 8@gy 8@[x0], 4@[]", "? | ? | ? | ?"},
    {"x0 [sp, 8] 4@w1", "? | reg4u b1"}, /* without sizes nothing can be read anyway */
};

static void check(const struct row *rows, size_t n, bool is_aarch64)
{
	for (size_t i = 0; i < n; i++) {
		/* A copy of exact length, so that AddressSanitizer sees any byte too many. */
		char *copy = strdup(rows[i].argstr), got[2048] = "";
		struct usdt_arg args[12];
		unsigned int count = usdt_args__parse(copy, is_aarch64, args, 12);
		size_t len = 0;

		for (unsigned int j = 0; j < count; j++) {
			if (j)
				len += (size_t)snprintf(got + len, sizeof(got) - len, " | ");
			show(&args[j], got + len, sizeof(got) - len);
			len = strlen(got);
		}
		if (strcmp(got, rows[i].want))
			fail_msg("\"%s\"\n got  %s\n want %s", rows[i].argstr, got, rows[i].want);
		free(copy);
	}
}

static void t_x86(void **state)
{
	(void)state;
	check(x86, sizeof(x86) / sizeof(x86[0]), false);
}

static void t_aarch64(void **state)
{
	(void)state;
	check(aarch64, sizeof(aarch64) / sizeof(aarch64[0]), true);
}

/* Where the kernel's struct pt_regs has the registers, in the order of DWARF's numbers. */
static void t_to_abi_registers(void **state)
{
	static const struct {
		const char *name;
		unsigned int pt_regs;
	} regs[] = {{"rax", 80}, {"rdx", 96},  {"rcx", 88}, {"rbx", 40}, {"rsi", 104}, {"rdi", 112},
		    {"rbp", 32}, {"rsp", 152}, {"r8", 72},  {"r9", 64},	 {"r10", 56},  {"r11", 48},
		    {"r12", 24}, {"r13", 16},  {"r14", 8},  {"r15", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		struct usdt_arg a;
		struct qbpf_arg out;
		char text[32];

		snprintf(text, sizeof(text), "-8@%%%s", regs[i].name);
		assert_int_equal(usdt_args__parse(text, false, &a, 1), 1);
		assert_int_equal(a.base, i);
		assert_int_equal(usdt_arg__to_abi(&a, &out), 0);
		assert_int_equal(out.base, regs[i].pt_regs);
		assert_int_equal(out.index, QBPF_NO_REG);
		assert_int_equal(out.flags, QBPF_ARG_VALID | QBPF_ARG_SIGNED);
	}
}

static struct qbpf_arg to_abi(const char *text, int want)
{
	struct usdt_arg a;
	struct qbpf_arg out;

	memset(&out, 0xff, sizeof(out));
	assert_int_equal(usdt_args__parse(text, false, &a, 1), 1);
	assert_int_equal(usdt_arg__to_abi(&a, &out), want);
	return out;
}

static void t_to_abi_forms(void **state)
{
	struct qbpf_arg a;
	struct usdt_arg arm;

	(void)state;
	a = to_abi("1@-96(%rbp,%rax,8)", 0);
	assert_int_equal(a.base, 32);
	assert_int_equal(a.index, 80);
	assert_int_equal(a.scale, 8);
	assert_int_equal(a.off, -96);
	assert_int_equal(a.size, 1);
	assert_int_equal(a.flags, QBPF_ARG_VALID | QBPF_ARG_DEREF);
	a = to_abi("1@%ch", 0);
	assert_int_equal(a.base, 88);
	assert_int_equal(a.shift, 8);
	a = to_abi("-8f@%rdx", 0);
	assert_int_equal(a.flags, QBPF_ARG_VALID | QBPF_ARG_FLOAT);
	a = to_abi("-4@$-7", 0);
	assert_int_equal(a.base, QBPF_NO_REG);
	assert_int_equal(a.off, -7);
	assert_int_equal(a.flags, QBPF_ARG_VALID | QBPF_ARG_SIGNED);
	a = to_abi("8@16(%rip)", 0);
	assert_int_equal(a.base, 128);
	assert_int_equal(a.off, 16);
	/* unreadable, and a symbol that no one has resolved */
	a = to_abi("8@%xmm0", -EOPNOTSUPP);
	assert_int_equal(a.flags, 0);
	a = to_abi("8@gy(%rip)", -EOPNOTSUPP);
	assert_int_equal(a.flags, 0);
	assert_int_equal(usdt_args__parse("8@x1", true, &arm, 1), 1);
	assert_int_equal(usdt_arg__to_abi(&arm, &a), -EOPNOTSUPP);
}

static void t_resolve(void **state)
{
	struct usdt_arg a;
	struct qbpf_arg out;
	char got[128];

	(void)state;
	static const struct {
		const char *text;
		bool pie;
		const char *want;
	} rows[] = {
	    /* gy is at 0x5000, the site at 0x1000 */
	    {"-4@gy(%rip)", true, "mem4s b16 +16384 rip"},
	    {"-4@16+gy(%rip)", true, "mem4s b16 +16400 rip"},
	    {"-4@gy", false, "mem4s b16 +16384 rip"},
	    {"-4@gy", true, "mem4s b16 +16384 rip"},
	    {"8@gy(,%rax,8)", false, "mem8u i0*8 +20480"},
	    {"8@gy(,%rax,8)", true, "?"},
	    {"8@8+gy(%rax)", false, "mem8u b0 +20488"},
	    {"8@$gy+4", false, "const8u +20484"},
	    {"1@$gy+1", false, "const1u +1"},
	    {"8@$gy+4", true, "reg8u b16 +16388 rip"},
	    {"4@$gy", true, "?"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(usdt_args__parse(rows[i].text, false, &a, 1), 1);
		assert_non_null(a.symbol);
		usdt_arg__resolve(&a, 0x5000, 0x1000, rows[i].pie);
		show(&a, got, sizeof(got));
		if (strcmp(got, rows[i].want))
			fail_msg("%s: got %s, want %s", rows[i].text, got, rows[i].want);
		assert_int_equal(usdt_arg__to_abi(&a, &out),
				 a.kind == USDT_ARG_UNREADABLE ? -EOPNOTSUPP : 0);
	}
}

/* Every string of up to four characters of this alphabet ends, and keeps its promises. */
static void t_exhaustive(void **state)
{
	static const char alphabet[] = "8-f@%$([,)] 4ra+x";
	size_t base = sizeof(alphabet) - 1, total = base * base * base * base;
	size_t readable = 0;

	(void)state;
	for (size_t i = 0; i < total * 2; i++) {
		struct usdt_arg args[12];
		char text[16] = "8@";
		size_t k = i % total;
		unsigned int n;

		for (int j = 0; j < 4; j++, k /= base)
			text[2 + j] = alphabet[k % base];
		n = usdt_args__parse(text, i >= total, args, 12);
		assert_in_range(n, 1, 4);
		for (unsigned int j = 0; j < n; j++) {
			char shown[256];

			show(&args[j], shown, sizeof(shown));
			readable += args[j].kind != USDT_ARG_UNREADABLE;
		}
	}
	assert_true(readable > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_x86),
	    cmocka_unit_test(t_aarch64),
	    cmocka_unit_test(t_to_abi_registers),
	    cmocka_unit_test(t_to_abi_forms),
	    cmocka_unit_test(t_resolve),
	    cmocka_unit_test(t_exhaustive),
	};

	return cmocka_run_group_tests_name("elf_usdt_arg", tests, NULL, NULL);
}

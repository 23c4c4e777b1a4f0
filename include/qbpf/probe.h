/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qbpf/probe.h - markers: places in a program that a tracer can see while it runs.
 *
 *	QBPF_SPAN(feed, parse);			times the rest of the enclosing scope
 *	QBPF_FUNC();				the same, under the function's own name
 *	QBPF_VALUE(risk, exposure, x);		a number, integer or floating point
 *	DTRACE_PROBE2(order, sent, id, price);	an event with up to 12 arguments
 *	if (QBPF_ENABLED(order, sent))		only while a tracer is attached to that marker
 *
 * C99 and later, C++11 and later, gcc and clang. Needs no library, no header and no other file.
 * -DQBPF_DISABLE compiles every marker to nothing: no argument is evaluated and the object code
 * is that of the source without markers.
 *
 * WHAT A MARKER IS. A `nop`, and a note in the ELF file that tells where the nop is, how the
 * marker is called and where its arguments lie: the USDT format of <sys/sdt.h>, whose DTRACE_PROBE*
 * and STAP_PROBE* names this header also offers, so that qbpf, bpftrace, perf and gdb all see it.
 * Include this header instead of <sys/sdt.h>; where that one came first it keeps its names.
 * A marker no one looks at costs four instructions, two of them nops: nothing is called, tested or stored. It
 * changes no register, no flag and no memory, and it orders no memory accesses, so a compiler may
 * move loads and stores across it. Safe in any thread and in signal handlers.
 *
 * WHY THE STACK POINTER MOVES (x86-64). Linux 6.18 and later replace a 5-byte nop that is traced
 * by a call, which is four times as fast as a breakpoint but stores a return address and three
 * registers below the stack pointer, where a leaf function may keep live data (the "red zone", 128
 * bytes). So the marker steps over it:
 *
 *	nop ; lea -128(%rsp),%rsp ; nop5 ; lea 128(%rsp),%rsp
 *
 * The note's address is the nop5. The 1-byte nop before is where qbpf puts its probe in a program
 * that forks: 6.18 copies the call to the child, but not what it calls, and the child dies of it
 * (with any tracer; bpftrace and perf know no way round it). Since the tracer evaluates the arguments there, one in memory
 * relative to %rsp would be read 128 bytes off; hence arguments are only ever constants and general
 * registers (floating-point ones too: BPF cannot read %xmm registers). Up to 12 fit. The price: a
 * value that lies in memory is loaded into a register first. And a debugger that stops on the nop,
 * in code from clang without frame pointers, looks for the caller 128 bytes off (gcc can tell it).
 * Other machines have a plain nop and the operands of <sys/sdt.h>.
 *
 * SPANS. QBPF_SPAN(provider, name) places the marker `name__begin` and, on every way out of the
 * scope (return, break, goto, exception), `name__end`. Not on longjmp, as C and C++ have it.
 * It is a declaration: it cannot be the body of an `if` without braces, nor stand in a constexpr
 * function. The names must be identifiers. In C with clang the end is a 6-byte function which is
 * called, because clang has no nested functions; in C with gcc and in C++ it is in line.
 *
 * FUNCTIONS. A note's strings are fixed by the assembler, which does not know the name of the
 * function. QBPF_FUNC() therefore places the markers qbpf_func:L<line>__begin and
 * qbpf_func:L<line>__end, and for each site a record in section .note.qbpf, from which a reader
 * learns the rest with nothing but the ELF file:
 *
 *	owner "qbpf", type 1 (function), 4-byte alignment, descriptor in the file's byte order:
 *	distance  the site: the same address as in the marker's own note
 *	distance  the function's name, a string in a read-only loaded section; 0: see below
 *	distance  the file's name, as given to the compiler, likewise
 *	u32       line
 *	u32       id
 *
 * (distance: 8 bytes signed, 4 on 32-bit machines; the address of this very field plus it is the
 * address meant, in the file's own numbering. The section is loaded, but needs no relocation.)
 * The function's name is __PRETTY_FUNCTION__ in C++ and __func__ in C. In C the end's record has
 * no name: it is that of the record with the same file, line and id.
 *
 * VALUES. QBPF_VALUE(provider, name, x) is the marker `name__value`; its argument has x's type.
 *
 * ARGUMENTS are integers, enums, bool, pointers, arrays and strings (as pointers), float and
 * double. Their type gives size and sign. A long double is handed over as a double. Not:
 * structures and 128-bit integers. A float or double appears in the marker's note as an unsigned
 * number of its size, its bits, because bpftrace, libbpf and gdb cannot parse the "8f@" of newer
 * <sys/sdt.h>; that it is one says a record in .note.qbpf:
 *
 *	owner "qbpf", type 2 (arguments), descriptor:
 *	distance  the site
 *	u32       bit N is set when argument N, counted from 0, is floating point
 *
 * SEMAPHORES. QBPF_ENABLED(provider, name) is true while a tracer that honours semaphores (qbpf,
 * bpftrace, bcc, systemtap) is attached to the marker provider:name, so that a costly argument is
 * computed only then; it costs a load and a branch. It defines the 16-bit counter
 * `provider_name_semaphore` itself (one for each executable or shared library), and every marker
 * of that name there refers to it. QBPF_SEMAPHORE(provider, name); at file scope defines it where
 * no QBPF_ENABLED does. For a span ask for name__begin, for a value name__value. With
 * _SDT_HAS_SEMAPHORES defined, DTRACE_PROBE* behave as in <sys/sdt.h>: the program declares and
 * defines every counter.
 */
#ifndef QBPF_PROBE_H
#define QBPF_PROBE_H

/* The assembler's lines are laid out by hand. */
/* clang-format off */


#ifdef QBPF_DISABLE

/*
 * Expressions without effect, for which no compiler emits anything. An argument is named inside
 * sizeof, so that a variable that only markers use stays "used" and nothing is evaluated.
 */
#define __QBPF_MARKER(provider, name, n, args) __QBPF_UNUSED_##n args
#define __QBPF_UNUSED_0() (void)0
#define __QBPF_UNUSED_1(a1) (void)sizeof(a1)
#define __QBPF_UNUSED_2(a1, a2) \
	(__QBPF_UNUSED_1(a1), (void)sizeof(a2))
#define __QBPF_UNUSED_3(a1, a2, a3) \
	(__QBPF_UNUSED_2(a1, a2), (void)sizeof(a3))
#define __QBPF_UNUSED_4(a1, a2, a3, a4) \
	(__QBPF_UNUSED_3(a1, a2, a3), (void)sizeof(a4))
#define __QBPF_UNUSED_5(a1, a2, a3, a4, a5) \
	(__QBPF_UNUSED_4(a1, a2, a3, a4), (void)sizeof(a5))
#define __QBPF_UNUSED_6(a1, a2, a3, a4, a5, a6) \
	(__QBPF_UNUSED_5(a1, a2, a3, a4, a5), (void)sizeof(a6))
#define __QBPF_UNUSED_7(a1, a2, a3, a4, a5, a6, a7) \
	(__QBPF_UNUSED_6(a1, a2, a3, a4, a5, a6), (void)sizeof(a7))
#define __QBPF_UNUSED_8(a1, a2, a3, a4, a5, a6, a7, a8) \
	(__QBPF_UNUSED_7(a1, a2, a3, a4, a5, a6, a7), (void)sizeof(a8))
#define __QBPF_UNUSED_9(a1, a2, a3, a4, a5, a6, a7, a8, a9) \
	(__QBPF_UNUSED_8(a1, a2, a3, a4, a5, a6, a7, a8), (void)sizeof(a9))
#define __QBPF_UNUSED_10(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
	(__QBPF_UNUSED_9(a1, a2, a3, a4, a5, a6, a7, a8, a9), (void)sizeof(a10))
#define __QBPF_UNUSED_11(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
	(__QBPF_UNUSED_10(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10), (void)sizeof(a11))
#define __QBPF_UNUSED_12(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
	(__QBPF_UNUSED_11(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11), (void)sizeof(a12))

#define QBPF_SPAN(provider, name)      (void)0
#define QBPF_FUNC()		       (void)0
#define QBPF_VALUE(provider, name, x)  __QBPF_MARKER(provider, name, 1, (x))
#define QBPF_ENABLED(provider, name)   0
#define QBPF_SEMAPHORE(provider, name) struct __qbpf_nothing

#else /* !QBPF_DISABLE */

/* --- the machine ------------------------------------------------------------------------------ */

#ifdef __LP64__
#define __QBPF_ADDR ".8byte "
#else
#define __QBPF_ADDR ".4byte "
#endif

#if defined(__x86_64__) && defined(__LP64__)
/* Bytes, so that they are the same in both assembler dialects: nop, lea, nop5, lea. */
#define __QBPF_SITE \
	__QBPF_CFA_FIND \
	".byte 0x90,0x48,0x8d,0x64,0x24,0x80\n" \
	__QBPF_CFA_MOVE("128") \
	"9901:\t.byte 0x0f,0x1f,0x44,0x00,0x00\n" \
	"\t.byte 0x48,0x8d,0xa4,0x24,0x80,0x00,0x00,0x00\n" \
	__QBPF_CFA_MOVE("-128")

/*
 * Where the caller's frame is found by way of the stack pointer, unwinders must be told that it
 * moves, and where it is found otherwise they must not. Only gcc can say which, without a cost:
 * as an operand it writes that frame's address as 24(%rsp) or 16(%rbp), and the assembler looks
 * for "sp" in it. Unoptimised code has a frame pointer.
 */
#if defined(__OPTIMIZE__) && defined(__GCC_HAVE_DWARF2_CFI_ASM) && !defined(__clang__)
#ifdef __cplusplus
#define __QBPF_CFA_OPERAND [__qbpf_cfa] "m"(*static_cast<const char *>(__builtin_dwarf_cfa()))
#else
#define __QBPF_CFA_OPERAND [__qbpf_cfa] "m"(*(const char *)__builtin_dwarf_cfa())
#endif
#define __QBPF_CFA_FIND \
	".set .Lqbpf_s, 0\n" \
	"\t.set .Lqbpf_sp, 0\n" \
	"\t.irpc c,%[__qbpf_cfa]\n" \
	"\t.ifc \\c,p\n" \
	"\t.set .Lqbpf_sp, .Lqbpf_sp | .Lqbpf_s\n" \
	"\t.endif\n" \
	"\t.set .Lqbpf_s, 0\n" \
	"\t.ifc \\c,s\n" \
	"\t.set .Lqbpf_s, 1\n" \
	"\t.endif\n" \
	"\t.endr\n\t"
#define __QBPF_CFA_MOVE(by) \
	"\t.if .Lqbpf_sp\n" \
	"\t.cfi_adjust_cfa_offset " by "\n" \
	"\t.endif\n"
#endif
/* At the entry of a function nothing lives below the stack pointer. */
#define __QBPF_THUNK "9901:\t.byte 0x0f,0x1f,0x44,0x00,0x00\n\tret\n"
/* "l" is any general register but %rsp, which here is not what the program means by it. */
#define __QBPF_CONSTRAINT "nl"
#define __QBPF_LOAD_U16(symbol) \
	"{movzwl " symbol "(%%rip), %k0|movzx %k0, word ptr " symbol "[rip]}\n"
#else
#if defined(__s390__) || defined(__ia64__)
#define __QBPF_SITE "9901:\tnop 0\n"
#else
#define __QBPF_SITE "9901:\tnop\n"
#endif
#define __QBPF_THUNK __QBPF_SITE "\tret\n"
#define __QBPF_CONSTRAINT "nor"
#ifdef __aarch64__
#define __QBPF_LOAD_U16(symbol) "adrp %0, " symbol "\n\tldrh %w0, [%0, :lo12:" symbol "]\n"
#endif
#endif

#ifndef __QBPF_CFA_OPERAND
#define __QBPF_CFA_OPERAND [__qbpf_cfa] "n"(0)
#define __QBPF_CFA_FIND
#define __QBPF_CFA_MOVE(by)
#endif

/* `asm inline`: the compiler counts lines to guess the size of an asm, and would stop inlining. */
#if (defined(__clang__) && __clang_major__ >= 11) || (!defined(__clang__) && __GNUC__ >= 9)
#define __QBPF_ASM __asm__ __inline__ __volatile__
#else
#define __QBPF_ASM __asm__ __volatile__
#endif

/* --- the note --------------------------------------------------------------------------------- */

/* "?": in the group of the section that holds the code, so that COMDAT copies vanish together. */
#define __QBPF_NOTE_OPEN(section, flags, owner, type) \
	".pushsection " section ",\"" flags "?\",\"note\"\n" \
	"\t.balign 4\n" \
	"\t.4byte 9903f-9902f,9905f-9904f," type "\n" \
	"9902:\t.asciz \"" owner "\"\n" \
	"9903:\t.balign 4\n" \
	"9904:\n"
#define __QBPF_NOTE_CLOSE \
	"9905:\t.balign 4\n" \
	"\t.popsection\n"

/* Tells how far prelink has moved the file. One byte per executable or library. */
#define __QBPF_BASE \
	".ifndef _.stapsdt.base\n" \
	"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	"\t.weak _.stapsdt.base\n" \
	"\t.hidden _.stapsdt.base\n" \
	"_.stapsdt.base: .space 1\n" \
	"\t.size _.stapsdt.base, 1\n" \
	"\t.popsection\n" \
	".endif\n"

/* sema: the line that puts the semaphore's address or 0; format: lines for the argument string */
#define __QBPF_NOTE(provider, name, sema, format) \
	__QBPF_NOTE_OPEN(".note.stapsdt", "", "stapsdt", "3") \
	"\t" __QBPF_ADDR "9901b\n" \
	"\t" __QBPF_ADDR "_.stapsdt.base\n" \
	sema \
	"\t.asciz \"" provider "\"\n" \
	"\t.asciz \"" name "\"\n" \
	format \
	"\t.byte 0\n" \
	__QBPF_NOTE_CLOSE \
	__QBPF_BASE

/*
 * A record of our own about the same site. Loaded and relative to itself, so that linkers that
 * discard what is not used (lld) keep the strings it refers to, and nothing is relocated at run
 * time.
 */
#define __QBPF_RECORD(type, content) \
	__QBPF_NOTE_OPEN(".note.qbpf", "a", "qbpf", type) \
	"\t" __QBPF_ADDR "9901b-.\n" \
	content \
	__QBPF_NOTE_CLOSE

/* A weak hidden reference is 0 where nothing defines it; in a note that needs no relocation. */
#define __QBPF_SEMA_WEAK(symbol) \
	"\t.weak " symbol "\n" \
	"\t.hidden " symbol "\n" \
	"\t" __QBPF_ADDR symbol "\n"

#define __QBPF_SEMA_DEFINE(symbol) \
	".ifndef .Lqbpf_defined." symbol "\n" \
	"\t.set .Lqbpf_defined." symbol ", 1\n" \
	"\t.pushsection .probes,\"awG\",\"progbits\"," symbol ",comdat\n" \
	"\t.balign 2\n" \
	"\t.weak " symbol "\n" \
	"\t.hidden " symbol "\n" \
	"\t.type " symbol ",\"object\"\n" \
	"\t.size " symbol ", 2\n" \
	symbol ":\t.zero 2\n" \
	"\t.popsection\n" \
	".endif\n"

/* --- arguments -------------------------------------------------------------------------------- */

/*
 * Operand sN is the size, negated by %n: "4@" unsigned, "-4@" signed. The size governs, so a byte
 * may be named by its 32-bit register, whose name gdb knows: it does not know %r12b.
 */
#if defined(__x86_64__)
#define __QBPF_FORMAT(i) \
	".if %c[__qbpf_s" #i "] * %c[__qbpf_s" #i "] - 1\n" \
	"\t.ascii \"%n[__qbpf_s" #i "]@%[__qbpf_a" #i "]\"\n" \
	"\t.else\n" \
	"\t.ascii \"%n[__qbpf_s" #i "]@%k[__qbpf_a" #i "]\"\n" \
	"\t.endif\n"
#else
#define __QBPF_FORMAT(i) ".ascii \"%n[__qbpf_s" #i "]@%[__qbpf_a" #i "]\"\n"
#endif
#define __QBPF_FORMAT_0
#define __QBPF_FORMAT_1  __QBPF_FORMAT(1)
#define __QBPF_FORMAT_2  __QBPF_FORMAT_1 ".ascii \" \"\n" __QBPF_FORMAT(2)
#define __QBPF_FORMAT_3  __QBPF_FORMAT_2 ".ascii \" \"\n" __QBPF_FORMAT(3)
#define __QBPF_FORMAT_4  __QBPF_FORMAT_3 ".ascii \" \"\n" __QBPF_FORMAT(4)
#define __QBPF_FORMAT_5  __QBPF_FORMAT_4 ".ascii \" \"\n" __QBPF_FORMAT(5)
#define __QBPF_FORMAT_6  __QBPF_FORMAT_5 ".ascii \" \"\n" __QBPF_FORMAT(6)
#define __QBPF_FORMAT_7  __QBPF_FORMAT_6 ".ascii \" \"\n" __QBPF_FORMAT(7)
#define __QBPF_FORMAT_8  __QBPF_FORMAT_7 ".ascii \" \"\n" __QBPF_FORMAT(8)
#define __QBPF_FORMAT_9  __QBPF_FORMAT_8 ".ascii \" \"\n" __QBPF_FORMAT(9)
#define __QBPF_FORMAT_10  __QBPF_FORMAT_9 ".ascii \" \"\n" __QBPF_FORMAT(10)
#define __QBPF_FORMAT_11  __QBPF_FORMAT_10 ".ascii \" \"\n" __QBPF_FORMAT(11)
#define __QBPF_FORMAT_12  __QBPF_FORMAT_11 ".ascii \" \"\n" __QBPF_FORMAT(12)

/* Bit N - 1 is set when argument N is floating point. */
#define __QBPF_REAL(i, x)  (__QBPF_IS_REAL(x) << (i - 1))
#define __QBPF_REALS_NOTE \
	".if %c[__qbpf_f]\n" \
	__QBPF_RECORD("2", "\t.4byte %c[__qbpf_f]\n") \
	".endif\n"
#define __QBPF_ARG(i, x) \
	[__qbpf_s##i] "n"(__QBPF_SIZE(x)), [__qbpf_a##i] __QBPF_CONSTRAINT(__QBPF_PASS(x))

#define __QBPF_MASK_0() 0
#define __QBPF_MASK_1(a1) \
	__QBPF_REAL(1, a1)
#define __QBPF_MASK_2(a1, a2) \
	__QBPF_MASK_1(a1) | __QBPF_REAL(2, a2)
#define __QBPF_MASK_3(a1, a2, a3) \
	__QBPF_MASK_2(a1, a2) | __QBPF_REAL(3, a3)
#define __QBPF_MASK_4(a1, a2, a3, a4) \
	__QBPF_MASK_3(a1, a2, a3) | __QBPF_REAL(4, a4)
#define __QBPF_MASK_5(a1, a2, a3, a4, a5) \
	__QBPF_MASK_4(a1, a2, a3, a4) | __QBPF_REAL(5, a5)
#define __QBPF_MASK_6(a1, a2, a3, a4, a5, a6) \
	__QBPF_MASK_5(a1, a2, a3, a4, a5) | __QBPF_REAL(6, a6)
#define __QBPF_MASK_7(a1, a2, a3, a4, a5, a6, a7) \
	__QBPF_MASK_6(a1, a2, a3, a4, a5, a6) | __QBPF_REAL(7, a7)
#define __QBPF_MASK_8(a1, a2, a3, a4, a5, a6, a7, a8) \
	__QBPF_MASK_7(a1, a2, a3, a4, a5, a6, a7) | __QBPF_REAL(8, a8)
#define __QBPF_MASK_9(a1, a2, a3, a4, a5, a6, a7, a8, a9) \
	__QBPF_MASK_8(a1, a2, a3, a4, a5, a6, a7, a8) | __QBPF_REAL(9, a9)
#define __QBPF_MASK_10(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
	__QBPF_MASK_9(a1, a2, a3, a4, a5, a6, a7, a8, a9) | __QBPF_REAL(10, a10)
#define __QBPF_MASK_11(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
	__QBPF_MASK_10(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) | __QBPF_REAL(11, a11)
#define __QBPF_MASK_12(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
	__QBPF_MASK_11(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) | __QBPF_REAL(12, a12)

#define __QBPF_ARGS_0()
#define __QBPF_ARGS_1(a1) \
	, __QBPF_ARG(1, a1)
#define __QBPF_ARGS_2(a1, a2) \
	__QBPF_ARGS_1(a1), __QBPF_ARG(2, a2)
#define __QBPF_ARGS_3(a1, a2, a3) \
	__QBPF_ARGS_2(a1, a2), __QBPF_ARG(3, a3)
#define __QBPF_ARGS_4(a1, a2, a3, a4) \
	__QBPF_ARGS_3(a1, a2, a3), __QBPF_ARG(4, a4)
#define __QBPF_ARGS_5(a1, a2, a3, a4, a5) \
	__QBPF_ARGS_4(a1, a2, a3, a4), __QBPF_ARG(5, a5)
#define __QBPF_ARGS_6(a1, a2, a3, a4, a5, a6) \
	__QBPF_ARGS_5(a1, a2, a3, a4, a5), __QBPF_ARG(6, a6)
#define __QBPF_ARGS_7(a1, a2, a3, a4, a5, a6, a7) \
	__QBPF_ARGS_6(a1, a2, a3, a4, a5, a6), __QBPF_ARG(7, a7)
#define __QBPF_ARGS_8(a1, a2, a3, a4, a5, a6, a7, a8) \
	__QBPF_ARGS_7(a1, a2, a3, a4, a5, a6, a7), __QBPF_ARG(8, a8)
#define __QBPF_ARGS_9(a1, a2, a3, a4, a5, a6, a7, a8, a9) \
	__QBPF_ARGS_8(a1, a2, a3, a4, a5, a6, a7, a8), __QBPF_ARG(9, a9)
#define __QBPF_ARGS_10(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
	__QBPF_ARGS_9(a1, a2, a3, a4, a5, a6, a7, a8, a9), __QBPF_ARG(10, a10)
#define __QBPF_ARGS_11(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
	__QBPF_ARGS_10(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10), __QBPF_ARG(11, a11)
#define __QBPF_ARGS_12(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
	__QBPF_ARGS_11(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11), __QBPF_ARG(12, a12)

#define __QBPF_OPERANDS(n, args) [__qbpf_f] "n"(__QBPF_MASK_##n args) __QBPF_ARGS_##n args

#ifdef __cplusplus

/* What an argument is handed over as: T itself, but for the few types no register holds as such. */
template <typename T, bool is_enum = __is_enum(T)> struct __qbpf_arg {
	typedef T pass;
	enum { is_signed = 0, is_real = 0 };
};
template <typename T> struct __qbpf_arg<T, true> {
	typedef T pass;
	enum { is_signed = __qbpf_arg<__underlying_type(T)>::is_signed, is_real = 0 };
};
#define __QBPF_ARG_TYPE(T, P, is_signed_, is_real_) \
	template <> struct __qbpf_arg<T, false> { \
		typedef P pass; \
		enum { is_signed = (is_signed_), is_real = (is_real_) }; \
	}
__QBPF_ARG_TYPE(signed char, signed char, 1, 0);
__QBPF_ARG_TYPE(short, short, 1, 0);
__QBPF_ARG_TYPE(int, int, 1, 0);
__QBPF_ARG_TYPE(long, long, 1, 0);
__QBPF_ARG_TYPE(long long, long long, 1, 0);
__QBPF_ARG_TYPE(char, char, static_cast<char>(-1) < 1, 0);
__QBPF_ARG_TYPE(wchar_t, wchar_t, static_cast<wchar_t>(-1) < 1, 0);
__QBPF_ARG_TYPE(bool, unsigned char, 0, 0);
__QBPF_ARG_TYPE(decltype(nullptr), void *, 0, 0);
__QBPF_ARG_TYPE(float, float, 0, 1);
__QBPF_ARG_TYPE(double, double, 0, 1);
__QBPF_ARG_TYPE(long double, double, 0, 1);
#undef __QBPF_ARG_TYPE

/* Never defined: by value, so that T is the decayed type, for bit-fields too. */
template <typename T> T __qbpf_decay(T);

#define __QBPF_TYPE(x)	  __qbpf_arg<decltype(__qbpf_decay(x))>
#define __QBPF_PASS(x)	  (static_cast<typename __QBPF_TYPE(x)::pass>(x))
#define __QBPF_IS_REAL(x) static_cast<int>(__QBPF_TYPE(x)::is_real)
#define __QBPF_SIZE(x) \
	((__QBPF_TYPE(x)::is_signed ? 1 : -1) * static_cast<int>(sizeof(typename __QBPF_TYPE(x)::pass)))

#else /* C */

/* classify_type: 5 pointer (and array, function), 1 to 4 integer, char, enum, bool; 8 real */
#define __QBPF_CLASS(x)	   __builtin_classify_type(x)
#define __QBPF_IS(T, x)	   __builtin_types_compatible_p(__typeof__(x), T)
#define __QBPF_IS_REAL(x)  (__QBPF_CLASS(x) == 8)
#define __QBPF_PICK(c, a, b) __builtin_choose_expr(c, a, b)
#define __QBPF_INT(x) \
	__typeof__(__QBPF_PICK(__QBPF_CLASS(x) >= 1 && __QBPF_CLASS(x) <= 4, x, 0U))
/* Compared as doubles: an unsigned number "< 0" would be warned about. */
#define __QBPF_IS_SIGNED(x) ((double)((__QBPF_INT(x))-1) < 0.0)
/* _Bool as a byte, for clang has one bit of it defined; long double as a double. */
#define __QBPF_PASS(x) \
	__QBPF_PICK(__QBPF_IS(long double, x), \
		    (double)__QBPF_PICK(__QBPF_IS(long double, x), x, 0), \
		    __QBPF_PICK(__QBPF_IS(_Bool, x), \
				(unsigned char)__QBPF_PICK(__QBPF_IS(_Bool, x), x, 0), x))
#define __QBPF_SIZE(x) \
	((__QBPF_IS_SIGNED(x) ? 1 : -1) * \
	 (int)sizeof(__typeof__(__QBPF_PICK(__QBPF_CLASS(x) == 5, (void *)0, __QBPF_PASS(x)))))

#endif

/* --- markers ---------------------------------------------------------------------------------- */

#define __QBPF_MARK(provider, name, sema, n, args) \
	__QBPF_ASM(__QBPF_SITE __QBPF_NOTE(provider, name, sema, __QBPF_FORMAT_##n) \
			   __QBPF_REALS_NOTE::__QBPF_CFA_OPERAND, \
		   __QBPF_OPERANDS(n, args))

#ifdef _SDT_HAS_SEMAPHORES
/* The empty asm makes the compiler keep the counter, also with link-time optimisation. */
#define __QBPF_MARKER(provider, name, n, args) \
	do { \
		__asm__ __volatile__("" ::"m"(provider##_##name##_semaphore)); \
		__QBPF_MARK(#provider, #name, \
			    "\t" __QBPF_ADDR #provider "_" #name "_semaphore\n", n, args); \
	} while (0)
#else
#define __QBPF_MARKER(provider, name, n, args) \
	do { \
		__QBPF_MARK(#provider, #name, \
			    __QBPF_SEMA_WEAK(#provider "_" #name "_semaphore"), n, args); \
	} while (0)
#endif

#define QBPF_VALUE(provider, name, x) __QBPF_VALUE(provider, name, x)
#define __QBPF_VALUE(provider, name, x) \
	do { \
		__QBPF_MARK(#provider, #name "__value", \
			    __QBPF_SEMA_WEAK(#provider "_" #name "__value_semaphore"), 1, (x)); \
	} while (0)

/* --- semaphores ------------------------------------------------------------------------------- */

#define QBPF_SEMAPHORE(provider, name)	 __QBPF_SEMAPHORE(provider, name)
#define __QBPF_SEMAPHORE(provider, name) \
	__asm__(__QBPF_SEMA_DEFINE(#provider "_" #name "_semaphore"))

#define QBPF_ENABLED(provider, name) __QBPF_ENABLED(provider, name)
#ifdef _SDT_HAS_SEMAPHORES
#define __QBPF_ENABLED(provider, name) \
	__builtin_expect(*(volatile unsigned short *)&provider##_##name##_semaphore != 0, 0)
#else
#define __QBPF_ENABLED(provider, name) \
	__builtin_expect(__QBPF_ENABLED_(#provider "_" #name "_semaphore") != 0, 0)
#ifdef __QBPF_LOAD_U16
#define __QBPF_ENABLED_(symbol) \
	__extension__({ \
		unsigned long __qbpf_u16; \
		__QBPF_ASM(__QBPF_LOAD_U16(symbol) __QBPF_SEMA_DEFINE(symbol) : "=r"(__qbpf_u16)); \
		__qbpf_u16; \
	})
#else
#define __QBPF_ENABLED_(symbol) \
	__extension__({ \
		extern volatile unsigned short __qbpf_u16 __asm__(symbol) \
			__attribute__((__visibility__("hidden"))); \
		__QBPF_ASM(__QBPF_SEMA_DEFINE(symbol)::); \
		__qbpf_u16; \
	})
#endif
#endif

/* --- spans ------------------------------------------------------------------------------------ */

#define QBPF_SPAN(provider, name)	  __QBPF_SPAN(provider, name, __LINE__)
#define __QBPF_SPAN(provider, name, line) __QBPF_SPAN_(provider, name, line)
#define __QBPF_SPAN_(provider, name, line) \
	__QBPF_SCOPE(provider##_##name##_##line, "__qbpf_end." #provider "." #name, \
		     __QBPF_SPAN_NOTE(#provider, #name "__begin"), \
		     __QBPF_SPAN_NOTE(#provider, #name "__end"), (__QBPF_CFA_OPERAND), \
		     (__QBPF_CFA_OPERAND))
#define __QBPF_SPAN_NOTE(provider, name) \
	__QBPF_NOTE(provider, name, __QBPF_SEMA_WEAK(provider "_" name "_semaphore"), "")

/* The id tells apart functions that one macro defines on one line. */
#if defined(__clang__) && __clang_major__ >= 22 /* warns of __COUNTER__ before C2y */
#define QBPF_FUNC() __QBPF_FUNC(__LINE__, 0)
#else
#define QBPF_FUNC() __QBPF_FUNC(__LINE__, __COUNTER__)
#endif
#define __QBPF_FUNC(line, id) __QBPF_FUNC_(line, id)

#define __QBPF_FUNC_NOTE(name, func, line, id) \
	__QBPF_NOTE("qbpf_func", name, __QBPF_SEMA_WEAK("qbpf_func_" name "_semaphore"), "") \
	__QBPF_RECORD("1", "\t" __QBPF_ADDR func "\n" \
			   "\t" __QBPF_ADDR "%c[__qbpf_file]-.\n" \
			   "\t.4byte " #line "," #id "\n")
#define __QBPF_FUNC_OPERANDS(func) [__qbpf_func] "i"(func), [__qbpf_file] "i"(__FILE__)
#define __QBPF_FUNC_SYMBOL(line, id) "__qbpf_end." __FILE__ ":" #line ":" #id

#ifdef __cplusplus
#define __QBPF_FUNC_(line, id) \
	static constexpr const char *__qbpf_name_##line = __PRETTY_FUNCTION__; \
	__QBPF_SCOPE(func_##line, "", \
		     __QBPF_FUNC_NOTE("L" #line "__begin", "%c[__qbpf_func]-.", line, id), \
		     __QBPF_FUNC_NOTE("L" #line "__end", "%c[__qbpf_func]-.", line, id), \
		     (__QBPF_CFA_OPERAND, __QBPF_FUNC_OPERANDS(__qbpf_name_##line)), \
		     (__QBPF_CFA_OPERAND, __QBPF_FUNC_OPERANDS(__qbpf_name_##line)))
#else
#define __QBPF_FUNC_(line, id) \
	__QBPF_SCOPE(func_##line, __QBPF_FUNC_SYMBOL(line, id), \
		     __QBPF_FUNC_NOTE("L" #line "__begin", "%c[__qbpf_func]-.", line, id), \
		     __QBPF_FUNC_NOTE("L" #line "__end", "0", line, id), \
		     (__QBPF_CFA_OPERAND, __QBPF_FUNC_OPERANDS(__func__)), \
		     (__QBPF_CFA_OPERAND, [__qbpf_file] "i"(__FILE__)))
#endif

/*
 * From here to the end of the enclosing scope. begin_ops and end_ops are asm operands for the
 * notes, in parentheses.
 */
#define __QBPF_LIST(...) __VA_ARGS__
#define __QBPF_INLINE \
	__attribute__((__always_inline__, __unused__, __no_instrument_function__)) inline

#ifdef __cplusplus

#define __QBPF_SCOPE(id, symbol, begin_note, end_note, begin_ops, end_ops) \
	struct __qbpf_span_##id { \
		__QBPF_INLINE __qbpf_span_##id() noexcept \
		{ \
			__QBPF_ASM(__QBPF_SITE begin_note ::__QBPF_LIST begin_ops); \
		} \
		__QBPF_INLINE ~__qbpf_span_##id() noexcept \
		{ \
			__QBPF_ASM(__QBPF_SITE end_note ::__QBPF_LIST end_ops); \
		} \
	} __qbpf_scope_##id __attribute__((__unused__))

#elif defined(__clang__)

/*
 * One function for all spans of that name in the executable or library, defined by the asm that
 * also is the begin. At its entry nothing lives below the stack pointer.
 */
#define __QBPF_SCOPE(id, symbol, begin_note, end_note, begin_ops, end_ops) \
	__QBPF_ASM(__QBPF_SITE begin_note __QBPF_END_FUNCTION( \
		"\"" symbol "\"", "\".Lqbpf_defined." symbol "\"", \
		end_note)::__QBPF_LIST begin_ops); \
	extern __QBPF_PRESERVE void __qbpf_end_##id(char *) __asm__(symbol) \
		__attribute__((__visibility__("hidden"))); \
	__attribute__((__cleanup__(__qbpf_end_##id), __unused__)) char __qbpf_scope_##id
#define __QBPF_END_FUNCTION(symbol, defined, end_note) \
	".ifndef " defined "\n" \
	"\t.set " defined ", 1\n" \
	"\t.pushsection .text.qbpf,\"axG\",\"progbits\"," symbol ",comdat\n" \
	"\t.balign 8\n" \
	"\t.weak " symbol "\n" \
	"\t.hidden " symbol "\n" \
	"\t.type " symbol ",\"function\"\n" \
	symbol ":\n" \
	__QBPF_THUNK end_note \
	"\t.size " symbol ", .-" symbol "\n" \
	"\t.popsection\n" \
	".endif\n"
/* The function changes no register, so the caller need not save any. */
#if defined(__x86_64__) || defined(__aarch64__)
#define __QBPF_PRESERVE __attribute__((__preserve_most__))
#else
#define __QBPF_PRESERVE
#endif

#else

/* A nested function that uses nothing of its parent is an ordinary one, inlined even at -O0. */
#define __QBPF_SCOPE(id, symbol, begin_note, end_note, begin_ops, end_ops) \
	__QBPF_ASM(__QBPF_SITE begin_note ::__QBPF_LIST begin_ops); \
	__extension__ __QBPF_INLINE void __qbpf_end_##id(char *__qbpf_unused) \
	{ \
		(void)__qbpf_unused; \
		__QBPF_ASM(__QBPF_SITE end_note ::__QBPF_LIST end_ops); \
	} \
	__attribute__((__cleanup__(__qbpf_end_##id), __unused__)) char __qbpf_scope_##id

#endif

#endif /* QBPF_DISABLE */

/* --- the names of <sys/sdt.h> ----------------------------------------------------------------- */

#ifndef STAP_PROBE
#define STAP_PROBE(provider, name) \
	__QBPF_MARKER(provider, name, 0, ())
#define STAP_PROBE1(provider, name, a1) \
	__QBPF_MARKER(provider, name, 1, (a1))
#define STAP_PROBE2(provider, name, a1, a2) \
	__QBPF_MARKER(provider, name, 2, (a1, a2))
#define STAP_PROBE3(provider, name, a1, a2, a3) \
	__QBPF_MARKER(provider, name, 3, (a1, a2, a3))
#define STAP_PROBE4(provider, name, a1, a2, a3, a4) \
	__QBPF_MARKER(provider, name, 4, (a1, a2, a3, a4))
#define STAP_PROBE5(provider, name, a1, a2, a3, a4, a5) \
	__QBPF_MARKER(provider, name, 5, (a1, a2, a3, a4, a5))
#define STAP_PROBE6(provider, name, a1, a2, a3, a4, a5, a6) \
	__QBPF_MARKER(provider, name, 6, (a1, a2, a3, a4, a5, a6))
#define STAP_PROBE7(provider, name, a1, a2, a3, a4, a5, a6, a7) \
	__QBPF_MARKER(provider, name, 7, (a1, a2, a3, a4, a5, a6, a7))
#define STAP_PROBE8(provider, name, a1, a2, a3, a4, a5, a6, a7, a8) \
	__QBPF_MARKER(provider, name, 8, (a1, a2, a3, a4, a5, a6, a7, a8))
#define STAP_PROBE9(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9) \
	__QBPF_MARKER(provider, name, 9, (a1, a2, a3, a4, a5, a6, a7, a8, a9))
#define STAP_PROBE10(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10) \
	__QBPF_MARKER(provider, name, 10, (a1, a2, a3, a4, a5, a6, a7, a8, a9, a10))
#define STAP_PROBE11(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11) \
	__QBPF_MARKER(provider, name, 11, (a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11))
#define STAP_PROBE12(provider, name, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12) \
	__QBPF_MARKER(provider, name, 12, (a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12))

#define DTRACE_PROBE STAP_PROBE
#define DTRACE_PROBE1 STAP_PROBE1
#define DTRACE_PROBE2 STAP_PROBE2
#define DTRACE_PROBE3 STAP_PROBE3
#define DTRACE_PROBE4 STAP_PROBE4
#define DTRACE_PROBE5 STAP_PROBE5
#define DTRACE_PROBE6 STAP_PROBE6
#define DTRACE_PROBE7 STAP_PROBE7
#define DTRACE_PROBE8 STAP_PROBE8
#define DTRACE_PROBE9 STAP_PROBE9
#define DTRACE_PROBE10 STAP_PROBE10
#define DTRACE_PROBE11 STAP_PROBE11
#define DTRACE_PROBE12 STAP_PROBE12

#ifdef SDT_USE_VARIADIC
#define STAP_PROBEV(provider, name, ...) \
	__QBPF_VARIADIC(provider, name, __QBPF_COUNT(0, ##__VA_ARGS__), ##__VA_ARGS__)
#define __QBPF_VARIADIC(provider, name, n, ...) __QBPF_MARKER(provider, name, n, (__VA_ARGS__))
#define __QBPF_COUNT(...) __QBPF_COUNT_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define __QBPF_COUNT_(z, a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define DTRACE_PROBEV STAP_PROBEV
#endif
#endif /* STAP_PROBE */

/* clang-format on */

#endif

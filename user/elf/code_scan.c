/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds code that changes stacks or forks on its own, by the bytes of the instructions.
 *
 * All executable bytes are looked at wherever an instruction might begin: a decoder that goes
 * out of step would miss some, and a hit too many costs its caller only caution.
 */
#include <stdlib.h>
#include <string.h>

#include "elf/image.h"

#define CHUNK	  (1u << 20)
#define LOOK_BACK 24	    /* from a syscall to the load of its number */
#define OVERLAP	  (64 + 16) /* what one pattern spans at most */
#define SCAN_MAX  (1ull << 30)

#define REX_R 4
#define REX_B 1

/*
 * A switch of stacks saves %rsp where the other side finds it, and gives it a value that comes
 * from outside the frame, a few instructions apart. Neither alone tells: compilers copy %rsp for
 * arrays of variable length and to pass its address on, and put it back from the frame or from a
 * register that calls preserve. (xchg with %rsp is not looked for: as two or three bytes it is
 * in every large program by chance.)
 */
#define SAVE_WITHIN 64

/* 0: no; 1 + register: mov %rsp,register; SAVED: to memory outside the frame. */
#define SAVED 64

static unsigned int saves_rsp(const uint8_t *b)
{
	uint8_t rex = b[0], mod = b[2] >> 6, reg = (b[2] >> 3) & 7, rm = b[2] & 7;

	if (b[1] == 0x8b && mod == 3 && rm == 4 && !(rex & REX_B))
		return 1 + reg + (rex & REX_R ? 8 : 0);
	if (b[1] != 0x89 || reg != 4 || (rex & REX_R))
		return 0;
	if (mod == 3) /* into %rbp: every function's beginning */
		return rm == 5 && !(rex & REX_B) ? 0 : 1 + rm + (rex & REX_B ? 8 : 0);
	if (rm == 5 && mod && !(rex & REX_B))
		return 0; /* relative to %rbp */
	if (rm == 4 && (b[3] & 7) == 4 && !(rex & REX_B))
		return 0; /* relative to %rsp */
	return SAVED;
}

/* The same for what is put into %rsp. */
static unsigned int loads_rsp(const uint8_t *b)
{
	static const uint16_t scratch = 0x0fc7; /* rax rcx rdx rsi rdi r8..r11 */
	uint8_t rex = b[0], mod = b[2] >> 6, reg = (b[2] >> 3) & 7, rm = b[2] & 7;
	unsigned int from;

	if (b[1] == 0x89 && mod == 3 && rm == 4 && !(rex & REX_B)) {
		from = reg + (rex & REX_R ? 8 : 0);
		return scratch >> from & 1 ? 1 + from : 0;
	}
	if (b[1] != 0x8b || reg != 4 || (rex & REX_R))
		return 0;
	if (mod == 3) {
		from = rm + (rex & REX_B ? 8 : 0);
		return scratch >> from & 1 ? 1 + from : 0;
	}
	if (rm == 5 && mod && !(rex & REX_B))
		return 0;
	if (rm == 4 && (b[3] & 7) == 4 && !(rex & REX_B))
		return 0;
	return SAVED;
}

static bool find_switch(const uint8_t *b, size_t len)
{
	size_t saved_at = 0;
	unsigned int saved = 0, what;

	for (size_t i = 0; i + 3 <= len; i++) {
		uint8_t insn[4] = {0};

		if ((b[i] & 0xf8) != 0x48)
			continue;
		memcpy(insn, b + i, len - i < 4 ? len - i : 4);
		what = loads_rsp(insn);
		/* From the register that it was copied to: put back. */
		if (what && saved && i - saved_at <= SAVE_WITHIN &&
		    (what == SAVED || saved == SAVED || what != saved))
			return true;
		what = saves_rsp(insn);
		if (what) {
			saved = what;
			saved_at = i;
		}
	}
	return false;
}

/* mov $nr,%eax, and mov $nr,%rax as assemblers write it */
static bool loads_fork_nr(const uint8_t *b, size_t len)
{
	static const uint8_t numbers[][4] = {
	    {0x39, 0, 0, 0}, /* fork */
	    {0x38, 0, 0, 0}, /* clone */
	    {0xb3, 1, 0, 0}, /* clone3 */
	};

	for (size_t i = 0; i + 5 <= len; i++) {
		if (b[i] != 0xb8 && (b[i] != 0xc0 || !i || b[i - 1] != 0xc7))
			continue;
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			if (!memcmp(b + i + 1, numbers[k], 4))
				return true;
	}
	return false;
}

static bool find_fork(const uint8_t *b, size_t len)
{
	const uint8_t *p = b, *end = b + len;

	while (p < end && (p = memchr(p, 0x05, (size_t)(end - p)))) {
		size_t before = (size_t)(p - b), back;

		p++;
		if (!before || b[before - 1] != 0x0f)
			continue;
		before--;
		back = before < LOOK_BACK ? before : LOOK_BACK;
		if (loads_fork_nr(b + before - back, back))
			return true;
	}
	return false;
}

void elf_image__scan_code(const struct elf_image *img, bool *switches_stack, bool *raw_fork)
{
	uint64_t addr = 0, from, scanned = 0;
	size_t kept = 0, n;
	uint8_t *buf;

	*switches_stack = *raw_fork = false;
	if (elf_image__headers(img)->machine != ELF_X86_64)
		return;
	buf = malloc(OVERLAP + CHUNK);
	while (buf && !(*switches_stack && *raw_fork) && scanned < SCAN_MAX) {
		from = addr;
		n = elf_image__read_code(img, &addr, buf + kept, CHUNK);
		if (!n)
			break;
		if (addr != from && kept) { /* another segment: what was kept is not before it */
			memmove(buf, buf + kept, n);
			kept = 0;
		}
		addr += n;
		scanned += n;
		n += kept;
		*switches_stack = *switches_stack || find_switch(buf, n);
		*raw_fork = *raw_fork || find_fork(buf, n);
		kept = n < OVERLAP ? n : OVERLAP;
		memmove(buf, buf + n - kept, kept);
	}
	/* No memory, or more code than a program has: it may hold anything. */
	if (!buf || scanned >= SCAN_MAX)
		*switches_stack = *raw_fork = true;
	free(buf);
}

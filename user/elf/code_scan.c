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
#define LOOK_BACK 24 /* from a syscall to the load of its number */
#define OVERLAP	  (LOOK_BACK + 2)
#define SCAN_MAX  (1ull << 30)

#define REX_R 4
#define REX_B 1

/* op, modrm behind a REX.W prefix: does it give %rsp a value that is not from %rbp? */
static bool loads_rsp(uint8_t rex, uint8_t op, uint8_t modrm)
{
	uint8_t mod = modrm >> 6, reg = (modrm >> 3) & 7, rm = modrm & 7;
	bool rm_rsp = mod == 3 && rm == 4 && !(rex & REX_B);
	bool reg_rsp = reg == 4 && !(rex & REX_R);

	switch (op) {
	case 0x89: /* mov reg,%rsp */
		return rm_rsp && (reg != 5 || (rex & REX_R));
	case 0x8b: /* mov reg or memory,%rsp; without a base register 5 is %rip */
		return reg_rsp && (rm != 5 || !mod || (rex & REX_B));
	case 0x87: /* xchg */
		return reg_rsp || rm_rsp;
	case 0x94: /* xchg %rax,%rsp; modrm is the next instruction */
		return !(rex & REX_B);
	default:
		return false;
	}
}

static bool find_switch(const uint8_t *b, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++)
		if ((b[i] & 0xf8) == 0x48 && loads_rsp(b[i], b[i + 1], b[i + 2]))
			return true;
	/* The one of two bytes, when they are the last. */
	return len >= 2 && (b[len - 2] & 0xf8) == 0x48 && loads_rsp(b[len - 2], b[len - 1], 0) &&
	       b[len - 1] == 0x94;
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Integers of 7 bits a byte, the low ones first, and signed ones folded into unsigned. */
#ifndef QBPF_FILE_VARINT_H
#define QBPF_FILE_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#define VARINT_MAX 10 /* bytes */

static inline uint8_t *varint__put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* Reads up to VARINT_MAX bytes from *p, where as many must be. False: more than 64 bits. */
static inline bool varint__get(const uint8_t **p, uint64_t *v)
{
	const uint8_t *at = *p;
	uint64_t x = at[0] & 0x7f;

	if (at[0] < 0x80) {
		*p = at + 1;
		*v = x;
		return true;
	}
	x |= (uint64_t)(at[1] & 0x7f) << 7;
	if (at[1] < 0x80) {
		*p = at + 2;
		*v = x;
		return true;
	}
	for (unsigned int i = 2; i < VARINT_MAX; i++) {
		if (i == VARINT_MAX - 1 && at[i] > 1)
			return false;
		x |= (uint64_t)(at[i] & 0x7f) << (7 * i);
		if (at[i] < 0x80) {
			*p = at + i + 1;
			*v = x;
			return true;
		}
	}
	return false;
}

/* The difference of two numbers modulo 2^64: small ones, of either sign, become small. */
static inline uint64_t zigzag(uint64_t diff)
{
	return diff << 1 ^ (0 - (diff >> 63));
}

static inline uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks the notes of a section. (libelf's gelf_getnote takes only Elf_Data of its own making,
 * and does not tell an end from a truncated note.)
 */
#ifndef QBPF_ELF_NOTE_H
#define QBPF_ELF_NOTE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct note {
	uint32_t type;
	const char *owner; /* owner_len bytes, the NUL included */
	size_t owner_len;
	const uint8_t *desc;
	size_t desc_len;
};

struct notes {
	const uint8_t *p, *end;
	bool truncated; /* the last note does not fit */
};

static inline size_t note_pad(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static inline bool notes__next(struct notes *it, struct note *out)
{
	size_t room = (size_t)(it->end - it->p), owner, desc;
	Elf64_Nhdr nh;

	if (!room)
		return false;
	it->truncated = true;
	if (room < sizeof(nh))
		return false;
	memcpy(&nh, it->p, sizeof(nh));
	room -= sizeof(nh);
	/* 32-bit lengths, so that the sums cannot wrap. The last padding may be missing. */
	owner = note_pad(nh.n_namesz);
	desc = nh.n_descsz;
	if (owner > room || desc > room - owner)
		return false;
	it->truncated = false;
	out->type = nh.n_type;
	out->owner = (const char *)it->p + sizeof(nh);
	out->owner_len = nh.n_namesz;
	out->desc = it->p + sizeof(nh) + owner;
	out->desc_len = desc;
	room -= owner;
	it->p = out->desc + (note_pad(desc) < room ? note_pad(desc) : room);
	return true;
}

static inline bool note__is(const struct note *n, const char *owner, uint32_t type)
{
	return n->type == type && n->owner_len == strlen(owner) + 1 &&
	       !memcmp(n->owner, owner, n->owner_len);
}

#endif

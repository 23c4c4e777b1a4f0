/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables of a trace as bytes: one description of each table's fields serves the writer and the
 * reader. An entry is a u32 length and then its fields; what a later minor version appends to them is
 * skipped.
 */
#ifndef QBPF_FILE_TABLES_H
#define QBPF_FILE_TABLES_H

#include <stdbool.h>

#include "file/bytes.h"
#include "file/format.h"

struct table_field {
	uint8_t type;
	uint8_t n; /* an array of so many */
	uint16_t off;
};

struct table {
	const char *name;
	uint16_t block;
	bool indexed; /* an entry says which index it has, and may come again */
	uint16_t size;
	uint8_t nfields;
	const struct table_field *fields;
};

/* By block type; NULL: not a table. */
const struct table *table__of(unsigned int block_type);

/* Appends an entry. -E2BIG: its strings are too long. */
int table__encode(const struct table *t, struct bytes *out, uint32_t index, const void *entry);

/* Where the strings of entries live: many small ones, freed together. */
struct strings {
	struct strings_chunk *chunks;
};
void strings__free(struct strings *s);

/*
 * Takes the entry at *p off the front. Returns its length, or -EBADMSG when the bytes are no entry.
 * *why is then a word or two.
 */
int table__decode(const struct table *t, const uint8_t **p, const uint8_t *end, struct strings *s,
		  uint32_t *index, void *entry, const char **why);

#endif

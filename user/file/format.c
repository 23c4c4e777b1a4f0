// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The CRCs of a trace file: zlib's CRC-32. */
#include "file/format.h"

#include <zlib.h>

uint32_t trace_crc(const void *bytes, size_t len)
{
	return (uint32_t)crc32_z(0, bytes, len);
}

void trace_block__seal(struct trace_block *b, const void *payload)
{
	b->payload_crc = trace_crc(payload, b->stored_len);
	b->header_crc = trace_crc(b, offsetof(struct trace_block, header_crc));
}

bool trace_block__valid(const struct trace_block *b)
{
	return b->magic == TRACE_BLOCK_MAGIC &&
	       b->header_crc == trace_crc(b, offsetof(struct trace_block, header_crc));
}

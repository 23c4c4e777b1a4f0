// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any string as a mangled name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *out;

	memcpy(name, data, size);
	name[size] = '\0';
	out = symbol_demangle(name);
	if (out && (!*out || strlen(out) > 65536))
		abort();
	free(out);
	free(name);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any string as the arguments of a USDT note, for both machines. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/usdt_arg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct usdt_arg args[12];
	struct qbpf_arg out;

	memcpy(text, data, size);
	text[size] = '\0';
	for (int machine = 0; machine < 2; machine++) {
		unsigned int n = usdt_args__parse(text, machine, args, 12);

		check(n <= 12);
		for (unsigned int i = 0; i < n; i++) {
			struct usdt_arg *a = &args[i];
			int err = usdt_arg__to_abi(a, &out);

			check((a->kind == USDT_ARG_UNREADABLE) == (a->why != NULL));
			check(a->kind != USDT_ARG_UNREADABLE || err);
			check(!err == !!(out.flags & QBPF_ARG_VALID));
			if (a->kind == USDT_ARG_UNREADABLE)
				continue;
			check(a->size == 1 || a->size == 2 || a->size == 4 || a->size == 8);
			check(a->scale == 1 || a->scale == 2 || a->scale == 4 || a->scale == 8);
			check(a->base >= -1 && a->base <= 31 && a->index >= -1 && a->index <= 31);
			if (!a->symbol) {
				check(machine || !err);
				continue;
			}
			check(a->symbol >= text && a->symbol + a->symbol_len <= text + size);
			usdt_arg__resolve(a, 0x5000, 0x1000, size & 1);
			check(!a->symbol);
			check(!usdt_arg__to_abi(a, &out) == (a->kind != USDT_ARG_UNREADABLE));
		}
	}
	free(text);
	return 0;
}

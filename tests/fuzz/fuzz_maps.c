// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any text as /proc/PID/maps. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proc_maps *m;

	if (proc_maps__parse((const char *)data, size, &m))
		abort();
	for (size_t i = 0; i < m->n; i++) {
		bool exec = false;

		for (size_t j = 0; j < m->objects[i].nranges; j++) {
			const struct map_range *r = &m->objects[i].ranges[j];

			if (r->end <= r->start)
				abort();
			exec |= r->exec;
		}
		if (!exec || !m->objects[i].ino || m->objects[i].fd != -1 ||
		    strlen(m->objects[i].path) > size)
			abort();
	}
	proc_maps__free(m);
	return 0;
}

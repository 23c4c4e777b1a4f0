// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A library that is opened late. */
#include "qbpf/probe.h"

void plugin_work(long n);
void plugin_work(long n)
{
	for (long i = 0; i < n; i++) {
		DTRACE_PROBE(plugin, work__begin);
		DTRACE_PROBE(plugin, work__end);
	}
}

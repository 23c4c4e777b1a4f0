/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The clock of everything that qbpf measures: CLOCK_MONOTONIC, in ns, as bpf_ktime_get_ns(). */
#ifndef QBPF_CLOCK_H
#define QBPF_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For targets whose threads notice when they are disturbed: how they say so, and when all are at it. */
#ifndef QBPF_TESTS_DISTURBED_H
#define QBPF_TESTS_DISTURBED_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned long disturbed;

static inline void disturb(const char *what, long got)
{
	int saved = errno;

	if (__atomic_fetch_add(&disturbed, 1, __ATOMIC_RELAXED) < 20)
		fprintf(stderr, "disturbed: %s: %ld, errno %d (%s)\n", what, got, saved,
			strerror(saved));
}

static inline void tell(const char *name, unsigned long rounds)
{
	printf("count %s %lu\n", name, rounds);
}

/* "ready" waits until each thread has opened, mapped and tried what it needs. */
static unsigned settled;

static inline void settle(void)
{
	__atomic_fetch_add(&settled, 1, __ATOMIC_RELEASE);
}

static inline void await_settled(int threads)
{
	while (__atomic_load_n(&settled, __ATOMIC_ACQUIRE) < (unsigned)threads)
		usleep(1000);
}

#endif

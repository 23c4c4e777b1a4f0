/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A child process of qbpf's own that runs probe sites of every class when told to: what the
 * host can do and what a hit costs are found on it, never on the target. The sites lie in
 * qbpf's own text; probes on them are armed for the child alone, so qbpf does not pay.
 */
#ifndef QBPF_TRACE_OWN_CHILD_H
#define QBPF_TRACE_OWN_CHILD_H

#include <stdint.h>
#include <sys/types.h>

/* Pairs of sites; each pair is run by one call of an empty function. */
enum own_pair {
	OWN_NOP5,    /* two 5-byte nops, the red zone stepped over */
	OWN_NOP1,    /* two 1-byte nops: int3, emulated */
	OWN_PUSH,    /* push %rbp and jmp: int3, emulated */
	OWN_STEPPED, /* sub and ret: int3, single step */
	OWN_FUNC,    /* an entry on push %rbp; end is 0: seen by a uretprobe */
	OWN_PAIRS
};

struct own_child;

int own_child__start(struct own_child **out);
void own_child__free(struct own_child *c); /* ends it */
pid_t own_child__pid(const struct own_child *c);

/* File offsets, in /proc/self/exe, of a pair's two sites. */
int own_pair_offsets(enum own_pair pair, uint64_t *begin, uint64_t *end);

/* Runs a pair n times, on a second thread if asked to. ns: the time of all (NULL allowed). */
int own_child__run(struct own_child *c, enum own_pair pair, uint32_t n, int on_thread,
		   uint64_t *ns);

/* Runs a pair once in a forked child of the child's; -EFAULT when that one dies of it. */
int own_child__run_forked(struct own_child *c, enum own_pair pair);

/* The five bytes that the child itself reads at the pair's first site. */
int own_child__text(struct own_child *c, enum own_pair pair, uint8_t bytes[5]);

#endif

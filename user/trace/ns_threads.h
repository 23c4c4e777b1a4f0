/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process in a pid namespace of its own (a container) tells its threads by ids that mean something
 * else here. One thread at a time.
 */
#ifndef QBPF_TRACE_NS_THREADS_H
#define QBPF_TRACE_NS_THREADS_H

#include <stdint.h>
#include <sys/types.h>

struct ns_threads;

/* NULL: its ids are the ones that we see, or nothing can be told of it. */
struct ns_threads *ns_threads__new(pid_t pid);
void ns_threads__free(struct ns_threads *t); /* NULL is legal */

/* Looks who is there now; what is known of those that have ended stays. */
void ns_threads__look(struct ns_threads *t);
/* The id here of what is thread `tid` there, last; 0: it was gone before anybody looked. */
uint32_t ns_threads__tid(struct ns_threads *t, uint32_t tid);
uint32_t ns_threads__tgid(const struct ns_threads *t);

#endif

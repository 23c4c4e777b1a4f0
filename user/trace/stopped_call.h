/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The system call that a thread was taken out of by a ptrace stop.
 *
 * What the kernel would do when the thread goes on, make the call anew, can be done by hand for one that
 * is to go elsewhere first: the address is that of the syscall instruction, the call's number is in
 * %rax. A few calls do not wait for that: they fail with EINTR after a mere stop (signal(7):
 * epoll_wait and others). The program has done nothing to get that, so they are to be made anew as
 * well.
 */
#ifndef QBPF_TRACE_STOPPED_CALL_H
#define QBPF_TRACE_STOPPED_CALL_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/user.h>

int stopped_regs__get(pid_t tid, struct user_regs_struct *r);
int stopped_regs__set(pid_t tid, struct user_regs_struct *r);

/* Why a signal is expected to come as soon as the thread goes on; NULL: none is. */
const char *stopped_call__signals(pid_t pid, pid_t tid);

/* Has its call failed with EINTR for the stop alone? */
bool stopped_call__is_interrupted(const struct user_regs_struct *r);

/* Will the kernel make it anew with what is left of its time, which it knows itself? */
bool stopped_call__has_rest(const struct user_regs_struct *r);

/*
 * Makes the interrupted call, if there is one, the thread's next instruction: *changed. False: it
 * cannot be told. r alone is changed.
 */
bool stopped_call__restart(pid_t tid, struct user_regs_struct *r, bool *changed);

/* Before a thread is let go: if its call failed for our stop alone, it is made anew. */
void stopped_call__mend(pid_t pid, pid_t tid);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The C++ half of t_guard: functions to trace, and workloads that return 0 when all went well. */
#ifndef QBPF_TESTS_BPF_GUARD_WORK_H
#define QBPF_TESTS_BPF_GUARD_WORK_H

#ifdef __cplusplus
extern "C" {
#endif

#define GUARD_ROUNDS  250
#define GUARD_THREADS 4

/* each() calls outer() calls middle() calls thrower(); each() catches. */
int guard_each(int i);
void guard_outer(int i);
void guard_middle(int i);
void guard_thrower(int i);
void guard_rethrower(int i);
void guard_destroyer(int i);
void guard_tail(int i);
void guard_waits(int i);
void guard_jumper(int i);
int guard_traced_backtrace(int n);
void guard_near(int i);
void guard_far(int i);
void guard_in_flight(int i);

/* Where these workloads read a byte before they throw; -1: they do not wait. */
extern int guard_fixed[2];

int work_throw(void);
int work_throw_threads(void);
int work_rethrow(void);
int work_destructors(void);
int work_cancel(void);
int work_exit_thread(void);
int work_longjmp_throw(void);
int work_tail_throw(void);
int work_backtrace(void);
int work_fork_throw(void);
int work_fork_far(void);
int work_in_flight(void);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads of qbpf's own that never handle a signal of the process: those are the main thread's. */
#ifndef QBPF_QUIET_THREAD_H
#define QBPF_QUIET_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create, with every signal blocked in the thread. 0 or a negative errno. */
static inline int quiet_thread__start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

#endif

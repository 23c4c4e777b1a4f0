// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Threads that are stopped for a moment do not notice. Needs ptrace of an own child, no root. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "task_state.h"
#include "trace/stop.h"

#define STOPS 50

/* What the child's two threads tell: shared memory. */
struct told {
	_Atomic unsigned returns[2], interrupted[2], handled;
	_Atomic bool ready[2];
	pid_t tid[2];
};

static struct told *told;
static int wake; /* an eventfd */

static void on_signal(int sig)
{
	(void)sig;
	told->handled++;
}

static void note(int thread, long ret)
{
	told->returns[thread]++;
	if (ret < 0 && errno == EINTR)
		told->interrupted[thread]++;
}

static void *wait_epoll(void *arg)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = epoll_create1(0), n;

	(void)arg;
	epoll_ctl(fd, EPOLL_CTL_ADD, wake, &ev);
	told->tid[0] = gettid();
	told->ready[0] = true;
	do {
		n = epoll_wait(fd, &ev, 1, -1);
		note(0, n);
	} while (n < 1);
	return NULL;
}

/* With a time-out a socket's read does not restart. */
static void *wait_read(void *arg)
{
	struct timeval limit = {.tv_sec = 600};
	const int *pair = arg;
	ssize_t n;
	char c;

	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	told->tid[1] = gettid();
	told->ready[1] = true;
	do {
		n = read(pair[0], &c, 1);
		note(1, n);
	} while (n < 1);
	return NULL;
}

static int pair[2];

static pid_t start_child(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t other;
	pid_t pid;

	memset(told, 0, sizeof(*told));
	wake = eventfd(0, 0);
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&other, NULL, wait_read, pair);
	wait_epoll(NULL);
	pthread_join(other, NULL);
	_exit(0);
}

static void pause_ms(unsigned ms)
{
	struct timespec ts = {.tv_nsec = (long)ms * 1000000};

	nanosleep(&ts, NULL);
}

/* Until both are in the call that they wait in: they sleep nowhere else. */
static void await_threads(pid_t pid)
{
	while (!told->ready[0] || !told->ready[1])
		pause_ms(1);
	for (int i = 0; i < 2; i++)
		await_sleep(pid, told->tid[i]);
}

static void end_child(pid_t pid)
{
	uint64_t one = 1;
	int status;

	assert_int_equal(write(wake, &one, sizeof(one)), sizeof(one));
	assert_int_equal(write(pair[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	close(wake);
	close(pair[0]);
	close(pair[1]);
}

static void waits_go_on(void **state)
{
	pid_t pid = start_child();
	struct stopped *s;
	struct err e;

	(void)state;
	await_threads(pid);
	for (int i = 0; i < STOPS; i++) {
		assert_int_equal(stopped__new(pid, &s, &e), 0);
		stopped__free(s);
		pause_ms(2);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(told->returns[i], 0);
		assert_int_equal(told->interrupted[i], 0);
	}
	end_child(pid);
	assert_int_equal(told->returns[0], 1);
	assert_int_equal(told->returns[1], 1);
}

/* A signal that comes meanwhile is handled, and ends the wait as it would have. */
static void signals_still_interrupt(void **state)
{
	pid_t pid = start_child();
	struct stopped *s;
	struct err e;

	(void)state;
	await_threads(pid);
	for (unsigned i = 1; i <= 10; i++) {
		assert_int_equal(stopped__new(pid, &s, &e), 0);
		assert_return_code(kill(pid, SIGUSR1), errno);
		stopped__free(s);
		while (told->handled < i)
			pause_ms(1);
		assert_int_equal(told->handled, i);
		await_threads(pid);
	}
	/* The first thread that may takes it: each is in a call that ends with EINTR. */
	assert_in_range(told->interrupted[0] + told->interrupted[1], 10, 20);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(waits_go_on),
	    cmocka_unit_test(signals_still_interrupt),
	};

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A C program in which nothing throws opens a library that does: exceptions pass through its
 * function `through`, and a thread that is inside it all the while is ended by pthread_exit,
 * whose unwinding must reach the clean-up handler outside.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "workload.h"

void *late_open(const char *path);
void *late_sym(void *lib, const char *name);

static atomic_int inside, leave, cleaned;
static void (*thread_exit)(void *);

NOINLINE int through(int (*fn)(int), int x)
{
	return fn(x) + 1;
}

static int plain(int x)
{
	return x;
}

static int wait_and_exit(int x)
{
	inside = 1;
	while (!leave)
		usleep(1000);
	thread_exit(NULL);
	return x;
}

static void clean(void *arg)
{
	(void)arg;
	cleaned = 1;
}

static void *thread(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	through(wait_and_exit, 0);
	pthread_cleanup_pop(0);
	return arg;
}

int main(int argc, char **argv)
{
	int (*throw_through)(int (*)(int (*)(int), int), int);
	int caught, n = 0;
	pthread_t t;
	void *h;

	workload_ready();
	for (int i = 0; i < 100; i++)
		n += through(plain, i) > 0;
	if (pthread_create(&t, NULL, thread, NULL))
		return 1;
	while (!inside)
		usleep(1000);
	h = argc > 1 ? late_open(argv[1]) : NULL;
	throw_through = h ? late_sym(h, "throw_through") : NULL;
	thread_exit = late_sym(NULL, "pthread_exit");
	if (!throw_through || !thread_exit)
		return 1;
	printf("opened\n");
	fflush(stdout);
	getchar();
	caught = throw_through(through, 100);
	leave = 1;
	pthread_join(t, NULL);
	workload_count("plain", (unsigned long)n);
	workload_count("caught", (unsigned long)caught);
	workload_count("cleaned", (unsigned long)cleaned);
	return 0;
}

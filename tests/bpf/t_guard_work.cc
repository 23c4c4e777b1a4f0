// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Everything that unwinds: see t_guard.c, which traces it. */
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t_guard_work.h"

#define noinline __attribute__((noinline, noclone))

static std::atomic<int> destroyed;
static thread_local bool throws = true;

struct Counted {
	~Counted()
	{
		destroyed++;
	}
};

static noinline void keep()
{
	__asm__ volatile("" ::: "memory");
}

noinline void guard_thrower(int i)
{
	keep();
	if (throws)
		throw std::runtime_error(i & 1 ? "odd" : "even");
	keep();
}

noinline void guard_middle(int i)
{
	Counted c;

	guard_thrower(i);
	keep();
}

noinline void guard_outer(int i)
{
	Counted c;

	guard_middle(i);
	keep();
}

/* 0 when the exception has arrived whole. */
noinline int guard_each(int i)
{
	int bad = 1;

	try {
		guard_outer(i);
	} catch (const std::runtime_error &e) {
		bad = strcmp(e.what(), i & 1 ? "odd" : "even") != 0;
	}
	keep();
	return bad;
}

static noinline int rounds(int (*one)(int))
{
	int bad = 0;

	for (int i = 0; i < GUARD_ROUNDS; i++)
		bad += one(i);
	return bad;
}

int work_throw()
{
	return rounds(guard_each) || destroyed != 2 * GUARD_ROUNDS;
}

int work_throw_threads()
{
	std::atomic<int> bad{0};
	std::vector<std::thread> threads;

	for (int i = 0; i < GUARD_THREADS; i++)
		threads.emplace_back([&] { bad += rounds(guard_each); });
	for (auto &t : threads)
		t.join();
	return bad || destroyed != 2 * GUARD_ROUNDS * GUARD_THREADS;
}

/* --- rethrow --------------------------------------------------------------------------------- */

noinline void guard_rethrower(int i)
{
	try {
		guard_middle(i);
	} catch (...) {
		keep();
		throw;
	}
	keep();
}

static noinline int rethrow_one(int i)
{
	try {
		guard_rethrower(i);
	} catch (const std::runtime_error &) {
		return 0;
	}
	return 1;
}

int work_rethrow()
{
	return rounds(rethrow_one) || destroyed != GUARD_ROUNDS;
}

/* --- destructors that throw and catch while another exception passes ------------------------- */

static int caught_inside;

struct Thrower {
	~Thrower()
	{
		/* Survives the inner catch and returns, in the middle of the outer unwinding. */
		caught_inside += !guard_each(0);
	}
};

noinline void guard_destroyer(int i)
{
	Thrower t;

	guard_thrower(i);
	keep();
}

static noinline int destructors_one(int i)
{
	try {
		guard_destroyer(i);
	} catch (const std::runtime_error &) {
		return 0;
	}
	return 1;
}

int work_destructors()
{
	return rounds(destructors_one) || caught_inside != GUARD_ROUNDS;
}

/* --- threads that are cancelled or leave ----------------------------------------------------- */

static std::atomic<bool> waiting;

noinline void guard_waits(int i)
{
	Counted c;

	if (i > 0) {
		guard_waits(i - 1);
		keep();
		return;
	}
	waiting = true;
	pause();
	keep();
}

int work_cancel()
{
	void *result;
	pthread_t t;
	int bad = 0;

	for (int i = 0; i < 20; i++) {
		waiting = false;
		pthread_create(
		    &t, nullptr,
		    [](void *) -> void * {
			    guard_waits(4);
			    return nullptr;
		    },
		    nullptr);
		while (!waiting)
			usleep(100);
		pthread_cancel(t);
		pthread_join(t, &result);
		bad += result != PTHREAD_CANCELED;
	}
	return bad || destroyed != 20 * 5;
}

static noinline void leave(int)
{
	pthread_exit(nullptr);
}

static void (*volatile leaver)(int) = leave;

static void *leaves(void *)
{
	Counted c;

	throws = false;
	guard_each(0);
	leaver(0);
	keep();
	return nullptr;
}

int work_exit_thread()
{
	pthread_t t;

	for (int i = 0; i < 20; i++) {
		pthread_create(&t, nullptr, leaves, nullptr);
		pthread_join(t, nullptr);
	}
	return destroyed != 20 * 3;
}

/* --- longjmp between the throws -------------------------------------------------------------- */

static jmp_buf out;

noinline void guard_jumper(int)
{
	keep();
	longjmp(out, 1);
}

static volatile int jump_round, jump_bad;

int work_longjmp_throw()
{
	for (jump_round = 0; jump_round < GUARD_ROUNDS; jump_round = jump_round + 1) {
		if (!setjmp(out))
			guard_jumper(0);
		jump_bad = jump_bad + guard_each(jump_round);
	}
	return jump_bad;
}

/* --- a tail call into what throws ------------------------------------------------------------ */

noinline void guard_tail(int i)
{
	keep();
	guard_thrower(i);
}

static noinline int tail_one(int i)
{
	int bad = 1;

	/* Returns through the shared slot every other time. */
	throws = i & 1;
	try {
		guard_tail(i);
		bad = throws;
	} catch (const std::runtime_error &) {
		bad = !throws;
	}
	return bad;
}

int work_tail_throw()
{
	return rounds(tail_one);
}

/* --- backtrace ------------------------------------------------------------------------------- */

static int frames_seen;

noinline int guard_traced_backtrace(int n)
{
	void *frames[64];
	int r;

	if (n) {
		r = guard_traced_backtrace(n - 1);
		keep();
		return r;
	}
	r = backtrace(frames, 64);
	keep();
	return r;
}

/* Deeper by as many frames as there are more calls. */
int work_backtrace()
{
	int bad = 0;

	for (int i = 0; i < GUARD_ROUNDS; i++) {
		int shallow = guard_traced_backtrace(0), deep = guard_traced_backtrace(9);

		bad += deep - shallow != 9 || shallow < 3;
		if (!frames_seen)
			frames_seen = shallow;
		bad += shallow != frames_seen;
	}
	return bad;
}

/* --- fork ------------------------------------------------------------------------------------ */

static int fork_status;
static bool in_child;
int guard_fixed[2] = {-1, -1};

static noinline void fork_and_throw()
{
	char c;
	pid_t pid = fork();

	in_child = !pid;
	if (guard_fixed[0] >= 0 && read(guard_fixed[0], &c, 1) != 1)
		_exit(98);
	if (pid > 0)
		waitpid(pid, &fork_status, 0);
	throw std::runtime_error("forked");
}

/*
 * Traced: both processes throw through it, the child through a frame that it inherited. Their calls after
 * the fork make the page of that frame writable again, if it is the one that they have their own on: fork_one()
 * is therefore called from the middle of a page.
 */
noinline void guard_near(int)
{
	fork_and_throw();
	keep();
}

/* The same from frames on pages of their own, which no one writes after the fork. */
noinline void guard_far(int i)
{
	volatile char pad[3 * 4096];

	if (i < 0)
		return;
	pad[0] = i;
	pad[sizeof(pad) - 1] = i;
	if (i)
		guard_far(i - 1);
	else
		fork_and_throw();
	pad[1] = pad[0];
}

static noinline int fork_one(void (*f)(int), int arg)
{
	int caught = 0;

	try {
		f(arg);
	} catch (const std::runtime_error &) {
		caught = 1;
	}
	if (in_child)
		_exit(!caught);
	return !caught || fork_status;
}

static noinline int fork_mid_page()
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	volatile char *pad = (volatile char *)__builtin_alloca((here & 4095) + 2048);

	pad[0] = 0;
	return fork_one(guard_near, 0);
}

int work_fork_throw()
{
	int bad = 0;

	for (int i = 0; i < 20; i++)
		bad += fork_mid_page();
	return bad;
}

int work_fork_far()
{
	return fork_one(guard_far, 3);
}

/* --- a tracer that leaves -------------------------------------------------------------------- */

/* Waits with two traced calls in flight, then throws out of them. */
static noinline void stop_and_throw()
{
	char c;

	if (read(guard_fixed[0], &c, 1) != 1)
		_exit(98);
	throw std::runtime_error("left alone");
}

noinline void guard_in_flight(int i)
{
	Counted c;

	if (i < 0)
		return;
	if (i)
		guard_in_flight(i - 1);
	else
		stop_and_throw();
	keep();
}

int work_in_flight()
{
	try {
		guard_in_flight(1);
	} catch (const std::runtime_error &) {
		return destroyed != 2;
	}
	return 1;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Exceptions through traced functions, on several threads: every one must be caught.
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "workload.h"

static volatile int sink;
static volatile unsigned long destroyed;

struct Guarded {
	~Guarded()
	{
		__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
	}
};

NOINLINE int thrower(int x)
{
	if (x >= 0)
		throw std::runtime_error("expected");
	return x;
}

NOINLINE int crossed(int x)
{
	Guarded g;
	return thrower(x) + 1;
}

NOINLINE int catching(int x)
{
	try {
		return crossed(x);
	} catch (const std::exception &) {
		return 1;
	}
}

NOINLINE int plain_leaf(int x) noexcept
{
	sink = x;
	return x * 7;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	long threads = argc > 2 ? atol(argv[2]) : 1;
	unsigned long caught = 0;
	std::vector<std::thread> ts;

	workload_ready();
	for (long t = 0; t < threads; t++)
		ts.emplace_back([&] {
			for (long i = 0; i < n; i++) {
				__atomic_add_fetch(&caught, catching(int(i)), __ATOMIC_RELAXED);
				sink = plain_leaf(int(i));
			}
		});
	for (auto &t : ts)
		t.join();
	workload_count("caught", caught);
	workload_count("destroyed", destroyed);
	workload_count("plain_leaf", n * threads);
	return 0;
}

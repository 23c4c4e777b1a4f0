/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Markers in the places that only C++ has: templates, inline and member functions, lambdas,
 * destructors, and spans that exceptions leave.
 *
 *	w_marker_cxx [ROUNDS]
 *
 * Prints, for each span and QBPF_FUNC function, "NAME COUNT": so many begins and as many ends.
 */
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "qbpf/probe.h"

#define NOINLINE __attribute__((noinline))

namespace cx
{

volatile long sink;
long counts[8];

enum class venue : signed char { NONE = -1, LIT = 1 };

template <typename T> struct book {
	NOINLINE long update(T x)
	{
		QBPF_FUNC();
		counts[0]++;
		sink = static_cast<long>(x);
		return sink;
	}
};

inline long doubled(long x)
{
	QBPF_SPAN(cx, doubled);
	counts[1]++;
	return 2 * x;
}

struct on_exit {
	long id;
	~on_exit()
	{
		QBPF_SPAN(cx, destructor);
		counts[2]++;
		sink = id;
	}
};

NOINLINE void fails(long x)
{
	QBPF_SPAN(cx, fails);
	counts[3]++;
	on_exit guard{x};
	if (x % 2)
		throw std::runtime_error("odd");
	sink = x;
}

NOINLINE void crosses(long x)
{
	QBPF_FUNC();
	counts[4]++;
	fails(x);
}

/* Nothing but a noexcept frame and spans between throw and catch. */
NOINLINE long catches(long x) noexcept
{
	QBPF_SPAN(cx, catches);
	counts[5]++;
	try {
		crosses(x);
	} catch (const std::exception &) {
		QBPF_SPAN(cx, handler);
		counts[6]++;
		return -1;
	}
	return x;
}

NOINLINE long lambdas(long x)
{
	auto twice = [](long v) {
		QBPF_SPAN(cx, lambda);
		counts[7]++;
		return doubled(v);
	};
	venue v = x % 2 ? venue::LIT : venue::NONE;
	const std::string name = "name";
	std::nullptr_t null = nullptr;
	DTRACE_PROBE4(cx, kinds, v, name.c_str(), null, x > 1);
	return twice(x);
}

} // namespace cx

int main(int argc, char **argv)
{
	using namespace cx;
	long rounds = argc > 1 ? std::atol(argv[1]) : 100;
	book<int> a;
	book<double> b;
	long total = 0;
	for (long i = 0; i < rounds; i++) {
		total += a.update(static_cast<int>(i));
		total += b.update(static_cast<double>(i));
		total += doubled(i);
		total += catches(i);
		total += lambdas(i);
	}
	static const char *const names[8] = {
	    "cx::book<T>::update", "doubled", "destructor", "fails",
	    "cx::crosses",	   "catches", "handler",    "lambda"};
	for (int i = 0; i < 8; i++)
		std::printf("%s %ld\n", names[i], counts[i]);
	std::fprintf(stderr, "%ld\n", total);
	return 0;
}

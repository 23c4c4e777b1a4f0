/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Markers with arguments of every kind in every place, for tracers to be judged by. Valid C99 and
 * C++11, so that one source is built by four compilers at every optimisation level.
 *
 *	w_marker [LEAVES [FILE]]
 *
 * Prints (into FILE) what a tracer must see, in order: "NAME ARG..." for each hit of mk:NAME,
 *integers in decimal, floating-point numbers as their bits, strings as they are. Then runs a leaf
 *function with live data in the red zone LEAVES times and prints
 *
 *	leaves COUNT SUM WRONG	its marker mk:leaf's first argument summed; values found changed
 *	spans COUNT		runs of each of the spans mk:scope, mk:inner and the function
 *paths()
 */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef W_MARKER_SDT
/* What the header of systemtap makes of the same source. */
#include <sys/sdt.h>
#define QBPF_SPAN(provider, name)     (void)0
#define QBPF_FUNC()		      (void)0
#define QBPF_VALUE(provider, name, x) DTRACE_PROBE1(provider, name##__value, x)
#define QBPF_ENABLED(provider, name)  0
#else
#include "qbpf/probe.h"
#endif

#define NOINLINE __attribute__((noinline))

enum colour { RED = 1, GREEN = 40000 };
enum level { LOW = -3, HIGH = 3 };

struct order {
	char symbol[8];
	int64_t id;
	double price;
	short size;
	bool live;
};

int global_int = -77;
double global_double = 6.25;
struct order book[4];
static unsigned long counters[8];
volatile int sink;

static long bits(double d)
{
	long l;

	memcpy(&l, &d, sizeof(l));
	return l;
}

static long fbits(float f)
{
	int i;

	memcpy(&i, &f, sizeof(i));
	return (long)(unsigned int)i;
}

NOINLINE static void small(signed char sc, unsigned char uc, short s, unsigned short us, bool b,
			   char c)
{
	printf("small %d %d %d %d %d %d\n", sc, uc, s, us, b, c);
	DTRACE_PROBE6(mk, small, sc, uc, s, us, b, c);
}

NOINLINE static void wide(int i, unsigned int u, long l, unsigned long ul, long long ll,
			  int64_t i64)
{
	printf("wide %d %u %ld %ld %lld %lld\n", i, u, l, (long)ul, ll, (long long)i64);
	DTRACE_PROBE6(mk, wide, i, u, l, ul, ll, i64);
}

NOINLINE static void real(double d, float f, long double ld, int i)
{
	double scaled = d * i;

	printf("real %ld %ld %ld %ld %d\n", bits(d), fbits(f), bits((double)ld), bits(scaled), i);
	DTRACE_PROBE5(mk, real, d, f, ld, scaled, i);
	printf("dval__value %ld\n", bits(scaled + 0.5));
	QBPF_VALUE(mk, dval, scaled + 0.5);
	printf("fval__value %ld\n", fbits(f * 2));
	QBPF_VALUE(mk, fval, f * 2);
	printf("ival__value %d\n", -i);
	QBPF_VALUE(mk, ival, -i);
}

NOINLINE static void text(const char *p, int n)
{
	char local[16];

	snprintf(local, sizeof(local), "local-%d", n);
	printf("text %s literal %s\n", p, local);
	DTRACE_PROBE3(mk, text, p, "literal", local);
}

NOINLINE static void place(int i, const long *array)
{
	long stack[4] = {i, i + 1L, i + 2L, i + 3L};
	volatile long pinned = i * 1000L;

	printf("place %d %ld %d %ld %ld %ld\n", global_int, bits(global_double), book[i & 3].size,
	       array[i], stack[i & 3], pinned);
	DTRACE_PROBE6(mk, place, global_int, global_double, book[i & 3].size, array[i],
		      stack[i & 3], pinned);
	counters[i & 7] += 3;
	printf("deep %ld %ld %d %d\n", (long)counters[i & 7], bits(book[i & 3].price),
	       book[i & 3].live, book[i & 3].symbol[1]);
	DTRACE_PROBE4(mk, deep, counters[i & 7], book[i & 3].price, book[i & 3].live,
		      book[i & 3].symbol[1]);
}

/* The address of the frame's lowest variable can be the stack pointer itself. */
NOINLINE static void address(int n)
{
	int low[4] = {n, n, n, n};

	printf("address %d\n", n);
	DTRACE_PROBE1(mk, address, low);
	sink = low[n & 3];
}

NOINLINE static void constant(void)
{
	enum level low = LOW;

	printf("constant 5 -1 %ld %d %d %d\n", LONG_MIN, GREEN, low, 'q');
	DTRACE_PROBE6(mk, constant, 5, -1, LONG_MIN, (int)GREEN, low, (signed char)'q');
}

/* Inlined at several places, with its arguments in different ones each time. */
static inline void inlined(long a, unsigned char b)
{
	printf("inlined %ld %d\n", a, b);
	DTRACE_PROBE2(mk, inlined, a, b);
}

NOINLINE static void callers(long x, unsigned char y)
{
	inlined(x, y);
	inlined(42, (unsigned char)(y + 1));
	for (int i = 0; i < 3; i++)
		inlined(x * i, (unsigned char)i);
}

NOINLINE static void twelve(int a, unsigned char b, double c, const char *d, short e, long f,
			    float g, unsigned int h)
{
	printf("twelve %d %d %ld %s %d %ld %ld %u %ld %d %d %ld\n", a, b, bits(c), d, e, f,
	       fbits(g), h, f + 1, global_int, 12, (long)a * e);
	DTRACE_PROBE12(mk, twelve, a, b, c, d, e, f, g, h, f + 1, global_int, 12, (long)a * e);
}

/* Live data below the stack pointer while the marker is hit: no call, less than 128 bytes. */
NOINLINE static long leaf(long i)
{
	volatile long live[12];
	long wrong = 0;

	for (int k = 0; k < 12; k++)
		live[k] = i * 31 + k;
	DTRACE_PROBE2(mk, leaf, i, live[3]);
	for (int k = 0; k < 12; k++)
		wrong += live[k] != i * 31 + k;
	return wrong;
}

/* Every way out of a scope. Each call runs scope and inner once. */
NOINLINE static int paths(int way)
{
	QBPF_FUNC();
	QBPF_SPAN(mk, scope);

	if (way == 0)
		return 1;
	for (int i = 0; i < 3; i++) {
		if (way == 1 && i == 1)
			break;
		if (way == 2 && i < 2)
			continue;
		if (way == 3 && i == 2)
			goto out;
	}
	return 2;
out:
	return 3;
}

NOINLINE static void scopes(int n)
{
	for (int i = 0; i < n; i++) {
		QBPF_SPAN(mk, inner);

		sink = paths(i & 3);
		if (i & 1)
			continue;
		sink = i;
	}
}

NOINLINE static void enabled(int i)
{
	if (QBPF_ENABLED(mk, costly)) {
		printf("costly %d\n", i);
		DTRACE_PROBE1(mk, costly, i);
	}
}

int main(int argc, char **argv)
{
	long leaves = argc > 1 ? atol(argv[1]) : 1000, sum = 0, wrong = 0;
	static const long array[] = {-9, -8000000000, 7, 6};

	if (argc > 2 && !freopen(argv[2], "w", stdout)) {
		perror(argv[2]);
		return 2;
	}
	for (int i = 0; i < 4; i++) {
		snprintf(book[i].symbol, sizeof(book[i].symbol), "S%d", i);
		book[i].price = 99.5 + i;
		book[i].size = (short)(-100 * i);
		book[i].live = i & 1;
	}
	for (int i = 0; i < 3; i++) {
		small((signed char)(-5 - i), (unsigned char)(250 + i), (short)(-30000 - i),
		      (unsigned short)(65000 + i), i & 1, (char)('a' + i));
		wide(INT_MIN + i, UINT_MAX - (unsigned int)i, LONG_MIN + i, ULONG_MAX - 5, -1LL - i,
		     INT64_C(1) << (40 + i));
		real(-1.5 * i + 0.1, 0.3f * (float)i, 2.75L + i, i + 2);
		text(argv[0] ? "argument" : "", i);
		place(i, array);
		address(i);
		constant();
		callers(-1000L * i, (unsigned char)(200 + i));
		twelve(-i, (unsigned char)i, 1e100, "twelfth", (short)-i, 1L << 50, -0.0f, 7u);
		enabled(i);
	}
	for (long i = 0; i < leaves; i++) {
		wrong += leaf(i);
		sum += i;
	}
	scopes(100);
	printf("leaves %ld %ld %ld\n", leaves, sum, wrong);
	printf("spans 100\n");
	return wrong != 0;
}

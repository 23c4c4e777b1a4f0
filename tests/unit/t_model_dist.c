// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Distributions against plain sorted arrays. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/dist.h"

static uint64_t seed = 42;

static uint64_t rnd(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 11;
}

static long double value_of(enum qbpf_hist_kind kind, uint64_t key)
{
	double v;

	if (kind == QBPF_HIST_NS)
		return key;
	if (kind == QBPF_HIST_INT)
		return (int64_t)key;
	memcpy(&v, &key, sizeof(v));
	return v;
}

static int compare(const void *pa, const void *pb)
{
	long double a = *(const long double *)pa, b = *(const long double *)pb;

	return a < b ? -1 : a > b;
}

/* Everything that can be asked, against the sorted values. */
static void check(const struct dist *d, long double *v, size_t n)
{
	static const double q[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
	static const uint64_t per[] = {5000, 9000, 9900, 9990, 9999}; /* of 10,000 */
	struct dist_value *got;
	size_t ngot, at = 0;
	long double x, sum = 0;

	qsort(v, n, sizeof(*v), compare);
	assert_int_equal(dist__count(d) - dist__nan(d), n);
	assert_true(dist__min(d) == v[0]);
	assert_true(dist__max(d) == v[n - 1]);
	assert_true(dist__exact(d));
	for (size_t k = 1; k <= n; k++) {
		assert_true(dist__rank(d, k) == v[k - 1]);
		sum += v[k - 1];
	}
	assert_true(dist__rank(d, 0) == 0 && dist__rank(d, n + 1) == 0);
	if (isfinite(sum)) {
		assert_true(fabsl(dist__sum(d) - sum) <= fabsl(sum) * 1e-12L + 1e-6L);
		assert_true(fabsl(dist__mean(d) - sum / n) <= fabsl(sum) * 1e-12L + 1e-6L);
	}
	for (size_t i = 0; i < 5; i++) {
		bool enough = n * (10000 - per[i]) >= 10000;

		assert_int_equal(dist__quantile(d, q[i], &x), enough);
		if (enough) /* rank: the least k with k / n >= q, in whole numbers */
			assert_true(x == v[(n * per[i] + 9999) / 10000 - 1]);
	}
	assert_true(dist__quantile(d, 0, &x) && x == v[0]);
	assert_true(dist__quantile(d, 1, &x) && x == v[n - 1]);
	assert_false(dist__quantile(d, 1.5, &x));
	assert_false(dist__quantile(d, NAN, &x));
	ngot = dist__values(d, &got);
	for (size_t i = 0; i < ngot; i++) {
		assert_true(got[i].n > 0);
		assert_true(i == 0 || got[i].value > got[i - 1].value);
		for (uint64_t k = 0; k < got[i].n; k++)
			assert_true(got[i].value == v[at++]);
	}
	assert_int_equal(at, n);
	free(got);
}

/* Values of a kind: few and many distinct ones, all bits, the extremes. */
static uint64_t sample(enum qbpf_hist_kind kind, int style)
{
	double f;
	uint64_t bits;

	if (kind == QBPF_HIST_F64) {
		f = style == 0 ? (double)(rnd() % 7) - 3
			       : ldexp((double)rnd(), (int)(rnd() % 60) - 80);
		f = rnd() & 1 ? -f : f;
		memcpy(&bits, &f, sizeof(bits));
		return bits;
	}
	switch (style) {
	case 0:
		return rnd() % 7 - (kind == QBPF_HIST_INT ? 3 : 0);
	case 1:
		return 12000 + rnd() % 3000;
	default:
		return rnd() % 50 == 0 ? (rnd() & 1 ? UINT64_MAX : 0)
				       : (rnd() << 20 ^ rnd()) >> (rnd() % 64);
	}
}

static void t_against_arrays(void **state)
{
	enum { N = 6000 };
	long double *v = calloc(N, sizeof(*v));

	(void)state;
	for (int kind = QBPF_HIST_NS; kind <= QBPF_HIST_F64; kind++)
		for (int style = 0; style < 3; style++) {
			struct dist *d = dist__new(NULL, kind);
			size_t n = 0;

			while (n < N) {
				uint64_t key = sample(kind, style),
					 times = rnd() % 4 ? 1 : rnd() % 5;

				times = n + times > N ? N - n : times;
				assert_int_equal(dist__add(d, key, times), 0);
				for (; times; times--)
					v[n++] = value_of(kind, key);
				/* Asked in between, and added to again. */
				if (n == 1 || n == 9 || n == 10 || n == 101 || n == 1000)
					check(d, v, n);
			}
			check(d, v, n);
			dist__free(d);
		}
	free(v);
}

static void t_empty(void **state)
{
	struct dist *d = dist__new(NULL, QBPF_HIST_NS);
	struct dist_value *v;
	long double x;

	(void)state;
	assert_int_equal(dist__add(d, 5, 0), 0);
	assert_int_equal(dist__count(d), 0);
	assert_true(dist__min(d) == 0 && dist__max(d) == 0 && dist__sum(d) == 0);
	assert_true(dist__mean(d) == 0 && dist__rank(d, 1) == 0);
	assert_false(dist__quantile(d, 0.5, &x));
	assert_int_equal(dist__values(d, &v), 0);
	free(v);
	dist__free(d);
	dist__free(NULL);
}

static void add_double(struct dist *d, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	assert_int_equal(dist__add(d, bits, 1), 0);
}

static void t_doubles(void **state)
{
	struct dist *d = dist__new(NULL, QBPF_HIST_F64), *other = dist__new(NULL, QBPF_HIST_F64);
	struct dist_value *v;

	(void)state;
	add_double(d, NAN);
	add_double(d, -NAN);
	assert_int_equal(dist__count(d), 2);
	assert_int_equal(dist__nan(d), 2);
	assert_true(dist__max(d) == 0);
	add_double(d, -0.0);
	add_double(d, 0.0);
	add_double(d, 1e300);
	add_double(d, 1.0);
	add_double(d, -1e300);
	/* What the great ones would swallow is kept. */
	assert_true(dist__sum(d) == 1);
	assert_int_equal(dist__values(d, &v), 4);
	assert_true(v[1].value == 0 && v[1].n == 2 && !signbit(v[1].value));
	free(v);
	add_double(other, 2.0);
	add_double(other, NAN);
	assert_int_equal(dist__merge(d, other), 0);
	assert_true(dist__sum(d) == 3);
	assert_int_equal(dist__nan(d), 3);
	assert_int_equal(dist__count(d), 9);
	add_double(d, INFINITY);
	assert_true(isinf(dist__max(d)) && isinf(dist__sum(d)));
	add_double(d, -INFINITY);
	assert_true(isinf(dist__min(d)) && dist__min(d) < 0);
	dist__free(d);
	dist__free(other);
}

/* Sums beyond 64 bits, and that cancel. */
static void t_sums(void **state)
{
	struct dist *d = dist__new(NULL, QBPF_HIST_NS);

	(void)state;
	assert_int_equal(dist__add(d, UINT64_MAX, 1000), 0);
	assert_true(dist__sum(d) == (long double)UINT64_MAX * 1000);
	assert_true(dist__mean(d) == UINT64_MAX);
	dist__free(d);
	d = dist__new(NULL, QBPF_HIST_INT);
	assert_int_equal(dist__add(d, (uint64_t)INT64_MIN, 3), 0);
	assert_int_equal(dist__add(d, INT64_MAX, 3), 0);
	assert_int_equal(dist__add(d, 7, 1), 0);
	assert_true(dist__sum(d) == 4);
	dist__free(d);
}

/* A small pool: bits are lost, the greatest first; nothing else is. */
static void t_pool(void **state)
{
	enum { N = 200000 };
	struct dist_pool *p = dist_pool__new(256 << 10);
	struct dist *big = dist__new(p, QBPF_HIST_NS), *small = dist__new(p, QBPF_HIST_NS);
	struct dist *merged = dist__new(NULL, QBPF_HIST_NS);
	long double *v = calloc(N, sizeof(*v)), sum = 0, x;
	struct dist_value *got;
	uint64_t count = 0;
	size_t n;

	(void)state;
	for (int i = 0; i < N; i++) {
		uint64_t ns = 1000000 + rnd() % 100000000;

		v[i] = ns;
		sum += ns;
		assert_int_equal(dist__add(big, ns, 1), 0);
		assert_int_equal(dist__add(small, 500 + i % 10, 1), 0);
	}
	qsort(v, N, sizeof(*v), compare);
	assert_false(dist__exact(big));
	assert_true(dist__exact(small));
	assert_true(dist__sum(big) == sum);
	assert_true(dist__min(big) == v[0] && dist__max(big) == v[N - 1]);
	for (uint64_t k = 1; k <= N; k += 17)
		assert_true(fabsl(dist__rank(big, k) - v[k - 1]) <= v[k - 1] * 0.00025L);
	assert_true(dist__quantile(big, 0.9999, &x) && fabsl(x - v[199979]) <= x * 0.00025L);
	n = dist__values(big, &got);
	assert_true(n < 16384); /* 256 KiB of slots */
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || got[i].value > got[i - 1].value);
		count += got[i].n;
	}
	assert_int_equal(count, N);
	free(got);
	/* Whoever takes in a coarse one is coarse. */
	assert_int_equal(dist__add(merged, 123456789, 1), 0);
	assert_int_equal(dist__merge(merged, big), 0);
	assert_false(dist__exact(merged));
	assert_int_equal(dist__count(merged), N + 1);
	assert_true(dist__sum(merged) == sum + 123456789);
	assert_true(dist__max(merged) == 123456789);
	assert_true(dist__rank(merged, N + 1) == 123456789);
	assert_true(fabsl(dist__rank(merged, N / 2) - v[N / 2 - 1]) <= v[N / 2 - 1] * 0.00025L);
	dist__free(big);
	dist__free(small);
	dist__free(merged);
	dist_pool__free(p);
	free(v);
}

/* The same of signed integers and doubles, whose signs and small magnitudes stay. */
static void t_pool_signed(void **state)
{
	for (int kind = QBPF_HIST_INT; kind <= QBPF_HIST_F64; kind++) {
		enum { N = 60000 };
		struct dist_pool *p = dist_pool__new(32 << 10);
		struct dist *d = dist__new(p, kind);
		long double *v = calloc(N, sizeof(*v));

		(void)state;
		for (int i = 0; i < N; i++) {
			uint64_t key = sample(kind, 1);

			if (kind == QBPF_HIST_INT)
				key = i % 2 ? key * 1000 + rnd() % 1000
					    : 0 - (key * 1000 + rnd() % 1000);
			if (i % 10 == 0)
				key = i % 20 ? 0 : i; /* of doubles: subnormal */
			v[i] = value_of(kind, key);
			assert_int_equal(dist__add(d, key, 1), 0);
		}
		qsort(v, N, sizeof(*v), compare);
		assert_false(dist__exact(d));
		for (uint64_t k = 1; k <= N; k += 7)
			assert_true(fabsl(dist__rank(d, k) - v[k - 1]) <=
				    fabsl(v[k - 1]) * 0.00025L);
		dist__free(d);
		dist_pool__free(p);
		free(v);
	}
}

static void t_merge(void **state)
{
	enum { N = 3000 };
	struct dist *all = dist__new(NULL, QBPF_HIST_NS), *part[3];
	struct dist *ints = dist__new(NULL, QBPF_HIST_INT);
	long double *v = calloc(3 * N, sizeof(*v));
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		part[i] = dist__new(NULL, QBPF_HIST_NS);
		for (int k = 0; k < N; k++) {
			uint64_t ns = sample(QBPF_HIST_NS, i);

			v[n++] = ns;
			assert_int_equal(dist__add(part[i], ns, 1), 0);
		}
		if (i == 1) /* one that has been asked already */
			assert_true(dist__rank(part[i], 5) > 0);
		assert_int_equal(dist__merge(all, part[i]), 0);
	}
	check(all, v, n);
	assert_int_equal(dist__merge(ints, all), -EINVAL);
	assert_int_equal(dist__kind(ints), QBPF_HIST_INT);
	for (int i = 0; i < 3; i++)
		dist__free(part[i]);
	dist__free(all);
	dist__free(ints);
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_against_arrays), cmocka_unit_test(t_empty),
	    cmocka_unit_test(t_doubles),	cmocka_unit_test(t_sums),
	    cmocka_unit_test(t_pool),		cmocka_unit_test(t_pool_signed),
	    cmocka_unit_test(t_merge),
	};

	return cmocka_run_group_tests_name("model_dist", tests, NULL, NULL);
}

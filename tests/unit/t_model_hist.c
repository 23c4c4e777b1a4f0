// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Histograms against sorted arrays of the same values. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/hist.h"
#include "model/rows.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double unit(void)
{
	return (rnd() >> 11) * 0x1p-53;
}

static uint64_t bits_of(double d)
{
	uint64_t b;

	memcpy(&b, &d, sizeof(b));
	return b;
}

static long double value_of(enum qbpf_hist_kind kind, uint64_t v)
{
	double d;

	if (kind == QBPF_HIST_NS)
		return v;
	if (kind == QBPF_HIST_INT)
		return (int64_t)v;
	memcpy(&d, &v, sizeof(d));
	return d;
}

static int compare(const void *a, const void *b)
{
	long double x = *(const long double *)a, y = *(const long double *)b;

	return x < y ? -1 : x > y;
}

/* Within 1.6 % of the true value, or (subnormals) within one bucket of the smallest octave. */
static void assert_near(long double got, long double want)
{
	long double tolerance = fabsl(want) * 0.016L;

	if (tolerance < 0x1p-1028L)
		tolerance = 0x1p-1028L;
	if (got == want)
		return;
	if (!(fabsl(got - want) <= tolerance))
		fail_msg("%.20Lg is not within 1.6 %% of %.20Lg", got, want);
}

/* Every documented property of a histogram of v[n], none of them NaN. */
static void check(enum qbpf_hist_kind kind, const uint64_t *v, size_t n)
{
	static const double qs[] = {0,	  0.001, 0.1,	0.25,	0.5,	 0.75, 0.9,
				    0.95, 0.99,	 0.999, 0.9999, 0.99999, 1};
	struct hist *h = hist__new(kind), *c;
	long double *x = calloc(n + 1, sizeof(*x)), q, last = -INFINITY;
	__float128 sum = 0; /* 113 bits: exact enough to judge by */
	struct hist_bucket *b;
	uint64_t total = 0;
	size_t nb;

	assert_non_null(h);
	assert_non_null(x);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(hist__add(h, v[i]), 0);
		x[i] = value_of(kind, v[i]);
		sum += x[i];
	}
	qsort(x, n, sizeof(*x), compare);
	assert_int_equal(hist__count(h), n);
	assert_int_equal(hist__nan(h), 0);
	assert_true(hist__min(h) == (n ? x[0] : 0));
	assert_true(hist__max(h) == (n ? x[n - 1] : 0));
	if (n) {
		long double magnitude = fabsl(x[0]) > fabsl(x[n - 1]) ? x[0] : x[n - 1];

		assert_true(fabsl((long double)(hist__sum(h) - sum)) <=
			    fabsl(magnitude) * n * 0x1p-62L);
		assert_true(fabsl((long double)(hist__mean(h) - sum / n)) <=
			    fabsl(magnitude) * 0x1p-61L);
	}
	for (size_t i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
		bool supported = n && (qs[i] == 1 || n >= 1 / (1 - (long double)qs[i]) - 1e-9L);
		size_t rank = qs[i] == 0 ? 1 : (size_t)ceill(qs[i] * (long double)n - 1e-9L);

		assert_int_equal(hist__quantile(h, qs[i], &q), supported);
		if (!supported)
			continue;
		assert_near(q, x[(rank ? rank : 1) - 1]);
		assert_true(q >= x[0] && q <= x[n - 1]);
		assert_true(q >= last);
		last = q;
	}
	/* Buckets ascend, do not overlap, and each holds as many as there are values in it. */
	nb = hist__buckets(h, &b);
	for (size_t i = 0, at = 0; i < nb; i++) {
		bool downward = kind == QBPF_HIST_F64 && b[i].hi <= 0 && b[i].lo < 0;
		uint64_t in = 0;

		assert_true(i == 0 || b[i].lo >= b[i - 1].hi);
		for (; at < n; at++, in++)
			if (!(isinf(x[at]) ? x[at] == b[i].lo
			      : downward   ? x[at] > b[i].lo && x[at] <= b[i].hi && x[at] < 0
					   : x[at] >= b[i].lo && x[at] < b[i].hi))
				break;
		assert_int_equal(in, b[i].n);
		total += in;
	}
	assert_int_equal(total, n);
	free(b);
	c = hist__clone(h);
	assert_non_null(c);
	assert_int_equal(hist__count(c), n);
	assert_int_equal(hist__subtract(c, h), 0);
	assert_int_equal(hist__count(c), 0);
	assert_true(hist__sum(c) == 0);
	hist__free(c);
	hist__free(h);
	free(x);
}

enum { MANY = 20000 };

static void check_generated(enum qbpf_hist_kind kind, size_t n, uint64_t (*next)(void))
{
	uint64_t *v = calloc(n + 1, sizeof(*v));

	assert_non_null(v);
	for (size_t i = 0; i < n; i++)
		v[i] = next();
	check(kind, v, n);
	free(v);
}

static uint64_t uniform_5_10us(void)
{
	return 5000 + rnd() % 5001;
}

static uint64_t lognormal(void)
{
	double g = sqrt(-2 * log(unit() + 1e-300)) * cos(6.283185307179586 * unit());

	return (uint64_t)exp(9 + 2 * g);
}

static uint64_t pareto(void)
{
	return (uint64_t)(1000 / pow(unit() + 1e-12, 1.1));
}

static uint64_t bimodal(void)
{
	return rnd() % 100 ? 900 + rnd() % 200 : 5000000 + rnd() % 1000000;
}

static uint64_t all_magnitudes(void)
{
	return rnd() >> (rnd() % 64);
}

static uint64_t small(void)
{
	return rnd() % 70;
}

static uint64_t constant(void)
{
	return 1000001;
}

static uint64_t powers(void)
{
	return (1ull << (rnd() % 64)) - rnd() % 2;
}

static uint64_t signed_all(void)
{
	uint64_t v = rnd() >> (rnd() % 64);

	return rnd() % 2 ? v : 0 - v;
}

static uint64_t doubles_all(void)
{
	uint64_t b;

	do
		b = rnd();
	while ((b >> 52 & 2047) == 2047);
	return b;
}

static uint64_t prices(void)
{
	return bits_of(100 + 20 * (unit() - 0.5));
}

static uint64_t around_zero(void)
{
	static const double v[] = {0, 1e-310, -1e-310, 5e-324, 1e-300, -2.5, 2.5, 1};

	return bits_of(v[rnd() % (sizeof(v) / sizeof(v[0]))]);
}

static void t_distributions(void **state)
{
	static uint64_t (*const ns[])(void) = {uniform_5_10us, lognormal, pareto,   bimodal,
					       all_magnitudes, small,	  constant, powers};
	static uint64_t (*const f64[])(void) = {doubles_all, prices, around_zero};
	static const size_t sizes[] = {0, 1, 2, 3, 9, 10, 99, 100, 999, 1000, MANY};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
			check_generated(QBPF_HIST_NS, sizes[s], ns[i]);
			check_generated(QBPF_HIST_INT, sizes[s], ns[i]);
		}
		check_generated(QBPF_HIST_INT, sizes[s], signed_all);
		for (size_t i = 0; i < sizeof(f64) / sizeof(f64[0]); i++)
			check_generated(QBPF_HIST_F64, sizes[s], f64[i]);
	}
}

/* tests/inputs: 90 x 200 ms + 10 x 5 s. */
static void t_slow_tenth(void **state)
{
	struct hist *h = hist__new(QBPF_HIST_NS);
	long double q;

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(hist__add(h, i < 90 ? 200000000ull : 5000000000ull), 0);
	assert_int_equal(hist__count(h), 100);
	assert_true(hist__quantile(h, 0.95, &q) && q >= 4e9L && q <= 5e9L);
	assert_true(hist__quantile(h, 0.9, &q) && q <= 2.032e8L);
	assert_true(hist__quantile(h, 0, &q) && q == 2e8L);
	assert_true(hist__quantile(h, 1, &q) && q == 5e9L);
	assert_false(hist__quantile(h, 0.999, &q));
	assert_true(hist__sum(h) == 90 * 2e8L + 10 * 5e9L);
	hist__free(h);
}

static void t_equal_values_are_exact(void **state)
{
	struct hist *h = hist__new(QBPF_HIST_NS);
	long double q;

	(void)state;
	for (int i = 0; i < 10000; i++)
		assert_int_equal(hist__add(h, 1000001), 0);
	for (double p = 0; p <= 0.9999; p += 0.0333) {
		assert_true(hist__quantile(h, p, &q));
		assert_true(q == 1000001);
	}
	assert_true(hist__mean(h) == 1000001);
	hist__free(h);
}

static void t_support(void **state)
{
	struct hist *h = hist__new(QBPF_HIST_NS);
	long double q;

	(void)state;
	for (int i = 1; i <= 10000; i++) {
		assert_int_equal(hist__add(h, 100 + i), 0);
		assert_int_equal(hist__quantile(h, 0.5, &q), i >= 2);
		assert_int_equal(hist__quantile(h, 0.9, &q), i >= 10);
		assert_int_equal(hist__quantile(h, 0.99, &q), i >= 100);
		assert_int_equal(hist__quantile(h, 0.999, &q), i >= 1000);
		assert_int_equal(hist__quantile(h, 0.9999, &q), i >= 10000);
	}
	assert_false(hist__quantile(h, -0.1, &q));
	assert_false(hist__quantile(h, 1.1, &q));
	assert_false(hist__quantile(h, NAN, &q));
	hist__free(h);
}

static void t_nan_and_infinity(void **state)
{
	struct hist *h = hist__new(QBPF_HIST_F64);
	struct hist_bucket *b;
	long double q;
	size_t n;

	(void)state;
	assert_int_equal(hist__add(h, bits_of(NAN)), 0);
	assert_int_equal(hist__add(h, bits_of(-NAN)), 0);
	assert_int_equal(hist__count(h), 2);
	assert_int_equal(hist__nan(h), 2);
	assert_false(hist__quantile(h, 0.5, &q));
	assert_true(hist__sum(h) == 0 && hist__mean(h) == 0);
	assert_true(hist__min(h) == 0 && hist__max(h) == 0);

	for (int i = 0; i < 100; i++)
		assert_int_equal(hist__add(h, bits_of(i < 50 ? -3.5 : 7.25)), 0);
	assert_int_equal(hist__count(h), 102);
	assert_true(hist__quantile(h, 0.5, &q) && q == -3.5L);
	assert_true(hist__mean(h) == (50 * 7.25L - 50 * 3.5L) / 100);
	assert_true(hist__max(h) == 7.25L);

	assert_int_equal(hist__add(h, bits_of(INFINITY)), 0);
	assert_true(isinf(hist__max(h)) && hist__max(h) > 0);
	assert_true(hist__min(h) == -3.5L);
	assert_true(isinf(hist__sum(h)));
	assert_int_equal(hist__add(h, bits_of(-INFINITY)), 0);
	assert_true(isinf(hist__min(h)) && hist__min(h) < 0);
	assert_true(isnan(hist__sum(h)));
	assert_int_equal(hist__nan(h), 2);
	n = hist__buckets(h, &b);
	assert_int_equal(n, 4);
	assert_true(isinf(b[0].lo) && b[0].lo < 0 && b[0].n == 1);
	assert_true(isinf(b[3].hi) && b[3].n == 1);
	free(b);
	hist__free(h);
}

static void t_negative_zero(void **state)
{
	struct hist *h = hist__new(QBPF_HIST_F64);
	long double q;

	(void)state;
	assert_int_equal(hist__add(h, bits_of(-0.0)), 0);
	assert_int_equal(hist__add(h, bits_of(0.0)), 0);
	assert_int_equal(hist__count(h), 2);
	assert_true(hist__min(h) == 0 && !signbit(hist__min(h)));
	assert_true(hist__quantile(h, 0.5, &q) && q == 0 && !signbit(q));
	assert_true(hist__max(h) == 0 && hist__sum(h) == 0);
	hist__free(h);
}

static void t_sums_are_exact(void **state)
{
	struct hist *h = hist__new(QBPF_HIST_NS);
	struct qbpf_hist_cell cell = {.sum_lo = 5, .sum_hi = 1, .min = 1ull << 63, .max = ~0ull};

	(void)state;
	/* The kernel's sum has wrapped once. */
	cell.n[0] = cell.n[31] = 1;
	assert_int_equal(hist__add_cell(h, 59, &cell), 0);
	assert_true(hist__sum(h) == 0x1p64L + 5);
	assert_true(hist__max(h) == 18446744073709551615.0L);
	/* Adding two cells carries. */
	cell.sum_lo = ~0ull - 3;
	cell.sum_hi = 0;
	assert_int_equal(hist__add_cell(h, 59, &cell), 0);
	assert_true(hist__sum(h) == 0x1p65L + 1);
	hist__free(h);

	h = hist__new(QBPF_HIST_INT);
	assert_int_equal(hist__add(h, INT64_MAX), 0);
	assert_int_equal(hist__add(h, (uint64_t)INT64_MIN), 0);
	assert_true(hist__sum(h) == -1);
	assert_true(hist__min(h) == (long double)INT64_MIN);
	assert_true(hist__max(h) == (long double)INT64_MAX);
	hist__free(h);

	/* 0.1 added ten times: the sum of what was stored, not a sum of rounding errors. */
	h = hist__new(QBPF_HIST_F64);
	for (int i = 0; i < 10; i++)
		assert_int_equal(hist__add(h, bits_of(0.1)), 0);
	assert_true(hist__sum(h) == 10 * (long double)0.1);
	hist__free(h);
}

/* A cell is read while the kernel updates it: whatever lags, figures stay in bounds. */
static void t_torn_cells(void **state)
{
	struct qbpf_hist_cell cell = {.min = ~0ull};
	struct hist *h = hist__new(QBPF_HIST_NS);
	long double q;

	(void)state;
	assert_int_equal(hist__add_cell(h, 3, &cell), 0); /* created, never hit */
	assert_int_equal(hist__count(h), 0);
	cell.n[4] = cell.n[9] = 3; /* buckets ahead of min and max */
	assert_int_equal(hist__add_cell(h, 3, &cell), 0);
	assert_int_equal(hist__count(h), 6);
	/* octave 3: [128, 256) in steps of 4 */
	assert_true(hist__min(h) >= 128 + 16 && hist__min(h) < 128 + 20);
	assert_true(hist__max(h) >= 128 + 36 && hist__max(h) < 128 + 40);
	assert_true(hist__quantile(h, 0.5, &q) && q >= hist__min(h) && q <= hist__max(h));
	hist__free(h);
}

static void t_impossible_cells(void **state)
{
	struct qbpf_hist_cell cell = {.min = 1, .max = 1, .n = {1}};
	struct hist *ns = hist__new(QBPF_HIST_NS), *f = hist__new(QBPF_HIST_F64);

	(void)state;
	assert_int_equal(hist__add_cell(ns, 60, &cell), -EINVAL);
	assert_int_equal(hist__add_cell(ns, QBPF_HIST_NEGATIVE, &cell), -EINVAL);
	assert_int_equal(hist__add_cell(f, 2048, &cell), -EINVAL);
	assert_int_equal(hist__add_cell(f, 2047 | QBPF_HIST_NEGATIVE, &cell), 0);
	assert_int_equal(hist__merge(ns, f), -EINVAL);
	assert_int_equal(hist__subtract(ns, f), -EINVAL);
	assert_int_equal(hist__count(ns), 0);
	hist__free(ns);
	hist__free(f);
	hist__free(NULL);
}

/* Raw bits of negative doubles carry their sign in min and max, as the kernel may write them. */
static void t_negative_double_cell(void **state)
{
	struct qbpf_hist_cell cell = {.min = bits_of(-1.5), .max = bits_of(-1.75)};
	struct hist *h = hist__new(QBPF_HIST_F64);

	(void)state;
	cell.n[16] = cell.n[24] = 1;
	assert_int_equal(hist__add_cell(h, 1023 | QBPF_HIST_NEGATIVE, &cell), 0);
	assert_true(hist__min(h) == -1.75L);
	assert_true(hist__max(h) == -1.5L);
	hist__free(h);
}

/* The difference of two states is the histogram of what came between. */
static void t_subtract(void **state)
{
	static const double qs[] = {0, 0.1, 0.5, 0.9, 0.99, 0.999, 1};

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct hist *all = hist__new(QBPF_HIST_INT), *before = NULL;
		long double q, *x = calloc(3000, sizeof(*x));
		__int128 sum = 0;
		size_t n = 0;

		for (int i = 0; i < 5000; i++) {
			uint64_t v = round % 2 ? signed_all() : lognormal();

			if (i == 2000)
				before = hist__clone(all);
			if (i >= 2000) {
				x[n++] = (int64_t)v;
				sum += (int64_t)v;
			}
			assert_int_equal(hist__add(all, v), 0);
		}
		assert_int_equal(hist__subtract(all, before), 0);
		assert_int_equal(hist__count(all), n);
		assert_true(hist__sum(all) == sum);
		qsort(x, n, sizeof(*x), compare);
		for (size_t i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
			size_t rank = (size_t)ceill(qs[i] * n - 1e-9L);

			assert_true(hist__quantile(all, qs[i], &q));
			/* min and max of the difference are known to the bucket: 1/32. */
			if (qs[i] == 0 || qs[i] == 1)
				assert_true(fabsl(q - x[rank ? rank - 1 : 0]) <=
					    fabsl(q) / 32 + fabsl(x[rank ? rank - 1 : 0]) / 32);
			else
				assert_near(q, x[(rank ? rank : 1) - 1]);
			assert_true(q >= hist__min(all) && q <= hist__max(all));
		}
		hist__free(all);
		hist__free(before);
		free(x);
	}
}

static void t_merge(void **state)
{
	struct hist *a = hist__new(QBPF_HIST_NS), *b = hist__new(QBPF_HIST_NS);
	struct hist *both = hist__new(QBPF_HIST_NS);
	long double qa, qb;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		uint64_t v = pareto();

		assert_int_equal(hist__add(i % 3 ? a : b, v), 0);
		assert_int_equal(hist__add(both, v), 0);
	}
	assert_int_equal(hist__merge(a, b), 0);
	assert_int_equal(hist__count(a), hist__count(both));
	assert_true(hist__sum(a) == hist__sum(both));
	assert_true(hist__min(a) == hist__min(both) && hist__max(a) == hist__max(both));
	assert_true(hist__quantile(a, 0.99, &qa) && hist__quantile(both, 0.99, &qb) && qa == qb);
	hist__free(a);
	hist__free(b);
	hist__free(both);
}

/* Rows cover exactly the histogram, ascend, and are no more than asked for. */
static void check_rows(enum qbpf_hist_kind kind, uint64_t (*next)(void), size_t max)
{
	struct hist *h = hist__new(kind);
	uint64_t total = 0, columns[12];
	struct hist_row *rows;
	size_t n;

	for (int i = 0; i < 3000; i++)
		assert_int_equal(hist__add(h, next()), 0);
	n = hist_rows__make(h, max, &rows);
	assert_true(n >= 1 && n <= max);
	for (size_t i = 0; i < n; i++) {
		total += rows[i].n;
		assert_true(rows[i].lo <= rows[i].hi);
		assert_true(i == 0 || rows[i].lo >= rows[i - 1].hi);
		assert_true(!rows[i].gap || rows[i].n == 0);
	}
	assert_int_equal(total, 3000);
	assert_true(rows[0].lo <= hist__min(h));
	assert_true(rows[n - 1].hi >= hist__max(h));
	free(rows);
	assert_true(hist_rows__columns(h, columns, 12));
	total = 0;
	for (int i = 0; i < 12; i++)
		total += columns[i];
	assert_int_equal(total, 3000);
	hist__free(h);
}

static void t_rows(void **state)
{
	static uint64_t (*const ns[])(void) = {uniform_5_10us, lognormal, pareto,   bimodal,
					       all_magnitudes, small,	  constant, powers};
	struct hist *h = hist__new(QBPF_HIST_NS);
	struct hist_row *rows;

	(void)state;
	for (size_t max = 9; max <= 40; max += 6) {
		for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
			check_rows(QBPF_HIST_NS, ns[i], max);
		check_rows(QBPF_HIST_INT, signed_all, max);
		check_rows(QBPF_HIST_F64, prices, max);
		check_rows(QBPF_HIST_F64, around_zero, max);
		check_rows(QBPF_HIST_F64, doubles_all, max);
	}
	assert_int_equal(hist_rows__make(h, 20, &rows), 0);
	assert_null(rows);
	/* Small integers are told one by one. */
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(hist__add(h, i), 0);
	assert_int_equal(hist_rows__make(h, 20, &rows), 6);
	for (unsigned int i = 0; i < 6; i++)
		assert_true(rows[i].lo == i && rows[i].hi == i + 1 && rows[i].n == 1);
	free(rows);
	hist__free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_distributions),
	    cmocka_unit_test(t_slow_tenth),
	    cmocka_unit_test(t_equal_values_are_exact),
	    cmocka_unit_test(t_support),
	    cmocka_unit_test(t_nan_and_infinity),
	    cmocka_unit_test(t_negative_zero),
	    cmocka_unit_test(t_sums_are_exact),
	    cmocka_unit_test(t_torn_cells),
	    cmocka_unit_test(t_impossible_cells),
	    cmocka_unit_test(t_negative_double_cell),
	    cmocka_unit_test(t_subtract),
	    cmocka_unit_test(t_merge),
	    cmocka_unit_test(t_rows),
	};

	return cmocka_run_group_tests_name("model_hist", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Intervals against simulation: with known distributions, how often does the interval hold the true
 * value? Every draw is seeded, so each figure here is the same on every run.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/interval.h"

static uint64_t seed;
static struct confidence c95, c99;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static void t_binomial(void **state)
{
	(void)state;
	/* Tables: B(10, 0.5). */
	assert_float_equal(binomial_cdf(0, 10, 0.5), 1 / 1024.0, 1e-12);
	assert_float_equal(binomial_cdf(4, 10, 0.5), 386 / 1024.0, 1e-12);
	assert_float_equal(binomial_cdf(9, 10, 0.5), 1023 / 1024.0, 1e-12);
	assert_float_equal(binomial_cdf(10, 10, 0.5), 1, 0);
	assert_float_equal(binomial_cdf(99, 100, 0.99), 1 - pow(0.99, 100), 1e-12);
	/* Fifty million trials: the normal distribution with continuity, to 1e-4. */
	assert_float_equal(binomial_cdf(25000000, 50000000, 0.5), 0.5, 1e-4);
	assert_float_equal(binomial_cdf(49500000, 50000000, 0.99), 0.5, 1e-3);
	assert_float_equal(binomial_cdf(49500000 + 1638, 50000000, 0.99), 0.99, 1e-3);
}

static void t_student(void **state)
{
	struct confidence sure;

	(void)state;
	assert_float_equal(t_quantile(0.975, INFINITY), 1.959964, 1e-5);
	assert_float_equal(t_quantile(0.995, INFINITY), 2.575829, 1e-5);
	assert_float_equal(t_quantile(0.975, 10), 2.228139, 1e-5);
	assert_float_equal(t_quantile(0.995, 31), 2.744042, 1e-5);
	assert_float_equal(t_quantile(0.005, 31), -2.744042, 1e-5);
	for (int df = 1; df < INTERVAL_WINDOWS; df++)
		assert_float_equal(c99.t[df] / t_quantile(0.995, df), 1, 1e-5);
	confidence__init(&sure, 1 - 1e-7);
	for (int df = 1; df < INTERVAL_WINDOWS; df++)
		assert_float_equal(sure.t[df] / t_quantile(1 - 0.5e-7, df), 1, 2e-3);
}

static void t_ranks(void **state)
{
	uint64_t lo, hi;

	(void)state;
	/* Median of 100 at 95 %: the classic 40 and 61. */
	quantile_ranks(100, 0.5, 1, &c95, &lo, &hi);
	assert_int_equal(lo, 40);
	assert_int_equal(hi, 61);
	/* Five values bound no median at 95 %: P(all above) = 1/32. Six do. */
	quantile_ranks(5, 0.5, 1, &c95, &lo, &hi);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 6);
	quantile_ranks(6, 0.5, 1, &c95, &lo, &hi);
	assert_int_equal(lo, 1);
	assert_int_equal(hi, 6);
	/* p99.9 of 1,000: nothing above is sure enough. */
	quantile_ranks(1000, 0.999, 1, &c99, &lo, &hi);
	assert_int_equal(hi, 1001);
	assert_true(lo > 990 && lo < 999);
	/* A design effect of 4 is the interval of a quarter of the values, on the scale of all. */
	quantile_ranks(400, 0.5, 4, &c95, &lo, &hi);
	assert_int_equal(lo, 160);
	assert_int_equal(hi, 244);
	quantile_ranks(100, 0.5, 1000, &c95, &lo, &hi);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 101);
	quantile_ranks(50000000, 0.99, 1, &c99, &lo, &hi);
	assert_in_range(lo, 49500000 - 1815, 49500000 - 1805);
	assert_in_range(hi, 49500000 + 1805, 49500000 + 1815);
}

/* One recording: n values, each at some time; what the windows see of it. */
struct sample {
	size_t n;
	double *x, *sorted;
	uint16_t *window;
};

enum process { INDEPENDENT, AUTOREGRESSIVE, BURSTY };

static int ascending(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

/* Log-normal around 10,000 whatever the process, so that all have the same true quantiles (BURSTY:
 * no closed form, see truth()). */
static void draw(struct sample *s, enum process how, double shift)
{
	double z = normal(), phi = 0.9, left = 0, burst = 0;

	for (size_t i = 0; i < s->n; i++) {
		if (how == AUTOREGRESSIVE)
			z = phi * z + sqrt(1 - phi * phi) * normal();
		else
			z = normal();
		if (how == BURSTY && left-- <= 0) {
			/* 30 values in a row, one stretch in ten is slow. */
			left = 29;
			burst = uniform() < 0.1;
		}
		s->x[i] = s->sorted[i] = 10000 * shift * exp(0.3 * z) * (burst > 0 ? 3 : 1);
		s->window[i] = i * INTERVAL_WINDOWS / s->n;
	}
	qsort(s->sorted, s->n, sizeof(double), ascending);
}

static struct sample sample__new(size_t n)
{
	return (struct sample){n, malloc(n * sizeof(double)), malloc(n * sizeof(double)),
			       malloc(n * sizeof(uint16_t))};
}

static void sample__clear(struct sample *s)
{
	free(s->x);
	free(s->sorted);
	free(s->window);
}

static double rank_of(const struct sample *s, uint64_t k)
{
	return k < 1 ? -INFINITY : k > s->n ? INFINITY : s->sorted[k - 1];
}

static double quantile(struct sample *s, double q, const struct confidence *c, struct interval *ci)
{
	uint32_t above[INTERVAL_WINDOWS] = {0}, all[INTERVAL_WINDOWS] = {0};
	uint64_t lo, hi;
	double v;

	v = rank_of(s, (uint64_t)ceil(q * s->n));
	for (size_t i = 0; i < s->n; i++) {
		all[s->window[i]]++;
		above[s->window[i]] += s->x[i] >= v;
	}
	quantile_ranks(s->n, q, design_effect(above, all, c), c, &lo, &hi);
	ci->lo = rank_of(s, lo);
	ci->hi = rank_of(s, hi);
	return v;
}

static double mean(const struct sample *s, const struct confidence *c, struct interval *ci)
{
	double num[INTERVAL_WINDOWS] = {0}, den[INTERVAL_WINDOWS] = {0}, sum = 0;

	for (size_t i = 0; i < s->n; i++) {
		num[s->window[i]] += s->x[i];
		den[s->window[i]]++;
		sum += s->x[i];
	}
	assert_true(ratio_interval(num, den, c, ci));
	return sum / s->n;
}

static double truth(enum process how, double q)
{
	double lo = 1000, hi = 1000000, mid = 0;

	for (int i = 0; i < 100; i++) {
		double z;

		mid = (lo + hi) / 2;
		z = log(mid / 10000) / 0.3;
		z = how != BURSTY ? erfc(-z / M_SQRT2) / 2
				  : 0.9 * erfc(-z / M_SQRT2) / 2 +
					0.1 * erfc(-(z - log(3) / 0.3) / M_SQRT2) / 2;
		if (z < q)
			lo = mid;
		else
			hi = mid;
	}
	return mid;
}

/* 400 runs at 95 %: 20 misses are nominal; over 33 has a chance of 0.2 % were they nominal. */
static void t_coverage(void **state)
{
	static const double qs[] = {0.5, 0.9, 0.99, 0.999};
	static const char *const names[] = {"independent", "autoregressive", "bursty"};
	struct sample s = sample__new(10000);
	struct interval ci;

	(void)state;
	for (enum process how = INDEPENDENT; how <= BURSTY; how++) {
		int quantile_miss[4] = {0}, mean_miss = 0;
		double mu = 10000 * exp(0.3 * 0.3 / 2) * (how == BURSTY ? 1.2 : 1);
		double want[4];

		for (int i = 0; i < 4; i++)
			want[i] = truth(how, qs[i]);
		seed = 0x9e3779b97f4a7c15ull;
		for (int r = 0; r < 400; r++) {
			draw(&s, how, 1);
			for (int i = 0; i < 4; i++) {
				quantile(&s, qs[i], &c95, &ci);
				quantile_miss[i] += want[i] < ci.lo || want[i] > ci.hi;
			}
			mean(&s, &c95, &ci);
			mean_miss += mu < ci.lo || mu > ci.hi;
		}
		print_message("# %s: p50 %d p90 %d p99 %d p99.9 %d mean %d of 400 missed\n",
			      names[how], quantile_miss[0], quantile_miss[1], quantile_miss[2],
			      quantile_miss[3], mean_miss);
		for (int i = 0; i < 4; i++)
			assert_in_range(quantile_miss[i], 0, 33);
		assert_in_range(mean_miss, 0, 33);
	}
	sample__clear(&s);
}

/* Without the design effect the same intervals are wrong, so the test above can fail. */
static void t_coverage_needs_the_effect(void **state)
{
	struct sample s = sample__new(10000);
	double want = truth(BURSTY, 0.9);
	int miss = 0;

	(void)state;
	seed = 42;
	for (int r = 0; r < 200; r++) {
		uint64_t lo, hi;

		draw(&s, BURSTY, 1);
		quantile_ranks(s.n, 0.9, 1, &c95, &lo, &hi);
		miss += want < rank_of(&s, lo) || want > rank_of(&s, hi);
	}
	assert_true(miss > 100);
	sample__clear(&s);
}

enum { MEAN, P50, P99, FIGURES };

static double figure(struct sample *s, int f, struct interval *ci)
{
	return f == MEAN ? mean(s, &c99, ci) : quantile(s, f == P50 ? 0.5 : 0.99, &c99, ci);
}

/* Two recordings, one `shift` times the other: how often is the change told from none? */
static void found(enum process how, double shift, int runs, int n[FIGURES])
{
	struct sample a = sample__new(10000), b = sample__new(10000);

	seed = 99;
	for (int r = 0; r < runs; r++) {
		draw(&a, how, 1);
		draw(&b, how, shift);
		for (int f = 0; f < FIGURES; f++) {
			struct interval ia, ib, d;
			double va = figure(&a, f, &ia), vb = figure(&b, f, &ib);

			d = change_interval(va, ia, vb, ib);
			n[f] += d.lo > 0 || d.hi < 0;
		}
	}
	sample__clear(&a);
	sample__clear(&b);
}

static void t_changes(void **state)
{
	(void)state;
	/* Nothing changed, at 99 %: 2 of 200 are nominal, over 7 has a chance of 0.1 %. */
	for (enum process how = INDEPENDENT; how <= BURSTY; how++) {
		int n[FIGURES] = {0};

		found(how, 1, 200, n);
		print_message("# process %d: mean %d p50 %d p99 %d of 200 false\n", how, n[MEAN],
			      n[P50], n[P99]);
		for (int f = 0; f < FIGURES; f++)
			assert_in_range(n[f], 0, 7);
	}
	for (int slower = 0; slower < 2; slower++) {
		int n[FIGURES] = {0};

		found(INDEPENDENT, slower ? 1.1 : 1 / 1.1, 50, n);
		for (int f = 0; f < FIGURES; f++)
			assert_in_range(n[f], 49, 50);
	}
}

static void t_edges(void **state)
{
	double num[INTERVAL_WINDOWS] = {0}, den[INTERVAL_WINDOWS] = {0};
	uint32_t none[INTERVAL_WINDOWS] = {0}, all[INTERVAL_WINDOWS] = {0};
	struct interval ci, open = {-INFINITY, INFINITY}, point = {5, 5};

	(void)state;
	assert_false(ratio_interval(num, den, &c99, &ci));
	assert_true(ratio_interval(num, NULL, &c99, &ci));
	assert_true(ci.lo == 0 && ci.hi == 0);
	assert_float_equal(design_effect(none, none, &c99), 1, 0);
	all[3] = none[3] = 10;
	assert_float_equal(design_effect(none, all, &c99), 1, 0);
	/* All that is slow fell into one window of many. */
	for (int i = 0; i < INTERVAL_WINDOWS; i++)
		all[i] = 100;
	none[3] = 100;
	assert_true(design_effect(none, all, &c99) > 90);
	/* A bound that one side lacks is lacking in the change. */
	ci = change_interval(5, point, 6, open);
	assert_true(isinf(ci.hi) && ci.lo == -1);
	ci = change_interval(5, point, 6, (struct interval){5.5, INFINITY});
	assert_true(isinf(ci.hi));
	assert_float_equal(ci.lo, 0.1, 1e-9);
	ci = difference_interval(5, point, 7, (struct interval){7, 7});
	assert_true(ci.lo == 2 && ci.hi == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_binomial),
	    cmocka_unit_test(t_student),
	    cmocka_unit_test(t_ranks),
	    cmocka_unit_test(t_coverage),
	    cmocka_unit_test(t_coverage_needs_the_effect),
	    cmocka_unit_test(t_changes),
	    cmocka_unit_test(t_edges),
	};

	confidence__init(&c95, 0.95);
	confidence__init(&c99, 0.99);
	return cmocka_run_group_tests_name("model_interval", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interval.c - confidence intervals for samples that are not independent. */
#include <math.h>

#include "model/interval.h"

#define SCALES 4 /* windows alone, in twos, fours and eights */
/* Deviations of less than this many longer stretches say nothing that the shorter ones do not. */
#define FEW 16

/*
 * The continued fraction of the regularised incomplete beta function, evaluated from the front
 * (Lentz). Converges in about sqrt(max(a, b)) steps for x below the mean.
 */
static long double beta_fraction(long double a, long double b, long double x)
{
	const long double tiny = 1e-300L;
	long double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabsl(d) < tiny ? tiny : d);
	f = d;
	for (int m = 1; m < 200000; m++) {
		long double m2 = 2.0L * m, step;
		long double even = m * (b - m) * x / ((a + m2 - 1) * (a + m2));
		long double odd = -(a + m) * (a + b + m) * x / ((a + m2) * (a + m2 + 1));

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabsl(d) < tiny ? tiny : d);
		c = fabsl(c) < tiny ? tiny : c;
		f *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabsl(d) < tiny ? tiny : d);
		c = fabsl(c) < tiny ? tiny : c;
		step = d * c;
		f *= step;
		if (fabsl(step - 1) < 1e-15L)
			break;
	}
	return f;
}

static double incomplete_beta(long double a, long double b, long double x)
{
	long double front;
	int sign;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = expl(lgammal_r(a + b, &sign) - lgammal_r(a, &sign) - lgammal_r(b, &sign) +
		     a * logl(x) + b * log1pl(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double binomial_cdf(uint64_t k, uint64_t n, double p)
{
	if (k >= n)
		return 1;
	return incomplete_beta(n - k, k + 1, 1 - p);
}

static double t_cdf(double x, double df)
{
	double tail;

	if (isinf(df))
		return 0.5 * erfc(-x / sqrt(2));
	tail = 0.5 * incomplete_beta(df / 2, 0.5, df / (df + x * x));
	return x > 0 ? 1 - tail : tail;
}

static double t_quantile_within(double p, double df, double lo, double hi)
{
	while (hi - lo > 1e-9 * (1 + fabs(hi))) {
		double mid = (lo + hi) / 2;

		if (t_cdf(mid, df) < p)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

double t_quantile(double p, double df)
{
	return t_quantile_within(p, df, -1e8, 1e8);
}

/* Student's t of many degrees of freedom from the normal's (Abramowitz and Stegun 26.7.5). */
static double t_of_many(double z, double df)
{
	double z2 = z * z;

	return z * (1 + (z2 + 1) / 4 / df + (5 * z2 * z2 + 16 * z2 + 3) / 96 / df / df +
		    (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / 384 / df / df / df);
}

void confidence__init(struct confidence *c, double level)
{
	c->level = level;
	c->z = t_quantile((1 + level) / 2, INFINITY);
	c->t[0] = INFINITY;
	c->t[1] = t_quantile((1 + level) / 2, 1);
	/* It falls to the normal's. */
	for (int df = 2; df < INTERVAL_WINDOWS; df++)
		c->t[df] = df < 32 ? t_quantile_within((1 + level) / 2, df, c->z, c->t[df - 1])
				   : t_of_many(c->z, df);
}

/*
 * The variance of sum(num) / sum(den) between windows taken `step` at a time: each one's residual
 * num - ratio * den, squared (Cochran, Sampling Techniques, 6.4). Times sum(den) squared. *n: in how
 * many of them there was anything.
 */
static double residual_variance(const double *num, const double *den, double ratio, size_t step,
				int *n)
{
	double sum = 0;

	*n = 0;
	for (size_t w = 0; w < INTERVAL_WINDOWS; w += step) {
		double r = 0, d = 0;

		for (size_t i = w; i < w + step; i++) {
			d += den ? den[i] : 1;
			r += num[i] - ratio * (den ? den[i] : 1);
		}
		sum += r * r;
		*n += d != 0;
	}
	return *n > 1 ? sum * *n / (*n - 1) : INFINITY;
}

/* The greatest half width over the scales, times sum(den); each with its own Student's t. */
static double half_width(const double *num, const double *den, double ratio,
			 const struct confidence *c)
{
	double half = 0, var, h;
	int n;

	for (int s = 0; s < SCALES; s++) {
		var = residual_variance(num, den, ratio, (size_t)1 << s, &n);
		if (s && n < FEW)
			break;
		h = n > 1 ? c->t[n - 1] * sqrt(var) : INFINITY;
		half = h > half ? h : half;
	}
	return half;
}

double design_effect(const uint32_t *above, const uint32_t *all, const struct confidence *c)
{
	double num[INTERVAL_WINDOWS], den[INTERVAL_WINDOWS], sum = 0, n = 0, share, half, indep;

	for (size_t w = 0; w < INTERVAL_WINDOWS; w++) {
		sum += num[w] = above[w];
		n += den[w] = all[w];
	}
	if (sum <= 0 || sum >= n)
		return 1;
	share = sum / n;
	half = half_width(num, den, share, c);
	indep = c->z * sqrt(n * share * (1 - share));
	return half > indep ? half * half / (indep * indep) : 1;
}

/* The smallest k with P(B <= k) >= p. */
static uint64_t binomial_quantile(double p, uint64_t n, double q)
{
	double mean = n * q, far = 40 * sqrt(mean * (1 - q)) + 40;
	uint64_t lo = mean > far ? mean - far : 0, hi = mean + far < n ? mean + far : n;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (binomial_cdf(mid, n, q) >= p)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

void quantile_ranks(uint64_t n, double q, double deff, const struct confidence *c, uint64_t *lo,
		    uint64_t *hi)
{
	uint64_t eff = deff > 1 ? (uint64_t)((double)n / deff) : n, l, h;
	double alpha = (1 - c->level) / 2;

	*lo = 0;
	*hi = n + 1;
	if (!eff)
		return;
	/* X(l) <= quantile unless fewer than l values are: P(B <= l - 1) <= alpha. */
	l = binomial_quantile(alpha, eff, q);
	if (binomial_cdf(l, eff, q) <= alpha)
		l++;
	/* quantile <= X(h) unless h or more values are below it: P(B >= h) <= alpha. */
	h = binomial_quantile(1 - alpha, eff, q) + 1;
	if (eff == n) {
		*lo = l;
		*hi = h;
		return;
	}
	*lo = l ? (uint64_t)floorl((long double)n * l / eff) : 0;
	*hi = h <= eff ? (uint64_t)ceill((long double)n * h / eff) : n + 1;
}

bool ratio_interval(const double *num, const double *den, const struct confidence *c,
		    struct interval *out)
{
	double sum = 0, n = 0, ratio, half;

	for (size_t w = 0; w < INTERVAL_WINDOWS; w++) {
		sum += num[w];
		n += den ? den[w] : 1;
	}
	if (n <= 0)
		return false;
	ratio = sum / n;
	half = half_width(num, den, ratio, c) / n;
	out->lo = ratio - half;
	out->hi = ratio + half;
	return true;
}

struct interval difference_interval(double a, struct interval ia, double b, struct interval ib)
{
	return (struct interval){
	    .lo = b - a - hypot(b - ib.lo, ia.hi - a),
	    .hi = b - a + hypot(ib.hi - b, a - ia.lo),
	};
}

struct interval change_interval(double a, struct interval ia, double b, struct interval ib)
{
	struct interval la = {ia.lo > 0 ? log(ia.lo) : -INFINITY, log(ia.hi)};
	struct interval lb = {ib.lo > 0 ? log(ib.lo) : -INFINITY, log(ib.hi)};
	struct interval d = difference_interval(log(a), la, log(b), lb);

	return (struct interval){expm1(d.lo), expm1(d.hi)};
}

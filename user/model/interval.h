/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Confidence intervals for samples that are not independent. All pure numbers: no spans here.
 *
 * Latencies come in bursts: a slow tick is followed by slow ticks. A thousand of them tell less than
 * a thousand independent ones would. How much less is measured on the recording itself: it is cut
 * into stretches of time (windows), and the variance between these is compared with what
 * independence would give. The windows are taken alone, in twos, in fours and so on, and the
 * greatest variance counts, so that bursts longer than a window are seen too.
 *
 * Quantiles: Woodruff's interval (the two order statistics whose ranks a binomial bounds), with the
 * effective sample size of Korn and Graubard in place of the real one. Ratios (means, rates,
 * shares): the ratio estimator of cluster sampling with Student's t. Differences of two: MOVER
 * (Zou and Donner), which needs nothing but the two intervals.
 */
#ifndef QBPF_MODEL_INTERVAL_H
#define QBPF_MODEL_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Windows of a recording: WINDOWS, WINDOWS/2 .. WINDOWS/8 stretches are compared. */
#define INTERVAL_WINDOWS 256

#define INTERVAL_SCALES 4

struct interval {
	double lo, hi; /* -INFINITY, INFINITY: the sample has no bound on that side */
};

/* How sure an interval is to be, with what follows from that. */
struct confidence {
	double level;		    /* 0.99 */
	double z;		    /* standard deviations on each side */
	double t[INTERVAL_WINDOWS]; /* the same by degrees of freedom of a measured deviation */
};

void confidence__init(struct confidence *c, double level);

/* P(B <= k) for a binomial of n trials with chance p. */
double binomial_cdf(uint64_t k, uint64_t n, double p);
/* x with P(T <= x) = p for Student's t; df infinite: the normal distribution. */
double t_quantile(double p, double df);

/*
 * How many times the variance of sum(above)/sum(all) exceeds that of as many independent trials, at
 * the given confidence: from INTERVAL_WINDOWS counts each. At least 1.
 */
double design_effect(const uint32_t *above, const uint32_t *all, const struct confidence *c);

/*
 * Ranks of the order statistics that enclose quantile q of the distribution behind n values with
 * design effect deff. lo = 0: none is low enough; hi = n + 1: none is high enough.
 */
void quantile_ranks(uint64_t n, double q, double deff, const struct confidence *c, uint64_t *lo,
		    uint64_t *hi);

/* sum(num) / sum(den) of INTERVAL_WINDOWS windows; den NULL: every window counts 1, the mean of num.
 * Of den that is all in one window the bounds are missing. False: there is no ratio. */
bool ratio_interval(const double *num, const double *den, const struct confidence *c,
		    struct interval *out);

/*
 * Of b / a - 1, from each one's value and interval, a and b above 0. A bound that is missing on a
 * side is missing in the result.
 */
struct interval change_interval(double a, struct interval ia, double b, struct interval ib);
/* Of b - a. */
struct interval difference_interval(double a, struct interval ia, double b, struct interval ib);

#endif

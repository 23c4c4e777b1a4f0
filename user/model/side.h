/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One side of a comparison: what a trace or a summary document says of each span and of each place
 * in the call tree, each figure with its interval. diff has two of them, check one and perhaps a
 * baseline.
 *
 * A trace gives exact figures, and intervals that know how latencies hang together. A summary has
 * percentiles within 1.6 %, no times, so its intervals take spans to be independent, and there are
 * none of rates, totals and shares.
 */
#ifndef QBPF_MODEL_SIDE_H
#define QBPF_MODEL_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "model/interval.h"

struct dist;

enum side_class {
	SIDE_TIME,    /* durations */
	SIDE_INSTANT, /* counted, no more */
	SIDE_VALUE,   /* plain numbers */
};

#define SIDE_NONE      UINT32_MAX
#define SIDE_UNKNOWN   UINT64_MAX
#define SIDE_QUANTILES 5  /* p50 p90 p99 p99.9 p99.99, which a summary has */
#define SIDE_Q_MAX     16 /* those and what was asked for besides */

extern const double side_quantiles[SIDE_QUANTILES];

struct side_bucket {
	double lo, hi;
	uint64_t n;
};

/* Sums by stretch of time. */
struct side_windows {
	double total[INTERVAL_WINDOWS], self[INTERVAL_WINDOWS];
	uint32_t count[INTERVAL_WINDOWS];
	uint32_t above[][INTERVAL_WINDOWS]; /* by quantile: durations not below it */
};

struct side_item {
	char *name;
	enum side_class class;
	bool node;
	bool keyed;	 /* nests in nothing: no self, no share */
	uint32_t span;	 /* index of the span's item; its own where it is one */
	uint32_t parent; /* index of the node around it; SIDE_NONE: outermost */
	uint32_t first;	 /* of a span its nodes: SIDE_NONE, or an index */
	uint32_t next;	 /* of a node the next of its span */
	uint64_t count;
	bool measured; /* the figures below are there: at least one duration or value */
	double total, self, min, max;
	/* What its parent's shares refer to: total, or that of the children where these have more,
	 * because it never ended. */
	double time;
	double
	    *time_windows; /* the same by window, where it is not windows->total; NULL: not known */
	uint64_t lost, open, orphan_ends, abandoned; /* SIDE_UNKNOWN; nodes have none */
	const struct dist *dist;		     /* of a trace */
	struct side_bucket *buckets;		     /* of a summary; NULL: it has none */
	size_t nbuckets;
	double q[SIDE_QUANTILES];  /* of a summary; NAN: too few */
	bool told[SIDE_QUANTILES]; /* the summary says so; else it does not say */
	struct side_windows *windows;
};

struct side {
	char *path;
	bool trace;
	double seconds;
	struct side_item *items; /* spans, then nodes: each behind the node around it */
	size_t nspans, n;
	double roots_ns;       /* time of all outermost spans */
	double *roots_windows; /* the same by window; NULL: not known */
	uint64_t lost;	       /* in all; SIDE_UNKNOWN */
	bool has_gpu;	       /* records of the GPU were made */
	bool gpu_ended;	       /* and then no more, though the program went on, or so it may be */
	uint64_t gpu_lost;     /* of these; SIDE_UNKNOWN */
	uint64_t skipped;      /* left out on purpose, where a summary tells */
	uint32_t sample;       /* one outermost span in so many was recorded; 0, 1: all */
	bool clean;	       /* the recording was closed */
	bool inexact;	       /* a distribution had to give up bits (0.025 %) */
	char *slow;	       /* the rule that chose what was recorded; NULL: none */
	double q[SIDE_Q_MAX];
	size_t nq;
	struct side_source *source; /* what the figures are read from */
};

/* `extra`: quantiles beyond the five, each in (0, 1); at most SIDE_Q_MAX - SIDE_QUANTILES are taken.
 * "-": a summary on stdin. -EBADMSG: damaged; else as the system says. */
int side__load(const char *path, const double *extra, size_t nextra, struct side **out,
	       struct err *e);
void side__free(struct side *s);

/* Names from the outermost span down, joined by '/'. malloc'ed; NULL: no memory. */
char *side__path(const struct side *s, size_t item);

enum figure_kind {
	FIG_COUNT,
	FIG_RATE, /* per second */
	FIG_TOTAL,
	FIG_SELF,
	FIG_TOTAL_RATE, /* per second of the recording */
	FIG_SELF_RATE,
	FIG_SHARE,
	FIG_MIN,
	FIG_MEAN,
	FIG_SELF_MEAN,
	FIG_QUANTILE,
	FIG_MAX,
	FIG_LOST,
	FIG_OPEN,
	FIG_ORPHAN_ENDS,
	FIG_ABANDONED,
	FIG_KINDS
};

struct figure {
	enum figure_kind kind;
	double q;
};

enum figure_dim {
	DIM_TIME,  /* ns */
	DIM_COUNT, /* how often */
	DIM_RATE,  /* per second */
	DIM_SHARE, /* of something, 1 is all of it */
	DIM_VALUE, /* a span's own numbers */
};

/* "p99.9", "total/s" ...; false: no such figure. */
bool figure__parse(const char *word, size_t len, struct figure *out);
#define FIGURE_NAME 24
char *figure__name(char buf[FIGURE_NAME], struct figure f);
enum figure_dim figure__dim(struct figure f, enum side_class class);
/* Of the recording as it is, not of the program: nothing to be unsure of. */
bool figure__is_fact(struct figure f);

enum estimate_state {
	EST_ABSENT,  /* such an item has no such figure: `why` */
	EST_UNKNOWN, /* it has one, but this side does not tell: `why` */
	EST_TOO_FEW, /* the sample cannot support it: it takes `needs` */
	EST_KNOWN,
};

struct estimate {
	enum estimate_state state;
	double value;
	bool has_interval;
	struct interval ci;
	uint64_t n; /* how many values it rests on */
	uint64_t needs;
	const char *why;
};

void side__estimate(const struct side *s, size_t item, struct figure f, const struct confidence *c,
		    struct estimate *out);

/* Records of the GPU, where there are any. */
void side__gpu_lost(const struct side *s, struct estimate *out);

/* One line on what the figures do not cover, or NULL when they cover all. malloc'ed. */
char *side__caveat(const struct side *s);

#endif

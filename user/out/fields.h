/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The field table: every figure of a span and of a node, with its key in JSON, its heading in
 * tables and the one function that computes it. The report, the JSON document and the
 * full-screen view read figures only through it, so that they cannot disagree.
 */
#ifndef QBPF_OUT_FIELDS_H
#define QBPF_OUT_FIELDS_H

#include "model/snapshot.h"
#include "model/tree.h"
#include "out/units.h"

/* What a span's histogram holds. */
enum row_class {
	ROW_SPAN,    /* durations */
	ROW_INSTANT, /* intervals between hits */
	ROW_VALUE,   /* the values themselves */
	ROW_CLASSES
};

#define ROW_QUANTILES 5 /* p50 p90 p99 p99.9 p99.99 */

/* All figures of one span, computed once per snapshot. */
struct span_row {
	const struct snap_span *span;
	size_t index; /* in the snapshot */
	enum row_class class;
	uint64_t count, nan;
	double rate;  /* per second */
	double share; /* of all traced time, 0..1; negative: has none */
	uint64_t in_hist;
	long double sum, min, mean, max;
	bool has_q[ROW_QUANTILES];
	long double q[ROW_QUANTILES];
};

struct span_rows {
	struct span_row *rows;
	size_t n;
};

/* Rows in the order of the spans. 0 or -ENOMEM. `t` is the snapshot's tree. */
int span_rows__make(struct span_rows *r, const struct snapshot *s, const struct tree *t);
void span_rows__clear(struct span_rows *r);
/* None of its sites is armed and none ever was hit: no row, its sites are among the refused. */
bool span_row__refused(const struct span_row *r);

enum field_type {
	FIELD_TEXT,
	FIELD_COUNT,
	FIELD_RATE,
	FIELD_MEASURE, /* ns, or the plain value of a ROW_VALUE; carries the mark of the floor */
	FIELD_TOTAL,   /* the same, a sum: no mark */
	FIELD_SHARE,
};

/* One figure: absent (the feature is), unknown (the sample cannot support it), or a number. */
enum field_state { FIELD_ABSENT, FIELD_UNKNOWN, FIELD_KNOWN };

struct field_value {
	enum field_state state;
	bool is_ns;	  /* in JSON the key ends in _ns */
	bool below_floor; /* not to be told from an empty span */
	const char *text;
	long double num;
};

enum span_field {
	SF_NAME,
	SF_KIND,
	SF_COUNT,
	SF_RATE,
	SF_SUM,
	SF_MIN,
	SF_MEAN,
	SF_P50,
	SF_P90,
	SF_P99,
	SF_P999,
	SF_P9999,
	SF_MAX,
	SF_SHARE,
	SF_FLOOR,
	SF_OPEN,
	SF_ABANDONED,
	SF_ORPHAN_ENDS,
	SF_NODE_OVERFLOW,
	SF_KEY_RESTARTS,
	SF_KEY_TIMEOUTS,
	SF_NAN,
	SF_N
};

enum node_field {
	NF_NAME,
	NF_COUNT,
	NF_SUM,
	NF_SELF,
	NF_MIN,
	NF_MEAN,
	NF_P99,
	NF_MAX,
	NF_SHARE,
	NF_N
};

struct field {
	const char *json;    /* NULL: not in the document */
	const char *heading; /* of a column, or the words after a number */
	enum field_type type;
};

extern const struct field span_fields[SF_N];
extern const struct field node_fields[NF_N];

void span_field__get(const struct span_row *r, enum span_field f, struct field_value *v);
void node_field__get(const struct tree_node *n, enum node_field f, struct field_value *v);

/* The figure as a table shows it: "-" when absent or unknown, "~" before what is below the
 * floor. Text fields give v->text. */
const char *field__format(const struct field *f, const struct field_value *v, char buf[UNIT_TEXT]);

const char *span_kind_name(enum span_kind kind);

#endif

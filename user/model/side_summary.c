/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * side_summary.c - a side from a summary document, schema qbpf.summary/1 (docs/json.md). Of several
 * documents (attach -i writes a line per interval, each the state since the start) the last counts.
 *
 * The document may come from anywhere: each value's type is checked, and the first that is wrong is
 * named with its place.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/side_load.h"

#define SUMMARY_MAX (256u << 20) /* bytes */
#define DEPTH_MAX   256

struct reading {
	struct side *s;
	struct err *e;
	char place[160]; /* "spans[3]" */
	int err;	 /* the first fault, which e tells */
};

static void __attribute__((format(printf, 2, 3))) fault(struct reading *r, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	if (r->err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->err = err_set(r->e, -EBADMSG, "%s: %s", r->s->path, text);
}

static void no_memory(struct reading *r)
{
	if (!r->err)
		r->err = err_set(r->e, -ENOMEM, "out of memory");
}

/* A number, or an infinity as text; `missing` when the key is not there or null. */
static double number_or(struct reading *r, const json_t *object, const char *key, double missing)
{
	const json_t *v = json_object_get(object, key);

	if (!v || json_is_null(v))
		return missing;
	if (json_is_string(v) && !strcmp(json_string_value(v), "inf"))
		return INFINITY;
	if (json_is_string(v) && !strcmp(json_string_value(v), "-inf"))
		return -INFINITY;
	if (!json_is_number(v))
		fault(r, "%s.%s is no number", r->place, key);
	return json_number_value(v);
}

static uint64_t whole(struct reading *r, const json_t *v, const char *what)
{
	double d = json_number_value(v);

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return json_integer_value(v);
	/* Counts beyond 2^63 - 1 are reals. */
	if (json_is_real(v) && d >= 9.2e18 && d < 18446744073709551615.0)
		return d;
	fault(r, "%s%s%s is no count", r->place, *what ? "." : "", what);
	return 0;
}

static uint64_t count_or(struct reading *r, const json_t *object, const char *key, uint64_t missing)
{
	const json_t *v = json_object_get(object, key);

	return v && !json_is_null(v) ? whole(r, v, key) : missing;
}

static const char *name_of(struct reading *r, const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "name"));

	if (name)
		return name;
	fault(r, "%s has no name", r->place);
	return "";
}

static double edge(const json_t *v)
{
	const char *text = json_string_value(v);

	return !text ? json_number_value(v) : *text == '-' ? -INFINITY : INFINITY;
}

/* [[low, high, count], ...] in ascending order. */
static void histogram(struct reading *r, struct side_item *it, const json_t *array)
{
	size_t n = json_array_size(array);

	if (!array || json_is_null(array) || (json_is_array(array) && !n))
		return;
	if (!json_is_array(array))
		return fault(r, "%s.histogram is no array", r->place);
	it->buckets = calloc(n, sizeof(*it->buckets));
	if (!it->buckets)
		return no_memory(r);
	for (size_t i = 0; i < n && !r->err; i++) {
		const json_t *b = json_array_get(array, i), *lo = json_array_get(b, 0);
		const json_t *hi = json_array_get(b, 1), *count = json_array_get(b, 2);
		struct side_bucket *out = &it->buckets[i];

		if (json_array_size(b) != 3 || !(json_is_number(lo) || json_is_string(lo)) ||
		    !(json_is_number(hi) || json_is_string(hi)))
			return fault(r, "%s.histogram[%zu] is not [low, high, count]", r->place, i);
		out->lo = edge(lo);
		out->hi = edge(hi);
		out->n = whole(r, count, "histogram");
		if (out->hi < out->lo || (i && out->lo < out[-1].lo))
			return fault(r, "%s.histogram[%zu] is not in ascending order", r->place, i);
		if (out->n > INT64_MAX / n)
			return fault(r, "%s.histogram[%zu] is no count", r->place, i);
	}
	it->nbuckets = n;
}

static void percentiles(struct reading *r, struct side_item *it, const json_t *o)
{
	static const char *const keys[SIDE_QUANTILES] = {"p50", "p90", "p99", "p999", "p9999"};
	char key[16];

	for (int i = 0; i < SIDE_QUANTILES; i++) {
		snprintf(key, sizeof(key), "%s%s", keys[i], it->class == SIDE_VALUE ? "" : "_ns");
		it->q[i] = number_or(r, o, key, NAN);
		it->told[i] = json_object_get(o, key);
	}
}

static void measures(struct reading *r, struct side_item *it, const json_t *o)
{
	const char *unit = it->class == SIDE_VALUE ? "" : "_ns";
	char key[16];

	snprintf(key, sizeof(key), "min%s", unit);
	it->min = number_or(r, o, key, NAN);
	snprintf(key, sizeof(key), "max%s", unit);
	it->max = number_or(r, o, key, NAN);
	snprintf(key, sizeof(key), "sum%s", unit);
	it->total = number_or(r, o, key, NAN);
	it->measured = it->count && !isnan(it->min) && !isnan(it->max) && !isnan(it->total);
	if (!it->measured)
		it->min = it->max = it->total = 0;
	percentiles(r, it, o);
	if (it->measured)
		histogram(r, it, json_object_get(o, "histogram"));
}

/* Lost to these figures, and lost to the recording that was made (null: not known). */
static void read_lost(struct reading *r, struct side_item *it, const json_t *to_file,
		      const json_t *by_probe)
{
	const json_t *v = json_object_get(by_probe, it->name);

	if (!by_probe || json_is_null(to_file))
		return;
	it->lost = to_file ? whole(r, to_file, "lost") : 0;
	if (!v)
		return;
	snprintf(r->place, sizeof(r->place), "lost.by_probe");
	if (__builtin_add_overflow(it->lost, whole(r, v, ""), &it->lost))
		it->lost = SIDE_UNKNOWN - 1;
}

static void read_span(struct reading *r, const json_t *o, const json_t *by_probe)
{
	const char *kind = json_string_value(json_object_get(o, "kind"));
	struct side_item *it = side__add(r->s, name_of(r, o));
	const json_t *v;

	if (!it)
		return no_memory(r);
	it->class = kind && !strcmp(kind, "value") ? SIDE_VALUE : SIDE_TIME;
	/* A function whose returns are not seen is an instant too: it has intervals. */
	if ((kind && !strcmp(kind, "instant")) || json_object_get(o, "interval"))
		it->class = SIDE_INSTANT;
	it->keyed = kind && !strcmp(kind, "keyed");
	v = json_object_get(o, "count");
	if (v)
		it->count = whole(r, v, "count");
	else
		fault(r, "%s has no count", r->place);
	if (it->class != SIDE_INSTANT)
		measures(r, it, o);
	it->open = count_or(r, o, "open", 0);
	it->abandoned = count_or(r, o, "abandoned", 0);
	it->orphan_ends = count_or(r, o, "orphan_ends", 0);
	/* What report has from a trace. */
	it->self = number_or(r, o, "self_ns", NAN);
	read_lost(r, it, json_object_get(o, "lost"), by_probe);
}

static int by_name(const void *pa, const void *pb)
{
	const struct side_item *a = *(const struct side_item *const *)pa;
	const struct side_item *b = *(const struct side_item *const *)pb;

	return strcmp(a->name, b->name);
}

/* A node knows its span by name. */
static void link_spans(struct reading *r)
{
	struct side *s = r->s;
	const struct side_item **spans = malloc((s->nspans + 1) * sizeof(*spans));
	double *self = calloc(s->nspans + 1, sizeof(*self));

	if (!spans || !self) {
		free(spans);
		free(self);
		return no_memory(r);
	}
	for (size_t i = 0; i < s->nspans; i++)
		spans[i] = &s->items[i];
	qsort(spans, s->nspans, sizeof(*spans), by_name);
	for (size_t i = s->nspans; i < s->n; i++) {
		const struct side_item *key = &s->items[i], **at;

		at = bsearch(&key, spans, s->nspans, sizeof(*spans), by_name);
		s->items[i].span = at ? (*at)->span : SIDE_NONE;
		s->items[i].class = at ? (*at)->class : SIDE_TIME;
		if (!at || s->items[i].class != SIDE_TIME)
			continue;
		self[(*at)->span] += s->items[i].self;
	}
	/* A document of attach has self times in the tree alone. */
	for (size_t i = 0; i < s->nspans; i++)
		if (isnan(s->items[i].self))
			s->items[i].self = self[i];
	free(self);
	free(spans);
}

static void read_nodes(struct reading *r, const json_t *array, uint32_t parent, int depth)
{
	const json_t *o;
	size_t i;

	if (array && !json_is_array(array))
		fault(r, "tree is no array");
	if (depth > DEPTH_MAX)
		fault(r, "the tree is more than %d deep", DEPTH_MAX);
	if (r->err)
		return;
	json_array_foreach(array, i, o)
	{
		uint32_t index = r->s->n;
		struct side_item *it;

		snprintf(r->place, sizeof(r->place), "a place in the tree");
		it = side__add(r->s, name_of(r, o));
		if (!it)
			return no_memory(r);
		snprintf(r->place, sizeof(r->place), "tree: %.100s", it->name);
		it->node = true;
		it->parent = parent;
		it->count = count_or(r, o, "count", 0);
		it->total = number_or(r, o, "sum_ns", 0);
		it->self = number_or(r, o, "self_ns", 0);
		it->min = number_or(r, o, "min_ns", NAN);
		it->max = number_or(r, o, "max_ns", NAN);
		it->measured = it->count && !isnan(it->min);
		percentiles(r, it, o);
		read_nodes(r, json_object_get(o, "children"), index, depth + 1);
		if (r->err)
			return;
	}
}

/* What report says of the trace it has read, and attach of the one it has made. */
static void read_trace(struct reading *r, const json_t *trace)
{
	struct side *s = r->s;
	const char *slow;
	uint64_t lost;

	snprintf(r->place, sizeof(r->place), "trace");
	s->clean = !json_is_false(json_object_get(trace, "clean"));
	lost = count_or(r, trace, "lost", trace && !s->clean ? SIDE_UNKNOWN : 0);
	if (s->lost == SIDE_UNKNOWN || lost == SIDE_UNKNOWN)
		s->lost = SIDE_UNKNOWN;
	else if (__builtin_add_overflow(s->lost, lost, &s->lost))
		s->lost = SIDE_UNKNOWN - 1;
	/* attach's own figures are of all spans, whatever went into its trace. */
	if (!json_object_get(trace, "recorded_by"))
		return;
	s->skipped = count_or(r, trace, "skipped", 0);
	slow = json_string_value(json_object_get(trace, "slow"));
	s->slow = slow ? strdup(slow) : NULL;
	if (slow && !s->slow)
		no_memory(r);
}

static void read_gpu(struct reading *r, const json_t *gpu, const json_t *lost)
{
	const json_t *agent;
	const char *end;
	size_t i;

	if (!gpu && !lost)
		return;
	r->s->has_gpu = true;
	if (lost)
		r->s->gpu_lost = whole(r, lost, "");
	json_array_foreach(json_object_get(gpu, "agents"), i, agent)
	{
		end = json_string_value(json_object_get(agent, "end"));
		r->s->gpu_ended |= end && (!strcmp(end, "fatal") || !strcmp(end, "sudden"));
	}
}

static void read_document(struct reading *r, const json_t *root)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	const json_t *spans = json_object_get(root, "spans"), *o;
	const json_t *lost = json_object_get(root, "lost");
	const json_t *by_probe = json_object_get(lost, "by_probe");
	size_t i;

	if (!schema)
		return fault(r, "no summary: it has no schema");
	if (strcmp(schema, "qbpf.summary/1"))
		return fault(r, "a %.60s document, not a qbpf.summary/1", schema);
	if (!json_is_array(spans))
		return fault(r, "spans is no array");
	snprintf(r->place, sizeof(r->place), "the document");
	r->s->seconds = number_or(r, root, "duration_ns", 0) / 1e9;
	snprintf(r->place, sizeof(r->place), "lost");
	r->s->lost = count_or(r, lost, "events", SIDE_UNKNOWN);
	snprintf(r->place, sizeof(r->place), "lost.by_source.gpu");
	read_gpu(r, json_object_get(root, "gpu"),
		 json_object_get(json_object_get(lost, "by_source"), "gpu"));
	read_trace(r, json_object_get(root, "trace"));
	json_array_foreach(spans, i, o)
	{
		snprintf(r->place, sizeof(r->place), "spans[%zu]", i);
		read_span(r, o, by_probe);
		if (r->err)
			return;
	}
	r->s->nspans = r->s->n;
	read_nodes(r, json_object_get(root, "tree"), SIDE_NONE, 0);
	if (!r->err)
		link_spans(r);
}

static int read_all(struct side *s, FILE *f, char **text, size_t *len, struct err *e)
{
	size_t cap = 0, n;
	char *p;

	*text = NULL;
	*len = 0;
	do {
		if (*len == cap) {
			cap = cap ? cap * 2 : 65536;
			if (cap > SUMMARY_MAX)
				return err_set(e, -EFBIG, "%s: no summary is so long", s->path);
			p = realloc(*text, cap);
			if (!p)
				return err_set(e, -ENOMEM, "out of memory");
			*text = p;
		}
		n = fread(*text + *len, 1, cap - *len, f);
		*len += n;
	} while (n);
	if (ferror(f))
		return err_set(e, -errno, "%s: %s", s->path, strerror(errno));
	return 0;
}

int side__load_summary(struct side *s, FILE *f, struct err *e)
{
	struct reading r = {.s = s, .e = e};
	json_t *root = NULL, *next;
	size_t len, at = 0;
	json_error_t je;
	int lines = 0;
	char *text;
	int err = read_all(s, f, &text, &len, e);

	if (err)
		goto out;
	while (at < len) {
		next = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK, &je);
		if (!next) {
			/* jansson's own words quote the text, control characters and all. */
			err = err_set(e, -EBADMSG, "%s: line %d, column %d: no JSON, or cut short",
				      s->path, lines + je.line, je.column);
			goto out;
		}
		json_decref(root);
		root = next;
		for (size_t i = 0; i < (size_t)je.position; i++)
			lines += text[at + i] == '\n';
		at += je.position;
		for (; at < len && strchr(" \t\r\n", text[at]); at++)
			lines += text[at] == '\n';
	}
	read_document(&r, root);
	err = r.err;
out:
	json_decref(root);
	free(text);
	return err;
}

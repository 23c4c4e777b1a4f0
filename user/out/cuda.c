// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cuda.c - what the host asked of CUDA.
 *
 * Bytes over time is a bandwidth only where the call lasts as long as the copy: an asynchronous call
 * returns before, so it has none.
 */
#include "out/cuda.h"

#include <inttypes.h>
#include <string.h>

#include "out/grid.h"
#include "out/units.h"

static const char *span_name(const struct snapshot *s, uint32_t span)
{
	return span < s->nspans && s->spans[span].name ? s->spans[span].name : "?";
}

/* Without "cuda:", in sections that are of nothing else. */
static const char *call_name(const struct snapshot *s, uint32_t span)
{
	const char *name = span_name(s, span);

	return strncmp(name, "cuda:", 5) ? name : name + 5;
}

/* Bytes per second; negative: there is no such figure. */
static double bandwidth(const struct snapshot *s, const struct cuda_transfer *t)
{
	if (t->class == QBPF_CUDA_ALLOC || strstr(span_name(s, t->span), "Async") || !t->sums.ns ||
	    !t->sums.bytes || t->sums.unsized)
		return -1;
	return (double)t->sums.bytes / ((double)t->sums.ns / 1e9);
}

static char *bytes_text(char buf[UNIT_TEXT], long double bytes)
{
	return unit__bytes(buf, (uint64_t)(bytes + 0.5L));
}

static void put_transfers(const struct page *p, const struct cuda_calls *c, size_t most)
{
	static const char *const heads[] = {"CUDA copies and memory",
					    "direction",
					    "calls",
					    "failed",
					    "bytes",
					    "mean",
					    "largest",
					    "per s",
					    "in the call"};
	static const unsigned char spare[] = {6, 5, 3, 7, 8};
	struct grid *g = grid__new(COUNT_OF(heads));
	size_t n = most && most < c->ntransfers ? most : c->ntransfers;
	char a[UNIT_TEXT], rate[UNIT_TEXT + 4];

	for (size_t i = 0; g && i < COUNT_OF(heads); i++)
		grid__put(g, i, heads[i]);
	grid__spare(g, spare, COUNT_OF(spare));
	for (size_t i = 0; g && i < n; i++) {
		const struct cuda_transfer *t = &c->transfers[i];
		uint64_t sized = hist__count(t->sizes);
		double per_s = bandwidth(p->s, t);

		grid__put(g, 0, call_name(p->s, t->span));
		grid__put(g, 1, t->dir == QBPF_CUDA_NO_DIR ? "-" : cuda_direction_name(t->dir));
		grid__put(g, 2, unit__count(a, t->sums.count));
		grid__put(g, 3, t->sums.failed ? unit__count(a, t->sums.failed) : "-");
		grid__put(g, 4, sized ? unit__bytes(a, t->sums.bytes) : "-");
		grid__put(g, 5, sized ? bytes_text(a, hist__mean(t->sizes)) : "-");
		grid__put(g, 6, sized ? bytes_text(a, hist__max(t->sizes)) : "-");
		snprintf(rate, sizeof(rate), "%s/s",
			 unit__bytes(a, per_s > 0 ? (uint64_t)per_s : 0));
		grid__put(g, 7, per_s > 0 ? rate : "-");
		grid__put(g, 8, unit__time(a, t->sums.ns));
	}
	fputc('\n', p->f);
	if (g)
		grid__write(g, p->f, p->width, p->utf8);
	grid__free(g);
	if (n < c->ntransfers)
		fprintf(p->f, "(%zu more not shown)\n", c->ntransfers - n);
}

#define SHAPE_TEXT 80

static char *shape(const struct cuda_kernel *k, char buf[SHAPE_TEXT])
{
	const uint32_t *v = k->grid;

	if (k->any_grid)
		snprintf(buf, SHAPE_TEXT, "others");
	else
		snprintf(buf, SHAPE_TEXT,
			 "%" PRIu32 "x%" PRIu32 "x%" PRIu32 " of %" PRIu32 "x%" PRIu32 "x%" PRIu32,
			 v[0], v[1], v[2], v[3], v[4], v[5]);
	return buf;
}

static void put_kernels(const struct page *p, const struct cuda_calls *c, size_t most)
{
	static const char *const heads[] = {"CUDA kernel", "launches", "failed",
					    "grid",	   "by",       "in the call"};
	static const unsigned char spare[] = {4, 3, 2};
	struct grid *g = grid__new(COUNT_OF(heads));
	size_t n = most && most < c->nkernels ? most : c->nkernels;
	char a[UNIT_TEXT], text[SHAPE_TEXT];

	for (size_t i = 0; g && i < COUNT_OF(heads); i++)
		grid__put(g, i, heads[i]);
	grid__spare(g, spare, COUNT_OF(spare));
	for (size_t i = 0; g && i < n; i++) {
		const struct cuda_kernel *k = &c->kernels[i];

		grid__put(g, 0, k->name);
		grid__put(g, 1, unit__count(a, k->sums.count));
		grid__put(g, 2, k->sums.failed ? unit__count(a, k->sums.failed) : "-");
		grid__put(g, 3, shape(k, text));
		grid__put(g, 4, call_name(p->s, k->span));
		grid__put(g, 5, unit__time(a, k->sums.ns));
	}
	fputc('\n', p->f);
	if (g)
		grid__write(g, p->f, p->width, p->utf8);
	grid__free(g);
	if (n < c->nkernels)
		fprintf(p->f, "(%zu more kernels or grids not shown)\n", c->nkernels - n);
}

static void put_failures(const struct page *p, const struct cuda_calls *c, size_t most)
{
	size_t n = most && most < c->nfailures ? most : c->nfailures;

	fputs("\nCUDA calls that failed:\n", p->f);
	for (size_t i = 0; i < n; i++) {
		const struct cuda_failure *f = &c->failures[i];
		const char *call = call_name(p->s, f->span);
		const char *name = cuda_error_name(f->code, cuda_name_is_driver(call));

		fputs("  ", p->f);
		page__text(p, call);
		fprintf(p->f, ": %" PRIu64 " times error %" PRIu32, f->count, f->code);
		fprintf(p->f, name ? " (%s)\n" : "\n", name);
	}
	if (n < c->nfailures)
		fprintf(p->f, "  (%zu more not shown)\n", c->nfailures - n);
}

void page__cuda(const struct page *p, const struct cuda_calls *c, size_t most)
{
	if (c->ntransfers)
		put_transfers(p, c, most);
	if (c->nkernels)
		put_kernels(p, c, most);
	if (c->nfailures)
		put_failures(p, c, most);
	if (c->lost)
		fprintf(p->f, "\n%" PRIu64 " CUDA calls are not in these figures: no room\n",
			c->lost);
	if (c->names_lost)
		fprintf(p->f, "\n%" PRIu64 " kernels' names were lost: no room\n", c->names_lost);
}

static void put_sums(struct json_doc *d, json_t *o, const struct cuda_sums *sums)
{
	json_put(d, o, "count", json_count(sums->count));
	json_put(d, o, "failed", json_count(sums->failed));
	if (sums->untold)
		json_put(d, o, "untold", json_count(sums->untold));
	json_put(d, o, "sum_ns", json_count(sums->ns));
	json_put(d, o, "legacy_stream", json_count(sums->legacy));
}

static json_t *json_transfer(struct json_doc *d, const struct snapshot *s,
			     const struct cuda_transfer *t)
{
	json_t *o = json_object();
	double per_s = bandwidth(s, t);

	json_put_text(d, o, "call", call_name(s, t->span));
	if (t->dir != QBPF_CUDA_NO_DIR)
		json_put(d, o, "direction", json_string(cuda_direction_id(t->dir)));
	put_sums(d, o, &t->sums);
	if (t->sums.unsized)
		json_put(d, o, "unsized", json_count(t->sums.unsized));
	json_put(d, o, "bytes", json_count(t->sums.bytes));
	if (t->sums.failed_bytes)
		json_put(d, o, "failed_bytes", json_count(t->sums.failed_bytes));
	if (hist__count(t->sizes)) {
		json_put(d, o, "min_bytes", json_measure(hist__min(t->sizes)));
		json_put(d, o, "max_bytes", json_measure(hist__max(t->sizes)));
	}
	if (per_s > 0)
		json_put(d, o, "bytes_per_s", json_real(per_s));
	return o;
}

static json_t *json_transfers(struct json_doc *d, const struct snapshot *s, uint32_t class)
{
	json_t *array = json_array();

	for (size_t i = 0; i < s->cuda->ntransfers; i++)
		if (s->cuda->transfers[i].class == class)
			json_append(d, array, json_transfer(d, s, &s->cuda->transfers[i]));
	return array;
}

static json_t *json_three(struct json_doc *d, const uint32_t v[3])
{
	json_t *array = json_array();

	for (int i = 0; i < 3; i++)
		json_append(d, array, json_count(v[i]));
	return array;
}

static json_t *json_kernels(struct json_doc *d, const struct snapshot *s)
{
	json_t *array = json_array();

	for (size_t i = 0; i < s->cuda->nkernels; i++) {
		const struct cuda_kernel *k = &s->cuda->kernels[i];
		json_t *o = json_object();

		json_put_text(d, o, "name", k->name);
		json_put(d, o, "named", json_boolean(k->named));
		json_put_text(d, o, "call", call_name(s, k->span));
		put_sums(d, o, &k->sums);
		if (!k->any_grid) {
			json_put(d, o, "grid", json_three(d, k->grid));
			json_put(d, o, "block", json_three(d, k->grid + 3));
		}
		json_append(d, array, o);
	}
	return array;
}

static json_t *json_failures(struct json_doc *d, const struct snapshot *s)
{
	json_t *array = json_array();

	for (size_t i = 0; i < s->cuda->nfailures; i++) {
		const struct cuda_failure *f = &s->cuda->failures[i];
		const char *call = call_name(s, f->span);
		json_t *o = json_object();

		json_put_text(d, o, "call", call);
		json_put(d, o, "code", json_count(f->code));
		json_put_text(d, o, "error", cuda_error_name(f->code, cuda_name_is_driver(call)));
		json_put(d, o, "count", json_count(f->count));
		json_append(d, array, o);
	}
	return array;
}

/* The calls themselves are spans: here is only how many there were. */
static json_t *json_calls(struct json_doc *d, const struct snapshot *s)
{
	json_t *array = json_array();

	for (size_t i = 0; i < s->nspans; i++) {
		uint64_t n = s->spans[i].kind == SPAN_CUDA ? hist__count(s->spans[i].hist) : 0;
		uint64_t failed = 0;
		json_t *o;

		if (!n)
			continue;
		for (size_t k = 0; k < s->cuda->nfailures; k++)
			failed += s->cuda->failures[k].span == i ? s->cuda->failures[k].count : 0;
		o = json_object();
		json_put_text(d, o, "call", call_name(s, (uint32_t)i));
		json_put(d, o, "count", json_count(n));
		json_put(d, o, "failed", json_count(failed));
		json_put(d, o, "sum_ns", json_measure(hist__sum(s->spans[i].hist)));
		json_append(d, array, o);
	}
	return array;
}

json_t *json_cuda(struct json_doc *d, const struct snapshot *s)
{
	json_t *o = json_object();

	json_put(d, o, "calls", json_calls(d, s));
	json_put(d, o, "errors", json_failures(d, s));
	json_put(d, o, "copies", json_transfers(d, s, QBPF_CUDA_COPY));
	json_put(d, o, "memsets", json_transfers(d, s, QBPF_CUDA_MEMSET));
	json_put(d, o, "allocations", json_transfers(d, s, QBPF_CUDA_ALLOC));
	json_put(d, o, "kernels", json_kernels(d, s));
	json_put(d, o, "lost", json_count(s->cuda->lost));
	if (s->cuda->names_lost)
		json_put(d, o, "names_lost", json_count(s->cuda->names_lost));
	return o;
}

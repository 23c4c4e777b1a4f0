/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* html_data.c - the page's document: what was recorded, where, and what of it is missing. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot.h"
#include "out/html_data.h"
#include "out/text.h"

#define EXACT_MAX 9007199254740992.0L /* 2^53: up to here a double holds each integer */

json_t *html_count(uint64_t n)
{
	char digits[24];

	if (n <= (uint64_t)EXACT_MAX)
		return json_integer((json_int_t)n);
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
	return json_string(digits);
}

json_t *html_number(long double v)
{
	char digits[64];

	if (isnan(v))
		return json_null();
	if (isinf((double)v))
		return json_string(v > 0 ? "Infinity" : "-Infinity");
	if (v != floorl(v) || fabsl(v) > 1e36L)
		return json_real((double)v);
	if (fabsl(v) <= EXACT_MAX)
		return json_integer((json_int_t)v);
	snprintf(digits, sizeof(digits), "%.0Lf", v);
	return json_string(digits);
}

json_t *html_text(const char *s)
{
	size_t len = strlen(s ? s : ""), keep = len;
	char *cut, *valid;
	json_t *text = NULL;

	if (len > HTML_NAME_MAX) {
		keep = HTML_NAME_MAX;
		/* Not in the middle of a character. */
		while (keep > HTML_NAME_MAX - 4 && ((unsigned char)s[keep] & 0xc0) == 0x80)
			keep--;
	}
	cut = malloc(keep + 48);
	if (!cut)
		return NULL;
	memcpy(cut, s ? s : "", keep);
	cut[keep] = '\0';
	if (keep < len)
		snprintf(cut + keep, 48, "\xe2\x80\xa6 (%zu bytes more)", len - keep);
	valid = text__valid(cut);
	if (valid)
		text = json_string(valid);
	free(valid);
	free(cut);
	return text;
}

json_t *html_time(const struct html_data *d, uint64_t ns)
{
	uint64_t start = d->a->info->meta.start_ns;

	return html_count(ns > start ? ns - start : 0);
}

int32_t html_data__row(const struct html_data *d, uint32_t span)
{
	return span && span <= d->a->info->nspans ? d->row_of[span - 1] : HTML_NO_ROW;
}

static json_t *recording(struct html_data *d)
{
	const struct trace_info *info = d->a->info;
	const struct trace_meta *m = &info->meta;
	struct json_doc *doc = &d->doc;
	json_t *o = json_object();
	uint64_t error_ns = 0;

	json_put(doc, o, "version", html_text(m->qbpf_version));
	json_put(doc, o, "command", html_text(m->command));
	json_put(doc, o, "hostname", html_text(m->hostname));
	json_put(doc, o, "kernel", html_text(m->kernel));
	json_put(doc, o, "cpu", html_text(m->cpu));
	json_put(doc, o, "cpus", json_integer(m->cpus));
	json_put(doc, o, "clocksource", html_text(m->clocksource));
	json_put(doc, o, "realtime_ns", html_count(m->realtime_ns));
	json_put(doc, o, "start_ns", html_count(m->start_ns));
	json_put(doc, o, "duration_ns", html_time(d, info->end_ns));
	json_put(doc, o, "sample", json_integer(m->sample));
	json_put(doc, o, "slow", html_text(m->slow));
	json_put(doc, o, "ring_bytes", html_count(m->ring_bytes));
	json_put(doc, o, "clean", json_boolean(info->clean));
	json_put(doc, o, "cut_at", html_count(info->cut_at));
	json_put(doc, o, "file_bytes", html_count(info->file_bytes));
	json_put(doc, o, "unknown_blocks", html_count(info->unknown_blocks));
	json_put(doc, o, "threads", html_count(info->nthreads));
	for (size_t i = 0; i < info->nclocks; i++)
		if (info->clocks[i].error_ns > error_ns)
			error_ns = info->clocks[i].error_ns;
	json_put(doc, o, "clock_error_ns", html_count(error_ns));
	return o;
}

static json_t *processes(struct html_data *d)
{
	const struct trace_info *info = d->a->info;
	json_t *array = json_array();

	for (size_t i = 0; i < info->nprocesses && i < HTML_SITES_MAX; i++) {
		json_t *o = json_object();

		json_put(&d->doc, o, "tgid", json_integer(info->processes[i].tgid));
		json_put(&d->doc, o, "comm", html_text(info->processes[i].comm));
		json_put(&d->doc, o, "exe", html_text(info->processes[i].exe));
		json_append(&d->doc, array, o);
	}
	return array;
}

/* UINT64_MAX: not known, and so not there. */
static void put_known(struct html_data *d, json_t *o, const char *key, uint64_t n)
{
	if (n != UINT64_MAX)
		json_put(&d->doc, o, key, html_count(n));
}

/*
 * The time that tracing took from the target, all its threads together: what was hit, at its price.
 * `whole`: every span has a price and a count; otherwise it was at least this.
 */
static void put_overhead(struct html_data *d, json_t *o)
{
	const struct analysis *a = d->a;
	long double ns = 0;
	bool whole = true;

	for (size_t i = 0; i < a->info->nspans; i++) {
		const struct an_span *s = &a->spans[i];
		uint64_t n = s->counted == UINT64_MAX ? s->held : s->counted;

		ns += (long double)n * s->def->price_ns;
		if (s->counted == UINT64_MAX || (n && !s->def->price_ns))
			whole = false;
	}
	if (ns > 0) {
		json_put(&d->doc, o, "price_ns", html_number(ns));
		json_put(&d->doc, o, "price_whole", json_boolean(whole));
	}
}

static json_t *totals(struct html_data *d)
{
	const struct analysis *a = d->a;
	json_t *o = json_object();

	json_put(&d->doc, o, "held", html_count(a->held));
	put_known(d, o, "counted", a->counted);
	put_known(d, o, "lost", a->lost);
	put_known(d, o, "skipped", a->skipped);
	json_put(&d->doc, o, "exact", json_boolean(a->exact));
	json_put(&d->doc, o, "backwards", html_count(a->backwards));
	json_put(&d->doc, o, "unknown", html_count(a->unknown));
	put_overhead(d, o);
	return o;
}

/* "name at 0x1234 in /path", and why not. */
static void put_refused(struct html_data *d, json_t *root)
{
	const struct trace_info *info = d->a->info;
	json_t *array = json_array();
	uint64_t n = 0, armed = 0;

	for (size_t i = 0; i < info->nprobes; i++) {
		const struct trace_probe *p = &info->probes[i];
		json_t *o;

		if (p->armed) {
			armed++;
			continue;
		}
		if (n++ >= HTML_SITES_MAX)
			continue;
		o = json_object();
		if (p->span && p->span <= info->nspans)
			json_put(&d->doc, o, "name", html_text(info->spans[p->span - 1].name));
		if (p->mapping < info->nmappings)
			json_put(&d->doc, o, "path", html_text(info->mappings[p->mapping].path));
		json_put(&d->doc, o, "off", html_count(p->off));
		json_put(&d->doc, o, "reason", html_text(p->reason));
		json_append(&d->doc, array, o);
	}
	json_put(&d->doc, root, "refused", array);
	json_put(&d->doc, root, "refused_sites", html_count(n));
	json_put(&d->doc, root, "armed_sites", html_count(armed));
}

int html_data__make(struct html_data *d, const struct analysis *a)
{
	json_t *root = json_object(), *windows = json_object();

	*d = (struct html_data){.a = a, .doc = {.root = root}};
	d->row_of = malloc((a->info->nspans + 1) * sizeof(*d->row_of));
	d->order = malloc((a->info->nspans + 1) * sizeof(*d->order));
	if (!root || !d->row_of || !d->order) {
		json_decref(windows);
		return -ENOMEM;
	}
	json_put(&d->doc, root, "recording", recording(d));
	json_put(&d->doc, root, "processes", processes(d));
	json_put(&d->doc, root, "totals", totals(d));
	put_refused(d, root);
	json_put(&d->doc, windows, "n", html_count(a->nwindows));
	json_put(&d->doc, windows, "from_ns", html_time(d, a->start_ns));
	json_put(&d->doc, windows, "to_ns", html_time(d, a->end_ns));
	json_put(&d->doc, root, "windows", windows);
	html_data__spans(d);
	html_data__tree(d);
	html_data__slowest(d);
	html_data__gpu(d);
	return d->doc.failed ? -ENOMEM : 0;
}

void html_data__clear(struct html_data *d)
{
	json_decref(d->doc.root);
	free(d->row_of);
	free(d->order);
	*d = (struct html_data){0};
}

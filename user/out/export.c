// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Formats by name, and what the exporters share: selection and names. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "out/export_impl.h"
#include "out/text.h"
#include "plan/glob.h"
#include "plan/span_name.h"

struct format {
	const char *name;
	const char *suffix;
	int (*write)(struct exporter *x);
	bool gpu; /* has a place for what the GPU did */
};

static const struct format formats[EXPORT_FORMATS] = {
    [EXPORT_PERFETTO] = {"perfetto", ".pftrace", export_perfetto, true},
    [EXPORT_CHROME] = {"chrome", ".json", export_chrome, true},
    [EXPORT_SPEEDSCOPE] = {"speedscope", ".speedscope.json", export_speedscope, false},
    [EXPORT_FOLDED] = {"folded", ".folded", export_folded, false},
    [EXPORT_CSV] = {"csv", ".csv", export_csv, true},
    [EXPORT_HGRM] = {"hgrm", ".hgrm", export_hgrm, false},
};

int export__parse_format(const char *name, enum export_format *f)
{
	for (unsigned int i = 0; i < EXPORT_FORMATS; i++)
		if (!strcmp(name, formats[i].name)) {
			*f = i;
			return 0;
		}
	return -EINVAL;
}

int export__format_of_path(const char *path, enum export_format *f)
{
	size_t len = strlen(path), best = 0;

	for (unsigned int i = 0; i < EXPORT_FORMATS; i++) {
		size_t n = strlen(formats[i].suffix);

		if (n <= best || len <= n || strcasecmp(path + len - n, formats[i].suffix))
			continue;
		best = n;
		*f = i;
	}
	return best ? 0 : -EINVAL;
}

const char *export__format_name(enum export_format f)
{
	return formats[f].name;
}

/* --- names --------------------------------------------------------------------------------------- */

const char *exporter__span_name(const struct exporter *x, uint32_t span)
{
	return span && span <= x->info->nspans ? x->info->spans[span - 1].name : "";
}

const char *exporter__fit_name(struct exporter *x, uint32_t span, export_name make)
{
	if (!x->names[span])
		x->names[span] = make(exporter__span_name(x, span));
	return x->names[span];
}

/* A pid can be reused too: the last process of that id that had begun by then, else the first. */
size_t exporter__process_at(const struct exporter *x, uint32_t tgid, uint64_t ns)
{
	size_t best = x->info->nprocesses;

	for (size_t i = 0; i < x->info->nprocesses; i++) {
		const struct trace_process *p = &x->info->processes[i];

		if (p->tgid == tgid && (best == x->info->nprocesses || p->start_ns <= ns))
			best = i;
	}
	return best;
}

const struct trace_process *exporter__process(const struct exporter *x, uint32_t thread)
{
	const struct trace_thread *t = &x->info->threads[thread];
	size_t at = exporter__process_at(x, t->tgid, t->start_ns);

	return at < x->info->nprocesses ? &x->info->processes[at] : NULL;
}

static int compare_threads(const struct trace_thread *a, const struct trace_thread *b)
{
	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

static int by_tid(const void *a, const void *b, void *ctx)
{
	const struct trace_thread *threads = ctx;

	return compare_threads(&threads[*(const uint32_t *)a], &threads[*(const uint32_t *)b]);
}

static int sort_by_tid(struct exporter *x)
{
	size_t n = x->info->nthreads;

	x->by_tid = reallocarray(NULL, n + 1, sizeof(*x->by_tid));
	if (!x->by_tid)
		return exporter__no_memory(x);
	for (uint32_t i = 0; i < n; i++)
		x->by_tid[i] = i;
	qsort_r(x->by_tid, n, sizeof(*x->by_tid), by_tid, x->info->threads);
	return 0;
}

/* A tid that is reused is several threads: the last that was there, else the first that came. */
bool exporter__thread(const struct exporter *x, uint32_t tgid, uint32_t tid, uint64_t ns,
		      uint32_t *thread)
{
	const struct trace_thread *threads = x->info->threads, *t;
	const struct trace_thread want = {.tgid = tgid, .tid = tid, .start_ns = ns};
	size_t lo = 0, hi = x->info->nthreads;

	/* How many do not come after it. */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_threads(&threads[x->by_tid[mid]], &want) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo ? lo - 1 : 0; i <= lo && i < x->info->nthreads; i++) {
		t = &threads[x->by_tid[i]];
		if (t->tgid != tgid || t->tid != tid)
			continue;
		*thread = x->by_tid[i];
		return true;
	}
	return false;
}

bool exporter__beginner(const struct exporter *x, const struct event *ev, uint32_t *thread)
{
	return exporter__thread(x, x->info->threads[ev->thread].tgid, ev->begin_tid, ev->start_ns,
				thread) &&
	       *thread != ev->thread;
}

uint64_t exporter__zero_ns(const struct exporter *x)
{
	const struct trace_info *info = x->info;

	return info->nevents && info->first_ns < info->meta.start_ns ? info->first_ns
								     : info->meta.start_ns;
}

uint32_t export__pid(uint32_t tgid)
{
	return tgid ? tgid : EXPORT_MADE_UP_ID;
}

char *export__json(const char *s)
{
	char *valid = text__valid(s), *quoted;
	json_t *text = valid ? json_string(valid) : NULL;

	quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
	json_decref(text);
	free(valid);
	return quoted;
}

char *export__text(const char *s)
{
	char *valid = text__valid(s), *out, *o;

	if (!valid)
		return NULL;
	out = o = calloc(4, strlen(valid) + 1);
	for (const unsigned char *p = (const unsigned char *)valid; out && *p; p++) {
		/* U+0080 .. U+009F are control characters too. */
		if (*p == 0xc2 && p[1] < 0xa0) {
			o += sprintf(o, "\\x%02x", p[1]);
			p++;
		} else if (*p < 0x20 || *p == 0x7f) {
			o += sprintf(o, "\\x%02x", *p);
		} else {
			*o++ = (char)*p;
		}
	}
	if (out)
		*o = '\0';
	free(valid);
	return out;
}

/* --- selection ----------------------------------------------------------------------------------- */

static bool touches_range(const struct exporter *x, const struct event *ev)
{
	uint64_t end_ns = ev->end_ns > ev->start_ns ? ev->end_ns : ev->start_ns;

	return end_ns >= x->o->from_ns && (!x->o->to_ns || ev->start_ns <= x->o->to_ns);
}

bool exporter__wants(void *ctx, const struct event *ev)
{
	struct exporter *x = ctx;

	if (!ev->span || ev->span > x->info->nspans || ev->thread >= x->info->nthreads) {
		x->bad = true;
		x->bad_span = ev->span;
		x->bad_thread = ev->thread;
		return false;
	}
	return x->spans[ev->span] && x->threads[ev->thread] && touches_range(x, ev);
}

bool exporter__wants_loss(const struct exporter *x, const struct trace_loss *loss)
{
	if (loss->span > x->info->nspans || !(loss->lost || loss->skipped))
		return false;
	return (!loss->span || x->spans[loss->span]) && loss->to_ns >= x->o->from_ns &&
	       (!x->o->to_ns || loss->from_ns <= x->o->to_ns);
}

static const char *gpu_loss_name(const struct trace_gpu_loss *loss)
{
	static const char *const names[GPU_LOST_N] = {
	    [GPU_LOST_RING] = "GPU records, the ring was full",
	    [GPU_LOST_CUPTI] = "GPU records, dropped by CUPTI",
	    [GPU_LOST_BUFFERS] = "GPU records, no buffer was left",
	    [GPU_LOST_BROKEN] = "GPU records that cannot be read",
	    [GPU_LOST_DISK] = "GPU records, the disk was full",
	};

	return loss->reason < GPU_LOST_N ? names[loss->reason] : "GPU records";
}

bool exporter__next_loss(const struct exporter *x, size_t *at, struct trace_loss *loss,
			 const char **name)
{
	const struct trace_info *info = x->info;

	while (*at < info->nlosses) {
		*loss = info->losses[(*at)++];
		*name = exporter__span_name(x, loss->span);
		if (exporter__wants_loss(x, loss))
			return true;
	}
	while (*at - info->nlosses < info->ngpu_losses) {
		const struct trace_gpu_loss *g = &info->gpu_losses[(*at)++ - info->nlosses];

		*loss =
		    (struct trace_loss){.from_ns = g->from_ns, .to_ns = g->to_ns, .lost = g->lost};
		*name = gpu_loss_name(g);
		if (!x->o->span && exporter__wants_loss(x, loss))
			return true;
	}
	return false;
}

/* Where a walk ended: events of spans or threads that no table has are damage. */
static int settle(struct exporter *x, int err)
{
	if (err || !x->bad)
		return err;
	return err_set(x->e, -EBADMSG,
		       "an event of span %u and thread %u, which the trace does not have",
		       x->bad_span, x->bad_thread);
}

int exporter__walk(struct exporter *x, uint32_t thread, export_step step, void *ctx)
{
	struct nest_visit v = {
	    .want = exporter__wants,
	    .want_ctx = x,
	    .step = step,
	    .ctx = ctx,
	    .from_ns = x->o->from_ns,
	    .to_ns = x->o->to_ns,
	};

	return settle(x, nest__walk(x->r, thread, &v, x->e));
}

int exporter__each(struct exporter *x, export_each each, void *ctx)
{
	const struct event *events;
	size_t n;
	int err = trace_reader__start(x->r, TRACE_ALL_THREADS, false);

	if (err)
		return err_set(x->e, err, "cannot read the trace again: %s", strerror(-err));
	if (x->o->to_ns)
		trace_reader__between(x->r, x->o->from_ns, x->o->to_ns);
	while ((err = trace_reader__next(x->r, &events, &n, x->e)) > 0)
		for (size_t i = 0; i < n; i++) {
			if (!exporter__wants(x, &events[i]))
				continue;
			err = each(ctx, &events[i]);
			if (err < 0)
				return err;
		}
	return settle(x, err);
}

int exporter__no_memory(struct exporter *x)
{
	return err_set(x->e, -ENOMEM, "out of memory");
}

int exporter__written(struct exporter *x, int err)
{
	return err ? err_set(x->e, err, "cannot write: %s", strerror(-err)) : 0;
}

int exporter__finish(struct exporter *x, struct scribe *s, int err)
{
	int fault = scribe__flush(s);

	return fault ? exporter__written(x, fault) : err;
}

static int select_spans(struct exporter *x)
{
	bool any = false;

	x->spans = calloc(x->info->nspans + 1, sizeof(*x->spans));
	if (!x->spans)
		return exporter__no_memory(x);
	for (size_t i = 0; i < x->info->nspans; i++) {
		x->spans[i + 1] =
		    !x->o->span || span_name__means(x->o->span, x->info->spans[i].name);
		any = any || x->spans[i + 1];
	}
	if (any || !x->o->span)
		return 0;
	return err_set(x->e, -ENOENT, "no span of the trace matches %s", x->o->span);
}

static bool is_number(const char *s)
{
	for (; isdigit((unsigned char)*s); s++)
		if (!s[1])
			return true;
	return false;
}

static int select_threads(struct exporter *x)
{
	const char *want = x->o->thread;
	bool any = false, by_tid = want && is_number(want);
	unsigned long tid = by_tid ? strtoul(want, NULL, 10) : 0;

	x->threads = calloc(x->info->nthreads + 1, sizeof(*x->threads));
	if (!x->threads)
		return exporter__no_memory(x);
	for (size_t i = 0; i < x->info->nthreads; i++) {
		const struct trace_thread *t = &x->info->threads[i];

		x->threads[i] = !want || (by_tid ? t->tid == tid : glob_match(want, t->name));
		any = any || x->threads[i];
	}
	if (any || !want)
		return 0;
	return err_set(x->e, -ENOENT, "no thread of the trace %s %s",
		       by_tid ? "has the tid" : "matches", want);
}

int export__write(struct trace_reader *r, enum export_format f, const struct export_opts *o,
		  FILE *out, struct err *e)
{
	struct exporter x = {.r = r, .info = trace_reader__info(r), .o = o, .out = out, .e = e};
	int err = select_spans(&x);

	x.names = calloc(x.info->nspans + 1, sizeof(*x.names));
	if (!err && !x.names)
		err = exporter__no_memory(&x);
	if (!err)
		err = select_threads(&x);
	if (!err)
		err = sort_by_tid(&x);
	if (!err)
		err = formats[f].write(&x);
	if (!formats[f].gpu)
		x.counts.gpu_left_out = x.info->ngpu_records;
	if (o->counts)
		*o->counts = x.counts;
	for (size_t i = 0; x.names && i <= x.info->nspans; i++)
		free(x.names[i]);
	free(x.names);
	free(x.spans);
	free(x.threads);
	free(x.by_tid);
	return err;
}

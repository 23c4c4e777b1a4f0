/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* analysis_snapshot.c - a recording's figures in the form in which a live session's are shown. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/analysis.h"

static uint64_t key_of(enum qbpf_hist_kind kind, long double v)
{
	double d = (double)v;
	uint64_t bits;

	if (kind == QBPF_HIST_NS)
		return (uint64_t)v;
	if (kind == QBPF_HIST_INT)
		return (uint64_t)(int64_t)v;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static struct hist *hist_of(const struct dist *d)
{
	enum qbpf_hist_kind kind = dist__kind(d);
	struct hist *h = hist__new(kind);
	struct dist_value *v = NULL;
	size_t n = h ? dist__values(d, &v) : 0;
	bool failed = !h || !v;

	for (size_t i = 0; !failed && i < n; i++)
		failed = hist__add_times(h, key_of(kind, v[i].value), v[i].n);
	if (!failed && dist__nan(d))
		failed = hist__add_times(h, 0x7ff8000000000000ull, dist__nan(d));
	free(v);
	if (failed) {
		hist__free(h);
		return NULL;
	}
	return h;
}

/* What the kernel counted beside the spans that ended; its spans have the trace's ids. In the file
 * also those are open that ended with their thread, which are abandoned here. */
static void take_counters(struct snap_span *s, const struct snap_span *kernel)
{
	s->open = kernel->open;
	s->abandoned = kernel->abandoned;
	s->orphan_ends = kernel->orphan_ends;
	s->depth_overflow = kernel->depth_overflow;
	s->hist_overflow = kernel->hist_overflow;
	s->no_storage = kernel->no_storage;
	s->unreadable = kernel->unreadable;
	s->key_overflow = kernel->key_overflow;
	s->key_restarts = kernel->key_restarts;
	s->key_timeouts = kernel->key_timeouts;
	s->ret_muted = kernel->ret_muted;
	s->refused = kernel->refused;
}

static bool add_spans(struct snapshot *s, const struct analysis *a)
{
	s->spans = calloc(a->info->nspans + 1, sizeof(*s->spans));
	if (!s->spans)
		return false;
	for (; s->nspans < a->info->nspans; s->nspans++) {
		const struct an_span *from = &a->spans[s->nspans];
		struct snap_span *to = &s->spans[s->nspans];

		to->kind = from->def->kind;
		to->way = from->def->way;
		to->open = from->open;
		to->floor_ns = from->def->floor_ns;
		to->price_ns = from->def->price_ns;
		to->exact = from->dist;
		if (a->kernel && s->nspans < a->kernel->nspans)
			take_counters(to, &a->kernel->spans[s->nspans]);
		to->name = strdup(from->def->name);
		to->hist = hist_of(from->dist);
		if (!to->name || !to->hist) {
			s->nspans++;
			return false;
		}
	}
	return true;
}

static char *copy(const char *text, bool *ok)
{
	char *c = text && *text ? strdup(text) : NULL;

	*ok &= c || !text || !*text;
	return c;
}

static bool add_target(struct snapshot *s, const struct trace_info *info)
{
	bool ok = true;

	s->start_ns = info->meta.start_ns;
	s->now_ns = info->end_ns;
	s->kernel = copy(info->meta.kernel, &ok);
	s->cpu = copy(info->meta.cpu, &ok);
	s->clocksource = copy(info->meta.clocksource, &ok);
	s->cpus = info->meta.cpus;
	for (uint32_t c = 0; c < info->meta.nprices && c < PRICE_N; c++)
		s->price_ns[c] = info->meta.price_ns[c];
	s->pids = calloc(info->nprocesses + 1, sizeof(*s->pids));
	if (!s->pids)
		return false;
	s->ended = info->nprocesses > 0;
	for (size_t i = 0; i < info->nprocesses; i++) {
		s->pids[s->npids++] = (int)info->processes[i].tgid;
		s->ended &= info->processes[i].end_ns != 0;
	}
	if (info->nprocesses) {
		s->comm = copy(info->processes[0].comm, &ok);
		s->exe = copy(info->processes[0].exe, &ok);
	}
	return ok;
}

/* "strategy:tick at 0x1234 in /usr/bin/foo" */
static char *site_name(const struct trace_info *info, const struct trace_probe *p)
{
	const char *span = p->span - 1 < info->nspans ? info->spans[p->span - 1].name : "?";
	const char *path = p->mapping < info->nmappings ? info->mappings[p->mapping].path : "?";
	char *text;

	if (asprintf(&text, "%s at 0x%llx in %s", span, (unsigned long long)p->off, path) < 0)
		return NULL;
	return text;
}

static bool add_probes(struct snapshot *s, const struct trace_info *info)
{
	s->refused = calloc(info->nprobes + 1, sizeof(*s->refused));
	if (!s->refused)
		return false;
	for (size_t i = 0; i < info->nprobes; i++) {
		const struct trace_probe *p = &info->probes[i];
		struct snap_site_note *note = &s->refused[s->nrefused];

		if (p->armed) {
			s->armed++;
			s->relocated += p->reason[0] != '\0';
			continue;
		}
		s->nrefused++;
		note->site = site_name(info, p);
		note->reason = strdup(p->reason);
		if (!note->site || !note->reason)
			return false;
	}
	return true;
}

static struct snap_node snap_node(const struct an_node *n)
{
	return (struct snap_node){
	    .id = n->id,
	    .parent = n->parent,
	    .span = n->span - 1,
	    .count = n->count,
	    .total_ns = n->total_ns,
	    .self_ns = n->self_ns,
	    .min_ns = n->min_ns,
	    .max_ns = n->max_ns,
	    .exact = n->dist,
	};
}

static int compare_ids(const void *pa, const void *pb)
{
	const struct snap_node *a = pa, *b = pb;

	return a->id < b->id ? -1 : a->id > b->id;
}

int analysis__snap_nodes(const struct analysis *a, uint32_t thread, struct snap_node **out,
			 size_t *n)
{
	struct snap_node *nodes = calloc(a->nnodes + 1, sizeof(*nodes));
	size_t got = 0, kept = 0;

	*out = nodes;
	*n = 0;
	if (!nodes)
		return -ENOMEM;
	for (size_t i = 0; i < a->nnodes; i++)
		if (thread == AN_ALL_THREADS || a->nodes[i].thread == thread)
			nodes[got++] = snap_node(&a->nodes[i]);
	qsort(nodes, got, sizeof(*nodes), compare_ids);
	/* One place of several threads: sums, and no distribution. */
	for (size_t i = 0; i < got; i++) {
		struct snap_node *same = kept ? &nodes[kept - 1] : NULL;

		if (!same || same->id != nodes[i].id) {
			nodes[kept++] = nodes[i];
			continue;
		}
		if (nodes[i].count && (!same->count || nodes[i].min_ns < same->min_ns))
			same->min_ns = nodes[i].min_ns;
		if (nodes[i].max_ns > same->max_ns)
			same->max_ns = nodes[i].max_ns;
		same->count += nodes[i].count;
		same->total_ns += nodes[i].total_ns;
		same->self_ns += nodes[i].self_ns;
		same->exact = NULL;
	}
	*n = kept;
	return 0;
}

static void add_gpu(struct snapshot *s, const struct analysis *a)
{
	s->gpu = gpu_summary__get(a->gpu);
	for (size_t i = 0; i < a->info->ngpu_losses; i++) {
		const struct trace_gpu_loss *l = &a->info->gpu_losses[i];

		if (l->reason < GPU_LOST_N)
			s->gpu_lost[l->reason][l->type < QBPF_RING_TYPES ? l->type : 0] += l->lost;
	}
	/* These have told themselves. */
	if (a->gpu)
		s->gpu_lost[GPU_LOST_CUPTI][0] += a->gpu->dropped;
}

struct snapshot *analysis__snapshot(const struct analysis *a)
{
	struct snapshot *s = snapshot__new();

	if (s && add_target(s, a->info) && add_spans(s, a) && add_probes(s, a->info) &&
	    !analysis__snap_nodes(a, AN_ALL_THREADS, &s->nodes, &s->nnodes)) {
		add_gpu(s, a);
		if (!a->kernel || !a->kernel->cuda)
			return s;
		s->cuda = cuda_calls__clone(a->kernel->cuda);
		if (s->cuda)
			return s;
	}
	snapshot__free(s);
	return NULL;
}

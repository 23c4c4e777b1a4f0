// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* analysis_gpu.c - the GPU's part of a recording: its records and the spans of the host, put together. */
#include <errno.h>
#include <string.h>

#include "model/analysis_impl.h"
#include "model/gpu.h"

static int add_tables(struct gpu *g, const struct trace_info *info)
{
	int err = 0;

	for (size_t i = 0; i < info->ngpu_names && !err; i++)
		err = gpu__name(g, (uint32_t)i + 1, info->gpu_names[i].text);
	for (size_t i = 0; i < info->nspans && !err; i++)
		err = gpu__span_name(g, (uint32_t)i + 1, info->spans[i].name);
	for (size_t i = 0; i < info->nthreads && !err; i++)
		err = gpu__thread(g, (uint32_t)i, info->threads[i].tgid, info->threads[i].tid);
	for (size_t i = 0; i < info->nprocesses && !err; i++)
		err = gpu__process(g, info->processes[i].tgid, info->processes[i].comm);
	return err;
}

/* Both in the order of the file, so that little has to wait for what belongs to it. */
static int add_all(struct gpu *g, struct trace_reader *r, struct err *e)
{
	const struct qbpf_ring_record *rec;
	const struct event *events;
	uint32_t ring;
	size_t n;
	int more, err = 0;

	for (;;) {
		while (trace_reader__gpu_first(r) && !err) {
			more = trace_reader__gpu_next(r, &ring, &rec, e);
			if (more < 0)
				return more;
			err = more ? gpu__record(g, ring, rec) : 0;
		}
		if (err)
			break;
		more = trace_reader__next(r, &events, &n, e);
		if (more <= 0)
			return more;
		for (size_t i = 0; i < n && !err; i++)
			err = gpu__span(g, &events[i]);
	}
	return err_set(e, err, "out of memory");
}

static int add_window(struct an_build *b, const struct event *root)
{
	static const struct trace_thread none;
	const struct trace_thread *t =
	    root->thread < b->info->nthreads ? &b->info->threads[root->thread] : &none;

	return gpu_windows__add(b->a.gpu_windows, root->start_ns, root->end_ns, t->tgid, t->tid);
}

static int make_windows(struct an_build *b)
{
	const struct trace_info *info = b->info;
	struct analysis *a = &b->a;
	int err = 0;

	a->gpu_windows = gpu_windows__new(b->opts.gpu_most);
	if (!a->gpu_windows)
		return -ENOMEM;
	for (size_t i = 0; i < a->nslowest && !err; i++)
		if (a->slowest[i].n)
			err = add_window(b, &a->slowest[i].events[0]);
	if (!err && a->median.n)
		err = add_window(b, &a->median.events[0]);
	if (!err && !gpu_windows__count(a->gpu_windows))
		err = gpu_windows__add(a->gpu_windows, info->meta.start_ns,
				       info->end_ns ? info->end_ns : UINT64_MAX, 0, 0);
	return err;
}

/* When the kernel began to count, which is a little later than when the file was begun. */
static uint64_t spans_from(const struct an_build *b)
{
	return b->a.kernel ? b->a.kernel->start_ns : b->info->meta.start_ns;
}

int an__gpu(struct an_build *b, struct err *e)
{
	struct gpu_opts usual = {0};
	struct gpu *g;
	int err = 0;

	if (!b->info->ngpu_records)
		return 0;
	if (b->opts.gpu_most)
		err = make_windows(b);
	if (err)
		return err_set(e, err, "out of memory");
	if (b->a.gpu_windows)
		usual.visitor = gpu_windows__visitor(b->a.gpu_windows);
	g = gpu__new(&usual);
	if (g)
		gpu__probes(g, spans_from(b), b->info->clean ? b->info->end_ns : GPU_UNKNOWN);
	err = g ? add_tables(g, b->info) : -ENOMEM;
	if (!err)
		err = trace_reader__start(b->reader, TRACE_ALL_THREADS, false);
	if (err) {
		gpu__free(g);
		return err_set(e, err, "cannot read the GPU's part: %s", strerror(-err));
	}
	trace_reader__gpu_start(b->reader);
	err = add_all(g, b->reader, e);
	if (!err && (gpu__finish(g) || !(b->a.gpu = gpu__summary(g))))
		err = err_set(e, -ENOMEM, "out of memory");
	gpu__free(g);
	if (!err && b->a.gpu_windows && gpu_windows__finish(b->a.gpu_windows))
		err = err_set(e, -ENOMEM, "out of memory");
	return err;
}

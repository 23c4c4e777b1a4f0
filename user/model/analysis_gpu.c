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

int an__gpu(struct an_build *b, struct err *e)
{
	static const struct gpu_opts usual;
	struct gpu *g;
	int err;

	if (!b->info->ngpu_records)
		return 0;
	g = gpu__new(&usual);
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
	return err;
}

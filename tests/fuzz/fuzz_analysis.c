// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any order of any events that a trace can hold: spans that overlap, places that are not theirs, depths
 * out of nowhere. Whatever they are, each is counted once, and memory is bounded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define THREADS 3
#define PLACES	12

static void check(int ok)
{
	if (!ok)
		abort();
}

static void make_tables(struct recording_file *f)
{
	static const uint8_t kinds[] = {SPAN_MARKER, SPAN_FUNC,	 SPAN_INSTANT,
					SPAN_VALUE,  SPAN_VALUE, SPAN_KEYED};

	rec__open(f);
	for (uint32_t i = 0; i < sizeof(kinds); i++)
		rec__span(f, (char[]){'a' + i, 0}, kinds[i],
			  i == 3   ? QBPF_HIST_INT
			  : i == 4 ? QBPF_HIST_F64
				   : QBPF_HIST_NS);
	for (int i = 0; i < THREADS; i++)
		rec__thread(f, "t");
	for (uint32_t i = 0; i < PLACES; i++)
		rec__node(f, i / 2, 1 + i % 3);
}

/* Eight bytes an event. */
static struct event event_of(const uint8_t *p)
{
	struct event ev = {
	    .kind = EVENT_SPAN + p[0] % (EVENT_KINDS - EVENT_SPAN),
	    .span = 1 + p[1] % 6,
	    .thread = p[0] / 8 % THREADS,
	    .node = p[2] & 0x80 ? QBPF_NODE_LOST : p[2] % (PLACES + 2),
	    .depth = p[3] & 0x80 ? (uint16_t)(p[3] << 8) : p[3] % 6,
	    .start_ns = REC_START + p[4] + (p[5] & 0x80 ? (uint64_t)p[5] << 50 : 0),
	    .arg = (uint64_t)p[7] << (8 * (p[6] % 8)),
	};

	ev.end_ns = ev.start_ns + p[5] % 64 - (p[6] == 255 ? 100 : 0);
	ev.child_ns = p[6] % 70;
	if (ev.kind == EVENT_INSTANT || ev.kind == EVENT_VALUE)
		ev.end_ns = ev.start_ns;
	return ev;
}

static void look_at(const struct analysis *a, const struct recording_file *f)
{
	uint64_t open = 0, backwards = 0, in_nodes = 0, in_edges = 0;
	struct snapshot *s;

	for (size_t i = 0; i < a->info->nspans; i++) {
		open += a->spans[i].open;
		backwards += a->spans[i].backwards;
		if (a->info->spans[i].kind != SPAN_INSTANT)
			check(dist__count(a->spans[i].dist) == a->spans[i].held);
		check(a->spans[i].self_ns <= a->spans[i].total_ns);
	}
	check(a->held + open + backwards + a->unknown == f->n);
	check(backwards == a->backwards);
	for (size_t i = 0; i < a->nnodes; i++) {
		check(a->nodes[i].parent < a->nodes[i].id || a->nodes[i].parent == QBPF_NODE_LOST);
		in_nodes += a->nodes[i].count;
	}
	for (size_t i = 0; i < a->nedges; i++)
		in_edges += a->edges[i].count;
	check(in_nodes == in_edges);
	for (size_t i = 0; i < a->nslowest; i++)
		for (size_t k = 1; k < a->slowest[i].n; k++)
			check(a->slowest[i].events[k].depth > a->slowest[i].events[0].depth);
	s = analysis__snapshot(a);
	check(s != NULL);
	snapshot__free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct analysis_opts o = {.slowest = 3, .tree_max = 7, .windows = 5, .pool_bytes = 4096};
	struct recording_file f;
	struct trace_reader *r;
	struct analysis *a;

	if (!size || size > 4096)
		return 0;
	o.per_thread = data[0] & 1;
	o.root = data[0] & 2 ? "b" : NULL;
	make_tables(&f);
	for (size_t i = 1; size - i >= 8; i += 8)
		rec__event(&f, event_of(data + i));
	r = rec__read(&f, REC_START + 1000, 0, NULL);
	check(!analysis__new(r, &o, &a, NULL));
	look_at(a, &f);
	analysis__free(a);
	rec__close(&f, r);
	return 0;
}

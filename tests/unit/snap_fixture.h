/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Snapshots made by hand, for the tests of the model and the views. */
#ifndef QBPF_TESTS_SNAP_FIXTURE_H
#define QBPF_TESTS_SNAP_FIXTURE_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot.h"

static inline void *fixture__grow(void *array, size_t n, size_t size)
{
	void *p = realloc(array, (n + 1) * size);

	assert(p);
	memset((char *)p + n * size, 0, size);
	return p;
}

static inline struct snap_span *fixture__span(struct snapshot *s, const char *name,
					      enum span_kind kind, enum qbpf_hist_kind hist)
{
	struct snap_span *span;

	s->spans = fixture__grow(s->spans, s->nspans, sizeof(*s->spans));
	span = &s->spans[s->nspans++];
	span->name = strdup(name);
	span->kind = kind;
	span->hist = hist__new(hist);
	return span;
}

static inline struct snap_node *fixture__node(struct snapshot *s, uint32_t parent, uint32_t span,
					      uint64_t count, uint64_t total_ns, uint64_t self_ns)
{
	struct snap_node *n;

	s->nodes = fixture__grow(s->nodes, s->nnodes, sizeof(*s->nodes));
	n = &s->nodes[s->nnodes++];
	n->id = s->nnodes;
	n->parent = parent;
	n->span = span;
	n->count = count;
	n->total_ns = total_ns;
	n->self_ns = self_ns;
	return n;
}

static inline void fixture__note(struct snap_site_note **notes, size_t *n, const char *site,
				 const char *reason)
{
	*notes = fixture__grow(*notes, *n, sizeof(**notes));
	(*notes)[*n].site = strdup(site);
	(*notes)[*n].reason = strdup(reason);
	(*n)++;
}

static inline void fixture__add(struct snap_span *span, uint64_t value, unsigned int times)
{
	while (times--)
		assert(hist__add(span->hist, value) == 0);
}

/*
 * A strategy traced for 10 s: a tick of 12 .. 14 us with a tail, in it decode (below the floor)
 * and a function; an instant, integer and double values; hostile names; refusals and losses.
 */
static inline struct snapshot *fixture__strategy(void)
{
	struct snapshot *s = snapshot__new();
	struct snap_span *span;
	struct snap_node *node;
	double price = 101.5;
	uint64_t bits;

	assert(s);
	s->start_ns = 1000000000ull;
	s->now_ns = 11000000000ull;
	s->pids = fixture__grow(NULL, 0, sizeof(int));
	s->pids[0] = 4711;
	s->npids = 1;
	s->comm = strdup("strategy");
	s->exe = strdup("/opt/strategy");
	s->kernel = strdup("6.18.5");
	s->cpu = strdup("Example CPU");
	s->clocksource = strdup("tsc");
	s->cpus = 2;
	s->armed = 9;
	s->relocated = 1;
	s->price_ns[PRICE_NOP5] = 1250;
	s->price_ns[PRICE_EMULATED] = 5000;
	s->map_bytes = 3 << 19;

	span = fixture__span(s, "strategy:tick", SPAN_MARKER, QBPF_HIST_NS);
	span->floor_ns = 1400;
	span->price_ns = 2500;
	span->open = 1;
	span->oldest_open_ns = 10999990000ull;
	span->abandoned = 2;
	for (unsigned int i = 0; i < 20000; i++)
		fixture__add(span, 12000 + i % 2000, 1);
	fixture__add(span, 250000, 39);
	fixture__add(span, 7000000, 1);

	span = fixture__span(s, "strategy:decode", SPAN_MARKER, QBPF_HIST_NS);
	span->floor_ns = 1400;
	span->price_ns = 2500;
	fixture__add(span, 1300, 20030);
	fixture__add(span, 2100, 10);

	span =
	    fixture__span(s, "risk::Engine::check(risk::Order const&, std::vector<double> const&)",
			  SPAN_FUNC, QBPF_HIST_NS);
	span->way = RET_URETPROBE;
	span->floor_ns = 2600;
	span->price_ns = 5000;
	fixture__add(span, 4000, 320);
	span->depth_overflow = 3;
	span->ret_muted = 1;

	span = fixture__span(s, "strategy:order", SPAN_INSTANT, QBPF_HIST_NS);
	span->price_ns = 1250;
	fixture__add(span, 20000000, 499);

	span = fixture__span(s, "strategy:position", SPAN_VALUE, QBPF_HIST_INT);
	span->price_ns = 1250;
	fixture__add(span, (uint64_t)-100, 50);
	fixture__add(span, 0, 20);
	fixture__add(span, 250, 30);

	span = fixture__span(s, "strategy:price", SPAN_VALUE, QBPF_HIST_F64);
	span->price_ns = 1250;
	memcpy(&bits, &price, sizeof(bits));
	fixture__add(span, bits, 4);
	fixture__add(span, 0x7ff8000000000000ull, 1);

	span = fixture__span(s, "operator\"\"_kg a\"b\\c \x01\xff\x1b[31m \xc3\xa9", SPAN_FUNC,
			     QBPF_HIST_NS);
	span->price_ns = 5000;
	fixture__add(span, 999600, 1);

	span = fixture__span(s, "strategy:never", SPAN_MARKER, QBPF_HIST_NS);
	span->price_ns = 2500;

	node = fixture__node(s, 0, 0, 20040, 276755000, 242000000);
	node->min_ns = 12000;
	node->max_ns = 7000000;
	node = fixture__node(s, 1, 1, 20040, 26060000, 26060000);
	node->min_ns = 1300;
	node->max_ns = 2100;
	node = fixture__node(s, 1, 2, 320, 1280000, 1280000);
	node->min_ns = node->max_ns = 4000;
	fixture__node(s, 1, 3, 500, 0, 0);
	node = fixture__node(s, 0, 6, 1, 999600, 999600);
	node->min_ns = node->max_ns = 999600;

	fixture__note(&s->refused, &s->nrefused, "strategy:a__begin at 0x1234 in /opt/strategy",
		      "live data may lie below the stack pointer (red zone)");
	fixture__note(&s->refused, &s->nrefused, "strategy:a__end at 0x1244 in /opt/strategy",
		      "live data may lie below the stack pointer (red zone)");
	fixture__note(&s->refused, &s->nrefused, "main.go at 0x99 in /opt/strategy",
		      "not an instruction boundary");
	fixture__note(&s->failed, &s->nfailed, "strategy:b at 0x2000 in /opt/strategy",
		      "Invalid argument: another tool probes this site");
	return s;
}

#endif

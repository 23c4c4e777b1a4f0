// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What happens in the traces that mktrace makes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mktrace.h"
#include "qbpf/abi.h"

/* enum span_kind of plan/plan.h, which a trace's reader sees as numbers. */
enum { MARKER = 0, KEYED = 1, INSTANT = 2, VALUE = 3, FUNC = 4 };

static void make_workers(struct maker *m)
{
	char name[32];

	for (uint32_t i = 0; i < m->want_threads; i++) {
		snprintf(name, sizeof(name), "worker-%u", i);
		make_thread(m, MAKE_TGID + i, name);
	}
}

/* Runs the tree on all threads in turn until enough events are made. */
static void run_tree(struct maker *m, const struct branch *tree, uint64_t pause_ns)
{
	make_workers(m);
	while (m->left)
		for (uint32_t t = 0; t < m->want_threads && m->left; t++) {
			m->threads[t].clock_ns += make_jitter(m, pause_ns);
			make_run(m, t, tree, 0, 0, 0);
		}
}

/* The usual strategy: ten spans a tick. */
static void run_strategy(struct maker *m)
{
	static const struct {
		const char *name;
		uint32_t self_ns, nchildren, first_child;
	} rows[] = {
	    {"strategy:on_tick", 600, 4, 1}, {"feed:decode", 700, 0, 0},
	    {"book:update", 1100, 0, 0},     {"strategy:signal", 500, 2, 5},
	    {"order:build", 400, 3, 7},	     {"strategy:alpha", 1900, 0, 0},
	    {"strategy:beta", 800, 0, 0},    {"risk:check", 350, 0, 0},
	    {"order:encode", 450, 0, 0},     {"order:send", 1400, 0, 0},
	};
	struct branch tree[10];

	for (int i = 0; i < 10; i++)
		tree[i] = (struct branch){.span = make_span(m, rows[i].name, MARKER, QBPF_HIST_NS),
					  .self_ns = rows[i].self_ns,
					  .nchildren = rows[i].nchildren,
					  .first_child = rows[i].first_child};
	run_tree(m, tree, 3000);
}

const struct shape make_shapes[] = {
    {"strategy", "ten nested spans a tick of 5 to 20 us, with a long tail", run_strategy, 0, 0},
    {NULL, NULL, NULL, 0, 0},
};

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * folded.c - the call tree as "outer;inner;innermost WEIGHT" lines, which flame-graph scripts read:
 * self time in ns, or the number of hits. All threads together.
 *
 * What has no place in the tree is left out: keyed spans, values, spans without an end; by time also
 * instants.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "out/export_impl.h"
#include "out/scribe.h"
#include "qbpf/abi.h"

struct folded {
	struct exporter *x;
	struct scribe s;
	uint64_t *nodes; /* weights, by place in info->nodes */
	uint64_t *lost;	 /* of spans whose node is not known, by id */
	bool *seen_nodes, *seen_lost;
	const struct trace_node **path;
	size_t path_room;
};

static int add(void *ctx, const struct event *ev)
{
	struct folded *f = ctx;
	struct export_counts *counts = &f->x->counts;
	bool span = ev->kind == EVENT_SPAN || ev->kind == EVENT_ASIDE;
	const struct trace_node *node;
	uint64_t weight = f->x->o->by_count ? 1 : event_self_ns(ev);

	if (!span && !(f->x->o->by_count && ev->kind == EVENT_INSTANT)) {
		counts->left_out++;
		return 0;
	}
	counts->spans += span;
	counts->points += !span;
	node = trace_info__node(f->x->info, ev->node);
	if (node) {
		f->nodes[node - f->x->info->nodes] += weight;
		f->seen_nodes[node - f->x->info->nodes] = true;
	} else {
		f->lost[ev->span] += weight;
		f->seen_lost[ev->span] = true;
	}
	return 0;
}

/* In a line ';' parts frames, and an empty frame is none. */
static char *frame_name(const char *name)
{
	char *text = export__text(*name ? name : "(no name)");

	for (char *p = text; p && *p; p++)
		if (*p == ';')
			*p = ':';
	return text;
}

static int put_frame(struct folded *f, uint32_t span)
{
	const char *name = exporter__fit_name(f->x, span, frame_name);

	if (!name)
		return exporter__no_memory(f->x);
	scribe__text(&f->s, name);
	return 0;
}

static void put_weight(struct folded *f, uint64_t weight)
{
	scribe__text(&f->s, " ");
	scribe__u64(&f->s, weight);
	scribe__text(&f->s, "\n");
}

/* The nodes from `node` to its root. A circle, which only damage can make, ends the path. */
static int find_path(struct folded *f, const struct trace_node *node, size_t *n)
{
	const struct trace_info *info = f->x->info;

	for (*n = 0; node && *n < info->nnodes; node = trace_info__node(info, node->parent)) {
		if (*n == f->path_room) {
			size_t room = f->path_room ? 2 * f->path_room : 64;
			void *more = reallocarray(f->path, room, sizeof(*f->path));

			if (!more)
				return exporter__no_memory(f->x);
			f->path = more;
			f->path_room = room;
		}
		f->path[(*n)++] = node;
	}
	return 0;
}

static int put_node(struct folded *f, size_t i)
{
	size_t n;
	int err = find_path(f, &f->x->info->nodes[i], &n);

	while (!err && n--) {
		uint32_t span = f->path[n]->span;

		err = put_frame(f, span <= f->x->info->nspans ? span : 0);
		if (n)
			scribe__text(&f->s, ";");
	}
	put_weight(f, f->nodes[i]);
	return err ? err : f->s.err;
}

static int put_all(struct folded *f)
{
	const struct trace_info *info = f->x->info;
	int err = exporter__each(f->x, add, f);

	for (size_t i = 0; i < info->nnodes && !err; i++)
		if (f->seen_nodes[i])
			err = put_node(f, i);
	for (uint32_t i = 1; i <= info->nspans && !err; i++) {
		if (!f->seen_lost[i])
			continue;
		scribe__text(&f->s, "(caller unknown);");
		err = put_frame(f, i);
		put_weight(f, f->lost[i]);
	}
	return err;
}

int export_folded(struct exporter *x)
{
	const struct trace_info *info = x->info;
	struct folded *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return exporter__no_memory(x);
	f->x = x;
	f->s.f = x->out;
	f->nodes = calloc(info->nnodes + 1, sizeof(*f->nodes));
	f->seen_nodes = calloc(info->nnodes + 1, sizeof(*f->seen_nodes));
	f->lost = calloc(info->nspans + 1, sizeof(*f->lost));
	f->seen_lost = calloc(info->nspans + 1, sizeof(*f->seen_lost));
	err = f->nodes && f->seen_nodes && f->lost && f->seen_lost ? put_all(f)
								   : exporter__no_memory(x);
	err = exporter__finish(x, &f->s, err);
	free(f->nodes);
	free(f->seen_nodes);
	free(f->lost);
	free(f->seen_lost);
	free(f->path);
	free(f);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading the session's BPF maps into a snapshot; see maps_read.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "trace/maps_read.h"

/*
 * Every element of a hash map, in batches. A batch never splits a hash bucket; -ENOSPC asks
 * for a larger buffer.
 */
int maps_each(struct bpf_map *map, int (*fn)(void *ctx, const void *key, const void *value),
	      void *ctx)
{
	size_t ks = bpf_map__key_size(map), vs = bpf_map__value_size(map);
	int fd = bpf_map__fd(map), err;
	char *keys = NULL, *values = NULL;
	__u32 cap = 1024, n, batch[2], *in = NULL;

again:
	free(keys);
	free(values);
	keys = malloc(cap * ks);
	values = malloc(cap * vs);
	if (!keys || !values) {
		err = -ENOMEM;
		goto out;
	}
	for (;;) {
		n = cap;
		err = bpf_map_lookup_batch(fd, in, batch, keys, values, &n, NULL);
		if (err == -ENOSPC && cap < 1u << 22) {
			cap *= 4;
			goto again;
		}
		if (err && err != -ENOENT)
			goto out;
		for (__u32 i = 0; i < n; i++) {
			int r = fn(ctx, keys + i * ks, values + i * vs);

			if (r) {
				err = r;
				goto out;
			}
		}
		if (err == -ENOENT)
			break;
		in = batch;
	}
	err = 0;
out:
	free(keys);
	free(values);
	return err;
}

static int read_hist_cell(void *ctx, const void *key, const void *value)
{
	const struct qbpf_hist_key *k = key;
	struct snapshot *s = ctx;

	if (!k->span || k->span > s->nspans)
		return 0;
	return hist__add_cell(s->spans[k->span - 1].hist, k->octave, value);
}

/* Nodes by kernel id while they are being collected. */
struct node_reader {
	struct snapshot *s;
	size_t cap;
	uint32_t *by_id; /* id -> index + 1 */
	size_t nids;
};

static int read_node(void *ctx, const void *key, const void *value)
{
	const struct qbpf_node_key *k = key;
	const struct qbpf_node *v = value;
	struct node_reader *r = ctx;
	struct snapshot *s = r->s;

	if (!v->id || v->id == QBPF_NODE_LOST || !k->span || k->span > s->nspans)
		return 0;
	if (s->nnodes == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 256;
		struct snap_node *nodes = realloc(s->nodes, cap * sizeof(*nodes));

		if (!nodes)
			return -ENOMEM;
		s->nodes = nodes;
		r->cap = cap;
	}
	s->nodes[s->nnodes++] =
	    (struct snap_node){.id = v->id, .parent = k->parent, .span = k->span - 1};
	if (v->id >= r->nids)
		r->nids = v->id + 1;
	return 0;
}

static int read_node_cell(void *ctx, const void *key, const void *value)
{
	const struct qbpf_node_cell_key *k = key;
	const struct qbpf_node_cell *c = value;
	struct node_reader *r = ctx;
	struct snap_node *n;

	/* A node born after the nodes were read comes with the next snapshot. */
	if (k->node >= r->nids || !r->by_id[k->node] || !c->count)
		return 0;
	n = &r->s->nodes[r->by_id[k->node] - 1];
	if (!n->count || c->min_ns < n->min_ns)
		n->min_ns = c->min_ns;
	if (c->max_ns > n->max_ns)
		n->max_ns = c->max_ns;
	n->count += c->count;
	n->total_ns += c->total_ns;
	n->self_ns += c->self_ns;
	return 0;
}

static int by_id(const void *x, const void *y)
{
	const struct snap_node *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int read_nodes(struct qbpf_bpf *skel, struct snapshot *s)
{
	struct node_reader r = {.s = s};
	int err;

	err = maps_each(skel->maps.nodes, read_node, &r);
	if (err)
		return err;
	if (!s->nnodes)
		return 0;
	qsort(s->nodes, s->nnodes, sizeof(*s->nodes), by_id);
	r.by_id = calloc(r.nids, sizeof(*r.by_id));
	if (!r.by_id)
		return -ENOMEM;
	for (size_t i = 0; i < s->nnodes; i++)
		r.by_id[s->nodes[i].id] = i + 1;
	err = maps_each(skel->maps.node_cells, read_node_cell, &r);
	free(r.by_id);
	return err;
}

static int read_counts(struct qbpf_bpf *skel, struct snapshot *s)
{
	size_t max = bpf_map__max_entries(skel->maps.span_counts);
	struct qbpf_span_counts *all;
	__u32 *keys, n = max, batch;
	int err;

	all = calloc(max, sizeof(*all));
	keys = calloc(max, sizeof(*keys));
	if (!all || !keys) {
		err = -ENOMEM;
		goto out;
	}
	err = bpf_map_lookup_batch(bpf_map__fd(skel->maps.span_counts), NULL, &batch, keys, all, &n,
				   NULL);
	if (err && err != -ENOENT)
		goto out;
	err = 0;
	for (__u32 i = 0; i < n; i++) {
		const struct qbpf_span_counts *c = &all[i];
		struct snap_span *sp;

		if (!keys[i] || keys[i] > s->nspans)
			continue;
		sp = &s->spans[keys[i] - 1];
		sp->orphan_ends = c->orphan_ends;
		sp->abandoned = c->abandoned;
		sp->depth_overflow = c->depth_overflow;
		sp->node_overflow = c->node_overflow;
		sp->hist_overflow = c->hist_overflow;
		sp->no_storage = c->no_storage;
		sp->unreadable = c->unreadable;
		sp->key_overflow = c->key_overflow;
		sp->key_restarts = c->key_restarts;
		sp->key_timeouts = c->key_timeouts;
		sp->ret_muted = c->ret_muted;
	}
out:
	free(all);
	free(keys);
	return err;
}

static void note_open(struct snapshot *s, uint32_t span, uint64_t start_ns)
{
	struct snap_span *sp;

	if (!span || span > s->nspans)
		return;
	sp = &s->spans[span - 1];
	sp->open++;
	if (!sp->oldest_open_ns || start_ns < sp->oldest_open_ns)
		sp->oldest_open_ns = start_ns;
}

static int read_open_key(void *ctx, const void *key, const void *value)
{
	const struct qbpf_open_key *k = key;
	const struct qbpf_open *v = value;

	note_open(ctx, k->span, v->start_ns);
	return 0;
}

/* The iterator writes whole records; a read may still end inside one. */
int maps_each_record(struct bpf_program *iter, size_t size,
		     void (*fn)(void *ctx, const void *record), void *ctx)
{
	_Alignas(8) char buf[8192];
	struct bpf_link *link;
	size_t have = 0, at;
	ssize_t n;
	int fd, err = 0;

	link = bpf_program__attach_iter(iter, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = fd;
		goto out;
	}
	for (;;) {
		n = read(fd, buf + have, sizeof(buf) - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		have += (size_t)n;
		for (at = 0; have - at >= size; at += size)
			fn(ctx, buf + at);
		have -= at;
		memmove(buf, buf + at, have);
	}
	close(fd);
out:
	bpf_link__destroy(link);
	return err;
}

static void read_open_frame(void *ctx, const void *record)
{
	const struct qbpf_open_frame *f = record;

	note_open(ctx, f->span, f->start_ns);
}

int maps_read(struct qbpf_bpf *skel, struct snapshot *s, struct err *e)
{
	const char *what = "histograms";
	int err;

	err = maps_each(skel->maps.hist_cells, read_hist_cell, s);
	if (err)
		goto out;
	what = "call tree";
	err = read_nodes(skel, s);
	if (err)
		goto out;
	what = "counters";
	err = read_counts(skel, s);
	if (err)
		goto out;
	what = "open keys";
	err = maps_each(skel->maps.keyed, read_open_key, s);
	if (err)
		goto out;
	what = "open frames";
	err = maps_each_record(skel->progs.on_open_frames, sizeof(struct qbpf_open_frame),
			       read_open_frame, s);
out:
	return err ? err_set(e, err, "cannot read the %s from the kernel: %s", what, strerror(-err))
		   : 0;
}

struct node_visit {
	int (*fn)(void *ctx, uint32_t id, uint32_t parent, uint32_t span);
	void *ctx;
};

static int visit_node(void *ctx, const void *key, const void *value)
{
	const struct qbpf_node_key *k = key;
	const struct qbpf_node *n = value;
	struct node_visit *v = ctx;

	return v->fn(v->ctx, n->id, k->parent, k->span);
}

int maps_each_node(struct qbpf_bpf *skel,
		   int (*fn)(void *ctx, uint32_t id, uint32_t parent, uint32_t span), void *ctx)
{
	struct node_visit v = {.fn = fn, .ctx = ctx};

	return maps_each(skel->maps.nodes, visit_node, &v);
}

struct key_visit {
	int (*fn)(void *ctx, const struct qbpf_open_key *key, const struct qbpf_open *open);
	void *ctx;
};

static int visit_open_key(void *ctx, const void *key, const void *value)
{
	struct key_visit *v = ctx;

	return v->fn(v->ctx, key, value);
}

int maps_each_open_key(struct qbpf_bpf *skel,
		       int (*fn)(void *ctx, const struct qbpf_open_key *key,
				 const struct qbpf_open *open),
		       void *ctx)
{
	struct key_visit v = {.fn = fn, .ctx = ctx};

	return maps_each(skel->maps.keyed, visit_open_key, &v);
}

struct sweep {
	struct qbpf_open_key *keys;
	size_t n, cap;
	uint64_t before_ns;
};

static int sweep_collect(void *ctx, const void *key, const void *value)
{
	const struct qbpf_open *v = value;
	struct sweep *w = ctx;

	if (v->start_ns >= w->before_ns)
		return 0;
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 64;
		struct qbpf_open_key *keys = realloc(w->keys, cap * sizeof(*keys));

		if (!keys)
			return -ENOMEM;
		w->keys = keys;
		w->cap = cap;
	}
	memcpy(&w->keys[w->n++], key, sizeof(w->keys[0]));
	return 0;
}

int maps_sweep_keys(struct qbpf_bpf *skel, uint64_t before_ns, uint64_t *timeouts, size_t nspans)
{
	struct sweep w = {.before_ns = before_ns};
	int err = maps_each(skel->maps.keyed, sweep_collect, &w);

	/* An end that comes between is the winner: its delete succeeds, ours does not. */
	for (size_t i = 0; i < w.n && !err; i++)
		if (!bpf_map_delete_elem(bpf_map__fd(skel->maps.keyed), &w.keys[i]) &&
		    w.keys[i].span && w.keys[i].span <= nspans)
			timeouts[w.keys[i].span - 1]++;
	free(w.keys);
	return err;
}

uint64_t maps_memory(struct qbpf_bpf *skel)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, skel->obj)
	{
		char path[64], line[256];
		unsigned long long v;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
		f = fopen(path, "re");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "memlock: %llu", &v) == 1)
				sum += v;
		fclose(f);
	}
	return sum;
}

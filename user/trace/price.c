// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a hit costs here. Every pair of sites of own_child.h is armed at once, then short batches
 * of each are run in turn, so that a disturbance of this shared machine falls on all of them
 * and the median of each forgets it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/hist.h"
#include "trace/own_child.h"
#include "trace/price.h"

#define EXE_PATH     "/proc/self/exe"
#define BATCHES	     7
#define BARE_BATCHES 3
#define BARE_RUNS    256 /* in a batch */
#define WARM_RUNS    4

/* Spans that no plan reaches; see the header. */
#define SPAN_OF(pair) ((__u32)(QBPF_SPANS_MAX - 1 - (pair)))

/* Runs in a batch: dear pairs fewer, so that all takes some 10 ms. */
static const uint32_t batch_runs[OWN_PAIRS] = {
    [OWN_NOP5] = 32, [OWN_NOP1] = 16, [OWN_PUSH] = 16, [OWN_STEPPED] = 6, [OWN_FUNC] = 16};

struct measuring {
	struct bpf_program *on_site, *on_return;
	struct bpf_map *targets, *nodes, *node_cells, *hist_cells;
	struct own_child *child;
	struct bpf_link *links[2 * OWN_PAIRS + 1];
	size_t nlinks;
	uint64_t begin[OWN_PAIRS], end[OWN_PAIRS]; /* file offsets */
	uint64_t bare[OWN_PAIRS];		   /* ns of one unarmed run */
	uint64_t ns[OWN_PAIRS];			   /* of one armed run, bare taken off */
	uint64_t floor[OWN_PAIRS];
};

static enum qbpf_role begin_role(enum own_pair p)
{
	return p == OWN_FUNC ? QBPF_ROLE_ENTRY : QBPF_ROLE_BEGIN;
}

/* --- arming -------------------------------------------------------------------------------- */

static int keep(struct measuring *m, struct bpf_link *link)
{
	if (!link)
		return -errno;
	m->links[m->nlinks++] = link;
	return 0;
}

static int arm_multi(struct measuring *m)
{
	unsigned long offs[2 * OWN_PAIRS], ret_off;
	__u64 cookies[2 * OWN_PAIRS], ret_cookie;
	pid_t pid = own_child__pid(m->child);
	LIBBPF_OPTS(bpf_uprobe_multi_opts, o, .offsets = offs, .cookies = cookies);
	LIBBPF_OPTS(bpf_uprobe_multi_opts, ro, .offsets = &ret_off, .cookies = &ret_cookie,
		    .cnt = 1, .retprobe = true);
	int err;

	for (int p = 0; p < OWN_PAIRS; p++) {
		offs[o.cnt] = m->begin[p];
		cookies[o.cnt++] = QBPF_COOKIE(SPAN_OF(p), begin_role(p), 0);
		if (!m->end[p])
			continue;
		offs[o.cnt] = m->end[p];
		cookies[o.cnt++] = QBPF_COOKIE(SPAN_OF(p), QBPF_ROLE_END, 0);
	}
	ret_off = m->begin[OWN_FUNC];
	ret_cookie = QBPF_COOKIE(SPAN_OF(OWN_FUNC), QBPF_ROLE_RETURN, 0);
	err = keep(m, bpf_program__attach_uprobe_multi(m->on_site, pid, EXE_PATH, NULL, &o));
	if (err)
		return err;
	return keep(m, bpf_program__attach_uprobe_multi(m->on_return, pid, EXE_PATH, NULL, &ro));
}

static int arm_perf_one(struct measuring *m, bool ret, uint64_t off, __u32 span,
			enum qbpf_role role)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = QBPF_COOKIE(span, role, 0), .retprobe = ret);
	struct bpf_program *prog = ret ? m->on_return : m->on_site;

	return keep(
	    m, bpf_program__attach_uprobe_opts(prog, own_child__pid(m->child), EXE_PATH, off, &o));
}

static int arm_perf(struct measuring *m)
{
	int err = 0;

	for (int p = 0; !err && p < OWN_PAIRS; p++) {
		err = arm_perf_one(m, false, m->begin[p], SPAN_OF(p), begin_role(p));
		if (err)
			break;
		if (m->end[p])
			err = arm_perf_one(m, false, m->end[p], SPAN_OF(p), QBPF_ROLE_END);
		else
			err = arm_perf_one(m, true, m->begin[p], SPAN_OF(p), QBPF_ROLE_RETURN);
	}
	return err;
}

/*
 * The kernel waits tens of ms for each probe it takes back, a second in all where each is a perf
 * event. Their process is gone, so nothing depends on it and a thread can do the waiting.
 */
struct old_links {
	struct bpf_link *links[2 * OWN_PAIRS + 1];
	size_t n;
};

static void *destroy_links(void *arg)
{
	struct old_links *old = arg;

	for (size_t i = 0; i < old->n; i++)
		bpf_link__destroy(old->links[i]);
	free(old);
	return NULL;
}

static void disarm(struct measuring *m)
{
	struct old_links *old = malloc(sizeof(*old));
	pthread_t t;

	if (!old) {
		for (size_t i = 0; i < m->nlinks; i++)
			bpf_link__destroy(m->links[i]);
		return;
	}
	memcpy(old->links, m->links, sizeof(m->links));
	old->n = m->nlinks;
	if (pthread_create(&t, NULL, destroy_links, old))
		destroy_links(old);
	else
		pthread_detach(t);
}

/* --- measuring ----------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What one run of each pair takes: the median of so many batches, BATCHES at most, of so many runs. */
static int measure(struct measuring *m, int batches, const uint32_t runs[OWN_PAIRS],
		   uint64_t one[OWN_PAIRS])
{
	uint64_t ns[OWN_PAIRS][BATCHES];

	for (int b = 0; b < batches; b++) {
		for (int p = 0; p < OWN_PAIRS; p++) {
			int err = own_child__run(m->child, p, runs[p], 0, &ns[p][b]);

			if (err)
				return err;
		}
	}
	for (int p = 0; p < OWN_PAIRS; p++) {
		qsort(ns[p], (size_t)batches, sizeof(ns[p][0]), by_value);
		one[p] = ns[p][batches / 2] / runs[p];
	}
	return 0;
}

static int measure_bare(struct measuring *m)
{
	uint32_t runs[OWN_PAIRS];

	for (int p = 0; p < OWN_PAIRS; p++) {
		int err = own_pair_offsets(p, &m->begin[p], &m->end[p]);

		if (err)
			return err;
		runs[p] = BARE_RUNS;
	}
	return measure(m, BARE_BATCHES, runs, m->bare);
}

static int measure_armed(struct measuring *m)
{
	int err;

	for (int p = 0; p < OWN_PAIRS; p++) {
		err = own_child__run(m->child, p, WARM_RUNS, 0, NULL);
		if (err)
			return err;
	}
	err = measure(m, BATCHES, batch_runs, m->ns);
	for (int p = 0; p < OWN_PAIRS && !err; p++)
		m->ns[p] -= m->ns[p] > m->bare[p] ? m->bare[p] : m->ns[p];
	return err;
}

/* --- what the child's spans have read ------------------------------------------------------ */

static bool is_ours(__u32 span)
{
	return span > SPAN_OF(OWN_PAIRS) && span <= SPAN_OF(0);
}

/*
 * Takes the child's cells out of hist_cells. Nothing else is armed yet, so the map holds no
 * more than these; each key is fetched before the one it follows is deleted.
 */
static int take_hists(struct measuring *m, struct hist *hists[OWN_PAIRS])
{
	int fd = bpf_map__fd(m->hist_cells), err;
	struct qbpf_hist_key key, next;
	struct qbpf_hist_cell cell;
	bool more = bpf_map_get_next_key(fd, NULL, &next) == 0;

	while (more) {
		key = next;
		more = bpf_map_get_next_key(fd, &key, &next) == 0;
		if (!is_ours(key.span))
			continue;
		err = bpf_map_lookup_elem(fd, &key, &cell);
		if (!err)
			err = hist__add_cell(hists[SPAN_OF(0) - key.span], key.octave, &cell);
		if (err)
			return err;
		bpf_map_delete_elem(fd, &key);
	}
	return 0;
}

static void drop_nodes(struct measuring *m)
{
	int cells = bpf_map__fd(m->node_cells), nodes = bpf_map__fd(m->nodes);
	int cpus = libbpf_num_possible_cpus();

	for (int p = 0; p < OWN_PAIRS; p++) {
		struct qbpf_node_key key = {.parent = QBPF_NODE_ROOT, .span = SPAN_OF(p)};
		struct qbpf_node node;

		if (bpf_map_lookup_elem(nodes, &key, &node))
			continue;
		for (int cpu = 0; cpu < cpus; cpu++) {
			struct qbpf_node_cell_key cell = {.node = node.id, .cpu = (__u32)cpu};

			bpf_map_delete_elem(cells, &cell);
		}
		bpf_map_delete_elem(nodes, &key);
	}
}

/* Every run must have been seen: a price without its hits would be an invented number. */
static int read_floors(struct measuring *m)
{
	struct hist *hists[OWN_PAIRS] = {NULL};
	int err = 0;

	for (int p = 0; !err && p < OWN_PAIRS; p++) {
		hists[p] = hist__new(QBPF_HIST_NS);
		err = hists[p] ? 0 : -ENOMEM;
	}
	if (!err)
		err = take_hists(m, hists);
	for (int p = 0; !err && p < OWN_PAIRS; p++) {
		long double median;

		if (hist__count(hists[p]) != WARM_RUNS + BATCHES * (uint64_t)batch_runs[p] ||
		    !hist__quantile(hists[p], 0.5, &median))
			err = -ENODATA;
		else
			m->floor[p] = (uint64_t)median;
	}
	for (int p = 0; p < OWN_PAIRS; p++)
		hist__free(hists[p]);
	return err;
}

static void conclude(const struct measuring *m, struct price *out)
{
	uint64_t nop1 = m->ns[OWN_NOP1] / 2, push = m->ns[OWN_PUSH] / 2;
	uint64_t func = m->ns[OWN_FUNC];

	out->ns[PRICE_NOP5] = m->ns[OWN_NOP5] / 2;
	out->ns[PRICE_EMULATED] = nop1 > push ? nop1 : push;
	out->ns[PRICE_STEPPED] = m->ns[OWN_STEPPED] / 2;
	/* Its entry is on a push. */
	out->ns[PRICE_URETPROBE] = func > push ? func - push : 0;
	out->floor_marker_ns = m->floor[OWN_NOP5];
	out->floor_emulated_ns = m->floor[OWN_NOP1];
	out->floor_stepped_ns = m->floor[OWN_STEPPED];
	out->floor_func_ns = m->floor[OWN_FUNC];
}

static int find_maps(struct measuring *m, struct bpf_object *obj)
{
	m->targets = bpf_object__find_map_by_name(obj, "targets");
	m->nodes = bpf_object__find_map_by_name(obj, "nodes");
	m->node_cells = bpf_object__find_map_by_name(obj, "node_cells");
	m->hist_cells = bpf_object__find_map_by_name(obj, "hist_cells");
	return m->targets && m->nodes && m->node_cells && m->hist_cells ? 0 : -ENOENT;
}

int price__measure(struct bpf_object *obj, struct bpf_program *on_site,
		   struct bpf_program *on_return, bool multi, struct price *out, struct err *e)
{
	struct measuring m = {.on_site = on_site, .on_return = on_return};
	const char *step = "find the maps";
	__u32 one = 1, tgid;
	int err = find_maps(&m, obj);

	memset(out, 0, sizeof(*out));
	if (err)
		goto out;
	step = "start a child";
	err = own_child__start(&m.child);
	if (err)
		goto out;
	/* With --follow the programs look at the hit's process. */
	tgid = (__u32)own_child__pid(m.child);
	err = bpf_map_update_elem(bpf_map__fd(m.targets), &tgid, &one, BPF_ANY);
	if (!err)
		err = measure_bare(&m);
	if (err)
		goto out;
	step = "arm probes on a child";
	err = multi ? arm_multi(&m) : arm_perf(&m);
	if (err)
		goto out;
	step = "see the hits of a child";
	err = measure_armed(&m);
	if (!err)
		err = read_floors(&m);
	if (!err)
		conclude(&m, out);
out:
	if (m.child && m.targets)
		bpf_map_delete_elem(bpf_map__fd(m.targets), &tgid);
	own_child__free(m.child);
	disarm(&m);
	if (m.nodes && m.node_cells)
		drop_nodes(&m);
	if (err)
		err_set(e, err, "could not %s to measure the price: %s", step, strerror(-err));
	return err;
}

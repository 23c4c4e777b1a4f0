// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CUDA in a session: its programs (bpf/cuda.bpf.c), and what they have added up, for a snapshot.
 *
 * The programs and their maps are left out where nothing of CUDA is to be armed: most programs do
 * without it, and loading costs time. Where a library of CUDA is opened later, the same object is
 * loaded a second time, without its other programs, upon the maps of the first (at once, when CUDA is
 * there from the start, is twice as fast).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "trace/maps_read.h"
#include "trace/session_impl.h"

bool session__plans_cuda(const struct session *s)
{
	for (size_t i = 0; i < s->plan->nsites; i++)
		if (s->plan->sites[i].cuda && s->plan->sites[i].verdict != VERDICT_REFUSED)
			return true;
	return false;
}

/* Is any function of CUDA traced with its figures? */
static bool any_cuda(const struct session *s)
{
	for (size_t i = 0; i < s->plan->nspans; i++)
		if (s->plan->spans[i].kind == SPAN_CUDA && s->plan->spans[i].armed)
			return true;
	return false;
}

void session__configure_cuda(struct qbpf_bpf *b, bool wanted, bool multi)
{
	struct bpf_program *progs[] = {b->progs.on_cuda, b->progs.on_cuda_return};
	struct bpf_map *maps[] = {b->maps.cuda_sites, b->maps.cuda_threads, b->maps.cuda_cells,
				  b->maps.cuda_launches, b->maps.cuda_handles};

	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		bpf_program__set_autoload(progs[i], wanted);
		if (multi)
			bpf_program__set_expected_attach_type(progs[i], BPF_TRACE_UPROBE_MULTI);
	}
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		bpf_map__set_autocreate(maps[i], wanted);
}

/*
 * Every map of the first object, its global variables too, becomes one of the second. (The descriptor
 * of a map that was not created is not -1.)
 */
static int share_maps(struct qbpf_bpf *with, const struct qbpf_bpf *of)
{
	struct bpf_map *to = NULL;
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, of->obj)
	{
		to = bpf_object__next_map(with->obj, to);
		if (!err && bpf_map__autocreate(map))
			err = bpf_map__reuse_fd(to, bpf_map__fd(map));
	}
	return err;
}

/* What else is traced goes on. */
static void refuse_all(struct session *s, int err)
{
	for (size_t i = 0; i < s->plan->nsites; i++) {
		struct plan_site *site = &s->plan->sites[i];

		if (!site->cuda || site->verdict == VERDICT_REFUSED)
			continue;
		free(site->reason);
		site->reason = strdup("the BPF programs for CUDA cannot be loaded");
		site->verdict = VERDICT_REFUSED;
	}
	log_warn("CUDA's calls are not traced: cannot load the BPF programs for them: %s",
		 strerror(-err));
}

void session__load_cuda(struct session *s)
{
	uint64_t t0 = now_ns();
	struct bpf_program *prog = NULL;
	struct qbpf_bpf *b;
	int err;

	if (s->cuda || !session__plans_cuda(s))
		return;
	b = qbpf_bpf__open();
	err = b ? 0 : -errno;
	if (!err) {
		while ((prog = bpf_object__next_program(b->obj, prog)))
			bpf_program__set_autoload(prog, false);
		session__configure_cuda(b, true, s->multi);
		err = share_maps(b, s->skel);
	}
	if (!err)
		err = qbpf_bpf__load(b);
	if (err) {
		qbpf_bpf__destroy(b);
		refuse_all(s, err);
		return;
	}
	s->cuda = b;
	armer__set_cuda(s->armer, b->progs.on_cuda, b->progs.on_cuda_return);
	log_dbg("loaded for CUDA in %.1f ms", (now_ns() - t0) / 1e6);
}

void session__free_cuda(struct session *s)
{
	cuda_names__free(s->cuda_names);
	if (s->cuda && s->cuda != s->skel)
		qbpf_bpf__destroy(s->cuda);
}

int session__read_cuda(struct session *s, size_t from, struct err *e)
{
	int err = 0;

	for (size_t i = from; !err && i < s->target->nobjects; i++)
		if (s->target->objects[i].has_cuda)
			err = target__read_one(s->target, i, TARGET_MARKERS | TARGET_FUNCS, e);
	return err;
}

/*
 * The agent that was to see CUDA's calls does not: their functions are armed in its place. Found
 * or opened later, too: the plan goes by uprobes from here on. All objects at once, since of two
 * libraries that a call passes through the plan takes one.
 */
static int arm_instead(struct session *s, struct err *e)
{
	struct plan_process proc;
	size_t from;
	int err = session__rescan(s, e);

	s->o.plan.cuda = CUDA_UPROBE;
	from = s->plan->nsites;
	if (!err)
		err = session__read_cuda(s, 0, e);
	if (!err)
		err = plan_select_cuda(s->plan, &s->o.plan, s->target->plan_objects,
				       s->target->nobjects, e);
	if (!err)
		err = session__check_from(s, from, &proc, e);
	if (!err)
		err = session__replan(s, &proc, e);
	if (!err)
		err = session__arm_from(s, from, s->target->nobjects, e);
	target__drop_images(s->target);
	return err;
}

int session__on_agents(struct session *s, struct err *e)
{
	char why[512];
	int err;

	/* Functions that were asked for by name are armed already, and no others. */
	if (!s->o.cuda_instead || s->ended || plan_opts__wants_cuda(&s->o.plan) ||
	    !agents__refused(s->o.agents, why, sizeof(why))) {
		s->skel->bss->spans_wanted = true; /* before it is told that there is one */
		agents__tell(s->o.agents);
		return 0;
	}
	s->skel->bss->spans_wanted = false;
	snprintf(s->cuda_hint, sizeof(s->cuda_hint),
		 "CUDA's calls are seen by uprobes from here on, and nothing of the GPU: %s", why);
	s->o.cuda_hint = s->cuda_hint;
	err = arm_instead(s, e);
	if (!s->cuda_told)
		log_warn("%s", why);
	agents__tell(s->o.agents);
	return err;
}

void session__tell_cuda(struct session *s)
{
	if (s->cuda_told || !s->o.cuda_hint || !any_cuda(s))
		return;
	s->cuda_told = true;
	log_info("%s", s->o.cuda_hint);
}

/*
 * In `run --cuda auto` the agent stands in for probes on CUDA's functions. Where CUDA is mapped and the
 * driver has not loaded it by the end, nothing was seen at all, and only this tells.
 */
bool session__agent_missing(const struct session *s, char *line, size_t size)
{
	struct agents_sums sums;

	if (!s->o.cuda_instead || !s->o.agents)
		return false;
	agents__sums(s->o.agents, &sums);
	for (size_t i = 0; !sums.begun && i < s->target->nobjects; i++) {
		const char *path = s->target->objects[i].path, *slash = strrchr(path, '/');

		if (!s->target->objects[i].has_cuda)
			continue;
		snprintf(line, size,
			 "CUDA agent: not loaded, though %.200s is mapped: the program has not "
			 "initialised CUDA, or its driver cannot load the agent (see qbpf doctor); "
			 "--cuda uprobe counts its calls",
			 slash ? slash + 1 : path);
		return true;
	}
	return false;
}

int session__publish_cuda(struct session *s, uint32_t site_id)
{
	const struct plan_site *site = &s->plan->sites[site_id - 1];
	struct qbpf_cuda_site rec;

	if (!s->cuda || !site->cuda || site->role != QBPF_ROLE_ENTRY)
		return 0;
	plan_site__cuda(site, &rec);
	return bpf_map__update_elem(s->cuda->maps.cuda_sites, &site_id, sizeof(site_id), &rec,
				    sizeof(rec), BPF_ANY);
}

struct reader {
	struct session *s;
	struct cuda_calls *calls;
	uint8_t *class; /* of each span */
};

static void sums_of(const struct qbpf_cuda_key *k, const struct qbpf_cuda_cell *c,
		    struct cuda_sums *out)
{
	*out = (struct cuda_sums){
	    .count = c->count,
	    .failed = c->failed,
	    .untold = c->untold,
	    .unsized = c->unsized_count,
	    .legacy = k->stream == QBPF_CUDA_STREAM_LEGACY ? c->count : 0,
	    .ns = c->ns,
	    .bytes = c->bytes,
	    .failed_bytes = c->failed_bytes,
	};
}

static int read_launch(struct reader *r, const struct qbpf_cuda_key *k,
		       const struct qbpf_cuda_cell *c, bool any_grid)
{
	struct cuda_kernel kernel = {.span = k->span - 1, .any_grid = any_grid};
	struct session *s = r->s;
	const char *name =
	    cuda_names__get(s->cuda_names, s->target, k->tgid, k->kernel, k->caller, &kernel.named);

	if (!name)
		return -ENOMEM;
	kernel.name = (char *)(uintptr_t)name; /* copied by whom it is given to */
	memcpy(kernel.grid, k->grid, sizeof(kernel.grid));
	sums_of(k, c, &kernel.sums);
	kernel.sums.unsized = 0;
	return cuda_calls__add_kernel(r->calls, &kernel);
}

static int read_cell(void *ctx, const void *key, const void *value)
{
	const struct qbpf_cuda_key *k = key;
	const struct qbpf_cuda_cell *c = value;
	struct reader *r = ctx;
	struct cuda_sums sums;

	if (!k->span || k->span > r->s->plan->nspans || !c->count)
		return 0;
	switch (k->what) {
	case QBPF_CUDA_CELL_ERROR:
		return cuda_calls__add_failure(r->calls, k->span - 1, k->code, c->count);
	case QBPF_CUDA_CELL_BYTES:
		sums_of(k, c, &sums);
		return cuda_calls__add_transfer(r->calls, k->span - 1, r->class[k->span - 1],
						k -> dir, &sums);
	case QBPF_CUDA_CELL_LAUNCH:
		return read_launch(r, k, c, true);
	}
	return 0;
}

static int read_launch_cell(void *ctx, const void *key, const void *value)
{
	const struct qbpf_cuda_key *k = key;
	const struct qbpf_cuda_cell *c = value;
	struct reader *r = ctx;

	if (!k->span || k->span > r->s->plan->nspans || !c->count)
		return 0;
	return read_launch(r, k, c, false);
}

static int read_handle(void *ctx, const void *key, const void *value)
{
	return cuda_names__handle(ctx, key, value);
}

static int read_sizes(void *ctx, const void *key, const void *value)
{
	const struct qbpf_hist_key *k = key;
	struct reader *r = ctx;
	uint32_t span = k->span & (QBPF_SPANS_MAX - 1);

	if (!(k->span & QBPF_CUDA_BYTES_FLAG) || !span || span > r->s->plan->nspans)
		return 0;
	return cuda_calls__add_sizes(r->calls, span - 1, k->span >> 24 & (QBPF_CUDA_DIRS - 1),
				     k->octave, value);
}

static int read_all(struct reader *r)
{
	struct qbpf_bpf *b = r->s->cuda;
	int err;

	for (size_t i = 0; i < r->s->plan->nsites; i++) {
		const struct plan_site *site = &r->s->plan->sites[i];
		struct qbpf_cuda_site rec;

		if (!site->cuda)
			continue;
		plan_site__cuda(site, &rec);
		r->class[site->span - 1] = rec.class;
	}
	err = maps_each(b->maps.cuda_handles, read_handle, r->s->cuda_names);
	if (!err)
		err = maps_each(b->maps.cuda_cells, read_cell, r);
	if (!err)
		err = maps_each(b->maps.cuda_launches, read_launch_cell, r);
	if (!err)
		err = maps_each(r->s->skel->maps.hist_cells, read_sizes, r);
	r->calls->lost = r->s->skel->bss->stat_cuda_lost;
	r->calls->names_lost = r->s->skel->bss->stat_cuda_names_lost;
	return err;
}

int session__snap_cuda(struct session *s, struct snapshot *snap)
{
	struct reader r = {.s = s};
	int err = -ENOMEM;

	if (!s->cuda || !any_cuda(s))
		return 0;
	if (!s->cuda_names)
		s->cuda_names = cuda_names__new();
	r.calls = cuda_calls__new();
	r.class = calloc(s->plan->nspans, sizeof(*r.class));
	if (s->cuda_names && r.calls && r.class)
		err = read_all(&r);
	target__drop_images(s->target);
	free(r.class);
	if (err) {
		cuda_calls__free(r.calls);
		return err;
	}
	cuda_calls__sort(r.calls);
	snap->cuda = r.calls;
	return 0;
}

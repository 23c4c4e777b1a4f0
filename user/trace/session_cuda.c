// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the host's CUDA calls were asked to do: from the kernel's maps (bpf/cuda.bpf.c) to a snapshot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/maps_read.h"
#include "trace/session_impl.h"

void session__configure_cuda(struct qbpf_bpf *b, bool wanted)
{
	bpf_program__set_autoload(b->progs.on_cuda, wanted);
	bpf_program__set_autoload(b->progs.on_cuda_return, wanted);
}

int session__publish_cuda(struct session *s, uint32_t site_id)
{
	const struct plan_site *site = &s->plan->sites[site_id - 1];
	struct qbpf_cuda_site rec;

	if (!site->cuda || site->role != QBPF_ROLE_ENTRY)
		return 0;
	plan_site__cuda(site, &rec);
	return bpf_map__update_elem(s->skel->maps.cuda_sites, &site_id, sizeof(site_id), &rec,
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

/* Is any function of CUDA traced with its figures? */
static bool any_cuda(const struct session *s)
{
	for (size_t i = 0; i < s->plan->nspans; i++)
		if (s->plan->spans[i].kind == SPAN_CUDA && s->plan->spans[i].armed)
			return true;
	return false;
}

static int read_all(struct reader *r)
{
	struct qbpf_bpf *b = r->s->skel;
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
		err = maps_each(b->maps.hist_cells, read_sizes, r);
	r->calls->lost = b->bss->stat_cuda_lost;
	r->calls->names_lost = b->bss->stat_cuda_names_lost;
	return err;
}

int session__snap_cuda(struct session *s, struct snapshot *snap)
{
	struct reader r = {.s = s};
	int err = -ENOMEM;

	if (s->o.plan.cuda == CUDA_OFF || !any_cuda(s))
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * snapshot_file.c - a snapshot as bytes and back. One description of what is in it serves both ways.
 *
 * Integers are varints, a string is its length + 1 (0: NULL) and its bytes, a list its length and its
 * items. A histogram is its octaves, each with the buckets that are not empty. Nothing is allocated
 * that the bytes left could not fill.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file/bytes.h"
#include "file/varint.h"
#include "model/snapshot_file.h"

/* 2: what the host asked of CUDA comes last. Without that, 1 is written. */
#define VERSION 2

struct coder {
	bool packing;
	int err;
	struct bytes out;	/* packing */
	const uint8_t *p, *end; /* unpacking */
};

static void u64(struct coder *c, uint64_t *v)
{
	uint8_t buf[VARINT_MAX] = {0};

	if (c->err)
		return;
	if (c->packing) {
		c->err = bytes__append(&c->out, buf, varint__put(buf, *v) - buf);
	} else {
		size_t left = c->end - c->p;
		const uint8_t *p = buf;

		memcpy(buf, c->p, left < sizeof(buf) ? left : sizeof(buf));
		if (!varint__get(&p, v) || (size_t)(p - buf) > left)
			c->err = -EBADMSG;
		else
			c->p += p - buf;
	}
}

/* A field narrower than 64 bits, none of whose values is above `max`. */
#define NARROW(c, field, max)                                                                      \
	do {                                                                                       \
		uint64_t wide = (uint64_t)(field);                                                 \
		u64(c, &wide);                                                                     \
		if (!(c)->err && wide > (max))                                                     \
			(c)->err = -EBADMSG;                                                       \
		else if (!(c)->err)                                                                \
			(field) = (__typeof__(field))wide;                                         \
	} while (0)

static void string(struct coder *c, char **s)
{
	uint64_t len = c->packing && *s ? strlen(*s) + 1 : 0;

	u64(c, &len);
	if (c->err || !len)
		return;
	if (c->packing) {
		c->err = bytes__append(&c->out, *s, len - 1);
		return;
	}
	len--;
	if (len > (size_t)(c->end - c->p) || memchr(c->p, '\0', len)) {
		c->err = -EBADMSG;
		return;
	}
	*s = strndup((const char *)c->p, len);
	c->p += len;
	c->err = *s ? 0 : -ENOMEM;
}

/* The length of a list and, when unpacking, room for it: an item takes `least` bytes or more. */
static void list(struct coder *c, void *items, size_t *n, size_t size, size_t least)
{
	uint64_t count = *n;
	void *room;

	u64(c, &count);
	if (c->err || c->packing)
		return;
	if (count > (size_t)(c->end - c->p) / least) {
		c->err = -EBADMSG;
		return;
	}
	room = count ? calloc(count, size) : NULL;
	if (count && !room) {
		c->err = -ENOMEM;
		return;
	}
	memcpy(items, &room, sizeof(room));
	*n = count;
}

/* The kernel's word for the same. */
static void k64(struct coder *c, __u64 *v)
{
	uint64_t same = *v;

	u64(c, &same);
	*v = same;
}

static void histogram_cell(struct coder *c, struct qbpf_hist_cell *cell)
{
	uint32_t used = 0;

	for (int b = 0; b < QBPF_HIST_SUB; b++)
		used |= (uint32_t)(cell->n[b] != 0) << b;
	k64(c, &cell->sum_lo);
	k64(c, &cell->sum_hi);
	k64(c, &cell->min);
	k64(c, &cell->max);
	NARROW(c, used, UINT32_MAX);
	for (int b = 0; b < QBPF_HIST_SUB; b++)
		if (used >> b & 1)
			k64(c, &cell->n[b]);
}

static void histogram(struct coder *c, struct hist **h)
{
	enum qbpf_hist_kind kind = c->packing ? hist__kind(*h) : QBPF_HIST_NS;
	uint64_t n = c->packing ? hist__octaves(*h) : 0;

	NARROW(c, kind, QBPF_HIST_F64);
	u64(c, &n);
	if (c->err)
		return;
	if (!c->packing) {
		*h = hist__new(kind);
		c->err = *h ? 0 : -ENOMEM;
	}
	for (uint64_t i = 0; i < n && !c->err; i++) {
		struct qbpf_hist_cell octave = {0};
		uint16_t key = 0;

		if (c->packing)
			octave = *hist__octave(*h, i, &key);
		NARROW(c, key, UINT16_MAX);
		histogram_cell(c, &octave);
		if (!c->packing && !c->err) {
			c->err = hist__add_cell(*h, key, &octave);
			c->err = c->err == -EINVAL ? -EBADMSG : c->err;
		}
	}
}

static void span(struct coder *c, struct snap_span *s)
{
	string(c, &s->name);
	NARROW(c, s->kind, SPAN_CUDA);
	NARROW(c, s->way, RET_NONE);
	histogram(c, &s->hist);
	u64(c, &s->open);
	u64(c, &s->oldest_open_ns);
	u64(c, &s->abandoned);
	u64(c, &s->orphan_ends);
	u64(c, &s->depth_overflow);
	u64(c, &s->node_overflow);
	u64(c, &s->hist_overflow);
	u64(c, &s->no_storage);
	u64(c, &s->unreadable);
	u64(c, &s->key_overflow);
	u64(c, &s->key_restarts);
	u64(c, &s->key_timeouts);
	u64(c, &s->ret_muted);
	u64(c, &s->floor_ns);
	u64(c, &s->price_ns);
	NARROW(c, s->refused, 1);
}

static void node(struct coder *c, struct snap_node *n)
{
	NARROW(c, n->id, UINT32_MAX);
	NARROW(c, n->parent, UINT32_MAX);
	NARROW(c, n->span, UINT32_MAX);
	u64(c, &n->count);
	u64(c, &n->total_ns);
	u64(c, &n->self_ns);
	u64(c, &n->min_ns);
	u64(c, &n->max_ns);
}

static void notes(struct coder *c, struct snap_site_note **notes, size_t *n)
{
	list(c, notes, n, sizeof(**notes), 2);
	for (size_t i = 0; i < *n && !c->err; i++) {
		string(c, &(*notes)[i].site);
		string(c, &(*notes)[i].reason);
	}
}

static void cuda_sums(struct coder *c, struct cuda_sums *s)
{
	u64(c, &s->count);
	u64(c, &s->failed);
	u64(c, &s->untold);
	u64(c, &s->unsized);
	u64(c, &s->legacy);
	u64(c, &s->ns);
	u64(c, &s->bytes);
	u64(c, &s->failed_bytes);
}

static void cuda_kernel(struct coder *c, struct cuda_kernel *k)
{
	NARROW(c, k->span, UINT32_MAX);
	string(c, &k->name);
	NARROW(c, k->named, 1);
	NARROW(c, k->any_grid, 1);
	for (int i = 0; i < 6; i++)
		NARROW(c, k->grid[i], UINT32_MAX);
	cuda_sums(c, &k->sums);
	if (!c->err && !k->name)
		c->err = -EBADMSG;
}

static void cuda_calls(struct coder *c, struct cuda_calls **calls)
{
	struct cuda_calls *q;

	if (!c->packing)
		*calls = cuda_calls__new();
	q = *calls;
	if (!q) {
		c->err = c->err ? c->err : -ENOMEM;
		return;
	}
	list(c, &q->transfers, &q->ntransfers, sizeof(*q->transfers), 12);
	for (size_t i = 0; i < q->ntransfers && !c->err; i++) {
		struct cuda_transfer *t = &q->transfers[i];

		NARROW(c, t->span, UINT32_MAX);
		NARROW(c, t->dir, QBPF_CUDA_NO_DIR);
		NARROW(c, t->class, UINT8_MAX);
		cuda_sums(c, &t->sums);
		histogram(c, &t->sizes);
		if (!c->err && hist__kind(t->sizes) != QBPF_HIST_INT)
			c->err = -EBADMSG;
	}
	list(c, &q->kernels, &q->nkernels, sizeof(*q->kernels), 18);
	for (size_t i = 0; i < q->nkernels && !c->err; i++)
		cuda_kernel(c, &q->kernels[i]);
	list(c, &q->failures, &q->nfailures, sizeof(*q->failures), 3);
	for (size_t i = 0; i < q->nfailures && !c->err; i++) {
		NARROW(c, q->failures[i].span, UINT32_MAX);
		NARROW(c, q->failures[i].code, UINT32_MAX);
		u64(c, &q->failures[i].count);
	}
	u64(c, &q->lost);
	u64(c, &q->names_lost);
}

static void snapshot(struct coder *c, struct snapshot *s, uint64_t version)
{
	size_t nprices = PRICE_N;

	u64(c, &s->start_ns);
	u64(c, &s->now_ns);
	list(c, &s->pids, &s->npids, sizeof(*s->pids), 1);
	for (size_t i = 0; i < s->npids && !c->err; i++)
		NARROW(c, s->pids[i], INT32_MAX);
	string(c, &s->comm);
	string(c, &s->exe);
	NARROW(c, s->ended, 1);
	string(c, &s->kernel);
	string(c, &s->cpu);
	string(c, &s->clocksource);
	NARROW(c, s->cpus, UINT32_MAX);
	list(c, &s->spans, &s->nspans, sizeof(*s->spans), 21);
	for (size_t i = 0; i < s->nspans && !c->err; i++)
		span(c, &s->spans[i]);
	list(c, &s->nodes, &s->nnodes, sizeof(*s->nodes), 8);
	for (size_t i = 0; i < s->nnodes && !c->err; i++) {
		node(c, &s->nodes[i]);
		if (!c->err && i && s->nodes[i].id <= s->nodes[i - 1].id)
			c->err = -EBADMSG;
	}
	u64(c, &s->armed);
	u64(c, &s->relocated);
	notes(c, &s->refused, &s->nrefused);
	notes(c, &s->failed, &s->nfailed);
	list(c, &s->notes, &s->nnotes, sizeof(*s->notes), 1);
	for (size_t i = 0; i < s->nnotes && !c->err; i++)
		string(c, &s->notes[i]);
	NARROW(c, nprices, PRICE_N);
	for (size_t i = 0; i < nprices && !c->err; i++)
		u64(c, &s->price_ns[i]);
	u64(c, &s->map_bytes);
	if (version >= 2)
		cuda_calls(c, &s->cuda);
}

int snapshot__pack(const struct snapshot *s, void **bytes, size_t *len)
{
	struct coder c = {.packing = true};
	struct snapshot same = *s; /* what is packed stays as it is */
	uint64_t version = s->cuda ? VERSION : 1;

	u64(&c, &version);
	snapshot(&c, &same, version);
	if (c.err) {
		free(c.out.p);
		return c.err;
	}
	*bytes = c.out.p;
	*len = c.out.n;
	return 0;
}

int snapshot__unpack(const void *bytes, size_t len, struct snapshot **out, struct err *e)
{
	struct coder c = {.p = bytes, .end = (const uint8_t *)bytes + len};
	struct snapshot *s = snapshot__new();
	uint64_t version = 0;

	*out = NULL;
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	u64(&c, &version);
	if (!c.err && version > VERSION)
		c.err = -EPROTO;
	if (!c.err)
		snapshot(&c, s, version);
	if (!c.err && c.p != c.end)
		c.err = -EBADMSG;
	if (!c.err) {
		*out = s;
		return 0;
	}
	snapshot__free(s);
	if (c.err == -EPROTO)
		return err_set(e, c.err,
			       "the kernel's sums are of version %llu, this qbpf knows %d",
			       (unsigned long long)version, VERSION);
	if (c.err == -ENOMEM)
		return err_set(e, c.err, "out of memory");
	return err_set(e, c.err, "the kernel's sums are damaged at byte %zu",
		       (size_t)(c.p - (const uint8_t *)bytes));
}

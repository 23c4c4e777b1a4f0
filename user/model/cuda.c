// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* cuda.c - what the host asked of CUDA: adding up, differences, words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/cuda.h"
#include "probes/cuda.h"

struct cuda_calls *cuda_calls__new(void)
{
	return calloc(1, sizeof(struct cuda_calls));
}

void cuda_calls__free(struct cuda_calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->ntransfers; i++)
		hist__free(c->transfers[i].sizes);
	for (size_t i = 0; i < c->nkernels; i++)
		free(c->kernels[i].name);
	free(c->transfers);
	free(c->kernels);
	free(c->failures);
	free(c);
}

/* A new last element of zeros, or NULL. */
static void *grow(void *array, size_t *n, size_t size)
{
	void **a = array;
	void *bigger = reallocarray(*a, *n + 1, size);

	if (!bigger)
		return NULL;
	*a = bigger;
	return memset((char *)bigger + (*n)++ * size, 0, size);
}

static void add_sums(struct cuda_sums *to, const struct cuda_sums *from)
{
	to->count += from->count;
	to->failed += from->failed;
	to->untold += from->untold;
	to->unsized += from->unsized;
	to->legacy += from->legacy;
	to->ns += from->ns;
	to->bytes += from->bytes;
	to->failed_bytes += from->failed_bytes;
}

/* Figures are read one after the other while calls go on: never below nothing. */
static void take_sums(struct cuda_sums *from, const struct cuda_sums *base)
{
#define TAKE(field) from->field -= base->field < from->field ? base->field : from->field
	TAKE(count);
	TAKE(failed);
	TAKE(untold);
	TAKE(unsized);
	TAKE(legacy);
	TAKE(ns);
	TAKE(bytes);
	TAKE(failed_bytes);
#undef TAKE
}

static struct cuda_transfer *find_transfer(const struct cuda_calls *c, uint32_t span, uint32_t dir)
{
	for (size_t i = 0; i < c->ntransfers; i++)
		if (c->transfers[i].span == span && c->transfers[i].dir == dir)
			return &c->transfers[i];
	return NULL;
}

static struct cuda_transfer *transfer(struct cuda_calls *c, uint32_t span, uint32_t dir)
{
	struct cuda_transfer *t = find_transfer(c, span, dir);
	struct hist *sizes;

	if (t)
		return t;
	sizes = hist__new(QBPF_HIST_INT);
	t = sizes ? grow(&c->transfers, &c->ntransfers, sizeof(*t)) : NULL;
	if (!t) {
		hist__free(sizes);
		return NULL;
	}
	t->span = span;
	t->dir = dir;
	t->sizes = sizes;
	return t;
}

int cuda_calls__add_transfer(struct cuda_calls *c, uint32_t span, uint32_t class, uint32_t dir,
			     const struct cuda_sums *sums)
{
	struct cuda_transfer *t = transfer(c, span, dir);

	if (!t)
		return -ENOMEM;
	t->class = class;
	add_sums(&t->sums, sums);
	return 0;
}

int cuda_calls__add_sizes(struct cuda_calls *c, uint32_t span, uint32_t dir, uint16_t octave,
			  const struct qbpf_hist_cell *cell)
{
	struct cuda_transfer *t = transfer(c, span, dir);

	return t ? hist__add_cell(t->sizes, octave, cell) : -ENOMEM;
}

static struct cuda_kernel *find_kernel(const struct cuda_calls *c, const struct cuda_kernel *k)
{
	for (size_t i = 0; i < c->nkernels; i++) {
		struct cuda_kernel *old = &c->kernels[i];

		if (old->span == k->span && old->any_grid == k->any_grid &&
		    !memcmp(old->grid, k->grid, sizeof(k->grid)) && !strcmp(old->name, k->name))
			return old;
	}
	return NULL;
}

int cuda_calls__add_kernel(struct cuda_calls *c, const struct cuda_kernel *k)
{
	struct cuda_kernel *old = find_kernel(c, k);
	char *name;

	if (old) {
		add_sums(&old->sums, &k->sums);
		return 0;
	}
	name = strdup(k->name);
	old = name ? grow(&c->kernels, &c->nkernels, sizeof(*old)) : NULL;
	if (!old) {
		free(name);
		return -ENOMEM;
	}
	*old = *k;
	old->name = name;
	return 0;
}

static struct cuda_failure *find_failure(const struct cuda_calls *c, uint32_t span, uint32_t code)
{
	for (size_t i = 0; i < c->nfailures; i++)
		if (c->failures[i].span == span && c->failures[i].code == code)
			return &c->failures[i];
	return NULL;
}

int cuda_calls__add_failure(struct cuda_calls *c, uint32_t span, uint32_t code, uint64_t count)
{
	struct cuda_failure *f = find_failure(c, span, code);

	if (!f) {
		f = grow(&c->failures, &c->nfailures, sizeof(*f));
		if (!f)
			return -ENOMEM;
		f->span = span;
		f->code = code;
	}
	f->count += count;
	return 0;
}

static int by_sums(const struct cuda_sums *a, const struct cuda_sums *b)
{
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->count > b->count ? -1 : a->count < b->count;
}

static int order_transfers(const void *x, const void *y)
{
	const struct cuda_transfer *a = x, *b = y;
	int c = by_sums(&a->sums, &b->sums);

	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (c)
		return c;
	return a->span != b->span ? (a->span < b->span ? -1 : 1) : (int)a->dir - (int)b->dir;
}

static int order_kernels(const void *x, const void *y)
{
	const struct cuda_kernel *a = x, *b = y;
	int c = by_sums(&a->sums, &b->sums);

	if (!c)
		c = strcmp(a->name, b->name);
	return c ? c : memcmp(a->grid, b->grid, sizeof(a->grid));
}

static int order_failures(const void *x, const void *y)
{
	const struct cuda_failure *a = x, *b = y;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->span != b->span)
		return a->span < b->span ? -1 : 1;
	return a->code < b->code ? -1 : a->code > b->code;
}

void cuda_calls__sort(struct cuda_calls *c)
{
	if (c->ntransfers)
		qsort(c->transfers, c->ntransfers, sizeof(*c->transfers), order_transfers);
	if (c->nkernels)
		qsort(c->kernels, c->nkernels, sizeof(*c->kernels), order_kernels);
	if (c->nfailures)
		qsort(c->failures, c->nfailures, sizeof(*c->failures), order_failures);
}

struct cuda_calls *cuda_calls__clone(const struct cuda_calls *c)
{
	struct cuda_calls *n = cuda_calls__new();
	int err = n ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < c->ntransfers; i++) {
		const struct cuda_transfer *t = &c->transfers[i];

		err = cuda_calls__add_transfer(n, t->span, t->class, t->dir, &t->sums);
		if (!err)
			err = hist__merge(find_transfer(n, t->span, t->dir)->sizes, t->sizes);
	}
	for (size_t i = 0; !err && i < c->nkernels; i++)
		err = cuda_calls__add_kernel(n, &c->kernels[i]);
	for (size_t i = 0; !err && i < c->nfailures; i++)
		err = cuda_calls__add_failure(n, c->failures[i].span, c->failures[i].code,
					      c->failures[i].count);
	if (err) {
		cuda_calls__free(n);
		return NULL;
	}
	n->lost = c->lost;
	n->names_lost = c->names_lost;
	return n;
}

static int subtract_transfers(struct cuda_calls *c, const struct cuda_calls *base)
{
	size_t n = 0;
	int err;

	for (size_t i = 0; i < c->ntransfers; i++) {
		struct cuda_transfer *t = &c->transfers[i];
		const struct cuda_transfer *old = find_transfer(base, t->span, t->dir);

		if (old) {
			take_sums(&t->sums, &old->sums);
			err = hist__subtract(t->sizes, old->sizes);
			if (err)
				return err;
		}
	}
	for (size_t i = 0; i < c->ntransfers; i++) {
		if (c->transfers[i].sums.count)
			c->transfers[n++] = c->transfers[i];
		else
			hist__free(c->transfers[i].sizes);
	}
	c->ntransfers = n;
	return 0;
}

int cuda_calls__subtract(struct cuda_calls *c, const struct cuda_calls *base)
{
	size_t n = 0;
	int err = subtract_transfers(c, base);

	if (err)
		return err;
	for (size_t i = 0; i < c->nkernels; i++) {
		struct cuda_kernel *k = &c->kernels[i];
		const struct cuda_kernel *old = find_kernel(base, k);

		if (old)
			take_sums(&k->sums, &old->sums);
		if (k->sums.count)
			c->kernels[n++] = *k;
		else
			free(k->name);
	}
	c->nkernels = n;
	n = 0;
	for (size_t i = 0; i < c->nfailures; i++) {
		struct cuda_failure *f = &c->failures[i];
		const struct cuda_failure *old = find_failure(base, f->span, f->code);

		if (old)
			f->count -= old->count < f->count ? old->count : f->count;
		if (f->count)
			c->failures[n++] = *f;
	}
	c->nfailures = n;
	c->lost -= base->lost < c->lost ? base->lost : c->lost;
	c->names_lost -= base->names_lost < c->names_lost ? base->names_lost : c->names_lost;
	return 0;
}

const char *cuda_direction_name(uint32_t dir)
{
	static const char *const names[] = {
	    [QBPF_CUDA_H2H] = "host to host",	       [QBPF_CUDA_H2D] = "host to device",
	    [QBPF_CUDA_D2H] = "device to host",	       [QBPF_CUDA_D2D] = "device to device",
	    [QBPF_CUDA_DEFAULT] = "told by addresses", [QBPF_CUDA_P2P] = "between devices",
	    [QBPF_CUDA_DIR_UNKNOWN] = "not known",     [QBPF_CUDA_NO_DIR] = "",
	};

	return dir < sizeof(names) / sizeof(*names) ? names[dir] : "";
}

const char *cuda_direction_id(uint32_t dir)
{
	static const char *const ids[] = {
	    [QBPF_CUDA_H2H] = "h2h",
	    [QBPF_CUDA_H2D] = "h2d",
	    [QBPF_CUDA_D2H] = "d2h",
	    [QBPF_CUDA_D2D] = "d2d",
	    [QBPF_CUDA_DEFAULT] = "default",
	    [QBPF_CUDA_P2P] = "p2p",
	    [QBPF_CUDA_DIR_UNKNOWN] = "unknown",
	};

	return dir < sizeof(ids) / sizeof(*ids) ? ids[dir] : "none";
}

const char *cuda_class_name(uint32_t class)
{
	return class == QBPF_CUDA_COPY	   ? "copy"
	       : class == QBPF_CUDA_MEMSET ? "memset"
					   : "allocation";
}

const char *cuda_error_name(uint32_t code, bool driver)
{
	static const struct {
		uint32_t code;
		const char *runtime, *driver;
	} names[] = {
#define NAME(code, runtime, driver) {code, runtime, driver},
	    CUDA_ERRORS(NAME)
#undef NAME
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].code == code)
			return driver ? names[i].driver : names[i].runtime;
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions of CUDA, with stand-ins of this program's: what is read of their arguments, by whom a
 * nested call is counted, what a failure changes, and that full tables lose nothing unseen.
 */
#include "harness.h"

enum { COPY = 1, BOX, STRUCT, OUTER, INNER, LAUNCH, LAUNCH6, CONFIG, LOOKUP, STAND_IN };

#define ROUNDS 1000

/* --- the functions ---------------------------------------------------------------------------- */

/* What comes back is in memory, so that no compiler knows it. */
static volatile int result;

#define KEEP   __asm__ volatile("" ::: "memory")
#define USE(p) __asm__ volatile("" ::"r"(p) : "memory")

int f_copy(void *dst, const void *src, size_t n, int kind, void *stream);
noinline int f_copy(void *dst, const void *src, size_t n, int kind, void *stream)
{
	(void)dst;
	(void)src;
	(void)kind;
	(void)stream;
	KEEP;
	return n == 13 ? 700 : 0;
}

/* As cudaMemcpy2DAsync: two of its arguments are on the stack. */
int f_box(void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t h, int kind,
	  void *stream);
noinline int f_box(void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t h, int kind,
		   void *stream)
{
	(void)dst;
	(void)dp;
	(void)src;
	(void)sp;
	(void)w;
	(void)h;
	(void)kind;
	(void)stream;
	KEEP;
	return result;
}

struct parms {
	uint64_t array;
	uint64_t w, h, d;
	uint32_t from, to;
	uint64_t pad;
};

int f_struct(const struct parms *p);
noinline int f_struct(const struct parms *p)
{
	USE(p);
	return result;
}

int f_inner(void *dst, size_t n);
noinline int f_inner(void *dst, size_t n)
{
	(void)dst;
	(void)n;
	KEEP;
	return result;
}

int f_outer(void *dst, size_t n);
noinline int f_outer(void *dst, size_t n)
{
	int err = f_inner(dst, n);

	KEEP;
	return err;
}

struct dims {
	uint32_t x, y, z;
};

int f_launch(const void *f, struct dims grid, struct dims block, void **args, size_t shared,
	     void *stream);
noinline int f_launch(const void *f, struct dims grid, struct dims block, void **args,
		      size_t shared, void *stream)
{
	(void)f;
	(void)grid;
	(void)block;
	(void)args;
	(void)shared;
	(void)stream;
	KEEP;
	return result;
}

int f_launch6(const void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	      unsigned bz, unsigned shared, void *stream);
noinline int f_launch6(const void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
		       unsigned by, unsigned bz, unsigned shared, void *stream)
{
	(void)f;
	(void)gx;
	(void)gy;
	(void)gz;
	(void)bx;
	(void)by;
	(void)bz;
	(void)shared;
	(void)stream;
	KEEP;
	return result;
}

struct config {
	struct dims grid, block;
	uint64_t shared;
	void *stream;
};

int f_config(const struct config *c, const void *f);
noinline int f_config(const struct config *c, const void *f)
{
	USE(c);
	(void)f;
	return result;
}

int f_lookup(uint64_t *out, void *library, const char *name);
noinline int f_lookup(uint64_t *out, void *library, const char *name)
{
	(void)library;
	KEEP;
	*out = 0xabc000 + strlen(name);
	return result;
}

/* A library that stands before the real one: both have the same name, so the same span. */
int f_real(size_t n);
noinline int f_real(size_t n)
{
	(void)n;
	KEEP;
	return result;
}

int f_before(size_t n);
noinline int f_before(size_t n)
{
	int err = f_real(n);

	KEEP;
	return err;
}

/* --- what the loader would say of them -------------------------------------------------------- */

#define SLOT(n)                                                                                    \
	{                                                                                          \
		.slot = (n)                                                                        \
	}
#define AT(n, offset)                                                                              \
	{                                                                                          \
		.slot = (n), .deref = 1, .off = (offset)                                           \
	}

static const struct qbpf_cuda_site site_of[] = {
    [COPY] = {.class = QBPF_CUDA_COPY, .bytes = {SLOT(3)}, .kind = SLOT(4), .stream = SLOT(5)},
    [BOX] = {.class = QBPF_CUDA_COPY,
	     .bytes = {SLOT(5), SLOT(6)},
	     .kind = SLOT(7),
	     .stream = SLOT(8),
	     .flags = QBPF_CUDA_PER_THREAD},
    [STRUCT] = {.class = QBPF_CUDA_COPY,
		.bytes = {AT(1, 8), AT(1, 16), AT(1, 24)},
		.array = {AT(1, 0)},
		.from = AT(1, 32),
		.to = AT(1, 36),
		.flags = QBPF_CUDA_MEMORY_TYPES},
    [OUTER] = {.class = QBPF_CUDA_MEMSET, .dir = QBPF_CUDA_NO_DIR, .bytes = {SLOT(2)}, .scale = 4},
    [INNER] = {.class = QBPF_CUDA_MEMSET, .dir = QBPF_CUDA_NO_DIR, .bytes = {SLOT(2)}},
    [LAUNCH] = {.class = QBPF_CUDA_LAUNCH,
		.kernel = SLOT(1),
		.grid = QBPF_CUDA_GRID_DIM3,
		.stream = SLOT(8)},
    [LAUNCH6] = {.class = QBPF_CUDA_LAUNCH,
		 .kernel = SLOT(1),
		 .grid = QBPF_CUDA_GRID_SIX,
		 .stream = SLOT(9)},
    [CONFIG] = {.class = QBPF_CUDA_LAUNCH,
		.kernel = SLOT(2),
		.grid = QBPF_CUDA_GRID_CONFIG,
		.stream = AT(1, 32)},
    [LOOKUP] = {.class = QBPF_CUDA_LOOKUP, .out = SLOT(1), .name = SLOT(3)},
    [STAND_IN] = {.class = QBPF_CUDA_ALLOC,
		  .dir = QBPF_CUDA_NO_DIR,
		  .bytes = {SLOT(1)},
		  .flags = QBPF_CUDA_NO_STREAM | QBPF_CUDA_SIZE32},
};

static void probe_cuda(struct harness *h, const void *addr, uint32_t span)
{
	assert_int_equal(bpf_map__update_elem(h->skel->maps.cuda_sites, &span, sizeof(span),
					      &site_of[span], sizeof(site_of[span]), 0),
			 0);
	harness_attach(h, h->skel->progs.on_cuda_return, true, h->child, addr,
		       QBPF_COOKIE(span, QBPF_ROLE_RETURN, span));
	harness_attach(h, h->skel->progs.on_cuda, false, h->child, addr,
		       QBPF_COOKIE(span, QBPF_ROLE_ENTRY, span));
}

/* --- reading ---------------------------------------------------------------------------------- */

struct found {
	struct qbpf_cuda_cell cell;
	size_t n; /* keys that matched */
};

static bool key_matches(const struct qbpf_cuda_key *k, const struct qbpf_cuda_key *want)
{
	return k->span == want->span && k->what == want->what && k->dir == want->dir &&
	       k->stream == want->stream && k->code == want->code && k->kernel == want->kernel &&
	       !memcmp(k->grid, want->grid, sizeof(k->grid));
}

/* The cell of this key, whatever its process and caller. */
static struct found cell_of(struct bpf_map *map, struct qbpf_cuda_key want)
{
	struct qbpf_cuda_key key, *prev = NULL;
	struct found f = {.n = 0};
	int fd = bpf_map__fd(map);

	while (!bpf_map_get_next_key(fd, prev, &key)) {
		prev = &key;
		if (!key_matches(&key, &want))
			continue;
		assert_int_equal(bpf_map_lookup_elem(fd, &key, &f.cell), 0);
		f.n++;
	}
	return f;
}

static size_t keys_in(struct bpf_map *map)
{
	struct qbpf_cuda_key key, *prev = NULL;
	size_t n = 0;

	while (!bpf_map_get_next_key(bpf_map__fd(map), prev, &key)) {
		prev = &key;
		n++;
	}
	return n;
}

#define BYTES(h, ...)                                                                              \
	cell_of((h)->skel->maps.cuda_cells,                                                        \
		(struct qbpf_cuda_key){.what = QBPF_CUDA_CELL_BYTES, __VA_ARGS__})
#define ERRORS(h, ...)                                                                             \
	cell_of((h)->skel->maps.cuda_cells,                                                        \
		(struct qbpf_cuda_key){.what = QBPF_CUDA_CELL_ERROR, __VA_ARGS__})
#define LAUNCHES(h, ...)                                                                           \
	cell_of((h)->skel->maps.cuda_launches,                                                     \
		(struct qbpf_cuda_key){.what = QBPF_CUDA_CELL_LAUNCH, __VA_ARGS__})

static void run(struct harness *h, int (*work)(void), const void *const *fns, const uint32_t *spans,
		size_t n)
{
	child_prepare(h, work);
	for (size_t i = 0; i < n; i++)
		probe_cuda(h, fns[i], spans[i]);
	assert_int_equal(child_run(h), 0);
}

#define RUN(h, work, fns, spans) run(h, work, fns, spans, sizeof(spans) / sizeof((spans)[0]))

static void start(struct harness *h, bool multi)
{
	harness_open(h, multi);
	harness_load(h);
}

static uint64_t nothing_lost(struct harness *h)
{
	return h->skel->bss->stat_cuda_lost + h->skel->bss->stat_cuda_names_lost;
}

/* --- tests ------------------------------------------------------------------------------------ */

static int work_copies(void)
{
	struct parms p = {.w = 3, .h = 5, .d = 7, .from = 1, .to = 2};

	for (int i = 0; i < ROUNDS; i++) {
		f_copy(NULL, NULL, 100 + i % 2, 1, NULL);
		f_copy(NULL, NULL, 13, 2, (void *)77);
		f_copy(NULL, NULL, 50, 9, (void *)2); /* no such kind */
		f_box(NULL, 0, NULL, 0, 11, 13, 3, NULL);
		p.array = i % 4 == 0;
		f_struct(&p);
	}
	f_struct(NULL); /* nothing to be read there */
	return 0;
}

static void t_copies(void **state)
{
	static const void *const fns[] = {f_copy, f_box, f_struct};
	static const uint32_t spans[] = {COPY, BOX, STRUCT};
	struct harness h;
	struct found f;
	struct hist_sum sizes;

	start(&h, way_of(state));
	RUN(&h, work_copies, fns, spans);
	f = BYTES(&h, .span = COPY, .dir = QBPF_CUDA_H2D, .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.bytes, ROUNDS / 2 * 201);
	assert_int_equal(f.cell.failed, 0);
	assert_int_equal(f.cell.untold, 0);
	assert_int_equal(f.cell.unsized_count, 0);
	assert_true(f.cell.ns > 0);
	sizes = hist_of(&h, QBPF_CUDA_BYTES(COPY, QBPF_CUDA_H2D));
	assert_int_equal(sizes.n, ROUNDS);
	assert_int_equal(sizes.sum, ROUNDS / 2 * 201);
	assert_int_equal(sizes.min, 100);
	assert_int_equal(sizes.max, 101);
	/* What failed has moved nothing. */
	f = BYTES(&h, .span = COPY, .dir = QBPF_CUDA_D2H, .stream = QBPF_CUDA_STREAM_OWN);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.failed, ROUNDS);
	assert_int_equal(f.cell.bytes, 0);
	assert_int_equal(f.cell.ns, 0);
	assert_int_equal(f.cell.failed_bytes, 13 * ROUNDS);
	assert_int_equal(hist_of(&h, QBPF_CUDA_BYTES(COPY, QBPF_CUDA_D2H)).n, 0);
	assert_int_equal(ERRORS(&h, .span = COPY, .code = 700).cell.count, ROUNDS);
	f = BYTES(&h, .span = COPY, .dir = QBPF_CUDA_DIR_UNKNOWN,
		  .stream = QBPF_CUDA_STREAM_PER_THREAD);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.bytes, 50 * ROUNDS);
	f = BYTES(&h, .span = BOX, .dir = QBPF_CUDA_D2D, .stream = QBPF_CUDA_STREAM_PER_THREAD);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.bytes, 143 * ROUNDS);
	/* Of every fourth the width counts elements of no known size. */
	f = BYTES(&h, .span = STRUCT, .dir = QBPF_CUDA_H2D, .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.unsized_count, ROUNDS / 4);
	assert_int_equal(f.cell.bytes, 105 * ROUNDS * 3 / 4);
	f = BYTES(&h, .span = STRUCT, .dir = QBPF_CUDA_DIR_UNKNOWN,
		  .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.cell.count, 1);
	assert_int_equal(f.cell.unsized_count, 1);
	/* They are spans like any other. */
	assert_int_equal(hist_of(&h, COPY).n, 3 * ROUNDS);
	assert_int_equal(NODE(&h, COPY).count, 3 * ROUNDS);
	assert_int_equal(not_clean(&h, COPY) + not_clean(&h, BOX) + not_clean(&h, STRUCT), 0);
	assert_int_equal(nothing_lost(&h), 0);
	harness_close(&h);
}

static int work_nested(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		result = i % 10 ? 0 : 2;
		f_outer(NULL, 8);
		f_inner(NULL, 3);
		f_before(1000);
		f_real(24);
	}
	return 0;
}

/* A call inside a call is part of it. */
static void t_nested(void **state)
{
	static const void *const fns[] = {f_outer, f_inner, f_before, f_real};
	static const uint32_t spans[] = {OUTER, INNER, STAND_IN, STAND_IN};
	struct harness h;
	struct found f;

	start(&h, way_of(state));
	RUN(&h, work_nested, fns, spans);
	f = BYTES(&h, .span = OUTER, .dir = QBPF_CUDA_NO_DIR, .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.failed, ROUNDS / 10);
	assert_int_equal(f.cell.bytes, 32 * ROUNDS * 9 / 10);
	assert_int_equal(ERRORS(&h, .span = OUTER, .code = 2).cell.count, ROUNDS / 10);
	/* Alone it counts; inside it has a span, and no figures. */
	f = BYTES(&h, .span = INNER, .dir = QBPF_CUDA_NO_DIR, .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.bytes, 3 * ROUNDS * 9 / 10);
	assert_int_equal(ERRORS(&h, .span = INNER, .code = 2).cell.count, ROUNDS / 10);
	assert_int_equal(hist_of(&h, INNER).n, 2 * ROUNDS);
	assert_int_equal(NODE(&h, OUTER, INNER).count, ROUNDS);
	assert_int_equal(NODE(&h, INNER).count, ROUNDS);
	/* The same function inside itself is one call, with what the outer one was asked for. */
	f = BYTES(&h, .span = STAND_IN, .dir = QBPF_CUDA_NO_DIR);
	assert_int_equal(f.cell.count, 2 * ROUNDS);
	assert_int_equal(f.cell.bytes, 1024 * ROUNDS * 9 / 10);
	assert_int_equal(hist_of(&h, STAND_IN).n, 2 * ROUNDS);
	assert_int_equal(not_clean(&h, OUTER) + not_clean(&h, INNER) + not_clean(&h, STAND_IN), 0);
	assert_int_equal(nothing_lost(&h), 0);
	harness_close(&h);
}

static int work_launches(void)
{
	struct config c = {.grid = {9, 8, 7}, .block = {6, 5, 4}, .stream = (void *)0x5000};
	uint64_t handle;

	f_lookup(&handle, NULL, "_Z5alphaPf");
	for (int i = 0; i < ROUNDS; i++) {
		result = i % 4 ? 0 : 1;
		f_launch((void *)0x1111, (struct dims){1, 2, 3}, (struct dims){32, 4, 5}, NULL, 0,
			 NULL);
		f_launch((void *)0x1111, (struct dims){1, 2, 4}, (struct dims){32, 4, 5}, NULL, 0,
			 (void *)0x9000);
		f_launch6((void *)0x2222, 1, 2, 3, 4, 5, 6, 0, (void *)1);
		f_config(&c, (void *)0x3333);
	}
	return 0;
}

static void t_launches(void **state)
{
	static const void *const fns[] = {f_launch, f_launch6, f_config, f_lookup};
	static const uint32_t spans[] = {LAUNCH, LAUNCH6, CONFIG, LOOKUP};
	struct qbpf_cuda_handle_key key = {.handle = 0xabc000 + 10};
	struct qbpf_cuda_handle handle;
	struct harness h;
	struct found f;

	start(&h, way_of(state));
	RUN(&h, work_launches, fns, spans);
	f = LAUNCHES(&h, .span = LAUNCH, .kernel = 0x1111, .grid = {1, 2, 3, 32, 4, 5},
		     .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.n, 1);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(f.cell.failed, ROUNDS / 4);
	f = LAUNCHES(&h, .span = LAUNCH, .kernel = 0x1111, .grid = {1, 2, 4, 32, 4, 5},
		     .stream = QBPF_CUDA_STREAM_OWN);
	assert_int_equal(f.cell.count, ROUNDS);
	f = LAUNCHES(&h, .span = LAUNCH6, .kernel = 0x2222, .grid = {1, 2, 3, 4, 5, 6},
		     .stream = QBPF_CUDA_STREAM_LEGACY);
	assert_int_equal(f.cell.count, ROUNDS);
	f = LAUNCHES(&h, .span = CONFIG, .kernel = 0x3333, .grid = {9, 8, 7, 6, 5, 4},
		     .stream = QBPF_CUDA_STREAM_OWN);
	assert_int_equal(f.cell.count, ROUNDS);
	assert_int_equal(keys_in(h.skel->maps.cuda_launches), 4);
	key.tgid = h.child;
	assert_int_equal(bpf_map__lookup_elem(h.skel->maps.cuda_handles, &key, sizeof(key), &handle,
					      sizeof(handle), 0),
			 0);
	assert_string_equal(handle.name, "_Z5alphaPf");
	assert_int_equal(handle.kernel, 0);
	assert_int_equal(nothing_lost(&h), 0);
	harness_close(&h);
}

static int work_many_grids(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		f_launch((void *)(uintptr_t)(0x1000 + i % 2), (struct dims){i, 1, 1},
			 (struct dims){1, 1, 1}, NULL, 0, NULL);
	for (unsigned i = 0; i < 100; i++)
		f_launch((void *)(uintptr_t)(0x100000 + i), (struct dims){1, 1, 1},
			 (struct dims){1, 1, 1}, NULL, 0, NULL);
	return 0;
}

/* Grids that find no room are counted with their kernel, and kernels that find none as lost. */
static void t_full(void **state)
{
	static const void *const fns[] = {f_launch};
	static const uint32_t spans[] = {LAUNCH};
	uint64_t in_launches = 0, in_cells = 0;
	struct bpf_map *maps[2];
	struct harness h;

	harness_open(&h, way_of(state));
	bpf_map__set_max_entries(h.skel->maps.cuda_launches, 16);
	bpf_map__set_max_entries(h.skel->maps.cuda_cells, 8);
	harness_load(&h);
	RUN(&h, work_many_grids, fns, spans);
	maps[0] = h.skel->maps.cuda_launches;
	maps[1] = h.skel->maps.cuda_cells;
	for (int m = 0; m < 2; m++) {
		struct qbpf_cuda_key key, *prev = NULL;
		struct qbpf_cuda_cell cell;

		while (!bpf_map_get_next_key(bpf_map__fd(maps[m]), prev, &key)) {
			prev = &key;
			assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(maps[m]), &key, &cell), 0);
			*(m ? &in_cells : &in_launches) += cell.count;
		}
	}
	assert_int_equal(keys_in(maps[0]), 16);
	assert_int_equal(keys_in(maps[1]), 8);
	assert_int_equal(in_launches, 16);
	/* The first two kernels found their cell there, and six of the hundred. */
	assert_int_equal(in_cells, ROUNDS - 16 + 6);
	assert_int_equal(h.skel->bss->stat_cuda_lost, 100 - 6);
	assert_int_equal(in_launches + in_cells + h.skel->bss->stat_cuda_lost, ROUNDS + 100);
	assert_int_equal(hist_of(&h, LAUNCH).n, ROUNDS + 100);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_copies),
	    BOTH_WAYS(t_nested),
	    BOTH_WAYS(t_launches),
	    BOTH_WAYS(t_full),
	};

	return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Functions of CUDA: which symbols are sites, of which span, and how their arguments are read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "built.h"
#include "plan/plan.h"

/* Symbols at 0x2000, 0x2020, ...; 'i' before ';' is imported, '=' before a name: at the address of
 * the one before it. */
static void funcs_make(struct func_table *t, const char *const *names)
{
	memset(t, 0, sizeof(*t));
	t->funcs = calloc(64, sizeof(*t->funcs));
	for (size_t i = 0; names[i]; i++) {
		struct elf_func *f = &t->funcs[t->n];
		const char *s = names[i];

		f->addr = 0x2000 + 0x20 * i;
		if (!strncmp(s, "i;", 2)) {
			f->flags = FUNC_IMPORTED;
			f->addr = 0;
			s += 2;
		} else if (*s == '=') {
			f->addr = f[-1].addr;
			s++;
		}
		f->name = f->demangled = s;
		f->off = f->addr;
		f->size = 0x20;
		f->alias_of = t->n++;
	}
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct plan_span *span_of(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < p->nspans; i++)
		if (!strcmp(p->spans[i].name, name))
			return &p->spans[i];
	return NULL;
}

static size_t sites_of(const struct plan *p, const char *name)
{
	const struct plan_span *s = span_of(p, name);
	size_t n = 0;

	for (size_t i = 0; s && i < p->nsites; i++)
		n += &p->spans[p->sites[i].span - 1] == s;
	return n;
}

static struct plan *choose(struct plan *p, const struct plan_opts *o,
			   const struct plan_object *objs, size_t from, size_t n)
{
	struct err e = {{0}};

	if (!p)
		p = plan__new();
	if (plan_select(p, o, objs, from, n, &e))
		fail_msg("%s", e.text);
	return p;
}

/* The site of a symbol, as the kernel is told of it. */
static struct qbpf_cuda_site site_at(const struct plan *p, const struct func_table *t,
				     const char *symbol)
{
	struct qbpf_cuda_site out = {0};

	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; !strcmp(t->funcs[i].name, symbol) && k < p->nsites; k++)
			if (p->sites[k].addr == t->funcs[i].addr) {
				plan_site__cuda(&p->sites[k], &out);
				return out;
			}
	fail_msg("%s is no site", symbol);
	return out;
}

static void t_twins(void **state)
{
	struct func_table t;
	struct plan_object o = {.path = "/x/libcudart-9335f6a2.so.12", .funcs = &t};
	struct qbpf_cuda_site s;
	struct plan *p;

	(void)state;
	funcs_make(&t,
		   LIST("cudaMemcpyAsync", "cudaMemcpyAsync_ptsz", "cudaMemcpy", "=cudaMemcpy_ptds",
			"cudaMemcpyX", "cudaMemcp", "cudaGetDevice", "cudaLaunchKernel",
			"cudaLaunchKernelExC_ptsz", "_cudaMalloc", "i;cudaFree"));
	p = choose(NULL, &(struct plan_opts){0}, &o, 0, 1);
	assert_int_equal(p->nspans, 4);
	assert_int_equal(p->nsites, 5);
	assert_int_equal(sites_of(p, "cuda:cudaMemcpyAsync"), 2);
	assert_int_equal(sites_of(p, "cuda:cudaMemcpy"), 1); /* two names, one function */
	assert_int_equal(sites_of(p, "cuda:cudaLaunchKernel"), 1);
	assert_int_equal(sites_of(p, "cuda:cudaLaunchKernelExC"), 1);
	assert_int_equal(span_of(p, "cuda:cudaMemcpy")->kind, SPAN_CUDA);
	s = site_at(p, &t, "cudaMemcpyAsync");
	assert_int_equal(s.class, QBPF_CUDA_COPY);
	assert_int_equal(s.bytes[0].slot, 3);
	assert_int_equal(s.bytes[1].slot, 0);
	assert_int_equal(s.kind.slot, 4);
	assert_int_equal(s.stream.slot, 5);
	assert_int_equal(s.flags, 0);
	s = site_at(p, &t, "cudaMemcpyAsync_ptsz");
	assert_int_equal(s.flags, QBPF_CUDA_PER_THREAD);
	s = site_at(p, &t, "cudaLaunchKernelExC_ptsz");
	assert_int_equal(s.grid, QBPF_CUDA_GRID_CONFIG);
	assert_int_equal(s.kernel.slot, 2);
	assert_int_equal(s.stream.deref, 1);
	assert_int_equal(s.stream.off, 32);
	assert_int_equal(p->nnotes, 0);
	plan__free(p);
	free(t.funcs);
}

/* The first versions had sizes of 32 bits and other structures. */
static void t_versions(void **state)
{
	struct func_table t;
	struct plan_object o = {.path = "libcuda.so.1", .funcs = &t};
	struct qbpf_cuda_site s;
	struct plan *p;

	(void)state;
	funcs_make(&t, LIST("cuMemcpyHtoD", "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds", "cuMemcpy3D",
			    "cuMemcpy3D_v2", "cuMemcpyAsync", "cuMemsetD16_v2"));
	p = choose(NULL, &(struct plan_opts){0}, &o, 0, 1);
	assert_int_equal(p->nspans, 4);
	assert_int_equal(sites_of(p, "cuda:cuMemcpyHtoD"), 3);
	assert_int_equal(site_at(p, &t, "cuMemcpyHtoD").flags, QBPF_CUDA_SIZE32);
	assert_int_equal(site_at(p, &t, "cuMemcpyHtoD_v2").flags, 0);
	assert_int_equal(site_at(p, &t, "cuMemcpyHtoD_v2_ptds").flags, QBPF_CUDA_PER_THREAD);
	assert_int_equal(site_at(p, &t, "cuMemcpyHtoD_v2").dir, QBPF_CUDA_H2D);
	s = site_at(p, &t, "cuMemcpy3D");
	assert_int_equal(s.bytes[0].slot, 0);
	assert_int_equal(s.dir, QBPF_CUDA_DIR_UNKNOWN);
	assert_int_equal(s.flags, 0);
	s = site_at(p, &t, "cuMemcpy3D_v2");
	assert_int_equal(s.bytes[2].off, 192);
	assert_int_equal(s.flags, QBPF_CUDA_MEMORY_TYPES);
	assert_int_equal(site_at(p, &t, "cuMemcpyAsync").flags, 0);
	assert_int_equal(site_at(p, &t, "cuMemsetD16_v2").scale, 2);
	/* Only the driver is there: that is said. */
	assert_int_equal(p->nnotes, 1);
	assert_non_null(strstr(p->notes[0], "no CUDA runtime with symbols"));
	assert_true(cuda_name_is_driver("cuda:cuMemcpyHtoD"));
	assert_true(cuda_name_is_driver("cuLaunchKernel"));
	assert_false(cuda_name_is_driver("cuda:cudaMemcpy"));
	plan__free(p);
	free(t.funcs);
}

static size_t spans_with(enum cuda_mode mode, enum cuda_api api)
{
	struct func_table rt, drv, app;
	struct plan_object o[3] = {{.path = "app", .funcs = &app},
				   {.path = "libcudart", .funcs = &rt},
				   {.path = "libcuda", .funcs = &drv}};
	struct plan_opts opts = {.cuda = mode, .cuda_api = api};
	struct plan *p;
	size_t n;

	funcs_make(&rt, LIST("cudaMalloc", "cudaMemcpy"));
	funcs_make(&drv, LIST("cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuLaunchKernel"));
	funcs_make(&app, LIST("i;cudaMalloc", "i;cuLaunchKernel", "main"));
	p = choose(NULL, &opts, o, 0, 3);
	n = p->nspans;
	plan__free(p);
	free(rt.funcs);
	free(drv.funcs);
	free(app.funcs);
	return n;
}

static void t_apis(void **state)
{
	(void)state;
	assert_int_equal(spans_with(CUDA_AUTO, CUDA_API_AUTO), 2);
	assert_int_equal(spans_with(CUDA_UPROBE, CUDA_API_AUTO), 2);
	assert_int_equal(spans_with(CUDA_UPROBE, CUDA_API_RUNTIME), 2);
	assert_int_equal(spans_with(CUDA_UPROBE, CUDA_API_DRIVER), 3);
	assert_int_equal(spans_with(CUDA_UPROBE, CUDA_API_BOTH), 5);
	assert_int_equal(spans_with(CUDA_OFF, CUDA_API_BOTH), 0);
	assert_int_equal(spans_with(CUDA_AGENT, CUDA_API_AUTO), 0);
}

/* Libraries that come one after the other: copies share spans, a late runtime is told of. */
static void t_late(void **state)
{
	struct func_table rt, drv;
	struct plan_object o[4] = {{.path = "libcuda", .funcs = &drv},
				   {.path = "a/libcudart.so.12", .funcs = &rt},
				   {.path = "b/libcudart-1234.so", .funcs = &rt},
				   {.path = "c/libcuda-copy.so", .funcs = &drv}};
	struct plan_opts opts = {0};
	struct plan *p;

	(void)state;
	funcs_make(&rt, LIST("cudaMalloc", "cudaMemcpy"));
	funcs_make(&drv, LIST("cuMemAlloc_v2"));
	p = choose(NULL, &opts, o, 1, 2); /* the runtime */
	assert_int_equal(p->nspans, 2);
	choose(p, &opts, o, 2, 3); /* another copy */
	assert_int_equal(p->nspans, 2);
	assert_int_equal(sites_of(p, "cuda:cudaMemcpy"), 2);
	choose(p, &opts, o, 3, 4); /* a driver, which is inside it */
	assert_int_equal(p->nspans, 2);
	assert_int_equal(p->nnotes, 0);
	plan__free(p);

	p = choose(NULL, &opts, o, 0, 1); /* the driver first */
	assert_int_equal(p->nspans, 1);
	assert_int_equal(p->nnotes, 1);
	choose(p, &opts, o, 1, 2);
	assert_int_equal(p->nspans, 3);
	assert_int_equal(p->nnotes, 2);
	assert_non_null(strstr(p->notes[1], "opened after the driver"));
	plan__free(p);
	free(rt.funcs);
	free(drv.funcs);
}

/* -f of a CUDA function has no second probe there. */
static void t_with_functions(void **state)
{
	struct func_table t;
	struct plan_object o = {.path = "app", .funcs = &t};
	const char *globs[] = {"*"};
	struct plan_opts opts = {.funcs = globs, .nfuncs = 1};
	struct plan *p;

	(void)state;
	funcs_make(&t, LIST("main", "cudaMalloc", "cudaFoo"));
	p = choose(NULL, &opts, &o, 0, 1);
	assert_int_equal(p->nsites, 3);
	assert_non_null(span_of(p, "cuda:cudaMalloc"));
	assert_null(span_of(p, "cudaMalloc"));
	assert_non_null(span_of(p, "cudaFoo"));
	plan__free(p);
	free(t.funcs);
}

/* nvcc's entry jumps to the real one, which is hooked alone; one that does more is a site too. */
static void t_wrapper(void **state)
{
	static const char source[] =
	    "int cudaLaunchKernel(void *f) { __asm__ volatile(\"\"); return f != 0; }\n"
	    "int __cudaLaunchKernel(void *f) { return cudaLaunchKernel(f); }\n"
	    "int main(void) { return __cudaLaunchKernel(0); }\n";
	struct plan_opts opts = {0};
	struct built b;
	struct plan *p;

	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		struct plan_object o = {.path = "out"};

		built_make(&b, plain ? "gcc -O0" : "gcc -O2 -fno-inline", source);
		o.img = b.img;
		o.funcs = b.funcs;
		o.unwind = b.unwind;
		assert_true(elf_image__info(b.img)->has_cuda);
		p = choose(NULL, &opts, &o, 0, 1);
		assert_int_equal(sites_of(p, "cuda:cudaLaunchKernel"), 1);
		assert_int_equal(sites_of(p, "cuda:__cudaLaunchKernel"), plain);
		plan__free(p);
		built_free(&b);
	}
}

/* Who only calls CUDA does not hold it. */
static void t_imports(void **state)
{
	struct built b;

	(void)state;
	built_make(&b, "gcc -shared -fPIC",
		   "int cudaLaunchKernel(void *f); int cuMemAlloc_v2(void *);\n"
		   "int a(void) { return cudaLaunchKernel(0) + cuMemAlloc_v2(0); }\n");
	assert_false(elf_image__info(b.img)->has_cuda);
	built_free(&b);
}

/*
 * Of two copies one cannot be armed: the span has the other's ends. (Its loop goes back to the first
 * instruction.)
 */
static void t_copies_apart(void **state)
{
	static const char good[] = "int cudaMalloc(void **p, unsigned long n) { return !*p + n; }\n"
				   "int main(void) { void *p = 0; return cudaMalloc(&p, 1); }\n";
	static const char bad[] = "__asm__(\".globl cudaMalloc\\n.type cudaMalloc,@function\\n"
				  "cudaMalloc: dec %rdi\\njne cudaMalloc\\nret\\n"
				  ".size cudaMalloc,.-cudaMalloc\\n\");\n"
				  "int main(void) { return 0; }\n";
	struct plan_kernel k = {.uprobe_multi = true};
	struct plan_process proc = {.can_throw = true};
	struct plan_opts opts = {0};
	struct plan_object o[2];
	struct built b[2];
	struct plan *p;
	size_t armed = 0;

	(void)state;
	built_make(&b[0], "gcc -O2", good);
	built_make(&b[1], "gcc -O2", bad);
	for (int i = 0; i < 2; i++)
		o[i] = (struct plan_object){
		    .path = "x", .img = b[i].img, .funcs = b[i].funcs, .unwind = b[i].unwind};
	p = choose(NULL, &opts, o, 0, 2);
	plan_preflight(p, &opts, o, 2, &proc, &k);
	assert_int_equal(p->nspans, 1);
	assert_true(p->spans[0].armed);
	assert_int_equal(p->spans[0].kind, SPAN_CUDA);
	assert_int_equal(p->spans[0].way, RET_URETPROBE);
	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		if (s->object == 0 && s->verdict == VERDICT_ARM) {
			armed++;
			assert_true(s->cuda); /* the ends too, for the kernel's program */
		}
		if (s->object == 1)
			assert_int_equal(s->verdict, VERDICT_REFUSED);
	}
	assert_int_equal(armed, 2);
	plan__free(p);
	built_free(&b[0]);
	built_free(&b[1]);
}

static enum return_way way_of(const struct plan_process *proc, enum return_way asked,
			      const char *because)
{
	static const char source[] =
	    "int cudaMalloc(void **p, unsigned long n) { return !*p + n; }\n"
	    "int main(void) { void *p = 0; return cudaMalloc(&p, 1); }\n";
	struct plan_opts opts = {.returns = asked};
	struct plan_kernel k = {.uprobe_multi = true};
	struct plan_object o = {.path = "x"};
	enum return_way way;
	struct built b;
	struct plan *p;

	built_make(&b, "gcc -O2 -fcf-protection=none", source);
	o.img = b.img;
	o.funcs = b.funcs;
	o.unwind = b.unwind;
	p = choose(NULL, &opts, &o, 0, 1);
	plan_preflight(p, &opts, &o, 1, proc, &k);
	assert_int_equal(p->nspans, 1);
	assert_true(p->spans[0].armed);
	way = p->spans[0].way;
	if (!strstr(p->spans[0].way_reason, because))
		fail_msg("%s", p->spans[0].way_reason);
	plan__free(p);
	built_free(&b);
	return way;
}

/* What throws does not throw through a C interface; all else that bars a uretprobe still does. */
static void t_returns(void **state)
{
	struct plan_process throws = {.can_throw = true, .can_cancel = true},
			    cancels = {.can_cancel = true, .can_cancel_cuda = true},
			    handles = {.signal_stack = true};

	(void)state;
	assert_int_equal(way_of(&throws, RET_AUTO, "CUDA's C interface"), RET_URETPROBE);
	assert_int_equal(way_of(&throws, RET_URETPROBE, "CUDA's C interface"), RET_URETPROBE);
	assert_int_equal(way_of(&throws, RET_GUARD, "CUDA's C interface"), RET_URETPROBE);
	assert_int_equal(way_of(&throws, RET_INSNS, ""), RET_INSNS);
	assert_int_equal(way_of(&throws, RET_NONE, "entries are counted"), RET_NONE);
	assert_int_equal(way_of(&cancels, RET_AUTO, "pthread_cancel"), RET_INSNS);
	assert_int_equal(way_of(&handles, RET_AUTO, "signal stack"), RET_INSNS);
}

static void count_unmatched(void *ctx, const char *option, const char *glob, const char *near)
{
	(void)option;
	(void)glob;
	(void)near;
	++*(size_t *)ctx;
}

/* What -u and -f ask for by name is selected, of both interfaces, and nothing else then. */
static void t_by_name(void **state)
{
	static const struct {
		enum cuda_mode mode;
		const char *u, *f;
		size_t cuda, funcs, unmatched;
	} cases[] = {
	    {CUDA_AGENT, NULL, NULL, 0, 0, 0},
	    {CUDA_AGENT, "cuda:cudaMem*", NULL, 1, 0, 0},
	    {CUDA_AUTO, "cuda:*Mem*", NULL, 3, 0, 0},
	    {CUDA_UPROBE, "libcuda*!cuda:*", NULL, 4, 0, 0},
	    {CUDA_AUTO, "cuda:cuBlas*", NULL, 0, 0, 1},
	    {CUDA_AUTO, "strategy:*", NULL, 2, 0, 1}, /* of markers: there is none */
	    {CUDA_OFF, "cuda:*", NULL, 0, 0, 1},
	    {CUDA_AGENT, NULL, "cuda*", 2, 1, 0},
	    {CUDA_AUTO, NULL, "cuMemAlloc_v2", 3, 0, 0},
	    {CUDA_OFF, NULL, "cudaMalloc", 0, 1, 0},
	};
	struct func_table rt, drv;
	struct plan_object o[2] = {{.path = "libcudart.so.13", .funcs = &rt},
				   {.path = "libcuda.so.1", .funcs = &drv}};

	(void)state;
	funcs_make(&rt, LIST("cudaMalloc", "cudaMemcpy", "cudaFoo"));
	funcs_make(&drv, LIST("cuMemAlloc_v2", "cuMemcpyHtoD_v2"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct plan_opts opts = {.cuda = cases[i].mode};
		size_t n[2] = {0}, unmatched = 0;
		struct plan *p;

		opts.markers = (const char **)&cases[i].u;
		opts.nmarkers = cases[i].u != NULL;
		opts.funcs = (const char **)&cases[i].f;
		opts.nfuncs = cases[i].f != NULL;
		p = choose(NULL, &opts, o, 0, 2);
		for (size_t k = 0; k < p->nspans; k++)
			n[p->spans[k].kind == SPAN_FUNC]++;
		plan_unmatched(p, &opts, o, 2, count_unmatched, &unmatched);
		if (n[0] != cases[i].cuda || n[1] != cases[i].funcs ||
		    unmatched != cases[i].unmatched)
			fail_msg("case %zu: %zu of CUDA, %zu functions, %zu unmatched", i, n[0],
				 n[1], unmatched);
		plan__free(p);
	}
	free(rt.funcs);
	free(drv.funcs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_twins),	 cmocka_unit_test(t_versions),
	    cmocka_unit_test(t_apis),	 cmocka_unit_test(t_late),
	    cmocka_unit_test(t_wrapper), cmocka_unit_test(t_with_functions),
	    cmocka_unit_test(t_imports), cmocka_unit_test(t_copies_apart),
	    cmocka_unit_test(t_returns), cmocka_unit_test(t_by_name),
	};

	return cmocka_run_group_tests_name("plan_cuda", tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Verdicts: each marker form on each kind of kernel and process, and the reasons given. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "elf_maker.h"
#include "plan/plan.h"

#define T MAKER_TEXT_ADDR

/* The function "f" of this size at T, as a file with .symtab has it. */
static void add_symbol(struct maker *m, size_t size)
{
	Elf64_Sym syms[2] = {{0},
			     {.st_name = 1,
			      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			      .st_value = T,
			      .st_size = size}};
	uint32_t code = maker_section(m, ".text", SHT_PROGBITS, "", 0, 0);
	uint32_t names;

	m->sh[code].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	m->sh[code].sh_addr = T;
	m->sh[code].sh_offset = MAKER_TEXT_OFF;
	m->sh[code].sh_size = MAKER_SIZE;
	syms[1].st_shndx = (uint16_t)code;
	names = maker_section(m, ".strtab", SHT_STRTAB, "\0f", 3, 0);
	maker_section(m, ".symtab", SHT_SYMTAB, syms, sizeof(syms), names);
}

struct opened {
	struct maker m;
	struct elf_image *img;
	struct func_table *funcs;
};

static void open_code(struct opened *f, const uint8_t *code, size_t size)
{
	maker_init(&f->m);
	maker_put(&f->m, MAKER_TEXT_OFF, code, size);
	add_symbol(&f->m, size);
	maker_finish(&f->m);
	assert_int_equal(elf_image__open_memory(f->m.data, f->m.len, "x", &f->img, NULL), 0);
	assert_int_equal(func_table__read(f->img, NULL, &f->funcs, NULL), 0);
}

static void close_code(struct opened *f)
{
	func_table__free(f->funcs);
	elf_image__free(f->img);
	maker_free(&f->m);
}

struct site_case {
	const char *what;
	uint8_t code[40]; /* the function at T; ends with its last ret */
	uint64_t at;	  /* the marker */
	enum verdict verdict;
	uint64_t armed_at;
	enum price_class price;
	const char *reason; /* part of it */
};

/* Each is one function "f" with one marker p:m in it. */
static struct plan *preflight(struct opened *f, const struct site_case *c,
			      const struct plan_opts *opts, const struct plan_process *proc,
			      const struct plan_kernel *k)
{
	struct usdt_marker mk = {.provider = "p", .name = "m", .addr = T + c->at};
	struct usdt_table mt = {.markers = &mk, .n = 1};
	struct plan_object o = {.path = "/bin/x", .markers = &mt};
	size_t size = sizeof(c->code);
	struct plan *p = plan__new();

	while (size > 1 && c->code[size - 1] != 0xc3)
		size--;
	open_code(f, c->code, size);
	o.img = f->img;
	o.funcs = f->funcs;
	elf_image__addr_to_off(f->img, mk.addr, &mk.off);
	assert_int_equal(plan_select(p, opts, &o, 0, 1, NULL), 0);
	assert_int_equal(p->nsites, 1);
	plan_preflight(p, opts, &o, 1, proc, k);
	assert_int_equal(p->sites[0].func_addr, T);
	return p;
}

static void check_all(const struct site_case *rows, size_t n, const struct plan_opts *opts,
		      const struct plan_process *proc, const struct plan_kernel *k)
{
	for (size_t i = 0; i < n; i++) {
		const struct site_case *c = &rows[i];
		struct opened f;
		struct plan *p = preflight(&f, c, opts, proc, k);
		const struct plan_site *s = &p->sites[0];
		uint64_t off = 0;

		if (s->verdict != c->verdict || s->addr != T + c->armed_at ||
		    (s->verdict != VERDICT_REFUSED && s->price != c->price) ||
		    !c->reason != !s->reason || (c->reason && !strstr(s->reason, c->reason)))
			fail_msg("%s: %s at +%llu, %s: %s", c->what, verdict_name(s->verdict),
				 (unsigned long long)(s->addr - T), price_class_name(s->price),
				 s->reason ? s->reason : "-");
		/* The file offset follows the address, the place of origin is kept. */
		assert_int_equal(elf_image__addr_to_off(f.img, s->addr, &off), 0);
		assert_int_equal(s->off, off);
		assert_int_equal(s->found_addr, T + c->at);
		assert_int_equal(p->spans[0].armed, s->verdict != VERDICT_REFUSED);
		plan__free(p);
		close_code(&f);
	}
}

#define CHECK(rows, opts, proc, k) check_all(rows, sizeof(rows) / sizeof((rows)[0]), opts, proc, k)

static const struct plan_kernel old_kernel = {.uprobe_multi = false};
static const struct plan_kernel new_kernel = {.nop5_optimised = true,
					      .nop5_fork_unsafe = true,
					      .uprobe_multi = true,
					      .uretprobe_syscall = true};
static const struct plan_opts plain, unsafe = {.unsafe = true};
static const struct plan_process quiet, forks = {.can_fork = true};

/* mov %rdi,-8(%rsp): the function has data below %rsp */
#define LEAF 0x48, 0x89, 0x7c, 0x24, 0xf8
#define NOP5 0x0f, 0x1f, 0x44, 0x00, 0x00
#define OVER 0x48, 0x8d, 0x64, 0x24, 0x80, NOP5, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0

static void on_new_kernel(void **state)
{
	static const struct site_case rows[] = {
	    {"nop", {LEAF, 0x90, 0xc3}, 5, VERDICT_ARM, 5, PRICE_EMULATED, NULL},
	    {"nop5 over a red zone", {LEAF, NOP5, 0xc3}, 5, VERDICT_REFUSED, 5, 0, "red zone"},
	    {"... with a nop before",
	     {LEAF, 0x90, NOP5, 0xc3},
	     6,
	     VERDICT_RELOCATED,
	     5,
	     PRICE_EMULATED,
	     "1-byte nop"},
	    {"... that a jump avoids",
	     {0x74, 0x06, LEAF, 0x90, NOP5, 0xc3},
	     8,
	     VERDICT_REFUSED,
	     8,
	     0,
	     "red zone"},
	    {"... that is the end of another instruction",
	     {LEAF, 0xb8, 0, 0, 0, 0x90, NOP5, 0xc3},
	     10,
	     VERDICT_REFUSED,
	     10,
	     0,
	     "red zone"},
	    {"nop5 stepped over", {LEAF, OVER, 0xc3}, 10, VERDICT_ARM, 10, PRICE_NOP5, NULL},
	    {"nop5, no red zone", {0x31, 0xc0, NOP5, 0xc3}, 2, VERDICT_ARM, 2, PRICE_NOP5, NULL},
	    {"nop5 at the entry", {NOP5, LEAF, 0xc3}, 0, VERDICT_ARM, 0, PRICE_NOP5, NULL},
	    {"nop10 with its nop",
	     {LEAF, 0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xc3},
	     6,
	     VERDICT_RELOCATED,
	     5,
	     PRICE_EMULATED,
	     "10-byte nop"},
	    {"nop10 alone",
	     {LEAF, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0xc3},
	     5,
	     VERDICT_REFUSED,
	     5,
	     0,
	     "10-byte nop"},
	    {"endbr64",
	     {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x5d, 0xc3},
	     0,
	     VERDICT_RELOCATED,
	     4,
	     PRICE_EMULATED,
	     "endbr64"},
	    {"endbr64, then a nop5",
	     {0xf3, 0x0f, 0x1e, 0xfa, NOP5, LEAF, 0xc3},
	     0,
	     VERDICT_RELOCATED,
	     4,
	     PRICE_NOP5,
	     "endbr64"},
	    {"in an instruction",
	     {0xb8, 0x90, 0x90, 0x90, 0x90, 0xc3},
	     2,
	     VERDICT_REFUSED,
	     2,
	     0,
	     "not the start of an instruction"},
	    {"lock",
	     {0x90, 0xf0, 0xff, 0x07, 0xc3},
	     1,
	     VERDICT_REFUSED,
	     1,
	     0,
	     "no such instruction"},
	    {"push", {0x90, 0x55, 0x5d, 0xc3}, 1, VERDICT_ARM, 1, PRICE_EMULATED, NULL},
	    {"ret", {0x90, 0xc3}, 1, VERDICT_ARM, 1, PRICE_STEPPED, NULL},
	};

	(void)state;
	CHECK(rows, &plain, &quiet, &new_kernel);
}

static void on_old_kernel(void **state)
{
	static const struct site_case rows[] = {
	    {"nop5 is stepped and harms nothing",
	     {LEAF, NOP5, 0xc3},
	     5,
	     VERDICT_ARM,
	     5,
	     PRICE_STEPPED,
	     NULL},
	    {"stepped over", {LEAF, OVER, 0xc3}, 10, VERDICT_ARM, 10, PRICE_STEPPED, NULL},
	    {"nop", {LEAF, 0x90, 0xc3}, 5, VERDICT_ARM, 5, PRICE_EMULATED, NULL},
	};

	(void)state;
	CHECK(rows, &plain, &forks, &old_kernel);
}

/* A forked child dies on a rewritten nop5: it is never armed itself. */
static void when_it_forks(void **state)
{
	static const struct site_case rows[] = {
	    {"stepped over: the lea before",
	     {LEAF, OVER, 0xc3},
	     10,
	     VERDICT_RELOCATED,
	     5,
	     PRICE_STEPPED,
	     "forks"},
	    {"the nop before",
	     {0x31, 0xc0, 0x90, NOP5, 0xc3},
	     3,
	     VERDICT_RELOCATED,
	     2,
	     PRICE_EMULATED,
	     "forks"},
	    {"alone", {0x31, 0xc0, NOP5, 0xc3}, 2, VERDICT_REFUSED, 2, 0, "forks"},
	    {"entry: what follows",
	     {NOP5, 0x55, 0x5d, 0xc3},
	     0,
	     VERDICT_RELOCATED,
	     5,
	     PRICE_EMULATED,
	     "forks"},
	    {"nop is as ever", {0x31, 0xc0, 0x90, 0xc3}, 2, VERDICT_ARM, 2, PRICE_EMULATED, NULL},
	};

	(void)state;
	CHECK(rows, &plain, &forks, &new_kernel);
}

static void by_unsafe(void **state)
{
	static const struct site_case rows[] = {
	    {"red zone", {LEAF, NOP5, 0xc3}, 5, VERDICT_ARM, 5, PRICE_NOP5, "--unsafe although"},
	    /* What the kernel would refuse, or what would break the program for sure, stays
	       refused. */
	    {"in an instruction",
	     {0xb8, 0x90, 0x90, 0x90, 0x90, 0xc3},
	     2,
	     VERDICT_REFUSED,
	     2,
	     0,
	     "not the start"},
	    {"lock",
	     {0x90, 0xf0, 0xff, 0x07, 0xc3},
	     1,
	     VERDICT_REFUSED,
	     1,
	     0,
	     "no such instruction"},
	};

	(void)state;
	CHECK(rows, &unsafe, &quiet, &new_kernel);
}

static void without_symbols(void **state)
{
	/* No function around it is known: nothing proves the nop5 safe, but a nop is a nop. */
	static const uint8_t code[] = {0x31, 0xc0, NOP5, 0x90, OVER, 0xc3};
	struct usdt_marker mk[] = {{.provider = "p", .name = "a", .addr = T + 2},
				   {.provider = "p", .name = "b", .addr = T + 7},
				   {.provider = "p", .name = "c", .addr = T + 13},
				   {.provider = "p", .name = "d", .addr = 0x999000},
				   {.provider = "p", .name = "e", .addr = MAKER_DATA_ADDR}};
	struct usdt_table mt = {.markers = mk, .n = 5};
	struct plan_object o[] = {{.path = "/bin/x", .markers = &mt},
				  {.path = "/bin/gone", .markers = &mt}};
	struct plan *p = plan__new();
	struct maker m;

	(void)state;
	maker_init(&m);
	maker_put(&m, MAKER_TEXT_OFF, code, sizeof(code));
	maker_finish(&m);
	assert_int_equal(
	    elf_image__open_memory(m.data, m.len, "x", (struct elf_image **)&o[0].img, NULL), 0);
	assert_int_equal(plan_select(p, &plain, o, 0, 2, NULL), 0);
	plan_preflight(p, &plain, o, 2, &quiet, &new_kernel);
	assert_int_equal(p->nsites, 10);
	assert_int_equal(p->sites[0].verdict, VERDICT_REFUSED);
	assert_int_equal(p->sites[1].verdict, VERDICT_ARM);
	assert_int_equal(p->sites[2].verdict, VERDICT_ARM);
	assert_int_equal(p->sites[2].price, PRICE_NOP5);
	assert_int_equal(p->sites[3].verdict, VERDICT_REFUSED);
	assert_int_equal(p->sites[4].verdict, VERDICT_REFUSED);
	for (int i = 5; i < 10; i++) {
		assert_int_equal(p->sites[i].verdict, VERDICT_REFUSED);
		assert_non_null(strstr(p->sites[i].reason, "/bin/gone could not be opened"));
	}
	plan__free(p);
	elf_image__free((struct elf_image *)o[0].img);
	maker_free(&m);
}

/* One begin refused and one armed: the span lives; no end armed: it does not. */
static void whole_spans(void **state)
{
	static const uint8_t code[] = {LEAF, 0x90, NOP5, 0x90, 0xc3, 0x90};
	struct usdt_marker mk[] = {{.provider = "p", .name = "a__begin", .addr = T + 5},
				   {.provider = "p", .name = "a__begin", .addr = T + 1},
				   {.provider = "p", .name = "a__end", .addr = T + 11},
				   {.provider = "p", .name = "b__begin", .addr = T + 5},
				   {.provider = "p", .name = "b__end", .addr = T + 1}};
	struct usdt_table mt = {.markers = mk, .n = 5};
	struct plan_object o = {.path = "/bin/x", .markers = &mt};
	uint64_t ns[PRICE_N] = {
	    [PRICE_NOP5] = 1200, [PRICE_EMULATED] = 5000, [PRICE_STEPPED] = 20000};
	struct plan *p = plan__new();
	struct opened f;

	(void)state;
	open_code(&f, code, 13);
	o.img = f.img;
	o.funcs = f.funcs;
	assert_int_equal(plan_select(p, &plain, &o, 0, 1, NULL), 0);
	plan_preflight(p, &plain, &o, 1, &quiet, &new_kernel);
	assert_int_equal(p->nspans, 2);
	assert_string_equal(p->spans[0].name, "p:a");
	assert_true(p->spans[0].armed);
	assert_false(p->spans[1].armed);
	assert_int_equal(plan_span_price(p, 1, ns), 10000);
	/* Twice is once. */
	plan_preflight(p, &plain, &o, 1, &quiet, &new_kernel);
	assert_int_equal(p->nsites, 5);
	plan__free(p);
	close_code(&f);
}

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33);
}

/* Any bytes, any site: a verdict each, and what is armed is the start of an instruction. */
static void fuzz(void **state)
{
	static const uint8_t pieces[][6] = {{NOP5},
					    {0x90, NOP5},
					    {0x48, 0x8d, 0x64, 0x24, 0x80},
					    {0xf3, 0x0f, 0x1e, 0xfa},
					    {0x48, 0x89, 0x7c, 0x24, 0xf8},
					    {0x55},
					    {0xc3},
					    {0xeb, 0x03}};
	static const size_t lens[] = {5, 6, 5, 4, 5, 1, 1};
	size_t armed = 0, refused = 0, moved = 0;
	uint64_t seed = 11;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct usdt_marker mk[8];
		struct usdt_table mt = {.markers = mk, .n = 8};
		struct plan_object o = {.path = "/bin/x", .markers = &mt};
		const struct plan_process *proc = round & 1 ? &forks : &quiet;
		struct plan *p = plan__new();
		uint8_t code[128];
		struct opened f;
		size_t n = 0;

		/* Half of them are whole instructions without jumps, the rest is anything. */
		while (n + 6 < sizeof(code)) {
			size_t k = rnd(&seed) % (round & 2 ? 7 : 8);

			memcpy(code + n, pieces[k], 6);
			n += round & 2 ? lens[k] : 1 + rnd(&seed) % 6;
		}
		memset(code + n, 0x90, sizeof(code) - n);
		open_code(&f, code, sizeof(code));
		o.img = f.img;
		o.funcs = f.funcs;
		for (int i = 0; i < 8; i++)
			mk[i] = (struct usdt_marker){
			    .provider = "p", .name = "m", .addr = T + rnd(&seed) % 140};
		assert_int_equal(plan_select(p, &plain, &o, 0, 1, NULL), 0);
		plan_preflight(p, &plain, &o, 1, proc, &new_kernel);
		for (size_t i = 0; i < p->nsites; i++) {
			const struct plan_site *s = &p->sites[i];

			assert_int_not_equal(s->verdict, VERDICT_PENDING);
			if (s->verdict == VERDICT_REFUSED) {
				assert_non_null(s->reason);
				refused++;
				continue;
			}
			armed++;
			moved += s->verdict == VERDICT_RELOCATED;
			assert_int_not_equal(insn_classify(f.img, s->addr, NULL), INSN_BAD);
			if (s->addr < T + sizeof(code) &&
			    !red_zone_stepped_over(f.img, s->found_addr))
				assert_true(insn_boundary(f.img, T, s->addr));
		}
		plan__free(p);
		close_code(&f);
	}
	if (armed < 500 || refused < 500 || moved < 20)
		fail_msg("%zu armed, %zu refused, %zu moved", armed, refused, moved);
}

static void words(void **state)
{
	enum return_way w;

	(void)state;
	for (int i = RET_AUTO; i <= RET_NONE; i++) {
		assert_int_equal(return_way_parse(return_way_name(i), &w), 0);
		assert_int_equal(w, i);
	}
	assert_int_equal(return_way_parse("", &w), -EINVAL);
	assert_string_equal(verdict_name(VERDICT_RELOCATED), "relocated");
	assert_string_equal(price_class_name(PRICE_NOP5), "nop5");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(on_new_kernel),
	    cmocka_unit_test(on_old_kernel),
	    cmocka_unit_test(when_it_forks),
	    cmocka_unit_test(by_unsafe),
	    cmocka_unit_test(without_symbols),
	    cmocka_unit_test(whole_spans),
	    cmocka_unit_test(fuzz),
	    cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

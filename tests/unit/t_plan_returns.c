// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which way each function's end is seen, in code that gcc and clang compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "built.h"
#include "plan/plan.h"

static const char source[] =
    "#define X extern \"C\" __attribute__((noinline))\n"
    "X int out(int x) { static volatile int n; if (x == 99) throw x; return n += x; }\n"
    "int (*volatile fp)(int) = out;\n"
    "X int plain(int x) { return out(x) + 1; }\n"
    "X int safe(int x) noexcept { return out(x) + 1; }\n"
    "X int leaf(int x) { return x * 3; }\n"
    "X int tail(int x) { return out(x + 1); }\n"
    "X int vtail(int x) { return fp(x + 1); }\n"
    "X int jump(int x) { return out(x); }\n"
    "X void forever() { for (;;) out(1); }\n"
    "X void spin(volatile int *p) { while (!*p) ; }\n"
    "X int many(int x) { if (x == 1) return out(5) + 2; if (x == 2) return out(6) * 3; return "
    "out(x) ^ 7; }\n"
    "X int gone(const unsigned char *p) { static void *const to[] = {&&a, &&b, &&c}; int n = 0;\n"
    " a: n += out(*p); goto *to[*++p % 3]; b: n ^= out(7); goto *to[*++p % 3]; c: return n; }\n"
    "X int cold(int x) { if (__builtin_expect(x == 5, 0)) { out(x); out(x + 1);\n"
    " asm volatile(\"\"); if (out(4)) return 12; } return out(x) + 1; }\n"
    "int main(int c, char **v) { if (c > 50) forever(); if (c > 40) spin(&c); return plain(c) + "
    "safe(c) +\n"
    " leaf(c) + tail(c) + vtail(c) + jump(c) + many(c) + gone((unsigned char *)v[0]) + cold(c); "
    "}\n";

struct one {
	struct plan *p;
	const struct plan_span *span;
	int entries, returns, rets, tails, singles;
	enum verdict entry; /* of the entry or the single role */
	const char *reason;
};

static void plan_one(struct one *r, const struct built *b, const char *name,
		     const struct plan_opts *how, const struct plan_process *proc,
		     const struct plan_kernel *k)
{
	struct plan_object o = {
	    .path = "/bin/out", .img = b->img, .funcs = b->funcs, .unwind = b->unwind};
	const char *f[] = {name};
	struct plan_opts opts = *how;

	memset(r, 0, sizeof(*r));
	opts.funcs = f;
	opts.nfuncs = 1;
	r->p = plan__new();
	assert_int_equal(plan_select(r->p, &opts, &o, 0, 1, NULL), 0);
	plan_preflight(r->p, &opts, &o, 1, proc, k);
	if (r->p->nspans != 1)
		fail_msg("%s: %zu spans", name, r->p->nspans);
	r->span = &r->p->spans[0];
	for (size_t i = 0; i < r->p->nsites; i++) {
		const struct plan_site *s = &r->p->sites[i];
		const uint8_t *byte;
		uint64_t off;

		assert_int_not_equal(s->verdict, VERDICT_PENDING);
		assert_int_equal(elf_image__addr_to_off(b->img, s->addr, &off), 0);
		assert_int_equal(s->off, off);
		assert_int_equal(elf_image__bytes(b->img, s->addr, 1, &byte), 1);
		switch (s->role) {
		case QBPF_ROLE_ENTRY:
			r->entries++;
			r->entry = s->verdict;
			r->reason = s->reason;
			break;
		case QBPF_ROLE_INSTANT:
			r->singles++;
			r->entry = s->verdict;
			break;
		case QBPF_ROLE_RETURN:
			r->returns++;
			assert_int_equal(s->addr, r->p->sites[0].addr);
			assert_int_equal(s->price, PRICE_URETPROBE);
			break;
		case QBPF_ROLE_RET_INSN:
			r->rets++;
			assert_true(*byte == 0xc3 || *byte == 0xf3);
			assert_int_equal(s->price, PRICE_STEPPED);
			break;
		case QBPF_ROLE_TAIL_JUMP:
			r->tails++;
			assert_true(*byte == 0xe9 || *byte == 0xeb || *byte == 0xff ||
				    *byte >> 4 == 4);
			break;
		default:
			fail_msg("%s: role %d", name, s->role);
		}
	}
	assert_int_not_equal(r->span->way, RET_AUTO);
}

static const struct plan_kernel kernel = {
    .nop5_optimised = true, .uprobe_multi = true, .uretprobe_syscall = true};
static const struct plan_kernel old_kernel;
static const struct plan_process throws = {.can_throw = true};
static const struct plan_process quiet;
static const char *const commands[] = {"g++ -O2", "clang++ -O2", "g++ -O2 -fcf-protection",
				       "g++ -O3 -no-pie -fno-pie",
				       "clang++ -O1 -fno-omit-frame-pointer"};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void by_default(void **state)
{
	static const struct {
		const char *name;
		enum return_way way;
		enum span_kind kind;
	} rows[] = {
	    {"plain", RET_INSNS, SPAN_FUNC},	 {"safe", RET_URETPROBE, SPAN_FUNC},
	    {"leaf", RET_INSNS, SPAN_FUNC},	 {"many", RET_INSNS, SPAN_FUNC},
	    {"cold", RET_INSNS, SPAN_FUNC},	 {"tail", RET_INSNS, SPAN_FUNC},
	    {"vtail", RET_INSNS, SPAN_FUNC},	 {"jump", RET_NONE, SPAN_INSTANT},
	    {"forever", RET_NONE, SPAN_INSTANT}, {"gone", RET_NONE, SPAN_FUNC},
	};

	(void)state;
	for (size_t i = 0; i < NCOMMANDS; i++) {
		struct built b;

		built_make(&b, commands[i], source);
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			bool cet = strstr(commands[i], "cf-protection");
			struct one r;

			plan_one(&r, &b, rows[k].name, &(struct plan_opts){0}, &throws, &kernel);
			/* The table of a file without relocations can be read: all stays inside. */
			if (!strcmp(rows[k].name, "gone") && strstr(commands[i], "-no-pie")) {
				assert_int_equal(r.span->way, RET_INSNS);
				assert_int_equal(r.tails, 0);
				plan__free(r.p);
				continue;
			}
			/* Without a frame, forever() is a loop from its entry on. */
			if (!strcmp(rows[k].name, "forever") && r.reason &&
			    strstr(r.reason, "goes back")) {
				assert_false(r.span->armed);
				plan__free(r.p);
				continue;
			}
			/* With a frame, jump() does more than jump. */
			if (!strcmp(rows[k].name, "jump") && r.span->kind == SPAN_FUNC) {
				assert_non_null(strstr(commands[i], "frame-pointer"));
				plan__free(r.p);
				continue;
			}
			if (r.span->way != rows[k].way || r.span->kind != rows[k].kind)
				fail_msg("%s: %s: %s (%s)", commands[i], rows[k].name,
					 return_way_name(r.span->way),
					 r.span->way_reason ? r.span->way_reason : "-");
			assert_non_null(r.span->way_reason);
			/* What cannot be seen is not armed, all else is. */
			assert_int_equal(r.span->armed, strcmp(rows[k].name, "gone") != 0);
			if (!strcmp(rows[k].name, "gone"))
				assert_non_null(strstr(r.reason, "indirect jump"));
			else
				assert_int_equal(r.entry, cet ? VERDICT_RELOCATED : VERDICT_ARM);
			assert_int_equal(r.returns, rows[k].way == RET_URETPROBE);
			assert_int_equal(r.rets + r.tails > 0, rows[k].way == RET_INSNS);
			assert_int_equal(r.singles, rows[k].kind == SPAN_INSTANT);
			plan__free(r.p);
		}
		built_free(&b);
	}
}

static void every_ret(void **state)
{
	(void)state;
	for (size_t i = 0; i < NCOMMANDS; i++) {
		struct func_facts facts;
		const struct elf_func *f;
		struct built b;
		struct one r;

		built_make(&b, commands[i], source);
		f = built_func(&b, "many");
		assert_int_equal(func_facts__read(b.img, f->addr, f->size, &facts), 0);
		plan_one(&r, &b, "many", &(struct plan_opts){0}, &throws, &kernel);
		assert_int_equal(r.rets, facts.nret);
		assert_int_equal(r.tails, facts.ntail);
		assert_int_equal(r.entries, 1);
		func_facts__clear(&facts);
		plan__free(r.p);
		/* A jump to another function is an end. */
		plan_one(&r, &b, "tail", &(struct plan_opts){0}, &throws, &kernel);
		assert_true(r.tails == 1 || r.rets >= 1);
		plan__free(r.p);
		built_free(&b);
	}
}

static void processes(void **state)
{
	static const struct {
		const char *what;
		struct plan_process proc;
		const struct plan_kernel *kernel;
		enum return_way way;
		const char *why;
	} rows[] = {
	    {"quiet", {0}, &kernel, RET_URETPROBE, "nothing in the process"},
	    {"cancels", {.can_cancel = true}, &kernel, RET_INSNS, "pthread_cancel"},
	    {"switches", {.switches_stacks = true}, &kernel, RET_INSNS, "switches stacks"},
	    {"filtered", {.seccomp = 2}, &kernel, RET_INSNS, "seccomp"},
	    {"filtered, by interrupt", {.seccomp = 2}, &old_kernel, RET_URETPROBE, "nothing in"},
	    {"signal stack", {.signal_stack = true}, &kernel, RET_INSNS, "signal stack"},
	    {"strict seccomp", {.seccomp = 1}, &kernel, RET_URETPROBE, "nothing in"},
	    {"shadow stack", {.shadow_stack = true}, &kernel, RET_URETPROBE, "nothing in"},
	    {"shadow stack, old", {.shadow_stack = true}, &old_kernel, RET_INSNS, "shadow stack"},
	};
	struct built b;

	(void)state;
	built_make(&b, "g++ -O2", source);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct one r;

		plan_one(&r, &b, "plain", &(struct plan_opts){0}, &rows[i].proc, rows[i].kernel);
		if (r.span->way != rows[i].way || !strstr(r.span->way_reason, rows[i].why))
			fail_msg("%s: %s (%s)", rows[i].what, return_way_name(r.span->way),
				 r.span->way_reason);
		plan__free(r.p);
	}
	built_free(&b);
}

static void on_request(void **state)
{
	static const struct plan_kernel guard = {.uretprobe_syscall = true, .guard = true};
	static const struct {
		const char *what, *func;
		struct plan_opts opts;
		const struct plan_process *proc;
		const struct plan_kernel *kernel;
		enum return_way way;
		bool armed;
		size_t notes;
	} rows[] = {
	    {"uretprobe",
	     "plain",
	     {.returns = RET_URETPROBE},
	     &quiet,
	     &kernel,
	     RET_URETPROBE,
	     true,
	     0},
	    {"uretprobe, unsafe",
	     "plain",
	     {.returns = RET_URETPROBE},
	     &throws,
	     &kernel,
	     RET_NONE,
	     false,
	     0},
	    {"--unsafe",
	     "plain",
	     {.returns = RET_URETPROBE, .unsafe = true},
	     &throws,
	     &kernel,
	     RET_URETPROBE,
	     true,
	     1},
	    {"ret", "plain", {.returns = RET_INSNS}, &quiet, &kernel, RET_INSNS, true, 0},
	    {"ret, no way", "gone", {.returns = RET_INSNS}, &quiet, &kernel, RET_NONE, false, 0},
	    {"none", "plain", {.returns = RET_NONE}, &throws, &kernel, RET_NONE, true, 0},
	    {"guard", "plain", {.returns = RET_GUARD}, &throws, &guard, RET_GUARD, true, 0},
	    {"guard, not needed",
	     "safe",
	     {.returns = RET_GUARD},
	     &throws,
	     &guard,
	     RET_URETPROBE,
	     true,
	     0},
	    {"guard, impossible",
	     "plain",
	     {.returns = RET_GUARD},
	     &throws,
	     &kernel,
	     RET_INSNS,
	     true,
	     1},
	};
	struct built b;

	(void)state;
	built_make(&b, "g++ -O2", source);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct one r;

		plan_one(&r, &b, rows[i].func, &rows[i].opts, rows[i].proc, rows[i].kernel);
		if (r.span->way != rows[i].way || r.span->armed != rows[i].armed ||
		    r.p->nnotes != rows[i].notes)
			fail_msg("%s: %s (%s)", rows[i].what, return_way_name(r.span->way),
				 r.span->way_reason);
		assert_int_equal(r.span->kind,
				 rows[i].opts.returns == RET_NONE ? SPAN_INSTANT : SPAN_FUNC);
		assert_int_equal(r.returns,
				 rows[i].way == RET_URETPROBE || rows[i].way == RET_GUARD);
		plan__free(r.p);
	}
	built_free(&b);
}

/*
 * A uretprobe overwrites the word at %rsp. Of these functions it is no return address, or they
 * use it for more than returning.
 */
static void no_ordinary_frame(void **state)
{
	static const char *const names[] = {"entered", "undefined", "bare", "setjmp",
					    "dlsym_alias"};
	struct built b;
	struct one r;

	(void)state;
	built_make(&b, "gcc -O2 -fno-builtin",
		   "#define F(n, cfi) \".globl \" #n \"\\n.type \" #n \",@function\\n\" #n "
		   "\":\\n\" cfi \\\n"
		   "  \"nop; nop; ret\\n.size \" #n \",.-\" #n \"\\n\"\n"
		   "asm(F(entered, \".cfi_startproc\\n.cfi_adjust_cfa_offset 16\\n\")\n"
		   "    \".cfi_endproc\\n\"\n"
		   "    F(undefined, \".cfi_startproc\\n.cfi_undefined rip\\n\")\n"
		   "    \".cfi_endproc\\n\"\n"
		   "    F(bare, \"\")\n"
		   "    \".globl dlsym\\n.type dlsym,@function\\ndlsym:\\n\"\n"
		   "    F(dlsym_alias, \".cfi_startproc\\n\") \".cfi_endproc\\n\"\n"
		   "    \".size dlsym,.-dlsym\\n\"\n"
		   "    F(ordinary, \".cfi_startproc\\n\") \".cfi_endproc\\n\");\n"
		   "__attribute__((noinline, noipa)) int setjmp(void *p) { return *(int *)p; }\n"
		   "int main(int c, char **v) { return setjmp(&c); }\n");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		plan_one(&r, &b, names[i], &(struct plan_opts){0}, &quiet, &kernel);
		if (r.span->way != RET_INSNS || r.returns)
			fail_msg("%s: %s (%s)", names[i], return_way_name(r.span->way),
				 r.span->way_reason);
		plan__free(r.p);
		plan_one(&r, &b, names[i], &(struct plan_opts){.returns = RET_URETPROBE}, &quiet,
			 &kernel);
		assert_false(r.span->armed);
		plan__free(r.p);
	}
	plan_one(&r, &b, "ordinary", &(struct plan_opts){0}, &quiet, &kernel);
	assert_int_equal(r.span->way, RET_URETPROBE);
	plan__free(r.p);
	built_free(&b);
}

/* Without endbr64 the loop's head is the entry: its passes are no calls. */
static void entry_is_a_loop(void **state)
{
	struct built b;
	struct one r;

	(void)state;
	built_make(&b, "gcc -O2 -fcf-protection=none",
		   "__attribute__((noinline)) void spin(volatile int *p) { while (!*p) ; }\n"
		   "int main(int c, char **v) { spin(&c); return 0; }\n");
	plan_one(&r, &b, "spin", &(struct plan_opts){0}, &quiet, &kernel);
	assert_int_equal(r.entry, VERDICT_REFUSED);
	assert_non_null(strstr(r.reason, "first instruction"));
	assert_false(r.span->armed);
	plan__free(r.p);
	plan_one(&r, &b, "spin", &(struct plan_opts){.unsafe = true}, &quiet, &kernel);
	assert_int_equal(r.entry, VERDICT_ARM);
	assert_true(r.span->armed);
	plan__free(r.p);
	built_free(&b);
	/* Behind an endbr64 the entry itself is passed once a call, so it stays there. */
	built_make(&b, "gcc",
		   "void spin(volatile int *p);\n"
		   "asm(\".globl spin\\n.type spin,@function\\nspin: endbr64\\n\"\n"
		   "    \"1: mov (%rdi),%eax; test %eax,%eax; je 1b; ret\\n.size spin,.-spin\");\n"
		   "int main(int c, char **v) { spin(&c); return 0; }\n");
	plan_one(&r, &b, "spin", &(struct plan_opts){0}, &quiet, &kernel);
	assert_int_equal(r.entry, VERDICT_ARM);
	assert_int_equal(r.p->sites[0].addr, built_func(&b, "spin")->addr);
	plan__free(r.p);
	built_free(&b);
}

/* The cold part's RETs belong to the function, whether or not it has a symbol. */
static void cold_parts(void **state)
{
	static const char *const flags[] = {"g++ -O2 -shared -fPIC", "g++ -O2 -shared -fPIC -s"};
	int rets[2], tails[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct built b;
		struct one r;

		built_make(&b, flags[i], source);
		plan_one(&r, &b, "cold", &(struct plan_opts){0}, &throws, &kernel);
		if (r.span->way != RET_INSNS)
			fail_msg("%s: %s", flags[i], r.span->way_reason);
		rets[i] = r.rets;
		tails[i] = r.tails;
		plan__free(r.p);
		built_free(&b);
	}
	assert_int_equal(rets[0], rets[1]);
	assert_int_equal(tails[0], tails[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_default),	 cmocka_unit_test(every_ret),
	    cmocka_unit_test(processes),	 cmocka_unit_test(on_request),
	    cmocka_unit_test(no_ordinary_frame), cmocka_unit_test(entry_is_a_loop),
	    cmocka_unit_test(cold_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

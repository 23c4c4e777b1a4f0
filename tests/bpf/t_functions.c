/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions: every way that a call can end - return, RET instruction, tail call, longjmp, a
 * signal handler on its own stack, over the kernel's limit - with exact counts.
 */
#include <signal.h>

#include "harness.h"

DECLARE_SITE(mark_begin);
DECLARE_SITE(mark_end);
DECLARE_SITE(around_begin);
DECLARE_SITE(around_end);

#define ROUNDS 1000

static jmp_buf out;
static int deep, every;

static noinline void keep(void)
{
	__asm__ volatile("" ::: "memory");
}

/* --- plain nesting --------------------------------------------------------------------------- */

static noinline void inner(void)
{
	keep();
}

static noinline void outer(void)
{
	inner();
	inner();
	keep();
}

static int work_nest(void)
{
	for (int i = 0; i < ROUNDS; i++)
		outer();
	return 0;
}

static void t_nest(void **state)
{
	struct harness h;
	struct qbpf_node_cell f, g;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_nest);
	probe_function(&h, outer, 1);
	probe_function(&h, inner, 2);
	assert_int_equal(child_run(&h), 0);
	f = NODE(&h, 1);
	g = NODE(&h, 1, 2);
	assert_int_equal(f.count, ROUNDS);
	assert_int_equal(g.count, 2 * ROUNDS);
	assert_true(f.total_ns > g.total_ns);
	assert_int_equal(f.self_ns, f.total_ns - g.total_ns);
	assert_int_equal(f.total_ns, hist_of(&h, 1).sum);
	assert_int_equal(node_count(&h), 2);
	assert_int_equal(not_clean(&h, 1) + not_clean(&h, 2), 0);
	harness_close(&h);
}

/* --- longjmp --------------------------------------------------------------------------------- */

static noinline void jumper(int i)
{
	keep();
	if (every && i % every == 0)
		longjmp(out, 1);
	keep();
}

static noinline void caller(int i)
{
	jumper(i);
	keep();
}

static int work_longjmp(void)
{
	for (volatile int i = 0; i < ROUNDS; i++)
		if (!setjmp(out))
			caller(i);
	inner();
	return 0;
}

static void longjmp_with(void **state, int nth)
{
	uint64_t left = ROUNDS / nth;
	struct harness h;

	every = nth;
	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_longjmp);
	probe_function(&h, caller, 1);
	probe_function(&h, jumper, 2);
	probe_function(&h, inner, 3);
	assert_int_equal(child_run(&h), 0);
	for (uint32_t span = 1; span <= 2; span++) {
		assert_int_equal(hist_of(&h, span).n, ROUNDS - left);
		assert_int_equal(counts_of(&h, span).abandoned, left);
		assert_int_equal(not_clean(&h, span), left);
	}
	/* The depth does not creep: the tree is what it was at the first round. */
	assert_int_equal(node_count(&h), 3);
	assert_int_equal(NODE(&h, 3).count, 1);
	assert_int_equal(NODE(&h, 1, 2).count, ROUNDS - left);
	harness_close(&h);
}

static void t_longjmp_always(void **state)
{
	longjmp_with(state, 1);
}

static void t_longjmp_at_times(void **state)
{
	longjmp_with(state, 4);
}

/* The marker begins in the function that is jumped to, and its end is at times skipped. */
static int work_longjmp_marker(void)
{
	for (volatile int i = 0; i < ROUNDS; i++)
		if (!setjmp(out)) {
			SITE(mark_begin);
			caller(i);
			SITE(mark_end);
		}
	return 0;
}

static void t_longjmp_past_marker(void **state)
{
	uint64_t left = ROUNDS / 4;
	struct harness h;

	every = 4;
	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_longjmp_marker);
	probe(&h, mark_begin, 1, QBPF_ROLE_BEGIN, 1);
	probe(&h, mark_end, 1, QBPF_ROLE_END, 2);
	probe_function(&h, caller, 2);
	probe_function(&h, jumper, 3);
	assert_int_equal(child_run(&h), 0);
	for (uint32_t span = 1; span <= 3; span++) {
		assert_int_equal(hist_of(&h, span).n, ROUNDS - left);
		assert_int_equal(counts_of(&h, span).abandoned, left);
		assert_int_equal(not_clean(&h, span), left);
	}
	assert_int_equal(node_count(&h), 3);
	assert_int_equal(NODE(&h, 1, 2, 3).count, ROUNDS - left);
	harness_close(&h);
}

/* --- functions in assembly: RET instructions and tail calls ---------------------------------- */

void tail_f(void);
void tail_g(void);
void asm_rec(long n);
DECLARE_SITE(tail_f_jump);
DECLARE_SITE(tail_g_ret);
DECLARE_SITE(asm_rec_ret);

__asm__(".text\n"
	".globl tail_f,tail_g,tail_f_jump,tail_g_ret,asm_rec,asm_rec_ret\n"
	".type tail_f,@function\n.type tail_g,@function\n.type asm_rec,@function\n"
	"tail_f: nop\n nop\n"
	"tail_f_jump: jmp tail_g\n"
	".size tail_f,.-tail_f\n"
	"tail_g: nop\n nop\n"
	"tail_g_ret: ret\n"
	".size tail_g,.-tail_g\n"
	/* Calls itself n times more. */
	"asm_rec: push %rbx\n"
	"mov %rdi,%rbx\n test %rbx,%rbx\n jz 1f\n"
	"lea -1(%rbx),%rdi\n call asm_rec\n"
	"1: pop %rbx\n"
	"asm_rec_ret: ret\n"
	".size asm_rec,.-asm_rec\n");

static int work_tail(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		tail_f();
		tail_g();
	}
	return 0;
}

/* One return ends both: g, then f, in which it ran. */
static void t_tail_call_uretprobe(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_tail);
	probe_function(&h, tail_f, 1);
	probe_function(&h, tail_g, 2);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(NODE(&h, 1).count, ROUNDS);
	assert_int_equal(NODE(&h, 1, 2).count, ROUNDS);
	assert_int_equal(NODE(&h, 2).count, ROUNDS);
	assert_int_equal(node_count(&h), 3);
	assert_int_equal(not_clean(&h, 1) + not_clean(&h, 2), 0);
	harness_close(&h);
}

/* The jump ends f, so g is beside it. */
static void t_tail_call_ret_insn(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_tail);
	probe(&h, tail_f, 1, QBPF_ROLE_ENTRY_INSN, 0);
	probe(&h, tail_f_jump, 1, QBPF_ROLE_TAIL_JUMP, 0);
	probe(&h, tail_g, 2, QBPF_ROLE_ENTRY, 0);
	probe(&h, tail_g_ret, 2, QBPF_ROLE_RET_INSN, 0);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(NODE(&h, 1).count, ROUNDS);
	assert_int_equal(NODE(&h, 2).count, 2 * ROUNDS);
	assert_int_equal(node_count(&h), 2);
	assert_int_equal(not_clean(&h, 1) + not_clean(&h, 2), 0);
	harness_close(&h);
}

/* f by uretprobe, g by its RET: g runs inside f. */
static void t_tail_call_mixed(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_tail);
	probe_function(&h, tail_f, 1);
	probe(&h, tail_g, 2, QBPF_ROLE_ENTRY_INSN, 0);
	probe(&h, tail_g_ret, 2, QBPF_ROLE_RET_INSN, 0);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(NODE(&h, 1).count, ROUNDS);
	assert_int_equal(NODE(&h, 1, 2).count, ROUNDS);
	assert_int_equal(NODE(&h, 2).count, ROUNDS);
	assert_int_equal(not_clean(&h, 1) + not_clean(&h, 2), 0);
	harness_close(&h);
}

/* --- deep recursion -------------------------------------------------------------------------- */

static int work_deep(void)
{
	for (int i = 0; i < 10; i++)
		asm_rec(deep - 1);
	return 0;
}

/* The kernel has 64 return probes a thread: the calls below them are known to have no end. */
static void t_depth_100_uretprobe(void **state)
{
	struct harness h;

	deep = 100;
	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_deep);
	probe_function(&h, asm_rec, 1);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, 640);
	assert_int_equal(counts_of(&h, 1).ret_muted, 360);
	assert_int_equal(not_clean(&h, 1), 360);
	assert_int_equal(node_count(&h), 64);
	harness_close(&h);
}

/* RET instructions have no such limit, our stack has: their ends must not close other frames. */
static void t_depth_100_ret_insn(void **state)
{
	struct harness h;

	deep = 100;
	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_deep);
	probe(&h, asm_rec, 1, QBPF_ROLE_ENTRY_INSN, 0);
	probe(&h, asm_rec_ret, 1, QBPF_ROLE_RET_INSN, 0);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, 640);
	assert_int_equal(counts_of(&h, 1).depth_overflow, 360);
	assert_int_equal(not_clean(&h, 1), 360);
	harness_close(&h);
}

static noinline void deep_jump(int n)
{
	if (n < 0)
		return;
	if (n)
		deep_jump(n - 1);
	else
		longjmp(out, 1);
	keep();
}

/* A longjmp over all 64 leaves the kernel none to give: it must be said, not guessed. */
static int work_muted(void)
{
	if (!setjmp(out))
		deep_jump(79);
	for (int i = 0; i < 10; i++)
		inner();
	return 0;
}

static void t_muted_by_longjmp(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_muted);
	probe_function(&h, deep_jump, 1);
	probe_function(&h, inner, 2);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(counts_of(&h, 1).ret_muted, 16);
	assert_int_equal(counts_of(&h, 1).abandoned, 64);
	assert_int_equal(hist_of(&h, 1).n, 0);
	assert_int_equal(hist_of(&h, 2).n + counts_of(&h, 2).ret_muted, 10);
	assert_int_equal(not_clean(&h, 2), counts_of(&h, 2).ret_muted);
	harness_close(&h);
}

/* --- another stack --------------------------------------------------------------------------- */

static char signal_stack[64 * 1024] __attribute__((aligned(16)));
static sigjmp_buf signal_out;

static void on_signal(int sig)
{
	(void)sig;
	inner();
}

static noinline void interrupted(void)
{
	raise(SIGUSR1);
	inner();
	keep();
}

static void use_signal_stack(void)
{
	stack_t ss = {.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};

	sigaltstack(&ss, NULL);
	sigaction(SIGUSR1, &sa, NULL);
}

static int work_signal(void)
{
	use_signal_stack();
	for (int i = 0; i < ROUNDS; i++)
		interrupted();
	return 0;
}

/* The handler's calls are children of what it interrupts, which lives on. */
static void t_signal_stack(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_signal);
	probe_function(&h, interrupted, 1);
	probe_function(&h, inner, 2);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(NODE(&h, 1).count, ROUNDS);
	assert_int_equal(NODE(&h, 1, 2).count, 2 * ROUNDS);
	assert_int_equal(node_count(&h), 2);
	assert_int_equal(not_clean(&h, 1) + not_clean(&h, 2), 0);
	harness_close(&h);
}

static noinline void leave_handler(void)
{
	siglongjmp(signal_out, 1);
}

static void on_signal_leave(int sig)
{
	(void)sig;
	leave_handler();
}

static int work_signal_jump(void)
{
	struct sigaction sa = {.sa_handler = on_signal_leave, .sa_flags = SA_ONSTACK | SA_NODEFER};

	use_signal_stack();
	sigaction(SIGUSR1, &sa, NULL);
	for (volatile int i = 0; i < 100; i++)
		if (!sigsetjmp(signal_out, 0))
			interrupted();
		else
			inner();
	return 0;
}

/* Left by siglongjmp, from the signal stack back to the thread's own. */
static void t_signal_stack_longjmp(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_signal_jump);
	probe_function(&h, interrupted, 1);
	probe_function(&h, leave_handler, 2);
	probe_function(&h, inner, 3);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(counts_of(&h, 1).abandoned, 100);
	assert_int_equal(counts_of(&h, 2).abandoned, 100);
	assert_int_equal(NODE(&h, 3).count, 100);
	assert_int_equal(node_count(&h), 3);
	harness_close(&h);
}

/* --- a span that ends inside a traced function ----------------------------------------------- */

static noinline void ends_it(void)
{
	inner();
	SITE(around_end);
	inner();
	keep();
}

static int work_end_inside(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		SITE(around_begin);
		ends_it();
	}
	return 0;
}

/* The function goes on after the end of the span around it, and is counted. */
static void t_end_inside_function(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_end_inside);
	probe(&h, around_begin, 1, QBPF_ROLE_BEGIN, 1);
	probe(&h, around_end, 1, QBPF_ROLE_END, 2);
	probe_function(&h, ends_it, 2);
	probe_function(&h, inner, 3);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(NODE(&h, 1).count, ROUNDS);
	assert_int_equal(NODE(&h, 1, 2).count, ROUNDS);
	assert_int_equal(NODE(&h, 1, 2, 3).count, 2 * ROUNDS);
	assert_int_equal(node_count(&h), 3);
	for (uint32_t span = 1; span <= 3; span++)
		assert_int_equal(not_clean(&h, span), 0);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_nest),
	    BOTH_WAYS(t_longjmp_always),
	    BOTH_WAYS(t_longjmp_at_times),
	    BOTH_WAYS(t_longjmp_past_marker),
	    BOTH_WAYS(t_tail_call_uretprobe),
	    BOTH_WAYS(t_tail_call_ret_insn),
	    BOTH_WAYS(t_tail_call_mixed),
	    BOTH_WAYS(t_depth_100_uretprobe),
	    BOTH_WAYS(t_depth_100_ret_insn),
	    BOTH_WAYS(t_muted_by_longjmp),
	    BOTH_WAYS(t_signal_stack),
	    BOTH_WAYS(t_signal_stack_longjmp),
	    BOTH_WAYS(t_end_inside_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard: C++ exceptions, cancellation, longjmp and backtraces through functions with
 * uretprobes. The workload is unharmed, and the returns that there were are all counted. Skipped
 * where the kernel forbids to write to user memory (lockdown).
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <capstone/capstone.h>

#include "harness.h"
#include "t_guard_work.h"
#include "task_state.h"

static const char *const unwinders[] = {"_Unwind_RaiseException", "_Unwind_ForcedUnwind",
					"_Unwind_Resume", "_Unwind_Resume_or_Rethrow"};

static const void *symbol(const char *name)
{
	const void *p = dlsym(RTLD_DEFAULT, name);

	assert_non_null(p);
	return p;
}

/* A hook is linked for all processes, so that a forked child is guarded as well. */
static void hook(struct harness *h, struct bpf_program *prog, const void *addr)
{
	harness_attach(h, prog, false, -1, addr, 0);
}

static void hook_returns_of(struct harness *h, struct bpf_program *prog, const char *name)
{
	const ElfW(Sym) *sym = NULL;
	const void *p = symbol(name);
	cs_insn *insns;
	Dl_info info;
	csh cs;
	size_t n, rets = 0;

	assert_int_not_equal(dladdr1(p, &info, (void **)&sym, RTLD_DL_SYMENT), 0);
	assert_non_null(sym);
	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &cs), CS_ERR_OK);
	n = cs_disasm(cs, p, sym->st_size, (uint64_t)(uintptr_t)p, 0, &insns);
	for (size_t i = 0; i < n; i++) {
		if (insns[i].id != X86_INS_RET)
			continue;
		hook(h, prog, (const void *)(uintptr_t)insns[i].address);
		rets++;
	}
	assert_true(rets > 0);
	cs_free(insns, n);
	cs_close(&cs);
}

/* May programs write to user memory here? */
static bool write_user_allowed(void)
{
	struct bpf_insn insns[] = {
	    {.code = 0xb7, .dst_reg = 1},		 /* r1 = 0 */
	    {.code = 0xbf, .dst_reg = 2, .src_reg = 10}, /* r2 = r10 */
	    {.code = 0x07, .dst_reg = 2, .imm = -8},	 /* r2 -= 8 */
	    {.code = 0x7a, .dst_reg = 2, .imm = 0},	 /* *(u64 *)r2 = 0 */
	    {.code = 0xb7, .dst_reg = 3, .imm = 8},	 /* r3 = 8 */
	    {.code = 0x85, .imm = BPF_FUNC_probe_write_user},
	    {.code = 0xb7},
	    {.code = 0x95},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns,
			       sizeof(insns) / sizeof(insns[0]), NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void skip_locked_down(void)
{
	print_message("# this kernel is locked down: bpf_probe_write_user is refused\n");
	skip();
}

static void guard_open(struct harness *h, void **state, int (*work)(void))
{
	bool multi = way_of(state);
	struct qbpf_bpf *s;

	if (!write_user_allowed())
		skip_locked_down();
	harness_open(h, multi);
	s = h->skel;
	struct bpf_program *progs[] = {s->progs.on_unwind, s->progs.on_catch, s->progs.on_backtrace,
				       s->progs.on_backtrace_end};
	bpf_program__set_autoload(s->progs.on_return_slots, true);
	for (int i = 0; i < 4; i++) {
		bpf_program__set_autoload(progs[i], true);
		if (multi)
			bpf_program__set_expected_attach_type(progs[i], BPF_TRACE_UPROBE_MULTI);
	}
	harness_load(h);
	/* Before the links: the child would keep them alive. */
	child_prepare(h, work);
	/* Before any other probe changes the code that this disassembles. */
	hook_returns_of(h, s->progs.on_backtrace_end, "_Unwind_Backtrace");
	for (size_t i = 0; i < sizeof(unwinders) / sizeof(unwinders[0]); i++)
		hook(h, s->progs.on_unwind, symbol(unwinders[i]));
	hook(h, s->progs.on_catch, symbol("__cxa_begin_catch"));
	hook(h, s->progs.on_backtrace, symbol("_Unwind_Backtrace"));
}

/* `clean` calls returned, `left` were left by something else, and nothing else happened. */
static void assert_calls(struct harness *h, uint32_t span, uint64_t clean, uint64_t left)
{
	assert_int_equal(hist_of(h, span).n, clean);
	assert_int_equal(counts_of(h, span).abandoned, left);
	assert_int_equal(not_clean(h, span), left);
}

static void probe_chain(struct harness *h)
{
	probe_function(h, guard_each, 1);
	probe_function(h, guard_outer, 2);
	probe_function(h, guard_middle, 3);
	probe_function(h, guard_thrower, 4);
}

static int work_throw_quietly(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	return freopen("/dev/null", "w", stderr) ? work_throw() : 1;
}

/* Without the guard this kills the child: else the tests below would prove nothing. */
static void t_unguarded_dies(void **state)
{
	struct harness h;
	int status;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_throw_quietly);
	probe_chain(&h);
	status = child_run(&h);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	harness_close(&h);
}

static void t_throw(void **state)
{
	struct harness h;

	guard_open(&h, state, work_throw);
	probe_chain(&h);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, GUARD_ROUNDS, 0);
	for (uint32_t span = 2; span <= 4; span++)
		assert_calls(&h, span, 0, GUARD_ROUNDS);
	assert_int_equal(node_count(&h), 4);
	assert_int_equal(h.skel->bss->stat_guard_unwritten, 0);
	harness_close(&h);
}

static void t_throw_threads(void **state)
{
	struct harness h;

	guard_open(&h, state, work_throw_threads);
	probe_chain(&h);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, GUARD_ROUNDS * GUARD_THREADS, 0);
	for (uint32_t span = 2; span <= 4; span++)
		assert_calls(&h, span, 0, GUARD_ROUNDS * GUARD_THREADS);
	harness_close(&h);
}

static void t_rethrow(void **state)
{
	struct harness h;

	guard_open(&h, state, work_rethrow);
	probe_function(&h, guard_rethrower, 1);
	probe_function(&h, guard_middle, 2);
	probe_function(&h, guard_thrower, 3);
	assert_int_equal(child_run(&h), 0);
	for (uint32_t span = 1; span <= 3; span++)
		assert_calls(&h, span, 0, GUARD_ROUNDS);
	harness_close(&h);
}

static void t_throwing_destructors(void **state)
{
	struct harness h;

	guard_open(&h, state, work_destructors);
	probe_chain(&h);
	probe_function(&h, guard_destroyer, 5);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, GUARD_ROUNDS, 0);
	assert_calls(&h, 2, 0, GUARD_ROUNDS);
	assert_calls(&h, 3, 0, GUARD_ROUNDS);
	assert_calls(&h, 4, 0, 2 * GUARD_ROUNDS);
	assert_calls(&h, 5, 0, GUARD_ROUNDS);
	harness_close(&h);
}

static void t_cancel(void **state)
{
	struct harness h;

	guard_open(&h, state, work_cancel);
	probe_function(&h, guard_waits, 1);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, 0, 100);
	harness_close(&h);
}

static void t_exit_thread(void **state)
{
	struct harness h;

	guard_open(&h, state, work_exit_thread);
	probe_chain(&h);
	assert_int_equal(child_run(&h), 0);
	for (uint32_t span = 1; span <= 4; span++)
		assert_calls(&h, span, 20, 0);
	harness_close(&h);
}

static void t_longjmp_and_throw(void **state)
{
	struct harness h;

	guard_open(&h, state, work_longjmp_throw);
	probe_chain(&h);
	probe_function(&h, guard_jumper, 5);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, GUARD_ROUNDS, 0);
	for (uint32_t span = 2; span <= 5; span++)
		assert_calls(&h, span, 0, GUARD_ROUNDS);
	harness_close(&h);
}

static void t_tail_call(void **state)
{
	struct harness h;

	guard_open(&h, state, work_tail_throw);
	probe_function(&h, guard_tail, 1);
	probe_function(&h, guard_thrower, 2);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, GUARD_ROUNDS / 2, GUARD_ROUNDS / 2);
	assert_calls(&h, 2, GUARD_ROUNDS / 2, GUARD_ROUNDS / 2);
	harness_close(&h);
}

static void t_backtrace(void **state)
{
	struct harness h;

	guard_open(&h, state, work_backtrace);
	probe_function(&h, guard_traced_backtrace, 1);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, 11 * GUARD_ROUNDS, 0);
	harness_close(&h);
}

static void t_fork(void **state)
{
	struct harness h;

	guard_open(&h, state, work_fork_throw);
	probe_function(&h, guard_near, 1);
	assert_int_equal(child_run(&h), 0);
	assert_calls(&h, 1, 0, 20);
	assert_int_equal(h.skel->bss->stat_guard_unwritten, 0);
	harness_close(&h);
}

static int work_fork_far_quietly(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	return freopen("/dev/null", "w", stderr) ? work_fork_far() : 1;
}

/* The slots' pages are copy-on-write: what cannot be written is said. */
static void t_fork_untouched_pages(void **state)
{
	struct harness h;

	guard_open(&h, state, work_fork_far_quietly);
	probe_function(&h, guard_far, 1);
	assert_int_not_equal(child_run(&h), 0);
	assert_true(h.skel->bss->stat_guard_unwritten > 0);
	harness_close(&h);
}

/* Makes a page of a process its own and writable again, without a change to what is in it. */
static void make_writable(pid_t pid, uint64_t addr, void *unreadable)
{
	struct iovec local = {unreadable, 8}, remote = {(void *)(uintptr_t)addr, 8};

	assert_int_equal(process_vm_writev(pid, &local, 1, &remote, 1, 0), -1);
	assert_int_equal(errno, EFAULT);
}

static int on_notice(void *ctx, void *data, size_t size)
{
	const struct qbpf_notice *n = data;

	(void)size;
	if (n->type == QBPF_NOTICE_FORK)
		*(pid_t *)ctx = n->arg;
	return 0;
}

/* The remedy: user space, told of the fork, touches the page of each open slot. */
static void t_fork_remedied(void **state)
{
	void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct qbpf_open_frame f[16];
	struct ring_buffer *rb;
	pid_t forked = 0;
	struct harness h;
	int status;
	size_t n;

	assert_int_equal(pipe(guard_fixed), 0);
	guard_open(&h, state, work_fork_far);
	rb = ring_buffer__new(bpf_map__fd(h.skel->maps.notices), on_notice, &forked, NULL);
	assert_non_null(rb);
	probe_function(&h, guard_far, 1);
	assert_int_equal(write(h.go[1], "x", 1), 1);
	while (!forked)
		assert_true(ring_buffer__poll(rb, 120000) > 0);
	n = read_open(&h, f, 16);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		assert_int_not_equal(f[i].slot, 0);
		make_writable(h.child, f[i].slot, unreadable);
		make_writable(forked, f[i].slot, unreadable);
	}
	assert_int_equal(write(guard_fixed[1], "xx", 2), 2);
	assert_int_equal(waitpid(h.child, &status, 0), h.child);
	assert_int_equal(status, 0);
	assert_int_equal(h.skel->bss->stat_guard_unwritten, 0);
	assert_calls(&h, 1, 0, 4);
	ring_buffer__free(rb);
	close(h.go[1]);
	harness_close(&h);
	close(guard_fixed[0]);
	close(guard_fixed[1]);
	guard_fixed[0] = -1;
	munmap(unreadable, 4096);
}

/* Leaves as a tracer should: no trampoline stays on the stack of a thread. */
static void leave_in_order(struct harness *h)
{
	struct qbpf_return_slot r[16];
	int status;
	size_t n;

	assert_int_equal(ptrace(PTRACE_SEIZE, h->child, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, h->child, NULL, NULL), 0);
	assert_int_equal(waitpid(h->child, &status, 0), h->child);
	n = read_iter(h->skel->progs.on_return_slots, r, 16, sizeof(r[0]));
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r[i].tid, h->child);
		assert_true(ptrace(PTRACE_PEEKDATA, h->child, r[i].slot, NULL) ==
			    (long)r[i].trampoline);
		assert_int_equal(ptrace(PTRACE_POKEDATA, h->child, r[i].slot, r[i].ret), 0);
	}
	harness_close(h);
	assert_int_equal(ptrace(PTRACE_DETACH, h->child, NULL, NULL), 0);
}

static int work_in_flight_quietly(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	return freopen("/dev/null", "w", stderr) ? work_in_flight() : 1;
}

static int leave_in_flight(void **state, bool in_order)
{
	struct qbpf_open_frame f[4];
	struct harness h;
	int status;

	if (!write_user_allowed())
		skip_locked_down();
	assert_int_equal(pipe(guard_fixed), 0);
	guard_open(&h, state, work_in_flight_quietly);
	probe_function(&h, guard_in_flight, 1);
	assert_int_equal(write(h.go[1], "x", 1), 1);
	while (read_open(&h, f, 4) < 2)
		usleep(1000);
	/* The second frame is open a moment before its return address has been replaced. */
	await_sleep(h.child, h.child);
	if (in_order)
		leave_in_order(&h);
	else
		harness_close(&h);
	assert_int_equal(write(guard_fixed[1], "x", 1), 1);
	assert_int_equal(waitpid(h.child, &status, 0), h.child);
	close(h.go[1]);
	close(guard_fixed[0]);
	close(guard_fixed[1]);
	guard_fixed[0] = -1;
	return status;
}

static void t_leave_in_order(void **state)
{
	assert_int_equal(leave_in_flight(state, true), 0);
}

/* What a killed tracer leaves: this is why the guard is only for those who ask for it. */
static void t_leave_at_once(void **state)
{
	int status = leave_in_flight(state, false);

	assert_int_equal(status, SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_unguarded_dies),
	    BOTH_WAYS(t_throw),
	    BOTH_WAYS(t_throw_threads),
	    BOTH_WAYS(t_rethrow),
	    BOTH_WAYS(t_throwing_destructors),
	    BOTH_WAYS(t_cancel),
	    BOTH_WAYS(t_exit_thread),
	    BOTH_WAYS(t_longjmp_and_throw),
	    BOTH_WAYS(t_tail_call),
	    BOTH_WAYS(t_backtrace),
	    BOTH_WAYS(t_fork),
	    BOTH_WAYS(t_fork_untouched_pages),
	    BOTH_WAYS(t_fork_remedied),
	    BOTH_WAYS(t_leave_in_order),
	    BOTH_WAYS(t_leave_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

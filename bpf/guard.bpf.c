// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The guard: lets exceptions, thread cancellation and backtraces cross functions that have a
 * uretprobe.
 *
 * A uretprobe replaces a return address on the stack by the address of the kernel's trampoline.
 * No unwinder has a table for that, so std::terminate would end a throw there. The kernel keeps
 * the original of each in the thread's list of return instances. Hence:
 *
 *	on_unwind	at the entry of _Unwind_RaiseException, _Unwind_ForcedUnwind,
 *_Unwind_Resume, _Unwind_Resume_or_Rethrow: puts the originals back on the stack ("takes out")
 *	on_catch	at the entry of __cxa_begin_catch: puts the trampoline back into frames that
 *			have survived, so that their returns are seen; closes those that have not
 *	on_backtrace	at the entry of _Unwind_Backtrace: takes out
 *	on_backtrace_end  at each of its RET instructions: puts back what on_backtrace took
 *	on_return_slots   an iterator: lists what is out there in the targets' threads
 *
 * The trampolines of calls in flight stay when the tracer leaves, and the guard does not. So
 * before it leaves, user space stops the threads, reads on_return_slots and puts the originals
 * back itself. A tracer that is killed cannot: the calls in flight then are guarded no more.
 *
 * What keeps it harmless: a word of the stack is written only when it holds the trampoline's
 * address (taking out), or the original of a return that the kernel still waits for (putting
 * back), and never below the stack pointer. What is not put back is a return not seen, which
 * ends as an abandoned frame. What cannot be taken out is counted (stat_guard_unwritten): a fork
 * made the page copy-on-write, and no one has written to it since. A throw out of that very frame
 * would end in std::terminate. So user space, when told of a fork, must make the pages of all open
 * slots (qbpf_open_frame) writable again, in parent and child: process_vm_writev() from memory
 * that cannot be read does so and changes nothing.
 *
 * The kernel's list is inherited by a forked child, and so is the stack; to cover children, link
 * these programs to all processes: a thread that has no return instances is left at once.
 *
 * Never link it to a process with a user shadow stack, whose copies would no longer match, nor
 * put a uretprobe on the functions above.
 */
#include "frames.bpf.h"
#include "task.bpf.h"

/* Return addresses that were taken out and not yet put back, by thread. */
struct guard_slot {
	__u64 slot;
	__u64 ret;
	__u64 taker; /* the stack pointer at the hit that took it out */
};

struct guard {
	__u32 n;
	/* While n is rewritten; here, because in a register each value is a state to verify. */
	__u32 kept;
	struct guard_slot taken[URETPROBE_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct guard);
} guards SEC(".maps");

__u64 stat_guard_taken = 0;	/* return addresses restored for an unwinder */
__u64 stat_guard_put_back = 0;	/* trampolines put back after a catch or backtrace */
__u64 stat_guard_unwritten = 0; /* stack words that could not be written: see above */

static __always_inline struct guard_slot *slot_at(struct guard *g, __u32 i)
{
	barrier_var(i);
	return &g->taken[i & (URETPROBE_DEPTH - 1)];
}

static __always_inline struct return_instance *return_instances(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct uprobe_task *utask = task->utask;

	return utask ? utask->return_instances : NULL;
}

static __always_inline bool write_slot(__u64 slot, __u64 value)
{
	if (!bpf_probe_write_user((void *)slot, &value, sizeof(value)))
		return true;
	__sync_fetch_and_add(&stat_guard_unwritten, 1);
	return false;
}

/* Does the kernel still wait for the return from this slot? */
__noinline int guard_awaited(__u64 slot, __u64 ret)
{
	struct return_instance *ri = return_instances();

	for (int i = 0; i < URETPROBE_DEPTH && ri; i++) {
		if (ri->stack == slot && ri->orig_ret_vaddr == ret)
			return 1;
		ri = ri->next;
	}
	return 0;
}

static __always_inline void keep(struct guard *g, const struct guard_slot *s)
{
	*slot_at(g, g->kept) = *s;
	g->kept++;
}

/* Forgets what lies below sp: those functions are gone. */
static __always_inline void prune(struct guard *g, __u64 sp)
{
	g->kept = 0;
	for (__u32 i = 0; i < URETPROBE_DEPTH && i < g->n; i++)
		if (slot_at(g, i)->slot > sp)
			keep(g, slot_at(g, i));
	g->n = g->kept;
}

static __always_inline void take_out(__u64 sp)
{
	struct return_instance *ri = return_instances();
	__u64 trampoline = return_trampoline();
	struct guard *g;

	if (!ri || !trampoline)
		return;
	g = bpf_task_storage_get(&guards, bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (g)
		prune(g, sp);
	for (int i = 0; i < URETPROBE_DEPTH && ri; i++, ri = ri->next) {
		__u64 slot = ri->stack, ret = ri->orig_ret_vaddr, now = 0;

		if (slot <= sp || bpf_probe_read_user(&now, sizeof(now), (void *)slot) ||
		    now != trampoline || !write_slot(slot, ret))
			continue;
		__sync_fetch_and_add(&stat_guard_taken, 1);
		if (g && g->n < URETPROBE_DEPTH) {
			struct guard_slot *t = slot_at(g, g->n);

			t->slot = slot;
			t->ret = ret;
			t->taker = sp;
			g->n++;
		}
	}
}

/*
 * Puts back what was taken out by a hit at exactly sp (a backtrace ends) or by hits below sp (a
 * catch: the throw came from deeper). What hits above sp took out belongs to an unwinding that is
 * still under way around this one, and has to stay out.
 */
static __always_inline void put_back(__u64 sp, bool exactly)
{
	struct guard *g = bpf_task_storage_get(&guards, bpf_get_current_task_btf(), NULL, 0);
	__u64 trampoline = return_trampoline();
	struct alt_stack alt;

	if (!g || !g->n || !trampoline)
		return;
	current_alt_stack(&alt);
	g->kept = 0;
	for (__u32 i = 0; i < URETPROBE_DEPTH && i < g->n; i++) {
		struct guard_slot t = *slot_at(g, i);
		__u64 now = 0;

		if (t.slot <= sp)
			continue;
		if ((exactly ? t.taker != sp : t.taker >= sp) ||
		    on_alt_stack(&alt, t.taker) != on_alt_stack(&alt, sp)) {
			keep(g, &t);
			continue;
		}
		if (bpf_probe_read_user(&now, sizeof(now), (void *)t.slot) || now != t.ret ||
		    !guard_awaited(t.slot, t.ret) || !write_slot(t.slot, trampoline))
			continue;
		__sync_fetch_and_add(&stat_guard_put_back, 1);
	}
	g->n = g->kept;
}

SEC("?uprobe")
int on_unwind(struct pt_regs *ctx)
{
	take_out(ctx->sp);
	return 0;
}

SEC("?uprobe")
int on_catch(struct pt_regs *ctx)
{
	struct qbpf_thread *t = thread_get(0);

	if (t)
		purge(t, ctx->sp);
	put_back(ctx->sp, false);
	return 0;
}

SEC("?uprobe")
int on_backtrace(struct pt_regs *ctx)
{
	take_out(ctx->sp);
	return 0;
}

SEC("?uprobe")
int on_backtrace_end(struct pt_regs *ctx)
{
	put_back(ctx->sp, true);
	return 0;
}

/* True only of threads that are stopped: a running one changes its list meanwhile. */
SEC("?iter/task")
int on_return_slots(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct qbpf_return_slot out = {};
	struct return_instance *ri;
	struct uprobe_task *utask;
	struct xol_area *area;

	if (!task || !is_target(task->tgid) || !task->mm)
		return 0;
	utask = task->utask;
	area = task->mm->uprobes_state.xol_area;
	if (!utask || !area)
		return 0;
	out.tgid = task->tgid;
	out.tid = task->pid;
	out.trampoline = area->vaddr;
	ri = utask->return_instances;
	for (int i = 0; i < URETPROBE_DEPTH && ri; i++, ri = ri->next) {
		out.slot = ri->stack;
		out.ret = ri->orig_ret_vaddr;
		bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	}
	return 0;
}

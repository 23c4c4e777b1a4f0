/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a function's end is seen: uretprobe, guard, RET instructions, or not at all.
 *
 * A uretprobe puts the address of a kernel trampoline where the return address was, and no
 * unwinder has a table for it: an exception that wants to pass ends in std::terminate. So it is
 * used only where none can pass; else the function's own RETs are probed, provided that every way
 * out is known; else the function is refused with the reason (DESIGN.md, Safety).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/preflight.h"

struct ends {
	struct preflight *pf;
	uint32_t entry; /* index of the entry's site */
	struct func_code *code;
	struct func_facts facts;
	bool have_facts;
	char why[300];
};

static struct plan_site *entry_of(const struct ends *e)
{
	return &e->pf->plan->sites[e->entry];
}

static struct plan_span *span_of(const struct ends *e)
{
	return &e->pf->plan->spans[entry_of(e)->span - 1];
}

static const struct plan_object *object_of(const struct ends *e)
{
	return &e->pf->objs[entry_of(e)->object];
}

static void read_facts(struct ends *e)
{
	if (e->have_facts)
		return;
	e->have_facts = true;
	if (parts__facts(e->pf->parts[entry_of(e)->object], e->code, &e->facts))
		memset(&e->facts, 0, sizeof(e->facts));
}

#define because(e, ...) snprintf((e)->why, sizeof((e)->why), __VA_ARGS__)

/*
 * Functions that save their return address for later, hand it on or decide by it: with a
 * uretprobe they see the kernel's trampoline. setjmp would make longjmp jump there.
 */
static bool reads_return_address(const char *name)
{
	static const char *const names[] = {
	    "setjmp",
	    "_setjmp",
	    "sigsetjmp",
	    "__sigsetjmp",
	    "__libc_siglongjmp",
	    "getcontext",
	    "__getcontext",
	    "swapcontext",
	    "__swapcontext",
	    "backtrace",
	    "__backtrace",
	    "dlsym",
	    "dlvsym",
	    "dlopen",
	    "dlmopen",
	    "__dlsym",
	    "__dlvsym",
	    "__dlopen",
	    "__dlmopen",
	    "__libc_dlsym",
	    "__libc_dlopen_mode",
	    "dl_iterate_phdr",
	    "__dl_iterate_phdr",
	    "mcount",
	    "_mcount",
	    "__fentry__",
	    "vfork",
	    "__vfork",
	    "clone",
	    "__clone",
	    "clone3",
	    "__clone3",
	    "__gcov_indirect_call_profiler_v4",
	};
	size_t i;

	if (!strncmp(name, "_Unwind_", 8) || !strncmp(name, "_dl_", 4) ||
	    !strncmp(name, "__cyg_profile_", 14) || !strncmp(name, "__tsan_", 7))
		return true;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* The same, by any of the names that the function has. */
static bool any_name_reads_return_address(struct ends *e)
{
	const struct func_table *t = object_of(e)->funcs;
	const struct elf_func *f = e->code->func;
	size_t i;

	if (reads_return_address(span_of(e)->name))
		return true;
	if (!t || !f)
		return false;
	for (i = f - t->funcs; i > 0 && t->funcs[i - 1].addr == f->addr; i--)
		;
	for (; i < t->n && t->funcs[i].addr == f->addr; i++)
		if (reads_return_address(t->funcs[i].name))
			return true;
	return false;
}

/* Is what lies at %rsp at the entry a return address? Of _start it is argc, of the linker's
 * resolvers what the PLT has pushed. Only unwind information can tell. */
static bool ordinary_entry(struct ends *e)
{
	const struct unwind_table *u = object_of(e)->unwind;
	uint64_t entry = e->code->ranges[0].addr, start = 0, size = 0;

	if (!u)
		return false;
	unwind_table__find(u, entry, &start, &size);
	return start == entry && !unwind_table__starts_framed(u, entry);
}

/* Does something rule out the kernel's return stack altogether? */
static bool uretprobe_barred(struct ends *e)
{
	const struct plan_process *proc = e->pf->proc;
	const struct plan_kernel *k = e->pf->kernel;

	if (proc->switches_stacks || elf_image__info(object_of(e)->img)->is_go)
		because(e, "the process switches stacks (Go, swapcontext or fibers)");
	else if (proc->seccomp == 2 && k->uretprobe_syscall)
		because(e, "the process has a seccomp filter, which may kill it for the "
			   "uretprobe system call");
	else if (proc->shadow_stack && !k->uretprobe_syscall)
		because(e, "the process has a shadow stack, which this kernel's uretprobes "
			   "do not know");
	else if (proc->signal_stack)
		because(e, "the process uses a signal stack, where the kernel's return stack can "
			   "break");
	else if (!ordinary_entry(e))
		because(e, "nothing proves that it begins with its return address on the stack");
	else if (any_name_reads_return_address(e))
		because(e, "it reads its own return address");
	else
		return false;
	return true;
}

/* Nothing can leave the function, nor any of its cold parts, nor what it jumps to. */
static bool is_noexcept(struct ends *e)
{
	const struct unwind_table *u = object_of(e)->unwind;
	const struct func_facts *f = &e->facts;
	uint64_t start, size;
	size_t i;

	/* Of most functions the first answer is no, without disassembly. */
	if (!u || unwind_table__find(u, e->code->ranges[0].addr, &start, &size) != UNWIND_NOEXCEPT)
		return false;
	read_facts(e);
	if (!f->decoded || f->ntail || f->has_cond_tail || f->has_indirect_jump)
		return false;
	for (i = 1; i < e->code->n; i++)
		if (unwind_table__find(u, e->code->ranges[i].addr, &start, &size) !=
		    UNWIND_NOEXCEPT)
			return false;
	return true;
}

/* Can an exception or a cancellation pass through? */
static bool crossable(struct ends *e)
{
	const struct plan_process *proc = e->pf->proc;

	/* The program's own functions that CUDA calls back run on threads of the driver. */
	if (span_of(e)->kind == SPAN_CUDA) {
		because(e,
			proc->can_cancel_cuda
			    ? "pthread_cancel could pass through it"
			    : "a function of CUDA's C interface: no exception passes through it");
		return proc->can_cancel_cuda;
	}
	if (!proc->can_throw && !proc->can_cancel) {
		because(e, "nothing in the process throws or cancels");
		return false;
	}
	if (is_noexcept(e)) {
		because(e, "no exception can leave it (noexcept)");
		return false;
	}
	/* Not even if it calls nothing: a signal's handler may throw out of any instruction. */
	because(e, "%s could pass through it",
		!proc->can_throw    ? "pthread_cancel"
		: !proc->can_cancel ? "an exception"
				    : "an exception or pthread_cancel");
	return true;
}

static uint64_t end_of(const struct ends *e)
{
	return e->code->ranges[0].addr + e->code->ranges[0].size;
}

/* Is each way out of the function known, and can it be probed? */
static bool ret_insns_work(struct ends *e)
{
	const struct elf_image *img = object_of(e)->img;
	const struct func_facts *f = &e->facts;
	unsigned int i;

	read_facts(e);
	if (!f->decoded)
		because(e, "its instructions cannot all be decoded");
	else if (f->has_indirect_jump)
		because(e, "an indirect jump in it may leave it");
	else if (f->has_cond_tail)
		because(e, "a conditional jump leaves it");
	else
		goto exits;
	return false;
exits:
	for (i = 0; i < f->nret; i++) {
		if (insn_classify(img, f->rets[i], NULL) != INSN_RET) {
			because(e, "the kernel does not probe its RET");
			return false;
		}
	}
	for (i = 0; i < f->ntail; i++) {
		/* Dead code behind a call that never returns, as clang -O0 leaves it. */
		if (f->tail_targets[i] == end_of(e))
			continue;
		if (f->tail_targets[i] &&
		    !parts__may_be_called(e->pf->parts[entry_of(e)->object], f->tail_targets[i])) {
			because(e, "it jumps into the middle of another function");
			return false;
		}
		if (insn_classify(img, f->tails[i], NULL) == INSN_BAD) {
			because(e, "the kernel does not probe its tail jump");
			return false;
		}
	}
	return true;
}

static bool add_end(struct ends *e, enum qbpf_role role, uint64_t addr)
{
	struct plan_site s = *entry_of(e);
	bool jump = role == QBPF_ROLE_TAIL_JUMP;

	s.role = role;
	s.reason = NULL;
	s.arm_errno = 0;
	s.armed = false;
	s.sema_off = 0;
	if (role == QBPF_ROLE_RETURN) {
		s.verdict = VERDICT_ARM;
		s.price = PRICE_URETPROBE;
	} else {
		s.addr = s.found_addr = addr;
		if (elf_image__addr_to_off(object_of(e)->img, addr, &s.off))
			return false;
		site__arm(e->pf, &s,
			  jump ? insn_classify(object_of(e)->img, addr, NULL) : INSN_RET);
	}
	return !plan__add_site(e->pf->plan, &s);
}

static void take(struct ends *e, enum return_way way)
{
	struct plan_span *span = span_of(e);
	unsigned int i;
	bool ok = true;

	span->way = way;
	free(span->way_reason);
	span->way_reason = strdup(e->why);
	if (way == RET_URETPROBE || way == RET_GUARD)
		ok = add_end(e, QBPF_ROLE_RETURN, 0);
	for (i = 0; way == RET_INSNS && ok && i < e->facts.nret; i++)
		ok = add_end(e, QBPF_ROLE_RET_INSN, e->facts.rets[i]);
	for (i = 0; way == RET_INSNS && ok && i < e->facts.ntail; i++)
		ok = add_end(e, QBPF_ROLE_TAIL_JUMP, e->facts.tails[i]);
	if (!ok)
		site__refuse(entry_of(e), "out of memory");
}

static void refuse(struct ends *e);

/*
 * Entry only: counted, with the histogram of its interval. The span of a CUDA function is that of
 * several, which have their ends.
 */
static void count_only(struct ends *e)
{
	if (span_of(e)->kind == SPAN_CUDA && e->pf->opts->returns != RET_NONE) {
		refuse(e);
		return;
	}
	take(e, RET_NONE);
	span_of(e)->kind = SPAN_INSTANT;
	entry_of(e)->role = QBPF_ROLE_INSTANT;
}

static void refuse(struct ends *e)
{
	if (span_of(e)->kind != SPAN_CUDA || span_of(e)->way == RET_AUTO)
		take(e, RET_NONE);
	site__refuse(entry_of(e), "its end cannot be seen safely: %s", e->why);
}

/* It has no inside: entry and end are one instruction, or it never ends. */
static bool has_no_span(struct ends *e)
{
	const struct func_facts *f = &e->facts;
	uint64_t at = entry_of(e)->addr;
	unsigned int i;

	read_facts(e);
	for (i = 0; i < f->nret; i++)
		if (f->rets[i] == at)
			because(e, "it is a RET: only counted");
	for (i = 0; i < f->ntail; i++)
		if (f->tails[i] == at)
			because(e, "it is a jump to another function: only counted");
	if (f->decoded && !f->nret && !f->ntail && !f->has_cond_tail && !f->has_indirect_jump)
		because(e, "it never returns: only counted");
	return *e->why;
}

static void try_ret_insns(struct ends *e, const char *first)
{
	char text[sizeof(e->why)];

	*e->why = '\0';
	if (has_no_span(e)) {
		count_only(e);
		return;
	}
	if (ret_insns_work(e)) {
		because(e, "%s", first);
		take(e, RET_INSNS);
		return;
	}
	if (*first) {
		snprintf(text, sizeof(text), "%.140s; and %.140s", first, e->why);
		because(e, "%s", text);
	}
	refuse(e);
}

static void force_uretprobe(struct ends *e)
{
	char text[sizeof(e->why)];

	if (!uretprobe_barred(e) && !crossable(e)) {
		take(e, RET_URETPROBE);
		return;
	}
	if (!e->pf->opts->unsafe) {
		refuse(e);
		return;
	}
	snprintf(text, sizeof(text), "by --unsafe although %.200s", e->why);
	because(e, "%s", text);
	take(e, RET_URETPROBE);
	plan__note(e->pf->plan, "%s: uretprobe %s", span_of(e)->name, text);
}

static void automatic(struct ends *e)
{
	char first[sizeof(e->why)];

	if (!uretprobe_barred(e) && !crossable(e)) {
		take(e, RET_URETPROBE);
		return;
	}
	snprintf(first, sizeof(first), "%s", e->why);
	try_ret_insns(e, first);
}

/* The guard hooks it (and the unwinder's, see above); a uretprobe on it would come between. */
static bool catches(const char *name)
{
	return !strcmp(name, "__cxa_begin_catch");
}

static void guarded(struct ends *e)
{
	if (uretprobe_barred(e) || e->pf->proc->shadow_stack || catches(span_of(e)->name)) {
		automatic(e);
	} else if (!crossable(e)) {
		take(e, RET_URETPROBE); /* needs no guard */
	} else if (e->pf->kernel->guard) {
		take(e, RET_GUARD);
	} else {
		plan__note(e->pf->plan, "--returns guard is not possible here (it needs lockdown "
					"'none' and CAP_SYS_ADMIN): auto is used");
		automatic(e);
	}
}

void preflight_returns(struct preflight *pf, size_t i, struct func_code *code)
{
	struct ends e = {.pf = pf, .entry = i, .code = code};

	switch (pf->opts->returns) {
	case RET_NONE:
		because(&e, "--returns none: entries are counted");
		count_only(&e);
		break;
	case RET_URETPROBE:
		force_uretprobe(&e);
		break;
	case RET_INSNS:
		try_ret_insns(&e, "");
		break;
	case RET_GUARD:
		guarded(&e);
		break;
	default:
		automatic(&e);
	}
	func_facts__clear(&e.facts);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The guard's user-space half (bpf/guard.bpf.c, DESIGN.md): hooks the unwinder of every object that
 * has one, and keeps the stack slots that the guard may have to write writable after a fork.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "elf/disasm.h"
#include "log.h"
#include "trace/maps_read.h"
#include "trace/session_impl.h"
#include "trace/stop.h"

enum hook_kind { HOOK_UNWIND, HOOK_CATCH, HOOK_BACKTRACE };

static const struct {
	const char *name;
	enum hook_kind kind;
} hooks[] = {
    {"_Unwind_RaiseException", HOOK_UNWIND}, {"_Unwind_ForcedUnwind", HOOK_UNWIND},
    {"_Unwind_Resume", HOOK_UNWIND},	     {"_Unwind_Resume_or_Rethrow", HOOK_UNWIND},
    {"_Unwind_Backtrace", HOOK_BACKTRACE},   {"__cxa_begin_catch", HOOK_CATCH},
};

void session__configure_guard(struct session *s, bool wanted)
{
	struct bpf_program *progs[] = {s->skel->progs.on_unwind, s->skel->progs.on_catch,
				       s->skel->progs.on_backtrace,
				       s->skel->progs.on_backtrace_end};

	s->guard = wanted;
	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		bpf_program__set_autoload(progs[i], wanted);
		if (wanted && s->multi)
			bpf_program__set_expected_attach_type(progs[i], BPF_TRACE_UPROBE_MULTI);
	}
}

static int hook_one(struct session *s, struct bpf_program *prog, size_t obj, uint64_t off)
{
	/* For all processes: a forked child may throw through frames that it has inherited. */
	return armer__attach_extra(s->armer, prog, s->target, obj, off, true);
}

/*
 * The ways out of _Unwind_Backtrace. Jumps out of it lead to its cold part, which aborts; were one
 * missed, returns would not be seen, no harm done.
 */
static int hook_returns(struct session *s, size_t obj, const struct elf_func *f)
{
	const struct elf_image *img = s->target->objects[obj].img;
	struct func_facts facts = {0};
	uint64_t off;
	int err;

	err = func_facts__read(img, f->addr, f->size, &facts);
	if (err)
		return err;
	if (!facts.decoded || !facts.nret)
		err = -EOPNOTSUPP;
	for (unsigned int i = 0; i < facts.nret && !err; i++) {
		err = elf_image__addr_to_off(img, facts.rets[i], &off);
		if (!err)
			err = hook_one(s, s->skel->progs.on_backtrace_end, obj, off);
	}
	func_facts__clear(&facts);
	return err;
}

static int hook_function(struct session *s, size_t obj, const struct elf_func *f,
			 enum hook_kind kind)
{
	int err;

	switch (kind) {
	case HOOK_UNWIND:
		return hook_one(s, s->skel->progs.on_unwind, obj, f->off);
	case HOOK_CATCH:
		return hook_one(s, s->skel->progs.on_catch, obj, f->off);
	default:
		err = hook_returns(s, obj, f);
		return err ? err : hook_one(s, s->skel->progs.on_backtrace, obj, f->off);
	}
}

static int hook_object(struct session *s, size_t obj, struct err *e)
{
	const struct func_table *t;
	uint64_t last = 0;
	int err;

	err = target__read_one(s->target, obj, TARGET_MARKERS | TARGET_FUNCS, e);
	if (err)
		return err;
	t = s->target->objects[obj].funcs;
	for (size_t i = 0; t && i < t->n; i++) {
		const struct elf_func *f = &t->funcs[i];

		if (f->flags & (FUNC_IMPORTED | FUNC_IFUNC) || f->addr == last)
			continue;
		for (size_t k = 0; k < sizeof(hooks) / sizeof(hooks[0]); k++) {
			if (strcmp(f->name, hooks[k].name))
				continue;
			last = f->addr;
			err = hook_function(s, obj, f, hooks[k].kind);
			if (err)
				return err_set(e, err, "the guard cannot hook %s in %s: %s",
					       f->name, s->target->objects[obj].path,
					       arm_strerror(err, false));
			s->guard_hooks += hooks[k].kind == HOOK_UNWIND;
		}
	}
	return 0;
}

/* Without an unwinder no one throws, unless it is linked in and has no name any more. */
int session__check_guard(struct session *s, struct err *e)
{
	struct plan_process proc;

	if (!s->guard || s->guard_hooks)
		return 0;
	target__facts(s->target, &proc);
	if (!proc.can_throw && !proc.can_cancel)
		return 0;
	return err_set(e, -EOPNOTSUPP,
		       "--returns guard: no unwinder was found in the target (libgcc linked in "
		       "statically and stripped?)");
}

int session__arm_guard(struct session *s, size_t from, struct err *e)
{
	int err = 0;

	if (!s->guard)
		return 0;
	for (size_t i = from; i < s->target->nobjects && !err; i++)
		if (!s->target->objects[i].unusable)
			err = hook_object(s, i, e);
	if (!err && !from && !s->o.starting)
		err = session__check_guard(s, e);
	if (!err && !from)
		log_info("the guard is on: it writes return addresses into the target's stacks "
			 "when an exception passes (the kernel logs a warning about that)");
	return err;
}

/*
 * fork makes the stack's pages copy-on-write, and BPF cannot write to such. A write by
 * process_vm_writev from an address that cannot be read makes the page private and then
 * fails, having changed nothing.
 */
static void make_writable(pid_t pid, uint64_t slot)
{
	struct iovec local = {.iov_base = (void *)8, .iov_len = 8};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)slot, .iov_len = 8};

	if (process_vm_writev(pid, &local, 1, &remote, 1, 0) < 0 && errno != EFAULT)
		log_dbg("process %d: stack at 0x%llx: %s", pid, (unsigned long long)slot,
			strerror(errno));
}

struct fork_fix {
	pid_t parent, child;
};

static void fix_frame(void *ctx, const void *record)
{
	const struct qbpf_open_frame *f = record;
	const struct fork_fix *fix = ctx;

	if (!f->slot || (pid_t)f->tgid != fix->parent)
		return;
	make_writable(fix->parent, f->slot);
	make_writable(fix->child, f->slot);
}

void session__guard_fork(struct session *s, pid_t parent, pid_t child)
{
	struct fork_fix fix = {.parent = parent, .child = child};

	if (s->guard)
		maps_each_record(s->skel->progs.on_open_frames, sizeof(struct qbpf_open_frame),
				 fix_frame, &fix);
}

/* Puts the original back into one slot of a stopped thread, if the trampoline is there. */
static void restore_slot(void *ctx, const void *record)
{
	const struct qbpf_return_slot *r = record;
	uint64_t now = 0;
	struct iovec local = {.iov_base = &now, .iov_len = sizeof(now)};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)r->slot, .iov_len = sizeof(now)};

	(void)ctx;
	if (process_vm_readv((pid_t)r->tgid, &local, 1, &remote, 1, 0) != sizeof(now) ||
	    now != r->trampoline)
		return;
	now = r->ret;
	if (process_vm_writev((pid_t)r->tgid, &local, 1, &remote, 1, 0) != sizeof(now))
		log_warn("process %u: a return address could not be restored: %s", r->tgid,
			 strerror(errno));
}

/*
 * When exceptions can pass and no guard is there, they must not meet a trampoline: the calls in
 * flight get their return addresses back while their threads are stopped, and the probes go
 * before they run on. Calls `disarm` in any case.
 */
void session__disarm_stopped(struct session *s, void (*disarm)(struct session *s))
{
	struct stopped **all = calloc(s->target->npids + 1, sizeof(*all));
	struct err why = {{0}};

	for (size_t i = 0; all && i < s->target->npids; i++)
		if (stopped__new(s->target->pids[i], &all[i], &why) &&
		    pid_is_alive(s->target->pids[i]))
			log_warn(
			    "leaving without care, an exception through a call in flight would "
			    "end the target: %s",
			    why.text);
	if (all)
		maps_each_record(s->skel->progs.on_return_slots, sizeof(struct qbpf_return_slot),
				 restore_slot, NULL);
	disarm(s);
	for (size_t i = 0; all && i < s->target->npids; i++)
		stopped__free(all[i]);
	free(all);
}

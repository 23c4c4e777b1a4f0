// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leaving optimised nops when a target that could not fork turns out to: a library that forks
 * has been opened, or the process has forked by a bare system call. Where the kernel is
 * nop5_fork_unsafe (plan.h), every probe on a 5-byte nop is then taken away and the sites are
 * checked anew, so that they are armed elsewhere or refused.
 *
 * While the probes are away hits go unseen: a span that was open may end as abandoned, an end
 * may be an orphan.
 */
#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "trace/session_impl.h"

static bool on_nop5(const struct plan_site *site)
{
	return site->armed && site->price == PRICE_NOP5 && site->role != QBPF_ROLE_RETURN;
}

static bool any_on_nop5(const struct session *s)
{
	for (size_t i = 0; i < s->plan->nsites; i++)
		if (on_nop5(&s->plan->sites[i]))
			return true;
	return false;
}

/* Puts the sites back to be judged; false: nothing had been armed on such a nop. */
static int forget_verdicts(struct session *s, struct err *e)
{
	unsigned int want = TARGET_MARKERS | TARGET_FUNCS | TARGET_UNWIND;
	int err = 0;

	for (size_t i = 0; i < s->plan->nsites && !err; i++) {
		struct plan_site *site = &s->plan->sites[i];

		if (on_nop5(site)) {
			site->verdict = VERDICT_PENDING;
			free(site->reason);
			site->reason = NULL;
			err = target__read_one(s->target, site->object, want, e);
		}
		site->armed = false;
		site->arm_errno = 0;
	}
	return err;
}

int session__leave_nop5(struct session *s, const struct plan_process *proc, struct err *e)
{
	struct armer_opts ao;
	int err;

	if (!s->kernel.nop5_fork_unsafe || !any_on_nop5(s))
		return 0;
	log_warn("the target can fork after all: moving its probes off 5-byte nops, where this "
		 "kernel would kill a forked child");
	ao = *armer__opts(s->armer);
	armer__free(s->armer);
	s->armer = armer__new(&ao);
	if (!s->armer)
		return err_set(e, -ENOMEM, "out of memory");
	s->hooked = false;
	s->guard_hooks = 0;
	err = forget_verdicts(s, e);
	if (err)
		return err;
	plan_preflight(s->plan, &s->o.plan, s->target->plan_objects, s->target->nobjects, proc,
		       &s->kernel);
	return session__arm_from(s, 0, 0, e);
}

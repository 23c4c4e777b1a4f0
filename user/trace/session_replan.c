// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Planning anew when the target turns out to be able to do what it could not before, because a
 * library was opened or it was seen doing so:
 *
 *	fork	where the kernel is nop5_fork_unsafe (plan.h), probes leave 5-byte nops;
 *	throw or cancel	functions whose return was seen by a uretprobe because nothing could
 *			pass through them get their verdict again (those of CUDA for a cancel only).
 *			Calls in flight get their return addresses back first, while their threads are
 *			stopped.
 *
 * While the probes are away hits go unseen: a span that was open may end as abandoned, an end
 * may be an orphan.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* What can be since lately, by whose functions it matters to. */
struct crossing {
	bool funcs, cuda;
};

static bool by_uretprobe(const struct session *s, const struct plan_site *site, struct crossing by)
{
	const struct plan_span *span = site->span ? &s->plan->spans[site->span - 1] : NULL;

	return span && span->way == RET_URETPROBE &&
	       (span->kind == SPAN_CUDA ? by.cuda : by.funcs) &&
	       (site->role == QBPF_ROLE_ENTRY || site->role == QBPF_ROLE_RETURN);
}

static bool any_by_uretprobe(const struct session *s, struct crossing by)
{
	for (size_t i = 0; i < s->plan->nsites; i++)
		if (s->plan->sites[i].armed && by_uretprobe(s, &s->plan->sites[i], by))
			return true;
	return false;
}

static void set_reason(struct plan_site *site, const char *why)
{
	free(site->reason);
	site->reason = why ? strdup(why) : NULL;
}

/* Puts the sites concerned back to be judged, and marks all as not armed. */
static int forget_verdicts(struct session *s, bool nops, struct crossing returns, struct err *e)
{
	unsigned int want = TARGET_MARKERS | TARGET_FUNCS | TARGET_UNWIND;
	int err = 0;

	for (size_t i = 0; i < s->plan->nsites && !err; i++) {
		struct plan_site *site = &s->plan->sites[i];
		bool by_ret = by_uretprobe(s, site, returns);

		if (by_ret && site->role == QBPF_ROLE_RETURN) {
			site->verdict = VERDICT_REFUSED;
			set_reason(site, "an exception or pthread_cancel can pass since a library "
					 "was opened");
		} else if (by_ret || (nops && on_nop5(site))) {
			site->verdict = VERDICT_PENDING;
			set_reason(site, NULL);
			err = target__read_one(s->target, site->object, want, e);
		}
		site->armed = false;
		site->arm_errno = 0;
	}
	return err;
}

static void disarm_for_now(struct session *s)
{
	struct armer_opts ao = *armer__opts(s->armer);

	armer__free(s->armer);
	s->armer = armer__new(&ao);
	s->hooked = false;
	s->guard_hooks = 0;
}

int session__replan(struct session *s, const struct plan_process *now, struct err *e)
{
	struct crossing by = {
	    .funcs = (now->can_throw && !s->facts.can_throw) ||
		     (now->can_cancel && !s->facts.can_cancel),
	    .cuda = now->can_cancel_cuda && !s->facts.can_cancel_cuda,
	};
	bool nops = s->kernel.nop5_fork_unsafe && now->can_fork && any_on_nop5(s);
	size_t sites;
	bool returns = s->o.plan.returns != RET_URETPROBE && any_by_uretprobe(s, by);
	int err;

	s->facts = *now;
	if (!nops && !returns)
		return 0;
	if (nops && !s->o.starting)
		log_warn("the target can fork after all: moving its probes off 5-byte nops, where "
			 "this kernel would kill a forked child");
	if (returns && !s->o.starting)
		log_warn("exceptions or pthread_cancel can pass through the target's functions "
			 "after all: their returns are seen another way from here on");
	if (returns)
		session__disarm_stopped(s, disarm_for_now);
	else
		disarm_for_now(s);
	if (!s->armer)
		return err_set(e, -ENOMEM, "out of memory");
	err = forget_verdicts(s, nops, returns ? by : (struct crossing){0}, e);
	if (err)
		return err;
	plan_preflight(s->plan, &s->o.plan, s->target->plan_objects, s->target->nobjects, now,
		       &s->kernel);
	err = session__arm_from(s, 0, 0, e);
	if (!err && !s->o.starting)
		log_info("planned anew: %zu spans are traced", session__armed(s, &sites));
	return err;
}

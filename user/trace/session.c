// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of a session: discover, load, arm, rescan, disarm. Watching the target is in
 * session_watch.c, snapshots in session_snapshot.c, --max-overhead in session_budget.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "elf/proc_state.h"
#include "log.h"
#include "trace/session_impl.h"

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	log_vprint(LOG_LIBBPF, fmt, ap);
	return 0;
}

/* The links' pid filter goes by the memory of the first thread, which ends with it. */
static int check_first_thread(pid_t pid, struct err *e)
{
	char proc[64], first[64];
	int err = proc_state__live_task(pid, proc, sizeof(proc), e);

	snprintf(first, sizeof(first), "/proc/%d", pid);
	if (err || !strcmp(proc, first))
		return err;
	return err_set(e, -EOPNOTSUPP,
		       "the first thread of process %d has ended: the kernel cannot tell its hits "
		       "from others', but --follow can",
		       pid);
}

int session__new(const struct session_opts *o, struct session **out, struct err *e)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->o = *o;
	s->epfd = -1;
	libbpf_set_print(print_libbpf);
	s->target = target__new();
	s->plan = plan__new();
	if (!s->target || !s->plan) {
		err = err_set(e, -ENOMEM, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < o->npids; i++) {
		err = target__add_pid(s->target, o->pids[i], e);
		if (!err && !o->follow)
			err = check_first_thread(o->pids[i], e);
		if (err)
			goto out;
	}
	s->comm = strdup(s->target->comm);
	s->exe = s->target->exe ? strdup(s->target->exe) : NULL;
	err = session__prepare_recording(s, e);
	if (err)
		goto out;
	err = host__probe(&s->host, e);
	if (err)
		goto out;
	err = host__can_trace(s->host, e);
	if (err)
		goto out;
	host__plan_kernel(s->host, &s->kernel);
	s->multi = s->host->uprobe_multi && s->host->uprobe_multi_pid_ok && !s->o.force_perf_event;
	*out = s;
	return 0;
out:
	session__free(s);
	return err;
}

void session__free(struct session *s)
{
	if (!s)
		return;
	session__disarm(s);
	session__free_recording(s);
	session__unwatch(s);
	for (size_t i = 0; i < s->nlinks; i++)
		bpf_link__destroy(s->links[i]);
	session__free_cuda(s);
	if (s->skel)
		qbpf_bpf__destroy(s->skel);
	snapshot__free(s->last);
	plan__free(s->plan);
	target__free(s->target);
	host__free(s->host);
	free(s->key_timeouts);
	free(s->comm);
	free(s->exe);
	free(s);
}

/* Objects of which a site has been selected get their functions and unwinding tables read:
 * preflight needs to know what surrounds a site. */
static int read_selected(struct session *s, size_t from_site, struct err *e)
{
	unsigned int want = TARGET_MARKERS | TARGET_UNWIND | TARGET_FUNCS;
	size_t last = SIZE_MAX;
	int err;

	for (size_t i = from_site; i < s->plan->nsites; i++) {
		size_t obj = s->plan->sites[i].object;

		if (obj == last)
			continue;
		last = obj;
		err = target__read_one(s->target, obj, want, e);
		if (err)
			return err;
	}
	return 0;
}

void session__facts(struct session *s, struct plan_process *proc)
{
	target__facts(s->target, proc);
	proc->can_fork |= s->forks;
	if (proc->can_fork && s->kernel.nop5_optimised && !s->fork_tried) {
		s->kernel.nop5_fork_unsafe = host__nop5_fork_unsafe(s->host);
		s->fork_tried = true;
	}
}

int session__check_from(struct session *s, size_t from_site, struct plan_process *proc,
			struct err *e)
{
	int err = read_selected(s, from_site, e);

	if (err)
		return err;
	session__facts(s, proc);
	plan_preflight(s->plan, &s->o.plan, s->target->plan_objects, s->target->nobjects, proc,
		       &s->kernel);
	return 0;
}

static int select_and_check(struct session *s, size_t from_object, struct plan_process *proc,
			    struct err *e)
{
	unsigned int want = TARGET_MARKERS;
	size_t from_site = s->plan->nsites;
	int err;

	if (s->o.plan.nfuncs || s->o.plan.nspans)
		want |= TARGET_FUNCS;
	err = target__read(s->target, from_object, want, e);
	if (!err && plan_opts__wants_cuda(&s->o.plan))
		err = session__read_cuda(s, from_object, e);
	if (err)
		return err;
	err = plan_select(s->plan, &s->o.plan, s->target->plan_objects, from_object,
			  s->target->nobjects, e);
	return err ? err : session__check_from(s, from_site, proc, e);
}

int session__discover(struct session *s, struct err *e)
{
	int err = target__refresh(s->target, e);

	return err ? err : select_and_check(s, 0, &s->facts, e);
}

/* A library opened later brings more spans and sites than the plan has now. */
static int size_maps(struct session *s)
{
	struct qbpf_bpf *b = s->skel;

	s->span_room = s->plan->nspans + s->o.plan.max_spans + 1024;
	s->site_room = s->plan->nsites + 8 * s->span_room;
	s->key_timeouts = calloc(s->span_room, sizeof(*s->key_timeouts));
	if (!s->key_timeouts)
		return -ENOMEM;
	bpf_map__set_max_entries(b->maps.span_counts, s->span_room + 1);
	bpf_map__set_max_entries(b->maps.retired, s->span_room + 1);
	bpf_map__set_max_entries(b->maps.sites, s->site_room + 1);
	bpf_map__set_max_entries(b->maps.nodes, 65536);
	bpf_map__set_max_entries(b->maps.node_cells, 131072);
	bpf_map__set_max_entries(b->maps.hist_cells, 262144);
	bpf_map__set_max_entries(b->maps.keyed, 65536);
	return 0;
}

static bool plan_uses(const struct plan *p, enum return_way way)
{
	for (size_t i = 0; i < p->nspans; i++)
		if ((p->spans[i].kind == SPAN_FUNC || p->spans[i].kind == SPAN_CUDA) &&
		    p->spans[i].way == way && p->spans[i].armed)
			return true;
	return false;
}

static int publish_targets(struct session *s)
{
	for (size_t i = 0; i < s->target->npids; i++) {
		__u32 tgid = s->target->pids[i], one = 1;
		int err = bpf_map__update_elem(s->skel->maps.targets, &tgid, sizeof(tgid), &one,
					       sizeof(one), BPF_ANY);

		if (err)
			return err;
	}
	return 0;
}

static int attach_tracepoints(struct session *s, struct err *e)
{
	struct bpf_program *progs[] = {s->skel->progs.on_thread_exit, s->skel->progs.on_fork,
				       s->skel->progs.on_exec};

	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		struct bpf_link *l = bpf_program__attach(progs[i]);

		if (!l)
			return err_set(e, -errno, "cannot attach %s: %s",
				       bpf_program__name(progs[i]), strerror(errno));
		s->links[s->nlinks++] = l;
	}
	return 0;
}

static void use_multi(struct qbpf_bpf *b)
{
	bpf_program__set_expected_attach_type(b->progs.on_site, BPF_TRACE_UPROBE_MULTI);
	bpf_program__set_expected_attach_type(b->progs.on_return, BPF_TRACE_UPROBE_MULTI);
	bpf_program__set_expected_attach_type(b->progs.on_ldso, BPF_TRACE_UPROBE_MULTI);
}

void session__measure_host(const struct host *host, struct price *out)
{
	bool multi = host->uprobe_multi && host->uprobe_multi_pid_ok;
	struct qbpf_bpf *b = qbpf_bpf__open();
	struct err why = {{0}};
	int err = b ? 0 : -errno;

	memset(out, 0, sizeof(*out));
	libbpf_set_print(print_libbpf);
	if (!err && multi)
		use_multi(b);
	if (!err)
		session__configure_cuda(b, false, multi);
	if (!err)
		err = qbpf_bpf__load(b);
	if (!err)
		err =
		    price__measure(b->obj, b->progs.on_site, b->progs.on_return, multi, out, &why);
	if (err)
		log_dbg("no price: %s", why.text[0] ? why.text : strerror(-err));
	qbpf_bpf__destroy(b);
}

int session__load(struct session *s, struct err *e)
{
	struct armer_opts ao = {
	    .multi = s->multi, .per_span = s->o.max_overhead_pct > 0, .all_pids = s->o.follow};
	struct plan_process proc;
	int err;

	s->skel = qbpf_bpf__open();
	if (!s->skel)
		return err_set(e, -errno, "cannot open the BPF programs: %s", strerror(errno));
	err = size_maps(s);
	if (err)
		return err_set(e, err, "out of memory");
	err = session__configure_recording(s, e);
	if (err)
		return err;
	target__facts(s->target, &proc);
	/* Perf events go by address space, which a vfork child shares. */
	s->skel->rodata->cfg_filter_tgid = s->o.follow || !s->multi;
	s->skel->rodata->cfg_follow = s->o.follow;
	s->skel->rodata->cfg_stack_switch = proc.switches_stacks;
	session__configure_guard(s, s->o.plan.returns == RET_GUARD && s->kernel.guard);
	bpf_program__set_autoload(s->skel->progs.on_return_slots,
				  s->guard || plan_uses(s->plan, RET_URETPROBE));
	if (session__plans_cuda(s))
		s->cuda = s->skel;
	session__configure_cuda(s->skel, s->cuda, s->multi);
	if (s->multi)
		use_multi(s->skel);
	err = qbpf_bpf__load(s->skel);
	if (err)
		return err_set(e, err, "cannot load the BPF programs: %s%s", strerror(-err),
			       err == -EPERM ? " (needs CAP_BPF and CAP_PERFMON, or root)"
					     : " (-vv shows the verifier's words)");
	err = publish_targets(s);
	if (err)
		return err_set(e, err, "cannot fill the target map: %s", strerror(-err));
	err = attach_tracepoints(s, e);
	if (err)
		return err;
	ao.on_site = s->skel->progs.on_site;
	ao.on_return = s->skel->progs.on_return;
	ao.on_cuda = s->skel->progs.on_cuda;
	ao.on_cuda_return = s->skel->progs.on_cuda_return;
	s->armer = armer__new(&ao);
	if (!s->armer)
		return err_set(e, -ENOMEM, "out of memory");
	if (s->o.measure_price) {
		struct err why = {{0}};
		uint64_t t0 = now_ns();

		if (price__measure(s->skel->obj, ao.on_site, ao.on_return, s->multi, &s->price,
				   &why))
			log_warn("the price of a probe is unknown here: %s", why.text);
		log_dbg("price measured in %.1f ms", (now_ns() - t0) / 1e6);
	}
	return session__watch(s, e);
}

/* Where keys, values and the arguments of CUDA calls lie, for the sites from `from` on. */
static int publish_sites(struct session *s, size_t from, struct err *e)
{
	for (size_t i = from; i < s->plan->nsites; i++) {
		struct plan_site *site = &s->plan->sites[i];
		struct qbpf_site rec = {0};
		__u32 key = i + 1;
		int err;

		err = session__publish_cuda(s, key);
		if (err)
			return err_set(e, err, "cannot describe a CUDA call to the kernel: %s",
				       strerror(-err));

		if (!site->has_arg || usdt_arg__to_abi(&site->arg, &rec.arg))
			continue;
		err = bpf_map__update_elem(s->skel->maps.sites, &key, sizeof(key), &rec,
					   sizeof(rec), BPF_ANY);
		if (err)
			return err_set(e, err, "cannot describe an argument to the kernel: %s",
				       strerror(-err));
	}
	return 0;
}

int session__arm_from(struct session *s, size_t from_site, size_t from_object, struct err *e)
{
	int err;

	if (s->plan->nspans > s->span_room || s->plan->nsites > s->site_room) {
		log_warn("no room for the %zu probes of libraries opened late: attach again",
			 s->plan->nsites - from_site);
		return 0;
	}
	session__load_cuda(s);
	err = publish_sites(s, from_site, e);
	if (!err)
		err = session__publish_slow(s, e);
	if (err)
		return err;
	session__record_spans(s);
	session__hook_ldso(s, from_object);
	err = session__arm_guard(s, from_object, e);
	if (err)
		return err;
	/* From the first: a span by hand may have waited for an end in a library opened late. */
	err = armer__arm(s->armer, s->plan, s->target, 0, e);
	if (!err)
		session__record_sites(s);
	if (!err)
		session__tell_cuda(s);
	return err;
}

int session__started(struct session *s, struct err *e)
{
	s->o.starting = false;
	return session__check_guard(s, e);
}

int session__arm(struct session *s, struct err *e)
{
	uint64_t t0 = now_ns();
	size_t sites;
	int err;

	s->skel->data->counting = false;
	err = session__arm_from(s, 0, 0, e);
	if (!err)
		err = session__start_recording(s, e);
	target__drop_images(s->target);
	/* Spans that began before an agent was there would be in none of the GPU's figures. */
	if (s->o.agents)
		agents__wait(s->o.agents);
	s->start_ns = now_ns();
	s->skel->data->counting = true;
	if (s->o.agents && s->stream)
		gpu_feed__probes(agents__feed(s->o.agents), s->start_ns, GPU_UNKNOWN);
	session__armed(s, &sites);
	log_dbg("armed %zu sites in %.1f ms", sites, (s->start_ns - t0) / 1e6);
	/* What was opened since the target was looked at, and before the linker was hooked. */
	s->mapped_ns = s->o.starting ? 0 : s->start_ns;
	return err ? err : session__rescan(s, e);
}

/* since_ns: the code may have been there, and have run, since then; 0: it has not run. */
static void tell_more(struct session *s, size_t probes, size_t spans, uint64_t since_ns)
{
	uint64_t late = since_ns ? now_ns() - since_ns : 0;

	if (!since_ns) {
		log_info("armed %zu more probes of %zu spans in newly mapped objects", probes,
			 spans);
		return;
	}
	s->late_probes += probes;
	if (late > s->late_ns)
		s->late_ns = late;
	log_info("armed %zu more probes of %zu spans in newly mapped objects, within %.1f ms: what "
		 "they did before is not counted",
		 probes, spans, late / 1e6);
}

int session__rescan(struct session *s, struct err *e)
{
	size_t objects = s->target->nobjects, sites = s->plan->nsites;
	size_t before, after, armed_before, armed_after;
	uint64_t since = s->mapped_ns;
	struct plan_process proc;
	int err;

	err = target__refresh(s->target, e);
	if (err == -ESRCH)
		return 0;
	s->mapped_ns = 0;
	s->looked_ns = now_ns();
	if (err || s->target->nobjects == objects)
		return err;
	before = session__armed(s, &armed_before);
	err = select_and_check(s, objects, &proc, e);
	if (!err)
		err = session__replan(s, &proc, e);
	if (!err)
		err = session__arm_from(s, sites, objects, e);
	target__drop_images(s->target);
	after = session__armed(s, &armed_after);
	if (armed_after > armed_before)
		tell_more(s, armed_after - armed_before, after - before, since);
	return err;
}

bool session__armed_late(const struct session *s, char *line, size_t size)
{
	if (!s->late_probes)
		return false;
	snprintf(
	    line, size,
	    "%zu probes were armed up to %.1f ms after their code had been mapped: what it did "
	    "before is not counted",
	    s->late_probes, s->late_ns / 1e6);
	return true;
}

void session__stop_counting(struct session *s)
{
	char line[SESSION_LINE];

	if (s->skel)
		s->skel->data->counting = false;
	if (s->end_ns)
		return;
	s->end_ns = now_ns();
	session__stop_recording(s);
	if (session__agent_missing(s, line, sizeof(line)))
		log_warn("%s", line);
	if (s->ended && s->mapped_ns)
		log_info(
		    "the target ended %.1f ms after it had opened or closed a library: what it did "
		    "in one opened then is not counted",
		    (s->end_ns - s->mapped_ns) / 1e6);
	if (!s->o.agents || !s->stream)
		return;
	/* Last, so that no span that was counted is without what it asked for. */
	gpu_feed__probes(agents__feed(s->o.agents), s->start_ns, s->end_ns);
	agents__stop(s->o.agents);
	gpu_feed__finish(agents__feed(s->o.agents));
}

bool session__disarms_slowly(const struct session *s)
{
	size_t sites;

	session__armed(s, &sites);
	return !s->multi && sites > 16;
}

static void disarm_now(struct session *s)
{
	armer__free(s->armer);
	s->armer = NULL;
}

void session__disarm(struct session *s)
{
	uint64_t t0 = now_ns();

	if (!s->armer)
		return;
	if (s->guard && !s->ended)
		session__disarm_stopped(s, disarm_now);
	else
		disarm_now(s);
	log_dbg("disarmed in %.1f ms", (now_ns() - t0) / 1e6);
}

size_t session__armed(const struct session *s, size_t *sites)
{
	const struct plan *p = s->plan;
	size_t spans = 0;
	bool *seen;

	*sites = 0;
	seen = calloc(p->nspans + 1, sizeof(*seen));
	if (!seen)
		return 0;
	for (size_t i = 0; i < p->nsites; i++) {
		if (!p->sites[i].armed)
			continue;
		++*sites;
		if (!seen[p->sites[i].span]) {
			seen[p->sites[i].span] = true;
			spans++;
		}
	}
	free(seen);
	return spans;
}

const struct plan *session__plan(const struct session *s)
{
	return s->plan;
}

const struct target *session__target(const struct session *s)
{
	return s->target;
}

bool session__has_agents(const struct session *s)
{
	if (!s->o.agents || agents__count(s->o.agents))
		return s->o.agents;
	for (size_t i = 0; i < s->target->nobjects; i++)
		if (s->target->objects[i].has_cuda)
			return true;
	return false;
}

struct unmatched {
	size_t n;
};

static void warn_one(void *ctx, const char *option, const char *glob, const char *near)
{
	struct unmatched *u = ctx;

	u->n++;
	log_warn("%s %s matches nothing in the target%s%s%s", option, glob,
		 *near ? " (did you mean " : "", near, *near ? "?)" : "");
}

size_t session__warn_unmatched(const struct session *s)
{
	struct unmatched u = {0};

	plan_unmatched(s->plan, &s->o.plan, s->target->plan_objects, s->target->nobjects, warn_one,
		       &u);
	return u.n;
}

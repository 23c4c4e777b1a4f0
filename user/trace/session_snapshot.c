// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A session's state as the outputs see it: plan and host from here, figures from the kernel. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/maps_read.h"
#include "trace/session_impl.h"

static char *dup_or_empty(const char *s)
{
	return strdup(s ? s : "");
}

static const char *role_name(enum qbpf_role r)
{
	switch (r) {
	case QBPF_ROLE_BEGIN:
	case QBPF_ROLE_KEY_BEGIN:
		return "begin";
	case QBPF_ROLE_END:
	case QBPF_ROLE_KEY_END:
		return "end";
	case QBPF_ROLE_ENTRY:
		return "entry";
	case QBPF_ROLE_RETURN:
		return "return";
	case QBPF_ROLE_RET_INSN:
		return "ret";
	case QBPF_ROLE_TAIL_JUMP:
		return "tail jump";
	default:
		return "site";
	}
}

static int note_append(struct snap_site_note **list, size_t *n, const struct session *s,
		       const struct plan_site *site, const char *reason)
{
	struct snap_site_note *l = realloc(*list, (*n + 1) * sizeof(*l));
	const char *name = site->span ? s->plan->spans[site->span - 1].name : "?";

	if (!l)
		return -ENOMEM;
	*list = l;
	l[*n].reason = dup_or_empty(reason);
	if (asprintf(&l[*n].site, "%s (%s) at 0x%llx in %s", name, role_name(site->role),
		     (unsigned long long)site->found_addr,
		     s->target->objects[site->object].path) < 0)
		l[*n].site = NULL;
	if (!l[*n].site || !l[*n].reason) {
		free(l[*n].site);
		free(l[*n].reason);
		return -ENOMEM;
	}
	++*n;
	return 0;
}

static int fill_probes(const struct session *s, struct snapshot *snap)
{
	const struct plan *p = s->plan;
	int err = 0;

	for (size_t i = 0; i < p->nsites && !err; i++) {
		const struct plan_site *site = &p->sites[i];

		if (site->armed) {
			snap->armed++;
			snap->relocated += site->verdict == VERDICT_RELOCATED;
		}
		if (site->verdict == VERDICT_REFUSED)
			err = note_append(&snap->refused, &snap->nrefused, s, site, site->reason);
		else if (site->arm_errno)
			err = note_append(&snap->failed, &snap->nfailed, s, site,
					  arm_strerror(site->arm_errno, site->sema_off != 0));
	}
	if (err || !p->nnotes)
		return err;
	snap->notes = calloc(p->nnotes, sizeof(*snap->notes));
	if (!snap->notes)
		return -ENOMEM;
	for (size_t i = 0; i < p->nnotes; i++) {
		snap->notes[i] = dup_or_empty(p->notes[i]);
		if (!snap->notes[i])
			return -ENOMEM;
		snap->nnotes++;
	}
	return 0;
}

/*
 * What an empty span reads, by the site at its begin: the clock is read there before an
 * instruction is stepped or emulated, and at the end before that too.
 */
uint64_t session__span_floor(const struct session *s, uint32_t id)
{
	const struct plan_span *sp = &s->plan->spans[id - 1];
	enum price_class begin = PRICE_NOP5;

	bool func = sp->kind == SPAN_FUNC || sp->kind == SPAN_CUDA;

	if (sp->kind != SPAN_MARKER && sp->kind != SPAN_KEYED && !func)
		return 0;
	for (size_t i = 0; i < s->plan->nsites; i++) {
		const struct plan_site *site = &s->plan->sites[i];

		if (site->span == id && site->verdict != VERDICT_REFUSED &&
		    (site->role == QBPF_ROLE_BEGIN || site->role == QBPF_ROLE_KEY_BEGIN ||
		     site->role == QBPF_ROLE_ENTRY) &&
		    site->price > begin)
			begin = site->price;
	}
	if (begin == PRICE_STEPPED)
		return s->price.floor_stepped_ns;
	if (func && (sp->way == RET_URETPROBE || sp->way == RET_GUARD))
		return s->price.floor_func_ns;
	return begin == PRICE_EMULATED ? s->price.floor_emulated_ns : s->price.floor_marker_ns;
}

static void fill_gpu_losses(struct snapshot *snap, const struct agents_sums *sums)
{
	memcpy(snap->gpu_lost[GPU_LOST_RING], sums->lost, sizeof(sums->lost));
	snap->gpu_lost[GPU_LOST_CUPTI][0] = sums->dropped;
	snap->gpu_lost[GPU_LOST_BUFFERS][0] = sums->discarded;
	snap->gpu_lost[GPU_LOST_BROKEN][0] = sums->unreadable + sums->broken;
}

void session__fill_gpu_unheld(const struct session *s, struct snapshot *snap, bool closed)
{
	struct gpu_feed_counts n;

	if (!s->o.agents || !s->stream || !s->o.record.path)
		return;
	gpu_feed__counts(agents__feed(s->o.agents), &n);
	for (uint32_t t = 0; t < QBPF_RING_TYPES; t++)
		snap->gpu_lost[GPU_LOST_DISK][t] =
		    closed ? n.taken[t] - stream__gpu_held(s->stream, t) : n.refused[t];
}

/* Of a recording they are counted as such. */
static int count_unseen(const struct session *s, const struct gpu_feed_counts *feed, uint64_t *n)
{
	size_t nspans = s->plan->nspans;
	struct stream_count *counts;
	int err;

	*n = feed->spans_lost;
	if (!s->stream || s->o.record.path)
		return 0;
	counts = calloc(nspans + 1, sizeof(*counts));
	err = counts ? stream__counts(s->stream, counts, nspans) : -ENOMEM;
	for (size_t i = 0; i <= nspans && !err; i++)
		*n += counts[i].lost;
	free(counts);
	return err;
}

/* Takes the text; NULL: no memory. */
static int add_note(struct snapshot *snap, char *text)
{
	char **notes = text ? realloc(snap->notes, (snap->nnotes + 1) * sizeof(*notes)) : NULL;

	if (!notes) {
		free(text);
		return -ENOMEM;
	}
	snap->notes = notes;
	notes[snap->nnotes++] = text;
	return 0;
}

static int note_late(const struct session *s, struct snapshot *snap)
{
	char line[SESSION_LINE];

	return session__armed_late(s, line, sizeof(line)) ? add_note(snap, strdup(line)) : 0;
}

/* What the GPU's agents have delivered; in short as a note. */
static int fill_agents(const struct session *s, struct snapshot *snap)
{
	struct gpu_feed_counts feed;
	struct agents_sums sums;
	char line[SESSION_LINE];
	int err;

	if (!s->o.agents)
		return 0;
	if (s->end_ns && session__agent_missing(s, line, sizeof(line)))
		return add_note(snap, strdup(line));
	agents__sums(s->o.agents, &sums);
	if (!sums.begun)
		return 0;
	snap->gpu = gpu_feed__summary(agents__feed(s->o.agents));
	gpu_feed__counts(agents__feed(s->o.agents), &feed);
	fill_gpu_losses(snap, &sums);
	session__fill_gpu_unheld(s, snap, false);
	err = count_unseen(s, &feed, &snap->gpu_unseen);
	if (err)
		return err;
	return add_note(snap, agents_sums__text(&sums, snap->gpu_unseen));
}

static int fill_spans(const struct session *s, struct snapshot *snap)
{
	const struct plan *p = s->plan;

	snap->spans = calloc(p->nspans ? p->nspans : 1, sizeof(*snap->spans));
	if (!snap->spans)
		return -ENOMEM;
	for (size_t i = 0; i < p->nspans; i++) {
		struct snap_span *sp = &snap->spans[i];

		sp->name = dup_or_empty(p->spans[i].name);
		sp->kind = p->spans[i].kind;
		sp->way = p->spans[i].way;
		sp->hist = hist__new(p->spans[i].hist);
		snap->nspans = i + 1;
		if (!sp->name || !sp->hist)
			return -ENOMEM;
		sp->price_ns = s->price.ns[PRICE_NOP5] ? plan_span_price(p, i + 1, s->price.ns) : 0;
		sp->floor_ns = session__span_floor(s, i + 1);
		sp->refused = !p->spans[i].armed;
		if (sp->refused)
			sp->price_ns = 0;
	}
	return 0;
}

static int fill_target(const struct session *s, struct snapshot *snap)
{
	const struct session_opts *o = &s->o;

	snap->pids = calloc(o->npids ? o->npids : 1, sizeof(*snap->pids));
	snap->comm = dup_or_empty(s->comm);
	snap->exe = dup_or_empty(s->exe);
	snap->kernel = dup_or_empty(s->host->kernel);
	snap->cpu = dup_or_empty(s->host->cpu);
	snap->clocksource = dup_or_empty(s->host->clocksource);
	if (!snap->pids || !snap->comm || !snap->exe || !snap->kernel || !snap->cpu ||
	    !snap->clocksource)
		return -ENOMEM;
	for (size_t i = 0; i < o->npids; i++)
		snap->pids[i] = o->pids[i];
	snap->npids = o->npids;
	snap->cpus = s->host->cpus;
	snap->ended = s->ended;
	return 0;
}

int session__snapshot(struct session *s, struct snapshot **out, struct err *e)
{
	struct snapshot *snap = snapshot__new();
	int err;

	if (!snap)
		return err_set(e, -ENOMEM, "out of memory");
	snap->start_ns = s->start_ns;
	memcpy(snap->price_ns, s->price.ns, sizeof(snap->price_ns));
	err = fill_target(s, snap);
	if (!err)
		err = fill_spans(s, snap);
	if (!err)
		err = fill_probes(s, snap);
	if (!err)
		err = note_late(s, snap);
	if (!err)
		err = fill_agents(s, snap);
	if (err) {
		err_set(e, err, "out of memory");
		goto out;
	}
	err = maps_read(s->skel, snap, e);
	if (err)
		goto out;
	err = session__snap_cuda(s, snap);
	if (err) {
		err_set(e, err, "cannot read the CUDA calls from the kernel: %s", strerror(-err));
		goto out;
	}
	snap->now_ns = s->end_ns ? s->end_ns : now_ns();
	snap->map_bytes = maps_memory(s->cuda ? s->cuda : s->skel);
	for (size_t i = 0; i < snap->nspans && i < s->span_room; i++)
		snap->spans[i].key_timeouts += s->key_timeouts[i];
	err = session__snap_recording(s, snap);
	if (err) {
		err_set(e, err, "cannot tell what is recorded: %s", strerror(-err));
		goto out;
	}
	*out = snap;
	return 0;
out:
	snapshot__free(snap);
	return err;
}

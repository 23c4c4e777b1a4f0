// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A session's recording: what the trace says of the target, the plan and the host, when it begins
 * and whenever a library is opened, and how it ends. The events are stream.c's.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "elf/maps.h"
#include "log.h"
#include "model/snapshot_file.h"
#include "out/units.h"
#include "plan/near.h"
#include "trace/quiesce.h"
#include "trace/session_impl.h"

#define PLACE_EVERY 5 /* seconds */

/* What of the session the trace has. */
struct recorded {
	size_t spans, sites;
	struct recorded_mapping {
		uint32_t tgid, object, index;
	} * mappings;
	size_t nmappings;
	char (*build_ids)[2 * BUILD_ID_MAX + 1]; /* by object, while its image is there */
	size_t nbuild_ids;
};

/* Can a recording go there? */
static int check_path(const char *path, struct err *e)
{
	char *dir, *slash;
	struct stat st;
	int err = 0;

	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return err_set(e, -EISDIR, "-o %s: is a directory", path);
		if (!S_ISREG(st.st_mode))
			return err_set(e, -EINVAL, "-o %s: is no regular file", path);
		if (access(path, W_OK))
			return err_set(e, -errno, "-o %s: %s", path, strerror(errno));
		return 0;
	}
	if (errno != ENOENT || !*path)
		return err_set(e, *path ? -errno : -EINVAL, "-o %s: %s", path,
			       *path ? strerror(errno) : "no name");
	dir = strdup(path);
	if (!dir)
		return err_set(e, -ENOMEM, "out of memory");
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (access(slash ? dir : ".", W_OK | X_OK))
		err = err_set(e, -errno, "-o %s: %s: %s", path, slash ? dir : ".", strerror(errno));
	free(dir);
	return err;
}

/* Into a file, that is. */
static bool session__records(const struct session *s)
{
	return s->stream && s->o.record.path;
}

int session__prepare_recording(struct session *s, struct err *e)
{
	const struct record_opts *o = &s->o.record;

	if (!o->path && !s->o.agents)
		return 0;
	s->recorded = calloc(1, sizeof(*s->recorded));
	if (!s->recorded)
		return err_set(e, -ENOMEM, "out of memory");
	if (!o->path)
		return 0;
	if (o->shown && check_path(o->shown, e))
		return -EINVAL;
	return check_path(o->path, e);
}

int session__configure_recording(struct session *s, struct err *e)
{
	const struct record_opts *o = &s->o.record;
	struct qbpf_bpf *skel = s->skel;
	__u32 spans = (__u32)s->span_room + 1;
	bool on = o->path || s->o.agents, slow = o->path && o->nslow;
	size_t bytes = o->ring_bytes ? o->ring_bytes : RECORD_RING_DEFAULT;
	int err = 0;

	bpf_map__set_autocreate(skel->maps.stream, on);
	bpf_map__set_autocreate(skel->maps.stream_counts, on);
	bpf_map__set_autocreate(skel->maps.slow_limits, slow);
	bpf_map__set_autocreate(skel->maps.histories, slow);
	if (!on)
		return 0;
	bpf_program__set_autoload(skel->progs.on_stream_end, o->path);
	skel->rodata->cfg_stream = o->path;
	skel->rodata->cfg_spans = !o->path;
	skel->rodata->cfg_stream_wake = bytes / 4;
	skel->rodata->cfg_sample = o->path ? o->sample : 0;
	skel->rodata->cfg_slow = slow;
	err = bpf_map__set_max_entries(skel->maps.stream, (__u32)bytes);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.stream_counts, spans);
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.slow_limits, spans);
	return err ? err_set(e, err, "cannot size the ring: %s", strerror(-err)) : 0;
}

void session__free_recording(struct session *s)
{
	stream__free(s->stream);
	placement__free(s->placement);
	if (s->recorded) {
		free(s->recorded->mappings);
		free(s->recorded->build_ids);
	}
	free(s->recorded);
}

/* --- tables ------------------------------------------------------------------------------------- */

void session__record_spans(struct session *s)
{
	if (!s->stream)
		return;
	for (size_t i = s->recorded->spans; i < s->plan->nspans; i++) {
		const struct plan_span *sp = &s->plan->spans[i];
		struct trace_span row = {
		    .name = sp->name,
		    .kind = (uint8_t)sp->kind,
		    .way = (uint8_t)sp->way,
		    .hist = (uint8_t)sp->hist,
		    .floor_ns = session__span_floor(s, (uint32_t)i + 1),
		};

		if (s->price.ns[PRICE_NOP5] && sp->armed)
			row.price_ns = plan_span_price(s->plan, (uint32_t)i + 1, s->price.ns);
		stream__span(s->stream, &row);
	}
	s->recorded->spans = s->plan->nspans;
}

static int keep_build_ids(struct session *s)
{
	struct recorded *r = s->recorded;
	void *p;

	if (r->nbuild_ids >= s->target->nobjects)
		return 0;
	p = realloc(r->build_ids, s->target->nobjects * sizeof(*r->build_ids));
	if (!p)
		return -ENOMEM;
	r->build_ids = p;
	for (size_t i = r->nbuild_ids; i < s->target->nobjects; i++) {
		const struct elf_image *img = s->target->objects[i].img;
		const struct elf_info *info = img ? elf_image__headers(img) : NULL;

		r->build_ids[i][0] = '\0';
		for (size_t k = 0; info && k < info->build_id_len; k++)
			snprintf(&r->build_ids[i][2 * k], 3, "%02x", info->build_id[k]);
	}
	r->nbuild_ids = s->target->nobjects;
	return 0;
}

static bool is_mapped(const struct recorded *r, uint32_t tgid, uint32_t object)
{
	for (size_t i = 0; i < r->nmappings; i++)
		if (r->mappings[i].tgid == tgid && r->mappings[i].object == object)
			return true;
	return false;
}

/* Of one object in one process; nothing if it is not there or is known. */
static int record_mapping(struct session *s, uint32_t tgid, const struct map_object *m)
{
	struct recorded *r = s->recorded;
	uint32_t object = 0;
	size_t first = 0;
	void *p;

	while (object < r->nbuild_ids && (s->target->objects[object].dev != m->dev ||
					  s->target->objects[object].ino != m->ino))
		object++;
	while (first < m->nranges && !m->ranges[first].exec)
		first++;
	if (object == r->nbuild_ids || first == m->nranges || is_mapped(r, tgid, object))
		return 0;
	p = realloc(r->mappings, (r->nmappings + 1) * sizeof(*r->mappings));
	if (!p)
		return -ENOMEM;
	r->mappings = p;
	r->mappings[r->nmappings++] = (struct recorded_mapping){
	    .tgid = tgid,
	    .object = object,
	    .index = stream__mapping(s->stream,
				     &(struct trace_mapping){
					 .path = s->target->objects[object].path,
					 .build_id = r->build_ids[object],
					 .tgid = tgid,
					 .start = m->ranges[first].start,
					 .end = m->ranges[first].end,
					 .off = m->ranges[first].off,
				     }),
	};
	return 0;
}

static int record_mappings(struct session *s)
{
	struct proc_maps *maps;
	struct err why;
	int err = keep_build_ids(s);

	for (size_t i = 0; i < s->target->npids && !err; i++) {
		maps = NULL;
		if (proc_maps__read(s->target->pids[i], &maps, &why))
			continue; /* it has ended */
		for (size_t k = 0; k < maps->n && !err; k++)
			err = record_mapping(s, (uint32_t)s->target->pids[i], &maps->objects[k]);
		proc_maps__free(maps);
	}
	return err;
}

static uint32_t mapping_of(const struct recorded *r, uint32_t object)
{
	for (size_t i = 0; i < r->nmappings; i++)
		if (r->mappings[i].object == object)
			return r->mappings[i].index;
	return TRACE_NO_MAPPING;
}

void session__record_sites(struct session *s)
{
	struct recorded *r = s->recorded;

	if (!session__records(s))
		return;
	if (record_mappings(s))
		log_warn("the trace lacks mappings: out of memory");
	for (size_t i = r->sites; i < s->plan->nsites; i++) {
		const struct plan_site *site = &s->plan->sites[i];
		const char *reason = site->reason;
		struct trace_probe row = {
		    .span = site->span,
		    .mapping = mapping_of(r, site->object),
		    .role = (uint8_t)site->role,
		    .armed = site->armed,
		    .off = site->off,
		};

		if (site->arm_errno)
			reason = arm_strerror(site->arm_errno, site->sema_off != 0);
		row.reason = (char *)(reason ? reason : "");
		if (site->span)
			stream__probe(s->stream, &row);
	}
	r->sites = s->plan->nsites;
}

/* The limits of --slow, of spans[from ..); before their probes are armed. */
int session__publish_slow(struct session *s, struct err *e)
{
	const struct record_opts *o = &s->o.record;

	for (__u32 id = (__u32)s->slow_published + 1; o->nslow && id <= s->plan->nspans; id++) {
		__u64 limit = 0;
		int err;

		for (size_t i = 0; i < o->nslow; i++)
			if (slow_rule__matches(&o->slow[i], &s->plan->spans[id - 1]) &&
			    (!limit || o->slow[i].min_ns < limit - 1))
				limit = o->slow[i].min_ns + 1;
		if (!limit)
			continue;
		err = bpf_map__update_elem(s->skel->maps.slow_limits, &id, sizeof(id), &limit,
					   sizeof(limit), BPF_ANY);
		if (err)
			return err_set(e, err, "cannot watch %s: %s", s->plan->spans[id - 1].name,
				       strerror(-err));
	}
	s->slow_published = s->plan->nspans;
	return 0;
}

/* --- begin and end ------------------------------------------------------------------------------ */

static char *slow_text(const struct record_opts *o)
{
	size_t len = 1;
	char *text;

	for (size_t i = 0; i < o->nslow; i++)
		len += strlen(o->slow[i].text) + 2;
	text = calloc(1, len);
	for (size_t i = 0; text && i < o->nslow; i++) {
		if (i)
			strcat(text, ", ");
		strcat(text, o->slow[i].text);
	}
	return text;
}

static uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A library that is opened later may still have it. */
static void warn_of_unwatched(const struct session *s)
{
	for (size_t i = 0; i < s->o.record.nslow; i++) {
		const struct slow_rule *r = &s->o.record.slow[i];
		struct nearest near = {.want = r->glob, .want_len = strnlen(r->glob, NEAR_MAX)};
		bool matched = false;
		char names[NEAR_TEXT];

		for (size_t k = 0; k < s->plan->nspans && !matched; k++) {
			const struct plan_span *span = &s->plan->spans[k];

			matched = slow_rule__matches(r, span);
			if (slow_rule__can_watch(span))
				nearest__offer_span(&near, span->name);
		}
		if (matched)
			continue;
		nearest__join(&near, names, sizeof(names));
		log_warn("--slow %s: no span so far that has a duration is called so%s%s%s",
			 r->text, *names ? " (did you mean " : "", names, *names ? "?)" : "");
	}
}

/* Spans for the model of the GPU, and none for a file. */
static int start_feeding(struct session *s, struct err *e)
{
	static const struct trace_meta none;
	struct gpu_feed *feed = agents__feed(s->o.agents);

	/* Else when one has come: no other program pays for it. */
	s->skel->bss->spans_wanted = !s->o.cuda_instead;
	return stream__start(s->skel, &s->o.record, &none, s->span_room, feed, &s->stream, e);
}

static int start_file(struct session *s, struct err *e)
{
	const struct record_opts *o = &s->o.record;
	struct gpu_feed *feed = s->o.agents ? agents__feed(s->o.agents) : NULL;
	struct utsname u = {0};
	struct trace_meta meta = {
	    .qbpf_version = QBPF_VERSION,
	    .command = (char *)(o->command ? o->command : ""),
	    .kernel = s->host->kernel,
	    .cpu = s->host->cpu,
	    .clocksource = s->host->clocksource,
	    .cpus = s->host->cpus,
	    .sample = o->sample,
	    .ring_bytes = o->ring_bytes,
	    .nprices = PRICE_N,
	};
	int err;

	warn_of_unwatched(s);
	err = placement__new(o->cpu, &s->placement, e);
	if (err)
		return err;
	uname(&u);
	meta.hostname = u.nodename;
	meta.slow = slow_text(o);
	if (!meta.slow)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < PRICE_N; i++)
		meta.price_ns[i] = s->price.ns[i];
	meta.start_ns = now_ns();
	meta.realtime_ns = realtime_ns();
	err = stream__start(s->skel, o, &meta, s->span_room, feed, &s->stream, e);
	free(meta.slow);
	if (err)
		return err;
	for (size_t i = 0; i < s->target->npids; i++)
		stream__process(s->stream, (uint32_t)s->target->pids[i], meta.start_ns);
	/* What they use from now on is compared with this. */
	placement__update(s->placement, s->target->pids, s->target->npids);
	return 0;
}

int session__start_recording(struct session *s, struct err *e)
{
	int err;

	if (!s->recorded)
		return 0;
	err = s->o.record.path ? start_file(s, e) : start_feeding(s, e);
	if (err)
		return err;
	session__record_spans(s);
	session__record_sites(s);
	if (!s->o.agents)
		return 0;
	err = gpu_feed__start(agents__feed(s->o.agents), session__records(s) ? s->stream : NULL);
	return err ? err_set(e, err, "cannot start the GPU's thread: %s", strerror(-err)) : 0;
}

void session__tick_recording(struct session *s)
{
	int fault;

	if (!session__records(s))
		return;
	if (s->ticks++ % PLACE_EVERY == 0)
		placement__update(s->placement, s->target->pids, s->target->npids);
	fault = stream__fault(s->stream);
	if (!fault || s->fault_told)
		return;
	s->fault_told = true;
	log_err("recording to %s has stopped: %s; tracing goes on", s->o.record.path,
		strerror(fault));
}

void session__stop_recording(struct session *s)
{
	struct err why;
	int err;

	if (!s->stream)
		return;
	err = quiesce_programs();
	if (err)
		log_warn("spans that end at this moment may be counted and not be recorded: %s",
			 strerror(-err));
	if (stream__stop(s->stream, s->end_ns, &why))
		log_warn("%s", why.text);
}

/* Every closed one, as the kernel has counted it. */
static uint64_t *counted(const struct snapshot *snap)
{
	uint64_t *counts = snapshot__counts(snap);

	for (size_t i = 0; counts && i < snap->nspans; i++)
		if (!snap_span__is_instant(&snap->spans[i]))
			counts[i] += snap->spans[i].hist_overflow;
	return counts;
}

/* The file that is there, or will be. */
static const char *where(const struct session *s, const struct snapshot *snap)
{
	return s->o.record.shown && !snap->recording_fault ? s->o.record.shown : s->o.record.path;
}

/* "recorded 986 spans (98.6 % of 1000) to tick.qbpf, 1.2 KiB; lost 14: the ring was full" */
static char *describe(const struct session *s, const struct snapshot *snap, uint64_t all)
{
	const struct record_opts *o = &s->o.record;
	struct snap_recorded sum = {0};
	char lost[128] = "", skipped[96] = "", size[UNIT_TEXT], *line;

	for (size_t i = 0; i < snap->nspans; i++) {
		sum.held += snap->spans[i].recorded.held;
		sum.lost += snap->spans[i].recorded.lost;
		sum.skipped += snap->spans[i].recorded.skipped;
	}
	if (sum.lost)
		snprintf(lost, sizeof(lost), "; lost %llu: %s", (unsigned long long)sum.lost,
			 snap->recording_fault ? snap->recording_fault
			 : o->nslow	       ? "the ring or a history was full (--ring)"
					       : "the ring was full (--ring)");
	if (sum.skipped)
		snprintf(skipped, sizeof(skipped), "; left out %llu by %s",
			 (unsigned long long)sum.skipped,
			 !o->nslow	 ? "--sample"
			 : o->sample > 1 ? "--sample and --slow"
					 : "--slow");
	/* Rounded down: a file that lacks something does not hold 100 %. */
	if (asprintf(&line, "recorded %llu spans (%.4g %% of %llu) to %s, %s%s%s",
		     (unsigned long long)sum.held,
		     all ? floor(1e4 * (double)sum.held / (double)all) / 100 : 0,
		     (unsigned long long)all, where(s, snap),
		     unit__bytes(size, snap->recording_bytes), lost, skipped) < 0)
		return NULL;
	return line;
}

/* The snapshot's last note, replaced when it is there already. */
static int put_note(struct session *s, struct snapshot *snap)
{
	uint64_t all = 0, *counts = counted(snap);
	bool again = snap->recording;
	char *line, **notes;

	for (size_t i = 0; counts && i < snap->nspans; i++)
		all += counts[i];
	free(counts);
	line = counts ? describe(s, snap, all) : NULL;
	free(snap->recording);
	snap->recording = strdup(where(s, snap));
	if (!line || !snap->recording) {
		free(line);
		return -ENOMEM;
	}
	if (again) {
		free(snap->notes[snap->nnotes - 1]);
		snap->notes[snap->nnotes - 1] = line;
		return 0;
	}
	notes = realloc(snap->notes, (snap->nnotes + 1) * sizeof(*notes));
	if (!notes) {
		free(line);
		return -ENOMEM;
	}
	snap->notes = notes;
	notes[snap->nnotes++] = line;
	return 0;
}

int session__snap_recording(struct session *s, struct snapshot *snap)
{
	struct stream_count *counts;
	int err;

	if (!session__records(s))
		return 0;
	counts = calloc(snap->nspans + 1, sizeof(*counts));
	err = counts ? stream__counts(s->stream, counts, snap->nspans) : -ENOMEM;
	for (size_t i = 0; i < snap->nspans && !err; i++) {
		struct snap_recorded *r = &snap->spans[i].recorded;

		const struct stream_count *c = &counts[i + 1];

		r->held = stream__held(s->stream, (uint32_t)i + 1, c);
		r->lost = c->lost + c->streamed - r->held;
		r->skipped = c->skipped;
		r->over = c->over;
	}
	free(counts);
	if (err)
		return err;
	snap->recording_bytes = stream__bytes(s->stream);
	if (stream__fault(s->stream) && !snap->recording_fault)
		snap->recording_fault = strdup(strerror(stream__fault(s->stream)));
	return put_note(s, snap);
}

/* No span was counted with them, so no figure would tell. */
static void tell_unnamed_losses(const struct session *s)
{
	struct stream_count none = {0};

	if (!stream__counts(s->stream, &none, 0) && none.lost)
		log_warn(
		    "%llu ends of threads and spans that those had open found the ring full: the "
		    "recording lacks them",
		    (unsigned long long)none.lost);
}

int session__finish_recording(struct session *s, struct snapshot *snap, struct err *e)
{
	uint64_t *counts;
	void *bytes = NULL;
	struct err why = {{0}};
	size_t len = 0;
	int err;

	if (!session__records(s))
		return 0;
	tell_unnamed_losses(s);
	log_dbg("the ring's reader was woken %llu times",
		(unsigned long long)stream__wakeups(s->stream));
	counts = counted(snap);
	err = counts ? snapshot__pack(snap, &bytes, &len) : -ENOMEM;
	if (!err)
		err = stream__finish(s->stream, s->end_ns, counts, snap->nspans, bytes, len, &why);
	free(bytes);
	free(counts);
	if (session__snap_recording(s, snap))
		log_warn("out of memory");
	session__fill_gpu_unheld(s, snap, true);
	return err ? err_set(e, err, "the recording %s is incomplete: %s", s->o.record.path,
			     err == -ESTALE ? "it was deleted meanwhile" : strerror(-err))
		   : 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_advice.c - what the sums suggest to change, each with the figures that it rests on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/gpu_impl.h"

#define ADVICE_MAX     64
#define MANY	       100	  /* launches or copies that are worth a word */
#define FIRST_LEAST_NS 1000000ull /* so are first launches of that */
#define GAP_SHARE      10	  /* percent of a device's time */

const char *gpu_advice_name(enum gpu_advice_kind k)
{
	static const char *const names[] = {"sync_copy",    "pageable",	    "tiny_copies",
					    "launch_bound", "first_launch", "host_late",
					    "sync_gap",	    "failed_calls"};

	return k < GPU_ADVICE_KINDS ? names[k] : "?";
}

static int add(struct gpu_summary *s, struct gpu_advice a, const char *name)
{
	if (s->nadvice == ADVICE_MAX)
		return 0;
	if (name) {
		a.name = strdup(name);
		if (!a.name)
			return -ENOMEM;
	}
	s->advice[s->nadvice++] = a;
	return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Copies and kernels that never ran at once could at best have done so for the shorter of both. */
static int synchronous_copies(struct gpu_summary *s)
{
	struct gpu_advice a = {.kind = GPU_ADVICE_SYNC_COPY};
	uint64_t compute_alone = 0;

	for (size_t i = 0; i < s->ncopies; i++) {
		const struct gpu_copy *c = &s->copies[i];

		if (!c->synchronous || !c->time.count || c->direction == GPU_MEMSET)
			continue;
		a.count += c->time.count;
		a.bytes += c->bytes;
		a.cost_ns += c->call.total_ns;
		a.of_ns += c->alone_ns;
	}
	for (size_t i = 0; i < s->ndevices; i++)
		compute_alone += s->devices[i].compute_ns - s->devices[i].overlap_ns;
	a.save_ns = least(a.of_ns, compute_alone);
	return a.count ? add(s, a, NULL) : 0;
}

/* Beside copies of pinned memory in the same direction, if there are some. */
static int pageable_copies(struct gpu_summary *s, enum gpu_direction d)
{
	struct gpu_advice a = {.kind = GPU_ADVICE_PAGEABLE, .direction = d, .save_ns = GPU_UNKNOWN};
	uint64_t pinned_bytes = 0, pinned_ns = 0;

	for (size_t i = 0; i < s->ncopies; i++) {
		const struct gpu_copy *c = &s->copies[i];

		if (c->direction != d)
			continue;
		if (!c->pageable) {
			pinned_bytes += c->bytes;
			pinned_ns += c->time.total_ns;
			continue;
		}
		a.count += c->time.count;
		a.bytes += c->bytes;
		a.cost_ns += c->time.total_ns;
	}
	if (pinned_bytes) {
		unsigned __int128 ns = (unsigned __int128)a.bytes * pinned_ns / pinned_bytes;

		a.save_ns = ns < a.cost_ns ? a.cost_ns - (uint64_t)ns : 0;
	}
	return a.count ? add(s, a, NULL) : 0;
}

static int tiny_copies(struct gpu_summary *s, enum gpu_direction d)
{
	struct gpu_advice a = {.kind = GPU_ADVICE_TINY, .direction = d, .save_ns = GPU_UNKNOWN};
	uint64_t all = 0;

	for (size_t i = 0; i < s->ncopies; i++) {
		if (s->copies[i].direction != d)
			continue;
		all += s->copies[i].time.count;
		a.count += s->copies[i].tiny;
		a.cost_ns += s->copies[i].tiny_ns;
	}
	a.bytes = GPU_TINY;
	return a.count >= MANY && a.count >= all / 2 ? add(s, a, NULL) : 0;
}

/* What the launches that are known brought about: the calls of some kernels may be missing. */
static uint64_t launched_ns(const struct gpu_kernel *k)
{
	if (!k->time.count || k->call.count >= k->time.count)
		return k->time.total_ns;
	return (uint64_t)((double)k->time.total_ns * (double)k->call.count / (double)k->time.count);
}

static int launches(struct gpu_summary *s)
{
	struct gpu_advice first = {.kind = GPU_ADVICE_FIRST_LAUNCH};
	int err = 0;

	for (size_t i = 0; i < s->nkernels && !err; i++) {
		const struct gpu_kernel *k = &s->kernels[i];

		if (k->first_calls && k->call.count) {
			first.count += k->first_calls;
			first.cost_ns += k->first_call_ns;
			first.of_ns += k->call.total_ns / k->call.count * k->first_calls;
		}
		if (k->call.count >= MANY && k->call.total_ns > launched_ns(k))
			err = add(s,
				  (struct gpu_advice){.kind = GPU_ADVICE_LAUNCH_BOUND,
						      .count = k->call.count,
						      .cost_ns = k->call.total_ns,
						      .of_ns = launched_ns(k),
						      .save_ns = GPU_UNKNOWN},
				  k->name);
	}
	if (first.cost_ns <= first.of_ns || first.cost_ns - first.of_ns < FIRST_LEAST_NS || err)
		return err;
	first.save_ns = first.cost_ns - first.of_ns;
	return add(s, first, NULL);
}

static int gaps(struct gpu_summary *s, const struct gpu_device *d)
{
	uint64_t all = d->to_ns - d->from_ns;
	int err = 0;

	for (size_t i = 0; i < d->nidle && !err; i++) {
		const struct gpu_idle *g = &d->idle[i];
		struct gpu_advice a = {.device = d->device,
				       .tgid = gpu_summary__shared(s) ? d->tgid : 0,
				       .count = g->gaps,
				       .cost_ns = g->total_ns,
				       .of_ns = all,
				       .save_ns = g->total_ns};

		if ((unsigned __int128)g->total_ns * 100 < (unsigned __int128)all * GAP_SHARE)
			continue;
		if (g->cause != GPU_IDLE_HOST && g->cause != GPU_IDLE_SYNC)
			continue;
		a.kind = g->cause == GPU_IDLE_HOST ? GPU_ADVICE_HOST_LATE : GPU_ADVICE_SYNC_GAP;
		err = add(s, a, g->name);
	}
	return err;
}

static int failures(struct gpu_summary *s)
{
	int err = 0;

	for (size_t i = 0; i < s->ncalls && !err; i++)
		if (s->calls[i].failed)
			err = add(s,
				  (struct gpu_advice){.kind = GPU_ADVICE_FAILED,
						      .error = s->calls[i].error,
						      .count = s->calls[i].failed,
						      .of_ns = s->calls[i].time.count,
						      .save_ns = GPU_UNKNOWN},
				  s->calls[i].name);
	return err;
}

static int compare(const void *pa, const void *pb)
{
	const struct gpu_advice *a = pa, *b = pb;

	if (a->cost_ns != b->cost_ns)
		return a->cost_ns < b->cost_ns ? 1 : -1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->direction != b->direction)
		return a->direction < b->direction ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	return strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

int gpu_advice__make(struct gpu_summary *s)
{
	int err = 0;

	s->advice = calloc(ADVICE_MAX, sizeof(*s->advice));
	if (!s->advice)
		return -ENOMEM;
	err = synchronous_copies(s);
	for (int d = 0; d < GPU_DIRECTIONS && !err; d++) {
		if (d == GPU_TO_DEVICE || d == GPU_TO_HOST)
			err = pageable_copies(s, d);
		if (!err && d != GPU_MEMSET)
			err = tiny_copies(s, d);
	}
	if (!err)
		err = launches(s);
	for (size_t i = 0; i < s->ndevices && !err; i++)
		err = gaps(s, &s->devices[i]);
	if (!err)
		err = failures(s);
	qsort(s->advice, s->nadvice, sizeof(*s->advice), compare);
	return err;
}

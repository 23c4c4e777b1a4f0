// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu.c - words for what the GPU did. */
#include "out/gpu.h"

#include <inttypes.h>
#include <string.h>

#include "file/ring_reader.h"
#include "out/units.h"

const char *gpu_loss_reason(uint32_t reason)
{
	static const char *const names[GPU_LOST_N] = {"ring_full", "cupti_dropped", "no_buffer",
						      "unreadable", "disk"};

	return reason < GPU_LOST_N ? names[reason] : "unknown";
}

const char *gpu_loss_type(uint32_t type)
{
	const char *name = type ? ring_type_name(type) : NULL;

	return name ? name : "any";
}

char *gpu_device__text(const struct gpu_summary *g, const struct gpu_device *d,
		       char buf[GPU_DEVICE_TEXT])
{
	size_t n = (size_t)snprintf(buf, GPU_DEVICE_TEXT, "GPU %" PRIu32, d->device);

	if (d->name)
		n += (size_t)snprintf(buf + n, GPU_DEVICE_TEXT - n, " (%.100s)", d->name);
	if (!gpu_summary__shared(g))
		return buf;
	if (d->tgid && d->comm)
		snprintf(buf + n, GPU_DEVICE_TEXT - n, " of %.20s (pid %" PRIu32 ")", d->comm,
			 d->tgid);
	else if (d->tgid)
		snprintf(buf + n, GPU_DEVICE_TEXT - n, " of pid %" PRIu32, d->tgid);
	else
		snprintf(buf + n, GPU_DEVICE_TEXT - n, " of the programs of ring %" PRIu32,
			 d->ring);
	return buf;
}

/* Has its device another stream of this number, in another context? */
static bool has_twin(const struct gpu_summary *g, const struct gpu_stream *s)
{
	for (size_t i = 0; i < g->nstreams; i++) {
		const struct gpu_stream *o = &g->streams[i];

		if (o != s && o->ring == s->ring && o->device == s->device &&
		    o->stream == s->stream)
			return true;
	}
	return false;
}

char *gpu_stream__text(const struct gpu_summary *g, const struct gpu_stream *s,
		       char buf[GPU_STREAM_TEXT])
{
	size_t n = (size_t)snprintf(buf, GPU_STREAM_TEXT, "GPU %" PRIu32, s->device);

	if (gpu_summary__shared(g) && s->tgid)
		n += (size_t)snprintf(buf + n, GPU_STREAM_TEXT - n, " of %" PRIu32, s->tgid);
	else if (gpu_summary__shared(g))
		n += (size_t)snprintf(buf + n, GPU_STREAM_TEXT - n, " ring %" PRIu32, s->ring);
	if (has_twin(g, s))
		n +=
		    (size_t)snprintf(buf + n, GPU_STREAM_TEXT - n, " context %" PRIu32, s->context);
	n += (size_t)snprintf(buf + n, GPU_STREAM_TEXT - n, " stream %" PRIu32, s->stream);
	if (s->null)
		n += (size_t)snprintf(buf + n, GPU_STREAM_TEXT - n, " (default)");
	if (s->generation > 1)
		snprintf(buf + n, GPU_STREAM_TEXT - n, ", process no. %" PRIu32, s->generation);
	return buf;
}

char *gpu_idle__text(const struct gpu_idle *i, char buf[GPU_IDLE_TEXT])
{
	static const char *const in[] = {"host late, in ", "host waited in ", "host was in "};
	static const char *const other[] = {
	    "asked for, not begun yet", "waited for an event of another stream", "cause not known"};

	if (i->cause == GPU_IDLE_HOST && !i->name)
		snprintf(buf, GPU_IDLE_TEXT, "host late, in no traced span");
	else if (i->cause <= GPU_IDLE_CALL)
		snprintf(buf, GPU_IDLE_TEXT, "%s%.200s", in[i->cause],
			 i->name ? i->name : "a call without a name");
	else
		snprintf(buf, GPU_IDLE_TEXT, "%s", other[i->cause - GPU_IDLE_LAUNCH]);
	return buf;
}

static void put_gap(const struct gpu_advice *a, char *buf, const char *cost, const char *of)
{
	char share[UNIT_TEXT], in[GPU_ADVICE_TEXT / 2], whose[24] = "";

	unit__share(share, a->of_ns ? (double)a->cost_ns / (double)a->of_ns : 0);
	if (a->kind == GPU_ADVICE_SYNC_GAP)
		snprintf(in, sizeof(in), "had not returned from %.200s",
			 a->name ? a->name : "a wait");
	else
		snprintf(in, sizeof(in), "was in %.200s and had not asked for more",
			 a->name ? a->name : "no traced span");
	if (a->tgid)
		snprintf(whose, sizeof(whose), " of pid %" PRIu32, a->tgid);
	snprintf(buf, GPU_ADVICE_TEXT,
		 "GPU %" PRIu32 "%s idled %s (%s of %s, %" PRIu64 " gaps) while the host %s: %s",
		 a->device, whose, cost, share, of, a->count, in,
		 a->kind == GPU_ADVICE_SYNC_GAP ? "ask for the next work before waiting"
						: "launch earlier, or keep two ticks in flight");
}

char *gpu_advice__text(const struct gpu_advice *a, char buf[GPU_ADVICE_TEXT])
{
	char cost[UNIT_TEXT], of[UNIT_TEXT], save[UNIT_TEXT], bytes[UNIT_TEXT];
	const char *name = a->name ? a->name : "(unnamed)";

	unit__time(cost, a->cost_ns);
	unit__time(of, a->of_ns);
	unit__time(save, a->save_ns);
	unit__bytes(bytes, a->bytes);
	switch (a->kind) {
	case GPU_ADVICE_SYNC_COPY:
		snprintf(buf, GPU_ADVICE_TEXT,
			 "%" PRIu64
			 " synchronous copies (%s) held the host up for %s, and only copies "
			 "ran for %s of it: asynchronous ones from pinned memory could run beside "
			 "kernels, which saves %s at most",
			 a->count, bytes, cost, of, save);
		break;
	case GPU_ADVICE_PAGEABLE:
		snprintf(buf, GPU_ADVICE_TEXT,
			 "%" PRIu64 " copies %s of pageable memory (%s) took %s%s%s%s", a->count,
			 gpu_direction_name(a->direction), bytes, cost,
			 a->save_ns == GPU_UNKNOWN ? "" : ": at the rate of the pinned ones ",
			 a->save_ns == GPU_UNKNOWN ? ": pin it (cudaHostRegister, cudaMallocHost)"
						   : save,
			 a->save_ns == GPU_UNKNOWN ? "" : " less");
		break;
	case GPU_ADVICE_TINY:
		snprintf(buf, GPU_ADVICE_TEXT,
			 "%" PRIu64 " copies %s of %s or less took %s: put them together", a->count,
			 gpu_direction_name(a->direction), bytes, cost);
		break;
	case GPU_ADVICE_LAUNCH_BOUND:
		snprintf(buf, GPU_ADVICE_TEXT,
			 "%" PRIu64
			 " launches of %.200s took the host %s, the kernel itself %s: a CUDA "
			 "graph or fewer, larger launches",
			 a->count, name, cost, of);
		break;
	case GPU_ADVICE_FIRST_LAUNCH:
		snprintf(buf, GPU_ADVICE_TEXT,
			 "%" PRIu64
			 " first launches took the host %s, warm ones of the same kernels take "
			 "%s: launch each once before trading begins",
			 a->count, cost, of);
		break;
	case GPU_ADVICE_FAILED:
		snprintf(buf, GPU_ADVICE_TEXT,
			 "%" PRIu64 " of %" PRIu64
			 " calls of %.200s failed, the last with error %" PRIu32,
			 a->count, a->of_ns, name, a->error);
		break;
	default:
		put_gap(a, buf, cost, of);
	}
	return buf;
}

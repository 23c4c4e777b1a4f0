/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the Perfetto exporter: what its files share.
 *
 *	perfetto.c		the file as a whole, and each thread's spans
 *	perfetto_tracks.c	sequences, names, tracks of processes and threads
 *	perfetto_async.c	keyed spans, flows, losses
 *	perfetto_gpu.c		the GPU: devices, streams, activities, levels
 *	perfetto_calls.c	calls of the CUDA API
 *	perfetto_pack.c		packets into the file
 */
#ifndef QBPF_OUT_PERFETTO_IMPL_H
#define QBPF_OUT_PERFETTO_IMPL_H

#include "model/lanes.h"
#include "out/export_gpu.h"
#include "out/export_impl.h"
#include "out/perfetto_pack.h"

/* Sequences; those of threads follow, by index. */
enum { SEQUENCE_TABLES = 1, SEQUENCE_KEYED, SEQUENCE_GPU, SEQUENCE_THREADS };

enum uuid_kind {
	UUID_SESSION,
	UUID_PROCESS,
	UUID_THREAD,
	UUID_DEEP,
	UUID_BESIDE,
	UUID_KEYED,
	UUID_COUNTER,
	UUID_LOST,
	UUID_OTHER_THREAD, /* that is in no table */
	UUID_CALLS,
	UUID_GPU,
	UUID_DEVICE,
	UUID_STREAM,
	UUID_QUEUE,
	UUID_BUSY,
};

/* The lanes of one keyed span in one process. */
struct keyed_lanes {
	struct keyed_lanes *next;
	uint64_t process; /* uuid */
	struct lanes *lanes;
};

struct span_state {
	uint32_t sequence; /* in which the name was sent last */
	struct pack_part begin, point;
	struct keyed_lanes *keyed;
	uint64_t counter; /* uuid of the process whose counter is described */
};

struct perfetto {
	struct exporter *x;
	struct pack *pack;
	uint64_t salt; /* of uuids: traces that are put into one file must not share tracks */
	struct span_state *spans;
	bool *processes, *threads; /* described */
	uint32_t sequence;
	struct pack_part in_sequence, end;
	/* the thread at hand */
	uint32_t thread;
	struct lanes *beside;
	uint32_t deep; /* tracks for what is deeper that are described */
	/* across threads */
	uint64_t keyed, flows;
};

/* perfetto_tracks.c. All that send return 0 or a negative errno, which is then told in x->e. */
int perfetto__packed(const struct perfetto *p, int err);
uint64_t perfetto__uuid(const struct perfetto *p, enum uuid_kind kind, uint64_t a, uint64_t b);
uint64_t perfetto__salt(const struct trace_info *info);
uint64_t perfetto__time(uint64_t ns);
int perfetto__event(struct perfetto *p, uint64_t at_ns, Perfetto__TrackEvent__Type type,
		    Perfetto__TrackEvent *ev);
int perfetto__track(struct perfetto *p, uint64_t at_ns, Perfetto__TrackDescriptor *track);
/* A plain track below another; parent 0: none. */
int perfetto__named_track(struct perfetto *p, uint64_t id, uint64_t parent, const char *name);
/* Goes to a sequence that was not used before. `track`: of events that name none; 0: no default. */
int perfetto__begin_sequence(struct perfetto *p, uint32_t sequence, uint64_t track);
int perfetto__event_part(struct perfetto *p, struct pack_part *part,
			 Perfetto__TrackEvent__Type type, uint32_t name_iid);
int perfetto__send_name(struct perfetto *p, uint32_t span);
int perfetto__send(struct perfetto *p, Perfetto__TracePacket *packet);
/* Of a process by its id, at that time; described when it is not. */
int perfetto__need_process(struct perfetto *p, uint32_t tgid, uint64_t ns, uint64_t *uuid);
/* The same of a thread that is in no table. */
int perfetto__other_thread(struct perfetto *p, uint32_t tgid, uint32_t tid, uint64_t ns,
			   uint64_t *uuid);
uint64_t perfetto__process_uuid(const struct perfetto *p, uint32_t thread);
uint64_t perfetto__thread_uuid(const struct perfetto *p, uint32_t thread);
int perfetto__describe_thread(struct perfetto *p, uint32_t thread);

/* A span's name is known in this sequence from now on; its id is the span's. */
static inline int perfetto__need_name(struct perfetto *p, uint32_t span)
{
	return p->spans[span].sequence == p->sequence ? 0 : perfetto__send_name(p, span);
}

/* perfetto.c: a span on a track that is named, with a note where it is not as others; `flow`: the id
 * of an arrow that begins here, or NULL. */
int perfetto__begin(struct perfetto *p, const struct event *ev, uint64_t track, uint64_t *flow);
int perfetto__end(struct perfetto *p, uint64_t at_ns, uint64_t track);

/* perfetto_gpu.c: all of it. */
int perfetto__gpu(struct perfetto *p);
/* A title's name is known in the GPU's sequence from now on; *iid. */
int perfetto__need_title(struct perfetto *p, struct export_gpu *g, uint32_t title, uint64_t *iid);

/* perfetto_calls.c */
struct perfetto_calls;
struct perfetto_calls *perfetto_calls__new(struct perfetto *p, struct export_gpu *g);
void perfetto_calls__free(struct perfetto_calls *c);
int perfetto_calls__add(struct perfetto_calls *c, const struct gpu_item_call *call);
/* The last ones end. */
int perfetto_calls__end(struct perfetto_calls *c);

/* perfetto_async.c */
int perfetto__keyed(struct perfetto *p);
int perfetto__losses(struct perfetto *p);

#endif

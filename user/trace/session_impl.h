/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inside of a session, shared by session*.c alone. */
#ifndef QBPF_TRACE_SESSION_IMPL_H
#define QBPF_TRACE_SESSION_IMPL_H

#include "clock.h"
#include "qbpf.skel.h"
#include "trace/arm.h"
#include "trace/cuda_names.h"
#include "trace/host.h"
#include "trace/placement.h"
#include "trace/price.h"
#include "trace/session.h"
#include "trace/stream.h"

#define SESSION_LINE 512 /* bytes of what is told in a line */

struct session {
	struct session_opts o;
	struct host *host;
	struct plan_kernel kernel;
	struct target *target;
	struct plan *plan;
	struct qbpf_bpf *skel;
	struct qbpf_bpf
	    *cuda; /* whose programs and maps for CUDA are loaded: skel, or one of its own */
	struct bpf_link *links[4]; /* tracepoints */
	size_t nlinks;
	struct ring_buffer *notices;
	struct armer *armer;
	struct price price;
	int epfd;
	int *pidfds; /* one for each of pid_list */
	pid_t *pid_list;
	size_t npidfds;
	uint64_t start_ns;	     /* counting began, every probe armed */
	uint64_t end_ns;	     /* counting ended; 0: it goes on */
	uint64_t *key_timeouts;	     /* by span id - 1 */
	size_t span_room, site_room; /* entries of span_counts and sites */
	bool multi;
	bool hooked;		   /* the dynamic linker reports new objects */
	struct plan_process facts; /* as the plan knows them */
	bool guard;		   /* its programs are loaded */
	size_t guard_hooks;	   /* entries of unwinders that are hooked */
	bool forks;		   /* seen to, whatever its symbols say */
	bool fork_tried;	   /* kernel.nop5_fork_unsafe is known */
	bool rescan;		   /* asked for by a notice */
	uint64_t mapped_ns;	   /* code may have come since then and is not armed; 0: none */
	uint64_t looked_ns;	   /* the mappings were read last */
	size_t late_probes;	   /* armed when their code may have run already */
	uint64_t late_ns;	   /* the longest of such times */
	bool ended;
	char *comm, *exe;      /* of the first process, kept after its end */
	struct snapshot *last; /* of the previous tick, for --max-overhead */
	struct stream *stream; /* NULL: nothing is recorded */
	struct placement *placement;
	struct recorded *recorded;
	size_t slow_published;	       /* spans that --slow was asked about */
	struct cuda_names *cuda_names; /* NULL: none were asked for */
	bool cuda_told;
	char cuda_hint[640]; /* in place of the options', when an agent has refused */
	unsigned int ticks;
	bool fault_told;
};

/* session_watch.c */
int session__watch(struct session *s, struct err *e); /* epoll, pidfds, notices, linker hook */
void session__unwatch(struct session *s);
void session__hook_ldso(struct session *s, size_t from);

/* session_guard.c: the unwinder's entry points for --returns guard, of objects[from ..). */
void session__configure_guard(struct session *s, bool wanted); /* before loading */
int session__arm_guard(struct session *s, size_t from, struct err *e);
void session__disarm_stopped(struct session *s, void (*disarm)(struct session *s));
int session__check_guard(struct session *s, struct err *e);
void session__guard_fork(struct session *s, pid_t parent, pid_t child);

/* session.c */
bool session__armed_late(const struct session *s, char *line, size_t size);
int session__arm_from(struct session *s, size_t from_site, size_t from_object, struct err *e);
/* Gives the sites from from_site on their verdicts. *proc: what the processes can do, by which. */
int session__check_from(struct session *s, size_t from_site, struct plan_process *proc,
			struct err *e);
/* What the processes can do, and, once they can fork, whether the kernel minds. */
void session__facts(struct session *s, struct plan_process *proc);

/* session_replan.c */
int session__replan(struct session *s, const struct plan_process *now, struct err *e);

/* session_snapshot.c: what an empty span reads; 0: unknown. */
uint64_t session__span_floor(const struct session *s, uint32_t id);
/* Records of the GPU that the file lacks: exactly when it is closed, else as far as is known. */
void session__fill_gpu_unheld(const struct session *s, struct snapshot *snap, bool closed);

/* session_cuda.c: nothing is loaded, and nothing happens, until the plan has a function of CUDA. */
bool session__plans_cuda(const struct session *s);
void session__configure_cuda(struct qbpf_bpf *b, bool wanted, bool multi); /* before loading */
void session__load_cuda(struct session *s);
void session__free_cuda(struct session *s);
/* The functions of objects[from ..) that may define some of CUDA. */
int session__read_cuda(struct session *s, size_t from, struct err *e);
int session__on_agents(struct session *s, struct err *e); /* one has something to say */
void session__tell_cuda(struct session *s);		  /* once, when the first is armed */
bool session__agent_missing(const struct session *s, char *line, size_t size);
int session__publish_cuda(struct session *s, uint32_t site_id);
int session__snap_cuda(struct session *s, struct snapshot *snap);

/* session_record.c: nothing happens without a recording. */
int session__prepare_recording(struct session *s, struct err *e);
int session__configure_recording(struct session *s, struct err *e); /* before loading */
int session__start_recording(struct session *s, struct err *e);
int session__publish_slow(struct session *s, struct err *e);
void session__record_spans(struct session *s); /* before their probes are armed */
void session__record_sites(struct session *s); /* after */
void session__tick_recording(struct session *s);
void session__stop_recording(struct session *s);
int session__snap_recording(struct session *s, struct snapshot *snap);
void session__free_recording(struct session *s);

/* session_budget.c */
int session__keep_budget(struct session *s, struct err *e);

#endif

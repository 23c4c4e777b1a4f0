/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a GPU did in some windows of time, one by one, each with the call that asked for it: for whoever
 * draws a span of the host beside it. Of each kind a window keeps the longest, so many at most; of what its
 * thread did not ask for as many again.
 */
#ifndef QBPF_MODEL_GPU_WINDOWS_H
#define QBPF_MODEL_GPU_WINDOWS_H

#include "model/gpu.h"

#define GPU_WINDOW_NONE UINT32_MAX

struct gpu_window_act {
	uint64_t start_ns, end_ns; /* first, as in the others */
	uint64_t asked_ns, bytes, id;
	uint32_t ring, generation, device, context, stream;
	uint32_t correlation;
	uint32_t name; /* id; of a graph its number */
	uint32_t call; /* index into calls; GPU_WINDOW_NONE: it is not there */
	uint32_t grid[3], block[3];
	uint8_t type;	   /* enum qbpf_ring_type */
	uint8_t direction; /* of copies: enum gpu_direction */
	bool own;	   /* the window's thread asked for it within the window */
};

struct gpu_window_call {
	uint64_t start_ns, end_ns;
	uint64_t first_id;
	uint32_t activities, name, error;
	bool waits;
};

struct gpu_window_idle {
	uint64_t start_ns, end_ns;
	uint32_t ring, device, name;
	uint8_t cause; /* enum gpu_cause */
};

/*
 * Activities that ran in it, and what the thread asked for in it and ran later; calls of the thread;
 * idle time of devices. In order of their starts.
 */
struct gpu_window {
	uint64_t start_ns, end_ns;
	uint32_t tgid, tid; /* tid 0: of all threads */
	struct gpu_window_act *acts;
	struct gpu_window_call *calls;
	struct gpu_window_idle *idle;
	size_t nacts, ncalls, nidle;
	uint64_t acts_left_out, calls_left_out, idle_left_out;
	uint64_t untimed; /* the thread asked for them in it; when they ran cannot be told */
};

struct gpu_windows;

/* `most`: of its own acts, of others' acts, of calls and of idle, each. NULL: no memory. */
struct gpu_windows *gpu_windows__new(size_t most);
void gpu_windows__free(struct gpu_windows *w);
/* All of them before anything is visited. 0 or -ENOMEM. */
int gpu_windows__add(struct gpu_windows *w, uint64_t start_ns, uint64_t end_ns, uint32_t tgid,
		     uint32_t tid);
/* Of w, for gpu_opts. */
const struct gpu_visitor *gpu_windows__visitor(struct gpu_windows *w);
/* After gpu__finish: puts all into order. 0 or -ENOMEM. */
int gpu_windows__finish(struct gpu_windows *w);

/* In the order of adding. */
size_t gpu_windows__count(const struct gpu_windows *w);
const struct gpu_window *gpu_windows__get(const struct gpu_windows *w, size_t i);

#endif

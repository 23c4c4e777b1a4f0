/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ops.c - launches, copies, memsets and waits: what the driver's many entry points come down to
 *
 * What an operation does to memory is done when it is submitted. The order of submission is one of
 * the orders that streams and events allow, so a right program cannot tell.
 */
#include <string.h>

#include "sim.h"

enum { COPY_H2D = 1, COPY_D2H = 2, COPY_D2D = 8, COPY_H2H = 9, COPY_P2P = 10 };
enum { OVERHEAD_LAZY_LOADING = 5 << 16 };

/* --- launches --------------------------------------------------------------------------------- */

/* The first launch of a kernel on a device loads it: the host works, and the device waits. */
static void load_kernel(struct sim_kernel *k, const struct CUstream_st *s)
{
	struct sim_activity a = {
	    .kind = SIM_OVERHEAD, .name = k->name, .type = OVERHEAD_LAZY_LOADING};
	bool loaded = k->loaded & 1u << s->ctx->device;

	k->loaded |= 1u << s->ctx->device;
	if (loaded || !sim_config()->load_ns)
		return;
	timeline_name(s, &a);
	a.start = a.submit;
	pthread_mutex_unlock(&sim_lock);
	sim_spend((uint64_t)sim_config()->load_ns);
	pthread_mutex_lock(&sim_lock);
	a.end = sim_now();
	sim_activity_done(&a);
}

static void fill_launch(struct sim_activity *a, const struct sim_launch *l,
			const struct sim_kernel *k)
{
	a->kind = SIM_KERNEL;
	a->name = k->name;
	memcpy(a->grid, l->grid, sizeof(a->grid));
	memcpy(a->block, l->block, sizeof(a->block));
	a->shared = l->shared;
	a->launch_type = l->cooperative;
}

struct CUgraphNode_st *op_launch_node(struct CUgraphNode_st *n, const struct sim_launch *l,
				      struct sim_kernel *k, void **args)
{
	if (!n)
		return NULL;
	fill_launch(&n->op, l, k);
	n->kernel = k;
	n->length = kernel_length(k, args);
	for (int i = 0; args && i < k->n_params; i++)
		memcpy(&n->args[i], args[i], k->param_size[i]);
	return n;
}

CUresult op_launch(const struct sim_launch *l, struct sim_kernel *k, void **args)
{
	struct sim_activity a = {0};
	CUresult err = CUDA_SUCCESS;
	struct CUstream_st *s;
	uint64_t held = 0;

	for (int i = 0; i < 3; i++) {
		if (!l->grid[i] || !l->block[i])
			return CUDA_ERROR_INVALID_VALUE;
	}
	if ((uint64_t)l->block[0] * l->block[1] * l->block[2] > SIM_BLOCK_THREADS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	s = stream_of(l->stream);
	if (!s) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (s->capture) {
		if (!op_launch_node(graph_capture(s, NODE_OP), l, k, args))
			err = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		load_kernel(k, s);
		if (k->effect)
			k->effect(args);
		fill_launch(&a, l, k);
		timeline_submit(s, &a, kernel_length(k, args), &held);
	}
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(held);
	return err;
}

/* --- copies ----------------------------------------------------------------------------------- */

void op_copy_fill(struct sim_activity *a, const void *dst, const void *src, size_t bytes,
		  bool async)
{
	struct sim_block to = memory_find(dst), from = memory_find(src);
	bool to_device = to.kind == MEM_DEVICE, from_device = from.kind == MEM_DEVICE;

	a->kind = SIM_MEMCPY;
	a->bytes = bytes;
	a->async = async;
	a->src_kind = (uint8_t)from.kind;
	a->dst_kind = (uint8_t)to.kind;
	if (to_device && from_device && to.device != from.device)
		a->copy_kind = COPY_P2P;
	else if (to_device && from_device)
		a->copy_kind = COPY_D2D;
	else if (to_device)
		a->copy_kind = COPY_H2D;
	else if (from_device)
		a->copy_kind = COPY_D2H;
	else
		a->copy_kind = COPY_H2H;
	a->src_device = (uint32_t)from.device;
	a->dst_device = (uint32_t)to.device;
	if (a->copy_kind == COPY_P2P) {
		a->src_context = context_primary(from.device)->id;
		a->dst_context = context_primary(to.device)->id;
	}
}

/* Asynchronous copies wait after all where pageable memory cannot be left to the device. */
static uint64_t copy_host_until(const struct sim_activity *a)
{
	if (!a->async)
		return a->end;
	if (a->copy_kind == COPY_D2H && a->dst_kind == MEM_PAGEABLE)
		return a->end;
	if (a->copy_kind == COPY_H2D && a->src_kind == MEM_PAGEABLE)
		return a->submit + a->bytes * 1000 / (uint64_t)sim_config()->pageable_mbs;
	return 0;
}

CUresult op_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		    size_t height, CUstream stream, bool async)
{
	struct sim_activity a = {0};
	CUresult err = CUDA_SUCCESS;
	struct CUgraphNode_st *n;
	struct CUstream_st *s;
	uint64_t held = 0, until = 0;

	if (!width || !height)
		return CUDA_SUCCESS;
	if (!dst || !src || (height > 1 && (dst_pitch < width || src_pitch < width)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	s = stream_of(stream);
	if (!s) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (s->capture && async) {
		n = graph_capture(s, NODE_OP);
		if (n) {
			op_copy_fill(&n->op, dst, src, width * height, async);
			n->length = copy_length(&n->op);
			n->dst = dst;
			n->src = src;
		} else {
			err = CUDA_ERROR_OUT_OF_MEMORY;
		}
	} else if (s->capture) {
		err = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else {
		op_copy_fill(&a, dst, src, width * height, async);
		for (size_t y = 0; y < height; y++)
			memmove((char *)dst + y * dst_pitch, (const char *)src + y * src_pitch,
				width);
		timeline_submit(s, &a, copy_length(&a), &held);
		until = copy_host_until(&a);
	}
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(held > until ? held : until);
	return err;
}

CUresult op_copy(void *dst, const void *src, size_t bytes, CUstream stream, bool async)
{
	return op_copy_2d(dst, bytes, src, bytes, bytes, 1, stream, async);
}

CUresult op_memset(void *dst, uint32_t value, size_t element, size_t n, CUstream stream, bool async)
{
	struct sim_activity a = {.kind = SIM_MEMSET, .value = value, .async = async};
	CUresult err = CUDA_SUCCESS;
	struct CUgraphNode_st *node;
	struct CUstream_st *s;
	uint64_t held = 0;

	if (!n)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim_lock);
	a.bytes = n * element;
	a.dst_kind = (uint8_t)memory_find(dst).kind;
	s = stream_of(stream);
	if (a.dst_kind == MEM_PAGEABLE) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (!s) {
		err = CUDA_ERROR_INVALID_CONTEXT;
	} else if (s->capture) {
		node = graph_capture(s, NODE_OP);
		if (node) {
			node->op = a;
			node->length = copy_length(&a);
			node->dst = dst;
		} else {
			err = CUDA_ERROR_OUT_OF_MEMORY;
		}
	} else {
		for (size_t i = 0; i < n; i++)
			memcpy((char *)dst + i * element, &value, element);
		timeline_submit(s, &a, copy_length(&a), &held);
	}
	pthread_mutex_unlock(&sim_lock);
	sim_wait_until(held);
	return err;
}

/* --- waits ------------------------------------------------------------------------------------ */

CUresult op_sync(uint32_t type, const struct CUctx_st *ctx, const struct CUstream_st *s,
		 const struct CUevent_st *e, uint64_t until)
{
	const struct sim_thread *t = sim_self();
	struct sim_activity a = {
	    .kind = SIM_SYNC,
	    .type = type,
	    .correlation = t->call ? t->call->correlation : 0,
	    .tid = t->tid,
	    .device = (uint32_t)ctx->device,
	    .context = ctx->id,
	    .stream = s ? s->id : UINT32_MAX,
	    .event = e ? e->id : UINT32_MAX,
	};

	a.submit = a.start = sim_now();
	sim_wait_until(until);
	hostfn_wait(until);
	a.end = sim_now();
	pthread_mutex_lock(&sim_lock);
	sim_activity_done(&a);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

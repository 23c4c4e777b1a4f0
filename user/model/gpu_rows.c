// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* gpu_rows.c - what the model of the GPU has sums of, and what an API function does. */
#include <string.h>

#include "model/gpu_impl.h"

/* Several ids in one key of 64 bits; the next key is tried when two sets of ids share it. */
static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdull;
	return h ^ h >> 32;
}

uint32_t gpu_row__kernel(struct gpu *g, uint32_t name)
{
	uint32_t known = name ? g->names[name].kernel : 0;

	if (known)
		return known - 1;
	/* All that have no name are one. */
	for (size_t i = 0; !name && i < g->nkernels; i++)
		if (!g->kernels[i].graph && !g->kernels[i].name)
			return (uint32_t)i;
	if (g->nkernels >= GPU_KERNELS_MAX ||
	    gpu_grow(&g->kernels, g->nkernels, &g->kernels_cap, sizeof(*g->kernels))) {
		g->overflow++;
		return GPU_NONE;
	}
	g->kernels[g->nkernels] = (struct gpu_kernel_row){.name = name};
	if (name)
		g->names[name].kernel = (uint32_t)g->nkernels + 1;
	return (uint32_t)g->nkernels++;
}

uint32_t gpu_row__graph(struct gpu *g, uint32_t graph)
{
	uint32_t row = id_map__get(&g->graph_at, graph);

	if (row != ID_MAP_NONE)
		return row;
	if (g->nkernels >= GPU_KERNELS_MAX ||
	    gpu_grow(&g->kernels, g->nkernels, &g->kernels_cap, sizeof(*g->kernels)) ||
	    id_map__put(&g->graph_at, graph, (uint32_t)g->nkernels)) {
		g->overflow++;
		return GPU_NONE;
	}
	g->kernels[g->nkernels] = (struct gpu_kernel_row){.name = graph, .graph = true};
	return (uint32_t)g->nkernels++;
}

uint32_t gpu_row__device(struct gpu *g, uint32_t ring, uint32_t device)
{
	uint64_t key = (uint64_t)ring << 32 | device;
	uint32_t row = id_map__get(&g->device_at, key);

	if (row != ID_MAP_NONE)
		return row;
	if (g->ndevices >= GPU_DEVICES_MAX ||
	    gpu_grow(&g->devices, g->ndevices, &g->devices_cap, sizeof(*g->devices)) ||
	    id_map__put(&g->device_at, key, (uint32_t)g->ndevices)) {
		g->overflow++;
		return GPU_NONE;
	}
	g->devices[g->ndevices] = (struct gpu_device_row){
	    .ring = ring, .device = device, .error_low_ns = INT64_MIN, .error_high_ns = INT64_MAX};
	return (uint32_t)g->ndevices++;
}

uint32_t gpu_row__stream(struct gpu *g, const struct gpu_act *a)
{
	uint64_t key = mix(mix(mix(a->ring, a->generation), a->device), a->context);
	uint32_t row;

	for (key = mix(key, a->stream);; key++) {
		const struct gpu_stream_row *r;

		row = id_map__get(&g->stream_at, key);
		if (row == ID_MAP_NONE)
			break;
		r = &g->streams[row];
		if (r->ring == a->ring && r->generation == a->generation &&
		    r->device == a->device && r->context == a->context && r->stream == a->stream)
			return row;
	}
	if (g->nstreams >= GPU_STREAMS_MAX ||
	    gpu_grow(&g->streams, g->nstreams, &g->streams_cap, sizeof(*g->streams)) ||
	    id_map__put(&g->stream_at, key, (uint32_t)g->nstreams)) {
		g->overflow++;
		return GPU_NONE;
	}
	g->streams[g->nstreams] = (struct gpu_stream_row){.ring = a->ring,
							  .generation = a->generation,
							  .device = a->device,
							  .context = a->context,
							  .stream = a->stream};
	return (uint32_t)g->nstreams++;
}

uint32_t gpu_row__api(struct gpu *g, uint32_t name)
{
	uint32_t known = name ? g->names[name].api : 0;

	if (known)
		return known - 1;
	for (size_t i = 0; !name && i < g->napis; i++)
		if (!g->apis[i].name)
			return (uint32_t)i;
	if (g->napis >= GPU_CALLS_MAX ||
	    gpu_grow(&g->apis, g->napis, &g->apis_cap, sizeof(*g->apis))) {
		g->overflow++;
		return GPU_NONE;
	}
	g->apis[g->napis] = (struct gpu_call_row){.name = name};
	if (name)
		g->names[name].api = (uint32_t)g->napis + 1;
	return (uint32_t)g->napis++;
}

/* By its name, of runtime and driver alike. */
void gpu_name__classify(struct gpu_name *n)
{
	const char *s = n->text;

	if (n->classified)
		return;
	n->classified = true;
	n->class = GPU_CALL_OTHER;
	if (strstr(s, "Synchronize")) {
		n->class = GPU_CALL_SYNC;
		n->waits = true;
	} else if (strstr(s, "GraphLaunch")) {
		n->class = GPU_CALL_LAUNCH;
	} else if (strstr(s, "Graph")) {
		/* cudaGraphAddMemcpyNode and the like build, and launch nothing. */
	} else if (strstr(s, "LaunchKernel") || strstr(s, "LaunchCooperative") ||
		   strstr(s, "LaunchGrid") || !strncmp(s, "cuLaunch", 8)) {
		n->class = strstr(s, "HostFunc") ? GPU_CALL_OTHER : GPU_CALL_LAUNCH;
	} else if (strstr(s, "Memcpy")) {
		n->class = GPU_CALL_COPY;
		n->waits = !strstr(s, "Async");
	} else if (strstr(s, "Memset")) {
		n->class = GPU_CALL_SET;
	}
}

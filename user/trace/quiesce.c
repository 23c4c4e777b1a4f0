// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An update of a map of maps returns only when no program can still hold the old inner map, that
 * is after an RCU grace period (kernel commit 1ae80cf31938). membarrier(2) would do too, but not
 * where CPUs are nohz_full, as they are where latency matters.
 */
#include "trace/quiesce.h"

#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>

int quiesce_programs(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, o);
	int inner, outer = -1, err = 0;
	__u32 key = 0;

	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "quiesce_in", sizeof(key), sizeof(key), 1, NULL);
	if (inner < 0)
		return inner;
	o.inner_map_fd = (__u32)inner;
	outer =
	    bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "quiesce", sizeof(key), sizeof(key), 1, &o);
	err = outer < 0 ? outer : bpf_map_update_elem(outer, &key, &inner, BPF_ANY);
	if (outer >= 0)
		close(outer);
	close(inner);
	return err;
}

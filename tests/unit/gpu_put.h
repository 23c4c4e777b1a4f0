/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A list of records made by hand (gpu_records.h), and how it goes into the model. */
#ifndef QBPF_TESTS_GPU_PUT_H
#define QBPF_TESTS_GPU_PUT_H

#include <cmocka.h>

#include "gpu_records.h"
#include "model/gpu.h"

static struct gr_list list;

static inline int reset(void **state)
{
	(void)state;
	memset(&list, 0, sizeof(list));
	list.context = 1;
	list.stream = 7;
	return 0;
}

static inline void put_one(struct gpu *g, const struct gr_item *it)
{
	if (it->ev.kind)
		assert_int_equal(gpu__span(g, &it->ev), 0);
	else
		assert_int_equal(gpu__record(g, it->ring, &it->rec.head), 0);
}

static inline void put_all(struct gpu *g)
{
	for (size_t i = 0; i < list.n; i++)
		put_one(g, &list.items[i]);
}

#endif

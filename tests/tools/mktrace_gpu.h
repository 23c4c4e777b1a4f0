/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The shape `gpu`. */
#ifndef MKTRACE_GPU_H
#define MKTRACE_GPU_H

#include "mktrace.h"

void gpu_setup(struct maker *m, uint32_t *spans);
void gpu_step(struct maker *m, struct run *r);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The target of scripts/bench.py with the markers of <sys/sdt.h>; see w_bench.c. */
#define BENCH_SDT
#include "w_bench.c"

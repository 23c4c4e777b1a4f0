/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The target of scripts/bench.py in a process with a C++ runtime; see w_bench.c and flags.mk. */
#define BENCH_THROW
#include "w_bench.c"

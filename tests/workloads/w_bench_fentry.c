/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The target of scripts/bench.py with a 5-byte nop at every entry; see w_bench.c and flags.mk. */
#include "w_bench.c"

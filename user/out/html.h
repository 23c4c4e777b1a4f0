/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An analysed recording as one self-contained page: style, script and data in one file that loads
 * nothing and opens in a browser from anywhere. Its size is bounded; what did not fit is said in it.
 */
#ifndef QBPF_OUT_HTML_H
#define QBPF_OUT_HTML_H

#include <stdio.h>

#include "err.h"
#include "model/analysis.h"

/* 0 or a negative errno (-EPIPE: the reader went away); e says why. */
int html__write(FILE *f, const struct analysis *a, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the CUDA agent's file is: QBPF_AGENT, else beside the command, else PREFIX/lib/qbpf. */
#ifndef QBPF_TRACE_AGENT_FILE_H
#define QBPF_TRACE_AGENT_FILE_H

#include <stddef.h>

#include "err.h"

/* An absolute path. -ENOENT: it was not built or installed. */
int agent_file__find(char *path, size_t size, struct err *e);

#endif

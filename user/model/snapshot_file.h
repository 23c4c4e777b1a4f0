/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A snapshot as bytes: what a trace keeps of the kernel's sums (trace_info.aggregates). */
#ifndef QBPF_MODEL_SNAPSHOT_FILE_H
#define QBPF_MODEL_SNAPSHOT_FILE_H

#include "err.h"
#include "model/snapshot.h"

/* malloc'ed. 0 or -ENOMEM. */
int snapshot__pack(const struct snapshot *s, void **bytes, size_t *len);

/* Any bytes: -EBADMSG when they are not a whole snapshot, -EPROTO when it is of a later version. */
int snapshot__unpack(const void *bytes, size_t len, struct snapshot **out, struct err *e);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The writing half of a writer: takes what is ready for the file through a bounded queue, and
 * compresses and writes it on a thread of its own, which takes no signal of the process. The first
 * fault stays; the file is then cut back to its last whole block and what follows is dropped.
 */
#ifndef QBPF_FILE_SINK_H
#define QBPF_FILE_SINK_H

#include "err.h"
#include "file/bytes.h"
#include "file/event.h"
#include "file/format.h"

struct sink;

/* Opens or creates the file; nothing is written yet. */
int sink__new(const char *path, struct sink **out, struct err *e);
/* Writes what is in the queue, no more. A file that was created for nothing is taken away. */
void sink__free(struct sink *s);

/*
 * Hand over to the queue; each waits while it is full. The memory, malloc'ed, is the sink's then,
 * also when an error is returned: the sticky one.
 */
int sink__entries(struct sink *s, uint16_t block_type, uint32_t count, struct bytes raw);
int sink__events(struct sink *s, struct event *events, size_t n, size_t cap);
int sink__gpu(struct sink *s, uint32_t ring, uint32_t count, struct bytes raw);
int sink__aggregates(struct sink *s, struct bytes raw);

/* Waits for the queue to be written, then adds index and end, unless `err` tells of a fault that
 * left the file incomplete, and closes it. The first fault, with its line. */
int sink__close(struct sink *s, uint64_t end_ns, int err, struct err *e);

/* Events of that span id in whole blocks of the file. Only after sink__close. */
uint64_t sink__held(const struct sink *s, uint32_t span);
/* Records of the GPU of that type, the same. */
uint64_t sink__gpu_held(const struct sink *s, uint32_t type);
uint64_t sink__bytes(const struct sink *s);
int sink__error(const struct sink *s);

#endif

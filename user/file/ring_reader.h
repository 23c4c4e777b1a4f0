/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reading side of the shared-memory ring of qbpf/ring.h.
 *
 * The other side lives in the traced process and is not trusted: whatever it writes, a poll ends, reads
 * nothing outside of the mapping and hands on only records that are as long as their type says.
 * A lane whose positions or records make no sense is given up and counted.
 *
 * One thread at a time may use an object.
 */
#ifndef QBPF_FILE_RING_READER_H
#define QBPF_FILE_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "qbpf/ring.h"

/* 0: the default. Sizes are rounded up to what the layout needs. */
struct ring_options {
	uint32_t lanes;		/* 16 */
	uint32_t lane_bytes;	/* 2 MiB */
	uint32_t strings;	/* 16384: so many different names */
	uint32_t strings_bytes; /* 2 MiB */
	uint32_t wants;		/* QBPF_RING_WANT_* */
	uint32_t flush_ms;	/* 100 */
};

struct ring_reader;

/* A new ring in a memfd of this process. NULL: errno says why, e is filled in. */
struct ring_reader *ring_reader__new(const struct ring_options *o, struct err *e);

/* The same in a memfd that someone else made with MFD_ALLOW_SEALING (inside the target, say), which
 * has to be empty. fd is duplicated, not taken. */
struct ring_reader *ring_reader__adopt(int fd, const struct ring_options *o, struct err *e);

/* Lets go: the lock is released, the producer goes dormant on its own. */
void ring_reader__free(struct ring_reader *r);

/*
 * The file, for a child to inherit (it has no close-on-exec flag; the path there is
 * /proc/self/fd/N). The lock that tells the producer that the reader lives is not held by this
 * descriptor, so a child may keep it.
 */
int ring_reader__fd(const struct ring_reader *r);

/* Returns what `fn` returned if that was not 0: the poll ends after that record. `rec` is a copy. */
typedef int (*ring_record_fn)(void *ctx, const struct qbpf_ring_record *rec);

/*
 * Hands over what has been written up to now, lane by lane, and makes room. Records of unknown type
 * are counted and skipped. Returns 0, or what fn returned.
 */
int ring_reader__poll(struct ring_reader *r, ring_record_fn fn, void *ctx);

/* The bytes waiting to be read, in the lane that has most of them, as a share of a lane: 0..100. */
unsigned ring_reader__fill(const struct ring_reader *r);

/*
 * Copies the string of an id to buf (NUL-terminated, cut to fit; bytes as the target has them).
 * Returns its whole length, or -ENOENT: no such string (id 0 is the string that is not known).
 */
int ring_reader__string(const struct ring_reader *r, uint32_t id, char *buf, size_t size);

/* Asks the producer to detach. It does so within its flush interval, or hangs: see status. */
void ring_reader__stop(struct ring_reader *r);

/* What the producer says about itself, copied, every text NUL-terminated and printable. */
struct ring_status {
	enum qbpf_ring_state state;
	enum qbpf_ring_reason reason;
	enum qbpf_ring_fault fault;
	enum qbpf_ring_clock clock;
	int32_t fault_code;
	uint32_t warnings, generation, tgid;
	uint32_t cupti_version, cupti_major, driver_version, runtimes;
	uint64_t kinds, kinds_refused;
	int32_t kind_fault;
	uint32_t threads, buffers_out;
	uint64_t started_ns, on_ns, off_ns, heartbeat_ns, in_call_ns, flushed_ns;
	char in_call[48], fault_call[48], rival[64], cupti_path[256];
	uint64_t lost[QBPF_RING_TYPES]; /* by type: what found no room */
	uint64_t lost_strings, dropped, discarded, unknown, broken, buffers, callbacks, late;
	/* and what the reader saw */
	uint64_t read[QBPF_RING_TYPES]; /* handed over, by type */
	uint64_t unknown_types; /* records skipped: of a type that this reader does not know */
	uint32_t bad_lanes;	/* given up */
};

void ring_reader__status(const struct ring_reader *r, struct ring_status *s);

/* All records that were lost on the way, whoever lost them. */
uint64_t ring_status__lost(const struct ring_status *s);

/* One line for people: where the producer stands, why, and the remedy if there is one. */
void ring_status__explain(const struct ring_status *s, char *buf, size_t size);

/* The name of a record type, such as "kernel"; NULL: there is none of that number. */
const char *ring_type_name(unsigned type);

/* The least size of a record of that type; of an unknown one that of struct qbpf_ring_record. */
uint32_t ring_type_size(unsigned type);

#endif

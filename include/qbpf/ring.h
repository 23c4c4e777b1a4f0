/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * qbpf/ring.h - the shared-memory ring: its layout, and the side that writes into it.
 *
 * C99 and later, C++11 and later, gcc and clang. Needs libc's memory functions and nothing else:
 * no library, no allocation, no lock, no system call, so the writing side may run in any thread and
 * in signal handlers. The reading side is user/file/ring_reader.h.
 *
 * WHO. The reader (qbpf) makes the file, decides its geometry and fills it in. A producer (the CUDA
 * agent, inside the traced process) maps the same file and writes records. Neither trusts the other:
 * whatever either does to the memory, the other neither crashes nor hangs, and never touches a byte
 * outside of the mapping. Therefore both keep the geometry in memory of their own, and the file is
 * a memfd sealed against shrinking (a shorter file would be a SIGBUS for the other).
 *
 * HOW A PRODUCER GETS AT IT. By a path: argument or QBPF_RING in the environment, such as
 * /proc/self/fd/9 of a file that `qbpf run` left open for its child, or that was made inside the
 * target with memfd_create.
 *
 * LAYOUT, from the start of the file; every part begins at a multiple of 64 bytes:
 *
 *	struct qbpf_ring_head		4096 bytes: geometry, states, counters of loss
 *	u32 slots[nslots]		hash table of string ids, 0: empty
 *	strings				struct qbpf_ring_string, one after the other
 *	struct qbpf_ring_lane[lanes]	who writes, how far, and how far it was read
 *	data[lanes][lane_bytes]		the records
 *
 * LANES. A lane has one writer and one reader at a time. A thread claims a free lane by putting its
 * tid into `owner`, writes as many records as it likes, and gives the lane back. `written` and
 * `consumed` count bytes since the beginning and never wrap in practice; they lie on different cache
 * lines. A record starts at data[position & (lane_bytes - 1)], is a multiple of 8 bytes long and
 * never wraps: what is left at the end of the lane is filled with a QBPF_RING_PAD record. The writer
 * stores `written` (release) after the bytes, the reader stores `consumed` (release) after it has
 * copied them out.
 * Records of one lane are in the order in which they were put; between lanes there is none.
 *
 * LOSS. Nobody waits. A record that finds its lane full, or no free lane, is counted in
 * head.lost[type] and that is all. Put into lanes + lost = tried, for each type, exactly.
 *
 * STRINGS. Names come again and again, so a record carries an id. A string is appended once, and
 * found again by the hash table; writers may race: they compare and swap the slot, and the
 * loser's copy stays behind unused. The table only grows; when it is full the id is 0 and
 * head.lost_strings counts the requests. An id is the string's offset in the area / 8 + 1.
 * Strings above QBPF_RING_STRING_MAX bytes keep their beginning, and their hash and length tell
 * them apart.
 *
 * LIFE. The reader holds an OFD write lock on the file as long as it lives; who looks with
 * F_OFD_GETLK and finds none knows that it is gone, even by SIGKILL. One process at a time is the
 * producer: head.holder. After exec, or when the last one is gone, the next may take the ring over:
 * head.generation counts that, and each begins with a QBPF_RING_START record.
 *
 * TIMES are nanoseconds of head.clock: CLOCK_MONOTONIC, or CUPTI's own clock, which the
 * QBPF_RING_CLOCK records tie to it. A record whose time is unknown has 0 there.
 */
#ifndef QBPF_RING_H
#define QBPF_RING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define QBPF_RING_MAGIC	     0x676e69722d667071ull /* "qpf-ring" */
#define QBPF_RING_VERSION    1u
#define QBPF_RING_RECORD_MAX 1024u /* bytes of a record, QBPF_RING_PAD excepted */
#define QBPF_RING_STRING_MAX 4096u /* bytes kept of a string */
#define QBPF_RING_LANES_MAX  256u
#define QBPF_RING_PROBES     64u /* slots looked at for a string before the table counts as full */
#define QBPF_RING_TYPES	     32u

/* What a record is. Append only; a reader counts and skips what it does not know. */
enum qbpf_ring_type {
	QBPF_RING_PAD = 0, /* also, as an index of lost[]: records of unknown type */
	QBPF_RING_KERNEL = 1,
	QBPF_RING_COPY = 2,
	QBPF_RING_SET = 3,
	QBPF_RING_SYNC = 4,
	QBPF_RING_CALL = 5,
	QBPF_RING_GRAPH = 6,
	QBPF_RING_OVERHEAD = 7,
	QBPF_RING_DEVICE = 8,
	QBPF_RING_CONTEXT = 9,
	QBPF_RING_STREAM = 10,
	QBPF_RING_CLOCK = 11,
	QBPF_RING_DROPPED = 12,
	QBPF_RING_START = 13,
	QBPF_RING_WINDOW = 14,
};

enum qbpf_ring_state {
	QBPF_RING_ABSENT = 0, /* no producer yet */
	QBPF_RING_STARTING = 1,
	QBPF_RING_ON = 2,
	QBPF_RING_REFUSED = 3, /* it will not: see fault */
	QBPF_RING_STOPPING = 4,
	QBPF_RING_OFF = 5, /* it left: see reason */
};

/* Why the producer is off. */
enum qbpf_ring_reason {
	QBPF_RING_NONE = 0,
	QBPF_RING_ASKED = 1,	   /* head.command, or qbpf_agent_stop() */
	QBPF_RING_READER_GONE = 2, /* the reader's lock is no longer there */
	QBPF_RING_EXIT = 3,	   /* the process called exit() or returned from main */
	QBPF_RING_FATAL = 4,	   /* CUPTI reported that it gave up */
	QBPF_RING_SUDDEN = 5,	   /* the process is gone: said by the reader, in a WINDOW record */
};

/* Why the producer refused, or what went wrong: what remedy there is, is for the reader to say. */
enum qbpf_ring_fault {
	QBPF_RING_NO_FAULT = 0,
	QBPF_RING_NO_CUPTI = 1,	   /* no libcupti of a fitting version could be loaded */
	QBPF_RING_OLD_CUPTI = 2,   /* it lacks a function that the agent needs: fault_call */
	QBPF_RING_OTHER_MAJOR = 3, /* cupti_version does not fit driver_version */
	QBPF_RING_STUBS = 4,	   /* the libcuda that is mapped is the toolkit's stub */
	QBPF_RING_CUPTI_CALL = 5,  /* fault_call returned fault_code */
	QBPF_RING_NO_THREAD = 6,   /* pthread_create: fault_code is the errno */
	QBPF_RING_NO_MEMORY = 7,   /* mmap: fault_code is the errno */
};

/* Bits of head.warnings. */
#define QBPF_RING_WARN_13_0    1u /* CUDA 13.0 before update 1: can deadlock when it is disabled */
#define QBPF_RING_WARN_STUBS   2u /* a stubs folder is on LD_LIBRARY_PATH */
#define QBPF_RING_WARN_KINDS   4u /* some kinds could not be enabled: kinds, kind_fault */
#define QBPF_RING_WARN_LATE    8u /* started when CUDA was already in use: first calls are missing */
#define QBPF_RING_WARN_LINGERS 16u  /* cuptiFinalize was not reached: CUPTI stays, unsubscribed */
#define QBPF_RING_WARN_CLOCK   32u  /* the timestamp callback was refused: CUPTI's own clock */
#define QBPF_RING_WARN_ALL_API 64u  /* every API call is recorded: no choice in this CUPTI */
#define QBPF_RING_WARN_SECOND  128u /* another process of this ring wanted to produce as well */

/* Bits of head.wants, set by the reader before it shares the ring. */
#define QBPF_RING_WANT_NODES	1u /* kernels inside graphs one by one, instead of graph launches */
#define QBPF_RING_WANT_NO_CALLS 2u /* no records of API calls */

enum qbpf_ring_clock {
	QBPF_RING_CLOCK_MONOTONIC = 1, /* records carry CLOCK_MONOTONIC */
	QBPF_RING_CLOCK_CUPTI = 2,     /* records carry CUPTI's clock: convert by CLOCK records */
};

/* head.command, written by the reader, who then wakes the futex on it. */
enum qbpf_ring_command {
	QBPF_RING_GO = 0,
	QBPF_RING_STOP = 1,
	QBPF_RING_WAKE = 2, /* a bit of the producer's own, so that it need not sleep: ignore it */
};

struct qbpf_ring_head {
	/* Written by the reader before it shares the file, constant from then on. */
	uint64_t magic;
	uint32_t version;
	uint32_t head_bytes;
	uint64_t total_bytes;
	uint32_t lanes;
	uint32_t lane_bytes; /* a power of two */
	uint32_t nslots;     /* a power of two */
	uint32_t strings_bytes;
	uint32_t slots_off;
	uint32_t strings_off;
	uint32_t lanes_off;
	uint32_t data_off;
	uint32_t wants;
	uint32_t flush_ms; /* how often the producer hands over what it has; 0: 100 */

	/* Written by the reader at any time. */
	uint32_t command; /* enum qbpf_ring_command; a futex */
	uint32_t pad0[15];

	/* Written by the producer, sizes of text include a final NUL. */
	uint32_t state;	     /* enum qbpf_ring_state */
	uint32_t tgid;	     /* of the producer, in its own pid namespace; 0: none yet */
	uint32_t generation; /* 1, 2, ...: producers so far */
	uint32_t reason;     /* enum qbpf_ring_reason */
	uint32_t fault;	     /* enum qbpf_ring_fault */
	int32_t fault_code;  /* a CUptiResult or an errno */
	uint32_t warnings;
	uint32_t clock;		 /* enum qbpf_ring_clock; 0: not decided yet */
	uint32_t cupti_version;	 /* as cuptiGetVersion has it */
	uint32_t cupti_major;	 /* of the toolkit: 11, 12, 13 */
	uint32_t driver_version; /* as cuDriverGetVersion has it: 13000; 0: there is no driver */
	uint32_t runtimes;	 /* copies of libcudart found mapped at the start */
	uint64_t kinds;		 /* bit K: CUPTI activity kind K is enabled */
	uint64_t kinds_refused;	 /* bit K: was wanted, but enabling it failed */
	int32_t kind_fault;	 /* the last such error */
	uint32_t threads;	 /* that the producer runs of its own */
	uint64_t started_ns;	 /* CLOCK_MONOTONIC, as all times in this structure */
	uint64_t on_ns;
	uint64_t off_ns;
	uint64_t heartbeat_ns; /* stored on each round of the producer's thread */
	uint64_t in_call_ns;   /* since when it is inside a CUPTI call; 0: it is not */
	char in_call[48];      /* which: that hangs when in_call_ns is old */
	char fault_call[48];
	char rival[64];	      /* who holds CUPTI, where it says so (fault_code 39) */
	char cupti_path[256]; /* which libcupti */

	/* Counters, written by all producing threads. */
	uint64_t lost[QBPF_RING_TYPES]; /* records that found no room, by enum qbpf_ring_type */
	uint64_t lost_strings;		/* requests for an id that could not be met */
	uint64_t dropped;		/* records that CUPTI itself reports as dropped */
	uint64_t discarded;		/* records for which the producer had no buffer left */
	uint64_t unknown;		/* records of a kind that was not asked for: skipped */
	uint64_t broken;       /* buffers with a record that could not be read: rest skipped */
	uint64_t buffers;      /* completed by CUPTI */
	uint64_t callbacks;    /* API callbacks run: none for a launch */
	uint64_t late;	       /* buffers that came after the producer was off: ignored */
	uint32_t strings_used; /* bytes */
	uint32_t buffers_out;  /* held by CUPTI now */
	uint32_t holder;       /* tgid of the process that is the producer; 0: the place is free */
	uint32_t pad1;
	uint64_t flushed_ns; /* what was done by then has been handed over; 0: nothing yet */

	unsigned char reserved[3096];
};

struct qbpf_ring_lane {
	uint32_t owner; /* tid; 0: free */
	uint32_t pad0[15];
	uint64_t written; /* by the owner */
	uint64_t pad1[7];
	uint64_t consumed; /* by the reader */
	uint64_t pad2[7];
};

struct qbpf_ring_string {
	uint64_t hash;
	uint32_t bytes; /* of the string, without NUL */
	uint32_t kept;	/* how many follow here, and a NUL; to the next multiple of 8 */
};

/* --- records ------------------------------------------------------------------------------------
 *
 * Every record starts with its type and its size in bytes (a multiple of 8), and one field of its
 * own. Records grow at their end only. Ids of devices, contexts, streams, graphs are CUPTI's own;
 * names are string ids; what the CUPTI at hand does not report is 0.
 */

struct qbpf_ring_record {
	uint16_t type;
	uint16_t size;
	uint32_t first;
};

struct qbpf_ring_kernel {
	uint16_t type;
	uint16_t size;
	uint32_t name; /* as the compiler mangled it */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t static_shared;	 /* bytes */
	uint32_t dynamic_shared; /* bytes */
	uint64_t graph_node;	 /* 0: not launched by a graph */
	uint32_t graph;
	uint16_t registers; /* of a thread */
	uint16_t pad;
};

struct qbpf_ring_copy {
	uint16_t type;
	uint16_t size;
	uint8_t kind; /* CUpti_ActivityMemcpyKind: 1 to device, 2 to host, 8 on device, 10 peer */
	uint8_t src_kind; /* CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device, ... */
	uint8_t dst_kind;
	uint8_t flags; /* bit 0: asynchronous */
	uint64_t bytes;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint32_t src_device; /* of a peer copy; else `device` */
	uint32_t dst_device;
	uint64_t graph_node;
	uint32_t graph;
	uint32_t pad;
};

struct qbpf_ring_set {
	uint16_t type;
	uint16_t size;
	uint32_t value;
	uint64_t bytes;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint64_t graph_node;
	uint32_t graph;
	uint16_t flags; /* bit 0: asynchronous */
	uint16_t memory_kind;
};

struct qbpf_ring_sync {
	uint16_t type;
	uint16_t size;
	uint32_t kind; /* CUpti_ActivitySynchronizationType: 1 event, 2 wait, 3 stream, 4 context */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t correlation;
	uint32_t context;
	uint32_t stream; /* 0xffffffff: of no single stream */
	uint32_t event;	 /* 0xffffffff: of no event */
};

/* Domains of calls, as CUPTI numbers them. */
#define QBPF_RING_DRIVER  1u
#define QBPF_RING_RUNTIME 2u

struct qbpf_ring_call {
	uint16_t type;
	uint16_t size;
	uint32_t cbid; /* CUPTI's number of the function, in its domain */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t tgid; /* in the target's pid namespace */
	uint32_t tid;
	uint32_t correlation;
	uint32_t error; /* cudaError_t or CUresult; 0: success */
	uint32_t name;	/* the function, without CUPTI's version suffix */
	uint32_t domain;
};

/* One launch of a graph as a whole. */
struct qbpf_ring_graph {
	uint16_t type;
	uint16_t size;
	uint32_t correlation;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device;
	uint32_t graph;
	uint32_t context;
	uint32_t stream;
};

/* Time that CUPTI or the driver spent on itself. */
struct qbpf_ring_overhead {
	uint16_t type;
	uint16_t size;
	uint32_t kind; /* CUpti_ActivityOverheadKind */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t object;       /* CUpti_ActivityObjectKind: 1 process, 2 thread, 3 device, ... */
	uint32_t object_id[3]; /* tgid and tid, or device, context and stream */
	uint32_t correlation;
	uint32_t pad;
};

struct qbpf_ring_device {
	uint16_t type;
	uint16_t size;
	uint32_t device;
	uint32_t name;
	uint32_t sms; /* multiprocessors */
	uint32_t capability_major;
	uint32_t capability_minor;
	uint32_t clock_khz;
	uint32_t copy_engines;
	uint64_t memory_bytes;
	uint64_t bandwidth_kbps; /* of the device's memory, kbytes/s */
};

struct qbpf_ring_context {
	uint16_t type;
	uint16_t size;
	uint32_t context;
	uint32_t device;
	uint32_t null_stream; /* id of its default stream */
};

struct qbpf_ring_stream {
	uint16_t type;
	uint16_t size;
	uint32_t stream;
	uint32_t context;
	uint32_t priority;
	uint32_t flag; /* CUpti_ActivityStreamFlag: 1 default, 2 non-blocking, ... */
	uint32_t correlation;
};

/* One moment on three clocks, to within error_ns. */
struct qbpf_ring_clock_point {
	uint16_t type;
	uint16_t size;
	uint32_t error_ns; /* the readings lie so far apart */
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
	uint64_t cupti_ns;
};

/* CUPTI itself had no room for so many records since the last such report. */
struct qbpf_ring_dropped {
	uint16_t type;
	uint16_t size;
	uint32_t pad;
	uint64_t count;
	uint64_t monotonic_ns;
};

/* A producer begins: ids of the one before mean nothing any more. */
struct qbpf_ring_start {
	uint16_t type;
	uint16_t size;
	uint32_t generation;
	uint32_t tgid;
	uint32_t clock; /* enum qbpf_ring_clock */
	uint64_t monotonic_ns;
};

/* Bits of a window's flags. */
#define QBPF_RING_FROM_START 1u /* a beginning: the process had not used CUDA before */

/* From here on a producer's records are complete, or they are no longer. */
struct qbpf_ring_window {
	uint16_t type;
	uint16_t size;
	uint32_t generation;
	uint32_t tgid;
	uint32_t end; /* enum qbpf_ring_reason: it ends, for that reason; 0: it begins */
	uint32_t flags;
	uint32_t pad;
	uint64_t monotonic_ns;
};

/* --- checks -------------------------------------------------------------------------------------*/

#if defined(__cplusplus)
#define __QBPF_RING_ASSERT(cond, text) static_assert(cond, text)
#else
#define __QBPF_RING_ASSERT(cond, text) __extension__ _Static_assert(cond, text)
#endif
#define __QBPF_RING_SIZE(s, n)	   __QBPF_RING_ASSERT(sizeof(struct s) == (n), #s)
#define __QBPF_RING_OFF(s, f, off) __QBPF_RING_ASSERT(offsetof(struct s, f) == (off), #s "." #f)

__QBPF_RING_SIZE(qbpf_ring_head, 4096);
__QBPF_RING_OFF(qbpf_ring_head, command, 64);
__QBPF_RING_OFF(qbpf_ring_head, state, 128);
__QBPF_RING_OFF(qbpf_ring_head, kinds, 176);
__QBPF_RING_OFF(qbpf_ring_head, in_call, 240);
__QBPF_RING_OFF(qbpf_ring_head, cupti_path, 400);
__QBPF_RING_OFF(qbpf_ring_head, lost, 656);
__QBPF_RING_OFF(qbpf_ring_head, lost_strings, 912);
__QBPF_RING_OFF(qbpf_ring_head, flushed_ns, 992);
__QBPF_RING_OFF(qbpf_ring_head, reserved, 1000);
__QBPF_RING_SIZE(qbpf_ring_lane, 192);
__QBPF_RING_OFF(qbpf_ring_lane, written, 64);
__QBPF_RING_OFF(qbpf_ring_lane, consumed, 128);
__QBPF_RING_SIZE(qbpf_ring_string, 16);
__QBPF_RING_SIZE(qbpf_ring_record, 8);
__QBPF_RING_SIZE(qbpf_ring_kernel, 88);
__QBPF_RING_SIZE(qbpf_ring_copy, 72);
__QBPF_RING_SIZE(qbpf_ring_set, 64);
__QBPF_RING_SIZE(qbpf_ring_sync, 40);
__QBPF_RING_SIZE(qbpf_ring_call, 48);
__QBPF_RING_SIZE(qbpf_ring_graph, 40);
__QBPF_RING_SIZE(qbpf_ring_overhead, 48);
__QBPF_RING_SIZE(qbpf_ring_device, 48);
__QBPF_RING_SIZE(qbpf_ring_context, 16);
__QBPF_RING_SIZE(qbpf_ring_stream, 24);
__QBPF_RING_SIZE(qbpf_ring_clock_point, 32);
__QBPF_RING_SIZE(qbpf_ring_dropped, 24);
__QBPF_RING_SIZE(qbpf_ring_start, 24);
__QBPF_RING_SIZE(qbpf_ring_window, 32);

/* --- the producer's side ------------------------------------------------------------------------*/

/* A producer's view of a mapped ring: the geometry, checked once. */
struct qbpf_ring {
	struct qbpf_ring_head *head;
	uint32_t *slots;
	unsigned char *strings;
	struct qbpf_ring_lane *lane;
	unsigned char *data;
	uint32_t lanes;
	uint32_t lane_bytes;
	uint32_t nslots;
	uint32_t strings_bytes;
};

/* A claimed lane. Belongs to one thread. */
struct qbpf_ring_writer {
	struct qbpf_ring *ring;
	struct qbpf_ring_lane *lane; /* NULL: no lane was free; every record is lost */
	unsigned char *data;
	uint64_t written;
	uint64_t consumed; /* as last seen */
};

/* The size of a file with such a geometry, and where its parts are; h->lanes, lane_bytes, nslots
 * and strings_bytes are given. 0 when they are out of range. */
static inline uint64_t qbpf_ring_lay_out(struct qbpf_ring_head *h)
{
	uint64_t off = sizeof(*h);

	if (!h->lanes || h->lanes > QBPF_RING_LANES_MAX ||
	    h->lane_bytes < 4 * QBPF_RING_RECORD_MAX || h->lane_bytes > (1u << 30) ||
	    (h->lane_bytes & (h->lane_bytes - 1)) || h->nslots < 16 || h->nslots > (1u << 20) ||
	    (h->nslots & (h->nslots - 1)) || h->strings_bytes < 64 ||
	    h->strings_bytes > (1u << 28) || (h->strings_bytes & 63))
		return 0;
	h->slots_off = (uint32_t)off;
	off += (uint64_t)h->nslots * sizeof(uint32_t);
	h->strings_off = (uint32_t)off;
	off += h->strings_bytes;
	h->lanes_off = (uint32_t)off;
	off += (uint64_t)h->lanes * sizeof(struct qbpf_ring_lane);
	off = (off + 4095) & ~(uint64_t)4095;
	h->data_off = (uint32_t)off;
	return off + (uint64_t)h->lanes * h->lane_bytes;
}

/* Looks at a mapping of `bytes` bytes. 0, or -1: it is no ring of this version. */
static inline int qbpf_ring_open(struct qbpf_ring *r, void *map, uint64_t bytes)
{
	unsigned char *base = (unsigned char *)map;
	struct qbpf_ring_head h;
	uint64_t total;

	memset(r, 0, sizeof(*r));
	if (bytes < sizeof(h))
		return -1;
	memcpy(&h, map, sizeof(h));
	if (h.magic != QBPF_RING_MAGIC || h.version != QBPF_RING_VERSION)
		return -1;
	total = qbpf_ring_lay_out(&h);
	if (!total || total > bytes)
		return -1;
	r->head = (struct qbpf_ring_head *)map;
	r->slots = (uint32_t *)(void *)(base + h.slots_off);
	r->strings = base + h.strings_off;
	r->lane = (struct qbpf_ring_lane *)(void *)(base + h.lanes_off);
	r->data = base + h.data_off;
	r->lanes = h.lanes;
	r->lane_bytes = h.lane_bytes;
	r->nslots = h.nslots;
	r->strings_bytes = h.strings_bytes;
	return 0;
}

/* n records of that type could not be put. */
static inline void qbpf_ring_lose(struct qbpf_ring *r, unsigned type, uint64_t n)
{
	__atomic_fetch_add(&r->head->lost[type < QBPF_RING_TYPES ? type : 0], n, __ATOMIC_RELAXED);
}

/*
 * Claims a lane for thread `tid`, the one numbered `hint` if it can be had. Always leaves a usable
 * writer: -1 says that no lane was free, and what is put will be counted as lost.
 */
static inline int qbpf_ring_claim(struct qbpf_ring *r, uint32_t tid, uint32_t hint,
				  struct qbpf_ring_writer *w)
{
	uint32_t i, n, none;
	struct qbpf_ring_lane *lane;

	w->ring = r;
	w->lane = NULL;
	w->data = NULL;
	w->written = w->consumed = 0;
	for (i = 0; i < r->lanes; i++) {
		n = (uint32_t)(((uint64_t)hint + i) % r->lanes);
		lane = &r->lane[n];
		none = 0;
		if (__atomic_load_n(&lane->owner, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&lane->owner, &none, tid, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		w->written = __atomic_load_n(&lane->written, __ATOMIC_RELAXED) & ~(uint64_t)7;
		w->consumed = __atomic_load_n(&lane->consumed, __ATOMIC_ACQUIRE);
		w->lane = lane;
		w->data = r->data + (uint64_t)n * r->lane_bytes;
		return 0;
	}
	return -1;
}

static inline void qbpf_ring_release(struct qbpf_ring_writer *w)
{
	if (w->lane)
		__atomic_store_n(&w->lane->owner, 0, __ATOMIC_RELEASE);
	w->lane = NULL;
}

/* Is there room for `need` bytes? A nonsensical `consumed` leaves no room. */
static inline int __qbpf_ring_room(struct qbpf_ring_writer *w, uint64_t need)
{
	uint64_t bytes = w->ring->lane_bytes;

	if (w->written - w->consumed <= bytes && bytes - (w->written - w->consumed) >= need)
		return 1;
	w->consumed = __atomic_load_n(&w->lane->consumed, __ATOMIC_ACQUIRE);
	return w->written - w->consumed <= bytes && bytes - (w->written - w->consumed) >= need;
}

/*
 * Room for one record of `size` bytes, a multiple of 8 up to QBPF_RING_RECORD_MAX, with type and size
 * filled in; or NULL, and the record is counted as lost. Nothing is visible before the commit.
 */
static inline void *qbpf_ring_reserve(struct qbpf_ring_writer *w, unsigned type, uint32_t size)
{
	struct qbpf_ring_record *rec;
	uint32_t pos, left;

	if (!w->lane || size < sizeof(*rec) || size > QBPF_RING_RECORD_MAX || (size & 7)) {
		qbpf_ring_lose(w->ring, type, 1);
		return NULL;
	}
	pos = (uint32_t)w->written & (w->ring->lane_bytes - 1);
	left = w->ring->lane_bytes - pos;
	if (!__qbpf_ring_room(w, size <= left ? size : (uint64_t)left + size)) {
		qbpf_ring_lose(w->ring, type, 1);
		return NULL;
	}
	rec = (struct qbpf_ring_record *)(void *)(w->data + pos);
	if (size > left) {
		rec->type = QBPF_RING_PAD;
		rec->size = (uint16_t)left;
		rec->first = 0;
		w->written += left;
		rec = (struct qbpf_ring_record *)(void *)w->data;
	}
	rec->type = (uint16_t)type;
	rec->size = (uint16_t)size;
	return rec;
}

/* Makes the record last reserved visible. */
static inline void qbpf_ring_commit(struct qbpf_ring_writer *w, uint32_t size)
{
	w->written += size;
	__atomic_store_n(&w->lane->written, w->written, __ATOMIC_RELEASE);
}

/* Copies a whole record in. 0, or -1: lost and counted. */
static inline int qbpf_ring_put(struct qbpf_ring_writer *w, const void *record)
{
	struct qbpf_ring_record head;
	void *to;

	memcpy(&head, record, sizeof(head));
	to = qbpf_ring_reserve(w, head.type, head.size);
	if (!to)
		return -1;
	memcpy(to, record, head.size);
	qbpf_ring_commit(w, head.size);
	return 0;
}

static inline uint64_t __qbpf_ring_hash(const char *s, uint32_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15ull ^ len, v;

	for (; len >= 8; s += 8, len -= 8) {
		memcpy(&v, s, 8);
		h = (h ^ v) * 0xff51afd7ed558ccdull;
		h ^= h >> 32;
	}
	v = 0;
	memcpy(&v, s, len);
	h = (h ^ v) * 0xc4ceb9fe1a85ec53ull;
	h ^= h >> 29;
	h *= 0xff51afd7ed558ccdull;
	return h ^ h >> 32;
}

/* The string of an id, if it is there as a whole; else NULL. */
static inline const struct qbpf_ring_string *__qbpf_ring_string(const struct qbpf_ring *r,
								uint32_t id, uint32_t *kept)
{
	const struct qbpf_ring_string *s;
	uint64_t off;

	if (!id)
		return NULL;
	off = (uint64_t)(id - 1) * 8;
	if (off + sizeof(*s) + 8 > r->strings_bytes)
		return NULL;
	s = (const struct qbpf_ring_string *)(const void *)(r->strings + off);
	*kept = __atomic_load_n(&s->kept, __ATOMIC_RELAXED);
	if (*kept > QBPF_RING_STRING_MAX || off + sizeof(*s) + *kept + 1 > r->strings_bytes)
		return NULL;
	return s;
}

/* Appends a string and returns its id, or 0 when there is no room. */
static inline uint32_t __qbpf_ring_append(struct qbpf_ring *r, const char *text, uint32_t len,
					  uint64_t hash)
{
	uint32_t kept = len < QBPF_RING_STRING_MAX ? len : QBPF_RING_STRING_MAX;
	uint32_t need = (uint32_t)((sizeof(struct qbpf_ring_string) + kept + 1 + 7) & ~(size_t)7);
	uint32_t at = __atomic_load_n(&r->head->strings_used, __ATOMIC_RELAXED);
	struct qbpf_ring_string *s;

	do {
		if ((at & 7) || at > r->strings_bytes || need > r->strings_bytes - at)
			return 0;
	} while (!__atomic_compare_exchange_n(&r->head->strings_used, &at, at + need, 1,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	s = (struct qbpf_ring_string *)(void *)(r->strings + at);
	s->hash = hash;
	s->bytes = len;
	s->kept = kept;
	memcpy(s + 1, text, kept);
	((char *)(s + 1))[kept] = 0;
	return at / 8 + 1;
}

/* The id of a string, which is appended when it is new. 0: no room, counted in lost_strings. */
static inline uint32_t qbpf_ring_intern(struct qbpf_ring *r, const char *text, uint32_t len)
{
	uint64_t hash = __qbpf_ring_hash(text, len);
	uint32_t i, id, mine = 0, kept, *slot;
	const struct qbpf_ring_string *s;

	for (i = 0; i < QBPF_RING_PROBES; i++) {
		slot = &r->slots[(hash + i) & (r->nslots - 1)];
		id = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
		if (!id) {
			if (!mine)
				mine = __qbpf_ring_append(r, text, len, hash);
			if (!mine)
				break;
			if (__atomic_compare_exchange_n(slot, &id, mine, 0, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE))
				return mine;
		}
		s = __qbpf_ring_string(r, id, &kept);
		if (s && s->hash == hash && s->bytes == len && kept <= len &&
		    !memcmp(s + 1, text, kept))
			return id;
	}
	__atomic_fetch_add(&r->head->lost_strings, 1, __ATOMIC_RELAXED);
	return 0;
}

#endif

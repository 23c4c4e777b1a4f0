/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The code that runs inside the target to open a library there. It stands by itself: once a thread
 * has been sent into it, nothing depends on qbpf any more, which may die at any moment.
 *
 * The thread that is sent in saves all it has, blocks signals, maps an area of memory at the place
 * that it is told, calls pthread_create on a stack there, restores everything and goes on where it
 * was: it never loads anything. If it gets no memory or no thread it leaves nothing. The new thread is an ordinary one of the target's; it makes two
 * memfds, waits until qbpf has filled them, opens the library, calls its function, closes the memfds,
 * unmaps the area and ends. It waits for qbpf with a limit and then undoes what it did.
 */
#ifndef QBPF_TRACE_INJECT_STUB_H
#define QBPF_TRACE_INJECT_STUB_H

#include <stddef.h>
#include <stdint.h>

#define INJECT_AREA_BYTES                                                                          \
	0x10000 /* the first page, room for the registers, the stack from its end */
#define INJECT_XSAVE_OFF 0x1000
#define INJECT_XSAVE_MAX 0x4000
#define INJECT_MAGIC	 0x746365666e692171ull

/* At the end of the code; filled in before it is copied. Read only, there. */
struct inject_consts {
	uint64_t back; /* where the thread was */
	uint64_t area; /* where to map it */
	uint64_t errno_location, pthread_create, pthread_detach, dlopen, dlsym, dlerror;
};

enum inject_left { INJECT_INSIDE = 0, INJECT_RESTORED = 1, INJECT_OUT = 2 };
enum inject_go { INJECT_WAIT = 0, INJECT_GO = 1, INJECT_ABORT = 2 };
enum inject_step {
	INJECT_NONE = 0,
	INJECT_FILES = 1,  /* the memfds are there: fill them, then say go */
	INJECT_OPENED = 2, /* dlopen has returned */
	INJECT_CALLING = 3,
	INJECT_CALLED = 4,
	INJECT_FAILED = 5, /* see text */
};

/* The start of the area. */
struct inject_area {
	uint64_t magic;	    /* it is mapped, and ours */
	uint32_t left;	    /* enum inject_left */
	int32_t create_err; /* of pthread_create; with one there is soon no area either */
	uint32_t step;	    /* enum inject_step */
	uint32_t go;	    /* enum inject_go, by qbpf */
	int32_t ring_fd;    /* memfds, or -errno */
	int32_t lib_fd;
	uint64_t thread; /* pthread_t */
	int32_t result;	 /* of the library's function */
	uint32_t tid;	 /* of the new thread, in its own namespace */
	uint64_t handle;
	uint32_t done; /* the new thread needs nothing more */
	uint32_t seen; /* by qbpf: the area may go */
	int32_t flags; /* of dlopen, by qbpf; as all below */
	uint32_t pad;
	char text[256];	 /* what dlerror said */
	char path[512];	 /* of the library */
	char ring[64];	 /* the function's argument */
	char symbol[64]; /* the function */
};

_Static_assert(offsetof(struct inject_area, step) == 16, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, thread) == 32, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, handle) == 48, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, flags) == 64, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, text) == 72, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, path) == 328, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, ring) == 840, "inject_stub.c");
_Static_assert(offsetof(struct inject_area, symbol) == 904, "inject_stub.c");

/* The code as it is to be copied, the constants last. Position-independent. */
extern const unsigned char inject_stub_begin[], inject_stub_consts[], inject_stub_end[];

/* Of the code without its constants, and of all. */
#define INJECT_CODE_BYTES ((size_t)((uintptr_t)inject_stub_consts - (uintptr_t)inject_stub_begin))
#define INJECT_STUB_BYTES ((size_t)((uintptr_t)inject_stub_end - (uintptr_t)inject_stub_begin))

#endif

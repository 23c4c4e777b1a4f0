/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The plan: which spans there are, at which sites they are seen, and for each site whether
 * it may be armed, where, why not, and what a hit costs. Pure: lists in, plan out.
 *
 *	plan_select()     objects + globs  -> spans with sites     (select*.c, pairing.c)
 *	plan_preflight()  every site       -> verdict, class, way  (preflight.c)
 *	plan_span_price() classes + rates -> ns                   (price.c)
 *
 * Span and site ids are indices + 1 into the arrays and never change once given, because
 * BPF maps and cookies hold them; plan_select() on a plan that already has spans (a library
 * was opened by dlopen) only appends.
 */
#ifndef QBPF_PLAN_PLAN_H
#define QBPF_PLAN_PLAN_H

#include "elf/disasm.h"
#include "elf/image.h"
#include "elf/symbols.h"
#include "elf/unwind.h"
#include "elf/usdt.h"
#include "qbpf/abi.h"

enum span_kind {
	SPAN_MARKER,  /* a pair of markers on one thread */
	SPAN_KEYED,   /* a pair with a key, across threads */
	SPAN_INSTANT, /* a marker alone */
	SPAN_VALUE,   /* a marker provider:name__value with one numeric argument */
	SPAN_FUNC,    /* a function's entry and return */
	SPAN_CUDA,    /* the same of a function of CUDA, all its twins and copies */
};

/* How a function's end is seen. */
enum return_way { RET_AUTO, RET_GUARD, RET_URETPROBE, RET_INSNS, RET_NONE };

enum verdict {
	VERDICT_PENDING,
	VERDICT_ARM,	   /* as found */
	VERDICT_RELOCATED, /* at another address near by: endbr64 + 4, the 0x90 before a nop5 */
	VERDICT_REFUSED,
};

/* Price classes, measured on the host at start. */
enum price_class {
	PRICE_NOP5,
	PRICE_EMULATED,
	PRICE_STEPPED,
	PRICE_URETPROBE, /* what a uretprobe adds to its entry */
	PRICE_N
};

/* What a CUDA symbol has behind its function's name. */
enum cuda_twin {
	CUDA_TWIN_PER_THREAD = 1, /* _ptsz, _ptds */
	CUDA_TWIN_VERSION = 2,	  /* _v2, _v3 */
};

struct plan_site {
	uint32_t span;	 /* span id */
	uint32_t object; /* index into the objects given to plan_select */
	enum qbpf_role role;
	uint64_t addr;	     /* where it will be armed */
	uint64_t off;	     /* file offset of the same */
	uint64_t found_addr; /* where it was found, before relocation */
	uint64_t sema_off;   /* 0: none */
	uint64_t func_addr;  /* function that contains it, 0: unknown */
	uint64_t func_size;
	struct usdt_arg arg; /* key or value */
	bool has_arg;
	enum verdict verdict;
	enum price_class price;
	char *reason;	   /* for RELOCATED and REFUSED, and ARM by --unsafe; owned; else NULL */
	int arm_errno;	   /* set by trace/ when the kernel refused it */
	bool armed;	   /* set by trace/ */
	uint16_t cuda;	   /* a site of a CUDA function: its place in the table + 1 */
	uint8_t cuda_twin; /* enum cuda_twin, or-ed */
};

struct plan_span {
	char *name; /* provider:name, or demangled function; unique, owned */
	enum span_kind kind;
	enum qbpf_hist_kind hist;
	uint32_t object;     /* of the first site */
	enum return_way way; /* functions: the way taken; never RET_AUTO after preflight */
	char *way_reason;    /* why this way, or why none: owned */
	bool armed;	     /* at least one begin and one end (or the only role) may be armed */
};

/* What arming depends on beside the site itself; filled by the caller from /proc and ELF. */
struct plan_process {
	bool can_throw;	 /* any mapped object raises exceptions or has a C++ runtime */
	bool can_cancel; /* any mapped object imports pthread_cancel */
	bool
	    can_cancel_cuda; /* one that is no library of CUDA does: those cancel their own threads */
	bool switches_stacks; /* Go, swapcontext, fcontext ... in any mapped object */
	int seccomp;	      /* mode from /proc/PID/status */
	bool signal_stack;    /* sigaltstack is used somewhere */
	bool shadow_stack;    /* x86 user shadow stack in force for the process */
	/*
	 * Some mapped object beside the C library imports fork, clone or the like. Where the
	 * kernel is nop5_fork_unsafe, a nop5 is then never armed itself: the 0x90 before it, or
	 * what follows it at a function's entry, else refused.
	 */
	bool can_fork;
};

/* What the kernel can do. */
struct plan_kernel {
	bool nop5_optimised; /* rewrites nop5 (>= 6.18): the red-zone rule applies */
	/*
	 * 6.18's trampoline for optimised probes is not copied on fork, but the call to it is: a
	 * forked child that runs an optimised site dies by SIGSEGV (seen on 6.18.44 with any
	 * tracer; int3 sites are safe, and so are vfork and posix_spawn).
	 */
	bool nop5_fork_unsafe;
	bool uprobe_multi;
	bool uretprobe_syscall; /* uretprobes return by a syscall (>= 6.11): seccomp matters */
	bool guard;		/* bpf_probe_write_user may be used */
};

struct plan_object {
	const char *path;
	const struct elf_image *img;
	const struct usdt_table *markers;  /* NULL: none */
	const struct func_table *funcs;	   /* NULL: not read, no -f */
	const struct unwind_table *unwind; /* NULL: not read */
	bool is_libc;			   /* libc, ld.so: markers only on request */
	bool has_cuda; /* it may define functions of CUDA: then funcs are read for those */
};

/*
 * --cuda: how CUDA is seen. Auto and uprobe arm its functions; agent none but those that
 * -u cuda:GLOB or -f asks for; off none at all: to -f they are functions like any other.
 */
enum cuda_mode { CUDA_AUTO, CUDA_UPROBE, CUDA_AGENT, CUDA_OFF };

/* --cuda-api: which of the two that a call passes through. Auto: the runtime's functions, or the
 * driver's where no runtime with symbols is mapped. */
enum cuda_api { CUDA_API_AUTO, CUDA_API_RUNTIME, CUDA_API_DRIVER, CUDA_API_BOTH };

struct plan_opts {
	const char **markers; /* -u globs */
	size_t nmarkers;
	const char **funcs; /* -f globs */
	size_t nfuncs;
	const char **spans; /* -s NAME=BEGIN..END[,key=argN] */
	size_t nspans;
	enum return_way returns;
	enum cuda_mode cuda;
	enum cuda_api cuda_api;
	bool unsafe;
	size_t max_spans; /* 0: no limit; more matches than this is -E2BIG with the count in e */
};

struct plan {
	struct plan_span *spans;
	size_t nspans, cap_spans;
	struct plan_site *sites;
	size_t nsites, cap_sites;
	/* What select could not use, each one line for the report: "foo: imported, defined in
	 * libm.so.6", "memcpy: IFUNC resolver", "lock:acquire: arg2 is unreadable: ..." */
	char **notes;
	size_t nnotes, cap_notes;
	void *index; /* name -> span */
};

struct plan *plan__new(void);
void plan__free(struct plan *p);

/* One line for the report; the same line twice is kept once. */
int plan__note(struct plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Appends the spans of objs[from .. n) that opts selects. With no -u, -f, -s: all markers but
 * the C library's. -EINVAL with e: bad -s or glob. A glob that matches nothing anywhere is
 * no error here; plan_unmatched() tells.
 */
int plan_select(struct plan *p, const struct plan_opts *opts, const struct plan_object *objs,
		size_t from, size_t n, struct err *e);

/* The spans of functions of CUDA alone, of all objects: --cuda has become another since they were given
 * to plan_select. */
int plan_select_cuda(struct plan *p, const struct plan_opts *opts, const struct plan_object *objs,
		     size_t n, struct err *e);

/* Are functions of CUDA selected where there are any, so that symbols have to be read? */
bool plan_opts__wants_cuda(const struct plan_opts *o);
/* What the kernel's programs need to know of a CUDA function's site (select_cuda.c). */
void plan_site__cuda(const struct plan_site *s, struct qbpf_cuda_site *out);
/* Is it one of the driver's functions, not of the runtime's? By name, which may be a span's. */
bool cuda_name_is_driver(const char *name);

/* -EINVAL with e: a pattern is empty or a -s has not the form NAME=BEGIN..END[,key=argN]. */
int plan_opts__check(const struct plan_opts *opts, struct err *e);

/* Which of opts' patterns have matched nothing so far: calls cb for each. With `near` set to
 * up to three existing names that resemble it (owned by the callee, may be ""). */
void plan_unmatched(const struct plan *p, const struct plan_opts *opts,
		    const struct plan_object *objs, size_t n,
		    void (*cb)(void *ctx, const char *option, const char *glob, const char *near),
		    void *ctx);

/* Gives every pending site its verdict. */
void plan_preflight(struct plan *p, const struct plan_opts *opts, const struct plan_object *objs,
		    size_t nobjs, const struct plan_process *proc, const struct plan_kernel *k);

/* ns that one span of this id costs the target (begin + end), given ns per class. */
uint64_t plan_span_price(const struct plan *p, uint32_t span, const uint64_t ns[PRICE_N]);

const char *verdict_name(enum verdict v);
const char *price_class_name(enum price_class c);
const char *return_way_name(enum return_way w);
int return_way_parse(const char *s, enum return_way *out);
int cuda_mode_parse(const char *s, enum cuda_mode *out);
int cuda_api_parse(const char *s, enum cuda_api *out);

#endif

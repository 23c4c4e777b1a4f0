// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether a thread's stack holds what pthread_create needs; see inject_stack.h.
 *
 * Frames of the C library come in runs. Of the innermost run only its outermost function counts: what
 * the program called. It has to be one of those that wait in the kernel and hold nothing of the
 * allocator's meanwhile. A run at the outermost end is where the thread began. A run between is a
 * callback, from a function that is known to hold nothing. What is not known is not safe.
 */
#include "trace/inject_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#define FRAMES_MAX 256

struct inject_stack {
	const struct inject_site *site;
	Dwfl *dwfl;
	struct inject_frame frames[FRAMES_MAX];
	size_t n;
	bool deep;
};

/* --- the rule ----------------------------------------------------------------------------------- */

/*
 * They wait in the kernel, and no allocator calls them: that of the C library least of all, so that
 * they may also be called by whatever else the library does.
 */
static const char *const waits_outside[] = {"read",	     "readv",	     "write",
					    "writev",	     "poll",	     "ppoll",
					    "poll_chk",	     "ppoll_chk",    "select",
					    "pselect",	     "epoll_wait",   "epoll_pwait",
					    "epoll_pwait2",  "recv",	     "recvfrom",
					    "recvmsg",	     "recvmmsg",     "recv_chk",
					    "recvfrom_chk",  "send",	     "sendto",
					    "sendmsg",	     "sendmmsg",     "connect",
					    "accept",	     "accept4",	     "sigwait",
					    "sigwaitinfo",   "sigtimedwait", "sigsuspend",
					    "pause",	     "wait",	     "wait3",
					    "wait4",	     "waitpid",	     "waitid",
					    "msgrcv",	     "msgsnd",	     "semop",
					    "semtimedop",    "mq_receive",   "mq_timedreceive",
					    "read_chk",	     "sem_wait",     "sem_timedwait",
					    "sem_clockwait", "pthread_join", NULL};

/* Holding nothing where the program has called them. */
static const char *const waits[] = {"pread",
				    "pread64",
				    "pwrite",
				    "pwrite64",
				    "nanosleep",
				    "clock_nanosleep",
				    "usleep",
				    "sleep",
				    "sched_yield",
				    "syscall",
				    "ioctl",
				    "fcntl",
				    "fcntl64",
				    "flock",
				    "lockf",
				    "fsync",
				    "fdatasync",
				    "pthread_cond_wait",
				    "pthread_cond_timedwait",
				    "pthread_cond_clockwait",
				    "pthread_mutex_lock",
				    "pthread_barrier_wait",
				    "pthread_rwlock_rdlock",
				    "pthread_rwlock_wrlock",
				    "pthread_timedjoin_np",
				    "clock_gettime",
				    "gettimeofday",
				    "time",
				    "getpid",
				    "gettid",
				    "sched_getcpu",
				    NULL};

static const char *const callbacks[] = {"qsort", "qsort_r", "bsearch", "pthread_once", NULL};
static const char *const beginnings[] = {"libc_start_main", "clone", "clone3", NULL};

/* Whatever alias of it was found: __read is read. */
static bool is_in(const char *const *list, const char *name)
{
	while (name && *name == '_')
		name++;
	for (; name && *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static const char *judge_run(const struct inject_frame *f, size_t from, size_t to, size_t n)
{
	/* malloc_info() prints with every arena locked. */
	for (size_t i = from; i < to && !from; i++)
		if (f[i].name && !strncmp(f[i].name, "malloc", 6))
			return "it is at work inside the C library";
	if (!from)
		return is_in(waits_outside, f[0].name) || is_in(waits_outside, f[to - 1].name) ||
			       is_in(waits, f[to - 1].name)
			   ? NULL
			   : "it is inside the C library, where it may hold a lock";
	if (to < n && !is_in(beginnings, f[to - 1].name)) /* beyond that there is _start */
		return is_in(callbacks, f[to - 1].name) ? NULL : "the C library has called it";
	for (size_t i = from; i < to; i++)
		if (f[i].name && !is_in(beginnings, f[i].name))
			return "it is about to end";
	return NULL;
}

const char *inject_stack__judge(const struct inject_frame *f, size_t n)
{
	bool mixed = false;
	const char *why;
	size_t to;

	for (; n && f->owner == CODE_VDSO; f++) /* it holds nothing */
		n--;
	for (size_t i = 0; i < n; i++) {
		if (f[i].owner == CODE_LDSO)
			return "it is inside the dynamic linker";
		if (f[i].owner == CODE_ALLOCATOR)
			return "it is inside an allocator";
		if (f[i].owner == CODE_UNKNOWN || f[i].owner == CODE_VDSO)
			return "it runs code of no file";
		mixed |= f[i].owner == CODE_MIXED;
	}
	for (size_t from = 0; from<n; from = to> from ? to : from + 1) {
		for (to = from; to < n && f[to].owner == CODE_LIBC; to++)
			;
		if (to == from)
			continue;
		if (!from && to == n)
			return "it is all inside the C library";
		why = judge_run(f, from, to, n);
		if (why)
			return why;
		if (!from)
			mixed &= !is_in(waits_outside, f[to - 1].name);
	}
	if (mixed)
		return "the program has an allocator of its own, and it may be inside";
	return n ? NULL : "its stack cannot be read";
}

/* --- unwinding ---------------------------------------------------------------------------------- */

/* The very files that are mapped, not what is at their paths now. */
static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	const struct inject_object *o = inject_site__object(*userdata, base);

	if (!o)
		return name && !strncmp(name, "[vdso", 5)
			   ? dwfl_linux_proc_find_elf(mod, userdata, name, base, file, elf)
			   : -1;
	if (o->map->fd < 0 || o->map->open_errno)
		return -1;
	*file = strdup(o->map->path);
	return *file ? dup(o->map->fd) : -1;
}

static int no_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **debug_file)
{
	(void)mod, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc;
	*debug_file = NULL;
	return -1;
}

static int get_ready(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr start,
		     void *arg)
{
	Dwarf_Addr bias;

	(void)name;
	*userdata = arg;
	if (inject_site__owner(arg, start) != CODE_UNKNOWN)
		dwfl_module_eh_cfi(mod, &bias);
	return DWARF_CB_OK;
}

int inject_stack__new(const struct inject_site *s, struct inject_stack **out, struct err *e)
{
	static const Dwfl_Callbacks callbacks_ = {.find_elf = find_elf,
						  .find_debuginfo = no_debuginfo};
	struct inject_stack *st = calloc(1, sizeof(*st));

	if (!st)
		return err_set(e, -ENOMEM, "out of memory");
	st->site = s;
	st->dwfl = dwfl_begin(&callbacks_);
	if (!st->dwfl || dwfl_linux_proc_report(st->dwfl, s->task) ||
	    dwfl_report_end(st->dwfl, NULL, NULL))
		goto out;
	dwfl_getmodules(st->dwfl, get_ready, (void *)(uintptr_t)s, 0);
	if (dwfl_linux_proc_attach(st->dwfl, s->task, true))
		goto out;
	*out = st;
	return 0;
out:
	inject_stack__free(st);
	return err_set(e, -EIO, "process %d: its stacks cannot be read: %s", s->pid,
		       dwfl_errmsg(-1));
}

void inject_stack__free(struct inject_stack *st)
{
	if (!st)
		return;
	if (st->dwfl)
		dwfl_end(st->dwfl);
	free(st);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct inject_stack *st = arg;
	struct inject_frame *f;
	bool activation;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	if (st->n == FRAMES_MAX) {
		st->deep = true;
		return DWARF_CB_ABORT;
	}
	f = &st->frames[st->n++];
	pc -= !activation;
	f->owner = inject_site__owner(st->site, pc);
	f->name = f->owner == CODE_LIBC ? inject_site__libc_name(st->site, pc) : NULL;
	return DWARF_CB_OK;
}

const char *inject_stack__check(struct inject_stack *st, pid_t tid)
{
	st->n = 0;
	st->deep = false;
	if (dwfl_getthread_frames(st->dwfl, tid, take_frame, st))
		return st->deep ? "its stack is too deep" : "its stack cannot be unwound";
	return inject_stack__judge(st->frames, st->n);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libqbpf_cupti.so: records what CUPTI knows about the GPU work of the process it is in, into the
 * shared-memory ring of a qbpf that watches (qbpf/ring.h).
 *
 * WAYS IN
 *	CUDA_INJECTION64_PATH	the driver loads it in cuInit and calls InitializeInjection()
 *	LD_PRELOAD		its constructor starts it
 *	dlopen from outside	qbpf_agent_start(path of the ring) starts it
 * The first two act only when QBPF_RING names a ring. They start on the thread they are called on, so
 * that no call goes unseen; the last starts on a thread of its own and returns at once.
 *
 * LIFE. One thread of its own, with all signals blocked, looks every 100 ms whether the reader still
 * holds its lock, flushes, and writes a clock point each second. It is also the thread that
 * detaches. At the process's exit it flushes once more, and the exit waits for that as long as buffers
 * come: EXIT_WAIT_MS for the next one, EXIT_MAX_MS in all. A forked child has no such thread and is
 * silent: pthread_atfork. When all is over the library stays mapped, because CUPTI may still return a
 * buffer, and does nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probes/cupti/agent.h"

#define CLOCK_MS      1000u
#define EXIT_WAIT_MS  500u
#define EXIT_MAX_MS   5000u
#define EXIT_LOOK_MS  20u
#define DETACH_MS     2000u /* buffers that come later than that are ignored */
#define QUIET_WAIT_MS 1000u
#define STACK_BYTES   ((size_t)4 << 20)
#define NS_PER_MS     1000000ull

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(void);
EXPORT int qbpf_agent_start(const char *ring_path);
EXPORT int qbpf_agent_stop(void);

enum phase { IDLE, BUSY, FORKED };
enum how { NOW, ON_THREAD, WHEN_CUDA_COMES };
enum outcome { NOT_YET, ON, REFUSED, NOT_OURS };

struct agent agent;
static uint32_t phase;	     /* enum phase */
static uint32_t outcome;     /* enum outcome of begin(), a futex */
static uint32_t stop_wanted; /* qbpf_agent_stop() */
static uint32_t exit_wanted; /* exit() */
static uint32_t exit_done;   /* a futex */
static pid_t own_pid;

/* --- small things ------------------------------------------------------------------------------ */

uint32_t thread_id(void)
{
	static __thread uint32_t tid __attribute__((tls_model("initial-exec")));

	if (!tid)
		tid = (uint32_t)syscall(SYS_gettid);
	return tid;
}

void set_text(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n > size - 1)
		n = size - 1;
	memmove(to, from, n);
	memset(to + n, 0, size - n);
}

void call_enter(const char *name)
{
	struct qbpf_ring_head *h = agent.ring.head;

	set_text(h->in_call, sizeof(h->in_call), name);
	__atomic_store_n(&h->in_call_ns, monotonic_ns(), __ATOMIC_RELEASE);
}

void call_leave(void)
{
	struct qbpf_ring_head *h = agent.ring.head;

	__atomic_store_n(&h->in_call_ns, 0, __ATOMIC_RELEASE);
	h->in_call[0] = 0;
}

void warn(uint32_t bit)
{
	__atomic_fetch_or(&agent.ring.head->warnings, bit, __ATOMIC_RELAXED);
}

bool fault(enum qbpf_ring_fault what, const char *call, int code)
{
	struct qbpf_ring_head *h = agent.ring.head;

	set_text(h->fault_call, sizeof(h->fault_call), call);
	h->fault_code = code;
	h->fault = what;
	return false;
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* Sleeps until *word is not `value`, or it was woken, or so long. */
static void nap(uint32_t *word, uint32_t value, uint64_t ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000 * NS_PER_MS)};

	futex(word, FUTEX_WAIT, value, &ts);
}

/* --- beginning ---------------------------------------------------------------------------------- */

/* Waits until no buffer function is inside; true when that is so. */
static bool be_quiet(void)
{
	unsigned ms;

	__atomic_store_n(&agent.recording, 0, __ATOMIC_SEQ_CST);
	for (ms = 0; ms < QUIET_WAIT_MS && __atomic_load_n(&agent.inside, __ATOMIC_SEQ_CST); ms++)
		usleep(1000);
	return !__atomic_load_n(&agent.inside, __ATOMIC_SEQ_CST);
}

static void publish(void)
{
	struct qbpf_ring_head *h = agent.ring.head;

	h->buffers_out = buffers_out();
	h->callbacks = __atomic_load_n(&agent.callbacks, __ATOMIC_RELAXED);
	__atomic_store_n(&h->heartbeat_ns, monotonic_ns(), __ATOMIC_RELAXED);
}

static void at_exit(void);

/* The producer's place is free again. */
static void give_back(enum qbpf_ring_state state)
{
	agent.ring.head->threads = 0;
	set_state(state);
	__atomic_store_n(&agent.held, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&agent.ring.head->holder, 0, __ATOMIC_RELEASE);
}

/* After a refusal the thread still has to take back what was begun. */
static enum outcome begin(void)
{
	static bool exit_known;
	struct qbpf_ring_head *h = agent.ring.head;

	if (!become_producer())
		return NOT_OURS;
	record_names_reset();
	agent.registered = false;
	agent.subscriber = NULL;
	__atomic_store_n(&agent.deadline_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&agent.fatal, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&agent.callbacks, 0, __ATOMIC_RELAXED);
	if (!switch_on()) {
		if (agent.subscriber)
			return REFUSED;
		give_back(QBPF_RING_REFUSED);
		return NOT_OURS;
	}
	/* Handlers run in reverse order: ours, registered after CUPTI's and the driver's. */
	if (!exit_known && !atexit(at_exit))
		exit_known = true;
	h->on_ns = monotonic_ns();
	__atomic_store_n(&h->flushed_ns, h->on_ns, __ATOMIC_RELAXED);
	mark_window(QBPF_RING_NONE, h->on_ns);
	set_state(QBPF_RING_ON);
	return ON;
}

/* --- the thread -------------------------------------------------------------------------------- */

/* QBPF_RING_NONE: go on. */
static enum qbpf_ring_reason why_stop(void)
{
	uint32_t command = __atomic_load_n(&agent.ring.head->command, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&exit_wanted, __ATOMIC_ACQUIRE))
		return QBPF_RING_EXIT;
	if (__atomic_load_n(&agent.fatal, __ATOMIC_RELAXED))
		return QBPF_RING_FATAL;
	if ((command & QBPF_RING_STOP) || __atomic_load_n(&stop_wanted, __ATOMIC_ACQUIRE))
		return QBPF_RING_ASKED;
	return reader_lives() ? QBPF_RING_NONE : QBPF_RING_READER_GONE;
}

/* Until there is a reason to end. */
static enum qbpf_ring_reason rounds(void)
{
	struct qbpf_ring_head *h = agent.ring.head;
	uint64_t now, flushed = 0, marked = monotonic_ns();
	enum qbpf_ring_reason reason;
	uint32_t command;

	for (;;) {
		publish();
		command = __atomic_load_n(&h->command, __ATOMIC_ACQUIRE);
		reason = why_stop();
		if (reason != QBPF_RING_NONE)
			return reason;
		now = monotonic_ns();
		if (now - flushed >= agent.flush_ms * NS_PER_MS) {
			CUPTI(cuptiActivityFlushAll, 0);
			count_dropped();
			flushed = now;
			if (!__atomic_load_n(&agent.fatal, __ATOMIC_RELAXED))
				__atomic_store_n(&h->flushed_ns, now, __ATOMIC_RELAXED);
		}
		if (now - marked >= CLOCK_MS * NS_PER_MS) {
			mark_time();
			marked = now;
		}
		publish();
		nap(&h->command, command, agent.flush_ms < ROUND_MS ? agent.flush_ms : ROUND_MS);
	}
}

/*
 * The process is about to end: hand over what there is, and leave CUPTI as it is. That CUPTI has given up may
 * have been said a moment ago, or in this flush.
 */
static void last_flush(void)
{
	struct qbpf_ring_head *h = agent.ring.head;
	uint64_t to = monotonic_ns();

	if (!__atomic_load_n(&agent.fatal, __ATOMIC_RELAXED))
		CUPTI(cuptiActivityFlushAll, FLUSH_FORCED);
	count_dropped();
	h->reason = QBPF_RING_EXIT;
	if (__atomic_load_n(&agent.fatal, __ATOMIC_RELAXED)) {
		h->reason = QBPF_RING_FATAL;
		to = __atomic_load_n(&h->flushed_ns, __ATOMIC_RELAXED);
	} else {
		mark_time();
	}
	mark_window(h->reason, to);
	publish();
	h->off_ns = monotonic_ns();
	set_state(QBPF_RING_OFF);
	__atomic_store_n(&exit_done, 1, __ATOMIC_RELEASE);
	futex(&exit_done, FUTEX_WAKE, INT32_MAX, NULL);
}

static void go_dormant(enum qbpf_ring_reason reason)
{
	struct qbpf_ring_head *h = agent.ring.head;
	uint64_t now = monotonic_ns();

	set_state(QBPF_RING_STOPPING);
	__atomic_store_n(&agent.deadline_ns, monotonic_ns() + DETACH_MS * NS_PER_MS,
			 __ATOMIC_RELAXED);
	if (reason == QBPF_RING_FATAL) { /* CUPTI is no longer there to ask */
		mark_window(reason, __atomic_load_n(&h->flushed_ns, __ATOMIC_RELAXED));
	} else {
		mark_time();
		detach();
		mark_window(reason, now); /* else, in a call that hangs, it is not handed over */
	}
	publish();
	h->reason = reason;
	h->off_ns = monotonic_ns();
}

/* WHEN_CUDA_COMES: true when it did. Looks at the memory map only after something was loaded. */
static bool wait_for_cuda(void)
{
	while (!cuda_is_mapped()) {
		if (why_stop() != QBPF_RING_NONE)
			return false;
		nap(&outcome, NOT_YET, ROUND_MS);
	}
	return true;
}

static enum outcome how_it_began(enum how how)
{
	uint32_t o;

	if (how == ON_THREAD)
		return begin();
	if (how == WHEN_CUDA_COMES)
		return wait_for_cuda() ? begin() : NOT_OURS;
	while ((o = __atomic_load_n(&outcome, __ATOMIC_ACQUIRE)) == NOT_YET)
		nap(&outcome, NOT_YET, ROUND_MS);
	return o;
}

static void *run(void *arg)
{
	enum qbpf_ring_reason reason;
	enum outcome how;

	prctl(PR_SET_NAME, "qbpf-cupti");
	how = how_it_began((enum how)(uintptr_t)arg);
	if (how == ON) {
		reason = rounds();
		if (reason == QBPF_RING_EXIT) {
			last_flush();
			return NULL; /* buffers that CUPTI returns on its way out still count */
		}
		go_dormant(reason);
	} else if (how == REFUSED) {
		detach();
	}
	if (!be_quiet())
		return NULL; /* a buffer function hangs: the ring has to stay */
	if (how != NOT_OURS)
		give_back(how == ON ? QBPF_RING_OFF : QBPF_RING_REFUSED);
	close_ring();
	__atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
	return NULL;
}

/* --- ways in and out --------------------------------------------------------------------------- */

/*
 * A child has the parent's memory, but not its thread, and no right to call the parent's CUPTI. Where
 * the parent had not come so far, the child may start on its own if it is asked to.
 */
static void in_child(void)
{
	__atomic_store_n(&agent.recording, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&agent.inside, 0, __ATOMIC_RELAXED); /* who was inside is not here */
	close_ring(); /* a child that stays must not keep the ring's memory */
	__atomic_store_n(&phase, __atomic_load_n(&agent.held, __ATOMIC_RELAXED) ? FORKED : IDLE,
			 __ATOMIC_RELAXED);
}

static int make_thread(enum how how)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	err = pthread_create(&thread, &attr, run, (void *)(uintptr_t)how);
	pthread_attr_destroy(&attr);
	return err;
}

static int start_on(enum how how)
{
	int err;

	own_pid = getpid();
	__atomic_store_n(&outcome, NOT_YET, __ATOMIC_RELAXED);
	__atomic_store_n(&stop_wanted, 0, __ATOMIC_RELAXED);
	err = make_thread(how);
	if (err) {
		if (become_producer()) {
			fault(QBPF_RING_NO_THREAD, "pthread_create", err);
			give_back(QBPF_RING_REFUSED);
		}
		close_ring();
		__atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
		return -err;
	}
	if (how == NOW) {
		__atomic_store_n(&outcome, begin(), __ATOMIC_RELEASE);
		futex(&outcome, FUTEX_WAKE, 1, NULL);
	}
	return 0;
}

static int start(const char *path, enum how how)
{
	static bool fork_known;
	uint32_t idle = IDLE;
	sigset_t all, old;
	int err = 0;

	if (!__atomic_compare_exchange_n(&phase, &idle, BUSY, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return idle == FORKED ? -ECHILD : -EBUSY;
	if (!fork_known) {
		err = -pthread_atfork(NULL, NULL, in_child);
		fork_known = !err;
	}
	if (!err)
		err = open_ring(path);
	if (err) {
		__atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
		return err;
	}
	/* The threads that we and CUPTI start shall take none of the target's signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	agent.first_in = how == NOW;
	err = start_on(how);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* Wakes the thread, if there is one at work: the ring stays mapped as long as `inside` is counted. */
static bool wake(uint32_t *flag)
{
	bool awake = false;

	__atomic_fetch_add(&agent.inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&agent.recording, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
		__atomic_fetch_or(&agent.ring.head->command, QBPF_RING_WAKE, __ATOMIC_RELEASE);
		futex(&agent.ring.head->command, FUTEX_WAKE, INT32_MAX, NULL);
		awake = true;
	}
	__atomic_fetch_sub(&agent.inside, 1, __ATOMIC_SEQ_CST);
	return awake;
}

/* A call that hangs brings no buffer; on a busy machine, or with many buffers, they take their time. */
static void at_exit(void)
{
	uint64_t begin = monotonic_ns(), last = begin, now = begin;
	uint32_t seen = 0, n;

	if (getpid() != own_pid || !wake(&exit_wanted))
		return;
	while (!__atomic_load_n(&exit_done, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&agent.recording, __ATOMIC_RELAXED) &&
	       now - last < EXIT_WAIT_MS * NS_PER_MS && now - begin < EXIT_MAX_MS * NS_PER_MS) {
		nap(&exit_done, 0, EXIT_LOOK_MS);
		now = monotonic_ns();
		n = __atomic_load_n(&agent.completed, __ATOMIC_RELAXED);
		if (n != seen)
			last = now;
		seen = n;
	}
}

int InitializeInjection(void)
{
	const char *path = secure_getenv("QBPF_RING");

	if (path && *path)
		start(path, NOW);
	return 1;
}

/* For a qbpf that opened this library in a running process. 0, or a negative errno (-EBUSY: an agent is
 * at work, -ECHILD: one was when this process was forked); what comes of it stands in the ring. */
int qbpf_agent_start(const char *ring_path)
{
	return start(ring_path, ON_THREAD);
}

/* Asks the thread to detach, and does not wait for it. */
int qbpf_agent_stop(void)
{
	return wake(&stop_wanted) ? 0 : -ESRCH;
}

/* Will the driver call InitializeInjection? */
static bool is_injected(void)
{
	const char *path = secure_getenv("CUDA_INJECTION64_PATH");
	struct stat a, b;
	Dl_info info;

	return path && dladdr((void *)InitializeInjection, &info) && !stat(path, &a) &&
	       !stat(info.dli_fname, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

__attribute__((constructor)) static void loaded(void)
{
	const char *path = secure_getenv("QBPF_RING");

	if (path && *path && !is_injected())
		start(path, cuda_is_mapped() ? NOW : WHEN_CUDA_COMES);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The CUDA agents of a session; see agents.h. */
#include "trace/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "file/ring_reader.h"
#include "log.h"
#include "quiet_thread.h"
#include "trace/gpu_source.h"

#define WAIT_BUSY_NS 2000000ull
#define WAIT_IDLE_NS 20000000ull
/* Agents leave within 100 ms, or hang in CUPTI, which they give up after 2 s. */
#define STOP_WAIT_NS 4000000000ull
/* An agent's thread looks around every 100 ms: a process is dead whose agent has not for so long. */
#define SILENT_NS     1000000000ull
#define START_WAIT_NS 1000000000ull
#define SECOND	      1000000000ull
#define TEXT_MAX      512
/* Lines about one process, and changes to what was told before: an agent has four states in its life. */
#define SAID_MAX  8
#define AGAIN_MAX 8

/* What a line was about. */
struct said {
	enum qbpf_ring_state state;
	enum qbpf_ring_reason reason;
	enum qbpf_ring_fault fault;
	int32_t fault_code;
	uint32_t generation;
};

struct source {
	struct ring_reader *ring;
	struct gpu_source records;
	pid_t pid; /* 0: whoever takes the ring that `run` leaves open */
	bool dropped, was_on;
	struct said last, said[SAID_MAX];
	unsigned nsaid, again;
	struct ring_status seen; /* by the thread, when it last looked */
	bool over;		 /* and of that one no more is to come */
	bool second;		 /* QBPF_RING_WARN_SECOND */
	unsigned sudden;	 /* programs that were gone before they could hand over */
	bool second_told, sudden_told;
};

struct agents {
	struct gpu_feed *feed;
	pthread_mutex_t lock; /* of all below, and of the rings */
	struct source *sources;
	size_t n;
	struct gpu_names names;
	uint64_t losses_ns; /* told so far */
	pthread_t thread;
	bool running;
	int statefd;
	bool stopping;
};

/* --- the thread --------------------------------------------------------------------------------- */

/* It has not said itself that it ended, and will not: what it had not handed over is lost. */
static void tell_over(struct agents *a, struct source *s, enum qbpf_ring_reason why)
{
	if (s->over)
		return;
	s->over = true;
	s->sudden += why == QBPF_RING_SUDDEN;
	gpu_source__over(&s->records, &s->seen, why, gpu_feed__queue(a->feed));
}

static bool said_so(const struct source *s)
{
	return s->records.ended == s->seen.generation;
}

static bool has_died(const struct source *s, const struct ring_status *st, uint64_t now)
{
	return st->state == QBPF_RING_ON && now > st->heartbeat_ns + SILENT_NS / 2 && s->pid &&
	       kill(s->pid, 0) && errno == ESRCH;
}

/* After all records that were there when its state was st have been taken. */
static void look_at_state(struct agents *a, struct source *s, const struct ring_status *st,
			  uint64_t now)
{
	bool second = st->warnings & QBPF_RING_WARN_SECOND;
	bool same = st->state == s->seen.state && st->generation == s->seen.generation &&
		    second == s->second;
	uint64_t one = 1;

	s->second = second;
	s->was_on |= st->on_ns != 0;
	if (st->generation != s->seen.generation) {
		if (s->seen.state == QBPF_RING_ON && !said_so(s))
			tell_over(a, s, QBPF_RING_SUDDEN);
		s->over = false;
	}
	s->seen = *st;
	if (has_died(s, st, now) && !said_so(s))
		tell_over(a, s, QBPF_RING_SUDDEN);
	if (same)
		return;
	if (write(a->statefd, &one, sizeof(one)) < 0)
		log_dbg("eventfd: %s", strerror(errno));
}

static void tell_losses(struct agents *a, uint64_t now, bool last)
{
	for (size_t i = 0; i < a->n; i++)
		gpu_source__tell_losses(&a->sources[i].records, gpu_feed__queue(a->feed), now,
					last);
	a->losses_ns = now;
}

/* Takes what there is; returns the share of the fullest lane that was waiting, in percent. *full: the
 * queue behind is, the rest waits in the rings. */
static unsigned take_all(struct agents *a, bool *full)
{
	struct gpu_queue *q = gpu_feed__queue(a->feed);
	uint64_t now = now_ns();
	unsigned fill = 0, f;

	*full = false;
	for (size_t i = 0; i < a->n; i++) {
		struct source *s = &a->sources[i];
		struct ring_status st;
		bool more;

		if (s->dropped)
			continue;
		f = ring_reader__fill(s->ring);
		fill = f > fill ? f : fill;
		ring_reader__status(s->ring, &st);
		more = gpu_source__poll(&s->records, &a->names, q);
		if (!more)
			look_at_state(a, s, &st, now);
		*full |= more;
	}
	if (!*full)
		gpu_queue__seen(q, GPU_FROM_RINGS, now);
	if (now - a->losses_ns >= SECOND)
		tell_losses(a, now, false);
	return fill;
}

static void *run(void *arg)
{
	struct agents *a = arg;
	uint64_t wait = WAIT_IDLE_NS;

	for (;;) {
		struct timespec ts = {.tv_nsec = (long)wait};
		unsigned fill;
		bool stop, full;

		nanosleep(&ts, NULL);
		pthread_mutex_lock(&a->lock);
		fill = take_all(a, &full);
		stop = a->stopping;
		pthread_mutex_unlock(&a->lock);
		if (stop)
			return NULL;
		wait = fill > 10 ? WAIT_BUSY_NS : WAIT_IDLE_NS;
	}
}

static int start_thread(struct agents *a, struct err *e)
{
	int err;

	if (a->running)
		return 0;
	err = quiet_thread__start(&a->thread, run, a);
	a->running = !err;
	return err ? err_set(e, err, "cannot start the ring's thread: %s", strerror(-err)) : 0;
}

static void stop_thread(struct agents *a)
{
	if (!a->running)
		return;
	pthread_mutex_lock(&a->lock);
	a->stopping = true;
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	a->running = a->stopping = false;
}

/* --- life --------------------------------------------------------------------------------------- */

int agents__new(struct agents **out, struct err *e)
{
	struct agents *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&a->lock, NULL);
	a->statefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->statefd < 0) {
		err = err_set(e, -errno, "eventfd: %s", strerror(errno));
		goto out;
	}
	a->feed = gpu_feed__new();
	if (!a->feed) {
		err = err_set(e, -ENOMEM, "out of memory");
		goto out;
	}
	*out = a;
	return 0;
out:
	agents__free(a);
	return err;
}

void agents__free(struct agents *a)
{
	if (!a)
		return;
	stop_thread(a);
	for (size_t i = 0; i < a->n; i++) {
		gpu_source__clear(&a->sources[i].records);
		ring_reader__free(a->sources[i].ring);
	}
	free(a->sources);
	gpu_feed__free(a->feed);
	if (a->statefd >= 0)
		close(a->statefd);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static int append(struct agents *a, struct ring_reader *ring, pid_t pid, size_t *at, struct err *e)
{
	struct source *bigger;
	int err = start_thread(a, e);

	if (err)
		return err;
	pthread_mutex_lock(&a->lock);
	bigger = realloc(a->sources, (a->n + 1) * sizeof(*bigger));
	if (bigger) {
		a->sources = bigger;
		*at = a->n;
		bigger[a->n] = (struct source){.ring = ring, .pid = pid};
		bigger[a->n].records = (struct gpu_source){
		    .ring = ring,
		    .number = (uint32_t)*at,
		    .ns = pid ? ns_threads__new(pid) : NULL,
		};
		a->n++;
	}
	pthread_mutex_unlock(&a->lock);
	return bigger ? 0 : err_set(e, -ENOMEM, "out of memory");
}

int agents__for_child(struct agents *a, const char *agent, struct err *e)
{
	const char *other = getenv("CUDA_INJECTION64_PATH");
	struct ring_reader *ring;
	char path[64];
	size_t at;
	int err;

	if (other && *other)
		return err_set(e, -EBUSY,
			       "CUDA_INJECTION64_PATH=%s is another tool's: there can be one",
			       other);
	ring = ring_reader__new(NULL, e);
	if (!ring)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ring_reader__fd(ring));
	err = append(a, ring, 0, &at, e);
	if (err) {
		ring_reader__free(ring);
		return err;
	}
	if (setenv("QBPF_RING", path, 1) || setenv("CUDA_INJECTION64_PATH", agent, 1))
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

void agents__child_started(struct agents *a)
{
	unsetenv("QBPF_RING");
	unsetenv("CUDA_INJECTION64_PATH");
	for (size_t i = 0; i < a->n; i++)
		if (!a->sources[i].pid)
			fcntl(ring_reader__fd(a->sources[i].ring), F_SETFD, FD_CLOEXEC);
}

int agents__adopt(struct agents *a, pid_t pid, int fd, size_t *at, struct err *e)
{
	struct ring_reader *ring = ring_reader__adopt(fd, NULL, e);
	int err;

	if (!ring)
		return -errno;
	fcntl(ring_reader__fd(ring), F_SETFD, FD_CLOEXEC);
	err = append(a, ring, pid, at, e);
	if (err)
		ring_reader__free(ring);
	return err;
}

void agents__drop(struct agents *a, size_t ring)
{
	pthread_mutex_lock(&a->lock);
	a->sources[ring].dropped = true;
	pthread_mutex_unlock(&a->lock);
}

size_t agents__count(const struct agents *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		n += a->sources[i].pid && !a->sources[i].dropped;
	return n;
}

int agents__fd(const struct agents *a)
{
	return a->statefd;
}

struct gpu_feed *agents__feed(struct agents *a)
{
	return a->feed;
}

/* --- what they say ------------------------------------------------------------------------------ */

/* Is it worth a line while it is so? The way out is told by its end. */
static bool is_news(enum qbpf_ring_state state)
{
	return state == QBPF_RING_ON || state == QBPF_RING_REFUSED || state == QBPF_RING_OFF;
}

static bool same(const struct said *a, const struct said *b)
{
	return a->state == b->state && a->reason == b->reason && a->fault == b->fault &&
	       a->fault_code == b->fault_code;
}

/*
 * True: there is something to say that has not been said. Programs that follow one another in a ring mostly
 * say the same. One whose ring says what it likes gets a few lines, and then one about that.
 */
static bool note_state(struct source *s, const struct ring_status *st)
{
	struct said now = {st->state, st->reason, st->fault, st->fault_code, st->generation};
	bool known = false;

	if (!is_news(st->state) || s->again > AGAIN_MAX ||
	    (same(&now, &s->last) && now.generation == s->last.generation))
		return false;
	for (unsigned i = 0; i < s->nsaid; i++)
		known |= same(&now, &s->said[i]);
	if (known)
		s->again += now.generation == s->last.generation;
	else if (s->nsaid < SAID_MAX)
		s->said[s->nsaid++] = now;
	else
		s->again = AGAIN_MAX + 1;
	s->last = now;
	if (s->again > AGAIN_MAX)
		log_warn("the state of the CUDA agent keeps changing: no more is told about it");
	return !known && s->again <= AGAIN_MAX;
}

static void tell_one(const struct agents *a, struct source *s)
{
	struct ring_status st;
	char line[TEXT_MAX], who[32] = "";
	enum log_level level = LOG_INFO;

	ring_reader__status(s->ring, &st);
	if (s->second && !s->second_told)
		log_warn("two of the processes that were started use CUDA at once: of one of them "
			 "no record of the GPU comes (attach -p takes several)");
	s->second_told |= s->second;
	if (s->sudden && !s->sudden_told)
		log_warn("a program ended, or became another one, so suddenly that the CUDA agent "
			 "could not hand over the last records");
	s->sudden_told = s->sudden;
	if (!note_state(s, &st))
		return;
	ring_status__explain(&st, line, sizeof(line));
	if (a->n > 1 && s->pid)
		snprintf(who, sizeof(who), "process %d: ", s->pid);
	if (st.state == QBPF_RING_REFUSED)
		level = LOG_WARN;
	else if (st.state == QBPF_RING_OFF && st.reason == QBPF_RING_FATAL)
		level = LOG_WARN;
	else if (st.state == QBPF_RING_OFF && !(st.warnings & QBPF_RING_WARN_LINGERS))
		level = LOG_DBG;
	log_print(level, "%s%s", who, line);
}

bool agents__refused(struct agents *a, char *why, size_t size)
{
	struct ring_status st;
	bool found = false;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n && !found; i++) {
		struct source *s = &a->sources[i];

		ring_reader__status(s->ring, &st);
		found = !s->dropped && st.state == QBPF_RING_REFUSED;
		if (!found)
			continue;
		note_state(s, &st);
		ring_status__explain(&st, why, size);
	}
	pthread_mutex_unlock(&a->lock);
	return found;
}

void agents__tell(struct agents *a)
{
	uint64_t n;

	if (read(a->statefd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		log_dbg("eventfd: %s", strerror(errno));
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n; i++)
		if (!a->sources[i].dropped)
			tell_one(a, &a->sources[i]);
	pthread_mutex_unlock(&a->lock);
}

void agents__wait(struct agents *a)
{
	uint64_t until = now_ns() + START_WAIT_NS;
	struct timespec pause = {.tv_nsec = 2000000};
	struct ring_status st;
	bool ready = false;

	while (!ready && now_ns() < until) {
		ready = true;
		pthread_mutex_lock(&a->lock);
		for (size_t i = 0; i < a->n; i++) {
			ring_reader__status(a->sources[i].ring, &st);
			ready &= !a->sources[i].pid || a->sources[i].dropped ||
				 (st.state != QBPF_RING_ABSENT && st.state != QBPF_RING_STARTING);
		}
		pthread_mutex_unlock(&a->lock);
		if (!ready)
			nanosleep(&pause, NULL);
	}
}

/* --- the end ------------------------------------------------------------------------------------ */

/* Will nothing more come? */
static bool is_over(struct source *s, uint64_t now)
{
	struct ring_status st;

	ring_reader__status(s->ring, &st);
	switch (st.state) {
	case QBPF_RING_STARTING:
	case QBPF_RING_ON:
	case QBPF_RING_STOPPING:
		/* Inside a call it does not look around, however well it is. */
		return !st.in_call_ns && now > st.heartbeat_ns + SILENT_NS;
	default:
		return true;
	}
}

static bool all_over(struct agents *a)
{
	uint64_t now = now_ns();
	bool over = true;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n; i++)
		over &= a->sources[i].dropped || is_over(&a->sources[i], now);
	pthread_mutex_unlock(&a->lock);
	return over;
}

static void tell_left_behind(struct agents *a, struct source *s)
{
	struct ring_status st;

	ring_reader__status(s->ring, &st);
	s->seen = st;
	if (said_so(s))
		return;
	if (st.state == QBPF_RING_STOPPING || (st.state == QBPF_RING_ON && st.in_call_ns)) {
		tell_over(a, s, QBPF_RING_ASKED);
		log_warn("the CUDA agent is still leaving%s%s: it goes on by itself, and records "
			 "nothing",
			 st.in_call[0] ? ", in " : "", st.in_call);
	} else if (st.state == QBPF_RING_ON) {
		tell_over(a, s, QBPF_RING_SUDDEN);
		log_warn("the target ended so suddenly that the CUDA agent could not hand over the "
			 "last records");
	}
}

void agents__stop(struct agents *a)
{
	uint64_t until = now_ns() + STOP_WAIT_NS;
	struct timespec pause = {.tv_nsec = 5000000};
	bool full;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n; i++)
		if (!a->sources[i].dropped)
			ring_reader__stop(a->sources[i].ring);
	pthread_mutex_unlock(&a->lock);
	while (!all_over(a) && now_ns() < until)
		nanosleep(&pause, NULL);
	stop_thread(a);
	take_all(a, &full);
	while (full) {
		nanosleep(&pause, NULL);
		take_all(a, &full);
	}
	tell_losses(a, now_ns(), true);
	agents__tell(a);
	for (size_t i = 0; i < a->n; i++)
		if (!a->sources[i].dropped)
			tell_left_behind(a, &a->sources[i]);
}

/* --- sums --------------------------------------------------------------------------------------- */

void agents__sums(struct agents *a, struct agents_sums *out)
{
	struct ring_status st;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->n; i++) {
		ring_reader__status(a->sources[i].ring, &st);
		for (unsigned t = 0; t < QBPF_RING_TYPES; t++) {
			out->read[t] += st.read[t];
			out->lost[t] += st.lost[t];
		}
		out->begun |= st.generation != 0;
		out->sudden += a->sources[i].sudden;
		out->second |= st.warnings & QBPF_RING_WARN_SECOND;
		out->dropped += st.dropped;
		out->discarded += st.discarded;
		out->unreadable += st.unknown_types;
		out->broken += st.broken + st.bad_lanes;
	}
	pthread_mutex_unlock(&a->lock);
}

int agents__check(struct agents *a, struct err *e)
{
	char line[TEXT_MAX] = "";
	struct ring_status st;

	for (size_t i = 0; i < a->n; i++) {
		if (a->sources[i].dropped)
			continue;
		ring_reader__status(a->sources[i].ring, &st);
		if (a->sources[i].was_on || st.on_ns)
			return 0;
		if (st.state != QBPF_RING_REFUSED) /* that was told when it was so */
			ring_status__explain(&st, line, sizeof(line));
	}
	return err_set(e, -ENODEV, "%s",
		       *line ? line : "--cuda agent: no agent has been at work in the target");
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which thread is to be stopped, and when; see inject_pick.h. */
#include "trace/inject_pick.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "elf/proc_state.h"

#define THREADS_MAX 512
#define FRESH_NS    4000000 /* a wait may become longer by that, and what a stop takes */
#define STOPS_MAX   2	    /* of one thread in such a wait */

/* Less is better. */
enum rank { DRIVERS_WAIT, TIMED_WAIT, ANY_WAIT, RUNNING, LIMITED_WAIT, NONE };

struct seen {
	struct picked is;
	enum rank rank;
	uint64_t at_ns; /* before it was looked at */
	uint64_t
	    ran_ns;	/* how long it had had a CPU then, as far as the kernel has added that up */
	uint64_t turns; /* and how often; 0: not known */
	unsigned int stops; /* in waits whose limit began again */
	bool listed;
};

struct inject_pick {
	pid_t pid;
	struct seen seen[THREADS_MAX], *order[THREADS_MAX];
	size_t n, ordered, watched; /* the last so many of order[] */
	char why[128];
};

int inject_pick__new(pid_t pid, struct inject_pick **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->pid = pid;
	return 0;
}

void inject_pick__free(struct inject_pick *p)
{
	free(p);
}

/* --- one look ----------------------------------------------------------------------------------- */

/* The driver's own wait for nothing that is urgent. */
static enum rank rank_of(pid_t pid, pid_t tid, struct wait *w)
{
	char dir[64], *text = NULL, *p, state;
	bool drivers, running;
	size_t len;

	memset(w, 0, sizeof(*w));
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", pid, tid);
	if (proc_state__read_file(dir, "stat", &text, &len))
		return NONE;
	p = strrchr(text, ')');
	state = p && p[1] ? p[2] : 'X';
	drivers = strstr(text, "(cuda-") != NULL;
	free(text);
	if (state == 'R')
		return RUNNING;
	if (state != 'S' || proc_state__read_file(dir, "syscall", &text, &len))
		return NONE;
	running = !strncmp(text, "running", 7); /* it has just been woken */
	if (!running)
		wait__read(pid, tid, text, w);
	free(text);
	if (running)
		return RUNNING;
	switch (w->kind) {
	case WAIT_EXACT:
		return !w->timed ? ANY_WAIT : drivers ? DRIVERS_WAIT : TIMED_WAIT;
	case WAIT_AGAIN:
		return LIMITED_WAIT;
	default:
		return NONE;
	}
}

/*
 * Is it sure that what it is in now is not older than the look before? One that waits has had a CPU since
 * then. One that is running had its turn then already: its last wait is over.
 */
static bool look(struct inject_pick *p, struct seen *s)
{
	uint64_t ran_ns = s->ran_ns, turns = s->turns;
	char dir[64], *text = NULL;
	size_t len;

	s->at_ns = now_ns();
	s->ran_ns = s->turns = 0;
	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", p->pid, s->is.tid);
	if (!proc_state__read_file(dir, "schedstat", &text, &len))
		sscanf(text, "%lu %*u %lu", &s->ran_ns, &s->turns);
	free(text);
	s->rank = rank_of(p->pid, s->is.tid, &s->is.wait);
	s->is.watched = s->rank == RUNNING || s->rank == LIMITED_WAIT;
	if (!turns || !s->turns)
		return false;
	if (s->rank == RUNNING)
		return s->turns == turns && s->ran_ns != ran_ns;
	return s->turns != turns || s->ran_ns != ran_ns;
}

static struct seen *find(struct inject_pick *p, pid_t tid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->seen[i].is.tid == tid)
			return &p->seen[i];
	return NULL;
}

bool inject_pick__is_ready(struct inject_pick *p, pid_t tid, struct picked *out)
{
	struct seen *s = find(p, tid);
	uint64_t before;
	bool ready;

	if (!s)
		return false;
	before = s->at_ns;
	ready = look(p, s);
	*out = s->is;
	if (!s->is.watched)
		return s->rank != NONE;
	return ready && s->stops < STOPS_MAX && now_ns() - before <= FRESH_NS;
}

void inject_pick__was_stopped(struct inject_pick *p, pid_t tid)
{
	struct seen *s = find(p, tid);

	if (s)
		s->stops++;
}

/* --- all of them -------------------------------------------------------------------------------- */

static int by_rank(const void *pa, const void *pb)
{
	const struct seen *const *a = pa, *const *b = pb;

	return (int)(*a)->rank - (int)(*b)->rank;
}

static void forget_ended(struct inject_pick *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->seen[i].listed)
			p->seen[kept++] = p->seen[i];
	p->n = kept;
}

/* Of more than there is room for, those that the kernel lists first. */
static void read_tids(struct inject_pick *p)
{
	struct dirent *d;
	char path[64];
	DIR *dir;

	for (size_t i = 0; i < p->n; i++)
		p->seen[i].listed = false;
	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		pid_t tid = atoi(d->d_name);
		struct seen *s = tid > 0 ? find(p, tid) : NULL;

		if (!s && tid > 0 && p->n < THREADS_MAX) {
			s = &p->seen[p->n++];
			*s = (struct seen){.is.tid = tid};
		}
		if (s)
			s->listed = true;
	}
	if (dir)
		closedir(dir);
	forget_ended(p);
}

void inject_pick__list(struct inject_pick *p)
{
	read_tids(p);
	p->ordered = p->watched = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct seen *s = &p->seen[i];

		look(p, s);
		if (s->rank == NONE || (s->is.watched && s->stops >= STOPS_MAX))
			continue;
		p->order[p->ordered++] = s;
		p->watched += s->is.watched;
	}
	qsort(p->order, p->ordered, sizeof(p->order[0]), by_rank);
}

size_t inject_pick__count(const struct inject_pick *p, bool watched)
{
	return watched ? p->watched : p->ordered - p->watched;
}

const struct picked *inject_pick__get(const struct inject_pick *p, bool watched, size_t i)
{
	return &p->order[i + (watched ? p->ordered - p->watched : 0)]->is;
}

bool inject_pick__has_limit(const struct inject_pick *p)
{
	return p->watched && p->order[p->ordered - 1]->rank == LIMITED_WAIT;
}

const char *inject_pick__why(struct inject_pick *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct wait *w = &p->seen[i].is.wait;

		if (!w->why)
			continue;
		snprintf(p->why, sizeof(p->why), "thread %d waits in %s, %s%s", p->seen[i].is.tid,
			 w->name, w->kind == WAIT_AGAIN ? "with " : "", w->why);
		return p->why;
	}
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Threads and processes of a recording; see roster.h. */
#include "trace/roster.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMM_MAX 16

struct thread {
	uint32_t tgid, tid;
	uint32_t process; /* its index */
	uint64_t start_ns, end_ns;
	char name[COMM_MAX];
};

struct process {
	uint32_t tgid;
	uint64_t start_ns, end_ns;
	uint64_t last_ns; /* the latest end of a thread of its */
	char comm[COMM_MAX];
	char *exe; /* NULL: unknown */
};

/* A hash by tid or tgid, of the index that it has now. Nothing is removed: there are at most as
 * many as there are pids. */
struct slot {
	uint32_t id; /* 0: free */
	uint32_t index;
};

struct table {
	struct slot *slots;
	uint32_t n, cap; /* cap is a power of two, or 0 */
};

struct roster {
	struct trace_writer *w;
	struct thread *threads;
	struct process *processes;
	uint32_t nthreads, cap_threads, nprocesses, cap_processes;
	struct table by_tid, by_tgid;
};

static struct slot *slot_of(const struct table *t, uint32_t id)
{
	uint32_t i = id * 2654435769u;

	for (i &= t->cap - 1; t->slots[i].id && t->slots[i].id != id; i = (i + 1) & (t->cap - 1))
		;
	return &t->slots[i];
}

/* NULL: not known. */
static struct slot *table__find(const struct table *t, uint32_t id)
{
	struct slot *s = t->cap ? slot_of(t, id) : NULL;

	return s && s->id ? s : NULL;
}

static int table__put(struct table *t, uint32_t id, uint32_t index)
{
	struct slot *s;

	if (2 * (t->n + 1) > t->cap) {
		struct table bigger = {.n = t->n, .cap = t->cap ? 2 * t->cap : 64};

		bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
		if (!bigger.slots)
			return -ENOMEM;
		for (uint32_t i = 0; i < t->cap; i++)
			if (t->slots[i].id)
				*slot_of(&bigger, t->slots[i].id) = t->slots[i];
		free(t->slots);
		*t = bigger;
	}
	s = slot_of(t, id);
	t->n += !s->id;
	*s = (struct slot){.id = id, .index = index};
	return 0;
}

static void *grow(void *list, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t more = *cap ? 2 * *cap : 64;
	void *p;

	if (n < *cap)
		return list;
	p = realloc(list, more * size);
	if (p)
		*cap = more;
	return p;
}

struct roster *roster__new(struct trace_writer *w)
{
	struct roster *r = calloc(1, sizeof(*r));

	if (r)
		r->w = w;
	return r;
}

void roster__free(struct roster *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->nprocesses; i++)
		free(r->processes[i].exe);
	free(r->threads);
	free(r->processes);
	free(r->by_tid.slots);
	free(r->by_tgid.slots);
	free(r);
}

/* False: it is gone. */
static bool read_comm(const char *path, char comm[COMM_MAX])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, comm, COMM_MAX);
	close(fd);
	if (n <= 0)
		return false;
	comm[n - 1] = '\0'; /* its newline */
	return true;
}

static int write_thread(struct roster *r, uint32_t index)
{
	const struct thread *t = &r->threads[index];
	struct trace_thread row = {
	    .tgid = t->tgid,
	    .tid = t->tid,
	    .name = (char *)t->name,
	    .start_ns = t->start_ns,
	    .end_ns = t->end_ns,
	};

	return trace_writer__thread(r->w, index, &row);
}

static int write_process(struct roster *r, uint32_t index)
{
	const struct process *p = &r->processes[index];
	struct trace_process row = {
	    .tgid = p->tgid,
	    .comm = (char *)p->comm,
	    .exe = p->exe ? p->exe : "",
	    .start_ns = p->start_ns,
	    .end_ns = p->end_ns,
	};

	return trace_writer__process(r->w, index, &row);
}

static bool read_thread_name(struct thread *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", t->tgid, t->tid);
	return read_comm(path, t->name);
}

/* Known by something of it that began later. */
static int note_start(struct roster *r, uint32_t index, uint64_t seen_ns)
{
	struct process *p = &r->processes[index];

	if (seen_ns >= p->start_ns)
		return 0;
	p->start_ns = seen_ns;
	return write_process(r, index);
}

int roster__thread(struct roster *r, uint32_t tgid, uint32_t tid, bool first, uint64_t start_ns,
		   uint32_t *index)
{
	struct slot *s = table__find(&r->by_tid, tid);
	struct thread *t;
	void *p;
	int err;

	if (s) {
		t = &r->threads[s->index];
		if (!first && !t->end_ns && t->tgid == tgid) {
			*index = s->index;
			/* What is around it began earlier and ends later. */
			if (start_ns >= t->start_ns)
				return 0;
			t->start_ns = start_ns;
			return note_start(r, t->process, start_ns);
		}
	}
	err = roster__process(r, tgid, start_ns);
	if (err)
		return err;
	p = grow(r->threads, r->nthreads, &r->cap_threads, sizeof(*r->threads));
	if (!p)
		return -ENOMEM;
	r->threads = p;
	t = &r->threads[r->nthreads];
	*t = (struct thread){.tgid = tgid, .tid = tid, .start_ns = start_ns};
	t->process = table__find(&r->by_tgid, tgid)->index;
	read_thread_name(t);
	err = table__put(&r->by_tid, tid, r->nthreads);
	if (err)
		return err;
	*index = r->nthreads++;
	return write_thread(r, *index);
}

/*
 * A process ends with the last of its threads. The notice of its end may be older than that: of
 * threads that end at once, any may be the one that finds no other alive.
 */
static int note_end(struct roster *r, uint32_t index, uint64_t thread_end_ns)
{
	struct process *p = &r->processes[index];

	if (thread_end_ns <= p->last_ns)
		return 0;
	p->last_ns = thread_end_ns;
	if (!p->end_ns || thread_end_ns <= p->end_ns)
		return 0;
	p->end_ns = thread_end_ns;
	return write_process(r, index);
}

int roster__thread_end(struct roster *r, uint32_t tid, uint64_t end_ns, const char *comm)
{
	struct slot *s = table__find(&r->by_tid, tid);
	struct thread *t;
	int err;

	if (!s || r->threads[s->index].end_ns)
		return 0;
	t = &r->threads[s->index];
	t->end_ns = end_ns;
	if (comm)
		snprintf(t->name, sizeof(t->name), "%s", comm);
	err = write_thread(r, s->index);
	return err ? err : note_end(r, t->process, end_ns);
}

static void read_process(struct process *p)
{
	char path[64], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/comm", p->tgid);
	read_comm(path, p->comm);
	snprintf(path, sizeof(path), "/proc/%u/exe", p->tgid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n <= 0)
		return;
	exe[n] = '\0';
	free(p->exe);
	p->exe = strdup(exe);
}

int roster__process(struct roster *r, uint32_t tgid, uint64_t seen_ns)
{
	struct slot *s = table__find(&r->by_tgid, tgid);
	void *p;
	int err;

	/* Its begin and its end are told by another way, which may be faster than the ring or slower. */
	if (s && (!r->processes[s->index].end_ns || seen_ns <= r->processes[s->index].end_ns))
		return note_start(r, s->index, seen_ns);
	p = grow(r->processes, r->nprocesses, &r->cap_processes, sizeof(*r->processes));
	if (!p)
		return -ENOMEM;
	r->processes = p;
	r->processes[r->nprocesses] = (struct process){.tgid = tgid, .start_ns = seen_ns};
	read_process(&r->processes[r->nprocesses]);
	err = table__put(&r->by_tgid, tgid, r->nprocesses);
	if (err) {
		free(r->processes[r->nprocesses].exe);
		return err;
	}
	return write_process(r, r->nprocesses++);
}

int roster__process_end(struct roster *r, uint32_t tgid, uint64_t end_ns)
{
	struct slot *s = table__find(&r->by_tgid, tgid);
	struct process *p;

	if (!s || r->processes[s->index].end_ns)
		return 0;
	p = &r->processes[s->index];
	p->end_ns = end_ns > p->last_ns ? end_ns : p->last_ns;
	return write_process(r, s->index);
}

int roster__process_exec(struct roster *r, uint32_t tgid, const char *comm)
{
	struct slot *s = table__find(&r->by_tgid, tgid);

	if (!s)
		return 0;
	read_process(&r->processes[s->index]);
	snprintf(r->processes[s->index].comm, COMM_MAX, "%s", comm);
	return write_process(r, s->index);
}

int roster__finish(struct roster *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->nthreads && !err; i++) {
		struct thread *t = &r->threads[i];
		const struct slot *s = table__find(&r->by_tid, t->tid);

		if (t->end_ns)
			continue;
		/* Another thread has its tid: it ended before that one was seen. One whose end
		 * found the ring full ended with its process at the latest. */
		if (s && s->index != i)
			t->end_ns = r->threads[s->index].start_ns;
		else
			t->end_ns = r->processes[t->process].end_ns;
		if (!t->end_ns)
			read_thread_name(t);
		err = write_thread(r, i);
	}
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Thread ids of another pid namespace; see ns_threads.h. */
#include "trace/ns_threads.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/proc_state.h"

struct known {
	uint32_t there, here;
};

struct ns_threads {
	pid_t pid;
	struct known *list; /* sorted by `there`; at most as many as there are ids */
	size_t n, cap;
};

static bool in_our_namespace(pid_t pid)
{
	char path[64], own[64] = "", its[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return readlink("/proc/self/ns/pid", own, sizeof(own) - 1) < 0 ||
	       readlink(path, its, sizeof(its) - 1) < 0 || !strcmp(own, its);
}

struct ns_threads *ns_threads__new(pid_t pid)
{
	struct ns_threads *t = in_our_namespace(pid) ? NULL : calloc(1, sizeof(*t));

	if (t) {
		t->pid = pid;
		ns_threads__look(t);
	}
	return t;
}

void ns_threads__free(struct ns_threads *t)
{
	if (!t)
		return;
	free(t->list);
	free(t);
}

/* Where it is, or belongs. */
static size_t place_of(const struct ns_threads *t, uint32_t there)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->list[mid].there < there)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void note(struct ns_threads *t, uint32_t there, uint32_t here)
{
	size_t at = place_of(t, there);

	if (at < t->n && t->list[at].there == there) {
		t->list[at].here = here; /* the id is another's now */
		return;
	}
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct known *p = realloc(t->list, cap * sizeof(*p));

		if (!p)
			return;
		t->list = p;
		t->cap = cap;
	}
	memmove(t->list + at + 1, t->list + at, (t->n - at) * sizeof(*t->list));
	t->list[at] = (struct known){there, here};
	t->n++;
}

/* Its id in the innermost namespace: the last one in the list. 0: it has ended. */
static uint32_t id_there(pid_t pid, uint32_t tid)
{
	char dir[64], *text = NULL, *line, *end;
	uint32_t id = 0;
	size_t len;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%u", pid, tid);
	if (proc_state__read_file(dir, "status", &text, &len))
		return 0;
	line = strstr(text, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	if (end) {
		*end = '\0';
		line = strrchr(line, '\t');
		id = line ? (uint32_t)strtoul(line, NULL, 10) : 0;
	}
	free(text);
	return id;
}

void ns_threads__look(struct ns_threads *t)
{
	struct dirent *d;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		uint32_t here = (uint32_t)strtoul(d->d_name, NULL, 10);
		uint32_t there = here ? id_there(t->pid, here) : 0;

		if (there)
			note(t, there, here);
	}
	if (dir)
		closedir(dir);
}

uint32_t ns_threads__tid(struct ns_threads *t, uint32_t tid)
{
	size_t at = place_of(t, tid);

	if (at == t->n || t->list[at].there != tid) {
		ns_threads__look(t);
		at = place_of(t, tid);
		if (at == t->n || t->list[at].there != tid) {
			note(t, tid, 0); /* asked for once */
			return 0;
		}
	}
	return t->list[at].here;
}

uint32_t ns_threads__tgid(const struct ns_threads *t)
{
	return (uint32_t)t->pid;
}

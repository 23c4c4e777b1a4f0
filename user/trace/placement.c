// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where qbpf's own threads run; see placement.h. */
#include "trace/placement.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

/* A CPU of which the target uses so much, of what it uses of its busiest, is left to it. */
#define BUSY_PCT 25

struct task_time {
	pid_t tid;
	uint64_t ticks;
};

struct placement {
	int cpu;
	cpu_set_t allowed; /* what the process could use at first */
	cpu_set_t now;
	uint64_t *used; /* by CPU, of this interval: ticks of the target's threads */
	struct task_time *tasks, *before; /* sorted by tid */
	size_t ntasks, cap_tasks, nbefore;
};

/* Of every thread of this process: the main one, the reader of the ring, the trace's writer. */
static int place_all(const cpu_set_t *set)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	int err = dir ? 0 : -errno;

	while (dir && (d = readdir(dir)))
		if (d->d_name[0] != '.' && sched_setaffinity(atoi(d->d_name), sizeof(*set), set) &&
		    errno != ESRCH)
			err = -errno;
	if (dir)
		closedir(dir);
	return err;
}

int placement__new(int cpu, struct placement **out, struct err *e)
{
	struct placement *p = calloc(1, sizeof(*p));
	int err = -ENOMEM;

	if (!p)
		return err_set(e, err, "out of memory");
	p->cpu = cpu;
	p->used = calloc(CPU_SETSIZE, sizeof(*p->used));
	if (!p->used) {
		err_set(e, err, "out of memory");
		goto out;
	}
	/* On a host with more CPUs than a cpu_set_t holds, they stay where they are. */
	if (sched_getaffinity(0, sizeof(p->allowed), &p->allowed))
		CPU_ZERO(&p->allowed);
	p->now = p->allowed;
	if (cpu != PLACEMENT_AUTO) {
		CPU_ZERO(&p->now);
		if (cpu >= 0 && cpu < CPU_SETSIZE)
			CPU_SET(cpu, &p->now);
		err = place_all(&p->now);
		if (err) {
			err_set(e, err, "--cpu %d: %s", cpu,
				err == -EINVAL ? "there is no such CPU, or it may not be used"
					       : strerror(-err));
			goto out;
		}
	}
	*out = p;
	return 0;
out:
	placement__free(p);
	return err;
}

void placement__free(struct placement *p)
{
	if (!p)
		return;
	if (CPU_COUNT(&p->allowed) && !CPU_EQUAL(&p->allowed, &p->now))
		place_all(&p->allowed);
	free(p->used);
	free(p->tasks);
	free(p->before);
	free(p);
}

/* utime + stime and the CPU that it ran on last. */
static bool read_task(pid_t pid, const char *tid, uint64_t *ticks, unsigned int *cpu)
{
	unsigned long long user, sys;
	char path[300], buf[1024];
	const char *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = '\0';
	/* Its name is in parentheses and may hold any of them. */
	at = strrchr(buf, ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
			  "%*d %*d %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u "
			  "%*u %*d %u",
			  &user, &sys, cpu) != 3)
		return false;
	*ticks = user + sys;
	return true;
}

static int by_tid(const void *x, const void *y)
{
	const struct task_time *a = x, *b = y;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static void add_process(struct placement *p, pid_t pid)
{
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		struct task_time t = {.tid = atoi(d->d_name)}, *was, *list;
		unsigned int cpu;

		if (d->d_name[0] == '.' || !read_task(pid, d->d_name, &t.ticks, &cpu))
			continue;
		was = p->nbefore ? bsearch(&t, p->before, p->nbefore, sizeof(t), by_tid) : NULL;
		if (cpu < CPU_SETSIZE)
			p->used[cpu] += was && was->ticks <= t.ticks ? t.ticks - was->ticks : 0;
		if (p->ntasks == p->cap_tasks) {
			p->cap_tasks = p->cap_tasks ? 2 * p->cap_tasks : 64;
			list = realloc(p->tasks, p->cap_tasks * sizeof(*list));
			if (!list) {
				p->cap_tasks = p->ntasks;
				break;
			}
			p->tasks = list;
		}
		p->tasks[p->ntasks++] = t;
	}
	if (dir)
		closedir(dir);
}

/* All CPUs of which the target uses little; if there is none, the one of which it uses least. */
static void choose(const struct placement *p, cpu_set_t *set)
{
	uint64_t sum = 0, most = 0;
	int least = -1;

	CPU_ZERO(set);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		sum += p->used[i];
		most = p->used[i] > most ? p->used[i] : most;
	}
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &p->allowed))
			continue;
		if (least < 0 || p->used[i] < p->used[least])
			least = i;
		if (!sum || p->used[i] * 100 < most * BUSY_PCT)
			CPU_SET(i, set);
	}
	if (!CPU_COUNT(set) && least >= 0)
		CPU_SET(least, set);
}

void placement__update(struct placement *p, const pid_t *pids, size_t n)
{
	bool first = !p->before;
	cpu_set_t set;

	if (p->cpu != PLACEMENT_AUTO || CPU_COUNT(&p->allowed) < 2)
		return;
	memset(p->used, 0, CPU_SETSIZE * sizeof(*p->used));
	for (size_t i = 0; i < n; i++)
		add_process(p, pids[i]);
	if (p->ntasks)
		qsort(p->tasks, p->ntasks, sizeof(*p->tasks), by_tid);
	if (!first) {
		choose(p, &set);
		if (!CPU_EQUAL(&set, &p->now) && !place_all(&set)) {
			p->now = set;
			log_dbg("qbpf keeps to %d of %d CPUs", CPU_COUNT(&set),
				CPU_COUNT(&p->allowed));
		}
	}
	free(p->before);
	p->before = p->tasks;
	p->nbefore = p->ntasks;
	p->tasks = NULL;
	p->ntasks = p->cap_tasks = 0;
}

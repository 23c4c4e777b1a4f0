/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells live processes from zombies and kernel threads, by /proc/N/stat. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/proc_state.h"

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h, field 9 of stat */
#define FILE_MAX   (64u << 20) /* 65,530 mappings of 1,000 bytes */

int proc_state__read_file(const char *proc, const char *name, char **text, size_t *len)
{
	char path[64], *buf = NULL, *p;
	size_t cap = 0, n = 0;
	ssize_t got;
	int fd, err = 0;

	*text = NULL;
	*len = 0;
	snprintf(path, sizeof(path), "%s/%s", proc, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		if (cap - n < 4096) {
			cap = cap ? cap * 2 : 65536;
			p = cap <= FILE_MAX ? realloc(buf, cap) : NULL;
			if (!p) {
				err = -ENOMEM;
				goto out;
			}
			buf = p;
		}
		got = read(fd, buf + n, cap - n - 1);
		if (got < 0 && errno != EINTR) {
			err = -errno;
			goto out;
		}
		if (got > 0)
			n += (size_t)got;
	} while (got);
	buf[n] = '\0';
	*text = buf;
	*len = n;
	buf = NULL;
out:
	free(buf);
	close(fd);
	return err;
}

/* State letter and flags of "/proc/N"; the name in between may hold anything, ')' too. */
static int read_stat(const char *proc, char *state, unsigned int *flags)
{
	char *text, *p;
	size_t len;
	int err = proc_state__read_file(proc, "stat", &text, &len);

	if (err)
		return err;
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) != 2)
		err = -EINVAL;
	free(text);
	return err;
}

static bool is_gone(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

int proc_state__live_task(pid_t pid, char *proc, size_t size, struct err *e)
{
	unsigned int flags;
	char state, dir[64], task[64];
	struct dirent *d;
	DIR *tasks;
	int err;

	if (pid <= 0)
		return err_set(e, -ESRCH, "no process %d", pid);
	snprintf(proc, size, "/proc/%d", pid);
	err = read_stat(proc, &state, &flags);
	if (err == -ENOENT || err == -ESRCH)
		return err_set(e, -ESRCH, "no process %d", pid);
	if (err)
		return err_set(e, err, "process %d: cannot read its state: %s", pid,
			       strerror(-err));
	if (flags & PF_KTHREAD)
		return err_set(e, -ENOENT, "process %d is a kernel thread: it has no user code",
			       pid);
	if (!is_gone(state))
		return 0;

	snprintf(dir, sizeof(dir), "/proc/%d/task", pid);
	tasks = opendir(dir);
	while (tasks && (d = readdir(tasks))) {
		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		snprintf(task, sizeof(task), "/proc/%.20s", d->d_name);
		if (read_stat(task, &state, &flags) || is_gone(state))
			continue;
		snprintf(proc, size, "%s", task);
		closedir(tasks);
		return 0;
	}
	if (tasks)
		closedir(tasks);
	return err_set(e, -ENOENT, "process %d is a zombie: it has ended and waits for its parent",
		       pid);
}

int proc_state__no_memory(pid_t pid, const char *proc, struct err *e)
{
	unsigned int flags;
	char state;

	if (read_stat(proc, &state, &flags))
		return err_set(e, -ESRCH, "no process %d: it has just ended", pid);
	if (is_gone(state))
		return err_set(e, -ENOENT,
			       "process %d is a zombie: it has ended and waits for its parent",
			       pid);
	return err_set(e, -ENOENT, "process %d has no user memory", pid);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What this host has for tracing CUDA; see host_cuda.h. */
#include "trace/host_cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/agent_file.h"
#include "trace/host_checks.h"

#define KERNEL_DRIVER "/proc/driver/nvidia/version"
#define LOAD_MOST_S   10

/* What the child tells. */
struct found {
	bool all;
	struct cuda_library driver, cupti;
	bool cupti_fits;
};

/* Does the dynamic linker say that there is no such file, and not that one which it needs is missing? */
static bool is_absent(const char *name, const char *error)
{
	const char *none = strerror(ENOENT);
	size_t len = strlen(name), all = strlen(error), tail = strlen(none);

	return !strncmp(error, name, len) && error[len] == ':' && all >= tail &&
	       !strcmp(error + all - tail, none);
}

/* The first of several that are there and cannot be loaded is told of. */
static void keep_error(const char *name, struct cuda_library *l)
{
	const char *error = dlerror();

	if (error && !*l->error && !is_absent(name, error))
		snprintf(l->error, sizeof(l->error), "%s", error);
}

/* Loads it as a program does, and asks it for its version by a function that needs no initialisation. */
static bool try_library(const char *name, const char *get_version, struct cuda_library *l)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	int (*get)(int *);

	if (!handle) {
		keep_error(name, l);
		return false;
	}
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, l->path))
		snprintf(l->path, sizeof(l->path), "%s", name);
	*(void **)&get = dlsym(handle, get_version);
	if (!get || get(&l->version))
		l->version = 0;
	return true;
}

static bool try_cupti(const char *dir, const char *tail, int major, struct cuda_library *l)
{
	char name[PATH_MAX];
	int n = snprintf(name, sizeof(name), "%s%slibcupti.so", dir, tail);

	if (n < 0 || n > (int)sizeof(name) - 16)
		return false;
	if (major)
		snprintf(name + n, sizeof(name) - (size_t)n, ".%d", major);
	return try_library(name, "cuptiGetVersion", l);
}

/* In the agent's order (probes/cupti/find.c), which looks beside the program's libcudart first. */
static bool find_cupti(int major, struct cuda_library *l)
{
	static const char *const tails[] = {"/lib64/", "/extras/CUPTI/lib64/",
					    "/targets/x86_64-linux/lib/", "/lib/"};
	const char *homes[] = {secure_getenv("CUDA_HOME"), secure_getenv("CUDA_PATH"), "",
			       "/usr/local/cuda"};

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++) {
		if (homes[i] && !*homes[i] && try_cupti("", "", major, l))
			return true;
		for (size_t k = 0; homes[i] && *homes[i] && k < sizeof(tails) / sizeof(tails[0]);
		     k++)
			if (try_cupti(homes[i], tails[k], major, l))
				return true;
	}
	return false;
}

static void look(struct found *f)
{
	int major;

	try_library("libcuda.so.1", "cuDriverGetVersion", &f->driver);
	major = f->driver.version / 1000;
	f->cupti_fits = find_cupti(major, &f->cupti);
	if (!f->cupti_fits && major)
		find_cupti(0, &f->cupti);
	f->all = true;
}

/* What the libraries print is no part of qbpf's output, nor may what they start keep it open. */
static void leave_output(void)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (null < 0)
			close(fd);
		else
			dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

/* Code that is not ours runs in a child: what it does there, or that it hangs, does not matter. */
static void find_libraries(struct host_cuda *c)
{
	struct found *f =
	    mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (f == MAP_FAILED)
		return;
	pid = fork();
	if (!pid) {
		signal(SIGALRM, SIG_DFL);
		alarm(LOAD_MOST_S);
		leave_output();
		look(f);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->libraries_known = f->all;
	c->driver = f->driver;
	c->cupti = f->cupti;
	c->cupti_fits = f->cupti_fits;
	munmap(f, sizeof(*f));
}

/* A process that init adopts: what yama lets one do to one's own children says nothing of others. */
static pid_t orphan(const int until[2])
{
	int told[2];
	pid_t child, pid = -1;
	char byte;

	if (pipe(told))
		return -1;
	child = fork();
	if (!child) {
		pid = fork();
		if (!pid) {
			close(until[1]);
			close(told[0]);
			close(told[1]);
			_exit(read(until[0], &byte, 1) != 0); /* qbpf's end closes it, too */
		}
		_exit(write(told[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	close(told[1]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || read(told[0], &pid, sizeof(pid)) != sizeof(pid))
		pid = -1;
	close(told[0]);
	return pid;
}

static int try_ptrace(void)
{
	int until[2], err;
	pid_t pid;

	if (pipe(until))
		return -errno;
	pid = orphan(until);
	err = pid < 0 ? -EAGAIN : 0;
	if (!err && ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		err = -errno;
	close(until[1]);
	close(until[0]);
	while (!err && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return err;
}

void host_cuda__find(struct host_cuda *c)
{
	char scope[16];

	memset(c, 0, sizeof(*c));
	if (agent_file__find(c->agent, sizeof(c->agent), &c->agent_error))
		c->agent[0] = '\0';
	find_libraries(c);
	c->kernel_driver = !access(KERNEL_DRIVER, F_OK);
	c->ptrace_scope = -1;
	if (!host_read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)))
		c->ptrace_scope = atoi(scope);
	c->ptrace = try_ptrace();
}

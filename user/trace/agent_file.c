// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finding the CUDA agent; see agent_file.h. */
#include "trace/agent_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/symbols.h"
#include "out/text.h"

#define AGENT_NAME "libqbpf_cupti.so"

static int take(const char *candidate, char *path, size_t size)
{
	char real[PATH_MAX];

	if (!realpath(candidate, real))
		return -errno;
	if (access(real, R_OK))
		return -errno;
	return snprintf(path, size, "%s", real) < (int)size ? 0 : -ENAMETOOLONG;
}

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);
}

/* Has it the function by which an agent is brought in? */
static bool is_agent(int fd, const char *path)
{
	const struct symbols_opts opts = {.no_demangle = true};
	struct elf_image *img = NULL;
	struct func_table *t = NULL;
	struct err why;
	bool found = false;
	int err = elf_image__open(fd, path, &img, &why);

	if (!err)
		err = func_table__read(img, &opts, &t, &why);
	for (size_t i = 0; !err && !found && i < t->n; i++)
		found = !(t->funcs[i].flags & FUNC_IMPORTED) &&
			!strcmp(t->funcs[i].name, "qbpf_agent_start");
	func_table__free(t);
	elf_image__free(img);
	return found;
}

/* To open a FIFO would wait for its writer, to open a device may do something. */
static int open_regular(const char *path, const char **why)
{
	struct stat st;
	int fd;

	*why = NULL;
	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		*why = "not a regular file";
		return -ENOEXEC;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int find_named(const char *named, char *path, size_t size, struct err *e)
{
	const char *why = NULL;
	char *shown;
	int fd = -1, err = take(named, path, size);

	if (!err) {
		fd = open_regular(path, &why);
		err = fd < 0 ? fd : 0;
	}
	if (!err && !is_elf(fd))
		why = "no ELF file";
	else if (!err && !is_agent(fd, path))
		why = "it is not qbpf's CUDA agent";
	if (why)
		err = -ENOEXEC;
	if (fd >= 0)
		close(fd);
	if (!err)
		return 0;
	/* The name may have come from anyone, and the line goes to a terminal. */
	shown = text__printable(named, text__utf8());
	err_set(e, err, "QBPF_AGENT=%s: %s", shown ? shown : "?", why ? why : strerror(-err));
	free(shown);
	return err;
}

int agent_file__find(char *path, size_t size, struct err *e)
{
	static const char *const beside[] = {"/" AGENT_NAME, "/../lib/qbpf/" AGENT_NAME};
	const char *named = getenv("QBPF_AGENT");
	char exe[PATH_MAX], candidate[PATH_MAX + 64];
	ssize_t n;

	if (named && *named)
		return find_named(named, path, size, e);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return err_set(e, -errno, "/proc/self/exe: %s", strerror(errno));
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s%s", exe, beside[i]);
		if (!take(candidate, path, size))
			return 0;
	}
	return err_set(e, -ENOENT,
		       "the CUDA agent %s is not there: it is built where CUDA's headers are "
		       "(make CUDA_HOME=...), or named by QBPF_AGENT",
		       AGENT_NAME);
}

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
#include <unistd.h>

#include "elf/symbols.h"

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

static bool is_elf(const char *path)
{
	char magic[SELFMAG];
	FILE *f = fopen(path, "re");
	bool is = f && fread(magic, 1, SELFMAG, f) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);

	if (f)
		fclose(f);
	return is;
}

/* Has it the function by which an agent is brought in? */
static bool is_agent(const char *path)
{
	const struct symbols_opts opts = {.no_demangle = true};
	struct elf_image *img = NULL;
	struct func_table *t = NULL;
	struct err why;
	bool found = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : elf_image__open(fd, path, &img, &why);

	if (!err)
		err = func_table__read(img, &opts, &t, &why);
	for (size_t i = 0; !err && !found && i < t->n; i++)
		found = !(t->funcs[i].flags & FUNC_IMPORTED) &&
			!strcmp(t->funcs[i].name, "qbpf_agent_start");
	func_table__free(t);
	elf_image__free(img);
	if (fd >= 0)
		close(fd);
	return found;
}

static int check_named(const char *named, const char *path, struct err *e)
{
	if (!is_elf(path))
		return err_set(e, -ENOEXEC, "QBPF_AGENT=%s: no ELF file", named);
	if (!is_agent(path))
		return err_set(e, -ENOEXEC, "QBPF_AGENT=%s: it is not qbpf's CUDA agent", named);
	return 0;
}

int agent_file__find(char *path, size_t size, struct err *e)
{
	static const char *const beside[] = {"/" AGENT_NAME, "/../lib/qbpf/" AGENT_NAME};
	const char *named = getenv("QBPF_AGENT");
	char exe[PATH_MAX], candidate[PATH_MAX + 64];
	ssize_t n;
	int err;

	if (named && *named) {
		err = take(named, path, size);
		if (err)
			return err_set(e, err, "QBPF_AGENT=%s: %s", named, strerror(-err));
		return check_named(named, path, e);
	}
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

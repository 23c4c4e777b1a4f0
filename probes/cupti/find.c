// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which libcupti belongs to the CUDA of this process, and its functions.
 *
 * Libraries are known by the symbols they define, not by their names: Python wheels carry renamed
 * copies. The libcupti is the one that is mapped already, else the one beside a mapped libcudart,
 * else the toolkit's. Its major version has to be the driver's; when there is no driver, that of
 * the runtime.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/cupti/agent.h"

#define PATH_BYTES 512

struct cupti cupti;

struct libraries {
	char cudart[PATH_BYTES]; /* the first */
	char cuda[PATH_BYTES];
	char cupti[PATH_BYTES];
	unsigned cudarts;
	int (*driver_get_version)(int *);
	int (*runtime_get_version)(int *);
};

static int (*driver_get_version)(int *);

/* The symbol, if the library itself defines it: dlsym alone would look into its dependencies too. */
static void *own_symbol(void *handle, const char *name)
{
	struct link_map *map = NULL, *where = NULL;
	void *symbol = dlsym(handle, name);
	Dl_info info;

	if (!symbol || dlinfo(handle, RTLD_DI_LINKMAP, &map) ||
	    !dladdr1(symbol, &info, (void **)&where, RTLD_DL_LINKMAP))
		return NULL;
	return where == map ? symbol : NULL;
}

static void look_at(struct libraries *l, const char *path)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *symbol;

	if (!handle)
		return;
	symbol = own_symbol(handle, "cudaRuntimeGetVersion");
	if (symbol && !l->cudarts++) {
		set_text(l->cudart, sizeof(l->cudart), path);
		l->runtime_get_version = (int (*)(int *))symbol;
	}
	symbol = own_symbol(handle, "cuDriverGetVersion");
	if (symbol && !l->driver_get_version) {
		set_text(l->cuda, sizeof(l->cuda), path);
		l->driver_get_version = (int (*)(int *))symbol;
	}
	if (!l->cupti[0] && own_symbol(handle, "cuptiActivityRegisterCallbacks"))
		set_text(l->cupti, sizeof(l->cupti), path);
	dlclose(handle);
}

/* One line of the memory map; `last` is the path of the line before. */
static void look_at_line(struct libraries *l, char *line, char *last)
{
	static const char gone[] = " (deleted)";
	char *path = strchr(line, '/');
	size_t n;

	if (!path)
		return;
	n = strlen(path);
	if (n > sizeof(gone) && !strcmp(path + n - (sizeof(gone) - 1), gone))
		path[n - (sizeof(gone) - 1)] = 0;
	if (!strcmp(path, last))
		return;
	set_text(last, PATH_BYTES, path);
	look_at(l, path);
}

/* What is mapped. Needs no memory but the stack's. */
static void find_libraries(struct libraries *l)
{
	char buf[4096], last[PATH_BYTES] = "", *line, *end;
	size_t have = 0;
	ssize_t got;
	/* Not /proc/self: of a process whose first thread has ended that shows nothing. */
	int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

	memset(l, 0, sizeof(*l));
	if (fd < 0)
		return;
	while ((got = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		have += (size_t)got;
		buf[have] = 0;
		for (line = buf; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			look_at_line(l, line, last);
		}
		have = strlen(line);
		if (have >= sizeof(buf) - 1) /* a path longer than any we can use */
			have = 0;
		memmove(buf, line, have);
	}
	close(fd);
	dlerror(); /* the target must not find our misses there */
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *count)
{
	(void)size;
	*(unsigned long long *)count = info->dlpi_adds;
	return 1;
}

/* Looks at the memory map only when something was loaded since the last time. */
bool cuda_is_mapped(void)
{
	static unsigned long long looked_at;
	unsigned long long loads = 0;
	struct libraries l;

	dl_iterate_phdr(count_loads, &loads);
	if (loads && loads == looked_at)
		return false;
	looked_at = loads;
	find_libraries(&l);
	return l.cudarts || l.driver_get_version;
}

int driver_version(void)
{
	int version = 0;

	if (!driver_get_version || driver_get_version(&version))
		return 0;
	return version;
}

/* The toolkit's major version: until 12.9 CUPTI counted its API versions, then it wrote 130001. */
static uint32_t major_of(uint32_t version)
{
	if (version >= 10000)
		return version / 10000;
	return version >= 19 ? 12 : version >= 13 ? 11 : 10;
}

/* Looks the functions up. */
static bool bind_functions(void *handle)
{
#define X(needed, name, args)                                                                      \
	cupti.name = (int(*) args)dlsym(handle, #name);                                            \
	if (needed && !cupti.name)                                                                 \
		return fault(QBPF_RING_OLD_CUPTI, #name, 0);
	CUPTI_FUNCTIONS(X)
#undef X
	return true;
}

/* 1: it is the one, 0: it is not there, -1: it is of another major version, -2: it lacks something. */
static int try_path(const char *path, uint32_t major)
{
	struct qbpf_ring_head *h = agent.ring.head;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	uint32_t version = 0;
	int code;

	if (!handle)
		return 0;
	set_text(h->cupti_path, sizeof(h->cupti_path),
		 !dlinfo(handle, RTLD_DI_LINKMAP, &map) && map->l_name[0] ? map->l_name : path);
	if (!bind_functions(handle))
		return -2;
	code = CUPTI(cuptiGetVersion, &version);
	if (code != CUPTI_OK) {
		fault(QBPF_RING_CUPTI_CALL, "cuptiGetVersion", code);
		return -2;
	}
	h->cupti_version = version;
	h->cupti_major = major_of(version);
	if (!major || h->cupti_major == major)
		return 1;
	dlclose(handle);
	return -1;
}

/* Tries libcupti in dir + tail; the same results. */
static int try_folder(const char *dir, size_t len, const char *tail, uint32_t major)
{
	char path[PATH_BYTES + 64];

	if (!len || len > PATH_BYTES)
		return 0;
	if (major)
		snprintf(path, sizeof(path), "%.*s%s/libcupti.so.%u", (int)len, dir, tail, major);
	else
		snprintf(path, sizeof(path), "%.*s%s/libcupti.so", (int)len, dir, tail);
	return try_path(path, major);
}

static int try_toolkit(const char *home, uint32_t major)
{
	static const char *const tails[] = {"/lib64", "/extras/CUPTI/lib64",
					    "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib",
					    "/lib"};
	int worst = 0, got;
	size_t i;

	for (i = 0; home && i < sizeof(tails) / sizeof(tails[0]); i++) {
		got = try_folder(home, strlen(home), tails[i], major);
		if (got == 1)
			return got;
		worst = got < worst ? got : worst;
	}
	return worst;
}

static int try_beside(const char *cudart, uint32_t major)
{
	static const char *const tails[] = {
	    "", "/../extras/CUPTI/lib64", "/../../../extras/CUPTI/lib64", "/../../cuda_cupti/lib"};
	const char *slash = strrchr(cudart, '/');
	int worst = 0, got;
	size_t i;

	for (i = 0; slash && i < sizeof(tails) / sizeof(tails[0]); i++) {
		got = try_folder(cudart, (size_t)(slash - cudart), tails[i], major);
		if (got == 1)
			return got;
		worst = got < worst ? got : worst;
	}
	return worst;
}

/* In the order of preference, until one fits; major 0: any. */
static int try_all(const struct libraries *l, uint32_t major)
{
	char soname[32];
	int got[6] = {0}, worst = 0;
	size_t i;

	if (l->cupti[0]) /* a second copy in the process would be worse than none */
		return try_path(l->cupti, major);
	snprintf(soname, sizeof(soname), "libcupti.so.%u", major);
	for (i = 0; i < sizeof(got) / sizeof(got[0]); i++) {
		switch (i) {
		case 0:
			got[i] = try_beside(l->cudart, major);
			break;
		case 1:
			got[i] = try_toolkit(secure_getenv("CUDA_HOME"), major);
			break;
		case 2:
			got[i] = try_toolkit(secure_getenv("CUDA_PATH"), major);
			break;
		case 3:
			got[i] = major ? try_path(soname, major) : 0;
			break;
		case 4:
			got[i] = try_toolkit("/usr/local/cuda", major);
			break;
		default:
			got[i] = try_path("libcupti.so", major);
		}
		if (got[i] == 1)
			return 1;
		worst = got[i] < worst ? got[i] : worst;
	}
	return worst;
}

/* A stubs folder on the search path: its libcuda does nothing, and CUPTI fails obscurely. */
static bool is_stub(const char *path)
{
	return strstr(path, "/stubs/") != NULL;
}

static bool stubs_on_path(void)
{
	const char *path = secure_getenv("LD_LIBRARY_PATH"), *end;

	for (; path && *path; path = *end ? end + 1 : end) {
		end = path + strcspn(path, ":");
		while (end > path && end[-1] == '/' && end - path > 1)
			end--;
		if (end - path >= 6 && !memcmp(end - 6, "/stubs", 6))
			return true;
		end = path + strcspn(path, ":");
	}
	return false;
}

bool cupti_load(void)
{
	struct qbpf_ring_head *h = agent.ring.head;
	struct libraries l;
	int version = 0, got;

	find_libraries(&l);
	h->runtimes = l.cudarts;
	if (stubs_on_path())
		warn(QBPF_RING_WARN_STUBS);
	if (is_stub(l.cuda))
		return fault(QBPF_RING_STUBS, "", 0);
	driver_get_version = l.driver_get_version;
	version = driver_version();
	h->driver_version = (uint32_t)version;
	if (!version && l.runtime_get_version && l.runtime_get_version(&version))
		version = 0;
	got = try_all(&l, (uint32_t)version / 1000);
	dlerror();
	if (got == 1) {
		h->fault = QBPF_RING_NO_FAULT; /* of a copy tried before */
		return true;
	}
	if (got == -1)
		return fault(QBPF_RING_OTHER_MAJOR, "", 0);
	if (got == -2)
		return false;
	return fault(QBPF_RING_NO_CUPTI, "", 0);
}

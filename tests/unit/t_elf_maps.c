// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of /proc/PID/maps, and the maps of this very process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "elf/maps.h"

static struct proc_maps *parse(const char *text, size_t len)
{
	/* exact size: AddressSanitizer sees any byte too many */
	char *copy = malloc(len ? len : 1);
	struct proc_maps *m = NULL;

	memcpy(copy, text, len);
	assert_int_equal(proc_maps__parse(copy, len, &m), 0);
	free(copy);
	return m;
}

static void t_parse(void **state)
{
	static const char text[] =
	    "00400000-00401000 r--p 00000000 08:01 1234                       /opt/my prog\n"
	    "00401000-00402000 r-xp 00001000 08:01 1234                       /opt/my prog\n"
	    "00402000-00403000 rw-p 00002000 08:01 1234                       /opt/my prog\n"
	    "01c3a000-01c5b000 rw-p 00000000 00:00 0                          [heap]\n"
	    "7f0000000000-7f0000001000 r--p 00000000 08:01 77                 /only/data.mo\n"
	    "7f1000000000-7f1000001000 r-xp 00000000 00:00 0\n"
	    "7f2000000000-7f2000001000 r-xp 00003000 103:2a 99                "
	    "/usr/lib/libx.so.1 (deleted)\n"
	    "7f2000001000-7f2000002000 r-xp 00004000 103:2a 99                "
	    "/usr/lib/libx.so.1 (deleted)\n"
	    "7f2100000000-7f2100001000 r-xp 00000000 103:2a 100               /usr/lib/libx.so.1\n"
	    "7f3000000000-7f3000001000 r-xp 00000000 00:01 5                  "
	    "/memfd:jit code (deleted)\n"
	    "7f4000000000-7f4000001000 --xs 00000000 08:01 6                  "
	    "/new\\012line\\040\\\n"
	    "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                  [vdso]\n"
	    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]\n"
	    "ffffffffff700000-ffffffffffffffff r-xp 00000000 08:01 7          /last without "
	    "newline";
	struct proc_maps *m = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(m->n, 6);
	assert_string_equal(m->objects[0].path, "/opt/my prog");
	assert_int_equal(m->objects[0].nranges, 3);
	assert_int_equal(m->objects[0].ranges[1].start, 0x401000);
	assert_int_equal(m->objects[0].ranges[1].end, 0x402000);
	assert_int_equal(m->objects[0].ranges[1].off, 0x1000);
	assert_true(m->objects[0].ranges[1].exec);
	assert_false(m->objects[0].ranges[1].write);
	assert_true(m->objects[0].ranges[2].write);
	assert_int_equal(m->objects[0].ino, 1234);
	assert_int_equal(m->objects[0].dev, makedev(8, 1));
	assert_int_equal(m->objects[0].fd, -1);
	assert_false(m->objects[0].deleted);
	assert_string_equal(m->objects[1].path, "/usr/lib/libx.so.1");
	assert_true(m->objects[1].deleted);
	assert_int_equal(m->objects[1].nranges, 2);
	assert_int_equal(m->objects[1].dev, makedev(0x103, 0x2a));
	/* the replacement at the same path is another object */
	assert_string_equal(m->objects[2].path, "/usr/lib/libx.so.1");
	assert_false(m->objects[2].deleted);
	assert_string_equal(m->objects[3].path, "/memfd:jit code");
	assert_string_equal(m->objects[4].path, "/new\nline\\040\\");
	assert_string_equal(m->objects[5].path, "/last without newline");
	proc_maps__free(m);
}

static void t_parse_garbage(void **state)
{
	static const char *const texts[] = {
	    "",
	    "\n\n\n",
	    "garbage",
	    "00400000-00401000",
	    "00400000-00401000 r-xp",
	    "00400000-00401000 r-xp 0 8:1",
	    "00401000-00400000 r-xp 00000000 08:01 1 /backwards",
	    "00400000-00401000 r-x 00000000 08:01 1 /short permissions",
	    "zz-00401000 r-xp 00000000 08:01 1 /not hexadecimal",
	    "00400000-00401000 rw-p 00000000 08:01 1 /no code",
	};
	struct proc_maps *m;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		m = parse(texts[i], strlen(texts[i]));
		assert_int_equal(m->n, 0);
		proc_maps__free(m);
	}
	m = parse("1-2 r-xp 0 8:1 1", 16); /* no path at all */
	assert_int_equal(m->n, 1);
	assert_string_equal(m->objects[0].path, "");
	proc_maps__free(m);
	proc_maps__free(NULL);
}

static void t_many_ranges(void **state)
{
	size_t cap = 4000 * 100, n = 0;
	char *text = malloc(cap);
	struct proc_maps *m;

	(void)state;
	for (unsigned int i = 0; i < 4000; i++)
		n += (size_t)snprintf(text + n, cap - n, "%x000-%x000 r-xp %x000 08:01 %u /f%u\n",
				      i + 16, i + 17, i, 1 + i % 3, i % 3);
	m = parse(text, n);
	assert_int_equal(m->n, 3);
	assert_int_equal(m->objects[0].nranges, 1334);
	assert_int_equal(m->objects[2].nranges, 1333);
	assert_int_equal(m->objects[2].ranges[1332].start, (3998 + 16) * 0x1000);
	proc_maps__free(m);
	free(text);
}

static void t_self(void **state)
{
	size_t exes = 0, ldsos = 0, mine = 0;
	uint64_t here = (uint64_t)(uintptr_t)&t_self;
	struct proc_maps *m;
	struct stat exe, st;
	struct err e;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	assert_int_equal(proc_maps__read(getpid(), &m, &e), 0);
	for (size_t i = 0; i < m->n; i++) {
		const struct map_object *o = &m->objects[i];

		assert_true(o->fd >= 0);
		assert_int_equal(fstat(o->fd, &st), 0);
		assert_int_equal(st.st_ino, o->ino);
		exes += o->is_exe;
		ldsos += o->is_ldso;
		if (o->is_exe)
			assert_int_equal(st.st_ino, exe.st_ino);
		if (o->is_ldso)
			assert_non_null(strstr(o->path, "/ld-"));
		for (size_t j = 0; j < o->nranges; j++)
			if (here >= o->ranges[j].start && here < o->ranges[j].end)
				mine += o->is_exe && o->ranges[j].exec;
	}
	assert_int_equal(exes, 1);
	assert_int_equal(ldsos, 1);
	assert_int_equal(mine, 1);
	proc_maps__free(m);
}

static int library(uint8_t fill)
{
	int fd = memfd_create("library", MFD_CLOEXEC);
	uint8_t page[4096];

	memset(page, fill, sizeof(page));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	return fd;
}

static struct map_object *at(struct proc_maps *m, const void *p)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->objects[i].ranges[0].start == (uintptr_t)p)
			return &m->objects[i];
	fail_msg("%p is not mapped", p);
	return NULL;
}

/* dlclose() and dlopen() between the reading of maps and the opening: another file is there. */
static void t_replaced(void **state)
{
	int one = library(1), two = library(2), n = 0;
	static char text[1 << 20];
	struct proc_maps *m;
	struct stat st;
	ssize_t got;
	void *p;
	int fd;

	(void)state;
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, one, 0);
	assert_true(p != MAP_FAILED);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	while ((got = read(fd, text + n, sizeof(text) - (size_t)n)) > 0)
		n += (int)got;
	close(fd);

	m = parse(text, (size_t)n);
	proc_maps__open(m, "/proc/self");
	assert_true(at(m, p)->fd >= 0 || at(m, p)->open_errno == EPERM);
	if (at(m, p)->fd >= 0) {
		assert_int_equal(fstat(at(m, p)->fd, &st), 0);
		assert_int_equal(st.st_ino, at(m, p)->ino);
	}
	proc_maps__free(m);

	m = parse(text, (size_t)n);
	assert_ptr_equal(mmap(p, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, two, 0), p);
	proc_maps__open(m, "/proc/self");
	assert_int_equal(at(m, p)->fd, -1);
	assert_true(at(m, p)->open_errno);
	proc_maps__free(m);

	/* Gone altogether. */
	m = parse(text, (size_t)n);
	munmap(p, 4096);
	proc_maps__open(m, "/proc/self");
	assert_int_equal(at(m, p)->fd, -1);
	assert_true(at(m, p)->open_errno);
	proc_maps__free(m);
	close(one);
	close(two);
}

static void t_no_such_process(void **state)
{
	struct proc_maps *m;
	struct err e;

	(void)state;
	assert_int_equal(proc_maps__read(0, &m, &e), -ESRCH);
	assert_int_equal(proc_maps__read(-1, &m, &e), -ESRCH);
	assert_int_equal(proc_maps__read(0x7ffffff0, &m, &e), -ESRCH);
	assert_string_equal(e.text, "no process 2147483632");
	assert_null(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_parse),		 cmocka_unit_test(t_parse_garbage),
	    cmocka_unit_test(t_many_ranges),	 cmocka_unit_test(t_self),
	    cmocka_unit_test(t_no_such_process), cmocka_unit_test(t_replaced),
	};

	return cmocka_run_group_tests_name("elf_maps", tests, NULL, NULL);
}

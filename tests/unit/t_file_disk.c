// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The writer and what it writes to: full disks, pipes, devices, owners, what was there before. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "file/reader.h"
#include "file/writer.h"

static char dir[64], path[128];

static int start(const char *to, struct trace_writer **w, struct err *e)
{
	struct trace_meta meta = {.qbpf_version = "1", .start_ns = 1};
	struct trace_thread thread = {.name = "t"};
	struct trace_span span = {.name = "s"};
	int err = trace_writer__new(to, &meta, w, e);

	if (err)
		return err;
	assert_int_equal(trace_writer__span(*w, &span), 0);
	assert_int_equal(trace_writer__thread(*w, 0, &thread), 0);
	return 0;
}

/* Hands in n events that compress badly; stops at the first error. */
static int events(struct trace_writer *w, uint64_t n)
{
	static uint64_t seed = 1;
	int err = 0;

	for (uint64_t i = 0; i < n && !err; i++) {
		struct event ev = {.kind = EVENT_SPAN, .span = 1};

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		ev.start_ns = seed >> 4;
		ev.end_ns = ev.start_ns + (seed >> 40);
		err = trace_writer__event(w, &ev);
	}
	return err;
}

/* Events in the file, all of which can be read. */
static uint64_t read_file(const char *file, bool clean)
{
	const struct event *batch;
	struct trace_reader *r;
	uint64_t total = 0;
	struct err e;
	size_t n;
	int more;

	if (trace_reader__open(file, &r, &e))
		fail_msg("%s", e.text);
	while ((more = trace_reader__next(r, &batch, &n, &e)) > 0)
		total += n;
	if (more)
		fail_msg("%s", e.text);
	assert_int_equal(trace_reader__info(r)->clean, clean);
	/* It ends with a whole block: nothing torn was left behind. */
	if (!clean)
		assert_int_equal(trace_reader__info(r)->cut_at, trace_reader__info(r)->file_bytes);
	trace_reader__free(r);
	return total;
}

static void check_file(const char *file, bool clean, uint64_t least, uint64_t most)
{
	assert_in_range(read_file(file, clean), least, most);
}

/* The error stays, every call tells of it, and nothing goes to the file any more. */
static void check_sticky(struct trace_writer *w, const char *file, int want)
{
	struct trace_span span = {.name = "s"};
	struct trace_clock clock = {0};
	struct event ev = {.kind = EVENT_SPAN, .span = 1};
	uint64_t accepted = trace_writer__events(w);
	uint64_t bytes = trace_writer__bytes(w);
	struct stat st;
	struct err e = {""};

	assert_int_equal(trace_writer__error(w), want);
	for (int twice = 0; twice < 2; twice++) {
		assert_int_equal(trace_writer__event(w, &ev), want);
		assert_int_equal(trace_writer__span(w, &span), want);
		assert_int_equal(trace_writer__clock(w, &clock), want);
		assert_int_equal(trace_writer__flush(w), want);
		assert_int_equal(trace_writer__aggregates(w, "x", 1), want);
	}
	assert_int_equal(trace_writer__events(w), accepted);
	assert_int_equal(trace_writer__close(w, 9, NULL, 0, &e), want);
	assert_non_null(strstr(e.text, strerror(-want)));
	assert_int_equal(trace_writer__bytes(w), bytes);
	assert_int_equal(stat(file, &st), 0);
	if (S_ISREG(st.st_mode)) {
		assert_int_equal(st.st_size, bytes);
		assert_int_equal(trace_writer__held(w, 1), read_file(file, false));
	}
	assert_int_equal(trace_writer__held(w, 2), 0);
	trace_writer__free(w);
}

/* Events until the error shows: the writer's thread meets it later than the call. */
static int events_until_error(struct trace_writer *w)
{
	int err = 0;

	for (int i = 0; i < 5000 && !err; i++) {
		err = events(w, 5000);
		if (!err)
			err = trace_writer__flush(w);
	}
	return err;
}

/* A limit on the file's size; SIGXFSZ would end this program. */
static void t_size_limit(void **state)
{
	static const rlim_t limits[] = {64, 100, 300, 100000, 300001};
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit = {limits[i], before.rlim_max};
		struct trace_writer *w;
		struct stat st;
		int err;

		assert_int_equal(start(path, &w, NULL), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		err = events_until_error(w);
		assert_int_equal(err, -EFBIG);
		check_sticky(w, path, -EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(stat(path, &st), 0);
		assert_in_range(st.st_size, 64, limits[i]);
		check_file(path, false, limits[i] > 90000 ? 4096 : 0, limits[i]);
		assert_int_equal(unlink(path), 0);
	}
}

/* The limit strikes only when the file is closed: that is an error as well. */
static void t_size_limit_at_close(void **state)
{
	struct rlimit before, limit;
	struct trace_writer *w;
	struct err e;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){200, before.rlim_max};
	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(events(w, 100), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(trace_writer__close(w, 5, NULL, 0, &e), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(e.text, "out.qbpf: File too large"));
	trace_writer__free(w);
	check_file(path, false, 0, 0);
}

static void t_full_disk(void **state)
{
	struct trace_writer *w;
	char file[160];

	(void)state;
	if (mount("qbpf-test", dir, "tmpfs", 0, "size=256k")) {
		print_message("# no tmpfs can be mounted: %s\n", strerror(errno));
		skip();
	}
	snprintf(file, sizeof(file), "%s/full.qbpf", dir);
	assert_int_equal(start(file, &w, NULL), 0);
	assert_int_equal(events_until_error(w), -ENOSPC);
	check_sticky(w, file, -ENOSPC);
	check_file(file, false, 4096, 1 << 20);
	assert_int_equal(umount(dir), 0);
}

/* A device that is always full, without a place to cut back to. */
static void t_full_device(void **state)
{
	struct trace_writer *w;

	(void)state;
	assert_int_equal(start("/dev/full", &w, NULL), 0);
	assert_int_equal(events_until_error(w), -ENOSPC);
	check_sticky(w, "/dev/full", -ENOSPC);
}

/* A pipe whose reader goes away; SIGPIPE would end this program. */
static void t_pipe(void **state)
{
	struct trace_writer *w;
	int fds[2];
	char name[40];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fds[1]);
	assert_int_equal(start(name, &w, NULL), 0);
	close(fds[1]);
	close(fds[0]);
	assert_int_equal(events_until_error(w), -EPIPE);
	assert_int_equal(trace_writer__close(w, 1, NULL, 0, NULL), -EPIPE);
	trace_writer__free(w);
}

/* What goes through a pipe is a trace too. */
static void t_fifo(void **state)
{
	struct trace_writer *w;
	char copy[160], command[400];
	FILE *cat;

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(copy, sizeof(copy), "%s/copy", dir);
	snprintf(command, sizeof(command), "cat %s > %s", path, copy);
	cat = popen(command, "r");
	assert_non_null(cat);
	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(events(w, 10000), 0);
	assert_int_equal(trace_writer__close(w, 5, NULL, 0, NULL), 0);
	trace_writer__free(w);
	assert_int_equal(pclose(cat), 0);
	check_file(copy, true, 10000, 10000);
	assert_int_equal(unlink(copy), 0);
}

static void t_null_device(void **state)
{
	struct trace_writer *w;
	struct stat st;

	(void)state;
	assert_int_equal(start("/dev/null", &w, NULL), 0);
	assert_int_equal(events(w, 10000), 0);
	assert_int_equal(trace_writer__close(w, 5, NULL, 0, NULL), 0);
	trace_writer__free(w);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void t_cannot_open(void **state)
{
	struct trace_writer *w = (void *)1;
	struct err e;

	(void)state;
	assert_int_equal(start("/nonexistent/x.qbpf", &w, &e), -ENOENT);
	assert_string_equal(e.text, "/nonexistent/x.qbpf: No such file or directory");
	assert_null(w);
	assert_int_equal(start(dir, &w, &e), -EISDIR);
	assert_null(w);
	assert_int_equal(start("", &w, &e), -ENOENT);
}

static off_t size_of(const char *file)
{
	struct stat st;

	return stat(file, &st) ? -1 : st.st_size;
}

/* An old file stays until there is something to take its place. */
static void t_old_file(void **state)
{
	struct trace_writer *w;
	FILE *f = fopen(path, "w");

	(void)state;
	for (int i = 0; i < 100000; i++)
		fputs("old", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(size_of(path), 300000);
	trace_writer__free(w);
	assert_int_equal(size_of(path), 300000);

	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(events(w, 10), 0);
	assert_int_equal(trace_writer__close(w, 5, NULL, 0, NULL), 0);
	trace_writer__free(w);
	check_file(path, true, 10, 10);
	assert_in_range(size_of(path), 100, 2000);
}

/* A file that was made for nothing goes away; one that is somebody else's by now stays. */
static void t_nothing_written(void **state)
{
	struct trace_writer *w;
	FILE *f;

	(void)state;
	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(size_of(path), 0);
	trace_writer__free(w);
	assert_int_equal(size_of(path), -1);

	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(unlink(path), 0);
	f = fopen(path, "w");
	fclose(f);
	trace_writer__free(w);
	assert_int_equal(size_of(path), 0);
}

/* Through a link, and to where a link leads that has led nowhere so far. */
static void t_links(void **state)
{
	struct trace_writer *w;
	char link[160];

	(void)state;
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink("out.qbpf", link), 0);
	for (int twice = 0; twice < 2; twice++) {
		assert_int_equal(start(link, &w, NULL), 0);
		assert_int_equal(events(w, 10), 0);
		assert_int_equal(trace_writer__close(w, 5, NULL, 0, NULL), 0);
		trace_writer__free(w);
		check_file(path, true, 10, 10);
	}
	assert_int_equal(unlink(link), 0);
}

static void owner_with(const char *uid, const char *gid, uid_t want_uid, gid_t want_gid, bool fresh)
{
	struct trace_writer *w;
	struct stat st;

	if (fresh)
		unlink(path);
	setenv("SUDO_UID", uid, 1);
	setenv("SUDO_GID", gid, 1);
	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(trace_writer__close(w, 5, NULL, 0, NULL), 0);
	trace_writer__free(w);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, want_uid);
	assert_int_equal(st.st_gid, want_gid);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void t_owner(void **state)
{
	mode_t mask = umask(027);

	(void)state;
	if (geteuid()) {
		umask(mask);
		skip();
	}
	owner_with("12345", "23456", 12345, 23456, true);
	/* One that was there keeps its owner. */
	owner_with("777", "777", 12345, 23456, false);
	owner_with("x", "23456", 0, 0, true);
	owner_with("12345", "", 0, 0, true);
	owner_with("4294967295", "1", 0, 0, true);
	umask(mask);
}

/* Signals that a thread of this process blocks. */
static unsigned long long blocked(const char *tid)
{
	char file[300], line[200];
	unsigned long long mask = 0;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/self/task/%s/status", tid);
	f = fopen(file, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	fclose(f);
	return mask;
}

/* The process's signals are not handled on the writer's thread, and elsewhere as before. */
static void t_signal_mask(void **state)
{
	struct trace_writer *w;
	struct dirent *entry;
	char self[20];
	int others = 0;
	DIR *tasks;

	(void)state;
	snprintf(self, sizeof(self), "%d", getpid());
	assert_int_equal(blocked(self), 0);
	assert_int_equal(start(path, &w, NULL), 0);
	assert_int_equal(blocked(self), 0);
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (atoi(entry->d_name) && strcmp(entry->d_name, self) != 0) {
			/* All but those that nobody can block, and libc's own two. */
			assert_int_equal(blocked(entry->d_name) | 0x180040100ull,
					 0xffffffffffffffffull);
			others++;
		}
	closedir(tasks);
	assert_int_equal(others, 1);
	trace_writer__free(w);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/t_file_disk-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/out.qbpf", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	umount2(dir, MNT_DETACH);
	unlink(path);
	return rmdir(dir);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(t_size_limit),	 CASE(t_size_limit_at_close),
	    CASE(t_full_disk),	 CASE(t_full_device),
	    CASE(t_pipe),	 CASE(t_fifo),
	    CASE(t_null_device), CASE(t_cannot_open),
	    CASE(t_old_file),	 CASE(t_nothing_written),
	    CASE(t_links),	 CASE(t_owner),
	    CASE(t_signal_mask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

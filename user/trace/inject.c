// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bringing the agent into a running process, from outside; see inject.h. */
#include "trace/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "elf/proc_state.h"
#include "log.h"
#include "trace/inject_thread.h"

#define SENDS 5
/* Each step has its time on a machine that is busy with much else, too; so it has in inject_stub.c. */
#define BACK_WAIT_NS 20000000000ull
#define OPEN_WAIT_NS 20000000000ull
#define EXEC_WAIT_NS 500000000ull
/* An area that is not there by then, when the thread is, will not come. */
#define ABSENT_NS 1000000000ull
#define LEAVE_NS  2000000ull
/* More time on a CPU than that, which the kernel counts by the tick, is more than the way out takes. */
#define RAN_ENOUGH_NS 20000000ull

struct injection {
	pid_t pid;
	const char *agent;
	struct agents *agents;
	struct inject_report *report;
	struct err *e;
	int err;
	struct inject_site *site;
	struct inject_stack *stack;
	bool code_by_mem;
	bool sent, started;
	uint64_t since_ns;
	uint64_t ran_ns; /* by the thread that was sent, when it had not got farther yet */
	uint32_t loader; /* the new thread's tid in its own namespace */
	size_t ring;
	bool has_ring;
};

/* --- the area, seen from here ------------------------------------------------------------------- */

/* It is there from when the thread has mapped it until the new one is done. */
static int area_read(const struct injection *in, struct inject_area *a)
{
	struct iovec local = {.iov_base = a, .iov_len = sizeof(*a)};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)in->site->consts.area,
			       .iov_len = sizeof(*a)};

	memset(a, 0, sizeof(*a));
	if (process_vm_readv(in->site->task, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(*a))
		return errno == EFAULT ? -ENOENT : -errno;
	return a->magic == INJECT_MAGIC ? 0 : -ENOENT;
}

static int area_write(const struct injection *in, size_t off, const void *from, size_t len)
{
	struct iovec local = {.iov_base = (void *)(uintptr_t)from, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)(in->site->consts.area + off),
			       .iov_len = len};

	return process_vm_writev(in->site->task, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0
											   : -errno;
}

static int area_set(const struct injection *in, size_t off, uint32_t value)
{
	return area_write(in, off, &value, sizeof(value));
}

/* How long a thread has had a CPU; 0: not known. */
static uint64_t time_ran(pid_t pid, pid_t tid)
{
	char dir[64], *text;
	uint64_t ns = 0;
	size_t len;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", pid, tid);
	if (proc_state__read_file(dir, "schedstat", &text, &len))
		return 0;
	ns = strtoull(text, NULL, 10);
	free(text);
	return ns;
}

/* Has the thread that was sent left the code, for sure? What has run since, or waits elsewhere, has. */
static bool is_out(const struct injection *in)
{
	char dir[64], *text;
	bool out = false;
	size_t len;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", in->pid, in->report->tid);
	if (proc_state__read_file(dir, "syscall", &text, &len))
		return true; /* it has ended */
	if (text[0] == 'r') {
		uint64_t ran = time_ran(in->pid, in->report->tid);

		out = in->ran_ns && ran > in->ran_ns + RAN_ENOUGH_NS;
	} else {
		const char *last = strrchr(text, ' ');
		uint64_t pc = last ? strtoull(last, NULL, 16) : 0;

		out = pc && (pc < in->site->cave || pc >= in->site->cave + INJECT_STUB_BYTES);
	}
	free(text);
	return out;
}

/* For people. */
static const char *area_fault(int err)
{
	switch (-err) {
	case ESRCH:
		return "it has ended, or started another program";
	case ENOENT:
		return "it may map no more memory, or start no more threads";
	case ETIMEDOUT:
		return "it waits for a lock, or for a CPU";
	default:
		return strerror(-err);
	}
}

/*
 * Until `ready` says so; the area's state then. -ESRCH: nobody is there any more; -ENOENT: the area is
 * not, and will not be; -ETIMEDOUT; or what area_read() returned.
 */
static int area_await(const struct injection *in, struct inject_area *a, uint64_t limit_ns,
		      bool (*ready)(const struct inject_area *a))
{
	uint64_t from = now_ns();
	struct timespec pause = {.tv_nsec = 20000};

	for (;;) {
		int err = area_read(in, a);
		bool late = now_ns() - from > limit_ns;

		if (err && inject_site__is_gone(in->site))
			return -ESRCH;
		if (err && err != -ENOENT)
			return err;
		if (!err && ready(a))
			return 0;
		if (err && (late || (now_ns() - from > ABSENT_NS && is_out(in))))
			return err;
		if (late)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec += pause.tv_nsec / 8;
	}
}

static bool is_back(const struct inject_area *a)
{
	return a->left >= INJECT_RESTORED; /* of the rest signals may be a part, and take long */
}

static bool has_files(const struct inject_area *a)
{
	return a->step >= INJECT_FILES;
}

static bool is_done(const struct inject_area *a)
{
	return a->done;
}

/* --- steps -------------------------------------------------------------------------------------- */

static int check_process(struct injection *in)
{
	char proc[32], *text = NULL;
	const char *mode, *state, *tracer;
	size_t len;
	int err;

	snprintf(proc, sizeof(proc), "/proc/%d", in->pid);
	err = proc_state__read_file(proc, "status", &text, &len);
	if (err)
		return err_set(in->e, err, "%s/status: %s", proc, strerror(-err));
	mode = strstr(text, "\nSeccomp:\t");
	state = strstr(text, "\nState:\t");
	tracer = strstr(text, "\nTracerPid:\t");
	if (tracer && atoi(tracer + 12))
		err = err_set(in->e, -EPERM,
			      "process %d is being traced by process %d already (a debugger?)",
			      in->pid, atoi(tracer + 12));
	else if (mode && atoi(mode + 10))
		err = err_set(in->e, -EOPNOTSUPP,
			      "process %d has a seccomp filter, which might kill it for the calls "
			      "that opening a library takes: start it by qbpf run --cuda agent",
			      in->pid);
	else if (state && state[8] == 'T')
		err = err_set(in->e, -EAGAIN, "process %d is stopped: send it SIGCONT first",
			      in->pid);
	free(text);
	return err;
}

static int put_code(struct injection *in)
{
	size_t consts = INJECT_CODE_BYTES;
	uint64_t at = in->site->cave;

	if (inject_site__is_gone(in->site))
		return err_set(in->e, -ESRCH, "process %d: %s", in->pid, area_fault(-ESRCH));

	in->code_by_mem =
	    pwrite(in->site->mem, inject_stub_begin, consts, (off_t)at) == (ssize_t)consts &&
	    pwrite(in->site->mem, &in->site->consts, sizeof(in->site->consts),
		   (off_t)(at + consts)) == (ssize_t)sizeof(in->site->consts);
	if (!in->code_by_mem)
		log_dbg("/proc/%d/mem: %s: by ptrace then", in->pid, strerror(errno));
	inject__stage(STAGE_CODE);
	return 0;
}

static bool has_ended(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return access(path, F_OK) != 0;
}

static int send_thread(struct injection *in)
{
	struct inject_area a;
	int err;

	/* One that is cancelled on its way has done nothing: another one then. */
	for (int i = 0; i < SENDS; i++) {
		err = inject_thread__send(in->site, in->stack, !in->code_by_mem, in->report,
					  &in->since_ns, in->e);
		if (err)
			return err;
		in->sent = true;
		in->ran_ns = time_ran(in->pid, in->report->tid);
		err = area_await(in, &a, BACK_WAIT_NS, is_back);
		if (err != -ENOENT || !has_ended(in->pid, in->report->tid))
			break;
	}
	if (err)
		return err_set(in->e, err,
			       "thread %d of process %d has not come back from pthread_create: %s",
			       in->report->tid, in->pid, area_fault(err));
	in->report->away_ns = now_ns() - in->since_ns;
	in->started = true;
	inject__stage(STAGE_BACK);
	return 0;
}

/*
 * The number comes out of the target's memory: only an unsealed memfd is opened, and not what else of
 * ours or of the system's it might name.
 */
static int open_target_fd(const struct injection *in, int fd)
{
	char path[64];
	struct stat st;
	int at, own = -1, seals, err = 0;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", in->site->task, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -errno;
	if (fstat(at, &st) || !S_ISREG(st.st_mode) || st.st_size) {
		err = -EINVAL;
		goto out;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	own = open(path, O_RDWR | O_CLOEXEC);
	if (own < 0) {
		err = -errno;
		goto out;
	}
	seals = fcntl(own, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SEAL)) /* of any other file */
		err = -EINVAL;
out:
	close(at);
	if (err && own >= 0)
		close(own);
	return err ? err : own;
}

/* Can the target open the agent's file by its path? */
static bool sees_agent(const struct injection *in)
{
	struct stat here, there, process;
	char path[64 + 512];

	snprintf(path, sizeof(path), "/proc/%d", in->site->task);
	if (stat(path, &process) || (process.st_uid && process.st_uid != geteuid()) ||
	    strlen(in->agent) >= sizeof(((struct inject_area *)0)->path))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root%s", in->site->task, in->agent);
	return !stat(in->agent, &here) && !stat(path, &there) && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

static int copy_agent(const struct injection *in, int lib_fd)
{
	int to = open_target_fd(in, lib_fd), from, err = 0;
	struct stat st;

	if (to < 0)
		return to;
	from = open(in->agent, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st))
		err = -errno;
	for (off_t off = 0; !err && off < st.st_size;) {
		ssize_t n = sendfile(to, from, &off, (size_t)(st.st_size - off));

		if (n <= 0)
			err = n ? -errno : -EIO;
	}
	if (from >= 0)
		close(from);
	close(to);
	return err;
}

/*
 * What it is to open: what is there already, the file, or a copy of it. /proc/self would be its first
 * thread, which may have ended.
 */
static int name_library(const struct injection *in, const struct inject_area *a)
{
	char path[sizeof(a->path)] = "";
	int flags = 2, err = 0; /* RTLD_NOW, for every C library */

	if (in->site->loaded[0]) {
		snprintf(path, sizeof(path), "%s", in->site->loaded);
	} else if (sees_agent(in)) {
		snprintf(path, sizeof(path), "%s", in->agent);
	} else {
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", a->lib_fd);
		err = copy_agent(in, a->lib_fd);
	}
	if (!err)
		err = area_write(in, offsetof(struct inject_area, path), path, sizeof(path));
	if (!err)
		err = area_write(in, offsetof(struct inject_area, flags), &flags, sizeof(flags));
	return err;
}

static int make_ring(struct injection *in, const struct inject_area *a)
{
	int fd = open_target_fd(in, a->ring_fd), err;
	char path[sizeof(a->ring)];

	if (fd < 0)
		return err_set(in->e, fd, "process %d cannot have a ring: memfd_create: %s",
			       in->pid, strerror(-fd));
	err = agents__adopt(in->agents, in->pid, fd, &in->ring, in->e);
	close(fd);
	if (err)
		return err;
	in->has_ring = true;
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", a->ring_fd);
	err = area_write(in, offsetof(struct inject_area, ring), path, sizeof(path));
	return err ? err_set(in->e, err, "process %d: %s", in->pid, strerror(-err)) : 0;
}

static int let_it_open(struct injection *in)
{
	char symbol[sizeof(((struct inject_area *)0)->symbol)] = "qbpf_agent_start";
	struct inject_area a;
	int err = area_await(in, &a, BACK_WAIT_NS, has_files);

	if (err)
		return err_set(in->e, err, "process %d: its new thread does not run: %s", in->pid,
			       area_fault(err));
	in->loader = a.tid;
	inject__stage(STAGE_FILES);
	err = make_ring(in, &a);
	if (err)
		return err;
	err = name_library(in, &a);
	if (!err)
		err = area_write(in, offsetof(struct inject_area, symbol), symbol, sizeof(symbol));
	if (!err)
		err = area_set(in, offsetof(struct inject_area, go), INJECT_GO);
	if (err)
		return err_set(in->e, err, "the agent cannot be handed to process %d: %s", in->pid,
			       strerror(-err));
	inject__stage(STAGE_GO);
	return 0;
}

static int see_what_came(struct injection *in)
{
	uint64_t from = in->since_ns + in->report->away_ns;
	struct inject_area a;
	int err = area_await(in, &a, OPEN_WAIT_NS, is_done);

	if (err == -ETIMEDOUT)
		return err_set(in->e, err,
			       "process %d has not opened the agent in %llu s: its dynamic linker "
			       "is busy",
			       in->pid, OPEN_WAIT_NS / 1000000000);
	if (err)
		return err_set(in->e, err, "process %d has not opened the agent: %s", in->pid,
			       area_fault(err));
	in->report->opened_ns = now_ns() - from;
	inject__stage(STAGE_DONE);
	a.text[sizeof(a.text) - 1] = '\0';
	if (a.step == INJECT_FAILED)
		return err_set(in->e, -ENOEXEC, "process %d cannot open the agent: %s", in->pid,
			       a.text[0] ? a.text : "no reason given");
	if (a.step != INJECT_CALLED)
		return err_set(in->e, -ECANCELED, "process %d gave the agent up", in->pid);
	if (a.result > 0 || a.result < -4095)
		a.result = -EPROTO;
	if (a.result == -ECHILD)
		return err_set(in->e, -EOPNOTSUPP,
			       "process %d was forked by one that had an agent at that moment, and "
			       "can have none of its own",
			       in->pid);
	if (a.result == -EBUSY)
		return err_set(in->e, -EBUSY, "process %d has an agent at work for another qbpf",
			       in->pid);
	if (a.result)
		return err_set(in->e, a.result, "the agent in process %d does not start: %s",
			       in->pid, strerror(-a.result));
	return 0;
}

/* --- the end ------------------------------------------------------------------------------------ */

/* Has the new thread ended? By its tid in its own namespace, the last of those that it has. */
static bool loader_ended(const struct injection *in)
{
	char path[64], *text, *line, *end;
	struct dirent *d;
	bool found = false;
	size_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", in->pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d", in->pid, atoi(d->d_name));
		if (proc_state__read_file(path, "status", &text, &len))
			continue;
		line = strstr(text, "\nNSpid:");
		end = line ? strchr(line + 1, '\n') : NULL;
		if (end) {
			*end = '\0';
			found = strtoul(strrchr(line, '\t') + 1, NULL, 10) == in->loader;
		}
		free(text);
	}
	if (dir)
		closedir(dir);
	return !found;
}

/*
 * The code goes when nobody is in it: a thread may have been without a CPU since its last instruction
 * there, or, where no area has come, be in a signal's handler still that will return there. What cannot
 * be told in time stays, where no one looks.
 */
static void take_code_away(struct injection *in)
{
	static const uint8_t zeros[4096];
	struct timespec pause = {.tv_nsec = LEAVE_NS};
	struct inject_area a;
	uint64_t until = now_ns() + BACK_WAIT_NS;
	bool over = false;

	if (!in->code_by_mem || (in->sent && !in->started))
		return;
	area_set(in, offsetof(struct inject_area, seen), 1);
	while (in->sent && !inject_site__is_gone(in->site)) {
		int err = area_read(in, &a);

		if (!err && a.tid)
			in->loader = a.tid;
		if (err && !over) /* from now on there are a few instructions left */
			in->ran_ns = time_ran(in->pid, in->report->tid);
		over |= err != 0;
		if (over && in->loader && loader_ended(in) && is_out(in))
			break;
		if (now_ns() > until)
			return;
		nanosleep(&pause, NULL);
	}
	if (pwrite(in->site->mem, zeros, INJECT_STUB_BYTES, (off_t)in->site->cave) < 0)
		log_dbg("/proc/%d/mem: %s", in->pid, strerror(errno));
	inject__stage(STAGE_CLEAN);
}

static void roll_back(struct injection *in)
{
	if (in->sent)
		area_set(in, offsetof(struct inject_area, go), INJECT_ABORT);
	if (in->has_ring)
		agents__drop(in->agents, in->ring);
}

/* An exec ends the other threads first, and is another program a moment later. */
static bool has_gone(const struct injection *in, int err)
{
	struct timespec pause = {.tv_nsec = 1000000};
	uint64_t until = now_ns() + (err == -ESRCH ? EXEC_WAIT_NS : 0);

	while (!inject_site__is_gone(in->site)) {
		if (now_ns() >= until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static int inject(struct injection *in)
{
	int err = check_process(in);

	if (err)
		return err;
	err = inject_site__read(in->pid, &in->site, in->e);
	if (err)
		return err;
	if (!in->site->has_cuda)
		return err_set(in->e, -ENODEV,
			       "process %d does not use CUDA: no libcuda or libcudart is mapped",
			       in->pid);
	err = inject_stack__new(in->site, &in->stack, in->e);
	if (err)
		return err;
	err = put_code(in);
	if (err)
		return err;
	err = send_thread(in);
	if (!err)
		err = let_it_open(in);
	if (!err)
		err = see_what_came(in);
	if (err)
		roll_back(in);
	take_code_away(in);
	if (err && has_gone(in, err)) /* whatever it was that then failed */
		err_set(in->e, err, "process %d: %s", in->pid, area_fault(-ESRCH));
	return err;
}

static void *run(void *arg)
{
	struct injection *in = arg;

	in->err = inject(in);
	return NULL;
}

int inject__agent(pid_t pid, const char *agent, struct agents *a, struct inject_report *out,
		  struct err *e)
{
	struct injection in = {.pid = pid, .agent = agent, .agents = a, .report = out, .e = e};
	pthread_t thread;
	int err;

	memset(out, 0, sizeof(*out));
	/* Of its own: what it has ptraced is let go when it ends, however it ends. */
	err = -pthread_create(&thread, NULL, run, &in);
	if (err)
		return err_set(e, err, "cannot start a thread: %s", strerror(-err));
	pthread_join(thread, NULL);
	inject_stack__free(in.stack);
	inject_site__free(in.site);
	return in.err;
}

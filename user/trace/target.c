// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes of a session and the objects they map. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/proc_state.h"
#include "log.h"
#include "trace/target.h"

struct target *target__new(void)
{
	return calloc(1, sizeof(struct target));
}

static void object_drop(struct target_object *o)
{
	unwind_table__free(o->unwind);
	func_table__free(o->funcs);
	usdt_table__free(o->markers);
	elf_image__free(o->img);
	o->unwind = NULL;
	o->funcs = NULL;
	o->markers = NULL;
	o->img = NULL;
	o->funcs_read = o->unwind_read = false;
}

void target__drop_images(struct target *t)
{
	for (size_t i = 0; i < t->nobjects; i++) {
		object_drop(&t->objects[i]);
		t->plan_objects[i].img = NULL;
		t->plan_objects[i].markers = NULL;
		t->plan_objects[i].funcs = NULL;
		t->plan_objects[i].unwind = NULL;
	}
}

void target__free(struct target *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nobjects; i++) {
		struct target_object *o = &t->objects[i];

		object_drop(o);
		if (o->fd >= 0)
			close(o->fd);
		free(o->path);
		free(o->unusable);
	}
	free(t->objects);
	free(t->plan_objects);
	free(t->ranges);
	free(t->pids);
	free(t->exe);
	free(t);
}

bool pid_is_alive(pid_t pid)
{
	char proc[64];

	return !proc_state__live_task(pid, proc, sizeof(proc), NULL);
}

/* What follows "Key:" in the text of a status file; NULL when absent. */
static const char *status_value(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p && (p == text || p[-1] == '\n') ? p + strlen(key) : NULL;
}

int target__add_pid(struct target *t, pid_t pid, struct err *e)
{
	char proc[64], path[64], buf[4096], *text;
	const char *value;
	pid_t *pids, tgid;
	size_t len;
	ssize_t n;
	int err;

	for (size_t i = 0; i < t->npids; i++)
		if (t->pids[i] == pid)
			return 0;
	err = proc_state__live_task(pid, proc, sizeof(proc), e);
	if (!err)
		err = proc_state__read_file(proc, "status", &text, &len)
			  ? err_set(e, -ESRCH, "no process %d", pid)
			  : 0;
	if (err)
		return err;
	value = status_value(text, "Tgid:");
	tgid = value ? (pid_t)strtol(value, NULL, 10) : pid;
	free(text);
	if (tgid != pid)
		return err_set(e, -EINVAL, "%d is a thread of process %d: use -p %d", pid, tgid,
			       tgid);
	if (pid == getpid())
		return err_set(e, -EINVAL, "process %d is qbpf itself", pid);
	pids = realloc(t->pids, (t->npids + 1) * sizeof(*pids));
	if (!pids)
		return err_set(e, -ENOMEM, "out of memory");
	t->pids = pids;
	t->pids[t->npids++] = pid;
	if (t->npids > 1)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (!proc_state__read_file(path, "comm", &text, &len)) {
		text[strcspn(text, "\n")] = 0;
		snprintf(t->comm, sizeof(t->comm), "%.31s", text);
		free(text);
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, buf, sizeof(buf) - 1);
	if (n > 0) {
		buf[n] = 0;
		t->exe = strdup(buf);
	}
	return 0;
}

void target__remove_pid(struct target *t, pid_t pid)
{
	for (size_t i = 0; i < t->npids; i++) {
		if (t->pids[i] != pid)
			continue;
		t->pids[i] = t->pids[--t->npids];
		return;
	}
}

static bool is_c_library(const char *path)
{
	static const char *const names[] = {
	    "libc.so",	"libc-2.",   "libpthread.so", "libpthread-",  "ld-linux",
	    "ld-2.",	"ld-musl",   "libm.so",	      "libm-2.",      "librt.so",
	    "libdl.so", "libc.musl", "libgcc_s.so",   "libstdc++.so", "ld.so"};
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(base, names[i], strlen(names[i])))
			return true;
	return false;
}

static struct target_object *object_append(struct target *t)
{
	struct target_object *objs;
	struct plan_object *plan;

	objs = realloc(t->objects, (t->nobjects + 1) * sizeof(*objs));
	if (!objs)
		return NULL;
	t->objects = objs;
	plan = realloc(t->plan_objects, (t->nobjects + 1) * sizeof(*plan));
	if (!plan)
		return NULL;
	t->plan_objects = plan;
	memset(&objs[t->nobjects], 0, sizeof(*objs));
	memset(&plan[t->nobjects], 0, sizeof(*plan));
	objs[t->nobjects].fd = -1;
	return &objs[t->nobjects++];
}

static struct target_object *object_find(struct target *t, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < t->nobjects; i++)
		if (t->objects[i].dev == dev && t->objects[i].ino == ino)
			return &t->objects[i];
	return NULL;
}

/* Takes over the descriptor of m. */
static int object_add(struct target *t, struct map_object *m, struct err *e)
{
	struct target_object *o = object_find(t, m->dev, m->ino);
	char buf[160];

	if (o)
		return 0;
	o = object_append(t);
	if (!o)
		return err_set(e, -ENOMEM, "out of memory");
	o->path = strdup(m->path ? m->path : "?");
	if (!o->path)
		return err_set(e, -ENOMEM, "out of memory");
	o->dev = m->dev;
	o->ino = m->ino;
	o->fd = m->fd;
	m->fd = -1;
	o->is_exe = m->is_exe;
	o->is_ldso = m->is_ldso;
	o->is_libc = m->is_ldso || is_c_library(o->path);
	o->deleted = m->deleted;
	if (o->fd < 0 || m->open_errno) {
		snprintf(buf, sizeof(buf), "the mapped file cannot be opened: %s",
			 m->open_errno == EXDEV ? "what is at its path may be another"
						: strerror(m->open_errno));
		o->unusable = strdup(buf);
	}
	return 0;
}

static void forget_ranges(struct target *t, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nranges; i++)
		if (t->ranges[i].pid != pid)
			t->ranges[n++] = t->ranges[i];
	t->nranges = n;
}

static int add_ranges(struct target *t, pid_t pid, const struct map_object *m, struct err *e)
{
	const struct target_object *o = object_find(t, m->dev, m->ino);
	struct target_range *bigger;

	if (!o || !m->nranges)
		return 0;
	bigger = reallocarray(t->ranges, t->nranges + m->nranges, sizeof(*bigger));
	if (!bigger)
		return err_set(e, -ENOMEM, "out of memory");
	t->ranges = bigger;
	for (size_t i = 0; i < m->nranges; i++)
		if (m->ranges[i].exec)
			t->ranges[t->nranges++] = (struct target_range){
			    .pid = pid,
			    .object = (uint32_t)(o - t->objects),
			    .start = m->ranges[i].start,
			    .end = m->ranges[i].end,
			    .off = m->ranges[i].off,
			};
	return 0;
}

int target__find(const struct target *t, pid_t pid, uint64_t addr, uint32_t *object, uint64_t *off)
{
	for (size_t i = 0; i < t->nranges; i++) {
		const struct target_range *r = &t->ranges[i];

		if (r->pid != pid || addr < r->start || addr >= r->end)
			continue;
		*object = r->object;
		*off = addr - r->start + r->off;
		return 0;
	}
	return -ENOENT;
}

int target__refresh(struct target *t, struct err *e)
{
	struct proc_maps *maps = NULL;
	size_t alive = 0;
	int err = 0;

	for (size_t i = 0; i < t->npids; i++) {
		err = proc_maps__read(t->pids[i], &maps, e);
		if (err == -ESRCH || err == -ENOENT)
			continue;
		if (err)
			return err;
		alive++;
		forget_ranges(t, t->pids[i]);
		for (size_t k = 0; k < maps->n && !err; k++) {
			err = object_add(t, &maps->objects[k], e);
			if (!err)
				err = add_ranges(t, t->pids[i], &maps->objects[k], e);
		}
		proc_maps__free(maps);
		maps = NULL;
		if (err)
			return err;
	}
	if (!alive)
		return err_set(e, -ESRCH, "the target has ended");
	return 0;
}

int target__add_file(struct target *t, const char *path, struct err *e)
{
	struct target_object *o;
	struct stat st;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(e, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, -EINVAL, "%s: not a regular file", path);
	}
	o = object_append(t);
	if (!o) {
		close(fd);
		return err_set(e, -ENOMEM, "out of memory");
	}
	o->fd = fd;
	o->dev = st.st_dev;
	o->ino = st.st_ino;
	o->is_exe = true;
	o->path = strdup(path);
	return o->path ? 0 : err_set(e, -ENOMEM, "out of memory");
}

static void object_unusable(struct target_object *o, const struct err *why)
{
	if (!o->unusable)
		o->unusable = strdup(why->text[0] ? why->text : "cannot be read");
	log_dbg("%s: %s", o->path, o->unusable ? o->unusable : "cannot be read");
}

/*
 * What the object could do to a probe. A library opened later may throw and fork, so who can open
 * one can do both. Code by hand shows in no symbol: it is searched for. The C library can do it
 * all, when someone asks it to.
 */
static void object_facts(struct target_object *o)
{
	const struct elf_info *info = elf_image__info(o->img);
	bool switches = false, forks = false;

	if (o->scanned)
		return;
	o->scanned = true;
	if (!o->is_libc)
		elf_image__scan_code(o->img, &switches, &forks);
	o->is_go = info->is_go;
	o->has_cuda = info->has_cuda;
	o->imports_throw = info->imports_throw || info->imports_dlopen;
	o->imports_cancel = info->imports_cancel;
	o->imports_fork =
	    info->imports_fork || info->imports_dlopen || info->imports_syscall || forks;
	o->signal_stack = info->imports_sigaltstack;
	o->stack_switch = info->imports_stack_switch || switches;
}

static void object_read(struct target *t, struct target_object *o, unsigned int want)
{
	struct symbols_opts so = {0};
	struct err why = {{0}};
	char root[64];

	if (o->unusable)
		return;
	if (!o->img) {
		if (elf_image__open(o->fd, o->path, &o->img, &why)) {
			object_unusable(o, &why);
			return;
		}
		object_facts(o);
	}
	if (!o->markers && (want & TARGET_MARKERS) && usdt_table__read(o->img, &o->markers, &why))
		object_unusable(o, &why);
	if (!o->funcs_read && (want & TARGET_FUNCS)) {
		o->funcs_read = true;
		if (t->npids) {
			snprintf(root, sizeof(root), "/proc/%d/root", t->pids[0]);
			so.root = root;
		}
		if (func_table__read(o->img, &so, &o->funcs, &why))
			log_dbg("%s: functions: %s", o->path, why.text);
	}
	if (!o->unwind_read && (want & TARGET_UNWIND)) {
		o->unwind_read = true;
		if (unwind_table__read(o->img, &o->unwind, &why))
			log_dbg("%s: unwind tables: %s", o->path, why.text);
	}
}

int target__read_one(struct target *t, size_t i, unsigned int want, struct err *e)
{
	struct target_object *o = &t->objects[i];

	object_read(t, o, want);
	if (!o->path)
		return err_set(e, -ENOMEM, "out of memory");
	t->plan_objects[i] = (struct plan_object){
	    .path = o->path,
	    .img = o->img,
	    .markers = o->markers,
	    .funcs = o->funcs,
	    .unwind = o->unwind,
	    .is_libc = o->is_libc,
	    .has_cuda = o->has_cuda,
	};
	return 0;
}

int target__read(struct target *t, size_t from, unsigned int want, struct err *e)
{
	int err = 0;

	for (size_t i = from; i < t->nobjects && !err; i++)
		err = target__read_one(t, i, want, e);
	return err;
}

/*
 * Seccomp's mode, and user shadow stacks: "x86_Thread_features: shstk". From 6.11 on the kernel
 * handles uretprobes with those, but preflight wants to say so.
 */
static void process_facts(pid_t pid, struct plan_process *out)
{
	char proc[64], *text;
	const char *value;
	size_t len;
	int mode;

	if (proc_state__live_task(pid, proc, sizeof(proc), NULL) ||
	    proc_state__read_file(proc, "status", &text, &len))
		return;
	value = status_value(text, "Seccomp:");
	mode = value ? atoi(value) : 0;
	if (mode > out->seccomp)
		out->seccomp = mode;
	value = status_value(text, "x86_Thread_features:");
	out->shadow_stack |= value && memmem(value, strcspn(value, "\n"), "shstk", 5);
	free(text);
}

void target__facts(const struct target *t, struct plan_process *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < t->nobjects; i++) {
		const struct target_object *o = &t->objects[i];

		/* The C library can throw by pthread_exit and cancel, but only when asked to. */
		if (!o->is_libc || strstr(o->path, "libstdc++"))
			out->can_throw |= o->imports_throw;
		if (!o->is_libc)
			out->can_cancel |= o->imports_cancel;
		out->can_cancel_cuda |=
		    o->imports_cancel && !o->is_libc && (!o->has_cuda || o->is_exe);
		if (!o->is_libc)
			out->can_fork |= o->imports_fork;
		out->signal_stack |= o->signal_stack && !o->is_libc;
		out->switches_stacks |= o->is_go || (o->stack_switch && !o->is_libc);
	}
	for (size_t i = 0; i < t->npids; i++)
		process_facts(t->pids[i], out);
}

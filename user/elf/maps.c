/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that a live process has mapped, opened by the mapped inode.
 *
 * /proc/PID/map_files/START-END leads to the very inode, whatever has since become of its
 * path, and needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. Without them the path is tried under the
 * target's own root and the result is believed only if its inode is the mapped one.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "elf/image.h"
#include "elf/maps.h"
#include "elf/proc_state.h"

#define DELETED " (deleted)"

struct line {
	struct map_range range;
	uint64_t dev, ino;
	const char *path;
	size_t path_len;
};

/* "start-end perms offset major:minor inode   path" */
static bool parse_line(const char *s, size_t len, struct line *l)
{
	unsigned long long start, end, off, ino;
	unsigned int major_nr, minor_nr;
	char head[128], perms[5];
	int used = 0;

	/* sscanf would run over the end of an unterminated text; the numbers fit in this. */
	snprintf(head, sizeof(head), "%.*s", (int)(len < sizeof(head) ? len : sizeof(head) - 1), s);
	if (sscanf(head, "%llx-%llx %4s %llx %x:%x %llu%n", &start, &end, perms, &off, &major_nr,
		   &minor_nr, &ino, &used) != 7 ||
	    strlen(perms) != 4 || end <= start)
		return false;
	*l = (struct line){
	    .range = {.start = start,
		      .end = end,
		      .off = off,
		      .exec = perms[2] == 'x',
		      .write = perms[1] == 'w'},
	    .dev = makedev(major_nr, minor_nr),
	    .ino = ino,
	};
	while ((size_t)used < len && s[used] == ' ')
		used++;
	l->path = s + used;
	l->path_len = len - (size_t)used;
	return true;
}

/* The kernel writes a newline as \012 and nothing else escaped. */
static char *unescape(const char *s, size_t len)
{
	char *out = malloc(len + 1);
	size_t n = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(s + i, "\\012", 4)) {
			out[n++] = '\n';
			i += 3;
		} else {
			out[n++] = s[i];
		}
	}
	out[n] = '\0';
	return out;
}

static int add_range(struct map_object *o, const struct map_range *r)
{
	struct map_range *p;

	/* Grows at powers of two, so that the capacity need not be kept. */
	if (!(o->nranges & (o->nranges - 1))) {
		p = realloc(o->ranges, (o->nranges ? o->nranges * 2 : 1) * sizeof(*p));
		if (!p)
			return -ENOMEM;
		o->ranges = p;
	}
	o->ranges[o->nranges++] = *r;
	return 0;
}

static int add_object(struct proc_maps *m, const struct line *l)
{
	struct map_object *o;
	size_t len;

	if (!(m->n & (m->n - 1))) {
		o = realloc(m->objects, (m->n ? m->n * 2 : 1) * sizeof(*o));
		if (!o)
			return -ENOMEM;
		m->objects = o;
	}
	o = &m->objects[m->n];
	*o = (struct map_object){.dev = l->dev, .ino = l->ino, .fd = -1};
	o->path = unescape(l->path, l->path_len);
	if (!o->path)
		return -ENOMEM;
	len = strlen(o->path);
	if (len > strlen(DELETED) && !strcmp(o->path + len - strlen(DELETED), DELETED)) {
		o->path[len - strlen(DELETED)] = '\0';
		o->deleted = true;
	}
	m->n++;
	return 0;
}

static void object_clear(struct map_object *o)
{
	if (o->fd >= 0)
		close(o->fd);
	free(o->path);
	free(o->ranges);
}

static void drop_without_code(struct proc_maps *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++) {
		bool exec = false;

		for (size_t j = 0; j < m->objects[i].nranges; j++)
			exec |= m->objects[i].ranges[j].exec;
		if (exec)
			m->objects[kept++] = m->objects[i];
		else
			object_clear(&m->objects[i]);
	}
	m->n = kept;
}

int proc_maps__parse(const char *text, size_t len, struct proc_maps **out)
{
	struct proc_maps *m = calloc(1, sizeof(*m));
	const char *end = text + len, *p = text;
	int err = -ENOMEM;

	*out = NULL;
	if (!m)
		goto out;
	for (const char *nl; p < end; p = nl + 1) {
		struct line l;
		size_t i;

		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			nl = end;
		/* inode 0: anonymous memory, [vdso], [stack] */
		if (!parse_line(p, (size_t)(nl - p), &l) || !l.ino)
			continue;
		/* The mappings of one object are neighbours as a rule. */
		for (i = m->n; i-- > 0;)
			if (m->objects[i].ino == l.ino && m->objects[i].dev == l.dev)
				break;
		if (i == (size_t)-1) {
			err = add_object(m, &l);
			if (err)
				goto out;
			i = m->n - 1;
		}
		err = add_range(&m->objects[i], &l.range);
		if (err)
			goto out;
	}
	drop_without_code(m);
	*out = m;
	m = NULL;
	err = 0;
out:
	proc_maps__free(m);
	return err;
}

void proc_maps__free(struct proc_maps *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		object_clear(&m->objects[i]);
	free(m->objects);
	free(m);
}

/* Path inside the target's root, links resolved inside it too; a FIFO there must not block. */
static int open_in_root(int root_fd, const char *path)
{
	struct open_how how = {
	    .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/*
 * Does the target's memory hold this file's beginning, or another piece that nobody patches? 0, -ESTALE: another one, or another
 * errno: that cannot be seen.
 */
static int compare_memory(const struct map_object *o, const char *proc, int fd)
{
	const struct map_range *r = NULL;
	char path[64], in_file[4096], in_memory[4096];
	ssize_t n, m;
	int mem;

	for (size_t i = 0; i < o->nranges && !r; i++)
		if (!o->ranges[i].off && !o->ranges[i].write)
			r = &o->ranges[i];
	for (size_t i = 0; i < o->nranges && !r; i++)
		if (!o->ranges[i].exec && !o->ranges[i].write)
			r = &o->ranges[i];
	if (!r)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/mem", proc);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return -errno;
	n = pread(fd, in_file, sizeof(in_file), (off_t)r->off);
	m = n > 0 ? pread(mem, in_memory, (size_t)n, (off_t)r->start) : -1;
	close(mem);
	if (n <= 0 || m != n)
		return -EIO;
	return memcmp(in_file, in_memory, (size_t)n) ? -ESTALE : 0;
}

/*
 * Keeps fd when it is the object's inode. The device numbers differ on btrfs and on older
 * overlayfs, where stat() and maps do not mean the same one: then the contents decide.
 */
static bool accept_fd(struct map_object *o, const char *proc, int fd)
{
	struct stat st;
	int err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != o->ino)
		goto refuse;
	err = st.st_dev == o->dev ? 0 : compare_memory(o, proc, fd);
	if (err == -ESTALE)
		goto refuse;
	o->fd = fd;
	o->open_errno = err ? EXDEV : 0;
	return true;
refuse:
	close(fd);
	return false;
}

/*
 * Any of its mappings will do: one may have been split or unmapped since maps was read. By now
 * another file can be mapped at the same place (dlclose, dlopen), so what opens is checked.
 * 0, -EINVAL: a mapped device, or why not.
 */
static int open_mapped(struct map_object *o, const char *proc)
{
	int err = -ENOENT;

	for (size_t i = 0; i < o->nranges && i < 8; i++) {
		char path[96];
		struct stat st;
		int fd;

		snprintf(path, sizeof(path), "%s/map_files/%llx-%llx", proc,
			 (unsigned long long)o->ranges[i].start,
			 (unsigned long long)o->ranges[i].end);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0) {
			err = -errno;
			continue;
		}
		/* memfd and the like are regular files too */
		err = !fstat(fd, &st) && S_ISREG(st.st_mode) ? -ESTALE : -EINVAL;
		if (accept_fd(o, proc, fd))
			return 0;
	}
	return err;
}

static void open_object(struct map_object *o, const char *proc, int root_fd)
{
	int fd, err = open_mapped(o, proc);
	char path[64];

	if (!err)
		return;
	o->open_errno = -err;
	if (err == -EINVAL)
		return;
	snprintf(path, sizeof(path), "%s/exe", proc);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && accept_fd(o, proc, fd))
		return;
	if (root_fd < 0 || o->path[0] != '/')
		return;
	fd = open_in_root(root_fd, o->path);
	if (fd < 0) {
		o->open_errno = -fd;
		return;
	}
	if (!accept_fd(o, proc, fd))
		o->open_errno = ESTALE;
}

/* The same file? Compared through fstat on both sides, where device numbers agree. */
static bool is_file(const struct map_object *o, const struct stat *st)
{
	struct stat own;

	if (o->fd >= 0 && !o->open_errno && !fstat(o->fd, &own))
		return own.st_ino == st->st_ino && own.st_dev == st->st_dev;
	return o->ino == st->st_ino && o->dev == st->st_dev;
}

/* A file whose name really ends in " (deleted)" is not deleted. */
static void check_deleted(struct map_object *o, int root_fd)
{
	char *full;
	struct stat st;
	int fd;

	if (!o->deleted || root_fd < 0 || asprintf(&full, "%s" DELETED, o->path) < 0)
		return;
	fd = open_in_root(root_fd, full);
	if (fd >= 0 && !fstat(fd, &st) && is_file(o, &st)) {
		free(o->path);
		o->path = full;
		full = NULL;
		o->deleted = false;
	}
	if (fd >= 0)
		close(fd);
	free(full);
}

/*
 * The kernel writes paths as the reader's root sees them. Of a target that was only chroot()ed
 * they start with the path of its root, which the target itself does not see.
 */
static void strip_root(struct proc_maps *m, const char *proc)
{
	char path[64], root[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/root", proc);
	n = readlink(path, root, sizeof(root));
	if (n <= 1 || (size_t)n == sizeof(root))
		return;
	for (size_t i = 0; i < m->n; i++) {
		char *s = m->objects[i].path;

		if (!strncmp(s, root, (size_t)n) && s[n] == '/')
			memmove(s, s + n, strlen(s + n) + 1);
	}
}

static void find_exe(struct proc_maps *m, const char *proc)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/exe", proc);
	if (stat(path, &st))
		return;
	for (size_t i = 0; i < m->n; i++)
		m->objects[i].is_exe = is_file(&m->objects[i], &st);
}

/* Where the kernel loaded the interpreter: exact even when its file was replaced. */
static uint64_t interpreter_base(const char *proc)
{
	char path[64];
	Elf64_auxv_t v;
	uint64_t base = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/auxv", proc);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (read(fd, &v, sizeof(v)) == (ssize_t)sizeof(v) && v.a_type != AT_NULL)
		if (v.a_type == AT_BASE)
			base = v.a_un.a_val;
	close(fd);
	return base;
}

/* PT_INTERP of the executable, for when auxv cannot be read. */
static void find_ldso_by_name(struct proc_maps *m, int root_fd)
{
	struct elf_image *img = NULL;
	const uint8_t *name = NULL;
	struct stat st;
	size_t len = 0;
	int fd = -1;

	for (size_t i = 0; i < m->n; i++)
		if (m->objects[i].is_exe && m->objects[i].fd >= 0)
			elf_image__open(m->objects[i].fd, m->objects[i].path, &img, NULL);
	if (img && root_fd >= 0 && !elf_image__section(img, ".interp", &name, &len, NULL) && len &&
	    !name[len - 1])
		fd = open_in_root(root_fd, (const char *)name);
	if (fd >= 0) {
		if (!fstat(fd, &st))
			for (size_t i = 0; i < m->n; i++)
				m->objects[i].is_ldso = is_file(&m->objects[i], &st);
		close(fd);
	}
	elf_image__free(img);
}

static void find_ldso(struct proc_maps *m, const char *proc, int root_fd)
{
	uint64_t base = interpreter_base(proc);

	for (size_t i = 0; i < m->n && base; i++) {
		const struct map_object *o = &m->objects[i];

		for (size_t j = 0; j < o->nranges; j++) {
			if (base >= o->ranges[j].start && base < o->ranges[j].end) {
				m->objects[i].is_ldso = true;
				return;
			}
		}
	}
	find_ldso_by_name(m, root_fd);
}

void proc_maps__open(struct proc_maps *m, const char *proc)
{
	char path[64];
	int root_fd;

	strip_root(m, proc);
	snprintf(path, sizeof(path), "%s/root", proc);
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < m->n; i++) {
		open_object(&m->objects[i], proc, root_fd);
		check_deleted(&m->objects[i], root_fd);
	}
	find_exe(m, proc);
	find_ldso(m, proc, root_fd);
	if (root_fd >= 0)
		close(root_fd);
}

int proc_maps__read(pid_t pid, struct proc_maps **out, struct err *e)
{
	struct proc_maps *m = NULL;
	char proc[32];
	char *text = NULL;
	int err;
	size_t len;

	*out = NULL;
	err = proc_state__live_task(pid, proc, sizeof(proc), e);
	if (err)
		return err;
	err = proc_state__read_file(proc, "maps", &text, &len);
	if (err == -ENOENT || err == -ESRCH) {
		err = err_set(e, -ESRCH, "no process %d: it has just ended", pid);
		goto out;
	}
	if (err) {
		err_set(e, err, "process %d: cannot read its maps: %s%s", pid, strerror(-err),
			err == -EACCES || err == -EPERM ? " (needs root or CAP_SYS_PTRACE)" : "");
		goto out;
	}
	if (!len) {
		err = proc_state__no_memory(pid, proc, e);
		goto out;
	}
	err = proc_maps__parse(text, len, &m);
	if (err) {
		err_set(e, err, "process %d: its maps: %s", pid, strerror(-err));
		goto out;
	}
	proc_maps__open(m, proc);
	*out = m;
	m = NULL;
out:
	free(text);
	proc_maps__free(m);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * elf_dump FILE [ROOT]: everything discovery finds, one line each, for elf_matrix.py to compare
 * with readelf and nm. elf_dump -p PID: the process's objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/maps.h"
#include "elf/symbols.h"
#include "elf/usdt.h"

static const char *const kinds[] = {"unreadable", "const", "reg", "mem"};

static void dump_arg(const struct usdt_arg *a)
{
	printf(" [%s size=%d signed=%d float=%d base=%d index=%d scale=%d shift=%d rip=%d "
	       "off=%lld%s%s]",
	       kinds[a->kind], a->size, a->is_signed, a->is_float, a->base, a->index, a->scale,
	       a->shift, a->rip_rel, (long long)a->off, a->why ? " why=" : "",
	       a->why ? a->why : "");
}

static void dump_info(const struct elf_image *img)
{
	const struct elf_info *i = elf_image__info(img);

	printf("info machine=%d pie=%d interp=%d go=%d rust=%d except=%d throw=%d cancel=%d "
	       "switch=%d stripped=%d entry=%#llx id=",
	       i->machine, i->pie, i->has_interp, i->is_go, i->is_rust, i->has_gcc_except,
	       i->imports_throw, i->imports_cancel, i->imports_stack_switch, i->stripped,
	       (unsigned long long)i->entry);
	for (size_t k = 0; k < i->build_id_len; k++)
		printf("%02x", i->build_id[k]);
	printf("\n");
}

static int dump_file(const char *path, const char *root)
{
	struct symbols_opts opts = {.root = root};
	struct elf_image *img = NULL;
	struct usdt_table *t = NULL;
	struct func_table *f = NULL;
	struct err e;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	err = elf_image__open(fd, path, &img, &e);
	if (!err)
		err = usdt_table__read(img, &t, &e);
	if (!err)
		err = func_table__read(img, &opts, &f, &e);
	if (err) {
		fprintf(stderr, "%s\n", e.text);
		goto out;
	}
	dump_info(img);
	printf("markers n=%zu bad=%zu\n", t->n, t->bad);
	for (size_t i = 0; i < t->n; i++) {
		const struct usdt_marker *m = &t->markers[i];

		printf("marker %s:%s addr=%#llx off=%#llx sema=%#llx args=%s", m->provider, m->name,
		       (unsigned long long)m->addr, (unsigned long long)m->off,
		       (unsigned long long)m->sema_off, m->argstr);
		for (unsigned int j = 0; j < m->nargs; j++)
			dump_arg(&m->args[j]);
		printf("\n");
	}
	printf("functions n=%zu source=%s\n", f->n, f->source);
	for (size_t i = 0; i < f->n; i++)
		printf("func %#llx %#llx %llu %x %u %s\t%s\n", (unsigned long long)f->funcs[i].addr,
		       (unsigned long long)f->funcs[i].off, (unsigned long long)f->funcs[i].size,
		       f->funcs[i].flags, f->funcs[i].alias_of, f->funcs[i].name,
		       f->funcs[i].demangled);
out:
	func_table__free(f);
	usdt_table__free(t);
	elf_image__free(img);
	close(fd);
	return err;
}

static int dump_process(pid_t pid)
{
	struct proc_maps *m;
	struct err e;
	int err = proc_maps__read(pid, &m, &e);

	if (err) {
		fprintf(stderr, "%d %s\n", err, e.text);
		return err;
	}
	for (size_t i = 0; i < m->n; i++) {
		const struct map_object *o = &m->objects[i];

		struct stat st = {0};

		if (o->fd >= 0)
			fstat(o->fd, &st);
		printf("object deleted=%d exe=%d ldso=%d ino=%llu fdino=%llu errno=%d ranges=%zu "
		       "path=%s\n",
		       o->deleted, o->is_exe, o->is_ldso, (unsigned long long)o->ino,
		       (unsigned long long)st.st_ino, o->open_errno, o->nranges, o->path);
	}
	proc_maps__free(m);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "-p"))
		return dump_process(atoi(argv[2])) != 0;
	if (argc < 2)
		return 2;
	return dump_file(argv[1], argc > 2 ? argv[2] : NULL) != 0;
}

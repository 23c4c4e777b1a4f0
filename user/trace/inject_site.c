// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What injection must know of a process; see inject_site.h. */
#include "trace/inject_site.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "elf/image.h"
#include "elf/proc_state.h"
#include "log.h"

#define PHDRS_MAX 64
#define PAGE	  4096ull
/* The area is looked for between these. */
#define LOWEST	0x100000000ull
#define HIGHEST 0x7fff00000000ull

/* --- symbols ------------------------------------------------------------------------------------ */

/* Run-time address of an address of the file; 0: it is not mapped executable. */
static uint64_t runtime(const struct inject_object *o, uint64_t addr)
{
	uint64_t off;

	if (elf_image__addr_to_off(o->img, addr, &off))
		return 0;
	for (size_t i = 0; i < o->map->nranges; i++) {
		const struct map_range *r = &o->map->ranges[i];

		if (r->exec && off >= r->off && off - r->off < r->end - r->start)
			return r->start + (off - r->off);
	}
	return 0;
}

/* Calls fn for each function that the object exports, until it returns true. */
static bool each_export(const struct inject_object *o,
			bool (*fn)(void *ctx, const char *name, const Elf64_Sym *sym), void *ctx)
{
	const uint8_t *syms, *strs;
	size_t syms_len, strs_len;
	Elf64_Sym sym;

	if (!o->img || elf_image__section(o->img, ".dynsym", &syms, &syms_len, NULL) ||
	    elf_image__section(o->img, ".dynstr", &strs, &strs_len, NULL) || !strs_len ||
	    strs[strs_len - 1])
		return false;
	for (size_t i = 0; (i + 1) * sizeof(sym) <= syms_len; i++) {
		memcpy(&sym, syms + i * sizeof(sym), sizeof(sym));
		if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF ||
		    sym.st_name >= strs_len)
			continue;
		if (fn(ctx, (const char *)strs + sym.st_name, &sym))
			return true;
	}
	return false;
}

struct lookup {
	const char *name;
	uint64_t addr;
};

static bool is_it(void *ctx, const char *name, const Elf64_Sym *sym)
{
	struct lookup *l = ctx;

	if (strcmp(name, l->name))
		return false;
	l->addr = sym->st_value;
	return true;
}

static uint64_t export_addr(const struct inject_object *o, const char *name)
{
	struct lookup l = {.name = name};

	return each_export(o, is_it, &l) ? runtime(o, l.addr) : 0;
}

static bool exports(const struct inject_object *o, const char *name)
{
	struct lookup l = {.name = name};

	return each_export(o, is_it, &l);
}

static bool keep_symbol(void *ctx, const char *name, const Elf64_Sym *sym)
{
	struct inject_object *o = ctx;
	uint64_t start = runtime(o, sym->st_value);
	struct inject_symbol *bigger;

	if (!start || !sym->st_size)
		return false;
	if (!(o->nsymbols & (o->nsymbols - 1))) {
		bigger = realloc(o->symbols, (o->nsymbols ? 2 * o->nsymbols : 1) * sizeof(*bigger));
		if (!bigger)
			return true;
		o->symbols = bigger;
	}
	o->symbols[o->nsymbols++] =
	    (struct inject_symbol){.start = start, .end = start + sym->st_size, .name = name};
	return false;
}

/* --- objects ------------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_libc(const char *base)
{
	static const char *const names[] = {"libc.so",	   "libc-2.",  "libpthread.so",
					    "libpthread-", "libdl.so", "libdl-2."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(base, names[i], strlen(names[i])))
			return true;
	return false;
}

static enum code_owner owner_of(const struct inject_object *o)
{
	/* musl's dynamic linker is its C library. */
	if (o->map->is_ldso)
		return exports(o, "pthread_create") ? CODE_LIBC : CODE_LDSO;
	if (is_libc(base_name(o->map->path)))
		return CODE_LIBC;
	if (!exports(o, "malloc"))
		return CODE_OTHER;
	return o->map->is_exe ? CODE_MIXED : CODE_ALLOCATOR;
}

static int read_object(struct inject_site *s, struct inject_object *o, struct err *e)
{
	struct err why;
	const char *base = base_name(o->map->path);

	if (o->map->fd < 0 || o->map->open_errno ||
	    elf_image__open(o->map->fd, o->map->path, &o->img, &why)) {
		o->owner = CODE_UNKNOWN;
		return 0;
	}
	if (o->map->is_exe && elf_image__headers(o->img)->machine != ELF_X86_64)
		return err_set(e, -EOPNOTSUPP, "process %d is no 64-bit x86 program", s->pid);
	o->owner = owner_of(o);
	if (o->owner == CODE_LIBC)
		each_export(o, keep_symbol, o);
	s->has_cuda |= exports(o, "cuDriverGetVersion") || exports(o, "cudaRuntimeGetVersion");
	if (strstr(base, "libqbpf_cupti.so") && exports(o, "qbpf_agent_start"))
		snprintf(s->loaded, sizeof(s->loaded), "libqbpf_cupti.so");
	return 0;
}

static int find_functions(struct inject_site *s, struct err *e)
{
	struct {
		const char *name;
		uint64_t *to;
	} wanted[] = {
	    {"__errno_location", &s->consts.errno_location},
	    {"pthread_create", &s->consts.pthread_create},
	    {"pthread_detach", &s->consts.pthread_detach},
	    {"dlopen", &s->consts.dlopen},
	    {"dlsym", &s->consts.dlsym},
	    {"dlerror", &s->consts.dlerror},
	};

	for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++) {
		for (size_t i = 0; i < s->maps->n && !*wanted[w].to; i++)
			if (s->objects[i].owner == CODE_LIBC)
				*wanted[w].to = export_addr(&s->objects[i], wanted[w].name);
		if (!*wanted[w].to)
			return err_set(e, -EOPNOTSUPP,
				       "process %d has no %s: it is statically linked, or its C "
				       "library is too old",
				       s->pid, wanted[w].name);
	}
	return 0;
}

/* --- room --------------------------------------------------------------------------------------- */

static bool read_target(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = {.iov_base = buf, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/*
 * Nothing is there, or, if `left`, what a qbpf has left that was killed: its area is gone, so the thread
 * that was sent is out, and the new one has ended.
 */
static bool is_free(pid_t pid, uint64_t addr, bool left)
{
	size_t code = INJECT_CODE_BYTES;
	uint8_t buf[PAGE], byte;
	struct inject_consts c;

	if (INJECT_STUB_BYTES > sizeof(buf) || !read_target(pid, addr, buf, INJECT_STUB_BYTES))
		return false;
	memcpy(&c, buf + code, sizeof(c));
	if (left && !memcmp(buf, inject_stub_begin, code) && c.area &&
	    !read_target(pid, c.area, &byte, sizeof(byte)))
		return true;
	for (size_t i = 0; i < INJECT_STUB_BYTES; i++)
		if (buf[i])
			return false;
	return true;
}

/*
 * What is mapped behind a code segment's end, up to the end of its page, and is no part of another
 * segment; 0: nothing, or not empty.
 */
static uint64_t cave_in(const struct inject_site *s, const struct inject_object *o, bool left)
{
	Elf64_Phdr ph[PHDRS_MAX];
	Elf64_Ehdr eh;
	size_t n;

	if (pread(o->map->fd, &eh, sizeof(eh), 0) != sizeof(eh) || eh.e_phentsize != sizeof(ph[0]))
		return 0;
	n = eh.e_phnum < PHDRS_MAX ? eh.e_phnum : PHDRS_MAX;
	if (pread(o->map->fd, ph, n * sizeof(ph[0]), (off_t)eh.e_phoff) !=
	    (ssize_t)(n * sizeof(ph[0])))
		return 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t end = ph[i].p_vaddr + ph[i].p_filesz, page_end = (end + PAGE - 1) & -PAGE;
		uint64_t from = (end + 15) & -16ull, at;
		bool alone = true;

		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_X) || ph[i].p_filesz < 16 ||
		    ph[i].p_filesz != ph[i].p_memsz || from + INJECT_STUB_BYTES > page_end)
			continue;
		for (size_t k = 0; k < n; k++)
			alone &= k == i || ph[k].p_type != PT_LOAD || ph[k].p_vaddr >= page_end ||
				 ph[k].p_vaddr + ph[k].p_memsz <= end;
		at = runtime(o, end - 1);
		if (!alone || !at)
			continue;
		at += from - (end - 1);
		if (is_free(s->task, at, left))
			return at;
	}
	return 0;
}

/* The nth string of this kind in its dynamic section; NULL: there are not so many. */
static const char *dynamic_string(const struct inject_object *o, int64_t tag, size_t nth)
{
	const uint8_t *dyn, *strs;
	size_t dyn_len, strs_len;
	Elf64_Dyn d;

	if (!o->img || elf_image__section(o->img, ".dynamic", &dyn, &dyn_len, NULL) ||
	    elf_image__section(o->img, ".dynstr", &strs, &strs_len, NULL) || !strs_len ||
	    strs[strs_len - 1])
		return NULL;
	for (size_t i = 0; (i + 1) * sizeof(d) <= dyn_len; i++) {
		memcpy(&d, dyn + i * sizeof(d), sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == tag && d.d_un.d_val < strs_len && !nth--)
			return (const char *)strs + d.d_un.d_val;
	}
	return NULL;
}

/* Those with this name stay. */
static bool keep(struct inject_site *s, const char *needed)
{
	bool more = false;

	for (size_t i = 0; i < s->maps->n; i++) {
		struct inject_object *o = &s->objects[i];
		const char *soname = o->stays ? NULL : dynamic_string(o, DT_SONAME, 0);

		if (!soname || strcmp(soname, needed))
			continue;
		o->stays = more = true;
	}
	return more;
}

/*
 * The executable, its C library, and what they are linked with, directly and in turn. Any other library may be
 * closed at any moment: behind its code nothing may be put, and no thread be sent there.
 */
static void find_what_stays(struct inject_site *s)
{
	const char *needed;
	bool more = true;

	for (size_t i = 0; i < s->maps->n; i++) {
		struct inject_object *o = &s->objects[i];

		o->stays = o->map->is_exe || o->owner == CODE_LIBC || o->owner == CODE_LDSO;
	}
	while (more) {
		more = false;
		for (size_t i = 0; i < s->maps->n; i++)
			for (size_t n = 0; s->objects[i].stays &&
					   (needed = dynamic_string(&s->objects[i], DT_NEEDED, n));
			     n++)
				more |= keep(s, needed);
	}
}

static int find_cave(struct inject_site *s, struct err *e)
{
	for (size_t i = 0; i < 2 * s->maps->n && !s->cave; i++) {
		const struct inject_object *o = &s->objects[i % s->maps->n];

		if (!o->img || o->owner == CODE_UNKNOWN || !o->stays)
			continue;
		s->cave = cave_in(s, o, i >= s->maps->n);
		if (s->cave)
			log_dbg("code goes behind that of %s", o->map->path);
	}
	return s->cave
		   ? 0
		   : err_set(e, -EOPNOTSUPP,
			     "no library that process %d cannot unload has %zu unused bytes behind "
			     "its code",
			     s->pid, INJECT_STUB_BYTES);
}

/*
 * The area's place is the middle of the widest hole of the address space, a little aside so that no
 * two meet.
 */
static int read_maps(struct inject_site *s, struct err *e)
{
	uint64_t before = LOWEST, best = 0, at = 0, start, end;
	char *text = NULL, *line, *next, proc[32];
	uint16_t aside = 0;
	size_t len;
	int err;

	snprintf(proc, sizeof(proc), "/proc/%d", s->task);
	err = proc_state__read_file(proc, "maps", &text, &len);
	if (err)
		return err_set(e, err, "%s/maps: %s", proc, strerror(-err));
	for (line = text; line && sscanf(line, "%lx-%lx", &start, &end) == 2; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (strstr(line, "[vdso]")) {
			s->vdso_start = start;
			s->vdso_end = end;
		}
		if (start <= HIGHEST && start > before && start - before > best) {
			best = start - before;
			at = before;
		}
		before = end > before ? end : before;
	}
	free(text);
	if (best < 1ull << 32)
		return err_set(e, -ENOMEM, "process %d has no room in its address space", s->pid);
	if (getrandom(&aside, sizeof(aside), 0) < 0)
		aside = 0;
	s->consts.area = ((at + best / 2) & -PAGE) + aside * PAGE;
	return 0;
}

/* Does a thread's state, as XSAVE writes it, fit into the area? */
static int check_cpu(struct err *e)
{
	unsigned int a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) ||
	    !__get_cpuid_count(0xd, 0, &a, &b, &c, &d))
		return err_set(e, -EOPNOTSUPP, "this CPU has no XSAVE");
	if (c > INJECT_XSAVE_MAX)
		return err_set(e, -EOPNOTSUPP,
			       "this CPU's threads have %u bytes of state: too much", c);
	return 0;
}

/* First of all: what is found in one program must not be done to the next. */
static int open_memory(struct inject_site *s, struct err *e)
{
	char proc[64], path[80];
	int err = proc_state__live_task(s->pid, proc, sizeof(proc), e);

	if (err)
		return err;
	s->task = atoi(base_name(proc));
	snprintf(path, sizeof(path), "%s/mem", proc);
	s->mem = open(path, O_RDWR | O_CLOEXEC);
	if (s->mem < 0)
		log_dbg("%s: %s", path, strerror(errno));
	return 0;
}

bool inject_site__is_gone(const struct inject_site *s)
{
	char byte;

	return s->mem >= 0 && !pread(s->mem, &byte, 1, (off_t)s->cave);
}

/* --- all of it ---------------------------------------------------------------------------------- */

int inject_site__read(pid_t pid, struct inject_site **out, struct err *e)
{
	struct inject_site *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->pid = pid;
	s->mem = -1;
	err = check_cpu(e);
	if (err)
		goto out;
	err = open_memory(s, e);
	if (err)
		goto out;
	err = proc_maps__read(pid, &s->maps, e);
	if (err)
		goto out;
	s->objects = calloc(s->maps->n + 1, sizeof(*s->objects));
	if (!s->objects) {
		err = err_set(e, -ENOMEM, "out of memory");
		goto out;
	}
	for (size_t i = 0; i < s->maps->n && !err; i++) {
		s->objects[i].map = &s->maps->objects[i];
		err = read_object(s, &s->objects[i], e);
	}
	if (!err)
		err = find_functions(s, e);
	if (!err) {
		find_what_stays(s);
		err = find_cave(s, e);
	}
	if (!err)
		err = read_maps(s, e);
	if (!err) {
		*out = s;
		s = NULL;
	}
out:
	inject_site__free(s);
	return err;
}

void inject_site__free(struct inject_site *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->objects && i < s->maps->n; i++) {
		free(s->objects[i].symbols);
		elf_image__free(s->objects[i].img);
	}
	free(s->objects);
	if (s->mem >= 0)
		close(s->mem);
	proc_maps__free(s->maps);
	free(s);
}

const struct inject_object *inject_site__object(const struct inject_site *s, uint64_t addr)
{
	for (size_t i = 0; i < s->maps->n; i++) {
		const struct map_object *m = s->objects[i].map;

		for (size_t k = 0; k < m->nranges; k++)
			if (addr >= m->ranges[k].start && addr < m->ranges[k].end)
				return &s->objects[i];
	}
	return NULL;
}

enum code_owner inject_site__owner(const struct inject_site *s, uint64_t addr)
{
	const struct inject_object *o = inject_site__object(s, addr);

	if (addr >= s->vdso_start && addr < s->vdso_end)
		return CODE_VDSO;
	return o ? o->owner : CODE_UNKNOWN;
}

const char *inject_site__libc_name(const struct inject_site *s, uint64_t addr)
{
	const struct inject_object *o = inject_site__object(s, addr);

	for (size_t i = 0; o && i < o->nsymbols; i++)
		if (addr >= o->symbols[i].start && addr < o->symbols[i].end)
			return o->symbols[i].name;
	return NULL;
}

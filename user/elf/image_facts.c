/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a file's sections, notes and symbol names say about the program's habits: language,
 * exceptions, thread cancellation, stack switching, loading code, forking; and whether it holds CUDA.
 *
 * A wrong "no" lets preflight arm a probe that can kill the target, so names count wherever
 * they are: imported (.dynsym), or linked in statically (.symtab). Only a library that
 * exports swapcontext or pthread_cancel itself, the C library, does not count as its user.
 */
#include <elf.h>
#include <string.h>

#include "elf/image.h"
#include "elf/image_facts.h"
#include "elf/note.h"

enum habit {
	HABIT_THROW,  /* imported or defined */
	HABIT_CANCEL, /* imported, or linked in statically */
	HABIT_SWITCH, /* the same */
	HABIT_FORK,   /* the same */
	HABIT_DLOPEN, /* the same, and so the rest */
	HABIT_SIGALTSTACK,
	HABIT_SYSCALL,
	HABIT_CUDA, /* defined: exported, or linked in statically */
};

static const struct {
	const char *name;
	enum habit habit;
} habits[] = {
    {"__cxa_throw", HABIT_THROW},
    {"_Unwind_RaiseException", HABIT_THROW},
    {"pthread_cancel", HABIT_CANCEL},
    {"pthread_exit", HABIT_CANCEL}, /* unwinds the thread likewise */
    {"thrd_exit", HABIT_CANCEL},
    {"swapcontext", HABIT_SWITCH},
    {"setcontext", HABIT_SWITCH},
    {"makecontext", HABIT_SWITCH},
    {"jump_fcontext", HABIT_SWITCH},
    {"ontop_fcontext", HABIT_SWITCH},
    {"co_switch", HABIT_SWITCH},     /* libco */
    {"coro_transfer", HABIT_SWITCH}, /* libcoro */
    {"coctx_swap", HABIT_SWITCH},    /* Tencent's libco */
    {"_co_switch_", HABIT_SWITCH},
    {"fork", HABIT_FORK},
    {"_Fork", HABIT_FORK},
    {"forkpty", HABIT_FORK},
    {"daemon", HABIT_FORK},
    {"clone", HABIT_FORK},
    {"clone3", HABIT_FORK},
    {"dlopen", HABIT_DLOPEN},
    {"dlmopen", HABIT_DLOPEN},
    {"dlsym", HABIT_DLOPEN},
    {"dlvsym", HABIT_DLOPEN},
    {"sigaltstack", HABIT_SIGALTSTACK},
    {"syscall", HABIT_SYSCALL},
    {"cudaLaunchKernel", HABIT_CUDA}, /* each library of CUDA has one of these */
    {"cudaMalloc", HABIT_CUDA},
    {"cudaGraphLaunch", HABIT_CUDA},
    {"cuLaunchKernel", HABIT_CUDA},
    {"cuMemAlloc_v2", HABIT_CUDA},
};

#define NHABITS (sizeof(habits) / sizeof(habits[0]))

static int habit_of(const char *name, size_t len)
{
	if (len < 4 || len > 22)
		return -1;
	for (size_t i = 0; i < NHABITS; i++)
		if (!strncmp(habits[i].name, name, len) && !habits[i].name[len])
			return (int)i;
	return -1;
}

#define HABIT_LEN_MAX 64 /* of a name that is looked at */

static size_t name_len(const char *s, size_t room)
{
	size_t n = strnlen(s, room < HABIT_LEN_MAX ? room : HABIT_LEN_MAX);
	const char *at = memchr(s, '@', n);

	return at ? (size_t)(at - s) : n;
}

/* Bit i of seen: habits[i] is imported; of own: it is defined here. */
static void scan_dynsym(const struct elf_image *img, unsigned int *seen, unsigned int *own)
{
	struct elf_section sec, str;
	const uint8_t *syms, *names;
	size_t len, names_len;

	if (elf_image__next_section(img, 0, NULL, SHT_DYNSYM, &sec) ||
	    elf_image__section_header(img, sec.link, &str) ||
	    elf_image__section_data(img, &sec, &syms, &len) ||
	    elf_image__section_data(img, &str, &names, &names_len))
		return;
	for (size_t i = 0; i + sizeof(Elf64_Sym) <= len; i += sizeof(Elf64_Sym)) {
		const char *name;
		Elf64_Sym sym;
		int h;

		memcpy(&sym, syms + i, sizeof(sym));
		if (sym.st_name >= names_len)
			continue;
		name = (const char *)names + sym.st_name;
		h = habit_of(name, name_len(name, names_len - sym.st_name));
		if (h >= 0)
			*(sym.st_shndx == SHN_UNDEF ? seen : own) |= 1u << h;
	}
}

/* Linkers share the tails of names: __swapcontext can be all that shows of swapcontext. */
static void scan_strtab(const struct elf_image *img, unsigned int *seen)
{
	struct elf_section sec, str;
	const uint8_t *names;
	size_t len;

	if (elf_image__next_section(img, 0, NULL, SHT_SYMTAB, &sec) ||
	    elf_image__section_header(img, sec.link, &str) ||
	    elf_image__section_data(img, &str, &names, &len))
		return;
	for (size_t at = 0; at < len;) {
		const char *s = (const char *)names + at;
		size_t n = strnlen(s, len - at), m = name_len(s, n), under = 0;
		int h = habit_of(s, m);

		for (; h < 0 && under < m && s[under] == '_'; under++)
			h = habit_of(s + under + 1, m - under - 1);
		if (h >= 0)
			*seen |= 1u << h;
		at += n + 1;
	}
}

static bool has(const struct elf_image *img, const char *section)
{
	struct elf_section sec;

	return !elf_image__next_section(img, 0, section, 0, &sec);
}

static bool section_contains(const struct elf_image *img, const char *section, const char *text)
{
	const uint8_t *data;
	size_t len;

	return !elf_image__section(img, section, &data, &len, NULL) && data &&
	       memmem(data, len, text, strlen(text));
}

/* What is used, not only there. */
static void note_use(struct elf_info *info, enum habit habit)
{
	switch (habit) {
	case HABIT_THROW:
		info->imports_throw = true;
		break;
	case HABIT_CANCEL:
		info->imports_cancel = true;
		break;
	case HABIT_SWITCH:
		info->imports_stack_switch = true;
		break;
	case HABIT_FORK:
		info->imports_fork = true;
		break;
	case HABIT_DLOPEN:
		info->imports_dlopen = true;
		break;
	case HABIT_SIGALTSTACK:
		info->imports_sigaltstack = true;
		break;
	case HABIT_SYSCALL:
		info->imports_syscall = true;
		break;
	case HABIT_CUDA:
		info->has_cuda = true;
		break;
	}
}

void elf_facts__read(const struct elf_image *img, struct elf_info *info)
{
	unsigned int seen = 0, own = 0, linked = 0;
	struct elf_section sec;

	info->stripped = elf_image__next_section(img, 0, NULL, SHT_SYMTAB, &sec) != 0;
	info->is_go =
	    has(img, ".go.buildinfo") || has(img, ".gopclntab") || has(img, ".note.go.buildid");
	info->has_gcc_except = has(img, ".gcc_except_table");
	info->is_rust = section_contains(img, ".comment", "rustc version");

	scan_dynsym(img, &seen, &own);
	scan_strtab(img, &linked);
	for (unsigned int i = 0; i < NHABITS; i++) {
		bool imported = seen & 1u << i, exported = own & 1u << i;
		bool used = imported || (!exported && (linked & 1u << i));

		if (habits[i].habit == HABIT_CUDA)
			used = exported || (!imported && (linked & 1u << i));
		if (used || (exported && habits[i].habit == HABIT_THROW))
			note_use(info, habits[i].habit);
	}
	/* Linked statically and stripped: it may hold anything. */
	if (info->stripped && !has(img, ".dynsym")) {
		info->imports_fork = info->imports_cancel = true;
		info->imports_dlopen = info->imports_sigaltstack = info->imports_syscall = true;
	}
	/*
	 * A stripped program with libstdc++ linked in has no such name left, but the type name
	 * of std::exception stays in its read-only data.
	 */
	if (!info->imports_throw && info->stripped && info->has_gcc_except)
		info->imports_throw = section_contains(img, ".rodata", "St9exception");
}

void elf_image__learn(const struct elf_image *img, const struct elf_image *debug_file)
{
	struct elf_info *info = (struct elf_info *)(uintptr_t)elf_image__info(img);
	const struct elf_info *more = elf_image__info(debug_file);

	info->imports_throw |= more->imports_throw;
	info->imports_cancel |= more->imports_cancel;
	info->imports_stack_switch |= more->imports_stack_switch;
	info->imports_fork |= more->imports_fork;
	info->imports_dlopen |= more->imports_dlopen;
	info->imports_sigaltstack |= more->imports_sigaltstack;
	info->imports_syscall |= more->imports_syscall;
	info->has_cuda |= more->has_cuda;
}

static bool find_build_id(const uint8_t *data, size_t len, struct elf_info *info)
{
	struct notes it = {.p = data, .end = data + len};
	struct note n;

	while (notes__next(&it, &n)) {
		if (!note__is(&n, ELF_NOTE_GNU, NT_GNU_BUILD_ID) || !n.desc_len ||
		    n.desc_len > BUILD_ID_MAX)
			continue;
		memcpy(info->build_id, n.desc, n.desc_len);
		info->build_id_len = n.desc_len;
		return true;
	}
	return false;
}

/* By section: in a debug file the program headers point at contents that are not there. */
void elf_facts__build_id(const struct elf_image *img, struct elf_info *info)
{
	struct elf_section sec = {0};
	const uint8_t *data;
	size_t len;

	while (!elf_image__next_section(img, sec.index, NULL, SHT_NOTE, &sec)) {
		if (!strcmp(sec.name, ".note.stapsdt"))
			continue;
		if (!elf_image__section_data(img, &sec, &data, &len) && data &&
		    find_build_id(data, len, info))
			return;
	}
}

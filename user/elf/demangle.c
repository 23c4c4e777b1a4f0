/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C++ and Rust names, demangled by libiberty and kept within bounds.
 *
 * A name of a hundred bytes can stand for gigabytes of text (substitutions that double), so
 * the output is taken piece by piece and abandoned beyond a limit. libiberty's callback
 * cannot refuse a piece; it is left by longjmp, which is sound because that variant of
 * the C++ demangler holds its memory on the stack. The one for Rust may hold the decoded
 * characters of one identifier on the heap at that moment; they are lost, at most four bytes
 * for each byte of the hostile name. libiberty bounds its own recursion.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "elf/demangle.h"
#include "elf/symbols.h"

#define MANGLED_MAX   8192
#define DEMANGLED_MAX 65536

struct sink {
	char *text;
	size_t len, cap;
	jmp_buf leave;
};

static void sink_write(const char *piece, size_t len, void *opaque)
{
	struct sink *s = opaque;

	if (!len)
		return;
	if (len > DEMANGLED_MAX - s->len)
		longjmp(s->leave, 1);
	if (s->len + len >= s->cap) {
		size_t cap = (s->len + len + 1) * 2;
		char *p = realloc(s->text, cap);

		if (!p)
			longjmp(s->leave, 1);
		s->text = p;
		s->cap = cap;
	}
	memcpy(s->text + s->len, piece, len);
	s->len += len;
}

/* Legacy Rust names are C++ names that end in a hash; the demangler checks the rest. */
static bool maybe_rust(const char *name)
{
	return (name[0] == '_' && name[1] == 'R') || strstr(name, "17h");
}

static int run(const char *name, struct sink *s)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;

	if (setjmp(s->leave))
		return 0;
	if (maybe_rust(name) && rust_demangle_callback(name, options, sink_write, s))
		return 1;
	s->len = 0;
	return name[1] == 'Z' && cplus_demangle_v3_callback(name, options, sink_write, s);
}

char *symbol_demangle_counted(const char *name, size_t *abandoned)
{
	struct sink s = {0};

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, MANGLED_MAX + 1) > MANGLED_MAX)
		return NULL;
	if (!run(name, &s) || !s.len) {
		*abandoned += s.len;
		free(s.text);
		return NULL;
	}
	s.text[s.len] = '\0';
	return s.text;
}

char *symbol_demangle(const char *name)
{
	size_t abandoned = 0;

	return symbol_demangle_counted(name, &abandoned);
}

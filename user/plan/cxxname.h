/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a demangled C++ or Rust name: where the qualified name lies within return
 * type, template arguments and signature, and whether a name that a person typed means it.
 */
#ifndef QBPF_PLAN_CXXNAME_H
#define QBPF_PLAN_CXXNAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * "void ns::Foo<int>::run<2>(int) const [clone .isra.0]"
 *       ^name                ^params   ^tail  ^end
 * Offsets; without a signature params == tail == end.
 */
struct cxx_name {
	size_t name, params, tail, end;
};

bool name_is_mangled(const char *raw);
/*
 * The longest word in s[0 .. len) (up to `max` bytes, returned as its length) that must stand in
 * a mangled name as it stands in the demangled one; 0: there is none. Words that mangling
 * abbreviates (int, std, allocator, operator ...), also in part, do not count, nor do numbers
 * (the second lambda is E0_).
 */
size_t mangled_token(const char *s, size_t len, const char **token);

void cxx_name__split(const char *demangled, struct cxx_name *out);

/*
 * A typed name, made ready for comparing with many. `fun` means every overload and instance
 * of exactly the qualified name fun; `fun(int)` that overload; `foo<int>` that instance.
 */
struct typed_name {
	char *squeezed; /* no blanks beside punctuation */
	char *token;	/* mangled_token() of the name */
	bool has_params;
	bool has_template;
};

int typed_name__parse(struct typed_name *t, const char *typed);
void typed_name__clear(struct typed_name *t);
/* A quick no from the raw name, so that few names need be demangled. */
bool typed_name__may_be(const struct typed_name *t, const char *raw);
/* demangled may be the same pointer as raw. */
bool typed_name__is(const struct typed_name *t, const char *raw, const char *demangled);

#endif

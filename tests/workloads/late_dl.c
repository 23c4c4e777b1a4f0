// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * dlopen behind a library that is named like a part of the C library: the program that uses it
 * does not look as if it could open libraries, and does.
 */
#include <dlfcn.h>

void *late_open(const char *path);
void *late_open(const char *path)
{
	return dlopen(path, RTLD_NOW);
}

void *late_sym(void *lib, const char *name);
void *late_sym(void *lib, const char *name)
{
	return dlsym(lib, name);
}

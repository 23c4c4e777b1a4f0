/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Globs: * ? [set] [!set] and backslash, over whole names. Unlike fnmatch(3) it never looks
 * at the locale, takes linear space and at most |glob| x |name| steps, and an unclosed '['
 * is an ordinary character, because operator[] is a name.
 */
#ifndef QBPF_PLAN_GLOB_H
#define QBPF_PLAN_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_is_wild(const char *glob);
bool glob_match(const char *glob, const char *s);
bool glob_match_n(const char *glob, const char *s, size_t len);
/* The next run of ordinary characters, all of which every match contains; moves *glob behind it.
 * 0: there is none. */
size_t glob_next_run(const char **glob, const char **run);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers as people read them: three significant digits and a unit. */
#ifndef QBPF_OUT_UNITS_H
#define QBPF_OUT_UNITS_H

#include <stdint.h>

#define UNIT_TEXT 32 /* a buffer that holds any of these */

char *unit__time(char buf[UNIT_TEXT], long double ns); /* "999ns" "1.00us" "12.3ms" "123s" */
char *unit__count(char buf[UNIT_TEXT], uint64_t n);    /* all digits */
char *unit__rate(char buf[UNIT_TEXT], double per_s);   /* "12.3k" */
char *unit__share(char buf[UNIT_TEXT], double share);  /* "12.3%" */
char *unit__value(char buf[UNIT_TEXT], long double v); /* a number without a unit */
char *unit__bytes(char buf[UNIT_TEXT], uint64_t n);    /* "1.5 MiB" */

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strings of foreign origin (symbols, marker names, paths) made fit for an output, and the
 * columns they take there. A terminal never receives a control byte from a target.
 */
#ifndef QBPF_OUT_TEXT_H
#define QBPF_OUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether the locale (the caller has run setlocale(LC_CTYPE, "")) writes UTF-8. */
bool text__utf8(void);

/* Valid UTF-8: each invalid byte becomes U+FFFD. malloc'ed. */
char *text__valid(const char *s);
/* For a terminal: control and invalid bytes as \xNN; with !utf8 all that is not ASCII. malloc'ed.
 */
char *text__printable(const char *s, bool utf8);

/* Columns of printable text. */
unsigned int text__width(const char *s, bool utf8);
/* Cuts printable text to `width` columns, in the middle, with an ellipsis; in place or shorter.
 * malloc'ed. */
char *text__fit(const char *s, unsigned int width, bool utf8);
/* The same of a span's name. Of a function of CUDA "cuda:" gives way first; of one of C++ its parameter
 * list, as "(...)", so that the qualified name stays. */
char *text__fit_name(const char *s, unsigned int width, bool utf8);
/* Writes printable text as lines of at most `width` columns, broken at blanks; all but the first begin
 * with `indent` blanks. */
void text__wrap(FILE *f, const char *s, unsigned int width, unsigned int indent, bool utf8);
/* Writes printable text padded with blanks to `width` columns. */
void text__pad(FILE *f, const char *s, unsigned int width, bool right, bool utf8);

/* A bar of share (0 .. 1) of `width` columns: eighths of a block, or '#'. buf: 4 * width + 5. */
void text__bar(char *buf, double share, unsigned int width, bool utf8);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Talk to the person: every line goes to stderr, prefixed "qbpf: ". Header only, so that each
 * layer may use it. Pure code reports by its return value and struct err instead.
 */
#ifndef QBPF_LOG_H
#define QBPF_LOG_H

#include <stdarg.h>
#include <stdio.h>

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DBG, LOG_LIBBPF };

/* Highest level that is printed; main.c sets it from -v, -vv, -q. */
extern enum log_level log_max;

/* While set, lines are passed here instead of stderr: the full-screen view keeps them. */
extern void (*log_sink)(enum log_level level, const char *line);

void log_vprint(enum log_level level, const char *fmt, va_list ap);
void log_print(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...)  log_print(LOG_ERR, __VA_ARGS__)
#define log_warn(...) log_print(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_print(LOG_INFO, __VA_ARGS__)
#define log_dbg(...)  log_print(LOG_DBG, __VA_ARGS__)

#endif

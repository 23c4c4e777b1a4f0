// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Talk: one line per call, to stderr or to whoever holds the screen. */
#include <string.h>

#include "log.h"

enum log_level log_max = LOG_INFO;
void (*log_sink)(enum log_level level, const char *line);

void log_vprint(enum log_level level, const char *fmt, va_list ap)
{
	char line[1024];
	size_t len;

	if (level > log_max)
		return;
	vsnprintf(line, sizeof(line), fmt, ap);
	len = strlen(line);
	while (len && line[len - 1] == '\n')
		line[--len] = 0;
	if (log_sink)
		log_sink(level, line);
	else
		fprintf(stderr, "qbpf: %s%s\n", level == LOG_WARN ? "warning: " : "", line);
}

void log_print(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vprint(level, fmt, ap);
	va_end(ap);
}

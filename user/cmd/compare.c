// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What diff and check share as commands. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/compare.h"
#include "log.h"
#include "out/text.h"

/* Names of a file are in it: no control byte of theirs reaches the terminal. */
static void tell(enum log_level level, const char *text)
{
	char *printable = text__printable(text, text__utf8());

	log_print(level, "%s", printable ? printable : "out of memory");
	free(printable);
}

void compare__fault(const struct err *e)
{
	tell(LOG_ERR, e->text);
}

int compare__confidence(const char *text, double *out, struct err *e)
{
	char *end;
	double pct = strtod(text, &end);

	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(pct >= 50 && pct <= 99.9999))
		return err_set(e, -EINVAL,
			       "--confidence %.40s: not between 50 and 99.9999 (percent)", text);
	*out = pct / 100;
	return 0;
}

int compare__bad_option(const char *command, char *word, int c)
{
	if (c == ':')
		log_err("%s: needs a value", word);
	else if (optopt && optopt < 256)
		log_err("unknown option -%c (see qbpf %s --help)", optopt, command);
	else
		log_err("unknown option %s (see qbpf %s --help)", word, command);
	return -EINVAL;
}

int compare__load(const char *path, const double *extra, size_t nextra, struct side **out,
		  struct err *e)
{
	int err = side__load(path, extra, nextra, out, e);
	char *caveat;

	if (err)
		return err == -EINVAL ? -EBADMSG : err;
	caveat = side__caveat(*out);
	if (caveat)
		tell(LOG_WARN, caveat);
	free(caveat);
	return 0;
}

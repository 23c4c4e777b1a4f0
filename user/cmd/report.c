// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where a session's figures go; see report.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/report.h"
#include "out/json.h"
#include "out/table.h"

#define WIDTH_LEAST   60
#define WIDTH_UNKNOWN 100
#define WIDTH_SANE    10000

int report__open(struct report *r, const struct options *o, struct err *e)
{
	int fd;

	memset(r, 0, sizeof(*r));
	r->o = o;
	if (!o->json)
		return 0;
	r->json = stdout;
	if (!o->json_file)
		return 0;
	r->fresh = true;
	fd = open(o->json_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	r->made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(o->json_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	r->json = fd < 0 ? NULL : fdopen(fd, "w");
	if (r->json)
		return 0;
	err_set(e, -errno, "%s: %s", o->json_file, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -EIO;
}

/* `err` is what writing to f gave, as far as it is known. */
static int settle(struct report *r, FILE *f, int err, struct err *e)
{
	errno = 0;
	if ((fflush(f) || ferror(f)) && !err)
		err = errno ? -errno : -EIO;
	if (err == -EPIPE) {
		r->gone = true;
		clearerr(f);
		return 0;
	}
	return err ? err_set(e, err, "cannot write the report: %s", strerror(-err)) : 0;
}

unsigned int report__width(void)
{
	const char *columns = getenv("COLUMNS");
	unsigned long asked = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize ws;

	if (isatty(STDOUT_FILENO)) {
		if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) || !ws.ws_col)
			return WIDTH_UNKNOWN;
		return ws.ws_col < WIDTH_LEAST ? WIDTH_LEAST : ws.ws_col;
	}
	if (!asked || asked > WIDTH_SANE)
		return 0;
	return asked < WIDTH_LEAST ? WIDTH_LEAST : (unsigned int)asked;
}

static int write_plain(struct report *r, const struct snapshot *s, bool full, struct err *e)
{
	struct table_opts to = {
	    .width = report__width(),
	    .histograms = full,
	    .tree = full,
	    .probes = full,
	    .price = full,
	};

	errno = 0;
	table__write(stdout, s, &to);
	return settle(r, stdout, ferror(stdout) ? -errno : 0, e);
}

static int write_json(struct report *r, const struct snapshot *s, bool compact, struct err *e)
{
	int err = 0;

	if (r->fresh && ftruncate(fileno(r->json), 0) && errno != EINVAL) /* EINVAL: a pipe */
		err = -errno;
	r->fresh = false;
	if (!err)
		err = json__write_summary(r->json, s, compact);
	return settle(r, r->json, err, e);
}

int report__interim(struct report *r, const struct snapshot *s, struct err *e)
{
	int err = 0;

	if (r->gone)
		return 0;
	if (r->json)
		err = write_json(r, s, true, e);
	if (!err && r->json != stdout)
		err = write_plain(r, s, false, e);
	return err;
}

int report__final(struct report *r, const struct snapshot *s, struct err *e)
{
	int err = 0;

	if (r->gone)
		return 0;
	if (r->json)
		err = write_json(r, s, r->o->interval_s > 0, e);
	if (!err && r->json != stdout)
		err = write_plain(r, s, true, e);
	return err;
}

int report__close(struct report *r, struct err *e)
{
	int err = 0;

	if (r->json && r->json != stdout && fclose(r->json))
		err = err_set(e, -errno, "%s: %s", r->o->json_file, strerror(errno));
	if (r->made && r->fresh)
		unlink(r->o->json_file);
	r->json = NULL;
	return err;
}

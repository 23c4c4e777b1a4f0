// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that commands write; see outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/outfile.h"
#include "log.h"

/* --- names -------------------------------------------------------------------------------------- */

int outname__parse(const char *option, const char *arg, struct outname *out, struct err *e)
{
	if (arg && !*arg)
		return err_set(e, -EINVAL, "%s: an empty file name", option);
	*out = (struct outname){option, arg && strcmp(arg, "-") ? arg : NULL};
	return 0;
}

/* Of a file that is not there: its folder with links resolved, and its name. malloc'ed. */
static char *future_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char *real = dir ? realpath(dir, NULL) : NULL, *full = NULL;

	if (real && asprintf(&full, "%s/%s", real, slash ? slash + 1 : path) < 0)
		full = NULL;
	free(real);
	free(dir);
	return full;
}

/* Both are, or would come to be, one regular file. */
static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;
	bool there = !stat(a, &sa);
	char *fa, *fb;
	bool same;

	if (there != !stat(b, &sb))
		return false;
	if (there)
		return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
	fa = future_path(a);
	fb = future_path(b);
	same = fa && fb && !strcmp(fa, fb);
	free(fa);
	free(fb);
	return same;
}

int outname__apart(const struct outname *outs, size_t nouts, const char *const *ins, size_t nins,
		   struct err *e)
{
	for (size_t i = 0; i < nouts; i++) {
		const struct outname *o = &outs[i];

		for (size_t k = 0; o->option && k < i; k++) {
			if (!outs[k].option || !o->path != !outs[k].path)
				continue;
			if (!o->path)
				return err_set(e, -EINVAL, "%s and %s cannot both go to stdout",
					       outs[k].option, o->option);
			if (same_file(o->path, outs[k].path))
				return err_set(e, -EINVAL, "%s and %s are one file: %s",
					       outs[k].option, o->option, o->path);
		}
		for (size_t k = 0; o->option && o->path && k < nins; k++)
			if (ins[k] && strcmp(ins[k], "-") && same_file(o->path, ins[k]))
				return err_set(e, -EINVAL,
					       "%s %s: that is an input, and would be overwritten",
					       o->option, o->path);
	}
	return 0;
}

/* --- files -------------------------------------------------------------------------------------- */

static char *volatile unlink_on_signal;

static void on_signal(int sig)
{
	if (unlink_on_signal)
		unlink(unlink_on_signal);
	signal(sig, SIG_DFL);
	raise(sig);
}

void outfile__catch_signals(void)
{
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGHUP, on_signal);
}

/* -EACCES: the folder takes no new file. */
static int create_temp(struct outfile *o, mode_t mode)
{
	int fd, err;

	if (asprintf(&o->temp, "%s.XXXXXX", o->path) < 0) {
		o->temp = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(o->temp, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		free(o->temp);
		o->temp = NULL;
		return err;
	}
	unlink_on_signal = o->temp;
	o->f = fdopen(fd, "w");
	if (!o->f) {
		close(fd);
		return -ENOMEM;
	}
	if (fchmod(fd, mode))
		log_dbg("%s: %s", o->temp, strerror(errno));
	return 0;
}

int outfile__open(struct outfile *o, const char *path, struct err *e)
{
	mode_t mask = umask(0), mode = 0666 & ~mask;
	struct stat st;
	bool there;
	int err;

	umask(mask);
	*o = (struct outfile){.f = stdout};
	if (!path)
		return 0;
	o->f = NULL;
	/* Through a symbolic link, so that the link stays. */
	o->path = realpath(path, NULL);
	if (!o->path)
		o->path = strdup(path);
	if (!o->path)
		return err_set(e, -ENOMEM, "out of memory");
	there = !stat(o->path, &st);
	if (there && S_ISREG(st.st_mode))
		mode = st.st_mode & 07777;
	err = there && !S_ISREG(st.st_mode) ? -EACCES : create_temp(o, mode);
	if (err == -EACCES) {
		o->f = fopen(o->path, "we");
		err = o->f ? 0 : -errno;
	}
	return err ? err_set(e, err, "%s: %s", path, strerror(-err)) : 0;
}

int outfile__close(struct outfile *o, int err, struct err *e)
{
	const char *name = o->path ? o->path : "stdout";

	errno = 0;
	if (o->f && (fflush(o->f) || ferror(o->f)) && !err)
		err = err_set(e, errno ? -errno : -EIO, "%s: %s", name,
			      strerror(errno ? errno : EIO));
	if (o->f && o->f != stdout && fclose(o->f) && !err)
		err = err_set(e, -errno, "%s: %s", name, strerror(errno));
	if (o->temp && !err && rename(o->temp, o->path))
		err = err_set(e, -errno, "%s: %s", name, strerror(errno));
	if (o->temp && err)
		unlink(o->temp);
	unlink_on_signal = NULL;
	free(o->temp);
	free(o->path);
	*o = (struct outfile){0};
	return err;
}

int outfile__write(const char *path, int (*write)(FILE *f, const void *what), const void *what,
		   struct err *e)
{
	const char *name = path ? path : "stdout";
	struct outfile o;
	int err = outfile__open(&o, path, e);

	if (!err) {
		err = write(o.f, what);
		if (err)
			err_set(e, err, "%s: %s", name, strerror(-err));
	}
	err = outfile__close(&o, err, e);
	if (err == -EPIPE && !path)
		return 0;
	return err == -EINVAL ? -EIO : err;
}

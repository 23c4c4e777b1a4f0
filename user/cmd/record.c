// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* -o FILE; see record.h. */
#include "cmd/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/outfile.h"
#include "log.h"
#include "out/export.h"

/* As a shell would take it: what is not plain stands in quotes. */
static void put_word(FILE *f, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_=+,./:@%^";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, f);
		return;
	}
	fputc('\'', f);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	}
	fputc('\'', f);
}

static char *command_line(int argc, char **argv)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fputs("qbpf", f);
	for (int i = 0; i < argc; i++) {
		fputc(' ', f);
		put_word(f, argv[i]);
	}
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

/*
 * Any name may be given to a recording, but one of these would be taken for what it is not: by who
 * reads the command line, and by the program that opens such files.
 */
int record__check_name(const char *path, struct err *e)
{
	static const struct {
		const char *suffix, *instead;
	} others[] = {
	    {".txt", "record to a .qbpf, then: qbpf report FILE.qbpf > OUT.txt"},
	    {".html", "record to a .qbpf, then: qbpf report --html=OUT.html FILE.qbpf"},
	    {".htm", "record to a .qbpf, then: qbpf report --html=OUT.html FILE.qbpf"},
	    {".xml", "record to a .qbpf, then: qbpf check --junit OUT.xml FILE.qbpf RULE..."},
	    {".perfetto-trace", "for Perfetto's format name it .pftrace"},
	    {".pb", "for Perfetto's format name it .pftrace"},
	    {".gz", "name it .qbpf, which is compressed as it is"},
	    {".zst", "name it .qbpf, which is compressed as it is"},
	};
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		size_t n = strlen(others[i].suffix);

		if (len > n && !strcasecmp(path + len - n, others[i].suffix))
			return err_set(e, -EINVAL, "-o %.200s: a recording is no %s file: %s", path,
				       others[i].suffix, others[i].instead);
	}
	return 0;
}

int record__open(struct record *r, const struct options *o, int argc, char **argv,
		 struct record_opts *out, struct err *e)
{
	enum export_format format;

	memset(r, 0, sizeof(*r));
	*out = o->record;
	if (!o->output)
		return 0;
	r->o = o;
	out->path = o->output;
	if (!out->ring_bytes)
		out->ring_bytes = RECORD_RING_DEFAULT;
	r->command = command_line(argc, argv);
	out->command = r->command;
	if (!r->command)
		return err_set(e, -ENOMEM, "out of memory");
	if (export__format_of_path(o->output, &format))
		return 0;
	if (asprintf(&r->partial, "%s.partial.qbpf", o->output) < 0) {
		r->partial = NULL;
		return err_set(e, -ENOMEM, "out of memory");
	}
	out->path = r->partial;
	out->shown = o->output;
	return 0;
}

static int export(const struct record *r, struct trace_reader *t, struct err *e)
{
	struct export_opts eo = {0};
	enum export_format format;
	struct outfile out;
	int err;

	if (export__format_of_path(r->o->output, &format))
		return -EINVAL;
	err = outfile__open(&out, r->o->output, e);
	if (!err)
		err = export__write(t, format, &eo, out.f, e);
	return outfile__close(&out, err, e);
}

int record__convert(struct record *r, struct err *e)
{
	struct trace_reader *t = NULL;
	struct err why = {{0}};
	int err;

	if (!r->partial)
		return 0;
	err = trace_reader__open(r->partial, &t, &why);
	if (!err)
		err = export(r, t, &why);
	trace_reader__free(t);
	if (err)
		return err_set(e, err, "%.200s (the recording is in %.150s)", why.text, r->partial);
	if (unlink(r->partial))
		log_warn("%s: %s", r->partial, strerror(errno));
	log_info("wrote %s", r->o->output);
	return 0;
}

void record__clear(struct record *r)
{
	free(r->partial);
	free(r->command);
	memset(r, 0, sizeof(*r));
}

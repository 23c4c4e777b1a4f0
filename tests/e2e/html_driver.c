/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* html_driver.c - `html_driver FIXTURE [per-thread]` writes the page of a recording made by hand. */
#include <stdio.h>

#include "../unit/html_fixture.h"
#include "out/html.h"

int main(int argc, char **argv)
{
	struct trace_reader *r = NULL;
	struct analysis *a = NULL;
	struct err e = {""};
	int err;

	if (argc < 2)
		return 2;
	fix_analyse(argv[1], argc > 2, &r, &a);
	err = html__write(stdout, a, &e);
	if (err)
		fprintf(stderr, "html_driver: %s\n", e.text);
	analysis__free(a);
	trace_reader__free(r);
	return err ? 1 : 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * trace_dump [--count | --gpu] TRACE: what the reader of user/file/ finds, as mktrace's --truth has it: a line
 * of numbers for each event, in the order of the file. --count reads all of it and prints the number
 * alone. --gpu: the ring and the bytes of each record of a GPU instead.
 */
#include <stdio.h>
#include <string.h>

#include "file/reader.h"

static void print(const struct event *ev)
{
	printf("%u,%u,%llu,%llu,%llu,%llu,%u,%u,%u,%u\n", ev->thread, ev->kind,
	       (unsigned long long)ev->start_ns, (unsigned long long)ev->end_ns,
	       (unsigned long long)ev->child_ns, (unsigned long long)ev->arg, ev->span, ev->node,
	       ev->depth, ev->begin_tid);
}

static int print_gpu(struct trace_reader *r, struct err *e)
{
	const struct qbpf_ring_record *rec;
	uint32_t ring;
	int err;

	while ((err = trace_reader__gpu_next(r, &ring, &rec, e)) > 0) {
		printf("%u ", ring);
		for (uint16_t i = 0; i < rec->size; i++)
			printf("%02x", ((const uint8_t *)rec)[i]);
		putchar('\n');
	}
	return err;
}

int main(int argc, char **argv)
{
	int count = argc == 3 && !strcmp(argv[1], "--count"), err;
	int gpu = argc == 3 && !strcmp(argv[1], "--gpu");
	unsigned long long total = 0;
	const struct event *events;
	struct trace_reader *r;
	struct err e;
	size_t n;

	if (argc != 2 + count + gpu) {
		fprintf(stderr, "usage: trace_dump [--count | --gpu] TRACE\n");
		return 2;
	}
	err = trace_reader__open(argv[1 + count + gpu], &r, &e);
	if (!err && gpu)
		err = print_gpu(r, &e);
	while (!err && !gpu && (err = trace_reader__next(r, &events, &n, &e)) > 0) {
		total += n;
		for (size_t i = 0; i < n && !count; i++)
			print(&events[i]);
		err = 0;
	}
	trace_reader__free(r);
	if (err) {
		fprintf(stderr, "trace_dump: %s\n", e.text);
		return 1;
	}
	if (count)
		printf("%llu\n", total);
	return fflush(stdout) ? 1 : 0;
}

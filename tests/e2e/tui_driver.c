// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Drives the full-screen view with snapshots made by hand, without BPF. t_tui.py runs it under
 * a pseudo terminal and tells it by lines on fd 3 what to do:
 *
 *	step	 the next snapshot (1,000 more ticks each)	say TEXT   a message
 *	segv	 a wild write					exit	   exit() with the view open
 *	end	 tui__free() and a normal return		keys N	   takes N bytes of keys
 *
 * When the view has been drawn, a token (an OSC sequence, which shows nothing) goes to the
 * terminal: "start", then "done" for each command. Since it takes the same way as the picture,
 * whoever has read it has read the picture. "keys" says "ready" first; the keys are to come
 * after that, and are taken in one go. Without fd 3 (for looking at it by hand) a snapshot
 * comes every 200 ms. --spans N gives N more spans, --gpu a GPU that ran fifty kernels.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../unit/gpu_records.h"
#include "../unit/snap_fixture.h"
#include "err.h"
#include "out/tui.h"

static unsigned int more_spans, steps;
static bool with_gpu;
static struct snapshot *state;

static void grow_spans(struct snapshot *s)
{
	char name[64];

	for (unsigned int i = 0; i < more_spans; i++) {
		struct snap_span *span;
		struct snap_node *node;

		snprintf(name, sizeof(name), "module%u::Worker::function_%u(int)", i / 50, i);
		span = fixture__span(s, name, SPAN_FUNC, QBPF_HIST_NS);
		span->price_ns = 5000;
		node = fixture__node(s, i % 7 ? s->nnodes : 1, s->nspans - 1, 0, 0, 0);
		for (unsigned int k = 0; k < 20; k++) {
			uint64_t ns = 1000 + (uint64_t)i * 37 % 5000 * (k + 1);

			fixture__add(span, ns, 1);
			node->count++;
			node->total_ns += ns;
			node->self_ns += ns;
		}
		node->min_ns = 1000;
		node->max_ns = 1000 + (uint64_t)i * 37 % 5000 * 20;
	}
}

/* Fifty kernels, one of each name; and as many more of the first as there were steps. */
static struct gpu_summary *make_gpu(void)
{
	static const struct gpu_opts usual;
	static struct gr_list list = {.context = 1, .stream = 7};
	struct gpu *g = gpu__new(&usual);
	struct gpu_summary *s;
	char name[32];

	list.n = 0;
	for (uint32_t i = 1; i <= 50 + steps; i++) {
		if (i <= 50) {
			snprintf(name, sizeof(name), "_Z4%c%c%02ui", 'a' + i % 26, 'k', i);
			gpu__name(g, i, name);
		}
		gr__call(&list, 51, i, 10000 * i, 10000 * i + 2000);
		gr__kernel(&list, i <= 50 ? i : 1, i, 10000 * i + 3000, 10000 * i + 4000 + i);
	}
	gpu__name(g, 51, "cudaLaunchKernel");
	for (size_t i = 0; i < list.n; i++)
		gpu__record(g, 0, &list.items[i].rec.head);
	gpu__finish(g);
	s = gpu__summary(g);
	gpu__free(g);
	return s;
}

static struct snapshot *next(void)
{
	if (!state) {
		state = fixture__strategy();
		grow_spans(state);
		if (with_gpu)
			state->gpu = make_gpu();
	} else {
		/* One second later: 1,000 more ticks of 40 us. */
		state->now_ns += 1000000000ull;
		fixture__add(&state->spans[0], 40000, 1000);
		state->nodes[0].count += 1000;
		state->nodes[0].total_ns += 40000000;
		state->nodes[0].self_ns += 40000000;
		steps++;
		if (with_gpu) {
			gpu_summary__put(state->gpu);
			state->gpu = make_gpu();
		}
	}
	return snapshot__clone(state);
}

static void token(const char *name)
{
	dprintf(STDOUT_FILENO, "\033]%s\a", name);
}

/* Only once all bytes are there, so that none of them is left for later. */
static enum tui_action keys(struct tui *t, int n)
{
	int there;

	token("ready");
	while (!ioctl(tui__fd(t), FIONREAD, &there) && there < n)
		poll(NULL, 0, 1);
	return tui__input(t);
}

/* Returns 1 to end. */
static int command(struct tui *t, char *line)
{
	volatile int *wild = NULL;

	if (!strcmp(line, "step"))
		tui__draw(t, next());
	else if (!strncmp(line, "say ", 4))
		tui__message(t, line + 4);
	else if (!strcmp(line, "segv"))
		*wild = 1;
	else if (!strcmp(line, "exit"))
		exit(3);
	else if (!strcmp(line, "end"))
		return 1;
	else if (!strncmp(line, "keys ", 5) && keys(t, atoi(line + 5)) == TUI_QUIT)
		return 1;
	token("done");
	return 0;
}

static int commands(struct tui *t, FILE *in)
{
	char line[256];
	ssize_t n = read(fileno(in), line, sizeof(line) - 1);
	char *save = NULL;

	if (n <= 0)
		return 1;
	line[n] = '\0';
	for (char *l = strtok_r(line, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		if (command(t, l))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	struct tui *t;
	struct err e;
	FILE *in = fcntl(3, F_GETFD) >= 0 ? fdopen(3, "r") : NULL;

	if (argc == 3 && !strcmp(argv[1], "--spans"))
		more_spans = atoi(argv[2]);
	with_gpu = argc == 2 && !strcmp(argv[1], "--gpu");
	setlocale(LC_CTYPE, "");
	if (tui__new(&t, &e)) {
		fprintf(stderr, "tui_driver: %s\n", e.text);
		return 2;
	}
	tui__draw(t, next());
	if (in)
		token("start");
	for (;;) {
		struct pollfd p[2] = {{.fd = tui__fd(t), .events = POLLIN},
				      {.fd = in ? 3 : -1, .events = POLLIN}};
		int ready = poll(p, 2, in ? -1 : 200);

		if (ready < 0 && errno != EINTR)
			break;
		/* An interrupted poll: a new size, or we were continued. */
		if ((ready < 0 || p[0].revents) && tui__input(t) == TUI_QUIT)
			break;
		if (ready > 0 && p[1].revents && commands(t, in))
			break;
		if (!in && ready == 0)
			tui__draw(t, next());
	}
	tui__free(t);
	snapshot__free(state);
	return 0;
}

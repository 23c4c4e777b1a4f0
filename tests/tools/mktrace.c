// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mktrace OPTIONS OUT.qbpf: a trace of a made-up program, the same for the same options, through the
 * writer's own interface. Tests of everything that reads traces start from it. --help tells what
 * each shape contains.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/writer.h"
#include "mktrace.h"

static void die(const char *what, int err)
{
	fprintf(stderr, "mktrace: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* xorshift64*: the same numbers everywhere. */
uint64_t make_random(struct maker *m)
{
	m->random ^= m->random >> 12;
	m->random ^= m->random << 25;
	m->random ^= m->random >> 27;
	return m->random * 0x2545f4914f6cdd1dull;
}

/* A latency: at least 0.75 of the base, half of them within +-25 %, with a long tail, and one in
 * a thousand far off. */
uint64_t make_jitter(struct maker *m, uint64_t base_ns)
{
	uint64_t r = make_random(m), quarter = base_ns / 4 + 1;
	uint64_t ns = base_ns - base_ns / 4 + (r >> 40) % quarter;

	ns += (uint64_t)__builtin_ctzll(r | 1ull << 20) * quarter / 2;
	if (!((r >> 24 & 0xffff) % 1000))
		ns += base_ns * (5 + (r >> 60));
	return ns;
}

uint32_t make_span(struct maker *m, const char *name, uint8_t kind, uint8_t hist)
{
	struct trace_span s = {.name = (char *)name,
			       .kind = kind,
			       .hist = hist,
			       .floor_ns = 40 + m->nspans % 7,
			       .price_ns = 2900};
	struct trace_probe begin = {.span = m->nspans + 1,
				    .role = 1,
				    .armed = 1,
				    .off = 0x1000 + 16ull * m->nspans,
				    .reason = ""};
	int err = trace_writer__span(m->writer, &s);

	if (!err)
		err = trace_writer__probe(m->writer, &begin);
	begin.role = 2;
	begin.off += 8;
	begin.reason = m->nspans % 5 == 4 ? "moved to the 0x90 before it" : "";
	if (!err)
		err = trace_writer__probe(m->writer, &begin);
	if (err)
		die("span", err);
	m->counts = realloc(m->counts, (m->nspans + 1) * sizeof(*m->counts));
	m->window_lost = realloc(m->window_lost, (m->nspans + 1) * sizeof(*m->window_lost));
	m->factors = realloc(m->factors, (m->nspans + 1) * sizeof(*m->factors));
	if (!m->counts || !m->window_lost || !m->factors)
		die("span", -ENOMEM);
	m->counts[m->nspans] = (struct trace_count){0};
	m->window_lost[m->nspans] = 0;
	m->factors[m->nspans] = m->slow_name && !strcmp(m->slow_name, name) ? m->slow_factor : 1.0;
	return ++m->nspans;
}

uint32_t make_thread(struct maker *m, uint32_t tid, const char *name, uint64_t start_ns)
{
	struct trace_thread t = {
	    .tgid = MAKE_TGID, .tid = tid, .name = (char *)name, .start_ns = start_ns};
	int err;

	m->threads = realloc(m->threads, (m->nthreads + 1) * sizeof(*m->threads));
	if (!m->threads)
		die("thread", -ENOMEM);
	m->threads[m->nthreads] =
	    (struct made_thread){.clock_ns = start_ns, .start_ns = start_ns, .tid = tid};
	err = trace_writer__thread(m->writer, m->nthreads, &t);
	if (err)
		die("thread", err);
	return m->nthreads++;
}

void make_thread_end(struct maker *m, uint32_t thread, const char *name)
{
	struct trace_thread t = {.tgid = MAKE_TGID,
				 .tid = m->threads[thread].tid,
				 .name = (char *)name,
				 .start_ns = m->threads[thread].start_ns,
				 .end_ns = m->threads[thread].clock_ns};
	int err = trace_writer__thread(m->writer, thread, &t);

	if (err)
		die("thread", err);
}

static uint32_t node_hash(uint32_t parent, uint32_t span)
{
	return (uint32_t)((((uint64_t)parent << 32 | span) * 0x9e3779b97f4a7c15ull) >> 40);
}

/* Twice as many slots as nodes at least: id of the node, 0: free. */
static void grow_node_slots(struct maker *m)
{
	uint32_t mask = m->node_mask ? m->node_mask * 2 + 1 : 1023;

	free(m->node_slots);
	m->node_slots = calloc(mask + 1, sizeof(*m->node_slots));
	m->nodes = realloc(m->nodes, (mask + 1) / 2 * sizeof(*m->nodes));
	if (!m->node_slots || !m->nodes)
		die("node", -ENOMEM);
	m->node_mask = mask;
	for (uint32_t i = 0; i < m->nnodes; i++) {
		uint32_t slot = node_hash(m->nodes[i].parent, m->nodes[i].span) & mask;

		while (m->node_slots[slot])
			slot = (slot + 1) & mask;
		m->node_slots[slot] = i + 1;
	}
}

uint32_t make_node(struct maker *m, uint32_t parent, uint32_t span)
{
	struct trace_node n = {.parent = parent, .span = span};
	uint32_t slot;
	int err;

	if (m->nnodes >= m->node_mask / 2)
		grow_node_slots(m);
	slot = node_hash(parent, span) & m->node_mask;
	for (; m->node_slots[slot]; slot = (slot + 1) & m->node_mask) {
		const struct trace_node *known = &m->nodes[m->node_slots[slot] - 1];

		if (known->parent == parent && known->span == span)
			return known->id;
	}
	n.id = m->nnodes + 1;
	m->nodes[m->nnodes++] = n;
	m->node_slots[slot] = n.id;
	err = trace_writer__node(m->writer, &n);
	if (err)
		die("node", err);
	return n.id;
}

/* What was lost since the last second began, to the file. */
static void write_losses(struct maker *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < m->nspans; i++) {
		struct trace_loss l = {.span = i + 1,
				       .source = SOURCE_BPF,
				       .from_ns = m->window_ns,
				       .to_ns = now_ns,
				       .lost = m->window_lost[i]};
		int err = l.lost ? trace_writer__loss(m->writer, &l) : 0;

		if (err)
			die("loss", err);
		m->window_lost[i] = 0;
	}
	m->window_ns = now_ns;
}

static void tick_second(struct maker *m, uint64_t now_ns)
{
	struct trace_clock c = {.monotonic_ns = now_ns,
				.realtime_ns = now_ns + MAKE_REALTIME,
				.boottime_ns = now_ns + 5000000000ull,
				.error_ns = 120};
	int err;

	write_losses(m, now_ns);
	err = trace_writer__clock(m->writer, &c);
	if (!err)
		err = trace_writer__flush(m->writer);
	if (err)
		die("flush", err);
}

void make_event(struct maker *m, const struct event *ev)
{
	struct trace_count *c = &m->counts[ev->span - 1];
	int err;

	/* OPEN spans are not closed: the kernel counts them apart. */
	if (ev->kind != EVENT_OPEN)
		c->counted++;
	if (m->left)
		m->left--;
	if (ev->end_ns > m->last_ns)
		m->last_ns = ev->end_ns;
	if (ev->end_ns >= m->window_ns + 1000000000ull)
		tick_second(m, ev->end_ns);
	if (ev->kind != EVENT_OPEN && m->lost_in && make_random(m) % m->lost_in == 0) {
		c->lost++;
		m->window_lost[ev->span - 1]++;
		return;
	}
	if (ev->kind != EVENT_OPEN)
		c->streamed++;
	err = trace_writer__event(m->writer, ev);
	if (err)
		die("event", err);
	if (m->truth)
		fprintf(m->truth, "%u,%u,%llu,%llu,%llu,%llu,%u,%u,%u,%u\n", ev->thread, ev->kind,
			(unsigned long long)ev->start_ns, (unsigned long long)ev->end_ns,
			(unsigned long long)ev->child_ns, (unsigned long long)ev->arg, ev->span,
			ev->node, ev->depth, ev->begin_tid);
}

/* --- a call tree, run again and again ----------------------------------------------------------- */

uint64_t make_run(struct maker *m, const struct run *r, const struct branch *tree, uint32_t i,
		  uint32_t parent, uint16_t depth)
{
	const struct branch *b = &tree[i];
	uint32_t span = r->spans[b->span];
	struct event ev = {.kind = EVENT_SPAN, .span = span, .thread = r->thread, .depth = depth};
	uint64_t *clock = &m->threads[r->thread].clock_ns;
	uint64_t self = (uint64_t)((double)make_jitter(m, b->self_ns) * m->factors[span - 1]);
	uint64_t gap = self / (b->nchildren + 1);

	ev.node = make_node(m, parent, span);
	ev.start_ns = *clock;
	*clock += gap;
	for (uint32_t c = 0; c < b->nchildren; c++) {
		ev.child_ns += make_run(m, r, tree, b->first_child + c, ev.node, depth + 1);
		*clock += gap;
	}
	ev.end_ns = *clock;
	make_event(m, &ev);
	return ev.end_ns - ev.start_ns;
}

/* --- shapes ------------------------------------------------------------------------------------- */

static void add_runs(struct maker *m, const struct shape *shape, const uint32_t *spans)
{
	char name[32];

	for (uint32_t t = 0; t < m->want_threads; t++) {
		struct run *r;

		m->runs = realloc(m->runs, (m->nruns + 1) * sizeof(*m->runs));
		if (!m->runs)
			die("run", -ENOMEM);
		r = &m->runs[m->nruns];
		snprintf(name, sizeof(name), "worker-%u", m->nruns);
		*r = (struct run){.shape = shape, .spans = spans, .number = m->nruns};
		r->name = shape->thread_name ? shape->thread_name : strdup(name);
		r->thread = make_thread(m, MAKE_TGID + m->nruns, r->name, m->start_ns);
		m->nruns++;
	}
}

static struct run *next_run(struct maker *m, uint32_t turn)
{
	struct run *first = &m->runs[turn % m->nruns];

	/* Threads of one shape stay together by themselves. */
	if (m->shape->setup)
		return first;
	for (uint32_t i = 0; i < m->nruns; i++)
		if (m->threads[m->runs[i].thread].clock_ns < m->threads[first->thread].clock_ns)
			first = &m->runs[i];
	return first;
}

static void run_shapes(struct maker *m)
{
	uint32_t turn = 0;

	/* A shape without a setup of its own is all others together. */
	for (const struct shape *s = make_shapes; s->name; s++)
		if (s->setup && (s == m->shape || (!m->shape->setup && !s->alone))) {
			uint32_t *spans = calloc(m->depth + 4096, sizeof(*spans));

			if (!spans)
				die("shape", -ENOMEM);
			s->setup(m, spans);
			add_runs(m, s, spans);
		}
	while (m->left) {
		struct run *r = next_run(m, turn++);

		r->shape->step(m, r);
		r->steps++;
	}
	for (uint32_t i = 0; i < m->nruns; i++)
		if (m->runs[i].shape->finish)
			m->runs[i].shape->finish(m, &m->runs[i]);
}

/* --- options ------------------------------------------------------------------------------------ */

static const char usage[] =
    "usage: mktrace [OPTIONS] OUT.qbpf\n"
    "  --spans N       events to make, about (default 100000)\n"
    "  --threads T     threads that run the shape (default 1)\n"
    "  --depth D       of the shape deep (default 600)\n"
    "  --seed S        of all that is random (default 1)\n"
    "  --shift-ms MS   everything so much later\n"
    "  --slow-span NAME=FACTOR  that span's own time is so much longer\n"
    "  --lose N        one event in N is lost\n"
    "  --truth FILE    also each event in the file as a line of numbers: thread, kind, start,\n"
    "                  end, child_ns, arg, span, node, depth, begin_tid\n"
    "  --no-close      end as after a crash: no counts, no index\n"
    "  --shape SHAPE   what happens (default strategy):\n";

static void help(FILE *f)
{
	fputs(usage, f);
	for (const struct shape *s = make_shapes; s->name; s++)
		fprintf(f, "      %-10s %s\n", s->name, s->what);
}

static const struct shape *shape_named(const char *name)
{
	for (const struct shape *s = make_shapes; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	fprintf(stderr, "mktrace: no such shape: %s\n", name);
	exit(2);
}

static uint64_t number(const char *text, uint64_t most)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || !*text || *text == '-' || v > most) {
		fprintf(stderr, "mktrace: not a number up to %llu: %s\n", (unsigned long long)most,
			text);
		exit(2);
	}
	return v;
}

static void slow_span(struct maker *m, char *text)
{
	char *eq = strrchr(text, '='), *end;

	if (eq) {
		*eq = '\0';
		m->slow_name = text;
		m->slow_factor = strtod(eq + 1, &end);
	}
	if (!eq || *end || !eq[1] || !(m->slow_factor > 0 && m->slow_factor < 1e6)) {
		fprintf(stderr, "mktrace: --slow-span wants NAME=FACTOR\n");
		exit(2);
	}
}

static void open_truth(struct maker *m, const char *path)
{
	m->truth = fopen(path, "w");
	if (!m->truth) {
		fprintf(stderr, "mktrace: %s: %s\n", path, strerror(errno));
		exit(1);
	}
}

static void parse(struct maker *m, int argc, char **argv)
{
	static const struct option options[] = {
	    {"spans", required_argument, NULL, 's'},	{"threads", required_argument, NULL, 't'},
	    {"depth", required_argument, NULL, 'd'},	{"seed", required_argument, NULL, 'r'},
	    {"shift-ms", required_argument, NULL, 'm'}, {"slow-span", required_argument, NULL, 'f'},
	    {"lose", required_argument, NULL, 'l'},	{"shape", required_argument, NULL, 'S'},
	    {"truth", required_argument, NULL, 'T'},	{"no-close", no_argument, NULL, 'c'},
	    {"help", no_argument, NULL, 'h'},		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 's')
			m->left = number(optarg, 1000000000);
		else if (c == 't')
			m->want_threads = (uint32_t)number(optarg, 100000);
		else if (c == 'd')
			m->depth = (uint32_t)number(optarg, 20000);
		else if (c == 'r')
			m->random = number(optarg, UINT32_MAX) * 0x9e3779b97f4a7c15ull + 1;
		else if (c == 'm')
			m->start_ns += number(optarg, UINT32_MAX) * 1000000;
		else if (c == 'f')
			slow_span(m, optarg);
		else if (c == 'l')
			m->lost_in = number(optarg, UINT32_MAX);
		else if (c == 'S')
			m->shape = shape_named(optarg);
		else if (c == 'T')
			open_truth(m, optarg);
		else if (c == 'c')
			m->no_close = true;
		else {
			help(c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
	if (optind != argc - 1 || !m->want_threads || !m->depth) {
		help(stderr);
		exit(2);
	}
}

static void begin(struct maker *m, const char *path)
{
	struct trace_meta meta = {
	    .qbpf_version = QBPF_VERSION,
	    .command = "qbpf attach -p 4000 -o made.qbpf",
	    .kernel = "6.18.0-made",
	    .cpu = "A made-up CPU",
	    .clocksource = "tsc",
	    .hostname = "made",
	    .cpus = 8,
	    .start_ns = m->start_ns,
	    .realtime_ns = m->start_ns + MAKE_REALTIME,
	    .sample = 1,
	    .slow = "",
	    .ring_bytes = 8 << 20,
	    .nprices = 4,
	    .price_ns = {1200, 5100, 30000, 1300},
	};
	struct trace_mapping mapping = {.path = "/opt/made/strategy",
					.build_id = "00112233445566778899aabbccddeeff00112233",
					.tgid = MAKE_TGID,
					.start = 0x400000,
					.end = 0x480000,
					.off = 0x1000};
	struct trace_process process = {.tgid = MAKE_TGID,
					.comm =
					    (char *)(m->shape->comm ? m->shape->comm : "strategy"),
					.exe = "/opt/made/strategy",
					.start_ns = m->start_ns};
	struct err e;
	int err = trace_writer__new(path, &meta, &m->writer, &e);

	if (err) {
		fprintf(stderr, "mktrace: %s\n", e.text);
		exit(1);
	}
	err = trace_writer__mapping(m->writer, &mapping);
	if (!err)
		err = trace_writer__process(m->writer, 0, &process);
	if (err)
		die("tables", err);
	m->window_ns = m->last_ns = m->start_ns;
}

static void end(struct maker *m)
{
	struct err e;
	int err;

	if (m->last_ns > m->window_ns)
		write_losses(m, m->last_ns);
	if (m->no_close)
		err = trace_writer__flush(m->writer);
	else
		err = trace_writer__close(m->writer, m->last_ns + 1000, m->counts, m->nspans, &e);
	if (err) {
		fprintf(stderr, "mktrace: %s\n", m->no_close ? strerror(-err) : e.text);
		exit(1);
	}
	if (m->truth && fclose(m->truth)) {
		fprintf(stderr, "mktrace: --truth: %s\n", strerror(errno));
		exit(1);
	}
	trace_writer__free(m->writer);
	free(m->counts);
	free(m->window_lost);
	free(m->factors);
	free(m->threads);
	for (uint32_t i = 0; i < m->nruns; i++) {
		if (!m->runs[i].shape->thread_name)
			free(m->runs[i].name);
		if (i % m->want_threads == 0)
			free((void *)m->runs[i].spans);
	}
	free(m->runs);
	free(m->nodes);
	free(m->node_slots);
}

int main(int argc, char **argv)
{
	struct maker m = {.left = 100000,
			  .want_threads = 1,
			  .depth = 600,
			  .random = 0x9e3779b97f4a7c15ull + 1,
			  .start_ns = 3600ull * 1000000000,
			  .shape = make_shapes};

	parse(&m, argc, argv);
	m.start_ns += m.shape->uptime_ns;
	begin(&m, argv[optind]);
	if (m.shape->lost_in && !m.lost_in)
		m.lost_in = m.shape->lost_in;
	run_shapes(&m);
	end(&m);
	return 0;
}

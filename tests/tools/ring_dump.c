// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ring_dump [OPTION...] AGENT LOG -- CMD ARG...
 *
 * Runs CMD with the CUDA agent and writes what arrives in the ring to LOG, as text: a line for each
 * record, `type field=value ...` with the name last, then `status field value` lines. The exit
 * status is CMD's, or 128 and its signal's number.
 *
 *	--preload | --late	how the agent gets in: LD_PRELOAD (else CUDA_INJECTION64_PATH), or CMD
 *				opens $QBPF_AGENT and starts it on $LATE_RING by itself
 *	--lanes N, --lane-bytes N, --strings N, --strings-bytes N, --nodes, --no-calls, --flush-ms N
 *	--record FILE.qbpf	a trace of it as well
 *	--never-read		polls for the first time when CMD has ended
 *	--stop MS		asks the agent to detach so long after it is on
 *	--stop-at PATH		asks the agent to detach when there is such a file
 *	--gone-at PATH		ends the reading when there is such a file, and waits for CMD
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "file/ring_reader.h"
#include "file/writer.h"

static struct ring_reader *reader;
static FILE *out;
static struct ring_options options;
static enum { INJECT, PRELOAD, LATE } way;
static bool never_read;
static const char *record_path;
static struct trace_writer *writer;
static uint32_t *trace_ids, ntrace_ids; /* by id of the ring */
static long stop_ms = -1;
static const char *stop_path, *gone_path;

static const char *text(uint32_t id)
{
	static char buf[QBPF_RING_STRING_MAX + 1];

	if (ring_reader__string(reader, id, buf, sizeof(buf)) < 0)
		return "-";
	return buf;
}

static void dump_kernel(const struct qbpf_ring_kernel *r)
{
	fprintf(out,
		"kernel start=%" PRIu64 " end=%" PRIu64 " device=%u context=%u stream=%u "
		"correlation=%u grid=%ux%ux%u block=%ux%ux%u shared=%u+%u registers=%u graph=%u "
		"node=%" PRIu64 " name=%s\n",
		r->start_ns, r->end_ns, r->device, r->context, r->stream, r->correlation,
		r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2],
		r->static_shared, r->dynamic_shared, r->registers, r->graph, r->graph_node,
		text(r->name));
}

static void dump_copy(const struct qbpf_ring_copy *r)
{
	fprintf(out,
		"copy start=%" PRIu64 " end=%" PRIu64 " device=%u context=%u stream=%u "
		"correlation=%u bytes=%" PRIu64 " kind=%u src=%u dst=%u async=%u src_device=%u "
		"dst_device=%u graph=%u node=%" PRIu64 "\n",
		r->start_ns, r->end_ns, r->device, r->context, r->stream, r->correlation, r->bytes,
		r->kind, r->src_kind, r->dst_kind, r->flags & 1u, r->src_device, r->dst_device,
		r->graph, r->graph_node);
}

static void dump_set(const struct qbpf_ring_set *r)
{
	fprintf(out,
		"set start=%" PRIu64 " end=%" PRIu64 " device=%u context=%u stream=%u "
		"correlation=%u bytes=%" PRIu64
		" value=%u async=%u memory=%u graph=%u node=%" PRIu64 "\n",
		r->start_ns, r->end_ns, r->device, r->context, r->stream, r->correlation, r->bytes,
		r->value, r->flags & 1u, r->memory_kind, r->graph, r->graph_node);
}

static void dump_call(const struct qbpf_ring_call *r)
{
	fprintf(out,
		"call start=%" PRIu64 " end=%" PRIu64 " tgid=%u tid=%u correlation=%u error=%u "
		"domain=%u cbid=%u name=%s\n",
		r->start_ns, r->end_ns, r->tgid, r->tid, r->correlation, r->error, r->domain,
		r->cbid, text(r->name));
}

static void dump_device(const struct qbpf_ring_device *r)
{
	fprintf(out,
		"device device=%u sms=%u capability=%u.%u clock_khz=%u engines=%u memory=%" PRIu64
		" bandwidth=%" PRIu64 " name=%s\n",
		r->device, r->sms, r->capability_major, r->capability_minor, r->clock_khz,
		r->copy_engines, r->memory_bytes, r->bandwidth_kbps, text(r->name));
}

/* The types of few fields. */
static void dump_small(const struct qbpf_ring_record *rec)
{
	const struct qbpf_ring_sync *s = (const void *)rec;
	const struct qbpf_ring_graph *g = (const void *)rec;
	const struct qbpf_ring_overhead *o = (const void *)rec;
	const struct qbpf_ring_context *c = (const void *)rec;
	const struct qbpf_ring_stream *st = (const void *)rec;
	const struct qbpf_ring_clock_point *p = (const void *)rec;
	const struct qbpf_ring_dropped *d = (const void *)rec;
	const struct qbpf_ring_start *b = (const void *)rec;

	switch (rec->type) {
	case QBPF_RING_SYNC:
		fprintf(out,
			"sync start=%" PRIu64 " end=%" PRIu64
			" context=%u stream=%u correlation=%u "
			"kind=%u event=%u\n",
			s->start_ns, s->end_ns, s->context, s->stream, s->correlation, s->kind,
			s->event);
		break;
	case QBPF_RING_GRAPH:
		fprintf(out,
			"graph start=%" PRIu64 " end=%" PRIu64 " device=%u context=%u stream=%u "
			"correlation=%u graph=%u\n",
			g->start_ns, g->end_ns, g->device, g->context, g->stream, g->correlation,
			g->graph);
		break;
	case QBPF_RING_OVERHEAD:
		fprintf(out,
			"overhead start=%" PRIu64 " end=%" PRIu64 " kind=%u object=%u id=%u,%u,%u "
			"correlation=%u\n",
			o->start_ns, o->end_ns, o->kind, o->object, o->object_id[0],
			o->object_id[1], o->object_id[2], o->correlation);
		break;
	case QBPF_RING_CONTEXT:
		fprintf(out, "context context=%u device=%u null_stream=%u\n", c->context, c->device,
			c->null_stream);
		break;
	case QBPF_RING_STREAM:
		fprintf(out, "stream stream=%u context=%u priority=%u flag=%u correlation=%u\n",
			st->stream, st->context, st->priority, st->flag, st->correlation);
		break;
	case QBPF_RING_CLOCK:
		fprintf(out,
			"clock monotonic=%" PRIu64 " realtime=%" PRIu64 " cupti=%" PRIu64
			" error=%u\n",
			p->monotonic_ns, p->realtime_ns, p->cupti_ns, p->error_ns);
		break;
	case QBPF_RING_DROPPED:
		fprintf(out, "dropped count=%" PRIu64 "\n", d->count);
		break;
	case QBPF_RING_START:
		fprintf(out, "start generation=%u tgid=%u clock=%u\n", b->generation, b->tgid,
			b->clock);
		break;
	default:
		fprintf(out, "type-%u\n", rec->type);
	}
}

static void die(const char *what)
{
	fprintf(stderr, "ring_dump: %s: %s\n", record_path, what);
	exit(1);
}

static void make_trace(void)
{
	struct trace_meta meta = {
	    .qbpf_version = QBPF_VERSION, .command = "ring_dump", .slow = "", .start_ns = now_ns()};
	struct err e;

	if (trace_writer__new(record_path, &meta, &writer, &e))
		die(e.text);
}

/* The trace's id of a string of the ring. */
static uint32_t trace_id(uint32_t id)
{
	if (!id)
		return 0;
	if (id >= ntrace_ids) {
		trace_ids = realloc(trace_ids, (id + 1) * sizeof(*trace_ids));
		if (!trace_ids)
			die("no memory");
		while (ntrace_ids <= id)
			trace_ids[ntrace_ids++] = 0;
	}
	if (!trace_ids[id] && trace_writer__gpu_name(writer, text(id), &trace_ids[id]))
		die("a name cannot be written");
	return trace_ids[id];
}

static void record(const struct qbpf_ring_record *rec)
{
	uint64_t words[QBPF_RING_RECORD_MAX / 8];
	struct qbpf_ring_record *copy = (void *)words;

	memcpy(words, rec, rec->size);
	if (rec->type == QBPF_RING_KERNEL)
		copy->first = trace_id(rec->first);
	if (rec->type == QBPF_RING_CALL)
		((struct qbpf_ring_call *)copy)->name =
		    trace_id(((struct qbpf_ring_call *)copy)->name);
	if (rec->type == QBPF_RING_DEVICE)
		((struct qbpf_ring_device *)copy)->name =
		    trace_id(((struct qbpf_ring_device *)copy)->name);
	if (trace_writer__gpu(writer, 0, copy))
		die("a record cannot be written");
}

static int dump(void *ctx, const struct qbpf_ring_record *rec)
{
	(void)ctx;
	if (writer)
		record(rec);
	switch (rec->type) {
	case QBPF_RING_KERNEL:
		dump_kernel((const void *)rec);
		break;
	case QBPF_RING_COPY:
		dump_copy((const void *)rec);
		break;
	case QBPF_RING_SET:
		dump_set((const void *)rec);
		break;
	case QBPF_RING_CALL:
		dump_call((const void *)rec);
		break;
	case QBPF_RING_DEVICE:
		dump_device((const void *)rec);
		break;
	default:
		dump_small(rec);
	}
	return 0;
}

static void dump_status(void)
{
	struct ring_status s;
	char line[512];
	unsigned i;

	ring_reader__status(reader, &s);
	ring_status__explain(&s, line, sizeof(line));
	fprintf(out, "status explain %s\n", line);
	fprintf(out, "status state %d\nstatus reason %d\nstatus fault %d\nstatus fault_code %d\n",
		s.state, s.reason, s.fault, s.fault_code);
	fprintf(out, "status fault_call %s\nstatus in_call %s\nstatus cupti_path %s\n",
		s.fault_call, s.in_call, s.cupti_path);
	fprintf(out, "status clock %d\nstatus warnings %u\nstatus generation %u\nstatus tgid %u\n",
		s.clock, s.warnings, s.generation, s.tgid);
	fprintf(out, "status cupti_version %u\nstatus driver_version %u\nstatus runtimes %u\n",
		s.cupti_version, s.driver_version, s.runtimes);
	fprintf(out,
		"status kinds %" PRIu64 "\nstatus kinds_refused %" PRIu64
		"\nstatus kind_fault %d\n",
		s.kinds, s.kinds_refused, s.kind_fault);
	fprintf(out, "status threads %u\nstatus buffers_out %u\n", s.threads, s.buffers_out);
	fprintf(out,
		"status dropped %" PRIu64 "\nstatus discarded %" PRIu64 "\nstatus unknown %" PRIu64
		"\nstatus broken %" PRIu64 "\n",
		s.dropped, s.discarded, s.unknown, s.broken);
	fprintf(out,
		"status buffers %" PRIu64 "\nstatus callbacks %" PRIu64 "\nstatus late %" PRIu64
		"\nstatus lost_strings %" PRIu64 "\n",
		s.buffers, s.callbacks, s.late, s.lost_strings);
	fprintf(out, "status bad_lanes %u\nstatus unknown_types %" PRIu64 "\n", s.bad_lanes,
		s.unknown_types);
	fprintf(out, "status on_us %" PRIu64 "\n",
		s.on_ns > s.started_ns ? (s.on_ns - s.started_ns) / 1000 : 0);
	for (i = 0; i < QBPF_RING_TYPES; i++) {
		const char *name = i ? ring_type_name(i) : "other";

		if (name)
			fprintf(out, "status lost_%s %" PRIu64 "\nstatus read_%s %" PRIu64 "\n",
				name, s.lost[i], name, s.read[i]);
	}
}

static pid_t start(const char *agent, char **argv)
{
	char path[64];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ring_reader__fd(reader));
	if (way == LATE) {
		setenv("LATE_RING", path, 1);
		setenv("QBPF_AGENT", agent, 1);
	} else {
		setenv("QBPF_RING", path, 1);
		setenv(way == PRELOAD ? "LD_PRELOAD" : "CUDA_INJECTION64_PATH", agent, 1);
	}
	execvp(argv[0], argv);
	fprintf(stderr, "ring_dump: %s: %m\n", argv[0]);
	_exit(127);
}

static bool is_there(const char *path)
{
	return path && !access(path, F_OK);
}

static void follow(pid_t pid, int *status)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct ring_status s;
	uint64_t on = 0;
	bool stopped = false;

	while (waitpid(pid, status, WNOHANG) == 0) {
		ring_reader__status(reader, &s);
		if (!on && s.state == QBPF_RING_ON)
			on = now_ns();
		if (!stopped &&
		    (is_there(stop_path) ||
		     (on && stop_ms >= 0 && now_ns() - on >= (uint64_t)stop_ms * 1000000))) {
			ring_reader__stop(reader);
			stopped = true;
		}
		if (is_there(gone_path))
			return;
		if (!never_read)
			ring_reader__poll(reader, dump, NULL);
		nanosleep(&pause, NULL);
	}
	ring_reader__poll(reader, dump, NULL);
}

static const struct option longs[] = {
    {"preload", 0, 0, 'p'},    {"late", 0, 0, 'l'},	  {"lanes", 1, 0, 'n'},
    {"lane-bytes", 1, 0, 'b'}, {"strings", 1, 0, 's'},	  {"strings-bytes", 1, 0, 'S'},
    {"nodes", 0, 0, 'N'},      {"no-calls", 0, 0, 'C'},	  {"flush-ms", 1, 0, 'f'},
    {"record", 1, 0, 'R'},     {"never-read", 0, 0, 'r'}, {"stop", 1, 0, 'x'},
    {"stop-at", 1, 0, 'X'},    {"gone-at", 1, 0, 'g'},	  {0},
};

static int parse(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		uint32_t n = optarg ? (uint32_t)strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case 'p':
			way = PRELOAD;
			break;
		case 'l':
			way = LATE;
			break;
		case 'n':
			options.lanes = n;
			break;
		case 'b':
			options.lane_bytes = n;
			break;
		case 's':
			options.strings = n;
			break;
		case 'S':
			options.strings_bytes = n;
			break;
		case 'N':
			options.wants |= QBPF_RING_WANT_NODES;
			break;
		case 'C':
			options.wants |= QBPF_RING_WANT_NO_CALLS;
			break;
		case 'f':
			options.flush_ms = n;
			break;
		case 'R':
			record_path = optarg;
			break;
		case 'r':
			never_read = true;
			break;
		case 'x':
			stop_ms = (long)n;
			break;
		case 'X':
			stop_path = optarg;
			break;
		case 'g':
			gone_path = optarg;
			break;
		default:
			return -1;
		}
	}
	return argc - optind >= 4 && !strcmp(argv[optind + 2], "--") ? optind : -1;
}

int main(int argc, char **argv)
{
	struct err e;
	int status = 0, at = parse(argc, argv);
	pid_t pid;

	if (at < 0) {
		fprintf(stderr, "usage: ring_dump [OPTION...] AGENT LOG -- CMD ARG...\n");
		return 2;
	}
	reader = ring_reader__new(&options, &e);
	out = fopen(argv[at + 1], "w");
	if (!reader || !out) {
		fprintf(stderr, "ring_dump: %s\n", reader ? strerror(errno) : e.text);
		return 1;
	}
	if (record_path)
		make_trace();
	pid = start(argv[at], argv + at + 3);
	if (pid < 0)
		return 1;
	follow(pid, &status);
	dump_status();
	if (writer && trace_writer__close(writer, now_ns(), NULL, 0, &e))
		die(e.text);
	trace_writer__free(writer);
	free(trace_ids);
	fclose(out);
	ring_reader__free(reader);
	if (gone_path)
		waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

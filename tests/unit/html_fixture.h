/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recordings made for the tests of the page: written through trace_writer, read and analysed as any
 * other. One a name; html_fixture__names lists them.
 */
#ifndef QBPF_TESTS_HTML_FIXTURE_H
#define QBPF_TESTS_HTML_FIXTURE_H

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/writer.h"
#include "model/analysis.h"
#include "plan/plan.h"

#define FIX_START    5000000000ull
#define FIX_THREADS  2
#define FIX_HOSTILE1 "</script><script>document.title='owned'</script>"
#define FIX_HOSTILE2 "<!--<script> \" ' \\ & <img src=x onerror=alert(1)>"

struct fixture {
	struct trace_writer *w;
	struct trace_count *counts;
	uint32_t nspans, nnodes;
	bool crash; /* ends without being closed */
	uint64_t now_ns;
};

static inline uint32_t fix_span(struct fixture *f, const char *name, uint8_t kind, uint8_t hist)
{
	struct trace_span s = {.name = (char *)name,
			       .kind = kind,
			       .hist = hist,
			       .way = RET_URETPROBE,
			       .floor_ns = 40,
			       .price_ns = 100};

	assert(!trace_writer__span(f->w, &s));
	f->counts = realloc(f->counts, (f->nspans + 1) * sizeof(*f->counts));
	assert(f->counts);
	f->counts[f->nspans] = (struct trace_count){0};
	return ++f->nspans;
}

static inline uint32_t fix_node(struct fixture *f, uint32_t parent, uint32_t span)
{
	struct trace_node n = {.id = ++f->nnodes, .parent = parent, .span = span};

	assert(!trace_writer__node(f->w, &n));
	return n.id;
}

static inline void fix_event(struct fixture *f, struct event ev)
{
	if (!ev.end_ns)
		ev.end_ns = ev.start_ns;
	assert(!trace_writer__event(f->w, &ev));
	if (ev.end_ns > f->now_ns)
		f->now_ns = ev.end_ns;
	if (ev.kind == EVENT_OPEN)
		return;
	f->counts[ev.span - 1].counted++;
	f->counts[ev.span - 1].streamed++;
}

#include "html_fixture_gpu.h"

static inline void fix_one(struct fixture *f)
{
	uint32_t span = fix_span(f, "one:span", SPAN_MARKER, QBPF_HIST_NS);

	fix_event(f, (struct event){.kind = EVENT_SPAN,
				    .span = span,
				    .node = fix_node(f, 0, span),
				    .start_ns = FIX_START + 10,
				    .end_ns = FIX_START + 1244});
}

static inline void fix_unhit(struct fixture *f)
{
	fix_span(f, "never:hit", SPAN_MARKER, QBPF_HIST_NS);
	fix_span(f, "never:seen", SPAN_INSTANT, QBPF_HIST_NS);
}

static inline void fix_instants(struct fixture *f)
{
	uint32_t span = fix_span(f, "only:instant", SPAN_INSTANT, QBPF_HIST_NS);
	uint32_t node = fix_node(f, 0, span);

	for (uint64_t i = 0; i < 500; i++)
		fix_event(f, (struct event){.kind = EVENT_INSTANT,
					    .span = span,
					    .node = node,
					    .start_ns = FIX_START + i * (1000 + i)});
}

static inline uint64_t fix_bits(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline void fix_values(struct fixture *f)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 1e300, -1e-300, 101.5};
	uint32_t whole = fix_span(f, "only:whole", SPAN_VALUE, QBPF_HIST_INT);
	uint32_t real = fix_span(f, "only:real", SPAN_VALUE, QBPF_HIST_F64);
	uint32_t great = fix_span(f, "only:great", SPAN_VALUE, QBPF_HIST_INT);
	uint64_t at = FIX_START;

	for (int64_t i = 0; i < 2000; i++) {
		fix_event(f, (struct event){.kind = EVENT_VALUE,
					    .span = whole,
					    .start_ns = at += 1000,
					    .arg = (uint64_t)(i % 700 - 350)});
		fix_event(f, (struct event){.kind = EVENT_VALUE,
					    .span = real,
					    .start_ns = at += 1000,
					    .arg = fix_bits(i < 7 ? odd[i] : i / 16.0)});
	}
	fix_event(f, (struct event){.kind = EVENT_VALUE,
				    .span = great,
				    .start_ns = at,
				    .arg = (uint64_t)9007199254740993ll});
}

static inline void fix_hostile(struct fixture *f)
{
	char length[10001];
	const char *const names[] = {FIX_HOSTILE1,
				     FIX_HOSTILE2,
				     "operator\"\"_kg a\"b\\c \x01\xff\x1b[31m \xc3\xa9",
				     length,
				     "bidi \xe2\x80\xae"
				     "drawkcab",
				     "__proto__",
				     "constructor",
				     " ",
				     ""};
	uint64_t at = FIX_START;

	memset(length, 'x', sizeof(length) - 1);
	memcpy(length, "\xe2\x82\xac", 3);
	length[sizeof(length) - 1] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint32_t span = fix_span(f, names[i], SPAN_FUNC, QBPF_HIST_NS);
		uint32_t node = fix_node(f, 0, span);

		for (int n = 0; n < 20; n++) {
			fix_event(f, (struct event){.kind = EVENT_SPAN,
						    .span = span,
						    .node = node,
						    .start_ns = at,
						    .end_ns = at + 1000 * (20 - i)});
			at += 30000;
		}
	}
}

/* 1,000 ticks: "known:tick" takes 1,000 ns, in it "known:bravo" 600 and "known:charlie" 300, in that
 * "known:delta" 200. The last one takes ten times as long. Every fourth runs on the second thread. */
static inline void fix_known(struct fixture *f)
{
	uint32_t tick = fix_span(f, "known:tick", SPAN_MARKER, QBPF_HIST_NS);
	uint32_t bravo = fix_span(f, "known:bravo", SPAN_MARKER, QBPF_HIST_NS);
	uint32_t charlie = fix_span(f, "known:charlie", SPAN_MARKER, QBPF_HIST_NS);
	uint32_t delta = fix_span(f, "known:delta", SPAN_MARKER, QBPF_HIST_NS);
	uint32_t root = fix_node(f, 0, tick), b = fix_node(f, root, bravo);
	uint32_t c = fix_node(f, root, charlie), d = fix_node(f, c, delta);
	struct trace_loss loss = {.span = bravo, .lost = 25};

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t at = FIX_START + i * 100000, x = i == 999 ? 10 : 1;
		uint32_t thread = i % 4 == 3;
		struct event ev = {.kind = EVENT_SPAN, .thread = thread};

		ev.span = bravo, ev.node = b, ev.depth = 1;
		ev.start_ns = at + 50 * x, ev.end_ns = at + 650 * x;
		fix_event(f, ev);
		ev.span = delta, ev.node = d, ev.depth = 2;
		ev.start_ns = at + 700 * x, ev.end_ns = at + 900 * x;
		fix_event(f, ev);
		ev.span = charlie, ev.node = c, ev.depth = 1, ev.child_ns = 200 * x;
		ev.start_ns = at + 650 * x, ev.end_ns = at + 950 * x;
		fix_event(f, ev);
		ev.span = tick, ev.node = root, ev.depth = 0, ev.child_ns = 900 * x;
		ev.start_ns = at, ev.end_ns = at + 1000 * x;
		fix_event(f, ev);
	}
	loss.from_ns = FIX_START + 20000000;
	loss.to_ns = FIX_START + 24500000;
	assert(!trace_writer__loss(f->w, &loss));
	f->counts[bravo - 1].counted += 25;
	f->counts[bravo - 1].lost += 25;
}

/* All that nests in nothing: spans that outlive the one around them, open ones, keyed ones. */
static inline void fix_odd(struct fixture *f)
{
	uint32_t around = fix_span(f, "odd:around", SPAN_MARKER, QBPF_HIST_NS);
	uint32_t aside = fix_span(f, "odd:aside", SPAN_MARKER, QBPF_HIST_NS);
	uint32_t keyed = fix_span(f, "odd:keyed", SPAN_KEYED, QBPF_HIST_NS);
	uint32_t mark = fix_span(f, "odd:mark", SPAN_INSTANT, QBPF_HIST_NS);
	uint32_t root = fix_node(f, 0, around), a = fix_node(f, root, aside);
	uint32_t m = fix_node(f, root, mark);

	for (uint64_t i = 0; i < 300; i++) {
		uint64_t at = FIX_START + i * 10000;

		fix_event(f, (struct event){.kind = EVENT_INSTANT,
					    .span = mark,
					    .node = m,
					    .depth = 1,
					    .start_ns = at + 700});
		fix_event(f, (struct event){.kind = EVENT_SPAN,
					    .span = around,
					    .node = root,
					    .start_ns = at,
					    .end_ns = at + 2000 + i});
		fix_event(f, (struct event){.kind = EVENT_ASIDE,
					    .span = aside,
					    .node = a,
					    .depth = 1,
					    .start_ns = at + 500,
					    .end_ns = at + 4000});
		fix_event(f, (struct event){.kind = EVENT_KEYED,
					    .span = keyed,
					    .arg = i,
					    .begin_tid = 4000,
					    .start_ns = at,
					    .end_ns = at + 25000});
	}
	fix_event(f, (struct event){.kind = EVENT_OPEN,
				    .span = around,
				    .node = root,
				    .start_ns = FIX_START + 3100000,
				    .end_ns = FIX_START + 3200000});
}

static inline void fix_cut(struct fixture *f)
{
	fix_known(f);
	f->crash = true;
}

/* More spans and nodes than a page takes, each of another duration. */
static inline void fix_many(struct fixture *f)
{
	uint64_t at = FIX_START;
	uint32_t parent = 0;
	char name[48];

	for (uint32_t i = 0; i < 6000; i++) {
		uint32_t span;

		snprintf(name, sizeof(name), "ns::Class%u::method(int, double)", i);
		span = fix_span(f, name, SPAN_FUNC, QBPF_HIST_NS);
		for (int k = 0; k < 4; k++) {
			uint32_t node = fix_node(f, k ? parent : 0, span);

			fix_event(f, (struct event){.kind = EVENT_SPAN,
						    .span = span,
						    .node = node,
						    .depth = k ? 1 : 0,
						    .start_ns = at,
						    .end_ns = at + 6100 - i});
			at += 8000;
			parent = k ? parent : node;
		}
	}
}

/* 1,111 nodes, 1 + 10 + 100 + 1,000: each is filled by ten of a tenth of its time. */
static inline uint64_t fix_level(struct fixture *f, uint32_t parent, uint16_t depth, uint32_t i,
				 uint64_t at, uint64_t ns)
{
	uint32_t span = depth ? 2 + (depth - 1) * 10 + i : 1;
	uint32_t node = fix_node(f, parent, span);
	uint64_t inner = 0;

	for (uint32_t k = 0; depth < 3 && k < 10; k++)
		inner += fix_level(f, node, depth + 1, k, at + inner, ns / 10);
	fix_event(f, (struct event){.kind = EVENT_SPAN,
				    .span = span,
				    .node = node,
				    .depth = depth,
				    .start_ns = at,
				    .end_ns = at + ns,
				    .child_ns = inner});
	return ns;
}

static inline void fix_wide(struct fixture *f)
{
	char name[32];

	fix_span(f, "wide:root", SPAN_MARKER, QBPF_HIST_NS);
	for (uint32_t i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "wide:level%u_%u", i / 10 + 1, i % 10);
		fix_span(f, name, SPAN_MARKER, QBPF_HIST_NS);
	}
	fix_level(f, 0, 0, 0, FIX_START, 1000000);
}

/* Calls of itself, 600 deep. */
static inline void fix_deep(struct fixture *f)
{
	uint32_t span = fix_span(f, "deep:again", SPAN_FUNC, QBPF_HIST_NS), nodes[600];

	for (uint32_t i = 0; i < 600; i++)
		nodes[i] = fix_node(f, i ? nodes[i - 1] : 0, span);
	for (uint32_t i = 600; i-- > 0;)
		fix_event(f, (struct event){.kind = EVENT_SPAN,
					    .span = span,
					    .node = nodes[i],
					    .depth = (uint16_t)i,
					    .start_ns = FIX_START + i,
					    .end_ns = FIX_START + 2000 - i,
					    .child_ns = i < 599 ? 1998 - 2 * i : 0});
}

static inline void fix_none(struct fixture *f)
{
	(void)f;
}

static const struct {
	const char *name;
	void (*make)(struct fixture *f);
} html_fixtures[] = {{"none", fix_none},
		     {"unhit", fix_unhit},
		     {"one", fix_one},
		     {"instants", fix_instants},
		     {"values", fix_values},
		     {"hostile", fix_hostile},
		     {"known", fix_known},
		     {"odd", fix_odd},
		     {"cut", fix_cut},
		     {"many", fix_many},
		     {"wide", fix_wide},
		     {"deep", fix_deep},
		     {"gpu", fix_gpu},
		     {"gpu-alone", fix_gpu_alone},
		     {"gpu-hostile", fix_gpu_hostile},
		     {"gpu-many", fix_gpu_many}};

#define HTML_FIXTURES (sizeof(html_fixtures) / sizeof(html_fixtures[0]))

/* The tables that every recording has; then its own part. */
static inline void fix_write(const char *path, size_t which)
{
	struct trace_meta meta = {.qbpf_version = "0.1.0",
				  .command = "qbpf attach -p 4000 -o </script>",
				  .kernel = "6.18.5",
				  .cpu = "Example CPU",
				  .clocksource = "tsc",
				  .hostname = "host",
				  .slow = "",
				  .cpus = 2,
				  .start_ns = FIX_START,
				  .realtime_ns = 1700000000000000000ull,
				  .sample = 1};
	struct trace_process process = {
	    .tgid = 4000, .comm = "<b>target</b>", .exe = "/opt/<i>exe</i>"};
	struct trace_mapping mapping = {
	    .path = "/opt/<i>exe</i>", .build_id = "", .tgid = 4000, .end = 4096};
	struct trace_probe probe = {.span = 1, .off = 0x1234, .reason = "<u>red zone</u>"};
	struct fixture f = {.now_ns = FIX_START};

	assert(!trace_writer__new(path, &meta, &f.w, NULL));
	assert(!trace_writer__process(f.w, 0, &process));
	assert(!trace_writer__mapping(f.w, &mapping));
	for (uint32_t i = 0; i < FIX_THREADS; i++) {
		struct trace_thread t = {.tgid = 4000,
					 .tid = 4000 + i,
					 .name = i ? "<s>two</s>" : "main",
					 .start_ns = FIX_START};

		assert(!trace_writer__thread(f.w, i, &t));
	}
	html_fixtures[which].make(&f);
	if (f.nspans)
		assert(!trace_writer__probe(f.w, &probe));
	assert(!trace_writer__flush(f.w));
	if (!f.crash)
		assert(!trace_writer__close(f.w, f.now_ns + 1000, f.counts, f.nspans, NULL));
	trace_writer__free(f.w);
	free(f.counts);
}

/* The analysis of one of them and its reader, to be freed in that order. */
static inline void fix_analyse(const char *name, bool per_thread, struct trace_reader **r,
			       struct analysis **a)
{
	struct analysis_opts o = {.slowest = 10, .per_thread = per_thread, .gpu_most = 4000};
	char path[] = "/tmp/qbpf-page-XXXXXX";
	struct err e = {""};
	size_t which = 0;
	int fd = mkstemp(path);

	assert(fd >= 0);
	close(fd);
	while (which < HTML_FIXTURES && strcmp(html_fixtures[which].name, name))
		which++;
	assert(which < HTML_FIXTURES);
	fix_write(path, which);
	if (trace_reader__open(path, r, &e) || analysis__new(*r, &o, a, &e)) {
		fprintf(stderr, "%s: %s\n", name, e.text);
		abort();
	}
	unlink(path);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of recording share: two spans and a function, and readers of the ring. */
#ifndef QBPF_TESTS_BPF_STREAM_H
#define QBPF_TESTS_BPF_STREAM_H

#include "harness.h"

DECLARE_SITE(x_begin);
DECLARE_SITE(x_end);
DECLARE_SITE(y_begin);
DECLARE_SITE(y_end);
DECLARE_SITE(i_site);

enum { X = 1, Y, F, I, SPANS };

static noinline void begin_x(void)
{
	SITE(x_begin);
}

static noinline void end_x(void)
{
	SITE(x_end);
}

static noinline void begin_y(void)
{
	SITE(y_begin);
}

static noinline void end_y(void)
{
	SITE(y_end);
}

static noinline void mark(void)
{
	SITE(i_site);
}

static noinline void func(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline void probe_all(struct harness *h)
{
	probe(h, x_begin, X, QBPF_ROLE_BEGIN, 1);
	probe(h, x_end, X, QBPF_ROLE_END, 2);
	probe(h, y_begin, Y, QBPF_ROLE_BEGIN, 3);
	probe(h, y_end, Y, QBPF_ROLE_END, 4);
	probe(h, i_site, I, QBPF_ROLE_INSTANT, 5);
	probe_function(h, func, F);
}

/* Opens with recording on; what else is to be set goes between this and harness_load. */
static inline void stream_start(struct harness *h, void **state, uint32_t ring_bytes)
{
	harness_open(h, way_of(state));
	h->skel->rodata->cfg_stream = true;
	h->skel->rodata->cfg_stream_wake = ring_bytes / 4;
	assert_int_equal(bpf_map__set_max_entries(h->skel->maps.stream, ring_bytes), 0);
	bpf_program__set_autoload(h->skel->progs.on_stream_end, true);
}

struct records {
	struct qbpf_record *r;
	size_t n, cap;
};

static inline int record_append(void *ctx, void *data, size_t size)
{
	struct records *l = ctx;

	assert_int_equal(size, sizeof(*l->r));
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 1024;
		l->r = realloc(l->r, l->cap * sizeof(*l->r));
		assert_non_null(l->r);
	}
	memcpy(&l->r[l->n++], data, size);
	return 0;
}

/* What is in the ring now, appended to l. */
static inline void read_ring(struct harness *h, struct records *l)
{
	struct ring_buffer *rb;

	rb = ring_buffer__new(bpf_map__fd(h->skel->maps.stream), record_append, l, NULL);
	assert_non_null(rb);
	assert_true(ring_buffer__consume(rb) >= 0);
	ring_buffer__free(rb);
}

static inline struct qbpf_stream_counts stream_counts_of(struct harness *h, uint32_t span)
{
	int cpus = libbpf_num_possible_cpus();
	struct qbpf_stream_counts *c = calloc(cpus, sizeof(*c)), sum = {0};

	assert_non_null(c);
	assert_int_equal(bpf_map__lookup_elem(h->skel->maps.stream_counts, &span, sizeof(span), c,
					      cpus * sizeof(*c), 0),
			 0);
	for (int i = 0; i < cpus; i++) {
		sum.lost += c[i].lost;
		sum.skipped += c[i].skipped;
		sum.over += c[i].over;
	}
	free(c);
	return sum;
}

/* How many closed ones of a span are among the records. */
static inline uint64_t held_of(const struct records *l, uint32_t span)
{
	uint64_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->r[i].span == span && l->r[i].type < QBPF_RECORD_OPEN;
	return n;
}

/* How often an instant was hit: all its nodes. Its histogram is that of the intervals. */
static inline uint64_t instants_of(struct harness *h, uint32_t span)
{
	int fd = bpf_map__fd(h->skel->maps.nodes);
	struct qbpf_node_key key, *prev = NULL;
	struct qbpf_node node;
	uint64_t n = 0;

	while (!bpf_map_get_next_key(fd, prev, &key)) {
		prev = &key;
		if (key.span == span && !bpf_map_lookup_elem(fd, &key, &node))
			n += node_cell_of(h, node.id).count;
	}
	return n;
}

/* held + lost + skipped = what the aggregates have. */
static inline void assert_adds_up(struct harness *h, const struct records *l, uint32_t span)
{
	struct qbpf_stream_counts c = stream_counts_of(h, span);

	assert_int_equal(held_of(l, span) + c.lost + c.skipped,
			 span == I ? instants_of(h, span) : hist_of(h, span).n);
}

/* Each thread's closed spans come in the order in which they ended, and as they nest. */
static inline void assert_ordered(const struct records *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct qbpf_record *r = &l->r[i];

		assert_int_equal(r->size, sizeof(*r));
		if (r->type != QBPF_RECORD_SPAN && r->type != QBPF_RECORD_INSTANT)
			continue;
		assert_true(r->start_ns && r->start_ns <= r->end_ns);
		for (size_t k = i; k-- > 0;) {
			const struct qbpf_record *b = &l->r[k];

			if (b->tid != r->tid ||
			    (b->type != QBPF_RECORD_SPAN && b->type != QBPF_RECORD_INSTANT))
				continue;
			assert_true(b->end_ns <= r->end_ns);
			/* Before a span comes what it holds, or what was over before it. */
			if (b->depth > r->depth && r->type == QBPF_RECORD_SPAN)
				assert_true(b->start_ns >= r->start_ns);
			else
				assert_true(b->end_ns <= r->start_ns);
			break;
		}
	}
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The model of the GPU: records in any order, of any number, of any bytes. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gpu_cases.h"

static void print_figure(FILE *f, const struct gpu_figure *v)
{
	fprintf(f,
		" [%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		"]",
		v->count, v->total_ns, v->min_ns, v->max_ns, v->p50_ns, v->p90_ns, v->p99_ns);
}

static void print_devices(FILE *f, const struct gpu_summary *s)
{
	for (size_t i = 0; i < s->ndevices; i++) {
		const struct gpu_device *d = &s->devices[i];

		fprintf(f, "device %u.%u %" PRIu64 " %" PRIu64 " %" PRIu64, d->ring, d->device,
			d->activities, d->from_ns, d->to_ns);
		fprintf(f, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, d->busy_ns,
			d->compute_ns, d->copy_ns, d->overlap_ns, d->idle_ns);
		fprintf(f, " %" PRId64 " %" PRId64 " %" PRIu64 "\n", d->error_low_ns,
			d->error_high_ns, d->early);
	}
}

static void print_idle(FILE *f, const struct gpu_summary *s)
{
	for (size_t i = 0; i < s->ndevices; i++)
		for (size_t k = 0; k < s->devices[i].nidle; k++) {
			const struct gpu_idle *v = &s->devices[i].idle[k];

			fprintf(f, "idle %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				gpu_cause_name(v->cause), v->name ? v->name : "-", v->gaps,
				v->total_ns, v->max_ns);
		}
}

static void print_names(FILE *f, const struct gpu_summary *s)
{
	for (size_t i = 0; i < s->nkernels; i++) {
		const struct gpu_kernel *k = &s->kernels[i];

		fprintf(f, "kernel %s %u,%u,%u %d %" PRIu64 " %" PRIu64 " %" PRIu64, k->name,
			k->grid[0], k->grid[1], k->block[0], k->varies, k->first_calls,
			k->first_call_ns, k->untimed);
		print_figure(f, &k->time);
		print_figure(f, &k->delay);
		print_figure(f, &k->call);
		fputc('\n', f);
	}
	for (size_t i = 0; i < s->ncopies; i++) {
		const struct gpu_copy *c = &s->copies[i];

		fprintf(f, "copy %d %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			c->direction, c->pageable, c->synchronous, c->bytes, c->alone_ns, c->tiny,
			c->untimed);
		print_figure(f, &c->time);
		print_figure(f, &c->delay);
		print_figure(f, &c->call);
		fputc('\n', f);
	}
	for (size_t i = 0; i < s->ncalls; i++) {
		fprintf(f, "call %s %" PRIu64 " %u", s->calls[i].name, s->calls[i].failed,
			s->calls[i].error);
		print_figure(f, &s->calls[i].time);
		fputc('\n', f);
	}
}

static void print_rest(FILE *f, const struct gpu_summary *s)
{
	for (size_t i = 0; i < s->nstreams; i++) {
		const struct gpu_stream *v = &s->streams[i];

		fprintf(f, "stream %u.%u.%u.%u.%u %" PRIu64 " %" PRIu64 " %" PRIu64, v->ring,
			v->generation, v->device, v->context, v->stream, v->kernels, v->copies,
			v->sets);
		fprintf(f, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			v->kernel_ns, v->copy_ns, v->queue_max, v->queue_ns, v->idle_ns);
		print_figure(f, &v->delay);
		fputc('\n', f);
	}
	for (size_t i = 0; i < s->nspans; i++) {
		const struct gpu_span *v = &s->spans[i];

		fprintf(f, "span %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			v->name, v->count, v->total_ns, v->launch_ns, v->sync_ns, v->own_ns);
		fprintf(f, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, v->busy_ns,
			v->after_ns, v->launches, v->copy_bytes, v->cut);
		print_figure(f, &v->delay);
		fputc('\n', f);
	}
	fprintf(f, "sums %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		s->records, s->activities, s->untimed, s->missing[0], s->missing[1], s->missing[2]);
	for (size_t i = 0; i < s->nadvice; i++)
		fprintf(f, "advice %s %s %" PRIu64 " %" PRIu64 "\n",
			gpu_advice_name(s->advice[i].kind),
			s->advice[i].name ? s->advice[i].name : "-", s->advice[i].cost_ns,
			s->advice[i].save_ns);
}

enum { DEVICES = 1, IDLE = 2, BY_NAME = 4, REST = 8, ALL = 15 };

static char *text_of(const struct gpu_summary *s, int what)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	if (what & DEVICES)
		print_devices(f, s);
	if (what & IDLE)
		print_idle(f, s);
	if (what & BY_NAME)
		print_names(f, s);
	if (what & REST)
		print_rest(f, s);
	fclose(f);
	return text;
}

static uint64_t seed;

static uint64_t below(uint64_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

/* A program of two threads, two devices and four streams, in order of time; with what goes wrong
 * (wrong) now and then. */
static void make_program(uint64_t from_seed, int ticks, bool wrong)
{
	uint64_t done[4] = {0}, now = 1000000;

	reset(NULL);
	seed = from_seed;
	gr__start(&list, QBPF_RING_CLOCK_MONOTONIC, 1000);
	for (int i = 0; i < ticks; i++) {
		uint32_t thread = (uint32_t)below(2), s = 2 * thread + (uint32_t)below(2);
		uint64_t tick = now += 100 + below(3000), at = now + below(500), start, end;
		uint32_t id = (uint32_t)(UINT32_MAX - 20 + 3 * i);

		list.tid = 100 + thread;
		list.device = thread;
		list.context = 1 + thread;
		list.stream = s;
		gr__call(&list, COPY_ASYNC, id, at, at + 100);
		start = at + 50 > done[s] ? at + 50 : done[s];
		end = start + 200 + below(400);
		gr__copy(&list, 1, below(10000), id, start, end);
		at += 150;
		gr__call(&list, LAUNCH, id + 1, at, at + 100);
		start = (at > end ? at : end) + 10 + below(100);
		end = start + below(1000);
		if (!wrong || below(20))
			gr__kernel(&list, below(2) ? SIGNAL : RISK, id + 1, start, end)->grid[0] =
			    (uint32_t)below(3) + 1;
		if (wrong && !below(20))
			gr__kernel(&list, SIGNAL, id + 1, end, start - 1);
		done[s] = end;
		at += 200;
		if (below(2)) {
			uint64_t back = (at > end ? at : end) + below(50);

			gr__call(&list, STREAM_SYNC, id + 2, at, back);
			gr__sync(&list, 3, id + 2, at + 5, back);
			at = back;
		}
		gr__span(&list, DECIDE, thread, 1, at + 10, at + 20 + below(100));
		now = at + 200;
		gr__span(&list, TICK, thread, 0, tick, now);
	}
}

static void t_order(void **state)
{
	(void)state;
	for (uint64_t program = 0; program < 10; program++) {
		struct gpu_summary *s;
		char *want;

		make_program(program, 200, true);
		s = run();
		check_sums(s);
		want = text_of(s, ALL);
		gpu_summary__put(s);
		assert_true(strlen(want) > 1000);
		for (uint64_t k = 1; k <= 20; k++) {
			char *got;

			gr__shuffle(&list, program * 100 + k);
			s = run();
			got = text_of(s, ALL);
			gpu_summary__put(s);
			if (strcmp(got, want))
				fail_msg("order makes a difference\n%s\n%s", want, got);
			free(got);
		}
		free(want);
	}
}

/* Settled bit by bit it comes to the same, but for what a part cannot see: how much of a queue there
 * was before, and who was late across a border. */
static void t_bit_by_bit(void **state)
{
	(void)state;
	for (uint64_t program = 0; program < 10; program++) {
		struct gpu_summary *s;
		char *want, *got;
		struct gpu *g;

		make_program(program, 300, false);
		s = run();
		want = text_of(s, DEVICES | BY_NAME);
		gpu_summary__put(s);
		g = begin(0);
		for (size_t i = 0; i < list.n; i++) {
			const struct gr_item *it = &list.items[i];

			put_one(g, it);
			/* All that ends before a tick begins is there when the tick has ended. */
			if (it->ev.kind && it->ev.span == TICK && !(i % 7))
				assert_int_equal(gpu__settle(g, it->ev.start_ns - 50), 0);
		}
		assert_int_equal(gpu__finish(g), 0);
		s = gpu__summary(g);
		check_sums(s);
		assert_int_equal(s->waiting, 0);
		assert_int_equal(s->late, 0);
		got = text_of(s, DEVICES | BY_NAME);
		if (strcmp(got, want))
			fail_msg("parts make a difference\n%s\n%s", want, got);
		gpu_summary__put(s);
		gpu__free(g);
		free(want);
		free(got);
	}
}

static void t_late(void **state)
{
	struct gpu *g = begin(0);
	struct gpu_summary *s;

	(void)state;
	gr__call(&list, LAUNCH, 1, 1000, 1100);
	gr__kernel(&list, SIGNAL, 1, 1200, 1300);
	gr__call(&list, LAUNCH, 2, 5000, 5100);
	gr__kernel(&list, SIGNAL, 2, 5200, 9000);
	put_all(g);
	assert_int_equal(gpu__settle(g, 6000), 0);
	s = gpu__summary(g);
	check_sums(s);
	assert_int_equal(s->waiting, 1); /* the one that still runs */
	assert_int_equal(s->kernels[0].time.count, 1);
	assert_int_equal(s->devices[0].busy_ns, 100 + 800);
	gpu_summary__put(s);
	reset(NULL);
	gr__kernel(&list, SIGNAL, 7, 1400, 1500);
	put_all(g);
	assert_int_equal(gpu__finish(g), 0);
	s = gpu__summary(g);
	check_sums(s);
	assert_int_equal(s->late, 1);
	assert_int_equal(s->kernels[0].time.count, 3);
	assert_int_equal(s->kernels[0].time.total_ns, 100 + 3800 + 100);
	assert_int_equal(s->devices[0].busy_ns, 100 + 3800);
	assert_int_equal(s->kernels[0].delay.count, 2);
	gpu_summary__put(s);
	gpu__free(g);
}

/* Ticks on two threads, of 1000 ns each 1200, the second thread's so much later. */
static struct gpu_summary *settled_in_ticks(uint64_t shift)
{
	struct gpu *g = begin(0);
	struct gpu_summary *s;

	reset(NULL);
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t at = 10000 + 1200 * (i / 2) + i % 2 * shift;

		list.tid = 100 + i % 2;
		gr__call(&list, LAUNCH, i + 1, at + 100, at + 200);
		gr__kernel(&list, SIGNAL, i + 1, at + 300, at + 400);
		gr__span(&list, TICK, i % 2, 0, at, at + 1000);
	}
	put_all(g);
	for (uint64_t to = 11000; to < 70000; to += 7 * 1200)
		assert_int_equal(gpu__settle(g, to - 400), 0);
	assert_int_equal(gpu__finish(g), 0);
	s = gpu__summary(g);
	check_sums(s);
	assert_int_equal(s->nspans, 1);
	assert_int_equal(s->late, 0);
	gpu__free(g);
	return s;
}

/* Settling at a moment within spans makes no difference where there is a quiet one nearby. */
static void t_settled_within_spans(void **state)
{
	struct gpu_summary *s = settled_in_ticks(100);

	(void)state;
	assert_int_equal(s->spans[0].count, 100);
	assert_int_equal(s->spans[0].cut, 0);
	assert_int_equal(s->spans[0].launches, 100);
	assert_int_equal(s->spans[0].kernel_ns, 100 * 100);
	gpu_summary__put(s);
	/* Never quiet: those across the moment are told. */
	s = settled_in_ticks(600);
	assert_in_range(s->spans[0].cut, 7, 14);
	assert_int_equal(s->spans[0].count + s->spans[0].cut, 100);
	assert_int_equal(s->kernels[0].time.count, 100);
	gpu_summary__put(s);
}

/* A hundred thousand ticks in a quarter of a megabyte. */
static void t_bounded(void **state)
{
	struct gpu *g = begin(1 << 18);
	struct gpu_summary *s;
	uint64_t kernels = 0;

	(void)state;
	for (int round = 0; round < 500; round++) {
		make_program(7, 200, false);
		for (size_t i = 0; i < list.n; i++) {
			struct gr_item *it = &list.items[i];
			uint64_t shift = 1000000ull * round;

			if (it->rec.head.type == QBPF_RING_KERNEL) {
				kernels++;
				it->rec.kernel.start_ns += shift;
				it->rec.kernel.end_ns += shift;
			} else if (it->rec.head.type == QBPF_RING_COPY) {
				it->rec.copy.start_ns += shift;
				it->rec.copy.end_ns += shift;
			} else if (it->rec.head.type == QBPF_RING_CALL) {
				it->rec.call.start_ns += shift;
				it->rec.call.end_ns += shift;
			} else if (it->rec.head.type == QBPF_RING_SYNC) {
				it->rec.sync.start_ns += shift;
				it->rec.sync.end_ns += shift;
			} else if (it->ev.kind) {
				it->ev.start_ns += shift;
				it->ev.end_ns += shift;
			}
		}
		put_all(g);
	}
	assert_int_equal(gpu__finish(g), 0);
	s = gpu__summary(g);
	check_sums(s);
	assert_int_equal(kernels, 100000);
	assert_int_equal(s->kernels[0].time.count + s->kernels[1].time.count, kernels);
	assert_int_equal(s->copies[0].time.count, kernels);
	assert_int_equal(s->waiting, 0);
	gpu_summary__put(s);
	gpu__free(g);
}

/* Bytes of any kind as records and spans: it ends, and what is told holds together. */
static void t_any(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 300; round++) {
		struct gpu *g = begin(1 << 16);
		struct gpu_summary *s;

		seed = round;
		for (int i = 0; i < 400; i++) {
			static const size_t sizes[] = {8,  88, 72, 64, 40, 48, 40,
						       48, 48, 16, 24, 32, 24, 24};
			uint64_t words[128];
			uint16_t type = (uint16_t)below(15);
			struct qbpf_ring_record *rec = (void *)words;
			uint64_t mask = below(3) ? 0xfff : ~0ull;

			for (size_t k = 0; k < 128; k++)
				words[k] = (below(1ull << 31) << 33 ^ below(1ull << 31)) & mask;
			rec->type = type;
			rec->size = (uint16_t)(type < 14 ? sizes[type] : 64);
			assert_int_equal(gpu__record(g, (uint32_t)below(3), rec), 0);
			if (!below(4)) {
				struct event ev = {.kind = EVENT_SPAN,
						   .span = (uint32_t)below(5),
						   .thread = (uint32_t)below(3),
						   .depth = (uint16_t)below(4),
						   .start_ns = words[1]};

				ev.end_ns = ev.start_ns + below(2000);
				assert_int_equal(gpu__span(g, &ev), 0);
			}
			if (!below(50))
				assert_int_equal(gpu__settle(g, words[2]), 0);
		}
		assert_int_equal(gpu__finish(g), 0);
		s = gpu__summary(g);
		assert_non_null(s);
		check_sums(s);
		gpu_summary__put(s);
		gpu__free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(t_order, reset),
	    cmocka_unit_test_setup(t_bit_by_bit, reset),
	    cmocka_unit_test_setup(t_late, reset),
	    cmocka_unit_test_setup(t_settled_within_spans, reset),
	    cmocka_unit_test_setup(t_bounded, reset),
	    cmocka_unit_test_setup(t_any, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Markers that carry something: instants, numbers in every form, keys across threads. */
#include <pthread.h>
#include <math.h>
#include <time.h>

#include <asm/ptrace.h>

#include "harness.h"

DECLARE_SITE(v_site);
DECLARE_SITE(i_site);
DECLARE_SITE(k_begin);
DECLARE_SITE(k_end);
DECLARE_SITE(o_begin);
DECLARE_SITE(o_end);

#define ROUNDS 1000

static const struct qbpf_arg in_rdi = {
    .base = offsetof(struct pt_regs, rdi),
    .index = QBPF_NO_REG,
    .scale = 1,
    .size = 8,
    .flags = QBPF_ARG_VALID,
};

static void set_arg(struct harness *h, uint32_t site, const struct qbpf_arg *arg)
{
	struct qbpf_site s = {.arg = *arg};

	assert_int_equal(
	    bpf_map__update_elem(h->skel->maps.sites, &site, sizeof(site), &s, sizeof(s), 0), 0);
}

/* One bucket's count, over CPUs. */
static uint64_t bucket(struct harness *h, uint32_t span, uint16_t octave, int i)
{
	struct qbpf_hist_cell cell;
	uint64_t n = 0;

	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		struct qbpf_hist_key key = {.span = span, .octave = octave, .cpu = cpu};

		if (!bpf_map__lookup_elem(h->skel->maps.hist_cells, &key, sizeof(key), &cell,
					  sizeof(cell), 0))
			n += cell.n[i];
	}
	return n;
}

static struct qbpf_hist_cell octave_of(struct harness *h, uint32_t span, uint16_t octave)
{
	struct qbpf_hist_cell sum = {.min = ~0ULL}, c;

	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		struct qbpf_hist_key key = {.span = span, .octave = octave, .cpu = cpu};

		if (bpf_map__lookup_elem(h->skel->maps.hist_cells, &key, sizeof(key), &c, sizeof(c),
					 0))
			continue;
		sum.sum_lo += c.sum_lo;
		sum.sum_hi += c.sum_hi;
		sum.min = c.min < sum.min ? c.min : sum.min;
		sum.max = c.max > sum.max ? c.max : sum.max;
	}
	return sum;
}

/* --- values ---------------------------------------------------------------------------------- */

static uint64_t values[64];
static int nvalues;
static bool by_pointer;

static noinline void value(uint64_t v)
{
	SITE_ARG(v_site, v);
}

static int work_values(void)
{
	for (int i = 0; i < nvalues; i++)
		value(by_pointer ? (uint64_t)&values[i] : values[i]);
	return 0;
}

static void run_values(struct harness *h, void **state, const struct qbpf_arg *arg)
{
	harness_open(h, way_of(state));
	harness_load(h);
	child_prepare(h, work_values);
	set_arg(h, 7, arg);
	probe(h, v_site, 1, QBPF_ROLE_VALUE, 7);
	assert_int_equal(child_run(h), 0);
}

static void t_int_values(void **state)
{
	static const uint64_t v[] = {0, 1, 31, 32, 33, 63, 64, 65, 1000000, UINT64_MAX, 1ULL << 63};
	struct harness h;

	memcpy(values, v, sizeof(v));
	nvalues = sizeof(v) / sizeof(v[0]);
	by_pointer = false;
	run_values(&h, state, &in_rdi);
	assert_int_equal(hist_of(&h, 1).n, nvalues);
	assert_int_equal(bucket(&h, 1, 0, 0), 1);
	assert_int_equal(bucket(&h, 1, 0, 1), 1);
	assert_int_equal(bucket(&h, 1, 0, 31), 1);
	assert_int_equal(bucket(&h, 1, 1, 0), 1);
	assert_int_equal(bucket(&h, 1, 1, 1), 1);
	assert_int_equal(bucket(&h, 1, 1, 31), 1);
	assert_int_equal(bucket(&h, 1, 2, 0), 2); /* 64 and 65 share one */
	/* 1000000 lies in [2^19, 2^20): octave 15, bucket (1000000 >> 14) - 32 */
	assert_int_equal(bucket(&h, 1, 15, 29), 1);
	assert_int_equal(bucket(&h, 1, 59, 31), 1);
	assert_int_equal(bucket(&h, 1, 59, 0), 1);
	/* The sum of the top octave does not fit: it carries. */
	assert_int_equal(octave_of(&h, 1, 59).sum_hi, 1);
	assert_true(octave_of(&h, 1, 59).sum_lo == (1ULL << 63) - 1);
	assert_true(octave_of(&h, 1, 59).max == UINT64_MAX);
	assert_true(octave_of(&h, 1, 59).min == 1ULL << 63);
	assert_int_equal(not_clean(&h, 1), 0);
	assert_int_equal(node_count(&h), 0);
	harness_close(&h);
}

static void t_signed_values(void **state)
{
	/* As 32 bits: -1, -40, 7, INT32_MIN; what lies above them is not part of the value. */
	static const uint64_t v[] = {0xffffffff, 0xdead0000ffffffd8, 7, 0x80000000};
	struct qbpf_arg arg = in_rdi;
	struct harness h;

	memcpy(values, v, sizeof(v));
	nvalues = 4;
	by_pointer = false;
	arg.size = 4;
	arg.flags |= QBPF_ARG_SIGNED;
	run_values(&h, state, &arg);
	assert_int_equal(hist_of(&h, 1).n, 4);
	assert_int_equal(bucket(&h, 1, QBPF_HIST_NEGATIVE, 1), 1);
	assert_int_equal(bucket(&h, 1, QBPF_HIST_NEGATIVE | 1, 8), 1);
	assert_int_equal(bucket(&h, 1, 0, 7), 1);
	assert_int_equal(bucket(&h, 1, QBPF_HIST_NEGATIVE | 27, 0), 1);
	assert_int_equal(not_clean(&h, 1), 0);
	harness_close(&h);
}

/* A value in memory, of each size. */
static void t_memory_values(void **state)
{
	static const uint8_t size[] = {1, 2, 4, 8};
	static const uint64_t expect[] = {0x88, 0x7788, 0x55667788, 0x1122334455667788};

	for (int i = 0; i < 4; i++) {
		struct qbpf_arg arg = in_rdi;
		struct harness h;

		values[0] = 0x1122334455667788;
		nvalues = 1;
		by_pointer = true;
		arg.size = size[i];
		arg.flags |= QBPF_ARG_DEREF;
		run_values(&h, state, &arg);
		assert_int_equal(hist_of(&h, 1).n, 1);
		assert_true(hist_of(&h, 1).sum == expect[i]);
		harness_close(&h);
	}
}

static void t_operand_forms(void **state)
{
	static const struct {
		uint64_t value;
		struct qbpf_arg arg;
		uint64_t expect;
	} row[] = {
	    /* %dh-like: the second byte of the register */
	    {0xabcd,
	     {0, offsetof(struct pt_regs, rdi), QBPF_NO_REG, 1, 1, 8, QBPF_ARG_VALID},
	     0xab},
	    /* an immediate */
	    {5, {42, QBPF_NO_REG, QBPF_NO_REG, 1, 8, 0, QBPF_ARG_VALID}, 42},
	    /* base + index * 8 + offset, not dereferenced */
	    {5,
	     {-3, offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rdi), 8, 8, 0,
	      QBPF_ARG_VALID},
	     42},
	    /* index alone */
	    {9, {1, QBPF_NO_REG, offsetof(struct pt_regs, rdi), 4, 8, 0, QBPF_ARG_VALID}, 37},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct harness h;

		values[0] = row[i].value;
		nvalues = 1;
		by_pointer = false;
		run_values(&h, state, &row[i].arg);
		assert_int_equal(hist_of(&h, 1).n, 1);
		assert_int_equal(hist_of(&h, 1).sum, row[i].expect);
		harness_close(&h);
	}
}

static void t_unreadable(void **state)
{
	struct qbpf_arg arg = in_rdi;
	struct harness h;

	values[0] = 8; /* as an address: nothing there */
	values[1] = UINT64_MAX - 3;
	nvalues = 2;
	by_pointer = false;
	arg.flags |= QBPF_ARG_DEREF;
	run_values(&h, state, &arg);
	assert_int_equal(counts_of(&h, 1).unreadable, 2);
	assert_int_equal(not_clean(&h, 1), 2);
	assert_int_equal(hist_of(&h, 1).n, 0);
	harness_close(&h);

	arg = in_rdi;
	arg.flags = 0;
	run_values(&h, state, &arg);
	assert_int_equal(counts_of(&h, 1).unreadable, 2);
	harness_close(&h);
}

static uint64_t bits_of(double d)
{
	uint64_t b;

	memcpy(&b, &d, sizeof(b));
	return b;
}

static uint32_t fbits_of(float f)
{
	uint32_t b;

	memcpy(&b, &f, sizeof(b));
	return b;
}

/* Each value must be in the cell of its exponent and the bucket of its mantissa, as a double. */
static void check_double(struct harness *h, double d)
{
	uint64_t b = bits_of(d);
	uint16_t octave = (b >> 52 & 0x7ff) | (b >> 63 ? QBPF_HIST_NEGATIVE : 0);

	assert_true(bucket(h, 1, octave, b >> 47 & 31) >= 1);
	assert_true(octave_of(h, 1, octave).min <= b && octave_of(h, 1, octave).max >= b);
}

static void t_doubles(void **state)
{
	static const double v[] = {0.0,	   1.0,	      1.5,	-2.75,	   1e300,  -1e-300,
				   4e-320, 0x1p-1074, INFINITY, -INFINITY, 3.14159};
	struct qbpf_arg arg = in_rdi;
	struct qbpf_hist_cell c;
	struct harness h;

	nvalues = sizeof(v) / sizeof(v[0]);
	for (int i = 0; i < nvalues; i++)
		values[i] = bits_of(v[i]);
	by_pointer = true;
	arg.flags |= QBPF_ARG_DEREF | QBPF_ARG_FLOAT;
	run_values(&h, state, &arg);
	assert_int_equal(hist_of(&h, 1).n, nvalues);
	for (int i = 0; i < nvalues; i++)
		check_double(&h, v[i]);
	/* 1.0 + 1.5 in parts: (sum_hi * 2^26 + sum_lo) * 2^(octave - 1075) */
	c = octave_of(&h, 1, 1023);
	assert_true(ldexp((double)c.sum_hi * 0x1p26 + (double)c.sum_lo, 1023 - 1075) == 2.5);
	c = octave_of(&h, 1, 0);
	assert_true(ldexp((double)c.sum_hi * 0x1p26 + (double)c.sum_lo, -1074) ==
		    4e-320 + 0x1p-1074);
	assert_int_equal(not_clean(&h, 1), 0);
	harness_close(&h);
}

static void t_floats(void **state)
{
	static const float v[] = {
	    0.0f,    -0.0f, 1.0f, -1.5f, 3.0e38f, 1.0e-38f, 1.0e-45f, -7.0e-42f, 0x1.fffffcp-127f,
	    INFINITY};
	struct qbpf_arg arg = in_rdi;
	struct harness h;

	nvalues = sizeof(v) / sizeof(v[0]);
	for (int i = 0; i < nvalues; i++)
		values[i] = fbits_of(v[i]);
	by_pointer = false;
	arg.size = 4;
	arg.flags |= QBPF_ARG_FLOAT;
	run_values(&h, state, &arg);
	assert_int_equal(hist_of(&h, 1).n, nvalues);
	for (int i = 0; i < nvalues; i++)
		check_double(&h, v[i]);
	assert_true(octave_of(&h, 1, bits_of(1.0e-45f) >> 52).min == bits_of(1.0e-45f));
	assert_int_equal(not_clean(&h, 1), 0);
	harness_close(&h);
}

/* --- instants -------------------------------------------------------------------------------- */

static noinline void instant(void)
{
	SITE(i_site);
}

static noinline void around(void)
{
	SITE(o_begin);
	instant();
	SITE(o_end);
}

static void *instants(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		around();
	return arg;
}

static int work_instants(void)
{
	pthread_t t[4];

	instant();
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, instants, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static void t_instants(void **state)
{
	struct timespec t0, t1;
	struct hist_sum s;
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_instants);
	probe(&h, i_site, 1, QBPF_ROLE_INSTANT, 1);
	probe(&h, o_begin, 2, QBPF_ROLE_BEGIN, 2);
	probe(&h, o_end, 2, QBPF_ROLE_END, 3);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	assert_int_equal(child_run(&h), 0);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	s = hist_of(&h, 1);
	assert_int_equal(s.n, 4 * ROUNDS);
	/* The intervals add up to the time from the first to the last: none is negative. */
	assert_true(s.sum <= (t1.tv_sec - t0.tv_sec) * 1000000000ULL + t1.tv_nsec - t0.tv_nsec);
	assert_int_equal(NODE(&h, 1).count, 1);
	assert_int_equal(NODE(&h, 1).min_ns, 0);
	assert_int_equal(NODE(&h, 2, 1).count, 4 * ROUNDS);
	assert_int_equal(NODE(&h, 2, 1).total_ns, 0);
	assert_int_equal(NODE(&h, 2).count, 4 * ROUNDS);
	assert_int_equal(not_clean(&h, 1) + not_clean(&h, 2), 0);
	harness_close(&h);
}

/* --- keys ------------------------------------------------------------------------------------ */

static noinline void begin_key(uint64_t k)
{
	SITE_ARG(k_begin, k);
}

static noinline void end_key(uint64_t k)
{
	SITE_ARG(k_end, k);
}

static int fds[2];

/* Orders begin on one thread and end, out of order, on another. */
static void *end_thread(void *arg)
{
	uint64_t k;

	while (read(fds[0], &k, sizeof(k)) == sizeof(k) && k)
		end_key(k);
	return arg;
}

static int work_keys(void)
{
	uint64_t k, stop = 0;
	pthread_t t;
	int ok;

	ok = !pipe(fds);
	pthread_create(&t, NULL, end_thread, NULL);
	for (k = 1; k <= ROUNDS; k += 2) {
		uint64_t next = k + 1;

		begin_key(k);
		begin_key(next);
		ok &= write(fds[1], &next, sizeof(next)) == sizeof(next);
		ok &= write(fds[1], &k, sizeof(k)) == sizeof(k);
	}
	ok &= write(fds[1], &stop, sizeof(stop)) == sizeof(stop);
	pthread_join(t, NULL);
	end_key(77777);	  /* never begun */
	begin_key(88888); /* begun twice: the first begin is dropped */
	begin_key(88888);
	end_key(88888);
	begin_key(99999); /* stays open */
	return !ok;
}

static void t_keys(void **state)
{
	struct qbpf_open_key key;
	struct qbpf_open open;
	struct harness h;

	harness_open(&h, way_of(state));
	harness_load(&h);
	child_prepare(&h, work_keys);
	set_arg(&h, 1, &in_rdi);
	set_arg(&h, 2, &in_rdi);
	probe(&h, k_begin, 1, QBPF_ROLE_KEY_BEGIN, 1);
	probe(&h, k_end, 1, QBPF_ROLE_KEY_END, 2);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS + 1);
	assert_int_equal(counts_of(&h, 1).orphan_ends, 1);
	assert_int_equal(counts_of(&h, 1).key_restarts, 1);
	assert_int_equal(not_clean(&h, 1), 2);
	assert_int_equal(bpf_map_get_next_key(bpf_map__fd(h.skel->maps.keyed), NULL, &key), 0);
	assert_int_equal(key.value, 99999);
	assert_int_equal(key.span, 1);
	assert_int_equal(key.tgid, h.child);
	assert_int_equal(
	    bpf_map__lookup_elem(h.skel->maps.keyed, &key, sizeof(key), &open, sizeof(open), 0), 0);
	assert_int_equal(open.tid, h.child);
	assert_int_not_equal(bpf_map_get_next_key(bpf_map__fd(h.skel->maps.keyed), &key, &key), 0);
	harness_close(&h);
}

/* --- tables that are too small --------------------------------------------------------------- */

static int work_key_overflow(void)
{
	for (uint64_t k = 1; k <= 100; k++)
		begin_key(k);
	return 0;
}

static void t_key_overflow(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	bpf_map__set_max_entries(h.skel->maps.keyed, 60);
	harness_load(&h);
	child_prepare(&h, work_key_overflow);
	set_arg(&h, 1, &in_rdi);
	probe(&h, k_begin, 1, QBPF_ROLE_KEY_BEGIN, 1);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(counts_of(&h, 1).key_overflow, 40);
	assert_int_equal(not_clean(&h, 1), 40);
	harness_close(&h);
}

static int work_around(void)
{
	for (int i = 0; i < ROUNDS; i++)
		around();
	return 0;
}

/* No room for nodes: the histograms are whole, and each span says that it has no place. */
static void t_node_overflow(void **state)
{
	struct harness h;

	harness_open(&h, way_of(state));
	bpf_map__set_max_entries(h.skel->maps.nodes, 1);
	harness_load(&h);
	child_prepare(&h, work_around);
	probe(&h, i_site, 1, QBPF_ROLE_INSTANT, 1);
	probe(&h, o_begin, 2, QBPF_ROLE_BEGIN, 2);
	probe(&h, o_end, 2, QBPF_ROLE_END, 3);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 2).n, ROUNDS);
	assert_int_equal(NODE(&h, 2).count, ROUNDS);
	assert_int_equal(not_clean(&h, 2), 0);
	assert_int_equal(hist_of(&h, 1).n, ROUNDS - 1);
	assert_int_equal(counts_of(&h, 1).node_overflow, ROUNDS);
	assert_int_equal(not_clean(&h, 1), ROUNDS);
	harness_close(&h);
}

/* One cell: what falls outside its octave, or its CPU, is counted. */
static void t_hist_overflow(void **state)
{
	struct harness h;

	for (nvalues = 0; nvalues < 64; nvalues++)
		values[nvalues] = 1ULL << nvalues;
	by_pointer = false;
	harness_open(&h, way_of(state));
	bpf_map__set_max_entries(h.skel->maps.hist_cells, 1);
	harness_load(&h);
	set_arg(&h, 7, &in_rdi);
	child_prepare(&h, work_values);
	probe(&h, v_site, 1, QBPF_ROLE_VALUE, 7);
	assert_int_equal(child_run(&h), 0);
	assert_int_equal(hist_of(&h, 1).n + counts_of(&h, 1).hist_overflow, 64);
	assert_true(counts_of(&h, 1).hist_overflow >= 59);
	assert_int_equal(not_clean(&h, 1), counts_of(&h, 1).hist_overflow);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH_WAYS(t_int_values),	BOTH_WAYS(t_signed_values), BOTH_WAYS(t_memory_values),
	    BOTH_WAYS(t_operand_forms), BOTH_WAYS(t_unreadable),    BOTH_WAYS(t_doubles),
	    BOTH_WAYS(t_floats),	BOTH_WAYS(t_instants),	    BOTH_WAYS(t_keys),
	    BOTH_WAYS(t_key_overflow),	BOTH_WAYS(t_node_overflow), BOTH_WAYS(t_hist_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

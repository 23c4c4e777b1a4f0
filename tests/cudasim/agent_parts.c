// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The agent's buffers and records by themselves, on activities made of the toolkit's own structures
 * and a CUPTI of a few lines, built with ASan and UBSan, and once more with TSan (then only
 * threads_at_once is run: AGENT_PARTS_RACE).
 *
 * Reader and writer share one mapping here, which lets TSan see both sides of the ring; hence the
 * reader's source is included.
 */
#include <cupti.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "file/ring_reader.c"
#include "probes/cupti/agent.h"

struct agent agent;
struct cupti cupti;
static struct ring_reader *reader;
static int next_code;	 /* what ends a buffer: CUPTI_ERROR_MAX_LIMIT_REACHED */
static size_t next_step; /* != 0: steps by so much instead of by the record's size */

uint32_t thread_id(void)
{
	return (uint32_t)gettid();
}

bool fault(enum qbpf_ring_fault what, const char *call, int code)
{
	(void)what, (void)call, (void)code;
	return false;
}

void call_enter(const char *name)
{
	(void)name;
}

void call_leave(void)
{
}

static size_t size_of(uint32_t kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return sizeof(CUpti_ActivityKernel9);
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER:
		return sizeof(CUpti_ActivityAPI);
	case CUPTI_ACTIVITY_KIND_NAME:
		return sizeof(CUpti_ActivityName);
	default:
		return 0;
	}
}

static int fake_next(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *next = buffer;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, *record, 4);
		next = (uint8_t *)*record + (next_step ? next_step : size_of(kind));
	}
	if (next + 8 > buffer + valid)
		return next_code;
	*record = next;
	return 0;
}

static int fake_name(int domain, uint32_t cbid, const char **name)
{
	static const char *const names[] = {
	    NULL, "cudaLaunchKernel_v7000", "cuMemAlloc_v2", "cudaLaunchKernel_ptsz_v7000", "_v",
	    "v12"};

	(void)domain;
	if (cbid >= sizeof(names) / sizeof(names[0]) || !names[cbid])
		return 1;
	*name = names[cbid];
	return 0;
}

static int begin_case(void **state)
{
	struct ring_options o = {.lanes = 4, .lane_bytes = 1 << 20};

	(void)state;
	reader = ring_reader__new(&o, NULL);
	assert_non_null(reader);
	memset(&agent, 0, sizeof(agent));
	agent.ring = reader->ring;
	agent.recording = 1;
	cupti.cuptiActivityGetNextRecord = fake_next;
	cupti.cuptiGetCallbackName = fake_name;
	next_code = CUPTI_NO_MORE_RECORDS;
	next_step = 0;
	record_names_reset();
	assert_true(buffers_make());
	return 0;
}

static int end_case(void **state)
{
	(void)state;
	ring_reader__free(reader);
	return 0;
}

/* --- records ----------------------------------------------------------------------------------- */

static _Alignas(8) unsigned char got[QBPF_RING_RECORD_MAX];
static unsigned ngot;

static int keep(void *ctx, const struct qbpf_ring_record *rec)
{
	(void)ctx;
	memcpy(got, rec, rec->size);
	ngot++;
	return 0;
}

/* The record that comes of the first `bytes` bytes of an activity. */
static const void *through(const void *activity, size_t bytes, unsigned type)
{
	struct qbpf_ring_writer w;

	ngot = 0;
	qbpf_ring_claim(&agent.ring, 1, 0, &w);
	record_put(&w, activity, bytes);
	qbpf_ring_release(&w);
	assert_int_equal(ring_reader__poll(reader, keep, NULL), 0);
	assert_int_equal(ngot, 1);
	assert_int_equal(((struct qbpf_ring_record *)got)->type, type);
	return got;
}

static const char *name_of(uint32_t id)
{
	static char buf[256];

	if (ring_reader__string(reader, id, buf, sizeof(buf)) < 0)
		return "none";
	return buf;
}

static void a_device(void **state)
{
	CUpti_ActivityDevice5 d = {.kind = CUPTI_ACTIVITY_KIND_DEVICE,
				   .id = 3,
				   .name = "Hopper",
				   .numMultiprocessors = 132,
				   .computeCapabilityMajor = 9,
				   .computeCapabilityMinor = 1,
				   .coreClockRate = 1980000,
				   .numMemcpyEngines = 5,
				   .globalMemorySize = 1ull << 37,
				   .globalMemoryBandwidth = 4800000000ull};
	const struct qbpf_ring_device *r;

	(void)state;
	r = through(&d, sizeof(d), QBPF_RING_DEVICE);
	assert_int_equal(r->device, 3);
	assert_string_equal(name_of(r->name), "Hopper");
	assert_int_equal(r->sms, 132);
	assert_int_equal(r->capability_major * 10 + r->capability_minor, 91);
	assert_int_equal(r->clock_khz, 1980000);
	assert_int_equal(r->copy_engines, 5);
	assert_int_equal(r->memory_bytes, 1ull << 37);
	assert_int_equal(r->bandwidth_kbps, 4800000000ull);
	r = through(&d, sizeof(CUpti_ActivityDevice2), QBPF_RING_DEVICE);
	assert_string_equal(name_of(r->name), "Hopper");
}

static void a_context_and_a_stream(void **state)
{
	CUpti_ActivityContext3 c = {
	    .kind = CUPTI_ACTIVITY_KIND_CONTEXT, .contextId = 4, .deviceId = 2, .nullStreamId = 7};
	CUpti_ActivityStream s = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
				  .contextId = 4,
				  .streamId = 13,
				  .priority = 5,
				  .flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING,
				  .correlationId = 99};
	const struct qbpf_ring_context *rc;
	const struct qbpf_ring_stream *rs;

	(void)state;
	rc = through(&c, sizeof(c), QBPF_RING_CONTEXT);
	assert_int_equal(rc->context, 4);
	assert_int_equal(rc->device, 2);
	assert_int_equal(rc->null_stream, 7);
	rs = through(&s, sizeof(s), QBPF_RING_STREAM);
	assert_int_equal(rs->stream, 13);
	assert_int_equal(rs->context, 4);
	assert_int_equal(rs->priority, 5);
	assert_int_equal(rs->flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
	assert_int_equal(rs->correlation, 99);
}

/* A kernel in each of its lengths; what follows in memory never gets in. */
static void a_kernel_of_each_version(void **state)
{
	static const size_t sizes[] = {sizeof(CUpti_ActivityKernel4), sizeof(CUpti_ActivityKernel5),
				       sizeof(CUpti_ActivityKernel6), sizeof(CUpti_ActivityKernel7),
				       sizeof(CUpti_ActivityKernel8), sizeof(CUpti_ActivityKernel9),
				       sizeof(CUpti_ActivityKernel10)};
	const struct qbpf_ring_kernel *r;
	CUpti_ActivityKernel10 k;
	size_t i;

	(void)state;
	memset(&k, 0xee, sizeof(k));
	k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	k.start = 100, k.end = 200, k.deviceId = 1, k.contextId = 2, k.streamId = 3;
	k.gridX = 4, k.gridY = 5, k.gridZ = 6, k.blockX = 7, k.blockY = 8, k.blockZ = 9;
	k.staticSharedMemory = 10, k.dynamicSharedMemory = 11, k.correlationId = 12;
	k.registersPerThread = 13, k.graphNodeId = 14, k.graphId = 15;
	k.name = "_Z5pricePf";
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		r = through(&k, sizes[i], QBPF_RING_KERNEL);
		assert_int_equal(r->start_ns, 100);
		assert_int_equal(r->end_ns, 200);
		assert_int_equal(r->device * 100 + r->context * 10 + r->stream, 123);
		assert_int_equal(r->grid[0] * 100 + r->grid[1] * 10 + r->grid[2], 456);
		assert_int_equal(r->block[0] * 100 + r->block[1] * 10 + r->block[2], 789);
		assert_int_equal(r->static_shared, 10);
		assert_int_equal(r->dynamic_shared, 11);
		assert_int_equal(r->correlation, 12);
		assert_int_equal(r->registers, 13);
		assert_int_equal(r->graph_node, i ? 14 : 0);
		assert_int_equal(r->graph, i ? 15 : 0);
		assert_string_equal(name_of(r->name), "_Z5pricePf");
	}
	k.name = NULL;
	r = through(&k, sizeof(k), QBPF_RING_KERNEL);
	assert_int_equal(r->name, 0);
	r = through(&k, 4, QBPF_RING_KERNEL);
	assert_int_equal(r->start_ns + r->correlation + r->name, 0);
}

static void an_overhead(void **state)
{
	CUpti_ActivityOverhead3 o = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
				     .overheadKind = CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER,
				     .objectKind = CUPTI_ACTIVITY_OBJECT_STREAM,
				     .start = 5,
				     .end = 9,
				     .correlationId = 77};
	const struct qbpf_ring_overhead *r;

	(void)state;
	o.objectId.dcs.deviceId = 1, o.objectId.dcs.contextId = 2, o.objectId.dcs.streamId = 3;
	r = through(&o, sizeof(o), QBPF_RING_OVERHEAD);
	assert_int_equal(r->kind, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
	assert_int_equal(r->object, CUPTI_ACTIVITY_OBJECT_STREAM);
	assert_int_equal(r->object_id[0] * 100 + r->object_id[1] * 10 + r->object_id[2], 123);
	assert_int_equal(r->end_ns - r->start_ns, 4);
	assert_int_equal(r->correlation, 77);
	r = through(&o, sizeof(CUpti_ActivityOverhead), QBPF_RING_OVERHEAD);
	assert_int_equal(r->correlation, 0);
}

static void names_of_calls(void **state)
{
	static const struct {
		int kind;
		uint32_t cbid;
		const char *name;
	} rows[] = {
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 1, "cudaLaunchKernel"},
	    {CUPTI_ACTIVITY_KIND_DRIVER, 2, "cuMemAlloc_v2"},
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 3, "cudaLaunchKernel_ptsz"},
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 4, "_v"},
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 5, "v12"},
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 9, "none"},
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 1000000, "none"},
	    {CUPTI_ACTIVITY_KIND_RUNTIME, 1, "cudaLaunchKernel"},
	};
	const struct qbpf_ring_call *r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CUpti_ActivityAPI a = {.kind = (CUpti_ActivityKind)rows[i].kind,
				       .cbid = rows[i].cbid,
				       .returnValue = 35};

		r = through(&a, sizeof(a), QBPF_RING_CALL);
		assert_string_equal(name_of(r->name), rows[i].name);
		assert_int_equal(r->error, 35);
		assert_int_equal(r->domain, rows[i].kind == CUPTI_ACTIVITY_KIND_DRIVER ? 1 : 2);
	}
}

/* --- buffers ----------------------------------------------------------------------------------- */

#define MOST 256

static size_t fill_with(uint8_t *buffer, size_t n, uint32_t kind)
{
	size_t i, size = size_of(kind);

	for (i = 0; i < n; i++) {
		CUpti_ActivityAPI *a = (void *)(buffer + i * size);

		a->kind = (CUpti_ActivityKind)kind;
		if (size == sizeof(*a))
			a->cbid = 1;
	}
	return n * size;
}

static uint64_t total(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += *p++;
	return sum;
}

static void buffers_are_bounded_zeroed_and_reused(void **state)
{
	uint8_t *b[MOST], *more, *again;
	size_t size, max, i, k, valid;

	(void)state;
	for (i = 0; i < MOST; i++) {
		b[i] = NULL;
		buffers_request(&b[i], &size, &max);
		assert_int_equal(size, 256 << 10);
		assert_int_equal(max, 0);
		assert_int_equal((uintptr_t)b[i] & 7, 0);
		for (k = 0; k < i; k++)
			assert_true(b[k] != b[i]);
	}
	assert_int_equal(buffers_out(), MOST);
	for (i = 0; i < 3; i++) { /* the discard buffer, as often as you like */
		buffers_request(&more, &size, &max);
		assert_true(more && size >= sizeof(CUpti_ActivityKernel10));
		assert_int_equal(max, 1);
		valid = fill_with(more, 1, CUPTI_ACTIVITY_KIND_RUNTIME);
		buffers_complete(NULL, 0, more, size, valid);
	}
	buffers_complete(NULL, 0, more, size, 0); /* nothing in it */
	assert_int_equal(agent.ring.head->discarded, 3);
	valid = fill_with(b[5], 100, CUPTI_ACTIVITY_KIND_RUNTIME);
	buffers_complete(NULL, 0, b[5], 256 << 10, valid);
	assert_int_equal(total(b[5], 256 << 10), 0);
	buffers_request(&again, &size, &max);
	assert_ptr_equal(again, b[5]);
	for (i = 0; i < MOST; i++)
		buffers_complete(NULL, 0, b[i], 256 << 10, 0);
	assert_int_equal(buffers_out(), 0);
	ring_reader__poll(reader, keep, NULL);
	assert_int_equal(reader->read[QBPF_RING_CALL], 100);
	assert_int_equal(agent.inside, 0);
}

static void strange_buffers_are_left_alone(void **state)
{
	static uint8_t foreign[4096];
	uint8_t *b;
	size_t size, max;

	(void)state;
	memset(foreign, 1, sizeof(foreign));
	buffers_complete(NULL, 0, foreign, sizeof(foreign), sizeof(foreign));
	assert_int_equal(total(foreign, sizeof(foreign)), sizeof(foreign));
	buffers_complete(NULL, 0, NULL, 0, 100);
	buffers_request(&b, &size, &max);
	buffers_complete(NULL, 0, b + 8, size, 100); /* not its beginning */
	assert_int_equal(buffers_out(), 1);
	buffers_complete(NULL, 0, b, size, size * 2); /* more than it holds */
	assert_int_equal(buffers_out(), 0);
	ring_reader__poll(reader, keep, NULL);
	assert_int_equal(reader->read[QBPF_RING_CALL], 0);
}

static void broken_buffers_are_counted(void **state)
{
	static const struct {
		int code;
		size_t step;
		uint64_t read, broken;
	} rows[] = {
	    {CUPTI_NO_MORE_RECORDS, 0, 10, 0},
	    {CUPTI_ERROR_INVALID_KIND, 0, 10, 1},
	    {999, 0, 10, 1},
	    {CUPTI_NO_MORE_RECORDS, (size_t)-8, 1, 1}, /* backwards */
	    {CUPTI_NO_MORE_RECORDS, 4, 1, 1},	       /* nowhere near */
	};
	uint64_t read = 0, broken = 0;
	size_t i, size, max, valid;
	uint8_t *b;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		next_code = rows[i].code;
		next_step = rows[i].step;
		buffers_request(&b, &size, &max);
		valid = fill_with(b, 10, CUPTI_ACTIVITY_KIND_RUNTIME);
		buffers_complete(NULL, 0, b, size, valid);
		ring_reader__poll(reader, keep, NULL);
		read += rows[i].read;
		broken += rows[i].broken;
		assert_int_equal(reader->read[QBPF_RING_CALL], read);
		assert_int_equal(agent.ring.head->broken, broken);
	}
	next_code = CUPTI_NO_MORE_RECORDS;
	next_step = 0;
	buffers_request(&b, &size, &max);
	valid = fill_with(b, 7, CUPTI_ACTIVITY_KIND_NAME); /* not asked for */
	buffers_complete(NULL, 0, b, size, valid);
	assert_int_equal(agent.ring.head->unknown, 7);
}

static void nothing_after_the_end(void **state)
{
	size_t size, max, valid;
	uint8_t *b;

	(void)state;
	agent.deadline_ns = 1;
	buffers_request(&b, &size, &max);
	valid = fill_with(b, 5, CUPTI_ACTIVITY_KIND_RUNTIME);
	buffers_complete(NULL, 0, b, size, valid);
	assert_int_equal(agent.ring.head->late, 1);
	agent.deadline_ns = 0;
	agent.recording = 0;
	memset(&agent.ring, 0, sizeof(agent.ring)); /* unmapped: a touch would be a crash */
	buffers_request(&b, &size, &max);
	valid = fill_with(b, 5, CUPTI_ACTIVITY_KIND_RUNTIME);
	buffers_complete(NULL, 0, b, size, valid);
	assert_int_equal(total(b, 4096), 0);
	ring_reader__poll(reader, keep, NULL);
	assert_int_equal(reader->read[QBPF_RING_CALL], 0);
}

/* --- threads ----------------------------------------------------------------------------------- */

#define THREADS 6
#define BUFFERS 150
#define EACH	40

static const char *const kernels[] = {"alpha", "beta", "gamma", "delta", "epsilon"};

static void *work(void *arg)
{
	uint32_t n = *(uint32_t *)arg, i, k;
	size_t size, max;
	uint8_t *b;

	for (i = 0; i < BUFFERS; i++) {
		buffers_request(&b, &size, &max);
		for (k = 0; k < EACH; k++) {
			CUpti_ActivityKernel9 *a = (CUpti_ActivityKernel9 *)b + k;

			a->kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
			a->correlationId = (n * BUFFERS + i) * EACH + k;
			a->name = kernels[a->correlationId % 5];
		}
		buffers_complete(NULL, 0, b, size, EACH * sizeof(CUpti_ActivityKernel9));
	}
	return NULL;
}

struct tally {
	bool seen[THREADS * BUFFERS * EACH];
	uint32_t n, wrong;
};

static int count(void *ctx, const struct qbpf_ring_record *rec)
{
	const struct qbpf_ring_kernel *k = (const struct qbpf_ring_kernel *)rec;
	struct tally *t = ctx;

	t->n++;
	t->wrong += t->seen[k->correlation];
	t->seen[k->correlation] = true;
	t->wrong += strcmp(name_of(k->name), kernels[k->correlation % 5]) != 0;
	return 0;
}

static void threads_at_once(void **state)
{
	static struct tally t;
	uint32_t ns[THREADS], i;
	struct ring_status st;
	pthread_t ids[THREADS];

	(void)state;
	memset(&t, 0, sizeof(t));
	for (i = 0; i < THREADS; i++) {
		ns[i] = i;
		assert_int_equal(pthread_create(&ids[i], NULL, work, &ns[i]), 0);
	}
	for (i = 0; i < 200; i++) {
		ring_reader__poll(reader, count, &t);
		ring_reader__status(reader, &st);
		usleep(500);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	ring_reader__poll(reader, count, &t);
	ring_reader__status(reader, &st);
	assert_int_equal(t.wrong, 0);
	assert_int_equal(t.n + st.lost[QBPF_RING_KERNEL], THREADS * BUFFERS * EACH);
	assert_true(t.n > 0);
	assert_int_equal(st.lost_strings + st.bad_lanes + st.broken, 0);
	assert_int_equal(agent.inside, 0);
	assert_int_equal(buffers_out(), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_case, end_case)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(a_device),
	    CASE(a_context_and_a_stream),
	    CASE(a_kernel_of_each_version),
	    CASE(an_overhead),
	    CASE(names_of_calls),
	    CASE(buffers_are_bounded_zeroed_and_reused),
	    CASE(strange_buffers_are_left_alone),
	    CASE(broken_buffers_are_counted),
	    CASE(nothing_after_the_end),
	    CASE(threads_at_once),
	};

	if (getenv("AGENT_PARTS_RACE"))
		cmocka_set_test_filter("threads_at_once");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

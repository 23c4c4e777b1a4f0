/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quant_gpu.c - a strategy whose signal is computed on the GPU (built as w_quant_gpu)
 *
 *	w_quant_gpu [--ticks N] [--seconds S] [--rate HZ] [--bytes N] [--kernel-ns N] [--cpu-ns N]
 *		    [--streams N] [--graph] [--flaw sync-copy]
 *
 * A tick, each part under a marker of its own: features are made on the CPU, copied to the device,
 * two kernels turn them into a score, the score is copied back, and an order is decided. Ticks are
 * staggered over --streams streams (2): a tick's answer is read when its stream is needed again, so
 * that one tick's copies run beside another's kernels. With --flaw sync-copy the same work is done
 * one tick at a time, by cudaMemcpy from and to pageable memory. The answers are the same: the
 * `decisions` and `checksum` lines at the end do not depend on how the ticks were done.
 *
 * The kernels are PTX, which the driver compiles, so no compiler for devices is needed; they wait
 * until --kernel-ns have passed. Without a GPU (tests/cudasim) nothing runs PTX, and the functions
 * cudasim_effect_* below do what the kernels would have done.
 *
 * Says "ready PID" when all is set up, and with --wait goes on when it has read a line. At the end, or on
 * SIGTERM: `count NAME N` for each span, `decisions N`, `checksum X`.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qbpf/probe.h"

#define STREAMS_MAX 16
#define SCORED	    256u /* so many values make the score */

static const char kernels_ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    "\n"
    /* out[i] = in[i] / 2 + 0.25 */
    ".visible .entry alpha(.param .u64 in, .param .u64 out, .param .u32 n, .param .u64 length_ns)\n"
    "{\n"
    "	.reg .pred %p<3>;\n"
    "	.reg .b32 %r<6>;\n"
    "	.reg .f32 %f<3>;\n"
    "	.reg .b64 %rd<9>;\n"
    "	mov.u64 %rd6, %globaltimer;\n"
    "	ld.param.u64 %rd1, [in];\n"
    "	ld.param.u64 %rd2, [out];\n"
    "	ld.param.u32 %r1, [n];\n"
    "	ld.param.u64 %rd7, [length_ns];\n"
    "	mov.u32 %r2, %ctaid.x;\n"
    "	mov.u32 %r3, %ntid.x;\n"
    "	mov.u32 %r4, %tid.x;\n"
    "	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
    "	setp.ge.u32 %p1, %r5, %r1;\n"
    "	@%p1 bra WAIT;\n"
    "	cvta.to.global.u64 %rd1, %rd1;\n"
    "	cvta.to.global.u64 %rd2, %rd2;\n"
    "	mul.wide.u32 %rd3, %r5, 4;\n"
    "	add.s64 %rd4, %rd1, %rd3;\n"
    "	add.s64 %rd5, %rd2, %rd3;\n"
    "	ld.global.f32 %f1, [%rd4];\n"
    "	fma.rn.f32 %f2, %f1, 0f3F000000, 0f3E800000;\n"
    "	st.global.f32 [%rd5], %f2;\n"
    "WAIT:\n"
    "	mov.u64 %rd8, %globaltimer;\n"
    "	sub.s64 %rd8, %rd8, %rd6;\n"
    "	setp.lt.u64 %p2, %rd8, %rd7;\n"
    "	@%p2 bra WAIT;\n"
    "	ret;\n"
    "}\n"
    "\n"
    /* score = the sum of the first n, one after the other */
    ".visible .entry score(.param .u64 in, .param .u64 result, .param .u32 n, .param .u64 "
    "length_ns)\n"
    "{\n"
    "	.reg .pred %p<3>;\n"
    "	.reg .b32 %r<3>;\n"
    "	.reg .f32 %f<3>;\n"
    "	.reg .b64 %rd<6>;\n"
    "	mov.u64 %rd3, %globaltimer;\n"
    "	ld.param.u64 %rd1, [in];\n"
    "	ld.param.u64 %rd2, [result];\n"
    "	ld.param.u32 %r1, [n];\n"
    "	ld.param.u64 %rd4, [length_ns];\n"
    "	cvta.to.global.u64 %rd1, %rd1;\n"
    "	cvta.to.global.u64 %rd2, %rd2;\n"
    "	mov.f32 %f1, 0f00000000;\n"
    "NEXT:\n"
    "	setp.eq.u32 %p1, %r1, 0;\n"
    "	@%p1 bra DONE;\n"
    "	ld.global.f32 %f2, [%rd1];\n"
    "	add.rn.f32 %f1, %f1, %f2;\n"
    "	add.s64 %rd1, %rd1, 4;\n"
    "	sub.u32 %r1, %r1, 1;\n"
    "	bra NEXT;\n"
    "DONE:\n"
    "	st.global.f32 [%rd2], %f1;\n"
    "WAIT2:\n"
    "	mov.u64 %rd5, %globaltimer;\n"
    "	sub.s64 %rd5, %rd5, %rd3;\n"
    "	setp.lt.u64 %p2, %rd5, %rd4;\n"
    "	@%p2 bra WAIT2;\n"
    "	ret;\n"
    "}\n";

void cudasim_effect_alpha(void **args);
void cudasim_effect_score(void **args);

void cudasim_effect_alpha(void **args)
{
	const float *in = *(const float **)args[0];
	float *out = *(float **)args[1];
	uint32_t n = *(uint32_t *)args[2];

	/* Only what is read again: this is time of the host that a GPU would not take. */
	for (uint32_t i = 0; i < n && i < SCORED; i++)
		out[i] = in[i] * 0.5f + 0.25f;
}

void cudasim_effect_score(void **args)
{
	const float *in = *(const float **)args[0];
	float *result = *(float **)args[1], sum = 0;
	uint32_t n = *(uint32_t *)args[2];

	for (uint32_t i = 0; i < n; i++)
		sum += in[i];
	*result = sum;
}

/* --- state ------------------------------------------------------------------------------------ */

/* What one tick in flight owns. */
struct lane {
	cudaStream_t stream;
	cudaEvent_t done;
	cudaGraphExec_t graph;
	float *host, *in, *out, *host_score, *score;
	bool busy;
	uint64_t tick;
};

static struct lane lanes[STREAMS_MAX];
static cudaKernel_t k_alpha, k_score;
static uint64_t opt_ticks = UINT64_MAX, opt_rate, opt_bytes = 256 << 10, opt_kernel_ns = 60000;
static uint64_t opt_cpu_ns = 20000, opt_streams = 2, opt_seconds;
static bool opt_graph, opt_flaw, opt_wait;
static volatile sig_atomic_t stop;
static uint64_t n_ticks, n_signals, n_orders, n_decisions, checksum;

static void check(cudaError_t err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "w_quant_gpu: %s: %s\n", what, cudaGetErrorString(err));
	exit(1);
}
#define CHECK(call) check(call, #call)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* --- a tick ----------------------------------------------------------------------------------- */

/* The features: the same for a tick however it is processed. */
static void make_features(float *f, uint64_t tick)
{
	uint64_t until = now_ns() + opt_cpu_ns;
	uint32_t x = (uint32_t)tick * 2654435761u + 1;

	QBPF_SPAN(signal, alpha);
	n_signals++;
	for (uint32_t i = 0; i < SCORED; i++) {
		x = x * 1664525u + 1013904223u;
		f[i] = (float)(x >> 24) / 256.0f - 0.5f;
	}
	while (now_ns() < until)
		;
}

static void launch(struct lane *l)
{
	uint32_t n = (uint32_t)(opt_bytes / sizeof(float)), scored = SCORED;
	uint64_t tail_ns = opt_kernel_ns / 8;
	void *alpha_args[] = {&l->in, &l->out, &n, &opt_kernel_ns};
	void *score_args[] = {&l->out, &l->score, &scored, &tail_ns};
	dim3 grid = {(n + 255) / 256, 1, 1}, block = {256, 1, 1}, one = {1, 1, 1};

	CHECK(cudaLaunchKernel((const void *)k_alpha, grid, block, alpha_args, 0, l->stream));
	CHECK(cudaLaunchKernel((const void *)k_score, one, one, score_args, 0, l->stream));
}

static void submit_async(struct lane *l)
{
	CHECK(cudaMemcpyAsync(l->in, l->host, opt_bytes, cudaMemcpyHostToDevice, l->stream));
	launch(l);
	CHECK(cudaMemcpyAsync(l->host_score, l->score, sizeof(float), cudaMemcpyDeviceToHost,
			      l->stream));
}

static void decide(struct lane *l)
{
	uint32_t bits;

	QBPF_SPAN(order, decide);
	n_orders++;
	memcpy(&bits, l->host_score, sizeof(bits));
	checksum = (checksum ^ bits ^ l->tick) * 0x100000001b3u;
	if (*l->host_score > (float)SCORED / 4) {
		n_decisions++;
		QBPF_VALUE(order, score, *l->host_score);
	}
}

static void finish(struct lane *l)
{
	if (!l->busy)
		return;
	{
		QBPF_SPAN(gpu, wait);
		CHECK(cudaEventSynchronize(l->done));
	}
	l->busy = false;
	decide(l);
}

/* The flaw: each copy holds up the host, and the device has nothing to do meanwhile. */
static void tick_sync(struct lane *l)
{
	make_features(l->host, l->tick);
	{
		QBPF_SPAN(gpu, submit);
		CHECK(cudaMemcpy(l->in, l->host, opt_bytes, cudaMemcpyHostToDevice));
		launch(l);
		CHECK(cudaMemcpy(l->host_score, l->score, sizeof(float), cudaMemcpyDeviceToHost));
	}
	decide(l);
}

static void tick_async(struct lane *l)
{
	make_features(l->host, l->tick);
	QBPF_SPAN(gpu, submit);
	if (opt_graph)
		CHECK(cudaGraphLaunch(l->graph, l->stream));
	else
		submit_async(l);
	CHECK(cudaEventRecord(l->done, l->stream));
	l->busy = true;
}

static void tick(uint64_t number)
{
	struct lane *l = &lanes[number % opt_streams];

	QBPF_SPAN(strategy, tick);
	n_ticks++;
	finish(l);
	l->tick = number;
	if (opt_flaw)
		tick_sync(l);
	else
		tick_async(l);
}

static void run(void)
{
	uint64_t start = now_ns(),
		 end = opt_seconds ? start + opt_seconds * 1000000000u : UINT64_MAX;
	uint64_t i;

	for (i = 0; i < opt_ticks && !stop && now_ns() < end; i++) {
		uint64_t due = opt_rate ? start + i * 1000000000u / opt_rate : 0;

		while (now_ns() < due)
			;
		tick(i);
	}
	for (uint64_t n = 0; n < opt_streams; n++)
		finish(&lanes[(i + n) % opt_streams]);
	CHECK(cudaDeviceSynchronize());
}

/* --- setting up ------------------------------------------------------------------------------- */

static void capture(struct lane *l)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(l->stream, cudaStreamCaptureModeThreadLocal));
	submit_async(l);
	CHECK(cudaStreamEndCapture(l->stream, &graph));
	CHECK(cudaGraphInstantiate(&l->graph, graph, 0));
	CHECK(cudaGraphDestroy(graph));
}

static void set_up_lane(struct lane *l)
{
	if (opt_flaw) {
		l->host = calloc(1, opt_bytes);
		l->host_score = calloc(1, sizeof(float));
		if (!l->host || !l->host_score)
			exit(1);
	} else {
		CHECK(cudaMallocHost((void **)&l->host, opt_bytes));
		CHECK(cudaMallocHost((void **)&l->host_score, sizeof(float)));
		memset(l->host, 0, opt_bytes);
		CHECK(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
	}
	CHECK(cudaMalloc((void **)&l->in, opt_bytes));
	CHECK(cudaMalloc((void **)&l->out, opt_bytes));
	CHECK(cudaMalloc((void **)&l->score, sizeof(float)));
	CHECK(cudaEventCreateWithFlags(&l->done, cudaEventDisableTiming));
	if (opt_graph)
		capture(l);
}

static void set_up(void)
{
	cudaLibrary_t library;

	CHECK(cudaLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cudaLibraryGetKernel(&k_alpha, library, "alpha"));
	CHECK(cudaLibraryGetKernel(&k_score, library, "score"));
	if (opt_flaw)
		opt_streams = 1;
	for (uint64_t i = 0; i < opt_streams; i++)
		set_up_lane(&lanes[i]);
}

static uint64_t number(const char *s, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(s, &end, 0);
	if (errno || end == s || *end || *s == '-' || n < min || n > max) {
		fprintf(stderr, "w_quant_gpu: bad number '%s'\n", s);
		exit(2);
	}
	return n;
}

static void options(int argc, char **argv)
{
	static const struct option longs[] = {
	    {"ticks", 1, NULL, 't'},   {"seconds", 1, NULL, 'd'},   {"rate", 1, NULL, 'r'},
	    {"bytes", 1, NULL, 'b'},   {"kernel-ns", 1, NULL, 'k'}, {"cpu-ns", 1, NULL, 'c'},
	    {"streams", 1, NULL, 's'}, {"graph", 0, NULL, 'g'},	    {"flaw", 1, NULL, 'f'},
	    {"wait", 0, NULL, 'w'},    {NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 't':
			opt_ticks = number(optarg, 1, UINT64_MAX - 1);
			break;
		case 'd':
			opt_seconds = number(optarg, 1, 1000000);
			break;
		case 'r':
			opt_rate = number(optarg, 1, 1000000);
			break;
		case 'b':
			opt_bytes = number(optarg, SCORED * sizeof(float), 1 << 28);
			break;
		case 'k':
			opt_kernel_ns = number(optarg, 0, 1000000000);
			break;
		case 'c':
			opt_cpu_ns = number(optarg, 0, 1000000000);
			break;
		case 's':
			opt_streams = number(optarg, 1, STREAMS_MAX);
			break;
		case 'g':
			opt_graph = true;
			break;
		case 'w':
			opt_wait = true;
			break;
		case 'f':
			opt_flaw = !strcmp(optarg, "sync-copy");
			if (opt_flaw)
				break;
			/* fallthrough */
		default:
			fprintf(stderr, "usage: see the head of quant_gpu.c\n");
			exit(2);
		}
	}
	if (opt_flaw && opt_graph) {
		fprintf(stderr, "w_quant_gpu: --graph has no synchronous copies\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal};
	char line[64];

	options(argc, argv);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	set_up();
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (opt_wait && !fgets(line, sizeof(line), stdin))
		return 1;
	run();
	printf("count strategy:tick %" PRIu64 "\ncount signal:alpha %" PRIu64
	       "\ncount order:decide %" PRIu64 "\n",
	       n_ticks, n_signals, n_orders);
	printf("decisions %" PRIu64 "\nchecksum %016" PRIx64 "\n", n_decisions, checksum);
	return 0;
}

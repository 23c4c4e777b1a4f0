/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sim_probe.c - a small CUDA program, with the CUPTI client of sim_client.c, for t_cudasim.py
 *
 *	sim_probe SCENARIO [KIND...]
 *
 * Enables the kinds (by number), runs the scenario, flushes, and prints what it saw as CSV: a line
 * `record,...` for each record, and lines of its own for what a test asks about. Status 1 and a
 * line on stderr when a call fails that must not.
 */
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim_client.h"

extern __typeof__(cudaLaunchKernel) cudaLaunchKernel_ptsz;
extern __typeof__(cudaStreamSynchronize) cudaStreamSynchronize_ptsz;

static void __attribute__((noreturn)) die(const char *what, int err)
{
	fprintf(stderr, "sim_probe: %s: %d\n", what, err);
	exit(1);
}

#define MUST(call)                                                                                 \
	do {                                                                                       \
		int must_err = (int)(call);                                                        \
		if (must_err)                                                                      \
			die(#call, must_err);                                                      \
	} while (0)

/* --- scenarios -------------------------------------------------------------------------------- */

/* Stand-ins for kernels: CUDASIM_KERNELS has their lengths. */
void k_short(void);
void k_long(void);
void k_short(void)
{
}
void k_long(void)
{
}

static const dim3 one = {1, 1, 1};

static void launch(void (*k)(void), cudaStream_t s)
{
	MUST(cudaLaunchKernel((const void *)k, one, one, NULL, 0, s));
}

static void basic(void)
{
	char *d, host[4096], *pinned;
	cudaStream_t s;

	MUST(cudaMalloc((void **)&d, 1 << 20));
	MUST(cudaMallocHost((void **)&pinned, 1 << 20));
	MUST(cudaStreamCreate(&s));
	memset(pinned, 7, 1 << 20);
	MUST(cudaMemcpyAsync(d, pinned, 1 << 20, cudaMemcpyHostToDevice, s));
	launch(k_short, s);
	launch(k_long, s);
	MUST(cudaMemsetAsync(d, 3, 4096, s));
	MUST(cudaMemcpyAsync(pinned, d, 1 << 20, cudaMemcpyDeviceToHost, s));
	MUST(cudaStreamSynchronize(s));
	printf("data,%d,%d\n", pinned[0], pinned[4096]);
	MUST(cudaMemcpy(d, host, sizeof(host), cudaMemcpyHostToDevice));
	launch(k_short, 0);
	MUST(cudaDeviceSynchronize());
	MUST(cudaStreamDestroy(s));
	MUST(cudaFreeHost(pinned));
	MUST(cudaFree(d));
}

/* Two streams with copies and kernels each; an event makes the second wait for the first. */
static void overlap(void)
{
	char *d, *pinned;
	cudaStream_t s[2];
	cudaEvent_t e;

	MUST(cudaMalloc((void **)&d, 2 << 20));
	MUST(cudaMallocHost((void **)&pinned, 2 << 20));
	MUST(cudaEventCreate(&e));
	for (int i = 0; i < 2; i++)
		MUST(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
	for (int i = 0; i < 2; i++) {
		char *to = d + (i << 20), *from = pinned + (i << 20);

		MUST(cudaMemcpyAsync(to, from, 1 << 20, cudaMemcpyHostToDevice, s[i]));
		launch(k_long, s[i]);
		MUST(cudaMemcpyAsync(from, to, 1 << 20, cudaMemcpyDeviceToHost, s[i]));
	}
	MUST(cudaEventRecord(e, s[0]));
	MUST(cudaStreamWaitEvent(s[1], e, 0));
	launch(k_short, s[1]);
	MUST(cudaDeviceSynchronize());
}

/* The legacy stream waits for a blocking one, and the next there for it; the thread's own stream. */
static void legacy(void)
{
	cudaStream_t s, free_s;

	MUST(cudaStreamCreate(&s));
	MUST(cudaStreamCreateWithFlags(&free_s, cudaStreamNonBlocking));
	launch(k_long, s);
	launch(k_long, 0);
	launch(k_short, s);
	launch(k_short, free_s);
	MUST(cudaLaunchKernel_ptsz((const void *)k_short, one, one, NULL, 0, 0));
	MUST(cudaStreamSynchronize_ptsz(0));
	MUST(cudaDeviceSynchronize());
}

/* Three kernels in a diamond, a copy and a memset, captured over two streams. */
static void graph(void)
{
	cudaStream_t s[2];
	cudaEvent_t fork_e, join_e;
	cudaGraph_t g;
	cudaGraphExec_t x;
	char *d, *pinned;
	size_t n = 0;

	MUST(cudaMalloc((void **)&d, 4096));
	MUST(cudaMallocHost((void **)&pinned, 4096));
	memset(pinned, 9, 4096);
	MUST(cudaEventCreate(&fork_e));
	MUST(cudaEventCreate(&join_e));
	for (int i = 0; i < 2; i++)
		MUST(cudaStreamCreate(&s[i]));
	MUST(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeThreadLocal));
	MUST(cudaMemcpyAsync(d, pinned, 4096, cudaMemcpyHostToDevice, s[0]));
	MUST(cudaEventRecord(fork_e, s[0]));
	MUST(cudaStreamWaitEvent(s[1], fork_e, 0));
	launch(k_long, s[0]);
	launch(k_long, s[1]);
	MUST(cudaEventRecord(join_e, s[1]));
	MUST(cudaStreamWaitEvent(s[0], join_e, 0));
	launch(k_short, s[0]);
	MUST(cudaMemsetAsync(d, 5, 10, s[0]));
	MUST(cudaStreamEndCapture(s[0], &g));
	MUST(cudaGraphGetNodes(g, NULL, &n));
	MUST(cudaGraphInstantiate(&x, g, 0));
	for (int i = 0; i < 3; i++)
		MUST(cudaGraphLaunch(x, s[0]));
	MUST(cudaStreamSynchronize(s[0]));
	printf("nodes,%zu\ndata,%d,%d\n", n, d[9], d[10]);
	MUST(cudaGraphExecDestroy(x));
	MUST(cudaGraphDestroy(g));
}

static void devices(void)
{
	char *d[2];
	int n;

	MUST(cudaGetDeviceCount(&n));
	printf("devices,%d\n", n);
	for (int i = 0; i < 2; i++) {
		MUST(cudaSetDevice(i));
		MUST(cudaMalloc((void **)&d[i], 1 << 20));
		launch(k_long, 0);
	}
	MUST(cudaMemcpyPeerAsync(d[0], 0, d[1], 1, 1 << 20, 0));
	for (int i = 0; i < 2; i++) {
		MUST(cudaSetDevice(i));
		MUST(cudaDeviceSynchronize());
	}
	printf("error,%d\n", cudaSetDevice(n));
}

/* No runtime at all: a context of its own, a kernel from PTX whose length is a parameter. */
static void driver(void)
{
	static const char ptx[] =
	    ".version 7.0\n.target sm_70\n.address_size 64\n"
	    ".visible .entry spin(.param .u32 unused, .param .u64 length_ns)\n{\n\tret;\n}\n";
	uint64_t length = 77000;
	uint32_t unused = 0;
	void *args[] = {&unused, &length};
	CUlaunchConfig config = {.gridDimX = 2,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 32,
				 .blockDimY = 1,
				 .blockDimZ = 1};
	CUcontext ctx;
	CUmodule module;
	CUfunction f;
	CUdeviceptr d;
	CUstream s;

	MUST(cuInit(0));
	MUST(cuCtxCreate(&ctx, NULL, 0, 0));
	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&f, module, "spin"));
	printf("missing,%d\n", cuModuleGetFunction(&f, module, "nothing"));
	MUST(cuModuleGetFunction(&f, module, "spin"));
	MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc(&d, 1024));
	MUST(cuMemsetD32Async(d, 1, 256, s));
	MUST(cuLaunchKernel(f, 3, 1, 1, 32, 1, 1, 0, s, args, NULL));
	config.hStream = s;
	MUST(cuLaunchKernelEx(&config, f, args, NULL));
	MUST(cuStreamSynchronize(s));
	MUST(cuMemFree(d));
	MUST(cuCtxDestroy(ctx));
}

static void *launcher(void *stream)
{
	for (int i = 0; i < 200; i++) {
		launch(k_short, stream);
		if (i % 20 == 19)
			MUST(cudaStreamSynchronize(stream));
	}
	return NULL;
}

/* Small buffers, so that many are asked for and returned at the same time. */
static void threads(void)
{
	pthread_t t[8];
	cudaStream_t s[8];

	client.buffer_size = 4096;
	for (int i = 0; i < 8; i++) {
		MUST(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
		MUST(pthread_create(&t[i], NULL, launcher, s[i]));
	}
	for (int i = 0; i < 8; i++)
		MUST(pthread_join(t[i], NULL));
}

static void many(void)
{
	for (int i = 0; i < 100; i++)
		launch(k_short, 0);
	MUST(cudaDeviceSynchronize());
}

static void failing(void)
{
	char *d, host[64];

	MUST(cudaMalloc((void **)&d, 64));
	for (int i = 0; i < 9; i++) {
		cudaError_t err = cudaMemcpy(d, host, 64, cudaMemcpyHostToDevice);
		cudaError_t peeked = cudaPeekAtLastError(), last = cudaGetLastError();

		printf("error,%d,%d,%d,%d\n", err, peeked, last, cudaGetLastError());
	}
	printf("error,%d\n",
	       cudaLaunchKernel((const void *)k_short, (dim3){0, 1, 1}, one, NULL, 0, 0));
	printf("error,%d\n", cudaLaunchKernel(NULL, one, one, NULL, 0, 0));
	printf("error,%d\n", cudaMemset(host, 0, 64));
}

/* The kernel never ends, and nothing here waits for it. */
static void persistent(void)
{
	cudaStream_t s, other;

	MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	launch(k_long, s);
	launch(k_short, s);
	launch(k_short, other);
	MUST(cudaStreamSynchronize(other));
	printf("query,%d\n", cudaStreamQuery(s));
}

static void child(void)
{
	pid_t pid;
	int status;

	launch(k_short, 0);
	MUST(cudaDeviceSynchronize());
	cuptiActivityFlushAll(1);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		cudaError_t err = cudaLaunchKernel((const void *)k_short, one, one, NULL, 0, 0);

		_exit(err == cudaErrorInitializationError ? 42 : 1);
	}
	waitpid(pid, &status, 0);
	printf("child,%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	launch(k_short, 0);
	MUST(cudaDeviceSynchronize());
}

static void hostfn(void *data)
{
	*(int *)data += 1;
}

/* Host functions have run when a wait for their stream returns; events tell lengths. */
static void events(void)
{
	cudaEvent_t from, to;
	cudaStream_t s;
	int ran = 0;
	float ms;

	MUST(cudaStreamCreate(&s));
	MUST(cudaEventCreate(&from));
	MUST(cudaEventCreate(&to));
	launch(k_short, s);
	MUST(cudaEventRecord(from, s));
	launch(k_long, s);
	MUST(cudaEventRecord(to, s));
	printf("query,%d\n", cudaEventQuery(to));
	MUST(cudaLaunchHostFunc(s, hostfn, &ran));
	MUST(cudaStreamSynchronize(s));
	MUST(cudaEventElapsedTime(&ms, from, to));
	printf("ran,%d\nelapsed,%.0f\n", ran, ms * 1e6);
}

/* --- the tool's side -------------------------------------------------------------------------- */

static unsigned int n_enter, n_exit;
static bool finalize_in_exit;

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
			     const void *data)
{
	const CUpti_CallbackData *d = data;
	const cudaLaunchKernel_v7000_params *p = d->functionParams;

	if (domain != CUPTI_CB_DOMAIN_RUNTIME_API ||
	    cbid != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
		return;
	if (d->callbackSite == CUPTI_API_ENTER) {
		n_enter++;
		*d->correlationData = d->correlationId;
		return;
	}
	n_exit += *d->correlationData == d->correlationId && p->func == user &&
		  *(cudaError_t *)d->functionReturnValue == cudaSuccess;
	if (finalize_in_exit && n_exit == 5)
		cuptiFinalize();
}

static void callbacks(void)
{
	CUpti_SubscriberHandle h, second;
	char rival[64] = "";
	CUpti_SubscriberParams params = {CUpti_SubscriberParams_STRUCT_SIZE, "sim_probe", rival,
					 sizeof(rival)};

	MUST(cuptiSubscribe_v2(&h, on_call, (void *)k_short, &params));
	printf("second,%d,%s\n", cuptiSubscribe_v2(&second, on_call, NULL, &params), rival);
	MUST(cuptiEnableDomain(1, h, CUPTI_CB_DOMAIN_RUNTIME_API));
	many();
	printf("callbacks,%u,%u\n", n_enter, n_exit);
	if (!finalize_in_exit)
		MUST(cuptiUnsubscribe(h));
	launch(k_short, 0);
	printf("callbacks,%u,%u\n", n_enter, n_exit);
}

static void finalize(void)
{
	finalize_in_exit = true;
	callbacks();
}

static _Atomic bool leave;
static _Atomic unsigned int called;

static void *caller(void *unused)
{
	while (!leave) {
		launch(k_short, 0);
		MUST(cudaStreamSynchronize(0));
		called++;
	}
	return unused;
}

/* The tool leaves while four threads make calls. */
static void leaving(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		MUST(pthread_create(&t[i], NULL, caller, NULL));
	for (int i = 0; i < 20; i++) {
		unsigned int before = called;

		while (called < before + 10)
			usleep(100);
		MUST(cuptiFinalize());
		MUST(cuptiActivityRegisterCallbacks(client_request, client_complete));
		MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
		MUST(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	}
	leave = true;
	for (int i = 0; i < 4; i++)
		MUST(pthread_join(t[i], NULL));
}

static void subscribe(void)
{
	CUpti_SubscriberHandle h;
	char rival[64] = "";
	CUpti_SubscriberParams params = {CUpti_SubscriberParams_STRUCT_SIZE, "sim_probe", rival,
					 sizeof(rival)};
	const char *text = "";
	CUptiResult err = cuptiSubscribe_v2(&h, on_call, NULL, &params);

	cuptiGetResultString(err, &text);
	printf("subscribe,%d,%s,%s\n", err, text, rival);
}

static void enabling(void)
{
	static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_MEMCPY,
						   CUPTI_ACTIVITY_KIND_MEMSET,
						   CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};

	for (int i = 0; i < 3; i++)
		printf("enable,%d,%d\n", kinds[i], cuptiActivityEnable(kinds[i]));
}

static void external(void)
{
	uint64_t id = 0;

	MUST(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 111));
	launch(k_short, 0);
	MUST(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
	launch(k_short, 0);
	printf("popped,%" PRIu64 ",%d\n", id,
	       cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
}

static uint64_t CUPTIAPI monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void clocked(void)
{
	MUST(cuptiActivityRegisterTimestampCallback(monotonic));
	many();
}

static void late_clock(void)
{
	launch(k_short, 0);
	clocked();
}

static void chosen(void)
{
	MUST(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 1));
	many();
}

static void no_room(void)
{
	client.no_buffers = true;
	many();
}

static void one_record_each(void)
{
	client.buffer_records = 1;
	many();
}

static void version(void)
{
	uint32_t v;

	MUST(cuptiGetVersion(&v));
	printf("version,%u\n", v);
	basic();
	graph();
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
    {"basic", basic},
    {"overlap", overlap},
    {"legacy", legacy},
    {"graph", graph},
    {"devices", devices},
    {"driver", driver},
    {"threads", threads},
    {"many", many},
    {"failing", failing},
    {"persistent", persistent},
    {"child", child},
    {"events", events},
    {"callbacks", callbacks},
    {"finalize", finalize},
    {"leaving", leaving},
    {"subscribe", subscribe},
    {"enabling", enabling},
    {"external", external},
    {"clocked", clocked},
    {"late_clock", late_clock},
    {"chosen", chosen},
    {"no_room", no_room},
    {"one_record_each", one_record_each},
    {"version", version},
};

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: sim_probe SCENARIO [KIND...]", 2);
	MUST(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
	MUST(cuptiActivityRegisterCallbacks(client_request, client_complete));
	for (int i = 2; i < argc; i++)
		MUST(cuptiActivityEnable((CUpti_ActivityKind)atoi(argv[i])));
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		if (strcmp(argv[1], scenarios[i].name))
			continue;
		scenarios[i].run();
		client_stop();
		return 0;
	}
	die(argv[1], 2);
}

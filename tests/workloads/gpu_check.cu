// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gpu_check.cu - a CUDA program that says exactly what it did, for scripts/gpu-check.sh
 *
 *	gpu_check [--stages] [--until-alone]	every phase once
 *	gpu_check --bench N			N launches and N graph launches, timed by themselves
 *	gpu_check --devices			whether there is a GPU
 *
 * --out FILE: what is said goes there, where a tracer's own words are not between it.
 * --stages: after CUDA has been initialised says "ready PID" and waits for a line, and after the
 * phases says "done" and waits for another, so that a tracer can come and go. --until-alone: at the
 * end waits until no thread of qbpf's agent is left in it, 10 s at most.
 *
 * What operations take is measured with CUDA events, queued behind a kernel that runs for as long as
 * the host needs to submit them, so that the host's own speed is in no figure. All times are
 * CLOCK_MONOTONIC ns. The lines:
 *
 *	phase NAME begin=NS end=NS launches=N kernels=N h2d=N d2h=N d2d=N bytes=N memsets=N graphs=N
 *		node_kernels=N node_copies=N node_memsets=N syncs=N failed=N captured=BYTES
 *			`launches` are calls, `kernels` ran outside graphs; node_*: within launches of graphs
 *			(a capture's launches are launches that no kernel came of)
 *	call PHASE NAME N FAILED	the calls of the runtime in it
 *	timed PHASE KIND INDEX EVENT_NS WANTED_NS	the INDEX-th kernel, h2d, d2h, d2d, memset of a phase
 *	host NAME NS			what a call took, seen by the caller
 *	bench NAME LAUNCH_NS GRAPH_NS	ns of one call in a long row
 *	agent-threads N after NS	with --until-alone and --stages: left of the agent's, after waiting
 *
 * Exit status: 0; 1 a call failed or data is wrong; 77 no GPU.
 */
#include <cuda_runtime.h>
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qbpf/probe.h"

#define BLOCK_NS     20000000u /* the host's time to queue what is measured */
#define PINNED_SIZES 3
#define REPEATS	     8
#define STREAMS	     4
#define OVERLAP_NS   20000000
#define GRAPHS	     50
#define ROW	     2000
#define THREADS	     2
#define BYTES	     (1u << 20)

/* --- kernels ---------------------------------------------------------------------------------- */

static __device__ void spin_for(unsigned long long ns)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - start < ns);
}

extern "C" __global__ void k_spin(unsigned long long ns)
{
	spin_for(ns);
}

extern "C" __global__ void k_block(unsigned long long ns)
{
	spin_for(ns);
}

extern "C" __global__ void k_cold(unsigned long long ns)
{
	spin_for(ns);
}

extern "C" __global__ void k_node(unsigned long long ns)
{
	spin_for(ns);
}

extern "C" __global__ void k_empty(void)
{
}

/* --- what was done ---------------------------------------------------------------------------- */

struct tally {
	unsigned long launches, kernels, h2d, d2h, d2d, bytes, memsets, graphs;
	unsigned long node_kernels, node_copies, node_memsets, syncs, failed, captured;
};

static struct tally done;

struct call {
	const char *name;
	unsigned long n, failed;
};

static struct call calls[64];
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void called(const char *name, unsigned long n, unsigned long failed)
{
	struct call *c = calls;

	pthread_mutex_lock(&calls_lock);
	while (c->name && strcmp(c->name, name))
		c++;
	c->name = name;
	c->n += n;
	c->failed += failed;
	pthread_mutex_unlock(&calls_lock);
}

static void must(cudaError_t err, const char *what, int line)
{
	if (!err)
		return;
	fprintf(stderr, "gpu_check: line %d: %s: %s\n", line, what, cudaGetErrorString(err));
	exit(1);
}

#define CALL(fn, ...)                                                                              \
	do {                                                                                       \
		called(#fn, 1, 0);                                                                 \
		must(fn(__VA_ARGS__), #fn, __LINE__);                                              \
	} while (0)

#define LAUNCH(kernel, stream, ...)                                                                \
	do {                                                                                       \
		kernel<<<1, 32, 0, stream>>>(__VA_ARGS__);                                         \
		must(cudaGetLastError(), #kernel, __LINE__);                                       \
		called("cudaLaunchKernel", 1, 0);                                                  \
		done.launches++;                                                                   \
		done.kernels++;                                                                    \
	} while (0)

#define SYNC(fn, ...)                                                                              \
	do {                                                                                       \
		CALL(fn, ##__VA_ARGS__);                                                           \
		done.syncs++;                                                                      \
	} while (0)

#define PHASE(name)                                                                                \
	static void phase_##name(void);                                                            \
	static void name(void)                                                                     \
	{                                                                                          \
		uint64_t begin;                                                                    \
                                                                                                   \
		memset(&done, 0, sizeof(done));                                                    \
		memset(calls, 0, sizeof(calls));                                                   \
		begin = now_ns();                                                                  \
		{                                                                                  \
			QBPF_SPAN(gpu_check, name);                                                \
			phase_##name();                                                            \
		}                                                                                  \
		say_phase(#name, begin, now_ns());                                                 \
	}                                                                                          \
	static void phase_##name(void)

static void say_phase(const char *name, uint64_t begin, uint64_t end)
{
	printf("phase %s begin=%llu end=%llu launches=%lu kernels=%lu h2d=%lu d2h=%lu d2d=%lu "
	       "bytes=%lu memsets=%lu graphs=%lu node_kernels=%lu node_copies=%lu "
	       "node_memsets=%lu syncs=%lu failed=%lu captured=%lu\n",
	       name, (unsigned long long)begin, (unsigned long long)end, done.launches,
	       done.kernels, done.h2d, done.d2h, done.d2d, done.bytes, done.memsets, done.graphs,
	       done.node_kernels, done.node_copies, done.node_memsets, done.syncs, done.failed,
	       done.captured);
	for (struct call *c = calls; c->name; c++)
		printf("call %s %s %lu %lu\n", name, c->name, c->n, c->failed);
}

/* --- what the phases share -------------------------------------------------------------------- */

static cudaStream_t stream, streams[STREAMS];
static char *pinned, *pinned_back, *pageable, *pageable_back, *dev, *dev2;
static cudaGraphExec_t graph;

/* What is between two events, and how many of its kind came before it in the phase. */
struct timed {
	cudaEvent_t from, to;
	const char *kind;
	unsigned index;
	unsigned long long wanted_ns;
};

static struct timed timed[64];
static unsigned n_timed;

static void time_from(const char *kind, unsigned index, unsigned long long wanted_ns)
{
	struct timed *t = &timed[n_timed];

	t->kind = kind;
	t->index = index;
	t->wanted_ns = wanted_ns;
	CALL(cudaEventRecord, t->from, stream);
}

static void time_to(void)
{
	CALL(cudaEventRecord, timed[n_timed].to, stream);
	n_timed++;
}

static void say_timed(const char *phase)
{
	for (unsigned i = 0; i < n_timed; i++) {
		float ms = 0;

		CALL(cudaEventElapsedTime, &ms, timed[i].from, timed[i].to);
		printf("timed %s %s %u %.0f %llu\n", phase, timed[i].kind, timed[i].index,
		       (double)ms * 1e6, timed[i].wanted_ns);
	}
	n_timed = 0;
}

static void copy_async(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	CALL(cudaMemcpyAsync, to, from, bytes, kind, stream);
	done.h2d += kind == cudaMemcpyHostToDevice;
	done.d2h += kind == cudaMemcpyDeviceToHost;
	done.d2d += kind == cudaMemcpyDeviceToDevice;
	done.bytes += bytes;
}

static void copy_sync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	CALL(cudaMemcpy, to, from, bytes, kind);
	done.h2d += kind == cudaMemcpyHostToDevice;
	done.d2h += kind == cudaMemcpyDeviceToHost;
	done.bytes += bytes;
}

static void launch_graph(void)
{
	CALL(cudaGraphLaunch, graph, stream);
	done.graphs++;
	done.node_kernels += 2;
	done.node_copies += 2;
	done.node_memsets++;
}

static void same(const char *got, const char *want, size_t bytes, const char *what)
{
	if (!memcmp(got, want, bytes))
		return;
	fprintf(stderr, "gpu_check: %s: wrong data came back\n", what);
	exit(1);
}

static void fill(char *p, unsigned seed)
{
	for (size_t i = 0; i < BYTES; i++)
		p[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
}

/* --- the phases ------------------------------------------------------------------------------- */

/* The graph, and the first use of each kernel but k_cold. */
PHASE(set_up)
{
	cudaGraph_t g;

	CALL(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
	CALL(cudaMemcpyAsync, dev, pinned, 4096, cudaMemcpyHostToDevice, stream);
	LAUNCH(k_node, stream, 5000);
	CALL(cudaMemsetAsync, dev2, 0, 4096, stream);
	LAUNCH(k_node, stream, 5000);
	CALL(cudaMemcpyAsync, pinned_back, dev2, 4096, cudaMemcpyDeviceToHost, stream);
	CALL(cudaStreamEndCapture, stream, &g);
	CALL(cudaGraphInstantiateWithFlags, &graph, g, 0);
	CALL(cudaGraphDestroy, g);
	done.kernels = 0;
	done.captured = 2 * 4096;
	LAUNCH(k_spin, stream, 1000);
	LAUNCH(k_block, stream, 1000);
	LAUNCH(k_empty, stream);
	launch_graph();
	SYNC(cudaStreamSynchronize, stream);
}

PHASE(cold)
{
	uint64_t t = now_ns();

	LAUNCH(k_cold, stream, 20000);
	printf("host cold_launch %llu\n", (unsigned long long)(now_ns() - t));
	SYNC(cudaStreamSynchronize, stream);
}

PHASE(warm)
{
	for (unsigned i = 0; i < 2 * REPEATS; i++) {
		uint64_t t = now_ns();

		LAUNCH(k_cold, stream, 20000);
		printf("host warm_launch %llu\n", (unsigned long long)(now_ns() - t));
		SYNC(cudaStreamSynchronize, stream);
	}
}

PHASE(kernels)
{
	static const unsigned long long lengths[] = {50000, 200000, 1000000};

	LAUNCH(k_block, stream, BLOCK_NS);
	for (unsigned i = 0; i < 3 * REPEATS; i++) {
		time_from("kernel", 1 + i, lengths[i % 3]);
		LAUNCH(k_spin, stream, lengths[i % 3]);
		time_to();
	}
	SYNC(cudaStreamSynchronize, stream);
	say_timed("kernels");
}

PHASE(pinned_copies)
{
	static const unsigned sizes[PINNED_SIZES] = {64u << 10, 256u << 10, BYTES};

	fill(pinned, 1);
	memset(pinned_back, 0, BYTES);
	LAUNCH(k_block, stream, BLOCK_NS);
	for (unsigned i = 0; i < 3 * PINNED_SIZES; i++) {
		time_from("h2d", i, 0);
		copy_async(dev, pinned, sizes[i % PINNED_SIZES], cudaMemcpyHostToDevice);
		time_to();
		time_from("d2d", i, 0);
		copy_async(dev2, dev, sizes[i % PINNED_SIZES], cudaMemcpyDeviceToDevice);
		time_to();
		time_from("d2h", i, 0);
		copy_async(pinned_back, dev2, sizes[i % PINNED_SIZES], cudaMemcpyDeviceToHost);
		time_to();
	}
	SYNC(cudaStreamSynchronize, stream);
	say_timed("pinned_copies");
	same(pinned_back, pinned, BYTES, "pinned copies");
}

PHASE(pageable_copies)
{
	fill(pageable, 2);
	for (unsigned i = 0; i < REPEATS; i++) {
		copy_sync(dev, pageable, BYTES, cudaMemcpyHostToDevice);
		copy_sync(pageable_back, dev, BYTES, cudaMemcpyDeviceToHost);
	}
	copy_async(dev, pageable, BYTES, cudaMemcpyHostToDevice);
	copy_async(pageable_back, dev, BYTES, cudaMemcpyDeviceToHost);
	SYNC(cudaStreamSynchronize, stream);
	same(pageable_back, pageable, BYTES, "pageable copies");
}

PHASE(memsets)
{
	LAUNCH(k_block, stream, BLOCK_NS);
	for (unsigned i = 0; i < REPEATS; i++) {
		time_from("memset", i, 0);
		CALL(cudaMemsetAsync, dev, 0x5a, BYTES, stream);
		time_to();
		done.memsets++;
	}
	copy_async(pinned_back, dev, BYTES, cudaMemcpyDeviceToHost);
	SYNC(cudaStreamSynchronize, stream);
	say_timed("memsets");
	memset(pinned, 0x5a, BYTES);
	same(pinned_back, pinned, BYTES, "memsets");
}

/* One block each: they run side by side, and long enough that the host launches them meanwhile, however busy
 * it is. */
PHASE(overlap)
{
	for (unsigned i = 0; i < REPEATS * STREAMS; i++)
		LAUNCH(k_spin, streams[i % STREAMS], OVERLAP_NS);
	copy_async(dev, pinned, BYTES, cudaMemcpyHostToDevice);
	SYNC(cudaDeviceSynchronize);
}

/* What streams[1] does waits for what streams[0] does. */
PHASE(events)
{
	cudaEvent_t e = timed[0].from;

	for (unsigned i = 0; i < REPEATS; i++) {
		LAUNCH(k_spin, streams[0], 100000);
		CALL(cudaEventRecord, e, streams[0]);
		CALL(cudaStreamWaitEvent, streams[1], e, 0);
		LAUNCH(k_spin, streams[1], 50000);
		CALL(cudaEventRecord, timed[0].to, streams[1]);
		SYNC(cudaEventSynchronize, timed[0].to);
	}
}

PHASE(graphs)
{
	for (unsigned i = 0; i < GRAPHS; i++)
		launch_graph();
	SYNC(cudaStreamSynchronize, stream);
}

/* More threads in a block than any GPU has; a direction that does not exist. */
PHASE(failing)
{
	k_empty<<<1, 4096, 0, stream>>>();
	if (!cudaGetLastError())
		must(cudaErrorUnknown, "a launch that must fail", __LINE__);
	called("cudaLaunchKernel", 1, 1);
	done.launches++;
	if (!cudaMemcpy(dev, pageable, 4096, (enum cudaMemcpyKind)77))
		must(cudaErrorUnknown, "a copy that must fail", __LINE__);
	cudaGetLastError();
	called("cudaMemcpy", 1, 1);
	done.failed += 2;
}

static void *launch_row(void *arg)
{
	cudaStream_t s = *(cudaStream_t *)arg;

	for (unsigned i = 0; i < ROW / 10; i++)
		k_empty<<<1, 32, 0, s>>>();
	called("cudaLaunchKernel", ROW / 10, 0);
	CALL(cudaStreamSynchronize, s);
	return NULL;
}

PHASE(threads)
{
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, launch_row, &streams[i]);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	done.launches = done.kernels = (unsigned long)THREADS * ROW / 10;
	done.syncs = THREADS;
}

PHASE(row)
{
	for (unsigned i = 0; i < ROW; i++) {
		LAUNCH(k_empty, stream);
		if (i % 100 == 99)
			SYNC(cudaStreamSynchronize, stream);
	}
}

/* --- the rest --------------------------------------------------------------------------------- */

static void bench(const char *name, unsigned n)
{
	uint64_t launch_ns = 0, graph_ns = 0, t;

	for (unsigned i = 0; i < n; i += 100) {
		t = now_ns();
		for (unsigned j = 0; j < 100; j++)
			k_empty<<<1, 32, 0, stream>>>();
		launch_ns += now_ns() - t;
		must(cudaStreamSynchronize(stream), "a row of launches", __LINE__);
		t = now_ns();
		for (unsigned j = 0; j < 100; j++)
			must(cudaGraphLaunch(graph, stream), "a row of graphs", __LINE__);
		graph_ns += now_ns() - t;
		must(cudaStreamSynchronize(stream), "a row of graphs", __LINE__);
	}
	printf("bench %s %llu %llu\n", name, (unsigned long long)(launch_ns / n),
	       (unsigned long long)(graph_ns / n));
}

static void make_things(void)
{
	must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream", __LINE__);
	for (unsigned i = 0; i < STREAMS; i++)
		must(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "stream",
		     __LINE__);
	must(cudaMallocHost((void **)&pinned, BYTES), "host memory", __LINE__);
	must(cudaMallocHost((void **)&pinned_back, BYTES), "host memory", __LINE__);
	must(cudaMalloc((void **)&dev, BYTES), "memory", __LINE__);
	must(cudaMalloc((void **)&dev2, BYTES), "memory", __LINE__);
	pageable = (char *)calloc(1, BYTES);
	pageable_back = (char *)calloc(1, BYTES);
	if (!pageable || !pageable_back)
		exit(1);
	for (unsigned i = 0; i < sizeof(timed) / sizeof(timed[0]); i++) {
		must(cudaEventCreate(&timed[i].from), "event", __LINE__);
		must(cudaEventCreate(&timed[i].to), "event", __LINE__);
	}
}

/* Threads of this process that are the agent's. */
static unsigned agent_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		char path[320], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f))
			n += !strncmp(comm, "qbpf-cupti", 10);
		fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

static void until_alone(void)
{
	uint64_t begin = now_ns(), end = begin + 10000000000u;

	while (agent_threads() && now_ns() < end)
		usleep(1000);
	printf("agent-threads %u after %llu\n", agent_threads(),
	       (unsigned long long)(now_ns() - begin));
}

static void all_phases(void)
{
	cold();
	warm();
	kernels();
	pinned_copies();
	pageable_copies();
	memsets();
	overlap();
	events();
	graphs();
	failing();
	threads();
	row();
}

static int find_device(void)
{
	struct cudaDeviceProp p;
	cudaError_t err;
	int n = 0, driver = 0;

	err = cudaGetDeviceCount(&n);
	if (err || !n) {
		printf("no-gpu %s\n", err ? cudaGetErrorString(err) : "no device");
		return 77;
	}
	must(cudaDriverGetVersion(&driver), "driver", __LINE__);
	must(cudaGetDeviceProperties(&p, 0), "device", __LINE__);
	printf("device %d.%d driver %d.%d %s\n", p.major, p.minor, driver / 1000,
	       driver % 1000 / 10, p.name);
	return 0;
}

static void wait_for_line(void)
{
	char line[64];

	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(int argc, char **argv)
{
	bool stages = false, alone = false;
	unsigned bench_n = 0;
	int err;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--devices"))
			return find_device();
		stages |= !strcmp(argv[i], "--stages");
		alone |= !strcmp(argv[i], "--until-alone");
		if (!strcmp(argv[i], "--out") && i + 1 < argc && !freopen(argv[++i], "w", stdout))
			return 1;
		if (!strcmp(argv[i], "--bench") && i + 1 < argc)
			bench_n = (unsigned)atoi(argv[++i]);
	}
	err = find_device();
	if (err)
		return err;
	make_things();
	set_up();
	if (bench_n) {
		bench("warm-up", 200);
		bench("measured", bench_n);
		return 0;
	}
	if (stages) {
		bench("before", ROW);
		printf("ready %d\n", getpid());
		wait_for_line();
	}
	all_phases();
	if (stages) {
		printf("done\n");
		wait_for_line();
		until_alone();
		bench("after", ROW);
	} else if (alone) {
		until_alone();
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * agent_target WORD... - a CUDA program that does what its arguments say, one after the other, for
 * the tests of the agent
 *
 *	launch:N h2d:N d2h:N memset:N graph:N sync fail:N	N calls (graphs of three kernels)
 *	query:N		calls that the agent does not record
 *	names:N		N kernels of names of their own
 *	devices:N	a copy to and a kernel on each of the first N devices
 *	threads:T:N	T threads at once with N launches each
 *	persist		a kernel that never ends
 *	time:N		N launches, and prints the ns of one
 *	sleep:MS print:TEXT exit:N _exit:N
 *	tasks:MS	prints how many threads there are: waits at most MS until it is the only one
 *	touch:PATH await:PATH	makes a file, waits until there is one
 *	on		waits until the agent is
 *	handed		waits until the agent has handed over all that was complete by now, and the reader has it
 *	incall:NAME	waits until the agent is in that call of CUPTI
 *	rss masks	prints what /proc says: memory, signals the agent's thread blocks
 *	fork:N		N children, one after the other, that end by exit(0)
 *	forkcuda	a child that calls CUDA
 *	forklate	a child that says how often the ring is mapped, and does `late`
 *	exec		runs this program anew with the words that follow
 *	late		opens $QBPF_AGENT and starts it on $LATE_RING; stop: asks it to detach
 *	atexit:TEXT	prints it from an exit handler that was registered first
 *
 * Errors of CUDA calls are counted and printed at the end, never fatal.
 */
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qbpf/ring.h"

#define BYTES	   4096
#define PATIENCE_S 60

static unsigned long errors;
static char *device_mem;
static char host_mem[BYTES];
static cudaStream_t stream;

/* Kernels are host functions to the simulator, which goes by their names. */
#define KERNEL(name)                                                                               \
	void name(void);                                                                           \
	void name(void)                                                                            \
	{                                                                                          \
	}
KERNEL(price_options)
KERNEL(risk_check)
KERNEL(persistent_feed)

static void check(cudaError_t err)
{
	if (err != cudaSuccess)
		__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED);
}

static void set_up(void)
{
	if (device_mem)
		return;
	check(cudaMalloc((void **)&device_mem, BYTES));
	check(cudaStreamCreate(&stream));
	if (!device_mem) /* no driver: the calls go on failing */
		device_mem = host_mem;
}

static void launch(void (*kernel)(void), cudaStream_t s)
{
	void *args[] = {NULL};

	check(cudaLaunchKernel((const void *)kernel, (dim3){4, 3, 2}, (dim3){64, 2, 1}, args, 256,
			       s));
}

static void copy(enum cudaMemcpyKind kind)
{
	if (kind == cudaMemcpyHostToDevice)
		check(cudaMemcpyAsync(device_mem, host_mem, BYTES, kind, stream));
	else
		check(cudaMemcpy(host_mem, device_mem, BYTES, kind));
}

static void graphs(long n)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	long i;

	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (i = 0; i < 3; i++)
		launch(price_options, stream);
	check(cudaStreamEndCapture(stream, &graph));
	check(cudaGraphInstantiate(&exec, graph, 0));
	for (i = 0; i < n; i++)
		check(cudaGraphLaunch(exec, stream));
	check(cudaStreamSynchronize(stream));
	check(cudaGraphExecDestroy(exec));
	check(cudaGraphDestroy(graph));
}

void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
			    void *, void *, int *);

static void names(long n)
{
	static char stubs[1 << 16];
	char name[64];
	long i;

	for (i = 0; i < n && i < (long)sizeof(stubs); i++) {
		snprintf(name, sizeof(name), "_Z5price%ldPf", i);
		__cudaRegisterFunction(NULL, stubs + i, strdup(name), strdup(name), -1, NULL, NULL,
				       NULL, NULL, NULL);
		check(
		    cudaLaunchKernel(stubs + i, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, stream));
	}
}

static void devices(long n)
{
	void *mem;
	long i;

	for (i = 0; i < n; i++) {
		mem = NULL;
		check(cudaSetDevice((int)i));
		check(cudaMalloc(&mem, BYTES));
		check(cudaMemcpy(mem, host_mem, BYTES, cudaMemcpyHostToDevice));
		if (i) /* from the device before */
			check(cudaMemcpyPeer(mem, (int)i, device_mem, 0, BYTES));
		launch(risk_check, NULL);
		check(cudaDeviceSynchronize());
		check(cudaFree(mem));
	}
	check(cudaSetDevice(0));
}

static void *launcher(void *arg)
{
	long n = *(long *)arg;

	while (n-- > 0)
		launch(risk_check, stream);
	return NULL;
}

static void threads(const char *spec)
{
	long t = strtol(spec, NULL, 10), n = strtol(strchr(spec, ':') + 1, NULL, 10), i;
	pthread_t *ids = calloc((size_t)t, sizeof(*ids));

	for (i = 0; i < t; i++)
		if (pthread_create(&ids[i], NULL, launcher, &n))
			exit(99);
	for (i = 0; i < t; i++)
		pthread_join(ids[i], NULL);
	free(ids);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void timed(long n)
{
	double start = now();
	long i;

	for (i = 0; i < n; i++)
		launch(price_options, stream);
	printf("%.0f\n", (now() - start) / (double)n);
	check(cudaStreamSynchronize(stream));
}

static void children(long n, int with_cuda)
{
	pid_t pid;
	long i;
	int status;

	for (i = 0; i < n; i++) {
		fflush(stdout);
		pid = fork();
		if (!pid) {
			if (with_cuda) {
				launch(risk_check, stream);
				cudaDeviceSynchronize();
			}
			exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			exit(98);
	}
}

static long proc_number(const char *field)
{
	char line[256];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			n = strtol(line + strlen(field) + 1, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static void print_proc(const char *field)
{
	printf("%s %ld\n", field, proc_number(field));
}

/* The agent's thread needs a moment to find out that it cannot stay. */
static void print_tasks(long patience_ms)
{
	while (proc_number("Threads:") > 1 && patience_ms-- > 0)
		usleep(1000);
	print_proc("Threads:");
}

/* SigBlk of the thread with the agent's name. */
static void print_masks(void)
{
	char path[300], line[256], name[32];
	struct dirent *d;
	FILE *f;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
		f = fopen(path, "r");
		name[0] = 0;
		while (f && fgets(line, sizeof(line), f)) {
			sscanf(line, "Name: %31s", name);
			if (!strncmp(line, "SigBlk:", 7) && !strcmp(name, "qbpf-cupti"))
				printf("blocked %s", line + 8);
		}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
}

/* --- waits for what others do ------------------------------------------------------------------- */

static void wait_until(int (*is_so)(const char *), const char *arg)
{
	double end = now() + PATIENCE_S * 1e9;

	while (!is_so(arg)) {
		if (now() > end) {
			fprintf(stderr, "agent_target: waited in vain: %s\n", arg);
			exit(95);
		}
		usleep(1000);
	}
}

static int is_there(const char *path)
{
	return !access(path, F_OK);
}

static void touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		exit(94);
	close(fd);
}

static int open_ring(void)
{
	const char *path = getenv("LATE_RING") ? getenv("LATE_RING") : getenv("QBPF_RING");

	return open(path ? path : "", O_RDONLY | O_CLOEXEC);
}

static struct qbpf_ring_head ring_head(void)
{
	int fd = open_ring();
	struct qbpf_ring_head h = {0};

	if (fd < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h))
		exit(93);
	close(fd);
	return h;
}

static int is_on(const char *unused)
{
	(void)unused;
	return ring_head().state == QBPF_RING_ON;
}

static int is_in_call(const char *name)
{
	struct qbpf_ring_head h = ring_head();

	return h.in_call_ns && !strcmp(h.in_call, name);
}

static uint64_t heartbeat;

static int has_beaten(const char *unused)
{
	(void)unused;
	return ring_head().heartbeat_ns != heartbeat;
}

/* Its thread's heart beats before it flushes and after: of any three beats two have a flush between them. */
static void await_flush(void)
{
	for (int i = 0; i < 3; i++) {
		heartbeat = ring_head().heartbeat_ns;
		wait_until(has_beaten, "the agent's next round");
	}
}

static int is_read(const char *unused)
{
	struct qbpf_ring_head h = ring_head();
	int fd = open_ring(), all = 1;
	struct qbpf_ring_lane lane;

	(void)unused;
	for (uint32_t i = 0; i < h.lanes; i++) {
		if (pread(fd, &lane, sizeof(lane), h.lanes_off + i * sizeof(lane)) != sizeof(lane))
			exit(93);
		all &= lane.written == lane.consumed;
	}
	close(fd);
	return all;
}

static void late(void)
{
	void *agent = dlopen(getenv("QBPF_AGENT"), RTLD_NOW);
	int (*start)(const char *) = NULL;

	if (agent)
		*(void **)&start = dlsym(agent, "qbpf_agent_start");
	printf("late %d\n", start ? start(getenv("LATE_RING")) : -1);
}

static void stop(void)
{
	int (*end)(void) = NULL;
	void *agent = dlopen(getenv("QBPF_AGENT"), RTLD_NOW);

	if (agent)
		*(void **)&end = dlsym(agent, "qbpf_agent_stop");
	printf("stop %d\n", end ? end() : -1);
}

/* What a child has of the ring, and whether it may start. */
static void fork_late(void)
{
	fflush(stdout);
	if (!fork()) {
		char line[512];
		FILE *f = fopen("/proc/self/maps", "r");
		int maps = 0;

		while (f && fgets(line, sizeof(line), f))
			maps += strstr(line, "memfd:qbpf-ring") != NULL;
		printf("ring %d\n", maps);
		late();
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

static const char *last_words;

static void say_last_words(void)
{
	printf("%s\n", last_words);
}

static void repeat(long n, void (*f)(long), long arg)
{
	while (n-- > 0)
		f(arg);
}

static void one_launch(long arg)
{
	launch(arg ? risk_check : price_options, stream);
}

static void one_copy(long kind)
{
	copy((enum cudaMemcpyKind)kind);
}

static void one_memset(long value)
{
	check(cudaMemsetAsync(device_mem, (int)value, BYTES, stream));
}

static void one_failure(long arg)
{
	(void)arg;
	check(cudaMemcpy(host_mem, device_mem, BYTES, (enum cudaMemcpyKind)77));
}

static void one_query(long arg)
{
	int device;

	(void)arg;
	check(cudaGetDevice(&device));
}

/* The words that make CUDA calls; false: it is none of them. */
static int cuda_word(const char *word, const char *arg, long n)
{
	if (!strcmp(word, "launch"))
		repeat(n, one_launch, 0);
	else if (!strcmp(word, "h2d"))
		repeat(n, one_copy, cudaMemcpyHostToDevice);
	else if (!strcmp(word, "d2h"))
		repeat(n, one_copy, cudaMemcpyDeviceToHost);
	else if (!strcmp(word, "memset"))
		repeat(n, one_memset, 7);
	else if (!strcmp(word, "fail"))
		repeat(n, one_failure, 0);
	else if (!strcmp(word, "query"))
		repeat(n, one_query, 0);
	else if (!strcmp(word, "graph"))
		graphs(n);
	else if (!strcmp(word, "names"))
		names(n);
	else if (!strcmp(word, "devices"))
		devices(n);
	else if (!strcmp(word, "threads"))
		threads(arg);
	else if (!strcmp(word, "persist"))
		launch(persistent_feed, stream);
	else if (!strcmp(word, "time"))
		timed(n);
	else if (!strcmp(word, "sync"))
		check(cudaStreamSynchronize(stream));
	else
		return 0;
	return 1;
}

static void plain_word(const char *word, const char *arg, long n)
{
	if (!strcmp(word, "sleep"))
		usleep((useconds_t)n * 1000);
	else if (!strcmp(word, "print"))
		printf("%s\n", arg);
	else if (!strcmp(word, "touch"))
		touch(arg);
	else if (!strcmp(word, "await"))
		wait_until(is_there, arg);
	else if (!strcmp(word, "on"))
		wait_until(is_on, "the agent is on");
	else if (!strcmp(word, "handed")) {
		await_flush();
		wait_until(is_read, "the reader has it all");
	} else if (!strcmp(word, "incall"))
		wait_until(is_in_call, arg);
	else if (!strcmp(word, "tasks"))
		print_tasks(n);
	else if (!strcmp(word, "rss"))
		print_proc("VmRSS:");
	else if (!strcmp(word, "masks"))
		print_masks();
	else if (!strcmp(word, "exit"))
		exit((int)n);
	else if (!strcmp(word, "_exit"))
		_exit((int)n);
	else if (!strcmp(word, "fork"))
		children(n, 0);
	else if (!strcmp(word, "forklate"))
		fork_late();
	else if (!strcmp(word, "forkcuda"))
		children(1, 1);
	else if (!strcmp(word, "late"))
		late();
	else if (!strcmp(word, "stop"))
		stop();
	else if (!strcmp(word, "atexit")) {
		last_words = arg;
		atexit(say_last_words);
	} else {
		fprintf(stderr, "agent_target: %s\n", word);
		exit(97);
	}
}

int main(int argc, char **argv)
{
	char word[32];
	const char *colon;
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1; i < argc; i++) {
		colon = strchr(argv[i], ':');
		snprintf(word, sizeof(word), "%.*s",
			 colon ? (int)(colon - argv[i]) : (int)strlen(argv[i]), argv[i]);
		if (!strcmp(word, "exec")) {
			argv[i] = argv[0];
			execv("/proc/self/exe", argv + i);
			exit(96);
		}
		if (!strcmp(word, "print") || !strcmp(word, "sleep") || !strcmp(word, "atexit") ||
		    !strcmp(word, "fork") || !strcmp(word, "touch") || !strcmp(word, "await") ||
		    !strcmp(word, "on"))
			; /* legal before the first CUDA call, which it must not be */
		else if (strcmp(word, "late") && strcmp(word, "_exit") && strcmp(word, "exit") &&
			 strcmp(word, "tasks") && strcmp(word, "rss") && strcmp(word, "masks") &&
			 strcmp(word, "stop"))
			set_up();
		if (!cuda_word(word, colon ? colon + 1 : "",
			       colon ? strtol(colon + 1, NULL, 10) : 0))
			plain_word(word, colon ? colon + 1 : "",
				   colon ? strtol(colon + 1, NULL, 10) : 0);
	}
	printf("errors %lu\n", errors);
	return 0;
}

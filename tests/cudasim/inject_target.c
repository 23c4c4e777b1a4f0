// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * inject_target WORD... - a CUDA program whose threads notice when they are disturbed
 *
 *	cuda		launches a kernel every ms
 *	idle:N		N threads that wait for ever
 *	malloc dlopen print	such calls in a tight loop, two threads each
 *	read sleep cond epoll poll select sigwait msg	waits in that call, again and again, and looks at what it
 *			returns, at errno and at the time that it took
 *	regs		keeps values in every register, in the flags and below its stack pointer
 *	errno		keeps a value in errno
 *	signal		takes signals that another thread sends as fast as they are taken, and counts them
 *	eintr		waits in a call that each signal has to interrupt
 *	lazy		a single busy thread (the first) that makes no system call
 *	seccomp		a filter that allows everything
 *	opened		has opened a library, which it could close at any moment
 *
 * Says "ready", and ends when its stdin does: `count disturbed N` and what each disturbance was, `count
 * NAME N` for how often each thread went round.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

#include "disturbed.h"

#define WAIT_MS	    20
#define THREADS_MAX 512

static volatile int stop;
static pthread_t threads[THREADS_MAX];
static int nthreads;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- what is done in tight loops ---------------------------------------------------------------- */

static void *do_malloc(void *arg)
{
	unsigned long n = 0;
	unsigned char *p[64] = {0};
	size_t size[64] = {0};
	unsigned seed = (unsigned)(uintptr_t)arg;

	settle();
	for (; !stop; n++) {
		int i = rand_r(&seed) % 64;

		for (size_t k = 0; p[i] && k < size[i]; k += 97)
			if (p[i][k] != (unsigned char)i)
				disturb("malloc: contents", p[i][k]);
		free(p[i]);
		size[i] = (size_t)rand_r(&seed) % (n % 100 ? 600 : 300000) + 1;
		p[i] = malloc(size[i]);
		memset(p[i], i, size[i]);
	}
	tell("malloc", n);
	return NULL;
}

static void *do_dlopen(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	settle();
	for (; !stop; n++) {
		void *h = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);

		if (!h || dlclose(h))
			disturb("dlopen", (long)n);
	}
	tell("dlopen", n);
	return NULL;
}

static void *do_print(void *arg)
{
	FILE *f = fopen("/dev/null", "w");
	unsigned long n = 0;
	char text[64];

	(void)arg;
	settle();
	for (; !stop; n++) {
		if (fprintf(f, "%lu %.3f %s\n", n, (double)n / 3, "text") < 0)
			disturb("fprintf", (long)n);
		snprintf(text, sizeof(text), "%.2f", 0.25 * (double)(n % 1000));
		if (strtod(text, NULL) != 0.25 * (double)(n % 1000))
			disturb("snprintf", (long)n);
	}
	tell("print", n);
	fclose(f);
	return NULL;
}

/* --- what waits --------------------------------------------------------------------------------- */

static int pipe_fds[2];

static void *do_write(void *arg)
{
	struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
	unsigned char n = 0;

	(void)arg;
	settle();
	while (!stop) {
		nanosleep(&pause, NULL);
		if (write(pipe_fds[1], &n, 1) != 1)
			disturb("write", n);
		n++;
	}
	close(pipe_fds[1]);
	return NULL;
}

static void *do_read(void *arg)
{
	unsigned char want = 0, got;
	unsigned long n = 0;
	ssize_t len;

	(void)arg;
	settle();
	for (;; n++) {
		errno = 0;
		len = read(pipe_fds[0], &got, 1);
		if (!len)
			break;
		if (len != 1 || got != want++)
			disturb("read", len);
	}
	tell("read", n);
	return NULL;
}

/* One round of a call that has to wait WAIT_MS and then to return `good`. */
struct wait {
	const char *name;
	long (*once)(void);
	long good;
	int error; /* with good < 0 */
};

static long sleep_once(void)
{
	struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};

	return nanosleep(&pause, NULL);
}

static long cond_once(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec until;
	int err;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_MS * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&m);
	err = pthread_cond_timedwait(&c, &m, &until);
	pthread_mutex_unlock(&m);
	return err;
}

static long epoll_once(void)
{
	static int fd = -1;
	struct epoll_event ev;

	if (fd < 0)
		fd = epoll_create1(0);
	return epoll_wait(fd, &ev, 1, WAIT_MS);
}

static long poll_once(void)
{
	return poll(NULL, 0, WAIT_MS);
}

static long select_once(void)
{
	struct timeval tv = {.tv_usec = WAIT_MS * 1000};

	return select(0, NULL, NULL, NULL, &tv);
}

static long sigwait_once(void)
{
	struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &pause);
}

static long msg_once(void)
{
	static int id = -1;
	struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
	struct sembuf op = {.sem_op = -1};
	long got;

	if (id < 0)
		id = semget(IPC_PRIVATE, 1, 0600);
	got = semtimedop(id, &op, 1, &pause);
	if (stop)
		semctl(id, 0, IPC_RMID);
	return got;
}

static const struct wait waits[] = {
    {"sleep", sleep_once, 0, 0},   {"cond", cond_once, ETIMEDOUT, 0},
    {"epoll", epoll_once, 0, 0},   {"poll", poll_once, 0, 0},
    {"select", select_once, 0, 0}, {"sigwait", sigwait_once, -1, EAGAIN},
    {"msg", msg_once, -1, EAGAIN},
};

static void *do_wait(void *arg)
{
	const struct wait *w = arg;
	unsigned long n = 0;

	for (; !stop; n++) {
		uint64_t t0 = now(), took;
		long got;

		errno = 0;
		got = w->once();
		took = now() - t0;
		if (got != w->good || (got < 0 && errno != w->error))
			disturb(w->name, got);
		else if (took < WAIT_MS * 990000ull)
			disturb("returned early", (long)took);
		if (!n)
			settle();
	}
	tell(w->name, n);
	return NULL;
}

/* --- what a thread has -------------------------------------------------------------------------- */

/* All that is loaded before has to be there after the loop. */
static unsigned long regs_differ(void)
{
	unsigned long bad = 0;

	__asm__ volatile("mov $0x1111, %%rbx\n mov $0x2222, %%rdx\n mov $0x3333, %%rsi\n"
			 "mov $0x4444, %%rdi\n mov $0x5555, %%r8\n mov $0x6666, %%r9\n"
			 "mov $0x7777, %%r10\n mov $0x8888, %%r11\n mov $0x9999, %%r12\n"
			 "mov $0xaaaa, %%r13\n mov $0xbbbb, %%r14\n mov $0xcccc, %%r15\n"
			 "movq %%rbx, %%xmm0\n movq %%rdx, %%xmm7\n movq %%r15, %%xmm15\n"
			 "mov %%rsi, -8(%%rsp)\n mov %%rdi, -128(%%rsp)\n"
			 "fld1\n"
			 "mov $20000, %%ecx\n"
			 "1: cmp $0x1111, %%rbx\n jne 2f\n cmp $0x2222, %%rdx\n jne 2f\n"
			 "cmp $0x3333, %%rsi\n jne 2f\n cmp $0x4444, %%rdi\n jne 2f\n"
			 "cmp $0x5555, %%r8\n jne 2f\n cmp $0x6666, %%r9\n jne 2f\n"
			 "cmp $0x7777, %%r10\n jne 2f\n cmp $0x8888, %%r11\n jne 2f\n"
			 "cmp $0x9999, %%r12\n jne 2f\n cmp $0xaaaa, %%r13\n jne 2f\n"
			 "cmp $0xbbbb, %%r14\n jne 2f\n cmp $0xcccc, %%r15\n jne 2f\n"
			 "movq %%xmm0, %%rax\n cmp $0x1111, %%rax\n jne 2f\n"
			 "movq %%xmm7, %%rax\n cmp $0x2222, %%rax\n jne 2f\n"
			 "movq %%xmm15, %%rax\n cmp $0xcccc, %%rax\n jne 2f\n"
			 "cmp %%rsi, -8(%%rsp)\n jne 2f\n cmp %%rdi, -128(%%rsp)\n jne 2f\n"
			 "stc\n nop\n nop\n nop\n nop\n jnc 2f\n"
			 "dec %%ecx\n jnz 1b\n"
			 "xor %%eax, %%eax\n jmp 3f\n"
			 "2: mov $1, %%eax\n"
			 "3: fstp %%st(0)\n"
			 : "=a"(bad)
			 :
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
			   "r13", "r14", "r15", "xmm0", "xmm7", "xmm15", "cc", "memory");
	return bad;
}

static void *do_regs(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	settle();
	for (; !stop; n++)
		if (regs_differ())
			disturb("registers", (long)n);
	tell("regs", n);
	return NULL;
}

static void *do_errno(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	settle();
	errno = 1234;
	for (; !stop; n++)
		if (errno != 1234) {
			disturb("errno", errno);
			errno = 1234;
		}
	tell("errno", n);
	return NULL;
}

/* --- signals ------------------------------------------------------------------------------------ */

static volatile unsigned long taken;
static unsigned long sent;

static void on_signal(int sig)
{
	(void)sig;
	taken++;
}

static void *do_signal(void *arg)
{
	unsigned long n = 0;
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	settle();
	while (!stop || taken < __atomic_load_n(&sent, __ATOMIC_ACQUIRE)) {
		volatile double d = 1;

		for (int i = 0; i < 1000; i++)
			d = d * 1.0000001;
		n++;
	}
	tell("signal", n);
	return NULL;
}

static void *do_send(void *arg)
{
	pthread_t *to = arg;
	unsigned long n = 0;

	settle();
	while (!stop) {
		if (pthread_kill(*to, SIGRTMIN))
			disturb("pthread_kill", (long)n);
		__atomic_store_n(&sent, ++n, __ATOMIC_RELEASE);
		while (taken < n && !stop)
			sched_yield();
	}
	tell("sent", n);
	return NULL;
}

static void on_usr1(int sig)
{
	(void)sig;
}

static volatile int eintr_over;

static void *do_eintr(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	settle();
	while (!stop) {
		long got;

		errno = 0;
		got = poll(NULL, 0, 600000);
		if (got != -1 || errno != EINTR)
			disturb("a signal did not interrupt poll()", got);
		n++;
	}
	eintr_over = 1;
	tell("eintr", n);
	return NULL;
}

static void *do_interrupt(void *arg)
{
	struct timespec pause = {.tv_nsec = 5000000};
	pthread_t *to = arg;

	settle();
	while (!eintr_over) { /* it may be on its way into poll() when `stop` is set */
		nanosleep(&pause, NULL);
		pthread_kill(*to, SIGUSR1);
	}
	return NULL;
}

/* --- the rest ----------------------------------------------------------------------------------- */

void tick_kernel(void);
void tick_kernel(void)
{
}

static void *do_cuda(void *arg)
{
	struct timespec pause = {.tv_nsec = 1000000};
	void *args[] = {NULL};
	unsigned long n = 0;

	(void)arg;
	for (; !stop; n++) {
		if (cudaLaunchKernel((const void *)tick_kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1},
				     args, 0, NULL))
			disturb("cudaLaunchKernel", (long)n);
		if (!n)
			settle();
		nanosleep(&pause, NULL);
	}
	tell("cuda", n);
	return NULL;
}

static void *do_idle(void *arg)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	(void)arg;
	settle();
	pthread_mutex_lock(&m);
	for (;;)
		pthread_cond_wait(&c, &m);
	return NULL;
}

static void start(void *(*fn)(void *), void *arg)
{
	if (nthreads == THREADS_MAX || pthread_create(&threads[nthreads], NULL, fn, arg)) {
		perror("pthread_create");
		exit(1);
	}
	nthreads++;
}

static void filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = {.len = 1, .filter = &allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		perror("seccomp");
}

static void begin(const char *word)
{
	static const struct {
		const char *name;
		void *(*fn)(void *);
		int n;
	} plain[] = {{"malloc", do_malloc, 2}, {"dlopen", do_dlopen, 2}, {"print", do_print, 2},
		     {"regs", do_regs, 1},     {"errno", do_errno, 1},	 {"cuda", do_cuda, 1}};
	size_t i;
	int k;

	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		for (k = 0; k < plain[i].n && !strcmp(word, plain[i].name); k++)
			start(plain[i].fn, (void *)(uintptr_t)(k + 1));
	for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (!strcmp(word, waits[i].name))
			start(do_wait, (void *)&waits[i]);
	if (!strncmp(word, "idle:", 5))
		for (k = 0; k < atoi(word + 5); k++)
			start(do_idle, NULL);
	if (!strcmp(word, "read") && !pipe(pipe_fds)) {
		start(do_write, NULL);
		start(do_read, NULL);
	}
	if (!strcmp(word, "signal")) {
		start(do_signal, NULL);
		start(do_send, &threads[nthreads - 1]);
	}
	if (!strcmp(word, "eintr")) {
		start(do_eintr, NULL);
		start(do_interrupt, &threads[nthreads - 1]);
	}
	if (!strcmp(word, "seccomp"))
		filter();
	if (!strcmp(word, "opened") && !dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL))
		disturb("dlopen", 0);
}

static void *await_end(void *arg)
{
	char c;

	(void)arg;
	while (read(0, &c, 1) > 0)
		;
	stop = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	int lazy = 0, idle = 0;
	pthread_t ender;

	sigaction(SIGRTMIN, &sa, NULL);
	sa = (struct sigaction){.sa_handler = on_usr1};
	sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&sa.sa_mask);
	sigaddset(&sa.sa_mask, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &sa.sa_mask, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	cudaFree(NULL);
	for (int i = 1; i < argc; i++) {
		lazy |= !strcmp(argv[i], "lazy");
		idle |= !strncmp(argv[i], "idle", 4);
		begin(argv[i]);
	}
	await_settled(nthreads);
	puts("ready");
	if (lazy) {
		pthread_create(&ender, NULL, await_end, NULL);
		do_regs(NULL);
		pthread_join(ender, NULL);
	} else {
		await_end(NULL);
	}
	for (int i = 0; i < nthreads && !idle; i++)
		pthread_join(threads[i], NULL);
	if (idle) {
		struct timespec pause = {.tv_nsec = 100000000};

		nanosleep(&pause, NULL);
	}
	tell("disturbed", disturbed);
	fflush(stdout);
	_exit(0);
}

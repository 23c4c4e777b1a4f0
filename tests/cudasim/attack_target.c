// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * attack_target WORD... - a CUDA program in a state that is hard on whoever brings code into it
 *
 *	filter		a thread whose own seccomp filter kills the process for mmap, waiting in nanosleep
 *	jit:N		N threads that wait in nanosleep, called from code of no file
 *	ring		waits in io_uring_enter, with a limit
 *	timeo		waits in recv and send on sockets with SO_RCVTIMEO and SO_SNDTIMEO
 *	sticky		waits in ppoll with a time that lies in read-only memory
 *	storm		SIGALRM every 100 us, with a handler
 *	avx		keeps values in all of the vector registers
 *	fork		forks all the time; the children look whether they have inherited a ring
 *	cancel		cancels threads that wait in read() all the time
 *	dlopen:LIB	opens LIB in a thread, whose constructor says "held" and waits for stdin's end
 *	vfork		the first thread stands in vfork() as long as there is stdin
 *	leader		the first thread ends
 *	as nproc	may map no more memory, start no more threads
 *	chroot:DIR	lives in DIR
 *	exec		becomes /bin/cat when SIGUSR1 comes
 *
 * Says "ready", and ends when its stdin does: `count disturbed N`, `count NAME N` for how often each
 * thread went round.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "disturbed.h"

#define WAIT_MS	    20
#define THREADS_MAX 64

static volatile int stop;
static pthread_t threads[THREADS_MAX];
static int nthreads;
static bool ends_at_once;

/* --- waits -------------------------------------------------------------------------------------- */

static void *do_filter(void *arg)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
	unsigned long n = 0;

	(void)arg;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		disturb("seccomp", 0);
	settle();
	for (; !stop; n++)
		nanosleep(&pause, NULL);
	tell("filter", n);
	return NULL;
}

/* nanosleep's system call, in memory of no file. */
static void *do_jit(void *arg)
{
	static const unsigned char code[] = {0xb8, 0x23, 0, 0, 0, 0x0f, 0x05, 0xc3};
	struct timespec pause = {.tv_nsec = WAIT_MS * 1000000};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long (*sleep_)(struct timespec *, struct timespec *) = (void *)page;
	unsigned long n = 0;

	(void)arg;
	if (page == MAP_FAILED)
		return NULL;
	memcpy(page, code, sizeof(code));
	settle();
	for (; !stop; n++)
		if (sleep_(&pause, NULL))
			disturb("nanosleep in code of no file", (long)n);
	tell("jit", n);
	return NULL;
}

static void *do_ring(void *arg)
{
	struct io_uring_params p = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p);
	struct __kernel_timespec ts = {.tv_nsec = WAIT_MS * 1000000};
	struct io_uring_getevents_arg ext = {.sigmask_sz = 8, .ts = (uintptr_t)&ts};
	unsigned long n = 0;

	(void)arg;
	settle();
	for (; fd >= 0 && !stop; n++) {
		errno = 0;
		if (syscall(SYS_io_uring_enter, fd, 0, 1,
			    IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &ext,
			    sizeof(ext)) != -1 ||
		    errno != ETIME)
			disturb("io_uring_enter", (long)n);
	}
	tell("ring", fd >= 0 ? n : 1);
	return NULL;
}

static void *do_timeo(void *arg)
{
	struct timeval tv = {.tv_usec = WAIT_MS * 1000};
	bool sends = arg != NULL;
	unsigned long n = 0;
	char buf[4096] = {0};
	int s[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		return NULL;
	setsockopt(s[0], SOL_SOCKET, sends ? SO_SNDTIMEO : SO_RCVTIMEO, &tv, sizeof(tv));
	while (sends && send(s[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	settle();
	for (; !stop; n++) {
		errno = 0;
		if ((sends ? send(s[0], buf, 1, 0) : recv(s[0], buf, 1, 0)) != -1 ||
		    errno != EAGAIN)
			disturb(sends ? "send" : "recv", (long)n);
	}
	tell(sends ? "send" : "recv", n);
	return NULL;
}

/* The kernel then cannot leave there how much is left, and would end the call with EINTR. */
static void *do_sticky(void *arg)
{
	struct timespec *ts =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long n = 0;

	(void)arg;
	ts->tv_nsec = WAIT_MS * 1000000;
	mprotect(ts, 4096, PROT_READ);
	settle();
	for (; !stop; n++) {
		long got = syscall(SYS_ppoll, NULL, 0, ts, NULL, 8);

		if (got)
			disturb("ppoll", got);
	}
	tell("sticky", n);
	return NULL;
}

/* --- signals and registers ---------------------------------------------------------------------- */

static volatile unsigned long alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void *do_storm(void *arg)
{
	struct itimerval it = {.it_interval = {.tv_usec = 100}, .it_value = {.tv_usec = 100}};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	unsigned long n = 0;
	int fds[2];
	char c;

	(void)arg;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	if (pipe(fds))
		return NULL;
	settle();
	for (; !stop; n++) {
		c = (char)n;
		if (write(fds[1], &c, 1) != 1 || read(fds[0], &c, 1) != 1 || c != (char)n)
			disturb("a pipe in a storm of signals", (long)n);
	}
	memset(&it, 0, sizeof(it));
	setitimer(ITIMER_REAL, &it, NULL);
	tell("storm", alarms);
	return NULL;
}

#ifdef __AVX__
#error "the registers are the assembler's alone"
#endif
static void *do_avx(void *arg)
{
	static const unsigned char want[32] = "0123456789abcdefghijklmnopqrstuv";
	unsigned char got[4][32];
	unsigned long n = 0;

	(void)arg;
	settle();
	for (; __builtin_cpu_supports("avx") && !stop; n++) {
		__asm__ volatile("vmovdqu (%1), %%ymm0\n vmovdqu (%1), %%ymm5\n"
				 "vmovdqu (%1), %%ymm10\n vmovdqu (%1), %%ymm15\n"
				 "mov $200000, %%ecx\n 1: dec %%ecx\n jnz 1b\n"
				 "vmovdqu %%ymm0, (%0)\n vmovdqu %%ymm5, 32(%0)\n"
				 "vmovdqu %%ymm10, 64(%0)\n vmovdqu %%ymm15, 96(%0)\n vzeroupper\n"
				 :
				 : "r"(got), "r"(want)
				 : "rcx", "xmm0", "xmm5", "xmm10", "xmm15", "memory", "cc");
		for (int i = 0; i < 4; i++)
			if (memcmp(got[i], want, sizeof(want)))
				disturb("vector registers", i);
	}
	tell("avx", n ? n : 1);
	return NULL;
}

/* --- processes and threads that come and go ----------------------------------------------------- */

/* Maps of a ring. */
static int ring_maps(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:qbpf-ring") != NULL;
	if (f)
		fclose(f);
	return n;
}

static void *do_fork(void *arg)
{
	int status;
	unsigned long n = 0;

	(void)arg;
	settle();
	for (; !stop; n++) {
		pid_t pid = fork();

		if (!pid)
			_exit(ring_maps());
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			disturb("a child", status);
	}
	tell("fork", n);
	return NULL;
}

static int dry[2];

static void *wait_dry(void *arg)
{
	char c;

	(void)arg;
	while (read(dry[0], &c, 1) >= 0)
		;
	disturb("read in a thread to be cancelled", 0);
	return NULL;
}

static void *do_cancel(void *arg)
{
	struct timespec pause = {.tv_nsec = 300000};
	unsigned long n = 0;
	pthread_t t;
	void *end;

	(void)arg;
	if (pipe(dry))
		return NULL;
	settle();
	for (; !stop; n++) {
		if (pthread_create(&t, NULL, wait_dry, NULL))
			continue;
		nanosleep(&pause, NULL);
		pthread_cancel(t);
		if (pthread_join(t, &end) || end != PTHREAD_CANCELED)
			disturb("pthread_cancel", (long)n);
	}
	tell("cancel", n);
	return NULL;
}

static void *do_dlopen(void *arg)
{
	void *h;

	settle();
	h = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
	tell("dlopen", h != NULL);
	return NULL;
}

static void on_usr1(int sig)
{
	(void)sig;
	execl("/bin/cat", "cat", (char *)NULL);
}

/* --- the rest ----------------------------------------------------------------------------------- */

static void start(void *(*fn)(void *), const void *arg)
{
	if (nthreads == THREADS_MAX ||
	    pthread_create(&threads[nthreads], NULL, fn, (void *)(uintptr_t)arg)) {
		perror("pthread_create");
		exit(1);
	}
	nthreads++;
}

static void begin(const char *word)
{
	static const struct {
		const char *name;
		void *(*fn)(void *);
	} plain[] = {{"filter", do_filter}, {"ring", do_ring},	  {"timeo", do_timeo},
		     {"sticky", do_sticky}, {"avx", do_avx},	  {"storm", do_storm},
		     {"fork", do_fork},	    {"cancel", do_cancel}};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(word, plain[i].name))
			start(plain[i].fn, NULL);
	if (!strcmp(word, "timeo"))
		start(do_timeo, word);
	for (int k = 0; !strncmp(word, "jit:", 4) && k < atoi(word + 4); k++)
		start(do_jit, NULL);
	if (!strncmp(word, "dlopen:", 7)) {
		start(do_dlopen, word + 7);
		ends_at_once = true;
	}
	if (!strcmp(word, "exec"))
		signal(SIGUSR1, on_usr1);
}

static void limit(int what, rlim_t to)
{
	struct rlimit r = {.rlim_cur = to, .rlim_max = to};

	if (setrlimit(what, &r))
		perror("setrlimit");
}

static void *await_end(void *arg)
{
	char c;

	(void)arg;
	while (read(0, &c, 1) > 0)
		;
	stop = 1;
	for (int i = 0; i < nthreads && !ends_at_once; i++)
		pthread_join(threads[i], NULL);
	tell("disturbed", disturbed);
	fflush(stdout);
	_exit(0);
}

/* What can only be done when all else is there. */
static void finish(const char *word)
{
	char c;

	if (!strcmp(word, "as"))
		limit(RLIMIT_AS, 1 << 20);
	if (!strcmp(word, "nproc"))
		limit(RLIMIT_NPROC, 1);
	if (!strncmp(word, "chroot:", 7) && (chroot(word + 7) || chdir("/")))
		perror("chroot");
	if (strcmp(word, "vfork") && strcmp(word, "leader"))
		return;
	if (!strcmp(word, "vfork")) {
		if (!vfork()) {
			if (write(1, "ready\n", 6) != 6)
				_exit(1);
			while (read(0, &c, 1) > 0)
				;
			_exit(0);
		}
		tell("vfork", 1);
		await_end(NULL);
	}
	puts("ready");
	start(await_end, NULL);
	nthreads--;
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	cudaFree(NULL);
	for (int i = 1; i < argc; i++)
		begin(argv[i]);
	await_settled(nthreads);
	for (int i = 1; i < argc; i++)
		finish(argv[i]);
	puts("ready");
	await_end(NULL);
}

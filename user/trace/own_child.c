// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The child that runs probe sites on request: see own_child.h. */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "trace/own_child.h"

/*
 * x86-64 alone. Each is a function without arguments, called with an empty red zone. The labels _a
 * and _b are the two sites, at the same stack depth as the two markers of a span would be. A page
 * of their own, so that probing copies no page that qbpf runs in.
 */
#define NOP5 ".byte 0x0f,0x1f,0x44,0x00,0x00\n"
#define OWN_FN(name, body)                                                                         \
	".globl qbpf_own_" name "\n.hidden qbpf_own_" name "\n.type qbpf_own_" name ",@function\n" \
	"qbpf_own_" name ":\n" body ".size qbpf_own_" name ", . - qbpf_own_" name "\n"
#define SITE(name) ".globl qbpf_own_" name "\n.hidden qbpf_own_" name "\nqbpf_own_" name ":\n"

/* clang-format off */
asm(".pushsection .text.qbpf_own,\"ax\",@progbits\n"
    ".balign 4096\n"
    OWN_FN("nop5", "lea -128(%rsp), %rsp\n"
	   SITE("nop5_a") NOP5
	   SITE("nop5_b") NOP5
	   "lea 128(%rsp), %rsp\nret\n")
    ".balign 16\n"
    OWN_FN("nop1", SITE("nop1_a") "nop\n" SITE("nop1_b") "nop\nret\n")
    ".balign 16\n"
    OWN_FN("push", SITE("push_a") "push %rbp\npop %rbp\n" SITE("push_b") "jmp 1f\n1: ret\n")
    ".balign 16\n"
    OWN_FN("stepped", SITE("stepped_a") "sub $8, %rsp\nadd $8, %rsp\n" SITE("stepped_b") "ret\n")
    ".balign 16\n"
    OWN_FN("func", SITE("func_a") "push %rbp\npop %rbp\nret\n")
    ".balign 4096\n"
    ".popsection\n");
/* clang-format on */

#define OWN_DECLARE(name) extern char qbpf_own_##name[], qbpf_own_##name##_a[]
OWN_DECLARE(nop5);
OWN_DECLARE(nop1);
OWN_DECLARE(push);
OWN_DECLARE(stepped);
OWN_DECLARE(func);
extern char qbpf_own_nop5_b[], qbpf_own_nop1_b[], qbpf_own_push_b[], qbpf_own_stepped_b[];

static const struct {
	char *call, *begin, *end;
} pairs[OWN_PAIRS] = {
    [OWN_NOP5] = {qbpf_own_nop5, qbpf_own_nop5_a, qbpf_own_nop5_b},
    [OWN_NOP1] = {qbpf_own_nop1, qbpf_own_nop1_a, qbpf_own_nop1_b},
    [OWN_PUSH] = {qbpf_own_push, qbpf_own_push_a, qbpf_own_push_b},
    [OWN_STEPPED] = {qbpf_own_stepped, qbpf_own_stepped_a, qbpf_own_stepped_b},
    [OWN_FUNC] = {qbpf_own_func, qbpf_own_func_a, NULL},
};

struct own_child {
	pid_t pid;
	int sock;
};

enum how { RUN_HERE, RUN_ON_THREAD, RUN_IN_FORK };

struct order {
	uint32_t pair;
	uint32_t n;
	uint32_t how;
};

struct answer {
	uint64_t ns;
	int32_t err;
	uint8_t text[5];
};

/* --- in the child -------------------------------------------------------------------------- */

struct job {
	const struct order *o;
	struct answer *a;
};

static void *do_job(void *arg)
{
	struct job *j = arg;
	void (*call)(void) = (void (*)(void))pairs[j->o->pair].call;
	uint64_t start = now_ns();

	for (uint32_t i = 0; i < j->o->n; i++)
		call();
	j->a->ns = now_ns() - start;
	return NULL;
}

static void die_quietly(int sig)
{
	_exit(128 + sig);
}

/* -EFAULT: the forked child died by a signal. */
static int do_job_forked(struct job *j)
{
	pid_t pid = fork();
	int st;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		signal(SIGSEGV, die_quietly); /* no line in the kernel's log, no core */
		do_job(j);
		_exit(0);
	}
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(st) && !WEXITSTATUS(st) ? 0 : -EFAULT;
}

static int do_job_on_thread(struct job *j)
{
	pthread_t t;
	int err = -pthread_create(&t, NULL, do_job, j);

	if (!err)
		pthread_join(t, NULL);
	return err;
}

/* Ends when the parent does: the socket closes. */
static void __attribute__((noreturn)) child_main(int sock)
{
	struct order o;

	signal(SIGINT, SIG_IGN); /* the terminal's Ctrl-C is for the parent */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (recv(sock, &o, sizeof(o), 0) == sizeof(o)) {
		struct answer a = {0};
		struct job j = {&o, &a};

		if (o.how == RUN_ON_THREAD)
			a.err = do_job_on_thread(&j);
		else if (o.how == RUN_IN_FORK)
			a.err = do_job_forked(&j);
		else
			do_job(&j);
		memcpy(a.text, pairs[o.pair].begin, sizeof(a.text));
		if (send(sock, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			break;
	}
	_exit(0);
}

/* --- in the parent ------------------------------------------------------------------------- */

int own_child__start(struct own_child **out)
{
	struct own_child *c = calloc(1, sizeof(*c));
	int sv[2], err;

	if (!c)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv)) {
		err = -errno;
		free(c);
		return err;
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(sv[0]);
		child_main(sv[1]);
	}
	err = c->pid < 0 ? -errno : 0;
	close(sv[1]);
	c->sock = sv[0];
	if (err) {
		close(c->sock);
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void own_child__free(struct own_child *c)
{
	if (!c)
		return;
	close(c->sock);
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(c);
}

pid_t own_child__pid(const struct own_child *c)
{
	return c->pid;
}

struct offset_query {
	uint64_t addr, off;
	bool found;
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct offset_query *q = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && q->addr >= start && q->addr < start + p->p_memsz) {
			q->off = q->addr - start + p->p_offset;
			q->found = true;
		}
	}
	return 1; /* the first is the executable */
}

int own_pair_offsets(enum own_pair pair, uint64_t *begin, uint64_t *end)
{
	struct offset_query q = {.addr = (uint64_t)pairs[pair].begin};

	dl_iterate_phdr(find_offset, &q);
	if (!q.found)
		return -ENOENT;
	*begin = q.off;
	*end = pairs[pair].end ? q.off + (uint64_t)(pairs[pair].end - pairs[pair].begin) : 0;
	return 0;
}

static int ask(struct own_child *c, const struct order *o, struct answer *a)
{
	ssize_t n;

	if (send(c->sock, o, sizeof(*o), MSG_NOSIGNAL) != sizeof(*o))
		return -errno;
	do
		n = recv(c->sock, a, sizeof(*a), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(*a))
		return n < 0 ? -errno : -ECHILD;
	return a->err;
}

int own_child__run(struct own_child *c, enum own_pair pair, uint32_t n, int on_thread, uint64_t *ns)
{
	struct order o = {pair, n, on_thread ? RUN_ON_THREAD : RUN_HERE};
	struct answer a;
	int err = ask(c, &o, &a);

	if (!err && ns)
		*ns = a.ns;
	return err;
}

int own_child__text(struct own_child *c, enum own_pair pair, uint8_t bytes[5])
{
	struct order o = {pair, 0, RUN_HERE};
	struct answer a;
	int err = ask(c, &o, &a);

	if (!err)
		memcpy(bytes, a.text, sizeof(a.text));
	return err;
}

int own_child__run_forked(struct own_child *c, enum own_pair pair)
{
	struct order o = {pair, 1, RUN_IN_FORK};
	struct answer a;

	return ask(c, &o, &a);
}

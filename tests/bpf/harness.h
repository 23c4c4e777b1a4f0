/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of the BPF programs share: sites to probe inside the test binary itself, a
 * child that runs a workload, links with cookies by uprobe_multi or perf events, and readers
 * of the maps. It stands on libbpf alone, so that it tests the kernel side without the loader.
 */
#ifndef QBPF_TESTS_BPF_HARNESS_H
#define QBPF_TESTS_BPF_HARNESS_H

#include <errno.h>
#include <setjmp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "qbpf.skel.h"
#include "qbpf/abi.h"

#define noinline __attribute__((noinline, noclone))

/*
 * A marker at a global label. It steps over the red zone, as probe.h does, because the kernel
 * may make a call of the nop.
 */
#define SITE(label)                                                                                \
	__asm__ volatile("lea -128(%%rsp),%%rsp\n"                                                 \
			 ".globl " #label "\n" #label ":\n"                                        \
			 ".byte 0x0f,0x1f,0x44,0x00,0x00\n"                                        \
			 "lea 128(%%rsp),%%rsp" ::                                                 \
			     : "memory")
/* With a value or a key in %rdi, or a pointer to it. */
#define SITE_ARG(label, value)                                                                     \
	__asm__ volatile("lea -128(%%rsp),%%rsp\n"                                                 \
			 ".globl " #label "\n" #label ":\n"                                        \
			 ".byte 0x0f,0x1f,0x44,0x00,0x00\n"                                        \
			 "lea 128(%%rsp),%%rsp" ::"D"(value)                                       \
			 : "memory")
/*
 * A marker of one byte, for programs that fork: Linux 6.18 leaves its optimised 5-byte nops as
 * calls in a forked child, which has not the page that they call, and so kills the child.
 */
#define SITE_1(label)	    __asm__ volatile(".globl " #label "\n" #label ": nop" ::: "memory")
#define DECLARE_SITE(label) extern const char label[]

struct harness {
	struct qbpf_bpf *skel;
	struct bpf_link *links[64];
	int nlinks;
	bool multi;
	pid_t child;
	int go[2];
};

static inline int harness_quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_WARN && getenv("VERBOSE"))
		return vfprintf(stderr, fmt, ap);
	return 0;
}

/* Does this kernel have uprobe_multi links? Tried on this very process. */
static inline bool harness_has_multi(void)
{
	struct bpf_insn insns[] = {{.code = 0xb7}, {.code = 0x95}};
	LIBBPF_OPTS(bpf_prog_load_opts, po, .expected_attach_type = BPF_TRACE_UPROBE_MULTI);
	int prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, 2, &po);
	unsigned long off = 0;
	LIBBPF_OPTS(bpf_link_create_opts, lo, .uprobe_multi.path = "/", .uprobe_multi.cnt = 1,
		    .uprobe_multi.offsets = &off);
	int link, err;

	if (prog < 0)
		return false;
	link = bpf_link_create(prog, -1, BPF_TRACE_UPROBE_MULTI, &lo);
	err = -errno;
	if (link >= 0)
		close(link);
	close(prog);
	/* It knows the link type when it complains about the path. */
	return link >= 0 || err == -EBADF;
}

/* The file offset of an address in the text of this binary. */
static inline unsigned long file_offset(const void *addr)
{
	unsigned long start, end, off, a = (unsigned long)addr, found = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	char perms[8], line[512];

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, perms, &off) == 4 && a >= start &&
		    a < end)
			found = a - start + off;
	fclose(f);
	assert_int_not_equal(found, 0);
	return found;
}

/* The file that maps an address, as a path that opens. */
static inline void file_of(const void *addr, char *path, size_t size)
{
	unsigned long start, end, a = (unsigned long)addr;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int at = 0;

	assert_non_null(f);
	path[0] = 0;
	while (!path[0] && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) < 2 ||
		    a < start || a >= end)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(path, size, "%s", line + at);
	}
	fclose(f);
	assert_int_equal(path[0], '/');
}

static inline void harness_open(struct harness *h, bool multi)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	memset(h, 0, sizeof(*h));
	h->multi = multi;
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	libbpf_set_print(harness_quiet);
	h->skel = qbpf_bpf__open();
	assert_non_null(h->skel);
	if (multi) {
		bpf_program__set_expected_attach_type(h->skel->progs.on_site,
						      BPF_TRACE_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(h->skel->progs.on_return,
						      BPF_TRACE_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(h->skel->progs.on_cuda,
						      BPF_TRACE_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(h->skel->progs.on_cuda_return,
						      BPF_TRACE_UPROBE_MULTI);
	}
}

/* Adds the tracepoints; probes are attached one by one. */
static inline void harness_load(struct harness *h)
{
	assert_int_equal(qbpf_bpf__load(h->skel), 0);
	h->links[h->nlinks++] = bpf_program__attach(h->skel->progs.on_thread_exit);
	h->links[h->nlinks++] = bpf_program__attach(h->skel->progs.on_fork);
	h->links[h->nlinks++] = bpf_program__attach(h->skel->progs.on_exec);
	for (int i = 0; i < h->nlinks; i++)
		assert_non_null(h->links[i]);
}

static inline void harness_close(struct harness *h)
{
	for (int i = 0; i < h->nlinks; i++)
		bpf_link__destroy(h->links[i]);
	qbpf_bpf__destroy(h->skel);
}

static inline void harness_attach(struct harness *h, struct bpf_program *prog, bool ret, pid_t pid,
				  const void *addr, __u64 cookie)
{
	unsigned long off = file_offset(addr);
	char path[512];
	struct bpf_link *link;

	file_of(addr, path, sizeof(path));
	if (h->multi) {
		LIBBPF_OPTS(bpf_uprobe_multi_opts, o, .offsets = &off, .cookies = &cookie, .cnt = 1,
			    .retprobe = ret);
		link = bpf_program__attach_uprobe_multi(prog, pid, path, NULL, &o);
	} else {
		LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = cookie, .retprobe = ret,
			    .attach_mode = PROBE_ATTACH_MODE_LINK);
		link = bpf_program__attach_uprobe_opts(prog, pid, path, off, &o);
	}
	if (!link)
		fail_msg("attach %s+0x%lx: %s", path, off, strerror(errno));
	assert_true(h->nlinks < (int)(sizeof(h->links) / sizeof(h->links[0])));
	h->links[h->nlinks++] = link;
}

/* A site of a span, in the child that was prepared. */
static inline void probe(struct harness *h, const void *addr, uint32_t span, enum qbpf_role role,
			 uint32_t site)
{
	bool ret = role == QBPF_ROLE_RETURN;

	harness_attach(h, ret ? h->skel->progs.on_return : h->skel->progs.on_site, ret, h->child,
		       addr, QBPF_COOKIE(span, role, site));
}

static inline void probe_function(struct harness *h, const void *addr, uint32_t span)
{
	probe(h, addr, span, QBPF_ROLE_ENTRY, 0);
	probe(h, addr, span, QBPF_ROLE_RETURN, 0);
}

/*
 * Forks a child that waits to be told to run the workload and exits with its result. Probes go
 * on while it waits, so each of its hits is seen.
 */
static inline void child_prepare(struct harness *h, int (*work)(void))
{
	uint32_t tgid, one = 1;
	char c;

	assert_int_equal(pipe(h->go), 0);
	fflush(NULL);
	h->child = fork();
	assert_true(h->child >= 0);
	if (!h->child) {
		/* cmocka's handlers would go on with the next test, in the child. */
		for (int sig = 1; sig < 32; sig++)
			signal(sig, SIG_DFL);
		close(h->go[1]);
		if (read(h->go[0], &c, 1) != 1)
			_exit(99);
		_exit(work());
	}
	close(h->go[0]);
	if (h->skel && bpf_map__fd(h->skel->maps.targets) >= 0) {
		tgid = h->child;
		assert_int_equal(bpf_map__update_elem(h->skel->maps.targets, &tgid, sizeof(tgid),
						      &one, sizeof(one), 0),
				 0);
	}
}

/* Lets it run to its end; its wait status. */
static inline int child_run(struct harness *h)
{
	int status = -1;

	assert_int_equal(write(h->go[1], "x", 1), 1);
	close(h->go[1]);
	assert_int_equal(waitpid(h->child, &status, 0), h->child);
	return status;
}

/* --- reading the maps ------------------------------------------------------------------------ */

static inline struct qbpf_span_counts counts_of(struct harness *h, uint32_t span)
{
	struct qbpf_span_counts c;

	assert_int_equal(
	    bpf_map__lookup_elem(h->skel->maps.span_counts, &span, sizeof(span), &c, sizeof(c), 0),
	    0);
	return c;
}

/* The span's histogram summed over CPUs and octaves: how many values, their sum and extremes. */
struct hist_sum {
	uint64_t n, sum, min, max;
};

static inline struct hist_sum hist_of(struct harness *h, uint32_t span)
{
	struct hist_sum s = {.min = ~0ULL};
	struct qbpf_hist_key key, *prev = NULL;
	struct qbpf_hist_cell cell;
	int fd = bpf_map__fd(h->skel->maps.hist_cells);

	while (!bpf_map_get_next_key(fd, prev, &key)) {
		prev = &key;
		if (key.span != span || bpf_map_lookup_elem(fd, &key, &cell))
			continue;
		for (int i = 0; i < QBPF_HIST_SUB; i++)
			s.n += cell.n[i];
		s.sum += cell.sum_lo;
		if (cell.min < s.min)
			s.min = cell.min;
		if (cell.max > s.max)
			s.max = cell.max;
	}
	return s;
}

/* The id of the node at a path of spans from the root; 0: there is none. */
static inline uint32_t node_at(struct harness *h, const uint32_t *path, size_t n)
{
	struct qbpf_node node = {.id = QBPF_NODE_ROOT};

	for (size_t i = 0; i < n; i++) {
		struct qbpf_node_key key = {.parent = node.id, .span = path[i]};

		if (bpf_map__lookup_elem(h->skel->maps.nodes, &key, sizeof(key), &node,
					 sizeof(node), 0))
			return 0;
	}
	return node.id;
}

#define NODE(h, ...)                                                                               \
	node_cell_of(h, node_at(h, (const uint32_t[]){__VA_ARGS__},                                \
				sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static inline struct qbpf_node_cell node_cell_of(struct harness *h, uint32_t node)
{
	struct qbpf_node_cell sum = {.min_ns = ~0ULL}, c;
	int fd = bpf_map__fd(h->skel->maps.node_cells);
	struct qbpf_node_cell_key key, *prev = NULL;

	while (!bpf_map_get_next_key(fd, prev, &key)) {
		prev = &key;
		if (key.node != node || bpf_map_lookup_elem(fd, &key, &c))
			continue;
		sum.count += c.count;
		sum.total_ns += c.total_ns;
		sum.self_ns += c.self_ns;
		if (c.min_ns < sum.min_ns)
			sum.min_ns = c.min_ns;
		if (c.max_ns > sum.max_ns)
			sum.max_ns = c.max_ns;
	}
	return sum;
}

/* All that a task iterator writes: records of one size. How many. */
static inline size_t read_iter(struct bpf_program *prog, void *out, size_t n, size_t size)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	size_t len = 0;
	ssize_t got;
	int fd;

	assert_non_null(link);
	fd = bpf_iter_create(bpf_link__fd(link));
	assert_true(fd >= 0);
	while ((got = read(fd, (char *)out + len, n * size - len)) > 0)
		len += got;
	assert_int_equal(got, 0);
	assert_int_equal(len % size, 0);
	close(fd);
	bpf_link__destroy(link);
	return len / size;
}

/* The open frames of all targets. */
static inline size_t read_open(struct harness *h, struct qbpf_open_frame *f, size_t n)
{
	return read_iter(h->skel->progs.on_open_frames, f, n, sizeof(*f));
}

/* How many nodes the call tree has. */
static inline size_t node_count(struct harness *h)
{
	int fd = bpf_map__fd(h->skel->maps.nodes);
	struct qbpf_node_key key, *prev = NULL;
	size_t n = 0;

	while (!bpf_map_get_next_key(fd, prev, &key)) {
		prev = &key;
		n++;
	}
	return n;
}

/* Everything that is not a clean span, but instants' last_ns. */
static inline uint64_t not_clean(struct harness *h, uint32_t span)
{
	struct qbpf_span_counts c = counts_of(h, span);

	return c.orphan_ends + c.abandoned + c.depth_overflow + c.node_overflow + c.hist_overflow +
	       c.no_storage + c.unreadable + c.key_overflow + c.key_restarts + c.key_timeouts +
	       c.ret_muted;
}

/* Runs `body` in n threads at a time until all have ended: what a child's main may return. */
static inline int run_threads(size_t n, void *(*body)(void *arg))
{
	pthread_t t[32];

	if (n > sizeof(t) / sizeof(t[0]))
		return 1;
	for (size_t i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, body, NULL))
			return 1;
	for (size_t i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* Each test of these files runs with both ways to attach; where there is one, it is named. */
#define BOTH_WAYS(test)                                                                            \
	{#test "_perf_event", test, NULL, NULL, (void *)0},                                        \
	{                                                                                          \
#test "_uprobe_multi", test, NULL, NULL, (void *)1                                 \
	}

/* The attach way of this run; skips where the kernel lacks it. */
static inline bool way_of(void **state)
{
	bool multi = *state != NULL;

	if (multi && !harness_has_multi()) {
		print_message("# no uprobe_multi on this kernel\n");
		skip();
	}
	return multi;
}

#endif

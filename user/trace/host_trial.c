// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Trials for `qbpf doctor`: arms probes on a child of qbpf's own in each way that there is and
 * looks whether they fire, with their cookie, on every thread, and what they did to the text.
 * Tens of milliseconds, mostly the kernel's waiting when a probe is taken away.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "feature_read_kernel.skel.h"
#include "feature_tracing.skel.h"
#include "feature_uprobe.skel.h"
#include "trace/host_checks.h"
#include "trace/own_child.h"

#define COOKIE	 0x123456789abcdef0ull
#define RUNS	 8
#define EXE_PATH "/proc/self/exe"
#define OP_CALL	 0xe8

typedef struct bpf_link *attach_fn(struct feature_uprobe_bpf *skel, pid_t pid, uint64_t off);

static struct bpf_link *attach_perf(struct feature_uprobe_bpf *skel, pid_t pid, uint64_t off)
{
	LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = COOKIE);

	return bpf_program__attach_uprobe_opts(skel->progs.on_perf_hit, pid, EXE_PATH, off, &o);
}

static struct bpf_link *attach_multi(struct feature_uprobe_bpf *skel, pid_t pid, uint64_t off)
{
	const unsigned long offsets[] = {off};
	const __u64 cookies[] = {COOKIE};
	LIBBPF_OPTS(bpf_uprobe_multi_opts, o, .offsets = offsets, .cookies = cookies, .cnt = 1);

	return bpf_program__attach_uprobe_multi(skel->progs.on_multi_hit, pid, EXE_PATH, NULL, &o);
}

/* Arms one site, runs it on one thread and on another; how many of the hits were seen. */
static int try_way(struct feature_uprobe_bpf *skel, struct own_child *c, attach_fn *attach,
		   uint64_t *main_hits, uint64_t *thread_hits, struct host_trials *t)
{
	struct bpf_link *link;
	uint64_t begin, end;
	uint8_t text[5];
	int err = own_pair_offsets(OWN_NOP5, &begin, &end);

	if (err)
		return err;
	skel->bss->hits = 0;
	skel->bss->last_cookie = 0;
	link = attach(skel, own_child__pid(c), begin);
	if (!link)
		return -errno;
	err = own_child__run(c, OWN_NOP5, RUNS, 0, NULL);
	*main_hits = skel->bss->hits;
	if (!err)
		err = own_child__run(c, OWN_NOP5, RUNS, 1, NULL);
	*thread_hits = skel->bss->hits - *main_hits;
	if (!err)
		err = own_child__text(c, OWN_NOP5, text);
	if (!err) {
		t->nop5_first = text[0];
		t->nop5_rewritten = text[0] == OP_CALL;
		if (*main_hits != RUNS || skel->bss->last_cookie != COOKIE)
			err = -ENODATA;
	}
	bpf_link__destroy(link);
	return err;
}

static void try_uprobes(const struct host *h, struct host_trials *t)
{
	struct feature_uprobe_bpf *skel = feature_uprobe_bpf__open();
	struct own_child *c = NULL;
	uint64_t here, there;
	int err;

	if (!skel) {
		t->perf_uprobe = t->multi_uprobe = t->nop5 = -errno;
		return;
	}
	bpf_program__set_autoload(skel->progs.on_multi_hit, h->uprobe_multi);
	err = feature_uprobe_bpf__load(skel);
	if (!err)
		err = own_child__start(&c);
	if (err) {
		t->perf_uprobe = t->multi_uprobe = t->nop5 = err;
		goto out;
	}
	t->perf_uprobe = try_way(skel, c, attach_perf, &here, &there, t);
	t->multi_uprobe = -EOPNOTSUPP;
	if (h->uprobe_multi) {
		t->multi_uprobe = try_way(skel, c, attach_multi, &here, &there, t);
		t->multi_threads = !t->multi_uprobe && there == RUNS;
	}
	t->nop5 = t->perf_uprobe && t->multi_uprobe ? t->perf_uprobe : 0;
out:
	own_child__free(c);
	feature_uprobe_bpf__destroy(skel);
}

/*
 * The CALL that the kernel puts in place of a nop5 is copied by fork, the page that it calls is
 * not (VM_DONTCOPY, 6.18). The site must have been hit before it is rewritten.
 */
bool host__nop5_fork_unsafe(const struct host *h)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct feature_uprobe_bpf *skel = NULL;
	struct own_child *c = NULL;
	struct bpf_link *link = NULL;
	uint64_t begin, end;
	bool unsafe = true; /* what cannot be tried is not trusted */

	if (!h->nop5_optimised) {
		unsafe = false;
		goto out;
	}
	skel = feature_uprobe_bpf__open();
	if (!skel || own_pair_offsets(OWN_NOP5, &begin, &end))
		goto out;
	bpf_program__set_autoload(skel->progs.on_multi_hit, h->uprobe_multi);
	if (feature_uprobe_bpf__load(skel) || own_child__start(&c))
		goto out;
	link = h->uprobe_multi ? attach_multi(skel, own_child__pid(c), begin)
			       : attach_perf(skel, own_child__pid(c), begin);
	if (!link || own_child__run(c, OWN_NOP5, RUNS, 0, NULL))
		goto out;
	unsafe = own_child__run_forked(c, OWN_NOP5) != 0;
out:
	bpf_link__destroy(link);
	own_child__free(c);
	feature_uprobe_bpf__destroy(skel);
	libbpf_set_print(print);
	return unsafe;
}

void host_trials__run(const struct host *h, struct host_trials *t)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	struct feature_tracing_bpf *tracing;
	struct feature_read_kernel_bpf *rk;

	*t = (struct host_trials){0};
	errno = 0;
	tracing = feature_tracing_bpf__open_and_load();
	t->tracing = tracing ? 0 : -errno;
	feature_tracing_bpf__destroy(tracing);
	rk = feature_read_kernel_bpf__open_and_load();
	t->read_kernel = rk ? 0 : -errno;
	feature_read_kernel_bpf__destroy(rk);
	try_uprobes(h, t);
	libbpf_set_print(print);
}

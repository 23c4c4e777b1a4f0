// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What host.c asks the kernel against what the kernel then does, and the price of a hit: that
 * it is measured in both ways of arming and leaves nothing in the session's maps.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feature_uprobe.skel.h"
#include "qbpf.skel.h"
#include "trace/host.h"
#include "trace/own_child.h"
#include "trace/price.h"

#define RUNS 100

static struct host *host;

static int setup(void **state)
{
	struct err e = {""};

	(void)state;
	if (geteuid() != 0) {
		print_message("# needs root\n");
		exit(77);
	}
	libbpf_set_print(NULL);
	if (host__probe(&host, &e)) {
		print_message("# host__probe: %s\n", e.text);
		return -1;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	host__free(host);
	return 0;
}

static const struct host_check *find_check(const struct host *h, const char *name)
{
	for (size_t i = 0; i < h->nchecks; i++)
		if (!strcmp(h->checks[i].name, name))
			return &h->checks[i];
	return NULL;
}

/* The quick answers by asking are those of the trials. */
static void t_full_agrees_with_quick(void **state)
{
	struct host *full;
	struct err e;

	(void)state;
	assert_int_equal(host__probe_full(&full, &e), 0);
	assert_int_equal(full->nop5_optimised, host->nop5_optimised);
	assert_int_equal(full->uprobe_multi, host->uprobe_multi);
	assert_int_equal(full->uprobe_multi_pid_ok, host->uprobe_multi_pid_ok);
	assert_int_equal(full->tp_btf, host->tp_btf);
	assert_string_equal(full->lockdown, host->lockdown);
	assert_int_equal(host->nchecks, 0);
	assert_true(full->nchecks > 15);
	assert_non_null(find_check(full, "uprobe_multi"));
	if (host->uprobe_multi)
		assert_string_equal(find_check(full, "uprobe_multi")->found, "works");
	assert_string_equal(find_check(full, "perf-event uprobes")->found, "works");
	assert_int_equal(host__can_trace(full, &e), 0);
	host__free(full);
}

/* Versions that every kernel of a series has in common, distributions' additions aside. */
static void t_known_versions(void **state)
{
	(void)state;
	assert_true(host->version > KERNEL_VERSION(4, 0, 0));
	if (host->version >= KERNEL_VERSION(6, 6, 0))
		assert_true(host->uprobe_multi);
	if (host->version >= KERNEL_VERSION(6, 10, 0))
		assert_true(host->uprobe_multi_pid_ok);
	if (host->version >= KERNEL_VERSION(6, 11, 0))
		assert_true(host->uretprobe_syscall);
	if (host->version < KERNEL_VERSION(6, 6, 0) && strstr(host->kernel, "cloud-amd64")) {
		assert_false(host->uprobe_multi);
		assert_false(host->uretprobe_syscall);
		assert_false(host->nop5_optimised);
	}
	assert_true(host->task_storage && host->ringbuf && host->attach_cookie);
	assert_true(host->btf && host->init_userns && host->perf_uprobe);
}

static void t_lockdown_and_guard(void **state)
{
	FILE *f = fopen("/sys/kernel/security/lockdown", "r");
	char text[100] = "", want[32];

	(void)state;
	assert_string_not_equal(host->lockdown, "unknown");
	assert_int_equal(host->guard_possible,
			 host->cap_sys_admin && !strcmp(host->lockdown, "none"));
	if (!f)
		return;
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	snprintf(want, sizeof(want), "[%s]", host->lockdown);
	assert_non_null(strstr(text, want));
}

static void t_plan_kernel(void **state)
{
	struct plan_kernel k;

	(void)state;
	host__plan_kernel(host, &k);
	assert_int_equal(k.nop5_optimised, host->nop5_optimised);
	assert_int_equal(k.uprobe_multi, host->uprobe_multi);
	assert_int_equal(k.uretprobe_syscall, host->uretprobe_syscall);
	assert_int_equal(k.guard, host->guard_possible);
}

/* Without capabilities nothing fails, and what is missing is named. */
static void t_without_capabilities(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct err e = {""};
		struct host *h;

		if (setgid(65534) || setuid(65534) || host__probe(&h, &e))
			_exit(1);
		if (h->cap_bpf || h->cap_perfmon || h->uprobe_multi || h->perf_uprobe)
			_exit(2);
		if (host__can_trace(h, &e) != -EPERM || !strstr(e.text, "CAP_BPF and CAP_PERFMON"))
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- the child ----------------------------------------------------------------------------- */

/* Every site of every pair can be probed, is hit once a run, and on the asked thread. */
static void t_own_sites(void **state)
{
	struct feature_uprobe_bpf *skel = feature_uprobe_bpf__open();
	struct own_child *c;

	(void)state;
	assert_non_null(skel);
	bpf_program__set_autoload(skel->progs.on_multi_hit, false);
	assert_int_equal(feature_uprobe_bpf__load(skel), 0);
	assert_int_equal(own_child__start(&c), 0);
	for (int p = 0; p < OWN_PAIRS; p++) {
		uint64_t off[2], ns = 0;

		assert_int_equal(own_pair_offsets(p, &off[0], &off[1]), 0);
		for (int i = 0; i < 2 && off[i]; i++) {
			struct bpf_link *l =
			    bpf_program__attach_uprobe(skel->progs.on_perf_hit, false,
						       own_child__pid(c), "/proc/self/exe", off[i]);

			assert_non_null(l);
			skel->bss->hits = 0;
			assert_int_equal(own_child__run(c, p, RUNS, 0, &ns), 0);
			assert_int_equal(skel->bss->hits, RUNS);
			assert_true(ns > 0);
			bpf_link__destroy(l);
			assert_int_equal(own_child__run(c, p, RUNS, 0, NULL), 0);
			assert_int_equal(skel->bss->hits, RUNS);
		}
	}
	own_child__free(c);
	feature_uprobe_bpf__destroy(skel);
}

/* When the child dies, whoever asks it hears so and does not wait. */
static void t_own_child_dies(void **state)
{
	struct own_child *c;

	(void)state;
	assert_int_equal(own_child__start(&c), 0);
	assert_int_equal(own_child__run(c, OWN_NOP5, 1, 0, NULL), 0);
	kill(own_child__pid(c), SIGKILL);
	assert_true(own_child__run(c, OWN_NOP5, 1, 0, NULL) < 0);
	own_child__free(c);
}

/* --- the price ----------------------------------------------------------------------------- */

static bool map_is_empty(const struct bpf_map *map)
{
	char key[64];

	return bpf_map__key_size(map) <= sizeof(key) &&
	       bpf_map_get_next_key(bpf_map__fd(map), NULL, key) == -ENOENT;
}

static void check_price(bool multi, bool filter)
{
	struct qbpf_bpf *b = qbpf_bpf__open();
	struct err e = {""};
	struct price p;

	assert_non_null(b);
	b->rodata->cfg_filter_tgid = filter;
	if (multi) {
		bpf_program__set_expected_attach_type(b->progs.on_site, BPF_TRACE_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(b->progs.on_return, BPF_TRACE_UPROBE_MULTI);
	}
	assert_int_equal(qbpf_bpf__load(b), 0);
	if (price__measure(b->obj, b->progs.on_site, b->progs.on_return, multi, &p, &e))
		fail_msg("%s", e.text);
	print_message(
	    "# ns a hit: nop5 %lu emulated %lu stepped %lu uretprobe +%lu; floors %lu %lu "
	    "%lu %lu\n",
	    p.ns[PRICE_NOP5], p.ns[PRICE_EMULATED], p.ns[PRICE_STEPPED], p.ns[PRICE_URETPROBE],
	    p.floor_marker_ns, p.floor_emulated_ns, p.floor_stepped_ns, p.floor_func_ns);
	for (int c = 0; c < PRICE_N; c++)
		assert_in_range(p.ns[c], c == PRICE_URETPROBE ? 0 : 20, 50000000);
	assert_in_range(p.floor_marker_ns, 20, 50000000);
	assert_in_range(p.floor_emulated_ns, 20, 50000000);
	assert_in_range(p.floor_stepped_ns, 20, 50000000);
	assert_in_range(p.floor_func_ns, 20, 50000000);
	assert_true(map_is_empty(b->maps.hist_cells));
	assert_true(map_is_empty(b->maps.nodes));
	assert_true(map_is_empty(b->maps.node_cells));
	assert_true(map_is_empty(b->maps.targets));
	assert_true(map_is_empty(b->maps.keyed));
	qbpf_bpf__destroy(b);
}

static void t_price_multi(void **state)
{
	(void)state;
	if (!host->uprobe_multi) {
		print_message("# no uprobe_multi here\n");
		skip();
	}
	check_price(true, false);
}

static void t_price_perf(void **state)
{
	(void)state;
	check_price(false, false);
}

/* With --follow the programs look at each hit's process: the child must be let through. */
static void t_price_follow(void **state)
{
	(void)state;
	check_price(host->uprobe_multi, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_full_agrees_with_quick),
	    cmocka_unit_test(t_known_versions),
	    cmocka_unit_test(t_lockdown_and_guard),
	    cmocka_unit_test(t_plan_kernel),
	    cmocka_unit_test(t_without_capabilities),
	    cmocka_unit_test(t_own_sites),
	    cmocka_unit_test(t_own_child_dies),
	    cmocka_unit_test(t_price_multi),
	    cmocka_unit_test(t_price_perf),
	    cmocka_unit_test(t_price_follow),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

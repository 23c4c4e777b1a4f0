// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rows of `qbpf doctor`: each fact about the host with what it means for tracing and what
 * to do about it. FAIL stops all tracing, WARN costs something.
 */
#include <errno.h>
#include <linux/version.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "trace/host_checks.h"

/* Appends a row. meaning and remedy may be NULL; found is formatted. */
static int __attribute__((format(printf, 6, 7)))
row(struct host *h, const char *name, enum host_state state, const char *meaning,
    const char *remedy, const char *found, ...)
{
	struct host_check *rows = reallocarray(h->checks, h->nchecks + 1, sizeof(*rows)), *r;
	va_list ap;
	int n;

	if (!rows)
		return -ENOMEM;
	h->checks = rows;
	r = &rows[h->nchecks++];
	*r = (struct host_check){.name = name, .state = state};
	va_start(ap, found);
	n = vasprintf(&r->found, found, ap);
	va_end(ap);
	if (n < 0)
		r->found = NULL;
	r->meaning = meaning ? strdup(meaning) : NULL;
	r->remedy = remedy ? strdup(remedy) : NULL;
	if (!r->found || (meaning && !r->meaning) || (remedy && !r->remedy))
		return -ENOMEM;
	return 0;
}

/* For a trial that may not have been possible at all. */
static const char *outcome(int err)
{
	if (err == -ENODATA)
		return "armed, but hits were not seen";
	return err ? strerror(-err) : "works";
}

static int kernel_rows(struct host *h, const struct host_trials *t)
{
	bool old = h->version < KERNEL_VERSION(5, 15, 0);
	int err;

	err = row(h, "kernel", old ? HOST_FAIL : HOST_OK,
		  old ? "too old: probes cannot carry cookies" : NULL,
		  old ? "Linux 5.15 or later; 6.6 and 6.18 bring cheaper probes" : NULL, "Linux %s",
		  h->kernel);
	err = err
		  ?: row(h, "BTF", h->btf ? HOST_OK : HOST_FAIL,
			 h->btf ? "programs fit this kernel's structures"
				: "programs cannot be fitted to this kernel",
			 h->btf ? NULL : "a kernel with CONFIG_DEBUG_INFO_BTF=y", "%s",
			 h->btf ? "/sys/kernel/btf/vmlinux" : "absent");
	err = err
		  ?: row(h, "BPF programs", h->bpf_error ? HOST_FAIL : HOST_OK,
			 h->bpf_error ? "nothing can be traced" : NULL,
			 !h->bpf_error ? NULL
			 : h->cap_bpf && h->cap_perfmon
			     ? "look for a seccomp filter or security module"
			     : "run as root (sudo)",
			 "%s", outcome(h->bpf_error));
	err =
	    err
		?: row(h, "tracing programs", t->tracing ? HOST_FAIL : HOST_OK,
		       "the frame stack of each thread, notices of exec and exit, open spans",
		       t->tracing ? "Linux 5.15 or later with BTF, and the capabilities below"
				  : NULL,
		       "task storage, ring buffer, tp_btf, task iterator: %s", outcome(t->tracing));
	return err;
}

static int cap_rows(struct host *h)
{
	static const char *const all = "run as root (sudo), or setcap on the qbpf binary";
	int err;

	err =
	    row(h, "user namespace", h->init_userns ? HOST_OK : HOST_FAIL,
		h->init_userns ? NULL : "capabilities of a container's own namespace do not count",
		h->init_userns ? NULL : "run qbpf on the host, or in a container without userns",
		"%s", h->init_userns ? "the initial one" : "not the initial one");
	err = err
		  ?: row(h, "CAP_BPF", h->cap_bpf ? HOST_OK : HOST_FAIL, "loads programs and maps",
			 h->cap_bpf ? NULL : all, "%s", h->cap_bpf ? "held" : "missing");
	err = err
		  ?: row(h, "CAP_PERFMON", h->cap_perfmon ? HOST_OK : HOST_FAIL,
			 "attaches probes, reads a traced process's arguments",
			 h->cap_perfmon ? NULL : all, "%s", h->cap_perfmon ? "held" : "missing");
	err = err
		  ?: row(h, "CAP_SYS_PTRACE", h->cap_sys_ptrace ? HOST_OK : HOST_WARN,
			 h->cap_sys_ptrace ? "reads the maps of any user's process"
					   : "only processes of the same user can be attached to",
			 h->cap_sys_ptrace ? NULL : all, "%s",
			 h->cap_sys_ptrace ? "held" : "missing");
	err =
	    err
		?: row(h, "CAP_CHECKPOINT_RESTORE", h->cap_checkpoint_restore ? HOST_OK : HOST_WARN,
		       h->cap_checkpoint_restore
			   ? "opens the very files that are mapped (map_files)"
			   : "files are opened by path: one that was replaced or deleted since "
			     "it was mapped cannot be probed",
		       h->cap_checkpoint_restore ? NULL : all, "%s",
		       h->cap_checkpoint_restore ? "held" : "missing");
	return err;
}

static int lockdown_rows(struct host *h, const struct host_trials *t)
{
	bool guard = h->guard_possible, confidential = t->read_kernel == -EPERM && h->cap_bpf;
	int err;

	err = row(h, "lockdown", confidential ? HOST_WARN : HOST_OK,
		  confidential ? "programs may not read the kernel's memory"
		  : strcmp(h->lockdown, "none")
		      ? "programs may not write to a target: no --returns guard"
		      : NULL,
		  confidential ? "boot with lockdown=integrity or none" : NULL, "%s", h->lockdown);
	err =
	    err
		?: row(h, "exception guard", guard ? HOST_OK : HOST_WARN,
		       guard
			   ? "--returns guard can be asked for"
			   : "returns of functions that exceptions may cross are seen by their RET "
			     "instructions, which cost more",
		       guard		  ? NULL
		       : h->cap_sys_admin ? "needs lockdown none"
					  : "needs CAP_SYS_ADMIN and lockdown none",
		       "%s", guard ? "possible" : "not possible");
	return err;
}

static int uprobe_rows(struct host *h, const struct host_trials *t)
{
	bool some = !t->perf_uprobe || !t->multi_uprobe;
	bool rewrite = t->nop5 ? h->nop5_optimised : t->nop5_rewritten;
	int err;

	err = row(h, "perf-event uprobes",
		  !t->perf_uprobe ? HOST_OK
		  : some	  ? HOST_WARN
				  : HOST_FAIL,
		  "one link a site: the fallback of uprobe_multi",
		  !t->perf_uprobe     ? NULL
		  : !h->cap_sys_admin ? "needs CAP_SYS_ADMIN: run as root (sudo)"
				      : "CONFIG_UPROBE_EVENTS=y",
		  "%s", outcome(t->perf_uprobe));
	err =
	    err
		?: row(h, "uprobe_multi",
		       !t->multi_uprobe ? HOST_OK
		       : some		? HOST_WARN
					: HOST_FAIL,
		       t->multi_uprobe ? "many sites are armed one by one; taking them away is slow"
				       : "many sites are armed at once",
		       t->multi_uprobe ? "Linux 6.6 or later" : NULL, "%s",
		       h->uprobe_multi ? outcome(t->multi_uprobe) : "absent");
	if (h->uprobe_multi && !t->multi_uprobe)
		err = err
			  ?: row(h, "uprobe_multi threads", t->multi_threads ? HOST_OK : HOST_WARN,
				 t->multi_threads
				     ? "its pid filter takes all threads of a process"
				     : "its pid filter takes one thread: qbpf filters by itself",
				 t->multi_threads ? NULL : "Linux 6.10 or later", "%s",
				 t->multi_threads ? "all seen" : "other threads not seen");
	err =
	    err
		?: row(h, "optimised uprobes", rewrite ? HOST_OK : HOST_WARN,
		       rewrite ? "a 5-byte nop costs a fraction of a breakpoint; foreign ones are "
				 "armed only where the red zone is proven empty"
			       : "each hit costs a breakpoint exception",
		       rewrite ? NULL : "Linux 6.18 or later",
		       "%s, first byte of a probed nop5: 0x%02x", rewrite ? "yes" : "no",
		       t->nop5_first);
	err = err
		  ?: row(h, "uretprobe syscall", HOST_OK,
			 h->uretprobe_syscall
			     ? "returns are cheaper; a target's own seccomp filter may "
			       "forbid them, then RET instructions are used"
			     : "returns cost a breakpoint exception",
			 NULL, "%s", h->uretprobe_syscall ? "yes" : "no (Linux 6.11)");
	return err;
}

/* A sysctl as a row, when this kernel has it. */
static int sysctl_row(struct host *h, const char *path, const char *name,
		      enum host_state (*judge)(const char *value), const char *meaning,
		      const char *remedy)
{
	char buf[64];
	enum host_state s;

	if (host_read_line(path, buf, sizeof(buf)))
		return 0;
	s = judge(buf);
	return row(h, name, s, meaning, s == HOST_OK ? NULL : remedy, "%s", buf);
}

static enum host_state always_ok(const char *v)
{
	(void)v;
	return HOST_OK;
}

static enum host_state warn_unless_0(const char *v)
{
	return strcmp(v, "0") ? HOST_WARN : HOST_OK;
}

static enum host_state warn_if_0(const char *v)
{
	return strcmp(v, "0") ? HOST_OK : HOST_WARN;
}

static int setting_rows(struct host *h)
{
	bool tsc = !strcmp(h->clocksource, "tsc");
	struct rlimit files = {0};
	int err;

	err = row(h, "clock source", tsc ? HOST_OK : HOST_WARN,
		  tsc ? NULL : "reading the clock is slow, which every span pays twice",
		  tsc ? NULL : "a host whose kernel trusts the TSC", "%s", h->clocksource);
	err = err
		  ?: sysctl_row(h, "/proc/sys/net/core/bpf_jit_enable", "bpf_jit_enable", warn_if_0,
				"programs are compiled to machine code when it is not 0",
				"sysctl net.core.bpf_jit_enable=1");
	err = err
		  ?: sysctl_row(h, "/proc/sys/kernel/bpf_stats_enabled", "bpf_stats_enabled",
				warn_unless_0, "measuring every BPF program makes each hit dearer",
				"sysctl kernel.bpf_stats_enabled=0");
	err = err
		  ?: sysctl_row(h, "/proc/sys/kernel/unprivileged_bpf_disabled",
				"unprivileged_bpf_disabled", always_ok,
				"does not matter to qbpf, which needs the capabilities", NULL);
	err = err
		  ?: sysctl_row(h, "/proc/sys/kernel/perf_event_paranoid", "perf_event_paranoid",
				always_ok, "does not matter to whoever holds CAP_PERFMON", NULL);
	err = err
		  ?: sysctl_row(h, "/proc/sys/kernel/yama/ptrace_scope", "ptrace_scope", always_ok,
				"does not matter to whoever holds CAP_SYS_PTRACE", NULL);
	getrlimit(RLIMIT_NOFILE, &files);
	err = err
		  ?: row(h, "open files",
			 h->uprobe_multi || files.rlim_max >= 4096 ? HOST_OK : HOST_WARN,
			 h->uprobe_multi ? "a link takes one for all sites of an object"
					 : "without uprobe_multi a site takes two",
			 h->uprobe_multi || files.rlim_max >= 4096 ? NULL : "ulimit -Hn 65536",
			 "%llu", (unsigned long long)files.rlim_max);
	return err;
}

int host_checks__fill(struct host *h, const struct host_trials *t)
{
	int err = kernel_rows(h, t);

	err = err ?: cap_rows(h);
	err = err ?: lockdown_rows(h, t);
	err = err ?: uprobe_rows(h, t);
	return err ?: setting_rows(h);
}

int host__probe_full(struct host **out, struct err *e)
{
	struct host_trials t;
	struct host *h;
	int err = host__probe(&h, e);

	if (err)
		return err;
	host_trials__run(h, &t);
	if (!t.nop5)
		h->nop5_optimised = t.nop5_rewritten;
	if (!t.multi_uprobe)
		h->uprobe_multi_pid_ok = t.multi_threads;
	h->tp_btf = !t.tracing;
	err = host_checks__fill(h, &t);
	if (err) {
		host__free(h);
		return err_set(e, err, "out of memory");
	}
	*out = h;
	return 0;
}

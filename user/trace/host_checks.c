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
#include "trace/host_cuda.h"

#define ROOT_OR_SETCAP "run as root (sudo), or setcap on the qbpf binary"

/* What a row means when it is ok and when it is not, and the remedy for the latter. */
static const struct advice {
	const char *name, *good, *bad, *remedy;
} advices[] = {
    {"kernel", NULL, "too old: probes cannot carry cookies",
     "Linux 5.17 or later; 6.6 and 6.18 bring cheaper probes"},
    {"BTF", "programs fit this kernel's structures", "programs cannot be fitted to this kernel",
     "a kernel with CONFIG_DEBUG_INFO_BTF=y"},
    {"BPF programs", NULL, "nothing can be traced",
     "run as root (sudo); as root, look for a seccomp filter or a security module"},
    {"tracing programs", "the frame stack of each thread, notices of exec and exit, open spans",
     "no frame stacks, no notices of exec and exit: nothing can be traced",
     "Linux 5.17 or later with BTF, and the capabilities below"},
    {"user namespace", NULL, "capabilities of a container's own namespace do not count",
     "run qbpf on the host, or in a container without one"},
    {"CAP_BPF", "loads programs and maps", "loads programs and maps", ROOT_OR_SETCAP},
    {"CAP_PERFMON", "attaches probes, reads a traced process's arguments",
     "attaches probes, reads a traced process's arguments", ROOT_OR_SETCAP},
    {"CAP_SYS_PTRACE", "reads the maps of any user's process",
     "only processes of the same user can be attached to", ROOT_OR_SETCAP},
    {"CAP_CHECKPOINT_RESTORE", "opens the very files that are mapped (map_files)",
     "files are opened by path: one that was replaced or deleted since it was mapped cannot be "
     "probed",
     ROOT_OR_SETCAP},
    {"lockdown", NULL, "programs may not read the kernel's memory",
     "boot with lockdown=integrity or none"},
    {"exception guard", "--returns guard can be asked for",
     "returns of functions that exceptions may cross are seen by their RET instructions, which "
     "cost more",
     "needs CAP_SYS_ADMIN and lockdown none"},
    {"perf-event uprobes", "one link a site: the fallback of uprobe_multi",
     "one link a site: the fallback of uprobe_multi",
     "run as root (sudo) on a kernel with CONFIG_UPROBE_EVENTS=y"},
    {"uprobe_multi", "many sites are armed at once",
     "many sites are armed one by one; taking them away is slow", "Linux 6.6 or later"},
    {"uprobe_multi threads", "its pid filter takes all threads of a process",
     "its pid filter takes one thread: perf-event uprobes are used", "Linux 6.10 or later"},
    {"optimised uprobes",
     "a 5-byte nop costs a fraction of a breakpoint where those are dear; foreign ones are armed "
     "only where the red zone is proven empty",
     "each hit costs a breakpoint exception", "Linux 6.18 or later"},
    {"uretprobe syscall",
     "returns are cheaper; where a target's own seccomp filter forbids them, RET instructions "
     "are used",
     "returns cost a breakpoint exception", "Linux 6.11 or later"},
    {"clock source", NULL, "reading the clock is slow, which every span pays twice",
     "a host whose kernel trusts the TSC"},
    {"bpf_jit_enable", "programs are compiled to machine code",
     "programs are interpreted: each hit is dearer", "sysctl net.core.bpf_jit_enable=1"},
    {"bpf_stats_enabled", NULL, "measuring every BPF program makes each hit dearer",
     "sysctl kernel.bpf_stats_enabled=0"},
    {"unprivileged_bpf_disabled", "does not matter to whoever holds CAP_BPF", NULL, NULL},
    {"perf_event_paranoid", "does not matter to whoever holds CAP_PERFMON", NULL, NULL},
    {"ptrace_scope", "does not matter to whoever holds CAP_SYS_PTRACE", NULL, NULL},
    {"CUDA agent",
     "run has CUDA's driver load it, attach --cuda agent brings it in: what the GPU did is told",
     "CUDA's calls are seen by uprobes alone, and nothing of the GPU",
     "make CUDA_HOME=... and make install, where CUDA's headers are; or name it by QBPF_AGENT"},
    {"CUDA driver", "programs can use a GPU; the CUPTI must be of the same CUDA",
     "programs cannot use the GPU", "install the libraries that belong to the kernel's driver"},
    {"CUPTI", "what the agent asks; a program that brings its own (a Python wheel) has that one",
     "the agent cannot work in programs that bring none of their own: CUDA's calls are seen by "
     "uprobes there, and nothing of the GPU",
     "install the CUPTI of the driver's CUDA, or set CUDA_HOME, where programs start, to a toolkit "
     "that has it"},
    {"attach --cuda agent", "the agent can be brought into a process of any user",
     "the agent cannot be brought into a process that runs: its CUDA calls are seen by uprobes, "
     "and "
     "nothing of the GPU",
     ROOT_OR_SETCAP "; in a container, ptrace has to be allowed"},
    {"open files", NULL, "without uprobe_multi each site takes two", "ulimit -Hn 65536"},
};

/* Rows as they are made; the first error stays. */
struct maker {
	struct host *h;
	int err;
};

static char *copy(struct maker *m, const char *text)
{
	char *s = text ? strdup(text) : NULL;

	if (text && !s)
		m->err = -ENOMEM;
	return s;
}

static const struct advice *advice_of(const char *name)
{
	static const struct advice none = {0};

	for (size_t i = 0; i < sizeof(advices) / sizeof(*advices); i++)
		if (!strcmp(advices[i].name, name))
			return &advices[i];
	return &none;
}

/* A row with a meaning and a remedy of its own. */
static void put_row(struct maker *m, const char *name, enum host_state state, char *found,
		    const char *meaning, const char *remedy)
{
	struct host *h = m->h;
	struct host_check *rows =
	    found ? reallocarray(h->checks, h->nchecks + 1, sizeof(*rows)) : NULL;

	if (!rows) {
		free(found);
		m->err = -ENOMEM;
		return;
	}
	h->checks = rows;
	rows[h->nchecks++] = (struct host_check){
	    .name = name,
	    .state = state,
	    .found = found,
	    .meaning = copy(m, meaning),
	    .remedy = copy(m, remedy),
	};
}

static void __attribute__((format(printf, 4, 5)))
row(struct maker *m, const char *name, enum host_state state, const char *found, ...)
{
	const struct advice *a = advice_of(name);
	va_list ap;
	char *text;

	if (m->err)
		return;
	va_start(ap, found);
	if (vasprintf(&text, found, ap) < 0)
		text = NULL;
	va_end(ap);
	put_row(m, name, state, text, state == HOST_OK ? a->good : a->bad,
		state == HOST_OK ? NULL : a->remedy);
}

/* For a trial that may not have been possible at all. */
static const char *outcome(int err)
{
	if (err == -ENODATA)
		return "armed, but hits were not seen";
	return err ? strerror(-err) : "works";
}

/* A trial that this user may not make says nothing about the kernel. */
static bool not_permitted(const struct host *h, int err)
{
	return (err == -EPERM || err == -EACCES) && !(h->cap_bpf && h->cap_perfmon);
}

static void unknown_row(struct maker *m, const char *name)
{
	if (!m->err)
		put_row(m, name, HOST_WARN, strdup("not known without CAP_BPF and CAP_PERFMON"),
			NULL, ROOT_OR_SETCAP);
}

/* The row of a trial; `bad` is its state when it failed. */
static void trial_row(struct maker *m, const char *name, int err, enum host_state bad)
{
	if (not_permitted(m->h, err))
		unknown_row(m, name);
	else
		row(m, name, err ? bad : HOST_OK, "%s", outcome(err));
}

static enum host_state or_fail(bool ok)
{
	return ok ? HOST_OK : HOST_FAIL;
}

static enum host_state or_warn(bool ok)
{
	return ok ? HOST_OK : HOST_WARN;
}

static const char *held(bool have)
{
	return have ? "held" : "missing";
}

static void kernel_rows(struct maker *m, const struct host_trials *t)
{
	const struct host *h = m->h;

	row(m, "kernel", or_fail(h->version >= KERNEL_VERSION(5, 17, 0)), "Linux %s", h->kernel);
	row(m, "BTF", or_fail(h->btf), "%s", h->btf ? "/sys/kernel/btf/vmlinux" : "absent");
	trial_row(m, "BPF programs", h->bpf_error, HOST_FAIL);
	if (not_permitted(h, t->tracing))
		unknown_row(m, "tracing programs");
	else
		row(m, "tracing programs", or_fail(!t->tracing),
		    "task storage, ring buffer, tp_btf, task iterator: %s", outcome(t->tracing));
}

static void privilege_rows(struct maker *m, const struct host_trials *t)
{
	const struct host *h = m->h;

	row(m, "user namespace", or_fail(h->init_userns), "%s",
	    h->init_userns ? "the initial one" : "not the initial one");
	row(m, "CAP_BPF", or_fail(h->cap_bpf), "%s", held(h->cap_bpf));
	row(m, "CAP_PERFMON", or_fail(h->cap_perfmon), "%s", held(h->cap_perfmon));
	row(m, "CAP_SYS_PTRACE", or_warn(h->cap_sys_ptrace), "%s", held(h->cap_sys_ptrace));
	row(m, "CAP_CHECKPOINT_RESTORE", or_warn(h->cap_checkpoint_restore), "%s",
	    held(h->cap_checkpoint_restore));
	/* Without the capability every load fails so. */
	if (!strcmp(h->lockdown, "unknown") && !m->err)
		put_row(m, "lockdown", HOST_WARN, strdup("unknown"),
			"its state is in securityfs, which could not be read",
			"run as root (sudo)");
	else
		row(m, "lockdown", or_warn(t->read_kernel != -EPERM || !h->cap_bpf), "%s",
		    h->lockdown);
	row(m, "exception guard", or_warn(h->guard_possible), "%s",
	    h->guard_possible ? "possible" : "not possible");
}

static void uprobe_rows(struct maker *m, const struct host_trials *t)
{
	const struct host *h = m->h;
	/* One of the two ways is enough. */
	enum host_state lacks = t->perf_uprobe && t->multi_uprobe ? HOST_FAIL : HOST_WARN;
	bool rewrite = t->nop5 ? h->nop5_optimised : t->nop5_rewritten;

	trial_row(m, "perf-event uprobes", t->perf_uprobe, lacks);
	/* Whether the kernel has it is asked with a program: no program, no answer. */
	if (not_permitted(h, h->bpf_error))
		unknown_row(m, "uprobe_multi");
	else if (!h->uprobe_multi)
		row(m, "uprobe_multi", lacks, "absent");
	else
		trial_row(m, "uprobe_multi", t->multi_uprobe, lacks);
	if (!t->multi_uprobe)
		row(m, "uprobe_multi threads", or_warn(t->multi_threads), "%s",
		    t->multi_threads ? "all seen" : "other threads not seen");
	if (t->nop5)
		row(m, "optimised uprobes", or_warn(rewrite), "%s (not tried)",
		    rewrite ? "yes" : "no");
	else
		row(m, "optimised uprobes", or_warn(rewrite),
		    "%s, first byte of a probed nop5: 0x%02x", rewrite ? "yes" : "no",
		    t->nop5_first);
	row(m, "uretprobe syscall", or_warn(h->uretprobe_syscall), "%s",
	    h->uretprobe_syscall ? "yes" : "no");
}

/* A setting, when this kernel has it. One value may be unwanted. */
static void setting_row(struct maker *m, const char *folder, const char *name, const char *unwanted)
{
	char path[128], value[64];

	snprintf(path, sizeof(path), "/proc/sys/%s/%s", folder, name);
	if (!host_read_line(path, value, sizeof(value)))
		row(m, name, or_warn(!unwanted || strcmp(value, unwanted) != 0), "%s", value);
}

static void setting_rows(struct maker *m)
{
	const struct host *h = m->h;
	struct rlimit files = {0};

	row(m, "clock source", or_warn(!strcmp(h->clocksource, "tsc")), "%s", h->clocksource);
	setting_row(m, "net/core", "bpf_jit_enable", "0");
	setting_row(m, "kernel", "bpf_stats_enabled", "1");
	setting_row(m, "kernel", "unprivileged_bpf_disabled", NULL);
	setting_row(m, "kernel", "perf_event_paranoid", NULL);
	setting_row(m, "kernel/yama", "ptrace_scope", NULL);
	getrlimit(RLIMIT_NOFILE, &files);
	row(m, "open files", or_warn(h->uprobe_multi || files.rlim_max >= 4096), "%llu",
	    (unsigned long long)files.rlim_max);
}

static void driver_row(struct maker *m, const struct host_cuda *c)
{
	const struct cuda_library *d = &c->driver;

	if (!*d->path && *d->error)
		row(m, "CUDA driver", HOST_WARN, "found, cannot be loaded: %s", d->error);
	else if (!*d->path && c->kernel_driver)
		row(m, "CUDA driver", HOST_WARN, "the kernel's is loaded, libcuda.so.1 not found");
	else if (!*d->path)
		put_row(m, "CUDA driver", HOST_OK, strdup("none"),
			"no program can use an NVIDIA GPU here, unless a container has a driver of "
			"its own",
			NULL);
	else if (strstr(d->path, "/stubs/"))
		put_row(m, "CUDA driver", HOST_WARN, strdup(d->path),
			"the toolkit's stub: programs that find it cannot use the GPU",
			"take the stubs folder off LD_LIBRARY_PATH");
	else if (!d->version)
		row(m, "CUDA driver", HOST_WARN, "it does not tell its version, %s", d->path);
	else
		row(m, "CUDA driver", HOST_OK, "of CUDA %d.%d, %s", d->version / 1000,
		    d->version % 1000 / 10, d->path);
}

static void cupti_row(struct maker *m, const struct host_cuda *c)
{
	const struct cuda_library *d = &c->driver, *p = &c->cupti;

	if (*p->path && c->cupti_fits)
		row(m, "CUPTI", HOST_OK, "version %d, %s", p->version, p->path);
	else if (*p->error)
		row(m, "CUPTI", HOST_WARN, "found, cannot be loaded: %s", p->error);
	else if (*p->path)
		row(m, "CUPTI", HOST_WARN, "none of CUDA %d, but version %d, %s", d->version / 1000,
		    p->version, p->path);
	else if (!*d->path && !*d->error && !c->kernel_driver)
		put_row(m, "CUPTI", HOST_OK, strdup("none"), "not needed without a GPU", NULL);
	else
		row(m, "CUPTI", HOST_WARN, "not found");
}

static void ptrace_row(struct maker *m, const struct host_cuda *c)
{
	static const char name[] = "attach --cuda agent";

	if (m->err)
		return;
	if (c->ptrace && c->ptrace_scope == 3)
		put_row(m, name, HOST_WARN, strdup("not possible: ptrace_scope is 3"),
			advice_of(name)->bad,
			"kernel.yama.ptrace_scope below 3, from the next boot on");
	else if (c->ptrace && c->ptrace_scope > 0)
		row(m, name, HOST_WARN, "ptrace: %s, ptrace_scope is %d", strerror(-c->ptrace),
		    c->ptrace_scope);
	else if (c->ptrace)
		row(m, name, HOST_WARN, "ptrace: %s", strerror(-c->ptrace));
	else if (m->h->cap_sys_ptrace)
		row(m, name, HOST_OK, "ptrace works");
	else
		put_row(m, name, HOST_OK, strdup("ptrace works"),
			"the agent can be brought into processes of this user", NULL);
}

static void cuda_rows(struct maker *m, const struct host_cuda *c)
{
	const char *named = getenv("QBPF_AGENT");

	if (*c->agent)
		row(m, "CUDA agent", HOST_OK, "%s", c->agent);
	else if (named && *named && !m->err)
		put_row(m, "CUDA agent", HOST_WARN, strdup(c->agent_error.text),
			advice_of("CUDA agent")->bad,
			"name libqbpf_cupti.so by QBPF_AGENT, or unset it");
	else
		row(m, "CUDA agent", HOST_WARN, "not installed");
	if (m->err)
		return;
	if (c->libraries_known) {
		driver_row(m, c);
		cupti_row(m, c);
	} else {
		put_row(
		    m, "CUDA driver", HOST_WARN,
		    strdup("not known: a process that loads libcuda and libcupti ends or hangs"),
		    NULL, "reinstall the driver's libraries");
	}
	ptrace_row(m, c);
}

int host_checks__fill(struct host *h, const struct host_trials *t, const struct host_cuda *c)
{
	struct maker m = {.h = h};

	kernel_rows(&m, t);
	privilege_rows(&m, t);
	uprobe_rows(&m, t);
	setting_rows(&m);
	cuda_rows(&m, c);
	return m.err;
}

int host__probe_full(struct host **out, struct err *e)
{
	struct host_trials t;
	struct host_cuda c;
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
	host_cuda__find(&c);
	err = host_checks__fill(h, &t, &c);
	if (err) {
		host__free(h);
		return err_set(e, err, "out of memory");
	}
	*out = h;
	return 0;
}

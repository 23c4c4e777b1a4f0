// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The facts about this host that a session needs before it arms anything. Features are found
 * by asking the kernel for them, never by its version where asking is possible: distributions
 * carry features back. All of it together costs about a millisecond, because it stands between
 * the command and the first probe; what needs a trial on a live child is in host_trial.c.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/version.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/host_checks.h"

/* Linux 6.11 (commit 190fec72df4a) and 6.18 (ba2bfc97b462). */
#define NR_URETPROBE 335
#define NR_UPROBE    336
#define BTF_VMLINUX  "/sys/kernel/btf/vmlinux"

/* Without BPF cookies of perf events (82e6b1eee6a8) no probe can say which site it is. */
#define OLDEST_KERNEL "5.17" /* bpf_loop */

/* First line of a small file of proc or sysfs, without its newline. */
int host_read_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* The value behind "key<blanks>:" in such a line, without its newline; NULL: another key. */
static char *value_in(char *line, const char *key)
{
	char *v = line + strlen(key);

	if (strncmp(line, key, strlen(key)) != 0)
		return NULL;
	v += strspn(v, " \t");
	if (*v != ':')
		return NULL;
	v += 1 + strspn(v + 1, " \t");
	v[strcspn(v, "\n")] = '\0';
	return v;
}

/* The value of a key in a file of such lines, malloc'ed; NULL when it is not there. */
static char *value_of(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[512], *v = NULL;

	if (!f)
		return NULL;
	while (!v && fgets(line, sizeof(line), f))
		v = value_in(line, key);
	fclose(f);
	return v ? strdup(v) : NULL;
}

static int read_machine(struct host *h)
{
	char buf[256];
	struct utsname u;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int a = 0, b = 0, c = 0;

	if (uname(&u))
		return -errno;
	sscanf(u.release, "%u.%u.%u", &a, &b, &c);
	h->version = KERNEL_VERSION(a, b, c > 255 ? 255 : c);
	h->cpus = cpus > 0 ? (unsigned int)cpus : 1;
	h->kernel = strdup(u.release);
	h->cpu = value_of("/proc/cpuinfo", "model name");
	if (!h->cpu)
		h->cpu = strdup(u.machine);
	if (host_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", buf,
			   sizeof(buf)))
		strcpy(buf, "unknown");
	h->clocksource = strdup(buf);
	return h->kernel && h->cpu && h->clocksource ? 0 : -ENOMEM;
}

static void read_caps(struct host *h)
{
	char *text = value_of("/proc/self/status", "CapEff");
	uint64_t caps = text ? strtoull(text, NULL, 16) : 0;
	struct stat st;

	free(text);
	/* The inode of the initial user namespace is fixed: PROC_USER_INIT_INO. The kernel checks
	 * BPF's capabilities there, so those of a container's own namespace are worth nothing. */
	h->init_userns = stat("/proc/self/ns/user", &st) || st.st_ino == 0xeffffffdu;
	if (!h->init_userns)
		caps = 0;
	h->cap_sys_admin = caps >> CAP_SYS_ADMIN & 1;
	h->cap_sys_ptrace = caps >> CAP_SYS_PTRACE & 1;
	h->cap_bpf = h->cap_sys_admin || (caps >> CAP_BPF & 1);
	h->cap_perfmon = h->cap_sys_admin || (caps >> CAP_PERFMON & 1);
	h->cap_checkpoint_restore = h->cap_sys_admin || (caps >> CAP_CHECKPOINT_RESTORE & 1);
}

/* "none [integrity] confidentiality": the word in brackets. */
static const char *lockdown_word(const char *text)
{
	static const char *const words[] = {"none", "integrity", "confidentiality"};
	const char *at = strchr(text, '[');

	for (size_t i = 0; at && i < sizeof(words) / sizeof(*words); i++)
		if (!strncmp(at + 1, words[i], strlen(words[i])))
			return words[i];
	return "unknown";
}

/*
 * The state lies in securityfs, which containers and small systems do not mount. An unattached
 * mount of it (fsmount, 5.2) shows it without a mount that anyone else could see.
 */
static const char *read_lockdown(void)
{
	char buf[128] = "";
	int fs, mnt = -1, fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	bool absent = false;
	ssize_t n;

	if (fd < 0) {
		fs = fsopen("securityfs", FSOPEN_CLOEXEC);
		if (fs >= 0 && !fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
			mnt = fsmount(fs, FSMOUNT_CLOEXEC, 0);
		if (mnt >= 0) {
			fd = openat(mnt, "lockdown", O_RDONLY | O_CLOEXEC);
			absent = fd < 0 && errno == ENOENT;
			close(mnt);
		}
		if (fs >= 0)
			close(fs);
	}
	if (absent)
		return "none"; /* the kernel has no lockdown module, or it is not in use */
	if (fd < 0)
		return "unknown";
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	return n > 0 ? lockdown_word(buf) : "unknown";
}

/*
 * uprobe_multi (89ae89f53d20, 6.6) is there when a link on a directory fails with EBADF: older
 * kernels do not know the attach type. Its pid filter was a filter of one thread until
 * 46ba0e49b642 (6.10, in 6.6-stable too), which also made a negative pid EINVAL.
 */
static void try_uprobe_multi(struct host *h, int prog_fd)
{
	unsigned long offset = 0;
	LIBBPF_OPTS(bpf_link_create_opts, o);
	int fd;

	o.uprobe_multi.path = "/";
	o.uprobe_multi.offsets = &offset;
	o.uprobe_multi.cnt = 1;
	fd = bpf_link_create(prog_fd, -1, BPF_TRACE_UPROBE_MULTI, &o);
	h->uprobe_multi = fd == -EBADF;
	if (fd >= 0)
		close(fd);
	if (!h->uprobe_multi)
		return;
	o.uprobe_multi.pid = (uint32_t)-1;
	fd = bpf_link_create(prog_fd, -1, BPF_TRACE_UPROBE_MULTI, &o);
	h->uprobe_multi_pid_ok = fd == -EINVAL;
	if (fd >= 0)
		close(fd);
}

/*
 * The fallback, a perf event a site (the uprobe PMU, 4.17). 5.8 made CAP_PERFMON enough for it,
 * 6.13 and stable kernels since went back to CAP_SYS_ADMIN. Capabilities are looked at first,
 * the path after: a directory is EINVAL.
 */
static bool try_perf_uprobe(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	char buf[32];
	long fd;

	if (host_read_line("/sys/bus/event_source/devices/uprobe/type", buf, sizeof(buf)))
		return false;
	attr.type = (uint32_t)strtoul(buf, NULL, 10);
	attr.config1 = (uint64_t)(uintptr_t) "/";
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close((int)fd);
	return fd >= 0 || errno == EINVAL;
}

/* The smallest program: loads wherever BPF can be used at all. */
static int load_trivial(enum bpf_attach_type type)
{
	const struct bpf_insn insns[] = {
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "qbpf_try", "GPL", insns, 2, &o);
}

static void try_bpf(struct host *h)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	int fd = load_trivial(BPF_TRACE_UPROBE_MULTI);

	if (fd >= 0) {
		try_uprobe_multi(h, fd);
	} else {
		fd = load_trivial(0);
		h->bpf_error = fd < 0 ? fd : 0;
	}
	if (fd >= 0)
		close(fd);
	if (!h->bpf_error) {
		enum bpf_prog_type kprobe = BPF_PROG_TYPE_KPROBE;

		/* Task storage in tracing programs: a10787e6d58c, 5.13. Ring buffer: 457f44363a88,
		 * 5.8. Cookies: 7adfc6c9b315, 5.15. */
		h->task_storage =
		    libbpf_probe_bpf_helper(kprobe, BPF_FUNC_task_storage_get, NULL) == 1;
		h->attach_cookie =
		    libbpf_probe_bpf_helper(kprobe, BPF_FUNC_get_attach_cookie, NULL) == 1;
		h->ringbuf = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1;
	}
	libbpf_set_print(print);
}

/*
 * Outside of its trampoline the uretprobe syscall answers with SIGILL, and a kernel without it
 * with ENOSYS; hence a child. The uprobe syscall, which an optimised nop5 ends in, answers with
 * an errno in both cases.
 */
static bool has_uretprobe_syscall(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGILL, _exit); /* to die of it would be a line in the kernel's log */
		syscall(NR_URETPROBE);
		_exit(errno == ENOSYS ? 0 : SIGILL);
	}
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == SIGILL;
}

static bool has_uprobe_syscall(void)
{
#ifdef __x86_64__
	return syscall(NR_UPROBE) < 0 && errno != ENOSYS;
#else
	return false;
#endif
}

int host__probe(struct host **out, struct err *e)
{
	struct host *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return err_set(e, -ENOMEM, "out of memory");
	err = read_machine(h);
	if (err) {
		err_set(e, err, "cannot read what machine this is: %s", strerror(-err));
		goto out;
	}
	read_caps(h);
	h->lockdown = read_lockdown();
	h->btf = access(BTF_VMLINUX, R_OK) == 0;
	h->perf_uprobe = try_perf_uprobe();
	try_bpf(h);
	h->tp_btf = h->btf && h->version >= KERNEL_VERSION(5, 5, 0);
	/* When in doubt, yes: the red-zone rule then refuses more, and harms nobody. */
	h->nop5_optimised = has_uprobe_syscall() || h->version >= KERNEL_VERSION(6, 18, 0);
	h->uretprobe_syscall = has_uretprobe_syscall();
	h->guard_possible = h->cap_sys_admin && !strcmp(h->lockdown, "none");
	*out = h;
	return 0;
out:
	host__free(h);
	return err;
}

void host__free(struct host *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->nchecks; i++) {
		free(h->checks[i].found);
		free(h->checks[i].meaning);
		free(h->checks[i].remedy);
	}
	free(h->checks);
	free(h->kernel);
	free(h->cpu);
	free(h->clocksource);
	free(h);
}

void host__plan_kernel(const struct host *h, struct plan_kernel *k)
{
	*k = (struct plan_kernel){
	    .nop5_optimised = h->nop5_optimised,
	    .uprobe_multi = h->uprobe_multi,
	    .uretprobe_syscall = h->uretprobe_syscall,
	    .guard = h->guard_possible,
	};
}

int host__can_trace(const struct host *h, struct err *e)
{
	if (!h->init_userns)
		return err_set(e, -EPERM,
			       "inside a user namespace, whose capabilities do not count for BPF: "
			       "run qbpf on the host");
	if (!h->cap_bpf || !h->cap_perfmon)
		return err_set(
		    e, -EPERM,
		    "missing %s%s%s: run as root (sudo), or `setcap "
		    "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore+ep` on qbpf",
		    h->cap_bpf ? "" : "CAP_BPF", h->cap_bpf || h->cap_perfmon ? "" : " and ",
		    h->cap_perfmon ? "" : "CAP_PERFMON");
	if (h->bpf_error == -EPERM || h->bpf_error == -EACCES)
		return err_set(e, -EPERM,
			       "the kernel refuses BPF programs although the capabilities are held "
			       "(a container's seccomp filter, or a security module)");
	if (h->bpf_error)
		return err_set(e, -EOPNOTSUPP, "this kernel runs no BPF programs: %s",
			       strerror(-h->bpf_error));
	if (!h->btf)
		return err_set(e, -EOPNOTSUPP,
			       "this kernel has no BTF (" BTF_VMLINUX
			       "): it needs CONFIG_DEBUG_INFO_BTF=y");
	if (!h->task_storage || !h->ringbuf || !h->attach_cookie)
		return err_set(e, -EOPNOTSUPP,
			       "Linux %s lacks %s: qbpf needs " OLDEST_KERNEL " or later",
			       h->kernel,
			       !h->task_storage ? "BPF task storage"
			       : !h->ringbuf	? "the BPF ring buffer"
						: "BPF cookies");
	if (!h->uprobe_multi && !h->perf_uprobe && !h->cap_sys_admin)
		return err_set(
		    e, -EPERM,
		    "missing CAP_SYS_ADMIN: this kernel has no uprobe_multi (Linux 6.6), and "
		    "probes as perf events need it: run as root (sudo)");
	if (!h->uprobe_multi && !h->perf_uprobe)
		return err_set(e, -EOPNOTSUPP,
			       "this kernel has no uprobes: it needs CONFIG_UPROBE_EVENTS=y");
	return 0;
}

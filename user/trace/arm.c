// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the plan's sites to BPF links; see arm.h. */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "log.h"
#include "trace/arm.h"

#ifndef ENOTSUPP
#define ENOTSUPP 524 /* the kernel's own, for an instruction that it does not probe */
#endif

struct arm_link {
	int fd;	       /* of the BPF link, -1 once it is closed */
	uint32_t span; /* per_span only, else 0 */
};

struct armer {
	struct armer_opts o;
	struct arm_link *links;
	size_t nlinks, cap;
	int perf_type, perf_ret_bit;
	int fatal; /* an errno that would meet every further site as well */
};

/* One batch: sites of one object that share program, pid and, with per_span, span. */
struct batch {
	struct plan *plan;
	uint32_t *sites; /* indices */
	pid_t pid;	 /* 0: all */
	int fd;		 /* of the object */
	bool ret;
	bool cuda;
};

void arm_fd_path(int fd, char buf[32])
{
	snprintf(buf, 32, "/proc/self/fd/%d", fd);
}

const char *arm_strerror(int err, bool has_semaphore)
{
	switch (err < 0 ? -err : err) {
	case EINVAL:
		return has_semaphore
			   ? "the kernel refused it (EINVAL): another tracer holds this site "
			     "with another semaphore, or the file cannot be probed"
			   : "the kernel refused it (EINVAL): not a place that can be probed";
	case ENOTSUPP:
	case EOPNOTSUPP:
		return "the kernel does not probe this instruction (ENOTSUPP)";
	case EPERM:
	case EACCES:
		return "not permitted: needs CAP_BPF and CAP_PERFMON, or root";
	case ENOENT:
		return "the file is gone or cannot be probed (ENOENT)";
	case EIO:
		return "the file cannot be read by the kernel there (EIO)";
	case EMFILE:
		return "too many open files: raise `ulimit -n`";
	case ESRCH:
		return "the target has ended";
	default:
		return strerror(err < 0 ? -err : err);
	}
}

struct armer *armer__new(const struct armer_opts *o)
{
	struct armer *a = calloc(1, sizeof(*a));
	struct rlimit rl;

	if (!a)
		return NULL;
	a->o = *o;
	/* A perf-event link is a descriptor or two a site. */
	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	return a;
}

const struct armer_opts *armer__opts(const struct armer *a)
{
	return &a->o;
}

static void link_close(struct arm_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

/*
 * Closing a probe waits for the kernel's readers, some tens of ms each with perf events. Waits
 * that run side by side end together.
 */
#define CLOSERS 64

struct closer {
	struct armer *a;
	size_t *next; /* shared: links[0 .. *next) are still to be closed */
};

static void *close_links(void *arg)
{
	struct closer *c = arg;

	for (;;) {
		size_t left = __atomic_load_n(c->next, __ATOMIC_RELAXED);

		do {
			if (!left)
				return NULL;
		} while (!__atomic_compare_exchange_n(c->next, &left, left - 1, true,
						      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
		link_close(&c->a->links[left - 1]);
	}
}

void armer__set_cuda(struct armer *a, struct bpf_program *entry, struct bpf_program *ret)
{
	a->o.on_cuda = entry;
	a->o.on_cuda_return = ret;
}

void armer__free(struct armer *a)
{
	size_t next, n = 0;
	pthread_t threads[CLOSERS];
	struct closer c = {.a = a, .next = &next};

	if (!a)
		return;
	/* Newest first: begins were armed after ends. */
	next = a->nlinks;
	while (n < CLOSERS && n + 1 < a->nlinks &&
	       !pthread_create(&threads[n], NULL, close_links, &c))
		n++;
	close_links(&c);
	while (n)
		pthread_join(threads[--n], NULL);
	free(a->links);
	free(a);
}

static int armer_keep(struct armer *a, int fd, uint32_t span)
{
	if (a->nlinks == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 64;
		struct arm_link *l = realloc(a->links, cap * sizeof(*l));

		if (!l)
			return -ENOMEM;
		a->links = l;
		a->cap = cap;
	}
	a->links[a->nlinks++] = (struct arm_link){.fd = fd, .span = span};
	return 0;
}

static uint64_t site_cookie(const struct plan *p, uint32_t idx)
{
	const struct plan_site *s = &p->sites[idx];
	enum qbpf_role role = s->role;

	if (role == QBPF_ROLE_ENTRY && p->spans[s->span - 1].way == RET_INSNS)
		role = QBPF_ROLE_ENTRY_INSN;
	return QBPF_COOKIE(s->span, role, idx + 1);
}

/* What one uprobe_multi link takes, n long each. */
struct multi_sites {
	unsigned long *offs, *refs;
	__u64 *cookies;
	size_t n;
};

static int attach_multi_link(struct armer *a, const struct bpf_program *prog, int fd, pid_t pid,
			     const struct multi_sites *m, bool ret, uint32_t span)
{
	LIBBPF_OPTS(bpf_link_create_opts, lo);
	char path[32];
	int link, err;

	arm_fd_path(fd, path);
	lo.uprobe_multi.path = path;
	lo.uprobe_multi.offsets = m->offs;
	lo.uprobe_multi.ref_ctr_offsets = m->refs;
	lo.uprobe_multi.cookies = m->cookies;
	lo.uprobe_multi.cnt = m->n;
	lo.uprobe_multi.pid = pid;
	lo.uprobe_multi.flags = ret ? BPF_F_UPROBE_MULTI_RETURN : 0;
	link = bpf_link_create(bpf_program__fd(prog), 0, BPF_TRACE_UPROBE_MULTI, &lo);
	if (link < 0)
		return link;
	err = armer_keep(a, link, span);
	if (err)
		close(link);
	return err;
}

static const struct bpf_program *program_of(const struct armer *a, const struct batch *b)
{
	if (b->cuda)
		return b->ret ? a->o.on_cuda_return : a->o.on_cuda;
	return b->ret ? a->o.on_return : a->o.on_site;
}

static int attach_multi(struct armer *a, const struct batch *b, size_t from, size_t n)
{
	const struct bpf_program *prog = program_of(a, b);
	struct multi_sites m = {.n = n};
	bool any_ref = false;
	int err = -ENOMEM;

	m.offs = calloc(n, sizeof(*m.offs));
	m.refs = calloc(n, sizeof(*m.refs));
	m.cookies = calloc(n, sizeof(*m.cookies));
	if (!m.offs || !m.refs || !m.cookies)
		goto out;
	for (size_t i = 0; i < n; i++) {
		const struct plan_site *s = &b->plan->sites[b->sites[from + i]];

		m.offs[i] = s->off;
		m.refs[i] = s->sema_off;
		any_ref |= s->sema_off != 0;
		m.cookies[i] = site_cookie(b->plan, b->sites[from + i]);
	}
	if (!any_ref) {
		free(m.refs);
		m.refs = NULL;
	}
	err = attach_multi_link(a, prog, b->fd, b->pid, &m, b->ret,
				a->o.per_span ? b->plan->sites[b->sites[from]].span : 0);
out:
	free(m.offs);
	free(m.refs);
	free(m.cookies);
	return err;
}

/* A file of one number, perhaps behind "config:". */
static int read_sysfs_number(const char *path, int *out)
{
	FILE *f = fopen(path, "re");
	int n, c;

	if (!f)
		return -errno;
	do
		c = getc(f);
	while (c != EOF && (c < '0' || c > '9'));
	ungetc(c, f);
	n = fscanf(f, "%d", out);
	fclose(f);
	return n == 1 ? 0 : -EINVAL;
}

/* The kernel's number for uprobe events, and the bit that makes one a uretprobe. */
static int perf_uprobe_type(struct armer *a)
{
	int err;

	if (a->perf_type)
		return 0;
	err = read_sysfs_number("/sys/bus/event_source/devices/uprobe/format/retprobe",
				&a->perf_ret_bit);
	if (!err)
		err = read_sysfs_number("/sys/bus/event_source/devices/uprobe/type", &a->perf_type);
	return err;
}

#define REF_CTR_SHIFT 32 /* in perf_event_attr.config */

/*
 * One probe as a perf event with a BPF link on it. The link keeps the event, so one descriptor
 * is left. Not by libbpf: it opens three more files for each probe and loses the errno.
 */
static int attach_perf(struct armer *a, const struct bpf_program *prog, int fd, pid_t pid,
		       uint64_t off, uint64_t sema_off, uint64_t cookie, bool ret, uint32_t span)
{
	LIBBPF_OPTS(bpf_link_create_opts, lo, .perf_event.bpf_cookie = cookie);
	struct perf_event_attr attr = {.size = sizeof(attr)};
	int pfd = -1, link, err;
	char path[32];

	err = perf_uprobe_type(a);
	if (err)
		return err;
	arm_fd_path(fd, path);
	attr.type = a->perf_type;
	attr.config = (ret ? 1ull << a->perf_ret_bit : 0) | sema_off << REF_CTR_SHIFT;
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = off;
	if (sema_off >> 32)
		return -EOVERFLOW;
	pfd = syscall(SYS_perf_event_open, &attr, pid ? pid : -1, pid ? -1 : 0, -1,
		      PERF_FLAG_FD_CLOEXEC);
	if (pfd < 0)
		return -errno;
	link = bpf_link_create(bpf_program__fd(prog), pfd, BPF_PERF_EVENT, &lo);
	if (link < 0) {
		err = link;
		goto out;
	}
	if (ioctl(pfd, PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	else
		err = armer_keep(a, link, span);
	if (err)
		close(link);
out:
	close(pfd);
	return err;
}

static bool errno_is_fatal(int err)
{
	return err == -EPERM || err == -EACCES || err == -EMFILE || err == -ENOMEM || err == -ESRCH;
}

/* With several processes a site is armed if it is in any, and a refusal is never forgotten. */
static void site_result(struct plan_site *s, int err)
{
	if (err)
		s->arm_errno = err;
	else
		s->armed = true;
}

/* Arms b->sites[from .. from + n); halves the batch on refusal. */
static void batch_arm(struct armer *a, const struct batch *b, size_t from, size_t n)
{
	int err;

	if (!n)
		return;
	if (a->fatal) {
		for (size_t i = from; i < from + n; i++)
			b->plan->sites[b->sites[i]].arm_errno = a->fatal;
		return;
	}
	if (a->o.multi) {
		err = attach_multi(a, b, from, n);
		if (err && n > 1 && !errno_is_fatal(err)) {
			batch_arm(a, b, from, n / 2);
			batch_arm(a, b, from + n / 2, n - n / 2);
			return;
		}
		for (size_t i = from; i < from + n; i++) {
			struct plan_site *s = &b->plan->sites[b->sites[i]];

			site_result(s, err);
		}
		if (err && errno_is_fatal(err))
			a->fatal = err;
		return;
	}
	for (size_t i = from; i < from + n; i++) {
		struct plan_site *s = &b->plan->sites[b->sites[i]];

		err = a->fatal ? a->fatal
			       : attach_perf(a, program_of(a, b), b->fd, b->pid, s->off,
					     s->sema_off, site_cookie(b->plan, b->sites[i]), b->ret,
					     a->o.per_span ? s->span : 0);
		site_result(s, err);
		if (err && errno_is_fatal(err))
			a->fatal = err;
	}
}

/*
 * Ends before begins: a target that runs while it is being armed then shows orphan ends, which
 * are counted and dropped, never begins whose end went by unseen.
 */
static int role_rank(enum qbpf_role r)
{
	switch (r) {
	case QBPF_ROLE_RETURN:
		return 0;
	case QBPF_ROLE_END:
	case QBPF_ROLE_KEY_END:
	case QBPF_ROLE_RET_INSN:
	case QBPF_ROLE_TAIL_JUMP:
		return 1;
	default:
		return 2;
	}
}

struct sort_key {
	uint32_t idx, object, span;
	int rank;
	bool cuda;
};

static int by_batch(const void *x, const void *y)
{
	const struct sort_key *a = x, *b = y;

	if (a->span != b->span)
		return a->span < b->span ? -1 : 1;
	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->cuda != b->cuda)
		return a->cuda - b->cuda;
	return a->idx < b->idx ? -1 : a->idx > b->idx;
}

static bool site_may_be_armed(const struct plan *p, const struct plan_site *s)
{
	if (s->armed || s->arm_errno)
		return false;
	if (s->verdict != VERDICT_ARM && s->verdict != VERDICT_RELOCATED)
		return false;
	return s->span && p->spans[s->span - 1].armed;
}

static void arm_sorted(struct armer *a, struct plan *p, const struct target *t,
		       const struct sort_key *keys, size_t n, pid_t pid)
{
	uint32_t *sites = malloc((n ? n : 1) * sizeof(*sites));
	struct batch b = {.plan = p, .sites = sites, .pid = pid};
	size_t i = 0, j;

	if (!sites)
		return;
	while (i < n) {
		bool ret = keys[i].rank == 0;

		for (j = i;
		     j < n && keys[j].object == keys[i].object && keys[j].span == keys[i].span &&
		     (keys[j].rank == 0) == ret && keys[j].cuda == keys[i].cuda;
		     j++)
			sites[j - i] = keys[j].idx;
		b.ret = ret;
		b.cuda = keys[i].cuda;
		b.fd = t->objects[keys[i].object].fd;
		batch_arm(a, &b, 0, j - i);
		i = j;
	}
	free(sites);
}

/* Known before the first is armed: giving hundreds back takes the kernel minutes. */
static int check_descriptors(const struct armer *a, size_t n, struct err *e)
{
	struct rlimit rl;

	if (a->o.multi || getrlimit(RLIMIT_NOFILE, &rl) || n + 64 <= rl.rlim_cur)
		return 0;
	return err_set(e, -EMFILE,
		       "%zu probes need as many open files (no uprobe_multi here), the limit is "
		       "%llu: raise `ulimit -n` or narrow the selection",
		       n, (unsigned long long)rl.rlim_cur);
}

int armer__arm(struct armer *a, struct plan *p, const struct target *t, size_t from, struct err *e)
{
	struct sort_key *keys;
	size_t n = 0;
	int err = 0;

	if (from >= p->nsites)
		return 0;
	keys = calloc(p->nsites - from, sizeof(*keys));
	if (!keys)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = from; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		if (!site_may_be_armed(p, s))
			continue;
		keys[n++] = (struct sort_key){.idx = i,
					      .object = s->object,
					      .rank = role_rank(s->role),
					      .cuda = s->cuda && s->role != QBPF_ROLE_INSTANT,
					      .span = a->o.per_span ? s->span : 0};
	}
	qsort(keys, n, sizeof(*keys), by_batch);
	err = check_descriptors(a, n, e);
	if (err)
		goto out;
	a->fatal = 0;
	if (a->o.all_pids) {
		arm_sorted(a, p, t, keys, n, 0);
	} else {
		for (size_t i = 0; i < t->npids; i++)
			arm_sorted(a, p, t, keys, n, t->pids[i]);
	}
	if (a->fatal)
		err = err_set(e, a->fatal, "cannot arm probes: %s", arm_strerror(a->fatal, false));
out:
	free(keys);
	return err;
}

int armer__detach_span(struct armer *a, struct plan *p, uint32_t span)
{
	if (!a->o.per_span)
		return -EOPNOTSUPP;
	/* Begins were armed last and go first. */
	for (size_t i = a->nlinks; i-- > 0;)
		if (a->links[i].span == span)
			link_close(&a->links[i]);
	for (size_t i = 0; i < p->nsites; i++)
		if (p->sites[i].span == span)
			p->sites[i].armed = false;
	return 0;
}

int armer__attach_extra(struct armer *a, struct bpf_program *prog, const struct target *t,
			uint32_t object, uint64_t off, bool all_pids)
{
	__u64 cookie = 0;
	struct multi_sites m = {.offs = &(unsigned long){off}, .cookies = &cookie, .n = 1};
	int fd = t->objects[object].fd, err = 0;
	size_t npids;

	all_pids |= a->o.all_pids;
	npids = all_pids ? 1 : t->npids;
	for (size_t i = 0; i < npids && !err; i++) {
		pid_t pid = all_pids ? 0 : t->pids[i];

		if (a->o.multi)
			err = attach_multi_link(a, prog, fd, pid, &m, false, 0);
		else
			err = attach_perf(a, prog, fd, pid, off, 0, cookie, false, 0);
	}
	return err;
}

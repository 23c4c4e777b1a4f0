// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Watching the target: its end (pidfd), exec, fork and newly mapped objects (notices from
 * BPF). None of this carries spans.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "log.h"
#include "trace/maps_read.h"
#include "trace/session_impl.h"

#define KEY_TIMEOUT_NS 60000000000ull /* an open key older than this is dropped and counted */
#define NOTICE_TAG     (~0ull)
#define AGENTS_TAG     (~1ull)

static int pid_open(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

static int watch_pid(struct session *s, pid_t pid)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)pid};
	pid_t *list;
	int *fds, fd;

	fds = realloc(s->pidfds, (s->npidfds + 1) * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	s->pidfds = fds;
	list = realloc(s->pid_list, (s->npidfds + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	s->pid_list = list;
	fd = pid_open(pid);
	if (fd < 0)
		return -errno;
	if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, fd, &ev)) {
		int err = -errno;

		close(fd);
		return err;
	}
	s->pidfds[s->npidfds] = fd;
	s->pid_list[s->npidfds++] = pid;
	return 0;
}

static void forget_pid(struct session *s, pid_t pid)
{
	target__remove_pid(s->target, pid);
	if (s->stream)
		stream__process_end(s->stream, (uint32_t)pid, now_ns());
	for (size_t i = 0; i < s->npidfds; i++) {
		if (s->pid_list[i] != pid)
			continue;
		close(s->pidfds[i]);
		s->npidfds--;
		s->pidfds[i] = s->pidfds[s->npidfds];
		s->pid_list[i] = s->pid_list[s->npidfds];
		break;
	}
	s->ended = !s->npidfds;
}

static int on_notice(void *ctx, void *data, size_t size)
{
	const struct qbpf_notice *n = data;
	struct session *s = ctx;
	struct err why = {{0}};

	if (size < sizeof(*n) || n->size < sizeof(*n))
		return 0;
	switch (n->type) {
	case QBPF_NOTICE_MAPS:
	case QBPF_NOTICE_EXEC:
		s->rescan = true;
		if (!s->mapped_ns && !s->o.starting) /* else it is held until that is armed */
			s->mapped_ns = n->time_ns;
		break;
	case QBPF_NOTICE_FORK:
		session__guard_fork(s, (pid_t)n->tgid, (pid_t)n->arg);
		if (!s->forks) {
			struct plan_process proc;

			s->forks = true;
			session__facts(s, &proc);
			if (session__replan(s, &proc, &why))
				log_warn("%s", why.text);
			target__drop_images(s->target);
		}
		if (!s->o.follow)
			break;
		/* It may be gone again already: then its frames are all that is left of it. */
		if (!target__add_pid(s->target, (pid_t)n->arg, &why)) {
			if (watch_pid(s, (pid_t)n->arg))
				target__remove_pid(s->target, (pid_t)n->arg);
			else
				s->ended = false;
		}
		if (s->stream)
			stream__process(s->stream, (uint32_t)n->arg, n->time_ns);
		break;
	case QBPF_NOTICE_EXIT: /* the pidfd tells too, a little later */
		if (s->stream)
			stream__process_end(s->stream, n->tgid, n->time_ns);
		break;
	default:
		break;
	}
	return 0;
}

int session__watch(struct session *s, struct err *e)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = NOTICE_TAG};
	int err;

	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epfd < 0)
		return err_set(e, -errno, "epoll: %s", strerror(errno));
	s->notices = ring_buffer__new(bpf_map__fd(s->skel->maps.notices), on_notice, s, NULL);
	if (!s->notices)
		return err_set(e, -errno, "cannot open the notice ring: %s", strerror(errno));
	if (epoll_ctl(s->epfd, EPOLL_CTL_ADD, ring_buffer__epoll_fd(s->notices), &ev))
		return err_set(e, -errno, "epoll: %s", strerror(errno));
	ev.data.u64 = AGENTS_TAG;
	if (s->o.agents && epoll_ctl(s->epfd, EPOLL_CTL_ADD, agents__fd(s->o.agents), &ev))
		return err_set(e, -errno, "epoll: %s", strerror(errno));
	for (size_t i = 0; i < s->target->npids; i++) {
		pid_t pid = s->target->pids[i];

		err = watch_pid(s, pid);
		if (err)
			return err_set(e, err, "process %d: %s", pid,
				       err == -ESRCH ? "has ended" : strerror(-err));
	}
	return 0;
}

void session__unwatch(struct session *s)
{
	ring_buffer__free(s->notices);
	s->notices = NULL;
	for (size_t i = 0; i < s->npidfds; i++)
		close(s->pidfds[i]);
	free(s->pidfds);
	free(s->pid_list);
	s->pidfds = NULL;
	s->pid_list = NULL;
	s->npidfds = 0;
	if (s->epfd >= 0)
		close(s->epfd);
	s->epfd = -1;
}

int session__fd(const struct session *s)
{
	return s->epfd;
}

int session__poll(struct session *s, struct err *e)
{
	struct epoll_event ev[16];
	bool agents = false;
	int n, err;

	n = epoll_wait(s->epfd, ev, 16, 0);
	for (int i = 0; i < n; i++) {
		agents |= ev[i].data.u64 == AGENTS_TAG;
		if (ev[i].data.u64 != NOTICE_TAG)
			continue;
		err = ring_buffer__consume(s->notices);
		if (err < 0)
			return err_set(e, err, "cannot read notices: %s", strerror(-err));
	}
	/* Ends after notices, so that a child's birth is seen before its parent's death. */
	for (int i = 0; i < n; i++)
		if (ev[i].data.u64 != NOTICE_TAG && ev[i].data.u64 != AGENTS_TAG)
			forget_pid(s, (pid_t)ev[i].data.u64);
	err = 0;
	if (s->rescan && !s->ended) {
		s->rescan = false;
		err = session__rescan(s, e);
	}
	if (!err && agents)
		err = session__on_agents(s, e);
	if (err && err != -ESRCH) /* it ended meanwhile: its pidfd will say so */
		return err;
	return s->ended;
}

int session__tick(struct session *s, struct err *e)
{
	uint64_t now = now_ns();
	int err = 0;

	if (now > KEY_TIMEOUT_NS)
		maps_sweep_keys(s->skel, now - KEY_TIMEOUT_NS, s->key_timeouts, s->span_room);
	if (!s->hooked && !s->ended) {
		s->mapped_ns = s->looked_ns;
		err = session__rescan(s, e);
	}
	if (err == -ESRCH)
		err = 0;
	if (!err && s->o.max_overhead_pct > 0)
		err = session__keep_budget(s, e);
	session__tick_recording(s);
	return err;
}

/*
 * The linker's own markers, in order of preference: map_complete comes when an object's
 * segments are in place and before its constructors; init_complete after start-up;
 * _dl_debug_state is the debuggers' hook, in musl too.
 */
static bool hook_marker(struct session *s, size_t obj, const char *name)
{
	const struct usdt_table *t = s->target->objects[obj].markers;
	bool done = false;

	for (size_t i = 0; t && i < t->n; i++) {
		const struct usdt_marker *m = &t->markers[i];

		if (strcmp(m->provider, "rtld") || strcmp(m->name, name))
			continue;
		done |= !armer__attach_extra(s->armer, s->skel->progs.on_ldso, s->target, obj,
					     m->off, false);
	}
	return done;
}

static bool hook_function(struct session *s, size_t obj)
{
	const struct func_table *t;
	struct err why;

	if (target__read_one(s->target, obj, TARGET_MARKERS | TARGET_FUNCS, &why))
		return false;
	t = s->target->objects[obj].funcs;
	for (size_t i = 0; t && i < t->n; i++) {
		const struct elf_func *f = &t->funcs[i];

		if (f->flags & (FUNC_IMPORTED | FUNC_IFUNC) || strcmp(f->name, "_dl_debug_state"))
			continue;
		return !armer__attach_extra(s->armer, s->skel->progs.on_ldso, s->target, obj,
					    f->off, false);
	}
	return false;
}

void session__hook_ldso(struct session *s, size_t from)
{
	for (size_t i = from; i < s->target->nobjects && !s->hooked; i++) {
		const struct target_object *o = &s->target->objects[i];

		if (o->is_ldso && !o->unusable)
			s->hooked = hook_marker(s, i, "map_complete") || hook_function(s, i);
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The loop of attach and run; see watch.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cmd/watch.h"
#include "log.h"
#include "out/tui.h"

enum { FD_SIGNAL, FD_SESSION, FD_TICK, FD_INTERVAL, FD_DURATION, FD_TUI, FD_N };

struct watch {
	struct session *s;
	const struct options *o;
	struct launch *launch;
	struct report *report;
	struct tui *tui;
	struct pollfd fds[FD_N];
	int status; /* of the launched child */
	bool have_status;
	bool starting; /* run: the child is still in its start-up */
	bool stop;
	bool timed_out; /* -d, or a second signal: the launched child is ended too */
	bool ended;	/* the target is */
	int recorded;	/* what became of a recording: 0, or an error and why */
	struct err why;
	unsigned int signals;
	uint64_t started_ns;
};

static struct tui *message_tui;

static void message_to_tui(enum log_level level, const char *line)
{
	(void)level;
	tui__message(message_tui, line);
}

static void signal_set(sigset_t *set)
{
	static const int list[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGWINCH, SIGCHLD};

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		sigaddset(set, list[i]);
}

int watch__block_signals(struct err *e)
{
	sigset_t set;

	signal_set(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return err_set(e, -errno, "sigprocmask: %s", strerror(errno));
	return 0;
}

void watch__session_opts(const struct options *o, struct session_opts *so)
{
	const char *force = getenv("QBPF_FORCE_PERF_EVENT");

	memset(so, 0, sizeof(*so));
	so->plan = o->plan;
	so->pids = o->pids;
	so->npids = o->npids;
	so->follow = o->follow;
	so->force_perf_event = force && *force == '1';
	so->measure_price = true;
	so->max_overhead_pct = o->max_overhead_pct;
}

static int nothing_selected(const struct session *s, const struct options *o, struct err *e)
{
	const struct target *t = session__target(s);
	size_t missing, unusable = 0;
	const char *why = "";

	for (size_t i = 0; i < t->nobjects; i++) {
		if (!t->objects[i].unusable)
			continue;
		unusable++;
		why = t->objects[i].unusable;
	}
	if (unusable && unusable == t->nobjects)
		return err_set(
		    e, -EACCES,
		    "none of the %zu files that the target maps can be read: %s (another "
		    "user's process needs CAP_SYS_PTRACE)",
		    unusable, why);
	missing = session__warn_unmatched(s);

	if (missing)
		return err_set(e, -ENOENT, "no such probe in the target%s",
			       o->wait ? "" : " (--wait waits for a library to be opened)");
	return err_set(e, -ENOENT,
		       "the target has no markers: name functions with -f, or see qbpf list");
}

int watch__check_armed(const struct session *s, const struct options *o, struct err *e)
{
	const struct plan *p = session__plan(s);
	size_t sites, refused = 0;
	const char *why = NULL, *name = "";

	/* Records of the GPU are worth a session of their own. */
	if (session__armed(s, &sites) || o->plan.cuda == CUDA_AGENT || session__has_agents(s))
		return 0;
	if (!p->nspans) {
		for (size_t i = 0; i < p->nnotes; i++)
			log_warn("%s", p->notes[i]);
		return nothing_selected(s, o, e);
	}
	for (size_t i = 0; i < p->nsites; i++) {
		if (p->sites[i].verdict != VERDICT_REFUSED && !p->sites[i].arm_errno)
			continue;
		refused++;
		if (!why) {
			why = p->sites[i].reason ? p->sites[i].reason
						 : strerror(-p->sites[i].arm_errno);
			name = p->spans[p->sites[i].span - 1].name;
		}
	}
	if (!why && p->nspans) {
		name = p->spans[0].name;
		why = p->spans[0].way_reason;
	}
	return err_set(e, -EPERM, "none of %zu spans can be traced: %s: %s%s", p->nspans, name,
		       why ? why : "no end could be armed",
		       refused > 1 ? " (and others: see qbpf list)" : "");
}

int watch__prepare(struct session *s, const struct options *o, bool may_come_later, struct err *e)
{
	uint64_t t0 = now_ns(), t1;
	int err;

	err = session__discover(s, e);
	if (err)
		return err;
	t1 = now_ns();
	log_dbg("discovered and checked in %.1f ms", (t1 - t0) / 1e6);
	/* Fail before anything touches the kernel, when there is nothing to do. */
	if (!session__plan(s)->nspans && !may_come_later) {
		err = watch__check_armed(s, o, e);
		if (err)
			return err;
	}
	err = session__load(s, e);
	if (err)
		return err;
	log_dbg("loaded and priced in %.1f ms", (now_ns() - t1) / 1e6);
	err = session__arm(s, e);
	if (err)
		return err;
	return may_come_later ? 0 : watch__check_armed(s, o, e);
}

void watch__say_ready(const struct session *s, uint64_t since_ns)
{
	const struct target *t = session__target(s);
	const struct plan *p = session__plan(s);
	size_t sites, spans = session__armed(s, &sites), refused = 0;

	for (size_t i = 0; i < p->nsites; i++)
		refused += p->sites[i].verdict == VERDICT_REFUSED || p->sites[i].arm_errno;
	if (spans)
		session__warn_unmatched(s);
	for (size_t i = 0; i < p->nnotes; i++)
		log_dbg("%s", p->notes[i]);
	log_info("tracing %d (%s): %zu spans, %zu probes armed, %zu refused, ready in %.0f ms",
		 t->npids ? t->pids[0] : 0, t->comm, spans, sites, refused,
		 (now_ns() - since_ns) / 1e6);
}

static int timer_new(double first_s, double every_s)
{
	struct itimerspec its = {0};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	its.it_value.tv_sec = (time_t)first_s;
	its.it_value.tv_nsec = (long)((first_s - (time_t)first_s) * 1e9);
	its.it_interval.tv_sec = (time_t)every_s;
	its.it_interval.tv_nsec = (long)((every_s - (time_t)every_s) * 1e9);
	if (!its.it_value.tv_sec && !its.it_value.tv_nsec)
		its.it_value.tv_nsec = 1;
	if (timerfd_settime(fd, 0, &its, NULL)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static void timer_clear(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		log_dbg("timer: %s", strerror(errno));
}

static int watch_open(struct watch *w, struct err *e)
{
	const struct options *o = w->o;
	sigset_t set;

	for (int i = 0; i < FD_N; i++)
		w->fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	signal_set(&set);
	w->fds[FD_SIGNAL].fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	w->fds[FD_SESSION].fd = session__fd(w->s);
	w->fds[FD_TICK].fd = timer_new(1, 1);
	if (w->fds[FD_SIGNAL].fd < 0 || w->fds[FD_TICK].fd < 0)
		return err_set(e, -EMFILE, "cannot open signal and timer descriptors");
	/* A launched child owns the terminal: no full-screen view over its output. */
	if (!o->plain && !o->json && !w->launch && isatty(STDOUT_FILENO)) {
		struct err why;

		if (tui__new(&w->tui, &why))
			log_info("plain output: %s", why.text);
	}
	if (w->tui) {
		w->fds[FD_TUI].fd = tui__fd(w->tui);
		message_tui = w->tui;
		log_sink = message_to_tui;
	}
	return 0;
}

static void watch_tui_close(struct watch *w)
{
	log_sink = NULL;
	tui__free(w->tui);
	w->tui = NULL;
	w->fds[FD_TUI].fd = -1;
}

static void watch_close(struct watch *w)
{
	static const int own[] = {FD_SIGNAL, FD_TICK, FD_INTERVAL, FD_DURATION};

	watch_tui_close(w);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (w->fds[own[i]].fd >= 0)
			close(w->fds[own[i]].fd);
}

/* Interval and duration count from the moment that the probes are armed. */
static int start_clocks(struct watch *w, struct err *e)
{
	double every = w->o->interval_s > 0 ? w->o->interval_s : w->tui ? 1 : 0;

	if (every > 0)
		w->fds[FD_INTERVAL].fd = timer_new(w->tui ? 0 : every, every);
	if (w->o->duration_s > 0)
		w->fds[FD_DURATION].fd = timer_new(w->o->duration_s, 0);
	if ((every > 0 && w->fds[FD_INTERVAL].fd < 0) ||
	    (w->o->duration_s > 0 && w->fds[FD_DURATION].fd < 0))
		return err_set(e, -EMFILE, "cannot open timer descriptors");
	return 0;
}

static int interim(struct watch *w, struct err *e)
{
	struct snapshot *snap = NULL;
	int err = session__snapshot(w->s, &snap, e);

	if (err)
		return err;
	if (w->tui) {
		tui__draw(w->tui, snap);
		return 0;
	}
	err = report__interim(w->report, snap, e);
	snapshot__free(snap);
	w->stop |= w->report->gone;
	return err;
}

/*
 * Who named what to trace and mistyped it is told before the program does anything. Who named nothing has
 * asked for the program, whose status scripts go by: it runs, traced or not.
 */
static int check_start(const struct watch *w, struct err *e)
{
	const struct plan_opts *p = &w->o->plan;
	int err = watch__check_armed(w->s, w->o, e);

	if (!err || !w->launch || p->nmarkers || p->nfuncs || p->nspans)
		return err;
	log_warn("nothing is traced so far: %s%s", e->text,
		 w->o->follow ? "" : "; --follow takes in what it starts");
	return 0;
}

static int start_finished(struct watch *w, struct err *e)
{
	int err;

	if (!w->starting)
		return 0;
	w->starting = false;
	err = session__started(w->s, e);
	if (err)
		return err;
	if (!w->o->wait) {
		err = check_start(w, e);
		if (err)
			return err;
	}
	watch__say_ready(w->s, w->started_ns);
	return start_clocks(w, e);
}

static int on_child(struct watch *w, struct err *e)
{
	int err = 0;

	if (!w->launch || w->have_status)
		return 0;
	for (;;) {
		switch (launch__wait(w->launch, &w->status)) {
		case LAUNCH_MAPPED:
			err = session__rescan(w->s, e);
			if (!err)
				err = launch__go(w->launch, e);
			if (err)
				return err;
			continue;
		case LAUNCH_FREE:
			err = start_finished(w, e);
			return err ? err : launch__go(w->launch, e);
		case LAUNCH_ENDED:
			w->have_status = true;
			return start_finished(w, e);
		default:
			return 0;
		}
	}
}

/* A launched child gets our SIGINT and SIGTERM, unless the terminal has sent it to both. */
static void on_stop_signal(struct watch *w, const struct signalfd_siginfo *si)
{
	w->signals++;
	if (!w->launch || w->have_status) {
		w->stop = true;
		return;
	}
	if (w->signals > 1) {
		w->stop = w->timed_out = true;
		return;
	}
	if (si->ssi_code != SI_KERNEL)
		kill(launch__pid(w->launch), (int)si->ssi_signo);
}

static int on_signals(struct watch *w, struct err *e)
{
	struct signalfd_siginfo si;
	int err = 0;

	while (!err && read(w->fds[FD_SIGNAL].fd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGCHLD:
			err = on_child(w, e);
			break;
		case SIGUSR1:
			err = interim(w, e);
			break;
		case SIGWINCH:
			if (w->tui && tui__input(w->tui) == TUI_QUIT)
				w->stop = true;
			break;
		default:
			on_stop_signal(w, &si);
			break;
		}
	}
	return err;
}

static int on_ready_fds(struct watch *w, struct err *e)
{
	int err = 0;

	if (w->fds[FD_SIGNAL].revents)
		err = on_signals(w, e);
	if (!err && w->fds[FD_SESSION].revents) {
		err = session__poll(w->s, e);
		if (err == 1) {
			w->ended = w->stop = true;
			err = 0;
		}
	}
	if (!err && w->fds[FD_TICK].revents) {
		timer_clear(w->fds[FD_TICK].fd);
		err = session__tick(w->s, e);
	}
	if (!err && w->fds[FD_INTERVAL].fd >= 0 && w->fds[FD_INTERVAL].revents) {
		timer_clear(w->fds[FD_INTERVAL].fd);
		err = interim(w, e);
	}
	if (w->fds[FD_DURATION].fd >= 0 && w->fds[FD_DURATION].revents)
		w->stop = w->timed_out = true;
	if (w->tui && w->fds[FD_TUI].revents && tui__input(w->tui) == TUI_QUIT)
		w->stop = true;
	return err;
}

static int final_report(struct watch *w, struct err *e)
{
	struct snapshot *snap = NULL;
	int err;

	session__stop_counting(w->s);
	err = session__snapshot(w->s, &snap, e);
	/* The target is free before we spend time on formatting. */
	if (!session__disarms_slowly(w->s))
		session__disarm(w->s);
	if (err)
		return err;
	w->recorded = session__finish_recording(w->s, snap, &w->why);
	watch_tui_close(w);
	err = report__final(w->report, snap, e);
	snapshot__free(snap);
	return err;
}

/* `run` leaves no child behind: asked politely, then not. */
static void end_child(struct watch *w)
{
	struct timespec pause = {.tv_nsec = 20000000};

	if (!w->launch || w->have_status)
		return;
	if (!w->ended) {
		kill(launch__pid(w->launch), SIGTERM);
		for (int i = 0; i < 100 && !w->have_status; i++) {
			w->have_status = launch__wait(w->launch, &w->status) == LAUNCH_ENDED;
			if (!w->have_status)
				nanosleep(&pause, NULL);
		}
		if (!w->have_status)
			launch__kill(w->launch);
		w->have_status = false; /* we ended it: its status is ours, not its own */
		return;
	}
	while (launch__wait(w->launch, &w->status) != LAUNCH_ENDED)
		nanosleep(&pause, NULL);
	w->have_status = true;
}

int watch__loop(struct session *s, const struct options *o, struct report *report,
		struct launch *launch, int *status, uint64_t started_ns, struct err *e)
{
	struct watch w = {
	    .s = s, .o = o, .report = report, .launch = launch, .started_ns = started_ns};
	struct err why;
	int err;

	w.starting = true;
	err = watch_open(&w, e);
	if (!err && (!launch || launch__is_static(launch)))
		err = start_finished(&w, e);
	if (!err && launch)
		err = launch__go(launch, e);
	while (!err && !w.stop) {
		if (poll(w.fds, FD_N, -1) < 0) {
			if (errno == EINTR)
				continue;
			err = err_set(e, -errno, "poll: %s", strerror(errno));
			break;
		}
		err = on_ready_fds(&w, e);
	}
	if (!err)
		err = on_child(&w, e);
	if (!err && w.starting && launch)
		err = start_finished(&w, e);
	if (!err)
		err = final_report(&w, e);
	watch_close(&w);
	if (report__close(w.report, err ? &why : e) && !err)
		err = -EIO;
	if (err)
		launch__kill(launch);
	else
		end_child(&w);
	if (status)
		*status = w.have_status ? w.status : 0;
	/* The child has had its end, and the figures are out: only the file is not what it should be. */
	if (!err && w.recorded) {
		*e = w.why;
		err = w.recorded;
	}
	return err;
}

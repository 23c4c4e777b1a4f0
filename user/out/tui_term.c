/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tui_term.c - the terminal's life cycle: taken over by open, given back by close, by exit(), by
 * a fatal signal, while stopped (SIGTSTP), and taken again on SIGCONT.
 *
 * endwin() may not be called from a signal handler, so what it would write is composed when
 * the screen is opened; a handler needs only write() and tcsetattr(), which are allowed there.
 *
 * Window sizes are asked of the terminal at each look and not taken from SIGWINCH, because
 * the caller may have that signal blocked (signalfd).
 */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "out/tui_impl.h"

static const int fatal_signals[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGABRT, SIGSYS,
				    SIGTRAP, SIGTERM, SIGHUP,  SIGINT, SIGQUIT, SIGXCPU,
				    SIGALRM, SIGPIPE, SIGXFSZ, SIGUSR2};
#define NFATAL (sizeof(fatal_signals) / sizeof(fatal_signals[0]))

/* One terminal per process; handlers have no other way to find it. */
static struct {
	volatile sig_atomic_t active;  /* the screen is ours */
	volatile sig_atomic_t resumed; /* draw everything anew */
	int fd;
	FILE *in, *out;
	SCREEN *screen;
	struct termios shell, prog;
	char leave[256], enter[256];
	size_t leave_len, enter_len;
	struct sigaction old_fatal[NFATAL], old_tstp, old_cont;
	bool exit_hook;
} term;

static char *compose_at;
static size_t compose_left;

static int compose_char(int c)
{
	if (compose_left) {
		*compose_at++ = (char)c;
		compose_left--;
	}
	return c;
}

/* Appends a capability, padding resolved, to buf[256]; absent ones are nothing. */
static size_t compose(char *buf, size_t len, const char *capability)
{
	char name[16], *s;

	snprintf(name, sizeof(name), "%s", capability);
	s = tigetstr(name);
	if (!s || s == (char *)-1)
		return len;
	compose_at = buf + len;
	compose_left = 256 - len;
	tputs(s, 1, compose_char);
	return compose_at - buf;
}

static void write_all(const char *s, size_t n)
{
	while (n) {
		ssize_t w = write(term.fd, s, n);

		if (w <= 0)
			return;
		s += w;
		n -= w;
	}
}

/* Async-signal-safe. */
static void give_back(void)
{
	if (!term.active)
		return;
	term.active = 0;
	write_all(term.leave, term.leave_len);
	tcsetattr(term.fd, TCSANOW, &term.shell);
}

static void take_again(void)
{
	/* In the background, touching the terminal would stop us at once. */
	if (tcgetpgrp(term.fd) != getpgrp())
		return;
	tcsetattr(term.fd, TCSANOW, &term.prog);
	write_all(term.enter, term.enter_len);
	term.active = 1;
	term.resumed = 1;
}

static void raise_default(int sig)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigaction(sig, &act, NULL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig); /* pending until it is unblocked */
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void on_fatal(int sig)
{
	give_back();
	raise_default(sig);
}

static void install(int sig, void (*handler)(int), struct sigaction *old);

static void on_stop(int sig)
{
	int saved = errno;

	give_back();
	raise_default(sig); /* stops here */
	install(SIGTSTP, on_stop, NULL);
	take_again();
	errno = saved;
}

/* Continued after a SIGSTOP, which nobody can catch, or put into the foreground. */
static void on_continue(int sig)
{
	int saved = errno;

	(void)sig;
	if (term.screen)
		take_again();
	errno = saved;
}

static void install(int sig, void (*handler)(int), struct sigaction *old)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

	sigemptyset(&act.sa_mask);
	sigaction(sig, &act, old);
}

/* Signals that the caller handles or ignores are left to it. */
static void install_fatal(void)
{
	for (size_t i = 0; i < NFATAL; i++) {
		sigaction(fatal_signals[i], NULL, &term.old_fatal[i]);
		if (term.old_fatal[i].sa_handler == SIG_DFL)
			install(fatal_signals[i], on_fatal, NULL);
	}
	install(SIGTSTP, on_stop, &term.old_tstp);
	install(SIGCONT, on_continue, &term.old_cont);
}

static void uninstall(void)
{
	for (size_t i = 0; i < NFATAL; i++)
		sigaction(fatal_signals[i], &term.old_fatal[i], NULL);
	sigaction(SIGTSTP, &term.old_tstp, NULL);
	sigaction(SIGCONT, &term.old_cont, NULL);
}

/* ncurses puts its own handlers where there are none; ours are to see the defaults. */
static SCREEN *new_screen(const char *name)
{
	static const int taken[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
	struct sigaction before[4];
	SCREEN *s;

	for (int i = 0; i < 4; i++)
		sigaction(taken[i], NULL, &before[i]);
	s = newterm(name, term.out, term.in);
	for (int i = 0; i < 4; i++)
		sigaction(taken[i], &before[i], NULL);
	return s;
}

static bool capable(void)
{
	static const char *const needed[] = {"cup", "clear"};

	for (int i = 0; i < 2; i++) {
		char name[8];
		char *s;

		snprintf(name, sizeof(name), "%s", needed[i]);
		s = tigetstr(name);
		if (!s || s == (char *)-1)
			return false;
	}
	return !tigetflag("gn") && !tigetflag("hc");
}

/* The terminal's two ends: the standard ones, or /dev/tty when input is redirected. */
static int open_ends(struct err *e)
{
	int in = STDIN_FILENO, fd;

	if (!isatty(STDOUT_FILENO))
		return err_set(e, -ENOTTY, "standard output is no terminal");
	if (!isatty(in)) {
		in = open("/dev/tty", O_RDONLY | O_CLOEXEC);
		if (in < 0)
			return err_set(e, -ENOTTY, "no terminal to read keys from");
	} else {
		in = fcntl(in, F_DUPFD_CLOEXEC, 3);
	}
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	term.fd = fd;
	term.in = in >= 0 ? fdopen(in, "r") : NULL;
	term.out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!term.in || !term.out || tcgetattr(fd, &term.shell))
		return err_set(e, -ENOTTY, "cannot open the terminal");
	return 0;
}

static void close_ends(void)
{
	if (term.in)
		fclose(term.in);
	if (term.out)
		fclose(term.out);
	term.in = term.out = NULL;
}

int tui_term__open(struct err *e)
{
	const char *name = getenv("TERM");
	int err, status;

	err = open_ends(e);
	if (err)
		goto out;
	err = err_set(e, -ENOTTY, "TERM=%s cannot show a full screen", name ? name : "");
	if (!name || !*name || setupterm(name, term.fd, &status) != OK || !capable())
		goto out;
	del_curterm(cur_term);
	term.screen = new_screen(name);
	if (!term.screen)
		goto out;
	err = 0;
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	tui_put__start_colours();
	refresh(); /* enters the alternate screen */
	tcgetattr(term.fd, &term.prog);
	term.leave_len = compose(term.leave, 0, "sgr0");
	term.leave_len = compose(term.leave, term.leave_len, "rmkx");
	term.leave_len = compose(term.leave, term.leave_len, "cnorm");
	term.leave_len = compose(term.leave, term.leave_len, "rmcup");
	term.enter_len = compose(term.enter, 0, "smcup");
	term.enter_len = compose(term.enter, term.enter_len, "smkx");
	term.enter_len = compose(term.enter, term.enter_len, "civis");
	term.active = 1;
	install_fatal();
	if (!term.exit_hook)
		term.exit_hook = !atexit(give_back);
out:
	if (err)
		close_ends();
	return err;
}

void tui_term__close(void)
{
	if (!term.screen)
		return;
	uninstall();
	if (term.active) {
		endwin();
		term.active = 0;
	}
	/* Also when endwin() thought the screen given back: what was typed ahead stays. */
	tcsetattr(term.fd, TCSANOW, &term.shell);
	delscreen(term.screen);
	term.screen = NULL;
	close_ends();
}

int tui_term__fd(void)
{
	return term.in ? fileno(term.in) : -1;
}

bool tui_term__changed(void)
{
	struct winsize ws;
	bool changed = term.resumed;

	term.resumed = 0;
	if (!ioctl(term.fd, TIOCGWINSZ, &ws) && ws.ws_row && ws.ws_col &&
	    (ws.ws_row != LINES || ws.ws_col != COLS)) {
		resize_term(ws.ws_row, ws.ws_col);
		changed = true;
	}
	if (changed)
		clearok(curscr, TRUE);
	return changed;
}

bool tui_term__gone(void)
{
	struct pollfd p = {.fd = tui_term__fd(), .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

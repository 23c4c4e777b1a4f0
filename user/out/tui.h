/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The full-screen view (ncurses). The caller owns the loop: it polls tui__fd() (the terminal's
 * input) beside its own sources, calls tui__input() when readable or after SIGWINCH, and
 * tui__draw() with a fresh snapshot once per interval. One instance per process; main thread only.
 * The terminal is restored by tui__free(), and by an atexit and fatal-signal handler on every
 * other way out.
 */
#ifndef QBPF_OUT_TUI_H
#define QBPF_OUT_TUI_H

#include "model/snapshot.h"

enum tui_action { TUI_NONE, TUI_REDRAW, TUI_QUIT };

struct tui;

/* -ENOTTY: no terminal, TERM unknown or dumb: the caller falls back to plain output. */
int tui__new(struct tui **out, struct err *e);
void tui__free(struct tui *t);
int tui__fd(const struct tui *t);
enum tui_action tui__input(struct tui *t);
/* Takes ownership of s. Reset (key) and pause are handled inside, from cumulative snapshots. */
void tui__draw(struct tui *t, struct snapshot *s);
/* A line of talk (log_sink) to show at the bottom. */
void tui__message(struct tui *t, const char *line);

#endif
